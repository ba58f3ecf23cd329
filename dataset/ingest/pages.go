package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
)

const (
	// firstHeaderBytes is enough for a page header without statistics.
	firstHeaderBytes = 128
	// maxHeaderBytes is far above the few kilobytes that the statistics in a header take.
	maxHeaderBytes = streamBuffer
	// oldPadding is what old versions of parquet-mr did not count of a chunk (PARQUET-816): the dictionary's header.
	oldPadding = 100
)

// pages reads the pages of one column chunk after the other, and hands each to the library's decoders when it is whole:
// its checksum, where it has one, its decompressed size, its levels and the form of its values are what its header
// says. The library's own reader ignores checksums, and its decoders make nulls or numbers of some damage that a page
// shows; a holdout of such a file would be wrong for ever.
//
// It is a [file.PageReader]. Buffers are kept from chunk to chunk, so a file of thousands of columns costs no more than
// one of a few.
type pages struct {
	limit   int64 // bytes of a page, compressed and not
	reader  *bufio.Reader
	unpack  decompressor
	packed  []byte // of the page at hand
	data    []byte
	dict    []byte
	buffers sync.Pool // of the library's decoders

	form       valueForm
	codec      compress.Compression
	values     int64 // of the chunk, nulls included
	seen       int64
	left       int64 // bytes of the chunk
	number     int   // of the page at hand, for messages
	dictionary int64 // entries; -1 before the dictionary
	page       file.Page
	err        error
}

func newPages(limit int64) *pages {
	p := &pages{limit: limit, reader: bufio.NewReaderSize(nil, streamBuffer)}
	p.buffers.New = func() any { return memory.NewResizableBuffer(memory.DefaultAllocator) }
	return p
}

// begin makes p the reader of a chunk: the bytes from start on, of which there are length, hold that many values.
func (p *pages) begin(source io.ReaderAt, start, length, values int64, codec compress.Compression, form valueForm) {
	p.release()
	p.reader.Reset(io.NewSectionReader(source, start, length))
	p.form, p.codec, p.values, p.seen, p.left, p.number, p.dictionary, p.err = form, codec, values, 0, length, 0, -1, nil
}

func (p *pages) release() {
	if p.page != nil {
		p.page.Release()
		p.page = nil
	}
}

// Next reads the next page that is not empty. After false, Err says whether that was the end.
func (p *pages) Next() bool {
	p.release()
	for p.err == nil && p.seen < p.values {
		p.number++
		page, err := p.read()
		if err != nil {
			p.err = fmt.Errorf("page %d: %w", p.number, err)
			return false
		}
		if page != nil {
			p.page = page
			return true
		}
	}
	return false
}

// read reads a page; nil is one that holds nothing.
func (p *pages) read() (file.Page, error) {
	h, err := p.header()
	if err != nil {
		return nil, err
	}
	if h.compressed < 0 || h.uncompressed < 0 || h.compressed > p.left {
		return nil, errors.New("its header gives a size that cannot be")
	}
	if max(h.compressed, h.uncompressed) > p.limit {
		return nil, &Error{Kind: TooLarge, Detail: fmt.Sprintf("the column has a page of %d bytes, the limit is %d; write the file with smaller pages",
			max(h.compressed, h.uncompressed), p.limit)}
	}
	p.packed = grown(p.packed, int(h.compressed))
	if _, err := io.ReadFull(p.reader, p.packed); err != nil {
		return nil, ended(err)
	}
	p.left -= h.compressed
	if h.hasCRC && crc32.ChecksumIEEE(p.packed) != h.crc {
		return nil, errors.New("its checksum does not fit: the file was damaged after it was written")
	}
	known := h.kind == dataPage || h.kind == dataPageV2 || h.kind == dictionaryPage
	if known && !h.complete() {
		return nil, errors.New("its header is not complete")
	}
	switch h.kind {
	case dictionaryPage:
		return p.dictionaryPage(&h)
	case dataPage:
		return p.dataPage(&h)
	case dataPageV2:
		return p.dataPageV2(&h)
	}
	return nil, nil // an index page, or a kind of the future: readers may skip what is no data
}

// header reads the next page's header.
func (p *pages) header() (pageHeader, error) {
	for n := firstHeaderBytes; ; n *= 2 {
		view, err := p.reader.Peek(min(n, maxHeaderBytes))
		if len(view) == 0 {
			return pageHeader{}, fmt.Errorf("the column ends after %d of %d values", p.seen, p.values)
		}
		h, length, parsed := readPageHeader(view)
		switch {
		case parsed == nil:
			p.left -= int64(length)
			_, err := p.reader.Discard(length)
			return h, err
		case !errors.Is(parsed, errThriftShort):
			return h, parsed
		case err != nil:
			return h, ended(err)
		case n >= maxHeaderBytes:
			return h, fmt.Errorf("its header is longer than %d bytes", maxHeaderBytes)
		}
	}
}

func ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}

