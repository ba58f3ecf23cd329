package dataset

import "math/bits"

// Shape is what is public of a table beside its schema. The work of a question, in steps and in memory, is a function of the question,
// the schema and the shape: two tables of one shape cannot be told apart by it.
type Shape struct {
	Rows  int64
	Units int64                // 0 where each row is its own unit
	Texts map[string]TextShape // by the name of a Text column
}

// TextShape is what is public of a dictionary.
type TextShape struct {
	Texts int64 `json:"texts" doc:"different texts of the whole upload, rounded up to a power of two"`
	Bytes int64 `json:"bytes" doc:"their lengths together, with a separator before and after each, rounded up to a power of two"`
}

// Shape returns the shape of the table; Units is 0, for a table knows of none.
func (t *Table) Shape() Shape {
	s := Shape{Rows: int64(t.rows), Texts: map[string]TextShape{}}
	for i := range t.columns {
		if c := &t.columns[i]; c.Kind == Text {
			s.Texts[c.Name] = c.Dictionary.Shape()
		}
	}
	return s
}

// powerOfTwo is the least power of two that is at least n, and at least 1.
func powerOfTwo(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}
