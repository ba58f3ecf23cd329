package model

import "slices"

// split is a node of a full tree, one all of whose leaves have the same depth, in heap order: below split i are 2i+1 and 2i+2.
type split struct {
	threshold float64
	input     uint32
}

// Trees are made full where that does not make them much larger: a step is then without the load of a place to go.
const (
	fullDepth  = 10 // 1,023 splits: 16 KiB
	fullGrowth = 4  // by how much the number of nodes may grow
)

// fill makes the tree full that was read last.
func (f *forest) fill(t *tree) {
	if t.depth > fullDepth || 2<<t.depth > fullGrowth*(len(f.nodes)-int(t.root)) {
		return
	}
	firstSplit, firstEnd := len(f.splits), len(f.ends)
	f.splits = slices.Grow(f.splits, 1<<t.depth-1)[:firstSplit+1<<t.depth-1]
	f.ends = slices.Grow(f.ends, 1<<t.depth)[:firstEnd+1<<t.depth]
	splits, ends := f.splits[firstSplit:], f.ends[firstEnd:]
	var place func(at uint32, i int)
	place = func(at uint32, i int) {
		n := &f.nodes[at]
		if i >= len(splits) {
			ends[i-len(splits)] = n.value
			return
		}
		splits[i] = split{n.value, n.input}
		below := at + 1
		if n.leaf() {
			below = at // on both sides
		}
		place(below, 2*i+1)
		place(at+1+n.skip, 2*i+2)
	}
	place(t.root, 0)
	f.nodes = f.nodes[:t.root]
	t.root, t.end, t.full = uint32(firstSplit), uint32(firstEnd), true
}

// walkFour is where four rows from row on come to in a full tree, counted from its first leaf.
func walkFour(depth uint32, splits []split, inputs []float64, row int) (a, b, c, d int) {
	for range depth {
		a = fullStep(splits, a, inputs, row)
		b = fullStep(splits, b, inputs, row+1)
		c = fullStep(splits, c, inputs, row+2)
		d = fullStep(splits, d, inputs, row+3)
	}
	first := 1<<depth - 1
	return a - first, b - first, c - first, d - first
}

func fullStep(splits []split, i int, inputs []float64, row int) int {
	s := &splits[i]
	return 2*i + 1 + int(bit(inputs[int(s.input)+row] > s.threshold))
}

func walkOne(depth uint32, splits []split, inputs []float64, row int) (a int) {
	for range depth {
		a = fullStep(splits, a, inputs, row)
	}
	return a - (1<<depth - 1)
}

// fullBlock is block of a full tree that adds to one output.
func (t *tree) fullBlock(dst, inputs []float64, splits []split, ends []float64) {
	row := 0
	for ; row+4 <= len(dst); row += 4 {
		a, b, c, d := walkFour(t.depth, splits, inputs, row)
		dst[row] += ends[a]
		dst[row+1] += ends[b]
		dst[row+2] += ends[c]
		dst[row+3] += ends[d]
	}
	for ; row < len(dst); row++ {
		dst[row] += ends[walkOne(t.depth, splits, inputs, row)]
	}
}

// fullBlocks is block of a full tree whose leaves are lists.
func (t *tree) fullBlocks(dst [][]float64, inputs []float64, splits []split, ends, leaves []float64) {
	for row := range dst[0] {
		leaf := int(ends[walkOne(t.depth, splits, inputs, row)])
		for k, out := range dst {
			out[row] += leaves[leaf+k]
		}
	}
}
