package sql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Statement is a SELECT that answers part of a batch with one row of integers.
type Statement struct {
	SQL   string
	Cells int // of the row
	parts []part
}

// part is what some cells of the row are.
type part struct {
	function, product int // the other is -1
	low, high         int // cells; of a function low alone
}

// Read adds what a statement's row says to the sums of the batch, and returns how many units and rows it is of. The row must be as printed by
// the engine in decimal. The sums stay as they are where it is none.
func (s *Statement) Read(row []string, sums rowfn.Sums) (units, rows int64, err error) {
	if len(row) != s.Cells {
		return 0, 0, fmt.Errorf("sql: %d cells came, want %d", len(row), s.Cells)
	}
	numbers := make([]int64, len(row))
	for i, cell := range row {
		if numbers[i], err = strconv.ParseInt(cell, 10, 64); err != nil || numbers[i] < 0 {
			return 0, 0, fmt.Errorf("sql: cell %d is no count", i)
		}
	}
	for _, p := range s.parts {
		if p.product < 0 {
			sums.Values[p.function] = numbers[p.low]
			continue
		}
		low, high := uint64(numbers[p.low]), uint64(numbers[p.high])
		sums.Products[p.product] = rowfn.Wide{Hi: high >> 32, Lo: high << 32}.Plus(rowfn.Wide{Lo: low})
	}
	return numbers[0], numbers[1], nil
}

// Print makes the statements of a batch about the units from..to-1, from < to, of a table that passed [Table.Check]. Errors are a *[Refusal],
// with what has to be asked otherwise, or say what is wrong with the batch.
func Print(d *Dialect, t *Table, b rowfn.Batch, from, to int64) ([]Statement, error) {
	p, err := newPrinter(d, t, b, from, to)
	if err != nil {
		return nil, err
	}
	return p.statements(p.items())
}

// PrintUnits makes statements that select the value of each unit, and no sum: the unit's number, then the values of some functions. The second result says
// which, by statement. It is for whoever compares engines.
func PrintUnits(d *Dialect, t *Table, b rowfn.Batch, from, to int64) (statements []string, functions [][]int, err error) {
	p, err := newPrinter(d, t, rowfn.Batch{Functions: b.Functions}, from, to)
	if err != nil {
		return nil, nil, err
	}
	p.units = true
	all, err := p.statements(p.items())
	for _, s := range all {
		var of []int
		for _, part := range s.parts {
			of = append(of, part.function)
		}
		statements, functions = append(statements, s.SQL), append(functions, of)
	}
	return statements, functions, err
}

type printer struct {
	d     *Dialect
	table *Table
	batch rowfn.Batch
	rows  string // FROM …, with the range
	units bool   // select units' values
}

func newPrinter(d *Dialect, t *Table, b rowfn.Batch, from, to int64) (*printer, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	if from < 0 || to <= from {
		return nil, fmt.Errorf("sql: units %d to %d", from, to)
	}
	p := &printer{d: d, table: t, batch: b, rows: fmt.Sprintf("%s WHERE %s >= %d AND %[2]s < %[4]d", t.From, t.numbered(), from, to)}
	refusal := &Refusal{Dialect: d.Name, Of: len(b.Functions)}
	l := newLowering(d, t)
	for i := range b.Functions {
		if reason := l.try(&b.Functions[i]); reason != "" {
			refusal.Functions = append(refusal.Functions, Refused{i, reason})
		}
	}
	if len(refusal.Functions) > 0 {
		return nil, refusal
	}
	return p, nil
}

// try lowers a function, and says why it is refused.
func (l *lowering) try(f *rowfn.Function) (reason string) {
	defer func() {
		if p := recover(); p != nil {
			r, ok := p.(refused)
			if !ok {
				panic(p)
			}
			reason = string(r)
		}
	}()
	l.row(f)
	l.where(f)
	return ""
}

// item is a function or a product; the other is -1.
type item struct{ function, product int }

func (p *printer) items() []item {
	var items []item
	for i := range p.batch.Functions {
		items = append(items, item{i, -1})
	}
	for i := range p.batch.Products {
		items = append(items, item{-1, i})
	}
	return items
}

// statements print items, in as many statements as the limits want.
func (p *printer) statements(items []item) ([]Statement, error) {
	if len(items) == 0 && len(p.batch.Functions) > 0 {
		return nil, nil
	}
	s, fits := p.statement(items)
	if fits {
		return []Statement{s}, nil
	}
	if len(items) < 2 {
		refusal := &Refusal{Dialect: p.d.Name, Of: len(p.batch.Functions)}
		of := []int{items[0].function}
		if at := items[0].product; at >= 0 {
			of = []int{p.batch.Products[at].A, p.batch.Products[at].B}
		}
		for _, at := range of {
			refusal.Functions = append(refusal.Functions, Refused{at, "its statement would be too long"})
		}
		return nil, refusal
	}
	half := len(items) / 2
	if len(items) > MaxAggregates {
		half = min(len(items)-1, MaxAggregates/2)
	}
	first, err := p.statements(items[:half])
	if err != nil {
		return nil, err
	}
	rest, err := p.statements(items[half:])
	return append(first, rest...), err
}

