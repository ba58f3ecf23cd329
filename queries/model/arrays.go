package model

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
)

// arrays reads trees that are given as arrays, each over the nodes of all trees in preorder: {"reads": …, "nodes": …, "thresholds": …, "leaves": …}.
//
// A node is 0, a leaf, or k, a split by reads[k-1]. Splits by numbers take their thresholds in order, and leaves their numbers: one each, or one for
// each class. An order of nodes tells where a tree ends, so that their number is not said.
func (g *grower) arrays(in map[string]any) {
	r := g.r
	r.object(g.at, in, "reads", "nodes", "thresholds", "leaves", "single")
	single := false
	if in["single"] != nil {
		var ok bool
		if single, ok = in["single"].(bool); !ok {
			r.add(g.at+"/single", "must be true or false: whether numbers are rounded to single precision before they are compared")
		}
	}
	reads := g.reads(in["reads"])
	atNodes, atThresholds, atLeaves := g.at+"/nodes", g.at+"/thresholds", g.at+"/leaves"
	nodes := r.words(atNodes, in["nodes"], "u8", "u16")
	thresholds := r.words(atThresholds, in["thresholds"], "f32", "f64")
	leaves := r.words(atLeaves, in["leaves"], "f32", "f64")
	if r.ok() && nodes.count() == 0 {
		r.add(atNodes, "has no tree")
	}
	if !r.ok() {
		return
	}
	if r.nodes += nodes.count(); r.nodes > MaxArrayNodes {
		r.add(atNodes, "the trees have more than %d nodes", MaxArrayNodes)
		return
	}
	splits, numbers := g.counted(nodes, reads)
	if !r.ok() {
		return
	}
	ends := nodes.count() - splits
	if n := leaves.count(); n != ends && (g.outputs == 1 || n != ends*g.outputs) {
		r.add(atLeaves, "has %d numbers; the nodes have %d leaves%s", n, ends, map[bool]string{true: ", each with one number, or with one for each class"}[g.outputs > 1])
	}
	if n := thresholds.count(); n != numbers {
		r.add(atThresholds, "has %d numbers; the nodes have %d splits by numbers", n, numbers)
	}
	if !r.ok() {
		return
	}
	if g.tree.listed = leaves.count() != ends; g.tree.listed {
		g.forest.leaves = make([]float64, leaves.count())
		for i := range g.forest.leaves {
			g.forest.leaves[i] = r.finite(atLeaves, i, leaves.float(i))
		}
	}
	g.forest.nodes = make([]node, 0, nodes.count())
	split, leaf := 0, 0
	for i := range nodes.count() {
		k := nodes.word(i)
		switch {
		case k == 0 && g.tree.listed:
			g.addLeaf(float64(leaf * g.outputs))
			leaf++
		case k == 0:
			g.addLeaf(r.finite(atLeaves, leaf, leaves.float(leaf)))
			leaf++
		case reads[k-1].texts:
			g.addSplit(atNodes, inList, reads[k-1].input)
		default:
			threshold := thresholds.float(split)
			if single && float64(float32(threshold)) != threshold {
				r.add(atThresholds, "number %d has no single precision, which \"single\" wants: round it down to one", split)
				return
			}
			if single {
				threshold = doubleAtMost(threshold)
			}
			g.addSplit(atNodes, r.finite(atThresholds, split, threshold), reads[k-1].input)
			split++
		}
		if !r.ok() {
			return
		}
		if len(g.forest.trees) > MaxTrees {
			r.add(atNodes, "are more than %d trees", MaxTrees)
			return
		}
	}
	if len(g.open) > 0 {
		r.add(atNodes, "the last tree ends too early: a split needs two nodes below it")
	}
}

// counted is how many nodes are splits, and how many of these compare numbers.
func (g *grower) counted(nodes words, reads []read) (splits, numbers int) {
	used := make([]bool, len(reads))
	for i := range nodes.count() {
		k := nodes.word(i)
		switch {
		case k == 0:
			continue
		case k > len(reads):
			g.r.add(g.at+"/nodes", "node %d is %d, and there are %d reads", i, k, len(reads))
			return splits, numbers
		case !reads[k-1].texts:
			numbers++
		}
		splits++
		used[k-1] = true
	}
	for k, u := range used {
		if !u {
			g.r.add(fmt.Sprintf("%s/reads/%d", g.at, k), "is read by no node")
		}
	}
	return splits, numbers
}

