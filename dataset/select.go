package dataset

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// selectChunk is how many rows are gathered before they are written: the buffer stays in the second-level cache.
const selectChunk = 1 << 15

// Select writes to dir, which must not exist, the table of the rows of src that order names, in that order; a row
// may be named more than once. Dictionaries keep only the texts that occur in these rows. Memory does not grow with
// the rows. When it fails no directory is left.
//
// Of a long order, behind, where it is not nil, is called with pieces that were read for a column, whose memory can be given back: they are read again for the next. Several
// calls may come at the same time.
func Select(dir string, src *Table, order []uint32, behind func(read []uint32)) error {
	return selectRows(dir, src, order, behind, selectText)
}

// SelectJoint is Select with dictionaries that keep all texts of src and of the other tables, which need columns of the same names and
// kinds. So the shape of the table in dir, which it returns, is that of all rows together, whichever of them the table has.
func SelectJoint(dir string, src *Table, order []uint32, behind func(read []uint32), others ...*Table) (Shape, error) {
	shape := Shape{Rows: int64(len(order)), Texts: map[string]TextShape{}}
	return shape, selectRows(dir, src, order, behind, func(w *Writer, c *Column, s *selection) error {
		all, remap := []*Dictionary{&c.Dictionary}, []uint32(nil)
		for _, t := range others {
			other, ok := t.Lookup(c.Name)
			if !ok || other.Kind != Text {
				return fmt.Errorf("dataset: another table has no text column %q", c.Name)
			}
			all = append(all, &other.Dictionary)
		}
		if len(others) > 0 {
			remap = make([]uint32, c.Dictionary.Len()+1)
		}
		joint := united(remap, all...)
		shape.Texts[c.Name] = shapeOf(joint.size())
		return recode(w, c, s, remap, joint)
	})
}

// selection is what is read of a column: the rows that order names. It calls release with places of the column, and behind with pieces of the order, that were read.
type selection struct {
	order   []uint32
	release func(from, to int)
	behind  func(read []uint32)
}

func selectRows(dir string, src *Table, order []uint32, behind func(read []uint32), text func(*Writer, *Column, *selection) error) error {
	if behind == nil {
		behind = func([]uint32) {}
	}
	if len(order) > MaxRows {
		return fmt.Errorf("dataset: %d rows selected, more than the %d that a table can have", len(order), int64(MaxRows))
	}
	if i := indexAbove(order, uint32(max(src.rows-1, 0))); i >= 0 || (src.rows == 0 && len(order) > 0) {
		return fmt.Errorf("dataset: row %d selected of a table of %d rows", order[max(i, 0)], src.rows)
	}
	return writeTable(dir, src, func(w *Writer, c *Column) error {
		s := &selection{order, func(int, int) {}, behind}
		if src.Stride() > 0 {
			s.release = c.release
			defer s.release(0, src.rows)
		}
		switch c.Kind {
		case Bool:
			return gather(w, c.Bools, s, func(b []uint8) []byte { return b })
		case Text:
			return text(w, c, s)
		default:
			return gather(w, c.Numbers, s, bytesOf[float64])
		}
	})
}

const (
	// farValues is the length of a column from which on its values are gathered in order of their places: an order that jumps about would otherwise wait for memory at each, and keep all of the column in it.
	farValues = 1 << 22
	// farChunk is how many are put in order together. The buffers of both gatherers take some 12 MB; each chunk maps all of the column once.
	farChunk = 1 << 19
	// farReleased is behind how many places memory is given back.
	farReleased = 1 << 21
	// farBucket is the places, as a power of two, that lie close enough.
	farBucket = 18
)

// pieces yields the values of a selection, some at a time, in order. A piece is good until the next.
func pieces[T any](values []T, s *selection) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		order := s.order
		if len(values) < farValues || len(order) < farValues/16 {
			buffer := make([]T, min(selectChunk, len(order)))
			for len(order) > 0 {
				piece := buffer[:min(selectChunk, len(order))]
				for i, row := range order[:len(piece)] {
					piece[i] = values[row]
				}
				if !yield(piece) {
					return
				}
				order = order[len(piece):]
			}
			return
		}
		yieldFar(yield, values, s)
	}
}

