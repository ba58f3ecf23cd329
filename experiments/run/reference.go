package run

import (
	"encoding/json"
	"fmt"

	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// Reference are numbers of an independent implementation: a script beside the file that it wrote.
type Reference struct {
	Source string `json:"source"`
	Rows   []Row  `json:"rows"`
}

// ParseReference reads the file that such a script wrote.
func ParseReference(text []byte) (Reference, error) {
	var r Reference
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("experiments: reference numbers: %w", err)
	}
	return r, nil
}

// Compare is a comparison of the mean and one of the standard deviation with the row that the reference has for this condition, method, size and measure;
// none where it has none.
func (r Reference) Compare(what string, got Row) []checks.Comparison {
	for _, want := range r.Rows {
		if want.Condition == got.Condition && want.Method == got.Method && want.N == got.N && want.K == got.K && want.Set == got.Set {
			return []checks.Comparison{
				checks.Same(what+", against a separate program", want.Sample(), got.Sample()),
				checks.Spread(what+": its standard deviation, against a separate program", want.Sample(), got.Sample()),
			}
		}
	}
	return nil
}
