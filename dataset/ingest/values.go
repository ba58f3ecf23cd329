package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
)

// values are those of one page that are not null, in their order.
type values[T any] interface {
	// next fills dst, or the beginning of it, and returns how many it gave, at least one. len(dst) must be positive and not more than
	// the page has left. What the values refer to is good until the next call.
	next(dst []T) (int, error)
}

// decoding makes the values of a page, of which there is at least one, of any type that T stands for: integers for INT32 and INT64, floats for FLOAT and DOUBLE, truths
// for BOOLEAN, byteArrays for the others.
type decoding[T any] func(p *page) (values[T], error)

// integers decodes INT32, extended by the sign, and INT64.
func integers(p *page) (values[int64], error) {
	load := loadInt64
	if p.form.physical == int32Type {
		load = loadInt32
	}
	if p.encoding == deltaBinaryPacked {
		return newDeltas(p.data, p.form.physical == int32Type, p.present)
	}
	return fixedWidth(p, load)
}

// floats decodes FLOAT and DOUBLE.
func floats(p *page) (values[float64], error) {
	if p.form.physical == float {
		return fixedWidth(p, loadFloat)
	}
	return fixedWidth(p, loadDouble)
}

// truths decodes BOOLEAN; 1 is true.
func truths(p *page) (values[uint32], error) {
	switch {
	case p.encoding == plain: // which is one run of packed bits
		return truthRuns{&runs{data: p.data, width: 1, packed: true, left: uint64(len(p.data)) * 8}}, nil
	case p.encoding == rle:
		return truthRuns{&runs{data: p.data[4:], width: 1}}, nil // after the length, which was checked
	}
	return nil, p.unfit()
}

// truthRuns are runs as values.
type truthRuns struct{ *runs }

func (b truthRuns) next(dst []uint32) (int, error) { return len(dst), b.runs.next(dst) }

// byteArrays decodes BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY and INT96; the values lie in the page or in the dictionary.
func byteArrays(p *page) (values[[]byte], error) {
	if p.form.physical != byteArray {
		switch p.encoding {
		case plainDictionary, rleDictionary: // not by fixedWidth, which would make a slice of 24 bytes for an entry of one
			return newIndexed(p, func(dst [][]byte, index []uint32) {
				for i, entry := range index {
					dst[i] = p.entry(entry)
				}
			})
		case deltaByteArray:
			v, err := newFronts(p)
			if err == nil {
				v.width = p.form.width
			}
			return v, err
		}
		width := int(p.form.width)
		return fixedWidth(p, func(dst [][]byte, data []byte) {
			for i := range dst {
				dst[i] = data[i*width:][:width:width]
			}
		})
	}
	switch p.encoding {
	case plain:
		return &prefixed{p.data}, nil
	case plainDictionary, rleDictionary:
		return newIndexed(p, func(dst [][]byte, index []uint32) {
			for i, entry := range index {
				dst[i] = p.entry(entry)
			}
		})
	case deltaLengthByteArray:
		return newLengths(p.data, p.present)
	case deltaByteArray:
		return newFronts(p)
	}
	return nil, p.unfit()
}

// unfit says that the page's encoding is not for its type.
func (p *page) unfit() error {
	return fmt.Errorf("its encoding, of number %d, is not one of %v", int64(p.encoding), p.form.physical)
}

// loader reads len(dst) plain values from the beginning of data.
type loader[T any] func(dst []T, data []byte)

func loadInt32(dst []int64, data []byte) {
	for i := range dst {
		dst[i] = int64(int32(binary.LittleEndian.Uint32(data[4*i:])))
	}
}

func loadInt64(dst []int64, data []byte) {
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
}

