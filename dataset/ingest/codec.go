package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
)

// errSize says that a page did not decompress to the size in its header.
var errSize = errors.New("it does not decompress to the size that its header says")

// codecName is the name of a codec for people, or "" for one that is not read.
func codecName(c compress.Compression) (name string, read bool) {
	switch c {
	case compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli,
		compress.Codecs.Zstd, compress.Codecs.Lz4Raw, compress.Codecs.Lz4:
		return c.String(), true
	case compress.Codecs.Lzo:
		return "LZO", false
	}
	return fmt.Sprintf("of number %d", int(c)), false
}

// decompressor undoes the compression of pages. It never writes more than the room it is given, whatever the page
// says. It is not safe for concurrent use.
type decompressor struct {
	zstd *zstd.Decoder
}

// decompress fills dst, all of it, from src.
func (d *decompressor) decompress(codec compress.Compression, dst, src []byte) error {
	if len(dst) == 0 {
		return nil // codecs differ in what they make of nothing, and writers in whether they compress it
	}
	out, err := d.decode(codec, dst, src)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be decompressed: %w", err)
	case len(out) != len(dst):
		return errSize
	case &out[0] != &dst[0]:
		copy(dst, out)
	}
	return nil
}

func (d *decompressor) decode(codec compress.Compression, dst, src []byte) ([]byte, error) {
	switch codec {
	case compress.Codecs.Snappy:
		// Not the library's codec, which takes Snappy's superset S2, and with it damage that Snappy shows.
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return nil, errSize
		}
		return snappy.Decode(dst, src)
	case compress.Codecs.Zstd:
		if d.zstd == nil {
			var err error
			if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)); err != nil {
				return nil, err
			}
		}
		return d.zstd.DecodeAll(src, dst[:0:len(dst)])
	case compress.Codecs.Lz4:
		return dst, hadoopLZ4(dst, src)
	}
	c, err := compress.GetCodec(codec)
	if err != nil {
		return nil, err
	}
	return compress.Decode(c, dst, src)
}

// hadoopLZ4 undoes the codec LZ4 of old writers. Hadoop's wrote frames of its own: the decompressed length, then
// blocks, each after its compressed length, until they make up that length; lengths are big-endian 32-bit numbers.
// Others wrote a bare block. Nothing says which one it is, so both are tried, as Arrow does, the frames first.
func hadoopLZ4(dst, src []byte) error {
	block, err := compress.GetCodec(compress.Codecs.Lz4Raw)
	if err != nil {
		return err
	}
	if hadoopFrames(block, dst, src) {
		return nil
	}
	out, err := compress.Decode(block, dst, src)
	if err == nil && len(out) != len(dst) {
		err = errSize
	}
	return err
}

func hadoopFrames(block compress.Codec, dst, src []byte) bool {
	// number takes a length, which must be at most limit.
	number := func(limit int) (int, bool) {
		if len(src) < 4 || uint64(binary.BigEndian.Uint32(src)) > uint64(limit) {
			return 0, false
		}
		n := binary.BigEndian.Uint32(src)
		src = src[4:]
		return int(n), true
	}
	for len(src) > 0 {
		raw, ok := number(len(dst))
		for ok && raw > 0 {
			var packed int
			if packed, ok = number(len(src) - 4); !ok {
				break
			}
			out, err := compress.Decode(block, dst[:raw:raw], src[:packed])
			if err != nil || len(out) == 0 {
				return false
			}
			raw, dst, src = raw-len(out), dst[len(out):], src[packed:]
		}
		if !ok {
			return false
		}
	}
	return len(dst) == 0
}
