package sql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

const (
	// maxAggregates is the most sums of a statement, checks left out: a hundred questions, of which some are means of those rows in which a condition holds and take two. Memory grows with
	// them, by 8 bytes a sum and a row of a block, 64 MB for each thread of ClickHouse; with 1,000 it needs minutes, and gigabytes.
	maxAggregates = 128
	// maxText is the longest statement in bytes. ClickHouse takes 256 KiB (max_query_size) and Trino 1,000,000 characters (query.max-length) if nothing else is said.
	maxText = 200_000
	// maxValues is the most operations of one row function that is pushed.
	maxValues = 5000
)

// Part is what statements must know of a part.
type Part struct {
	Table   string         // as it stands after FROM
	Local   string         // on several machines: the table of a machine's own rows, in which it has all of each unit that it has; Table is of all machines
	Each    string         // on several machines: a table with one row of each, whose column dummy is 0
	Schema  dataset.Schema // of its columns, which are called c0, c1 and so on in the table
	Units   int64
	Grouped bool    // units may have several rows
	Cap     int64   // of rowfn.UnitShare, from 1
	Checks  *Checks // what was registered; nil compares nothing but the number of units
}

// Planned is a batch as statements, and what is left of it for the kernels.
type Planned struct {
	Statements []Statement
	// Rest are the row functions that no engine sums, with the products that they are in. Its sums over the same units are put into place by [Planned.Place].
	Rest rowfn.Batch
	// Why says of each function of Rest why it is there.
	Why []string

	functions, products []int // of the rest, in the batch
	batch               rowfn.Batch
}

// Sums are the sums of the batch, all 0: what [Statement.Read] and [Planned.Place] fill.
func (p *Planned) Sums() rowfn.Sums {
	return rowfn.Sums{Values: make([]int64, len(p.batch.Functions)), Products: make([]rowfn.Wide, len(p.batch.Products))}
}

// Place puts the sums of the rest into those of the batch.
func (p *Planned) Place(rest rowfn.Sums, into *rowfn.Sums) {
	for i, at := range p.functions {
		into.Values[at] = rest.Values[i]
	}
	for i, at := range p.products {
		into.Products[at] = rest.Products[i]
	}
}

// Plan cuts a batch over the units from..to-1 into statements, and leaves the rest for the kernels. It depends on nothing but its arguments. An error says that a
// function does not fit the schema, as the kernels would.
func Plan(d *Dialect, part Part, batch rowfn.Batch, from, to int64) (*Planned, error) {
	if from < 0 || to < from || to > part.Units {
		return nil, fmt.Errorf("sql: units %d to %d of %d", from, to, part.Units)
	}
	p := &Planned{batch: batch}
	left := make([]string, len(batch.Functions)) // why it is not pushed
	known := map[rowfn.Function]string{}
	for i := range batch.Functions {
		why, ok := known[batch.Functions[i]]
		if !ok {
			var err error
			if why, err = Pushable(d, part.Schema, batch.Functions[i]); err != nil {
				return nil, fmt.Errorf("%w (row function %d)", err, i)
			}
			known[batch.Functions[i]] = why
		}
		left[i] = why
	}
	for i, pair := range batch.Products {
		if pair.A < 0 || pair.B < 0 || pair.A >= len(batch.Functions) || pair.B >= len(batch.Functions) {
			return nil, fmt.Errorf("sql: product %d is of the functions %d and %d of %d", i, pair.A, pair.B, len(batch.Functions))
		}
	}
	p.leave(left)
	if from == to {
		return p, nil
	}
	// A product stands with its functions, so that it adds little to what they need.
	var items []item
	rest := make([]bool, len(batch.Functions))
	for _, at := range p.functions {
		rest[at] = true
	}
	products := make([][]int, len(batch.Functions))
	for i, pair := range batch.Products {
		if left[pair.A] == "" && left[pair.B] == "" {
			products[max(pair.A, pair.B)] = append(products[max(pair.A, pair.B)], i)
		}
	}
	for i := range batch.Functions {
		if !rest[i] {
			items = append(items, item{function: i, product: -1})
		}
		for _, at := range products[i] {
			items = append(items, item{function: -1, product: at})
		}
	}
	return p, p.cut(d, &part, items, from, to)
}

