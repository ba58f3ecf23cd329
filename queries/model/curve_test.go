package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

// TestCurve: a prediction goes through the line between the two points that it lies between, beyond them to the last one, and null to null, whatever the number of
// points. It notices a search that stops a point early or late, and lines that go on beyond the ends.
func TestCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfNDistinct(rapid.Float64Range(-3, 3), 2, 20, rapid.ID[float64]).Draw(t, "x")
		slices.Sort(x)
		var points []string
		y := make([]float64, len(x))
		for i := range x {
			if i > 0 && x[i]-x[i-1] < 1e-6 {
				t.Skip("points too close for a comparison")
			}
			y[i] = rapid.Float64Range(0, 1).Draw(t, "y")
			points = append(points, fmt.Sprintf("[%v,%v]", x[i], y[i]))
		}
		m, err := Parse([]byte(`{"mixture":{"base":1,"models":[{"model":{"linear":{"weights":{"v":1}}},"weight":2,"curve":[` + strings.Join(points, ",") + `]}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range append(slices.Clone(x), x[0]-1, x[len(x)-1]+1, rapid.Float64Range(-4, 4).Draw(t, "v")) {
			want := y[len(y)-1]
			for i := len(x) - 2; i >= 0; i-- {
				if v < x[i+1] {
					want = y[i] + (y[i+1]-y[i])*(max(v, x[i])-x[i])/(x[i+1]-x[i])
				}
			}
			if got := m.Predict([]float64{v})[0]; math.Abs(got-(1+2*want)) > 1e-9 {
				t.Fatalf("%v becomes %v, want %v", v, got, 1+2*want)
			}
		}
		again, err := Parse(m.Canonical())
		if err != nil || again.ID() != m.ID() {
			t.Fatalf("the canonical form is another model: %v\n%s", err, m.Canonical())
		}
	})
	m, err := Parse([]byte(`{"mixture":{"models":[{"model":{"linear":{"weights":{"v":1e150}}},"curve":[[0,1],[1,2]]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Predict([]float64{1e300})[0]; !math.IsNaN(got) {
		t.Errorf("a prediction that is no number becomes %v", got)
	}
}

// TestCurveWorks: points are weights and take time, so that the limits hold them; every prediction takes the same.
func TestCurveWorks(t *testing.T) {
	with := func(n int) string {
		points := make([][2]int, n)
		for i := range points {
			points[i] = [2]int{i, i % 2}
		}
		b, _ := json.Marshal(points)
		return `{"mixture":{"models":[{"model":{"linear":{"weights":{"v":1}}},"curve":` + string(b) + `}]}}`
	}
	steps := func(n int) int64 {
		m, err := Parse([]byte(with(n)))
		if err != nil {
			t.Fatal(err)
		}
		return m.Scorer().Steps()
	}
	if few, many := steps(2), steps(1<<16); few <= 2 || many < few+2*15 {
		t.Errorf("two points take %d steps, 65,536 take %d", few, many)
	}
	if _, err := Parse([]byte(with(MaxWeights + 1))); err == nil || !strings.Contains(err.Error(), "weights") {
		t.Errorf("too many points: %v", err)
	}
	for body, want := range map[string]string{
		`[[0,1]]`: "2 points", `{}`: "slope: must be a number", `1`: "2 points", `[[0,1],[0,2]]`: "must increase", `[[1,1],[0,2]]`: "must increase", `[[0,1],[1]]`: "two numbers", `[[0,1],[1,null]]`: "two numbers",
		`[[0,-1e150],[1e-300,1e150]]`: "no number",
	} {
		if _, err := Parse([]byte(`{"mixture":{"models":[{"model":{"linear":{"weights":{"v":1}}},"curve":` + body + `}]}}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if _, err := Parse([]byte(`{"mixture":{"classes":["a","b"],"models":[{"model":{"softmax":{"classes":["a","b"],"weights":{"v":[1,2]}}},"curve":[[0,1],[1,2]]}]}}`)); err == nil || !strings.Contains(err.Error(), "one output") {
		t.Errorf("a curve of classes: %v", err)
	}
}
