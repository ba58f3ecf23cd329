package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
)

// plainTree is a tree as docs/MODELS.md says it: a split of a column, or a leaf.
type plainTree struct {
	column      int // of plainColumns; of a leaf -1
	threshold   float64
	nullRight   bool
	left, right *plainTree
	leaf        []float64
}

var plainColumns = []string{"x", "y", "z"}

// nodes are the tree's nodes in preorder, as JSON has them.
func (p *plainTree) nodes() []any {
	if p.column < 0 {
		if len(p.leaf) == 1 {
			return []any{p.leaf[0]}
		}
		return []any{p.leaf}
	}
	split := []any{plainColumns[p.column], p.threshold}
	if p.nullRight {
		split = append(split, "right")
	}
	return append(append([]any{split}, p.left.nodes()...), p.right.nodes()...)
}

func (p *plainTree) walk(row []float64) []float64 {
	for p.column >= 0 {
		x := row[p.column]
		if x > p.threshold || x != x && p.nullRight {
			p = p.right
		} else {
			p = p.left
		}
	}
	return p.leaf
}

// grown draws a tree with so many splits, of a shape between a chain, lean 1, and one that is even.
func grown(r *rand.Rand, splits int, lean float64, threshold func() float64, leaf func() []float64) *plainTree {
	if splits == 0 {
		return &plainTree{column: -1, leaf: leaf()}
	}
	p := &plainTree{column: r.IntN(2 + r.IntN(2)), threshold: threshold(), nullRight: r.IntN(2) == 0} // z is rare
	left := (splits - 1) / 2
	if r.Float64() < lean {
		left = r.IntN(2) * (splits - 1)
	}
	p.left = grown(r, left, lean, threshold, leaf)
	p.right = grown(r, splits-1-left, lean, threshold, leaf)
	return p
}

// TestBlocksAreWalks: the scores of blocks are those of plain walks, to the last bit, for trees of all shapes and blocks of all sizes.
func TestBlocksAreWalks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	few := []float64{-1e150, -2, -1, 0, 0.5, 1, 2, 1e150}
	for _, c := range []struct {
		name          string
		trees, splits int
		lean          float64
		few           bool // thresholds
		outputs       int
		lists         bool
	}{
		{name: "leaves", trees: 3, splits: 0, outputs: 1},
		{name: "stumps", trees: 9, splits: 1, few: true, outputs: 1},
		{name: "small", trees: 20, splits: 7, few: true, outputs: 1},
		{name: "full", trees: 10, splits: 255, outputs: 1},
		{name: "more than full", trees: 10, splits: 256, outputs: 3},
		{name: "lists", trees: 10, splits: 30, lean: 0.3, outputs: 3, lists: true},
		{name: "lists of parts", trees: 10, splits: 600, lean: 0.3, few: true, outputs: 2, lists: true},
		{name: "large", trees: 10, splits: 2000, lean: 0.3, outputs: 1},
		{name: "chains", trees: 5, splits: 1000, lean: 1, outputs: 1},
		{name: "several groups", trees: 400, splits: 31, lean: 0.1, outputs: 1},
		{name: "groups of lists", trees: 300, splits: 40, lean: 0.1, outputs: 2, lists: true},
		{name: "one column's", trees: 1, splits: 60_000, outputs: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			threshold := func() float64 {
				if c.few {
					return few[r.IntN(len(few))]
				}
				return r.NormFloat64()
			}
			leaf := func() []float64 {
				all := make([]float64, 1)
				if c.lists {
					all = make([]float64, c.outputs)
				}
				for k := range all {
					all[k] = r.NormFloat64()
				}
				return all
			}
			e, base := map[string]any{}, make([]float64, c.outputs)
			for k := range base {
				base[k] = r.NormFloat64()
			}
			e["base"] = base[0]
			if c.outputs > 1 {
				e["classes"], e["base"] = []string{"a", "b", "c"}[:c.outputs], base
			}
			average := r.IntN(2) == 0
			e["average"] = average
			var trees []*plainTree
			var lists []any
			for range c.trees {
				p := grown(r, c.splits, c.lean, threshold, leaf)
				trees, lists = append(trees, p), append(lists, p.nodes())
			}
			e["trees"] = lists
			absent := [2]float64{0.25, 0.5} // of x, where it is read
			if c.splits > 1 {
				e["null"] = map[string]any{"x": absent}
			}
			body, err := json.Marshal(map[string]any{"trees": e})
			if err != nil {
				t.Fatal(err)
			}
			m, err := Parse(body)
			if err != nil {
				t.Fatalf("%.300s: %v", body, err)
			}
			scratch := m.Scorer().MakeScratch()
			for _, rows := range []int{1, 7, fewRows - 1, fewRows, 63, 100, groupRows, groupRows + 1, 700, MaxBlock} {
				table, features := make([][]float64, rows), make([][]float64, len(m.Features()))
				for i := range table {
					for range plainColumns {
						x := r.NormFloat64()
						switch r.IntN(8) {
						case 0:
							x = few[r.IntN(len(few))]
						case 1:
							x = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 5e-324, 0.25, math.Nextafter(0.5, 1)}[r.IntN(7)]
						}
						table[i] = append(table[i], x)
					}
					for j, f := range m.Features() {
						for k, column := range plainColumns {
							if f.Column == column {
								features[j] = append(features[j], table[i][k])
							}
						}
					}
				}
				got := make([][]float64, c.outputs)
				for k := range got {
					got[k] = make([]float64, rows)
				}
				for i := range scratch.Bits {
					scratch.Bits[i] = rowfn.Bits{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()} // what an earlier block left
				}
				m.Scorer().BlockIn(scratch, got, features)
				for i, row := range table {
					if c.splits > 1 && row[0] >= absent[0] && row[0] <= absent[1] {
						row[0] = math.NaN()
					}
					want := append([]float64(nil), base...)
					for j, p := range trees {
						for k, x := range p.walk(row) {
							if c.lists {
								want[k] += x
							} else {
								want[j%c.outputs] += x
							}
						}
					}
					for k := range want {
						if average {
							want[k] /= float64(c.trees)
						}
						if math.Float64bits(got[k][i]) != math.Float64bits(want[k]) {
							t.Fatalf("row %d of %d, %v: output %d is %v, want %v", i, rows, row, k, got[k][i], want[k])
						}
					}
				}
			}
		})
	}
}

