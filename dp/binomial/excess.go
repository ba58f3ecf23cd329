package binomial

import "math"

// logExcess is ln E(X - t)_+ of X of the law Bin(n,p), for n p <= t < n and 0 < p < 1: how far X is beyond t, on average, where it is beyond it at all. It is -Inf for t >= n. It takes about sqrt(n) steps, and is
// off by 1e-10 at most up to 2^26 trials.
func logExcess(n, t, p float64) float64 {
	if t >= n {
		return math.Inf(-1)
	}
	first := math.Floor(t) + 1
	// Terms (j-t) P(X = j), in units of the first probability: beyond the mean the quotient of neighbouring probabilities is below 1, and falls.
	odds := p / (1 - p)
	probability, sum := 1.0, first-t
	for j := first; j < n; j++ {
		quotient := (n - j) / (j + 1) * odds
		probability *= quotient
		term := (j + 1 - t) * probability
		sum += term
		// What is left is at most that of a geometric law: sum over i >= 1 of (j+1-t+i) quotient^i.
		if rest := quotient / (1 - quotient); quotient < 1 && term*rest*(1+rest) < 1e-13*sum {
			break
		}
	}
	return LogProbability(n, first, p) + math.Log(sum)
}

// LowOfExcess is the largest p, up to t/n, with E(X - t)_+ <= e^-level for X of the law Bin(n,p), from below: 0 for t <= 0. A true probability below it would make an X that is beyond t, on average by so much, rarer than that.
func LowOfExcess(n, t, level float64) float64 {
	switch {
	case !(t > 0):
		return 0
	case t >= n: // X is never beyond
		return 1
	}
	level += slack
	if logExcess(n, t, t/n) <= -level {
		return t / n
	}
	// E(X-t)_+ <= n P(X >= first) <= n (n p)^first, so that it is small enough at the low end. Both are logarithms of p.
	first, high := math.Floor(t)+1, math.Log(t/n)
	low := min(-level/first-math.Log(n)*(1+1/first), high)
	for range bisections {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			break
		}
		if logExcess(n, t, math.Exp(mid)) <= -level {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Nextafter(math.Exp(low), 0)
}

// bisections of the logarithm of a probability are enough for its every digit.
const bisections = 200