// leave makes the rest.
func (p *Planned) leave(left []string) {
	place := map[int]int{}
	put := func(at int, why string) int {
		if _, ok := place[at]; !ok {
			place[at] = len(p.functions)
			p.functions = append(p.functions, at)
			p.Rest.Functions = append(p.Rest.Functions, p.batch.Functions[at])
			p.Why = append(p.Why, why)
		}
		return place[at]
	}
	for i, why := range left {
		if why != "" {
			put(i, why)
		}
	}
	for i, pair := range p.batch.Products {
		if why := left[pair.A] + left[pair.B]; why != "" {
			why = "it is multiplied with one of which this holds: " + why
			p.Rest.Products = append(p.Rest.Products, rowfn.Product{A: put(pair.A, why), B: put(pair.B, why)})
			p.products = append(p.products, i)
		}
	}
}

// item is a function or a product of a batch; the other one is -1.
type item struct{ function, product int }

// cut makes statements of items: as many of them in one as its limits take.
func (p *Planned) cut(d *Dialect, part *Part, items []item, from, to int64) error {
	for len(items) > 0 {
		n := min(len(items), maxAggregates)
		for {
			s, fits, err := d.statement(part, p.batch, items[:n], from, to)
			if err != nil {
				return err
			}
			if fits || n == 1 {
				p.Statements = append(p.Statements, s)
				break
			}
			n = max(1, n*3/4)
		}
		items = items[n:]
	}
	return nil
}

// Statement is a statement of SQL that reads a part and answers in one row of integers.
type Statement struct {
	Text string
	// Width is the number of integers of a row.
	Width int
	// Columns are those of the schema that it reads: their checksums are in the row.
	Columns []int

	from, to   int64 // units that are summed
	low, high  int64 // units that are read: whole blocks of the checks
	grouped    bool
	perCheck   int // integers of a checksum
	sums       int // how many sums
	functions  []target
	products   []wideTarget
	aggregates int
}

// target is where sums go: the function, and how often each of them counts.
type target struct {
	function int
	terms    []term
}

// term is a sum of the row times a factor.
type term struct {
	sum    int // or countOfUnits
	factor int64
}

// countOfUnits stands for a sum of ones.
const countOfUnits = -1

// wideTarget is a product: high·2^32 + low, or a sum of ones times two factors.
type wideTarget struct {
	product   int
	high, low int // high is noSum where low is a sum of ones
	a, b      int64
}

const noSum = -2

// builder gathers a statement.
type builder struct {
	*lowering
	d      *Dialect
	part   *Part
	place  map[id]int // of sums, by what is summed
	sums   []id
	s      *Statement
	flag   id              // in the units that are summed; opTrue where all that are read are
	inner  map[innerKey]id // grouped: columns of the rows' sums by unit
	groups []group
	forms  map[int]form
	values map[int]id // by function: the value of a row or unit, as an integer
}

// Check is the statement that reads all columns of whole blocks around some units, and sums nothing: what compares a part with what was registered, before rows of it are read.
func Check(d *Dialect, part Part, from, to int64) Statement {
	s := Statement{from: from, to: to, grouped: part.Grouped}
	s.low, s.high = part.Checks.around(from, to, part.Units)
	for i := range part.Schema.Fields {
		s.Columns = append(s.Columns, i)
	}
	d.builder(&part, &s).write()
	return s
}

func (d *Dialect) builder(part *Part, s *Statement) *builder {
	return &builder{lowering: newLowering(newGraph(), part.Schema), d: d, part: part, place: map[id]int{}, s: s, inner: map[innerKey]id{}, forms: map[int]form{}, values: map[int]id{}}
}

