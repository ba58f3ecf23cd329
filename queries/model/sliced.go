package model

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// Rows are walked through trees 512 at a time, a bit each. A condition, "is the input above the threshold", is then 512 bits, which are computed once for all nodes that ask it (as QuickScorer shares
// conditions: Lucchese et al. 2015), and a split is two instructions on bits: of the rows that come to it, those that go right, and the others. What is added for a row is looked up by the number of its leaf,
// whose bits are flipped on the way down. So a tree costs some operations for each split and 64 rows, and a few for each row, however deep it is; the sums are added in the order of the trees.

const (
	// slicedWords are the words of 64 rows that are walked together.
	slicedWords = 8
	slicedRows  = 64 * slicedWords
	// leastSliced is the least number of rows for which that is quicker than a walk for each.
	leastSliced = 128
	// slicedLeaves is how many leaves a tree has at most that is walked so: their numbers fit a byte, and a walk of more splits would take longer than one for each row.
	slicedLeaves = 256
	// slicedConditions is how many different conditions are computed at a time: 1 MiB of bits, half of a processor's second cache.
	slicedConditions = 1 << 14
	// comparedThresholds is up to how many thresholds of an input its rows are compared with each. With more, a row's place among them is searched.
	comparedThresholds = 6
)

// lanes are 512 rows.
type lanes = [slicedWords]uint64

// stretch is trees one after the other that are walked in the same way.
type stretch struct {
	from, to int // in the forest's trees
	inputs   []thresholds
	trees    []slicedTree // none: each row is walked
}

// thresholds are those of an input that some trees compare it with.
type thresholds struct {
	column int       // where the input begins in the scratch
	first  int       // its first condition; one for each threshold, ascending
	sorted []float64 // each once
	padded []float64 // the same, and infinities up to a power of two; nil where rows are compared with each
}

type slicedTree struct {
	splits       []slicedSplit // in preorder
	bits         int           // of a leaf's number
	leaves       int           // where its leaves' numbers begin in the forest's list, for each output so many
	count        int
	first, lists int // the outputs that it adds to
}

// slicedSplit takes the rows of a slot apart: those below the condition into the next slot, the others stay, and the flips of their leaf's number.
type slicedSplit struct {
	condition uint32
	slot      uint8 // the splits above, less those that the rows went right of
	flips     uint8
}

// slice prepares the trees for walks of many rows at once.
func (f *forest) slice(sources []slicedSource) {
	var s stretch
	seen := map[slicedCondition]uint32{}
	values := 0
	end := func(at int) {
		if s.to = at; s.to > s.from {
			s.gather(f, seen)
			if !slicedPays(s.costs(f)) {
				s.trees, s.inputs, f.values = nil, nil, f.values[:values]
			}
			f.stretches = append(f.stretches, s)
		}
		s, values = stretch{from: at}, len(f.values)
		seen = map[slicedCondition]uint32{}
	}
	for i := range sources {
		source := &sources[i]
		wanted := source.count <= slicedLeaves
		if wanted != (len(s.trees) > 0) || len(seen)+source.count > slicedConditions {
			end(i)
		}
		if wanted {
			s.trees = append(s.trees, f.sliced(source, &f.trees[i], seen))
		}
	}
	end(len(sources))
	f.values = append(f.values, make([]float64, slicedLeaves)...) // so that a table of so many begins at each
	for i := range f.stretches {
		for j := range f.stretches[i].inputs {
			t := &f.stretches[i].inputs[j]
			f.conditions = max(f.conditions, t.first+len(t.sorted))
		}
	}
}

// slicedPays decides by what a row costs in either way. A variable, so that tests can walk few trees together too.
var slicedPays = func(together, alone float64) bool { return together < alone }

// costs are about how many nanoseconds a row takes in the stretch where rows are walked together, and where each is walked: measured with forests of 40 trees of 230 leaves, whose thresholds are all different, and with
// boosted trees of 8 and 64 leaves, which share theirs.
func (s *stretch) costs(f *forest) (together, alone float64) {
	const (
		searched  = 1    // a step of the search for a row's place among thresholds, or a comparison with one
		condition = 0.06 // to set one
		tree      = 1    // to look up a leaf and add it
		split     = 0.03
	)
	for i := range s.inputs {
		n := len(s.inputs[i].sorted)
		if n > comparedThresholds {
			together += searched * float64(2+bits.Len(uint(n)))
		} else {
			together += searched * float64(n)
		}
		together += condition * float64(n)
	}
	for i := range s.trees {
		together += tree*float64(s.trees[i].lists) + split*float64(len(s.trees[i].splits))
	}
	for i := range f.trees[s.from:s.to] {
		alone += float64(treeSteps*f.trees[s.from+i].depth) + float64(f.trees[s.from+i].count)
	}
	return together, alone
}

