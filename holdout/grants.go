package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// NewGrant asks for a grant. It is in the words of a request's body.
type NewGrant struct {
	Holder    string     `json:"holder" doc:"who gets it: the id of a key, key_…, or of the holder of tokens"`
	Questions int64      `json:"questions" doc:"how many questions; 0 is a grant to read what was answered"`
	Tokens    *int64     `json:"tokens,omitempty" doc:"how many tokens, where the mechanism has them. Default: the same share of the tokens as of the questions, rounded up"`
	Rounds    *int64     `json:"rounds,omitempty" doc:"how many requests, where questions are asked in rounds. Default: 1"`
	Shows     Shows      `json:"shows,omitempty" enum:"full,value,bit" doc:"what of an answer its holder is shown: full: all of it; value: the numbers without intervals; bit: the verdict alone. Default: what the grant shows that it is a part of, else full"`
	MayGrant  bool       `json:"may_grant,omitempty" doc:"whether its holder may grant parts of it to others. Not of one that shows a bit, where the mechanism has tokens"`
	Expires   *time.Time `json:"expires,omitempty" doc:"when it ends by itself, and what is left of it is there again; default: with the grant that it is a part of, else never"`
	Name      string     `json:"name,omitempty" doc:"what it is for, for people"`
	Parent    string     `json:"parent,omitempty" doc:"the grant that it is a part of, gr_…; default: of an admin the holdout itself, of others the grant that the request is made on"`
}

// GrantInfo is what is known of a grant.
type GrantInfo struct {
	ID       string  `json:"id"`
	Holdout  string  `json:"holdout" doc:"its id"`
	Parent   *string `json:"parent" doc:"the grant that it is a part of; null: of the holdout itself"`
	Holder   Asker   `json:"holder"`
	Name     string  `json:"name" doc:"what it is for, for people; may be empty"`
	Shows    Shows   `json:"shows" enum:"full,value,bit" doc:"what of an answer its holder is shown"`
	MayGrant bool    `json:"may_grant" doc:"whether its holder may grant parts of it"`

	Questions GrantMeter  `json:"questions"`
	Tokens    *GrantMeter `json:"tokens" doc:"null where the mechanism has none, and to the holder of a grant that shows a bit"`
	Rounds    *GrantMeter `json:"rounds,omitempty" doc:"where questions are asked in rounds"`

	MadeBy  Asker      `json:"made_by"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires" doc:"null: not by itself"`
	Live    bool       `json:"live" doc:"whether it pays: it has not ended, nor has one that it is a part of"`
	Ended   *time.Time `json:"ended" doc:"when it ended, by itself or with one that it is a part of; null while it is live"`
	EndedBy *Asker     `json:"ended_by" doc:"who ended it; null where nobody did: it is live, has expired, or ended with one that it is a part of"`
}

// GrantMeter is one meter of a grant. Of is what spent, granted and left are together.
type GrantMeter struct {
	Of      int64 `json:"of"`
	Spent   int64 `json:"spent" doc:"by its holder, and by those of its parts"`
	Granted int64 `json:"granted" doc:"what its parts that are live have not spent"`
	Left    int64 `json:"left" doc:"what its holder can spend or grant; nobody can once it has ended"`
}

// Spender is what one principal has spent of a holdout on one grant.
type Spender struct {
	Who     Asker   `json:"who"`
	Grant   *string `json:"grant" doc:"null: of what is not granted"`
	Answers int64   `json:"answers"`
	Voids   int64   `json:"voids" doc:"questions that failed after their rows were read: debited and not answered"`
	Spent   Cost    `json:"spent"`
}

// Spending is who has spent what of a holdout.
type Spending struct {
	Spenders []Spender `json:"spenders" doc:"in the order of the ids of who asked and of the grants"`
	Spent    Cost      `json:"spent" doc:"in all, with what the holdout began with"`
	Granted  Cost      `json:"granted" doc:"what live grants have left"`
	Free     Cost      `json:"free" doc:"what is neither spent nor granted"`
	Of       Cost      `json:"of" doc:"the whole budget"`
}

