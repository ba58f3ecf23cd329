package bounds

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/minimum"
)

// Transfer is the half-width of k simultaneous intervals around Gaussian answers by a bound that adds two parts: how far
// answers are from the sample's means, and those from the population's.
type Transfer struct {
	HalfWidth  float64
	Sigma      float64 // the best constant noise
	Noise      float64 // part
	Adaptivity float64 // part: sampling and adaptivity together
}

// transferKey is what a Transfer depends on.
type transferKey struct {
	bound string
	n, k  int64
	beta  float64
}

var transfers memo[transferKey, Transfer]

// bestTransfer minimises over the noise: at returns the half-width's parts for a logarithm of sigma.
func bestTransfer(bound string, n, k int64, beta float64, at func(logSigma float64) (noise, adaptivity float64)) (Transfer, error) {
	if err := check(n, k, beta); err != nil {
		return Transfer{}, err
	}
	key := transferKey{bound, n, k, beta}
	if t, ok := transfers.remembered(key); ok {
		return t, nil
	}
	// W sqrt(n) at its best grows like k^(1/4) and so does the noise, until noise of sqrt(k)/n is needed for any privacy.
	rows, questions := float64(n), float64(k)
	low := math.Pow(questions, 0.25) / math.Sqrt(rows)
	high := max(low, math.Sqrt(questions)/rows)
	x, _ := minimum.Scanned(func(x float64) float64 {
		noise, adaptivity := at(x)
		return noise + adaptivity
	}, math.Log(low)-4, math.Log(high)+4, 24, precise)
	t := Transfer{Sigma: math.Exp(x)}
	t.Noise, t.Adaptivity = at(x)
	t.HalfWidth = t.Noise + t.Adaptivity
	transfers.remember(key, t)
	return t, nil
}

// zcdp is the price of one Gaussian answer about a mean of n values in [0,1], neighbours differing in one row.
func zcdp(n, sigma float64) float64 { return 1 / (2 * n * n * sigma * sigma) }

// tailNoise is sigma sqrt(2 ln(4k/b)): the noise term of the bounds that use the Gaussian tail bound for 2k events of
// probability b/2 in all. The public code of several papers has half of it, which does not cover the noise.
func tailNoise(k, b, sigma float64) float64 { return sigma * math.Sqrt(2*math.Log(4*k/b)) }

// zcdpEps is eps of a rho-zCDP mechanism at delta (Bun, Steinke, arXiv 1605.02065, lemma 3.6).
func zcdpEps(rho, delta float64) float64 {
	v := math.Sqrt(math.Pi*rho) / delta
	if v < math.E {
		v = 1 / delta
	}
	return rho + 2*math.Sqrt(rho*math.Log(max(v, 1)))
}

// BNSSSU is the bound of Bassily, Nissim, Smith, Steinke, Stemmer and Ullman (arXiv 1511.02513, monitor argument over
// 1/beta runs) with zCDP accounting.
func BNSSSU(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	runs := max(1, math.Floor(1/beta+1e-9)) // any number of runs gives a valid bound; 1-0.95 is a little above 0.05
	scale := -math.Expm1(runs * math.Log1p(-beta))
	return bestTransfer("bnsssu", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		rho := questions * zcdp(rows, sigma)
		noise := func(delta float64) float64 { return tailNoise(questions, delta, sigma) / scale }
		rest := func(delta float64) float64 { return (math.Expm1(zcdpEps(rho, delta)) + 2*runs*delta) / scale }
		x, _ := minimum.Scanned(func(x float64) float64 {
			delta := math.Exp(x)
			return noise(delta) + rest(delta)
		}, math.Log(beta)-60, 0, 30, precise)
		return noise(math.Exp(x)), rest(math.Exp(x))
	})
}

// DFHPRR is the transfer theorem of Dwork, Feldman, Hardt, Pitassi, Reingold and Roth (arXiv 1411.2664) as computed by the
// public code of Rogers et al. (AISTATS 2020), with noise that covers.
func DFHPRR(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	floor := 2 * math.Sqrt(48/rows*math.Log(8/beta))
	t, err := bestTransfer("dfhprr", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		x := questions * zcdp(rows, sigma)
		r := largestRoot(-8*x, 16*x*x-32*x*math.Log(math.Pi*x), -64*x*math.Log(1/beta))
		return tailNoise(questions, beta, sigma), r
	})
	if err == nil && t.HalfWidth < floor {
		t.HalfWidth, t.Adaptivity = floor, floor-t.Noise
	}
	return t, err
}

// largestRoot is the largest real root of r^3 + a r^2 + b r + c.
func largestRoot(a, b, c float64) float64 {
	value := func(r float64) float64 { return ((r+a)*r+b)*r + c }
	hi := 1 + max(math.Abs(a), math.Abs(b), math.Abs(c)) // Cauchy's bound
	lo := -hi
	// Where there is a valley and its bottom is not above 0, the largest root is right of it; else there is one root only.
	if inner := a*a - 3*b; inner >= 0 {
		if bottom := (-a + math.Sqrt(inner)) / 3; value(bottom) <= 0 {
			lo = bottom
		}
	}
	for range 200 {
		middle := (lo + hi) / 2
		if middle <= lo || middle >= hi {
			break
		}
		if value(middle) > 0 {
			hi = middle
		} else {
			lo = middle
		}
	}
	return hi
}

// RZ is the bound from mutual information (Russo, Zou, arXiv 1511.05219) in the form of Rogers et al. (AISTATS 2020, theorem
// 2.1), with noise that covers: Chebyshev's inequality on the largest deviation's square, whose mean is at most
// min over 0 < lambda < 1 of (2I - ln(1-lambda))/(4 n lambda), with I = rho n.
func RZ(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	return bestTransfer("rz", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		twice := 2 * questions * zcdp(rows, sigma) * rows
		return tailNoise(questions, beta, sigma), math.Sqrt(leastSquare(twice) / (2 * rows * beta))
	})
}

// leastSquare is min over 0 < lambda < 1 of (x - ln(1-lambda))/lambda = 1/(1-lambda) where lambda/(1-lambda) =
// x - ln(1-lambda): with y = 1/(1-lambda), the root of y = 1 + x + ln y. y-ln y is convex, so Newton's method from above
// the root stays there.
func leastSquare(x float64) float64 {
	y := 2*x + 3
	for range 100 {
		next := y - (y-1-x-math.Log(y))/(1-1/y)
		if !(next < y*(1-1e-15)) {
			break
		}
		y = next
	}
	return y
}

// XR is the bound of Xu and Raginsky (arXiv 1705.07809) from mutual information, in nats, with noise that covers.
func XR(n, k int64, beta float64) (Transfer, error) {
	rows, questions := float64(n), float64(k)
	return bestTransfer("xr", n, k, beta, func(logSigma float64) (float64, float64) {
		sigma := math.Exp(logSigma)
		information := questions * zcdp(rows, sigma) * rows
		return tailNoise(questions, beta, sigma), math.Sqrt(2 / rows * (2*information/beta + math.Log(4/beta)))
	})
}

// checkNoise refuses what is no standard deviation.
func checkNoise(sigma float64) error {
	if !(sigma > 0) || math.IsInf(sigma, 0) {
		return fmt.Errorf("bounds: sigma %v is not a positive number", sigma)
	}
	return nil
}
