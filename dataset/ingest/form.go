package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// valueForm is what the bytes of a column's values must look like.
type valueForm struct {
	physical physicalType
	width    int64 // bytes of a plain value; 0: booleans and byte arrays
	optional bool  // has definition levels, 0 null and 1 value
}

func formOf(physical physicalType, typeLength int64, optional bool) valueForm {
	f := valueForm{physical: physical, optional: optional}
	switch physical {
	case int32Type, float:
		f.width = 4
	case int64Type, double:
		f.width = 8
	case int96:
		f.width = 12
	case fixedLenByteArray:
		f.width = typeLength
	}
	return f
}

// maxIndexBits is the widest index into a dictionary, whose size is a 32-bit number.
const maxIndexBits = 32

var (
	errLevels = errors.New("its levels are damaged")
	errValues = errors.New("its values are damaged")
)

// maxPadding is how many zeros may stand behind the values of a page. fastparquet writes eight into each data page of version 1, so that its own reader may load whole
// words; a cache line is the most that anybody aligns to. More than that is not padding, but values that the header does not count.
const maxPadding = 64

// padding reports whether what a page has behind its values is nothing: few zeros, or no bytes.
func padding(rest []byte) bool {
	return len(rest) <= maxPadding && !slices.ContainsFunc(rest, func(b byte) bool { return b != 0 })
}

// check returns the values of a page, without the padding behind them, or reports what cannot be what the page's header says: present is how many there must be, dictionary how
// many entries the chunk's dictionary has, -1 for none. It looks at lengths and counts alone; a decoder of values relies on them.
func (f valueForm) check(data []byte, as encoding, present, dictionary int64) ([]byte, error) {
	switch as {
	case plain:
		return f.checkPlain(data, present)
	case rleDictionary, plainDictionary:
		switch {
		case present == 0:
			return data, nil // where all values are null, some writers leave the dictionary out
		case dictionary < 0:
			return nil, errors.New("it refers to a dictionary that the column does not have")
		case len(data) == 0 || dictionary == 0:
			return nil, errValues
		case data[0] > maxIndexBits:
			return nil, fmt.Errorf("its indexes have %d bits, at most %d are possible", data[0], maxIndexBits)
		}
		_, err := countRuns(data[1:], int(data[0]), present, uint64(dictionary)-1)
		return data, err
	case rle:
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			if present == 0 && len(data) == 0 {
				return data, nil
			}
			return nil, errValues
		}
		_, err := countRuns(data[4:][:binary.LittleEndian.Uint32(data)], 1, present, 1)
		return data, err
	case deltaBinaryPacked, deltaLengthByteArray, deltaByteArray:
		return data, checkDelta(data, present)
	case byteStreamSplit:
		n := f.width * present
		if f.width <= 0 || int64(len(data)) < n || !padding(data[n:]) {
			return nil, errValues
		}
		return data[:n], nil // the streams begin at multiples of the number of values
	}
	return nil, fmt.Errorf("its encoding, of number %d, is not known", int64(as))
}

// checkPlain returns plain values without the padding behind them, or reports data that is not so many values.
func (f valueForm) checkPlain(data []byte, present int64) ([]byte, error) {
	length, whole := int64(0), true
	switch f.physical {
	case boolean:
		length = (present + 7) / 8
	case byteArray:
		for rest := data; present > 0 && whole; present-- {
			if whole = len(rest) >= 4 && uint64(binary.LittleEndian.Uint32(rest)) <= uint64(len(rest)-4); whole {
				n := 4 + int64(binary.LittleEndian.Uint32(rest))
				length, rest = length+n, rest[n:]
			}
		}
	default:
		length = f.width * present
	}
	if !whole || length < 0 || length > int64(len(data)) || !padding(data[length:]) {
		return nil, errors.New("its plain values are more or fewer bytes than its header says; write the file again, for example with pyarrow")
	}
	return data[:length], nil
}

// checkDelta compares the number of values in the header of delta encoding: block size, blocks' parts, values, first.
func checkDelta(data []byte, present int64) error {
	if present == 0 && len(data) == 0 {
		return nil
	}
	var numbers [3]uint64
	for i := range numbers {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return errValues
		}
		numbers[i], data = v, data[n:]
	}
	if numbers[2] != uint64(present) {
		return fmt.Errorf("it has %d values, its header and levels say %d", numbers[2], present)
	}
	return nil
}

// levelsV1 counts the values that are there in a data page of version 1, and the bytes of its levels.
func levelsV1(data []byte, as encoding, values int64) (present int64, length int, err error) {
	switch as {
	case rle:
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return 0, 0, errLevels
		}
		length = 4 + int(binary.LittleEndian.Uint32(data))
		present, err = countLevels(data[4:length], values)
		return present, length, err
	case bitPacked: // deprecated; from the highest bit on, which changes no count of whole bytes
		length = int((values + 7) / 8)
		if length > len(data) {
			return 0, 0, errLevels
		}
		for i := range values {
			present += int64(data[i/8]>>(7-i%8)) & 1
		}
		return present, length, nil
	}
	return 0, 0, fmt.Errorf("the encoding of its levels, of number %d, is not known", int64(as))
}

// countLevels counts the ones among levels of one bit.
func countLevels(data []byte, values int64) (present int64, err error) {
	if present, err = countRuns(data, 1, values, 1); err != nil {
		return 0, errLevels
	}
	return present, nil
}

// countRuns walks the runs of the hybrid of run lengths and packed bits, which must hold exactly so many values of this
// width, and returns how many of one bit are 1. The last packed run may be padded, a run of one value may not go on
// beyond the end, and its value may not be above highest.
func countRuns(data []byte, width int, values int64, highest uint64) (ones int64, err error) {
	bytes := (width + 7) / 8
	for values > 0 {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return 0, errValues
		}
		data = data[n:]
		if head&1 == 0 {
			run := head >> 1
			if run == 0 || run > uint64(values) || bytes > len(data) {
				return 0, errValues
			}
			var v uint64
			for i, b := range data[:bytes] {
				v |= uint64(b) << (8 * i)
			}
			if v > highest {
				return 0, errValues
			}
			ones += int64(run * (v & 1))
			values, data = values-int64(run), data[bytes:]
			continue
		}
		groups := head >> 1
		if groups == 0 || width > 0 && groups > uint64(len(data)/width) {
			return 0, errValues
		}
		here := min(int64(min(groups, uint64(values)))*8, values) // the rest of the last group is padding
		if width == 1 {
			ones += countBits(data, here)
		}
		values, data = values-here, data[int(groups)*width:]
	}
	return ones, nil
}

// countBits counts the ones among the first n bits, from the lowest of each byte on.
func countBits(data []byte, n int64) (ones int64) {
	for ; n >= 64; n -= 64 {
		ones += int64(bits.OnesCount64(binary.LittleEndian.Uint64(data)))
		data = data[8:]
	}
	for ; n > 0; n -= 8 {
		b := data[0]
		if n < 8 {
			b &= 1<<n - 1
		}
		ones += int64(bits.OnesCount8(b))
		data = data[1:]
	}
	return ones
}
