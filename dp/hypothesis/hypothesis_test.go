package hypothesis

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// falseAlarm of each statistical check; seeds are fixed.
const falseAlarm = 1e-6

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestReference: the quadratic form, computed elsewhere.
func TestReference(t *testing.T) {
	g := GoodnessOfFit{Shares: []float64{.2, .3, .5}}
	if got := g.statistic([]float64{180, 320, 500}, 1000, 100); math.Abs(float64(got)-2.3456790123456788) > 1e-12 {
		t.Errorf("statistic %v", got)
	}
	if got := float64(g.statistic([]float64{180, 320, 500}, 1000, 1e-9)); math.Abs(got-3.3333333) > 1e-5 {
		t.Errorf("without noise it is Pearson's: %v", got)
	}
}

// TestTails: the two tails of the noisy count are those of a sum over both laws, by hand for two rows, and together they are 1 and the probability of the
// number itself.
func TestTails(t *testing.T) {
	b := Binomial{Share: .25, Epsilon: noise.Epsilon{Num: 1, Den: 1}}
	a := math.Exp(-1)
	z := func(m int64) float64 { return (1 - a) / (1 + a) * math.Pow(a, math.Abs(float64(m))) }
	for at := int64(-4); at < 8; at++ {
		var greater, less, at1 float64
		for m := int64(-200); m <= 200; m++ {
			for k, p := range []float64{.5625, .375, .0625} {
				switch sum := m + int64(k); {
				case sum > at:
					greater += p * z(m)
				case sum < at:
					less += p * z(m)
				default:
					at1 += p * z(m)
				}
			}
		}
		g, l := b.tails(at, 2)
		if math.Abs(g-greater-at1) > 1e-12 || math.Abs(l-less-at1) > 1e-12 {
			t.Errorf("at %d: %v and %v, want %v and %v", at, g, l, greater+at1, less+at1)
		}
	}
}

