package sql

import (
	"fmt"
	"strings"
)

// Refusal is what a dialect does not compute of a batch. The rest can be asked without those functions and the products of them.
type Refusal struct {
	Dialect   string
	Of        int // functions of the batch
	Functions []Refused
}

// Refused is one function, and why.
type Refused struct {
	Function int
	Reason   string
}

// Error says how many, and why the first ones.
func (r *Refusal) Error() string {
	const shown = 3
	var reasons []string
	for _, f := range r.Functions[:min(shown, len(r.Functions))] {
		reasons = append(reasons, fmt.Sprintf("function %d: %s", f.Function, f.Reason))
	}
	if len(r.Functions) > shown {
		reasons = append(reasons, "…")
	}
	return fmt.Sprintf("sql: %s does not compute %d of %d functions: %s", r.Dialect, len(r.Functions), r.Of, strings.Join(reasons, "; "))
}
