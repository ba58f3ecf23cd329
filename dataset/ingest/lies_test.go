package ingest

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

// liar draws a file of one column that is well formed but for what it says: each number may be another one, up to those that overflow.
type liar struct {
	t      *rapid.T
	damage int   // bytes that are still to be changed
	lie    int64 // in place of some numbers that stand side by side, since one alone rarely agrees with the rest
	first  int   // of them
	last   int
	at     int // numbers that were asked for
}

var telling = []int64{-1, 0, 1, 7, 8, 33, math.MaxInt32, math.MinInt32, 1 << 31, 1 << 32, 1 << 59, 1 << 60, 1 << 61, 1 << 62, math.MaxInt64, math.MinInt64}

// number is v, or a lie.
func (l *liar) number(v int64) int64 {
	l.at++
	if l.first <= l.at && l.at <= l.last {
		return l.lie
	}
	return v
}

// bytes are those of the values that an encoding makes, with a byte changed as another lie.
func (l *liar) bytes(b []byte) []byte {
	if l.damage > 0 && len(b) > 0 && rapid.Bool().Draw(l.t, "damage") {
		l.damage--
		b = slices.Clone(b)
		b[rapid.IntRange(0, min(len(b)-1, 40)).Draw(l.t, "at")] = rapid.SampledFrom([]byte{0, 1, 2, 31, 32, 33, 64, 65, 0x7f, 0x80, 0xff}).Draw(l.t, "byte")
	}
	return b
}

// integers draws n numbers of an encoding.
func (l *liar) integers(n int) []int64 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 9), rapid.Int64()), n, n).Draw(l.t, "integers")
}

// runs are of n values; those of one value are below bound.
func (l *liar) runs(n, bound int, width int) (out []byte) {
	for n > 0 {
		run := rapid.IntRange(1, n).Draw(l.t, "run")
		if rapid.Bool().Draw(l.t, "packed") {
			groups := (run + 7) / 8
			out = append(binary.AppendUvarint(out, uint64(groups)<<1|1), rapid.SliceOfN(rapid.Byte(), groups*width, groups*width).Draw(l.t, "bits")...)
			n -= min(n, groups*8)
			continue
		}
		out = binary.AppendUvarint(out, uint64(run)<<1)
		v := uint64(rapid.IntRange(0, bound-1).Draw(l.t, "value"))
		for b := range (width + 7) / 8 {
			out = append(out, byte(v>>(8*b)))
		}
		n -= run
	}
	return out
}

// values packs n values of a type, in an encoding of it; dictionary is the number of a dictionary's entries.
func (l *liar) values(physical physicalType, width, n, dictionary int, as encoding) (out []byte) {
	switch {
	case as == rleDictionary:
		return append([]byte{3}, l.runs(n, max(dictionary, 1), 3)...)
	case as == rle:
		packed := l.runs(n, 2, 1)
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(packed))), packed...)
	case as == deltaBinaryPacked && n > 0:
		return deltaEncoded(l.integers(n))
	case (as == deltaLengthByteArray || as == deltaByteArray) && n > 0:
		lengths, sum := make([]int64, n), 0
		for i := range lengths {
			lengths[i] = int64(width)
			sum += width
		}
		if as == deltaByteArray {
			out = deltaEncoded(make([]int64, n))
		}
		return append(append(out, l.bytes(deltaEncoded(lengths))...), make([]byte, sum)...)
	case as == plain && physical == boolean:
		return make([]byte, (n+7)/8)
	case as == plain && physical == byteArray:
		for range n {
			out = append(binary.LittleEndian.AppendUint32(out, uint32(width)), make([]byte, width)...)
		}
		return out
	}
	return make([]byte, n*width)
}

