package lineage

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// Key is the secret under which cells are hashed: 32 random bytes. Sketches of two keys have nothing in common.
type Key [32]byte

// hasher has the keys of the hashes, one for each purpose.
type hasher struct {
	number, time, text uint64
	rank               [orders]uint64
	token              [kinds]uint64
	named, name, set   uint64
}

// newHasher derives them from a key by HKDF-SHA256.
func newHasher(key Key) *hasher {
	raw, err := hkdf.Key(sha256.New, key[:], nil, "holdoutd lineage 1", 8*(3+orders+kinds+3))
	if err != nil {
		panic(err) // only a length beyond 255 hashes can fail
	}
	next := func() (k uint64) {
		k, raw = binary.LittleEndian.Uint64(raw), raw[8:]
		return k
	}
	h := &hasher{number: next(), time: next(), text: next()}
	for i := range h.rank {
		h.rank[i] = next()
	}
	for i := range h.token {
		h.token[i] = next()
	}
	h.named, h.name, h.set = next(), next(), next()
	return h
}

// mix is a keyed hash of one word: two multiplications of 64 by 64 bits, of which both halves are used (as in wyhash). It is quick, and no cipher: what
// is made of it is kept sealed.
func mix(v, key uint64) uint64 {
	high, low := bits.Mul64(v^key, 0x9E3779B97F4A7C15)
	high, low = bits.Mul64(high^low^key, 0xD6E8FEB86659FD93)
	return high ^ low
}

// null is the hash of a cell without a value. It counts as no cell.
const null = 0

// some keeps a hash of a value apart from null.
func some(h uint64) uint64 { return max(h, 1) }

const (
	// keptMantissa is how many bits of a fraction count: 16, some five digits. A float32 has 24, so that of values that were narrowed to it one of 250
	// gets another hash. A change of one in 1e12 gets one with a probability of 1e-7.
	keptMantissa = 16
	// wholeWithin is up to which share of it a number may miss a whole one and be taken for it. Whole numbers count with all their digits: they are ids.
	wholeWithin = 1e-7
)

// numberHash is the hash of a number: of a whole one exactly, of another one to about five digits.
func (h *hasher) numberHash(x float64) uint64 {
	if x != x {
		return null
	}
	if whole := math.RoundToEven(x); whole != 0 && math.Abs(x-whole) <= wholeWithin*math.Abs(x) {
		return some(mix(math.Float64bits(whole), h.number))
	}
	return some(mix(shortened(x), h.number))
}

// shortened are the bits of a number to about five digits.
func shortened(x float64) uint64 {
	const dropped = 52 - keptMantissa
	return (math.Float64bits(x) + 1<<(dropped-1)) &^ (1<<dropped - 1)
}

const (
	// exactHalves is up to which size a number can be rounded by adding and taking away toWhole, whose unit in the last place is 1.
	exactHalves = 1 << 51
	toWhole     = 3 << 51
)

// numberHashes writes the numberHash of each value. Most of the time of a sketch is spent here.
func (h *hasher) numberHashes(dst []uint64, values []float64) {
	key := h.number
	for i, x := range values {
		if !(math.Abs(x) < exactHalves) {
			dst[i] = h.numberHash(x)
			continue
		}
		whole := float64(x+toWhole) - toWhole
		b := shortened(x)
		if whole != 0 && math.Abs(x-whole) <= wholeWithin*math.Abs(x) {
			b = math.Float64bits(whole)
		}
		dst[i] = some(mix(b, key))
	}
}

// timeHash is the hash of a time in microseconds, to the second.
func (h *hasher) timeHash(microseconds float64) uint64 {
	if microseconds != microseconds {
		return null
	}
	return some(mix(uint64(int64(math.Floor(microseconds/1e6))), h.time))
}

// layouts are the spellings of times that count as times.
var layouts = []string{"2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04", "2006-01-02T15:04"}

// textHash is the hash of a text with its mark; of one that spells a number, a truth value or a time it is that of the value.
func (h *hasher) textHash(raw []byte, mark dataset.Mark) uint64 {
	text := bytes.TrimSpace(raw)
	if len(text) == 0 {
		return null
	}
	switch c := text[0]; {
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		if v, ok := h.spelled(string(text[:min(len(text), longest+1)])); ok {
			return v
		}
	case len(text) == 4 && strings.EqualFold(string(text), "true"):
		return h.numberHash(1)
	case len(text) == 5 && strings.EqualFold(string(text), "false"):
		return h.numberHash(0)
	}
	if len(text) < len(raw) {
		mark = dataset.MarkOf(string(text))
	}
	return some(mix(mark.High, h.text))
}

// longest is how many bytes the spelling of a number or a time has at most.
const longest = 32

