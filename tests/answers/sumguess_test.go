package answers

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/session"
)

// TestSumsOfUnits: under guess_and_check a sum over the rows of units is one question, in its own units: what the training part says, and a guess, are sums over as many rows as the holdout has. A guess that was moved by the number
// of units would be a quarter of it.
func TestSumsOfUnits(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, holdout.Settings{Mechanism: "guess_and_check", Questions: 20, Tokens: 10, Unit: "chart", LargestUnit: 4}, visits(t, 20_000, 8))
	query := `{"type":"sum","of":"score","range":[0,100]%s}`
	e, err := s.Explain(t.Context(), analyst, card.ID, fmt.Appendf(nil, query, ""))
	if err != nil || e.Cost.Questions != 1 || e.Training == nil || math.Abs(*e.Training/6000-44.5) > 2 { // a tenth is null and adds nothing, the others are 0 to 99
		t.Fatalf("%v of %d rows, %+v, %v", *e.Training, 6000, e.Cost, err)
	}
	body := ask(t, s, card.ID, fmt.Sprintf(query, fmt.Sprintf(`,"guess":%v,"half_width":%v`, *e.Training, 0.1**e.Training))).Body
	var a session.Answer
	if err := json.Unmarshal(body, &a); err != nil || math.Abs(*a.Value / *e.Training - 1) > 1e-6 || a.Interval == nil || *a.Interval.Low > *e.Training || *a.Interval.High < *e.Training || *a.Interval.High-*a.Interval.Low > 0.21**e.Training {
		t.Errorf("%s, %v", body, err)
	}
}
