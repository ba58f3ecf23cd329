package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ensemble reads {"trees": {...}}. Its trees are lists of nodes in preorder: a split is followed by all nodes of its left
// side, then by all of its right side, so that a list is a tree, or is refused, by its order alone.
func (r *reader) ensemble(pointer string, in any) *Model {
	o := r.object(pointer, in, "trees", "base", "link", "classes", "average", "null", "impute")
	m := &Model{}
	form := map[string]any{}
	outputs := r.ends(pointer, o, form, m, Identity, Softmax)
	f := &forest{base: r.base(pointer+"/base", o["base"], form, outputs)}
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
	g := grower{r: r, at: pointer + "/trees", forest: f, nulls: nulls, imputed: imputed, outputs: outputs, seen: map[string]int{}, inputs: map[input]uint32{}}
	f.inputs = []input{{feature: -1}} // leafInput
	if r.ok() {
		g.trees(o["trees"])
	}
	if !r.ok() {
		return nil
	}
	f.nodes = slices.Clone(f.nodes) // without the room to grow
	f.arrange()
	form["trees"] = &treesForm{f, g.features, outputs, r.nodes > MaxNodes} // of a mixture the first models have lists, as far as MaxNodes goes
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
	m.scorer = &Scorer{features: len(g.features), outputs: outputs, form: f}
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

// grower adds trees to a forest.
type grower struct {
	r        *reader
	at       string // where the trees are
	forest   *forest
	outputs  int
	features []Feature
	seen     map[string]int // features by what they are
	inputs   map[input]uint32
	nulls    map[string]absent
	imputed  map[string]float64

	open []openSplit // of the tree that is read: those above the node to come
	tree tree
}

// openSplit is a split some of whose nodes are still to come.
type openSplit struct {
	place uint32
	right bool // its left side is there
}

// trees reads "trees": a list of trees, or their arrays.
func (g *grower) trees(in any) {
	switch in := in.(type) {
	case map[string]any:
		g.arrays(in)
		return
	case []any:
		if len(in) == 0 || len(in) > MaxTrees {
			break
		}
		for i, t := range in {
			if g.list(fmt.Sprintf("%s/%d", g.at, i), t); !g.r.ok() {
				return
			}
		}
		return
	}
	g.r.add(g.at, "must be a list of 1 to %d trees, or their arrays", MaxTrees)
}

// list reads a tree that is a list of nodes.
func (g *grower) list(pointer string, in any) {
	nodes, ok := in.([]any)
	if !ok || len(nodes) == 0 {
		example := `[["distance", 700], 0.1, 0.3]`
		if own, ok := preorder(in); ok {
			example = own
		}
		g.r.add(pointer, "must be a list of nodes in preorder, such as %s: left where the column is at most the number", example)
		return
	}
	g.r.nodes += len(nodes)
	if g.r.listed += len(nodes); g.r.listed > MaxNodes {
		g.r.add(pointer, "the trees have more than %d nodes; give them as arrays, which may have %d", MaxNodes, MaxArrayNodes)
		return
	}
	each, listed := 0, false
	for i, in := range nodes {
		at := fmt.Sprintf("%s/%d", pointer, i)
		if i > 0 && len(g.open) == 0 {
			g.r.add(at, "the tree has ended before this node")
			return
		}
		if list, ok := in.([]any); ok && len(list) > 0 {
			if column, ok := list[0].(string); ok {
				g.split(at, column, list)
				continue
			}
		}
		value, list := g.leaf(at, in)
		if !g.r.ok() {
			return
		}
		if each > 0 && list != listed {
			g.r.add(at, "leaves of one tree must be all numbers or all lists")
			return
		}
		each, listed = 1, list
		g.tree.listed = listed
		g.addLeaf(value)
	}
	if len(g.open) > 0 {
		g.r.add(pointer, "the tree ends too early: a split needs two nodes below it")
	}
}

// maxOwn bounds the length of a tree that an error shows, in bytes.
const maxOwn = 500

// preorder is the list of nodes of a tree that is written as objects within objects, as other programs have it: {"feature": "distance", "threshold": 700, "left": 0.1,
// "right": {"value": 0.3}}. It is for people to read, who know which side is which: ok is false of a tree that has other members, or is too large to be shown.
func preorder(in any) (list string, ok bool) {
	var nodes []string
	var add func(in any, depth int) bool
	add = func(in any, depth int) bool {
		o, split := in.(map[string]any)
		if !split {
			nodes = append(nodes, fmt.Sprint(in))
			return isNumber(in)
		}
		if value, leaf := o["value"]; leaf {
			nodes = append(nodes, fmt.Sprint(value))
			return len(o) == 1 && isNumber(value)
		}
		column, named := o["feature"].(string)
		if !named || len(o) != 4 || !isNumber(o["threshold"]) || depth == MaxDepth {
			return false
		}
		name, _ := json.Marshal(column)
		nodes = append(nodes, fmt.Sprintf("[%s, %v]", name, o["threshold"]))
		return len(nodes) < maxOwn && add(o["left"], depth+1) && add(o["right"], depth+1)
	}
	if _, object := in.(map[string]any); !object || !add(in, 0) {
		return "", false
	}
	list = "[" + strings.Join(nodes, ", ") + "]"
	return list, len(list) <= maxOwn
}

// addSplit adds a split to the tree that is read.
func (g *grower) addSplit(pointer string, threshold float64, input uint32) {
	g.open = append(g.open, openSplit{place: uint32(len(g.forest.nodes))})
	if depth := len(g.open); depth > MaxDepth {
		g.r.add(pointer, "the tree is deeper than %d", MaxDepth)
	}
	g.tree.depth = max(g.tree.depth, uint32(len(g.open)))
	g.forest.nodes = append(g.forest.nodes, node{value: threshold, input: input})
}

// addLeaf adds a leaf to the tree that is read, and ends the tree where it was the last.
func (g *grower) addLeaf(value float64) {
	f := g.forest
	f.nodes = append(f.nodes, node{value: value, skip: selfSkip, input: leafInput})
	for len(g.open) > 0 && g.open[len(g.open)-1].right {
		g.open = g.open[:len(g.open)-1]
	}
	if last := len(g.open) - 1; last >= 0 {
		g.open[last].right = true
		place := g.open[last].place
		f.nodes[place].skip = uint32(len(f.nodes)) - place - 1
		return
	}
	t := g.tree
	if !t.listed && g.outputs > 1 {
		t.first = len(f.trees) % g.outputs
	}
	if g.r.depths += int(t.depth); g.r.depths > MaxSteps {
		g.r.add(g.at, "the depths of the trees sum to more than %d", MaxSteps)
	}
	f.trees = append(f.trees, t)
	g.tree = tree{root: uint32(len(f.nodes)), listed: t.listed}
}

// leaf reads a number, or a list of one for each class: then its value is the place of the list.
func (g *grower) leaf(pointer string, in any) (value float64, listed bool) {
	list, listed := in.([]any)
	_, number := in.(json.Number)
	switch {
	case !listed && !number || listed && g.outputs == 1:
		g.r.add(pointer, `must be a split, ["column", threshold], or a leaf, a number%s`, map[bool]string{true: " or a list of one for each class"}[g.outputs > 1])
	case listed:
		value = float64(len(g.forest.leaves))
		g.forest.leaves = append(g.forest.leaves, g.r.numbers(pointer, list, g.outputs)...)
	default:
		value = g.r.number(pointer, in, 0)
	}
	return value, listed
}

// split reads ["column", threshold] or ["column", [texts]], and where a null goes if that is not left.
func (g *grower) split(pointer, column string, list []any) {
	if len(list) != 2 && len(list) != 3 {
		g.r.add(pointer, `must be ["column", threshold] or ["column", threshold, "right"]`)
		return
	}
	right := len(list) == 3 && g.side(pointer+"/2", list[2])
	if texts, ok := list[1].([]any); ok {
		g.addSplit(pointer, inList, g.readsTexts(pointer, column, texts, right))
		return
	}
	if list[1] == nil {
		g.r.add(pointer+"/1", "must be a number, or a list of texts")
	}
	g.addSplit(pointer, g.r.number(pointer+"/1", list[1], 0), g.readsNumber(pointer, column, right))
}

// inList is the threshold of a split by texts: one in the list is -1, every other 0.
const inList = -0.5

// side is whether a null goes right.
func (g *grower) side(pointer string, in any) (right bool) {
	side, _ := in.(string)
	if side != "left" && side != "right" {
		g.r.add(pointer, `must be "left" or "right": where a null goes`)
	}
	return side == "right"
}

// readsNumber is the input of a split by a column's number.
func (g *grower) readsNumber(pointer, column string, right bool) uint32 {
	in := input{g.feature(numberOf(column), Feature{Column: column}), infinite(right), infinite(right), noneAbsent}
	if a, ok := g.nulls[column]; ok {
		in.absent = a
	}
	if x, ok := g.imputed[column]; ok {
		in.filled = math.Float64bits(x)
	}
	return g.input(pointer, in)
}

// readsTexts is the input of a split by whether a text is in a list.
func (g *grower) readsTexts(pointer, column string, list []any, right bool) uint32 {
	return g.input(pointer, input{g.texts(pointer+"/1", column, list), infinite(right), infinite(right), noneAbsent})
}

// numberOf is the key of a column's number among features.
func numberOf(column string) string { return fmt.Sprintf("%q", column) }

// input is where the column of a feature begins in the scratch.
func (g *grower) input(pointer string, in input) uint32 {
	at, ok := g.inputs[in]
	if !ok {
		at = uint32(len(g.forest.inputs))
		g.inputs[in] = at
		if g.r.inputs++; g.r.inputs > MaxInputs {
			g.r.add(pointer, "the trees read more than %d columns, one whose nulls go left and right counted twice", MaxInputs)
		}
		g.forest.inputs = append(g.forest.inputs, in)
	}
	return at * columnStride
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
func (g *grower) texts(pointer, column string, list []any) (feature int) {
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
	before := len(g.features)
	feature = g.feature(fmt.Sprintf("%q is in %q", column, sortedKeys(f.Texts)), f)
	if len(g.features) > before {
		if g.r.lists++; g.r.lists > MaxTexts {
			g.r.add(pointer, "the trees have more than %d different lists of texts", MaxTexts)
		}
	}
	return feature
}
