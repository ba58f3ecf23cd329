package dataset

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset/manysha"
)

const (
	// digestBlock is how many rows are hashed together at most: their cells are gathered column by column, so that a
	// table of thousands of columns is read in runs of memory.
	digestBlock = 128
	// digestBytes bounds the gathered cells of one processor; of very wide rows fewer are hashed together.
	digestBytes = 8 << 20
	// longText is the length of texts from which on a cell has the text's hash instead: rows that all have one long
	// text cost no more to hash than others.
	longText = 256
)

// Digest identifies the decoded content of a table whatever the order of its rows and columns, the number of files
// it came in, and the types that its writer chose for the same values.
//
// Each row is hashed with SHA-256 over its cells (columns in the order of their names, a text of 256 bytes or more by its
// own SHA-256); the hashes are added modulo
// 2^256, so that a repeated row counts twice; [Digest.Sum] then takes HMAC-SHA256, under a key, of the schema, the
// number of rows and that sum. Without the key the digest says nothing about rows that one could guess. It is meant
// to recognize a table that comes again, not as proof against someone who searches for two tables of one digest.
type Digest struct {
	fields []Field // in the order of names, Source left out; nil before the first table
	rows   uint64
	sum    [4]uint64 // little-endian limbs
}

// NewDigest returns the digest of no table.
func NewDigest() *Digest { return new(Digest) }

// Add adds the rows of t, on all processors. All tables of one digest need columns of the same names and kinds. After an
// error the digest is worth nothing; one that is [ErrDamaged] says that a mapped table cannot be read.
func (d *Digest) Add(t *Table) error {
	columns := make([]*Column, len(t.columns))
	for i := range columns {
		columns[i] = &t.columns[i]
	}
	slices.SortFunc(columns, func(a, b *Column) int { return strings.Compare(a.Name, b.Name) })
	fields := make([]Field, len(columns))
	for i, c := range columns {
		fields[i] = Field{Name: c.Name, Kind: c.Kind}
	}
	if err := d.count(fields, uint64(t.rows)); err != nil {
		return err
	}

	texts := make([]*longTexts, len(columns))
	rowBytes := 0
	if err := Guarded(func() {
		for i, c := range columns {
			rowBytes += 9
			if c.Kind == Text {
				texts[i] = hashLong(&c.Dictionary)
				rowBytes += texts[i].widest
			}
		}
	}); err != nil {
		return err
	}
	block := min(max(digestBytes/max(rowBytes, 1), 1), digestBlock)
	stride := t.Stride()
	var next atomic.Int64
	var lock sync.Mutex
	var wait sync.WaitGroup
	var damage error
	for range runtime.NumCPU() {
		wait.Go(func() {
			var sum [4]uint64
			h := &rowHasher{columns: columns, texts: texts}
			err := Guarded(func() {
				for {
					from := int(next.Add(int64(block))) - block
					if from >= t.rows {
						break
					}
					h.addRows(&sum, from, min(from+block, t.rows))
					if stride > 0 && from%stride < block {
						t.Release(from-2*stride, from-stride+block)
					}
				}
			})
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				damage = err
			}
			addLimbs(&d.sum, sum)
		})
	}
	wait.Wait()
	t.ReleaseAll()
	return damage
}

// Join adds the tables of other, whose rows need not be read again. It fails as Add does where their columns differ.
func (d *Digest) Join(other *Digest) error {
	if other.fields == nil {
		return nil
	}
	err := d.count(other.fields, other.rows)
	if err == nil {
		addLimbs(&d.sum, other.sum)
	}
	return err
}

// count adds rows with these fields.
func (d *Digest) count(fields []Field, rows uint64) error {
	if d.fields != nil && !slices.Equal(d.fields, fields) {
		return errors.New("dataset: tables of one digest need columns of the same names and kinds")
	}
	d.fields, d.rows = fields, d.rows+rows
	return nil
}

