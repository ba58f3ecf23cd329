package smooth

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
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

// TestMedian: the fast way is the definition, is no less than the local sensitivity, and is smooth: replacing a value changes it by a factor of at most
// e^beta. A search that forgot the padding, or took the wrong half, is noticed.
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

// pair is one law of noise on a table of scale 1, as a logarithm of its density, and on a neighbour whose median is farther by shift and whose scale is
// larger by e^turn.
type pair struct{ shift, turn float64 }

// pairs are those that neighbours may make: sensitivities differ by e^beta, and medians by at most the smaller one.
func (n Noise) pairs() (all []pair) {
	for _, turn := range []float64{-1, -.5, 0, .5, 1} {
		for _, far := range []float64{0, .5, 1} {
			all = append(all, pair{far * min(1, math.Exp(turn*n.beta())) / n.scale(), turn * n.beta()})
		}
	}
	return all
}

func (p pair) of(density func(float64) float64) func(float64) float64 {
	return func(x float64) float64 { return density((x-p.shift)*math.Exp(-p.turn)) - p.turn }
}

// TestLosses holds the scale and the smoothness of Student's t against the law itself: over a grid of outcomes that goes far out, no pair of neighbours has
// a loss above epsilon, and one has nearly so much.
func TestLosses(t *testing.T) {
	for _, n := range []Noise{{Epsilon: 1}, {Epsilon: 1, Degrees: 1}, {Epsilon: .1, Degrees: 2}, {Epsilon: 8, Degrees: 5}, {Epsilon: 64, Degrees: 64}} {
		d, worst := n.degrees(), 0.0
		density := func(x float64) float64 { return -(d + 1) / 2 * math.Log1p(x*x/d) }
		for _, p := range n.pairs() {
			other := p.of(density)
			for v := -30.; v <= 30; v += .003 {
				x := math.Sinh(v)
				worst = max(worst, math.Abs(density(x)-other(x)))
			}
		}
		if worst > n.Epsilon*(1+1e-9) || worst < n.Epsilon/2 {
			t.Errorf("%+v: a loss of up to %v", n, worst)
		}
	}
}

// integral of a function that is smooth but for bends, over the line: by the trapezoidal rule where x = sinh(v).
func integral(f func(x float64) float64) (sum float64) {
	const step = 2e-3
	for v := -12.; v <= 12; v += step {
		sum += f(math.Sinh(v)) * math.Cosh(v) * step
	}
	return sum
}

// TestDeltas computes what Laplace and Gaussian noise need of delta, over all pairs of neighbours: never more than they promise, up to the largest epsilon
// that is taken. At an epsilon of 16 the formulas need more, which is why it is not taken.
func TestDeltas(t *testing.T) {
	laws := map[Law]func(float64) float64{
		Laplace:  func(x float64) float64 { return -math.Abs(x) - math.Ln2 },
		Gaussian: func(x float64) float64 { return -x*x/2 - math.Log(2*math.Pi)/2 },
	}
	needs := func(n Noise) (delta float64) {
		density := laws[n.Law]
		for _, p := range n.pairs() {
			other := p.of(density)
			delta = max(delta, integral(func(x float64) float64 {
				a := density(x)
				return math.Exp(a) * max(0, -math.Expm1(min(1, n.Epsilon+other(x)-a)))
			}))
		}
		return delta
	}
	for law := range laws {
		for _, epsilon := range []float64{MinEpsilon, .5, 2, MaxApproximate} {
			for _, delta := range []float64{.99, .3, .01, 1e-6} {
				n := Noise{Law: law, Epsilon: epsilon, Delta: delta}
				if err := n.check(); err != nil {
					t.Fatal(err)
				}
				if got := needs(n); got > delta {
					t.Errorf("%+v needs a delta of %v", n, got)
				}
			}
		}
		wide := Noise{Law: law, Epsilon: 32, Delta: .01}
		if got := needs(wide); got < 2*wide.Delta || wide.check() == nil {
			t.Errorf("%+v needs a delta of %v, and is taken: %v", wide, got, wide.check())
		}
	}
}