// grantSpace makes ids of grants of requests with an Idempotency-Key, so that the same request makes one grant whichever server it comes to, and whenever: the ledger
// forgets the key itself after ledger.IdempotencyLife.
var grantSpace = uuid.MustParse("5b1e0f4a-63a5-4f3f-9a53-7d1f9a3e2c11")

// MakeGrant grants a part of a holdout's budget, or of another grant. Admins may, and the holder of a grant that it may be granted of. The same request under the
// same Idempotency-Key makes one grant; replayed reports whether it was there.
func (s *Service) MakeGrant(ctx context.Context, p Principal, id string, n NewGrant, idempotencyKey string) (info GrantInfo, replayed bool, err error) {
	may, err := s.access(ctx, p, id)
	if err != nil {
		return info, false, err
	}
	if p.Scope != Admin && n.Parent == "" {
		if may.pays == "" {
			return info, false, fail(Forbidden, "this needs a key with the scope %q, or a grant of the holdout that may be granted", Admin)
		}
		if may.never != nil {
			return info, false, may.never
		}
		n.Parent = may.pays
	}
	h, _, err := s.find(ctx, id)
	if err != nil {
		return info, false, err
	}
	if err := s.checkHolder(ctx, n.Holder, id); err != nil {
		return info, false, err
	}
	if err := checkName("name", n.Name); err != nil {
		return info, false, err
	}
	g := ledger.Grant{ID: "gr_" + uuid.NewString(), Parent: n.Parent, Holder: n.Holder, Name: n.Name, MayGrant: n.MayGrant, By: p.KeyID}
	var use *ledger.Idempotency
	if idempotencyKey != "" {
		use = &ledger.Idempotency{Principal: p.KeyID, Key: idempotencyKey, Request: n.digest(id), Resource: id}
		if err := s.checkKey(ctx, use); err != nil {
			return info, false, err
		}
		g.ID = "gr_" + uuid.NewSHA1(grantSpace, slices.Concat([]byte(p.KeyID+"\n"+idempotencyKey+"\n"), use.Request[:])).String()
	}
	wait, cancel := withDeadline(ctx)
	defer cancel()
	err = s.ledger.Update(wait, id, func(tx *ledger.Tx) error {
		replayed = false
		if use != nil {
			if err := tx.Idempotent(*use); err != nil {
				return err
			}
			if _, err := tx.Granted(g.ID); err == nil {
				replayed = true
				return nil
			}
		}
		whole := h.Limits
		made := g
		made.Shows, made.Expires = string(ShowsFull), time.Time{}
		if n.Parent != "" {
			parent, err := tx.Granted(n.Parent)
			if err != nil {
				return err
			}
			if err := grantable(p, &parent, tx.Now()); err != nil {
				return err
			}
			whole, made.Shows, made.Expires = parent.Limits, parent.Shows, parent.Until
		}
		if err := n.fill(&made, whole); err != nil {
			return err
		}
		return tx.MakeGrant(made)
	})
	if err != nil {
		return info, false, s.notGranted(err)
	}
	s.accounts.of(id).grants()
	made, err := s.ledger.Grant(ctx, g.ID)
	if err != nil {
		return info, false, s.ledgerError(err)
	}
	if !replayed {
		s.log.Info("granted", "holdout", id, "grant", g.ID, "of", n.Parent, "to", n.Holder, "by", p.KeyID)
	}
	infos, err := s.grantInfos(ctx, p, []ledger.Grant{made})
	if err != nil {
		return info, false, err
	}
	return infos[0], replayed, nil
}

// grantable says whether a principal can grant a part of a grant.
func grantable(p Principal, parent *ledger.Grant, now time.Time) error {
	switch {
	case p.Scope != Admin && parent.Holder != p.KeyID:
		return invalid("/parent", "your key has no such grant of this holdout")
	case p.Scope != Admin && !parent.MayGrant:
		return fail(Forbidden, "your grant may not be granted to others: may_grant is false")
	case !parent.Live(now):
		return grantOver(parent)
	}
	if _, tokens := parent.Limits[thresholdout.MeterTokens]; tokens && p.Scope != Admin && Shows(parent.Shows) == ShowsBit { // of before it was refused
		return fail(Forbidden, "a grant that shows a bit cannot be granted on where there are tokens")
	}
	return nil
}

