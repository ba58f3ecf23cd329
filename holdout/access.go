package holdout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What somebody may see of a holdout, and what pays for their questions, is decided here and nowhere else: every method of the service that is about a holdout
// begins with access.

// access is what a principal has of a holdout in one request.
type access struct {
	shows Shows
	pays  string // the grant that pays for questions; "": what is not granted of the holdout
	limit int64  // questions of that grant; 0 where pays is ""
	never *Error // why nothing new can be asked; nil where it can
}

// GrantHeader is where a request names the grant that it is made on.
const GrantHeader = "X-Holdoutd-Grant"

// NoGrant in its place says that the request is made on what is not granted. Only admins limit others: who has nothing but parts of other holders' grants need not
// take them.
const NoGrant = "none"

// access finds out what a principal may see, and what pays. A holdout that it may not see is not there for it. It looks at no holdout: whether there is one is
// found out next, by the same words.
//
//   - Who has no grant of the holdout sees answers in full and spends what is not granted. So does an admin who names none.
//   - Who has one spends that, also when it has ended: then nothing new can be asked, and no other money is taken instead.
//     To name one that has ended shows no more than what is live does.
//   - Who has none but parts of other holders' grants may name NoGrant, and is as one who has none: a part that was not asked for takes nothing away.
//   - Who has several names one. To read without naming one shows no more than the least that a live one shows.
func (s *Service) access(ctx context.Context, p Principal, id string) (access, error) {
	all := access{shows: ShowsFull}
	if p.Holdouts != nil && !slices.Contains(p.Holdouts, id) {
		return all, s.ledgerError(ledger.ErrNotFound)
	}
	if p.Scope == Admin && p.Grant == "" {
		return all, nil
	}
	now, shows := s.now(), ShowsFull
	if p.Grant != "" && p.Grant != NoGrant { // a live one that is named says all: its holder may have had thousands
		switch g, err := s.ledger.Grant(ctx, p.Grant); {
		case err == nil && g.Holdout == id && g.Holder == p.KeyID && g.Live(now):
			return accessOn(&g), nil
		case err != nil && !errors.Is(err, ledger.ErrNotFound):
			return all, s.ledgerError(err)
		}
	}
	own, err := s.ledger.Grants(ctx, id, p.KeyID)
	if err != nil {
		return all, s.ledgerError(err)
	}
	live := slices.DeleteFunc(slices.Clone(own), func(g ledger.Grant) bool { return !g.Live(now) })
	if p.OnlyGranted && len(live) == 0 {
		return all, s.ledgerError(ledger.ErrNotFound)
	}
	if p.Grant == NoGrant {
		if p.OnlyGranted || slices.ContainsFunc(own, func(g ledger.Grant) bool { return g.Parent == "" }) {
			return all, invalid(GrantHeader, "your key is limited to what an admin granted it, and cannot ask on what is not granted")
		}
		return all, nil
	}
	if p.Grant != "" {
		i := slices.IndexFunc(own, func(g ledger.Grant) bool { return g.ID == p.Grant })
		if i < 0 {
			return all, invalid(GrantHeader, "your key has no such grant of this holdout")
		}
		if own[i].Live(now) { // made, or seen to be live by another clock, just now
			return accessOn(&own[i]), nil
		}
		// To name what has ended shows no more than to name nothing.
		if shows = leastOf(own); len(live) > 0 {
			shows = leastOf(live)
		}
		own, live = own[i:i+1], nil
	}
	switch {
	case len(own) == 0:
		return all, nil
	case len(live) == 0:
		last := own[len(own)-1]
		return access{shows: shows.and(leastOf(own)), pays: last.ID, limit: last.Limits[thresholdout.MeterQuestions], never: grantOver(&last)}, nil
	case len(live) == 1:
		return accessOn(&live[0]), nil
	}
	which := invalid(GrantHeader, "your key has %d grants of this holdout: say which one the request is made on, by the header %s", len(live), GrantHeader)
	var ids []string
	for _, g := range live[:min(len(live), maxNamed)] {
		ids = append(ids, g.ID)
	}
	which.Members = map[string]any{"grants": ids}
	return access{shows: leastOf(live), pays: live[0].ID, never: which}, nil
}