func loadFloat(dst []float64, data []byte) {
	for i := range dst {
		dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
}

func loadDouble(dst []float64, data []byte) {
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
}

// fixedWidth decodes the encodings that all types of a fixed width have.
func fixedWidth[T any](p *page, load loader[T]) (values[T], error) {
	switch p.encoding {
	case plain:
		return &plainValues[T]{p.data, int(p.form.width), load}, nil
	case plainDictionary, rleDictionary:
		entries, ok := p.dict.values.([]T)
		if !ok {
			entries = make([]T, p.dict.entries)
			load(entries, p.dict.data)
			p.dict.values = entries
		}
		return newIndexed(p, func(dst []T, index []uint32) {
			for i, entry := range index {
				dst[i] = entries[entry]
			}
		})
	case byteStreamSplit:
		return &splitValues[T]{p.data, int(p.form.width), 0, load}, nil
	}
	return nil, p.unfit()
}

// plainValues lie one behind the other.
type plainValues[T any] struct {
	data  []byte
	width int
	load  loader[T]
}

func (v *plainValues[T]) next(dst []T) (int, error) {
	v.load(dst, v.data)
	v.data = v.data[len(dst)*v.width:]
	return len(dst), nil
}

// splitValues are BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, and so on.
type splitValues[T any] struct {
	data  []byte
	width int
	at    int // values that were given
	load  loader[T]
}

// splitPiece is how many bytes are put together at once.
const splitPiece = 1 << 12

func (v *splitValues[T]) next(dst []T) (int, error) {
	n := min(len(dst), max(1, splitPiece/v.width))
	whole, all := make([]byte, n*v.width), len(v.data)/v.width
	for b := range v.width {
		stream := v.data[b*all+v.at:]
		for i := range n {
			whole[i*v.width+b] = stream[i]
		}
	}
	v.load(dst[:n], whole)
	v.at += n
	return n, nil
}

// dictionary is that of a chunk: its plain values, which were checked.
type dictionary struct {
	data    []byte
	entries int64    // -1: there is none
	values  any      // a []T of all entries, of a type of fixed width; made at need
	texts   []uint32 // where each entry of a byte array begins; made at need
	codes   []uint32 // of each entry as a text that is read, 0 of one that was not yet; made at need
}

// entry is the bytes of an entry of a type that is read as bytes.
func (p *page) entry(place uint32) []byte {
	if p.form.physical != byteArray {
		width := int(p.form.width)
		return p.dict.data[int(place)*width:][:width:width]
	}
	if p.dict.texts == nil {
		p.dict.texts = startsOf(p.dict.data, p.dict.entries)
	}
	text := p.dict.data[p.dict.texts[place]:]
	return text[4:][:binary.LittleEndian.Uint32(text)]
}

// places are those of the values in the dictionary that the page refers to.
func places(p *page) (values[uint32], error) {
	return newIndexed(p, func(dst, index []uint32) { copy(dst, index) })
}

// startsOf are the places of byte arrays, each behind its length in four bytes. A page has less than 2^32 bytes.
func startsOf(data []byte, entries int64) []uint32 {
	starts, at := make([]uint32, entries), uint32(0)
	for i := range starts {
		starts[i] = at
		at += 4 + binary.LittleEndian.Uint32(data[at:])
	}
	return starts
}

// indexed are values by their places in the dictionary.
type indexed[T any] struct {
	index   runs
	entries int64
	look    func(dst []T, index []uint32)
	buffer  []uint32
}

func newIndexed[T any](p *page, look func(dst []T, index []uint32)) (values[T], error) {
	return &indexed[T]{index: runs{data: p.data[1:], width: int(p.data[0])}, entries: p.dict.entries, look: look,
		buffer: make([]uint32, min(p.present, indexPiece))}, nil
}

// indexPiece is how many indexes are unpacked at once.
const indexPiece = 1 << 12

func (v *indexed[T]) next(dst []T) (int, error) {
	index := v.buffer[:min(len(dst), len(v.buffer))]
	if err := v.index.next(index); err != nil {
		return 0, err
	}
	highest := uint32(0)
	for _, entry := range index {
		highest = max(highest, entry)
	}
	if int64(highest) >= v.entries {
		return 0, errValues
	}
	v.look(dst, index)
	return len(index), nil
}

// prefixed are byte arrays, each behind its length in four bytes.
type prefixed struct{ data []byte }

func (v *prefixed) next(dst [][]byte) (int, error) {
	for i := range dst {
		n := binary.LittleEndian.Uint32(v.data)
		dst[i], v.data = v.data[4:][:n], v.data[4+n:]
	}
	return len(dst), nil
}

// lengths are DELTA_LENGTH_BYTE_ARRAY: the lengths of all byte arrays, then their bytes.
type lengths struct {
	lengths *deltas
	buffer  []int64
	data    []byte
}

func newLengths(data []byte, present int64) (*lengths, error) {
	d, rest, err := deltaBlock(data, present)
	return &lengths{lengths: d, data: rest, buffer: make([]int64, min(present, indexPiece))}, err
}

// deltaBlock returns the values of the numbers at the beginning of data, and what lies behind them.
func deltaBlock(data []byte, present int64) (*deltas, []byte, error) {
	walker, err := newDeltas(data, true, present)
	if err != nil {
		return nil, nil, err
	}
	rest, err := walker.end()
	if err != nil {
		return nil, nil, err
	}
	d, err := newDeltas(data, true, present)
	return d, rest, err
}

func (v *lengths) next(dst [][]byte) (int, error) {
	some := v.buffer[:min(len(dst), len(v.buffer))]
	if _, err := v.lengths.next(some); err != nil {
		return 0, err
	}
	for i, n := range some {
		if n < 0 || n > int64(len(v.data)) {
			return 0, errValues
		}
		dst[i], v.data = v.data[:n], v.data[n:]
	}
	if v.lengths.left == 0 && !padding(v.data) { // as for plain values: other bytes that no value takes are damage
		return 0, errValues
	}
	return len(some), nil
}

// fronts are DELTA_BYTE_ARRAY: how many bytes each value has in common with the one before, and the others as lengths.
type fronts struct {
	common *deltas
	rest   *lengths
	width  int64 // of every value, 0 where they differ
	last   []byte
	room   []byte
}

// frontPiece bounds the bytes of values that are put together at once, where one value is not larger.
const frontPiece = 1 << 20

func newFronts(p *page) (*fronts, error) {
	common, rest, err := deltaBlock(p.data, p.present)
	if err != nil {
		return nil, err
	}
	suffixes, err := newLengths(rest, p.present)
	return &fronts{common: common, rest: suffixes}, err
}

func (v *fronts) next(dst [][]byte) (int, error) {
	v.room = make([]byte, 0, cap(v.room)) // values may be kept until the next call, so not their memory
	for i := range dst {
		var common [1]int64
		var rest [1][]byte
		if _, err := v.common.next(common[:]); err != nil {
			return 0, err
		}
		if _, err := v.rest.next(rest[:]); err != nil {
			return 0, err
		}
		n := common[0]
		if n < 0 || n > int64(len(v.last)) || v.width > 0 && n+int64(len(rest[0])) != v.width {
			return 0, errValues
		}
		from := len(v.room)
		v.room = append(append(v.room, v.last[:n]...), rest[0]...)
		v.last = v.room[from:]
		dst[i] = v.last
		if len(v.room) >= frontPiece {
			return i + 1, nil
		}
	}
	return len(dst), nil
}
