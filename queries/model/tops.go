package model

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/holdoutd/holdoutd/queries/vector"
	"github.com/holdoutd/holdoutd/rowfn"
)

// fast are the vectors that tops are sorted by; nil for none.
var fast = vector.Best()

// Tops. A walk takes every row as many levels down as its tree is deep, though few nodes are far from all leaves. So the top of a tree, its splits with more
// than a few levels below them, sorts many rows at once: a split is a mask of the rows that it sends right, and what the mask cuts of the rows that come to the split
// come to its right side. What is below the top are its parts, which rows walk from there, all the same number of levels; of most boosted trees they are leaves.
//
// Masks are made for a group of trees together, one for each threshold of a column. A row's rank among a column's thresholds says which of them it is above.

// groupRows is the rows that one rowfn.Bits has a bit for.
const groupRows = 256

// maxParts is how many parts a top has at most, so that a byte counts them.
const maxParts = 256

// maxMasks bounds the masks of a group of trees, but for one that each column takes: they take a worker 1 MiB.
const maxMasks = 1 << 13

// levelSplits is how many splits of a top, with the masks that they need, take as long as one level that all rows walk.
const levelSplits = 16

// partLevels is how many levels more walking takes, where parts are not leaves.
const partLevels = 2

// topSplit is a split of a top: its mask, in the order of its group, and the part of the top whose rows it cuts. Those that it sends right become part i+1, where
// it is split i of its top. Splits are in preorder.
type topSplit uint32

const partBits = 8

func newTopSplit(mask, part uint32) topSplit { return topSplit(mask<<partBits | part) }

func (s topSplit) mask() uint32 { return uint32(s) >> partBits }

func (s topSplit) part() uint8 { return uint8(s) }

// group is trees in a row that share masks.
type group struct {
	end     int // the tree after its last
	columns []ranked
}

// ranked is a column of a group. For its thresholds there are as many masks and one more, of what is above none.
type ranked struct {
	input      uint32 // where it begins in the scratch
	first      uint32 // its first mask
	thresholds []float64
}

// What a group takes a row, in nanoseconds: a column's copy to its masks, and a step of its ranks.
const (
	columnSteps = 2
	rankSteps   = 1
)

func (g *group) steps() int64 {
	steps, masks := int64(0), 0
	for _, c := range g.columns {
		steps += columnSteps + rankSteps*int64(bits.Len(uint(len(c.thresholds))))
		masks += len(c.thresholds)
	}
	return steps + int64(masks/maskShare)
}

func (g *group) bytes() int64 {
	bytes := 32 + 32*int64(cap(g.columns))
	for _, c := range g.columns {
		bytes += 8 * int64(len(c.thresholds))
	}
	return bytes
}

// threshold is what a mask is of.
type threshold struct {
	input uint32
	value float64
}

// arranger gives the trees of a forest their tops, and groups of trees their masks.
type arranger struct {
	*forest
	heights []uint16 // of the tree's nodes: the levels below
	place   uint32   // of its root
	first   int      // the first split in tops of the group
	masks   map[threshold]uint32
}

// arrange makes tops of all trees.
func (f *forest) arrange() {
	a := &arranger{forest: f, masks: map[threshold]uint32{}}
	for i := range f.trees {
		t := &f.trees[i]
		a.measure(f.nodesOf(i))
		t.below = a.cut(t.depth)
		t.top, a.place = uint32(len(f.tops)), t.root
		splits := 0
		for _, h := range a.heights {
			if uint32(h) > t.below {
				splits++
			}
		}
		if len(a.masks)+splits > maxMasks {
			a.close(i)
		}
		t.splits = uint32(splits)
		if t.below == 0 {
			t.part, f.ends = uint32(len(f.ends)), slices.Grow(f.ends, splits+1)[:len(f.ends)+splits+1]
		} else {
			t.part, f.parts = uint32(len(f.parts)), slices.Grow(f.parts, splits+1)[:len(f.parts)+splits+1]
		}
		a.sort(t, t.root, 0)
	}
	a.close(len(f.trees))
	f.ends = append(f.ends, make([]float64, vector.MaxEnds)...) // what vectors read behind the last
	f.tops, f.parts, f.ends = slices.Clone(f.tops), slices.Clone(f.parts), slices.Clone(f.ends)
}

// nodesOf is the nodes of a tree.
func (f *forest) nodesOf(i int) []node {
	if i+1 < len(f.trees) {
		return f.nodes[f.trees[i].root:f.trees[i+1].root]
	}
	return f.nodes[f.trees[i].root:]
}

