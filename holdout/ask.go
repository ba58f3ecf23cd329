package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/tracing"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
)

// The way of a question has four stages, each in a file of its own:
//
//	admit   (admit.go)   everything that can refuse, by public facts and the durable state; then what it may need is reserved
//	scan    (flight.go)  the rows are read
//	commit  (commit.go)  the answer, or a void, is debited and recorded; nothing else can happen to a question whose rows were read
//	reply   (here)       the recorded bytes
//
// What is asked and answered is package session's; here is who may ask, in which order, and that it is durable before it leaves.

// Ask answers one query. A query that was answered before, by whomever asked, is replayed: the same bytes, at no cost. An
// Idempotency-Key that comes with another query later is refused.
func (s *Service) Ask(ctx context.Context, p Principal, id string, query []byte, idempotencyKey string, options ...AskOption) (Answer, error) {
	var b BatchAnswer
	err := s.InTurn(ctx, p, bodyWork(1, len(query)), func(ctx context.Context) error {
		r, err := s.rightTo(ctx, p, id)
		if err != nil {
			return err
		}
		parsing, span := tracing.Start(ctx, tracing.Parse)
		q, err := s.parseAsked(parsing, id, query, s.labelOf(parsing, id), s.numbersOf(parsing, id))
		if err == nil {
			err = r.report(q)
		}
		span.Done(err)
		if err != nil {
			return err
		}
		b, err = s.askAll(ctx, p, id, []*queries.Query{q}, newRequest(request{single: true, key: idempotencyKey, right: r}, options))
		return s.narrow(ctx, p, id, r, &b, err)
	})
	if err != nil {
		return Answer{}, err
	}
	item := b.Answers[0]
	return Answer{Body: item.Body, Budget: b.Budget, Replayed: item.Replayed, Per: item.Per, Warnings: b.Warnings}, nil
}

// AskBatch answers many queries in their order. Questions are debited all or none, unless partial is set: then those that the budget
// pays for in their order. Tokens cannot be told beforehand: items are read and answered as far as the tokens that they might need are
// left, and the others come back as not asked, at no cost. Equal queries in a batch are one query; the later ones are replays.
//
// Where a question fails after its rows were read, it and those that were read with it are debited, and the error says so. The rest of
// the batch can be asked again: what was answered is replayed.
func (s *Service) AskBatch(ctx context.Context, p Principal, id string, batch []json.RawMessage, partial bool, idempotencyKey string, options ...AskOption) (BatchAnswer, error) {
	if len(batch) > s.limits.BatchQueries {
		return BatchAnswer{}, s.tooMany(len(batch))
	}
	var b BatchAnswer
	err := s.InTurn(ctx, p, batchWork(batch), func(ctx context.Context) error {
		r, err := s.rightTo(ctx, p, id)
		if err != nil {
			return err
		}
		parsed, err := s.parseBatch(ctx, id, batch, r)
		if err != nil {
			return err
		}
		b, err = s.askAll(ctx, p, id, parsed, newRequest(request{partial: partial, key: idempotencyKey, right: r}, options))
		return s.narrow(ctx, p, id, r, &b, err)
	})
	return b, err
}

func (s *Service) parseBatch(ctx context.Context, id string, batch []json.RawMessage, r right) (parsed []*queries.Query, err error) {
	ctx, span := tracing.Start(ctx, tracing.Parse)
	defer func() { span.Done(err) }()
	label, numbers := s.labelOf(ctx, id), s.numbersOf(ctx, id)
	for i, body := range batch {
		q, err := s.parseAsked(ctx, id, body, label, numbers)
		if err == nil {
			err = r.report(q)
		}
		if err != nil {
			return nil, below(err, "/queries/"+strconv.Itoa(i))
		}
		parsed = append(parsed, q)
	}
	return parsed, nil
}

// batchWork is what it takes to read queries.
func batchWork(batch []json.RawMessage) Work {
	bytes := 0
	for _, body := range batch {
		bytes += len(body)
	}
	return bodyWork(len(batch), bytes)
}

func (s *Service) tooMany(n int) *Error {
	return &Error{Kind: TooLarge, Pointer: "/queries", Detail: fmt.Sprintf("%d queries in one batch, at most %d", n, s.limits.BatchQueries)}
}

// labelOf is the label of a holdout, read once, where a query leaves it out; "" where there is none, or no such holdout: what is wrong with a query is said first.
func (s *Service) labelOf(ctx context.Context, id string) func() string {
	return sync.OnceValue(func() string {
		_, card, err := s.find(ctx, id)
		if err != nil {
			return ""
		}
		return card.Settings.Label
	})
}

