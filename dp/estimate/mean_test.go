package estimate

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// falseAlarm of each statistical check; seeds are fixed.
const falseAlarm = 1e-6

var laplace = Mean{Dim: 1, Low: -2, High: 6, Epsilon: 0.5}
var gaussian = Mean{Dim: 1, Low: -2, High: 6, Epsilon: 0.5, Delta: 1e-5}

func TestReference(t *testing.T) {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name     string
		Inputs   map[string]json.RawMessage
		Expected json.RawMessage
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range all {
		in := func(name string) (v float64) {
			if err := json.Unmarshal(r.Inputs[name], &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		var ci struct{ Halfwidth float64 }
		json.Unmarshal(r.Expected, &ci)
		seen++
		switch r.Name {
		case "bounded_mean_noiseless":
			var x []float64
			var want float64
			if err := errors.Join(json.Unmarshal(r.Inputs["data"], &x), json.Unmarshal(r.Expected, &want)); err != nil {
				t.Fatal(err)
			}
			m := Mean{Dim: 1, Low: in("lower"), High: in("upper"), Epsilon: 1e12} // noise of about one unit of the grid
			got, err := m.Release(x, noise.Seeded(1))
			if err != nil || math.Abs(got[0]-want) > 1e-7 {
				t.Errorf("mean of %v: %v, %v", x, got, err)
			}
		case "laplace_noise_ci":
			m := Mean{Dim: 1, Low: 0, High: in("linf"), Epsilon: in("eps")}
			if got := m.NoiseHalfWidth(1, in("alpha")); math.Abs(got-ci.Halfwidth) > 1e-8*ci.Halfwidth {
				t.Errorf("Laplace half-width %v, want %v", got, ci.Halfwidth)
			}
		case "gaussian_noise_ci":
			m := Mean{Dim: 1, Low: 0, High: 1, Epsilon: 1, Delta: 1e-5}
			m.High = in("sigma") / account.GaussianSigma(1, 1, 1e-5)
			if got := m.NoiseHalfWidth(1, in("alpha")); math.Abs(got-ci.Halfwidth) > 1e-8*ci.Halfwidth {
				t.Errorf("Gaussian half-width %v, want %v", got, ci.Halfwidth)
			}
		default:
			seen--
		}
	}
	if seen != 3 {
		t.Errorf("%d references", seen)
	}
}

// TestNoiseLaw: what a release adds to the mean of clamped values has the law that epsilon is made for, in each coordinate;
// a scale a tenth narrower would be noticed.
func TestNoiseLaw(t *testing.T) {
	x := []float64{-3, 1, 6.5, 0.25, math.NaN(), math.Inf(1)}
	const mean = (-2 + 1 + 6 + 0.25 - 2 + 6) / 6
	for name, c := range map[string]struct {
		m   Mean
		cdf func(float64) float64
	}{
		"Laplace":  {laplace, distuv.Laplace{Mu: 0, Scale: 8 / 0.5 / 6}.CDF},
		"Gaussian": {gaussian, distuv.Normal{Mu: 0, Sigma: 8 * account.GaussianSigma(1, 0.5, 1e-5) / 6}.CDF},
	} {
		s := noise.Seeded(2)
		sample, narrow := make([]float64, 30_000), make([]float64, 30_000)
		for i := range sample {
			released, err := c.m.Release(x, s)
			if err != nil {
				t.Fatal(err)
			}
			sample[i] = released[0] - mean
			narrow[i] = 0.9 * sample[i]
		}
		if err := stattest.Kolmogorov(sample, c.cdf, falseAlarm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if stattest.Kolmogorov(narrow, c.cdf, falseAlarm) == nil {
			t.Errorf("%s: noise 10%% too narrow went unnoticed", name)
		}
		squares, outside := 0.0, 0
		for _, v := range sample {
			squares += v * v
			if math.Abs(v) > c.m.NoiseHalfWidth(6, 0.05) {
				outside++
			}
		}
		if sd := math.Sqrt(squares / float64(len(sample))); math.Abs(sd/c.m.NoiseSD(6)-1) > 0.033 { // 5 standard errors for Laplace
			t.Errorf("%s: standard deviation %v, promised %v", name, sd, c.m.NoiseSD(6))
		}
		if err := stattest.Frequency(outside, len(sample), 0.05, falseAlarm); err != nil {
			t.Errorf("%s: half-width: %v", name, err)
		}
	}
}

// TestPrivacy: between the extremes of what a replaced row can do, no release is more than e^eps times as likely (delta
// apart), as counts above a threshold show; the pair reaches most of epsilon, so a scale of half the noise would fail.
func TestPrivacy(t *testing.T) {
	const runs = 30_000
	for name, m := range map[string]Mean{"Laplace": {Dim: 1, Low: 0, High: 1, Epsilon: 1}, "Gaussian": {Dim: 1, Low: 0, High: 1, Epsilon: 1, Delta: 0.01}} {
		s := noise.Seeded(3)
		high, low := 0, 0
		for range runs {
			a, err := m.Release([]float64{1e300, 0}, s)
			if err != nil {
				t.Fatal(err)
			}
			b, err := m.Release([]float64{-1e300, 0}, s)
			if err != nil {
				t.Fatal(err)
			}
			if a[0] > 0.5 {
				high++
			}
			if b[0] > 0.5 {
				low++
			}
		}
		p, q := float64(high)/runs, float64(low)/runs
		error5 := 5 * (math.Sqrt(p/runs) + math.E*math.Sqrt(q/runs)) // 5 standard errors: below 1e-6
		if p > math.E*q+m.Delta+error5 {
			t.Errorf("%s: probability %v against %v", name, p, q)
		}
		if m.Delta == 0 && p < math.E*q-error5 {
			t.Errorf("%s: probability %v against %v: more noise than epsilon needs", name, p, q)
		}
	}
}

// TestSensitivity: the integers of a row stay in [0, 2^30], whatever is in it.
func TestSensitivity(t *testing.T) {
	r := rand.New(noise.Seeded(4))
	for range 10_000 {
		m := Mean{Dim: 2, Low: (r.Float64() - 0.5) * math.Pow(10, 20*r.Float64()-10)}
		m.High = math.Nextafter(m.Low, 1e300) + r.Float64()*math.Pow(10, 40*r.Float64()-20)
		row := []float64{m.Low + (m.High-m.Low)*(2*r.Float64()-0.5), math.Float64frombits(r.Uint64())}
		sums := make([]int64, 2)
		m.sum(sums, row)
		for k, v := range sums {
			if v < 0 || v > 1<<gridBits {
				t.Fatalf("%v in [%v, %v] counts %d", row[k], m.Low, m.High, v)
			}
		}
	}
}

// TestVectors: every coordinate has its own mean and its own noise, which grows by dimension for Laplace and by its root for
// Gaussian noise.
func TestVectors(t *testing.T) {
	const rows, dim = 400, 16
	x := make([]float64, rows*dim)
	for i := range x {
		x[i] = float64(i%dim) / dim
	}
	for _, delta := range []float64{0, 1e-6} {
		m := Mean{Dim: dim, Low: 0, High: 1, Epsilon: 5, Delta: delta}
		got, err := m.Release(x, noise.Seeded(5))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[float64]bool{}
		for k, v := range got {
			off := v - float64(k)/dim
			if math.Abs(off) > m.NoiseHalfWidth(rows, 1e-7) || seen[off] {
				t.Errorf("coordinate %d is off by %v", k, off)
			}
			seen[off] = true
		}
		one := m
		one.Dim = 1
		want := float64(dim)
		if delta > 0 {
			want = math.Sqrt(dim)
		}
		if got := m.NoiseSD(rows) / one.NoiseSD(rows); math.Abs(got-want) > 1e-6*want {
			t.Errorf("delta %v: %d coordinates have %v times the noise, want %v", delta, dim, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, m := range map[string]Mean{
		"dimension": {Dim: 0, Low: 0, High: 1, Epsilon: 1},
		"range":     {Dim: 1, Low: 1, High: 1, Epsilon: 1},
		"NaN":       {Dim: 1, Low: nan, High: 1, Epsilon: 1},
		"infinite":  {Dim: 1, Low: -inf, High: 1, Epsilon: 1},
		"too wide":  {Dim: 1, Low: -1.7e308, High: 1.7e308, Epsilon: 1},
		"epsilon":   {Dim: 1, Low: 0, High: 1, Epsilon: 1e-7},
		"by number": {Dim: 100, Low: 0, High: 1, Epsilon: 1e-5},
		"delta":     {Dim: 1, Low: 0, High: 1, Epsilon: 1, Delta: 1},
	} {
		if _, err := m.Release([]float64{1}, noise.Seeded(6)); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, x := range [][]float64{nil, {1}, {1, 2, 3}} {
		if _, err := (Mean{Dim: 2, Low: 0, High: 1, Epsilon: 1}).Release(x, noise.Seeded(7)); !errors.Is(err, ErrRows) {
			t.Errorf("%v: %v", x, err)
		}
	}
}

// TestExtremes: the least epsilon and the narrowest range still release a finite number.
func TestExtremes(t *testing.T) {
	for _, m := range []Mean{
		{Dim: 1, Low: 0, High: 5e-324, Epsilon: MinEpsilon},
		{Dim: 1, Low: -8e307, High: 8e307, Epsilon: 100},
		{Dim: 3, Low: 0, High: 1, Epsilon: 3 * MinEpsilon, Delta: 1e-300},
		{Dim: 1, Low: 0, High: 1, Epsilon: 1e-6, Delta: 1e-12},
	} {
		got, err := m.Release([]float64{0, 0, 0}, noise.Seeded(8))
		if err != nil || math.IsNaN(got[0]) || math.IsInf(got[0], 0) {
			t.Errorf("%+v: %v, %v", m, got, err)
		}
	}
}

// TestHalfWidthFarOut: noise reaches some finite way however small beta is; read from the large tail it would be infinite.
func TestHalfWidthFarOut(t *testing.T) {
	m := Mean{Dim: 1, High: 1, Epsilon: 1, Delta: 1e-6}
	for _, beta := range []float64{1e-17, 1e-100, 1e-300} {
		// P(|Z| > t) <= e^(-t^2/2), and a normal variable is beyond half of that reach far more often.
		most := math.Sqrt(-2*math.Log(beta)) * m.NoiseSD(100)
		if got := m.NoiseHalfWidth(100, beta); !(got < most*(1+1e-6) && got > most/2) {
			t.Errorf("beta %v: %v, at most %v", beta, got, most)
		}
	}
}