// gatherers is how many processors gather the values of a long column.
const gatherers = 2

// yieldFar yields the values of a long column, farChunk at a time, of which each gatherer makes every other.
func yieldFar[T any](yield func([]T) bool, values []T, s *selection) {
	order := s.order
	type made struct {
		piece []T
		fault error
	}
	var wait sync.WaitGroup
	stop := make(chan struct{})
	defer wait.Wait()
	defer close(stop)
	var full, free [gatherers]chan made
	for w := range gatherers {
		full[w], free[w] = make(chan made), make(chan made, 1)
		wait.Go(func() {
			size := min(farChunk, len(order))
			g := farGatherer[T]{values: values, buffer: make([]T, size), near: make([]uint32, size), starts: make([]int, len(values)>>farBucket+2), release: s.release}
			for from := w * farChunk; from < len(order); from += gatherers * farChunk {
				var m made
				rows := order[from:min(from+farChunk, len(order))]
				m.fault = Guarded(func() { m.piece = g.gather(rows) })
				s.behind(rows)
				select {
				case full[w] <- m:
				case <-stop:
					return
				}
				select {
				case <-free[w]: // the buffer may be used again
				case <-stop:
					return
				}
			}
		})
	}
	for i := 0; i*farChunk < len(order); i++ {
		m := <-full[i%gatherers]
		if corrupt := (*CorruptError)(nil); errors.As(m.fault, &corrupt) {
			panic(corrupt.Err) // as if it had been read here: whoever guards this goroutine knows it
		}
		if !yield(m.piece) {
			return
		}
		free[i%gatherers] <- m
	}
}

// farGatherer gathers values of a long column in order of their places.
type farGatherer[T any] struct {
	values  []T
	buffer  []T
	near    []uint32
	starts  []int
	release func(from, to int)
}

// gather returns the values of rows, at most farChunk, in its buffer.
func (g *farGatherer[T]) gather(rows []uint32) []T {
	if slices.IsSorted(rows) {
		for i, row := range rows {
			g.buffer[i] = g.values[row]
		}
		g.release(int(rows[0]), int(rows[len(rows)-1])+1)
		return g.buffer[:len(rows)]
	}
	clear(g.starts)
	for _, row := range rows {
		g.starts[row>>farBucket+1]++
	}
	for i := 1; i < len(g.starts); i++ {
		g.starts[i] += g.starts[i-1]
	}
	for i, row := range rows {
		b := row >> farBucket
		g.near[g.starts[b]] = uint32(i)
		g.starts[b]++
	}
	from, first := 0, 0
	for b, end := range g.starts[:len(g.starts)-1] { // where the bucket ends now
		for _, i := range g.near[from:end] {
			g.buffer[i] = g.values[rows[i]]
		}
		from = end
		if to := min((b+1)<<farBucket, len(g.values)); to-first >= farReleased || to == len(g.values) {
			g.release(first, to)
			first = to
		}
	}
	return g.buffer[:len(rows)]
}

func gather[T any](w *Writer, values []T, s *selection, raw func([]T) []byte) error {
	for piece := range pieces(values, s) {
		if err := w.appendClean(raw(piece), len(piece)); err != nil {
			return err
		}
	}
	return w.End(nil)
}

func selectText(w *Writer, c *Column, s *selection) error {
	remap := make([]uint32, c.Dictionary.Len()+1)
	for codes := range pieces(c.Codes, s) {
		for _, code := range codes {
			remap[code] = 1
		}
	}
	remap[0] = 0
	last := uint32(0)
	for code := range remap {
		if remap[code] != 0 {
			last++
			remap[code] = last
		}
	}
	return recode(w, c, s, remap, c.Dictionary.kept(remap))
}

// recode writes the codes of some rows, each as remap says, or as they are where it is nil, and the texts of the new codes.
func recode(w *Writer, c *Column, s *selection, remap []uint32, dictionary texts) error {
	for codes := range pieces(c.Codes, s) {
		if remap != nil {
			for i, code := range codes {
				codes[i] = remap[code]
			}
		}
		if err := w.AppendCodes(codes); err != nil {
			return err
		}
	}
	return w.endOrdered(dictionary)
}
