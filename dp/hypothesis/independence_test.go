package hypothesis

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestIndependenceStatistic: of a table of two by two it is 4 |n n_11 - n_1 n_1|, and of rows that say the same 2n² (1 - sum of squared shares).
func TestIndependenceStatistic(t *testing.T) {
	for _, c := range []struct {
		first, second []int
		want          int64
	}{
		{[]int{0, 0, 1, 1}, []int{0, 0, 1, 1}, 16},
		{[]int{0, 0, 1, 1}, []int{0, 1, 0, 1}, 0},
		{[]int{0, 0, 0, 1, 1}, []int{0, 0, 1, 1, 1}, 4 * 4}, // 5*2 - 3*2
		{[]int{0, 1, 2}, []int{2, 0, 1}, 2 * 9 * 2 / 3},
	} {
		if got := must1(newPairs(c.first, c.second)).statistic(); got != c.want {
			t.Errorf("%v and %v: %d, want %d", c.first, c.second, got, c.want)
		}
	}
}

// TestIndependenceSensitivity: a row that is replaced moves the statistic by no more than 6n, and by no more than 8n in any order of the second categories;
// the largest moves that are found come near to both.
func TestIndependenceSensitivity(t *testing.T) {
	var own, ordered float64 // the largest, in n
	moved := func(first, second []int, row, a, b int, order []int) float64 {
		in := func(x []int) (y []int) {
			for _, at := range order {
				y = append(y, x[at])
			}
			return y
		}
		before := must1(newPairs(first, in(second))).statistic()
		first, second = slices.Clone(first), slices.Clone(second)
		first[row], second[row] = a, b
		return math.Abs(float64(must1(newPairs(first, in(second))).statistic()-before)) / float64(len(first))
	}
	check := func(t interface{ Fatalf(string, ...any) }, first, second []int, row, a, b int, order []int) {
		same := make([]int, len(first))
		for i := range same {
			same[i] = i
		}
		own = max(own, moved(first, second, row, a, b, same))
		ordered = max(ordered, moved(first, second, row, a, b, order))
		if own > 6 || ordered > 8 {
			t.Fatalf("moved by %v n and %v n", own, ordered)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "rows")
		category := rapid.IntRange(0, rapid.IntRange(1, 8).Draw(t, "categories"))
		list := func(name string) []int { return rapid.SliceOfN(category, n, n).Draw(t, name) }
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		check(t, list("first"), list("second"), rapid.IntRange(0, n-1).Draw(t, "row"), category.Draw(t, "a"), category.Draw(t, "b"), rapid.Permutation(order).Draw(t, "order"))
	})
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		n := 20 + r.IntN(40)
		first, second := make([]int, n), make([]int, n)
		for i := range first {
			first[i] = r.IntN(12)
			second[i] = r.IntN(12)
		}
		check(t, first, second, r.IntN(n), r.IntN(12), r.IntN(12), r.Perm(n))
	}
	if own < 3 || ordered < 4 {
		t.Errorf("at most %v n and %v n were found: the test looks in the wrong places", own, ordered)
	}
}

// dependent are rows of which a share says the same on both sides; the rest is drawn.
func dependent(n int, share float64, r *rand.Rand) (first, second []int) {
	first, second = make([]int, n), make([]int, n)
	for i := range first {
		first[i], second[i] = r.IntN(3), r.IntN(3)
		if r.Float64() < share {
			second[i] = first[i]
		}
	}
	return first, second
}

// TestIndependenceLevelAndPower: of 2,000 tests of independent categories at 0.05 no more reject than may (false alarm 1e-6), of dependent ones at least
// four in five. It would notice orders whose statistics have no noise: that of the first one alone would then reject true hypotheses.
func TestIndependenceLevelAndPower(t *testing.T) {
	const runs = 2000
	s := noise.Seeded(3)
	r := rand.New(s)
	reject := func(runs, n int, share float64) (rejected int) {
		for range runs {
			first, second := dependent(n, share, r)
			if must1(Independence{Epsilon: noise.Eps(1), Level: .05, Draws: 39}.Test(first, second, s)) {
				rejected++
			}
		}
		return rejected
	}
	if err := stattest.AtMost(reject(runs, 150, 0), runs, .05, falseAlarm); err != nil {
		t.Error(err)
	}
	if found := reject(200, 600, .3); found < 160 {
		t.Errorf("%d of 200 false hypotheses are rejected", found)
	}
}

