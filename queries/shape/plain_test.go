package shape

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

// lawOfMean is of a mean of n values, each from 0 to levels in steps of one, divided by levels: its law, by convolution.
func lawOfMean(n int, law []float64) []float64 {
	mass := []float64{1}
	for range n {
		next := make([]float64, len(mass)+len(law)-1)
		for i, a := range mass {
			for j, b := range law {
				next[i+j] += a * b
			}
		}
		mass = next
	}
	return mass
}

// deviates reports whether a released number is as far from the null as value is, in the direction of the alternative.
func deviates(x, value, null float64, alternative Alternative) bool {
	const near = 1e-9
	switch alternative {
	case Greater:
		return x >= value-near
	case Less:
		return x <= value+near
	}
	return math.Abs(x-null) >= math.Abs(value-null)-near
}

// exactly is the probability of a deviation at least as large as value's, from the law of a mean of levels steps and, by the normal law, noise.
func exactly(mass []float64, sigma, value, null float64, alternative Alternative) (p float64) {
	last := float64(len(mass) - 1)
	for k, m := range mass {
		x := float64(k) / last
		if sigma == 0 {
			if deviates(x, value, null, alternative) {
				p += m
			}
			continue
		}
		noise := distuv.Normal{Mu: x, Sigma: sigma}
		away := math.Abs(value - null)
		switch alternative {
		case Greater:
			p += m * tailAbove(noise, value)
		case Less:
			p += m * (1 - tailAbove(noise, math.Nextafter(value, 2)))
		default:
			p += m * (tailAbove(noise, null+away) + 1 - tailAbove(noise, math.Nextafter(null-away, 2)))
		}
	}
	return min(p, 1)
}

// tailAbove is the probability that a number that is clipped to [0,1] is at least x.
func tailAbove(law distuv.Normal, x float64) float64 {
	switch {
	case x <= 0:
		return 1
	case x > 1:
		return 0
	}
	return law.Survival(x)
}

var everyAlternative = []Alternative{TwoSided, Greater, Less}

// TestProportionPValue: by enumeration, without noise and with it: the p-value of a share of rows is the probability, under the binomial law, of all that is as far away, wherever that is a unit or more beyond the null; nearer, and with noise, it is no
// smaller, and no larger than that of a mean. A two-sided one that takes the larger instead of the smaller of 1 and the sum, or a sum that leaves the count 0 out, is noticed.
func TestProportionPValue(t *testing.T) {
	for _, n := range []int{1, 20} {
		for _, null := range []float64{0.01, 0.1, 0.5, 0.97} {
			mass := lawOfMean(n, []float64{1 - null, null})
			for _, sigma := range []float64{0, 0.003, 0.1} {
				for count := range n + 1 {
					value := float64(count) / float64(n)
					for _, alternative := range everyAlternative {
						f := freshness{int64(n), sigma}
						got := upper(f.reaches).pValue(value, null, alternative)
						want, most := exactly(mass, sigma, value, null, alternative), *upper(f.meanReaches).pValue(value, null, alternative)
						if sigma == 0 && farAway(float64(n), value, null, alternative) {
							most = want
						}
						if got == nil || *got < want*(1-2e-6)-1e-15 || *got > most*(1+2e-6)+1e-15 {
							t.Errorf("%v of %d, null %v, noise %v, %s: %v, want between %v and %v", value, n, null, sigma, alternative, show(got), want, most)
						}
					}
				}
			}
		}
	}
	for _, null := range []float64{-0.1, 0, 1, 1.1, math.NaN()} {
		if p := upper(freshness{20, 0}.reaches).pValue(0.5, null, TwoSided); p != nil {
			t.Errorf("the null %v leaves nothing to chance, and p = %v", null, *p)
		}
	}
}

// farAway reports whether all counts that deviate as much as value are a unit or more beyond the expectation.
func farAway(n, value, null float64, alternative Alternative) bool {
	away := value - null
	if alternative == TwoSided {
		away = math.Abs(away)
	}
	beyond := func(null, away float64) bool { // of counts above
		x := math.Ceil(n*(null+away) - 1e-6)
		return away >= 0 && (x >= n*null+1-1e-9 || x > n)
	}
	switch alternative {
	case Greater:
		return beyond(null, away)
	case Less:
		return beyond(1-null, -away)
	}
	return beyond(null, away) && beyond(1-null, away)
}

