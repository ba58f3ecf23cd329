package sourcetest

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// wrong is a source whose parts sum wrongly in one way.
type wrong struct {
	sources.Source
	sums   func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error)
	divide func(units sources.Units, places []sources.Place) // moves units
	read   func(sources.Block) sources.Block
}

type wrongPart struct {
	sources.Part
	of      *wrong
	cap     int64
	grouped bool
}

func (w *wrong) RowsHavePlaces() bool {
	p, ok := w.Source.(sources.Placed)
	return ok && p.RowsHavePlaces()
}

func (w *wrong) Open(ctx context.Context, of sources.PartInfo, rowsCap int64) (sources.Part, error) {
	p, err := w.Source.Open(ctx, of, rowsCap)
	if err != nil {
		return nil, err
	}
	return &wrongPart{p, w, rowsCap, of.Grouped}, nil
}

func (w *wrong) Divide(ctx context.Context, of sources.Snapshot, by sources.Keys, parts []sources.PartSpec, place func(sources.Units, []sources.Place) error, done func(int64)) ([]sources.PartInfo, error) {
	return w.Source.Divide(ctx, of, by, parts, func(units sources.Units, places []sources.Place) error {
		err := place(units, places)
		if err == nil && w.divide != nil {
			w.divide(units, places)
		}
		return err
	}, done)
}

func (p *wrongPart) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	if p.of.sums == nil {
		return p.Part.Moments(ctx, batch, from, to)
	}
	return p.of.sums(ctx, p, batch, from, to)
}

func (p *wrongPart) Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error) {
	sums, err := p.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

func (p *wrongPart) Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	return p.Part.Read(ctx, columns, from, to, func(b sources.Block) error {
		if p.of.read != nil {
			b = p.of.read(b)
		}
		return yield(b)
	})
}

// rows are all rows of some units, in one block.
func (p *wrongPart) rows(ctx context.Context, from, to int64) (sources.Block, error) {
	all := sources.Block{First: from, Offsets: []uint32{0}}
	var tables []*dataset.Table
	err := p.Part.Read(ctx, nil, from, to, func(b sources.Block) error {
		begins := all.Offsets[len(all.Offsets)-1]
		for i := range b.Rows.Rows() {
			if b.Offsets == nil {
				all.Offsets = append(all.Offsets, begins+uint32(i)+1)
			}
		}
		for _, end := range b.Offsets[min(1, len(b.Offsets)):] {
			all.Offsets = append(all.Offsets, begins+end)
		}
		tables = append(tables, b.Rows)
		return nil
	})
	if err != nil || len(tables) == 0 {
		return all, err
	}
	var columns []dataset.Column
	for i := range tables[0].Columns() {
		c := *tables[0].Column(i)
		c.Numbers, c.Bools, c.Codes = nil, nil, nil
		var texts []string
		var nulls []bool
		for _, t := range tables {
			part := t.Column(i)
			c.Numbers, c.Bools = append(c.Numbers, part.Numbers...), append(c.Bools, part.Bools...)
			for row := range part.Codes {
				text := ""
				if !part.Null(row) {
					text = part.Dictionary.Text(int(part.Codes[row]) - 1)
				}
				texts, nulls = append(texts, text), append(nulls, part.Null(row))
			}
		}
		if c.Kind == dataset.Text {
			c = dataset.NewText(c.Name, texts, func(row int) bool { return nulls[row] })
		}
		columns = append(columns, c)
	}
	all.Rows = table(columns...)
	return all, nil
}

// refused checks a batch as the real part does.
func (p *wrongPart) refused(ctx context.Context, batch rowfn.Batch, from, to int64) error {
	_, err := p.Part.Moments(ctx, batch, from, to)
	return err
}

// tree rewrites row functions before they are summed.
func tree(rewrite func(rowfn.Function) rowfn.Function) *wrong {
	return &wrong{sums: func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
		if err := p.refused(ctx, batch, from, to); err != nil {
			return rowfn.Sums{}, err
		}
		rewritten := rowfn.Batch{Products: batch.Products}
		for _, f := range batch.Functions {
			rewritten.Functions = append(rewritten.Functions, rewrite(f))
		}
		return p.Part.Moments(ctx, rewritten, from, to)
	}}
}

// nodes rewrites nodes from the leaves up.
func nodes(rewrite func(*rowfn.Node) *rowfn.Node) *wrong {
	var walk func(*rowfn.Node) *rowfn.Node
	walk = func(n *rowfn.Node) *rowfn.Node {
		if n == nil {
			return nil
		}
		copied := *n
		copied.Args = make([]*rowfn.Node, len(n.Args))
		for i, a := range n.Args {
			copied.Args[i] = walk(a)
		}
		return rewrite(&copied)
	}
	return tree(func(f rowfn.Function) rowfn.Function {
		f.Value, f.Where = walk(f.Value), walk(f.Where)
		return f
	})
}