// TestLevelAndPower: of 1,500 tests of a true hypothesis at the level 0.05 no more reject than may (false alarm 1e-6); of a false one at least four in five
// do. A null distribution without the noise would reject true ones far more often: the noise is as wide as the sampling here.
func TestLevelAndPower(t *testing.T) {
	const runs, level = 1500, .05
	eps := noise.Eps(.2)
	shares := []float64{.5, .25, .15, .1}
	for name, test := range map[string]func(s *noise.Stream, r *rand.Rand, wrong bool) Result{
		"binomial": func(s *noise.Stream, r *rand.Rand, wrong bool) Result {
			p := .5
			if wrong {
				p = .65
			}
			return must1(Binomial{Share: .5, Epsilon: eps}.Test(int(distuv.Binomial{N: 200, P: p, Src: r}.Rand()), 200, s))
		},
		"goodness of fit": func(s *noise.Stream, r *rand.Rand, wrong bool) Result {
			p := shares
			if wrong {
				p = []float64{.3, .35, .2, .15}
			}
			counts := make([]int64, 4)
			multinomial(counts, 400, p, r)
			return must1(GoodnessOfFit{Shares: shares, Epsilon: eps, Draws: 99}.Test(counts, s))
		},
		"groups": func(s *noise.Stream, r *rand.Rand, wrong bool) Result {
			values, groups := make([]float64, 240), make([]int, 240)
			for i := range values {
				groups[i] = i % 3
				values[i] = math.Floor(3 * r.ExpFloat64()) // with ties
				if wrong && groups[i] == 0 {
					values[i] += 6
				}
			}
			return must1(Groups{Epsilon: eps, Draws: 99}.Test(values, groups, s))
		},
	} {
		s := noise.Seeded(1)
		r, rejected, found := rand.New(s), 0, 0
		for range runs {
			if test(s, r, false).P <= level {
				rejected++
			}
		}
		for range runs / 5 {
			if test(s, r, true).P <= level {
				found++
			}
		}
		if err := stattest.AtMost(rejected, runs, level, falseAlarm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if rejected < runs/50 {
			t.Errorf("%s: rejected %d of %d: the level is not used", name, rejected, runs)
		}
		if found < runs/5*8/10 {
			t.Errorf("%s: found %d of %d", name, found, runs/5)
		}
	}
}

// TestLeastP: however far off the hypothesis is, a simulated p-value is not below 1/(draws+1), and is that; of nine draws at the level 0.1 every one must be beaten.
func TestLeastP(t *testing.T) {
	s := noise.Seeded(3)
	values, groups := make([]float64, 400), make([]int, 400)
	for i := range values {
		values[i], groups[i] = float64(i), i/200
	}
	for _, r := range []Result{
		must1(Groups{Epsilon: noise.Eps(1), Draws: 9}.Test(values, groups, s)),
		must1(GoodnessOfFit{Shares: []float64{.5, .5}, Epsilon: noise.Eps(1), Draws: 9}.Test([]int64{400, 0}, s)),
	} {
		if r.P != .1 {
			t.Errorf("%+v, want a p-value of 0.1", r)
		}
	}
}

// TestRankSensitivity: one value that is replaced moves the statistic by no more than 4(n-1); and by as much in the worst case.
func TestRankSensitivity(t *testing.T) {
	statistic := func(values []float64, groups []int) int64 {
		order := make([]int, len(values))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return compare(values[a], values[b]) })
		labels := make([]int, len(values))
		for rank, row := range order {
			labels[rank] = groups[row]
		}
		return deviations(labels, must1(sizesOf(groups)))
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64(), 3, 20).Draw(t, "values")
		groups := make([]int, len(values))
		for i := range groups {
			groups[i] = rapid.IntRange(0, 2).Draw(t, "group")
		}
		groups[0], groups[1], groups[2] = 0, 1, 2
		before := statistic(values, groups)
		values[rapid.IntRange(0, len(values)-1).Draw(t, "row")] = rapid.Float64().Draw(t, "other")
		if moved := statistic(values, groups) - before; max(moved, -moved) > 4*int64(len(values)-1) {
			t.Fatalf("moved by %d of %d rows", moved, len(values))
		}
	})
	// One row that is a group of its own, from the lowest place to the middle one: two ranks of its own, and two others one each, and ranks count twice.
	values, groups := []float64{0, 1, 2, 3, 4}, []int{0, 1, 1, 1, 1}
	middle := []float64{2.5, 1, 2, 3, 4}
	if moved := statistic(values, groups) - statistic(middle, groups); moved != 4*2 {
		t.Errorf("two ranks move it by %d, want 8", moved)
	}
}

// TestAttack: no test is refuted at its epsilon by 20,000 runs on neighbouring tables (false alarm 1e-6 each), by its statistic; and the attack is strong
// enough to refute half of the noise.
func TestAttack(t *testing.T) {
	set := audit.Settings{Runs: 20_000, Confidence: 1 - 1e-6}
	binomial := func(k int, eps float64) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 {
			return must1(Binomial{Share: .5, Epsilon: noise.Eps(eps)}.Test(k, 3, s)).Statistic
		}
	}
	fit := func(eps float64, counts ...int64) audit.Mechanism[float64] {
		g := GoodnessOfFit{Shares: []float64{.4, .6}, Epsilon: noise.Eps(eps), Draws: 1}
		return func(s *noise.Stream) float64 { // the statistic is of these, so that an attack on them is the stronger one
			noisy := g.noisy(counts, s)
			return noisy[0] + 1000*noisy[1]
		}
	}
	groups := func(eps float64, first float64) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 {
			return must1(Groups{Epsilon: noise.Eps(eps), Draws: 1}.Test([]float64{first, 1, 2, 3, 4}, []int{0, 1, 1, 1, 1}, s)).Statistic
		}
	}
	for name, c := range map[string]struct {
		a, b    audit.Mechanism[float64]
		refuted bool
	}{
		"binomial":                  {binomial(1, 1), binomial(2, 1), false},
		"binomial, half the noise":  {binomial(1, 2), binomial(2, 2), true},
		"fit":                       {fit(1, 3, 0), fit(1, 2, 1), false},
		"fit, a third of the noise": {fit(3, 3, 0), fit(3, 2, 1), true},
		"groups":                    {groups(1, 0), groups(1, 2.5), false},
		"groups, a fourth of it":    {groups(4, 0), groups(4, 2.5), true},
	} {
		report, err := audit.Numbers(audit.Claim{Epsilon: 1}, set, noise.Seeded(2), c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		if report.Refuted() != c.refuted {
			t.Errorf("%s: %v", name, report)
		}
	}
}

