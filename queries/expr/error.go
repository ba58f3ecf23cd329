package expr

import (
	"fmt"
	"strings"
)

// Error says what is wrong with an expression and where. It depends on the expression and the schema only.
type Error struct {
	Source     string // the expression
	Offset     int    // of the place, in bytes from the start of Source
	Line       int    // of the place, from 1
	Column     int    // of the place, in code points from 1
	Detail     string // what is wrong
	Expected   string // what could stand there; may be empty
	Suggestion string // what was probably meant; may be empty
}

// Error is the message in one line, without the source.
func (e *Error) Error() string {
	return fmt.Sprintf("expr: %d:%d: %s", e.Line, e.Column, e.Message())
}

// Message is the detail with what was expected and the suggestion, without the place.
func (e *Error) Message() string {
	var b strings.Builder
	b.WriteString(e.Detail)
	if e.Expected != "" {
		b.WriteString("; expected " + e.Expected)
	}
	if e.Suggestion != "" {
		b.WriteString("; did you mean " + e.Suggestion + "?")
	}
	return b.String()
}

// Caret is the message under the source line that it is about, with a caret at the place.
func (e *Error) Caret() string {
	line := e.Source
	if lines := strings.Split(e.Source, "\n"); e.Line >= 1 && e.Line <= len(lines) {
		line = lines[e.Line-1]
	}
	var pad strings.Builder
	for i, r := range []rune(line) {
		if i >= e.Column-1 {
			break
		}
		if r != '\t' {
			r = ' '
		}
		pad.WriteRune(r)
	}
	return line + "\n" + pad.String() + "^ " + e.Message()
}
