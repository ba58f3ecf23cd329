package account

import (
	"math"
	"testing"
)

func made(t *testing.T) func(p PLD, err error) PLD {
	return func(p PLD, err error) PLD {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// TestPLDOfGaussians: k Gaussians are one of mu·sqrt(k), whose curve is known exactly. The account is never below it, and above it by at most 2e-5 of delta
// and 2e-6 of epsilon, however small delta is: it is the steps of losses that are seen, and no rounding.
func TestPLDOfGaussians(t *testing.T) {
	for _, c := range []struct {
		multiplier float64
		k          int
	}{{1, 1}, {.5, 1}, {5, 30}, {20, 1000}, {2, 10}} {
		pld := made(t)(made(t)(GaussianPLD(c.multiplier)).Times(c.k))
		exact := GDP(math.Sqrt(float64(c.k)) / c.multiplier)
		for _, eps := range []float64{0, .1, .5, 1, 2, 4, 8} {
			got, want := pld.Delta(eps), exact.Delta(eps)
			if want > 1e-18 && !(got >= want && got <= want*(1+2e-5)) {
				t.Errorf("%+v: delta(%v) is %v, exactly %v", c, eps, got, want)
			}
		}
		for _, delta := range []float64{1e-3, 1e-5, 1e-8, 1e-12, 1e-16} {
			got, want := pld.Epsilon(delta), exact.Epsilon(delta)
			if !(got >= want*(1-1e-12) && got <= want*(1+2e-6)) {
				t.Errorf("%+v: epsilon(%v) is %v, exactly %v", c, delta, got, want)
			}
		}
	}
}

// TestPLDOfPure: k releases of which no more is known than epsilon are what the optimal composition says.
func TestPLDOfPure(t *testing.T) {
	for _, c := range []Pure{{Epsilon: .1, K: 100}, {Epsilon: 1, K: 7}, {Epsilon: .01, K: 1000}, {Epsilon: .1, Delta: 1e-7, K: 100}} {
		pld := made(t)(made(t)(PurePLD(c.Epsilon, c.Delta)).Times(c.K))
		for _, eps := range []float64{0, .25, .5, 1, 2.05, 4.8} {
			got, want := pld.Delta(eps), c.OptimalDelta(eps)
			if want > 1e-18 && !(got >= want*(1-1e-12) && got <= want*(1+5e-5)) {
				t.Errorf("%+v: delta(%v) is %v, exactly %v", c, eps, got, want)
			}
		}
	}
}

// TestPLDRoundsUp: the losses of k randomized responses are a binomial law, which is known to the last digits. No mass is below it, but for what was cut off
// and counts as infinite, by either way of composing, and above it are at most a millionth down to 1e-20, where an untilted transform has no digit. Masses that are not rounded up are noticed, and
// so are those without tilts.
func TestPLDRoundsUp(t *testing.T) {
	const eps, k, steps = .25, 200, 2500 // steps of PLDStep
	one := made(t)(PurePLD(eps, 0))
	composed := made(t)(one.Times(k / 2))
	for name, pld := range map[string]PLD{"power": made(t)(one.Times(k)), "convolution": made(t)(composed.Compose(composed))} {
		l, seen := pld.forth, 0
		for truths := range k + 1 {
			log := lchoose(k, truths) - float64(truths)*math.Log1p(math.Exp(-eps)) - float64(k-truths)*math.Log1p(math.Exp(eps))
			want, at, got := math.Exp(log), (2*truths-k)*steps-l.first, 0.0
			for i := max(0, at-20); i <= min(len(l.p)-1, at+20); i++ { // an atom at a step is split between it and the next one, by roundings
				got += l.p[i]
			}
			if truths < k/2 || want < 1e-20 {
				continue
			}
			seen++
			if got+l.infinity < want*(1-1e-11) || got > want*(1+1e-6) {
				t.Errorf("%s, %d truths: a mass of %v, exactly %v", name, truths, got, want)
			}
		}
		if seen < 50 {
			t.Errorf("%s: %d masses were compared", name, seen)
		}
	}
}

func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// TestPLDReference holds it against dp_accounting: a whole grid of mechanisms, compositions and deltas, to 6 digits of epsilon where it says that many;
// both round losses to steps of 1e-4 and err on the safe side.
func TestPLDReference(t *testing.T) {
	largest := 0.0
	check := func(r reference, of func(PLD) PLD, name string) {
		got, want := of(PLD{}).Epsilon(r.in("delta")), r.expected(t, name)
		off := math.Abs(got/want - 1)
		if largest = max(largest, off); off > 1e-6 {
			t.Errorf("%s %v: epsilon %v, dp_accounting says %v", r.Name, r.Inputs, got, want)
		}
	}
	each(t, "pld_gaussian", 12, func(r reference) {
		check(r, func(PLD) PLD { return made(t)(made(t)(GaussianPLD(r.in("sigma"))).Times(int(r.in("k")))) }, "")
	})
	each(t, "pld_laplace", 12, func(r reference) {
		check(r, func(PLD) PLD { return made(t)(made(t)(LaplacePLD(r.in("scale"))).Times(int(r.in("k")))) }, "")
	})
	each(t, "pld_subsampled", 12, func(r reference) {
		check(r, func(PLD) PLD {
			return made(t)(made(t)(SubsampledGaussianPLD(r.in("q"), r.in("sigma"))).Times(int(r.in("k"))))
		}, "")
	})
	each(t, "pld_mixed", 4, func(r reference) {
		check(r, func(PLD) PLD {
			p := made(t)(made(t)(GaussianPLD(r.in("sigma"))).Times(int(r.in("k"))))
			p = made(t)(p.Compose(made(t)(made(t)(LaplacePLD(r.in("scale"))).Times(int(r.in("k"))))))
			return made(t)(p.Compose(made(t)(SubsampledGaussianPLD(r.in("q"), r.in("sigma")))))
		}, "")
	})
	t.Logf("largest relative difference of epsilon: %.2g", largest)
}

// TestPLDIsAnUpperBound: more releases lose more, a smaller rate less, and what RDP and moments say is never less than what the distribution does.
func TestPLDIsAnUpperBound(t *testing.T) {
	for _, rate := range []float64{.01, .1, 1} {
		pld := made(t)(SubsampledGaussianPLD(rate, 1.5))
		before := 0.0
		for _, k := range []int{1, 100} {
			rdp := NewRDP()
			rdp.SubsampledGaussian(rate, 1.5, k)
			loose, _ := rdp.Epsilon(1e-6)
			tight := made(t)(pld.Times(k)).Epsilon(1e-6)
			if tight > loose || tight < before {
				t.Errorf("rate %v, %d steps: epsilon %v, RDP says %v, fewer steps %v", rate, k, tight, loose, before)
			}
			before = tight
		}
	}
}

// TestPLDEnds: mass is kept, what is beyond the steps is lost, and so much that nothing is left is an error and not a number.
func TestPLDEnds(t *testing.T) {
	pld := made(t)(made(t)(SubsampledGaussianPLD(.2, .7)).Times(50))
	for _, l := range []losses{pld.forth, pld.back} {
		sum := l.infinity
		for _, mass := range l.p {
			sum += mass
		}
		if math.Abs(sum-1) > 1e-7 {
			t.Errorf("the masses sum to %v", sum)
		}
	}
	if eps := pld.Epsilon(0); !math.IsInf(eps, 1) {
		t.Errorf("at delta 0 epsilon is %v", eps)
	}
	if eps := pld.Epsilon(1); eps != 0 {
		t.Errorf("at delta 1 epsilon is %v", eps)
	}
	nothing, one := PLD{}, made(t)(LaplacePLD(2))
	if nothing.Delta(0) != 0 || nothing.Epsilon(0) != 0 || made(t)(nothing.Times(5)).Delta(0) != 0 || made(t)(made(t)(nothing.Compose(one)).Compose(nothing)).Delta(.1) != one.Delta(.1) {
		t.Error("nothing released is not nothing lost")
	}
	if _, err := GaussianPLD(1e-3); err == nil {
		t.Error("a multiplier of 0.001 was accounted for")
	}
	if _, err := made(t)(GaussianPLD(.1)).Times(100_000); err == nil {
		t.Error("100,000 releases at a multiplier of .1 were accounted for")
	}
}

func BenchmarkPLD(b *testing.B) {
	p, err := SubsampledGaussianPLD(.01, 1.1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Times(1000); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPLDOfBothDirections: a removed row and an added one lose differently, and what counts is the larger, which near epsilon 0 and far from it need not be
// the same. Both are the integral of the definition, by Simpson's rule, to 1e-6. An account of one direction alone is noticed.
func TestPLDOfBothDirections(t *testing.T) {
	const rate, sigma = .3, .8
	pld := made(t)(SubsampledGaussianPLD(rate, sigma))
	normal := func(x, mean float64) float64 {
		z := (x - mean) / sigma
		return math.Exp(-z*z/2) / (sigma * math.Sqrt(2*math.Pi))
	}
	plain := func(x float64) float64 { return normal(x, 0) }
	mixed := func(x float64) float64 { return (1-rate)*normal(x, 0) + rate*normal(x, 1) }
	hockey := func(p, q func(float64) float64, eps float64) (sum float64) {
		const n, low, high = 200_000, -10., 11.
		for i := range n + 1 {
			x, weight := low+(high-low)*float64(i)/n, 2.
			if i == 0 || i == n {
				weight = 1
			} else if i%2 == 1 {
				weight = 4
			}
			sum += weight * max(0, p(x)-math.Exp(eps)*q(x))
		}
		return sum * (high - low) / n / 3
	}
	differ := false
	for _, eps := range []float64{0, .1, .3, 1, 2} {
		remove, add := hockey(mixed, plain, eps), hockey(plain, mixed, eps)
		if got, want := pld.Delta(eps), max(remove, add); math.Abs(got-want) > 1e-6 {
			t.Errorf("delta(%v) is %v, by the definition %v", eps, got, want)
		}
		differ = differ || remove > add+1e-3
	}
	if !differ {
		t.Error("the directions are alike here: the test would not notice that one is forgotten")
	}
}