// maxNamed bounds how many grants a refusal names: one chooses among few, and somebody with thousands knows which it means.
const maxNamed = 100

// accessOn is what somebody has who asks on a live grant.
func accessOn(g *ledger.Grant) access {
	return access{shows: Shows(g.Shows), pays: g.ID, limit: g.Limits[thresholdout.MeterQuestions]}
}

// leastOf is the least that one of some grants shows.
func leastOf(grants []ledger.Grant) Shows {
	least := ShowsFull
	for _, g := range grants {
		least = least.and(Shows(g.Shows))
	}
	return least
}

// grantOver is the refusal of a question on a grant that pays no more.
func grantOver(g *ledger.Grant) *Error {
	how := "has expired, at " + g.Until.Format(time.RFC3339)
	switch {
	case g.EndedBy != "":
		how = "was ended, at " + g.Ended.Format(time.RFC3339)
	case g.Expires.IsZero() || !g.Expires.Equal(g.Until):
		how = "has ended with the grant that it was a part of, at " + g.Until.Format(time.RFC3339)
	}
	return grantRefused(g.ID, fmt.Sprintf("your grant of this holdout %s; what was answered before is still replayed", how))
}

func grantRefused(id, detail string) *Error {
	return &Error{Kind: GrantOver, Detail: detail, Members: map[string]any{"grant": id}}
}

// grantError says an error of the ledger about the grant that should pay.
func (s *Service) grantError(err error) error {
	var over *ledger.GrantError
	if errors.As(err, &over) {
		return grantRefused(over.ID, "your grant of this holdout has ended; what was answered before is still replayed")
	}
	return s.ledgerError(err)
}

// purse is what pays for a request: a grant, or what is not granted of the holdout.
type purse struct {
	grant string
	free  ledger.Meters // what is neither spent nor granted of it, when it was last read; nil where nothing of the holdout was ever granted
}

// open reads what is left. It holds no lock, since the ledger may be far away. What another request or another server spends after it is found out by the commit.
func (p *purse) open(ctx context.Context, s *Service, acc *account, id string) error {
	if p.grant == "" {
		if p.free = nil; !acc.granted() {
			return nil
		}
		books, err := s.ledger.Books(ctx, id)
		if err == nil {
			p.free = books.Free()
		}
		return s.ledgerErrorOr(err)
	}
	g, err := s.ledger.Grant(ctx, p.grant)
	switch {
	case err != nil:
		return s.ledgerError(err)
	case !g.Live(s.now()):
		return grantOver(&g)
	}
	p.free = g.Free()
	return nil
}

func (s *Service) ledgerErrorOr(err error) error {
	if err == nil {
		return nil
	}
	return s.ledgerError(err)
}

// most is the smaller of an amount and of what the purse has of a meter.
func (p *purse) most(meter string, amount int64) int64 {
	if p.free == nil {
		return amount
	}
	return min(amount, p.free[meter])
}

// short says which meter of the purse does not pay a price; "" if all do.
func (p *purse) short(price session.Price) (reason string) {
	if p.free == nil {
		return ""
	}
	return shortOf(p.free, debited(price))
}

// shortOf says which meter has less than is needed; "" if none has.
func shortOf(free, needed ledger.Meters) (reason string) {
	for _, meter := range []string{thresholdout.MeterRounds, thresholdout.MeterQuestions, thresholdout.MeterTokens} {
		if needed[meter] > free[meter] {
			return exhaustedMeter(meter)
		}
	}
	return ""
}

// dearest is the most that a question can debit in a state: its price and, where it takes as many tokens as there are, all of them that it can take.
func (h *opened) dearest(state thresholdout.State, q *question) session.Price {
	most, _ := h.session.Void(state, q.asked, q.price)
	if h.session.Greedy(q.asked.Plan) {
		most.Tokens = max(most.Tokens, min(h.session.MostTokens(q.asked.Plan), h.guarantee.Tokens-state.Tokens))
	}
	return most
}

