package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/holdoutd/holdoutd/holdout"
)

// queryRequest is what comes with a query. The query itself is taken from bodyOf as it came: queries.Parse is the only
// one that reads it.
type queryRequest struct {
	ID             string `path:"id" doc:"id of the holdout: ho_…"`
	IdempotencyKey string `header:"Idempotency-Key" doc:"1 to 255 visible ASCII characters; the same key with another body is 422"`
	MaxQuestions   int64  `query:"max_questions" minimum:"1" example:"50" doc:"how many questions the whole request may cost; a dearer one is refused before anything is read. Default: no single query may cost more than a tenth of the holdout's questions (or 2, where that is more)"`
}

// options are what the request says beside its queries.
func (in *queryRequest) options() (o []holdout.AskOption) {
	if in.MaxQuestions > 0 {
		o = append(o, holdout.MaxQuestions(in.MaxQuestions))
	}
	return o
}

// writtenReply writes itself: recorded answers must leave byte for byte, which no encoder promises.
type writtenReply struct{ Body func(huma.Context) }

type explainReply struct{ Body holdout.Explanation }

type budgetReply struct{ Body holdout.Budget }

type answersRequest struct {
	ID    string `path:"id" doc:"id of the holdout: ho_…"`
	After int64  `query:"after" minimum:"0" doc:"the cursor: next of the page before; 0 or none for the first page"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"answers on a page"`
}

func (a *API) registerQueries() {
	questions := huma.Middlewares{a.inTime, a.withBody(int64(a.asked.QueryBytes))}
	batches := huma.Middlewares{a.inTime, a.withBody(a.limits.BatchBytes)}
	const base = "/v1/holdouts/{id}"
	typed(a, huma.Operation{
		OperationID: "ask", Method: http.MethodPost, Path: base + "/queries", Tags: []string{"queries"}, Security: needsKey, Middlewares: questions,
		Summary:     "Ask one question",
		Description: "Answers a query and debits its cost, durably, before the answer leaves. A query that was answered before gets the same bytes again at no cost. A spent budget is 403 `budget-exhausted`; a price beyond `max_questions` is 422 `max-questions`.",
		RequestBody: a.jsonBody(querySchema), SkipValidateBody: true,
		Responses: a.jsonReply("The answer, with what is left of the budget", AskReply{}, true),
	}, a.ask)
	typed(a, huma.Operation{
		OperationID: "ask-batch", Method: http.MethodPost, Path: base + "/queries/batch", Tags: []string{"queries"}, Security: needsKey, Middlewares: batches,
		Summary:     "Ask many questions at once",
		Description: "Answers queries in order, in one pass over the rows. All are paid or none is, unless `partial` is true: then as many as the budget allows. Tokens are spent in order; once they are gone the rest comes back as `not_asked` and costs nothing. `max_questions` is for the whole batch; without it no single query of it may cost more than a tenth of the holdout's questions.",
		RequestBody: a.jsonBody(batchSchema(a.asked.BatchQueries)), SkipValidateBody: true,
		Responses: a.jsonReply("The answers in the order of the queries, with what is left of the budget", BatchReply{}, true),
	}, a.askBatch)
	typed(a, huma.Operation{
		OperationID: "explain", Method: http.MethodPost, Path: base + "/queries/explain", Tags: []string{"queries"}, Security: needsKey, Middlewares: questions,
		Summary:     "Explain a query",
		Description: "What a query means, what it would cost, the interval it would get, and what the training part or the check part says. It touches no holdout row and costs nothing.",
		RequestBody: a.jsonBody(querySchema), SkipValidateBody: true,
	}, func(ctx context.Context, in *holdoutPath) (*explainReply, error) {
		e, err := a.service.Explain(ctx, caller(ctx), in.ID, bodyOf(ctx))
		return &explainReply{e}, err
	})
	typed(a, huma.Operation{
		OperationID: "list-answers", Method: http.MethodGet, Path: base + "/answers", Tags: []string{"queries"}, Security: needsKey, Middlewares: huma.Middlewares{a.inTime},
		Summary: "The answers given so far", Description: "Oldest first, in pages, each with its query, its note, who asked first and what the training part or the check part says. An analyst sees their own answers, an admin all. A page may have fewer than `limit`: `next` says whether there are more.",
		Responses: a.jsonReply("A page of answers", AnswerPage{}, false),
	}, a.answers)
	a.registerEvents()
	typed(a, huma.Operation{
		OperationID: "get-budget", Method: http.MethodGet, Path: base + "/budget", Tags: []string{"queries"}, Security: needsKey, Middlewares: huma.Middlewares{a.inTime},
		Summary: "What is left of the budget", Description: "Questions, and tokens where the mechanism has them (else null).",
	}, func(ctx context.Context, in *holdoutPath) (*budgetReply, error) {
		b, err := a.service.Budget(ctx, caller(ctx), in.ID)
		return &budgetReply{b}, err
	})
	typed(a, huma.Operation{
		OperationID: "void-held", Method: http.MethodDelete, Path: base + "/held", Tags: []string{"queries"}, Security: needsKey, Middlewares: huma.Middlewares{a.inTime, a.mustBeAdmin},
		Summary: "Void what is held", Description: "Of a holdout whose rows lie in a source: debits what is held for questions that were sent and are not answered, and ends their holds. Asked again, they cost anew. Do it when nobody will ask them again. Where nothing is held it does nothing. The reply is the budget. Admin only.",
	}, func(ctx context.Context, in *holdoutPath) (*budgetReply, error) {
		b, err := a.service.VoidHeld(ctx, caller(ctx), in.ID)
		return &budgetReply{b}, err
	})
}