// measure finds the heights of a tree's nodes.
func (a *arranger) measure(nodes []node) {
	a.heights = slices.Grow(a.heights[:0], len(nodes))[:len(nodes)]
	for i := len(nodes) - 1; i >= 0; i-- {
		a.heights[i] = 0
		if n := &nodes[i]; !n.leaf() {
			a.heights[i] = 1 + max(a.heights[i+1], a.heights[i+1+int(n.skip)])
		}
	}
}

// cut is how many levels are best below the top.
func (a *arranger) cut(depth uint32) uint32 {
	var above [MaxDepth + 1]int // by height: the nodes that are higher
	for _, h := range a.heights {
		above[h]++
	}
	higher, best, least := 0, depth, math.MaxInt
	for h := int(depth); h >= 0; h-- {
		higher, above[h] = higher+above[h], higher
		cost := above[h]
		if h > 0 {
			cost += levelSplits * (h + partLevels)
		}
		if above[h] < maxParts && cost < least {
			best, least = uint32(h), cost
		}
	}
	return best
}

// sort adds the splits of a tree's top, from a node on that has a part's rows.
func (a *arranger) sort(t *tree, at uint32, part uint32) {
	f := a.forest
	n := &f.nodes[at]
	if uint32(a.heights[at-a.place]) <= t.below {
		if t.below == 0 {
			f.ends[t.part+part] = n.value
		} else {
			f.parts[t.part+part] = at
		}
		return
	}
	of := threshold{n.input, n.value}
	mask, seen := a.masks[of]
	if !seen {
		mask = uint32(len(a.masks))
		a.masks[of] = mask
	}
	f.tops = append(f.tops, newTopSplit(mask, part))
	right := uint32(len(f.tops)) - t.top
	a.sort(t, at+1, part)
	a.sort(t, at+1+n.skip, right)
}

// close ends a group before a tree: its masks get their order.
func (a *arranger) close(end int) {
	f := a.forest
	order := make([]threshold, 0, len(a.masks))
	for of := range a.masks {
		order = append(order, of)
	}
	slices.SortFunc(order, func(x, y threshold) int {
		return cmp.Or(cmp.Compare(x.input, y.input), cmp.Compare(x.value, y.value))
	})
	g := group{end: end}
	values, places := make([]float64, len(order)), make([]uint32, len(order)) // places by the masks' numbers
	for i, of := range order {
		if i == 0 || of.input != order[i-1].input {
			g.columns = append(g.columns, ranked{input: of.input, first: uint32(i + len(g.columns))})
		}
		c := &g.columns[len(g.columns)-1]
		values[i] = of.value
		c.thresholds = values[int(c.first)-len(g.columns)+1 : i+1 : i+1]
		places[a.masks[of]] = uint32(i + len(g.columns))
	}
	g.columns = slices.Clone(g.columns)
	for i, s := range f.tops[a.first:] {
		f.tops[a.first+i] = newTopSplit(places[s.mask()], uint32(s.part()))
	}
	f.groups = append(f.groups, g)
	f.masks = max(f.masks, len(order)+len(g.columns))
	a.first = len(f.tops)
	clear(a.masks)
}

// sortAll adds the leaves of all trees to the outputs.
func (f *forest) sortAll(dst [][]float64, scratch rowfn.Scratch) {
	rows := len(dst[0])
	groups := (rows + groupRows - 1) / groupRows
	parts, masks := (*[maxParts]rowfn.Bits)(scratch.Bits), scratch.Bits[maxParts:][:f.masks*groups]
	var part [groupRows]uint8
	begin := 0
	for i := range f.groups {
		g := &f.groups[i]
		g.mask(masks, scratch.Numbers, rows, groups)
		for k := begin; k < g.end; k++ {
			t := &f.trees[k]
			splits := f.tops[t.top:][:t.splits]
			if t.below > 0 && rows > groupRows {
				touch(f.nodesOf(k))
			}
			for of := range groups {
				sortRows(parts, splits, masks, groups, of)
				partOfRows(&part, parts, len(splits)+1)
				from := of * groupRows
				if part := part[:min(groupRows, rows-from)]; t.below == 0 {
					f.addEnds(t, dst, from, part)
				} else {
					f.walkParts(t, dst, from, part, scratch.Numbers)
				}
			}
		}
		begin = g.end
	}
}

