package sourcetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

const (
	// programsPerBatch is how many random row functions are asked for together: as many as an engine should take in one statement.
	programsPerBatch = 40
	// shownProblems bounds what a failing run prints.
	shownProblems = 5
)

// pair is a part of a source and the server's own engine over the rows that it must have.
type pair struct {
	got  sources.Part
	rows part
	want *engine.Table
}

// agree compares the sums of a batch over a range of units, and says for each row function or product that differs at which unit it does. It returns how many differ.
func (p pair) agree(t testing.TB, what string, batch rowfn.Batch, from, to int64) int {
	t.Helper()
	want, err := p.want.Moments(t.Context(), batch, from, to)
	if err != nil {
		t.Fatalf("%s: the server's own engine: %v", what, err)
	}
	got, err := p.got.Moments(t.Context(), batch, from, to)
	if err != nil || len(got.Values) != len(want.Values) || len(got.Products) != len(want.Products) {
		t.Errorf("%s, units %d to %d: %d sums and %d products, %v; want %d and %d", what, from, to, len(got.Values), len(got.Products), err, len(want.Values), len(want.Products))
		return 1
	}
	differ := 0
	for i := range want.Values {
		if got.Values[i] != want.Values[i] {
			if differ++; differ <= shownProblems {
				t.Errorf("%s, units %d to %d, row function %d: the source has %d, the server %d\n%s", what, from, to, i, got.Values[i], want.Values[i], p.explain(t, batch.Functions[i], from, to))
			}
		}
	}
	for i, product := range batch.Products {
		if got.Products[i] != want.Products[i] {
			if differ++; differ <= shownProblems {
				t.Errorf("%s, units %d to %d, product of %d and %d: the source has %v, the server %v", what, from, to, product.A, product.B, got.Products[i], want.Products[i])
			}
		}
	}
	return differ
}

// explain prints a row function, and finds a unit at which the two differ.
func (p pair) explain(t testing.TB, f rowfn.Function, from, to int64) string {
	text := fmt.Sprintf("\t%s of %s in [%v, %v], null counts as %v, where %s", map[rowfn.PerUnit]string{rowfn.UnitMean: "mean", rowfn.UnitAny: "any", rowfn.UnitShare: "share"}[f.PerUnit], show(f.Value), f.Lo, f.Hi, f.Null, show(f.Where))
	one := rowfn.Batch{Functions: []rowfn.Function{f}}
	sums := func(from, to int64) (got, want int64) {
		g, err := p.got.Moments(t.Context(), one, from, to)
		w, _ := p.want.Moments(t.Context(), one, from, to)
		if err != nil {
			return -1, w.Values[0]
		}
		return g.Values[0], w.Values[0]
	}
	if got, want := sums(from, to); got == want {
		return text + "\n\tit is right when it is asked alone"
	}
	for to-from > 1 {
		middle := (from + to) / 2
		if got, want := sums(from, middle); got != want {
			to = middle
		} else if got, want := sums(middle, to); got != want {
			from = middle
		} else {
			return fmt.Sprintf("%s\n\tboth halves of units %d to %d are right", text, from, to)
		}
	}
	if from == to {
		return text
	}
	got, want := sums(from, to)
	text += fmt.Sprintf("\n\tunit %d: %d, want %d, of the rows", from, got, want)
	names := named(p.rows.rows.Schema())
	begin, end := p.rows.rowsOf(from)
	for row := begin; row < min(end, begin+5); row++ {
		text += "\n\t" + line(p.rows.rows, names, row)
	}
	return text
}

func show(n *rowfn.Node) string {
	if n == nil {
		return "-"
	}
	return randomtree.String(n)
}

// pairOf registers rows, and opens the part that is summed.
func (s *suite) pairOf(t testing.TB, seed uint64, n, longest int, by sources.Keys, rowsCap int64) pair {
	t.Helper()
	r := s.register(t, s.edgeRows(seed, n, longest), by, seed, 0.1, 0.9)
	return pair{s.open(t, r, 1, rowsCap), r.parts[1], r.parts[1].engine(t, rowsCap)}
}

