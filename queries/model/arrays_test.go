package model

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/expr"
)

// asArrays is the JSON of a model whose trees are written as arrays, wherever one array can hold the leaves of all of them.
func asArrays(t *rapid.T, form any) any {
	switch form := form.(type) {
	case map[string]any:
		all := map[string]any{}
		for _, key := range sortedKeys(form) {
			all[key] = asArrays(t, form[key])
		}
		return all
	case []any:
		all := make([]any, len(form))
		for i, v := range form {
			all[i] = asArrays(t, v)
		}
		return all
	case *treesForm:
		for _, tree := range form.trees {
			if tree.listed != form.trees[0].listed {
				return form
			}
		}
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		other := *form
		other.arrays = true
		other.write(w)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(b.Bytes())
	}
	return form
}

// TestArraysAreLists: trees as arrays are the model that they are as lists.
func TestArraysAreLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawModel(t)
		m, err := Parse([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		arrays, err := json.Marshal(asArrays(t, m.form))
		if err != nil {
			t.Fatal(err)
		}
		same, err := Parse(arrays)
		if err != nil {
			t.Fatalf("%s: %v", arrays, err)
		}
		if same.ID() != m.ID() {
			t.Fatalf("%s\nis %s\nand as arrays, %s,\n%s", body, m.Canonical(), arrays, same.Canonical())
		}
		row := drawRow(t)
		a, b := m.Predict(features(m, row)), same.Predict(features(same, row))
		for k := range a {
			if math.Float64bits(a[k]) != math.Float64bits(b[k]) {
				t.Fatalf("%v and %v", a, b)
			}
		}
	})
}

