package model

import (
	"fmt"
	"strings"
)

// Violation is one thing that is wrong with a model.
type Violation struct {
	Pointer string // RFC 6901, within the model
	Detail  string
}

// Error is what is wrong with a model.
type Error struct{ Violations []Violation }

func (e *Error) Error() string {
	texts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		texts[i] = v.Pointer + ": " + v.Detail
	}
	return "model: " + strings.Join(texts, "; ")
}

// maxViolations bounds the length of an error.
const maxViolations = 20

// reader collects violations.
type reader struct {
	violations []Violation

	// What was read, of all models of a mixture together: what the limits of doc.go are about.
	weights, texts               int
	nodes, depths, lists, inputs int
}

func (r *reader) add(pointer, format string, args ...any) {
	if len(r.violations) < maxViolations {
		r.violations = append(r.violations, Violation{pointer, fmt.Sprintf(format, args...)})
	}
}

func (r *reader) ok() bool { return len(r.violations) == 0 }

// escape makes a name a part of an RFC 6901 pointer.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
