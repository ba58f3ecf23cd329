package shape

import (
	"math"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Values is an expression of a query whose values a reader may take for others than they count as: null ones, and those that are clamped. What shares of them there are is asked of the
// training part alone.
type Values struct {
	Of     string      // the expression, canonical
	Column string      // the column that it is; empty for others
	Null   *rowfn.Node // the condition that a row's value is null, or that a condition reads a null as something else; nil where nulls count as what everybody expects
	Counts string      // what such a row counts as, in words that follow "they"
	Value  *rowfn.Node // a number that is clamped to Range; nil where nothing is
	Range  Range
	Where  *rowfn.Node // of the rows that are asked about; nil for all

	// MostBelow and MostAbove are the largest shares below and above the range that say nothing by themselves.
	MostBelow, MostAbove float64

	// Known is the share of nulls where nothing has to be summed for it: of all of the training part's rows. Model says that the values are those of a column that a model reads, and
	// Texts that Null are texts that it does not list.
	Known        *float64
	Model, Texts bool

	// Clean says that the training part has no nulls and nothing outside of the range, so that nothing has to be summed. Spread is the least range of its values, where that is known.
	Clean  bool
	Spread *Range
}

// ValuesAmong are those of several plans, each once, of the rows in which where holds.
func ValuesAmong(where *rowfn.Node, plans ...*Plan) (all []Values) {
	seen := map[string]bool{}
	for _, p := range plans {
		for _, v := range p.Values {
			if name := v.Of + " " + v.Counts + " " + v.Range.String(); !seen[name] {
				seen[name], v.Where = true, where
				all = append(all, v)
			}
		}
	}
	return all
}

// ValueShares are what shares of the training part's rows that are asked about have no value, or one that is clamped.
type ValueShares struct{ Null, Below, Above float64 }

// Functions are what the training part is asked; none of clean values.
func (v *Values) Functions() []rowfn.Function {
	if v.Clean || v.Known != nil {
		return nil
	}
	all := []rowfn.Function{v.share(rowfn.True())}
	if v.Null != nil {
		all = append(all, v.share(v.Null))
	}
	if v.Value != nil {
		all = append(all, v.share(rowfn.CompareTo(rowfn.OpLess, v.Value, v.Range.Low)), v.share(rowfn.CompareTo(rowfn.OpGreater, v.Value, v.Range.High)))
	}
	return all
}

func (v *Values) share(holds *rowfn.Node) rowfn.Function {
	if v.Where != nil {
		holds = rowfn.And(holds, v.Where)
	}
	return rowfn.Function{Value: holds, Lo: 0, Hi: 1}
}

// Shares are those of the sums of [Values.Functions], in their order; false where the training part has no row that is asked about.
func (v *Values) Shares(sums []int64) (s ValueShares, ok bool) {
	if v.Clean {
		return s, true
	}
	if v.Known != nil {
		return ValueShares{Null: *v.Known}, true
	}
	if sums[0] <= 0 {
		return s, false
	}
	of := func(i int) float64 { return float64(sums[i]) / float64(sums[0]) }
	next := 1
	if v.Null != nil {
		s.Null, next = of(1), 2
	}
	if v.Value != nil {
		s.Below, s.Above = of(next), of(next+1)
	}
	return s, true
}

// nice are the ends of suggested ranges, without their powers of ten.
var nice = []float64{1, 2, 5}

// Ends of a range that is suggested lie between 10^leastEnd and 5·10^mostEnd, of either sign, or are 0.
const (
	leastEnd = -3
	mostEnd  = 9
)

// Spreads is how a range is found that holds nearly all values: by counting what lies beyond each of some round numbers.
type Spreads struct {
	of   *Values
	ends []float64
}

// Spreads are those of values with a range; nil for others.
func (v *Values) Spreads() *Spreads {
	if v.Value == nil {
		return nil
	}
	s := &Spreads{of: v}
	for _, sign := range []float64{-1, 1} {
		for exponent := leastEnd; exponent <= mostEnd; exponent++ {
			for _, x := range nice {
				s.ends = append(s.ends, sign*x*math.Pow10(exponent))
			}
		}
	}
	s.ends = append(s.ends, 0)
	return s
}

// Functions are what the training part is asked.
func (s *Spreads) Functions() []rowfn.Function {
	all := []rowfn.Function{s.of.share(rowfn.Not(rowfn.IsNull(s.of.Value)))}
	for _, end := range s.ends {
		all = append(all, s.of.share(rowfn.CompareTo(rowfn.OpLess, s.of.Value, end)), s.of.share(rowfn.CompareTo(rowfn.OpGreater, s.of.Value, end)))
	}
	return all
}

// Range is the least range between round numbers that has no more than a share of the values below it, and no more above it; false where there is none.
func (s *Spreads) Range(sums []int64, share float64) (r Range, ok bool) {
	most := share * float64(sums[0])
	low, high := false, false
	for i, end := range s.ends {
		if float64(sums[1+2*i]) <= most && (!low || end > r.Low) {
			r.Low, low = end, true
		}
		if float64(sums[2+2*i]) <= most && (!high || end < r.High) {
			r.High, high = end, true
		}
	}
	return r, low && high && r.Valid() && r.Problem() == "" && sums[0] > 0
}
