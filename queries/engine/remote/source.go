package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// Engine is a connection to an SQL engine, safe for concurrent use.
type Engine interface {
	// Dialect is how statements for it are printed.
	Dialect() *sql.Dialect
	// Integers runs a SELECT and returns its only row, of cells in decimal. It may send the statement again where no whole answer came.
	Integers(ctx context.Context, statement string, cells int) ([]string, error)
	// Checksum is a statement whose row of two cells depends on all values of some columns of the table, not on the order of rows.
	Checksum(t *sql.Table) string
	// CheckProfile asks something that no row has to do with: whether the engine is there, and gives the user settings that a holdout needs.
	CheckProfile(ctx context.Context) error
	// Block reads the named columns of the rows of the units from..to-1, in any order: the rows' numbers first.
	Block(ctx context.Context, t *sql.Table, columns []string, from, to int64) (Block, error)
}

// Block is some rows: their numbers, and columns as a dataset has them.
type Block struct {
	Rows    []int64
	Columns []dataset.Column
}

// Registered is what is known of the table since it was written.
type Registered struct {
	Table    sql.Table
	Units    int64
	Rows     int64
	Offsets  []uint32 // unit u is the rows Offsets[u] to Offsets[u+1]-1; nil where every row is a unit
	Checksum []string // what [Source.Checksum] said then; nil: not known
}

// Source sums over the units of a registered table. It is safe for concurrent use.
type Source struct {
	engine Engine
	of     Registered
}

var _ engine.MomentSource = (*Source)(nil)

// New returns the source of a registered table. It asks the engine nothing; see [Source.Verify].
func New(e Engine, of Registered) (*Source, error) {
	if err := of.Table.Check(); err != nil {
		return nil, err
	}
	units, rows := of.Rows, of.Rows
	if (of.Table.Unit == "") != (of.Offsets == nil) {
		return nil, errors.New("remote: a table has offsets and a column of units, or neither")
	}
	if of.Offsets != nil {
		if len(of.Offsets) == 0 || of.Offsets[0] != 0 || !slices.IsSorted(of.Offsets) {
			return nil, errors.New("remote: the units do not begin at the first row, or are not in order")
		}
		units, rows = int64(len(of.Offsets)-1), int64(of.Offsets[len(of.Offsets)-1])
	}
	if of.Units != units || of.Rows != rows || rows > dataset.MaxRows || units < 0 {
		return nil, fmt.Errorf("remote: %d units and %d rows are registered, the offsets say %d and %d", of.Units, of.Rows, units, rows)
	}
	return &Source{e, of}, nil
}

// Units is the number of units.
func (s *Source) Units() int64 { return s.of.Units }

// Sums implements [engine.Source].
func (s *Source) Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error) {
	sums, err := s.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments implements [engine.MomentSource]. Errors are the context's, or an [*Error], or say that a row function is malformed or does not fit the table;
// none has a value of a row in it.
func (s *Source) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	if from < 0 || to < from || to > s.of.Units {
		return rowfn.Sums{}, fmt.Errorf("remote: units %d to %d of %d", from, to, s.of.Units)
	}
	distinct, functions, products, err := batch.Once()
	if err != nil {
		return rowfn.Sums{}, err
	}
	found := newSums(distinct)
	if from < to && len(distinct.Functions) > 0 {
		if err := s.moments(ctx, distinct, from, to, found); err != nil {
			return rowfn.Sums{}, err
		}
	}
	sums := newSums(batch)
	for i, at := range functions {
		sums.Values[i] = found.Values[at]
	}
	for i, at := range products {
		sums.Products[i] = found.Products[at]
	}
	return sums, nil
}

func newSums(b rowfn.Batch) rowfn.Sums {
	return rowfn.Sums{Values: make([]int64, len(b.Functions)), Products: make([]rowfn.Wide, len(b.Products))}
}