func (a *API) ask(ctx context.Context, in *queryRequest) (*writtenReply, error) {
	if err := checkIdempotencyKey(in.IdempotencyKey); err != nil {
		return nil, err
	}
	answer, err := a.service.Ask(ctx, caller(ctx), in.ID, bodyOf(ctx), in.IdempotencyKey, in.options()...)
	if err != nil {
		return nil, err
	}
	body, err := askReply(answer)
	return written(body, in.IdempotencyKey != "" && answer.Replayed), err
}

// askReply is the reply to one query, with the recorded bytes as they are.
func askReply(answer holdout.Answer) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"answer":`)
	b.Write(answer.Body)
	err := errors.Join(tail(&b, answer.Budget, answer.Warnings), writePer(&b, answer.Per))
	fmt.Fprintf(&b, `,"replayed":%t}`, answer.Replayed)
	return b.Bytes(), err
}

func (a *API) askBatch(ctx context.Context, in *queryRequest) (*writtenReply, error) {
	if err := checkIdempotencyKey(in.IdempotencyKey); err != nil {
		return nil, err
	}
	queries, partial, err := splitBatch(bodyOf(ctx), a.asked.BatchQueries)
	if err != nil {
		return nil, err
	}
	answer, err := a.service.AskBatch(ctx, caller(ctx), in.ID, queries, partial, in.IdempotencyKey, in.options()...)
	if err != nil {
		return nil, err
	}
	replayed := !slices.ContainsFunc(answer.Answers, func(item holdout.BatchItem) bool { return !item.Replayed })
	body, err := batchReply(answer)
	return written(body, in.IdempotencyKey != "" && (replayed || answer.Repeated)), err
}

// batchReply is the reply to many queries, with the recorded bytes as they are.
func batchReply(answer holdout.BatchAnswer) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"answers":[`)
	for i, item := range answer.Answers {
		if i > 0 {
			b.WriteByte(',')
		}
		if item.NotAsked != "" {
			fmt.Fprintf(&b, `{"replayed":false,"not_asked":%q}`, item.NotAsked)
			continue
		}
		b.WriteString(`{"answer":`)
		b.Write(item.Body)
		if err := writePer(&b, item.Per); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, `,"replayed":%t}`, item.Replayed)
	}
	b.WriteByte(']')
	err := tail(&b, answer.Budget, answer.Warnings)
	b.WriteByte('}')
	return b.Bytes(), err
}