// file draws the file.
func (l *liar) file() []byte {
	t := l.t
	physical := rapid.SampledFrom([]physicalType{boolean, int32Type, int64Type, int96, float, double, byteArray, fixedLenByteArray}).Draw(t, "type")
	width := map[physicalType]int{int32Type: 4, int64Type: 8, int96: 12, float: 4, double: 8, byteArray: 2, fixedLenByteArray: 2}[physical]
	rows := rapid.IntRange(1, 300).Draw(t, "rows")
	packed := rapid.SampledFrom([]codec{uncompressed, uncompressed, snappyCodec}).Draw(t, "codec")
	isOptional := rapid.Bool().Draw(t, "optional")
	as := rapid.SampledFrom([]encoding{plain, rle, deltaBinaryPacked, deltaLengthByteArray, deltaByteArray, rleDictionary, rleDictionary, byteStreamSplit}).Draw(t, "encoding")
	out := &compact{}
	out.WriteString("PAR1")
	page := func(kind pageType, levels, values []byte, body int16, fields ...int64) {
		values = l.bytes(values)
		raw := len(levels) + len(values)
		if packed == snappyCodec && kind == dataPageV2 {
			values = snappy.Encode(nil, values)
		} else if packed == snappyCodec {
			levels, values = nil, snappy.Encode(nil, slices.Concat(levels, values))
		}
		out.structure(0, func() {
			out.int(1, thriftI32, int64(kind))
			out.int(2, thriftI32, l.number(int64(raw)))
			out.int(3, thriftI32, l.number(int64(len(levels)+len(values))))
			out.structure(body, func() {
				for id, v := range fields {
					out.int(int16(id+1), thriftI32, l.number(v))
				}
			})
		})
		out.Write(levels)
		out.Write(values)
	}
	dictionary := 0
	if as == rleDictionary {
		dictionary = rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "dictionary")
		page(dictionaryPage, nil, l.values(physical, width, dictionary, 0, plain), 7, int64(dictionary), int64(plain))
	}
	for left := rows; left > 0; {
		n := rapid.IntRange(1, left).Draw(t, "values")
		left -= n
		present, levels := n, []byte(nil)
		if isOptional {
			if rapid.Bool().Draw(t, "nulls") {
				present = 0
			}
			levels = append(binary.AppendUvarint(nil, uint64(n)<<1), byte(min(present, 1)))
		}
		values := l.values(physical, width, present, dictionary, as)
		if rapid.Bool().Draw(t, "version 2") {
			page(dataPageV2, levels, values, 8, int64(n), int64(n-present), int64(n), int64(as), int64(len(levels)), 0)
			continue
		}
		if isOptional {
			levels = append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...)
		}
		page(dataPage, levels, values, 5, int64(n), int64(as), int64(rle), int64(rle))
	}
	footer := int64(out.Len())
	out.structure(0, func() {
		out.int(1, thriftI32, 2)
		out.list(2, thriftStruct, 2)
		out.structure(0, func() {
			out.text(4, "schema")
			out.int(5, thriftI32, l.number(1))
		})
		out.structure(0, func() {
			out.int(1, thriftI32, l.number(int64(physical)))
			out.int(2, thriftI32, l.number(int64(width)))
			repeats := required
			if isOptional {
				repeats = optional
			}
			out.int(3, thriftI32, l.number(int64(repeats)))
			out.text(4, "a")
			switch physical {
			case byteArray, fixedLenByteArray: // a decimal
				out.int(6, thriftI32, l.number(5))
				out.int(7, thriftI32, l.number(2))
				out.int(8, thriftI32, l.number(4))
			}
		})
		out.int(3, thriftI64, int64(rows))
		out.list(4, thriftStruct, 1)
		out.structure(0, func() {
			out.list(1, thriftStruct, 1)
			out.structure(0, func() {
				out.int(2, thriftI64, l.number(0))
				out.structure(3, func() {
					out.int(1, thriftI32, int64(physical))
					out.list(3, thriftBinary, 1)
					out.WriteString("\x01a")
					out.int(4, thriftI32, l.number(int64(packed)))
					out.int(5, thriftI64, l.number(int64(rows)))
					out.int(7, thriftI64, l.number(footer-4))
					out.int(9, thriftI64, l.number(4))
					out.int(11, thriftI64, l.number(4))
				})
			})
			out.int(2, thriftI64, 0)
			out.int(3, thriftI64, l.number(int64(rows)))
		})
	})
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(int64(out.Len())-footer)))
	out.WriteString("PAR1")
	return out.Bytes()
}

