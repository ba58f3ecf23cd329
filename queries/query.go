package queries

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Query is a parsed question. It is immutable but for its Note.
type Query struct {
	// Note is the analyst's own remark. It is no part of the identity.
	Note string

	kind *kind
	body body
}

// Parse reads one query from its JSON, strictly. An error is an *Error: of Kind Malformed if the body is not JSON or has a
// key twice, else of Kind Invalid with everything that is wrong and can be told without a schema.
func Parse(body []byte) (*Query, error) {
	in, malformed := readJSON(body)
	if malformed != nil {
		return nil, malformed
	}
	var v violations
	q := readQuery(&v, "", in)
	if err := v.err(); err != nil {
		return nil, err
	}
	return q, nil
}

// Type is the member "type".
func (q *Query) Type() string { return q.kind.name }

// Canonical is the JSON that all spellings of one query share: sorted keys, canonical expressions, shortest numbers, no
// member that says its default, no note.
func (q *Query) Canonical() []byte {
	o := map[string]any{"type": q.kind.name}
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

// itemized are bodies whose text says how many items an answer has at least.
type itemized interface{ leastItems() int }

// LeastItems is how many items the answer has at least, by the text of the query alone: 0 where only compiling it tells.
func (q *Query) LeastItems() int {
	if b, ok := q.body.(itemized); ok {
		return b.leastItems()
	}
	return 0
}

// guess is the pair of members that the mechanism guess_and_check reads.
type guess struct {
	Value     *float64
	HalfWidth *float64
}

var zero = 0.0

func (g *guess) members() []member {
	return []member{
		optional("guess", number{into: &g.Value}, "under guess_and_check: your own guess of the answer; default: the training part's answer"),
		optional("half_width", number{into: &g.HalfWidth, above: &zero}, "under guess_and_check: the half-width of the interval that you want if your guess passes; default: planned by the server"),
	}
}

// rules checks the pair against the range of the answer.
func (g *guess) rules(v *violations, pointer string, r Range) {
	if !r.valid() {
		return
	}
	if g.Value != nil && !r.contains(*g.Value) {
		v.add(pointer+"/guess", "must lie in the range of the answer")
	}
	if g.HalfWidth != nil && *g.HalfWidth > r.High-r.Low {
		v.add(pointer+"/half_width", "must not be more than the width of the answer's range")
	}
}

// Option is a fact about the holdout that compiling depends on.
type Option func(*compiler)

// Grouped says whether the holdout has a unit column, so that a unit can hold several rows.
func Grouped(yes bool) Option { return func(c *compiler) { c.grouped = yes } }

// LargestUnit says how units with several rows vote where every row has one vote: a unit of more than so many rows counts as one of so
// many. declared says that no unit of the population is said to have more, and that none of the table has.
func LargestUnit(rows int64, declared bool) Option {
	return func(c *compiler) { c.largest, c.declared = rows, declared }
}

// Population says what the units were drawn from, in words that follow "in": a target is about it. Without it, "the population
// that the rows were drawn from", or the units.
func Population(words string) Option { return func(c *compiler) { c.population = words } }

// TrainingPart is what compiling may know of the training part: the constants of a question that are not declared, such as the
// mean and the standard deviation behind a z-score, or the categories of a column. It is fixed with the holdout, so a question
// has the same constants for ever.
type TrainingPart interface {
	// Means are the exact means, in [0,1], of row functions over the units of the training part.
	Means(functions []RowFunction) ([]float64, error)
	// Texts are the values of a text column that occur in the training part, sorted; nil if it is no text column.
	Texts(column string) []string
}

// Training gives the training part; without it, questions that need its constants are refused.
func Training(t TrainingPart) Option { return func(c *compiler) { c.training = t } }

// At places the pointers of errors below a part of the body, such as "/queries/3" of a batch.
func At(pointer string) Option { return func(c *compiler) { c.pointer = pointer } }

// Compile checks the query against a schema and turns it into row functions. An error is an *Error of Kind Invalid, or that of
// reading the training part.
func (q *Query) Compile(schema dataset.Schema, options ...Option) (*Plan, error) {
	c := &compiler{schema: schema}
	for _, o := range options {
		o(c)
	}
	p := q.body.compile(c)
	if err := c.violations.err(); err != nil {
		return nil, err
	}
	if c.failed != nil {
		return nil, c.failed
	}
	p.holdoutOnly = c.holdoutOnly
	return p, nil
}

// compiler is what the bodies compile with.
type compiler struct {
	violations
	schema     dataset.Schema
	grouped    bool
	largest    int64 // units of more rows count as one of so many, where rows vote; 0: not known here
	declared   bool  // no unit has more
	population string
	pointer    string
	training   TrainingPart // nil without one
	failed     error        // of reading the training part

	rows        int64  // of the holdout, where a question can bring a number for each
	noRows      string // why it cannot
	holdoutOnly bool   // what was compiled is about the holdout's rows alone
}

// trainingMeans are the exact means of row functions over the training part; nil where the query is wrong already, or with a
// violation at the named member where there is no training part. instead says what to declare.
func (c *compiler) trainingMeans(name, instead string, functions ...RowFunction) []float64 {
	if len(c.list) > 0 || c.failed != nil {
		return nil
	}
	if c.training == nil {
		c.add(c.pointer+"/"+name, "is needed: this holdout has no training part to take it from; "+instead)
		return nil
	}
	if c.holdoutOnly {
		c.add(c.pointer+"/"+name, "is needed: the training part, which it would be taken from, has none of the numbers that came for each row; "+instead)
		return nil
	}
	means, err := c.training.Means(functions)
	if err != nil {
		c.failed = fmt.Errorf("queries: training part: %w", err)
		return nil
	}
	return means
}

// target is a sentence about what an interval holds for.
func (c *compiler) target(format string, args ...any) string {
	population := c.population
	switch {
	case population != "":
	case c.grouped:
		population = "the population that the units were drawn from"
	default:
		population = "the population that the rows were drawn from"
	}
	return fmt.Sprintf(format, args...) + ", in " + population
}

// number is the checked node of a member that must be a number; nil with a violation if it is not.
func (c *compiler) number(name string, s *expr.Syntax) *rowfn.Node {
	n, err := s.CheckNumber(c.schema)
	if err != nil {
		c.expression(c.pointer+"/"+name, err)
	}
	return n
}

// condition is the checked node of a member that must be a condition; nil for a member that is absent.
func (c *compiler) condition(name string, s *expr.Syntax) *rowfn.Node {
	if s == nil {
		return nil
	}
	n, err := s.CheckCondition(c.schema)
	if err != nil {
		c.expression(c.pointer+"/"+name, err)
	}
	return n
}

// mustMarshal writes sorted keys and leaves < > & as they are.
func mustMarshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("queries: a canonical value that JSON cannot hold: %v", err)) // finite numbers and valid text only
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
