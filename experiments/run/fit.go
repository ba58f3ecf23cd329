package run

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// studentQuantile is the 97.5% quantile of Student's t, 0 without degrees of freedom (one value tells no spread).
func studentQuantile(freedom int) float64 {
	if freedom < 1 {
		return 0
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(freedom)}.Quantile(0.975)
}

// FitExponent is the slope of ln y on ln x by least squares; its interval takes the residuals for normal.
func FitExponent(method, of string, x, y []float64) Fit {
	lx, ly := make([]float64, len(x)), make([]float64, len(y))
	for i := range x {
		lx[i], ly[i] = math.Log(x[i]), math.Log(y[i])
	}
	intercept, slope := stat.LinearRegression(lx, ly, nil, false)
	residual, spread, center := 0.0, 0.0, stat.Mean(lx, nil)
	for i := range lx {
		r := ly[i] - intercept - slope*lx[i]
		residual += r * r
		spread += (lx[i] - center) * (lx[i] - center)
	}
	standard := math.Sqrt(residual / float64(len(x)-2) / spread)
	half := studentQuantile(len(x)-2) * standard
	return Fit{Method: method, Of: of, Exponent: slope, Error: standard, Low: slope - half, High: slope + half, Points: len(x), Freedom: len(x) - 2}
}

// JackknifeExponent is the slope of ln y on ln x by least squares, where every y is made of the same number of repetitions. points returns them without one
// repetition, or of all for -1. The standard error is the jackknife's: it knows what repetitions differ by, also where points share their rows,
// and nothing of how well a line fits.
func JackknifeExponent(method, of string, repetitions int, points func(without int) (x, y []float64)) Fit {
	x, y := points(-1)
	f := FitExponent(method, of, x, y)
	if repetitions < 2 {
		return f
	}
	slopes := make([]float64, repetitions)
	for i := range slopes {
		x, y := points(i)
		slopes[i] = FitExponent(method, of, x, y).Exponent
	}
	_, sd := stat.MeanStdDev(slopes, nil)
	f.Error, f.Freedom = sd*float64(repetitions-1)/math.Sqrt(float64(repetitions)), repetitions-1
	half := studentQuantile(f.Freedom) * f.Error
	f.Low, f.High = f.Exponent-half, f.Exponent+half
	return f
}

// Against compares the exponent with an expected one, that may be off by what the expectation leaves open.
func (f Fit) Against(what string, expected, allowed float64) checks.Comparison {
	return checks.Slope(what, expected, allowed, f.Exponent, f.Error, f.Freedom)
}