// parse reads a query of a holdout with this label, and keeps the numbers that come with it. A model that it names counts as if it had been sent.
func (s *Service) parse(ctx context.Context, body []byte, label func() string, numbers queries.Numbers) (*queries.Query, error) {
	if len(body) > s.limits.QueryBytes {
		return nil, fail(TooLarge, "the query has %d bytes, at most %d", len(body), s.limits.QueryBytes)
	}
	q, err := queries.Parse(body, queries.Label(label), queries.KeptNumbers(numbers), queries.KeptModels(s.models))
	if err != nil {
		return nil, queryError(err)
	}
	if size := len(body) + q.Named(); size > s.limits.QueryBytes {
		return nil, fail(TooLarge, "the query has %d bytes with the model that it names, at most %d", size, s.limits.QueryBytes)
	}
	return q, need(ctx, bodyWork(0, q.Named()))
}

// parseAsked is parse of a query that is asked. One that this program does not read is the recorded question that it spells, if there is one.
func (s *Service) parseAsked(ctx context.Context, id string, body []byte, label func() string, numbers queries.Numbers) (*queries.Query, error) {
	q, err := s.parse(ctx, body, label, numbers)
	var wrong *queries.Error
	if !errors.As(err, &wrong) {
		return q, err
	}
	if recorded, failed := s.asText(ctx, id, body); recorded != nil || failed != nil {
		return recorded, failed
	}
	return nil, err
}

// request is how the queries came.
type request struct {
	single  bool
	partial bool
	key     string // Idempotency-Key
	report  *closing
	most    int64 // questions that it may cost; 0: a share of the budget for each query
	whole   bool  // it may lose no questions of a round that most does not count
	right   right // of who asks
}

// digest identifies the request: what was asked of which holdout, however it was spelled.
func (r request) digest(id string, asked []*question) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "ask\n%s\n%v %v\n", id, r.single, r.partial)
	if r.report != nil {
		fmt.Fprintf(h, "report %q\n", r.report.title)
	}
	for _, q := range asked {
		fmt.Fprintln(h, q.id)
	}
	return [32]byte(h.Sum(nil))
}

// question is one distinct query of a request, with what became of it: body or notAsked.
type question struct {
	query *queries.Query
	at    int // its first place in the request
	id    string

	asked *session.Question // nil where it had its answer before
	price session.Price
	most  int64 // tokens that its answer can take, or its void
	size  int   // of its answer in bytes, at most

	body     []byte // the recorded answer
	replayed bool
	notAsked string // why not
	settled  bool   // notAsked is the recorded outcome of the request
	void     bool   // its rows were read, it was debited, and there is no answer
}

// askAll takes queries from their parsed form to their recorded answers.
func (s *Service) askAll(ctx context.Context, p Principal, id string, parsed []*queries.Query, r request) (BatchAnswer, error) {
	if len(parsed) == 0 {
		return BatchAnswer{}, invalid("/queries", "a batch needs at least one query")
	}
	items, distinct, err := s.distinctQuestions(ctx, id, parsed)
	if err != nil {
		return BatchAnswer{}, err
	}
	var key *ledger.Idempotency
	if r.key != "" {
		key = &ledger.Idempotency{Principal: p.KeyID, Key: r.key, Request: r.digest(id, items), Resource: id}
	}
	h, release, err := s.take(ctx, id)
	if err != nil {
		return s.recorded(ctx, id, items, distinct, key, err)
	}
	a := admission{service: s, holdout: h, principal: p, request: r, questions: distinct, key: key, release: release}
	f, err := a.admitTraced(ctx)
	if err != nil {
		return BatchAnswer{}, err
	}
	if err := f.fly(ctx); err != nil {
		return BatchAnswer{}, err
	}
	budget := h.session.Budget(f.state)
	budget.Held = s.heldNow(ctx, h)
	b := reply(items, budget, h.card.Unit)
	b.Warnings, b.Repeated = f.warnings(f.state), f.earlier != nil && f.earlier.Complete
	return b, nil
}

// distinctQuestions maps each query to its question; equal queries share one. Its id is the one that it is recorded under.
func (s *Service) distinctQuestions(ctx context.Context, holdout string, parsed []*queries.Query) (items, distinct []*question, err error) {
	byID := make(map[string]*question, len(parsed))
	for i, query := range parsed {
		id, err := s.asRecorded(ctx, holdout, query.ID())
		if err != nil {
			return nil, nil, err
		}
		q := byID[id]
		if q == nil {
			q = &question{query: query, at: i, id: id}
			byID[id] = q
			distinct = append(distinct, q)
		}
		items = append(items, q)
	}
	return items, distinct, nil
}

// reply puts the answers in the order of the request; the second and later copies of a query are replays. unit is that of the card.
func reply(items []*question, budget Budget, unit string) BatchAnswer {
	b := BatchAnswer{Answers: make([]BatchItem, len(items)), Budget: budget}
	seen := make(map[*question]bool, len(items))
	for i, q := range items {
		b.Answers[i] = BatchItem{Body: q.body, Replayed: q.body != nil && (q.replayed || seen[q]), NotAsked: q.notAsked}
		if q.body != nil {
			b.Answers[i].Per = votes(unit, q.query.Canonical)
		}
		seen[q] = true
	}
	return b
}