// TestIndependenceAttack: the bit is not refuted at its epsilon by 40,000 runs on neighbours (false alarm 1e-6); and the attack is strong enough to refute
// a seventh of the noise. One row has a category of its own on one side; with one on the other, too, or without, its statistic is 3.8n or 0, and those of
// orders are near 0.
func TestIndependenceAttack(t *testing.T) {
	const rows = 20
	set := audit.Settings{Runs: 40_000, Confidence: 1 - 1e-6}
	first, alike, without := make([]int, rows), make([]int, rows), make([]int, rows)
	first[0], alike[0] = 1, 1
	bit := func(eps float64, second []int) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 {
			if must1(Independence{Epsilon: noise.Eps(eps), Level: .05, Draws: 19}.Test(first, second, s)) {
				return 1
			}
			return 0
		}
	}
	for eps, refuted := range map[float64]bool{1: false, 7: true} {
		report, err := audit.Numbers(audit.Claim{Epsilon: 1}, set, noise.Seeded(4), bit(eps, alike), bit(eps, without))
		if err != nil {
			t.Fatal(err)
		}
		if report.Refuted() != refuted {
			t.Errorf("noise for epsilon %v: %v", eps, report)
		}
	}
}

func TestIndependenceRefused(t *testing.T) {
	good := Independence{Epsilon: noise.Eps(1), Level: .05, Draws: 19}
	for name, test := range map[string]Independence{
		"no level":       {Epsilon: noise.Eps(1)},
		"level 1":        {Epsilon: noise.Eps(1), Level: 1},
		"level NaN":      {Epsilon: noise.Eps(1), Level: math.NaN()},
		"no epsilon":     {Level: .05},
		"too few draws":  {Epsilon: noise.Eps(1), Level: .05, Draws: 18},
		"negative draws": {Epsilon: noise.Eps(1), Level: .05, Draws: -1},
	} {
		if _, err := test.Test([]int{0, 1}, []int{0, 1}, noise.Seeded(1)); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
	many, other := make([]int, 300), make([]int, 300)
	for i := range many {
		many[i], other[i] = i, i
	}
	for name, rows := range map[string][2][]int{
		"lengths":          {{0, 1}, {0}},
		"one row":          {{0}, {0}},
		"a category of -1": {{0, -1}, {0, 1}},
		"too many":         {{0, MaxCategories}, {0, 1}},
		"too many pairs":   {many, other},
	} {
		if _, err := good.Test(rows[0], rows[1], noise.Seeded(1)); !errors.Is(err, ErrRows) {
			t.Errorf("%s: %v", name, err)
		}
	}
	second := []int{0, 1, 0, 1}
	if must1(good.Test([]int{0, 1, 1, 0}, second, noise.Seeded(1))); !slices.Equal(second, []int{0, 1, 0, 1}) {
		t.Errorf("the caller's rows are in another order: %v", second)
	}
}

// Of 600 patients the clinic and the outcome are known: does the outcome depend on the clinic?
func ExampleIndependence() {
	var clinic, outcome []int
	for i := range 600 {
		clinic = append(clinic, i%2)
		outcome = append(outcome, min(1, (i/2)%5*(1+i%2)/4)) // one in five well at the first clinic, three in five at the second
	}
	var key noise.Key // 32 secret random bytes
	depends, err := Independence{Epsilon: noise.Eps(1), Level: 0.05}.Test(clinic, outcome, key.Stream("outcome"))
	if err != nil {
		panic(err)
	}
	fmt.Println(depends)
	// Output: true
}
