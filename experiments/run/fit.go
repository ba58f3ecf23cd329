package run

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
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
	return Fit{Method: method, Of: of, Exponent: slope, Error: standard, Low: slope - half, High: slope + half, Points: len(x)}
}
