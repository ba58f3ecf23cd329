package ingest

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow-go/v18/parquet/compress"
)

// TestSpliced: a file whose end is another reads like the whole of both, at every place and in every length, and ends where it ends.
func TestSpliced(t *testing.T) {
	whole := []byte("the head of the file, and the tail that was patched")
	for _, start := range []int{0, 1, 20, len(whole) - 1, len(whole)} {
		s := &spliced{head: bytes.NewReader(append(bytes.Clone(whole[:start]), "what was there"...)), start: int64(start), tail: whole[start:]}
		for at := range len(whole) + 3 {
			for n := range len(whole) + 3 {
				b := make([]byte, n)
				got, err := s.ReadAt(b, int64(at))
				want := whole[min(at, len(whole)):min(at+n, len(whole))]
				if !bytes.Equal(b[:got], want) || (got < n) != (err == io.EOF) || err != nil && err != io.EOF {
					t.Fatalf("%d bytes at %d, from %d on others: %q, %v; want %q", n, at, start, b[:got], err, want)
				}
			}
		}
		if err := iotest.TestReader(io.NewSectionReader(s, 0, int64(len(whole))), whole); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedFrames: frames with a block that does not open, or that is empty, are no frames, whatever stands behind it.
func TestDamagedFrames(t *testing.T) {
	block, err := compress.GetCodec(compress.Codecs.Lz4Raw)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("some text, some text, some text, some text")
	packed := block.Encode(nil, text)
	number := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	framed := func(blocks ...[]byte) []byte {
		b := number(len(text))
		for _, p := range blocks {
			b = append(append(b, number(len(p))...), p...)
		}
		return b
	}
	dst := make([]byte, len(text))
	if !hadoopFrames(block, dst, framed(packed)) || !bytes.Equal(dst, text) {
		t.Fatal("whole frames are not read")
	}
	for name, src := range map[string][]byte{
		"a damaged block first": framed([]byte{0xf0, 0xff, 0xff, 0xff}, packed),
		"an empty block first":  framed(nil, packed),
		"a block too many":      framed(packed, packed),
		"no block":              framed(),
		"a block cut off":       framed(packed)[:len(packed)],
	} {
		if hadoopFrames(block, make([]byte, len(text)), src) {
			t.Errorf("%s: read", name)
		}
	}
}