// fill completes a grant that shows what another one shows, ends when that does, and is a part of its limits.
func (n *NewGrant) fill(g *ledger.Grant, whole ledger.Meters) error {
	if n.Questions < 0 {
		return invalid("/questions", "a grant is of at least 0 questions")
	}
	g.Limits = ledger.Meters{}
	for meter, limit := range whole {
		switch meter {
		case thresholdout.MeterQuestions:
			g.Limits[meter] = n.Questions
		case thresholdout.MeterTokens:
			g.Limits[meter] = share(n.Questions, whole[thresholdout.MeterQuestions], limit)
		case thresholdout.MeterRounds:
			g.Limits[meter] = min(1, n.Questions, limit)
		}
	}
	for _, given := range []struct {
		name   string
		amount *int64
	}{{thresholdout.MeterTokens, n.Tokens}, {thresholdout.MeterRounds, n.Rounds}} {
		if given.amount == nil {
			continue
		}
		_, has := whole[given.name]
		switch {
		case *given.amount < 0:
			return invalid("/"+given.name, "a grant is of at least 0 %s", given.name)
		case !has && *given.amount > 0:
			return invalid("/"+given.name, "this holdout has no %s", given.name)
		case has:
			g.Limits[given.name] = *given.amount
		}
	}
	if n.Shows != "" {
		if n.Shows.rank() == 0 {
			return invalid("/shows", "shows must be full, value or bit")
		}
		if n.Shows.rank() > Shows(g.Shows).rank() {
			return invalid("/shows", "the grant that it is a part of shows no more than %s", g.Shows)
		}
		g.Shows = string(n.Shows)
	}
	if _, tokens := whole[thresholdout.MeterTokens]; g.MayGrant && tokens && Shows(g.Shows) == ShowsBit {
		return invalid("/may_grant", "a grant that shows a bit cannot be granted on where there are tokens: parts that can be made of it would say how many are left, and so how answers came out")
	}
	if n.Expires != nil {
		if !g.Expires.IsZero() && n.Expires.After(g.Expires) {
			return invalid("/expires", "the grant that it is a part of ends at %s", g.Expires.Format(time.RFC3339))
		}
		g.Expires = *n.Expires
	}
	return nil
}

// share is the part of an amount that so many of all are of all, rounded up.
func share(part, all, amount int64) int64 {
	if part >= all || all <= 0 {
		return amount
	}
	high, low := bits.Mul64(uint64(part), uint64(amount))
	whole, rest := bits.Div64(high, low, uint64(all)) // high < all, since part is below it
	if rest > 0 {
		whole++
	}
	return int64(whole)
}

// digest identifies the request.
func (n *NewGrant) digest(id string) [32]byte {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // texts, numbers and a time
	}
	return sha256.Sum256([]byte("grant\n" + id + "\n" + string(text)))
}

// notGranted says in the words of a grant why there is none.
func (s *Service) notGranted(err error) error {
	var short *ledger.BudgetError
	var over *ledger.GrantError
	switch {
	case errors.As(err, &short):
		meter, requested, left := thresholdout.MeterQuestions, int64(0), int64(0)
		for _, name := range []string{thresholdout.MeterRounds, thresholdout.MeterTokens, thresholdout.MeterQuestions} {
			if short.Requested[name] > short.Left[name] {
				meter, requested, left = name, short.Requested[name], short.Left[name]
			}
		}
		of := "the holdout"
		if short.Grant != "" {
			of = "the grant"
		}
		return &Error{Kind: BudgetExhausted, Err: err, Detail: fmt.Sprintf("%d %s are to be granted, and %d of %s are neither spent nor granted", requested, meter, left, of),
			Members: map[string]any{"requested": requested, "remaining": left, "affordable": left, "meter": meter}}
	case errors.As(err, &over) && over.Reason == ledger.GrantUnknown:
		return invalid("/parent", "the holdout has no such grant")
	case errors.Is(err, ledger.ErrInvalid):
		return &Error{Kind: Invalid, Err: err, Detail: strings.TrimPrefix(err.Error(), "ledger: invalid: ")}
	}
	return s.ledgerError(err)
}

