package files

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"github.com/holdoutd/holdoutd/dataset"
)

// A bucket is the rows of one segment before they are put in the order of their numbers: a file of chunks, each the rows that one piece of the table has for it. Of a chunk the
// file has the numbers of the rows' units, then each column, then dictionaries.

// bucket is what is known of a bucket's file. Its columns' places follow from the schema, so that a chunk takes some bytes of memory, whatever it holds.
type bucket struct {
	path   string
	first  int64 // the number of the first unit
	units  int64
	rows   int64
	size   int64
	chunks []chunk
}

// chunk is the rows of one piece.
type chunk struct {
	offset int64
	rows   int
	layout *layout
	texts  []int64 // where the dictionary of each column that has one of its own begins; of those in layout.own
}

// layout is how the chunks of one piece are written.
type layout struct {
	widths []int // of a value of each column
	before []int // of all columns before each, and of all
	own    []int // columns of texts whose codes are those of a dictionary in the chunk
}

// numberWidth is the width of a unit's number within its bucket.
const numberWidth = 4

// column returns where a column's values begin in a chunk, and their width; that of column -1 are the numbers.
func (c *chunk) column(i int) (offset int64, width int) {
	if i < 0 {
		return c.offset, numberWidth
	}
	return c.offset + int64(numberWidth+c.layout.before[i])*int64(c.rows), c.layout.widths[i]
}

// division is a Divide at work.
type division struct {
	table   *table
	parts   []*making
	words   []*words // of text columns, by column; nil for others
	columns []dataset.Field

	order  []uint32 // of a piece: its rows, by bucket
	bucket []uint32 // of each of its rows
	number []uint32 // of each of its rows' units, in the bucket
	buffer []byte
}

// making is a part that is made.
type making struct {
	name    string
	dir     string
	units   int64
	each    int64 // units of a bucket
	buckets []*bucket
	first   int // the number of its first bucket among those of all parts
	rows    int64
}

func (d *division) add(name, dir string, units, each int64) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	m := &making{name: name, dir: dir, units: units, each: each}
	if len(d.parts) > 0 {
		last := d.parts[len(d.parts)-1]
		m.first = last.first + len(last.buckets)
	}
	d.parts = append(d.parts, m)
	for first := int64(0); first < units; first += each {
		m.buckets = append(m.buckets, &bucket{path: filepath.Join(dir, "bucket"+strconv.Itoa(len(m.buckets))), first: first, units: min(each, units-first)})
	}
	return nil
}

// goes says that a row of the piece at hand is of a unit of a part.
func (d *division) goes(row int, part int, number int64) error {
	if part < 0 || part >= len(d.parts) {
		return fmt.Errorf("files: part %d of %d", part, len(d.parts))
	}
	m := d.parts[part]
	if number < 0 || number >= m.units {
		return fmt.Errorf("files: number %d of %d units of %s", number, m.units, m.name)
	}
	at := number / m.each
	d.bucket[row], d.number[row] = uint32(m.first+int(at)), uint32(number-at*m.each)
	return nil
}

// begin prepares for a piece of so many rows.
func (d *division) begin(rows int) {
	if cap(d.order) < rows {
		d.order, d.bucket, d.number = make([]uint32, rows), make([]uint32, rows), make([]uint32, rows)
	}
	d.order, d.bucket, d.number = d.order[:rows], d.bucket[:rows], d.number[:rows]
}

// write writes the rows of the piece to their buckets. All goes column by column, so that a piece is read once.
func (d *division) write(rows *dataset.Table) (err error) {
	var all []*bucket
	for _, m := range d.parts {
		all = append(all, m.buckets...)
	}
	starts := make([]int, len(all)+1)
	for _, b := range d.bucket {
		starts[b+1]++
	}
	for i := range all {
		starts[i+1] += starts[i]
	}
	next := append([]int(nil), starts...)
	for row, b := range d.bucket {
		d.order[next[b]] = uint32(row)
		next[b]++
	}
	w := &routing{division: d, starts: starts, buckets: all, files: make([]*os.File, len(all)), chunks: make([]chunk, len(all)), ends: make([]int64, len(all))}
	defer func() { err = errors.Join(err, w.close()) }()
	layout := &layout{widths: make([]int, len(d.columns))}
	remaps := make([][]uint32, len(d.columns))
	for i, f := range d.columns {
		layout.widths[i] = kindWidth(f.Kind)
		if f.Kind != dataset.Text {
			continue
		}
		if remaps[i] = d.words[i].add(&rows.Column(i).Dictionary); remaps[i] == nil {
			layout.own = append(layout.own, i)
		} else {
			layout.widths[i] = codeWidth(len(d.words[i].common))
		}
	}
	layout.before = make([]int, 1, len(d.columns)+1)
	for i, width := range layout.widths {
		layout.before = append(layout.before, layout.before[i]+width)
	}
	if err := w.open(layout); err != nil {
		return err
	}
	gathered := gather(bytesAs[uint32](d.grown(numberWidth*len(d.order))), d.number, d.order)
	if err := w.values(-1, asBytes(gathered)); err != nil {
		return err
	}
	for i := range d.columns {
		if err := w.column(i, rows.Column(i), remaps[i]); err != nil {
			return err
		}
	}
	for k, b := range all {
		if n := starts[k+1] - starts[k]; n > 0 {
			b.rows, b.size, b.chunks = b.rows+int64(n), w.ends[k], append(b.chunks, w.chunks[k])
		}
	}
	for _, m := range d.parts {
		m.rows = 0
		for _, b := range m.buckets {
			m.rows += b.rows
		}
	}
	return nil
}

