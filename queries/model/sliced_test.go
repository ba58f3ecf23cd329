package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// randomTree is a tree in preorder with about so many leaves: as even as a coin makes it, or a chain.
func randomTree(r *rand.Rand, leaves, depth, columns, thresholds int, chain bool, leaf func() any) []any {
	if leaves <= 1 || depth == 0 {
		return []any{leaf()}
	}
	split := []any{fmt.Sprintf("c%d", r.IntN(columns)), float64(r.IntN(thresholds)-thresholds/2) / 4}
	if r.IntN(4) == 0 {
		split = append(split, "right")
	}
	left := 1 + r.IntN(leaves-1)
	switch {
	case chain:
		left = 1 + (leaves-2)*r.IntN(2)
	case r.IntN(2) == 0:
		left = leaves / 2
	}
	return append(append([]any{split}, randomTree(r, left, depth-1, columns, thresholds, chain, leaf)...), randomTree(r, leaves-left, depth-1, columns, thresholds, chain, leaf)...)
}

// Rows that are walked together have the scores of rows that are walked one by one, bit for bit: for trees of every shape, of few and of more than slicedLeaves leaves and so of
// several stretches, for values on thresholds, zeros of both signs, nulls to both sides, for blocks of every length, and with leaves whose sum shows the order in which trees were added.
func TestSliced(t *testing.T) {
	together, hasWide := 0, wide
	pays := slicedPays
	defer func() { wide, slicedPays = hasWide, pays }()
	slicedPays = func(float64, float64) bool { return true }
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		columns, thresholds := rapid.IntRange(1, 12).Draw(t, "columns"), rapid.SampledFrom([]int{1, 5, 8, 30, 300}).Draw(t, "thresholds")
		classes := rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "classes")
		trees := make([]any, rapid.IntRange(1, 8).Draw(t, "trees"))
		for i := range trees {
			number := func() any { return r.NormFloat64() * math.Pow(10, float64(r.IntN(9)-4)) }
			leaf := number
			if classes > 0 && r.IntN(2) == 0 {
				leaf = func() any {
					list := make([]any, classes)
					for k := range list {
						list[k] = number()
					}
					return list
				}
			}
			leaves := []int{1, 2, 3, 7, 8, 31, 64, 255, 256, 257, 400}[r.IntN(11)]
			trees[i] = randomTree(r, leaves, MaxDepth, columns, thresholds, r.IntN(3) == 0, leaf)
		}
		ensemble := map[string]any{"trees": trees, "average": r.IntN(2) == 0}
		if classes > 0 {
			ensemble["classes"] = []string{"a", "b", "c"}[:classes]
		}
		body, err := json.Marshal(map[string]any{"trees": ensemble})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		rows := rapid.SampledFrom([]int{1, 127, 128, 129, 191, 192, 511, 512, 513, 640, 700, 1023, MaxBlock}).Draw(t, "rows")
		s := m.Scorer()
		features, got, want := make([][]float64, s.Features()), make([][]float64, s.Outputs()), make([][]float64, s.Outputs())
		for j := range features {
			features[j] = make([]float64, rows)
			for i := range features[j] {
				switch x := float64(r.IntN(thresholds+4)-thresholds/2-2) / 4; r.IntN(8) {
				case 0:
					features[j][i] = math.NaN()
				case 1:
					features[j][i] = math.Copysign(0, -1)
				case 2:
					features[j][i] = x + r.NormFloat64()
				default:
					features[j][i] = x
				}
			}
		}
		for k := range got {
			got[k], want[k] = make([]float64, rows), make([]float64, rows)
		}
		scratch := make([]float64, s.Scratch())
		for i := range scratch {
			scratch[i] = math.NaN() // what a scratch holds does not matter
		}
		f := s.forest
		wide = hasWide && rapid.Bool().Draw(t, "wide")
		s.BlockIn(scratch, got, features)
		for k := range want {
			for i := range want[k] {
				want[k][i] = f.base[k]
			}
		}
		f.walk(0, len(f.trees), want, scratch, 0) // of the inputs that block has copied
		for k := range want {
			for i := range want[k] {
				if f.average {
					want[k][i] /= float64(len(f.trees))
				}
				if math.Float64bits(got[k][i]) != math.Float64bits(want[k][i]) {
					t.Fatalf("row %d of %d, output %d: %v, walked alone %v; %s", i, rows, k, got[k][i], want[k][i], strings.TrimSpace(string(body[:min(len(body), 2000)])))
				}
			}
		}
		for _, stretch := range f.stretches {
			if rows >= leastSliced {
				together += len(stretch.trees)
			}
		}
	})
	if together == 0 {
		t.Error("no tree was walked for many rows at once")
	}
}

