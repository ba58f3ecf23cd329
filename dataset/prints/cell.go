package prints

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
)

// Significant digits that cells are compared by.
const (
	// digits are those of numbers: what single precision, and text of six digits, keep.
	digits = 6
	// longDigits are those of times, and of whole numbers from a million on, which are times as often as not: a millisecond in this century is one of 12.
	longDigits = 12
	// border is where a number between two of so many digits goes up. It is no decimal fraction of a few digits, so that numbers that people write never lie next to it,
	// where the last bit of a number would decide.
	border = 0.5 - 0.03713906763541
)

// Key is what prints are keyed by. Without it nobody can tell whether a value is among them.
type Key [32]byte

// hasher makes tokens. It is not for concurrent use.
type hasher struct {
	numbers, texts cipher.Block
	in, out        [aes.BlockSize]byte
	memory         [][]remembered // of each column; nil where nothing is remembered
}

// remembered is the token of a number that was met in a column. A token of none is a free place.
type remembered struct{ bits, token uint64 }

const (
	// memoryBits is how many numbers of a column are remembered at most, as a power of two: most columns of counts, codes and grades have no more.
	memoryBits = 12
	// memoryNumbers is how many are of all columns of a table together: 2 MB, so that they stay in a processor's cache.
	memoryNumbers = 1 << 17
)

// remembering is the hasher, which then remembers the tokens of numbers in a table of so many columns.
func (h *hasher) remembering(columns int) *hasher {
	width := min(memoryBits, bits.Len(uint(memoryNumbers/max(1, columns)))-1)
	if width < 4 {
		return h
	}
	h.memory = make([][]remembered, columns)
	for i := range h.memory {
		h.memory[i] = make([]remembered, 1<<width)
	}
	return h
}

// cell is the token of a row's cell in one of the columns.
func (h *hasher) cell(columns []column, i, row int) uint64 {
	c := &columns[i]
	if h.memory == nil || c.Kind != dataset.Number && c.Kind != dataset.Time {
		return c.at(h, row)
	}
	x := math.Float64bits(c.Numbers[row])
	m := h.memory[i]
	place := &m[x*0x9E3779B97F4A7C15>>32*uint64(len(m))>>32] // Fibonacci hashing
	if place.token != none && place.bits == x {
		return place.token
	}
	*place = remembered{x, c.at(h, row)}
	return place.token
}

func (k Key) hasher() *hasher {
	block := func(purpose string) cipher.Block {
		sum := sha256.Sum256(append([]byte(purpose), k[:]...))
		b, err := aes.NewCipher(sum[:])
		if err != nil {
			panic(err) // 32 bytes
		}
		return b
	}
	return &hasher{numbers: block("holdoutd prints: numbers 1\n"), texts: block("holdoutd prints: texts 1\n")}
}

// none is the token of what has none: a null, or an empty text.
const none = 0

// token is that of a mantissa, keyed. AES is a pseudorandom permutation of 16 bytes, so half of its output is a keyed hash.
func (h *hasher) token(b cipher.Block) uint64 {
	b.Encrypt(h.out[:], h.in[:])
	return max(1, binary.LittleEndian.Uint64(h.out[:]))
}

// mantissa is the token of digits of a number, the point left out: numbers in other units that differ by a power of ten have one token.
func (h *hasher) mantissa(m int64) uint64 {
	for m != 0 && m%10 == 0 {
		m /= 10
	}
	binary.LittleEndian.PutUint64(h.in[:], uint64(m))
	binary.LittleEndian.PutUint64(h.in[8:], 1)
	return h.token(h.numbers)
}

// number is the token of a number, as significant digits.
func (h *hasher) number(x float64) uint64 {
	if x != x {
		return none
	}
	n := digits
	if a := math.Abs(x); a >= 1e6 && math.Abs(x-math.Round(x)) <= 1e-11*a {
		n = longDigits
	}
	return h.mantissa(significant(x, n))
}

// time is the token of microseconds since 1970.
func (h *hasher) time(x float64) uint64 {
	if x != x {
		return none
	}
	return h.mantissa(significant(x, longDigits))
}

// significant is a number's first n digits, as a whole number with its sign.
func significant(x float64, n int) int64 {
	a := math.Abs(x)
	if a == 0 || a > math.MaxFloat64 {
		return 0
	}
	least, most := powers[n-1], powers[n]
	e := exponent(a)
	m := scale(a, n-1-e)
	switch { // it may be one too low
	case m < least:
		m = scale(a, n-e)
	case m >= most:
		m = scale(a, n-2-e)
	}
	whole := int64(math.Floor(float64(m + (1 - border))))
	if x < 0 {
		return -whole
	}
	return whole
}

// exponent is the whole part of the binary logarithm of a positive number, as a decimal one: the decimal exponent, or one less.
func exponent(a float64) int {
	e := int(math.Float64bits(a)>>52) - 1023
	if e == -1023 { // no leading one
		_, e = math.Frexp(a)
		e--
	}
	e = e * 78913 >> 18 // log10(2) = 78913.2 / 2^18: right for all exponents that there are
	if 0 <= e && e+1 < len(powers) && a >= powers[e+1] {
		e++
	}
	return e
}