// Sum returns the digest of all tables added so far, under key.
func (d *Digest) Sum(key []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, key)
	b := fmt.Appendf(nil, "holdoutd dataset digest 1\n%d %d\n", d.rows, len(d.fields))
	for _, f := range d.fields {
		b = append(b, byte(f.Kind))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
	}
	for _, limb := range d.sum {
		b = binary.LittleEndian.AppendUint64(b, limb)
	}
	mac.Write(b)
	return [sha256.Size]byte(mac.Sum(nil))
}

// rowHasher gathers the cells of a block of rows, one buffer a row.
type rowHasher struct {
	columns []*Column
	texts   []*longTexts // of the Text columns
	rows    [digestBlock][]byte
	hasher  manysha.Hasher
	sums    [digestBlock][sha256.Size]byte
}

// longTexts are the hashes of a dictionary's long texts.
type longTexts struct {
	hashes map[int][sha256.Size]byte
	widest int // bytes of the longest cell, beside its tag and length
}

func hashLong(d *Dictionary) *longTexts {
	l := &longTexts{hashes: map[int][sha256.Size]byte{}, widest: sha256.Size}
	for i := range d.Len() {
		if text := d.bytes(i); len(text) >= longText {
			l.hashes[i] = sha256.Sum256(text)
		} else {
			l.widest = max(l.widest, len(text))
		}
	}
	return l
}

// addRows adds the hashes of the rows from..to-1, at most digestBlock, to sum.
func (h *rowHasher) addRows(sum *[4]uint64, from, to int) {
	rows := h.rows[:to-from]
	for i := range rows {
		rows[i] = rows[i][:0]
	}
	for i, c := range h.columns {
		switch c.Kind {
		case Bool:
			appendBools(rows, c.Bools[from:to])
		case Text:
			appendTexts(rows, c.Codes[from:to], &c.Dictionary, h.texts[i])
		default:
			appendNumbers(rows, byte(c.Kind), c.Numbers[from:to])
		}
	}
	h.hasher.Sums(h.sums[:], rows)
	for _, hash := range h.sums[:len(rows)] {
		addLimbs(sum, [4]uint64{
			binary.LittleEndian.Uint64(hash[0:]), binary.LittleEndian.Uint64(hash[8:]),
			binary.LittleEndian.Uint64(hash[16:]), binary.LittleEndian.Uint64(hash[24:]),
		})
	}
}

// nullCell is the tag of a null of any kind. Other cells begin with their kind, and their length is known from it
// or stated, so that no two rows have one encoding.
const nullCell = 0

func appendNumbers(rows [][]byte, tag byte, values []float64) {
	for i, v := range values {
		if v != v {
			rows[i] = append(rows[i], nullCell)
			continue
		}
		rows[i] = binary.LittleEndian.AppendUint64(append(rows[i], tag), math.Float64bits(v))
	}
}

func appendBools(rows [][]byte, values []uint8) {
	for i, v := range values {
		if v == NullBool {
			rows[i] = append(rows[i], nullCell)
			continue
		}
		rows[i] = append(rows[i], byte(Bool), v)
	}
}

func appendTexts(rows [][]byte, codes []uint32, dictionary *Dictionary, long *longTexts) {
	for i, code := range codes {
		if code == 0 {
			rows[i] = append(rows[i], nullCell)
			continue
		}
		text := dictionary.bytes(int(code) - 1)
		rows[i] = binary.LittleEndian.AppendUint64(append(rows[i], byte(Text)), uint64(len(text)))
		if len(text) >= longText {
			hash := long.hashes[int(code)-1]
			text = hash[:]
		}
		rows[i] = append(rows[i], text...)
	}
}

// addLimbs adds b to a modulo 2^256.
func addLimbs(a *[4]uint64, b [4]uint64) {
	var carry uint64
	for i := range a {
		a[i], carry = bits.Add64(a[i], b[i], carry)
	}
}