// TestTopsAreUsed: what makes blocks fast is there: the top of a tree leaves few levels for its rows to walk, of one with at most maxParts leaves none, and trees share
// masks as far as a group has room.
func TestTopsAreUsed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	body := func(trees, splits int, lean float64) *forest {
		var lists []any
		for range trees {
			lists = append(lists, grown(r, splits, lean, r.NormFloat64, func() []float64 { return []float64{r.NormFloat64()} }).nodes())
		}
		text, err := json.Marshal(map[string]any{"trees": map[string]any{"trees": lists}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return m.scorer.form.(*forest)
	}
	for _, c := range []struct {
		trees, splits int
		lean          float64
		below         uint32 // at most
		groups        int
	}{{100, 31, 0.5, 0, 1}, {10, 2000, 0.5, 15, 1}, {2, 1000, 1, 1000 - maxParts + 1, 1}, {1500, 31, 0.5, 0, 6}} {
		f := body(c.trees, c.splits, c.lean)
		masks := 0
		for i, g := range f.groups {
			count := 0
			for _, column := range g.columns {
				count += len(column.thresholds)
			}
			if masks = max(masks, count+len(g.columns)); count > maxMasks || i+1 < len(f.groups) && count < maxMasks/2 {
				t.Errorf("%v: group %d has %d masks", c, i, count)
			}
		}
		if len(f.groups) != c.groups || f.masks != masks {
			t.Errorf("%v: %d groups, want %d; %d masks, of %d", c, len(f.groups), c.groups, masks, f.masks)
		}
		for i := range f.trees {
			if t1 := f.trees[i]; t1.below > c.below || t1.splits >= maxParts {
				t.Fatalf("%v: a tree of depth %d has %d splits in its top and %d levels below", c, t1.depth, t1.splits, t1.below)
			}
		}
	}
}

// TestTurn: the digits of rows' numbers become the numbers, in the order of the rows.
func TestTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, count := range []int{1, 2, 3, 8, 9, 64, 65, 255, maxParts} {
		parts, want := new([maxParts]rowfn.Bits), make([]uint8, groupRows)
		for row := range want {
			want[row] = uint8(r.IntN(count))
			parts[want[row]][row/64] |= bitOf(row)
		}
		for i := count; i < maxParts; i++ {
			parts[i] = rowfn.Bits{1, 2, 3, 4} // of another tree
		}
		got := new([groupRows]uint8)
		partOfRows(got, parts, count)
		if fmt.Sprint(got[:]) != fmt.Sprint(want) {
			t.Errorf("%d parts: %v, want %v", count, got, want)
		}
	}
}
