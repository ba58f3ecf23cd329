package holdout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// A grant is a slice of a holdout's budget for one key (docs/decisions/0010-grants.md). What is spent of it is what the chain says that its key spent, and the keys of the grants below it. What
// is in flight is reserved in the account of the holdout, as the holdout's own questions are, so that no grant of the chain is overspent by those that ask at the same time.

// Reasons why an item of a batch was not asked that the holdout could have paid.
const (
	GrantQuestionsExhausted = "grant-questions-exhausted"
	GrantTokensExhausted    = "grant-tokens-exhausted"
)

// Reasons why a grant has ended.
const (
	GrantRevoked = "revoked" // it, or its key
	GrantExpired = "expired"
)

// NewGrant is what a grant is made of.
type NewGrant struct {
	Key       string     `json:"key" doc:"the id of a key with the scope granted, which has no grant of this holdout yet"`
	Holdout   string     `json:"holdout" doc:"its id"`
	Parent    string     `json:"parent,omitempty" doc:"the id of the grant that this one is a slice of; absent: of the holdout's own budget"`
	Questions int64      `json:"questions" minimum:"1" doc:"what it may spend, together with the grants below it"`
	Tokens    *int64     `json:"tokens,omitempty" minimum:"0" doc:"what it may spend, together with the grants below it; absent: it has no limit of its own"`
	Expires   *time.Time `json:"expires,omitempty" doc:"when it ends, by the server's clock; absent: never"`
	Shows     Shows      `json:"shows,omitempty" enum:"full,value,bit" doc:"what it shows of answers; absent: full"`
}

// GrantInfo is what is known of a grant.
type GrantInfo struct {
	ID        string      `json:"id"`
	Key       Asker       `json:"key" doc:"whose it is"`
	Holdout   string      `json:"holdout" doc:"its id"`
	Parent    string      `json:"parent,omitempty" doc:"the id of the grant that this one is a slice of"`
	Shows     Shows       `json:"shows" enum:"full,value,bit" doc:"what is shown of answers: all; the numbers without their intervals; whether the verdict is yes"`
	Questions GrantMeter  `json:"questions"`
	Tokens    *GrantMeter `json:"tokens" doc:"null where the holdout has none, and in the eyes of a key that is not shown what questions cost"`
	Created   time.Time   `json:"created"`
	Expires   *time.Time  `json:"expires,omitempty"`
	State     string      `json:"state" enum:"valid,revoked,expired" doc:"revoked or expired, too, where that is so of its key or of a grant above it"`
}

// GrantMeter is one count of a grant.
type GrantMeter struct {
	Of    *int64 `json:"of" doc:"the limit; null where the grant has none of its own"`
	Own   int64  `json:"own" doc:"what its key has spent"`
	Spent int64  `json:"spent" doc:"what its key and the keys of the grants below it have spent"`
	Left  int64  `json:"left" doc:"what it can still spend: the least that is left of it, of the grants above it and of the holdout; 0 once it has ended"`
}

// Spender is what one key has spent of a holdout.
type Spender struct {
	Key       Asker `json:"key"`
	Questions int64 `json:"questions"`
	Tokens    int64 `json:"tokens"`
}