// TestConcentrated computes Rényi divergences of Laplace log-normal noise, over pairs of neighbours and orders: none is above order·epsilon²/2. The formula
// has room: the largest is a sixth of that.
func TestConcentrated(t *testing.T) {
	for _, epsilon := range []float64{.5, 4} {
		n := Noise{Law: LaplaceLogNormal, Epsilon: epsilon}
		sigma := n.sigma()
		density := func(x float64) float64 { // a mixture over the log-normal factor
			sum := 0.
			for u := -7.; u <= 16; u += .1 {
				sum += math.Exp(-u*u/2 - sigma*u - math.Abs(x)*math.Exp(-sigma*u))
			}
			return math.Log(sum * .1 / 2 / math.Sqrt(2*math.Pi))
		}
		most := 0.
		for _, p := range []pair{{0, n.beta()}, {1 / n.scale(), 0}, {1 / n.scale(), n.beta()}, {math.Exp(-n.beta()) / n.scale(), -n.beta()}} {
			other := p.of(density)
			const step = .01
			var orders [3]float64
			for v := -11.; v <= 11; v += step {
				x := math.Sinh(v)
				a, b := density(x), other(x)
				for i, order := range []float64{1.1, 2, 6} {
					orders[i] += math.Exp(order*a+(1-order)*b) * math.Cosh(v) * step
				}
			}
			for i, order := range []float64{1.1, 2, 6} {
				most = max(most, math.Log(orders[i])/(order-1)/(order*epsilon*epsilon/2))
			}
		}
		if most > 1 || most < .1 {
			t.Errorf("epsilon %v: %v of the divergence that is promised", epsilon, most)
		}
	}
}

// TestGrid: where the smooth sensitivity is next to nothing there is noise all the same, as wide as the grid: of 300 answers no one comes up in more than
// half (false alarm 1e-6; it has a probability of at most a third).
func TestGrid(t *testing.T) {
	x := make([]float64, 4001)
	for i := range x {
		x[i] = .5
	}
	s, seen := noise.Seeded(12), map[float64]int{}
	for range 300 {
		out, err := (Noise{Epsilon: 1}).Release(unit, x, s)
		if err != nil || math.Abs(out-.5) > .01 {
			t.Fatalf("%v, %v", out, err)
		}
		seen[out]++
	}
	for out, times := range seen {
		if err := stattest.AtMost(times, 300, 1./3, 1e-6); err != nil {
			t.Errorf("%v: %v", out, err)
		}
	}
}

// TestAttack: no release is refuted by 24,000 runs on a pair of tables (false alarm 1e-6 each), and noise by the local sensitivity, which is not smooth, is.
func TestAttack(t *testing.T) {
	a := []float64{.1, .2, .3, .45, .5, .55, .6, .7, .8}
	b := append([]float64{}, a...)
	b[4] = .95
	set := audit.Settings{Runs: 24_000, Confidence: 1 - 1e-6}
	release := func(n Noise, x []float64) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 {
			out, err := n.Release(unit, x, s)
			if err != nil {
				panic(err)
			}
			return out
		}
	}
	for i, n := range []Noise{{Epsilon: 1}, {Epsilon: 1, Degrees: 1}, {Law: Laplace, Epsilon: 1, Delta: .05}, {Law: Gaussian, Epsilon: 1, Delta: .05}, {Epsilon: MinEpsilon}} {
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
			return unit.rounded(unit.padded(sorted, 5) + local(sorted)*(Noise{Law: Laplace, Delta: .05}).draw(s))
		}
	}
	// With six values of .5 no replaced one moves the median; with five one does. By the local sensitivity the first table gets no noise at all.
	six, five := []float64{.5, .5, .5, .5, .5, .5, 1, 1, 1}, []float64{.5, .5, .5, .5, .5, 1, 1, 1, 1}
	report, err := audit.Numbers(audit.Claim{Epsilon: 1, Delta: .05}, set, noise.Seeded(9), narrow(six), narrow(five))
	if err != nil || !report.Refuted() {
		t.Errorf("noise by the local sensitivity went unnoticed: %v, %v", report, err)
	}
}

// TestProposal: of a table whose median cannot be moved far by 18 rows 99 in 100 pass and more, of one at the edge one in a million at the most (false
// alarms 1e-6), and what passes is near the median.
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
	s, refused, slipped := noise.Seeded(1), 0, 0
	for range 500 {
		if out, err := p.Release(unit, calm, s); err == nil {
			if math.Abs(out-.5) > .3 { // 30 scales of Laplace noise
				t.Errorf("the median is %v", out)
			}
		} else if refused++; !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		if _, err := p.Release(unit, edge, s); err == nil {
			slipped++
		}
	}
	if err := stattest.AtMost(refused, 500, .01, 1e-6); err != nil {
		t.Errorf("a calm table is refused: %v", err)
	}
	if err := stattest.AtMost(slipped, 500, p.Delta, 1e-6); err != nil {
		t.Errorf("a table at the edge passes: %v", err)
	}
}

