package model

import (
	"math"

	"github.com/holdoutd/holdoutd/rowfn"
)

// forest is an ensemble of trees, laid out for walking, and for sorting many rows at once ([forest.sortAll]).
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

	groups []group    // of trees, in their order
	tops   []topSplit // of all trees
	parts  []uint32   // below tops, the places of their roots in nodes
	ends   []float64  // below tops with nothing but leaves, their values
	masks  int        // that the largest group needs
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

// columnStride is the numbers from where one column begins to the next: a block, and a cache line. Were it a power of two, the same rows of all columns
// would share a set of a first-level cache.
const columnStride = MaxBlock + 8

// leafInput is the number of the column that is infinite in every row.
const leafInput = 0

type tree struct {
	root, depth uint32 // the place of the root in nodes
	top, splits uint32 // where its top begins in tops, and how many splits it has
	part, below uint32 // where its parts begin in parts, and how deep the deepest is; where that is 0, in ends
	listed      bool   // the value of a leaf is the place of its list in leaves; the tree adds to all outputs
	first       int    // else the output that it adds to
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

// What a tree takes a row of a large block, in nanoseconds.
const (
	treeSteps  = 1
	levelSteps = 2  // below its top
	maskShare  = 32 // so many splits of a top, or masks, take one
)

func (f *forest) scratch() (numbers, bits int) {
	return len(f.inputs) * columnStride, maxParts + f.masks*MaxBlock/groupRows
}

func (f *forest) steps() int64 {
	steps := int64(len(f.base) + len(f.inputs))
	for _, in := range f.inputs {
		if in.absent != noneAbsent {
			steps++
		}
	}
	for i := range f.groups {
		steps += f.groups[i].steps()
	}
	splits := int64(0)
	for _, t := range f.trees {
		steps += levelSteps*int64(t.below) + treeSteps
		splits += int64(t.splits)
		if t.listed {
			steps += int64(len(f.base)) - 1
		}
	}
	return steps + splits/maskShare
}

func (f *forest) bytes() int64 {
	bytes := 16*int64(cap(f.nodes)) + 8*int64(cap(f.leaves)) + 40*int64(cap(f.trees)) + 4*int64(cap(f.tops)+cap(f.parts)) + 8*int64(cap(f.ends))
	for i := range f.groups {
		bytes += f.groups[i].bytes()
	}
	return bytes
}

// fewRows are so few that each walks all trees: sorting takes as long for one row as for groupRows.
const fewRows = 32

func (f *forest) block(dst, features [][]float64, scratch rowfn.Scratch) {
	for k, b := range f.base {
		for i := range dst[k] {
			dst[k][i] = b
		}
	}
	rows := len(dst[0])
	f.copyInputs(scratch.Numbers, features, rows)
	if rows < fewRows {
		for i := range f.trees {
			f.walkAll(&f.trees[i], dst, scratch.Numbers)
		}
	} else {
		f.sortAll(dst, scratch)
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

// copyInputs copies the columns.
func (f *forest) copyInputs(columns []float64, features [][]float64, rows int) {
	for i, in := range f.inputs {
		column := columns[i*columnStride:][:rows]
		if i == leafInput {
			for row := range column {
				column[row] = math.Inf(1)
			}
			continue
		}
		withoutNulls(column, features[in.feature], in.filled)
		if in.absent != noneAbsent {
			in.absent.replace(column, in.null)
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

// walkAll adds a tree's leaves to the outputs of less than groupRows rows.
func (f *forest) walkAll(t *tree, dst [][]float64, columns []float64) {
	var all [groupRows]uint32
	at := all[:len(dst[0])]
	for row := range at {
		at[row] = t.root
	}
	descend(f.nodes, at, t.depth, columns)
	f.add(t, dst, 0, at)
}

// add adds the leaves at places to the outputs of the rows from one on.
func (f *forest) add(t *tree, dst [][]float64, from int, at []uint32) {
	if !t.listed {
		out := dst[t.first][from:][:len(at)]
		for row, leaf := range at {
			out[row] += f.nodes[leaf].value
		}
		return
	}
	for k, out := range dst {
		out := out[from:][:len(at)]
		for row, leaf := range at {
			out[row] += f.leaves[int(f.nodes[leaf].value)+k]
		}
	}
}

// descend takes rows so many levels down from where they are. The columns begin with the first of the rows.
func descend(nodes []node, at []uint32, levels uint32, columns []float64) {
	row := 0
	for ; row+lanes <= len(at); row += lanes {
		descendLanes(nodes, (*[lanes]uint32)(at[row:]), levels, columns[row:])
	}
	for ; row < len(at); row++ {
		for range levels {
			at[row] = step(nodes, at[row], columns, row)
		}
	}
}

// descendLanes is descend for rows side by side.
func descendLanes(nodes []node, at *[lanes]uint32, levels uint32, columns []float64) {
	a, b, c, d, e, f, g, h := at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]
	for range levels {
		a = step(nodes, a, columns, 0)
		b = step(nodes, b, columns, 1)
		c = step(nodes, c, columns, 2)
		d = step(nodes, d, columns, 3)
		e = step(nodes, e, columns, 4)
		f = step(nodes, f, columns, 5)
		g = step(nodes, g, columns, 6)
		h = step(nodes, h, columns, 7)
	}
	*at = [lanes]uint32{a, b, c, d, e, f, g, h}
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