// slicedCondition is a condition that a stretch has.
type slicedCondition struct {
	input     uint32
	threshold float64
}

// slicedSource is a tree as it was read: its nodes in preorder, of which those that are leaves have next of themselves.
type slicedSource struct {
	nodes []node
	count int // of leaves
}

func sourceOf(nodes []node, root uint32) slicedSource {
	s := slicedSource{nodes: slices.Clone(nodes)}
	for i := range s.nodes {
		n := &s.nodes[i]
		n.next[0] -= root
		n.next[1] -= root
		if n.leafAt(uint32(i)) {
			s.count++
		}
	}
	return s
}

func (n *node) leafAt(place uint32) bool { return n.next[0] == place }

// sliced lists the splits of a tree and the values of its leaves.
func (f *forest) sliced(source *slicedSource, t *tree, seen map[slicedCondition]uint32) slicedTree {
	out := slicedTree{bits: bits.Len(uint(source.count - 1)), count: source.count, first: t.first, lists: t.count, leaves: len(f.values)}
	var leaves []uint32
	var visit func(at uint32, slot uint8)
	visit = func(at uint32, slot uint8) {
		n := &source.nodes[at]
		if n.leafAt(at) {
			leaves = append(leaves, n.leaf)
			return
		}
		c := slicedCondition{n.input, n.threshold + 0} // -0 is 0
		place, known := seen[c]
		if !known {
			place = uint32(len(seen))
			seen[c] = place
		}
		split, leftmost := len(out.splits), len(leaves)
		out.splits = append(out.splits, slicedSplit{condition: place, slot: slot})
		visit(n.next[0], slot+1)
		out.splits[split].flips = uint8(leftmost ^ len(leaves))
		visit(n.next[1], slot)
	}
	visit(0, 0)
	for k := range t.count {
		for _, leaf := range leaves {
			f.values = append(f.values, f.leaves[int(leaf)+k])
		}
	}
	return out
}

// gather numbers the conditions of a stretch by input and threshold.
func (s *stretch) gather(f *forest, seen map[slicedCondition]uint32) {
	if len(s.trees) == 0 {
		return
	}
	all := make([]slicedCondition, len(seen))
	for c, place := range seen {
		all[place] = c
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := all[a], all[b]
		switch {
		case x.input != y.input:
			return int(x.input) - int(y.input)
		case x.threshold < y.threshold:
			return -1
		}
		return 1
	})
	number := make([]uint32, len(all))
	for i, place := range order {
		c := all[place]
		number[place] = uint32(i)
		if last := len(s.inputs) - 1; last < 0 || s.inputs[last].column != int(c.input) {
			s.inputs = append(s.inputs, thresholds{column: int(c.input), first: i})
		}
		t := &s.inputs[len(s.inputs)-1]
		t.sorted = append(t.sorted, c.threshold)
	}
	for i := range s.inputs {
		t := &s.inputs[i]
		if len(t.sorted) > comparedThresholds {
			t.padded = slices.Clone(t.sorted)
			for len(t.padded)&(len(t.padded)+1) != 0 { // one less than a power of two is all that a search compares with
				t.padded = append(t.padded, math.Inf(1))
			}
		}
	}
	for i := range s.trees {
		for j := range s.trees[i].splits {
			c := &s.trees[i].splits[j].condition
			*c = number[*c]
		}
	}
}

// block adds the stretch's trees for all rows of a block.
func (s *stretch) block(f *forest, dst [][]float64, inputs []float64, conditions []lanes) {
	rows := len(dst[0])
	from := 0
	if len(s.trees) > 0 {
		for ; rows-from >= leastSliced; from += min(slicedRows, rows-from) {
			n := min(slicedRows, rows-from)
			for i := range s.inputs {
				t := &s.inputs[i]
				t.conditions(conditions[t.first:][:len(t.sorted)], inputs[t.column+from:][:n])
			}
			for i := range s.trees {
				s.trees[i].add(f.values, dst, from, n, conditions)
			}
		}
	}
	if from < rows {
		f.walk(s.from, s.to, dst, inputs, from)
	}
}

