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
		if meant, ok := elsewhere[pointer[strings.LastIndexByte(pointer, '/')+1:]][name]; ok {
			r.add(pointer+"/"+escape(name), "%s", "unknown member; "+meant)
			return
		}
		r.violations = append(r.violations, Violation{pointer + "/" + escape(name), detail, nearest.Name(name, known)})
	}
}

const (
	networkInputs = `the inputs are in "weights": {"distance": [0.1, -0.2], …}, of each column a weight for each unit of the first layer; "intercepts" has one for each of them, ` +
		`and "layers" are those behind it, {"weights": [[0.5], [1.5]], "intercepts": [0]}: of each unit before a list`
	mixedWeights = `each model has its own: "models": [{"model": {"linear": …}, "weight": 0.5}, …]`
)

// elsewhere is, by form, what other programs call a member, with how it is written here.
var elsewhere = map[string]map[string]string{
	"network": {"inputs": networkInputs, "features": networkInputs, "columns": networkInputs, "biases": `it is called "intercepts"`, "bias": `it is called "intercepts"`},
	"mixture": {"weights": mixedWeights},
	"linear":  {"coefficients": `it is called "weights"`, "coef": `it is called "weights"`, "bias": `it is called "intercept"`},
	"softmax": {"coefficients": `it is called "weights"`, "coef": `it is called "weights"`, "biases": `it is called "intercepts"`, "bias": `it is called "intercepts"`},
}

func (r *reader) ok() bool { return len(r.violations) == 0 }

// escape makes a name a part of an RFC 6901 pointer.
func escape(name string) string { return escapes.Replace(name) }

// escapes are made once: a model with many weights escapes each name.
var escapes = strings.NewReplacer("~", "~0", "/", "~1")