// conditions are SQL's own: null where something in them is, so that what is not null may be true or false, and its opposite may be neither.
func naturally(n *rowfn.Node, want bool) *rowfn.Node {
	known := func(n *rowfn.Node) *rowfn.Node {
		c := rowfn.True()
		for _, a := range n.Args {
			if a.Op == rowfn.OpColumn || a.Type != rowfn.Text {
				c = rowfn.And(c, rowfn.Not(rowfn.IsNull(a)))
			}
		}
		return c
	}
	all := func(op rowfn.Op) *rowfn.Node {
		out := &rowfn.Node{Op: op, Type: rowfn.Condition}
		for _, a := range n.Args {
			out.Args = append(out.Args, naturally(a, want))
		}
		return out
	}
	switch n.Op {
	case rowfn.OpNot:
		return naturally(n.Args[0], !want)
	case rowfn.OpAnd, rowfn.OpOr:
		if want == (n.Op == rowfn.OpAnd) {
			return all(rowfn.OpAnd)
		}
		return all(rowfn.OpOr)
	case rowfn.OpLess, rowfn.OpLessEq, rowfn.OpGreater, rowfn.OpGreaterEq, rowfn.OpEq, rowfn.OpNe:
		if !want {
			return rowfn.And(rowfn.Not(n), known(n))
		}
	case rowfn.OpColumn:
		if !want {
			return rowfn.And(rowfn.Not(n), rowfn.Not(rowfn.IsNull(n)))
		}
	default:
		if !want {
			return rowfn.Not(n)
		}
	}
	return n
}

// decimals are literals whose arithmetic is done in decimals, and of integers in integers.
func decimals(n *rowfn.Node) *rowfn.Node {
	if len(n.Args) != 2 || n.Args[0].Op != rowfn.OpNumber || n.Args[1].Op != rowfn.OpNumber || n.Type != rowfn.Number {
		return n
	}
	exact := func(n *rowfn.Node) *big.Rat {
		r, _ := new(big.Rat).SetString(strconv.FormatFloat(n.Number, 'g', -1, 64))
		return r
	}
	a, b, out := exact(n.Args[0]), exact(n.Args[1]), new(big.Rat)
	switch {
	case n.Op == rowfn.OpAdd:
		out.Add(a, b)
	case n.Op == rowfn.OpSub:
		out.Sub(a, b)
	case n.Op == rowfn.OpMul:
		out.Mul(a, b)
	case n.Op == rowfn.OpDiv && b.Sign() != 0 && a.IsInt() && b.IsInt():
		out.SetInt(new(big.Int).Quo(a.Num(), b.Num()))
	default:
		return n
	}
	x, _ := out.Float64()
	if math.IsInf(x, 0) {
		return n
	}
	return rowfn.Const(x)
}

// greatest are smallest and largest values that pass over nulls.
func greatest(n *rowfn.Node) *rowfn.Node {
	if n.Op == rowfn.OpClamp {
		low := greatest(&rowfn.Node{Op: rowfn.OpMax, Type: rowfn.Number, Args: n.Args[:2]})
		return greatest(&rowfn.Node{Op: rowfn.OpMin, Type: rowfn.Number, Args: []*rowfn.Node{low, n.Args[2]}})
	}
	if n.Op != rowfn.OpMin && n.Op != rowfn.OpMax {
		return n
	}
	return rowfn.If(rowfn.IsNull(n.Args[0]), n.Args[1], rowfn.If(rowfn.IsNull(n.Args[1]), n.Args[0], n))
}

// byRow sums rows' own values, which a rule rounds, where units are rows.
func byRow(sum func(values []float64, f rowfn.Function) int64) *wrong {
	return &wrong{sums: func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
		sums, err := p.Part.Moments(ctx, batch, from, to)
		if err != nil || p.grouped || from == to {
			return sums, err
		}
		block, err := p.rows(ctx, from, to)
		if err != nil {
			return sums, err
		}
		for i, f := range batch.Functions {
			if f.PerUnit == rowfn.UnitAny || f.Value == nil || f.Value.Type != rowfn.Number {
				continue
			}
			values, err := kernel.Evaluate(block.Rows, f.Value)
			if err != nil {
				return sums, err
			}
			where := kernel.Values{}
			if f.Where != nil {
				if where, err = kernel.Evaluate(block.Rows, f.Where); err != nil {
					return sums, err
				}
			}
			var within []float64
			for row, x := range values.Numbers {
				if x != x {
					x = f.Null
				}
				if f.Where == nil || where.Conditions[row] == 1 {
					within = append(within, (min(max(x, f.Lo), f.Hi)-f.Lo)*(float64(rowfn.One)/(f.Hi-f.Lo)))
				}
			}
			sums.Values[i] = sum(within, f)
		}
		return sums, nil
	}}
}

