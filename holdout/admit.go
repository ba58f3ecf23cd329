package holdout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// admission is the first stage: it refuses, or hands on a flight that has reserved what it may need. It reads the training part and the
// ledger, and no row of the holdout.
type admission struct {
	service   *Service
	holdout   *opened
	principal Principal
	request   request
	questions []*question         // distinct ones, in order
	key       *ledger.Idempotency // nil without
	release   func()              // of the holdout's tables
	access    access
}

// disclosable refuses a query that the asker's grant does not disclose.
func (a *admission) disclosable() error {
	for _, q := range a.questions {
		if err := a.access.discloses(q.query); err != nil {
			return a.placed(err, q)
		}
	}
	return nil
}

// admit ends with a flight that holds the tables and the reservation, or with an error and nothing held.
func (a *admission) admit(ctx context.Context) (*flight, error) {
	ctx, done := a.service.stage(ctx, StageAdmit, a.holdout.id, len(a.questions))
	defer done()
	f := &flight{service: a.service, holdout: a.holdout, principal: a.principal, request: a.request, key: a.key, purse: purse{grant: a.access.pays}}
	f.account = a.service.accounts.of(a.holdout.id)
	f.onEnd = []func(){a.release}
	admitted := false
	defer func() {
		if !admitted { // a panic, too
			f.end()
		}
	}()
	if err := a.reserve(ctx, f); err != nil {
		return nil, err
	}
	admitted = true
	return f, nil
}

func (a *admission) reserve(ctx context.Context, f *flight) error {
	if err := a.disclosable(); err != nil {
		return err
	}
	releaseKey, err := a.service.accounts.useKey(ctx, a.key)
	if err != nil {
		return a.service.ledgerError(err)
	}
	f.onEnd = append(f.onEnd, releaseKey)
	if err := a.service.checkKey(ctx, a.key); err != nil {
		return err
	}
	seen := f.account.ended()
	fresh, err := a.recall(ctx)
	if err == nil && len(fresh) > 0 && a.access.never != nil {
		return a.access.never
	}
	if err == nil {
		fresh, err = a.confirmed(fresh)
	}
	if err == nil && len(fresh) > 0 {
		if err = a.bearable(ctx, fresh); err == nil {
			fresh, err = a.claim(ctx, f, fresh, seen)
		}
	}
	if err != nil {
		return err
	}
	if len(fresh) == 0 {
		f.state, err = a.service.stateOf(ctx, a.holdout)
		f.begun = f.state
		return err
	}
	return a.enter(ctx, f, fresh)
}

// claim makes the questions this request's alone. Those that another request has answered since they were looked up are replays;
// it returns the others, which nobody else answers from here on.
func (a *admission) claim(ctx context.Context, f *flight, fresh []*question, seen int64) ([]*question, error) {
	ids := make([]string, len(fresh))
	for i, q := range fresh {
		ids[i] = q.id
	}
	release, err := f.account.claim(ctx, ids)
	if err != nil {
		return nil, err
	}
	f.onEnd = append(f.onEnd, release)
	if f.account.ended() == seen {
		return fresh, nil
	}
	if fresh, err = a.recall(ctx); err != nil {
		return nil, err
	}
	return a.confirmed(fresh)
}

// checkKey refuses a key that was used for another request before.
func (s *Service) checkKey(ctx context.Context, i *ledger.Idempotency) error {
	if i == nil {
		return nil
	}
	if len(i.Key) > ledger.MaxTextBytes || !utf8.ValidString(i.Key) { // it could not be recorded later
		return invalid("Idempotency-Key", "the Idempotency-Key must be text of at most %d bytes", ledger.MaxTextBytes)
	}
	known, ok, err := s.ledger.Idempotency(ctx, i.Principal, i.Key)
	switch {
	case err != nil:
		return s.ledgerError(err)
	case ok && known.Request != i.Request:
		return s.ledgerError(ledger.ErrIdempotencyMismatch)
	}
	return nil
}

// recall finds the recorded answers and compiles the other queries. Answers that are too long together are refused as soon as that is
// known: by what the queries say before one of them is compiled, then with each one that is. A plan, and the size of its answer, can
// take a thousand times what the query takes.
func (a *admission) recall(ctx context.Context) (fresh []*question, err error) {
	answers := int64(0)
	for _, q := range a.questions {
		if q.body != nil {
			continue
		}
		body, ok, err := a.service.ledger.Answer(ctx, a.holdout.id, q.id)
		if err != nil {
			return nil, a.service.ledgerError(err)
		}
		if ok {
			q.body, q.replayed, q.asked = body, true, nil
			continue
		}
		if q.asked == nil {
			q.size = session.LeastBytes(q.query)
		}
		answers += int64(q.size)
		fresh = append(fresh, q)
	}
	if len(fresh) > 0 {
		if err := a.holdout.ready(ctx); err != nil {
			return nil, err
		}
	}
	for _, q := range fresh {
		if err := a.service.checkAnswers(answers, len(fresh)); err != nil {
			return nil, err
		}
		if q.asked != nil {
			continue
		}
		least := q.size
		if err := a.compile(ctx, q); err != nil {
			return nil, a.placed(err, q)
		}
		answers += int64(q.size - least)
	}
	return fresh, a.service.checkAnswers(answers, len(fresh))
}

