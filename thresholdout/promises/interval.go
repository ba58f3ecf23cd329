package promises

import "math"

// Interval is that of an answer whose promise held: answer is the noisy mean of phi or D, in their own units, and width is W_f. Where the
// variance alone counts it is answer ± 2 sqrt(V) W_f. Ends are rounded outward and clipped to the range; a step of the grid is the
// caller's. The answer is clipped to what the promise allows, which brings it no further from the mean.
//
// A target mu outside it has |answer-mu| >= 2 sqrt(v(mu)) W_f with v(mu) = max(V, sup over s <= |answer-mu| of s^2/(2 R(s))), R the rate of the tail
// at mu on the answer's side. The ends are the outermost mu for which that is not so.
func (p Promise) Interval(answer, width float64) (low, high float64) {
	u := p.bound()
	width *= 1 + 1e-9
	switch p.Kind {
	case SmallMean:
		answer = min(max(answer, 0), u)
		low = p.end(answer, 0, width, func(mu, t float64) float64 { return square(t) / (2 * kl(mu+t, mu)) })
		high = p.end(answer, 1, width, func(mu, t float64) float64 { return downVariance(mu, t, u) })
	case Disagreement:
		answer = min(max(answer, -u), u)
		low = p.end(answer, -1, width, func(mu, t float64) float64 { return largestRatio(mu, t, u) })
		high = p.end(answer, 1, width, func(mu, t float64) float64 { return largestRatio(-mu, t, u) })
	case Variance:
		answer = min(max(answer, 0), 1)
		low = p.end(answer, 0, width, func(mu, t float64) float64 { return largestVarianceRatio(t, p.V(), mu) })
		high = p.end(answer, 1, width, func(mu, t float64) float64 { return largestVarianceRatio(t, p.V(), 1-mu) })
	default:
		return math.Inf(-1), math.Inf(1)
	}
	return low, high
}

func square(x float64) float64 { return x * x }

// scanSteps is how many places between the answer ± 2 sqrt(V) W and the range's end are looked at for the outermost mu that is not excluded.
const scanSteps = 64

// end is the outermost mu between the answer and the limit of the range that is not excluded; variance(mu, t) is the supremum of s^2/(2R(s)) over
// s <= t.
func (p Promise) end(answer, limit, width float64, variance func(mu, t float64) float64) float64 {
	excluded := func(mu float64) bool {
		t := math.Abs(answer - mu)
		return t > 2*math.Sqrt(max(p.V(), variance(mu, t)))*width
	}
	from := answer + math.Copysign(2*math.Sqrt(p.V())*width, limit-answer)
	if (limit-answer)*(limit-from) <= 0 || !excluded(limit) {
		return limit
	}
	in, out := from, limit
	for i := range scanSteps { // from outside inward
		mu := limit + (from-limit)*float64(i+1)/scanSteps
		if !excluded(mu) {
			in = mu
			break
		}
		out = mu
	}
	for range 100 {
		mu := (in + out) / 2
		if math.Abs(in-out) < 1e-13 || mu == in || mu == out {
			break
		}
		if excluded(mu) {
			out = mu
		} else {
			in = mu
		}
	}
	return out
}

// downVariance is the supremum for a small mean below mu: V is enough for mu <= u. Above, no sample has a mean above u, so that the rate is flat
// up to t = mu-u; from there on it is kl(mu-t||mu), and t^2/(2 kl) falls where mu-t is below 1-mu.
func downVariance(mu, t, u float64) float64 {
	if mu <= u {
		return 0
	}
	if mu >= 1 {
		return 0 // every sample's mean is 1
	}
	if mu <= 1-u {
		t = min(t, mu-u)
		return square(t) / (2 * kl(u, mu))
	}
	if t <= mu-u {
		return square(t) / (2 * kl(u, mu))
	}
	if t >= 2*mu-1 {
		return (2*mu - 1) / (2 * math.Log(mu/(1-mu)))
	}
	return square(t) / (2 * kl(mu-t, mu))
}

// largestRatio is the supremum over s <= t of s^2/(2 R(s)), R the rate of a disagreement's mean of mu+s. For mu >= 0 it is at an end; for
// mu < 0 the ratio rises to one peak, which is searched for.
func largestRatio(mu, t, u float64) float64 {
	ratio := func(s float64) float64 {
		r := disagreementRate(mu+s, mu, u)
		if !(r > 0) {
			return 0
		}
		return s * s / (2 * r)
	}
	if t <= 0 {
		return 0
	}
	end := ratio(t)
	if mu >= 0 {
		return end
	}
	lo, hi := 1e-3*t, min(t, u-mu) // below, the ratio is next to u-mu^2, less than V
	best := max(end, ratio(hi))
	const golden = 0.6180339887498949
	x, y := hi-golden*(hi-lo), lo+golden*(hi-lo)
	fx, fy := ratio(x), ratio(y)
	for range 40 {
		best = max(best, fx, fy)
		if fx < fy {
			lo, x, fx = x, y, fy
			y = lo + golden*(hi-lo)
			fy = ratio(y)
		} else {
			hi, y, fy = y, x, fx
			x = hi - golden*(hi-lo)
			fx = ratio(x)
		}
	}
	return best * (1 + 1e-9)
}

// largestVarianceRatio is the supremum over s <= t of s^2/(2 R(s)), R the rate of a deviation of s with a variance of at most v, b as there: the ratio rises
// with s (docs/proofs/promises.md, section 5).
func largestVarianceRatio(t, v, b float64) float64 {
	if r := varianceRate(t, v, b); r > 0 && !math.IsInf(r, 1) {
		return max(v, t*t/(2*r))
	}
	return v
}