func (d *Dialect) statement(part *Part, batch rowfn.Batch, items []item, from, to int64) (s Statement, fits bool, err error) {
	s = Statement{from: from, to: to, grouped: part.Grouped}
	s.low, s.high = part.Checks.around(from, to, part.Units)
	b := d.builder(part, &s)
	b.flag = b.truth(true)
	if s.low != from || s.high != to {
		unit := b.column("_unit", integers)
		before := b.add(value{op: opIntegerLess, class: bits, args: args(unit, b.integer(from))})
		b.flag = b.logic(opAnd, b.not(before), b.add(value{op: opIntegerLess, class: bits, args: args(unit, b.integer(to))}))
	}
	for _, i := range items {
		if i.product < 0 {
			f, err := b.form(batch, i.function)
			if err != nil {
				return s, false, err
			}
			b.function(i.function, f)
			continue
		}
		pair := batch.Products[i.product]
		if err := b.product(batch, i.product, pair.A, pair.B); err != nil {
			return s, false, err
		}
	}
	b.write()
	s.aggregates = len(b.sums) + len(b.groups)
	return s, s.aggregates <= maxAggregates && len(s.Text) <= maxText, nil
}

// form lowers a function once. Rows of units that are read but not summed are outside its where.
func (b *builder) form(batch rowfn.Batch, function int) (form, error) {
	if f, ok := b.forms[function]; ok {
		return f, nil
	}
	f, err := b.lowering.function(&batch.Functions[function])
	if err != nil {
		return f, err
	}
	if b.at(b.flag).op != opTrue {
		f.where = b.logic(opAnd, f.where, b.flag)
		if f.mask != none {
			f.mask = b.logic(opAnd, f.mask, b.flag)
		} else {
			f.number = b.masked(f.number, b.flag)
		}
	}
	b.forms[function] = f
	return f, nil
}

// total is the place of the sum of an integer.
func (b *builder) total(of id) int {
	if v := b.at(of); v.op == opInteger && v.k == 1 {
		return countOfUnits
	}
	at, ok := b.place[of]
	if !ok {
		at = len(b.sums)
		b.place[of], b.sums = at, append(b.sums, of)
	}
	return at
}

func (b *builder) function(at int, f form) {
	t := target{function: at}
	add := func(of id, factor int64) {
		if v := b.at(of); factor != 0 && (v.op != opInteger || v.k != 0) {
			t.terms = append(t.terms, term{b.total(of), factor})
		}
	}
	switch {
	case b.part.Grouped && f.perUnit == rowfn.UnitAny:
		add(b.anyOf(f), rowfn.One)
	case b.part.Grouped:
		add(b.unitValue(at, f), 1)
	case f.number != none:
		add(f.number, 1)
	default:
		add(b.bit(f.mask), f.on-f.off)
		add(b.bit(f.where), f.off)
	}
	b.s.functions = append(b.s.functions, t)
}

// product adds the sum of the products of two functions' values.
func (b *builder) product(batch rowfn.Batch, at, x, y int) error {
	var ones, values [2]id
	var factors [2]int64
	for i, function := range [2]int{x, y} {
		f, err := b.form(batch, function)
		if err != nil {
			return err
		}
		ones[i], factors[i] = none, 1
		switch {
		case b.part.Grouped && f.perUnit == rowfn.UnitAny:
			ones[i], factors[i] = b.anyOf(f), rowfn.One
		case b.part.Grouped:
			values[i] = b.unitValue(function, f)
		case f.mask != none && f.off == 0:
			ones[i], factors[i] = b.bit(f.mask), f.on
		default:
			values[i] = b.row(f)
		}
	}
	w := wideTarget{product: at, high: noSum, a: factors[0], b: factors[1]}
	switch {
	case ones[0] != none && ones[1] != none:
		w.low = b.total(b.bothOnes(ones[0], ones[1]))
	case ones[0] != none || ones[1] != none:
		one, v := ones[0], values[1]
		if one == none {
			one, v = ones[1], values[0]
		}
		w.low = b.total(b.whole(opTimes, min(v, one), max(v, one)))
	default:
		p := b.whole(opTimes, min(values[0], values[1]), max(values[0], values[1]))
		w.high = b.total(b.add(value{op: opHigh, class: integers, args: args(p)}))
		w.low = b.total(b.add(value{op: opLow, class: integers, args: args(p)}))
	}
	b.s.products = append(b.s.products, w)
	return nil
}

