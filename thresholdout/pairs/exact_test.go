package pairs

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// TestExactQuantile enumerates counts of few units that are not alike: each side of what may be printed misses with probability at most e^-E, all
// outcomes together, for passes and failures of any points. Red for a count more, for an open interval, and for E that pays for both sides.
func TestExactQuantile(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{12, 17}))
	worst, together := 0.0, 0.0
	for range 700 {
		n := 1 + r.IntN(9)
		p, level := r.Float64(), 0.3+3*r.Float64()
		values := 2 + r.IntN(3)
		laws := make([][]float64, n) // of each unit
		mean := make([]float64, values)
		for i := range laws {
			laws[i] = make([]float64, values)
			sum := 0.0
			for v := range laws[i] {
				laws[i][v] = math.Exp(-4 * r.Float64())
				sum += laws[i][v]
			}
			for v := range laws[i] {
				laws[i][v] /= sum
				mean[v] += laws[i][v] / float64(n)
			}
			if i > 0 && r.IntN(2) == 0 { // often alike
				for v := range laws[i] {
					mean[v] += (laws[0][v] - laws[i][v]) / float64(n)
				}
				laws[i] = laws[0]
			}
		}
		// The quantile's ends: the least x with F(x) >= p, the largest with F(x-) <= p.
		least, most, f := -1, 0, 0.0
		for v := range values {
			if f <= p {
				most = v
			}
			if f += mean[v]; f >= p && least < 0 {
				least = v
			}
		}
		if least < 0 {
			continue // rounding
		}
		q := Quantile{P: p, Ranks: []Span{{r.IntN(values), values - 1}}}
		for v := range values {
			q.Points = append(q.Points, float64(v))
		}
		q.Ranks[0].High = q.Ranks[0].Low + r.IntN(values-q.Ranks[0].Low)
		below, above := 0.0, 0.0
		count := make([]int64, values)
		var walk func(i int, probability float64)
		walk = func(i int, probability float64) {
			if i == n {
				c := QuantileCounts{Unit: 1, N: int64(n)}
				sum := int64(0)
				for _, k := range count {
					c.Below = append(c.Below, sum)
					sum += k
					c.Upto = append(c.Upto, sum)
				}
				o, err := q.Outcome(c, level)
				if err != nil {
					t.Fatal(err)
				}
				low, high := q.Interval(o)
				if low > float64(least) {
					below += probability
				}
				if high < float64(most) {
					above += probability
				}
				return
			}
			for v, w := range laws[i] {
				count[v]++
				walk(i+1, probability*w)
				count[v]--
			}
		}
		if math.Pow(float64(values), float64(n)) > 5000 {
			continue
		}
		walk(0, 1)
		reached := max(below, above) * math.Exp(level)
		if reached > 1+1e-6 {
			t.Fatalf("a side misses with %v times e^-%v: p=%v, laws %v, %+v", reached, level, p, laws, q)
		}
		worst = max(worst, reached)
		// Both sides together, where a pass is read as what misses on one.
		q.OneSide = true
		below, above = 0, 0
		walk(0, 1)
		both := (below + above) * math.Exp(level) / 2
		if both > 1+1e-6 {
			t.Fatalf("both sides miss with %v times 2 e^-%v: p=%v, laws %v, %+v", both, level, p, laws, q)
		}
		together = max(together, both)
	}
	t.Logf("largest probability times e^E: %.4f; of both sides together, of what may be: %.4f", worst, together)
	if worst < 0.6 || together < 0.6 {
		t.Errorf("the bound is reached to %v and %v only: the search is too weak", worst, together)
	}
}

// TestFailuresOfQuantilesMissOnBothSides: half of the units are at 0 and half at 1, so that the median is all that is between, and a guess of 2 fails. What a failure prints misses below and above alike; both together are
// within what the question may miss by, at every level.
func TestFailuresOfQuantilesMissOnBothSides(t *testing.T) {
	const n = 20
	q := Quantile{P: 0.5, Points: []float64{0, 1, 2}, Ranks: []Span{{2, 2}}, OneSide: true}
	worst := 0.0
	for level := 1.0; level < 12; level += 0.05 {
		missed := 0.0
		for zeros := int64(0); zeros <= n; zeros++ {
			o, err := q.Outcome(QuantileCounts{Unit: 1, N: n, Below: []int64{0, zeros, n}, Upto: []int64{zeros, n, n}}, level)
			if err != nil {
				t.Fatal(err)
			}
			if low, high := q.Interval(o); low > 0 || high < 1 {
				missed += math.Exp(binomialLog(n, zeros)) / (1 << n)
			}
		}
		worst = max(worst, missed*math.Exp(level)/2)
	}
	t.Logf("largest probability, of what may be: %.4f", worst)
	if worst > 1 || worst < 0.04 {
		t.Errorf("failures miss with %v of what may be; each side has a twentieth", worst)
	}
}

