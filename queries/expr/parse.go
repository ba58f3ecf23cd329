package expr

import (
	"errors"

	"github.com/holdoutd/holdoutd/dataset"
)

// Syntax is an expression that was parsed but not yet checked against a schema.
type Syntax struct {
	source string
}

// Parse reads the text of an expression. An error is an *Error.
func Parse(src string) (*Syntax, error) { return &Syntax{source: src}, nil }

// Canonical is the form that all spellings of one expression share; it parses to itself.
func (s *Syntax) Canonical() string { return s.source }

// Check types the expression against a schema and makes it total. An error is an *Error.
func (s *Syntax) Check(schema dataset.Schema) (*Node, error) {
	return nil, errors.New("expr: not built yet")
}
