package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Reasons why an item of a batch was not asked; such an item costs nothing.
const (
	QuestionsExhausted = "questions-exhausted"
	TokensExhausted    = "tokens-exhausted"
	RoundsExhausted    = "rounds-exhausted"
	HalfWidthTooNarrow = "half-width-too-narrow" // no guess can pass at the query's own half_width
)

// Ask answers one query. A query that was answered before, by whomever asked, is replayed: the same bytes, at no cost. An
// Idempotency-Key that comes with another query later is refused.
func (s *Service) Ask(ctx context.Context, p Principal, id string, query []byte, idempotencyKey string) (Answer, error) {
	q, err := s.parse(query)
	if err != nil {
		return Answer{}, err
	}
	b, err := s.askAll(ctx, p, id, []*queries.Query{q}, request{single: true, key: idempotencyKey})
	if err != nil {
		return Answer{}, err
	}
	item := b.Answers[0]
	return Answer{Body: item.Body, Budget: b.Budget, Replayed: item.Replayed}, nil
}

// AskBatch answers many queries in their order, with one pass over the rows and one commit. Questions are debited all or
// none, unless partial is set: then those that the budget pays for in their order. Tokens cannot be told beforehand: items
// are answered in order while they last, and the others come back as not asked.
// Equal queries in a batch are one query; the later ones are replays.
func (s *Service) AskBatch(ctx context.Context, p Principal, id string, batch []json.RawMessage, partial bool, idempotencyKey string) (BatchAnswer, error) {
	if len(batch) > s.limits.BatchQueries {
		return BatchAnswer{}, s.tooMany(len(batch))
	}
	parsed := make([]*queries.Query, len(batch))
	for i, body := range batch {
		q, err := s.parse(body)
		if err != nil {
			return BatchAnswer{}, below(err, "/queries/"+strconv.Itoa(i))
		}
		parsed[i] = q
	}
	return s.askAll(ctx, p, id, parsed, request{partial: partial, key: idempotencyKey})
}

func (s *Service) tooMany(n int) *Error {
	return &Error{Kind: TooLarge, Pointer: "/queries", Detail: fmt.Sprintf("%d queries in one batch, at most %d", n, s.limits.BatchQueries)}
}

func (s *Service) parse(body []byte) (*queries.Query, error) {
	if len(body) > s.limits.QueryBytes {
		return nil, fail(TooLarge, "the query has %d bytes, at most %d", len(body), s.limits.QueryBytes)
	}
	q, err := queries.Parse(body)
	if err != nil {
		return nil, queryError(err)
	}
	return q, nil
}

// request is how the queries came.
type request struct {
	single  bool
	partial bool
	key     string // Idempotency-Key
}

// digest identifies the request: what was asked of which holdout, however it was spelled.
func (r request) digest(id string, asked []*question) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "ask\n%s\n%v %v\n", id, r.single, r.partial)
	for _, q := range asked {
		fmt.Fprintln(h, q.id)
	}
	return [32]byte(h.Sum(nil))
}

// question is one distinct query on its way.
type question struct {
	query     *queries.Query
	at        int // its first place in the request
	id        string
	canonical []byte
	plan      *queries.Plan // nil while it has its answer
	guess     *thresholdout.Guess
	first     int // of its row functions among those of the request

	body     []byte // the recorded answer
	replayed bool
	notAsked string
}

// askAll takes queries from their parsed form to their recorded answers.
func (s *Service) askAll(ctx context.Context, p Principal, id string, parsed []*queries.Query, r request) (BatchAnswer, error) {
	if len(parsed) == 0 {
		return BatchAnswer{}, invalid("/queries", "a batch needs at least one query")
	}
	items, distinct := distinctQuestions(parsed)
	h, release, err := s.tables.take(ctx, id)
	if err != nil {
		return s.recorded(ctx, id, items, err)
	}
	defer release()
	var idem *ledger.Idempotency
	if r.key != "" {
		idem = &ledger.Idempotency{Principal: p.KeyID, Key: r.key, Request: r.digest(id, items), Resource: id}
		if err := s.checkIdempotency(ctx, idem); err != nil {
			return BatchAnswer{}, err
		}
	}
	fresh, err := s.recall(ctx, h, distinct, r)
	if err != nil {
		return BatchAnswer{}, err
	}
	a := asking{service: s, holdout: h, principal: p, request: r, idem: idem, questions: distinct, fresh: fresh}
	if len(fresh) > 0 || idem != nil {
		err := a.run(ctx)
		if err == nil {
			return a.reply(items), nil
		}
		// Recorded answers need no commit. All that is lost without one is the use of the Idempotency-Key, which harms nobody.
		if len(fresh) > 0 || KindOf(err) != Unavailable {
			return BatchAnswer{}, err
		}
	}
	state, err := h.balance(ctx, s)
	if err != nil {
		return BatchAnswer{}, err
	}
	a.budget = budgetOf(h.params, state)
	return a.reply(items), nil
}