// binomialLog is the logarithm of n choose k.
func binomialLog(n, k int64) float64 {
	log := func(x int64) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	return log(n) - log(k) - log(n-k)
}

// TestExactMatchings enumerates few units of two classes: an AUC above its expectation by so much is as improbable as the matchings say. Red for more
// pairs than the smaller class has units.
func TestExactMatchings(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{13, 17}))
	worst, more := 0.0, 0.0
	for range 120 {
		n1, n0, values := 1+r.IntN(4), 1+r.IntN(4), 2+r.IntN(2)
		law := func() []float64 {
			w, sum := make([]float64, values), 0.0
			for v := range w {
				w[v] = math.Exp(-5 * r.Float64())
				sum += w[v]
			}
			for v := range w {
				w[v] /= sum
			}
			return w
		}
		p1, p0 := law(), law()
		truth := 0.0
		for a, x := range p1 {
			for b, y := range p0 {
				truth += x * y * float64(1+sign(a-b)) / 2
			}
		}
		level := 0.3 + 3*r.Float64()
		missed, wider := 0.0, 0.0
		first, second := make([]int64, values), make([]int64, values)
		var walk func(i int, probability float64)
		walk = func(i int, probability float64) {
			if i == n1+n0 {
				s, err := AUC(first, second)
				if err != nil {
					t.Fatal(err)
				}
				h, _, _, _ := s.Moments()
				if low, _ := Matchings(h, h, float64(min(n1, n0)), level); low > truth {
					missed += probability
				}
				if low, _ := Matchings(h, h, float64(max(n1, n0)), level); low > truth {
					wider += probability
				}
				return
			}
			of, p := first, p1
			if i >= n1 {
				of, p = second, p0
			}
			for v, w := range p {
				of[v]++
				walk(i+1, probability*w)
				of[v]--
			}
		}
		walk(0, 1)
		if missed*math.Exp(level) > 1+1e-9 {
			t.Fatalf("the low end misses with %v times e^-%v", missed*math.Exp(level), level)
		}
		worst, more = max(worst, missed*math.Exp(level)), max(more, wider*math.Exp(level))
	}
	t.Logf("largest probability times e^E: %.4f; with the larger class %.4f", worst, more)
	if more <= 1 {
		t.Error("the larger class's number of pairs goes unnoticed")
	}
}

func sign(x int) int {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// TestSumsOfPairs: cumulated counts are what a loop over all pairs of units says.
func TestSumsOfPairs(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{14, 17}))
	for range 300 {
		rows, columns := 1+r.IntN(4), 1+r.IntN(4)
		draw := func() (table [][]int64, units [][2]int) {
			for i := range rows {
				table = append(table, make([]int64, columns))
				for j := range columns {
					k := r.IntN(3)
					table[i][j] = int64(k)
					for range k {
						units = append(units, [2]int{i, j})
					}
				}
			}
			return table, units
		}
		first, x := draw()
		second, y := draw()
		if len(x) == 0 || len(y) == 0 {
			continue
		}
		for name, f := range map[string]struct {
			build  func(a, b [][]int64) (Sums, error)
			kernel func(a, b int) float64
		}{
			"difference": {AUCDifference, func(a, b int) float64 { return (float64(a-b)/2 + 1) / 2 }},
			"kendall":    {Kendall, func(a, b int) float64 { return (float64(a*b) + 1) / 2 }},
		} {
			s, err := f.build(first, second)
			if err != nil {
				t.Fatal(err)
			}
			var h, v, v1, v0 float64
			n1, n0 := float64(len(x)), float64(len(y))
			rowMean, columnMean := make([]float64, len(x)), make([]float64, len(y))
			for i, a := range x {
				for j, b := range y {
					k := f.kernel(sign(a[0]-b[0]), sign(a[1]-b[1]))
					h += k / (n1 * n0)
					v += k * k / (n1 * n0)
					rowMean[i] += k / n0
					columnMean[j] += k / n1
				}
			}
			for _, m := range rowMean {
				v1 += (m - h) * (m - h) / n1
			}
			for _, m := range columnMean {
				v0 += (m - h) * (m - h) / n0
			}
			v -= h * h
			gh, g1, g0, g := s.Moments()
			for i, d := range []float64{gh - h, g1 - v1, g0 - v0, g - v} {
				if math.Abs(d) > 1e-12 {
					t.Fatalf("%s: moment %d is off by %v", name, i, d)
				}
			}
			h2, b1, b0, b := s.Swapped().Moments()
			if h2 != gh || b1 != g0 || b0 != g1 || b != g {
				t.Fatalf("%s: swapped %v %v %v %v", name, h2, b1, b0, b)
			}
		}
	}
}