// TestMeanPValue: by enumeration: a mean's p-value is no smaller than the probability of all that is as far away under any of these laws of numbers in [0,1], and without
// noise no more than e times the binomial one (for each side), nor than Hoeffding's bound. Both hold together for n in the hundreds and nulls near 0, where a normal law is several times
// too small.
func TestMeanPValue(t *testing.T) {
	for _, n := range []int{20, 200} {
		for _, null := range []float64{0.001, 0.01, 0.1, 0.5, 0.9} {
			laws := map[string][]float64{"yes or no": {1 - null, null}}
			if null <= 0.5 {
				laws["halves"] = []float64{1 - 2*null, 2 * null, 0}
				laws["thirds"] = []float64{1 - 1.5*null, 0.75 * null, 0.75 * null, 0}
			}
			binomial := lawOfMean(n, laws["yes or no"])
			for name, law := range laws {
				mass := lawOfMean(n, law)
				mean := 0.0
				for j, p := range law {
					mean += p * float64(j) / float64(len(law)-1)
				}
				steps := len(mass) - 1
				for _, sigma := range []float64{0, 0.02} {
					for k := 0; k <= steps; k += 1 + steps/40 {
						value := float64(k) / float64(steps)
						for _, alternative := range everyAlternative {
							got := upper(freshness{int64(n), sigma}.meanReaches).pValue(value, mean, alternative)
							if want := exactly(mass, sigma, value, mean, alternative); got == nil || *got < want*(1-2e-6)-1e-17 {
								t.Errorf("%s, n=%d, null %v, noise %v, %v, %s: p = %v, but as much is %v probable", name, n, mean, sigma, value, alternative, show(got), want)
							}
							if name != "yes or no" || sigma > 0 || alternative != Greater {
								continue
							}
							tail := exactly(binomial, 0, value, null, alternative)
							if chernoff := math.Exp(-float64(n) * divergence(value, null)); *got > math.E*tail*(1+1e-6)+1e-16 || value > null && *got > chernoff*(1+1e-6)+1e-16 {
								t.Errorf("n=%d, null %v, %v: p = %v, while the binomial tail is %v and Chernoff's bound %v", n, null, value, *got, tail, chernoff)
							}
						}
					}
				}
			}
		}
	}
}

// divergence is that of Bernoulli laws, from p to q.
func divergence(p, q float64) float64 {
	d := 0.0
	if p > 0 {
		d += p * math.Log(p/q)
	}
	if p < 1 {
		d += (1 - p) * math.Log((1-p)/(1-q))
	}
	return d
}

// TestMeanPValueWithMuchNoise: where the noise is most of the law, the p-value is near that of the noise: what the bound costs is paid for the sampling alone.
func TestMeanPValueWithMuchNoise(t *testing.T) {
	const n, sigma, null = 10_000, 0.05, 0.4
	for _, z := range []float64{0.5, 2, 4} {
		got := upper(freshness{n, sigma}.meanReaches).pValue(null+z*sigma, null, TwoSided)
		if want := 2 * distuv.UnitNormal.Survival(z); *got < want || *got > 1.6*want {
			t.Errorf("at %v: %v, the noise alone %v", z, *got, want)
		}
	}
}

// TestCellsPValue: the p-value of cells is the least of the cells' own, times their number; with a cell that cannot be, and one that is all.
func TestCellsPValue(t *testing.T) {
	quiet, noisy := freshness{1000, 0}, freshness{1000, 0.01}
	null := []float64{0.001, 0.3, 0.699}
	for _, f := range []freshness{quiet, noisy} {
		for _, values := range [][]float64{{0.004, 0.296, 0.7}, {0.001, 0.3, 0.699}, {0, 0.35, 0.65}} {
			least := 1.0
			for i, v := range values {
				least = min(least, *upper(f.reaches).pValue(v, null[i], TwoSided))
			}
			if got := cellsPValue(slices.Repeat([]freshness{f}, len(null)), OfShare, values, null); *got != min(1, 3*least) {
				t.Errorf("%+v, %v: %v, want %v", f, values, *got, 3*least)
			}
		}
	}
	for _, c := range []struct {
		f    freshness
		null []float64
		want float64
	}{
		{quiet, []float64{0.5, 0.5, 0}, 0},
		{quiet, []float64{1, 0, 0}, 0},
		{noisy, []float64{0.85, 0.15, 0}, 3 * distuv.UnitNormal.Survival(5)},
	} {
		if got := cellsPValue(slices.Repeat([]freshness{c.f}, 3), OfShare, []float64{0.8, 0.15, 0.05}, c.null); math.Abs(*got-c.want) > 1e-3*c.want+1e-15 {
			t.Errorf("%v: %v, want %v", c.null, *got, c.want)
		}
	}
}

