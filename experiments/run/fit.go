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
	return Student(0.975, float64(freedom))
}

// normalFreedom is from how many degrees of freedom on Student's t is taken for normal: six standard errors are then less than a thousandth off, and its quantile is
// not computed well beyond.
const normalFreedom = 1e5

// Student is the quantile of Student's t with so many degrees of freedom, which need not be whole.
func Student(p, freedom float64) float64 {
	if freedom > normalFreedom {
		return distuv.UnitNormal.Quantile(p)
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(p)
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

// Slope is the slope of ln y on ln x by least squares, and its standard error, where each y is the mean of a row: from the rows' spreads, not from how far points are off a
// line. So few points have an error too, and those of an expected curve that is no line have none from its bend.
func Slope(x []float64, y []Row) (slope, standard float64) {
	lx, ly := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		lx[i], ly[i] = math.Log(x[i]), math.Log(y[i].Mean)
	}
	_, slope = stat.LinearRegression(lx, ly, nil, false)
	center, spread, variance := stat.Mean(lx, nil), 0.0, 0.0
	for _, v := range lx {
		spread += (v - center) * (v - center)
	}
	for i, r := range y {
		part := (lx[i] - center) / spread * r.SD / r.Mean
		variance += part * part / float64(r.Repetitions)
	}
	return slope, math.Sqrt(variance)
}
