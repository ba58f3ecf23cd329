package answers

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
)

// risks is a table of n rows with two standard normal features and a label that holds with probability
// 1/(1+exp(-(0.5 + 1.2a - 0.8b))).
func risks(t *testing.T, n int) *dataset.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(4, 2))
	field := func(name string) dataset.Field {
		return dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}
	}
	a, b := dataset.Column{Field: field("a")}, dataset.Column{Field: field("b")}
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	for range n {
		x, y := r.NormFloat64(), r.NormFloat64()
		a.Numbers, b.Numbers = append(a.Numbers, x), append(b.Numbers, y)
		yes := uint8(0)
		if r.Float64() < 1/(1+math.Exp(-(0.5+1.2*x-0.8*y))) {
			yes = 1
		}
		late.Bools = append(late.Bools, yes)
	}
	table, err := dataset.FromColumns(a, b, late)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// clippedGradient is the exact mean gradient of the log loss at (intercept, a, b), each row's of length at most clip.
func clippedGradient(table *dataset.Table, beta [3]float64, clip float64) (mean [3]float64) {
	a, _ := table.Lookup("a")
	b, _ := table.Lookup("b")
	late, _ := table.Lookup("late")
	n := float64(table.Rows())
	for i := range table.Rows() {
		x := [3]float64{1, a.Numbers[i], b.Numbers[i]}
		residual := 1/(1+math.Exp(-(beta[0]+beta[1]*x[1]+beta[2]*x[2]))) - float64(late.Bools[i])
		scale := residual * min(1, clip/(math.Abs(residual)*math.Sqrt(1+x[1]*x[1]+x[2]*x[2])))
		for j := range mean {
			mean[j] += scale * x[j] / n
		}
	}
	return mean
}

// TestNoisyGradientDescent fits a logistic regression by asking a gaussian holdout for gradients, each released as one vector at the price of
// one question, and comes near what the same steps with exact gradients fit.
//
// The noise of each step and coordinate is normal with the guarantee's sigma, in units of the mean, times the width 2·clip. The fit
// contracts towards its end, by a factor of at most 0.9 a step where the smallest curvature is at least 0.1 and the step 1; so the noise
// in the fit has a standard deviation below sigma·2·clip/sqrt(1-0.9²). Six of these are passed by one of three coordinates with
// probability below 1e-8, and the half of an interval, five sigmas, by the noise of one of 180 numbers with probability below 1e-4.
func TestNoisyGradientDescent(t *testing.T) {
	const steps, clip, rows = 60, 2.0, 40000
	table := risks(t, rows)
	s := open(t, t.TempDir())
	card := create(t, s, holdout.Settings{Holdout: 1, Questions: steps}, table)
	var fit, exact [3]float64
	widest := 0.0
	for range steps {
		query := fmt.Sprintf(`{"type":"gradient","label":"late","clip":%v,"model":{"linear":{"intercept":%v,"weights":{"a":%v,"b":%v},"link":"logit"}}}`, clip, fit[0], fit[1], fit[2])
		answer := ask(t, s, card.ID, query)
		var released struct {
			Items []holdout.Item
			Cost  holdout.Cost
		}
		if err := json.Unmarshal(answer.Body, &released); err != nil {
			t.Fatal(err)
		}
		if released.Cost.Questions != 1 || len(released.Items) != 3 {
			t.Fatalf("%+v", released)
		}
		truth := clippedGradient(table, fit, clip)
		for j, item := range released.Items {
			if item.Of != [3]string{"intercept", "a", "b"}[j] || *item.Low > truth[j] || *item.High < truth[j] {
				t.Fatalf("%s in [%v, %v], exactly %v", item.Of, *item.Low, *item.High, truth[j])
			}
			widest = max(widest, *item.High-*item.Low)
			fit[j] -= *item.Value
		}
		for j, g := range clippedGradient(table, exact, clip) {
			exact[j] -= g
		}
	}
	sigma := guaranteed(t, card)["sigma"].(float64) * 2 * clip
	near := 6 * sigma / math.Sqrt(1-0.9*0.9)
	t.Logf("after %d steps: %.3v, with exact gradients %.3v; intervals up to %.3g wide, sigma of a step %.3g, so within %.3g", steps, fit, exact, widest, sigma, near)
	for j := range fit {
		if math.Abs(fit[j]-exact[j]) > near {
			t.Errorf("coordinate %d: %v, with exact gradients %v", j, fit[j], exact[j])
		}
	}
	if near > 0.5 || math.Abs(exact[1]-1.2) > 0.2 {
		t.Errorf("the test shows nothing: within %v of %v", near, exact)
	}
}