// TestDeviationIsABound is the event D of the projection by enumeration of few units: given class 0, the standard deviation of E[k|y] is above w while
// the statement's variances hold with probability at most e^-E'. Red for w = sqrt(V0), and where class 0's number takes class 1's place.
func TestDeviationIsABound(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{15, 17}))
	worst := map[string]float64{}
	for range 3000 {
		n1, n0, kinds := 1+r.IntN(6), 2+r.IntN(3), 2+r.IntN(2)
		monotone := r.IntN(2) == 0
		k := make([][]float64, kinds) // k(x, y_j), for a fixed class 0
		p, sum := make([]float64, kinds), 0.0
		for x := range k {
			for range n0 {
				k[x] = append(k[x], []float64{r.Float64(), 0, 1}[r.IntN(3)])
			}
			if monotone {
				slices.Sort(k[x])
				slices.Reverse(k[x])
			}
			p[x] = math.Exp(-4 * r.Float64())
			sum += p[x]
		}
		expected := make([]float64, n0)
		for x := range k {
			p[x] /= sum
			for j := range n0 {
				expected[j] += p[x] * k[x][j]
			}
		}
		sd := math.Sqrt(variance(expected))
		level := 0.2 + 3*r.Float64()
		s := Statement{N1: float64(n1), Monotone: monotone}
		// The statement is that of a sample that is drawn.
		type sample struct{ p, v0, rest float64 }
		var all []sample
		count := make([]int, kinds)
		var walk func(x, left int, probability float64)
		walk = func(x, left int, probability float64) {
			if x == kinds-1 {
				count[x] = left
				probability *= math.Pow(p[x], float64(left))
				mean := make([]float64, n0)
				rest := 0.0
				for x, c := range count {
					for j := range n0 {
						mean[j] += float64(c) * k[x][j] / float64(n1)
					}
					rest += float64(c) / float64(n1) * variance(k[x])
				}
				all = append(all, sample{probability, variance(mean), rest})
				return
			}
			ways := 1.0
			for c := 0; c <= left; c++ {
				count[x] = c
				walk(x+1, left-c, probability*ways*math.Pow(p[x], float64(c)))
				ways *= float64(left-c) / float64(c+1)
			}
		}
		walk(0, n1, 1)
		at := all[r.IntN(len(all))]
		s.V0, s.Rest = at.v0*(1+1e-9), at.rest*(1+1e-9)
		probability := 0.0
		for _, x := range all {
			if x.v0 <= s.V0 && x.rest <= s.Rest {
				probability += x.p
			}
		}
		more := s
		more.N1 = float64(n1 + n0)
		for name, w := range map[string]float64{"as proved": s.deviation(level), "the sample's own": math.Sqrt(s.V0), "more units": more.deviation(level), "half of the level": s.deviation(0.5 * level)} {
			if sd > w {
				worst[name] = max(worst[name], probability*math.Exp(level))
			}
		}
	}
	t.Logf("largest probability times e^E': %v", worst)
	if worst["as proved"] > 1+1e-9 {
		t.Errorf("the deviation is above w with %v times what is allowed", worst["as proved"])
	}
	if worst["the sample's own"] <= 1 || worst["more units"] <= 1 {
		t.Errorf("faults go unnoticed: %v", worst)
	}
}

func variance(x []float64) (v float64) {
	mean := 0.0
	for _, y := range x {
		mean += y / float64(len(x))
	}
	for _, y := range x {
		v += (y - mean) * (y - mean) / float64(len(x))
	}
	return v
}

