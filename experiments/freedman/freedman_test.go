package freedman

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// TestLimits: the limits are the paper's numbers for its example.
func TestLimits(t *testing.T) {
	l := newLimits(orthonormal, 0.5)
	for _, c := range []struct {
		what            string
		got, want, near float64
	}{
		{"g", secondMomentKept(), 0.72, 0.005},
		{"E[Z^2 | |Z| > l]", secondMomentKept() / screeningLevel, 2.9, 0.05},
		{"R2", l.r2, 0.72 * 0.5, 0.005},
		{"F", l.f, 4.0, 0.05},
	} {
		if math.Abs(c.got-c.want) > c.near {
			t.Errorf("%s is %v, in the paper %v", c.what, c.got, c.want)
		}
	}
	// With nearly no regressors for each row, the designs are alike.
	a, b := newLimits(orthonormal, 1e-6), newLimits(independent, 1e-6)
	if math.Abs(a.f-b.f) > 1e-4 || math.Abs(a.significant-b.significant) > 1e-3 {
		t.Errorf("few regressors: orthonormal %+v, independent %+v", a, b)
	}
}

// TestLeastSquares: with one regressor the table is that of the textbook, and orthonormal columns are fitted alike by both ways.
func TestLeastSquares(t *testing.T) {
	x, y := []float64{1, 2, 4, 7, 11, 13}, []float64{2, 1, 5, 6, 9, 14}
	got, err := leastSquares(mat.NewDense(6, 1, x), y)
	if err != nil {
		t.Fatal(err)
	}
	alpha, beta := stat.LinearRegression(x, y, nil, false)
	if want := stat.RSquared(x, y, nil, alpha, beta); math.Abs(got.R2-want) > 1e-12 {
		t.Errorf("R2 %v, want %v", got.R2, want)
	}
	if want := got.R2 / (1 - got.R2) * 4; math.Abs(got.F-want) > 1e-9 {
		t.Errorf("F %v, want %v", got.F, want)
	}
	if math.Abs(got.P-got.p[0]) > 1e-9 { // F with one regressor is t^2
		t.Errorf("P of F %v, of t %v", got.P, got.p[0])
	}

	columns := mat.NewDense(4, 2, []float64{0.5, 0.5, -0.5, 0.5, 0.5, -0.5, -0.5, -0.5})
	response := []float64{3, 1, 4, 1}
	dense, err := leastSquares(columns, response)
	if err != nil {
		t.Fatal(err)
	}
	z, rest, mean := make([]float64, 2), 0.0, stat.Mean(response, nil)
	for j := range z {
		for i, v := range response {
			z[j] += v * columns.At(i, j)
		}
		rest -= z[j] * z[j]
	}
	for _, v := range response {
		rest += (v - mean) * (v - mean)
	}
	short := orthonormalRegression(4, z, rest)
	if math.Abs(dense.R2-short.R2) > 1e-12 || math.Abs(dense.P-short.P) > 1e-9 || math.Abs(dense.p[1]-short.p[1]) > 1e-9 {
		t.Errorf("by normal equations %+v, by coordinates %+v", dense, short)
	}
	if none := orthonormalRegression(4, nil, 1); none.P != 1 || none.F != 0 {
		t.Errorf("no regressors: %+v", none)
	}
}
