package model

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawnSpace is a model of vectors as its JSON has it.
type drawnSpace struct {
	Function                      string
	Gamma, Coef0                  *float64
	Degree, K                     *int
	Weights                       map[string]any
	Intercepts                    []float64
	Impute                        map[string]any
	Vectors, Coefficients, Values struct{ F32, F64 []byte }
	Base                          any
	Votes                         any
	Metric, Weighting             string
	Classes                       []any
	Link                          string
}

// drawSpace draws a kernel machine, or nearest neighbours.
func drawSpace(t *rapid.T, kernel bool, names []any, weight func(int) any, weights func(int) map[string]any, impute func(map[string]any) map[string]any) map[string]any {
	axes, count := rapid.IntRange(1, 6).Draw(t, "axes"), rapid.IntRange(1, 9).Draw(t, "vectors")
	w := weights(axes)
	e := map[string]any{"weights": w, "impute": impute(w), "intercepts": weight(axes)}
	array := func(n int) any {
		if rapid.Bool().Draw(t, "single") {
			return json.RawMessage(packed("f32", drawFloats(t, n)...))
		}
		return json.RawMessage(packed("f64", drawFloats(t, n)...))
	}
	e["vectors"] = array(axes * count)
	outputs := 1
	if len(names) >= 2 {
		e["classes"], outputs = names, len(names)
	} else {
		e["link"] = drawLink.Draw(t, "link")
	}
	some := func(name string, draw func() any) {
		if rapid.Bool().Draw(t, name) {
			e[name] = draw()
		}
	}
	if kernel {
		some("function", func() any {
			return rapid.SampledFrom([]string{"rbf", "linear", "poly", "sigmoid", "laplacian"}).Draw(t, "function")
		})
		some("gamma", func() any { return math.Abs(drawNumber.Draw(t, "gamma").(float64)) })
		some("coef0", func() any { return drawNumber.Draw(t, "coef0") })
		some("degree", func() any { return rapid.IntRange(1, 5).Draw(t, "degree") })
		if outputs > 1 && rapid.Bool().Draw(t, "votes") {
			outputs, e["votes"] = outputs*(outputs-1)/2, true
		}
		some("base", func() any {
			if outputs == 1 {
				return drawNumber.Draw(t, "base")
			}
			return weight(outputs)
		})
		e["coefficients"] = array(outputs * count)
		return map[string]any{"kernel": e}
	}
	some("metric", func() any { return rapid.SampledFrom([]string{"euclidean", "manhattan"}).Draw(t, "metric") })
	some("weighting", func() any { return rapid.SampledFrom([]string{"uniform", "distance"}).Draw(t, "votes") })
	if e["k"] = rapid.IntRange(1, count).Draw(t, "k"); count >= 5 && rapid.Bool().Draw(t, "k of its own") {
		delete(e, "k")
	}
	values := drawFloats(t, count)
	if outputs > 1 {
		for i := range values {
			values[i] = float64(rapid.IntRange(0, outputs-1).Draw(t, "class"))
		}
	}
	e["values"] = json.RawMessage(packed("f64", values...))
	return map[string]any{"neighbors": e}
}

func drawFloats(t *rapid.T, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(float32(drawNumber.Draw(t, "number").(float64)))
	}
	return list
}

