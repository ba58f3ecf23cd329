package remote

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// read sums a batch over rows that are read block by block. A block is summed when all of it has come, so that one that is read again counts once.
func (s *Source) read(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	sums := newSums(batch)
	columns := columnsOf(batch)
	for _, name := range columns {
		if _, ok := s.of.Table.Columns[name]; !ok {
			return rowfn.Sums{}, fmt.Errorf("remote: the table has no column %q", name)
		}
	}
	for from < to {
		end := s.blockEnd(from, to)
		block, err := s.engine.Block(ctx, &s.of.Table, columns, from, end)
		if err != nil {
			return rowfn.Sums{}, err
		}
		found, err := s.block(ctx, batch, block, from, end)
		if err != nil {
			return rowfn.Sums{}, err
		}
		for i, x := range found.Values {
			sums.Values[i] += x
		}
		for i, x := range found.Products {
			sums.Products[i] = sums.Products[i].Plus(x)
		}
		from = end
	}
	return sums, nil
}

// blockEnd is the unit before which a block that begins with from ends: some BlockRows rows later.
func (s *Source) blockEnd(from, to int64) int64 {
	offsets := s.of.Offsets
	if offsets == nil {
		return min(from+BlockRows, to)
	}
	limit := int64(offsets[from]) + BlockRows
	more := sort.Search(int(to-from), func(i int) bool { return int64(offsets[from+int64(i)+1]) > limit })
	return min(from+max(1, int64(more)), to)
}

// block sums a batch over the rows of some units, which have to be just those.
func (s *Source) block(ctx context.Context, batch rowfn.Batch, b Block, from, to int64) (rowfn.Sums, error) {
	first, last := s.rowsOf(from, to)
	var offsets []uint32
	if s.of.Offsets != nil {
		for _, at := range s.of.Offsets[from : to+1] {
			offsets = append(offsets, at-uint32(first))
		}
	}
	order, err := s.order(b, first, last)
	if err != nil {
		return rowfn.Sums{}, err
	}
	// A table has its rows by its columns, and a batch may read none.
	columns := []dataset.Column{{Field: dataset.Field{Name: "row number", Kind: dataset.Number}, Numbers: make([]float64, len(order))}}
	for _, c := range b.Columns {
		columns = append(columns, inOrder(c, order))
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		return rowfn.Sums{}, &Error{Kind: Changed, Engine: s.engine.Dialect().Name, Detail: "a column has values that were not written"}
	}
	source, err := engine.NewTable(table, offsets, max(1, s.of.Table.Largest))
	if err != nil {
		return rowfn.Sums{}, err
	}
	return source.Moments(ctx, batch.Rows(int(first), int(last)), 0, source.Units())
}

// rowsOf are the rows of the units from..to-1.
func (s *Source) rowsOf(from, to int64) (first, last int64) {
	if s.of.Offsets == nil {
		return from, to
	}
	return int64(s.of.Offsets[from]), int64(s.of.Offsets[to])
}

// order is where the rows first..last-1 are in a block, which has to have just those.
func (s *Source) order(b Block, first, last int64) ([]int, error) {
	order, changed := make([]int, last-first), &Error{Kind: Changed, Engine: s.engine.Dialect().Name, Detail: "a block has other rows"}
	if len(b.Rows) != len(order) {
		return nil, changed
	}
	for i := range order {
		order[i] = -1
	}
	for at, row := range b.Rows {
		if row < first || row >= last || order[row-first] >= 0 {
			return nil, changed
		}
		order[row-first] = at
	}
	return order, nil
}

// Column gives use the values of a column in the order of the rows, in blocks. It is for rows that are not held out any more: no question reads so.
func (s *Source) Column(ctx context.Context, name string, use func(values dataset.Column) error) error {
	if _, ok := s.of.Table.Columns[name]; !ok {
		return fmt.Errorf("remote: the table has no column %q", name)
	}
	for from := int64(0); from < s.of.Units; {
		end := s.blockEnd(from, s.of.Units)
		block, err := s.engine.Block(ctx, &s.of.Table, []string{name}, from, end)
		if err != nil {
			return err
		}
		first, last := s.rowsOf(from, end)
		order, err := s.order(block, first, last)
		if err != nil {
			return err
		}
		if err := use(inOrder(block.Columns[0], order)); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// inOrder is a column with its values in another order.
func inOrder(c dataset.Column, order []int) dataset.Column {
	c.Numbers, c.Bools, c.Codes = permuted(c.Numbers, order), permuted(c.Bools, order), permuted(c.Codes, order)
	return c
}

func permuted[T any](values []T, order []int) []T {
	if values == nil {
		return nil
	}
	dst := make([]T, len(order))
	for i, at := range order {
		dst[i] = values[at]
	}
	return dst
}

// columnsOf are the columns that a batch reads.
func columnsOf(b rowfn.Batch) []string {
	var names []string
	seen := map[*rowfn.Node]bool{}
	var walk func(n *rowfn.Node)
	walk = func(n *rowfn.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		if n.Op == rowfn.OpColumn {
			names = append(names, n.Text)
		}
		for _, a := range n.Args {
			walk(a)
		}
	}
	for i := range b.Functions {
		walk(b.Functions[i].Value)
		walk(b.Functions[i].Where)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
