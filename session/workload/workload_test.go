package workload

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

const loop = "60 accuracy, 60 log_loss, 60 auc, 60 calibration of 10, 60 confusion, 10 groups of 12, 20 mean in -60..180 sd 39, 30 compare, 3 difference in 0..1 sd 0.3, correlation, 5 fraction at 0.1 where 0.2, median in 0..100"

func made60(t *testing.T) Estimate {
	t.Helper()
	e, err := Make(t.Context(), Request{N: 60_000, Training: 140_000, Confidence: 0.95, Workload: loop})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAWorkloadIsPriced would notice a mechanism that is left out, questions that are not counted as often as they are asked, prices that are not the sessions', and a recommendation
// that is not the narrowest.
func TestAWorkloadIsPriced(t *testing.T) {
	e := made60(t)
	prices := map[string][]int64{ // of accuracy, log loss, AUC, calibration, confusion, groups, mean, compare, difference, correlation, a fraction of some, median
		"guess_and_check": {1, 1, 1, 30, 4, 14, 1, 1, 1, 1, 1, 1},
		"gaussian":        {1, 1, 10, 5, 3, 4, 1, 1, 3, 1, 2, 10},
	}
	counts := []int64{60, 60, 60, 60, 60, 10, 20, 30, 3, 1, 5, 1}
	for _, p := range e.Plans {
		want, ok := prices[p.Name]
		if !ok {
			continue
		}
		delete(prices, p.Name)
		total := int64(0)
		for i, one := range p.Items {
			if one.Questions != want[i] || one.Refused != "" || one.HalfWidth == nil || one.Widest == nil || *one.Widest < *one.HalfWidth {
				t.Errorf("%s: %s: %+v, want %d questions", p.Name, e.Items[i].Of, one, want[i])
			}
			total += counts[i] * want[i]
		}
		if p.Questions != total || e.Items[0].Count != 60 {
			t.Errorf("%s: %d questions, want %d", p.Name, p.Questions, total)
		}
	}
	if len(prices) > 0 || e.Recommended != "guess_and_check" || len(e.Notes) < 2 || !strings.Contains(e.Notes[0], "mechanism=guess_and_check&questions=") {
		t.Errorf("no plan of %v; recommended is %q, %q", prices, e.Recommended, e.Notes)
	}
}

// TestWidthsAreTheMechanisms: a yes/no question of which half of the rows say yes has the width that the mechanism promises of one half, in a range of its own. It would notice a planner with formulas of its own, and units that
// are not the question's.
func TestWidthsAreTheMechanisms(t *testing.T) {
	e, err := Make(t.Context(), Request{N: 20_000, Confidence: 0.95, Workload: "200 mean in 10..30"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 20_000, Questions: 200, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range e.Plans {
		if p.Name != "gaussian" {
			continue
		}
		if got, want := *p.Items[0].HalfWidth, 20*g.HalfWidth; math.Abs(got-want) > 1e-6*want || *p.Items[0].Widest < want || p.Questions != 200 {
			t.Errorf("±%v for %d questions, want ±%v", got, p.Questions, want)
		}
		return
	}
	t.Error("gaussian is not planned")
}

// TestGroupsAreNoWiderThanWhere: under every mechanism but vectors' the groups of a question, and a difference, are no wider than the same asked with where, at the same number of questions.
// It would notice a type whose form is worse than the plain one.
func TestGroupsAreNoWiderThanWhere(t *testing.T) {
	e, err := Make(t.Context(), Request{N: 30_000, Training: 70_000, Questions: 500, Confidence: 0.95, Workload: "groups of 10 in 0..1 sd 0.3, mean in 0..1 sd 0.3 where 0.1, difference in 0..1 sd 0.3, mean in 0..1 sd 0.3 where 0.5"})
	if err != nil {
		t.Fatal(err)
	}
	const sample = 1.15 // the made-up rows of where are a random tenth, of groups exactly one: their deviations differ by as much at most
	for _, p := range e.Plans {
		if p.Refused != "" || p.Name == "gaussian" { // which releases both together, as one vector
			continue
		}
		groups, where, difference, half := *p.Items[0].HalfWidth, *p.Items[1].HalfWidth, *p.Items[2].HalfWidth, *p.Items[3].HalfWidth
		if groups > sample*where || difference > sample*2*half {
			t.Errorf("%s: groups ±%v and with where ±%v; a difference ±%v and two with where ±%v", p.Name, groups, where, difference, 2*half)
		}
	}
}

func TestWorkloadsAreRead(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "is not read"}, {"60 acuracy", "did you mean accuracy"}, {"60 mean", "needs the range"}, {"0 accuracy", "counts from 1"}, {"accuracy of 3", "not possible"}, {"groups of 1", "not possible"},
		{"mean in 3..1", "not possible"}, {"mean in 0..1 sd 0.7", "at most 0.5"}, {"auc at 1", "between 0 and 1"}, {"auc where 0.5", "over all rows"}, {"accuracy in 0..1", "range of its own"}, {"99999999999999999999 auc", "not possible"},
		{strings.Repeat("auc,", 60) + "auc", "at most 50"},
	} {
		if _, err := read(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	if _, _, err := For(t.Context(), compare.Request{N: 0, Confidence: 0.95}, "auc"); err == nil {
		t.Error("a workload without units")
	}
	rapid.Check(t, func(t *rapid.T) { // no text is anything but read or refused
		text := rapid.StringMatching(`[0-9]{0,3} ?(accuracy|groups|mean|auc|difference)?( of [0-9]{1,3})?( in -?[0-9.]{1,4}\.\.[0-9.e]{1,5})?( sd [0-9.]{1,3})?( at [0-9.]{1,3})?,?`).Draw(t, "text")
		if items, err := read(text); err == nil {
			for _, i := range items {
				if len(i.rows(3)) == 0 || math.IsNaN(i.at) || i.number() && !(i.sd > 0) {
					t.Fatalf("%q: %+v", text, i)
				}
			}
		}
	})
}