// TestAttackOnProposal: 40,000 runs on a table that passes every other time and a neighbour that passes less often do not refute (2 epsilon, delta) (false
// alarm 1e-6), and those of a test without noise do.
func TestAttackOnProposal(t *testing.T) {
	p := Proposal{Bound: .1, Epsilon: noise.Eps(.5), Delta: .05}
	table := func(zeros int) []float64 { // 31 values, all .5 but for the zeros: 15 less the zeros must be replaced before the median is at an edge
		x := make([]float64, 31)
		for i := zeros; i < len(x); i++ {
			x[i] = .5
		}
		return x
	}
	release := func(x []float64) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 {
			out, err := p.Release(unit, x, s)
			if errors.Is(err, ErrRefused) {
				return -1
			}
			if err != nil {
				panic(err)
			}
			return out
		}
	}
	claim, set := audit.Claim{Epsilon: 2 * p.Epsilon.Float(), Delta: p.Delta}, audit.Settings{Runs: 40_000, Confidence: 1 - 1e-6}
	report, err := audit.Numbers(claim, set, noise.Seeded(1), release(table(9)), release(table(10)))
	if err != nil || report.Refuted() || report.Epsilon < .2 {
		t.Errorf("%v, %v; an attack finds more than .2", report, err)
	}
	certain := func(x []float64) audit.Mechanism[float64] { // tests the distance itself
		return func(s *noise.Stream) float64 {
			if float64(unit.distance(x, p.Bound)) <= math.Log(1/p.Delta)/p.Epsilon.Float() {
				return -1
			}
			return unit.rounded(.5 + p.Bound/p.Epsilon.Float()*exponential(s))
		}
	}
	report, err = audit.Numbers(claim, set, noise.Seeded(2), certain(table(9)), certain(table(10)))
	if err != nil || !report.Refuted() {
		t.Errorf("a test without noise went unnoticed: %v, %v", report, err)
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
	for _, n := range []Noise{{}, {Epsilon: -1}, {Epsilon: 100}, {Epsilon: math.NaN()}, {Epsilon: 1, Delta: .1}, {Law: Laplace, Epsilon: 1}, {Law: Gaussian, Epsilon: 1, Delta: 1}, {Epsilon: 1, Degrees: 65}, {Law: Laplace, Epsilon: 1, Delta: .1, Degrees: 2}, {Law: 9, Epsilon: 1},
		{Epsilon: MinEpsilon * .99}, {Law: Laplace, Epsilon: 4.01, Delta: .1}, {Law: Gaussian, Epsilon: 16, Delta: 1e-9}, {Epsilon: math.Inf(1)}, {Law: Laplace, Epsilon: 1, Delta: math.NaN()}} {
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
	for _, p := range []Proposal{{}, {Bound: 1, Delta: .1}, {Epsilon: noise.Eps(1), Delta: .1}, {Bound: 1, Epsilon: noise.Eps(1)}, {Bound: Grid / 2, Epsilon: noise.Eps(1), Delta: .1}, {Bound: 1.1, Epsilon: noise.Eps(1), Delta: .1},
		{Bound: math.NaN(), Epsilon: noise.Eps(1), Delta: .1}, {Bound: 1, Epsilon: noise.Eps(.01), Delta: .1}} {
		if _, err := p.Release(unit, x, s); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, beta := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, _, err := unit.Median(x, beta); !errors.Is(err, ErrSettings) {
			t.Errorf("beta %v: %v", beta, err)
		}
	}
	if out, err := good.Release(unit, []float64{math.NaN(), math.Inf(1), math.Inf(-1)}, s); err != nil || out < 0 || out > 1 {
		t.Errorf("values that are none: %v, %v", out, err)
	}
}

// TestAnyTable: whatever the values and the range are, also one value, and numbers that are none, a release refuses its settings, or is a number of the range.
func TestAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324}))
		end := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{-math.MaxFloat64, -1e300, 0, 5e-324, 1, 1 + 0x1p-52, 1e15, 1e300, math.Inf(1)}))
		a, b := end.Draw(t, "a"), end.Draw(t, "b")
		r, values, s := Range{min(a, b), max(a, b)}, rapid.SliceOfN(number, 1, 5).Draw(t, "values"), noise.Seeded(rapid.Uint64().Draw(t, "seed"))
		n := rapid.SampledFrom([]Noise{{Epsilon: MinEpsilon, Degrees: 1}, {Epsilon: MaxEpsilon, Degrees: 64}, {Law: Laplace, Epsilon: MinEpsilon, Delta: 5e-324}, {Law: Laplace, Epsilon: MaxApproximate, Delta: 1 - 0x1p-53},
			{Law: Gaussian, Epsilon: MinEpsilon, Delta: 1e-300}, {Law: LaplaceLogNormal, Epsilon: MaxEpsilon}}).Draw(t, "noise")
		check := func(out float64, err error) {
			if err == nil && !(out >= r.Low && out <= r.High) || err != nil && !errors.Is(err, ErrSettings) && !errors.Is(err, ErrRefused) {
				t.Fatalf("%v, %v", out, err)
			}
		}
		check(n.Release(r, values, s))
		check(Proposal{Bound: (r.High - r.Low) / 2, Epsilon: noise.Eps(MinEpsilon), Delta: 1 - 0x1p-53}.Release(r, values, s))
	})
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

