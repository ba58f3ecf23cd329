package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// predict is the model as docs/MODELS.md says it, from the JSON itself and one row of cells: a float64, a string, or nil.
func predict(t *rapid.T, body string, row map[string]any) []float64 {
	var in struct {
		Linear *struct {
			Intercept float64
			Weights   map[string]any
			Impute    map[string]any
			Link      string
		}
		Softmax *struct {
			Classes    []any
			Intercepts []float64
			Weights    map[string]any
			Impute     map[string]any
			Link       string
		}
		Trees *struct {
			Trees   [][]any
			Base    any
			Link    string
			Classes []any
			Average bool
			Null    map[string][2]float64
			Impute  map[string]float64
		}
		Mixture *struct {
			Models []struct {
				Model  json.RawMessage
				Weight *float64
			}
			Base    any
			Link    string
			Classes []any
		}
		Network *struct {
			Activation string
			Weights    map[string]any
			Intercepts []float64
			Impute     map[string]any
			Layers     []struct {
				Weights    [][]float64
				Intercepts []float64
			}
			Link    string
			Classes []any
		}
		Kernel    *drawnSpace
		Neighbors *drawnSpace
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	switch {
	case in.Linear != nil:
		z := in.Linear.Intercept
		for _, column := range sortedKeys(in.Linear.Weights) {
			z += product(in.Linear.Weights[column], row[column], in.Linear.Impute[column], -1)
		}
		return []float64{linked(in.Linear.Link, z)}
	case in.Softmax != nil:
		z := slices.Clone(in.Softmax.Intercepts)
		for k := range z {
			for _, column := range sortedKeys(in.Softmax.Weights) {
				z[k] += product(in.Softmax.Weights[column], row[column], in.Softmax.Impute[column], k)
			}
		}
		if in.Softmax.Link == "identity" {
			return z
		}
		return softmax(z)
	}
	if in.Mixture != nil {
		return mixedBy(t, in.Mixture.Base, in.Mixture.Link, max(1, len(in.Mixture.Classes)), func(add func(weight float64, prediction []float64)) {
			for _, one := range in.Mixture.Models {
				weight := 1.0
				if one.Weight != nil {
					weight = *one.Weight
				}
				add(weight, predict(t, string(one.Model), row))
			}
		})
	}
	if in.Kernel != nil {
		return in.Kernel.kernel(row)
	}
	if in.Neighbors != nil {
		return in.Neighbors.neighbors(row)
	}
	if n := in.Network; n != nil {
		units := slices.Clone(n.Intercepts)
		for _, column := range slices.Sorted(maps.Keys(n.Weights)) {
			for k := range units {
				units[k] += product(n.Weights[column], row[column], n.Impute[column], k)
			}
		}
		for _, layer := range n.Layers {
			next := slices.Clone(layer.Intercepts)
			for j, x := range units {
				switch n.Activation {
				case "", "relu":
					x = math.Max(x, 0)
				case "tanh":
					x = (math.Exp(x) - math.Exp(-x)) / (math.Exp(x) + math.Exp(-x))
					if math.IsNaN(x) {
						x = math.Copysign(1, units[j])
					}
				case "logistic":
					x = 1 / (1 + math.Exp(-x))
				}
				for k := range next {
					next[k] += layer.Weights[j][k] * x
				}
			}
			units = next
		}
		if n.Classes != nil {
			return softmax(units)
		}
		if len(units) == 1 {
			units[0] = linked(n.Link, units[0])
		}
		return units
	}
	z := make([]float64, max(1, len(in.Trees.Classes)))
	switch base := in.Trees.Base.(type) {
	case float64:
		z[0] = base
	case []any:
		for k := range z {
			z[k] = base[k].(float64)
		}
	}
	for column, number := range in.Trees.Impute {
		if row[column] == nil {
			row = maps.Clone(row)
			row[column] = number
		}
	}
	for column, within := range in.Trees.Null {
		if x, ok := row[column].(float64); ok && x >= within[0] && x <= within[1] {
			row = maps.Clone(row)
			row[column] = nil
		}
	}
	for i, tree := range in.Trees.Trees {
		leaf, _ := walk(tree, row)
		if list, ok := leaf.([]any); ok {
			for k := range z {
				z[k] += list[k].(float64)
			}
		} else {
			z[i%len(z)] += leaf.(float64)
		}
	}
	for k := range z {
		if in.Trees.Average {
			z[k] /= float64(len(in.Trees.Trees))
		}
	}
	switch {
	case in.Trees.Link == "softmax":
		return softmax(z)
	case len(z) == 1:
		z[0] = linked(in.Trees.Link, z[0])
	}
	return z
}

// linked is a prediction from its score; NaN where it is no finite number.
func linked(link string, z float64) float64 {
	switch link {
	case "logit":
		z = 1 / (1 + math.Exp(-z))
	case "log":
		z = math.Exp(z)
	case "sqrt":
		z = math.Copysign(z*z, z)
	}
	if math.IsInf(z, 0) {
		return math.NaN()
	}
	return z
}

// mixedBy is base and the weighted predictions, through the link.
func mixedBy(t *rapid.T, base any, link string, outputs int, each func(add func(weight float64, prediction []float64))) []float64 {
	z := make([]float64, outputs)
	switch base := base.(type) {
	case float64:
		z[0] = base
	case []any:
		for k := range z {
			z[k] = base[k].(float64)
		}
	}
	each(func(weight float64, prediction []float64) {
		if len(prediction) != outputs {
			t.Fatalf("%d predictions of a mixture with %d", len(prediction), outputs)
		}
		for k, p := range prediction {
			z[k] += weight * p
		}
	})
	if outputs == 1 {
		z[0] = linked(link, z[0])
	}
	return z
}

func softmax(z []float64) []float64 {
	top, sum := slices.Max(z), 0.0
	p := make([]float64, len(z))
	for k := range z {
		p[k] = math.Exp(z[k] - top)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// product is weight times cell, of output k; -1 for a model with one output.
func product(weight, cell, null any, k int) float64 {
	if texts, ok := weight.(map[string]any); ok {
		if cell == nil {
			cell = null
		}
		text, _ := cell.(string)
		if cell == nil || texts[text] == nil {
			return 0
		}
		return product(texts[text], 1.0, nil, k)
	}
	if list, ok := weight.([]any); ok {
		weight = list[k]
	}
	x, ok := cell.(float64)
	if !ok {
		x, _ = null.(float64)
	}
	return weight.(float64) * x
}

// walk goes down a tree in preorder; size is the number of its nodes.
func walk(nodes []any, row map[string]any) (leaf any, size int) {
	split, ok := nodes[0].([]any)
	if !ok {
		return nodes[0], 1
	}
	column, ok := split[0].(string)
	if !ok {
		return nodes[0], 1
	}
	left, n := walk(nodes[1:], row)
	right, m := walk(nodes[1+n:], row)
	goes := false
	switch cell := row[column].(type) {
	case nil:
		goes = len(split) == 3 && split[2] == "right"
	case float64:
		goes = cell > split[1].(float64)
	case string:
		goes = !slices.Contains(split[1].([]any), any(cell))
	}
	if goes {
		return right, 1 + n + m
	}
	return left, 1 + n + m
}

var (
	drawNumber = rapid.SampledFrom([]any{-2.5, -1.0, 0.0, 0.25, 1.0, 3.0, 1e3})
	drawLink   = rapid.SampledFrom([]string{"identity", "logit", "log", "sqrt"})
	drawText   = rapid.SampledFrom([]any{"SFO", "OAK", "", "é"})
)

// drawModel draws the JSON of a model that reads the numbers x, y, z and the texts s.
func drawModel(t *rapid.T) string {
	body, err := json.Marshal(drawOne(t, rapid.IntRange(0, 5).Draw(t, "classes, if any"), 0))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// drawOne draws a model with so many classes; without where they are fewer than 2.
func drawOne(t *rapid.T, classes, level int) map[string]any {
	weight := func(k int) any {
		if k == 0 {
			return drawNumber.Draw(t, "weight")
		}
		list := make([]any, k)
		for i := range list {
			list[i] = drawNumber.Draw(t, "weight")
		}
		return list
	}
	several := classes >= 2
	names := []any{"a", "b", "c", "d", "e"}[:classes]
	weights := func(k int) map[string]any {
		w := map[string]any{}
		for _, column := range []string{"x", "y", "z"} {
			if rapid.Bool().Draw(t, column) {
				w[column] = weight(k)
			}
		}
		if rapid.Bool().Draw(t, "s") {
			w["s"] = map[string]any{"SFO": weight(k), "OAK": weight(k)}
		}
		return w
	}
	impute := func(w map[string]any) map[string]any {
		nulls := map[string]any{}
		if w["y"] != nil {
			nulls["y"] = drawNumber.Draw(t, "null")
		}
		if w["s"] != nil && rapid.Bool().Draw(t, "null text") {
			nulls["s"] = "OAK"
		}
		return nulls
	}
	forms := 5
	if level > 1 {
		forms = 4
	}
	switch form := rapid.IntRange(0, forms).Draw(t, "form"); {
	case form == 0 && !several:
		w := weights(0)
		return map[string]any{"linear": map[string]any{"intercept": weight(0), "weights": w, "impute": impute(w), "link": drawLink.Draw(t, "link")}}
	case form == 0:
		w := weights(classes)
		return map[string]any{"softmax": map[string]any{"classes": names, "intercepts": weight(classes), "weights": w, "impute": impute(w), "link": rapid.SampledFrom([]string{"softmax", "identity"}).Draw(t, "link")}}
	case form == 1:
		outputs, units := max(1, classes), rapid.IntRange(1, 5).Draw(t, "units")
		if !several {
			outputs = 1
		}
		w := weights(units)
		n := map[string]any{"weights": w, "impute": impute(w), "intercepts": weight(units), "activation": rapid.SampledFrom([]string{"relu", "tanh", "logistic", "identity"}).Draw(t, "activation")}
		if several {
			n["classes"] = names
		} else {
			n["link"] = drawLink.Draw(t, "link")
		}
		var layers []any
		for range rapid.IntRange(0, 2).Draw(t, "layers") {
			next := rapid.IntRange(1, 4).Draw(t, "units")
			layers, units = append(layers, drawLayer(units, next, weight)), next
		}
		n["layers"] = append(layers, drawLayer(units, outputs, weight))
		return map[string]any{"network": n}
	case form == 2 || form == 3:
		return drawSpace(t, form == 2, names, weight, weights, impute)
	case form == 5:
		e := map[string]any{"base": weight(0)}
		if several {
			e["classes"], e["base"] = names, weight(classes)
		} else {
			e["link"] = drawLink.Draw(t, "link")
		}
		var models []any
		for range rapid.IntRange(1, 3).Draw(t, "models") {
			one := map[string]any{"model": drawOne(t, classes, level+1)}
			if rapid.Bool().Draw(t, "weighted") {
				one["weight"] = drawNumber.Draw(t, "weight")
			}
			models = append(models, one)
		}
		e["models"] = models
		return map[string]any{"mixture": e}
	}
	e := map[string]any{"average": rapid.Bool().Draw(t, "average"), "base": weight(0)}
	links, leaf := drawLink, 0
	if several {
		e["classes"], e["base"], links = names, weight(classes), rapid.SampledFrom([]string{"identity", "softmax"})
		if rapid.Bool().Draw(t, "lists") {
			leaf = classes
		}
	}
	e["link"] = links.Draw(t, "link")
	var trees []any
	for range rapid.IntRange(1, 5).Draw(t, "trees") {
		draw := rapid.SampledFrom([]func(*rapid.T, int, func() any) []any{drawTree, drawTree, drawChain}).Draw(t, "shape")
		trees = append(trees, draw(t, 4, func() any { return weight(leaf) }))
	}
	e["trees"] = trees
	if column := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "column"); reads(trees, column) && rapid.Bool().Draw(t, "some are null") {
		low := drawNumber.Draw(t, "first").(float64)
		e["null"] = map[string]any{column: []any{low, max(low, drawNumber.Draw(t, "last").(float64))}}
	}
	if column := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "column"); reads(trees, column) && rapid.Bool().Draw(t, "imputed") {
		e["impute"] = map[string]any{column: drawNumber.Draw(t, "null")}
	}
	return map[string]any{"trees": e}
}

// reads reports whether a split of the trees is by a column.
func reads(trees []any, column string) bool {
	return slices.ContainsFunc(trees, func(tree any) bool {
		return slices.ContainsFunc(tree.([]any), func(node any) bool {
			split, ok := node.([]any)
			return ok && split[0] == column
		})
	})
}

// drawLayer draws a layer of a network.
func drawLayer(inputs, units int, weight func(int) any) map[string]any {
	rows := make([]any, inputs)
	for j := range rows {
		rows[j] = weight(units)
	}
	return map[string]any{"weights": rows, "intercepts": weight(units)}
}

// drawChain draws a tree that is deeper than wide.
func drawChain(t *rapid.T, depth int, leaf func() any) []any {
	if depth == -8 {
		return []any{leaf()}
	}
	split := drawSplit(t)
	if rapid.Bool().Draw(t, "left") {
		return append(append([]any{split}, drawChain(t, depth-1, leaf)...), leaf())
	}
	return append([]any{split, leaf()}, drawChain(t, depth-1, leaf)...)
}

func drawTree(t *rapid.T, depth int, leaf func() any) []any {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
		return []any{leaf()}
	}
	split := drawSplit(t)
	return append(append([]any{split}, drawTree(t, depth-1, leaf)...), drawTree(t, depth-1, leaf)...)
}

func drawSplit(t *rapid.T) []any {
	split := []any{rapid.SampledFrom([]string{"x", "y", "s"}).Draw(t, "column"), nil}
	if split[1] = drawNumber.Draw(t, "threshold"); split[0] == "s" {
		split[1] = []any{drawText.Draw(t, "text"), "OAK"}
	}
	if rapid.Bool().Draw(t, "side") {
		split = append(split, rapid.SampledFrom([]any{"left", "right"}).Draw(t, "null"))
	}
	return split
}

func drawRow(t *rapid.T) map[string]any {
	row := map[string]any{}
	for _, column := range []string{"x", "y", "z"} {
		if rapid.IntRange(0, 4).Draw(t, "known") > 0 {
			row[column] = drawNumber.Draw(t, column)
		}
	}
	if rapid.Bool().Draw(t, "known") {
		row["s"] = drawText.Draw(t, "s")
	}
	return row
}

// features are a row's features, by the comment of Feature.
func features(m *Model, row map[string]any) []float64 {
	out := make([]float64, len(m.Features()))
	for i, f := range m.Features() {
		switch cell := row[f.Column].(type) {
		case nil:
			if out[i] = math.NaN(); f.Texts != nil {
				out[i] = f.Null
			}
		case string:
			out[i] = f.Texts[cell]
		case float64:
			out[i] = cell
		}
	}
	return out
}

// TestPredictions compares models with their definition, and blocks with single rows, bit for bit.
func TestPredictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawModel(t)
		m, err := Parse([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		again, err := Parse(m.Canonical())
		if err != nil || again.ID() != m.ID() || string(again.Canonical()) != string(m.Canonical()) {
			t.Fatalf("%s has the canonical form %s: %v", body, m.Canonical(), err)
		}
		rows := rapid.IntRange(1, 9).Draw(t, "rows")
		block := make([][]float64, len(m.Features()))
		scores, single := make([][]float64, m.Scorer().Outputs()), make([][]float64, m.Scorer().Outputs())
		for k := range scores {
			scores[k], single[k] = make([]float64, rows), make([]float64, 1)
		}
		for range rows {
			row := drawRow(t)
			in := features(m, row)
			got, want := m.Predict(in), predict(t, body, row)
			for k := range want {
				if math.Abs(got[k]-want[k]) > 1e-9*(1+math.Abs(want[k])) || len(got) != len(want) {
					t.Fatalf("%s at %v: got %v, want %v", body, row, got, want)
				}
			}
			for j, x := range in {
				block[j] = append(block[j], x)
			}
		}
		scratch := m.Scorer().MakeScratch()
		m.Scorer().BlockIn(scratch, scores, block)
		for i := range rows {
			one := make([][]float64, len(block))
			for j := range one {
				one[j] = block[j][i : i+1]
			}
			m.Scorer().BlockIn(scratch, single, one)
			for k := range single {
				if math.Float64bits(single[k][0]) != math.Float64bits(scores[k][i]) {
					t.Fatalf("row %d alone has the score %v, in its block %v", i, single[k][0], scores[k][i])
				}
			}
		}
	})
}

