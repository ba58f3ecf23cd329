package shape

import (
	"math"
	"sync"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Tally is a [Statistic] of how many units are where. Its functions are conditions of one row; what a pass sums are counts of units, or of units' shares
// of their rows.
type Tally struct {
	Kind  TallyKind
	P     float64 // of a Quantile
	Where bool    // of a Quantile: the last function is the condition that units are counted under; without it all are
	Exact bool    // of a Quantile: all units are counted, each of them is one row, and so 0 or 1

	// Rows and Columns are the size of a table of counts, of the other kinds: bins of the first score by bins of the second.
	Rows, Columns int

	functions func() []rowfn.Function // made once, where the plan is released by them
}

// TallyKind is what is made of counts.
type TallyKind uint8

// The kinds of tallies. Those of pairs need units of one row, which are alike.
const (
	// Quantile counts the units below each threshold and up to it.
	Quantile TallyKind = iota
	// Area counts those with a label, and those without, in each bin of a score.
	Area
	// AreaDifference counts them in each pair of two scores' bins: the area of the first score minus that of the second.
	AreaDifference
	// Concordance counts units in each pair of two numbers' bins, in each half of the holdout by itself: Kendall's tau between the halves.
	Concordance
)

// Batch implements [Statistic].
func (t *Tally) Batch() rowfn.Batch { return rowfn.Batch{Functions: t.functions()} }

// Sampled implements [Statistic]: counts plan their own margins.
func (t *Tally) Sampled() rowfn.Batch { return t.Batch() }

// Halves implements [Halved].
func (t *Tally) Halves() bool { return t.Kind == Concordance }

// checks is the form of a plan that a tally decides about.
func (t *Tally) checks(s Shape) *Checks {
	return &Checks{Statistics: []Statistic{t}, Shape: s, Alike: t.Kind != Quantile, OneLevel: t.Kind == Quantile}
}

// Ladder are the counts of a Quantile in steps of the grid: of the units that count, and of those below each threshold, and at it or below, from the sums
// of its functions over n units. All values are within the range, so that none is below its low end and all are up to its high end.
func (t *Tally) Ladder(sums []int64, n int64) (units int64, below, upto []int64) {
	units = n * rowfn.One
	if t.Where {
		units, sums = sums[len(sums)-1], sums[:len(sums)-1]
	}
	// Rung 0 has no function of its own below it, the range's high end has none up to it.
	below, upto = []int64{0}, nil
	for i := 0; i < len(sums); i += 2 {
		upto, below = append(upto, sums[i]), append(below, sums[i+1])
	}
	return units, below, append(upto, units)
}

// Table is the number of units in each cell of a table, from the sums of its functions: how many are in this row and column or in higher ones.
func (t *Tally) Table(sums []int64) [][]int64 {
	at := func(i, j int) int64 {
		if i >= t.Rows || j >= t.Columns {
			return 0
		}
		return sums[i*t.Columns+j] / rowfn.One
	}
	table := make([][]int64, t.Rows)
	for i := range table {
		table[i] = make([]int64, t.Columns)
		for j := range table[i] {
			table[i][j] = at(i, j) - at(i+1, j) - at(i, j+1) + at(i+1, j+1)
		}
	}
	return table
}

// Tables are the tables of an Area or an AreaDifference: of the units with the label, and of those without.
func (t *Tally) Tables(sums []int64) (with, without [][]int64) {
	size := t.Rows * t.Columns
	return t.Table(sums[:size]), t.Table(sums[size:])
}

// cells are the functions of one table: of the units in which holds does, those above so many edges of the first score and of the second.
func cells(holds *rowfn.Node, first, second []*rowfn.Node) (functions []rowfn.Function) {
	above := func(n, edge *rowfn.Node) *rowfn.Node {
		if n == nil {
			return edge
		}
		return rowfn.And(n, edge)
	}
	for i := range len(first) + 1 {
		row := holds
		if i > 0 {
			row = above(holds, first[i-1])
		}
		for j := range len(second) + 1 {
			cell := row
			if j > 0 {
				cell = above(row, second[j-1])
			}
			functions = append(functions, rowfn.Function{Value: cell, Lo: 0, Hi: 1})
		}
	}
	if functions[0].Value == nil {
		functions[0].Value = rowfn.True()
	}
	return functions
}

// areaTally is the tally of a curve, or, of two scores, of the difference of their areas.
func areaTally(first, second []*rowfn.Node, label, where *rowfn.Node) *Tally {
	t := &Tally{Kind: Area, Rows: len(first) + 1, Columns: len(second) + 1}
	if second != nil {
		t.Kind = AreaDifference
	}
	with, without := byLabel(label, where)
	t.functions = sync.OnceValue(func() []rowfn.Function { return append(cells(with, first, second), cells(without, first, second)...) })
	return t
}

// ConcordanceOf is the plan of Kendall's tau of two numbers, of which first and second say whether they are above each of their edges. It is
// known by its tally alone, so that the plan is in that form from the beginning: a mechanism that checks no statistics cannot answer it.
func ConcordanceOf(first, second []*rowfn.Node, where *rowfn.Node) *Plan {
	r := Range{-1, 1}
	t := &Tally{Kind: Concordance, Rows: len(first) + 1, Columns: len(second) + 1,
		functions: sync.OnceValue(func() []rowfn.Function { return cells(where, first, second) })}
	return (&Plan{Range: r, FromZero: true, Shape: Moved{r}, Checks: t.checks(Moved{r})}).AsChecked()
}

// Moved is the shape of an answer that is released as one number in [0,1], moved to a range.
type Moved struct{ Range Range }

func (s Moved) items() []string { return nil }

func (s Moved) combine(o Outcome) Result {
	part := o.Parts[0]
	result := finish(part.Value, part.interval(), part.Bounded, s.Range, 1)
	if part.unknown() {
		result.Value = nil
	}
	return result
}

// Rung is the shape of a quantile that is released as one number, the place of a rung of its search between the first, 0, and the last, 1. Where it is of the
// rows in which a condition holds, there may be none.
type Rung struct {
	Search Search
	Where  bool
}

func (r Rung) items() []string { return nil }

func (r Rung) combine(o Outcome) Result {
	part := o.Parts[0]
	at := func(place float64) *float64 {
		x := r.Search.At(int(math.Round(min(max(place, 0), 1) * float64(r.Search.Rungs))))
		return &x
	}
	result := Result{Value: at(part.Value)}
	if part.Bounded {
		result.Low, result.High = at(part.Low), at(part.High)
		if r.Where && part.Low <= 0 && part.High >= 1 {
			result.Value = nil // as far as can be told, the condition may hold nowhere
		}
	}
	return result
}

// tally counts the units below each rung and at it or below. reached are the conditions that x is at a rung or below.
func (s Search) tally(x *rowfn.Node, reached []*rowfn.Node, null float64, where *rowfn.Node, grouped bool) *Tally {
	t := &Tally{Kind: Quantile, P: s.P, Where: where != nil, Exact: !grouped && where == nil}
	among := func(holds *rowfn.Node) rowfn.Function {
		if where != nil {
			holds = rowfn.And(where, holds)
		}
		return rowfn.Function{Value: holds, Lo: 0, Hi: 1}
	}
	t.functions = sync.OnceValue(func() (functions []rowfn.Function) {
		for i := range s.Rungs {
			functions = append(functions, among(reached[i]))
			next := s.At(i + 1)
			below := rowfn.CompareTo(rowfn.OpLess, x, next)
			if null < next {
				below = rowfn.Or(below, rowfn.IsNull(x))
			}
			functions = append(functions, among(below))
		}
		if where != nil {
			functions = append(functions, rowfn.Function{Value: where, Lo: 0, Hi: 1})
		}
		return functions
	})
	return t
}