// ranges are parts of n units: all, halves, and some.
func ranges(r *rand.Rand, n int64) [2]int64 {
	switch r.IntN(5) {
	case 0:
		return [2]int64{0, n / 2}
	case 1:
		return [2]int64{n / 2, n}
	case 2:
		from := r.Int64N(n + 1)
		return [2]int64{from, from + r.Int64N(n+1-from)}
	}
	return [2]int64{0, n}
}

// randomSumsOfRows and randomSumsOfUnits: random row functions and products over edge rows, bit by bit.
func randomSumsOfRows(t T, s *suite) {
	p := s.pairOf(t, 21, s.Rows, 1, s.rowKeys(), 1)
	s.randomSums(t, p, 1, s.Programs)
}

func randomSumsOfUnits(t T, s *suite) {
	p := s.pairOf(t, 22, s.Rows, 7, sources.Keys{Columns: []string{"unit"}}, 4)
	s.randomSums(t, p, 1_000_000, s.Programs)
}

// narrowSums: the same over columns whose values a narrower type than their own holds, in which a source may keep them, and over all rows as they are read. It would notice a value that does not come back as it was.
func narrowSums(t T, s *suite) {
	rows := s.narrowRows(23, s.Rows)
	r := s.register(t, rows, s.rowKeys(), 23, 0.1, 0.9)
	p := pair{s.open(t, r, 1, 1), r.parts[1], r.parts[1].engine(t, 1)}
	holds(t, p.got, r.parts[1], r.infos[1])
	p.agree(t, "directed", rowfn.Batch{Functions: directed()}, 0, p.want.Units())
	s.randomSums(t, p, 2_000_000, min(s.Programs, 2*programsPerBatch))
}

func (s *suite) randomSums(t testing.TB, p pair, firstSeed, programs int) {
	n := p.want.Units()
	for done, differ := 0, 0; done < programs && differ < shownProblems; done += programsPerBatch {
		seed := firstSeed + done
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		batch := s.drawBatch(t, p, seed, min(programsPerBatch, programs-done))
		at := ranges(r, n)
		differ += p.agree(t, fmt.Sprintf("random row functions from seed %d on", seed), batch, at[0], at[1])
	}
}

// draws is how many row functions are drawn for each that is summed: the first whose sum over all units is neither nothing nor all, for one half of them are the same in every row.
const draws = 4

// drawBatch draws row functions, each of seeds of its own, with products of some.
func (s *suite) drawBatch(t testing.TB, p pair, seed, programs int) rowfn.Batch {
	t.Helper()
	trees := has
	trees.Contents = s.texts()
	for _, x := range edgeInstants {
		trees.Instants = append(trees.Instants, float64(x))
	}
	trees.Model = model{}
	draw := rapid.Custom(func(t *rapid.T) rowfn.Function { return trees.Function(t, 4) })
	var drawn []rowfn.Function
	for i := range draws * programs {
		drawn = append(drawn, draw.Example(draws*seed+i))
	}
	sums, err := p.want.Sums(t.Context(), drawn, 0, p.want.Units())
	if err != nil {
		t.Fatal(err)
	}
	var batch rowfn.Batch
	for first := 0; first < len(drawn); first += draws {
		telling := slices.IndexFunc(sums[first:first+draws], func(sum int64) bool { return sum > 0 && sum < p.want.Units()*rowfn.One })
		batch.Functions = append(batch.Functions, drawn[first+max(telling, 0)])
	}
	r := rand.New(rand.NewPCG(uint64(seed), 5))
	for range r.IntN(8) {
		batch.Products = append(batch.Products, rowfn.Product{A: r.IntN(programs), B: r.IntN(programs)})
	}
	return batch
}