func unpacked(in struct{ F32, F64 []byte }) (list []float64) {
	for b := in.F32; len(b) > 0; b = b[4:] {
		list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	for b := in.F64; len(b) > 0; b = b[8:] {
		list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return list
}

// place is the row in the space, and the vectors.
func (s *drawnSpace) place(row map[string]any) (at []float64, vectors [][]float64) {
	at = slices.Clone(s.Intercepts)
	for _, column := range sortedKeys(s.Weights) {
		for k := range at {
			at[k] += product(s.Weights[column], row[column], s.Impute[column], k)
		}
	}
	return at, slices.Collect(slices.Chunk(unpacked(s.Vectors), len(at)))
}

func (s *drawnSpace) kernel(row map[string]any) []float64 {
	at, vectors := s.place(row)
	gamma, coef0, degree := 1.0, 0.0, 3
	if s.Gamma != nil {
		gamma = *s.Gamma
	}
	if s.Coef0 != nil {
		coef0 = *s.Coef0
	}
	if s.Degree != nil {
		degree = *s.Degree
	}
	alike := func(v []float64) float64 {
		dot, squares, absolutes := 0.0, 0.0, 0.0
		for j, x := range at {
			dot += x * v[j]
			squares += (x - v[j]) * (x - v[j])
			absolutes += math.Abs(x - v[j])
		}
		switch s.Function {
		case "linear":
			return dot
		case "poly":
			return math.Pow(gamma*dot+coef0, float64(degree))
		case "sigmoid":
			return math.Tanh(gamma*dot + coef0)
		case "laplacian":
			return math.Exp(-gamma * absolutes)
		}
		return math.Exp(-gamma * squares)
	}
	coefficients := slices.Collect(slices.Chunk(unpacked(s.Coefficients), len(vectors)))
	z := make([]float64, len(coefficients))
	for f := range z {
		switch base := s.Base.(type) {
		case float64:
			z[f] = base
		case []any:
			z[f] = base[f].(float64)
		}
		for i, v := range vectors {
			z[f] += coefficients[f][i] * alike(v)
		}
	}
	if s.Votes == true {
		votes := make([]float64, len(s.Classes))
		for a := range votes {
			for b := a + 1; b < len(votes); b++ {
				if z[0] > 0 {
					votes[a]++
				} else {
					votes[b]++
				}
				z = z[1:]
			}
		}
		return votes
	}
	if len(z) == 1 {
		z[0] = linked(s.Link, z[0])
	}
	return z
}

func (s *drawnSpace) neighbors(row map[string]any) []float64 {
	at, vectors := s.place(row)
	values := unpacked(s.Values)
	distance := make([]float64, len(vectors))
	order := make([]int, len(vectors))
	for i, v := range vectors {
		order[i] = i
		for j, x := range at {
			if s.Metric == "manhattan" {
				distance[i] += math.Abs(x - v[j])
			} else {
				distance[i] = distance[i] + float64((x-v[j])*(x-v[j])) // so that what is equally far is so to the last bit
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if distance[a] < distance[b] {
			return -1
		}
		return map[bool]int{true: 1}[distance[a] > distance[b]]
	})
	k := 5
	if s.K != nil {
		k = *s.K
	}
	nearest := order[:k]
	weigh := func(i int) float64 {
		d := distance[i]
		if s.Metric != "manhattan" {
			d = math.Sqrt(d)
		}
		switch {
		case s.Weighting != "distance":
			return 1
		case distance[nearest[0]] == 0:
			return map[bool]float64{true: 1}[d == 0]
		}
		return 1 / d
	}
	z, total := make([]float64, max(1, len(s.Classes))), 0.0
	for _, i := range nearest {
		w := weigh(i)
		total += w
		if s.Classes == nil {
			z[0] += w * values[i]
		} else {
			z[int(values[i])] += w
		}
	}
	for c := range z {
		z[c] /= total
	}
	if s.Classes == nil {
		z[0] = linked(s.Link, z[0])
	}
	return z
}

// TestNeighborsOfBlocks: rows of a block have what they have by themselves, with vectors that are equally far, and with some at the row's own place.
func TestNeighborsOfBlocks(t *testing.T) {
	for _, weighting := range []string{"uniform", "distance"} {
		m, err := Parse([]byte(`{"neighbors":{"k":3,"weighting":"` + weighting + `","weights":{"x":[1]},"intercepts":[0],"vectors":` + packed("f32", 1, 1, 2, 3, 3, 8) + `,"values":` + packed("f64", 10, 20, 30, 40, 50, 60) + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		two, err := Parse([]byte(`{"neighbors":{"k":2,"weighting":"` + weighting + `","weights":{"x":[1]},"intercepts":[0],"vectors":` + packed("f32", -1, 1, 0) + `,"values":` + packed("f64", 10, 20, 30) + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		// The last is nearest, and takes a place from the first of two that are equally far.
		if got, want := two.Predict([]float64{0})[0], map[string]float64{"uniform": 20, "distance": 30}[weighting]; got != want {
			t.Errorf("%s: %v, want %v", weighting, got, want)
		}
		for _, c := range []struct{ x, uniform, distance float64 }{
			{1, 20, 15}, // at two vectors
			{2, 20, 30}, // the first two of four that are equally far
			{8, 50, 60},
			{5.5, (60 + 40 + 50) / 3.0, 50},
		} {
			want := map[string]float64{"uniform": c.uniform, "distance": c.distance}[weighting]
			if got := m.Predict([]float64{c.x})[0]; math.Abs(got-want) > 1e-12*want {
				t.Errorf("%s at %v: %v, want %v", weighting, c.x, got, want)
			}
		}
	}
}

// TestVectorsWithoutANumber: where a row's place, or what is computed of it, is no finite number there is no prediction, and not that of a row far away.
func TestVectorsWithoutANumber(t *testing.T) {
	const huge = 1e200
	two := packed("f64", 1, 2)
	for _, c := range []struct {
		form string
		x    float64
		none bool
	}{
		{`{"neighbors":{"k":2,"weights":{"x":[1e150]},"intercepts":[0],"vectors":` + two + `,"values":` + two + `}}`, huge, true}, // at an infinite distance
		{`{"neighbors":{"k":2,"weights":{"x":[1]},"intercepts":[0],"vectors":` + two + `,"values":` + two + `}}`, 1e100, false},
		{`{"kernel":{"weights":{"x":[1]},"intercepts":[0],"vectors":` + two + `,"coefficients":` + two + `}}`, huge, false}, // exp(-inf) is 0
		{`{"kernel":{"gamma":0,"weights":{"x":[1]},"intercepts":[0],"vectors":` + two + `,"coefficients":` + two + `}}`, huge, true},
		{`{"kernel":{"function":"poly","votes":true,"classes":["a","b"],"weights":{"x":[1]},"intercepts":[0],"vectors":` + two + `,"coefficients":` + two + `}}`, huge, true},
	} {
		m, err := Parse([]byte(c.form))
		if err != nil {
			t.Fatal(err)
		}
		row := make([]float64, len(m.Features()))
		for i := range row {
			row[i] = c.x
		}
		for k, got := range m.Predict(row) {
			if math.IsNaN(got) != c.none {
				t.Errorf("%.80s at %v: output %d is %v", c.form, c.x, k, got)
			}
		}
	}
}

// TestVectorsRefused: what is no model of vectors is told where.
func TestVectorsRefused(t *testing.T) {
	two := packed("f64", 1, 2)
	for _, c := range []struct{ form, members, pointer, says string }{
		{"kernel", `"vectors":` + packed("f64", 1) + `,"coefficients":` + two, "/kernel/vectors", "no vectors of 2"},
		{"kernel", `"vectors":` + two + `,"coefficients":` + two, "/kernel/coefficients", "has 2 numbers and must have 1"},
		{"kernel", `"vectors":` + two, "/kernel/coefficients", "is missing"},
		{"kernel", `"coefficients":` + two, "/kernel/vectors", "is missing"},
		{"kernel", `"vectors":` + two + `,"coefficients":` + packed("f64", 1) + `,"votes":true`, "/kernel/votes", "true is for 2 to 32 classes"},
		{"kernel", `"vectors":` + two + `,"coefficients":` + packed("f64", 1) + `,"function":"cosine"`, "/kernel/function", "must be one of [rbf linear poly sigmoid laplacian]"},
		{"kernel", `"vectors":` + two + `,"coefficients":` + packed("f64", 1) + `,"gamma":-1`, "/kernel/gamma", "must not be negative"},
		{"kernel", `"vectors":` + two + `,"coefficients":` + packed("f64", 1) + `,"degree":2.5`, "/kernel/degree", "whole number from 1 to 32"},
		{"kernel", `"vectors":` + packed("f64", math.Inf(1), 0) + `,"coefficients":` + packed("f64", 1), "/kernel/vectors", "within"},
		{"neighbors", `"vectors":` + two + `,"values":` + two + `,"k":1`, "/neighbors/values", "has 2 numbers; there are 1 vectors"},
		{"neighbors", `"vectors":` + two + `,"values":` + packed("f64", 1), "/neighbors/k", "is 5; there are 1 vectors"},
		{"neighbors", `"vectors":` + two + `,"values":` + packed("f64", 2) + `,"k":1,"classes":["a","b"]`, "/neighbors/values", "place of a class, from 0 to 1"},
		{"neighbors", `"vectors":` + two + `,"values":` + packed("f64", 1) + `,"k":0`, "/neighbors/k", "whole number from 1 to 256"},
		{"neighbors", `"vectors":` + two + `,"values":` + packed("f64", 1) + `,"k":1,"degree":1`, "/neighbors/degree", "unknown member"},
	} {
		_, err := Parse([]byte(`{"` + c.form + `":{"weights":{"x":[1,0],"y":[0,1]},"intercepts":[0,0],` + c.members + `}}`))
		if err == nil || !strings.Contains(err.Error(), c.pointer+": ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v", c.form, c.members, err)
		}
	}
	slow := `{"neighbors":{"k":256,"weights":{"x":[1]},"intercepts":[0],"vectors":` + packed("f32", make([]float64, 1400)...) + `,"values":` + packed("f32", make([]float64, 1400)...) + `}}`
	if _, err := Parse([]byte(slow)); err == nil || !strings.Contains(err.Error(), "/neighbors/vectors: a row would take 1079400 steps and may take 1048576") {
		t.Errorf("%v", err)
	}
	large := `{"kernel":{"weights":{"x":[1]},"intercepts":[0],"vectors":{"f32":"` + base64.StdEncoding.EncodeToString(make([]byte, 4*MaxVectors)) + `"},"coefficients":` + two + `}}`
	if _, err := Parse([]byte(large)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d numbers", MaxVectors)) {
		t.Errorf("%.200v", err)
	}
}