// CreateGrant makes a grant. Only admins may.
func (s *Service) CreateGrant(ctx context.Context, p Principal, n NewGrant) (GrantInfo, error) {
	if err := admins(p); err != nil {
		return GrantInfo{}, err
	}
	if err := s.takesNothingNew(); err != nil {
		return GrantInfo{}, err
	}
	if n.Shows == "" {
		n.Shows = ShowsFull
	}
	g := ledger.Grant{ID: "gr_" + uuid.NewString(), Key: n.Key, Holdout: n.Holdout, Parent: n.Parent, Shows: string(n.Shows), Limits: ledger.Meters{thresholdout.MeterQuestions: n.Questions}, Created: s.now().UTC()}
	if n.Tokens != nil {
		g.Limits[thresholdout.MeterTokens] = *n.Tokens
	}
	if n.Expires != nil {
		g.Expires = n.Expires.UTC()
	}
	if err := s.checkGrant(ctx, g); err != nil {
		return GrantInfo{}, err
	}
	wait, cancel := withDeadline(ctx)
	defer cancel()
	switch err := s.acting(wait, p, func() error { return s.ledger.CreateGrant(wait, g) }); {
	case errors.Is(err, ledger.ErrExists):
		return GrantInfo{}, fail(Conflict, "the key has a grant of this holdout already, and a grant never changes; make another key for another grant")
	case errors.Is(err, ledger.ErrInvalid):
		return GrantInfo{}, &Error{Kind: Invalid, Pointer: "/parent", Detail: fmt.Sprintf("the grant cannot be made: there are at most %d grants of a holdout, and at most %d one below the other", ledger.MaxGrants, ledger.MaxGrantDepth), Err: err}
	case err != nil:
		return GrantInfo{}, s.ledgerError(err)
	}
	s.log.Info("grant made", "grant", g.ID, "key", g.Key, "holdout", g.Holdout, "by", p.KeyID)
	infos, err := s.grantsOf(ctx, g.Holdout, ShowsFull)
	if i := slices.IndexFunc(infos, func(i GrantInfo) bool { return i.ID == g.ID }); err == nil && i >= 0 {
		return infos[i], nil
	}
	return GrantInfo{}, err
}

// checkGrant refuses a grant that says something wrong.
func (s *Service) checkGrant(ctx context.Context, g ledger.Grant) error {
	questions, tokens := g.Limits[thresholdout.MeterQuestions], g.Limits[thresholdout.MeterTokens]
	switch {
	case questions < 1:
		return invalid("/questions", "questions must be at least 1")
	case tokens < 0:
		return invalid("/tokens", "tokens must be at least 0")
	case !Shows(g.Shows).known():
		return invalid("/shows", "shows must be %q, %q or %q", ShowsFull, ShowsValue, ShowsBit)
	case !g.Expires.IsZero() && !g.Expires.After(g.Created):
		return invalid("/expires", "expires must be later than now, %s", g.Created.Format(time.RFC3339))
	case g.Expires.Year() >= 2200: // a ledger keeps nanoseconds since 1970
		return invalid("/expires", "expires must be before the year 2200; leave it out for a grant that does not end")
	}
	_, card, err := s.find(ctx, g.Holdout)
	if err != nil {
		return &Error{Kind: KindOf(err), Pointer: "/holdout", Detail: "there is no such holdout", Err: err}
	}
	if card.Guarantee.Rounds > 0 {
		return fail(Conflict, "this holdout is asked in rounds, and a request ends its round for everybody: there are no grants of it")
	}
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return s.ledgerError(err)
	}
	switch i := slices.IndexFunc(keys, func(k ledger.Key) bool { return k.ID == g.Key }); {
	case i < 0 || keys[i].Revoked:
		return invalid("/key", "there is no valid key with this id")
	case Scope(keys[i].Scope) != Granted:
		return invalid("/key", "the key has the scope %q, which no grant limits; make one with the scope %q", keys[i].Scope, Granted)
	}
	if g.Parent == "" {
		return nil
	}
	list, err := s.grantsIn(ctx, g.Holdout)
	if err != nil {
		return err
	}
	all := ledger.GrantsOf(list)
	parent, ok := all[g.Parent]
	if !ok {
		return invalid("/parent", "there is no such grant of this holdout")
	}
	if err := s.live(all, parent.ID); err != nil {
		return invalid("/parent", "the parent has ended: %v", err.Detail)
	}
	limit, limited := parent.Limits[thresholdout.MeterTokens]
	switch {
	case questions > parent.Limits[thresholdout.MeterQuestions]:
		return invalid("/questions", "questions must be at most the parent's %d", parent.Limits[thresholdout.MeterQuestions])
	case limited && tokens > limit:
		return invalid("/tokens", "tokens must be at most the parent's %d", limit)
	case Shows(parent.Shows).less(Shows(g.Shows)):
		return invalid("/shows", "the parent shows %q, and a slice of it cannot show %q", parent.Shows, g.Shows)
	}
	return nil
}