// TestProjectionCovers: means of a kernel over 600 units of the larger class and 40 of the smaller, at the edge of what a pass says, in simulation: the
// shares of a side at e^-E = 1/20 are kept (false alarm 1e-6). The interval for more units than the smaller class has misses in most runs.
func TestProjectionCovers(t *testing.T) {
	const n1, n0, runs = 40, 600, 500
	r := rand.New(rand.NewChaCha8([32]byte{16, 17}))
	level := math.Log(20)
	missed, wrong := 0, 0
	for range runs {
		first, second := make([]int64, 64), make([]int64, 64)
		bin := func(shift float64) int { return min(max(int(32+10*(r.NormFloat64()+shift)), 0), 63) }
		for range n1 {
			first[bin(0)]++
		}
		for range n0 {
			second[bin(0)]++
		}
		s, err := AUC(first, second)
		if err != nil {
			t.Fatal(err)
		}
		h, v1, v0, v := s.Moments()
		exact := Statement{N1: n1, N0: n0, V1: v1, V0: v0, Rest: v - v1, Monotone: true}
		low, high := exact.Interval(h, h, level, false)
		if low > 0.5 || high < 0.5 {
			missed++
		}
		exact.N1, exact.N0 = n1+n0, n1+n0 // the fault: as if all units were of both classes
		if low, high := exact.Interval(h, h, level, false); low > 0.5 || high < 0.5 {
			wrong++
		}
	}
	t.Logf("%d of %d miss; %d with the number of all units", missed, runs, wrong)
	if err := stattest.AtMost(missed, runs, 2*math.Exp(-level), 1e-6); err != nil {
		t.Error(err)
	}
	if stattest.AtMost(wrong, runs, 2*math.Exp(-level), 1e-6) == nil {
		t.Errorf("the number of all units goes unnoticed: %d", wrong)
	}
}

// TestPlannedPairsPass: an honest training part's plan passes at rank 1 in nearly all holdouts, and its intervals are what the design promised: within
// five times the textbook's.
func TestPlannedPairsPass(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{17, 17}))
	draw := func(n int) Sums {
		first, second := make([]int64, 256), make([]int64, 256)
		for range n {
			x := r.NormFloat64()
			if r.Float64() < 0.25 {
				first[min(max(int(128+30*(x+1.19)), 0), 255)]++
			} else {
				second[min(max(int(128+30*x), 0), 255)]++
			}
		}
		s, err := AUC(first, second)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const n, training = 6000, 14000
	u := moments.Urn{Questions: 110, Beta: 0.05}
	passed, failedExact := 0, 0
	for range 60 {
		of := draw(training)
		told := Training{N1: of.N1, N0: of.N0, All: training, Monotone: true}
		told.H, told.V1, told.V0, told.V = of.Moments()
		plan, err := Plan(told, n, moments.Deviations(110))
		if err != nil {
			t.Fatal(err)
		}
		s := draw(n)
		o, err := plan.Outcome(s)
		if err != nil {
			t.Fatal(err)
		}
		if o.Rank == 1 {
			passed++
		}
		low, high := plan.Interval(o, u.Level(0, 0, 0, 0))
		h, v1, v0, _ := s.Moments()
		textbook := 1.96 * math.Sqrt(v1/float64(s.N1)+v0/float64(s.N0))
		if o.Rank == 1 && (high-low)/2 > 5*textbook {
			t.Errorf("[%v, %v] is %v times the textbook's", low, high, (high-low)/2/textbook)
		}
		el, eh, err := plan.Exact(s, math.Log(2*110/0.05))
		if err != nil || !(el < h && h < eh) {
			t.Fatal(el, h, eh, err)
		}
		if (eh-el)/2 > 3*textbook {
			failedExact++
		}
	}
	if passed < 57 || failedExact > 3 {
		t.Errorf("%d of 60 honest questions pass at rank 1; %d exact intervals are wide", passed, failedExact)
	}
}