// statement prints items as one statement, if it keeps the limits.
func (p *printer) statement(items []item) (s Statement, fits bool) {
	if len(items) > MaxAggregates {
		return s, false
	}
	l := newLowering(p.d, p.table)
	values := map[int]*term{} // of units, by function
	rows := &grouped{lowering: l, outer: l, rows: p.rows}
	if p.table.Unit != "" {
		rows.outer = newLowering(p.d, p.table)
		rows.size = rows.aggregate(l.of(p.d.Count))
	}
	value := func(function int) *term {
		if values[function] == nil {
			values[function] = rows.unit(&p.batch.Functions[function])
		}
		return values[function]
	}
	o := rows.outer
	var cells []*term
	place := map[*term]int{}
	cell := func(t *term) int {
		at, ok := place[t]
		if !ok {
			at = len(cells)
			place[t], cells = at, append(cells, t)
		}
		return at
	}
	sum := func(t *term) int { return cell(o.of(p.d.Sum, t)) }
	count := o.of(p.d.Count)
	switch {
	case p.units:
		cell(o.column(p.table.numbered()))
	case p.table.Unit == "":
		cells = append(cells, count, count)
	default:
		cells = append(cells, count, o.of(p.d.Sum, rows.size))
	}
	for _, i := range items {
		switch {
		case p.units:
			s.parts = append(s.parts, part{function: i.function, product: -1})
			cells = append(cells, value(i.function))
		case i.product < 0:
			s.parts = append(s.parts, part{i.function, -1, sum(value(i.function)), -1})
		default:
			pair := p.batch.Products[i.product]
			product := o.mul(value(pair.A), value(pair.B))
			s.parts = append(s.parts, part{-1, i.product, sum(o.of(p.d.Low, product)), sum(o.of(p.d.High, product))})
		}
	}
	if len(cells)+len(rows.inner) > MaxAggregates+4 && len(items) > 1 {
		return s, false
	}
	s.Cells = len(cells)
	s.SQL, fits = rows.print(cells)
	return s, fits && len(s.SQL) <= MaxText
}

// grouped makes the values of units of those of rows. Where every row is its own unit, outer is the lowering itself, and there are no inner aggregates.
type grouped struct {
	*lowering
	outer *lowering
	rows  string
	inner []*term       // aggregates of a unit's rows, which are the columns a0, a1…
	at    map[*term]int // of inner
	size  *term         // the unit's number of rows, as a column
}

// aggregate is the column of an aggregate of the rows of each unit.
func (g *grouped) aggregate(t *term) *term {
	if g.at == nil {
		g.at = map[*term]int{}
	}
	at, ok := g.at[t]
	if !ok {
		at = len(g.inner)
		g.at[t], g.inner = at, append(g.inner, t)
	}
	return g.outer.column(fmt.Sprint("a", at))
}

// unit is a function's value of a unit.
func (g *grouped) unit(f *rowfn.Function) *term {
	l, where := g.lowering, g.where(f)
	row := l.integer(rowfn.One)
	if f.PerUnit != rowfn.UnitAny {
		row = l.row(f)
	}
	if where != nil {
		row = l.mul(row, where)
	}
	if g.table.Unit == "" {
		return row
	}
	o, held := g.outer, g.size
	if where != nil {
		held = g.aggregate(l.of(l.d.Sum, where))
	}
	if f.PerUnit == rowfn.UnitAny {
		return o.mul(o.of(o.d.IntLess, o.integer(0), held), o.integer(rowfn.One))
	}
	sum := g.aggregate(l.of(l.d.Sum, row))
	by := o.add(held, o.of(o.d.IntEqual, held, o.integer(0))) // where it is 0, the sum is, too
	if f.PerUnit == rowfn.UnitShare {
		largest := o.integer(g.table.Largest)
		by = o.of(o.d.IntPick, o.of(o.d.IntLess, g.size, largest), largest, g.size)
	}
	return o.of(o.d.IntDiv, o.add(o.mul(sum, o.integer(2)), by), o.mul(by, o.integer(2)))
}

// print is the whole statement, and whether it keeps the limit of layers.
func (g *grouped) print(cells []*term) (string, bool) {
	from, fits := g.rows, true
	if g.table.Unit != "" {
		unit := g.table.Unit
		inner, ok := g.lowering.selects(append([]*term{g.column(unit)}, g.inner...), from, "a")
		from, fits = "("+inner+" GROUP BY "+unit+")", ok
	}
	text, ok := g.outer.selects(cells, from, "")
	return text + g.d.End, fits && ok
}

// selects is a SELECT of terms. With a prefix, those after the first have a name.
func (l *lowering) selects(cells []*term, from, prefix string) (string, bool) {
	plan := newLayers(cells, !l.d.Flat)
	if l.d.Flat && plan.total > MaxText {
		plan = newLayers(cells, true)
	}
	if plan.levels > MaxLayers || plan.total > MaxText {
		return "", false
	}
	var items []string
	for i, c := range cells {
		text := plan.show(c)
		if prefix != "" && i > 0 {
			text += fmt.Sprint(" AS ", prefix, i-1)
		}
		items = append(items, text)
	}
	return "SELECT " + strings.Join(items, ",") + " FROM " + plan.from(from, cells, l.columns), true
}
