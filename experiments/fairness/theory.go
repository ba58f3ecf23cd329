package fairness

import "math"

// expected is what exact answers make of rules, on average.
type expected struct {
	told float64 // the gap that is told
	left float64 // the gap that is left
}

// expect is the mean of both where the first of the rules are tried, in a holdout with m flights of the subgroup. About rule g there are T of them, binomial with the rule's share, and the model is wrong about W,
// binomial with its error: the answer counts max(W, T-W) of them, and the rule is kept if W > T-W. Rules add up, though their flights are not independent. A holdout of n flights
// has not just its mean of them in the subgroup; that moves the mean gap by a part in n, and others' accuracy by nothing.
func (t truth) expect(tried int, m float64) expected {
	own, left := 0.0, 0.0
	for rule, share := range t.about {
		if rule >= tried {
			own += share * t.accuracy[rule]
			left += share * t.accuracy[rule]
			continue
		}
		wrong := 1 - t.accuracy[rule]
		larger, kept := 0.0, 0.0
		each(int(math.Round(m)), share, func(flown int, p float64) {
			each(flown, wrong, func(w int, q float64) {
				larger += p * q * float64(max(w, flown-w))
				if 2*w > flown {
					kept += p * q
				}
			})
		})
		own += larger / m
		left += share * (t.accuracy[rule] + kept*(2*wrong-1))
	}
	return expected{told: t.others - own, left: t.others - left}
}

// each goes through the binomial law of n trials: all outcomes but for a probability below 1e-15.
func each(n int, p float64, f func(count int, probability float64)) {
	if p <= 0 || p >= 1 {
		f(int(math.Round(float64(n)*p)), 1)
		return
	}
	log := func(k int) float64 {
		all, _ := math.Lgamma(float64(n) + 1)
		in, _ := math.Lgamma(float64(k) + 1)
		out, _ := math.Lgamma(float64(n-k) + 1)
		return all - in - out + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
	}
	mode := min(n, int(float64(n+1)*p))
	top := math.Exp(log(mode))
	const least = 1e-18
	odds := p / (1 - p)
	for k, v := mode, top; k <= n && v > least; k++ {
		f(k, v)
		v *= float64(n-k) / float64(k+1) * odds
	}
	for k, v := mode, top; k > 0; {
		v *= float64(k) / (float64(n-k+1) * odds)
		if k--; v <= least {
			break
		}
		f(k, v)
	}
}