// distinctQuestions maps each query to its question; equal queries share one.
func distinctQuestions(parsed []*queries.Query) (items, distinct []*question) {
	byID := make(map[string]*question, len(parsed))
	for i, query := range parsed {
		canonical := query.Canonical()
		id := query.ID()
		q := byID[id]
		if q == nil {
			q = &question{query: query, at: i, id: id, canonical: canonical}
			byID[id] = q
			distinct = append(distinct, q)
		}
		items = append(items, q)
	}
	return items, distinct
}

// checkIdempotency refuses a key that was used for another request before any work is done; the update checks again.
func (s *Service) checkIdempotency(ctx context.Context, i *ledger.Idempotency) error {
	if len(i.Key) > ledger.MaxTextBytes {
		return invalid("Idempotency-Key", "the Idempotency-Key is longer than %d bytes", ledger.MaxTextBytes)
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

// recall finds the recorded answers and compiles the other queries.
func (s *Service) recall(ctx context.Context, h *opened, distinct []*question, r request) (fresh []*question, err error) {
	for _, q := range distinct {
		body, ok, err := s.ledger.Answer(ctx, h.id, q.id)
		if err != nil {
			return nil, s.ledgerError(err)
		}
		if ok {
			q.body, q.replayed = body, true
			continue
		}
		if q.plan, err = h.compile(ctx, q.query); err != nil {
			if !r.single {
				err = below(err, "/queries/"+strconv.Itoa(q.at))
			}
			return nil, err
		}
		q.guess = guess(q.query, q.plan)
		fresh = append(fresh, q)
	}
	return fresh, nil
}

// asking is the way of a request's new questions from sums to a durable debit.
type asking struct {
	service   *Service
	holdout   *opened
	principal Principal
	request   request
	idem      *ledger.Idempotency
	questions []*question // distinct ones, in order
	fresh     []*question // those without an answer

	functions []queries.RowFunction // of the fresh ones
	sums      sums
	begun     thresholdout.State // before any of them
	board     board              // of a ladder
	budget    Budget
}

// sums are exact sums of the row functions.
type sums struct {
	training, holdout []int64 // of each function; training is nil where it is not used

	// Of the mechanism split: at[i] is the index of the question that function i was summed for, over that question's slice;
	// it is -1 where the budget ends before. The sums are good while spent questions are index.
	at    []int64
	index int64
}

// errMoved says that other questions came first, so that slices must be summed again.
var errMoved = errors.New("holdout: the next slice is taken")

// run computes the sums outside of the ledger's writer, then steps, debits and records within it.
func (a *asking) run(ctx context.Context) error {
	if err := a.afford(ctx); err != nil {
		return err
	}
	if err := a.oneSubmission(); err != nil {
		return err
	}
	a.list()
	if err := a.bearable(); err != nil {
		return err
	}
	// From here on holdout rows are read, and how long that takes may depend on them. So it ends in a debit, whether the
	// caller still waits or not: a deadline that fell between would be an answer that nobody paid for.
	ctx = context.WithoutCancel(ctx)
	if a.holdout.params.Mechanism == thresholdout.Split {
		// The slices of a question are known by its index only. Askers take turns, so that the index does not move between
		// the sums and the debit.
		a.holdout.turn.Lock()
		defer a.holdout.turn.Unlock()
	}
	for {
		if err := a.sum(ctx); err != nil {
			return err
		}
		wait, cancel := withDeadline(ctx)
		err := a.service.ledger.Update(wait, a.holdout.id, a.record)
		cancel()
		if errors.Is(err, errMoved) {
			if err := a.follow(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return a.service.ledgerError(err)
		}
		return nil
	}
}

// bearable refuses a request that is too much work. What is begun is finished, so what would take too long is refused
// beforehand, by public facts alone.
func (a *asking) bearable() error {
	for _, q := range a.fresh {
		if len(q.canonical) > ledger.MaxCanonicalBytes {
			return fail(TooLarge, "the query has %d bytes in canonical form, at most %d are recorded", len(q.canonical), ledger.MaxCanonicalBytes)
		}
		if size := a.holdout.answerBytes(q.plan); size > ledger.MaxCoreBytes {
			return fail(TooLarge, "the answer could have %d bytes, at most %d are recorded; ask about fewer features or categories at once", size, ledger.MaxCoreBytes)
		}
	}
	operations := 0
	for i := range a.functions {
		operations += 1 + nodes(a.functions[i].Value) + nodes(a.functions[i].Where)
	}
	rows := a.holdout.card.Rows.Holdout
	if a.holdout.params.UsesTraining() {
		rows += a.holdout.card.Rows.Training
	}
	if float64(operations)*float64(rows) <= float64(a.service.limits.Work) {
		return nil
	}
	return fail(TooLarge, "%d operations on each of %d rows are too much for one request; ask in smaller batches or with shorter expressions", operations, rows)
}

const (
	// itemBytes is more than an item of an answer has beside its name: three numbers and their names. A name can take six times its bytes.
	itemBytes = 128
	// fewFunctions is up to how many row functions an answer is surely small.
	fewFunctions = 1000
)

// answerBytes bounds the size of a plan's answer, by what an answer about some rows looks like.
func (h *opened) answerBytes(plan *queries.Plan) (size int) {
	if len(plan.Functions) <= fewFunctions || plan.Sequential() {
		return 0
	}
	outcome, err := plan.Release(h.params.N, &foreseeing{params: h.params, exact: true})
	if err != nil {
		return 0 // nothing fails without a mechanism
	}
	for _, item := range plan.Combine(outcome).Items {
		size += itemBytes + 6*len(item.Of)
	}
	return size
}

// nodes is the number of operations of an expression.
func nodes(n *expr.Node) int {
	if n == nil {
		return 0
	}
	count := 1
	for _, arg := range n.Args {
		count += nodes(arg)
	}
	return count
}

// afford drops before any row is read what the budget cannot pay. What is spent only grows, so that stays true; the update
// decides about the rest.
func (a *asking) afford(ctx context.Context) error {
	state, err := a.holdout.balance(ctx, a.service)
	if err != nil {
		return err
	}
	if err := a.refuse(state, a.cost()); err != nil {
		return err
	}
	for _, q := range a.fresh {
		q.notAsked = a.holdout.unaffordable(state, q.plan)
	}
	a.fresh = slices.DeleteFunc(a.fresh, func(q *question) bool { return q.notAsked != "" })
	return nil
}

// list puts the row functions of the questions that have no answer behind each other.
func (a *asking) list() {
	a.functions = nil
	for _, q := range a.fresh {
		if q.body == nil {
			q.first = len(a.functions)
			a.functions = append(a.functions, q.plan.Functions...)
			if a.board.best != "" {
				a.functions = append(a.functions, a.board.together(q.plan.Functions[0]))
			}
		}
	}
}

// cost is the number of questions that the unanswered ones would debit.
func (a *asking) cost() (n int) {
	for _, q := range a.fresh {
		if q.body == nil {
			n += a.holdout.price(q.plan)
		}
	}
	return n
}

// refuse is the all-or-nothing rule: a single question is answered or refused, and the questions of a batch are paid
// all or none unless it may be answered in part.
func (a *asking) refuse(state thresholdout.State, cost int) error {
	if a.request.single && cost > 0 {
		plan := a.fresh[0].plan
		if reason := a.holdout.unaffordable(state, plan); reason != "" {
			return a.holdout.exhausted(reason, state, plan)
		}
		return nil
	}
	left := a.holdout.params.Affordable(state)
	if a.request.partial || int64(cost) <= left {
		return nil
	}
	affordable := int64(0)
	for _, q := range a.fresh {
		if price := int64(a.holdout.price(q.plan)); q.body == nil && affordable+price <= left {
			affordable += price
		}
	}
	what := "are left"
	if a.holdout.params.Rounds > 0 {
		what = "can be asked in the next round"
	}
	return &Error{Kind: BudgetExhausted,
		Detail:  fmt.Sprintf("the batch needs %d questions and %d %s; partial answers as many as the budget pays for", cost, left, what),
		Members: map[string]any{"requested": int64(cost), "remaining": left, "affordable": affordable}}
}

// sum makes one pass over each part for all row functions.
func (a *asking) sum(ctx context.Context) (err error) {
	h := a.holdout
	a.sums = sums{}
	if len(a.functions) == 0 {
		return nil
	}
	if h.params.Mechanism == thresholdout.Split {
		return a.sumSlices(ctx)
	}
	if h.params.UsesTraining() {
		if a.sums.training, err = h.training.Sums(ctx, a.functions, 0, h.training.Units()); err != nil {
			return scanError(err)
		}
		if err := a.checkWidth(ctx); err != nil {
			return err
		}
	}
	if a.sums.holdout, err = h.holdout.Sums(ctx, a.functions, 0, h.holdout.Units()); err != nil {
		return scanError(err)
	}
	return nil
}

// checkWidth refuses a single question whose half-width cannot pass before a holdout row is read. It knows what is spent, which only
// grows, and not how often guesses passed at a wider width: the update decides again, by the whole state.
func (a *asking) checkWidth(ctx context.Context) error {
	q := a.fresh[0]
	if !a.request.single || q.guess == nil || q.body != nil {
		return nil
	}
	state, err := a.holdout.balance(ctx, a.service)
	if err != nil {
		return err
	}
	_, _, err = a.holdout.params.Expected(state,
		thresholdout.Mean{Sum: a.sums.training[q.first], N: a.holdout.training.Units()}, q.guess)
	var width *thresholdout.WidthError
	if errors.As(err, &width) {
		return tooNarrow(width, q.plan)
	}
	return err
}

// sumSlices sums each row function over the slice that its question will have if nobody else's comes before.
func (a *asking) sumSlices(ctx context.Context) error {
	h := a.holdout
	spent, _, err := a.service.ledger.Balance(ctx, h.id)
	if err != nil {
		return a.service.ledgerError(err)
	}
	a.sums = sums{holdout: make([]int64, len(a.functions)), at: slices.Repeat([]int64{-1}, len(a.functions)), index: spent}
	for _, q := range a.fresh {
		if q.body != nil || h.params.Questions-spent < int64(q.plan.Numbers()) {
			continue
		}
		// Row functions of one step, as a search has them, share a slice.
		for from, to := 0, 0; from < len(q.plan.Functions); from = to {
			step := q.plan.Step(from)
			for to = from + 1; to < len(q.plan.Functions) && q.plan.Step(to) == step; to++ {
			}
			low, high := h.params.Slice(thresholdout.State{Questions: spent + int64(step)})
			part, err := h.holdout.Sums(ctx, a.functions[q.first+from:q.first+to], low, high)
			if err != nil {
				return scanError(err)
			}
			for i, sum := range part {
				a.sums.holdout[q.first+from+i], a.sums.at[q.first+from+i] = sum, spent+int64(step)
			}
		}
		spent += int64(q.plan.Numbers())
	}
	return nil
}

// scanError keeps what a scan says out of replies; it can only be about the machine or the caller's leaving.
func scanError(err error) error {
	if KindOf(err) == Damaged {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Kind: Unavailable, Detail: "the request ended before it was answered; nothing was debited", Err: err}
	}
	return &Error{Kind: Internal, Detail: "the rows could not be summed", Err: err}
}

// record is the update: it runs alone with the holdout's books, perhaps more than once, and begins anew each time.
func (a *asking) record(tx *ledger.Tx) error {
	if a.idem != nil {
		if err := tx.Idempotent(*a.idem); err != nil {
			return err
		}
	}
	var state thresholdout.State
	if err := json.Unmarshal(tx.State(), &state); err != nil {
		return fmt.Errorf("holdout: state of %s: %w", a.holdout.id, err)
	}
	for _, q := range a.fresh {
		q.body, q.replayed, q.notAsked = nil, false, ""
		if body, ok := tx.Answer(q.id); ok { // somebody was faster
			q.body, q.replayed = body, true
		}
	}
	cost := a.cost()
	a.begun = state
	if err := a.refuse(state, cost); err != nil {
		return err
	}
	if a.sums.at != nil && cost > 0 && (state.Questions != a.sums.index || a.listed() != len(a.functions)) {
		a.list()
		return errMoved
	}
	if a.board.wanted = state.Best; a.board.wanted != a.board.best && cost > 0 {
		return errMoved
	}
	for _, q := range a.fresh {
		if q.body != nil {
			continue
		}
		if q.notAsked = a.holdout.unaffordable(state, q.plan); q.notAsked != "" {
			continue
		}
		next, err := a.answer(tx, q, state)
		var width *thresholdout.WidthError
		if errors.As(err, &width) { // decided by state, training part and question; nothing is debited
			if a.request.single {
				return tooNarrow(width, q.plan)
			}
			q.notAsked = HalfWidthTooNarrow
			continue
		}
		if err != nil {
			return err
		}
		state = next
	}
	if state != a.begun {
		state = a.holdout.params.EndRound(state)
	}
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	tx.SetState(text)
	a.budget = budgetOf(a.holdout.params, state)
	return nil
}

// listed is how many row functions the unanswered questions have.
func (a *asking) listed() (n int) {
	for _, q := range a.fresh {
		if q.body == nil {
			n += len(q.plan.Functions)
		}
	}
	return n
}

// answer releases what one question asks for and records what it makes.
func (a *asking) answer(tx *ledger.Tx, q *question, state thresholdout.State) (thresholdout.State, error) {
	h := a.holdout
	if h.params.Mechanism == thresholdout.Leaderboard {
		return a.submit(tx, q, state)
	}
	released := &stepping{asking: a, q: q, state: state}
	outcome, err := q.plan.Release(h.params.N, released)
	if err != nil {
		return state, err
	}
	outcome.Level = h.params.Level()
	return released.state, a.append(tx, q, h.answerCore(q, outcome, released, h.cost(state, released.state)))
}

// append debits and records an answer; it is the question's from then on.
func (a *asking) append(tx *ledger.Tx, q *question, answer answerJSON) error {
	core, err := marshal(answer)
	if err != nil {
		return fmt.Errorf("holdout: answer: %w", err)
	}
	receipt, err := tx.Append(ledger.Debit{Query: q.id, Canonical: q.canonical, Principal: a.principal.KeyID,
		Questions: answer.Cost.Questions, Tokens: answer.Cost.Tokens + answer.Cost.Rounds, Core: core, Time: time.Now()})
	if err != nil {
		return err
	}
	q.body = receipt.Body
	return nil
}

// means are the exact means of count row functions over the holdout.
func (a *asking) means(first, count int) []thresholdout.Mean {
	means := make([]thresholdout.Mean, count)
	for i := range means {
		means[i] = thresholdout.Mean{Sum: a.sums.holdout[first+i], N: a.holdout.holdout.Units()}
	}
	return means
}

// input is the exact sums of one row function.
func (a *asking) input(function int, state thresholdout.State) (thresholdout.Input, error) {
	h := a.holdout
	in := thresholdout.Input{Holdout: thresholdout.Mean{Sum: a.sums.holdout[function], N: h.holdout.Units()}}
	if a.sums.at != nil {
		if a.sums.at[function] != state.Questions {
			return in, fmt.Errorf("holdout: question %d was summed for %d", state.Questions, a.sums.at[function])
		}
		from, to := h.params.Slice(state)
		in.Holdout.N = to - from
	}
	if a.sums.training != nil {
		in.Training = thresholdout.Mean{Sum: a.sums.training[function], N: h.training.Units()}
	}
	return in, nil
}

// reply puts the answers in the order of the request; the second and later copies of a query are replays.
func (a *asking) reply(items []*question) BatchAnswer {
	b := BatchAnswer{Answers: make([]BatchItem, len(items)), Budget: a.budget}
	seen := make(map[*question]bool, len(items))
	for i, q := range items {
		b.Answers[i] = BatchItem{Body: q.body, Replayed: q.body != nil && (q.replayed || seen[q]), NotAsked: q.notAsked}
		seen[q] = true
	}
	return b
}

// answerSpace makes answer ids: a question of a holdout has one answer, so its id is a function of both.
var answerSpace = uuid.MustParse("3b1c0f6e-6a55-4c1d-9d0c-1f0f2f6f4b7a")

func answerID(holdout, query string) string {
	return "ans_" + uuid.NewSHA1(answerSpace, []byte(holdout+" "+query)).String()
}
