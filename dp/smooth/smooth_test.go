package smooth

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
)

var unit = Range{0, 1}

// plain is the definition: the largest over k of e^{-k beta} times the largest over t of x_{m+t} - x_{m+t-k-1}.
func plain(r Range, x []float64, beta float64) float64 {
	m, best := middle(len(x)), 0.0
	for k := 0; k <= len(x)+1; k++ {
		for t := 0; t <= k+1; t++ {
			best = max(best, math.Exp(-beta*float64(k))*(r.padded(x, m+t)-r.padded(x, m+t-k-1)))
		}
	}
	return best
}

// local is the largest change of the median when one value is replaced, by trying.
func local(x []float64) float64 {
	sorted, err := unit.sorted(x)
	if err != nil {
		panic(err)
	}
	at, worst := unit.padded(sorted, middle(len(x))), 0.0
	for i := range x {
		for _, v := range append([]float64{0, 1}, x...) {
			changed := append([]float64{}, x...)
			changed[i] = v
			other, err := unit.sorted(changed)
			if err != nil {
				panic(err)
			}
			worst = max(worst, math.Abs(unit.padded(other, middle(len(x)))-at))
		}
	}
	return worst
}

// TestMedianReference: eleven values whose smooth sensitivities were computed elsewhere.
func TestMedianReference(t *testing.T) {
	data := []float64{0.1, 0.2, 0.35, 0.42, 0.48, 0.5, 0.53, 0.61, 0.7, 0.85, 0.95}
	for beta, want := range map[float64]float64{.1: 0.3494854691128702, 1. / 6: 0.23103770356466638} {
		got, median, err := unit.Median(data, beta)
		if err != nil || math.Abs(got-want) > 1e-12 || median != .5 {
			t.Errorf("beta %v: %v, a median of %v, %v; want %v", beta, got, median, err, want)
		}
	}
}

// TestMedian: the fast way is the definition, is no less than the local sensitivity, and is smooth: replacing a value changes it by a factor of at most e^beta. A search that forgot the padding, or took the
// wrong half, is noticed.
func TestMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-.1, 1.1), 1, 25).Draw(t, "x")
		beta := rapid.Float64Range(.01, 3).Draw(t, "beta")
		sorted, err := unit.sorted(x)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := unit.Median(x, beta)
		if err != nil {
			t.Fatal(err)
		}
		if want := plain(unit, sorted, beta); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v, by the definition %v", got, want)
		}
		if least := local(sorted); got < least-1e-12 {
			t.Fatalf("%v is less than the local sensitivity %v", got, least)
		}
		changed := append([]float64{}, x...)
		changed[rapid.IntRange(0, len(x)-1).Draw(t, "i")] = rapid.Float64Range(0, 1).Draw(t, "v")
		other, _, err := unit.Median(changed, beta)
		if err != nil {
			t.Fatal(err)
		}
		if other > got*math.Exp(beta)*(1+1e-9) || got > other*math.Exp(beta)*(1+1e-9) {
			t.Fatalf("%v and %v of neighbours at beta %v", got, other, beta)
		}
	})
}

// TestDistance: by the definition, the first k whose largest difference is above the bound.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, err := unit.sorted(rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		bound := rapid.Float64Range(.001, 1.2).Draw(t, "bound")
		want := len(x) + 1
		for k := len(x); k >= 0; k-- {
			for j := middle(len(x)); j <= middle(len(x))+k+1; j++ {
				if unit.padded(x, j)-unit.padded(x, j-k-1) > bound {
					want = k
				}
			}
		}
		if got := unit.distance(x, bound); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

// TestLosses holds the scale and the smoothness of Student's t against the law itself: over a grid of outcomes, the loss between f + S z/s and (f+S) + S e^{±beta} z/s is at most epsilon, and for some at least half.
func TestLosses(t *testing.T) {
	for _, degrees := range []int{1, 2, 3, 5} {
		n := Noise{Epsilon: 1, Degrees: degrees}
		d := n.degrees()
		density := func(x, scale float64) float64 {
			return -math.Log(scale) - (d+1)/2*math.Log1p(x*x/(scale*scale)/d)
		}
		worst := 0.0
		for _, turn := range []float64{-n.Beta(), 0, n.Beta()} {
			for x := -300.; x <= 300; x += .01 {
				worst = max(worst, math.Abs(density(x, n.scale())-density(x-1, n.scale()*math.Exp(turn))))
			}
		}
		if worst > 1+1e-9 || worst < .5 {
			t.Errorf("%d degrees of freedom lose up to %v, promised is 1", degrees, worst)
		}
	}
}