// codeWidth is the bytes of a common code.
func codeWidth(texts int) int {
	if texts <= math.MaxUint8 {
		return 1
	}
	return 2
}

func (d *division) grown(n int) []byte {
	if cap(d.buffer) < n+8 {
		d.buffer = asBytes(make([]uint64, n/8+2)) // so that it can be seen as values of any width
	}
	return d.buffer[:n]
}

// routing is a piece on its way to the buckets.
type routing struct {
	*division
	starts  []int // where the rows of each bucket begin in the order
	buckets []*bucket
	files   []*os.File
	chunks  []chunk
	ends    []int64
}

// open opens the files of the buckets that have rows of the piece.
func (w *routing) open(l *layout) error {
	for k, b := range w.buckets {
		n := w.starts[k+1] - w.starts[k]
		if n == 0 {
			continue
		}
		f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		w.files[k] = f
		w.chunks[k] = chunk{offset: b.size, rows: n, layout: l, texts: make([]int64, len(l.own))}
		w.ends[k] = b.size + int64(numberWidth+l.before[len(w.columns)])*int64(n)
	}
	return nil
}

func (w *routing) close() (err error) {
	for _, f := range w.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// values writes a column's values, which are in the order of the buckets.
func (w *routing) values(column int, values []byte) error {
	for k, f := range w.files {
		if f == nil {
			continue
		}
		offset, width := w.chunks[k].column(column)
		if _, err := f.WriteAt(values[w.starts[k]*width:w.starts[k+1]*width], offset); err != nil {
			return err
		}
	}
	return nil
}

func (w *routing) column(i int, c *dataset.Column, remap []uint32) error {
	n := len(w.order)
	switch {
	case c.Kind == dataset.Bool:
		return w.values(i, gather(w.grown(n), c.Bools, w.order))
	case c.Kind != dataset.Text:
		return w.values(i, asBytes(gather(bytesAs[float64](w.grown(8*n)), c.Numbers, w.order)))
	case remap == nil:
		return w.texts(i, c)
	}
	if _, width := w.chunk().column(i); width == 1 {
		dst := w.grown(n)
		for at, row := range w.order {
			dst[at] = uint8(remap[c.Codes[row]])
		}
		return w.values(i, dst)
	}
	dst := bytesAs[uint16](w.grown(2 * n))
	for at, row := range w.order {
		dst[at] = uint16(remap[c.Codes[row]])
	}
	return w.values(i, asBytes(dst))
}

// chunk is any chunk of the piece.
func (w *routing) chunk() *chunk {
	for k := range w.chunks {
		if w.files[k] != nil {
			return &w.chunks[k]
		}
	}
	return nil
}

// texts writes a column of many texts: each chunk gets a dictionary of those that its rows have.
func (w *routing) texts(i int, c *dataset.Column) error {
	codes := bytesAs[uint32](w.grown(4 * len(w.order)))
	local := make([]uint32, c.Dictionary.Len()+1) // 1 + the place among the chunk's texts
	var used []uint32
	var b []byte
	marks := c.Dictionary.Marks()
	for k, f := range w.files {
		if f == nil {
			continue
		}
		used = used[:0]
		for at := w.starts[k]; at < w.starts[k+1]; at++ {
			code := c.Codes[w.order[at]]
			if code != 0 && local[code] == 0 {
				used = append(used, code)
				local[code] = uint32(len(used))
			}
			codes[at] = local[code]
		}
		b = appendTexts(b[:0], &c.Dictionary, marks, used)
		for _, code := range used {
			local[code] = 0
		}
		for at, own := range w.chunks[k].layout.own {
			if own == i {
				w.chunks[k].texts[at] = w.ends[k]
			}
		}
		if _, err := f.WriteAt(b, w.ends[k]); err != nil {
			return err
		}
		w.ends[k] += int64(len(b))
	}
	return w.values(i, asBytes(codes))
}

// gather writes the values of the rows in an order.
func gather[T any](dst, values []T, order []uint32) []T {
	for i, row := range order {
		dst[i] = values[row]
	}
	return dst
}

// asBytes and bytesAs view values as bytes, and bytes that begin at a multiple of eight as values.
func asBytes[T uint16 | uint32 | uint64 | float64](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
}

func bytesAs[T uint16 | uint32 | uint64 | float64](b []byte) []T {
	var one T
	n := len(b) / int(unsafe.Sizeof(one))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