// TestPlainPValuesAreValid: under true nulls, rare events among them, p <= u has a probability of at most u: exactly, by enumeration of the counts, where there is no noise. For
// cells, of one sample or, as under split, each of a sample of its own, with noise or without, it is simulated (false alarm 1e-6 each, fixed seeds). Laws that are
// wrong are noticed: the normal law of a mean, Pearson's chi-square of rare cells, and p-values that forget the noise.
func TestPlainPValuesAreValid(t *testing.T) {
	levels := []float64{1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5}
	normal := func(n int, null, value float64) float64 {
		return min(1, 2*distuv.UnitNormal.Survival(math.Abs(value-null)/math.Sqrt(null*(1-null)/float64(n))))
	}
	caught := 0
	for _, n := range []int{200, 300, 1000} {
		for _, null := range []float64{0.001, 0.01, 0.05, 0.3} {
			f, mass := freshness{int64(n), 0}, lawOfMean(n, []float64{1 - null, null})
			means, exacts := make([]float64, n+1), make([]float64, n+1)
			for k, m := range mass {
				if m < 1e-12 { // far below all levels, whatever their p-values are
					continue
				}
				value := float64(k) / float64(n)
				means[k], exacts[k] = *upper(f.meanReaches).pValue(value, null, TwoSided), *upper(f.reaches).pValue(value, null, TwoSided)
			}
			for _, u := range levels {
				var mean, share, wrong float64
				for k, m := range mass {
					if means[k] <= u {
						mean += m
					}
					if exacts[k] <= u {
						share += m
					}
					if normal(n, null, float64(k)/float64(n)) <= u {
						wrong += m
					}
				}
				if mean > u*(1+1e-6) || share > u*(1+1e-6) {
					t.Errorf("n=%d, null %v: p <= %v with probability %v for means, %v for shares", n, null, u, mean, share)
				}
				if wrong > 2*u {
					caught++
				}
			}
		}
	}
	if caught < 5 {
		t.Errorf("a normal law is twice too small at %d levels only: this test shows nothing", caught)
	}
	const runs, n = 1000, 400
	r := rand.New(rand.NewPCG(1, 2))
	for _, null := range [][]float64{{0.001, 0.001, 0.998}, {0.01, 0.04, 0.95}, {0.2, 0.3, 0.5}} {
		for _, c := range []struct {
			sigma float64
			split bool
		}{{0, false}, {0.002, false}, {0.02, false}, {0, true}} {
			f, below := freshness{n, c.sigma}, map[string]int{}
			for range runs {
				values, left, rest := make([]float64, 3), float64(n), 1.0
				for i, p := range null {
					count := left
					if c.split {
						count = distuv.Binomial{N: n, P: p, Src: r}.Rand()
					} else if i < 2 {
						count = distuv.Binomial{N: left, P: min(p/rest, 1), Src: r}.Rand()
					}
					left, rest = left-count, rest-p
					values[i] = min(max(count/n+c.sigma*r.NormFloat64(), 0), 1)
				}
				for name, p := range map[string]float64{
					"cells":   *cellsPValue(slices.Repeat([]freshness{f}, len(null)), OfShare, values, null),
					"forgets": *cellsPValue(slices.Repeat([]freshness{{n, 0}}, len(null)), OfShare, values, null),
				} {
					for _, u := range levels {
						if p <= u {
							below[fmt.Sprintf("%s %v", name, u)]++
						}
					}
				}
			}
			for _, u := range levels {
				if err := stattest.AtMost(below[fmt.Sprintf("cells %v", u)], runs, u, 1e-6); err != nil {
					t.Errorf("%v, %+v: p <= %v: %v", null, c, u, err)
				}
			}
			if err := stattest.AtMost(below["forgets 0.01"], runs, 0.01, 1e-6); (c.sigma == 0.02) != (err != nil) && c.sigma != 0.002 {
				t.Errorf("%v, %+v: a p-value that forgets the noise: %v", null, c, err)
			}
			if !c.split && null[0] > 0.1 && below["cells 0.2"] < runs/25 {
				t.Errorf("%v, %+v: p <= 0.2 in only %d of %d", null, c, below["cells 0.2"], runs)
			}
		}
	}
}

// lawOfSum is of the sum of independent values that differ, each of 0 to len-1 by its own law: by convolution.
func lawOfSum(laws [][]float64) []float64 {
	mass := []float64{1}
	for _, law := range laws {
		next := make([]float64, len(mass)+len(law)-1)
		for i, a := range mass {
			for j, b := range law {
				next[i+j] += a * b
			}
		}
		mass = next
	}
	return mass
}

