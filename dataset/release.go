package dataset

import (
	"iter"
	"unsafe"
)

const (
	// releaseBytes is how much of a mapped table is read before it is given back: the kernel keeps the pages in its cache as long as it likes, but they are no more this process's memory.
	releaseBytes = 32 << 20
	// releaseLeast is the size of a table below which nothing is given back.
	releaseLeast = 64 << 20
)

// Stride is after how many rows, read one after the other, [Table.Release] is worth a call; 0 of a table that is small or in memory, of which nothing is given back.
func (t *Table) Stride() int {
	if len(t.mapping) < releaseLeast {
		return 0
	}
	return max(1, int(releaseBytes/max(1, int64(len(t.mapping))/int64(max(1, t.rows)))))
}

// Release gives the memory of the rows from..to-1 back where the table is mapped. They can be read as before, and then are mapped again. Rows that there are not are left out.
func (t *Table) Release(from, to int) {
	if t.mapping == nil {
		return
	}
	from, to = max(from, 0), min(to, t.rows)
	for i := range t.columns {
		t.columns[i].release(from, to)
	}
}

// ReleaseAll gives the memory of a large table and its dictionaries back.
func (t *Table) ReleaseAll() {
	if len(t.mapping) >= releaseLeast {
		releasePages(t.mapping)
	}
}

// release is Release of a column of a mapped table.
func (c *Column) release(from, to int) {
	if from >= to {
		return
	}
	switch c.Kind {
	case Bool:
		releasePages(c.Bools[from:to])
	case Text:
		releasePages(bytesOf(c.Codes[from:to]))
	default:
		releasePages(bytesOf(c.Numbers[from:to]))
	}
}

// pieceRows is how many rows of one column are read before they are given back.
const pieceRows = 1 << 20

// Pieces yields from..to-1 of all rows of column i, one piece after the other, and gives the memory of the column back behind each where the table is large.
func (t *Table) Pieces(i int) iter.Seq2[int, int] { return inPieces(&t.columns[i], t.Stride() > 0) }

// inPieces is Pieces of a column of a mapping, large or not.
func inPieces(c *Column, large bool) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		rows, piece := c.Len(), c.Len()
		if large {
			piece = pieceRows
		}
		for from := 0; from < rows; from += piece {
			to := min(from+piece, rows)
			if !yield(from, to) {
				return
			}
			if large {
				c.release(from, to)
			}
		}
	}
}

// pagesOf are the whole pages that bytes of a mapping touch. Next to them lies nothing that is not of the mapping, which begins at a page and ends with one.
func pagesOf(b []byte, page int) []byte {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	before := int(start % uintptr(page))
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -before)), before+len(b))
}