// read is what a split reads.
type read struct {
	input uint32
	texts bool
}

// reads reads ["column"] and ["column", [texts]], each with "right" where a null goes right.
func (g *grower) reads(in any) []read {
	list, ok := in.([]any)
	if in != nil && !ok || len(list) > 2*(MaxInputs+MaxTexts) {
		g.r.add(g.at+"/reads", `must be a list of at most %d: ["column"] or ["column", [texts]], and "right" behind it where a null goes right`, 2*(MaxInputs+MaxTexts))
		return nil
	}
	all := make([]read, len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s/reads/%d", g.at, i)
		one, _ := item.([]any)
		if len(one) == 0 {
			g.r.add(at, `must be ["column"] or ["column", [texts]], and "right" behind it where a null goes right`)
			return nil
		}
		column, ok := one[0].(string)
		rest := one[1:]
		var texts []any
		if len(rest) > 0 {
			if texts, all[i].texts = rest[0].([]any); all[i].texts {
				rest = rest[1:]
			}
		}
		if !ok || len(rest) > 1 {
			g.r.add(at, `must be ["column"] or ["column", [texts]], and "right" behind it where a null goes right`)
			return nil
		}
		right := len(rest) == 1 && g.side(fmt.Sprintf("%s/%d", at, len(one)-1), rest[0])
		if all[i].texts {
			all[i].input = g.readsTexts(at, column, texts, right)
		} else {
			all[i].input = g.readsNumber(at, column, right)
		}
		if !g.r.ok() {
			return nil
		}
	}
	return all
}

// words are the bytes of an array, little end first.
type words struct {
	bytes []byte
	size  int // of a word, in bytes
}

func (w words) count() int {
	if w.size == 0 {
		return 0
	}
	return len(w.bytes) / w.size
}

// word is one of unsigned numbers.
func (w words) word(i int) int {
	if w.size == 1 {
		return int(w.bytes[i])
	}
	return int(binary.LittleEndian.Uint16(w.bytes[2*i:]))
}

// float is one of floating point numbers.
func (w words) float(i int) float64 {
	if w.size == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(w.bytes[4*i:])))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(w.bytes[8*i:]))
}

// wordSizes are the names of the kinds of words, with their sizes.
var wordSizes = map[string]int{"u8": 1, "u16": 2, "f32": 4, "f64": 8}

// words reads {"f64": "<base64>"}, of one of two kinds. One that is absent is empty.
func (r *reader) words(pointer string, in any, small, large string) words {
	if in == nil {
		return words{}
	}
	o, _ := in.(map[string]any)
	for name, content := range o {
		text, ok := content.(string)
		if len(o) != 1 || !ok || name != small && name != large {
			break
		}
		bytes, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			r.add(pointer+"/"+name, "must be base64, with its padding")
			return words{}
		}
		if len(bytes)%wordSizes[name] != 0 {
			r.add(pointer+"/"+name, "has %d bytes, which are no whole number of %s", len(bytes), name)
			return words{}
		}
		return words{bytes, wordSizes[name]}
	}
	r.add(pointer, "must be {%q: …} or {%q: …}, the bytes of an array in base64, little end first", small, large)
	return words{}
}

// finite is a number of an array.
func (r *reader) finite(pointer string, i int, x float64) float64 {
	if !(math.Abs(x) <= MaxMagnitude) {
		r.add(pointer, "number %d must lie within ±%g", i, float64(MaxMagnitude))
		return 0
	}
	return x + 0 // -0 is 0
}

// doubleAtMost is the largest double that rounds to a single precision number of at most x, which is such a number: what is at most it is what is at
// most x after rounding. Infinities are ±MaxMagnitude, beyond which no column has a number.
func doubleAtMost(x float64) float64 {
	single := float32(x)
	if math.IsInf(x, 0) {
		return math.Copysign(MaxMagnitude, x)
	}
	next := math.Nextafter32(single, float32(math.Inf(1)))
	middle := (float64(single) + float64(next)) / 2
	even := math.Float32bits(single)%2 == 0
	if math.IsInf(float64(next), 1) {
		middle, even = 0x1p128-0x1p103, false // what rounds to infinity begins here
	}
	if even {
		return middle
	}
	return math.Nextafter(middle, math.Inf(-1))
}