// TestFilled: what noise is made of has digits below the last of its integers, where it is small above all, and of the law that it should have: at 2 binary
// digits 20,000 filled normal variables are no farther from the normal law than a lattice's steps bend it, 0.002, and bare ones are much farther (false
// alarm 1e-6).
func TestFilled(t *testing.T) {
	s := noise.Seeded(41)
	small := map[float64]bool{}
	for range 1000 {
		x := filled(0, s)
		if !(math.Abs(x) < .5) || x == 0 {
			t.Fatalf("%v", x)
		}
		small[x] = true
	}
	if len(small) < 1000 {
		t.Errorf("%d different values of 1000", len(small))
	}
	const count, scale = 20_000, 4
	values, bare := make([]float64, count), make([]float64, count)
	for i := range values {
		z := noise.RoundedNormal(s, scale)
		values[i], bare[i] = filled(z, s)/scale, float64(z)/scale
	}
	far := func(values []float64) (most float64) {
		slices.Sort(values)
		for i, x := range values {
			p := 1 - normalUpper(x)
			most = max(most, math.Abs(p-float64(i)/count), math.Abs(p-float64(i+1)/count))
		}
		return most
	}
	limit := math.Sqrt(math.Log(2/1e-6)/(2*count)) + .002
	if a, b := far(values), far(bare); a > limit || b < limit {
		t.Errorf("filled variables are %v from the normal law, bare ones %v, want %v between", a, b, limit)
	}
}

func normalUpper(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }

// TestRoundingIsPaid: noise is drawn for less than the epsilon and the delta that were asked for, by what rounding costs.
func TestRoundingIsPaid(t *testing.T) {
	for _, n := range []Noise{{Epsilon: MinEpsilon}, {Epsilon: 1, Degrees: 1}, {Law: Laplace, Epsilon: 1, Delta: 1e-6}, {Law: Gaussian, Epsilon: 4, Delta: .1}, {Law: LaplaceLogNormal, Epsilon: 1}} {
		strict := n.strict()
		if n.Epsilon-strict.Epsilon != Rounding || n.Delta > 0 && !(math.Abs(math.Log(n.Delta/strict.Delta)/Rounding-1) < 1e-6) || n.Beta() != strict.beta() || strict.check() != nil && n.Epsilon > MinEpsilon {
			t.Errorf("%+v: %+v", n, strict)
		}
		// A stream at a median's table, by hand: the release has the strict scale.
		x := []float64{.5}
		sensitivity, median, err := unit.Median(x, strict.beta())
		if err != nil {
			t.Fatal(err)
		}
		want := unit.rounded(median + sensitivity*strict.scale()*n.draw(noise.Seeded(3)))
		if got, err := n.Release(unit, x, noise.Seeded(3)); err != nil || got != want {
			t.Errorf("%+v: %v, %v; want %v", n, got, err, want)
		}
	}
}