// TestSharesAddUp: a pass, the cells where the statement is true, the event D and the matchings have all of a side, and no more.
func TestSharesAddUp(t *testing.T) {
	sum := math.Exp(-passLevel) + math.Exp(-failedLevel) + math.Exp(-deviationLevel) + math.Exp(-matchingsLevel)
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the shares add up to %v", sum)
	}
	// A pass that is read as what misses on one side has its .8 of both sides' e^-E, once.
	s := Statement{N1: 900, N0: 4000, V1: 0.02, V0: 0.02, Rest: 0.1}
	const level = 7
	want, _ := s.low(0.7, level+passLevel-math.Ln2, level+deviationLevel)
	s.OneSide = true
	if low, _ := s.Interval(0.7, 0.8, level, false); low != want {
		t.Errorf("a pass ends at %v, want %v", low, want)
	}
	failed, _ := s.Interval(0.7, 0.8, level, true)
	s.OneSide = false
	if low, _ := s.Interval(0.7, 0.8, level, true); low != failed {
		t.Errorf("a failure ends at %v, want %v", failed, low)
	}
}

// TestPairIntervals: an interval is never wider than the matchings' share of it, moves outward with the level and with less said, and is no nonsense for
// tiny classes.
func TestPairIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Statement{N1: float64(rapid.Int64Range(1, 100000).Draw(t, "n1")), N0: float64(rapid.Int64Range(1, 100000).Draw(t, "n0")),
			V1: rapid.Float64Range(0, 0.1).Draw(t, "v1"), V0: rapid.Float64Range(0, 0.1).Draw(t, "v0"), Rest: rapid.Float64Range(0, 0.2).Draw(t, "rest"), Monotone: rapid.Bool().Draw(t, "monotone")}
		h, level := rapid.Float64Range(0, 1).Draw(t, "h"), rapid.Float64Range(0.5, 40).Draw(t, "level")
		low, high := s.Interval(h, h, level, false)
		if !(low >= 0 && low <= h && high >= h && high <= 1) {
			t.Fatalf("[%v, %v] around %v: %+v", low, high, h, s)
		}
		ml, mh := Matchings(h, h, min(s.N1, s.N0), level+matchingsLevel)
		if low < ml || high > mh {
			t.Fatalf("[%v, %v] is wider than the matchings' [%v, %v]", low, high, ml, mh)
		}
		more := s
		more.V1, more.V0, more.Rest = 1.1*s.V1, 1.1*s.V0, 1.1*s.Rest
		// The proof of the projection has a limit for the odds of a bet (largestOdds). Beyond it the matchings' end is read, which may be further out than the
		// projection's own for more variance.
		_, projectedLow := s.low(h, level+passLevel, level+deviationLevel)
		_, projectedHigh := s.mirror().low(1-h, level+passLevel, level+deviationLevel)
		for name, wider := range map[string]func() (float64, float64){
			"level":     func() (float64, float64) { return s.Interval(h, h, 1.1*level, false) },
			"failure":   func() (float64, float64) { return s.Interval(h, h, level, true) },
			"variances": func() (float64, float64) { return more.Interval(h, h, level, false) },
		} {
			if l, u := wider(); l > low+1e-9 && (projectedLow || name != "variances") || u < high-1e-9 && (projectedHigh || name != "variances") {
				t.Fatalf("%s: [%v, %v] is not around [%v, %v]: %+v", name, l, u, low, high, s)
			}
		}
	})
}