// More conditions than are computed at a time make stretches of their own.
func TestManyConditions(t *testing.T) {
	var trees []string
	for i := range 600 {
		var nodes []string
		for k := range 31 {
			nodes = append(nodes, fmt.Sprintf(`["x",%d.5]`, i*31+k), fmt.Sprint(i%7+k))
		}
		trees = append(trees, "["+strings.Join(nodes, ",")+",-3]")
	}
	// A chain to the right: a row's leaf is the first threshold that it is not above.
	m, err := Parse([]byte(`{"trees":{"trees":[` + strings.Join(trees[:500], ",") + `]}}`))
	if err != nil {
		// Chains of 31 splits are deep, and so few of them are allowed; the limit is not what this test is about.
		t.Fatal(err)
	}
	f := m.Scorer().forest
	if f.conditions > slicedConditions {
		t.Errorf("%d conditions at a time", f.conditions)
	}
	row := make([]float64, MaxBlock)
	for i := range row {
		row[i] = float64(i * 17)
	}
	out := [][]float64{make([]float64, MaxBlock)}
	m.Scorer().Block(out, [][]float64{row})
	for i, x := range row {
		want := 0.0
		for tree := range 500 {
			leaf := -3.0
			for k := 30; k >= 0; k-- {
				if x <= float64(tree*31+k)+0.5 {
					leaf = float64(tree%7 + k)
				}
			}
			want += leaf
		}
		if out[0][i] != want {
			t.Fatalf("row %d: %v, want %v", i, out[0][i], want)
		}
	}
}

// Trees are walked for many rows at once only where that costs less: not deep ones that share no thresholds, nor few between others.
func TestSlicedWhereItPays(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var grow func(depth, thresholds int) []any
	grow = func(depth, thresholds int) []any {
		if depth == 0 {
			return []any{r.NormFloat64()}
		}
		split := []any{fmt.Sprintf("c%d", r.IntN(8)), r.NormFloat64()}
		if thresholds > 0 {
			split[1] = r.IntN(thresholds)
		}
		return append(append([]any{split}, grow(depth-1, thresholds)...), grow(depth-1, thresholds)...)
	}
	for _, c := range []struct {
		name              string
		trees             int
		depth, thresholds int
		between           int // depth of every second tree; 0: there are none
		together          bool
	}{
		{"boosted", 100, 3, 0, 0, true}, {"boosted in bins", 500, 6, 255, 0, true}, {"a forest", 100, 6, 0, 0, true}, {"eight levels in bins", 100, 8, 255, 0, true},
		{"one tree", 1, 3, 0, 0, false}, {"deep", 40, 8, 0, 0, false}, {"small among large", 40, 6, 0, 9, false},
	} {
		var trees []any
		for i := range c.trees {
			depth := c.depth
			if c.between > 0 && i%2 == 1 {
				depth = c.between
			}
			trees = append(trees, grow(depth, c.thresholds))
		}
		body, err := json.Marshal(map[string]any{"trees": map[string]any{"trees": trees}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range m.Scorer().forest.stretches {
			if together := len(s.trees) > 0; together != c.together {
				x, y := s.costs(m.Scorer().forest)
				t.Errorf("%s: trees %d to %d are walked together: %v (%v, alone %v)", c.name, s.from, s.to, together, x, y)
				break
			}
		}
	}
}

// BenchmarkTrees is 1,000 trees of a boosted model: nanoseconds for a row and tree, with 255 thresholds of each of 28 columns.
func BenchmarkTrees(b *testing.B) {
	for _, depth := range []int{3, 6, 8} {
		b.Run(fmt.Sprintf("depth %d", depth), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			trees := make([]any, min(1000, MaxNodes>>(depth+1)))
			var grow func(d int) []any
			grow = func(d int) []any {
				if d == 0 {
					return []any{r.NormFloat64()}
				}
				return append(append([]any{[]any{fmt.Sprintf("c%d", r.IntN(28)), float64(r.IntN(255))}}, grow(d-1)...), grow(d-1)...)
			}
			for i := range trees {
				trees[i] = grow(depth)
			}
			body, _ := json.Marshal(map[string]any{"trees": map[string]any{"trees": trees}})
			m, err := Parse(body)
			if err != nil {
				b.Fatal(err)
			}
			s := m.Scorer()
			features := make([][]float64, s.Features())
			for j := range features {
				features[j] = make([]float64, MaxBlock)
				for i := range features[j] {
					features[j][i] = 255 * r.Float64()
				}
			}
			dst, scratch := [][]float64{make([]float64, MaxBlock)}, make([]float64, s.Scratch())
			for b.Loop() {
				s.BlockIn(scratch, dst, features)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*MaxBlock*len(trees)), "ns/row/tree")
		})
	}
}
