package dataset

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// Separator stands before, between and after the texts of a dictionary. It is no byte of any UTF-8 text.
const Separator = 0xFF

// Mark names a text: the first 16 bytes of its SHA-256, as two big-endian numbers. Two texts of one mark are not known to anyone; a
// dictionary that met them would be refused. The zero Mark is that of null.
type Mark struct{ High, Low uint64 }

// MarkOf returns the mark of a text, in a time that depends on the length of the text alone.
func MarkOf(text string) Mark {
	return markOf([]byte(text))
}

func markOf(text []byte) Mark {
	sum := sha256.Sum256(text)
	return Mark{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// Compare orders marks: -1, 0 or 1.
func (m Mark) Compare(other Mark) int {
	if c := cmp.Compare(m.High, other.High); c != 0 {
		return c
	}
	return cmp.Compare(m.Low, other.Low)
}

// Dictionary holds the distinct texts of a Text column, in the order of their marks. That order says nothing about the texts, and a
// text is found by its mark in a number of steps that depends on the rounded size of the dictionary alone. A dictionary of an opened
// table lies in the file that is mapped, and must not be used once the table is closed. The zero value has no texts.
type Dictionary struct {
	texts   []byte   // a separator, then each text and a separator
	starts  []uint64 // where each text begins, and one behind the last separator; nil without texts
	marks   []Mark   // of null and of each text; nil without texts
	unnamed bool     // as NewDictionary leaves it: in any order, with repetitions, without marks
}

// NewDictionary returns a dictionary for [FromColumns], whose codes are the places of the texts here. FromColumns puts it in order.
func NewDictionary(texts ...string) Dictionary {
	if len(texts) == 0 {
		return Dictionary{}
	}
	size := 1 // room for all at once: growing would need twice as much
	for _, text := range texts {
		size += len(text) + 1
	}
	d := Dictionary{texts: append(make([]byte, 0, size), Separator), starts: make([]uint64, 1, len(texts)+1), unnamed: true}
	d.starts[0] = 1
	for _, text := range texts {
		d.texts = append(append(d.texts, text...), Separator)
		d.starts = append(d.starts, uint64(len(d.texts)))
	}
	return d
}

// append adds a text behind the last one; its mark must be the greatest so far.
func (d *Dictionary) append(text []byte, mark Mark) {
	if d.texts == nil {
		d.texts, d.starts, d.marks = []byte{Separator}, []uint64{1}, []Mark{{}}
	}
	d.texts = append(append(d.texts, text...), Separator)
	d.starts = append(d.starts, uint64(len(d.texts)))
	d.marks = append(d.marks, mark)
}

// Len is the number of texts.
func (d *Dictionary) Len() int { return max(len(d.starts)-1, 0) }

// Text returns a copy of text i, 0 <= i < Len(): that of code i+1.
func (d *Dictionary) Text(i int) string { return string(d.bytes(i)) }

func (d *Dictionary) bytes(i int) []byte { return d.texts[d.starts[i] : d.starts[i+1]-1] }

// Sorted returns copies of all texts, sorted by their bytes.
func (d *Dictionary) Sorted() []string {
	all := make([]string, d.Len())
	for i := range all {
		all[i] = d.Text(i)
	}
	slices.Sort(all)
	return all
}

// Equal reports whether both have the same texts.
func (d Dictionary) Equal(other Dictionary) bool {
	return bytes.Equal(d.Flat(), other.Flat()) && slices.Equal(d.Marks(), other.Marks())
}

// Flat returns the texts one behind the other, each with a [Separator] before and after it. It must not be written to.
func (d *Dictionary) Flat() []byte {
	if d.texts == nil {
		return []byte{Separator}
	}
	return d.texts
}

// Marks returns the mark of each code: of null, then of each text, ascending. It must not be written to.
func (d *Dictionary) Marks() []Mark {
	if d.unnamed {
		panic("dataset: a dictionary is used before FromColumns has put it in order")
	}
	if d.marks == nil {
		return []Mark{{}}
	}
	return d.marks
}

// Shape is what is public of the dictionary.
func (d *Dictionary) Shape() TextShape {
	return shapeOf(int64(d.Len()), int64(len(d.Flat())))
}

func shapeOf(count, flat int64) TextShape {
	return TextShape{Texts: powerOfTwo(count), Bytes: powerOfTwo(flat)}
}

// Find returns the code of a text, or false. It takes as many steps for every dictionary of one [TextShape], whether the text is in it
// or not.
func (d *Dictionary) Find(text string) (code uint32, ok bool) {
	want, marks := MarkOf(text), d.Marks()[1:]
	at := 0
	for step := int(powerOfTwo(int64(len(marks)))); step > 0; step /= 2 {
		if next := at + step; next <= len(marks) && marks[next-1].Compare(want) <= 0 {
			at = next
		}
	}
	if at == 0 || marks[at-1] != want {
		return 0, false
	}
	return uint32(at), true
}

// ordered returns the dictionary of distinct texts in the order of marks, and for each old code (0 is null) the new one; remap is
// nil where nothing changes.
func (d *Dictionary) ordered() (out Dictionary, remap []uint32, err error) {
	if !d.unnamed || d.Len() == 0 {
		return *d, nil, nil
	}
	n := d.Len()
	for i := range n {
		if !utf8.Valid(d.bytes(i)) {
			return out, nil, fmt.Errorf("text %d of the dictionary is not UTF-8", i)
		}
	}
	marks, order := make([]Mark, n), make([]uint32, n)
	for i := range marks {
		marks[i], order[i] = markOf(d.bytes(i)), uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(marks[a].Compare(marks[b]), cmp.Compare(a, b)) })
	remap = make([]uint32, n+1)
	out = Dictionary{texts: append(make([]byte, 0, len(d.texts)), Separator), starts: append(make([]uint64, 0, n+1), 1), marks: make([]Mark, 1, n+1)}
	last := -1
	for _, old := range order {
		switch text := d.bytes(int(old)); {
		case last < 0 || marks[old] != marks[last]:
			out.append(text, marks[old])
			last = int(old)
		case !bytes.Equal(text, d.bytes(last)):
			return out, nil, fmt.Errorf("two texts have one mark: %q and %q", text, d.bytes(last))
		}
		remap[old+1] = uint32(out.Len())
	}
	return out, remap, nil
}

// texts are texts in the order of their marks, each once, without a copy of them on the heap: a dictionary as it is written, which can be
// gone through more than once.
type texts iter.Seq2[[]byte, Mark]

// all are the texts of a dictionary.
func (d *Dictionary) all() texts {
	return func(yield func([]byte, Mark) bool) {
		for i := range d.Len() {
			if !yield(d.bytes(i), d.marks[i+1]) {
				return
			}
		}
	}
}

// kept are those of a dictionary whose codes have a place in remap; the others are 0 there.
func (d *Dictionary) kept(remap []uint32) texts {
	return func(yield func([]byte, Mark) bool) {
		for code := 1; code < len(remap); code++ {
			if remap[code] != 0 && !yield(d.bytes(code-1), d.marks[code]) {
				return
			}
		}
	}
}

// united are the texts of several dictionaries, each once. codes, where it is not nil, gets for each code of the first one its place among
// them.
func united(codes []uint32, all ...*Dictionary) texts {
	return func(yield func([]byte, Mark) bool) {
		at := make([]int, len(all)) // texts of each that were passed
		for place := uint32(1); ; place++ {
			first := -1
			for k, d := range all {
				if at[k] < d.Len() && (first < 0 || d.marks[at[k]+1].Compare(all[first].marks[at[first]+1]) < 0) {
					first = k
				}
			}
			if first < 0 {
				return
			}
			text, mark := all[first].bytes(at[first]), all[first].marks[at[first]+1]
			for k, d := range all {
				if at[k] < d.Len() && d.marks[at[k]+1] == mark {
					at[k]++
					if k == 0 && codes != nil {
						codes[at[0]] = place
					}
				}
			}
			if !yield(text, mark) {
				return
			}
		}
	}
}

// size is the number of texts, and the bytes of them as Flat has them.
func (t texts) size() (count, flat int64) {
	flat = 1
	for text := range t {
		count++
		flat += int64(len(text)) + 1
	}
	return count, flat
}

// readDictionary views n texts in a mapping, once everything about them was checked; else it says what is wrong.
func readDictionary(starts []uint64, marks []Mark, texts []byte) (Dictionary, string) {
	n := len(starts) - 1
	if marks[0] != (Mark{}) {
		return Dictionary{}, "the dictionary's mark of null is not zero"
	}
	if len(texts) == 0 || texts[0] != Separator || starts[0] != 1 {
		return Dictionary{}, "the dictionary does not begin with a separator"
	}
	for i := range n {
		from, to := starts[i], starts[i+1]
		switch {
		case to <= from || to > uint64(len(texts)) || texts[to-1] != Separator:
			return Dictionary{}, fmt.Sprintf("text %d of the dictionary lies outside of it", i)
		case !utf8.Valid(texts[from : to-1]):
			return Dictionary{}, fmt.Sprintf("text %d of the dictionary is not UTF-8", i)
		case marks[i].Compare(marks[i+1]) >= 0:
			return Dictionary{}, fmt.Sprintf("text %d of the dictionary is not in the order of marks", i)
		case markOf(texts[from:to-1]) != marks[i+1]:
			return Dictionary{}, fmt.Sprintf("text %d of the dictionary has another mark", i)
		}
	}
	if starts[n] != uint64(len(texts)) {
		return Dictionary{}, "the dictionary has bytes behind its last text"
	}
	if n == 0 {
		return Dictionary{}, ""
	}
	return Dictionary{texts: texts, starts: starts, marks: marks}, ""
}
