package files

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
)

const (
	// maxCommon is the most distinct texts of a column whose segments all have the dictionary of the whole table: what a question does with such a column does not depend on
	// which texts a segment's rows have. A column of more texts has dictionaries of its own in each segment.
	maxCommon = 1 << 12
	// maxCommonBytes bounds their bytes.
	maxCommonBytes = 1 << 18
	// sketchMarks is how many marks of a column of more texts are kept to count them, all such columns together: 24 bytes each.
	sketchMarks = 1 << 21
	// maxSketch and minSketch bound those of one column. With k marks the error of a count is about 1/sqrt(k): 0.4% to 3%.
	maxSketch = 1 << 16
	minSketch = 1 << 10
)

// words are the texts of one column of the whole table, as far as they are known.
type words struct {
	common []string                // the texts, in the order in which they came, up to maxCommon of them
	codes  map[dataset.Mark]uint32 // 1 + the place in common
	bytes  int
	many   bool // there are more: common has those of the first pieces
	most   int  // of common

	limit  int // of sketch
	sketch []marked
}

// marked is a text without the text.
type marked struct {
	mark  dataset.Mark
	bytes int64
}

func newWords(columns int) *words {
	return &words{codes: map[dataset.Mark]uint32{}, most: maxCommon, limit: min(max(sketchMarks/max(columns, 1), minSketch), maxSketch)}
}

// add adds the texts of a piece. While there are few it returns the common code of each of the piece's codes; nil: the piece keeps its own.
func (w *words) add(d *dataset.Dictionary) []uint32 {
	if !w.many {
		remap := make([]uint32, 1, d.Len()+1)
		for text, mark := range d.All() {
			code, ok := w.codes[mark]
			if !ok {
				if len(w.common) == w.most || w.bytes+len(text) > maxCommonBytes {
					w.overflow()
					break
				}
				w.common, w.bytes = append(w.common, string(text)), w.bytes+len(text)
				code = uint32(len(w.common))
				w.codes[mark] = code
			}
			remap = append(remap, code)
		}
		if !w.many {
			return remap
		}
	}
	piece := make([]marked, 0, min(d.Len(), w.limit))
	for text, mark := range d.All() {
		if len(piece) == w.limit {
			break // texts come in the order of their marks
		}
		piece = append(piece, marked{mark, int64(len(text))})
	}
	w.merge(piece)
	return nil
}

func (w *words) overflow() {
	w.many = true
	var all []marked
	for mark, code := range w.codes {
		all = append(all, marked{mark, int64(len(w.common[code-1]))})
	}
	slices.SortFunc(all, func(a, b marked) int { return a.mark.Compare(b.mark) })
	w.merge(all)
}

// merge keeps the least marks of both.
func (w *words) merge(other []marked) {
	merged := make([]marked, 0, min(len(w.sketch)+len(other), w.limit))
	a, b := w.sketch, other
	for len(merged) < w.limit && len(a)+len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].mark.Compare(b[0].mark) < 0:
			merged, a = append(merged, a[0]), a[1:]
		case len(a) > 0 && a[0].mark == b[0].mark:
			merged, a, b = append(merged, a[0]), a[1:], b[1:]
		default:
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	w.sketch = merged
}

// shape is the public shape of the column: exact while all texts are known by their marks. Of more, the least k marks tell how many there are, for marks are as random numbers
// (Bar-Yossef et al., Counting distinct elements in a data stream, 2002): of n texts, the k-th least mark is about k/n of the way. Counts are made larger by four standard errors,
// so that the shape, which is rounded to a power of two, is nearly never too small.
func (w *words) shape() dataset.TextShape {
	if !w.many {
		return dataset.ShapeOf(int64(len(w.common)), int64(w.bytes))
	}
	var bytes int64
	for _, m := range w.sketch {
		bytes += m.bytes
	}
	k := len(w.sketch)
	if k < w.limit {
		return dataset.ShapeOf(int64(k), bytes)
	}
	count := float64(w.count()) * (1 + 4/math.Sqrt(float64(k)))
	return dataset.ShapeOf(int64(count), int64(count*float64(bytes)/float64(k)))
}

// count is how many texts the sketch is of: exactly, while it has room.
func (w *words) count() int64 {
	k := len(w.sketch)
	if k < w.limit || k == 0 {
		return int64(k)
	}
	fraction := (float64(w.sketch[k-1].mark.High) + 1) / (1 << 63) / 2
	return int64(float64(k-1) / fraction)
}

// The dictionary of a chunk: how many texts, then the mark of each, the length of each, and the texts.

func appendTexts(dst []byte, d *dataset.Dictionary, marks []dataset.Mark, codes []uint32) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(codes)))
	for _, code := range codes {
		dst = binary.LittleEndian.AppendUint64(dst, marks[code].High)
		dst = binary.LittleEndian.AppendUint64(dst, marks[code].Low)
	}
	for _, code := range codes {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.Bytes(code))))
	}
	for _, code := range codes {
		dst = append(dst, d.Bytes(code)...)
	}
	return dst
}

// readTexts reads a dictionary at a place of a file, and calls each with every text.
func readTexts(f io.ReaderAt, at int64, each func(mark dataset.Mark, text []byte)) error {
	var count [4]byte
	if _, err := f.ReadAt(count[:], at); err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(count[:]))
	if n == 0 {
		return nil
	}
	heads := make([]byte, 20*n)
	if _, err := f.ReadAt(heads, at+4); err != nil {
		return err
	}
	size := 0
	for i := range n {
		size += int(binary.LittleEndian.Uint32(heads[16*n+4*i:]))
	}
	texts := make([]byte, size)
	if _, err := f.ReadAt(texts, at+4+int64(len(heads))); err != nil {
		return err
	}
	for i := range n {
		length := binary.LittleEndian.Uint32(heads[16*n+4*i:])
		each(dataset.Mark{High: binary.LittleEndian.Uint64(heads[16*i:]), Low: binary.LittleEndian.Uint64(heads[16*i+8:])}, texts[:length:length])
		texts = texts[length:]
	}
	return nil
}

// vocabulary is the dictionary of a segment's column while it is made.
type vocabulary struct {
	codes map[dataset.Mark]uint32 // 1 + the place in texts
	texts []marksText
}

type marksText struct {
	mark dataset.Mark
	text []byte
	old  uint32
}

func (v *vocabulary) code(mark dataset.Mark, text []byte) uint32 {
	code, ok := v.codes[mark]
	if !ok {
		v.texts = append(v.texts, marksText{mark, text, uint32(len(v.texts) + 1)})
		code = uint32(len(v.texts))
		v.codes[mark] = code
	}
	return code
}

// sorted puts the texts in the order of their marks, and returns the new code of each old one.
func (v *vocabulary) sorted() []uint32 {
	slices.SortFunc(v.texts, func(a, b marksText) int { return a.mark.Compare(b.mark) })
	remap := make([]uint32, len(v.texts)+1)
	for i, t := range v.texts {
		remap[t.old] = uint32(i + 1)
	}
	return remap
}

// all yields the texts in order.
func (v *vocabulary) all(yield func([]byte, dataset.Mark) bool) {
	for _, t := range v.texts {
		if !yield(t.text, t.mark) {
			return
		}
	}
}