func (p *pages) dictionaryPage(h *pageHeader) (file.Page, error) {
	if p.dictionary >= 0 {
		return nil, errors.New("it is a second dictionary")
	}
	p.dict = grown(p.dict, int(h.uncompressed))
	if err := p.decompress(p.dict, p.packed); err != nil {
		return nil, err
	}
	if err := p.form.checkPlain(p.dict, h.values); err != nil {
		return nil, err
	}
	p.dictionary = h.values
	return file.NewDictionaryPage(memory.NewBufferBytes(p.dict), int32(h.values), parquet.Encoding(h.encoding)), nil
}

func (p *pages) dataPage(h *pageHeader) (file.Page, error) {
	if err := p.count(h.values); err != nil || h.values == 0 {
		return nil, err
	}
	p.data = grown(p.data, int(h.uncompressed))
	if err := p.decompress(p.data, p.packed); err != nil {
		return nil, err
	}
	present, length := h.values, 0
	if p.form.optional {
		var err error
		if present, length, err = levelsV1(p.data, parquet.Encoding(h.levelEncoding), h.values); err != nil {
			return nil, err
		}
	}
	if err := p.form.check(p.data[length:], parquet.Encoding(h.encoding), present, p.dictionary); err != nil {
		return nil, err
	}
	return file.NewDataPageV1(memory.NewBufferBytes(p.data), int32(h.values), parquet.Encoding(h.encoding),
		parquet.Encoding(h.levelEncoding), parquet.Encodings.RLE, int32(h.uncompressed)), nil
}

func (p *pages) dataPageV2(h *pageHeader) (file.Page, error) {
	if err := p.count(h.values); err != nil || h.values == 0 {
		return nil, err
	}
	levels := h.definition + h.repetition
	switch {
	case levels > h.compressed || levels > h.uncompressed:
		return nil, errors.New("its header gives a size of levels that cannot be")
	case h.rows != h.values:
		return nil, fmt.Errorf("its header says %d rows of %d values", h.rows, h.values)
	}
	p.data = grown(p.data, int(h.uncompressed))
	copy(p.data, p.packed[:levels])
	values := p.data[levels:]
	switch {
	case len(values) == 0: // nothing but nulls; some writers compress the nothing, some leave it out
	case h.compressedValues:
		if err := p.decompress(values, p.packed[levels:]); err != nil {
			return nil, err
		}
	case len(values) != len(p.packed)-int(levels):
		return nil, errSize
	default:
		copy(values, p.packed[levels:])
	}
	present := h.values
	if p.form.optional {
		var err error
		if present, err = countLevels(p.data[h.repetition:levels], h.values); err != nil {
			return nil, err
		}
	}
	if h.values-present != h.nulls {
		return nil, fmt.Errorf("its header says %d nulls, its levels %d", h.nulls, h.values-present)
	}
	if err := p.form.check(values, parquet.Encoding(h.encoding), present, p.dictionary); err != nil {
		return nil, err
	}
	return file.NewDataPageV2(memory.NewBufferBytes(p.data), int32(h.values), int32(h.nulls), int32(h.rows),
		parquet.Encoding(h.encoding), int32(h.definition), int32(h.repetition), int32(h.uncompressed), false), nil
}

// count adds values to those seen.
func (p *pages) count(values int64) error {
	if values > p.values-p.seen {
		return fmt.Errorf("the column has more than its %d values", p.values)
	}
	p.seen += values
	return nil
}

// decompress fills dst from src by the chunk's codec.
func (p *pages) decompress(dst, src []byte) error {
	if p.codec == compress.Codecs.Uncompressed {
		if len(dst) != len(src) {
			return errSize
		}
		copy(dst, src)
		return nil
	}
	return p.unpack.decompress(p.codec, dst, src)
}

// spare is room behind a page for one value of any type: the library makes a pointer to the values of a page that has none, which lie
// right behind its levels, and a checked build refuses a pointer that reaches beyond the memory that it is in.
const spare = 16

// grown returns a slice of n bytes with room behind it, b where that is large enough.
func grown(b []byte, n int) []byte {
	if cap(b) < n+spare {
		return make([]byte, n, n+spare)
	}
	return b[:n]
}

// Page returns the page that Next has read.
func (p *pages) Page() file.Page { return p.page }

// Err returns what ended the pages, nil at the end of the chunk.
func (p *pages) Err() error { return p.err }

// Close gives the page at hand back; the reader may begin another chunk.
func (p *pages) Close() error {
	p.release()
	return nil
}

var errSequential = errors.New("ingest: pages are read in order")

// SetMaxPageHeaderSize does nothing: the limit is maxHeaderBytes.
func (p *pages) SetMaxPageHeaderSize(int) {}

// GetDictionaryPage returns none: a dictionary comes before the data, and Next returns it.
func (p *pages) GetDictionaryPage() (*file.DictionaryPage, error) { return nil, nil }

// SeekToPageWithRow is not needed here and fails.
func (p *pages) SeekToPageWithRow(int64) error { return errSequential }

// Reset is not needed here, begin takes its place, and fails.
func (p *pages) Reset(parquet.BufferedReader, int64, compress.Compression, *file.CryptoContext) {
	p.err = errSequential
}
