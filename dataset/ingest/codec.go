package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// errSize says that a page did not decompress to the size in its header.
var errSize = errors.New("it does not decompress to the size that its header says")

// decompressor undoes the compression of pages. It never writes more than the room it is given, whatever the page
// says. It is not safe for concurrent use.
type decompressor struct {
	zstd *zstd.Decoder
}

// decompress fills dst, all of it, from src.
func (d *decompressor) decompress(c codec, dst, src []byte) error {
	if len(dst) == 0 {
		return nil // codecs differ in what they make of nothing, and writers in whether they compress it
	}
	out, err := d.decode(c, dst, src)
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

func (d *decompressor) decode(c codec, dst, src []byte) ([]byte, error) {
	switch c {
	case snappyCodec:
		// Not klauspost's decoder, which takes Snappy's superset S2, and with it damage that Snappy shows.
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return nil, errSize
		}
		return snappy.Decode(dst, src)
	case zstdCodec:
		if d.zstd == nil {
			var err error
			if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)); err != nil {
				return nil, err
			}
		}
		return d.zstd.DecodeAll(src, dst[:0:len(dst)])
	case gzipCodec:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, err
		}
		return dst, fill(dst, r)
	case brotliCodec:
		return dst, fill(dst, brotli.NewReader(bytes.NewReader(src)))
	case lz4Raw:
		return lz4Block(dst, src)
	case lz4Codec:
		return dst, hadoopLZ4(dst, src)
	}
	return nil, fmt.Errorf("the codec %v is not read", c)
}

// fill reads dst, all of it, from a stream that must end there. A reader finds out at the end of a stream whether its checksum fits.
func fill(dst []byte, stream io.Reader) error {
	if _, err := io.ReadFull(stream, dst); err != nil {
		return err
	}
	switch n, err := io.ReadFull(stream, make([]byte, 1)); {
	case n > 0:
		return errSize
	case err != io.EOF:
		return err
	}
	return nil
}

// lz4Block undoes a bare block into dst, and returns what it gave.
func lz4Block(dst, src []byte) ([]byte, error) {
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return nil, err
	}
	return dst[:n], nil
}

// hadoopLZ4 undoes the codec LZ4 of old writers. Hadoop's wrote frames of its own: the decompressed length, then
// blocks, each after its compressed length, until they make up that length; lengths are big-endian 32-bit numbers.
// Others wrote a bare block. Nothing says which one it is, so both are tried, as Arrow does, the frames first.
func hadoopLZ4(dst, src []byte) error {
	if hadoopFrames(dst, src) {
		return nil
	}
	out, err := lz4Block(dst, src)
	if err == nil && len(out) != len(dst) {
		err = errSize
	}
	return err
}

func hadoopFrames(dst, src []byte) bool {
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
			out, err := lz4Block(dst[:raw:raw], src[:packed])
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
