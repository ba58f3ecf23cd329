package dataset

import (
	"fmt"
	"iter"
	"slices"
)

// selectChunk is how many rows are gathered before they are written: the buffer stays in the second-level cache.
const selectChunk = 1 << 15

// Select writes to dir, which must not exist, the table of the rows of src that order names, in that order; a row
// may be named more than once. Dictionaries keep only the texts that occur in these rows. Memory does not grow with
// the rows. When it fails no directory is left.
func Select(dir string, src *Table, order []uint32) error {
	return selectRows(dir, src, order, func(w *Writer, c *Column, release func(from, to int)) error {
		return selectText(w, c, order, release)
	})
}

// SelectJoint is Select with dictionaries that keep all texts of src and of the other tables, which need columns of the same names and
// kinds. So the shape of the table in dir, which it returns, is that of all rows together, whichever of them the table has.
func SelectJoint(dir string, src *Table, order []uint32, others ...*Table) (Shape, error) {
	shape := Shape{Rows: int64(len(order)), Texts: map[string]TextShape{}}
	return shape, selectRows(dir, src, order, func(w *Writer, c *Column, release func(from, to int)) error {
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
		return recode(w, c, order, remap, release, joint)
	})
}

func selectRows(dir string, src *Table, order []uint32, text func(*Writer, *Column, func(from, to int)) error) error {
	if len(order) > MaxRows {
		return fmt.Errorf("dataset: %d rows selected, more than the %d that a table can have", len(order), int64(MaxRows))
	}
	if i := indexAbove(order, uint32(max(src.rows-1, 0))); i >= 0 || (src.rows == 0 && len(order) > 0) {
		return fmt.Errorf("dataset: row %d selected of a table of %d rows", order[max(i, 0)], src.rows)
	}
	return writeTable(dir, src, func(w *Writer, c *Column) error {
		release := func(int, int) {}
		if src.Stride() > 0 {
			release = c.release
			defer release(0, src.rows)
		}
		switch c.Kind {
		case Bool:
			return gather(w, c.Bools, order, release, func(b []uint8) []byte { return b })
		case Text:
			return text(w, c, release)
		default:
			return gather(w, c.Numbers, order, release, bytesOf[float64])
		}
	})
}

const (
	// farValues is the length of a column from which on its values are gathered in order of their places: an order that jumps about would otherwise wait for memory at each, and keep all of the column in it.
	farValues = 1 << 22
	// farChunk is how many are put in order together. The buffers take some 6 MB.
	farChunk = 1 << 19
	// farReleased is behind how many places memory is given back.
	farReleased = 1 << 21
	// farBucket is the places, as a power of two, that lie close enough.
	farBucket = 18
)

// pieces yields the values at the places that order names, some at a time, in that order. A piece is good until the next. Of long columns it calls release behind the values that it has read.
func pieces[T any](values []T, order []uint32, release func(from, to int)) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
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
		buffer, near := make([]T, min(farChunk, len(order))), make([]uint32, min(farChunk, len(order)))
		starts := make([]int, len(values)>>farBucket+2)
		for len(order) > 0 {
			rows := order[:min(farChunk, len(order))]
			if slices.IsSorted(rows) {
				for i, row := range rows {
					buffer[i] = values[row]
				}
				release(int(rows[0]), int(rows[len(rows)-1])+1)
				if !yield(buffer[:len(rows)]) {
					return
				}
				order = order[len(rows):]
				continue
			}
			clear(starts)
			for _, row := range rows {
				starts[row>>farBucket+1]++
			}
			for i := 1; i < len(starts); i++ {
				starts[i] += starts[i-1]
			}
			for i, row := range rows {
				b := row >> farBucket
				near[starts[b]] = uint32(i)
				starts[b]++
			}
			from, first := 0, 0
			for b, end := range starts[:len(starts)-1] { // where the bucket ends now
				for _, i := range near[from:end] {
					buffer[i] = values[rows[i]]
				}
				from = end
				if to := min((b+1)<<farBucket, len(values)); to-first >= farReleased || to == len(values) {
					release(first, to)
					first = to
				}
			}
			if !yield(buffer[:len(rows)]) {
				return
			}
			order = order[len(rows):]
		}
	}
}

func gather[T any](w *Writer, values []T, order []uint32, release func(from, to int), raw func([]T) []byte) error {
	for piece := range pieces(values, order, release) {
		if err := w.appendClean(raw(piece), len(piece)); err != nil {
			return err
		}
	}
	return w.End(nil)
}

func selectText(w *Writer, c *Column, order []uint32, release func(from, to int)) error {
	remap := make([]uint32, c.Dictionary.Len()+1)
	for _, row := range order {
		remap[c.Codes[row]] = 1
	}
	remap[0] = 0
	last := uint32(0)
	for code := range remap {
		if remap[code] != 0 {
			last++
			remap[code] = last
		}
	}
	return recode(w, c, order, remap, release, c.Dictionary.kept(remap))
}

// recode writes the codes of some rows, each as remap says, or as they are where it is nil, and the texts of the new codes.
func recode(w *Writer, c *Column, order, remap []uint32, release func(from, to int), dictionary texts) error {
	for codes := range pieces(c.Codes, order, release) {
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
