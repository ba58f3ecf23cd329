package holdout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/tracing"
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
	earlier   *outcome            // of the same request under its key, or nil
	release   func()              // of the holdout's tables
}

// admitTraced is admit in a span: what is asked, under which mechanism, and what it costs by its price. All of it is public.
func (a *admission) admitTraced(ctx context.Context) (f *flight, err error) {
	ctx, span := tracing.Start(ctx, tracing.Admit)
	if span == nil {
		return a.admit(ctx)
	}
	defer func() { span.Done(err) }()
	span.Say(tracing.Mechanism, string(a.holdout.guarantee.Mechanism))
	types := make([]string, len(a.questions))
	for i, q := range a.questions {
		types[i] = q.query.Type()
	}
	span.Say(tracing.QueryType, types...)
	span.Set(tracing.Queries, len(a.questions))
	if f, err = a.admit(ctx); err != nil {
		return nil, err
	}
	cost, replays := int64(0), 0
	for _, q := range a.questions {
		switch {
		case q.body != nil:
			replays++
		case q.asked != nil && q.notAsked == "":
			cost += q.price.Questions
		}
	}
	span.Set(tracing.Questions, int(cost))
	span.Set(tracing.Replays, replays)
	return f, nil
}

// admit ends with a flight that holds the tables and the reservation, or with an error and nothing held.
func (a *admission) admit(ctx context.Context) (*flight, error) {
	f := &flight{service: a.service, holdout: a.holdout, principal: a.principal, request: a.request, questions: a.questions, key: a.key}
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
	releaseKey, keyIsLate, err := a.service.accounts.useKey(ctx, a.key)
	if err != nil {
		return a.service.ledgerError(err)
	}
	f.onLate, f.onEnd = append(f.onLate, keyIsLate), append(f.onEnd, releaseKey)
	if a.key != nil && len(a.questions) > maxOutcomeQueries {
		return fail(TooLarge, "a batch under an Idempotency-Key may have at most %d different queries, and this one has %d; send it without the key, or in parts", maxOutcomeQueries, len(a.questions))
	}
	seen, term := f.account.ended()
	fresh, err := a.recorded(ctx, f)
	if err == nil && len(fresh) > 0 {
		if err = a.bearable(ctx, fresh); err == nil {
			fresh, err = a.claim(ctx, f, fresh, seen)
		}
	}
	if err == nil && len(fresh) > 0 {
		fresh, err = a.begin(ctx, f, fresh, term)
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

// recorded gives the request what is recorded of it, and returns the questions that it may ask.
func (a *admission) recorded(ctx context.Context, f *flight) (fresh []*question, err error) {
	if a.earlier, err = a.service.outcomeOf(ctx, a.key); err != nil {
		return nil, err
	}
	f.earlier, f.concluded = a.earlier, a.earlier != nil && a.earlier.Complete
	if err := a.earlier.settle(a.questions); err != nil {
		return nil, a.service.ledgerError(err)
	}
	return a.fresh(ctx)
}

// begin waits for this server's term, and looks again at what is recorded, if another server had the holdout since. It comes after claim: who has a term waits for no question that another request has claimed, which may itself wait
// for the next term.
func (a *admission) begin(ctx context.Context, f *flight, fresh []*question, known int64) ([]*question, error) {
	number, leave, err := a.service.tenures.enter(ctx, a.holdout.id)
	if err != nil {
		return nil, a.service.ledgerError(err)
	}
	f.term, f.onEnd = number, append(f.onEnd, leave)
	if number == known {
		return fresh, nil
	}
	return a.recorded(ctx, f)
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
	if now, _ := f.account.ended(); now == seen {
		return fresh, nil
	}
	return a.fresh(ctx)
}

// fresh are the questions that this request may ask: those without an answer whose price it confirms or, where an earlier time was broken off, those that it
// had chosen then.
func (a *admission) fresh(ctx context.Context) ([]*question, error) {
	fresh, err := a.recall(ctx)
	switch {
	case err != nil || len(fresh) == 0:
		return nil, err
	case a.earlier == nil:
		return a.confirmed(fresh)
	case slices.ContainsFunc(fresh, func(q *question) bool { return q.void }):
		return nil, voidAgain()
	case a.earlier.Complete:
		return nil, a.service.ledgerError(&ledger.CorruptError{Holdout: a.holdout.id, Seq: -1, Reason: "an answer of a request that is complete is missing"})
	case a.holdout.guarantee.Rounds > 0:
		for _, q := range fresh {
			q.notAsked = Interrupted
		}
		return nil, nil
	}
	a.request.partial = true // a part of it is recorded already
	return fresh, nil
}

// recall finds the recorded answers and compiles the other queries. Answers that are too long together are refused as soon as that is
// known: by what the queries say before one of them is compiled, then with each one that is. A plan, and the size of its answer, can
// take a thousand times what the query takes.
func (a *admission) recall(ctx context.Context) (fresh []*question, err error) {
	answers := int64(0)
	for _, q := range a.questions {
		if q.body != nil || q.settled {
			continue
		}
		body, ok, err := a.service.ledger.Answer(ctx, a.holdout.id, q.id)
		if err != nil {
			return nil, a.service.ledgerError(err)
		}
		if ok {
			if !a.request.right.has(body) {
				return nil, a.placed(noBit(), q)
			}
			q.body, q.replayed, q.asked = body, true, nil
			continue
		}
		if q.asked == nil {
			q.size = session.LeastBytes(q.query)
		}
		answers += int64(q.size)
		fresh = append(fresh, q)
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
	if q.query.IsReported() && a.request.report == nil {
		return reportsAlone()
	}
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
	if _, named := q.query.HalfWidth(); named && a.request.right.shows.less(ShowsFull) && a.request.report == nil {
		return a.request.right.noWidth()
	}
	if a.request.right.shows == ShowsBit && !session.Decides(asked.Plan) {
		return noBit()
	}
	q.asked, q.size, q.price, q.most = asked, size, a.holdout.session.Price(asked.Plan), a.holdout.session.TokensAtMost(asked)
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
	alone, err := a.alone(ctx, fresh)
	if err != nil {
		return err
	}
	ids := make([]string, len(fresh))
	for i, q := range fresh {
		ids[i] = q.id
	}
	return acc.enter(ctx, alone, func() (ready bool, err error) {
		acc.fly(ids) // what is held for them is theirs
		defer func() {
			if ready && err == nil {
				f.reserved.flying = ids
			} else {
				acc.land(ids)
			}
		}()
		if a.request.report != nil {
			err := a.enterReport(ctx, f, fresh)
			return err == nil, err
		}
		state, err := acc.current(ctx, a.service, a.holdout, f.term)
		if err != nil {
			return false, err
		}
		state = s.EndRequest(state) // of a request that a crash cut off
		paid, err := acc.slice(ctx, a.service, a.holdout.id, a.principal)
		if err != nil {
			return false, err
		}
		kept := acc.kept()
		left := a.holdout.without(state, kept)
		asked, err := a.affordable(left, s.Guarantee.Spend(left, acc.questions, 0), fresh, paid)
		if errors.Is(err, errReserved) {
			return false, nil
		}
		if err != nil {
			return false, keptBack(err, kept)
		}
		// What others have in flight may have been seen already when this was asked: a commit is known a moment after it is durable.
		f.state, f.begun, f.pending = state, s.Guarantee.Spend(state, acc.questions, 0), asked
		f.reserved = &reservation{account: acc, alone: alone, payer: paid.payer()}
		for _, q := range asked {
			f.reserved.add(q.price.Questions, 0, 0)
		}
		return true, nil
	})
}

// alone reports whether nothing else may be answered between the first row that is read for the questions and the last answer.
func (a *admission) alone(ctx context.Context, fresh []*question) (bool, error) {
	s, begun := a.holdout.session, thresholdout.State{}
	exclusive := func(state thresholdout.State) bool {
		return slices.ContainsFunc(fresh, func(q *question) bool { return s.Exclusive(state, q.asked) })
	}
	switch {
	case a.request.report != nil:
		return true, nil
	case !exclusive(begun): // nor later; no state need be read
		return false, nil
	}
	state, err := a.service.stateOf(ctx, a.holdout)
	return err == nil && exclusive(state), err
}

// errReserved says that the budget would pay if what others have reserved were not needed.
var errReserved = errors.New("holdout: reserved by others")

// affordable is the all-or-nothing rule: a single question is answered or refused, and the questions of a batch are paid
// all or none unless it may be answered in part. state is the durable one; reserved is what it will be when all that others have
// reserved is spent. The grant pays in the same way: what it has left counts, and others' reservations are waited for.
func (a *admission) affordable(state, reserved thresholdout.State, fresh []*question, paying *slice) (asked []*question, err error) {
	s := a.holdout.session
	for _, q := range fresh {
		q.notAsked = s.Short(state, q.asked)
		if q.notAsked != "" && a.request.single {
			return nil, a.holdout.exhausted(q.notAsked, state, q.price)
		}
		if q.notAsked == "" && paying.left(thresholdout.MeterTokens) < q.most {
			if q.notAsked = GrantTokensExhausted; a.request.single {
				return nil, paying.exhausted(thresholdout.MeterTokens, q)
			}
		}
	}
	granted, grantedNow := paying.left(thresholdout.MeterQuestions), paying.now(thresholdout.MeterQuestions)
	left, now := s.Guarantee.Affordable(state), s.Guarantee.Affordable(reserved)
	cost, paid := int64(0), int64(0)
	for _, q := range fresh {
		cost += q.price.Questions
	}
	if cost > left && !a.request.partial && !a.request.single {
		return nil, a.refuseBatch(cost, left, fresh)
	}
	if cost > granted && !a.request.partial {
		return nil, paying.exhausted(thresholdout.MeterQuestions, fresh...)
	}
	for _, q := range fresh {
		switch {
		case q.notAsked != "":
		case paid+q.price.Questions <= min(now, grantedNow):
			paid += q.price.Questions
			asked = append(asked, q)
		case paid+q.price.Questions <= min(left, granted):
			return nil, errReserved
		case paid+q.price.Questions <= left:
			q.notAsked = GrantQuestionsExhausted
		default:
			q.notAsked = session.QuestionsExhausted
		}
	}
	return asked, a.wholeRound(state, paid)
}

func (a *admission) refuseBatch(cost, left int64, fresh []*question) error {
	affordable := int64(0)
	for _, q := range fresh {
		if affordable+q.price.Questions <= left {
			affordable += q.price.Questions
		}
	}
	what := "are left"
	if a.holdout.guarantee.Rounds > 0 {
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