// again sums with other rows or units than the part's.
func again(change func(sources.Block) sources.Block) *wrong {
	return &wrong{sums: func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
		if err := p.refused(ctx, batch, from, to); err != nil || from == to {
			return rowfn.Sums{Values: make([]int64, len(batch.Functions)), Products: make([]rowfn.Wide, len(batch.Products))}, err
		}
		block, err := p.rows(ctx, from, to)
		if err != nil {
			return rowfn.Sums{}, err
		}
		block = change(block)
		e, err := engine.NewTable(block.Rows, block.Offsets, p.cap)
		if err != nil {
			return rowfn.Sums{}, err
		}
		return e.Moments(ctx, batch, 0, e.Units())
	}}
}

// TestFaultsAreNoticed is the test of the suite: each of these faults of a source is noticed by the tests that are named, and the source without it by none.
func TestFaultsAreNoticed(t *testing.T) {
	requests := atomic.Int64{}
	faults := map[string]struct {
		source *wrong
		change func(m *Memory, o *Options)
		by     []string
	}{
		"none": {source: &wrong{}},
		"half of the rows: a shard is missing": {by: []string{"sums_directed/rows", "sums_directed/units", "sums_of_rows", "sums_of_units"}, source: &wrong{
			sums: func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
				if err := p.refused(ctx, batch, from, to); err != nil {
					return rowfn.Sums{}, err
				}
				return p.Part.Moments(ctx, batch, from, (from+to)/2)
			}}},
		"a row is another": {by: []string{"sums_of_rows", "sums_of_units"}, source: again(func(b sources.Block) sources.Block {
			var columns []dataset.Column
			for i := range b.Rows.Columns() {
				c := *b.Rows.Column(i)
				if c.Kind == dataset.Number {
					c.Numbers = slices.Clone(c.Numbers)
					c.Numbers[len(c.Numbers)/2] = -7
				}
				columns = append(columns, c)
			}
			b.Rows = table(columns...)
			return b
		})},
		"a retry that doubles": {by: []string{"sums_directed/rows", "sums_directed/units", "sums_of_rows", "sums_of_units"}, source: &wrong{
			sums: func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
				sums, err := p.Part.Moments(ctx, batch, from, to)
				if err == nil && requests.Add(1)%2 == 0 {
					for i := range sums.Values {
						sums.Values[i] *= 2
					}
					for i := range sums.Products {
						sums.Products[i] = sums.Products[i].Plus(sums.Products[i])
					}
				}
				return sums, err
			}}},
		"units split over shards": {by: []string{"sums_directed/units", "sums_of_units"}, source: again(func(b sources.Block) sources.Block {
			split := []uint32{0}
			for i := range b.Offsets[1:] {
				if middle := (b.Offsets[i] + b.Offsets[i+1] + 1) / 2; middle < b.Offsets[i+1] {
					split = append(split, middle)
				}
				split = append(split, b.Offsets[i+1])
			}
			b.Offsets = split
			return b
		})},
		"a slice off by one": {by: []string{"sums_directed/rows", "sums_directed/units", "sums_of_rows", "sums_of_units"}, source: &wrong{
			sums: func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
				if err := p.refused(ctx, batch, from, to); err != nil || from == 0 {
					return p.Part.Moments(ctx, batch, from, to)
				}
				return p.Part.Moments(ctx, batch, from-1, to)
			}}},
		"products of other functions": {by: []string{"sums_directed/rows", "sums_directed/units", "sums_of_rows", "sums_of_units"}, source: &wrong{
			sums: func(ctx context.Context, p *wrongPart, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
				squares := rowfn.Batch{Functions: batch.Functions}
				for _, product := range batch.Products {
					squares.Products = append(squares.Products, rowfn.Product{A: product.A, B: product.A})
				}
				return p.Part.Moments(ctx, squares, from, to)
			}}},
		"a float average": {by: []string{"sums_directed/rows", "sums_of_rows"}, source: byRow(func(values []float64, _ rowfn.Function) int64 {
			return int64(math.Round(total(values, func(x float64) float64 { return x })))
		})},
		"round to even":      {by: []string{"sums_directed/rows"}, source: byRow(func(values []float64, _ rowfn.Function) int64 { return int64(total(values, math.RoundToEven)) })},
		"rounding downwards": {by: []string{"sums_directed/rows", "sums_of_rows"}, source: byRow(func(values []float64, _ rowfn.Function) int64 { return int64(total(values, math.Floor)) })},
		"natural null rules": {by: []string{"sums_directed/rows", "sums_directed/units", "sums_of_rows", "sums_of_units"}, source: nodes(func(n *rowfn.Node) *rowfn.Node {
			if n.Op == rowfn.OpNot {
				return naturally(n, true)
			}
			return n
		})},
		"plain literals":     {by: []string{"sums_directed/rows", "sums_directed/units"}, source: nodes(decimals)},
		"least and greatest": {by: []string{"sums_directed/rows", "sums_directed/units", "sums_of_rows", "sums_of_units"}, source: nodes(greatest)},
		"texts without case": {by: []string{"sums_directed/rows", "sums_directed/units"}, source: nodes(func(n *rowfn.Node) *rowfn.Node {
			if n.Op == rowfn.OpEq && n.Args[1].Op == rowfn.OpText && n.Args[1].Text == "a" {
				return rowfn.In(n.Args[0], n.Args[1], rowfn.TextConst("A"))
			}
			return n
		})},
		"days of the week from Monday": {by: []string{"sums_directed/rows", "sums_directed/units"}, source: nodes(func(n *rowfn.Node) *rowfn.Node {
			if n.Op == rowfn.OpDayOfWeek {
				return rowfn.Sub(n, rowfn.Const(1))
			}
			return n
		})},
		"not made clean": {by: []string{"division/rows", "division/units", "parts"}, source: &wrong{}, change: func(m *Memory, o *Options) {
			o.Load = func(_ testing.TB, name string, rows Rows) string {
				kept := slices.Clone(rows)
				for i, c := range kept {
					kept[i].Floats = slices.Clone(c.Floats)
					for row, x := range c.Floats {
						if math.IsInf(x, 0) {
							kept[i].Floats[row] = math.Copysign(math.MaxFloat64, x)
						}
					}
				}
				m.Put(name, kept)
				return name
			}
		}},
		"counts and checksums are not compared": {by: []string{"parts_that_are_not_as_they_were", "faults/half of the rows are missing", "faults/a cell is another"}, source: &wrong{}, change: func(m *Memory, _ *Options) {
			m.trusts = true
		}},
		"the table is not looked at again": {by: []string{"division_of_a_changed_table"}, source: &wrong{}, change: func(m *Memory, _ *Options) { m.trusts = true }},
		"numbers that are not as placed": {by: []string{"division/rows", "division/units", "sums_directed/rows"}, source: &wrong{divide: func(_ sources.Units, places []sources.Place) {
			for i := range places[1:] {
				if places[i+1].Part == places[0].Part {
					places[0], places[i+1] = places[i+1], places[0]
					return
				}
			}
		}}},
		"units on the other side": {by: []string{"division/rows", "division/units"}, source: &wrong{divide: func(_ sources.Units, places []sources.Place) {
			for i := range places {
				if places[i].Part != places[0].Part {
					places[0], places[i] = places[i], places[0]
					return
				}
			}
		}}},
		"a block of rows that is cut": {by: []string{"division/rows", "division/units"}, source: &wrong{read: func(b sources.Block) sources.Block {
			if b.Offsets == nil && b.Rows.Rows() > 1 {
				all := make([]int, b.Rows.Rows()-1)
				for i := range all {
					all[i] = i
				}
				b.Rows = taken(b.Rows, all)
			} else if len(b.Offsets) > 2 {
				b.Offsets = b.Offsets[:len(b.Offsets)-1]
			}
			return b
		}}},
		"sums that fail": {by: []string{"sums_directed/rows", "sums_of_rows", "sums_at_once"}, source: &wrong{
			sums: func(context.Context, *wrongPart, rowfn.Batch, int64, int64) (rowfn.Sums, error) {
				return rowfn.Sums{}, errors.New("no")
			}}},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			m := &Memory{}
			o := inMemory(m)
			o.Programs, o.Rows = 80, 200
			o.Open = func(testing.TB) sources.Source { fault.source.Source = m; return fault.source }
			if fault.change != nil {
				fault.change(m, &o)
			}
			var only []string
			for _, by := range fault.by {
				test, _, _ := strings.Cut(by, "/")
				only = append(only, test)
			}
			failed := Noticed(t, o, only...)
			for _, by := range fault.by {
				if failed[by] == "" {
					t.Errorf("not noticed by %s, but by %v", by, failed)
				}
			}
			if len(fault.by) == 0 && len(failed) > 0 {
				t.Errorf("a source without a fault fails: %v", failed)
			}
		})
	}
}

func total(values []float64, round func(float64) float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += round(x)
	}
	return sum
}

// taken are some rows of a table.
func taken(t *dataset.Table, rows []int) *dataset.Table {
	var columns []dataset.Column
	for i := range t.Columns() {
		c := *t.Column(i)
		c.Numbers, c.Bools, c.Codes = pick(c.Numbers, rows), pick(c.Bools, rows), pick(c.Codes, rows)
		columns = append(columns, c)
	}
	return table(columns...)
}