// spelled is the hash of the number or the time that a text spells, if it does.
func (h *hasher) spelled(text string) (uint64, bool) {
	if len(text) > longest || text[len(text)-1] > '9' && text[len(text)-1] != 'Z' {
		return 0, false // most texts that begin with a digit end here
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(x, 0) {
		return h.numberHash(x), true
	}
	if len(text) >= len(layouts[0]) && text[4] == '-' {
		for _, layout := range layouts {
			if t, err := time.Parse(layout, text); err == nil {
				return some(mix(uint64(t.Unix()), h.time)), true
			}
		}
	}
	return 0, false
}

// column is a column whose cells are hashed.
type column struct {
	*dataset.Column
	codes   []uint64 // of texts: the hash of each code; nil where there are more texts than rows
	bits    uint32   // how much a cell tells, 0..maxBits, or longBits
	chooses bool     // its cells choose rows
	tells   uint16   // the same in parts of tellsUnit, which rare flags do, too
	weight  float64  // 1/bits², by which ranks are multiplied; 0 where the column tells nothing
	name    uint64   // the hash of its name
}

// at writes the hashes of the cells of some rows, at most a block.
func (c *column) at(dst []uint64, h *hasher, rows []int) {
	if c.Kind == dataset.Number {
		var values [block]float64
		for i, row := range rows {
			values[i] = c.Numbers[row]
		}
		h.numberHashes(dst, values[:len(rows)])
		return
	}
	for i, row := range rows {
		c.hashes(dst[i:i+1], h, row)
	}
}

// hashes writes the hashes of the cells from..from+len(dst)-1.
func (c *column) hashes(dst []uint64, h *hasher, from int) {
	switch c.Kind {
	case dataset.Bool:
		of := [3]uint64{h.numberHash(0), h.numberHash(1), null}
		for i, b := range c.Bools[from : from+len(dst)] {
			dst[i] = of[min(b, 2)]
		}
	case dataset.Text:
		for i, code := range c.Codes[from : from+len(dst)] {
			switch {
			case code == 0:
				dst[i] = null
			case c.codes != nil:
				dst[i] = c.codes[code]
			default:
				dst[i] = h.textHash([]byte(c.Dictionary.Text(int(code)-1)), c.Dictionary.Marks()[code])
			}
		}
	case dataset.Time:
		for i, v := range c.Numbers[from : from+len(dst)] {
			dst[i] = h.timeHash(v)
		}
	default:
		h.numberHashes(dst, c.Numbers[from:from+len(dst)])
	}
}

const (
	// maxBits is the most that one cell may tell of its row, so that a number with many digits does not outweigh all others.
	maxBits = 8
	// longBits is what a long text tells, of longText bytes on average, where hardly two rows have the same: who has a document again has its row again, also beside some features of it. An id is shorter.
	longBits = 15
	longText = 40
	// tellsUnit is one bit of what a column tells: a flag of one in a hundred rows tells 7 parts of it.
	tellsUnit = 256
	// tellingBits is what the cells of a column tell at least by which rows are chosen: then one value chooses few rows.
	tellingBits = 5
	// judged is from how many rows a column's bits are estimated.
	judged = 512
)

// newColumn hashes a column's dictionary and estimates how much a cell tells: the collision entropy, -log2 of the probability that two rows have one value.
func newColumn(h *hasher, c *dataset.Column, rows int) *column {
	of := &column{Column: c, name: mix(dataset.MarkOf(strings.ToLower(strings.TrimSpace(c.Name))).High, h.name)}
	if c.Kind == dataset.Text && c.Dictionary.Len() <= rows {
		of.codes = make([]uint64, c.Dictionary.Len()+1)
		flat, marks := c.Dictionary.Flat()[1:], c.Dictionary.Marks()
		for code := 1; code < len(of.codes); code++ {
			end := bytes.IndexByte(flat, dataset.Separator)
			of.codes[code] = h.textHash(flat[:end], marks[code])
			flat = flat[end+1:]
		}
	}
	var room [judged]uint64
	seen, n := room[:0], min(rows, judged)
	for i := range n {
		var one [1]uint64
		if of.hashes(one[:], h, int(int64(i)*int64(rows)/int64(n))); one[0] != null {
			seen = append(seen, one[0])
		}
	}
	slices.Sort(seen)
	alike, same := 0, 0
	for i := 1; i < len(seen); i++ {
		if same++; seen[i] != seen[i-1] {
			same = 0
		}
		alike += same // pairs of a cell with those before it
	}
	if pairs := len(seen) * (len(seen) - 1) / 2; pairs > 0 && alike < pairs {
		told := -math.Log2((float64(alike) + 0.5) / (float64(pairs) + 0.5))
		long := c.Kind == dataset.Text && (alike == 0 || told >= longBits) && len(c.Dictionary.Flat()) > longText*c.Dictionary.Len()
		told = min(told, maxBits)
		of.chooses = told >= tellingBits
		of.bits, of.weight = uint32(told+0.5), 1/(told*told)
		of.tells = uint16(told*tellsUnit + 0.5)
		if long {
			of.bits, of.tells = longBits, longBits*tellsUnit
		}
	}
	return of
}