// powers are those of ten that floating point has exactly.
var powers = func() (p [23]float64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// scale is x 10^e. The conversions keep a compiler from fusing operations, so that all machines find the same digits.
func scale(x float64, e int) float64 {
	const step = len(powers) - 1
	for ; e > step; e -= step {
		x = float64(x * powers[step])
	}
	for ; e < -step; e += step {
		x = float64(x / powers[step])
	}
	if e < 0 {
		return float64(x / powers[-e])
	}
	return float64(x * powers[e])
}

// timeForms are spellings of times; texts in them have the tokens of the times.
var timeForms = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", time.DateOnly}

// text is the token of a text: that of the number, condition or time that it spells, or of its letters, whether large or small, without space around them.
func (h *hasher) text(s string) uint64 {
	s = strings.ToLower(strings.TrimSpace(s))
	switch {
	case s == "":
		return none
	case s == "true":
		return h.number(1)
	case s == "false":
		return h.number(0)
	case s[0] >= '0' && s[0] <= '9' || s[0] == '-' || s[0] == '+' || s[0] == '.':
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			return h.number(x)
		}
		if len(s) >= len(time.DateOnly) && s[4] == '-' {
			for _, form := range timeForms {
				if t, err := time.Parse(form, strings.ToUpper(s)); err == nil {
					return h.time(float64(t.UnixMicro()))
				}
			}
		}
	}
	sum := sha256.Sum256([]byte(s))
	copy(h.in[:], sum[:])
	return h.token(h.texts)
}

// column is a column that is being read as tokens.
type column struct {
	*dataset.Column
	texts []uint64  // of a text column: the token of each code
	bools [3]uint64 // of a column of conditions
}

// at is the token of a row's cell.
func (c *column) at(h *hasher, row int) uint64 {
	switch c.Kind {
	case dataset.Text:
		return c.texts[c.Codes[row]]
	case dataset.Bool:
		return c.bools[c.Bools[row]]
	case dataset.Time:
		return h.time(c.Numbers[row])
	default:
		return h.number(c.Numbers[row])
	}
}

// columnsOf are some columns of a table, as tokens; used says which.
func columnsOf(h *hasher, t *dataset.Table, used []bool) []column {
	var all []column
	for i := range t.Columns() {
		if !used[i] {
			continue
		}
		c := column{Column: t.Column(i)}
		switch c.Kind {
		case dataset.Bool:
			c.bools = [3]uint64{h.number(0), h.number(1), none}
		case dataset.Text:
			c.texts = make([]uint64, c.Dictionary.Len()+1)
			for i := range c.Dictionary.Len() {
				c.texts[i+1] = h.text(c.Dictionary.Text(i))
			}
		}
		all = append(all, c)
	}
	return all
}

// numbering finds out whether values are little more than the numbers of rows, of which the whole table has so many: whole multiples of a power of ten, seldom the same, and
// close together. The first rows of any two tables have such numbers in common: a token leaves the point out, so that steps of a tenth are steps of one.
type numbering struct {
	low, high float64
	unit      int  // the exponent of the largest power of ten, of those that people count in, of which all values are whole multiples
	not       bool // they are none
	rows      int  // that were looked at
	seen      map[float64]struct{}
	looked    int // values, for repetitions
}

// The powers of ten that people count in.
const largestUnit, smallestUnit = 6, -6

func newNumbering() *numbering {
	return &numbering{low: math.Inf(1), high: math.Inf(-1), unit: largestUnit, seen: map[float64]struct{}{}}
}

// add looks at the next values, of so many in all.
func (n *numbering) add(values []float64, all int) {
	const most = 1 << 12 // of the values that are looked at for repetitions
	if n.not {
		return
	}
	for _, v := range values {
		if v != v || math.IsInf(v, 0) {
			n.not = true
			return
		}
		n.low, n.high = min(n.low, v), max(n.high, v)
	}
	for !wholes(values, n.unit) {
		if n.unit--; n.unit < smallestUnit {
			n.not = true
			return
		}
	}
	step := max(1, all/most)
	for i := (step - n.rows%step) % step; i < len(values); i += step {
		n.seen[values[i]] = struct{}{}
		n.looked++
	}
	n.rows += len(values)
}

// numbers says it, of a table that has so many rows in all its parts.
func (n *numbering) numbers(inAll int) bool {
	if n.not || n.rows == 0 || scale(n.high, -n.unit)-scale(n.low, -n.unit) >= 4*float64(max(inAll, n.rows)) {
		return false
	}
	return len(n.seen) > n.looked*19/20
}

// wholes reports whether all values are whole multiples of a power of ten.
func wholes(values []float64, exponent int) bool {
	for _, v := range values {
		m := scale(v, -exponent)
		// A decimal fraction is the nearest binary one, so that its multiple is off by some of its last bits.
		if math.Abs(m-math.Round(m)) > math.Abs(m)*0x1p-50 {
			return false
		}
	}
	return true
}
