package model

import "math"

// forest is an ensemble of trees, laid out for walking.
//
// A block's features are copied first, one column each, with nulls made infinite: once as the lowest number, for splits that send
// them left, and once as the highest, as far as there are such splits. A step of a walk is then one comparison. The first column is infinite
// in every row: it is what leaves read.
type forest struct {
	base    []float64 // by output
	average bool      // the sum is divided by the number of trees
	inputs  []input   // the first is leafInput
	trees   []tree
	nodes   []node    // in preorder, tree after tree
	leaves  []float64 // lists: one number for each output
	splits  []split   // of full trees
	ends    []float64 // of full trees: the values of their leaves
}

// input is a copied column.
type input struct {
	feature int
	filled  uint64 // the bits of what a null of the column counts as, a number or null
	null    uint64 // the bits of what a null becomes, an infinity
	absent  absent
}

// absent are the numbers of a column that count as null, from the first to the last; of most columns none: the first is above the last.
type absent struct{ low, high float64 }

var noneAbsent = absent{1, -1}

// leafInput is the number of the column that is infinite in every row.
const leafInput = 0

type tree struct {
	root, depth uint32 // the place of the root in nodes; of a full tree, in splits
	end         uint32 // of a full tree: the place of its first leaf in ends
	full        bool
	listed      bool // the value of a leaf is the place of its list in leaves; the tree adds to all outputs
	first       int  // else the output that it adds to
}

// node is a split, or a leaf. From a split a feature of at most the threshold goes to the node that follows, and one above it some nodes further. A
// leaf is a split by the infinite column that leads back to itself, so that every row of a block can take as many steps as the tree is deep.
type node struct {
	value float64 // the threshold; of a leaf its number, or the place of its list
	skip  uint32  // nodes between this one and where what is above the threshold goes; of a leaf selfSkip
	input uint32  // where its column begins in the scratch
}

// selfSkip is -1: one node on, and one back.
const selfSkip = math.MaxUint32

func (n *node) leaf() bool { return n.input == leafInput }

// treeSteps is what a level of a tree takes.
const treeSteps = 2

func (f *forest) scratch() int { return len(f.inputs) * MaxBlock }

func (f *forest) steps() int64 {
	steps := int64(len(f.base) + len(f.inputs))
	for _, in := range f.inputs {
		if in.absent != noneAbsent {
			steps++
		}
	}
	for _, t := range f.trees {
		steps += treeSteps*int64(t.depth) + 1
		if t.listed {
			steps += int64(len(f.base)) - 1
		}
	}
	return steps
}

func (f *forest) bytes() int64 {
	return 16*int64(cap(f.nodes)+cap(f.splits)) + 8*int64(cap(f.leaves)+cap(f.ends)) + 24*int64(cap(f.trees))
}

func (f *forest) block(dst, features [][]float64, scratch []float64) {
	for k, b := range f.base {
		for i := range dst[k] {
			dst[k][i] = b
		}
	}
	always := scratch[leafInput*MaxBlock:][:len(dst[0])]
	for i := range always {
		always[i] = math.Inf(1)
	}
	for i, in := range f.inputs {
		if i == leafInput {
			continue
		}
		column := scratch[i*MaxBlock : (i+1)*MaxBlock]
		withoutNulls(column, features[in.feature], in.filled)
		if in.absent != noneAbsent {
			in.absent.replace(column[:len(features[in.feature])], in.null)
		}
	}
	for i := range f.trees {
		t := &f.trees[i]
		switch {
		case !t.full:
			t.block(dst, scratch, f.nodes, f.leaves)
		case !t.listed:
			t.fullBlock(dst[t.first], scratch, f.splits[t.root:], f.ends[t.end:])
		default:
			t.fullBlocks(dst, scratch, f.splits[t.root:], f.ends[t.end:], f.leaves)
		}
	}
	if f.average {
		n := float64(len(f.trees))
		for _, d := range dst {
			for i := range d {
				d[i] /= n
			}
		}
	}
}

func withoutNulls(dst, a []float64, null uint64) {
	dst = dst[:len(a)]
	for i := range a {
		dst[i] = orElse(a[i], null)
	}
}

// replace puts the number with the bits null where a number counts as null, without a branch: how long a block takes must not hang on its numbers.
func (a absent) replace(column []float64, null uint64) {
	for i, x := range column {
		is := -uint64(bit(x >= a.low) & bit(x <= a.high))
		column[i] = math.Float64frombits(math.Float64bits(x)&^is | null&is)
	}
}

// infinite is the bits of what stands for a null that goes left or right.
func infinite(right bool) uint64 {
	if right {
		return math.Float64bits(math.Inf(1))
	}
	return math.Float64bits(math.Inf(-1))
}

// lanes is how many rows walk side by side, so that a processor has something to do while it waits for a node.
const lanes = 8

// block adds a tree's leaves to the outputs.
func (t *tree) block(dst [][]float64, inputs []float64, nodes []node, leaves []float64) {
	rows := len(dst[0])
	row := 0
	for ; row+lanes <= rows; row += lanes {
		at := t.walk(nodes, inputs[row:])
		if !t.listed {
			out := dst[t.first][row:][:lanes]
			for i := range out {
				out[i] += nodes[at[i]].value
			}
			continue
		}
		for k, out := range dst {
			out := out[row:][:lanes]
			for i := range out {
				out[i] += leaves[int(nodes[at[i]].value)+k]
			}
		}
	}
	for ; row < rows; row++ {
		a := t.root
		for range t.depth {
			a = step(nodes, a, inputs[row:], 0)
		}
		if !t.listed {
			dst[t.first][row] += nodes[a].value
			continue
		}
		for k, out := range dst {
			out[row] += leaves[int(nodes[a].value)+k]
		}
	}
}

// walk is where rows side by side come to. The inputs are those from the first row on.
func (t *tree) walk(nodes []node, inputs []float64) [lanes]uint32 {
	a, b, c, d, e, f, g, h := t.root, t.root, t.root, t.root, t.root, t.root, t.root, t.root
	for range t.depth {
		a = step(nodes, a, inputs, 0)
		b = step(nodes, b, inputs, 1)
		c = step(nodes, c, inputs, 2)
		d = step(nodes, d, inputs, 3)
		e = step(nodes, e, inputs, 4)
		f = step(nodes, f, inputs, 5)
		g = step(nodes, g, inputs, 6)
		h = step(nodes, h, inputs, 7)
	}
	return [lanes]uint32{a, b, c, d, e, f, g, h}
}

// step is the node after the one at a place, without a branch.
func step(nodes []node, at uint32, inputs []float64, row int) uint32 {
	n := &nodes[at]
	return at + 1 + n.skip&-uint32(bit(inputs[int(n.input)+row] > n.value))
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