// writePer writes what has one vote each, if there is something to say.
func writePer(b *bytes.Buffer, per string) error {
	if per == "" {
		return nil
	}
	text, err := marshal(per)
	b.WriteString(`,"per":`)
	b.Write(text)
	return err
}

func (a *API) answers(ctx context.Context, in *answersRequest) (*writtenReply, error) {
	page, err := a.service.Answers(ctx, caller(ctx), in.ID, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(`{"answers":[`)
	for i := range page.Answers {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writePast(&b, &page.Answers[i]); err != nil {
			return nil, err
		}
	}
	b.WriteByte(']')
	if page.Next != 0 {
		fmt.Fprintf(&b, `,"next":%d`, page.Next)
	}
	b.WriteByte('}')
	return written(b.Bytes(), false), nil
}

// writePast writes an answer of the history. Its recorded bytes and its query's canonical form leave as they are.
func writePast(b *bytes.Buffer, past *holdout.PastAnswer) error {
	b.WriteString(`{"answer":`)
	b.Write(past.Body)
	b.WriteString(`,"canonical":`)
	b.Write(past.Canonical)
	text, err := marshal(PastMembers{past.Note, past.AskedBy, past.Time, past.Measure, past.Per, past.Outcome, past.Reference})
	if err != nil {
		return err
	}
	b.WriteByte(',')
	b.Write(text[1:])
	return nil
}

func tail(b *bytes.Buffer, budget holdout.Budget, warnings []holdout.Warning) error {
	meters, err := json.Marshal(budget)
	b.WriteString(`,"budget":`)
	b.Write(meters)
	if err == nil && len(warnings) > 0 {
		var text []byte
		text, err = marshal(warnings)
		b.WriteString(`,"warnings":`)
		b.Write(text)
	}
	return err
}

func written(body []byte, replayed bool) *writtenReply {
	return &writtenReply{func(ctx huma.Context) {
		c := humagin.Unwrap(ctx)
		if replayed {
			c.Header("Idempotent-Replayed", "true")
		}
		c.Data(http.StatusOK, "application/json", body)
	}}
}

func checkIdempotencyKey(key string) error {
	if key == "" || plainToken(key, maxIdempotencyKey) {
		return nil
	}
	return invalid("Idempotency-Key", "", "Idempotency-Key must be 1 to %d visible ASCII characters", maxIdempotencyKey)
}

// maxIdempotencyKey is what a digest, a UUID or a name with a date needs several times over.
const maxIdempotencyKey = 255

// splitBatch takes {"queries":[…],"partial":false} apart and leaves each query as it came.
func splitBatch(body []byte, most int) (queries []json.RawMessage, partial bool, err error) {
	members, err := readObject(body, "queries", "partial")
	if err != nil {
		return nil, false, err
	}
	return batchOf(members, most)
}

// batchOf are the queries among the members, at most so many.
func batchOf(members map[string]json.RawMessage, most int) (queries []json.RawMessage, partial bool, err error) {
	list, ok := members["queries"]
	if !ok {
		return nil, false, wrongMember("", `"queries" is missing: a list of queries`)
	}
	// Item by item, so that a list of very many tiny ones ends at the limit and not in memory.
	d := json.NewDecoder(bytes.NewReader(list))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return nil, false, wrongMember("/queries", "must be a list of queries")
	}
	for d.More() {
		if len(queries) == most {
			p := problem(classes[holdout.TooLarge], "the batch has more than %d queries, which is how many can be asked at once", most)
			p.members = map[string]any{"limit": most}
			return nil, false, p
		}
		var query json.RawMessage
		if err := d.Decode(&query); err != nil {
			return nil, false, wrongMember("/queries", "must be a list of queries")
		}
		queries = append(queries, query)
	}
	if len(queries) == 0 {
		return nil, false, wrongMember("/queries", "is empty")
	}
	if value, ok := members["partial"]; ok && string(value) != "true" && string(value) != "false" {
		return nil, false, wrongMember("/partial", "must be true or false")
	}
	return queries, string(members["partial"]) == "true", nil
}
