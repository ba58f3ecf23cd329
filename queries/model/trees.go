package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// ensemble reads {"trees": {...}}. Its trees are lists of nodes in preorder: a split is followed by all nodes of its left
// side, then by all of its right side, so that a list is a tree, or is refused, by its order alone.
func (r *reader) ensemble(pointer string, in any) *Model {
	o := r.object(pointer, in, "trees", "base", "link", "classes", "average", "null", "impute")
	m := &Model{}
	form := map[string]any{}
	outputs := 1
	if o["classes"] != nil {
		m.classes = r.classes(pointer+"/classes", o["classes"])
		m.link = r.link(pointer+"/link", o["link"], Identity, Softmax)
		outputs, form["classes"] = len(m.classes), classForms(m.classes)
	} else {
		m.link = r.link(pointer+"/link", o["link"], oneOutput...)
	}
	if m.link != Identity {
		form["link"] = m.link
	}
	f := &forest{base: r.base(pointer+"/base", o["base"], outputs)}
	if slices.ContainsFunc(f.base, func(x float64) bool { return x != 0 }) {
		if form["base"] = f.base; outputs == 1 {
			form["base"] = f.base[0]
		}
	}
	if o["average"] != nil {
		yes, ok := o["average"].(bool)
		if !ok {
			r.add(pointer+"/average", "must be true or false")
		}
		if f.average = yes; yes {
			form["average"] = true
		}
	}
	nulls, imputed := r.nulls(pointer+"/null", o["null"]), map[string]float64{}
	fills := r.columns(pointer+"/impute", o["impute"])
	for _, column := range sortedKeys(fills) {
		in, at := fills[column], pointer+"/impute/"+escape(column)
		if imputed[column] = r.number(at, in, 0); in == nil {
			r.add(at, "must be a number")
		}
	}
	list, ok := o["trees"].([]any)
	if !ok || len(list) == 0 || len(list) > MaxTrees {
		r.add(pointer+"/trees", "must be a list of 1 to %d trees", MaxTrees)
	}
	if !r.ok() {
		return nil
	}
	g := grower{r: r, forest: f, nulls: nulls, imputed: imputed, outputs: outputs, seen: map[string]int{}, inputs: map[input]uint32{}}
	forms := make([]any, len(list))
	for i, t := range list {
		forms[i] = g.tree(fmt.Sprintf("%s/trees/%d", pointer, i), i, t)
		if !r.ok() {
			return nil
		}
		if r.depths += int(f.trees[i].depth); r.depths > MaxSteps {
			r.add(pointer+"/trees", "the depths of the trees sum to more than %d", MaxSteps)
			return nil
		}
	}
	form["trees"] = forms
	said := map[string]any{}
	for _, column := range sortedKeys(nulls) {
		if _, reads := g.seen[numberOf(column)]; !reads {
			r.add(pointer+"/null/"+escape(column), "is no column whose number the trees read")
		}
		said[column] = []float64{nulls[column].low, nulls[column].high}
	}
	if len(said) > 0 {
		form["null"] = said
	}
	for _, column := range sortedKeys(imputed) {
		if _, reads := g.seen[numberOf(column)]; !reads {
			r.add(pointer+"/impute/"+escape(column), "is no column whose number the trees read")
		}
	}
	if len(imputed) > 0 {
		form["impute"] = imputed
	}
	m.features = g.features
	m.scorer = &Scorer{features: len(g.features), outputs: outputs, forest: f}
	m.form = map[string]any{"trees": form}
	return m
}

// nulls reads "null": of columns the numbers that count as null, each [first, last].
func (r *reader) nulls(pointer string, in any) map[string]absent {
	all := map[string]absent{}
	columns := r.columns(pointer, in)
	for _, column := range sortedKeys(columns) {
		at := pointer + "/" + escape(column)
		pair, ok := columns[column].([]any)
		if !ok || len(pair) != 2 || !isNumber(pair[0]) || !isNumber(pair[1]) {
			r.add(at, "must be two numbers, [first, last]: those between count as null, and they do")
			continue
		}
		if a := (absent{r.number(at+"/0", pair[0], 0), r.number(at+"/1", pair[1], 0)}); a.low <= a.high {
			all[column] = a
		} else {
			r.add(at, "must be two numbers of which the first is not above the last")
		}
	}
	return all
}

func (r *reader) base(pointer string, in any, outputs int) []float64 {
	if outputs == 1 {
		return []float64{r.number(pointer, in, 0)}
	}
	return r.numbers(pointer, in, outputs)
}

// grower adds trees to a forest.
type grower struct {
	r        *reader
	forest   *forest
	outputs  int
	features []Feature
	seen     map[string]int // features by what they are
	inputs   map[input]uint32
	nulls    map[string]absent
	imputed  map[string]float64

	nodes    []any // of the tree that is read
	forms    []any
	at       int
	each     int // numbers of a leaf, 0 before the first
	listed   bool
	deepest  uint32
	treePath string
}

func (g *grower) tree(pointer string, index int, in any) any {
	nodes, ok := in.([]any)
	if !ok || len(nodes) == 0 {
		g.r.add(pointer, "must be a list of nodes")
		return nil
	}
	if g.r.nodes += len(nodes); g.r.nodes > MaxNodes {
		g.r.add(pointer, "the trees have more than %d nodes", MaxNodes)
		return nil
	}
	g.nodes, g.forms, g.at, g.each, g.deepest, g.treePath = nodes, make([]any, 0, len(nodes)), 0, 0, 0, pointer
	t := tree{root: uint32(len(g.forest.nodes))}
	g.grow(0)
	if !g.r.ok() {
		return nil
	}
	if g.at < len(nodes) {
		g.r.add(fmt.Sprintf("%s/%d", pointer, g.at), "the tree has ended before this node")
		return nil
	}
	t.depth, t.count = g.deepest, g.each
	if !g.listed && g.outputs > 1 {
		t.first = index % g.outputs
	}
	g.forest.fill(&t)
	g.forest.trees = append(g.forest.trees, t)
	return g.forms
}

