package estimate

import (
	"errors"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// TestNormMean: rows within the norm count as they are, and longer ones shrunk, whatever is in them.
func TestNormMean(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ x, want []float64 }{
		{[]float64{0.6, 0.8}, []float64{0.6, 0.8}},
		{[]float64{-1.2, 1.6}, []float64{-1.2, 1.6}},
		{[]float64{3, -4}, []float64{1.2, -1.6}},
		{[]float64{1e300, 1e300}, []float64{math.Sqrt2, math.Sqrt2}},
		{[]float64{1e-300, 0}, []float64{0, 0}},
		{[]float64{nan, 5}, []float64{0, 2}},
		{[]float64{nan, nan}, []float64{0, 0}},
		{[]float64{-inf, 7}, []float64{-2, 0}},
		{[]float64{-inf, inf}, []float64{-math.Sqrt2, math.Sqrt2}},
	} {
		m := Mean{Dim: 2, Norm: 2}
		sums := make([]int64, 2)
		m.sum(sums, c.x)
		for k, v := range sums {
			if got := float64(v) * m.grid(); math.Abs(got-c.want[k]) > m.grid() {
				t.Errorf("%v: %v at %d, want %v", c.x, got, k, c.want[k])
			}
		}
	}
	for _, m := range []Mean{{Dim: 1, Norm: 1, Epsilon: 1}, {Dim: 1, Norm: 1, High: 1, Epsilon: 1, Delta: 1e-5}, {Dim: 1, Norm: -1, Epsilon: 1, Delta: 1e-5},
		{Dim: 1, Norm: inf, Epsilon: 1, Delta: 1e-5}} {
		if err := m.Check(); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// TestNormSensitivity: no replaced row moves a sum farther than the noise is made for, and opposite rows as far, to a part of 1e-8. So the noise is that of the
// analytic Gaussian mechanism for a move of twice the norm.
func TestNormSensitivity(t *testing.T) {
	s := noise.Seeded(5)
	for _, dim := range []int{1, 3, 64, 1000} {
		m := Mean{Dim: dim, Norm: 3, Epsilon: 0.5, Delta: 1e-5}
		farthest := 0.
		for range 200 {
			row, opposite := make([]float64, dim), make([]float64, dim)
			for k := range row {
				row[k] = float64(int64(s.Uint64())) // far beyond the norm
				opposite[k] = -row[k]
			}
			a, b, squares := make([]int64, dim), make([]int64, dim), 0.
			m.sum(a, row)
			m.sum(b, opposite)
			for k := range a {
				squares += float64(a[k]-b[k]) * float64(a[k]-b[k])
			}
			farthest = max(farthest, math.Sqrt(squares))
		}
		if part := farthest / m.moves(); part > 1 || part < 1-1e-7 {
			t.Errorf("%d numbers: rows move the sum by %v of what noise is made for", dim, part)
		}
		if want := account.GaussianSigma(2*3, 0.5, 1e-5) / 10; math.Abs(m.NoiseSD(10)/want-1) > 1e-6 {
			t.Errorf("%d numbers: noise %v, want %v", dim, m.NoiseSD(10), want)
		}
	}
}

// TestNormNoise: what a release adds has the standard deviation that is said, in every coordinate.
func TestNormNoise(t *testing.T) {
	const runs, dim = 5000, 4
	m, s, squares := Mean{Dim: dim, Norm: 1, Epsilon: 1, Delta: 1e-5}, noise.Seeded(6), make([]float64, dim)
	x := []float64{0, 0, 0, 1, 0.5, 0.5, 0.5, 0.5}
	want := []float64{0.25, 0.25, 0.25, 0.75}
	for range runs {
		released, err := m.Release(x, s)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range released {
			squares[k] += (v - want[k]) * (v - want[k]) / runs
		}
	}
	for k, v := range squares { // six standard errors of a standard deviation, false alarm 1e-8
		if part := math.Sqrt(v) / m.NoiseSD(2); math.Abs(part-1) > 6/math.Sqrt(2*runs) {
			t.Errorf("coordinate %d: a standard deviation of %v of what is said", k, part)
		}
	}
}
