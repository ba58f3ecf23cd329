package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/rowfn"
)

const (
	// chunkRows is about how many rows of one query a worker takes at a time: some 50 µs of a cheap one, so that workers end
	// together, a cancelled request stops soon and others have their turn, and far more than taking a chunk costs. A batch and a dear
	// query take fewer rows, chunkSteps of Work together, but not less than a block: models walk a tree, or go past a vector, for all of its rows.
	chunkRows  = 1 << 15
	chunkSteps = 1 << 18
	// blockSteps is the most Work of a block, some 130 ms, for which others wait. Beyond it a worker takes part of one, down to leastRows: with fewer,
	// what a model reads for them costs more than what it computes.
	blockSteps = 1 << 27
	leastRows  = 64
	// MaxScratch bounds the registers of one worker, in bytes. A batch that needs more is summed in parts, each in a
	// pass of its own; one row function alone is bounded by the limits of package expr instead.
	MaxScratch = 16 << 20
	// MaxTables bounds the tables by which a pass tests texts, in bytes; what needs more is summed in parts, as with MaxScratch. The
	// table of one lookup may be larger by itself: 8 bytes for each text of a column.
	MaxTables = 16 << 20
	// maxNodes is the most nodes of expressions that a pass compiles, some 50 MB of them, one row function excepted.
	maxNodes = 1 << 16
)

// Table sums row functions over a table in memory. It is safe for concurrent use while the table is open.
type Table struct {
	table   *dataset.Table
	shape   dataset.Shape
	units   kernel.Units
	n       int64
	workers int // 0: runtime.GOMAXPROCS
	block   int
}

var _ MomentSource = (*Table)(nil)

// NewTable returns the source of a table's units. Unit u is the rows offsets[u] to offsets[u+1]-1; nil offsets make every
// row a unit. maxRows is the Cap of rowfn.UnitShare, from 1; without offsets it is not used. The offsets must not be
// changed afterwards. It returns an error when they do not cut the table into units of at least one row.
func NewTable(t *dataset.Table, offsets []uint32, maxRows int64) (*Table, error) {
	s := &Table{table: t, shape: t.Shape(), n: int64(t.Rows()), block: kernel.MaxBlock}
	if offsets == nil {
		return s, nil
	}
	if maxRows < 1 || maxRows > dataset.MaxRows {
		return nil, fmt.Errorf("engine: units of at most %d rows, want 1 to %d", maxRows, dataset.MaxRows)
	}
	if len(offsets) == 0 || offsets[0] != 0 || int64(offsets[len(offsets)-1]) != int64(t.Rows()) {
		return nil, fmt.Errorf("engine: the units do not begin at the first row and end at the last")
	}
	for u := range offsets[1:] {
		if offsets[u+1] <= offsets[u] {
			return nil, fmt.Errorf("engine: unit %d has no rows", u)
		}
	}
	s.units = kernel.Units{Offsets: offsets, Cap: maxRows}
	s.n = int64(len(offsets) - 1)
	s.shape.Units = s.n
	return s, nil
}

// Shape is what is public of the table, for [Estimate].
func (t *Table) Shape() dataset.Shape { return t.shape }

// Units is the number of units.
func (t *Table) Units() int64 { return t.n }