// TestRefused: tables that are none, checks that are no chain, and counts of no units.
func TestRefused(t *testing.T) {
	for _, x := range [][2][][]int64{{{{1}}, {{1}, {2}}}, {{{1, 2}}, {{1}}}, {{{-1}}, {{1}}}, {{}, {}}, {{{1, 2}, {3}}, {{1, 2}, {3}}}} {
		if s, err := Kendall(x[0], x[1]); err == nil {
			t.Errorf("%v: %+v", x, s)
		}
	}
	s, err := AUC([]int64{3, 4}, []int64{5, 6})
	if err != nil {
		t.Fatal(err)
	}
	good := Check{Guess: grid / 2, Ranks: []Rank{{1, 2, 2}, {2, 1, 1}}, Cells: 8}
	if o, err := good.Outcome(s); err != nil || !o.Failed() {
		t.Errorf("%+v, %v", o, err)
	}
	for name, change := range map[string]func(*Check){
		"margins that narrow":  func(c *Check) { c.Ranks[1].Away = 0 },
		"units that rise":      func(c *Check) { c.Ranks[1].N0 = 3 },
		"no ranks":             func(c *Check) { c.Ranks = nil },
		"no cells":             func(c *Check) { c.Cells = 0 },
		"a variance above 1/4": func(c *Check) { c.V0 = squares/4 + 1 },
	} {
		c := good
		c.Ranks = slices.Clone(good.Ranks)
		change(&c)
		if o, err := c.Outcome(s); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
	q := Quantile{P: 0.5, Points: []float64{0, 1, 2}, Ranks: []Span{{1, 1}, {0, 2}}}
	counts := QuantileCounts{Unit: 1, N: 9, Below: []int64{0, 4, 7}, Upto: []int64{1, 6, 9}}
	if _, err := q.Outcome(counts, 3); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Quantile, *QuantileCounts){
		"points that fall":      func(q *Quantile, _ *QuantileCounts) { q.Points = []float64{0, 2, 1} },
		"ranks that narrow":     func(q *Quantile, _ *QuantileCounts) { q.Ranks = []Span{{0, 2}, {1, 1}} },
		"a rank upside down":    func(q *Quantile, _ *QuantileCounts) { q.Ranks = []Span{{2, 1}} },
		"counts that fall":      func(_ *Quantile, c *QuantileCounts) { c.Below = []int64{0, 4, 3} },
		"counts of other units": func(_ *Quantile, c *QuantileCounts) { c.N = 8 },
		"a count less":          func(_ *Quantile, c *QuantileCounts) { c.Upto = c.Upto[1:] },
	} {
		q2, c2 := q, counts
		change(&q2, &c2)
		if o, err := q2.Outcome(c2, 3); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestOutcomesArePaidFor: over all samples of a small holdout a question's failures are no more than its price pays for, and what an outcome says is true.
func TestOutcomesArePaidFor(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{18, 17}))
	for range 100 {
		c := Check{Guess: r.Int64N(grid), Cells: 1 + r.Int64N(6), V1: r.Int64N(squares / 4), V0: r.Int64N(squares / 4), Rest: r.Int64N(squares / 4)}
		c.Ranks = []Rank{{Away: r.Int64N(grid / 4), N1: r.Int64N(4), N0: r.Int64N(4)}}
		if r.IntN(4) > 0 { // with a half-width of its own a check has one rank
			c.Ranks = append(c.Ranks, Rank{Away: 2 * c.Ranks[0].Away, N1: c.Ranks[0].N1 / 2, N0: c.Ranks[0].N0 / 2})
		}
		failures := map[Outcome]bool{}
		for range 500 {
			first, second := []int64{r.Int64N(3), r.Int64N(3), r.Int64N(3)}, []int64{r.Int64N(3), r.Int64N(3), r.Int64N(3)}
			s, err := AUC(first, second)
			if err != nil {
				t.Fatal(err)
			}
			o, err := c.Outcome(s)
			if err != nil {
				t.Fatal(err)
			}
			h, v1, v0, v := s.Moments()
			said := func(limit int64, got float64) bool { return got <= float64(limit)/squares+1e-12 }
			steady := said(c.V1, v1) && said(c.V0, v0) && said(c.Rest, v-v1)
			if o.Failed() {
				failures[o] = true
				if k := float64(c.Cells); o.Loss < 2 && (h < float64(o.Cell)/k-1e-12 || h > float64(o.Cell+1)/k+1e-12) || o.Loss == 0 && !steady || o.Loss < 2 && (s.N1 < c.Ranks[0].N1 || s.N0 < c.Ranks[0].N0) {
					t.Fatalf("%+v of %+v is not true: h=%v", o, c, h)
				}
			} else if rank := c.Ranks[o.Rank-1]; math.Abs(h-float64(c.Guess)/grid) > float64(rank.Away)/grid+1e-12 || s.N1 < rank.N1 || s.N0 < rank.N0 || o.Rank == 1 && !steady {
				t.Fatalf("%+v of %+v is not true: h=%v", o, c, h)
			}
		}
		if most := math.Exp(float64(c.Dearest()) / (1 << 20)); float64(len(failures)) > most+1e-3 {
			t.Fatalf("%d failures, %v are paid for", len(failures), most)
		}
	}
}

// TestQuantilePrice: a failure pays for every span that it may say, from G points.
func TestQuantilePrice(t *testing.T) {
	for g := 2; g < 40; g++ {
		spans := 0
		for low := range g {
			spans += g - low
		}
		if got := math.Exp(float64((Quantile{Points: make([]float64, g)}).Dearest()) / (1 << 20)); got < float64(spans) || got > float64(spans)*1.0001 {
			t.Errorf("%d points: %v things are paid for, there are %d", g, got, spans)
		}
	}
}
