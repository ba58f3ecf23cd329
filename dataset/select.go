package dataset

import "fmt"

// selectChunk is how many rows are gathered before they are written: the buffer stays in the second-level cache.
const selectChunk = 1 << 15

// Select writes to dir, which must not exist, the table of the rows of src that order names, in that order; a row
// may be named more than once. Dictionaries keep only the texts that occur in these rows. Memory does not grow with
// the rows. When it fails no directory is left.
func Select(dir string, src *Table, order []uint32) error {
	return selectRows(dir, src, order, func(w *Writer, c *Column) error { return selectText(w, c, order) })
}

// SelectJoint is Select with dictionaries that keep all texts of src and of the other tables, which need columns of the same names and
// kinds. So the shape of the table in dir, which it returns, is that of all rows together, whichever of them the table has.
func SelectJoint(dir string, src *Table, order []uint32, others ...*Table) (Shape, error) {
	shape := Shape{Rows: int64(len(order)), Texts: map[string]TextShape{}}
	return shape, selectRows(dir, src, order, func(w *Writer, c *Column) error {
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
		return recode(w, c, order, remap, joint)
	})
}

func selectRows(dir string, src *Table, order []uint32, text func(*Writer, *Column) error) error {
	if len(order) > MaxRows {
		return fmt.Errorf("dataset: %d rows selected, more than the %d that a table can have", len(order), int64(MaxRows))
	}
	if i := indexAbove(order, uint32(max(src.rows-1, 0))); i >= 0 || (src.rows == 0 && len(order) > 0) {
		return fmt.Errorf("dataset: row %d selected of a table of %d rows", order[max(i, 0)], src.rows)
	}
	return writeTable(dir, src, func(w *Writer, c *Column) error {
		switch c.Kind {
		case Bool:
			return gather(w, c.Bools, order, func(b []uint8) []byte { return b })
		case Text:
			return text(w, c)
		default:
			return gather(w, c.Numbers, order, bytesOf[float64])
		}
	})
}

func gather[T any](w *Writer, values []T, order []uint32, raw func([]T) []byte) error {
	buffer := make([]T, min(selectChunk, len(order)))
	for len(order) > 0 {
		n := min(selectChunk, len(order))
		for i, row := range order[:n] {
			buffer[i] = values[row]
		}
		if err := w.appendClean(raw(buffer[:n]), n); err != nil {
			return err
		}
		order = order[n:]
	}
	return w.End(nil)
}

func selectText(w *Writer, c *Column, order []uint32) error {
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
	return recode(w, c, order, remap, c.Dictionary.kept(remap))
}

// recode writes the codes of some rows, each as remap says, or as they are where it is nil, and the texts of the new codes.
func recode(w *Writer, c *Column, order, remap []uint32, dictionary texts) error {
	buffer := make([]uint32, min(selectChunk, len(order)))
	for len(order) > 0 {
		n := min(selectChunk, len(order))
		for i, row := range order[:n] {
			buffer[i] = c.Codes[row]
		}
		if remap != nil {
			for i, code := range buffer[:n] {
				buffer[i] = remap[code]
			}
		}
		if err := w.AppendCodes(buffer[:n]); err != nil {
			return err
		}
		order = order[n:]
	}
	return w.endOrdered(dictionary)
}
