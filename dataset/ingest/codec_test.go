package ingest

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// packed compresses by a codec.
func packed(t *testing.T, as codec, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch as {
	case snappyCodec:
		return snappy.Encode(nil, data)
	case lz4Raw:
		dst := make([]byte, lz4.CompressBlockBound(len(data)))
		n, err := new(lz4.Compressor).CompressBlock(data, dst)
		if err != nil || n == 0 {
			t.Fatalf("%d bytes are not compressed: %v", len(data), err)
		}
		return dst[:n]
	case gzipCodec:
		w = gzip.NewWriter(&out)
	case brotliCodec:
		w = brotli.NewWriter(&out)
	case zstdCodec:
		encoder, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = encoder
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDamagedFrames: frames with a block that does not open, or that is empty, are no frames, whatever stands behind it.
func TestDamagedFrames(t *testing.T) {
	text := []byte("some text, some text, some text, some text")
	packed := packed(t, lz4Raw, text)
	number := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	framed := func(blocks ...[]byte) []byte {
		b := number(len(text))
		for _, p := range blocks {
			b = append(append(b, number(len(p))...), p...)
		}
		return b
	}
	dst := make([]byte, len(text))
	if !hadoopFrames(dst, framed(packed)) || !bytes.Equal(dst, text) {
		t.Fatal("whole frames are not read")
	}
	for name, src := range map[string][]byte{
		"a damaged block first": framed([]byte{0xf0, 0xff, 0xff, 0xff}, packed),
		"an empty block first":  framed(nil, packed),
		"a block too many":      framed(packed, packed),
		"no block":              framed(),
		"a block cut off":       framed(packed)[:len(packed)],
	} {
		if hadoopFrames(make([]byte, len(text)), src) {
			t.Errorf("%s: read", name)
		}
	}
}

// The codec LZ4 of Hadoop, in all forms that are about, and each of them cut short.
func TestHadoopLZ4(t *testing.T) {
	raw := bytes.Repeat([]byte("holdout "), 100)
	block := func(b []byte) []byte { return packed(t, lz4Raw, b) }
	framed := func(b []byte) []byte {
		p := block(b)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...)
	}
	total := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	for name, data := range map[string][]byte{
		"bare":        block(raw),
		"one frame":   slices.Concat(total(800), framed(raw)),
		"two frames":  slices.Concat(total(300), framed(raw[:300]), total(500), framed(raw[300:])),
		"many blocks": slices.Concat(total(800), framed(raw[:300]), framed(raw[300:])),
	} {
		var d decompressor
		dst := make([]byte, len(raw))
		if err := d.decompress(lz4Codec, dst, data); err != nil || !bytes.Equal(dst, raw) {
			t.Errorf("%s: %v", name, err)
		}
		for n := range data {
			if err := d.decompress(lz4Codec, dst, data[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are taken", name, n, len(data))
			}
		}
	}
	table, _ := decode(t, fixture("hadoop_lz4_compressed.parquet"))
	if c, _ := table.Lookup("v11"); table.Rows() != 4 || c == nil || !slices.Equal(c.Numbers[:2], []float64{42, 7.7}) {
		t.Errorf("the file of Hadoop's writer has %d rows, v11 %v", table.Rows(), c)
	}
}

// No codec may write more than a page says it has.
func TestDecompressedSize(t *testing.T) {
	raw := bytes.Repeat([]byte("abc"), 1000)
	for _, id := range []codec{snappyCodec, gzipCodec, brotliCodec, zstdCodec, lz4Raw, lz4Codec} {
		as := id
		if id == lz4Codec {
			as = lz4Raw
		}
		data := packed(t, as, raw)
		var d decompressor
		for _, n := range []int{len(raw) - 1, len(raw), len(raw) + 1} {
			dst := make([]byte, n, len(raw)+100)
			err := d.decompress(id, dst, data)
			if (err == nil) != (n == len(raw)) || n == len(raw) && !bytes.Equal(dst, raw) {
				t.Errorf("%v: %d bytes into %d: %v", id, len(raw), n, err)
			}
		}
	}
}