// addEnds adds the leaves that are a top's parts to the outputs of the rows from one on.
func (f *forest) addEnds(t *tree, dst [][]float64, from int, parts []uint8) {
	ends := f.ends[t.part:][:t.splits+1]
	if !t.listed {
		out := dst[t.first][from:][:len(parts)]
		if n := len(parts) &^ (vector.Rows - 1); n > 0 && fast != nil && fast.Ends && len(ends) <= vector.MaxEnds {
			vector.AddEnds(&out[0], &parts[0], &ends[0], len(ends), n)
			out, parts = out[n:], parts[n:]
		}
		for row, part := range parts {
			out[row] += ends[part]
		}
		return
	}
	for k, out := range dst {
		out := out[from:][:len(parts)]
		for row, part := range parts {
			out[row] += f.leaves[int(ends[part])+k]
		}
	}
}

// walkParts adds the leaves in a top's parts to the outputs of the rows from one on.
func (f *forest) walkParts(t *tree, dst [][]float64, from int, parts []uint8, columns []float64) {
	var all [groupRows]uint32
	places, at := f.parts[t.part:][:t.splits+1], all[:len(parts)]
	for row, part := range parts {
		at[row] = places[part]
	}
	descend(f.nodes, at, t.below, columns[from:])
	f.add(t, dst, from, at)
}

// touch reads a node of every cache line, one after the other as processors foresee it. Rows come to nodes in no order, and would wait for each line.
//
//go:noinline
func touch(nodes []node) (all uint32) {
	for i := 0; i < len(nodes); i += 4 {
		all |= nodes[i].skip
	}
	return all
}

// sortRows finds the rows of each part of a top, of one of the groups of rows that masks are of.
func sortRows(parts *[maxParts]rowfn.Bits, splits []topSplit, masks []rowfn.Bits, groups, of int) {
	parts[0] = rowfn.Bits{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}
	if fast != nil && len(splits) > 0 {
		vector.SortRows((*[4]uint64)(&parts[0]), (*uint32)(&splits[0]), len(splits), (*[4]uint64)(&masks[of]), groups*len(rowfn.Bits{})*8)
		return
	}
	for i, s := range splits {
		mask, left, right := &masks[int(s.mask())*groups+of], &parts[s.part()], &parts[uint8(i+1)]
		a, b, c, d := left[0], left[1], left[2], left[3]
		w, x, y, z := a&mask[0], b&mask[1], c&mask[2], d&mask[3]
		left[0], left[1], left[2], left[3] = a^w, b^x, c^y, d^z
		right[0], right[1], right[2], right[3] = w, x, y, z
	}
}

// partOfRows turns the rows of each part, which it writes over, into the part of each row.
func partOfRows(dst *[groupRows]uint8, parts *[maxParts]rowfn.Bits, count int) {
	var digits [9]rowfn.Bits // of parts' numbers, the lowest first
	for digit := 0; count > 1; digit += 3 {
		eighths := (count + 7) / 8
		clear(parts[count : 8*eighths])
		if fast != nil {
			vector.Eighths((*[4]uint64)(&parts[0]), eighths, (*[4]uint64)(&digits[digit]))
			count = eighths
			continue
		}
		for w := range len(digits[0]) {
			var low, middle, high uint64
			for e := range eighths {
				p := (*[8]rowfn.Bits)(parts[8*e:])
				p1, p3, p5, p7 := p[1][w], p[3][w], p[5][w], p[7][w]
				p01, p23, p45, p67 := p[0][w]|p1, p[2][w]|p3, p[4][w]|p5, p[6][w]|p7
				low |= p1 | p3 | p5 | p7
				middle |= p23 | p67
				high |= p45 | p67
				parts[e][w] = p01 | p23 | p45 | p67
			}
			digits[digit][w], digits[digit+1][w], digits[digit+2][w] = low, middle, high
		}
		count = eighths
	}
	if fast != nil {
		vector.Turn(&dst[0], (*[4]uint64)(&digits[0]))
		return
	}
	for w := range len(digits[0]) {
		turn(dst[64*w:], &digits, w)
	}
}

