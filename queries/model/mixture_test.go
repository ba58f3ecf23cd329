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

// TestMixtureOfClasses: of a model in a mixture with classes each prediction goes through its own curve, then they are divided by their sum, equal where it is 0, and then
// each adds to every class with its own weight; a model may have other classes than the mixture, or none. A mixture without classes weighs those of a model.
func TestMixtureOfClasses(t *testing.T) {
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	softmax := func(z ...float64) []float64 {
		sum := 0.0
		for k := range z {
			z[k] = math.Exp(z[k])
			sum += z[k]
		}
		for k := range z {
			z[k] /= sum
		}
		return z
	}
	const (
		margins = `{"softmax":{"classes":["a","b","c"],"link":"identity","intercepts":[0,1,-1],"weights":{"x":[1,-2,3]}}}`
		two     = `{"softmax":{"classes":["no","yes"],"weights":{"x":[0,2]}}}`
		one     = `{"linear":{"link":"logit","weights":{"x":0.5}}}`
		several = `{"mixture":{"classes":["a","b","c"],"link":`
	)
	for body, want := range map[string]func(x float64) []float64{
		several + `"identity","models":[{"weight":0.5,"shares":true,"model":` + margins + `,"curves":[{"slope":2,"intercept":-1},{"slope":-1},{"slope":0.5,"intercept":3}]},{"weight":0.5,"model":{"softmax":{"classes":["a","b","c"],"weights":{"x":[1,2,3]}}}}]}}`: func(x float64) []float64 {
			p, q := []float64{sigmoid(2*x - 1), sigmoid(2*x - 1 + 0), sigmoid(0.5*(3*x-1) + 3)}, softmax(x, 2*x, 3*x)
			p[1] = sigmoid(-(1 - 2*x))
			sum := p[0] + p[1] + p[2]
			return []float64{(p[0]/sum + q[0]) / 2, (p[1]/sum + q[1]) / 2, (p[2]/sum + q[2]) / 2}
		},
		several + `"identity","models":[{"shares":true,"model":` + margins + `,"curves":[[[0,0],[1,1]],[[0,0],[1e3,0]],[[2,0],[4,0.5]]]}]}}`: func(x float64) []float64 {
			p := []float64{min(max(x, 0), 1), 0, 0.25 * (min(max(3*x-1, 2), 4) - 2)}
			if p[0]+p[2] == 0 {
				return []float64{1. / 3, 1. / 3, 1. / 3}
			}
			return []float64{p[0] / (p[0] + p[2]), 0, p[2] / (p[0] + p[2])}
		},
		several + `"softmax","base":[0,0.5,1],"models":[{"model":` + two + `,"weights":[[1,2,3],[-4,5,-6]]},{"model":` + one + `,"weights":[[7,-8,9]]},{"model":` + margins + `,"weights":[[0,1,0],[0,0,1],[0.5,0,0]]}]}}`: func(x float64) []float64 {
			p, q := softmax(0, 2*x), sigmoid(x/2)
			return softmax(p[0]-4*p[1]+7*q+0.5*(3*x-1), 0.5+2*p[0]+5*p[1]-8*q+x, 1+3*p[0]-6*p[1]+9*q+1-2*x)
		},
		`{"mixture":{"link":"logit","base":-1,"models":[{"model":` + two + `,"weights":[[3],[-2]]},{"model":` + one + `,"curve":{"slope":3},"weights":[[2]]}]}}`: func(x float64) []float64 {
			p := softmax(0, 2*x)
			return []float64{sigmoid(3*p[0] - 2*p[1] - 1 + 2*sigmoid(3*sigmoid(x/2)))}
		},
	} {
		m, err := Parse([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if again, err := Parse(m.Canonical()); err != nil || again.ID() != m.ID() {
			t.Errorf("the canonical form is another model: %v\n%s", err, m.Canonical())
		}
		for _, x := range []float64{-2, 0, 0.25, 0.5, 1, 1.5} {
			in := make([]float64, len(m.Features()))
			for i := range in {
				in[i] = x
			}
			got, want := m.Predict(in), want(x)
			for k := range want {
				if len(got) != len(want) || !(math.Abs(got[k]-want[k]) < 1e-12) {
					t.Errorf("%s at %v: %v, want %v", body, x, got, want)
					break
				}
			}
		}
	}
}

// TestMixtureOfClassesCosts: what curves, shares and weights take is counted for each class, and weights are bounded as all are.
func TestMixtureOfClassesCosts(t *testing.T) {
	steps := func(more string) int64 {
		m, err := Parse([]byte(`{"mixture":{"classes":["a","b"],"models":[{"model":{"softmax":{"classes":["a","b"],"weights":{}}}` + more + `}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return m.Scorer().Steps()
	}
	for more, least := range map[string]int64{
		`,"shares":true`: 2 * shareSteps, `,"weights":[[1,2],[3,4]]`: 2, `,"curves":[{"slope":1},{"slope":2}]`: 2 * exponentialSteps, `,"curves":[[[0,1],[1,2]],[[0,1],[1,2]]]`: 2 * curveSteps,
	} {
		if got := steps(more) - steps(""); got < least {
			t.Errorf("%s takes %d steps more, want at least %d", more, got, least)
		}
	}
}
