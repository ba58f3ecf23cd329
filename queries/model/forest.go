package model

// forest is an ensemble of trees, laid out for walking.
type forest struct {
	base    []float64 // by output
	average bool      // the sum is divided by the number of trees
	trees   []tree
	nodes   []node
	leaves  []float64 // of node i of a tree: leaves[leaf+k] for output first+k
}

type tree struct {
	root, depth  uint32
	first, count int // the outputs that it adds to
}

// node is a split, or a leaf, whose next is itself: so that every row of a block can take as many steps as the tree is deep.
type node struct {
	threshold float64
	next      [2]uint32 // where to go if the feature is at most the threshold, and if it is above
	feature   uint32
	null      uint8  // 0 or 1: where a null goes
	leaf      uint32 // in leaves
}

func (f *forest) block(dst, features [][]float64) {
	for k, b := range f.base {
		for i := range dst[k] {
			dst[k][i] = b
		}
	}
	for i := range f.trees {
		f.trees[i].block(dst, features, f.nodes, f.leaves)
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

// block walks four rows side by side, so that a processor has something to do while it waits for a node.
func (t *tree) block(dst, features [][]float64, nodes []node, leaves []float64) {
	rows := len(dst[0])
	row := 0
	for ; row+4 <= rows; row += 4 {
		a, b, c, d := t.root, t.root, t.root, t.root
		for range t.depth {
			a = step(&nodes[a], features, row)
			b = step(&nodes[b], features, row+1)
			c = step(&nodes[c], features, row+2)
			d = step(&nodes[d], features, row+3)
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
			a = step(&nodes[a], features, row)
		}
		for k, out := range dst[t.first : t.first+t.count] {
			out[row] += leaves[int(nodes[a].leaf)+k]
		}
	}
}

func step(n *node, features [][]float64, row int) uint32 {
	x := features[n.feature][row]
	return n.next[(bit(x > n.threshold)|bit(x != x)&n.null)&1]
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