// turn writes the numbers of 64 rows whose digits are in a word each. Of eight words each is a row of bits in every byte, and becomes a column.
func turn(dst []uint8, digits *[9]rowfn.Bits, w int) {
	a, b, c, d, e, f, g, h := digits[0][w], digits[1][w], digits[2][w], digits[3][w], digits[4][w], digits[5][w], digits[6][w], digits[7][w]
	a, e = swap(a, e, 4, 0x0f0f0f0f0f0f0f0f)
	b, f = swap(b, f, 4, 0x0f0f0f0f0f0f0f0f)
	c, g = swap(c, g, 4, 0x0f0f0f0f0f0f0f0f)
	d, h = swap(d, h, 4, 0x0f0f0f0f0f0f0f0f)
	a, c = swap(a, c, 2, 0x3333333333333333)
	b, d = swap(b, d, 2, 0x3333333333333333)
	e, g = swap(e, g, 2, 0x3333333333333333)
	f, h = swap(f, h, 2, 0x3333333333333333)
	a, b = swap(a, b, 1, 0x5555555555555555)
	c, d = swap(c, d, 1, 0x5555555555555555)
	e, f = swap(e, f, 1, 0x5555555555555555)
	g, h = swap(g, h, 1, 0x5555555555555555)
	dst = dst[:64]
	for i, x := range [8]uint64{a, b, c, d, e, f, g, h} {
		binary.LittleEndian.PutUint64(dst[8*i:], x)
	}
}

// swap exchanges the high bits of low, in each part of 2·shift bits, for the low bits of high.
func swap(low, high uint64, shift uint, mask uint64) (uint64, uint64) {
	differ := (low>>shift ^ high) & mask
	return low ^ differ<<shift, high ^ differ
}

// bitOf is the bit of a row in its word: of eight rows one after the other each has the same place in another byte, as turn wants it.
func bitOf(row int) uint64 { return 1 << (8*(row&7) + row>>3&7) }

// mask makes the masks of a block: of row groups, one after the other for each mask.
func (g *group) mask(masks []rowfn.Bits, columns []float64, rows, groups int) {
	for i := range g.columns {
		c := &g.columns[i]
		of := masks[int(c.first)*groups:][:(len(c.thresholds)+1)*groups]
		clear(of)
		column := columns[c.input:]
		row := 0
		for ; row+lanes <= rows; row += lanes {
			ranks := rankLanes(c.thresholds, (*[lanes]float64)(column[row:]))
			for lane, rank := range ranks {
				of[rank*groups+row/groupRows][row/64%4] |= bitOf(row + lane)
			}
		}
		for ; row < rows; row++ {
			of[rank(c.thresholds, column[row])*groups+row/groupRows][row/64%4] |= bitOf(row)
		}
		for i := len(of) - groups - 1; i >= groups; i-- {
			to, from := &of[i], &of[i+groups]
			to[0] |= from[0]
			to[1] |= from[1]
			to[2] |= from[2]
			to[3] |= from[3]
		}
	}
}

// rank is how many of sorted thresholds, at least one, a number is above. It takes the same steps for every number.
func rank(thresholds []float64, x float64) int {
	at, size := 0, len(thresholds)
	for ; size > 1; size -= size / 2 {
		at = rankStep(thresholds, at, size/2, x)
	}
	return rankStep(thresholds, at, 1, x)
}

// rankStep goes past half of the thresholds that are left where the last of them is below a number.
func rankStep(thresholds []float64, at, half int, x float64) int {
	return at + half&-int(bit(x > thresholds[at+half-1]))
}

// rankLanes are the ranks of numbers side by side.
func rankLanes(thresholds []float64, of *[lanes]float64) [lanes]int {
	a, b, c, d, e, f, g, h := 0, 0, 0, 0, 0, 0, 0, 0
	size := len(thresholds)
	for ; size > 1; size -= size / 2 {
		half := size / 2
		a = rankStep(thresholds, a, half, of[0])
		b = rankStep(thresholds, b, half, of[1])
		c = rankStep(thresholds, c, half, of[2])
		d = rankStep(thresholds, d, half, of[3])
		e = rankStep(thresholds, e, half, of[4])
		f = rankStep(thresholds, f, half, of[5])
		g = rankStep(thresholds, g, half, of[6])
		h = rankStep(thresholds, h, half, of[7])
	}
	a = rankStep(thresholds, a, 1, of[0])
	b = rankStep(thresholds, b, 1, of[1])
	c = rankStep(thresholds, c, 1, of[2])
	d = rankStep(thresholds, d, 1, of[3])
	e = rankStep(thresholds, e, 1, of[4])
	f = rankStep(thresholds, f, 1, of[5])
	g = rankStep(thresholds, g, 1, of[6])
	h = rankStep(thresholds, h, 1, of[7])
	return [lanes]int{a, b, c, d, e, f, g, h}
}