// checkHolder refuses who could not use a grant.
func (s *Service) checkHolder(ctx context.Context, holder, id string) error {
	if holder == "" || len(holder) > ledger.MaxTextBytes {
		return invalid("/holder", "a grant needs a holder: the id of a key, key_…")
	}
	if !strings.HasPrefix(holder, "key_") {
		return checkName("holder", holder) // of tokens, which are of whom their issuer says
	}
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return s.ledgerError(err)
	}
	i := slices.IndexFunc(keys, func(k ledger.Key) bool { return k.ID == holder })
	switch {
	case i < 0:
		return invalid("/holder", "there is no such key")
	case keys[i].Revoked:
		return invalid("/holder", "this key is revoked")
	case keys[i].Holdouts != nil && !slices.Contains(keys[i].Holdouts, id):
		return invalid("/holder", "this key is limited to other holdouts")
	}
	return nil
}

// Grants lists the grants of a holdout in the order in which they were made, ended ones too: all for an admin, for others their own and the parts of these.
func (s *Service) Grants(ctx context.Context, p Principal, id string) ([]GrantInfo, error) {
	if _, err := s.access(ctx, p, id); err != nil {
		return nil, err
	}
	if _, _, err := s.find(ctx, id); err != nil {
		return nil, err
	}
	all, err := s.ledger.Grants(ctx, id, "")
	if err != nil {
		return nil, s.ledgerError(err)
	}
	if p.Scope != Admin {
		mine := map[string]bool{}
		all = slices.DeleteFunc(all, func(g ledger.Grant) bool { // each comes after the one that it is a part of
			mine[g.ID] = g.Holder == p.KeyID || mine[g.Parent]
			return !mine[g.ID]
		})
	}
	return s.grantInfos(ctx, p, all)
}

// Grant returns a grant to an admin, to its holder, and to the holders of those that it is a part of.
func (s *Service) Grant(ctx context.Context, p Principal, id string) (GrantInfo, error) {
	g, _, err := s.grantFor(ctx, p, id)
	if err != nil {
		return GrantInfo{}, err
	}
	infos, err := s.grantInfos(ctx, p, []ledger.Grant{g})
	if err != nil {
		return GrantInfo{}, err
	}
	return infos[0], nil
}

// EndGrant ends a grant, and with it those that are parts of it: what is left of it is there again for what it was a part of. Admins may, and the holders of it and of
// those that it is a part of. A question whose rows are being read is not asked then. Ending again does nothing.
func (s *Service) EndGrant(ctx context.Context, p Principal, id string) error {
	g, _, err := s.grantFor(ctx, p, id)
	if err != nil {
		return err
	}
	return s.endGrant(ctx, p, &g)
}

func (s *Service) endGrant(ctx context.Context, p Principal, g *ledger.Grant) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.ledger.Update(ctx, g.Holdout, func(tx *ledger.Tx) error { return tx.EndGrant(g.ID, p.KeyID) }); err != nil {
		return s.ledgerError(err)
	}
	s.log.Info("grant ended", "holdout", g.Holdout, "grant", g.ID, "by", p.KeyID)
	return nil
}

// grantFor is a grant that somebody may see, with those that it is a part of.
func (s *Service) grantFor(ctx context.Context, p Principal, id string) (g ledger.Grant, path []ledger.Grant, err error) {
	unknown := fail(NotFound, "there is no such grant")
	mine := p.Scope == Admin
	for at := id; at != ""; at = path[len(path)-1].Parent {
		found, err := s.ledger.Grant(ctx, at)
		switch {
		case errors.Is(err, ledger.ErrNotFound):
			return g, nil, unknown
		case err != nil:
			return g, nil, s.ledgerError(err)
		}
		path, mine = append(path, found), mine || found.Holder == p.KeyID
	}
	if len(path) == 0 || !mine {
		return g, nil, unknown
	}
	whole := p
	whole.Grant = "" // the request names what it is about
	if _, err := s.access(ctx, whole, path[0].Holdout); err != nil {
		return g, nil, unknown
	}
	if _, _, err := s.find(ctx, path[0].Holdout); err != nil {
		return g, nil, err
	}
	return path[0], path, nil
}

