package ingest

import (
	"encoding/binary"
	"errors"
)

// maxDeltaBlock bounds the values of a block; writers use 128 or 256.
const maxDeltaBlock = 1 << 20

var errDelta = errors.New("its differences are damaged")

// deltas decodes DELTA_BINARY_PACKED (Encodings.md): a header, the first value, then blocks of differences to the value before, each block
// with a least difference, and in miniblocks of one width of bits what the differences are above it. Sums wrap around.
type deltas struct {
	data   []byte
	narrow bool // values of 32 bits, extended by their sign
	size   int  // values of a miniblock
	minis  int  // miniblocks of a block

	left   int64  // values that next has not given
	value  uint64 // the next one, when begun is false; else the last one
	begun  bool
	least  uint64
	widths []byte // of the miniblocks of this block that are still to come
	ahead  int    // differences of the miniblock at hand that are still to come
	width  uint64 // of each, in bits
	bit    uint64 // where the next one begins
}

// newDeltas reads the header; the values are present many, at least one.
func newDeltas(data []byte, narrow bool, present int64) (*deltas, error) {
	d := &deltas{narrow: narrow, left: present}
	var header [3]uint64 // values of a block, miniblocks of a block, values
	for i := range header {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errDelta
		}
		header[i], data = v, data[n:]
	}
	block, minis := header[0], header[1]
	if block == 0 || block > maxDeltaBlock || minis == 0 || block%minis != 0 || block/minis%8 != 0 || header[2] != uint64(present) {
		return nil, errDelta
	}
	first, n := binary.Varint(data)
	if n <= 0 {
		return nil, errDelta
	}
	d.value, d.data, d.size, d.minis = uint64(first), data[n:], int(block/minis), int(minis)
	return d, nil
}

// next fills dst, which must not be longer than what is left.
func (d *deltas) next(dst []int64) (int, error) {
	for i := range dst {
		if d.begun {
			if d.ahead == 0 {
				if err := d.miniblock(); err != nil {
					return 0, err
				}
			}
			d.value += d.least + d.difference()
			d.ahead--
		}
		d.begun = true
		d.left--
		dst[i] = int64(d.value)
		if d.narrow {
			dst[i] = int64(int32(d.value))
		}
	}
	return len(dst), nil
}

// difference reads one of the miniblock.
func (d *deltas) difference() (v uint64) {
	if d.width == 0 {
		return 0
	}
	at, shift := d.bit/8, d.bit%8
	v = load64(d.data, at) >> shift
	if shift+d.width > 64 {
		v |= load64(d.data, at+8) << (64 - shift)
	}
	d.bit += d.width
	return v & (1<<d.width - 1)
}

// miniblock turns to the next one, and to the next block where it was the last.
func (d *deltas) miniblock() error {
	if d.bit > 0 { // behind the one at hand
		d.data = d.data[min(d.full(), len(d.data)):]
	}
	if len(d.widths) == 0 {
		least, n := binary.Varint(d.data)
		if n <= 0 || d.minis > len(d.data)-n {
			return errDelta
		}
		d.least, d.widths, d.data = uint64(least), d.data[n:][:d.minis], d.data[n+d.minis:]
	}
	d.width, d.widths, d.bit, d.ahead = uint64(d.widths[0]), d.widths[1:], 0, d.size
	// The last miniblock is padded; some writers leave the padding out.
	if needed := uint64(min(d.left, int64(d.size))) * d.width; d.width > 64 || (needed+7)/8 > uint64(len(d.data)) {
		return errDelta
	}
	return nil
}

// full is how many bytes the miniblock at hand takes with its padding.
func (d *deltas) full() int { return d.size / 8 * int(d.width) }

// end walks over the values without decoding them and returns what lies behind the last miniblock.
func (d *deltas) end() ([]byte, error) {
	for left := d.left - 1; left > 0; left -= int64(d.size) {
		d.left = left
		if err := d.miniblock(); err != nil {
			return nil, err
		}
		if d.full() > len(d.data) {
			return nil, errDelta
		}
		d.bit = 1 // so that the next one begins behind it
	}
	if d.bit > 0 {
		d.data = d.data[d.full():]
	}
	return d.data, nil
}
