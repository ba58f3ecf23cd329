// Package binomial has the tails of the binomial law, and the probabilities that a count does not contradict (Clopper and Pearson),
// without underflow and cancellation far out in the tails.
//
// Counts and numbers of trials are whole numbers in a float64, n >= 1. A level is the logarithm of a small probability, with its
// sign turned: ln(1/alpha) for alpha.
package binomial

import "math"

// KL is the divergence of Bernoulli(q) from Bernoulli(p), in nats. q is in [0,1], p strictly between.
func KL(q, p float64) float64 { return divergence(q, 1-q, p, 1-p) }

// divergence is KL where the complements are known too: beside 1 they have digits that q and p have lost.
func divergence(q, notQ, p, notP float64) float64 {
	if q == p {
		return 0
	}
	d := q - p
	if p > 0.5 {
		d = notP - notQ
	}
	sum := 0.0
	if q > 0 {
		sum += q * logRatio(q, p, d)
	}
	if notQ > 0 {
		sum += notQ * logRatio(notQ, notP, -d)
	}
	return max(0, sum)
}

// logRatio is ln(a/b), d = a-b: by the difference, so that close numbers lose no digits; by the ratio where a is far below b, for there the
// difference, rounded to -b, would make it infinite.
func logRatio(a, b, d float64) float64 {
	if d < -b/2 {
		return math.Log(a / b)
	}
	return math.Log1p(d / b)
}

// LogUpper is ln P(Bin(n,p) >= count), 0 < count <= n, for 0 < p < count/n. It takes about sqrt(n) steps, and is off by 1e-11 at most up
// to 2^26 trials.
func LogUpper(n, count, p float64) float64 {
	log, _ := logUpper(n, count, p, 1-p)
	return log
}

// LogProbability is ln P(Bin(n,p) = count).
func LogProbability(n, count, p float64) float64 {
	return logPeak(n, count) - n*divergence(count/n, (n-count)/n, p, 1-p)
}

// Low is the lower end of Clopper and Pearson's interval: the p with P(Bin(n,p) >= count) = e^-level, from below. A true
// probability below it would make so large a count rarer than that. It is 0 for count = 0, and at most count/n.
func Low(n, count, level float64) float64 {
	if count <= 0 {
		return 0
	}
	return min(math.Nextafter(math.Exp(logLow(n, count, level)), 0), count/n)
}

// High is the upper end: the p with P(Bin(n,p) <= count) = e^-level, from above; 1 for count = n.
func High(n, count, level float64) float64 {
	if count >= n {
		return 1
	}
	high := -math.Expm1(logLow(n, n-count, level)) // failures are counted: a small High keeps its digits
	return max(math.Nextafter(high, 1), count/n)
}

// slack is by how much larger a level is taken than asked, so that rounding errors make no interval narrower.
const slack = 1e-8

// newtonSteps are far more than any root takes: up to 46 for 2^36 trials.
const newtonSteps = 200

// logLow is ln Low, count > 0. As a function of ln p the logarithm of the tail rises and is concave, for that of the beta density of ln p is.
// So Newton's method from the left stays on the left of the root, and its slope is a by-product of the tail.
func logLow(n, count, level float64) float64 {
	if count == n {
		return -level / n // the tail is p^n
	}
	level += slack
	most := logShare(n, count)          // beyond it the count is no surprise
	log := -level/count - math.Log(n+1) // the tail is at most p^count C(n,count) <= (p (n+1))^count
	for range newtonSteps {
		tail, fraction := logUpper(n, count, math.Exp(log), -math.Expm1(log))
		if math.IsInf(tail, -1) {
			break // p is no float64: Low is 0
		}
		next := min(log+(-level-tail)*-math.Expm1(log)*fraction/count, most)
		if !(next > log+1e-15*math.Abs(log)) {
			break
		}
		log = next
	}
	return log
}

// logUpper is LogUpper, q = 1-p, and the continued fraction (Lentz) of the incomplete beta function I_p(count, n-count+1) that it is
// made of; it converges quickly on this side of the mean.
func logUpper(n, count, p, q float64) (log, fraction float64) {
	a, b := count, n-count+1
	const tiny = 1e-300
	c, d := 1.0, 1/nonZero(1-(a+b)*p/(a+1), tiny)
	fraction = d
	for i := 1.0; i < 1e7; i++ {
		even := i * (b - i) * p / ((a + 2*i - 1) * (a + 2*i))
		d = 1 / nonZero(1+even*d, tiny)
		c = nonZero(1+even/c, tiny)
		fraction *= d * c
		odd := -(a + i) * (a + b + i) * p / ((a + 2*i) * (a + 2*i + 1))
		d = 1 / nonZero(1+odd*d, tiny)
		c = nonZero(1+odd/c, tiny)
		fraction *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	// p^a q^b/(a B(a,b)) = C(n,count) r^count (1-r)^(n-count) e^(-n kl(r||p)) q with r = count/n.
	return logPeak(n, count) - n*divergence(count/n, (n-count)/n, p, q) + math.Log(q) + math.Log(fraction), fraction
}

// logShare is ln(count/n), with all digits near 0 too.
func logShare(n, count float64) float64 {
	if count > n/2 {
		return math.Log1p(-(n - count) / n)
	}
	return math.Log(count / n)
}

func nonZero(x, tiny float64) float64 {
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}

// logPeak is ln of C(n,x) (x/n)^x (1-x/n)^(n-x), by Stirling's formula with its error terms, since logarithms of factorials
// cancel.
func logPeak(n, x float64) float64 {
	if x == 0 || x == n {
		return 0
	}
	return (math.Log(n/(2*math.Pi*x))-math.Log(n-x))/2 + stirlingError(n) - stirlingError(x) - stirlingError(n-x)
}

// stirlingError is ln n! - ln(sqrt(2 pi n) (n/e)^n), n >= 1.
func stirlingError(n float64) float64 {
	if n < 16 {
		g, _ := math.Lgamma(n + 1)
		return g - (n+0.5)*math.Log(n) + n - math.Log(2*math.Pi)/2
	}
	y := 1 / (n * n)
	return (1.0/12 - y*(1.0/360-y*(1.0/1260-y*(1.0/1680-y/1188)))) / n
}
