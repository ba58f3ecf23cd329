package queries

import (
	"fmt"
	"strings"
)

// Kind says how a body is wrong.
type Kind uint8

const (
	// Malformed is a body that is not JSON, or in which a key occurs twice.
	Malformed Kind = iota + 1
	// Invalid is JSON that is not a query of this language, or not one that fits the table.
	Invalid
)

// Violation is one thing that is wrong.
type Violation struct {
	Pointer    string `json:"pointer"`              // RFC 6901, into the body; empty for the whole
	Detail     string `json:"detail"`               // what is wrong, for a person; it does not repeat the body's values
	Suggestion string `json:"suggestion,omitempty"` // what was probably meant; may be empty
	Line       int    `json:"line,omitempty"`       // from 1: in the body if it is Malformed, else in the expression at Pointer; 0 if neither
	Column     int    `json:"column,omitempty"`     // from 1, in code points; 0 where Line is 0
}

// Error holds everything that is wrong with a query, in the order of the body. It depends on the body and the schema only.
type Error struct {
	Kind       Kind
	Violations []Violation // at least one
}

// Error is the violations in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("queries: ")
	for i, v := range e.Violations {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.String())
	}
	return b.String()
}

// String is the violation in one line, its place first.
func (v Violation) String() string {
	var b strings.Builder
	if v.Pointer != "" {
		b.WriteString(v.Pointer + ": ")
	}
	if v.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", v.Line, v.Column)
	}
	b.WriteString(v.Detail)
	if v.Suggestion != "" {
		b.WriteString("; did you mean " + v.Suggestion + "?")
	}
	return b.String()
}
