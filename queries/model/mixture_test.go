package model

import (
	"math"
	"testing"
)

// TestMixture: a mixture adds predictions and not scores, each times its weight, and a model that has no prediction leaves none to the whole; a network's activation stands between
// layers and not behind the last.
func TestMixture(t *testing.T) {
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	const (
		linear = `{"linear":{"link":"logit","weights":{"x":2}}}`
		trees  = `{"trees":{"link":"logit","trees":[[["x",1],-0.5,0.25]]}}`
		huge   = `{"linear":{"link":"logit","weights":{"y":1e150}}}`
		net    = `{"network":{"weights":{"x":[1,-1]},"intercepts":[0,0.5],"layers":[{"weights":[[2],[-3]],"intercepts":[-1]}]}}`
	)
	for body, want := range map[string]func(x, y float64) float64{
		`{"mixture":{"models":[{"weight":0.25,"model":` + linear + `},{"weight":0.75,"model":` + trees + `}]}}`: func(x, _ float64) float64 {
			leaf := 0.25
			if x <= 1 {
				leaf = -0.5
			}
			return 0.25*sigmoid(2*x) + 0.75*sigmoid(leaf)
		},
		`{"mixture":{"link":"logit","base":-0.5,"models":[{"weight":3,"model":` + linear + `}]}}`: func(x, _ float64) float64 { return sigmoid(3*sigmoid(2*x) - 0.5) },
		`{"mixture":{"models":[{"weight":0.5,"model":` + linear + `},{"weight":0,"model":` + huge + `}]}}`: func(x, y float64) float64 {
			if y > 1e200 {
				return math.NaN()
			}
			return 0.5 * sigmoid(2*x)
		},
		net: func(x, _ float64) float64 { return -1 + 2*max(x, 0) - 3*max(0.5-x, 0) },
	} {
		m, err := Parse([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		for _, x := range []float64{-2, 0, 0.25, 1, 1.5} {
			for _, y := range []float64{1, 1e300} {
				in := make([]float64, len(m.Features()))
				for i, f := range m.Features() {
					if in[i] = x; f.Column == "y" {
						in[i] = y
					}
				}
				if got, want := m.Predict(in)[0], want(x, y); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
					t.Errorf("%s at %v, %v: %v, want %v", body, x, y, got, want)
				}
			}
		}
	}
}
