package kernel

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// table says of each code of a column whether a test of its text holds, or which number its text has. It is made before the first
// block is run, in a number of steps, and in memory, that the literals and the dictionary's public shape determine: no text ends a
// search early, and what the dictionary has less than its rounded size is made up for.
type table struct {
	op         rowfn.Op // OpIn, OpHasPrefix, OpHasSuffix, OpContains or OpLookup
	dictionary *dataset.Dictionary
	literals   []string
	numbers    []float64 // OpLookup: of each literal
	null       float64   // OpLookup

	bits  []uint64  // bit code%64 of word code/64; not OpLookup
	bytes []uint8   // the same as a byte for each code, in small tables
	list  []float64 // by code; OpLookup
}

// smallTable is up to how many places a table has bytes too, which are read faster while they stay in the first-level cache.
const smallTable = 1 << 12

// A table has a place for null, one for each text of the rounded dictionary, and one that no row has, for literals that are absent.
func (t *table) places() int64 { return t.dictionary.Shape().Texts + 2 }

// size is the table's bytes.
func (t *table) size() int64 {
	if t.op == rowfn.OpLookup {
		return 8 * t.places()
	}
	return bitBytes(t.places())
}

func bitBytes(places int64) int64 {
	words := places/64 + 1
	if places <= smallTable {
		return (8 + 64) * words
	}
	return 8 * words
}

// TableBytes is how many bytes the table of a test of texts or of a lookup takes over a dictionary of a shape.
func TableBytes(s dataset.TextShape, lookup bool) int64 {
	if lookup {
		return 8 * (s.Texts + 2)
	}
	return bitBytes(s.Texts + 2)
}

// place is where a literal's value goes.
func (t *table) place(literal string) int64 {
	code, ok := t.dictionary.Find(literal)
	if !ok {
		return t.places() - 1
	}
	return int64(code)
}

func (t *table) fill() {
	if t.op == rowfn.OpLookup {
		t.list = make([]float64, t.places())
		for i, literal := range t.literals {
			t.list[t.place(literal)] = t.numbers[i]
		}
		t.list[0] = t.null
		return
	}
	t.bits = make([]uint64, t.places()/64+1)
	for _, literal := range t.literals {
		switch {
		case t.op == rowfn.OpIn:
			at := t.place(literal)
			t.bits[at/64] |= 1 << (at % 64)
		case literal == "": // a part of every text
			for i := range t.bits {
				t.bits[i] = ^uint64(0)
			}
			t.bits[0] &^= 1
		default:
			t.scan(literal)
		}
	}
	if t.places() <= smallTable {
		t.bytes = make([]uint8, 64*len(t.bits))
		for i := range t.bytes {
			t.bytes[i] = uint8(t.bits[i/64]>>(i%64)) & 1
		}
	}
}

// wordBits is how many bytes of a literal one step of a scan compares.
const wordBits = 64

// ScanSteps is how many steps it takes to look for a literal in all texts of a dictionary of a shape: one for each of their bytes,
// separators included, and for every 64 bytes of the literal.
func ScanSteps(s dataset.TextShape, literal string) int64 {
	if int64(len(literal)) > s.Bytes {
		return 0
	}
	return s.Bytes * int64((len(literal)+1+wordBits-1)/wordBits)
}

// filler is what is scanned in the place of the bytes that a dictionary has less than its rounded size. No literal has this byte.
var filler = slices.Repeat([]byte{0xFE}, 1<<12)

// scan sets the bits of all texts that contain, begin or end with the literal. All texts are one stream of bytes, with separators
// around them that a prefix begins with and a suffix ends with, so that the three tests are one search: bit j of the state says that
// the last j+1 bytes are the first j+1 of the pattern (Baeza-Yates and Gonnet, A new approach to text searching, 1992). Every byte takes
// the same few operations, whatever it is.
func (t *table) scan(literal string) {
	pattern := []byte(literal)
	switch t.op {
	case rowfn.OpHasPrefix:
		pattern = append([]byte{dataset.Separator}, pattern...)
	case rowfn.OpHasSuffix:
		pattern = append(pattern, dataset.Separator)
	}
	total := t.dictionary.Shape().Bytes
	if int64(len(literal)) > total { // public: no text is so long
		return
	}
	s := newScanner(pattern, t.bits)
	flat := t.dictionary.Flat()
	s.run(flat)
	for left := total - int64(len(flat)); left > 0; left -= int64(len(filler)) {
		s.run(filler[:min(left, int64(len(filler)))])
	}
}

// scanned counts the steps of scans, for tests.
var scanned atomic.Int64

// scanner is the state of a scan.
type scanner struct {
	masks [][256]uint64 // by word of the pattern: bit j of masks[w][b] says that byte 64w+j of the pattern is b
	state []uint64
	last  uint   // the bit of the last byte, in the last word
	code  uint64 // of the text that is being read
	word  uint64 // bits[code/64]
	bits  []uint64
}

func newScanner(pattern []byte, bits []uint64) *scanner {
	words := (len(pattern) + wordBits - 1) / wordBits
	s := &scanner{masks: make([][256]uint64, words), state: make([]uint64, words), last: uint(len(pattern)-1) % wordBits, bits: bits}
	for j, b := range pattern {
		s.masks[j/wordBits][b] |= 1 << (j % wordBits)
	}
	return s
}

func (s *scanner) run(texts []byte) {
	scanned.Add(int64(len(texts) * len(s.state)))
	if len(s.state) > 1 {
		s.runLong(texts)
		return
	}
	state, last, code, word, masks, bits := s.state[0], s.last, s.code, s.word, &s.masks[0], s.bits
	for _, b := range texts {
		state = (state<<1 | 1) & masks[b]
		word |= state >> last & 1 << (code & 63)
		bits[code>>6] = word
		next := code + uint64(bit(b == dataset.Separator))
		word &= (next>>6 - code>>6) - 1 // nothing of it when the next word begins
		code = next
	}
	s.state[0], s.code, s.word = state, code, word
}

// runLong is run for patterns of more than a word.
func (s *scanner) runLong(texts []byte) {
	for _, b := range texts {
		carry := uint64(1)
		for w := range s.state {
			out := s.state[w] >> 63
			s.state[w] = (s.state[w]<<1 | carry) & s.masks[w][b]
			carry = out
		}
		s.word |= s.state[len(s.state)-1] >> s.last & 1 << (s.code & 63)
		s.bits[s.code>>6] = s.word
		next := s.code + uint64(bit(b == dataset.Separator))
		s.word &= (next>>6 - s.code>>6) - 1
		s.code = next
	}
}

// Fill makes the tables of the program, on all processors, once. It returns a [*dataset.CorruptError] where a mapped dictionary
// cannot be read any more; the program must not be run then.
func (p *Program) Fill() error {
	p.filled.Do(func() {
		var next atomic.Int64
		var wait sync.WaitGroup
		damage := make([]error, max(1, min(runtime.GOMAXPROCS(0), len(p.tables))))
		work := func(worker int) {
			damage[worker] = dataset.Guarded(func() {
				for i := next.Add(1) - 1; i < int64(len(p.tables)); i = next.Add(1) - 1 {
					p.tables[i].fill()
				}
			})
		}
		for worker := range len(damage) - 1 {
			wait.Go(func() { work(worker + 1) })
		}
		work(0)
		wait.Wait()
		p.damage = errors.Join(damage...)
	})
	return p.damage
}

// Tables is how many bytes the program's tables take.
func (p *Program) Tables() (bytes int64) {
	for _, t := range p.tables {
		bytes += t.size()
	}
	return bytes
}