// TestOverflow: a score that is no finite number is no prediction.
func TestOverflow(t *testing.T) {
	m, err := Parse([]byte(`{"linear":{"weights":{"x":1e150}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Predict([]float64{1e300})[0]; !math.IsNaN(got) {
		t.Errorf("got %v", got)
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range [][2]string{
		{`{"softmax":{"impute":{"a":"x"},"weights":{"a":{"y":[2,0],"x":[0,1e0]}},"classes":["p","q"]}}`,
			`{"softmax":{"classes":["p","q"],"impute":{"a":"x"},"intercepts":[0,0],"weights":{"a":{"x":[0,1],"y":[2,0]}}}}`},
		{`{"linear":{"weights":{"b":1e0,"a":{"y":2,"x":-0.0}},"link":"identity","intercept":0,"impute":{"b":0}}}`, `{"linear":{"weights":{"a":{"x":0,"y":2},"b":1}}}`},
		{`{"linear":{"intercept":-0.2,"weights":{"distance":1e-3},"link":"logit","impute":{"distance":5.0}}}`,
			`{"linear":{"impute":{"distance":5},"intercept":-0.2,"link":"logit","weights":{"distance":0.001}}}`},
		{`{"softmax":{"classes":["b","a"],"weights":{"x":[1,2]}}}`, `{"softmax":{"classes":["b","a"],"intercepts":[0,0],"weights":{"x":[1,2]}}}`},
		{`{"trees":{"base":0,"average":false,"trees":[[["s",["b","a","b"],"left"],0.5,1.50]]}}`, `{"trees":{"trees":[[["s",["a","b"]],0.5,1.5]]}}`},
		{`{"trees":{"classes":[1,0],"link":"softmax","trees":[[["x",1e1,"right"],[0,1],[1,0]]]}}`,
			`{"trees":{"classes":[1,0],"link":"softmax","trees":[[["x",10,"right"],[0,1],[1,0]]]}}`},
		{`{"threshold":0,"linear":{"weights":{"x":1},"link":"sqrt"}}`, `{"linear":{"link":"sqrt","weights":{"x":1}}}`},
		{`{"softmax":{"classes":["b","a"],"weights":{"x":[1,2]},"link":"identity"}}`, `{"softmax":{"classes":["b","a"],"intercepts":[0,0],"link":"identity","weights":{"x":[1,2]}}}`},
		{`{"trees":{"null":{"x":[-999.0,-999]},"impute":{"x":0e0},"trees":[[["x",1],0,1]]}}`, `{"trees":{"impute":{"x":0},"null":{"x":[-999,-999]},"trees":[[["x",1],0,1]]}}`},
	} {
		m, err := Parse([]byte(c[0]))
		if err != nil {
			t.Fatalf("%s: %v", c[0], err)
		}
		if got := string(m.Canonical()); got != c[1] || m.Size() != len(got) {
			t.Errorf("%s:\n got %s\nwant %s, %d bytes", c[0], got, c[1], m.Size())
		}
		if form, err := json.Marshal(m.Form()); err != nil || string(form) != c[1] {
			t.Errorf("%s as a part of something: %s, %v", c[0], form, err)
		}
	}
}

func TestRefused(t *testing.T) {
	tree := "0" // of 2^15-1 nodes
	for range 14 {
		tree = `["x",1],` + tree + "," + tree
	}
	quarter := `{"model":{"trees":{"trees":[[` + tree + `]]}}}`
	var lists, columns, wide strings.Builder // trees that are lists of splits, each below the last
	for i := range MaxTexts + 1 {
		fmt.Fprintf(&lists, `,[["s",["%d"]],0,0]`, i)
		fmt.Fprintf(&wide, `,"%d":{"a":1}`, i)
	}
	for i := range MaxInputs/2 + 1 {
		fmt.Fprintf(&columns, `,[["%d",0],["%d",0,"right"],0,0,0]`, i, i)
	}
	deep := strings.Repeat(`["x",1],`, MaxDepth+1) + "0" + strings.Repeat(",0", MaxDepth+1)
	for body, want := range map[string]string{
		``:                                     "is not JSON",
		`{}x`:                                  "goes on after its end",
		`3`:                                    "must be an object",
		`{}`:                                   `must have one member`,
		`{"forest":{}}`:                        "/forest: unknown member; known are linear, softmax, trees",
		`{"linear":{"a":1}}`:                   "/linear/a: unknown member",
		`{"linear":{}}`:                        `"weights" is missing`,
		`{"linear":{"weights":{"a":1,"a":2}}}`: "twice",
		`{"linear":{"weights":{"a":null}}}`:    "/linear/weights/a: must be a number, not null",
		`{"linear":{"weights":{"a/b":"x"}}}`:   "/linear/weights/a~1b: must be a number",
		`{"linear":{"weights":{"a":1e151}}}`:   "must lie within",
		`{"linear":{"weights":{"a":1e999}}}`:   "must lie within",
		`{"linear":{"weights":{"a":1},"impute":{"b":1}}}`:            "/linear/impute/b: is no column",
		`{"linear":{"weights":{"a":{"x":1}},"impute":{"a":1}}}`:      "/linear/impute/a: must be a text that has a weight",
		`{"linear":{"weights":{"a":{"x":1}},"impute":{"a":"y"}}}`:    "/linear/impute/a: must be a text that has a weight",
		`{"linear":{"weights":{"a":1},"link":"softmax"}}`:            "/linear/link: must be one of [identity logit log sqrt]",
		`{"softmax":{"classes":["a"],"weights":{}}}`:                 "/softmax/classes: must be a list of 2 to",
		`{"softmax":{"classes":["a","a"],"weights":{}}}`:             "/softmax/classes/1: occurs twice",
		`{"softmax":{"classes":["a",1],"weights":{}}}`:               "all texts or all numbers",
		`{"softmax":{"classes":["a","b"],"weights":{"x":[1]}}}`:      "/softmax/weights/x: must be a list of 2 numbers",
		`{"softmax":{"classes":["a","b"],"weights":{"x":[1,null]}}}`: "/softmax/weights/x/1: must be a number",
		`{"trees":{}}`:             "/trees/trees: must be a list of 1 to",
		`{"trees":{"trees":[[]]}}`: "/trees/trees/0: must be a list of nodes",
		`{"trees":{"trees":[{"feature":"a,b","threshold":1.50,"left":{"value":0.25},"right":{"feature":"x","threshold":-2,"left":1,"right":{"value":3}}}]}}`: `such as [["a,b", 1.50], 0.25, ["x", -2], 1, 3]: left where`,
		`{"trees":{"trees":[{"feature":"y","threshold":1,"left":0,"right":1,"missing":"left"}]}}`:                                                            `such as [["distance", 700], 0.1, 0.3]`, // what it means by missing is not said
		`{"trees":{"trees":[{"feature":"y","threshold":1,"left":0,"right":{"value":[1,2]}}]}}`:                                                               `such as [["distance", 700], 0.1, 0.3]`,
		`{"trees":{"trees":[{"feature":"` + strings.Repeat("y", maxOwn) + `","threshold":1,"left":0,"right":1}]}}`:                                           `such as [["distance", 700], 0.1, 0.3]`,
		`{"network":{"inputs":["x"],"layers":[]}}`:                                                                                                           `/network/inputs: unknown member; the inputs are in "weights": {"distance": [0.1, -0.2], …}`,
		`{"mixture":{"models":[{"linear":{"weights":{"x":1}}}],"weights":[1]}}`:                                                                              `/mixture/weights: unknown member; each model has its own: "models": [{"model": {"linear": …}, "weight": 0.5}, …]`,
		`{"linear":{"coef":{"x":1}}}`:                                                                                          `/linear/coef: unknown member; it is called "weights"`,
		`{"trees":{"trees":[[["x",1],0]]}}`:                                                                                    "/trees/trees/0: the tree ends too early",
		`{"trees":{"trees":[[0,1]]}}`:                                                                                          "/trees/trees/0/1: the tree has ended",
		`{"trees":{"trees":[[["x"],0,1]]}}`:                                                                                    `/trees/trees/0/0: must be ["column", threshold]`,
		`{"trees":{"trees":[[["x",1,"up"],0,1]]}}`:                                                                             `/trees/trees/0/0/2: must be "left" or "right"`,
		`{"trees":{"trees":[[["x",null],0,1]]}}`:                                                                               "/trees/trees/0/0/1: must be a number, or a list of texts",
		`{"trees":{"trees":[[["x",[]],0,1]]}}`:                                                                                 "/trees/trees/0/0/1: must be a list of texts",
		`{"trees":{"trees":[[["x",[1]],0,1]]}}`:                                                                                "/trees/trees/0/0/1/0: must be a text",
		`{"trees":{"trees":[[[1,2]]]}}`:                                                                                        "/trees/trees/0/0: must be a split",
		`{"trees":{"classes":["a","b"],"trees":[[["x",1],[1,2],3]]}}`:                                                          "leaves of one tree must be all numbers or all lists",
		`{"trees":{"classes":["a","b"],"link":"logit","trees":[[1]]}}`:                                                         "/trees/link: must be one of [identity softmax]",
		`{"trees":{"average":1,"trees":[[1]]}}`:                                                                                "/trees/average: must be true or false",
		`{"trees":{"trees":[[` + deep + `]]}}`:                                                                                 fmt.Sprintf("deeper than %d", MaxDepth),
		`{"trees":{"trees":[[` + strings.Repeat("0,", MaxNodes) + `0]]}}`:                                                      "more than 131072 nodes",
		`{"linear":{"weights":{"a":` + strings.Repeat("[", 100) + "]" + `}}}`:                                                  "nested deeper",
		`{"trees":{"trees":[` + lists.String()[1:] + `]}}`:                                                                     "more than 1024 different lists of texts",
		`{"trees":{"trees":[` + columns.String()[1:] + `]}}`:                                                                   "read more than 2048 columns",
		`{"linear":{"weights":{` + wide.String()[1:] + `}}}`:                                                                   "more than 1024 text columns",
		`{"linear":{"weights":[1]}}`:                                                                                           "/linear/weights: must be an object",
		`{"mixture":{"models":[]}}`:                                                                                            "/mixture/models: must be a list of 1 to 64",
		`{"mixture":{"models":[{"model":{"linear":{"weights":{"a":"x"}}}}]}}`:                                                  "/mixture/models/0/model/linear/weights/a: must be a number",
		`{"mixture":{"classes":["a","b"],"models":[{"model":{"softmax":{"classes":["b","a"],"weights":{}}}}]}}`:                "/mixture/models/0/model: must have the classes of the mixture, in their order",
		`{"mixture":{"models":[{"model":{"softmax":{"classes":["b","a"],"weights":{}}}}]}}`:                                    "must have the classes of the mixture",
		`{"mixture":{"classes":["a","b"],"link":"logit","models":[]}}`:                                                         "/mixture/link: must be one of [identity softmax]",
		`{"mixture":{"models":[{"model":{"softmax":{"classes":["b","a"],"weights":{}}},"weights":[[1]]}]}}`:                    "/mixture/models/0/weights: must be a list of 2 lists",
		`{"mixture":{"models":[{"model":{"softmax":{"classes":["b","a"],"weights":{}}},"weights":[[1],[1,2]]}]}}`:              "/mixture/models/0/weights/1: must be a list of 1 numbers",
		`{"mixture":{"models":[{"model":{"softmax":{"classes":["b","a"],"weights":{}}},"weights":[[1],null]}]}}`:               "/mixture/models/0/weights/1: must be a list of 1 numbers",
		`{"mixture":{"models":[{"model":{"linear":{"weights":{}}},"weight":1,"weights":[[1]]}]}}`:                              `/mixture/models/0/weights: are instead of "weight"`,
		`{"mixture":{"models":[{"model":{"linear":{"weights":{}}},"shares":true}]}}`:                                           "/mixture/models/0/shares: is for a model with classes",
		`{"mixture":{"models":[{"model":{"linear":{"weights":{}}},"shares":1}]}}`:                                              "/mixture/models/0/shares: must be true or false",
		`{"mixture":{"models":[{"model":{"linear":{"weights":{}}},"curves":[{"slope":1}]}]}}`:                                  "/mixture/models/0/curves: must be a list of curves, one for each class",
		`{"mixture":{"models":[{"model":{"linear":{"weights":{}}},"curve":{"intercept":1}}]}}`:                                 "/mixture/models/0/curve/slope: must be a number",
		`{"mixture":{"classes":[0,1],"models":[{"model":{"softmax":{"classes":[0,1],"weights":{}}},"curves":[null,null]}]}}`:   "/mixture/models/0/curves/0: must be a",
		`{"mixture":{"models":[{"weight":1e151,"model":{}}]}}`:                                                                 "/mixture/models/0/weight: must lie within",
		strings.Repeat(`{"mixture":{"models":[{"model":`, 5) + `{"trees":{"trees":[[1]]}}` + strings.Repeat(`}]}}`, 5):         "there are more than 3 mixtures around it",
		`{"mixture":{"models":[` + strings.Repeat(quarter+",", 4) + quarter + `]}}`:                                            "more than 131072 nodes",
		`{"network":{"weights":{"a":[1]},"intercepts":[],"layers":[{"weights":[[1]],"intercepts":[0]}]}}`:                      "/network/intercepts: must be a list of 1 to 256",
		`{"network":{"weights":{"a":[1]},"intercepts":[0],"layers":[]}}`:                                                       "/network/layers: must be a list of 1 to 8",
		`{"network":{"weights":{"a":[1]},"intercepts":[0],"layers":[{"weights":[[1],[1]],"intercepts":[0]}]}}`:                 "/network/layers/0/weights: must be a list of 1 lists",
		`{"network":{"weights":{"a":[1]},"intercepts":[0],"layers":[{"weights":[[1,1]],"intercepts":[0,0]}]}}`:                 "/network/layers/0/intercepts: must be a list of numbers",
		`{"network":{"weights":{"a":[1]},"intercepts":[0],"layers":[{"weights":[null],"intercepts":[0]}]}}`:                    "/network/layers/0/weights/0: must be a list of 1 numbers",
		`{"network":{"weights":{"a":[1]},"intercepts":[0],"activation":"gelu","layers":[{"weights":[[1]],"intercepts":[0]}]}}`: "/network/activation: must be one of [relu tanh logistic identity]",
		`{"network":{"weights":{"a":[1]},"intercepts":[0],"classes":["a","b"],"link":"logit","layers":[]}}`:                    "/network/link: must be one of [softmax]",
		`{"linear":{"weights":{"a":1}},"threshold":"1"}`:                                                                       "/threshold: must be a number",
		`{"linear":{"weights":{"a":1}},"threshold":null}`:                                                                      "/threshold: must be a number",
		`{"threshold":1}`: "must have one member",
		`{"softmax":{"classes":["a","b"],"weights":{}},"threshold":1}`:               "/threshold: is for a model with one output",
		`{"mixture":{"models":[{"model":{"linear":{"weights":{}},"threshold":1}}]}}`: "/mixture/models/0/model/threshold: unknown member",
		`{"trees":{"impute":{"y":0},"trees":[[["x",1],0,1]]}}`:                       "/trees/impute/y: is no column whose number the trees read",
		`{"trees":{"impute":{"x":null},"trees":[[["x",1],0,1]]}}`:                    "/trees/impute/x: must be a number",
		`{"trees":{"impute":{"s":"a"},"trees":[[["s",["a"]],0,1]]}}`:                 "/trees/impute/s: must be a number",
		`{"trees":{"null":{"y":[0,0]},"trees":[[["x",1],0,1]]}}`:                     "/trees/null/y: is no column whose number the trees read",
		`{"trees":{"null":{"x":[1,0]},"trees":[[["x",1],0,1]]}}`:                     "of which the first is not above the last",
		`{"trees":{"null":{"x":0},"trees":[[["x",1],0,1]]}}`:                         "/trees/null/x: must be two numbers",
		`{"linear":{"intercept":"1","weights":{}}}`:                                  "/linear/intercept: must be a number",
		`{"trees":{"base":[1],"classes":["a","b"],"trees":[[1]]}}`:                   "/trees/base: must be a list of 2 numbers",
		`{"trees":{"classes":["a","b"],"base":1,"trees":[[["x",1],[1,2],[3]]]}}`:     "/trees/base: must be a list of 2 numbers",
	} {
		_, err := Parse([]byte(body))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: got %v, want %s", body, err, want)
		}
	}
}

// FuzzParse: whatever is accepted has a canonical form that is accepted and the same, and is evaluated without a panic.
func FuzzParse(f *testing.F) {
	f.Add(`{"linear":{"intercept":-0.2,"weights":{"distance":0.001,"origin":{"SFO":1}},"link":"logit","impute":{"distance":5}}}`)
	f.Add(`{"softmax":{"classes":["a","b"],"intercepts":[0,1],"weights":{"x":[1,2],"s":{"t":[1,2]}}}}`)
	f.Add(`{"trees":{"classes":[1,0],"link":"softmax","average":true,"base":[1,2],"trees":[[["x",10,"right"],[0,1],["s",["a"]],[1,0],[2,2]]]}}`)
	f.Add(`{"trees":{"trees":[[["x",1],["y",2],1,2,3],[4]]}}`)
	f.Add(`{"trees":{"classes":[1,0],"trees":{"reads":[["x","right"],["s",["a"]]],"nodes":{"u8":"AQACAAAA"},"thresholds":{"f32":"AACAPw=="},"leaves":{"f64":"AAAAAAAAAAAAAAAAAADwPwAAAAAAAABAAAAAAAAACEA="},"single":true}}}`)
	f.Add(`{"threshold":-999,"trees":{"null":{"x":[-1,1]},"link":"log","trees":[[["x",1,"right"],2,3]]}}`)
	f.Add(`{"mixture":{"link":"logit","base":1,"models":[{"weight":0.5,"model":{"linear":{"weights":{"x":1},"link":"logit"}}},{"model":{"mixture":{"models":[{"model":{"trees":{"trees":[[1]]}}}]}}}]}}`)
	f.Add(`{"network":{"classes":["a","b"],"activation":"tanh","weights":{"x":[1,2],"s":{"t":[1,2]}},"impute":{"s":"t"},"intercepts":[0,1],"layers":[{"weights":[[1],[2]],"intercepts":[0]},{"weights":[[1,2]],"intercepts":[0,3]}]}}`)
	f.Add(`{"kernel":{"function":"poly","degree":2,"gamma":0.5,"coef0":1,"votes":true,"classes":["a","b"],"base":[1],"weights":{"x":[1,2],"s":{"t":[1,2]}},"impute":{"s":"t"},"intercepts":[0,1],"vectors":{"f32":"AACAPwAAAEA="},"coefficients":{"f64":"AAAAAAAA8D8="}}}`)
	f.Add(`{"neighbors":{"k":1,"metric":"manhattan","weighting":"distance","classes":[0,1],"weights":{"x":[1]},"intercepts":[0],"vectors":{"f32":"AACAPwAAAEA="},"values":{"f64":"AAAAAAAAAAAAAAAAAADwPw=="}}}`)
	f.Add(`{"mixture":{"classes":["a","b"],"link":"softmax","base":[0,1],"models":[{"shares":true,"curves":[{"slope":1,"intercept":2},[[0,1],[1,2]]],"model":{"softmax":{"classes":["a","b"],"weights":{"x":[1,2]}}}},{"weights":[[1,2]],"curve":{"slope":2},"model":{"linear":{"weights":{"x":1}}}}]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		m, err := Parse([]byte(body))
		if err != nil {
			return
		}
		again, err := Parse(m.Canonical())
		if err != nil || string(again.Canonical()) != string(m.Canonical()) {
			t.Fatalf("%s: %s, %v", body, m.Canonical(), err)
		}
		in := make([]float64, len(m.Features()))
		a, b := m.Predict(in), again.Predict(in)
		for k := range a {
			if math.Float64bits(a[k]) != math.Float64bits(b[k]) {
				t.Fatalf("%v and %v", a, b)
			}
		}
	})
}

// TestBlocksDoNotAllocate: a mixture of a network and trees scores a block in the scratch that it declares, with models within models; a row costs what Steps says
// of all of them.
func TestBlocksDoNotAllocate(t *testing.T) {
	network := `{"network":{"activation":"tanh","weights":{"x":[1,2,3],"y":[1,0,1]},"intercepts":[0,1,0],"layers":[{"weights":[[1,1],[2,0],[1,3]],"intercepts":[0,1]},{"weights":[[1],[2]],"intercepts":[0]}],"link":"logit"}}`
	forest := `{"trees":{"trees":[[["x",1],["y",2,"right"],1,2,3],[4]],"link":"logit"}}`
	kernel := `{"kernel":{"weights":{"x":[1,0],"y":[0,1]},"intercepts":[0,1],"vectors":` + packed("f64", 1, 2, 3, 4, 5, 6) + `,"coefficients":` + packed("f64", 1, 2, 3) + `}}`
	neighbors := `{"neighbors":{"k":2,"weights":{"x":[1],"y":[2]},"intercepts":[0],"vectors":` + packed("f64", 1, 2, 3) + `,"values":` + packed("f64", 1, 0, 1) + `}}`
	inner := `{"mixture":{"link":"logit","models":[{"model":` + network + `},{"weight":-2,"model":` + forest + `}]}}`
	m, err := Parse([]byte(`{"mixture":{"models":[{"weight":0.5,"model":` + inner + `},{"weight":0.5,"model":` + network + `},{"model":` + kernel + `},{"model":` + neighbors + `}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := m.Scorer()
	scratch, features, dst := s.MakeScratch(), make([][]float64, s.Features()), [][]float64{make([]float64, MaxBlock)}
	for j := range features {
		features[j] = make([]float64, MaxBlock)
	}
	if n := testing.AllocsPerRun(5, func() { s.BlockIn(scratch, dst, features) }); n != 0 {
		t.Errorf("%v allocations for a block", n)
	}
	steps := int64(0)
	for _, body := range []string{network, network, forest, kernel, neighbors} {
		one, err := Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		steps += one.Scorer().Steps()
	}
	if s.Steps() < steps || s.Steps() > steps+100 {
		t.Errorf("a row takes %d steps, its models take %d", s.Steps(), steps)
	}
}