// Sums implements [Source]. Errors are the context's, or say that a row function does not fit the table's schema, or that
// the table's files are damaged ([dataset.ErrDamaged]); none depends on the values of rows.
func (t *Table) Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error) {
	sums, err := t.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments implements [MomentSource], with the errors of Sums.
func (t *Table) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	if from < 0 || to < from || to > t.n {
		return rowfn.Sums{}, fmt.Errorf("engine: units %d to %d of %d", from, to, t.n)
	}
	if err := ctx.Err(); err != nil {
		return rowfn.Sums{}, err
	}
	distinct, functions, products, err := batch.Once()
	if err != nil {
		return rowfn.Sums{}, err
	}
	items, found := itemsOf(distinct), newSums(distinct)
	for _, n := range plan(distinct, items, t.shape).parts {
		if err := t.pass(ctx, pieceOf(distinct, items[:n]), from, to, found); err != nil {
			return rowfn.Sums{}, err
		}
		items = items[n:]
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

// pass sums a piece of a batch that was estimated to fit into one pass, or a part of it at a time where its registers do not, into the
// sums of the batch.
func (t *Table) pass(ctx context.Context, p piece, from, to int64, sums rowfn.Sums) error {
	if len(p.items) == 0 {
		return nil
	}
	processor, err := enter(ctx)
	if err != nil {
		return err
	}
	defer processor.Leave()
	var program *kernel.Program
	damage := dataset.Guarded(func() { program, err = kernel.CompileBatch(p.batch, t.table) })
	if err = errors.Join(err, damage); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if numbers, bytes := program.Registers(); (8*numbers+bytes)*kernel.MaxBlock > MaxScratch && len(p.items) > 1 {
		half := len(p.items) / 2
		processor.Leave()
		if err := t.pass(ctx, pieceOf(p.of, p.items[:half]), from, to, sums); err != nil {
			return err
		}
		return t.pass(ctx, pieceOf(p.of, p.items[half:]), from, to, sums)
	}
	if err := program.Fill(); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	processor.Leave()
	steps := max(1, plan(p.of, p.items, t.shape).work.Steps)
	rows := min(chunkRows/int64(len(p.items)), chunkSteps/steps)
	found, err := t.run(ctx, program, p.batch, t.cut(from, to, max(rows, min(kernel.MaxBlock, max(leastRows, blockSteps/steps)))))
	if err != nil {
		return err
	}
	for i, at := range p.functions {
		sums.Values[at] = found.Values[i]
	}
	for i, at := range p.products {
		sums.Products[at] = found.Products[i]
	}
	return nil
}

// run shares chunks of units, which begin and end at the given ones, among workers: each takes the next one when it is done with its
// last. Sums are of integers, so the order does not matter.
func (t *Table) run(ctx context.Context, program *kernel.Program, batch rowfn.Batch, chunks []int64) (rowfn.Sums, error) {
	workers := t.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, len(chunks)-1)
	var (
		next  atomic.Int64
		mutex sync.Mutex
		group sync.WaitGroup
		sums  = newSums(batch)

		damage error // the first, under mutex
	)
	taken, allTaken := context.WithCancel(ctx) // so that no worker waits for a processor when nothing is left for it
	defer allTaken()
	scan := func() {
		processor, err := enter(taken)
		if err != nil {
			return
		}
		defer processor.Leave()
		state := kernel.NewState(program, t.units, t.block)
		defer state.Release()
		for ctx.Err() == nil {
			i := next.Add(1)
			if i >= int64(len(chunks)) {
				allTaken()
				break
			}
			begun := time.Now()
			state.Add(chunks[i-1], chunks[i])
			if next.Load() < int64(len(chunks))-1 && processor.Yield(ctx, time.Since(begun)) != nil {
				return // ctx has ended, and with it the pass
			}
		}
		mutex.Lock()
		defer mutex.Unlock()
		for i, sum := range state.Sums() {
			sums.Values[i] += sum
		}
		for i, sum := range state.Products() {
			sums.Products[i] = sums.Products[i].Plus(sum)
		}
	}
	work := func() {
		if err := dataset.Guarded(scan); err != nil {
			next.Store(int64(len(chunks))) // the others need not go on
			mutex.Lock()
			defer mutex.Unlock()
			damage = err
		}
	}
	for range workers - 1 {
		group.Go(work)
	}
	if workers > 0 {
		work()
	}
	group.Wait()
	if damage != nil {
		return rowfn.Sums{}, fmt.Errorf("engine: %w", damage)
	}
	if err := ctx.Err(); err != nil {
		return rowfn.Sums{}, err
	}
	return sums, nil
}

// cut returns where the chunks of a range of units begin, of about so many rows each, and its end.
func (t *Table) cut(from, to, rows int64) []int64 {
	chunks := []int64{from}
	if t.units.Offsets == nil {
		for at := from + rows; at < to; at += rows {
			chunks = append(chunks, at)
		}
	} else if from < to {
		offsets := t.units.Offsets
		for row := int64(offsets[from]) + rows; row < int64(offsets[to]); row += rows {
			row32 := uint32(min(row, math.MaxUint32))
			unit := from + int64(sort.Search(int(to-from), func(i int) bool { return offsets[from+int64(i)] >= row32 }))
			if unit > chunks[len(chunks)-1] && unit < to {
				chunks = append(chunks, unit)
			}
		}
	}
	if from < to {
		chunks = append(chunks, to)
	}
	return chunks
}
