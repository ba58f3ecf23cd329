package ingest

import "encoding/binary"

// runs decodes the hybrid of run lengths and packed bits (Encodings.md, RLE = 3), in which levels, indexes and booleans lie. Its data has
// been walked by countRuns: where it is damaged all the same, next fails.
type runs struct {
	data  []byte
	width int // bits of a value, at most maxIndexBits

	left   uint64 // values of the run at hand
	packed bool   // the run is of packed bits, from bit on
	bit    uint64
	value  uint32 // of a run of one value
}

// next fills dst.
func (r *runs) next(dst []uint32) error {
	for len(dst) > 0 {
		if r.left == 0 {
			if err := r.begin(); err != nil {
				return err
			}
		}
		n := int(min(uint64(len(dst)), r.left))
		if r.packed {
			unpack(dst[:n], r.data, r.bit, r.width)
			r.bit += uint64(n) * uint64(r.width)
		} else {
			for i := range dst[:n] {
				dst[i] = r.value
			}
		}
		if r.left -= uint64(n); r.left == 0 && r.packed {
			r.data = r.data[r.bit/8:]
		}
		dst = dst[n:]
	}
	return nil
}

// begin turns to the next run.
func (r *runs) begin() error {
	head, n := binary.Uvarint(r.data)
	if n <= 0 || head>>1 == 0 {
		return errValues
	}
	r.data = r.data[n:]
	if head&1 == 0 {
		bytes := (r.width + 7) / 8
		if bytes > len(r.data) {
			return errValues
		}
		r.value = 0
		for i, b := range r.data[:bytes] {
			r.value |= uint32(b) << (8 * i)
		}
		r.left, r.packed, r.data = head>>1, false, r.data[bytes:]
		return nil
	}
	groups := head >> 1
	if r.width > 0 && groups > uint64(len(r.data)/r.width) {
		return errValues
	}
	r.left, r.packed, r.bit = min(groups, 1<<32)*8, true, 0
	return nil
}

// unpack reads values of up to 32 bits, the lowest bit first, from a bit of data on. All bits must lie within data.
func unpack(dst []uint32, data []byte, bit uint64, width int) {
	mask, last := uint64(1)<<width-1, len(data)-8
	for len(dst) > 0 && int(bit/8) <= last { // eight bytes at a time while there are so many
		dst[0] = uint32(binary.LittleEndian.Uint64(data[bit/8:]) >> (bit % 8) & mask)
		bit += uint64(width)
		dst = dst[1:]
	}
	for i := range dst {
		dst[i] = uint32(load64(data, bit/8) >> (bit % 8) & mask)
		bit += uint64(width)
	}
}

// load64 reads eight bytes, the lowest first; those beyond data are 0.
func load64(data []byte, at uint64) (v uint64) {
	if at+8 <= uint64(len(data)) {
		return binary.LittleEndian.Uint64(data[at:])
	}
	for i := at; i < uint64(len(data)); i++ {
		v |= uint64(data[i]) << (8 * (i - at))
	}
	return v
}

// packedLevels decodes definition levels of one bit that are packed from the highest bit of each byte on, which writers before 2013 did
// (BIT_PACKED = 4).
type packedLevels struct {
	data []byte
	bit  int
}

// next fills dst.
func (p *packedLevels) next(dst []uint32) error {
	for i := range dst {
		if p.bit/8 >= len(p.data) {
			return errLevels
		}
		dst[i] = uint32(p.data[p.bit/8]>>(7-p.bit%8)) & 1
		p.bit++
	}
	return nil
}