// TestPlainPValuesOfUnitsThatDiffer: exactly, for units of which each has a law of its own: p <= u has a probability of at most u at each u that a p-value may be, of shares and of means, with noise and without. Rare units that are 1 beside
// others that surely are not (or are) make a binomial tail up to 1.95 times too small. Of cells each by itself is a share.
func TestPlainPValuesOfUnitsThatDiffer(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	yesNo := func(p ...float64) (laws [][]float64) {
		for _, p := range p {
			laws = append(laws, []float64{1 - p, p})
		}
		return laws
	}
	var designs [][][]float64
	for _, c := range []struct {
		n, ones int
		q       float64
	}{{1000, 0, 0.01}, {1000, 0, 0.05}, {1000, 0, 0.1}, {1000, 0, 0.3}, {1000, 0, 0.999}, {10, 0, 0.05}, {2, 0, 0.999}, {3, 1, 0.9}, {1000, 1, 0.9}, {1000, 500, 0.999}} {
		p := make([]float64, c.n)
		for i := range c.ones {
			p[i] = 1
		}
		p[c.ones] = c.q
		designs = append(designs, yesNo(p...))
	}
	for range 200 {
		p := make([]float64, 1+r.IntN(9))
		for i := range p {
			p[i] = []float64{0, 1, r.Float64(), math.Exp(-5 * r.Float64()), 1 - math.Exp(-5*r.Float64())}[r.IntN(5)]
		}
		designs = append(designs, yesNo(p...))
	}
	for range 200 { // values 0, 1/3, 2/3 and 1
		var laws [][]float64
		for range 1 + r.IntN(7) {
			law, sum := make([]float64, 4), 0.0
			for j := range law {
				law[j] = []float64{0, r.Float64(), math.Exp(-5 * r.Float64())}[r.IntN(3)]
				sum += law[j]
			}
			if sum == 0 {
				law[0], sum = 1, 1
			}
			for j := range law {
				law[j] /= sum
			}
			laws = append(laws, law)
		}
		designs = append(designs, laws)
	}
	worst, binomial := map[string]float64{}, 0.0
	for _, laws := range designs {
		n, mass, null := len(laws), lawOfSum(laws), 0.0
		for k, m := range mass {
			null += m * float64(k) / float64(len(mass)-1)
		}
		if !(null > 1e-9 && null < 1-1e-9) {
			continue
		}
		for _, sigma := range []float64{0, 0.3 / float64(n), 0.1} {
			f := freshness{int64(n), sigma}
			tails := map[string]upper{"mean": f.meanReaches}
			if len(laws[0]) == 2 {
				tails["share"] = f.reaches
			}
			step := 1 + (len(mass)-1)/30
			for name, tail := range tails {
				for k := range mass {
					value := float64(k) / float64(len(mass)-1)
					if k%step != 0 && math.Abs(value-null)*float64(len(mass)-1) > 2 {
						continue
					}
					for _, alternative := range everyAlternative {
						p := *tail.pValue(value, null, alternative)
						probability := exactly(mass, sigma, value, null, alternative)
						if name == "share" && sigma == 0 && probability > 1e-12 {
							b := exactly(lawOfMean(n, []float64{1 - null, null}), 0, value, null, alternative)
							binomial = max(binomial, probability/b)
						}
						if probability < 1e-12 || p == 1 {
							continue
						}
						reached := probability / p
						worst[fmt.Sprint(name, ", noise ", sigma > 0)] = max(worst[fmt.Sprint(name, ", noise ", sigma > 0)], reached)
						if reached > 1+1e-6 {
							t.Errorf("%d units that differ, noise %v, %s: p = %v for %s of %v, null %v, which is %v probable", n, sigma, alternative, p, name, value, null, probability)
						}
					}
				}
			}
		}
	}
	t.Logf("largest probability divided by p: %v; by the binomial law's %.3f", worst, binomial)
	if len(worst) != 4 || binomial < 1.9 {
		t.Errorf("%v; the binomial law is short by no more than %v: the designs are too tame", worst, binomial)
	}
}

// TestHingeIsTheLeast: the bound of a count of s or more is the least of E(B-t)+/(s-t) over all t below s, found here by trying, from the
// binomial law itself; the least over fractions of one is nowhere below it, for it is at a whole t.
func TestHingeIsTheLeast(t *testing.T) {
	for _, n := range []int64{5, 20, 60} {
		for _, null := range []float64{0.05, 0.3, 0.5, 0.9} {
			f := freshness{units: n}
			c := f.counts(null)
			b := distuv.Binomial{N: float64(n), P: null}
			mass := make([]float64, n+1)
			for k := range mass {
				mass[k] = b.Prob(float64(k))
			}
			at := 0
			for s := math.Floor(float64(n)*null) + 1; s <= float64(n); s += 0.5 {
				var got float64
				got, at = c.hinge(s, at)
				least := 1.0
				for x := s - 0.25; x > -2; x -= 0.25 {
					over := 0.0
					for k, m := range mass {
						over += max(float64(k)-x, 0) * m
					}
					least = min(least, over/(s-x))
				}
				if got < least*(1-1e-9) || got > least*(1+1e-9)+c.outside {
					t.Errorf("n=%d, null %v, s=%v: %v, the least is %v", n, null, s, got, least)
				}
			}
		}
	}
}

// show is a p-value in an error.
func show(x *float64) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprint(*x)
}