func packed(kind string, numbers ...float64) string {
	var b []byte
	for _, x := range numbers {
		switch kind {
		case "u8":
			b = append(b, byte(x))
		case "u16":
			b = binary.LittleEndian.AppendUint16(b, uint16(x))
		case "f32":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case "f64":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return fmt.Sprintf(`{%q:%q}`, kind, base64.StdEncoding.EncodeToString(b))
}

// TestSpellingsOfArrays: each kind of words, reads in any order, and single precision are one model with its lists.
func TestSpellingsOfArrays(t *testing.T) {
	const lists = `{"trees":{"trees":[[["x",0.5],["s",["a","b"],"right"],1,2,["x",-2,"right"],3,4],[5]]}}`
	want, err := Parse([]byte(lists))
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		`{"trees":{"trees":{"reads":[["x"],["s",["b","a"],"right"],["x","right"]],"nodes":` + packed("u8", 1, 2, 0, 0, 3, 0, 0, 0) + `,"thresholds":` + packed("f64", 0.5, -2) + `,"leaves":` + packed("f32", 1, 2, 3, 4, 5) + `}}}`,
		`{"trees":{"trees":{"reads":[["x","right"],["x","left"],["s",["a","b","a"],"right"]],"nodes":` + packed("u16", 2, 3, 0, 0, 1, 0, 0, 0) + `,"thresholds":` + packed("f32", 0.5, -2) + `,"leaves":` + packed("f64", 1, 2, 3, 4, 5) + `,"single":false}}}`,
	} {
		if got, err := Parse([]byte(body)); err != nil || got.ID() != want.ID() {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	constant, err := Parse([]byte(`{"trees":{"trees":{"nodes":` + packed("u8", 0) + `,"leaves":` + packed("f64", 3) + `}}}`))
	if err != nil || string(constant.Canonical()) != `{"trees":{"trees":[[3]]}}` {
		t.Errorf("%s, %v", constant.Canonical(), err)
	}
}

// TestSingle: a threshold of numbers that are rounded to single precision is the largest double that rounds to at most it.
func TestSingle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if s != s {
			return
		}
		x := doubleAtMost(float64(s))
		switch {
		case math.IsInf(float64(s), 0):
			if x != math.Copysign(MaxMagnitude, float64(s)) {
				t.Fatalf("%v for %v", x, s)
			}
		case float32(x) > s || float32(math.Nextafter(x, math.Inf(1))) <= s:
			t.Fatalf("%v for %v", x, s)
		}
	})
	m, err := Parse([]byte(`{"trees":{"trees":{"single":true,"reads":[["x"]],"nodes":` + packed("u8", 1, 0, 0) + `,"thresholds":` + packed("f32", 0.1) + `,"leaves":` + packed("f32", 0, 1) + `}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float64]float64{0.1: 0, float64(float32(0.1)): 0, 0.1000000052: 0, 0.1000000053: 1} {
		if got := m.Predict([]float64{x}); got[0] != want {
			t.Errorf("%v of %v, want %v", got, x, want)
		}
	}
}

// TestLargeForest: trees of more nodes than lists may have keep their arrays, which are themselves again; and each row still comes to its leaf.
func TestLargeForest(t *testing.T) {
	const leaves = MaxNodes/2 + 2 // a chain: x <= k goes to leaf k
	nodes, thresholds, ends := []float64{}, []float64{}, []float64{}
	for tree := range MaxDepth {
		for k := range leaves/MaxDepth + 1 {
			if k < leaves/MaxDepth {
				nodes, thresholds = append(nodes, 1), append(thresholds, float64(k))
			}
			nodes, ends = append(nodes, 0), append(ends, float64(tree*1000+k))
		}
	}
	body := `{"trees":{"average":true,"trees":{"reads":[["x"]],"nodes":` + packed("u8", nodes...) + `,"thresholds":` + packed("f64", thresholds...) + `,"leaves":` + packed("f64", ends...) + `}}}`
	m, err := Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(m.Canonical())
	if err != nil || !m.Large() || !strings.Contains(string(m.Canonical()), `"u16"`) || again.ID() != m.ID() {
		t.Fatalf("%v: large %v, %.200s", err, m.Large(), m.Canonical())
	}
	vote := `{"mixture":{"models":[{"model":` + body + `},{"model":{"trees":{"trees":[[1]]}}}]}}`
	if m, err := Parse([]byte(vote)); err != nil || !m.Large() {
		t.Errorf("a large forest and a small tree: %v", err)
	}
	for k := range leaves/MaxDepth + 1 {
		want := 0.0
		for tree := range MaxDepth {
			want += float64(tree*1000 + k)
		}
		if got := m.Predict([]float64{float64(k) - 0.5})[0]; got != want/MaxDepth {
			t.Fatalf("%v of %d, want %v", got, k, want/MaxDepth)
		}
	}
}

// TestLimitsOfPython: the Python client refuses what is larger than a model may be, before it sends it.
func TestLimitsOfPython(t *testing.T) {
	text, err := os.ReadFile("../../python/src/holdoutd/models.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		fmt.Sprintf("MAX_TREES, MAX_NODES, MAX_DEPTH, MAX_STEPS = %d, 1 << %d, 1 << %d, 1 << %d", MaxTrees, bits.Len(MaxArrayNodes)-1, bits.Len(MaxDepth)-1, bits.Len(MaxSteps)-1),
		fmt.Sprintf("MAX_TEXTS, MAX_INPUTS = 1 << %d, 1 << %d", bits.Len(MaxTexts)-1, bits.Len(MaxInputs)-1),
		fmt.Sprintf("MAX_VECTORS, MAX_ROW_STEPS, MAX_NEIGHBORS, MAX_VOTERS = 1 << %d, 1 << %d, %d, %d", bits.Len(MaxVectors)-1, bits.Len(MaxRowSteps)-1, maxNeighbors, maxVoters),
		fmt.Sprintf("EXPONENTIAL_STEPS = %d ", exponentialSteps),
		fmt.Sprintf("MAX_MODELS, MAX_UNITS, MAX_LAYERS = %d, %d, %d", MaxModels, MaxUnits, MaxLayers),
		fmt.Sprintf("MAX_WEIGHTS, MAX_CLASSES, MAX_EXPRESSION = 1 << %d, %d, %d << 10", bits.Len(MaxWeights)-1, MaxClasses, expr.MaxSource>>10),
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("python/src/holdoutd/models.py lacks %s", line)
		}
	}
}

// TestFloats: numbers are spelled as encoding/json spells them.
func TestFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1e-7, 1e-6, 1e21, -1e21, 1e-10, 1e-100, 123456})).Draw(t, "x")
		if want, err := json.Marshal(x); err != nil || string(appendFloat(nil, x)) != string(want) {
			t.Fatalf("%s, want %s, %v", appendFloat(nil, x), want, err)
		}
	})
}

func TestArraysRefused(t *testing.T) {
	stump := `"reads":[["x"]],"nodes":` + packed("u8", 1, 0, 0)
	two := `,"thresholds":` + packed("f64", 1) + `,"leaves":` + packed("f64", 1, 2)
	for arrays, want := range map[string]string{
		`"single":1,` + stump + two:                "/trees/trees/single: must be true or false",
		`"nodes":[1,0,0]`:                          `/trees/trees/nodes: must be {"u8": …} or {"u16": …}`,
		`"nodes":{"u8":"AA","x":1}`:                `/trees/trees/nodes: must be {"u8": …} or {"u16": …}`,
		`"nodes":{"f64":"AA=="}`:                   `/trees/trees/nodes: must be {"u8": …} or {"u16": …}`,
		`"nodes":{"u8":"A"}`:                       "/trees/trees/nodes/u8: must be base64",
		`"nodes":{"u16":"AA=="}`:                   "/trees/trees/nodes/u16: has 1 bytes, which are no whole number of u16",
		stump:                                      "/trees/trees/leaves: has 0 numbers; the nodes have 2 leaves",
		stump + `,"leaves":` + packed("f64", 1, 2): "/trees/trees/thresholds: has 0 numbers; the nodes have 1 splits",
		`"nodes":` + packed("u8", 1, 0, 0) + two:   "node 0 is 1, and there are 0 reads",
		`"reads":[["x"],["y"]],"nodes":` + packed("u8", 1, 0, 0) + two:                                                          "/trees/trees/reads/1: is read by no node",
		`"reads":[["x"]],"nodes":` + packed("u8", 1, 0) + `,"thresholds":` + packed("f64", 1) + `,"leaves":` + packed("f64", 1): "the last tree ends too early",
		`"reads":{"x":1}`:                 "/trees/trees/reads: must be a list of at most",
		`"reads":["x"]`:                   `/trees/trees/reads/0: must be ["column"]`,
		`"reads":[["x","up"]]`:            `/trees/trees/reads/0/1: must be "left" or "right"`,
		`"reads":[["x",[1]]]`:             "/trees/trees/reads/0/1/0: must be a text",
		`"reads":[["x",["a"],"right",1]]`: `/trees/trees/reads/0: must be ["column"]`,
		`"reads":[["x",1]]`:               `/trees/trees/reads/0/1: must be "left" or "right"`,
		stump + `,"thresholds":` + packed("f64", math.NaN()) + `,"leaves":` + packed("f64", 1, 2):                                "/trees/trees/thresholds: number 0 must lie within",
		stump + `,"thresholds":` + packed("f64", 1) + `,"leaves":` + packed("f64", 1, math.Inf(1)):                               "/trees/trees/leaves: number 1 must lie within",
		`"nodes":` + packed("u8", make([]float64, MaxTrees+1)...) + `,"leaves":` + packed("f32", make([]float64, MaxTrees+1)...): "more than 4096 trees",
		stump + two + `,"depth":3`: "/trees/trees/depth: unknown member",
		``:                         "/trees/trees/nodes: has no tree",
		`"single":true,` + stump + `,"thresholds":` + packed("f64", 0.1) + `,"leaves":` + packed("f32", 0, 1):   "/trees/trees/thresholds: number 0 has no single precision",
		`"single":true,` + stump + `,"thresholds":` + packed("f64", 1e300) + `,"leaves":` + packed("f32", 0, 1): "/trees/trees/thresholds: number 0 has no single precision",
	} {
		_, err := Parse([]byte(`{"trees":{"trees":{` + arrays + `}}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.300s: got %v, want %s", arrays, err, want)
		}
	}
}

// TestArraysOfThePage: what docs/MODELS.md shows as arrays is what it shows as lists.
func TestArraysOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/MODELS.md")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, part := range strings.Split(string(page), "```json\n")[1:] {
		if body, _, _ := strings.Cut(part, "```"); strings.HasPrefix(body, `{"trees"`) {
			m, err := Parse([]byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			ids = append(ids, m.ID())
		}
	}
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("the models of trees are %v", ids)
	}
}
