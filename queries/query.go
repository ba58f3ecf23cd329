package queries

import (
	"errors"

	"github.com/holdoutd/holdoutd/dataset"
)

// Query is a parsed question.
type Query struct {
	// Note is the analyst's own remark. It is no part of the identity.
	Note string
}

// Parse reads one query from its JSON. An error is an *Error.
func Parse(body []byte) (*Query, error) { return nil, errors.New("queries: not built yet") }

// Type is the member "type".
func (q *Query) Type() string { return "" }

// Canonical is the JSON that all spellings of one query share.
func (q *Query) Canonical() []byte { return nil }

// ID is "sha256:" and the hex digest of Canonical.
func (q *Query) ID() string { return "" }

// Guess is the analyst's guess of the answer in the query's own units, and whether there is one.
func (q *Query) Guess() (float64, bool) { return 0, false }

// HalfWidth is the half-width at which the guess is to be checked, in the query's own units, and whether there is one.
func (q *Query) HalfWidth() (float64, bool) { return 0, false }

// Option is a fact about the holdout that compiling depends on.
type Option func(*compiler)

type compiler struct{ grouped bool }

// Grouped says that the holdout has a unit column, so that a unit can hold several rows.
func Grouped(yes bool) Option { return func(c *compiler) { c.grouped = yes } }

// Compile checks the query against a schema and turns it into row functions. An error is an *Error.
func (q *Query) Compile(schema dataset.Schema, options ...Option) (*Plan, error) {
	return nil, errors.New("queries: not built yet")
}
