package queries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/holdoutd/holdoutd/dataset"
)

// Query is a parsed question. It is immutable but for its Note.
type Query struct {
	// Note is the analyst's own remark. It is no part of the identity.
	Note string

	kind     *kind
	body     body
	named    int
	reported bool
	recorded []byte // the canonical form of a query that is only recorded; nil of every other
}

// Recorded is a query that was recorded, of which only the canonical form is known: this program may not read it. It has its form and its identity. It does not compile.
func Recorded(canonical []byte) *Query {
	var said struct{ Report bool }
	return &Query{kind: &kind{}, recorded: canonical, reported: json.Unmarshal(canonical, &said) == nil && said.Report}
}

// Parse reads one query from its JSON, strictly. An error is an *Error: of Kind Malformed if the body is not JSON or has a
// key twice, else of Kind Invalid with everything that is wrong and can be told without a schema.
func Parse(body []byte, options ...ParseOption) (*Query, error) {
	in, malformed := readJSON(body)
	if malformed != nil {
		return nil, malformed
	}
	var v violations
	for _, o := range options {
		o(&v)
	}
	q := readQuery(&v, "", in)
	if q != nil && q.reported {
		q.reportable(&v)
	}
	if err := v.err(); err != nil {
		return nil, err
	}
	q.named = v.named
	return q, nil
}

// Reported is the query as a final report asks it: the canonical form says so, and it is another question than the query by itself. An error, an *Error of Kind Invalid, says what a report
// does not take: a guess, guesses of items, a half-width, measure, a promise.
func (q *Query) Reported() (*Query, error) {
	var v violations
	q.reportable(&v)
	if err := v.err(); err != nil {
		return nil, err
	}
	reported := *q
	reported.reported = true
	return &reported, nil
}

// IsReported reports whether it is the query of a final report.
func (q *Query) IsReported() bool { return q.reported }

// reportable notes what a final report does not take: it compares nothing, so that it would be part of the question's identity, without any effect.
func (q *Query) reportable(v *violations) {
	for _, m := range q.body.members() {
		if (m.name == "guess" || m.name == "guesses" || m.name == "half_width" || m.name == "measure" || m.name == "promise") && m.form.canonical() != nil {
			v.add("/"+m.name, "a final report compares with nothing and says what the holdout has; leave it out")
		}
	}
}

// Named is by how many bytes the canonical form is longer since the text named models by their digests.
func (q *Query) Named() int { return q.named }

// ParseOption is a fact about the holdout that the meaning of a query's text depends on.
type ParseOption func(*violations)

// Label says which column is the holdout's label, "" for none: the label of queries that name none. It is asked for it only where a query names none. The canonical form of such a query names it.
func Label(column func() string) ParseOption { return func(v *violations) { v.label = column } }

// reportedName is the member of the canonical form of a final report's query.
const reportedName = "report"

// Type is the member "type".
func (q *Query) Type() string { return q.kind.name }

// Canonical is the JSON that all spellings of one query share: sorted keys, canonical expressions, shortest numbers, no
// member that says its default, no note.
func (q *Query) Canonical() []byte {
	if q.recorded != nil {
		return q.recorded
	}
	o := map[string]any{"type": q.kind.name}
	if q.reported {
		o[reportedName] = true
	}
	for _, m := range q.body.members() {
		if c := m.form.canonical(); c != nil {
			o[m.name] = c
		}
	}
	return mustMarshal(o)
}

// ID is "sha256:" and the hex digest of Canonical: the identity of the question.
func (q *Query) ID() string {
	digest := sha256.Sum256(q.Canonical())
	return "sha256:" + hex.EncodeToString(digest[:])
}

// guessed is a body that can carry the analyst's own guess.
type guessed interface{ guess() *guess }

// Guess is the analyst's guess of the answer in the query's own units, and whether there is one.
func (q *Query) Guess() (float64, bool) {
	if g, ok := q.body.(guessed); ok && g.guess().Value != nil {
		return *g.guess().Value, true
	}
	return 0, false
}

// HalfWidth is the half-width at which the guess is to be checked, in the query's own units, and whether there is one.
func (q *Query) HalfWidth() (float64, bool) {
	if g, ok := q.body.(guessed); ok && g.guess().HalfWidth != nil {
		return *g.guess().HalfWidth, true
	}
	return 0, false
}

// Measures reports whether the query is to be measured, its answer saying where the holdout is, whatever was guessed; and whether it says so, or is to be checked, at all.
func (q *Query) Measures() (measure, said bool) {
	if g, ok := q.body.(guessed); ok && g.guess().Measure != nil {
		return *g.guess().Measure, true
	}
	return false, false
}

// Guesses are the analyst's guesses of some of the answer's items, by their names; nil if there are none.
func (q *Query) Guesses() map[string]float64 {
	if g, ok := q.body.(interface{ ofItems() map[string]float64 }); ok {
		return g.ofItems()
	}
	return nil
}

// itemized are bodies whose text says how many items an answer has at least.
type itemized interface{ leastItems() int }

// LeastItems is how many items the answer has at least, by the text of the query alone: 0 where only compiling it tells.
func (q *Query) LeastItems() int {
	if b, ok := q.body.(itemized); ok {
		return b.leastItems()
	}
	return 0
}

// Compile checks the query against a schema and turns it into row functions. ctx is for reading the training part, where the query
// takes constants from it; nothing of it is kept. An error is an *Error of Kind Invalid, or that of reading the training part.
func (q *Query) Compile(ctx context.Context, schema dataset.Schema, options ...Option) (*Plan, error) {
	if q.recorded != nil {
		return nil, &Error{Kind: Invalid, Violations: []Violation{{Detail: "this query was recorded by another version of the program, and this one does not read it"}}}
	}
	c := &compiler{schema: schema}
	for _, o := range options {
		o(c)
	}
	c.means = func(functions []RowFunction) ([]float64, error) { return c.training.Means(ctx, functions) }
	c.everywhere = func(column string) (known, full bool) {
		if public, ok := c.training.(PublicFacts); ok {
			known, full = public.Everywhere(ctx, column)
		}
		return known, full
	}
	p := q.body.compile(c)
	if g, ok := q.body.(guessed); ok && p != nil && !p.PerUnit() { // how many units there are is not known here
		g.guess().rules(&c.violations, c.pointer, p.Range)
	}
	if p != nil {
		p.Measured, _ = q.Measures()
	}
	if err := c.violations.err(); err != nil {
		return nil, err
	}
	if c.failed != nil {
		return nil, c.failed
	}
	if c.asTruth != "" {
		p.Words.Null = c.asTruth + "; " + p.Words.Null
	}
	p.Values = append(p.Values, c.mostRead()...)
	p.HoldoutOnly, p.Fitted, p.Leaks = c.holdoutOnly && c.checkRows == 0, c.fitted, c.leaks
	if !c.grouped {
		p.OfRows()
	}
	return p, nil
}
