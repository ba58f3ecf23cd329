package model

import (
	"fmt"
	"strings"

	"github.com/holdoutd/holdoutd/internal/nearest"
)

// Violation is one thing that is wrong with a model.
type Violation struct {
	Pointer string // RFC 6901, within the model
	Detail  string
	Meant   string // the member that was probably meant, where one is unknown; may be empty
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
	weights, texts, vectors      int
	steps                        int64 // of vectors
	nodes, depths, lists, inputs int
	listed                       int // nodes of trees that are lists
}

func (r *reader) add(pointer, format string, args ...any) {
	if len(r.violations) < maxViolations {
		r.violations = append(r.violations, Violation{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
}

// unknown is add for a member that there is not.
func (r *reader) unknown(pointer, name string, known []string) {
	if len(r.violations) < maxViolations {
		detail := "unknown member; known are " + strings.Join(known, ", ")
		r.violations = append(r.violations, Violation{pointer + "/" + escape(name), detail, nearest.Name(name, known)})
	}
}

func (r *reader) ok() bool { return len(r.violations) == 0 }

// escape makes a name a part of an RFC 6901 pointer.
func escape(name string) string { return escapes.Replace(name) }

// escapes are made once: a model with many weights escapes each name.
var escapes = strings.NewReplacer("~", "~0", "/", "~1")