// compile makes a question of a query, if it can be recorded and so can its answer.
func (a *admission) compile(ctx context.Context, q *question) error {
	asked, err := a.holdout.question(ctx, q.query)
	if err != nil {
		return err
	}
	// Here and not after the last one, so that a batch that is too large ends at what is too much.
	if err := need(ctx, heldWork(asked.Plan)); err != nil {
		return err
	}
	if size := len(asked.Canonical); size > ledger.MaxCanonicalBytes {
		return fail(TooLarge, "the query has %d bytes in canonical form, at most %d are recorded", size, ledger.MaxCanonicalBytes)
	}
	size, err := a.holdout.session.AnswerBytes(asked)
	if err != nil {
		return err
	}
	if size > ledger.MaxCoreBytes {
		return fail(TooLarge, "the answer could have %d bytes, at most %d are recorded; ask about fewer features or categories at once, or with shorter names", size, ledger.MaxCoreBytes)
	}
	q.asked, q.size, q.price = asked, size, a.holdout.session.Price(asked.Plan)
	return nil
}

// placed moves an error's pointer to the query's place in its batch.
func (a *admission) placed(err error, q *question) error {
	if a.request.single {
		return err
	}
	return below(err, "/queries/"+strconv.Itoa(q.at))
}

// bearable refuses what is too much work. What is begun is finished, so that is decided beforehand, by public facts alone.
func (a *admission) bearable(ctx context.Context, fresh []*question) error {
	plans, answers := make([]*queries.Plan, 0, len(fresh)), int64(0)
	for _, q := range fresh {
		plans = append(plans, q.asked.Plan)
		answers += int64(q.size)
	}
	return need(ctx, a.holdout.passWork(plans, answers, true))
}

// enter waits for its turn, decides by the durable state and what others have reserved what will be asked, and reserves it.
func (a *admission) enter(ctx context.Context, f *flight, fresh []*question) error {
	acc, s := f.account, a.holdout.session
	alone := false
	for _, q := range fresh {
		alone = alone || s.Exclusive(q.asked)
	}
	refresh := func() error {
		if err := acc.refresh(ctx, a.service, a.holdout); err != nil {
			return err
		}
		return f.purse.open(ctx, a.service, acc, a.holdout.id)
	}
	return acc.enter(ctx, alone, refresh, func() (bool, error) {
		at, err := acc.now(a.service)
		if err != nil {
			return false, err
		}
		state := s.EndRequest(at.state) // of a request that a crash cut off, or that another server answers in pieces
		asked, err := a.affordable(state, s.Guarantee.Spend(state, acc.questions, 0), &f.purse, acc.paying[f.purse.grant].questions, fresh)
		if errors.Is(err, errReserved) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		// What others have in flight may have been seen already when this was asked: a commit is known a moment after it is durable.
		f.seq, f.state, f.begun, f.pending = at.seq, state, s.Guarantee.Spend(state, acc.questions, 0), asked
		f.reserved = &reservation{account: acc, grant: f.purse.grant, alone: alone}
		for _, q := range asked {
			f.reserved.questions += q.price.Questions
		}
		acc.reserve(f.purse.grant, f.reserved.questions, 0)
		return true, nil
	})
}

// errReserved says that the budget would pay if what others have reserved were not needed.
var errReserved = errors.New("holdout: reserved by others")

// affordable is the all-or-nothing rule: a single question is answered or refused, and the questions of a batch are paid
// all or none unless it may be answered in part. state is the durable one; reserved is what it will be when all that others have
// reserved is spent. The purse must pay as well, of which taken is what others have reserved.
func (a *admission) affordable(state, reserved thresholdout.State, purse *purse, taken int64, fresh []*question) (asked []*question, err error) {
	s := a.holdout.session
	for _, q := range fresh {
		if q.notAsked = s.Short(state, q.asked); q.notAsked == "" {
			q.notAsked = purse.short(a.holdout.dearest(state, q))
		}
		if q.notAsked != "" && a.request.single {
			return nil, a.holdout.exhausted(q.notAsked, state, q.price, purse)
		}
	}
	left, now := s.Guarantee.Affordable(state), s.Guarantee.Affordable(reserved)
	left, now = purse.most(thresholdout.MeterQuestions, left), min(now, purse.most(thresholdout.MeterQuestions, now+taken)-taken)
	cost, paid := int64(0), int64(0)
	for _, q := range fresh {
		cost += q.price.Questions
	}
	if cost > left && !a.request.partial && !a.request.single {
		return nil, a.holdout.refuseBatch(cost, left, fresh)
	}
	for _, q := range fresh {
		switch {
		case q.notAsked != "":
		case paid+q.price.Questions <= now:
			paid += q.price.Questions
			asked = append(asked, q)
		case paid+q.price.Questions <= left:
			return nil, errReserved
		default:
			q.notAsked = session.QuestionsExhausted
		}
	}
	return asked, nil
}

// refuseBatch is the refusal of a batch that is asked all or none.
func (h *opened) refuseBatch(cost, left int64, fresh []*question) error {
	affordable := int64(0)
	for _, q := range fresh {
		if affordable+q.price.Questions <= left {
			affordable += q.price.Questions
		}
	}
	what := "are left"
	if h.guarantee.Rounds > 0 {
		what = "can be asked in the next round"
	}
	return &Error{Kind: BudgetExhausted,
		Detail:  fmt.Sprintf("the batch needs %d questions and %d %s; partial answers as many as the budget pays for", cost, left, what),
		Members: map[string]any{"requested": cost, "remaining": left, "affordable": affordable}}
}

// question compiles a query for this holdout, or says what is wrong with it.
func (h *opened) question(ctx context.Context, q *queries.Query) (*session.Question, error) {
	plan, err := h.compile(ctx, q)
	if err != nil {
		return nil, err
	}
	asked, err := h.session.Question(q, plan)
	var wrong *session.WrongError
	if errors.As(err, &wrong) {
		return nil, &Error{Kind: Invalid, Pointer: wrong.Pointer, Detail: wrong.Detail, Err: err}
	}
	return asked, err
}