func TestRefused(t *testing.T) {
	eps := noise.Eps(1)
	for name, call := range map[string]func(s *noise.Stream) error{
		"share":   func(s *noise.Stream) error { _, err := Binomial{Share: 1, Epsilon: eps}.Test(1, 2, s); return err },
		"epsilon": func(s *noise.Stream) error { _, err := Binomial{Share: .5}.Test(1, 2, s); return err },
		"alternative": func(s *noise.Stream) error {
			_, err := Binomial{Share: .5, Epsilon: eps, Alternative: 3}.Test(1, 2, s)
			return err
		},
		"shares": func(s *noise.Stream) error {
			_, err := GoodnessOfFit{Shares: []float64{.5, .6}, Epsilon: eps}.Test([]int64{1, 1}, s)
			return err
		},
		"a share of 0": func(s *noise.Stream) error {
			_, err := GoodnessOfFit{Shares: []float64{0, 1}, Epsilon: eps}.Test([]int64{1, 1}, s)
			return err
		},
		"one category": func(s *noise.Stream) error {
			_, err := GoodnessOfFit{Shares: []float64{1}, Epsilon: eps}.Test([]int64{1}, s)
			return err
		},
		"draws": func(s *noise.Stream) error {
			_, err := Groups{Epsilon: eps, Draws: -1}.Test([]float64{1, 2}, []int{0, 1}, s)
			return err
		},
		"groups' epsilon": func(s *noise.Stream) error { _, err := Groups{}.Test([]float64{1, 2}, []int{0, 1}, s); return err },
		"fit without noise": func(s *noise.Stream) error {
			_, err := GoodnessOfFit{Shares: []float64{.5, .5}}.Test([]int64{1, 1}, s)
			return err
		},
	} {
		if err := call(noise.Seeded(1)); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range map[string]func(s *noise.Stream) error{
		"more than rows": func(s *noise.Stream) error { _, err := Binomial{Share: .5, Epsilon: eps}.Test(3, 2, s); return err },
		"categories": func(s *noise.Stream) error {
			_, err := GoodnessOfFit{Shares: []float64{.5, .5}, Epsilon: eps}.Test([]int64{1}, s)
			return err
		},
		"a negative": func(s *noise.Stream) error {
			_, err := GoodnessOfFit{Shares: []float64{.5, .5}, Epsilon: eps}.Test([]int64{-1, 3}, s)
			return err
		},
		"lengths": func(s *noise.Stream) error {
			_, err := Groups{Epsilon: eps}.Test([]float64{1, 2}, []int{0}, s)
			return err
		},
		"one group": func(s *noise.Stream) error {
			_, err := Groups{Epsilon: eps}.Test([]float64{1, 2}, []int{0, 0}, s)
			return err
		},
		"an empty group": func(s *noise.Stream) error {
			_, err := Groups{Epsilon: eps}.Test([]float64{1, 2}, []int{0, 2}, s)
			return err
		},
		"a group below 0": func(s *noise.Stream) error {
			_, err := Groups{Epsilon: eps}.Test([]float64{1, 2}, []int{-1, 1}, s)
			return err
		},
	} {
		if err := call(noise.Seeded(1)); !errors.Is(err, ErrRows) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of 1,000 people 560 answered yes: more than half of those that they were drawn from?
func ExampleBinomial() {
	var key noise.Key // 32 secret random bytes
	result, err := Binomial{Share: 0.5, Epsilon: noise.Eps(0.5), Alternative: Greater}.Test(560, 1000, key.Stream("yes"))
	if err != nil {
		panic(err)
	}
	fmt.Printf("p = %.4f\n", result.P)
	// Output: p = 0.0001
}
