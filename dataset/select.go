package dataset

import "fmt"

// selectChunk is how many rows are gathered before they are written: the buffer stays in the second-level cache.
const selectChunk = 1 << 15

// Select writes to dir, which must not exist, the table of the rows of src that order names, in that order; a row
// may be named more than once. Dictionaries keep only the texts that occur in these rows. Memory does not grow with
// the rows. When it fails no directory is left.
func Select(dir string, src *Table, order []uint32) error {
	if len(order) > MaxRows {
		return fmt.Errorf("dataset: %d rows selected, more than the %d that a table can have", len(order), int64(MaxRows))
	}
	if i := indexAbove(order, uint32(max(src.rows-1, 0))); i >= 0 || (src.rows == 0 && len(order) > 0) {
		return fmt.Errorf("dataset: row %d selected of a table of %d rows", order[max(i, 0)], src.rows)
	}
	return writeTable(dir, src, func(w *Writer, c *Column) error { return selectColumn(w, c, order) })
}

func selectColumn(w *Writer, c *Column, order []uint32) error {
	switch c.Kind {
	case Bool:
		return gather(w, c.Bools, order, func(b []uint8) []byte { return b })
	case Text:
		return selectText(w, c, order)
	default:
		return gather(w, c.Numbers, order, bytesOf[float64])
	}
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
	remap := make([]uint32, len(c.Dictionary)+1)
	for _, row := range order {
		remap[c.Codes[row]] = 1
	}
	remap[0] = 0
	kept := make([]string, 0)
	for code := 1; code < len(remap); code++ {
		if remap[code] != 0 {
			kept = append(kept, c.Dictionary[code-1])
			remap[code] = uint32(len(kept))
		}
	}
	buffer := make([]uint32, min(selectChunk, len(order)))
	for len(order) > 0 {
		n := min(selectChunk, len(order))
		for i, row := range order[:n] {
			buffer[i] = remap[c.Codes[row]]
		}
		if err := w.AppendCodes(buffer[:n]); err != nil {
			return err
		}
		order = order[n:]
	}
	return w.End(kept)
}