// grow reads the node at the cursor and what is below it, and returns its place in the forest.
func (g *grower) grow(depth uint32) uint32 {
	at := fmt.Sprintf("%s/%d", g.treePath, g.at)
	switch {
	case !g.r.ok():
		return 0
	case depth > MaxDepth:
		g.r.add(at, "the tree is deeper than %d", MaxDepth)
		return 0
	case g.at == len(g.nodes):
		g.r.add(g.treePath, "the tree ends too early: a split needs two nodes below it")
		return 0
	}
	g.deepest = max(g.deepest, depth)
	in := g.nodes[g.at]
	g.at++
	place := uint32(len(g.forest.nodes))
	if list, ok := in.([]any); ok && len(list) > 0 {
		if column, ok := list[0].(string); ok {
			g.forest.nodes = append(g.forest.nodes, g.split(at, column, list))
			left := g.grow(depth + 1)
			right := g.grow(depth + 1)
			g.forest.nodes[place].next = [2]uint32{left, right}
			return place
		}
	}
	leaf := node{leaf: uint32(len(g.forest.leaves)), next: [2]uint32{place, place}}
	g.forest.nodes = append(g.forest.nodes, leaf)
	g.leaf(at, in)
	return place
}

// leaf reads a number, or a list of one for each class.
func (g *grower) leaf(pointer string, in any) {
	list, listed := in.([]any)
	_, number := in.(json.Number)
	switch {
	case !listed && !number || listed && g.outputs == 1:
		g.r.add(pointer, `must be a split, ["column", threshold], or a leaf, a number%s`, map[bool]string{true: " or a list of one for each class"}[g.outputs > 1])
		return
	case g.each > 0 && listed != g.listed:
		g.r.add(pointer, "leaves of one tree must be all numbers or all lists")
		return
	}
	values := []float64{0}
	if listed {
		values = g.r.numbers(pointer, list, g.outputs)
		g.forms = append(g.forms, values)
	} else {
		values[0] = g.r.number(pointer, in, 0)
		g.forms = append(g.forms, values[0])
	}
	g.each, g.listed = len(values), listed
	g.forest.leaves = append(g.forest.leaves, values...)
}

// split reads ["column", threshold] or ["column", [texts]], and where a null goes if that is not left.
func (g *grower) split(pointer, column string, list []any) node {
	n, right, feature, none, filled := node{}, false, 0, noneAbsent, math.NaN()
	form := []any{column, nil}
	if len(list) != 2 && len(list) != 3 {
		g.r.add(pointer, `must be ["column", threshold] or ["column", threshold, "right"]`)
		return n
	}
	if len(list) == 3 {
		side, _ := list[2].(string)
		if side != "left" && side != "right" {
			g.r.add(pointer+"/2", `must be "left" or "right": where a null goes`)
		}
		if right = side == "right"; right {
			form = append(form, side)
		}
	}
	if texts, ok := list[1].([]any); ok {
		var names []string
		feature, names = g.texts(pointer+"/1", column, texts)
		n.threshold, form[1] = -0.5, names // in the list is -1, else 0
	} else {
		if list[1] == nil {
			g.r.add(pointer+"/1", "must be a number, or a list of texts")
		}
		n.threshold = g.r.number(pointer+"/1", list[1], 0)
		feature, form[1] = g.feature(numberOf(column), Feature{Column: column}), n.threshold
		if a, ok := g.nulls[column]; ok {
			none = a
		}
		if x, ok := g.imputed[column]; ok {
			filled = x
		}
	}
	in := input{feature, math.Float64bits(filled), infinite(right), none}
	if math.IsNaN(filled) {
		in.filled = in.null
	}
	if n.input = g.input(in); g.r.inputs > MaxInputs {
		g.r.add(pointer, "the trees read more than %d columns, one whose nulls go left and right counted twice", MaxInputs)
	}
	g.forms = append(g.forms, form)
	return n
}

// numberOf is the key of a column's number among features.
func numberOf(column string) string { return fmt.Sprintf("%q", column) }

// input is where the column of a feature begins in the scratch.
func (g *grower) input(in input) uint32 {
	at, ok := g.inputs[in]
	if !ok {
		at = uint32(len(g.forest.inputs))
		g.inputs[in] = at
		g.r.inputs++
		g.forest.inputs = append(g.forest.inputs, in)
	}
	return at * MaxBlock
}

func (g *grower) feature(key string, f Feature) int {
	at, ok := g.seen[key]
	if !ok {
		at = len(g.features)
		g.seen[key] = at
		g.features = append(g.features, f)
	}
	return at
}

// texts makes the feature that is -1 for the texts of a list.
func (g *grower) texts(pointer, column string, list []any) (feature int, names []string) {
	f := Feature{Column: column, Texts: map[string]float64{}, Null: math.NaN()}
	for i, item := range list {
		text, ok := item.(string)
		if !ok {
			g.r.add(fmt.Sprintf("%s/%d", pointer, i), "must be a text")
		}
		f.Texts[text] = -1
	}
	if len(list) == 0 {
		g.r.add(pointer, "must be a list of texts")
	}
	names = sortedKeys(f.Texts)
	before := len(g.features)
	feature = g.feature(fmt.Sprintf("%q is in %q", column, names), f)
	if len(g.features) > before {
		if g.r.lists++; g.r.lists > MaxTexts {
			g.r.add(pointer, "the trees have more than %d different lists of texts", MaxTexts)
		}
	}
	return feature, names
}
