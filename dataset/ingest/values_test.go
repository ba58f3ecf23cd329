package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// deltaEncoded packs numbers as DELTA_BINARY_PACKED says, in blocks of 128 with four miniblocks, the last one padded.
func deltaEncoded(v []int64) []byte {
	const block, minis = 128, 4
	out := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, block), minis), uint64(len(v)))
	out = binary.AppendVarint(out, v[0])
	var deltas []int64
	for i := range v[1:] {
		deltas = append(deltas, v[i+1]-v[i])
	}
	for some := range slices.Chunk(deltas, block) {
		least := slices.Min(some)
		out = binary.AppendVarint(out, least)
		var widths [minis]byte
		var packed []byte
		i := 0
		for mini := range slices.Chunk(some, block/minis) {
			for _, d := range mini {
				widths[i] = max(widths[i], byte(bits.Len64(uint64(d-least))))
			}
			bytes := make([]byte, block/minis/8*int(widths[i]))
			for k, d := range mini {
				for b := range int(widths[i]) {
					at := k*int(widths[i]) + b
					bytes[at/8] |= byte(uint64(d-least)>>b&1) << (at % 8)
				}
			}
			packed = append(packed, bytes...)
			i++
		}
		out = append(append(out, widths[:]...), packed...)
	}
	return out
}

// all reads values in steps.
func all[T any](t *rapid.T, v values[T], n int, keep func(T) T) (out []T) {
	buffer := make([]T, 50)
	for len(out) < n {
		got, err := v.next(buffer[:min(n-len(out), rapid.IntRange(1, 50).Draw(t, "step"))])
		if err != nil || got == 0 {
			t.Fatalf("%d after %d of %d values: %v", got, len(out), n, err)
		}
		for _, one := range buffer[:got] {
			out = append(out, keep(one))
		}
	}
	return out
}

// TestDeltas: numbers that were packed come back, of any size and number, whatever the steps; so does what stands behind them. It would
// notice a wrong width, sign or wrap, and a block that ends elsewhere.
func TestDeltas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0}))
		want := rapid.SliceOfN(number, 1, 400).Draw(t, "numbers")
		data := deltaEncoded(want)
		d, err := newDeltas(data, false, int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, d, len(want), func(v int64) int64 { return v }); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		walker, err := newDeltas(append(data, "rest"...), false, int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := walker.end(); err != nil || string(rest) != "rest" {
			t.Fatalf("behind the numbers stands %q, %v", rest, err)
		}
	})
}

// TestNarrowDeltas: writers sum and subtract integers of 32 bits in 32 bits, so that sums in 64 bits leave their range. The integers come
// back all the same.
func TestNarrowDeltas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int32(), rapid.SampledFrom([]int32{math.MinInt32, math.MaxInt32}))
		narrow := append([]int32{math.MinInt32, math.MaxInt32}, rapid.SliceOfN(number, 0, 300).Draw(t, "numbers")...)
		sums, want := []int64{math.MinInt32}, []int64{math.MinInt32}
		for i := range narrow[1:] {
			sums = append(sums, sums[i]+int64(narrow[i+1]-narrow[i]))
			want = append(want, int64(narrow[i+1]))
		}
		d, err := newDeltas(deltaEncoded(sums), true, int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, d, len(want), func(v int64) int64 { return v }); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// TestStreams: values whose bytes lie in streams come back, whatever the steps and however many are put together at once.
func TestStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Int64(), 1, 2*splitPiece/8).Draw(t, "numbers")
		data := make([]byte, 8*len(want))
		for i, v := range want {
			for b := range 8 {
				data[b*len(want)+i] = byte(v >> (8 * b))
			}
		}
		p := &page{form: formOf(int64Type, -1, false), encoding: byteStreamSplit, data: data, present: int64(len(want))}
		v, err := integers(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, v, len(want), func(v int64) int64 { return v }); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		once := make([]int64, len(want))
		if v, err = integers(p); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(once); {
			got, err := v.next(once[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += got
		}
		if !slices.Equal(once, want) {
			t.Fatal("read at once, other numbers come back")
		}
	})
}

// TestFronts: byte arrays that share their beginnings come back, also where a page has more of them than are put together at once.
func TestFronts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want, suffixes [][]byte
		var common, rest []int64
		last := []byte{}
		for range rapid.IntRange(1, 60).Draw(t, "values") {
			n := rapid.IntRange(0, len(last)).Draw(t, "common")
			suffix := []byte(strings.Repeat(rapid.SampledFrom([]string{"", "a", "bc"}).Draw(t, "text"), rapid.SampledFrom([]int{1, 2, frontPiece / 7}).Draw(t, "times")))
			last = slices.Concat(last[:n], suffix)
			common, rest, suffixes, want = append(common, int64(n)), append(rest, int64(len(suffix))), append(suffixes, suffix), append(want, last)
		}
		data := slices.Concat(deltaEncoded(common), deltaEncoded(rest), bytes.Join(suffixes, nil))
		v, err := newFronts(&page{data: data, present: int64(len(want))})
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, v, len(want), bytes.Clone); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatal("other byte arrays come back")
		}
		left, err := newFronts(&page{data: append(data, 'x'), present: int64(len(want))})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; err == nil; {
			if n == len(want) {
				t.Fatal("a byte that belongs to no value is not noticed")
			}
			var got int
			got, err = left.next(make([][]byte, len(want)-n))
			n += got
		}
	})
}

// TestMiscounts: of writers, only parquet-mr before 1.2.9 left the dictionary's header out of a chunk's bytes.
func TestMiscounts(t *testing.T) {
	for by, want := range map[string]bool{
		"parquet-mr version 1.2.8 (build abc)": true, "parquet-mr version 1.2.9": false, "parquet-mr version 1.10.0 (build x)": false,
		"parquet-mr version 0.9.30": true, "parquet-mr": true, "parquet-cpp-arrow version 1.0.0": false, "impala version 1.2.0": false, "": false,
	} {
		if got := miscounts([]byte(by)); got != want {
			t.Errorf("%q: %v", by, got)
		}
	}
}

// The entries of a dictionary keep their texts, however many there are, of one length or of none, and however they come again: what is known of an entry by its place in memory is
// not said of another.
func TestTextsOfADictionary(t *testing.T) {
	const entries, rows = 700, 5000
	var texts []string
	var data []byte
	for i := range entries {
		text := fmt.Sprintf("text %03d", i)
		if i%50 == 0 {
			text = "" // of no bytes, which lie where others begin
		}
		texts = append(texts, text)
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(text))), text...)
	}
	r := rand.New(rand.NewPCG(9, 10))
	indexes, want := []byte{16}, []string{} // of 16 bits, in runs of one
	for range rows {
		i := r.IntN(entries)
		indexes = binary.LittleEndian.AppendUint16(append(indexes, 1<<1), uint16(i))
		want = append(want, texts[i])
	}
	p := &page{form: formOf(byteArray, -1, false), rows: rows, present: rows, encoding: rleDictionary, data: indexes, dict: &dictionary{data: data, entries: entries}}
	var b batch
	b.begin(DefaultLimits())
	b.textsLeft = DefaultMaxTextBytes
	read := byteTexts(func(v []byte) []byte { return v })
	for row := 0; row < rows; {
		n, err := read(&b, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range b.codes[:n] {
			if got := b.dictionary[code-1]; got != want[row] {
				t.Fatalf("row %d is %q, want %q", row, got, want[row])
			}
			row++
		}
	}
}
