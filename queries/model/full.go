package model

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
	splits := make([]split, 1<<t.depth-1)
	ends := make([]uint32, 1<<t.depth)
	var place func(at uint32, i int)
	place = func(at uint32, i int) {
		n := &f.nodes[at]
		if i >= len(splits) {
			ends[i-len(splits)] = n.leaf
			return
		}
		splits[i] = split{n.threshold, n.input}
		place(n.next[0], 2*i+1) // a leaf is below itself
		place(n.next[1], 2*i+2)
	}
	place(t.root, 0)
	f.nodes = f.nodes[:t.root]
	t.root, t.end, t.full = uint32(len(f.splits)), uint32(len(f.ends)), true
	f.splits, f.ends = append(f.splits, splits...), append(f.ends, ends...)
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

// fullBlock is block of a full tree that adds to one output, from row on.
func (t *tree) fullBlock(dst, inputs []float64, splits []split, ends []uint32, leaves []float64, row int) {
	for ; row+4 <= len(dst); row += 4 {
		a, b, c, d := walkFour(t.depth, splits, inputs, row)
		dst[row] += leaves[ends[a]]
		dst[row+1] += leaves[ends[b]]
		dst[row+2] += leaves[ends[c]]
		dst[row+3] += leaves[ends[d]]
	}
	for ; row < len(dst); row++ {
		dst[row] += leaves[ends[walkOne(t.depth, splits, inputs, row)]]
	}
}

// fullBlocks is block of a full tree whose leaves are lists.
func (t *tree) fullBlocks(dst [][]float64, inputs []float64, splits []split, ends []uint32, leaves []float64, row int) {
	for ; row < len(dst[0]); row++ {
		leaf := int(ends[walkOne(t.depth, splits, inputs, row)])
		for k, out := range dst {
			out[row] += leaves[leaf+k]
		}
	}
}