// Spending says who has spent what of a holdout, and on which grant. Only admins may.
func (s *Service) Spending(ctx context.Context, p Principal, id string) (Spending, error) {
	if err := admins(p); err != nil {
		return Spending{}, err
	}
	h, _, err := s.find(ctx, id)
	if err != nil {
		return Spending{}, err
	}
	all, err := s.ledger.Spending(ctx, id)
	if err != nil {
		return Spending{}, s.ledgerError(err)
	}
	names, err := s.namesOf(ctx)
	if err != nil {
		return Spending{}, err
	}
	out := Spending{Spenders: []Spender{}, Spent: costOf(h.Spent), Granted: costOf(h.Held), Free: costOf(h.Free()), Of: costOf(h.Limits)}
	for _, each := range all {
		spender := Spender{Who: names(each.Principal), Answers: each.Answers, Voids: each.Voids, Spent: costOf(each.Spent)}
		if each.Grant != "" {
			spender.Grant = &each.Grant
		}
		out.Spenders = append(out.Spenders, spender)
	}
	return out, nil
}

func costOf(m ledger.Meters) Cost {
	return thresholdout.AmountsOf(func(meter string) int64 { return m[meter] })
}

// namesOf knows the names of principals.
func (s *Service) namesOf(ctx context.Context) (func(id string) Asker, error) {
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	names := make(map[string]string, len(keys))
	for _, k := range keys {
		names[k.ID] = k.Name
	}
	return func(id string) Asker {
		name, ok := names[id]
		if !ok && s.nameOf != nil {
			name, ok = s.nameOf(id)
		}
		if !ok {
			return Asker{ID: id}
		}
		return Asker{ID: id, Name: &name}
	}, nil
}

// grantInfos are grants as a principal may see them.
func (s *Service) grantInfos(ctx context.Context, p Principal, all []ledger.Grant) ([]GrantInfo, error) {
	names, err := s.namesOf(ctx)
	if err != nil {
		return nil, err
	}
	now := s.now()
	infos := make([]GrantInfo, len(all))
	for i := range all {
		g := &all[i]
		info := &infos[i]
		*info = GrantInfo{ID: g.ID, Holdout: g.Holdout, Holder: names(g.Holder), Name: g.Name, Shows: Shows(g.Shows), MayGrant: g.MayGrant,
			MadeBy: names(g.By), Created: g.Created, Live: g.Live(now), Questions: grantMeter(g, thresholdout.MeterQuestions, now)}
		if g.Parent != "" {
			info.Parent = &g.Parent
		}
		if _, has := g.Limits[thresholdout.MeterTokens]; has && (p.Scope == Admin || Shows(g.Shows) != ShowsBit) {
			m := grantMeter(g, thresholdout.MeterTokens, now)
			info.Tokens = &m
		}
		if _, has := g.Limits[thresholdout.MeterRounds]; has {
			m := grantMeter(g, thresholdout.MeterRounds, now)
			info.Rounds = &m
		}
		if !g.Expires.IsZero() {
			info.Expires = &g.Expires
		}
		if !info.Live {
			info.Ended = &g.Until
		}
		if g.EndedBy != "" {
			by := names(g.EndedBy)
			info.EndedBy = &by
		}
	}
	return infos, nil
}

// grantMeter is one meter of a grant.
func grantMeter(g *ledger.Grant, name string, now time.Time) GrantMeter {
	m := GrantMeter{Of: g.Limits[name], Spent: g.Spent[name], Granted: g.Held[name]}
	if g.Live(now) {
		m.Left = g.Free()[name]
	}
	return m
}
