package dataset

import (
	"fmt"
	"slices"
)

// Stack writes the rows of a and, behind them, those of b to dir, which must not exist. Both need the same columns in the same order and, of text columns, the same
// dictionaries, as the tables of one upload have that [SelectJoint] wrote. Memory does not grow with the rows. When it fails no directory is left.
func Stack(dir string, a, b *Table) error {
	if len(a.columns) != len(b.columns) {
		return fmt.Errorf("dataset: tables of %d and %d columns", len(a.columns), len(b.columns))
	}
	if a.rows+b.rows > MaxRows {
		return fmt.Errorf("dataset: %d rows together, more than the %d that a table can have", a.rows+b.rows, int64(MaxRows))
	}
	place := 0
	return writeTable(dir, a, func(w *Writer, c *Column) error {
		other := &b.columns[place]
		place++
		if c.Name != other.Name || c.Kind != other.Kind {
			return fmt.Errorf("dataset: the columns %q (%v) and %q (%v) are not alike", c.Name, c.Kind, other.Name, other.Kind)
		}
		switch c.Kind {
		case Bool:
			return stackValues(w, c.Bools, other.Bools, func(b []uint8) []byte { return b })
		case Text:
			if !slices.Equal(c.Dictionary.marks, other.Dictionary.marks) {
				return fmt.Errorf("dataset: the column %q has two dictionaries", c.Name)
			}
			if err := stack(w, c.Codes, other.Codes, bytesOf[uint32]); err != nil {
				return err
			}
			return w.endOrdered(c.Dictionary.all())
		default:
			return stackValues(w, c.Numbers, other.Numbers, bytesOf[float64])
		}
	})
}

func stackValues[T any](w *Writer, a, b []T, raw func([]T) []byte) error {
	if err := stack(w, a, b, raw); err != nil {
		return err
	}
	return w.End(nil)
}

func stack[T any](w *Writer, a, b []T, raw func([]T) []byte) error {
	if err := w.appendClean(raw(a), len(a)); err != nil {
		return err
	}
	return w.appendClean(raw(b), len(b))
}