// TestLies: files of every type, encoding and kind of page that are right but for up to two numbers and a byte are refused or decoded, and no
// panic is caught on the way. It would notice a product or sum of numbers of the file that overflows before it is compared, and a decoder
// that reads beyond its page.
func TestLies(t *testing.T) {
	root := t.TempDir()
	decoded := 0
	rapid.Check(t, func(t *rapid.T) {
		l := &liar{t: t, damage: rapid.IntRange(0, 1).Draw(t, "damaged"), lie: rapid.SampledFrom(telling).Draw(t, "lie"), first: rapid.IntRange(1, 26).Draw(t, "first")}
		l.last = l.first - 1 + rapid.IntRange(0, 2).Draw(t, "lies")
		if survives(t, root, l.file()) {
			decoded++
		}
	})
	if decoded == 0 {
		t.Error("no file was decoded, so none was nearly right")
	}
}

// tailored puts a file together again after its footer was changed.
func tailored(data []byte, change func(footer string) string) []byte {
	at := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	footer := change(string(data[at : len(data)-8]))
	return append(binary.LittleEndian.AppendUint32(append(slices.Clone(data[:at]), footer...), uint32(len(footer))), "PAR1"...)
}

// TestChunksSayWhoseTheyAre: where the chunks of a row group stand in another order than the columns, or their values lie in another file,
// the bytes at hand are not the column's. Both would be read as other values.
func TestChunksSayWhoseTheyAre(t *testing.T) {
	const first, second = "\xf8\x01\x01a", "\xf8\x01\x01b" // lists of one text: path_in_schema
	data := written(t, []string{"a", "b"}, 3)
	if _, res := decode(t, write(t, tailored(data, func(footer string) string { return footer }))); len(res.Schema.Fields) != 2 {
		t.Fatal(res)
	}
	exchanged := tailored(data, func(footer string) string { return strings.NewReplacer(first, second, second, first).Replace(footer) })
	if e := refused(t, write(t, exchanged), Limits{}, Damaged); e.Column != "a" || !strings.Contains(e.Detail, "another column") {
		t.Error(e)
	}
	for _, path := range []string{"\xf8\x00", "\xf8\x02\x01a\x01b", "\xf8\x01\x02ab", "\xf8\x01\x00"} {
		refused(t, write(t, tailored(data, func(footer string) string { return strings.Replace(footer, first, path, 1) })), Limits{}, Damaged)
	}
	const chunk = "\x26\x00\x1c" // file_offset, then the struct of the description
	elsewhere := tailored(data, func(footer string) string { return strings.Replace(footer, chunk, "\x18\x01f\x16\x00\x1c", 1) })
	if e := refused(t, write(t, elsewhere), Limits{}, Unsupported); e.Column != "a" || !strings.Contains(e.Detail, "another file") {
		t.Error(e)
	}
}

// TestNumbersOf32Bits: what the specification gives 32 bits has no more, wherever it stands. Sums and products of these numbers would
// overflow before they are compared with what there is: the levels of a page, or a dictionary of 2^61 entries in no bytes.
func TestNumbersOf32Bits(t *testing.T) {
	for body, kind := range map[int16]pageType{5: dataPage, 7: dictionaryPage, 8: dataPageV2} {
		fields := map[pageType]int16{dataPage: 4, dictionaryPage: 2, dataPageV2: 6}[kind]
		for wide := int16(-3); wide <= fields; wide++ { // -3, -2 and -1 are the header's own
			for _, v := range []int64{math.MaxInt32, 1 << 31, 1 << 61, math.MinInt64} {
				number := func(id int16) int64 {
					if id == wide {
						return v
					}
					return 0
				}
				out := &compact{}
				out.structure(0, func() {
					out.int(1, thriftI32, int64(kind))
					out.int(2, thriftI32, number(-3))
					out.int(3, thriftI32, number(-2))
					out.int(4, thriftI32, number(-1))
					out.structure(body, func() {
						for id := int16(1); id <= fields; id++ {
							out.int(id, thriftI32, number(id))
						}
					})
				})
				if _, _, err := readPageHeader(out.Bytes()); (err != nil) != (v != math.MaxInt32 && wide != 0) {
					t.Errorf("page of type %d, field %d is %d: %v", kind, wide, v, err)
				}
			}
		}
	}
	for id := int16(1); id <= 8; id++ {
		out := &compact{}
		out.structure(0, func() { out.int(id, thriftI32, 1<<31) })
		r := &thriftReader{data: out.Bytes()}
		if readElement(r); r.err == nil && id != 4 {
			t.Errorf("field %d of a schema element is 2^31", id)
		}
	}
	// A field of number 65537 is none of number 1.
	r := &thriftReader{data: append(append([]byte{thriftI32}, binary.AppendVarint(nil, 1<<16|1)...), 2, 0)}
	if r.structure(0, func(id int16, _ byte) bool { t.Errorf("field %d", id); return false }); r.err == nil {
		t.Error("a field's number of 17 bits is taken")
	}
}