// conditions writes which of at most 512 rows are above each threshold.
func (t *thresholds) conditions(dst []lanes, rows []float64) {
	clear(dst)
	if t.padded == nil {
		for i, threshold := range t.sorted {
			d := &dst[i]
			for row, x := range rows {
				d[row/64%slicedWords] |= uint64(bit(x > threshold)) << (row % 64)
			}
		}
		return
	}
	// A row is set in the highest condition that it meets, and then is in all those below.
	half := (len(t.padded) + 1) / 2
	row := 0
	for ; row+4 <= len(rows); row += 4 {
		i, j, k, l := 0, 0, 0, 0
		w, x, y, z := rows[row], rows[row+1], rows[row+2], rows[row+3]
		for step := half; step > 0; step /= 2 {
			i += step & -int(bit(w > t.padded[i+step-1]))
			j += step & -int(bit(x > t.padded[j+step-1]))
			k += step & -int(bit(y > t.padded[k+step-1]))
			l += step & -int(bit(z > t.padded[l+step-1]))
		}
		set(dst, i, row)
		set(dst, j, row+1)
		set(dst, k, row+2)
		set(dst, l, row+3)
	}
	for ; row < len(rows); row++ {
		i := 0
		for step := half; step > 0; step /= 2 {
			i += step & -int(bit(rows[row] > t.padded[i+step-1]))
		}
		set(dst, i, row)
	}
	for i := len(dst) - 2; i >= 0; i-- {
		low, high := &dst[i], &dst[i+1]
		for w := range low {
			low[w] |= high[w]
		}
	}
}

// set sets a row in the condition before place; there is none before the first, where nothing is set.
func set(dst []lanes, place, row int) {
	dst[max(place-1, 0)][row/64%slicedWords] |= uint64(bit(place > 0)) << (row % 64)
}

// add walks n rows through the tree and adds what their leaves say.
func (t *slicedTree) add(values []float64, dst [][]float64, from, n int, conditions []lanes) {
	var numbers [8]lanes // of the rows' leaves, by bit
	var slots [MaxDepth + 1]lanes
	for w := range slots[0] {
		slots[0][w] = math.MaxUint64
	}
	if wide && len(t.splits) > 0 {
		walk512(&t.splits[0], len(t.splits), &conditions[0], &slots[0], &numbers)
	} else {
		t.walk(conditions, &slots, &numbers)
	}
	for k := range t.lists {
		d, leaves := dst[t.first+k][from:][:n], (*[slicedLeaves]float64)(values[t.leaves+k*t.count:])
		done := 0
		if wide {
			add512(&d[0], n/8, leaves, t.bits, &numbers)
			done = n &^ 7
		}
		addLeaves(d, done, leaves, t.bits, &numbers)
	}
}

func (t *slicedTree) walk(conditions []lanes, slots *[MaxDepth + 1]lanes, numbers *[8]lanes) {
	for i := range t.splits {
		s := &t.splits[i]
		slot := int(s.slot)
		part(&slots[slot+1], &slots[slot], &conditions[s.condition])
		for flips := uint(s.flips); flips != 0; flips &= flips - 1 {
			flip(&numbers[bits.TrailingZeros(flips)%8], &slots[slot])
		}
	}
}

// part moves the rows for which the condition does not hold from all to others.
func part(others, all, condition *lanes) {
	for w := range all {
		a, c := all[w], condition[w]
		others[w] = a &^ c
		all[w] = a & c
	}
}

func flip(dst, rows *lanes) {
	for w := range dst {
		dst[w] ^= rows[w]
	}
}

// spread has the bits of a byte as bytes of 0 and 1.
var spread = func() (s [256]uint64) {
	for b := range s {
		for i := range 8 {
			s[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return s
}()

// addLeaves adds to each row, from one on that is a multiple of eight, the value of its leaf, whose number has so many bits.
func addLeaves(dst []float64, row int, values *[slicedLeaves]float64, bits int, numbers *[8]lanes) {
	for ; row < len(dst); row += 8 {
		w, shift := row/64%slicedWords, row%64
		leaf := spread[uint8(numbers[0][w]>>shift)] | spread[uint8(numbers[1][w]>>shift)]<<1 | spread[uint8(numbers[2][w]>>shift)]<<2
		if bits > 3 {
			leaf |= spread[uint8(numbers[3][w]>>shift)]<<3 | spread[uint8(numbers[4][w]>>shift)]<<4 | spread[uint8(numbers[5][w]>>shift)]<<5
		}
		if bits > 6 {
			leaf |= spread[uint8(numbers[6][w]>>shift)]<<6 | spread[uint8(numbers[7][w]>>shift)]<<7
		}
		if len(dst)-row < 8 {
			for i := range dst[row:] {
				dst[row+i] += values[uint8(leaf>>(8*i))]
			}
			return
		}
		d := (*[8]float64)(dst[row:])
		d[0] += values[uint8(leaf)]
		d[1] += values[uint8(leaf>>8)]
		d[2] += values[uint8(leaf>>16)]
		d[3] += values[uint8(leaf>>24)]
		d[4] += values[uint8(leaf>>32)]
		d[5] += values[uint8(leaf>>40)]
		d[6] += values[uint8(leaf>>48)]
		d[7] += values[uint8(leaf>>56)]
	}
}

// lanesIn are words of a scratch.
func lanesIn(scratch []float64) []lanes {
	if len(scratch) < slicedWords {
		return nil
	}
	return unsafe.Slice((*lanes)(unsafe.Pointer(unsafe.SliceData(scratch))), len(scratch)/slicedWords)
}