// moments asks what can be asked in SQL, then reads rows for the rest.
func (s *Source) moments(ctx context.Context, batch rowfn.Batch, from, to int64, sums rowfn.Sums) error {
	pushed, read, err := s.divide(batch, from, to)
	if err != nil {
		return err
	}
	found := newSums(pushed.batch)
	for i := range pushed.statements {
		statement := &pushed.statements[i]
		row, err := s.engine.Integers(ctx, statement.SQL, statement.Cells)
		if err != nil {
			return err
		}
		units, rows, err := statement.Read(row, found)
		if err != nil {
			return &Error{Kind: Failed, Engine: s.engine.Dialect().Name, Detail: "the answer is none of sums"}
		}
		if err := s.whole(units, rows, from, to); err != nil {
			return err
		}
	}
	pushed.into(sums, found)
	if len(read.functions) == 0 {
		return nil
	}
	found, err = s.read(ctx, read.batch, from, to)
	if err == nil {
		read.into(sums, found)
	}
	return err
}

// whole reports what is wrong with the number of units and rows that an answer is of.
func (s *Source) whole(units, rows, from, to int64) error {
	want := to - from
	if s.of.Offsets != nil {
		want = int64(s.of.Offsets[to]) - int64(s.of.Offsets[from])
	}
	if units != to-from || rows != want {
		return &Error{Kind: Changed, Engine: s.engine.Dialect().Name, Detail: fmt.Sprintf("%d units and %d rows, want %d and %d", units, rows, to-from, want)}
	}
	return nil
}

// share is some functions and products of a batch as a batch of their own.
type share struct {
	batch               rowfn.Batch
	functions, products []int // where they are in the whole
	statements          []sql.Statement
}

func (p *share) into(sums, found rowfn.Sums) {
	for i, at := range p.functions {
		sums.Values[at] = found.Values[i]
	}
	for i, at := range p.products {
		sums.Products[at] = found.Products[i]
	}
}

// divide says what is pushed down, and for what rows are read: functions that are refused, and products of them.
func (s *Source) divide(batch rowfn.Batch, from, to int64) (pushed, read share, err error) {
	refused := make([]bool, len(batch.Functions))
	for {
		pushed, read = parts(batch, refused)
		if len(batch.Functions) > 0 && len(pushed.functions) == 0 {
			break
		}
		pushed.statements, err = sql.Print(s.engine.Dialect(), &s.of.Table, pushed.batch, from, to)
		var refusal *sql.Refusal
		if err == nil {
			break
		}
		if !errors.As(err, &refusal) {
			return pushed, read, err
		}
		for _, f := range refusal.Functions {
			refused[pushed.functions[f.Function]] = true
		}
	}
	return pushed, read, nil
}

// parts divides a batch. A function whose product is with a refused one is in both.
func parts(batch rowfn.Batch, refused []bool) (pushed, read share) {
	places := [2]map[int]int{{}, {}}
	shares := [2]*share{&pushed, &read}
	place := func(which, function int) int {
		at, ok := places[which][function]
		if !ok {
			p := shares[which]
			at = len(p.functions)
			places[which][function] = at
			p.functions, p.batch.Functions = append(p.functions, function), append(p.batch.Functions, batch.Functions[function])
		}
		return at
	}
	for i := range batch.Functions {
		if refused[i] {
			place(1, i)
		} else {
			place(0, i)
		}
	}
	for i, p := range batch.Products {
		which := 0
		if refused[p.A] || refused[p.B] {
			which = 1
		}
		to := shares[which]
		to.batch.Products = append(to.batch.Products, rowfn.Product{A: place(which, p.A), B: place(which, p.B)})
		to.products = append(to.products, i)
	}
	return pushed, read
}

// Checksum is a number of the whole table, apart from the order of its rows, as the engine computes it: two integers in decimal.
func (s *Source) Checksum(ctx context.Context) ([]string, error) {
	return s.engine.Integers(ctx, s.engine.Checksum(&s.of.Table), 2)
}

// Verify compares the table with what is registered: the number of units and of rows, and the checksum. The error is of kind [Changed] where they differ.
func (s *Source) Verify(ctx context.Context) error {
	if _, err := s.Moments(ctx, rowfn.Batch{Functions: []rowfn.Function{{Lo: 0, Hi: 1}}}, 0, s.of.Units); err != nil {
		return err
	}
	if s.of.Checksum == nil {
		return nil
	}
	now, err := s.Checksum(ctx)
	if err == nil && !slices.Equal(now, s.of.Checksum) {
		err = &Error{Kind: Changed, Engine: s.engine.Dialect().Name, Detail: "the checksum is another"}
	}
	return err
}