// TestDecimalsOfNoBytes: a decimal without a byte is no number. It must not become zero.
func TestDecimalsOfNoBytes(t *testing.T) {
	for _, width := range []int64{-1, 0, 1} {
		f := &leaf{name: "a", physical: fixedLenByteArray, typeLength: width, logical: logicalType{kind: decimalKind}}
		if _, reason := planColumn(f, &origin{}); (reason == "") != (width == 1) {
			t.Errorf("%d bytes: %q", width, reason)
		}
	}
	c, _ := planColumn(&leaf{name: "a", physical: byteArray, logical: logicalType{kind: decimalKind}}, &origin{})
	b := &batch{}
	b.begin(Limits{})
	for text, ok := range map[string]bool{"\x00\x00\x00\x00": false, "\x01\x00\x00\x00\x07": true} {
		if _, err := c.read(b, &page{form: c.form, rows: 1, present: 1, data: []byte(text)}); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNullsNeedNoDictionary: old parquet-mr left the dictionary out where all values are null, in all types.
func TestNullsNeedNoDictionary(t *testing.T) {
	for physical := boolean; physical <= fixedLenByteArray; physical++ {
		f := &leaf{name: "a", optional: true, physical: physical, typeLength: 2}
		switch physical {
		case byteArray:
			f.logical.kind = stringKind
		case fixedLenByteArray:
			f.logical.kind = float16Kind
		}
		c, reason := planColumn(f, &origin{})
		if reason != "" {
			t.Fatal(physical, reason)
		}
		b := &batch{}
		b.begin(DefaultLimits())
		if _, err := c.form.check([]byte{0}, rleDictionary, 0, -1); err != nil {
			t.Error(physical, err)
		}
		levels := &runs{data: []byte{3 << 1, 0}, width: 1}
		if n, err := c.read(b, &page{form: c.form, rows: 3, levels: levels, encoding: rleDictionary, data: []byte{0}, dict: &dictionary{entries: -1}}); n != 3 || err != nil {
			t.Errorf("%v: %d rows, %v", physical, n, err)
		}
	}
}

// TestNamesThatAreShared: fields of Arrow's schema may all point to one name. It is not copied for each of them: a schema of 16 MB would
// stand for terabytes.
func TestNamesThatAreShared(t *testing.T) {
	message := func(fields int, name string) []byte {
		b := make([]byte, 48+4*fields+12+16)
		put := func(at, v int) { binary.LittleEndian.PutUint32(b[at:], uint32(v)) }
		put(0, 16)                                       // the message
		copy(b[4:], []byte{10, 0, 12, 0, 0, 0, 4, 0, 8}) // its vtable: type, header
		put(16, 12)                                      // back to it
		b[20] = headerIsSchema
		put(24, 12)                               // the schema
		copy(b[28:], []byte{8, 0, 8, 0, 0, 0, 4}) // its vtable: fields
		put(36, 8)
		put(40, 4)
		put(44, fields)
		vtable := 48 + 4*fields
		for i := range fields {
			put(48+4*i, vtable+12-(48+4*i))
		}
		copy(b[vtable:], []byte{12, 0, 12, 0, 4, 0, 0, 0, 8}) // name, kind
		put(vtable+12, 12)
		put(vtable+16, 8)
		b[vtable+20] = typeIsDuration
		put(vtable+24, len(name))
		return append(b, name...)
	}
	if units := arrowMessage(message(1, "wait")).durations; len(units) != 1 || units["wait"] != "ms" {
		t.Error(units)
	}
	if units := arrowMessage(message(1000, strings.Repeat("n", 1000))).durations; units != nil {
		t.Errorf("%d units of a schema whose names are longer than itself", len(units))
	}
}
