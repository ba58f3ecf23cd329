package model

import "math"

// forest is an ensemble of trees, laid out for walking.
//
// A block's features are copied first, one column each, with nulls made infinite: once as the lowest number, for splits that send
// them left, and once as the highest, as far as there are such splits. A step of a walk is then one comparison.
type forest struct {
	base    []float64 // by output
	average bool      // the sum is divided by the number of trees
	inputs  []input
	trees   []tree
	nodes   []node
	leaves  []float64 // of node i of a tree: leaves[leaf+k] for output first+k
	splits  []split   // of full trees
	ends    []uint32  // of full trees: in leaves
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

type tree struct {
	root, depth  uint32 // the place of the root in nodes; of a full tree, in splits
	end          uint32 // of a full tree: the place of its first leaf in ends
	full         bool
	first, count int // the outputs that it adds to
}

// node is a split, or a leaf, whose next is itself: so that every row of a block can take as many steps as the tree is deep.
type node struct {
	threshold float64
	next      [2]uint32 // where to go if the feature is at most the threshold, and if it is above
	input     uint32    // where its column begins in the scratch
	leaf      uint32    // in leaves
}

func (f *forest) block(dst, features [][]float64, scratch []float64) {
	for k, b := range f.base {
		for i := range dst[k] {
			dst[k][i] = b
		}
	}
	for i, in := range f.inputs {
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
		case t.count == 1:
			t.fullBlock(dst[t.first], scratch, f.splits[t.root:], f.ends[t.end:], f.leaves)
		default:
			t.fullBlocks(dst[t.first:t.first+t.count], scratch, f.splits[t.root:], f.ends[t.end:], f.leaves)
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

// block walks four rows side by side, so that a processor has something to do while it waits for a node.
func (t *tree) block(dst [][]float64, inputs []float64, nodes []node, leaves []float64) {
	rows := len(dst[0])
	row := 0
	for ; row+4 <= rows; row += 4 {
		a, b, c, d := t.root, t.root, t.root, t.root
		for range t.depth {
			a = step(&nodes[a], inputs, row)
			b = step(&nodes[b], inputs, row+1)
			c = step(&nodes[c], inputs, row+2)
			d = step(&nodes[d], inputs, row+3)
		}
		for k, out := range dst[t.first : t.first+t.count] {
			out[row] += leaves[int(nodes[a].leaf)+k]
			out[row+1] += leaves[int(nodes[b].leaf)+k]
			out[row+2] += leaves[int(nodes[c].leaf)+k]
			out[row+3] += leaves[int(nodes[d].leaf)+k]
		}
	}
	for ; row < rows; row++ {
		a := t.root
		for range t.depth {
			a = step(&nodes[a], inputs, row)
		}
		for k, out := range dst[t.first : t.first+t.count] {
			out[row] += leaves[int(nodes[a].leaf)+k]
		}
	}
}

func step(n *node, inputs []float64, row int) uint32 {
	return n.next[bit(inputs[int(n.input)+row] > n.threshold)&1]
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