// directedSums: row functions that are known to go wrong in one engine or another, over rows and over units of several rows, alone and as products.
func directedSums(t T, s *suite) {
	for _, name := range []string{"rows", "units"} {
		t.Run(name, func(t T) {
			longest, by, rowsCap := 1, s.rowKeys(), int64(1)
			if name == "units" {
				longest, by, rowsCap = 6, sources.Keys{Columns: []string{"unit"}}, 3
			}
			p := s.pairOf(t, 31, s.Rows, longest, by, rowsCap)
			n := p.want.Units()
			functions := directed()
			if p.got.Units() != n {
				t.Fatalf("%d units, want %d", p.got.Units(), n)
			}
			for from := range slices.Chunk(functions, programsPerBatch) {
				batch := rowfn.Batch{Functions: from}
				for i := range from {
					batch.Products = append(batch.Products, rowfn.Product{A: i, B: (i * 7) % len(from)})
				}
				p.agree(t, "directed", batch, 0, n)
			}
			// 0 <= from <= to <= n, nothing at all, and the same row function more than once.
			three := rowfn.Batch{Functions: []rowfn.Function{functions[3], functions[0], functions[3]}, Products: []rowfn.Product{{A: 0, B: 2}, {A: 2, B: 1}, {A: 1, B: 2}, {A: 1, B: 1}}}
			for _, r := range [][2]int64{{0, 0}, {n, n}, {0, 1}, {n - 1, n}, {1, 2}, {0, n / 2}, {n / 2, n}, {n / 3, 2 * n / 3}, {0, n}} {
				p.agree(t, "a range", three, r[0], r[1])
			}
			p.agree(t, "nothing", rowfn.Batch{}, 0, n)
			p.agree(t, "a hundred", rowfn.Batch{Functions: slices.Concat(functions, functions, functions)[:min(100, 3*len(functions))]}, 0, n)
			for _, r := range [][2]int64{{-1, n}, {0, n + 1}, {2, 1}} {
				if _, err := p.got.Moments(t.Context(), three, r[0], r[1]); err == nil {
					t.Errorf("units %d to %d of %d are summed", r[0], r[1], n)
				}
			}
			for name, f := range map[string]rowfn.Function{
				"an unknown column":     {Value: rowfn.Column("xx", rowfn.Number), Lo: 0, Hi: 1},
				"a column's wrong type": {Value: rowfn.Column("x", rowfn.Time), Lo: 0, Hi: 1},
				"an empty range":        {Value: rowfn.Column("x", rowfn.Number), Lo: 1, Hi: 1},
				"a null outside":        {Value: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 1, Null: 2},
				"where of numbers":      {Where: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 1},
				"an unknown operation":  {Value: &rowfn.Node{Op: 200, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Const(1)}}, Lo: 0, Hi: 1},
			} {
				if _, err := p.got.Sums(t.Context(), []rowfn.Function{f}, 0, n); err == nil {
					t.Errorf("%s is summed", name)
				}
			}
		})
	}
}

// concurrentSums: a part is summed and read by several at once.
func concurrentSums(t T, s *suite) {
	p := s.pairOf(t, 41, s.Rows, 3, sources.Keys{Columns: []string{"unit"}}, 4)
	var group sync.WaitGroup
	for i := range 4 {
		batch := s.drawBatch(t, p, 5000+100*i, 10)
		want, err := p.want.Moments(t.Context(), batch, 0, p.want.Units())
		must(t, want, err)
		group.Go(func() {
			got, err := p.got.Moments(t.Context(), batch, 0, p.want.Units())
			if err != nil || !slices.Equal(got.Values, want.Values) || !slices.Equal(got.Products, want.Products) {
				t.Errorf("at once: %v, %v; want %v", got, err, want)
			}
			if err := p.got.Read(t.Context(), []string{"x"}, 0, p.want.Units(), func(sources.Block) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// model is a scorer of two features and two outputs: a line, and a line that is cut off at 0.
type model struct{}

func (model) ID() string    { return "sourcetest" }
func (model) Features() int { return 2 }
func (model) Outputs() int  { return 2 }
func (model) Steps() int64  { return 4 }
func (model) Scratch() int  { return 0 }

func (model) BlockIn(_ []float64, dst, features [][]float64) {
	for i := range dst[0] {
		score := float64(0.75*features[0][i]) - float64(3*features[1][i]) + 0.1
		dst[0][i], dst[1][i] = score, max(score, 0)
	}
}