// sees says which holdouts are there for a principal in a list.
func (s *Service) sees(ctx context.Context, p Principal) (func(id string) bool, error) {
	granted := map[string]bool{}
	if p.OnlyGranted {
		own, err := s.ledger.Grants(ctx, "", p.KeyID)
		if err != nil {
			return nil, s.ledgerError(err)
		}
		for now := s.now(); len(own) > 0; own = own[1:] {
			granted[own[0].Holdout] = granted[own[0].Holdout] || own[0].Live(now)
		}
	}
	return func(id string) bool {
		return (p.Holdouts == nil || slices.Contains(p.Holdouts, id)) && (!p.OnlyGranted || granted[id])
	}, nil
}

// left is what the asker of a flight can spend after it.
func (f *flight) left(ctx context.Context, may access) (Budget, error) {
	b := f.holdout.session.Budget(f.state)
	if may.pays == "" && !f.account.granted() {
		return b, nil
	}
	rest := b
	if may.pays == "" {
		books, err := f.service.ledger.Books(ctx, f.holdout.id)
		if err != nil {
			return b, f.service.ledgerError(err)
		}
		rest = b.Narrowed(books.Limits, books.Free())
		rest.Granted = books.Held[thresholdout.MeterQuestions]
	}
	return f.service.grantBudget(ctx, may, b, rest)
}

// grantBudget is the budget of the grant that pays, where one does, or else the rest.
func (s *Service) grantBudget(ctx context.Context, may access, whole, rest Budget) (Budget, error) {
	if may.pays == "" {
		return rest, nil
	}
	g, err := s.ledger.Grant(ctx, may.pays)
	if err != nil {
		return whole, s.ledgerError(err)
	}
	free := g.Free()
	if !g.Live(s.now()) {
		free = nil
	}
	b := whole.Narrowed(g.Limits, free)
	b.Grant = g.ID
	return shownBudget(b, may.shows), nil
}

// shortInPurse says which meter of what would pay for a question has too little; "" if none has.
func (s *Service) shortInPurse(ctx context.Context, may access, h *opened, state thresholdout.State, q *question) (reason string, err error) {
	if may.never != nil {
		return GrantEnded, nil
	}
	purse := purse{grant: may.pays}
	if err := purse.open(ctx, s, s.accounts.of(h.id), h.id); err != nil {
		return "", err
	}
	return purse.short(h.dearest(state, q)), nil
}

// discloses refuses a query that the asker's grant does not show the answer of, answered before or not, and one whose refusal would say how answers came out.
func (a *access) discloses(q *queries.Query) error {
	if a.shows != ShowsBit {
		return nil
	}
	members := map[string]any{"grant": a.pays, "shows": string(a.shows)}
	if !q.Decides() {
		return &Error{Kind: Undisclosed, Members: members,
			Detail: "your grant shows the verdict of an answer alone, and this query has none; ask a compare, a test or another query that decides. Nothing was read and nothing was debited"}
	}
	if _, own := q.HalfWidth(); own { // whether it can pass depends on how many tokens are spent
		return &Error{Kind: Undisclosed, Members: members, Pointer: "/half_width",
			Detail: "your grant shows the verdict of an answer alone, and half_width is about an interval; leave it out. Nothing was read and nothing was debited"}
	}
	return nil
}

// tell leaves out of a refusal what the asker's grant does not show: how wide intervals are now, and how many tokens are left, which says how answers came out.
func (a *access) tell(err error) error {
	var narrow *session.NarrowError
	if a.shows != ShowsFull && errors.As(err, &narrow) {
		var placed *Error
		errors.As(err, &placed)
		return &Error{Kind: Invalid, Pointer: placed.Pointer, Detail: "no guess can pass at this half-width after the answers so far; leave half_width out. Nothing was debited", Err: placed.Err}
	}
	var e *Error
	if a.shows != ShowsBit || !errors.As(err, &e) || e.Kind != BudgetExhausted || e.Members["meter"] != "tokens" {
		return err
	}
	return &Error{Kind: BudgetExhausted, Detail: "the tokens of your grant do not pay for this question; questions that were answered before are still replayed", Err: e.Err,
		Members: map[string]any{"affordable": int64(0), "meter": "tokens"}}
}