// bothOnes is the product of two integers that are 0 or 1.
func (b *builder) bothOnes(x, y id) id {
	if x == y {
		return x
	}
	return b.whole(opTimes, min(x, y), max(x, y))
}

// write prints the statement.
func (b *builder) write() {
	s, d := b.s, b.d
	if s.Columns == nil {
		s.Columns = b.columns()
	}
	where := ""
	if s.low > 0 || s.high < b.part.Units {
		where = fmt.Sprintf("_unit >= %d AND _unit < %d", s.low, s.high)
	}
	checksum := d.checksum(b.part.Checks)
	of := checksum.rows
	if b.part.Grouped {
		of = checksum.unit
	}
	var checks []string
	for _, c := range s.Columns {
		checks = append(checks, d.fill(of[classOf(b.part.Schema.Fields[c].Kind)], columnName(c)))
	}
	keep := []string{"_unit"}
	for _, c := range s.Columns {
		keep = append(keep, columnName(c))
	}
	if b.part.Grouped {
		b.writeGrouped(checks, checksum.units, keep, where)
		return
	}
	p := d.print(b.graph, b.sums)
	list := append([]string{d.fill(d.whole, "count(*)"), d.fill(d.total, "_unit")}, checks...)
	for _, of := range b.sums {
		list = append(list, d.fill(d.total, p.text[of]))
	}
	s.perCheck, s.sums, s.Width = 1, len(b.sums), len(list)
	s.Text = b.part.selects(list, p.from(b.part.local(), b.sums, keep, where))
}

// local is the table that a statement's subselects are of.
func (p *Part) local() string {
	if p.Each != "" {
		return p.Local
	}
	return p.Table
}

// selects is a statement of integers. Of several machines each answers for its own rows: the right side of a JOIN that is not GLOBAL runs on each of those that its left side is of.
// In a plain subselect of a table of all machines the rows would travel, and be summed by one.
func (p *Part) selects(list []string, from string) string {
	if p.Each == "" {
		return "SELECT " + strings.Join(list, ", ") + " FROM " + from
	}
	names, own := make([]string, len(list)), make([]string, len(list))
	for i, of := range list {
		names[i] = fmt.Sprintf("x%d", i)
		own[i] = of + " AS " + names[i]
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM " + p.Each + " ALL INNER JOIN (SELECT toUInt8(0) AS dummy, " + strings.Join(own, ", ") + " FROM " + from + ") AS sums USING dummy"
}

// columns are the columns of the schema that the statement reads, in order.
func (b *builder) columns() (list []int) {
	for i := range b.part.Schema.Fields {
		name := columnName(i)
		if slices.ContainsFunc(b.lowering.graph.values, func(v value) bool { return v.op == opColumn && v.text == name }) {
			list = append(list, i)
		}
	}
	return list
}

func classOf(k dataset.Kind) class {
	switch k {
	case dataset.Text:
		return texts
	case dataset.Bool:
		return integers
	}
	return numbers
}

// fill writes a template of one argument.
func (d *Dialect) fill(t template, a string) string {
	var b strings.Builder
	for _, piece := range t {
		if piece.place == "" {
			b.WriteString(piece.text)
		} else {
			b.WriteString(a)
		}
	}
	return b.String()
}
