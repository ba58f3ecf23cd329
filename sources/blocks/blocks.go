// Package blocks sums row functions over blocks of rows that come one after the other, with the kernels of the server's own tables: what a source cannot sum itself. The
// sums are those of an [engine.Table] over all rows, bit by bit, because no unit crosses a block and integers are added.
//
// Memory is that of a block, of the programs for it ([engine.EstimateBatch]) and, with [Ahead], of the blocks that wait. Each block is compiled for itself, for it has
// dictionaries of its own; at [Rows] rows that is a small part of the work.
package blocks

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// Rows is about how many rows a block should have. Compiling a row function takes about as long as evaluating it on some thousand rows; and a block of a hundred columns
// stays below 50 MB.
const Rows = 1 << 16

// Reader yields whole units in the order of their numbers, as [sources.Part] does.
type Reader interface {
	Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error
}

// Numbered is a reader whose rows have numbers, from 0 on: the values that come with a question, one for each row, are those of its rows.
type Numbered interface {
	Reader
	Rows() int64
	// FirstRow is the number of a unit's first row.
	FirstRow(ctx context.Context, unit int64) (int64, error)
}

// Sum reads the columns that a batch needs of the units from..to-1 and returns its sums. rowsCap is the Cap of rowfn.UnitShare, from 1. Blocks must continue each other from
// the unit from up to to; where they do not, rows are missing or come twice, and the error is [sources.Changed].
func Sum(ctx context.Context, r Reader, schema dataset.Schema, batch rowfn.Batch, rowsCap, from, to int64) (rowfn.Sums, error) {
	sums := NewAdder(batch, rowsCap, from)
	if from == to {
		return sums.Sums(to)
	}
	columns, given, err := columnsOf(schema, batch)
	if err != nil {
		return rowfn.Sums{}, err
	}
	if len(given) > 0 {
		rows, ok := r.(Numbered)
		if !ok {
			return rowfn.Sums{}, refusedRows()
		}
		if err := sums.number(ctx, rows, given); err != nil {
			return rowfn.Sums{}, err
		}
	}
	if err := r.Read(ctx, columns, from, to, func(b sources.Block) error { return sums.Add(ctx, b) }); err != nil {
		return rowfn.Sums{}, err
	}
	return sums.Sums(to)
}

// Adder adds the sums of blocks. It is for one goroutine.
type Adder struct {
	batch rowfn.Batch
	cap   int64
	next  int64 // the unit with which the next block must begin
	sums  rowfn.Sums

	numbered bool // values come with the question, one for each row
	row      int  // then the number of the next block's first row
}

// NewAdder returns an adder of no block yet, of which the first begins with the unit from.
func NewAdder(batch rowfn.Batch, rowsCap, from int64) *Adder {
	return &Adder{batch: batch, cap: rowsCap, next: from,
		sums: rowfn.Sums{Values: make([]int64, len(batch.Functions)), Products: make([]rowfn.Wide, len(batch.Products))}}
}

// number has each block take its rows' share of the values that came, of which there must be one for each row.
func (a *Adder) number(ctx context.Context, r Numbered, given []int) error {
	for _, n := range given {
		if int64(n) != r.Rows() {
			return fmt.Errorf("blocks: %d values of %d rows", n, r.Rows())
		}
	}
	first, err := r.FirstRow(ctx, a.next)
	a.numbered, a.row = true, int(first)
	return err
}

// Add adds a block, on as many processors as its rows are worth. When it returns nothing refers to the block any more. An error is ctx's, or says that the block is none, that
// it does not continue the last one ([sources.Changed]), or what [engine.Table.Moments] says.
func (a *Adder) Add(ctx context.Context, b sources.Block) error {
	if b.First != a.next {
		return gap(a.next, b.First)
	}
	if b.Rows.Rows() == 0 {
		return nil
	}
	t, err := engine.NewTable(b.Rows, b.Offsets, a.cap)
	if err != nil {
		return fmt.Errorf("blocks: %w", err)
	}
	batch := a.batch
	if a.numbered {
		batch = batch.Rows(a.row, a.row+b.Rows.Rows())
	}
	found, err := t.Moments(ctx, batch, 0, t.Units())
	if err != nil {
		return err
	}
	a.row += b.Rows.Rows()
	for i, sum := range found.Values {
		a.sums.Values[i] += sum
	}
	for i, sum := range found.Products {
		a.sums.Products[i] = a.sums.Products[i].Plus(sum)
	}
	a.next += t.Units()
	return nil
}

// Sums returns the sums once all units up to to were added; where they were not, the error is [sources.Changed].
func (a *Adder) Sums(to int64) (rowfn.Sums, error) {
	if a.next != to {
		return rowfn.Sums{}, gap(to, a.next)
	}
	return a.sums, nil
}

func gap(want, got int64) error {
	return &sources.Error{Kind: sources.Changed,
		Detail: "the rows of this holdout are not those that were registered: some are missing, or come twice; restore them, or register the table again",
		Err:    fmt.Errorf("blocks: unit %d where %d was to come", got, want)}
}

// Columns are the columns that a batch reads, in the order of the schema. It is never empty, for rows must be counted where no column is read: then it is the narrowest one. An
// error says that a row function does not fit the schema, or that values come with the question, one for each row, which have no meaning where rows have no numbers.
func Columns(schema dataset.Schema, batch rowfn.Batch) ([]string, error) {
	names, given, err := columnsOf(schema, batch)
	if err == nil && len(given) > 0 {
		return nil, refusedRows()
	}
	return names, err
}

// NumberedColumns is Columns for a reader that is [Numbered].
func NumberedColumns(schema dataset.Schema, batch rowfn.Batch) ([]string, error) {
	names, _, err := columnsOf(schema, batch)
	return names, err
}

func refusedRows() error {
	return &sources.Error{Kind: sources.Refused, Detail: "values that come with the question, one for each row, need a table of the server's own: rows of a source have no numbers that are known"}
}

// columnsOf are the columns, and how many values came with each list of them.
func columnsOf(schema dataset.Schema, batch rowfn.Batch) (names []string, given []int, err error) {
	w := walk{seen: map[*rowfn.Node]bool{}, columns: map[string]bool{}}
	for i := range batch.Functions {
		w.node(batch.Functions[i].Value)
		w.node(batch.Functions[i].Where)
	}
	for _, f := range schema.Fields {
		if w.columns[f.Name] {
			names = append(names, f.Name)
			delete(w.columns, f.Name)
		}
	}
	for name := range w.columns {
		return nil, nil, fmt.Errorf("blocks: no column %q", name)
	}
	if len(names) == 0 && len(schema.Fields) > 0 {
		narrowest := slices.MinFunc(schema.Fields, func(a, b dataset.Field) int { return width(a.Kind) - width(b.Kind) })
		names = []string{narrowest.Name}
	}
	return names, w.given, nil
}

func width(k dataset.Kind) int {
	switch k {
	case dataset.Bool:
		return 1
	case dataset.Text:
		return 4
	}
	return 8
}

// walk finds the columns of expressions. Nodes that are shared are looked at once.
type walk struct {
	seen    map[*rowfn.Node]bool
	columns map[string]bool
	given   []int // values that come with the question, of each list of them
}

func (w *walk) node(n *rowfn.Node) {
	if n == nil || w.seen[n] {
		return
	}
	w.seen[n] = true
	switch n.Op {
	case rowfn.OpColumn:
		w.columns[n.Text] = true
	case rowfn.OpRow:
		w.given = append(w.given, len(n.Values))
	}
	for _, a := range n.Args {
		w.node(a)
	}
}