// RevokeGrant ends a grant at once, and those below it. Only admins may.
func (s *Service) RevokeGrant(ctx context.Context, p Principal, id string) error {
	if err := admins(p); err != nil {
		return err
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	switch err := s.ledger.RevokeGrant(ctx, id); {
	case errors.Is(err, ledger.ErrNotFound):
		return fail(NotFound, "there is no such grant")
	case err != nil:
		return s.ledgerError(err)
	}
	s.log.Info("grant revoked", "grant", id, "by", p.KeyID)
	if err := s.markRevoked(id); err != nil { // the ledger has it
		s.log.Error("a grant is revoked, and the mark of that beside the tables could not be written; the next start tries again", "grant", id, "error", err)
	}
	return nil
}

// Grants returns grants in the order of their creation, with what is spent of each: for an admin all of a holdout, or of all where it is ""; for others their own.
func (s *Service) Grants(ctx context.Context, p Principal, holdout string) ([]GrantInfo, error) {
	list, err := s.grantsIn(ctx, holdout)
	if err != nil {
		return nil, err
	}
	infos, seen := []GrantInfo{}, map[string]bool{}
	for _, g := range list {
		if seen[g.Holdout] || p.Scope != Admin && g.Key != p.KeyID {
			continue
		}
		seen[g.Holdout] = true
		shows := ShowsFull
		if p.Scope != Admin {
			shows = Shows(g.Shows)
		}
		of, err := s.grantsOf(ctx, g.Holdout, shows)
		if KindOf(err) == NotFound && err != nil { // deleted: what was spent of it is in its ledger
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, info := range of {
			if p.Scope == Admin || info.Key.ID == p.KeyID {
				infos = append(infos, info)
			}
		}
	}
	slices.SortStableFunc(infos, func(a, b GrantInfo) int { return a.Created.Compare(b.Created) })
	return infos, nil
}

// Spenders says what each key has spent of a holdout, the most first; what a final report closed is nobody's. Only admins may.
func (s *Service) Spenders(ctx context.Context, p Principal, id string) ([]Spender, error) {
	if err := admins(p); err != nil {
		return nil, err
	}
	if _, _, err := s.find(ctx, id); err != nil {
		return nil, err
	}
	by, err := s.debits(ctx, id)
	if err != nil {
		return nil, err
	}
	h, all := historian{service: s, principal: p, id: id}, []Spender{}
	for key, debits := range by {
		spender := Spender{Key: Asker{ID: key}, Questions: debits[thresholdout.MeterQuestions], Tokens: debits[thresholdout.MeterTokens]}
		if spender.Key.Name, err = h.name(ctx, key); err != nil {
			return nil, err
		}
		all = append(all, spender)
	}
	slices.SortFunc(all, func(a, b Spender) int {
		return cmp.Or(cmp.Compare(b.Questions, a.Questions), cmp.Compare(b.Tokens, a.Tokens), strings.Compare(a.Key.ID, b.Key.ID))
	})
	return all, nil
}

// grantsOf are all grants of a holdout as a reader sees them.
func (s *Service) grantsOf(ctx context.Context, id string, shows Shows) ([]GrantInfo, error) {
	h, card, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := s.grantsIn(ctx, id)
	if err != nil {
		return nil, err
	}
	by, err := s.debits(ctx, id)
	if err != nil {
		return nil, err
	}
	budget, all := budgetOf(h, card), ledger.GrantsOf(list)
	names, infos := historian{service: s, id: id}, make([]GrantInfo, 0, len(list))
	at := added(all, list, by, nil)
	for _, g := range list {
		chain := at.slice(all.Chain(g.ID))
		info := GrantInfo{ID: g.ID, Key: Asker{ID: g.Key}, Holdout: g.Holdout, Parent: g.Parent, Shows: Shows(g.Shows), Created: g.Created, State: "valid"}
		info.Questions = chain.meter(thresholdout.MeterQuestions, by[g.Key], budget.Questions.Left)
		if budget.Tokens != nil && shows == ShowsFull {
			tokens := chain.meter(thresholdout.MeterTokens, by[g.Key], budget.Tokens.Left)
			info.Tokens = &tokens
		}
		if !g.Expires.IsZero() {
			info.Expires = &g.Expires
		}
		if ended := s.live(all, g.ID); ended != nil {
			info.State = ended.Members["reason"].(string)
			info.Questions.Left = 0 // what is left of the holdout follows what others ask, of which it hears nothing more
			if info.Tokens != nil {
				info.Tokens.Left = 0
			}
		}
		if info.Key.Name, err = names.name(ctx, g.Key); err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// live says why a grant has ended, or nil.
func (s *Service) live(all ledger.Grants, id string) *Error {
	chain := all.Chain(id)
	if len(chain) == 0 {
		return &Error{Kind: GrantEnded, Detail: "the grant is a slice of one that is not known", Members: map[string]any{"grant": id, "reason": GrantRevoked}}
	}
	for _, g := range chain {
		which := "the grant"
		if g.ID != id {
			which = "the grant " + g.ID + ", which this one is a slice of,"
		}
		switch {
		case g.Revoked:
			return &Error{Kind: GrantEnded, Detail: which + " is revoked, or its key is", Members: map[string]any{"grant": g.ID, "reason": GrantRevoked}}
		case !g.Expires.IsZero() && !s.now().Before(g.Expires):
			return &Error{Kind: GrantEnded, Detail: which + " ended on " + g.Expires.Format(time.RFC3339), Members: map[string]any{"grant": g.ID, "reason": GrantExpired}}
		}
	}
	return nil
}

// now is the server's clock, by which grants end.
func (s *Service) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

// slice is what a request may spend under its grant at one moment: of the grant itself, and of each that it is a slice of. A nil slice limits nothing.
type slice []level

// level is one grant of a chain, with what is spent and reserved of it, by its key and those below it.
type level struct {
	grant           ledger.Grant
	spent, reserved ledger.Meters
}

// levels are a grant's chain, with what its tree has spent and reserved.
func levels(all ledger.Grants, id string, spent map[string]ledger.Meters, reserved map[string]held) slice {
	chain := all.Chain(id)
	return added(all, chain, spent, reserved).slice(chain)
}

// sums are grants by their ids, with what their trees have spent and reserved.
type sums map[string]*level

// added adds up for some of all grants what their trees have spent and reserved, in one pass over all.
func added(all ledger.Grants, some []ledger.Grant, spent map[string]ledger.Meters, reserved map[string]held) sums {
	at := make(sums, len(some))
	for _, g := range some {
		at[g.ID] = &level{grant: g, spent: ledger.Meters{}, reserved: ledger.Meters{}}
	}
	for _, g := range all {
		for _, above := range all.Chain(g.ID) {
			l := at[above.ID]
			if l == nil {
				continue
			}
			for meter, amount := range spent[g.Key] {
				l.spent[meter] += amount
			}
			h := reserved[g.Key]
			l.reserved[thresholdout.MeterQuestions] += h.questions
			l.reserved[thresholdout.MeterTokens] += h.tokens
		}
	}
	return at
}

// slice is that of a chain.
func (at sums) slice(chain []ledger.Grant) slice {
	levels := make(slice, len(chain))
	for i, g := range chain {
		levels[i] = *at[g.ID]
	}
	return levels
}

// slice is what a principal may spend, by the chain up to its end and what is reserved. It is nil for one whom no grant limits. It fails with GrantEnded. The lock is held, so that what is in flight is in one of the two, or in
// both for a moment, and never in none.
func (acc *account) slice(ctx context.Context, s *Service, id string, p Principal) (*slice, error) {
	if p.Scope != Granted {
		return nil, nil
	}
	all, g, err := s.grantOf(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if err := acc.catchUp(ctx, s, id); err != nil {
		return nil, err
	}
	paying := levels(all, g.ID, acc.paid(), acc.held)
	return &paying, nil
}

// catchUp brings what is known of debits to the end of the chain. A chain only grows, so what was read once is not read again: unless a database failed over to one that lacks the last entries, which
// nobody was told of, and others have their places now. Then all is read again. The lock is held.
func (acc *account) catchUp(ctx context.Context, s *Service, id string) error {
	if acc.debitedTo > 0 {
		head, ok, err := s.ledger.HeadAt(ctx, id, acc.debitedTo)
		if err != nil {
			return s.ledgerError(err)
		}
		if !ok || head != acc.debitedHead {
			acc.debited, acc.debitedTo = map[string]ledger.Meters{}, 0
		}
	}
	more, last, err := s.ledger.Debits(ctx, id, acc.debitedTo)
	if err != nil {
		return s.ledgerError(err)
	}
	if last > acc.debitedTo {
		if acc.debitedHead, _, err = s.ledger.HeadAt(ctx, id, last); err != nil {
			return s.ledgerError(err)
		}
	}
	for key, debits := range more {
		if acc.debited[key] == nil {
			acc.debited[key] = ledger.Meters{}
		}
		for meter, amount := range debits {
			acc.debited[key][meter] += amount
		}
	}
	acc.debitedTo = last
	return nil
}

// debits are what each key has spent of a holdout, up to the end of its chain.
func (s *Service) debits(ctx context.Context, id string) (map[string]ledger.Meters, error) {
	acc := s.accounts.of(id)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if err := acc.catchUp(ctx, s, id); err != nil {
		return nil, err
	}
	by := make(map[string]ledger.Meters, len(acc.debited))
	for key, debits := range acc.debited {
		by[key] = maps.Clone(debits)
	}
	return by, nil
}

// left is what is left of a meter when what is reserved is not needed, now what is left when it is.
func (s *slice) left(meter string) int64 { _, left := s.least(meter, false); return left }
func (s *slice) now(meter string) int64  { _, left := s.least(meter, true); return left }

// least is the grant of the chain that has the least left of a meter, and how much that is.
func (s *slice) least(meter string, reserved bool) (g ledger.Grant, left int64) {
	left = math.MaxInt64
	if s == nil {
		return g, left
	}
	for _, l := range *s {
		limit, ok := l.grant.Limits[meter]
		if !ok {
			continue
		}
		limit -= l.spent[meter]
		if reserved {
			limit -= l.reserved[meter]
		}
		if limit < left {
			g, left = l.grant, limit
		}
	}
	return g, left
}

// take reserves in this slice alone: a wave boards with one.
func (s *slice) take(questions, tokens int64) {
	if s == nil {
		return
	}
	for _, l := range *s {
		l.reserved[thresholdout.MeterQuestions] += questions
		l.reserved[thresholdout.MeterTokens] += tokens
	}
}

// seat says whether a question that can take so many tokens can be read now.
func (s *slice) seat(tokens int64) seat {
	switch {
	case tokens == 0:
		return taken
	case s.left(thresholdout.MeterTokens) < tokens:
		return unpaid
	case s.now(thresholdout.MeterTokens) < tokens:
		return later
	}
	return taken
}

// payer is the key whose grant pays, or "".
func (s *slice) payer() string {
	if s == nil || len(*s) == 0 {
		return ""
	}
	return (*s)[0].grant.Key
}

// meter is what a grant shows of one of its meters.
func (s slice) meter(meter string, own ledger.Meters, holdout int64) GrantMeter {
	m := GrantMeter{Own: own[meter], Left: holdout}
	if len(s) == 0 {
		return m
	}
	m.Spent = s[0].spent[meter]
	if limit, ok := s[0].grant.Limits[meter]; ok {
		m.Of = &limit
	}
	m.Left = max(min(m.Left, s.left(meter)), 0)
	return m
}

// exhausted is the refusal of questions that the grant cannot pay. It does not say how many tokens are left: what they were spent for is not everybody's to know.
func (s *slice) exhausted(meter string, asked ...*question) *Error {
	g, left := s.least(meter, false)
	of := "of the grant"
	if g.ID != (*s)[0].grant.ID {
		of = "of the grant " + g.ID + ", which yours is a slice of"
	}
	if meter == thresholdout.MeterTokens {
		return &Error{Kind: GrantExhausted, Detail: "the question can take more tokens than are left " + of + "; questions that were answered before are still replayed",
			Members: map[string]any{"grant": g.ID, "meter": meter, "requested": asked[0].most}}
	}
	cost, affordable := int64(0), int64(0)
	for _, q := range asked {
		if cost += q.price.Questions; affordable+q.price.Questions <= left {
			affordable += q.price.Questions
		}
	}
	return &Error{Kind: GrantExhausted, Detail: fmt.Sprintf("this costs %d questions, and %d are left %s; the holdout may have more. Questions that were answered before are still replayed", cost, left, of),
		Members: map[string]any{"grant": g.ID, "meter": meter, "requested": cost, "remaining": left, "affordable": affordable}}
}