// TestAttack: no release is refuted by 40,000 runs on a pair of tables (false alarm 1e-6 each), and noise by the local sensitivity, which is not smooth, is.
func TestAttack(t *testing.T) {
	a := []float64{.1, .2, .3, .45, .5, .55, .6, .7, .8}
	b := append([]float64{}, a...)
	b[4] = .95
	set := audit.Settings{Runs: 40_000, Confidence: 1 - 1e-6}
	release := func(n Noise, x []float64) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 {
			out, err := n.Release(unit, x, s)
			if err != nil {
				panic(err)
			}
			return out
		}
	}
	for i, n := range []Noise{{Epsilon: 1}, {Epsilon: 1, Degrees: 1}, {Law: Laplace, Epsilon: 1, Delta: .05}, {Law: Gaussian, Epsilon: 1, Delta: .05}} {
		report, err := audit.Numbers(audit.Claim{Epsilon: n.Epsilon, Delta: n.Delta}, set, noise.Seeded(uint64(i)), release(n, a), release(n, b))
		if err != nil || report.Refuted() {
			t.Errorf("%+v: %v, %v", n, report, err)
		}
	}
	narrow := func(x []float64) audit.Mechanism[float64] { // noise by the sensitivity of the table itself, which is not smooth
		return func(s *noise.Stream) float64 {
			sorted, err := unit.sorted(x)
			if err != nil {
				panic(err)
			}
			return unit.round(unit.padded(sorted, 5) + local(sorted)*(Noise{Law: Laplace, Delta: .05}).draw(s))
		}
	}
	// With six values of .5 no replaced one moves the median; with five one does. By the local sensitivity the first table gets no noise at all.
	six, five := []float64{.5, .5, .5, .5, .5, .5, 1, 1, 1}, []float64{.5, .5, .5, .5, .5, 1, 1, 1, 1}
	report, err := audit.Numbers(audit.Claim{Epsilon: 1, Delta: .05}, set, noise.Seeded(9), narrow(six), narrow(five))
	if err != nil || !report.Refuted() {
		t.Errorf("noise by the local sensitivity went unnoticed: %v, %v", report, err)
	}
}

// TestProposal: a table far from trouble passes nearly always, one at its edge nearly never, and what passes is near the median.
func TestProposal(t *testing.T) {
	p := Proposal{Bound: .01, Epsilon: noise.Eps(1), Delta: 1e-6}
	calm := make([]float64, 2001)
	for i := range calm {
		calm[i] = float64(i) / 2000
	}
	edge := make([]float64, 2001)
	for i := range edge {
		edge[i] = float64(i / 1000)
	}
	s, passed, slipped := noise.Seeded(1), 0, 0
	for range 500 {
		if out, err := p.Release(unit, calm, s); err == nil {
			passed++
			if math.Abs(out-.5) > .25 {
				t.Errorf("the median is %v", out)
			}
		} else if !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		if _, err := p.Release(unit, edge, s); err == nil {
			slipped++
		}
	}
	if passed < 450 || slipped > 5 {
		t.Errorf("of 500, %d of a calm table passed, and %d of one at the edge", passed, slipped)
	}
}

// TestAggregate: the mean of each of 100 blocks is near .3, and so is what is released; every row is in one block.
func TestAggregate(t *testing.T) {
	seen := map[int]int{}
	out, err := (Noise{Epsilon: 2}).Aggregate(unit, 10_001, 100, func(rows []int) float64 {
		mean := 0.0
		for _, row := range rows {
			seen[row]++
			if row%10 < 3 {
				mean += 1 / float64(len(rows))
			}
		}
		return mean
	}, noise.Seeded(3))
	if err != nil || math.Abs(out-.3) > .1 || len(seen) != 10_001 {
		t.Errorf("%v, %v, from %d rows", out, err, len(seen))
	}
	for row, times := range seen {
		if times != 1 {
			t.Fatalf("row %d is in %d blocks", row, times)
		}
	}
}

func TestRefused(t *testing.T) {
	s, x := noise.Seeded(1), []float64{.5}
	for _, n := range []Noise{{}, {Epsilon: -1}, {Epsilon: 100}, {Epsilon: math.NaN()}, {Epsilon: 1, Delta: .1}, {Law: Laplace, Epsilon: 1}, {Law: Gaussian, Epsilon: 1, Delta: 1}, {Epsilon: 1, Degrees: 65}, {Law: Laplace, Epsilon: 1, Delta: .1, Degrees: 2}, {Law: 9, Epsilon: 1}} {
		if _, err := n.Release(unit, x, s); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	good := Noise{Epsilon: 1}
	if _, err := good.Release(Range{1, 1}, x, s); !errors.Is(err, ErrSettings) {
		t.Errorf("an empty range: %v", err)
	}
	if _, err := good.Release(unit, nil, s); !errors.Is(err, ErrValues) {
		t.Errorf("no values: %v", err)
	}
	if _, err := good.Aggregate(unit, 5, 6, nil, s); !errors.Is(err, ErrSettings) {
		t.Errorf("more blocks than rows: %v", err)
	}
	for _, p := range []Proposal{{}, {Bound: 1, Delta: .1}, {Epsilon: noise.Eps(1), Delta: .1}, {Bound: 1, Epsilon: noise.Eps(1)}} {
		if _, err := p.Release(unit, x, s); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if out, err := good.Release(unit, []float64{math.NaN(), math.Inf(1), math.Inf(-1)}, s); err != nil || out < 0 || out > 1 {
		t.Errorf("values that are none: %v, %v", out, err)
	}
}

// The median of 1000 incomes, in a range that was declared before anybody looked.
func ExampleNoise_Release() {
	incomes := make([]float64, 1000)
	for i := range incomes {
		incomes[i] = 20_000 + 40*float64(i)
	}
	out, err := (Noise{Epsilon: 1}).Release(Range{0, 1e6}, incomes, noise.Seeded(2))
	fmt.Println(math.Abs(out-40_000) < 2000, err)
	// Output: true <nil>
}
