package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	// firstHeaderBytes is enough for a page header without statistics.
	firstHeaderBytes = 128
	// maxHeaderBytes is far above the few kilobytes that the statistics in a header take.
	maxHeaderBytes = streamBuffer
	// oldPadding is what old versions of parquet-mr did not count of a chunk (PARQUET-816): the dictionary's header.
	oldPadding = 100
)

// pages reads the pages of one column chunk after the other. A page is only decoded when it is whole: its checksum, where it has one, its
// decompressed size, its levels and the form of its values are what its header says.
//
// Buffers are kept from chunk to chunk, so a file of thousands of columns costs no more than one of a few.
type pages struct {
	limit  int64 // bytes of a page, compressed and not
	reader *bufio.Reader
	unpack decompressor
	packed []byte // of the page at hand
	data   []byte

	form   valueForm
	codec  codec
	values int64 // of the chunk, nulls included
	seen   int64
	left   int64 // bytes of the chunk
	number int   // of the page at hand, for messages
	dict   dictionary
	page   *page // the one at hand
}

// page is a data page that was found whole.
type page struct {
	form     valueForm
	rows     int64   // that were not read
	levels   leveled // nil where no value is null
	encoding encoding
	data     []byte // of the values
	present  int64  // values that are not null
	dict     *dictionary
	decoder  any // a values[T], made when the first value is read
}

// leveled gives the definition levels of a page: 0 null, 1 a value.
type leveled interface{ next(dst []uint32) error }

func newPages(limit int64) *pages {
	return &pages{limit: limit, reader: bufio.NewReaderSize(nil, streamBuffer)}
}

// begin turns to a chunk: the bytes from start on, of which there are length, hold that many values.
func (p *pages) begin(source io.ReaderAt, start, length, values int64, as codec, form valueForm) {
	p.reader.Reset(io.NewSectionReader(source, start, length))
	p.form, p.codec, p.values, p.seen, p.left, p.number = form, as, values, 0, length, 0
	p.dict = dictionary{data: p.dict.data, entries: -1}
	p.page = nil
}

// current returns the page at hand, or the next one that is not empty where its rows are read; nil is the end of the chunk.
func (p *pages) current() (*page, error) {
	for p.page == nil || p.page.rows == 0 {
		if p.seen == p.values {
			return nil, nil
		}
		p.number++
		next, err := p.read()
		if err != nil {
			return nil, fmt.Errorf("page %d: %w", p.number, err)
		}
		p.page = next
	}
	return p.page, nil
}

// read reads a page; nil is one that holds nothing.
func (p *pages) read() (*page, error) {
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
		return nil, p.dictionaryPage(&h)
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

func (p *pages) dictionaryPage(h *pageHeader) error {
	if p.dict.entries >= 0 {
		return errors.New("it is a second dictionary")
	}
	if as := encoding(h.encoding); as != plain && as != plainDictionary {
		return fmt.Errorf("it is a dictionary whose encoding, of number %d, is not known", h.encoding)
	}
	p.dict.data = grown(p.dict.data, int(h.uncompressed))
	if err := p.decompress(p.dict.data, p.packed); err != nil {
		return err
	}
	var err error
	if p.dict.data, err = p.form.checkPlain(p.dict.data, h.values); err == nil {
		p.dict.entries = h.values
	}
	return err
}

func (p *pages) dataPage(h *pageHeader) (*page, error) {
	if err := p.count(h.values); err != nil || h.values == 0 {
		return nil, err
	}
	p.data = grown(p.data, int(h.uncompressed))
	if err := p.decompress(p.data, p.packed); err != nil {
		return nil, err
	}
	present, length := h.values, 0
	var levels leveled
	if p.form.optional {
		var err error
		if present, length, err = levelsV1(p.data, encoding(h.levelEncoding), h.values); err != nil {
			return nil, err
		}
		levels = &runs{data: p.data[min(4, length):length], width: 1} // behind their length
		if encoding(h.levelEncoding) == bitPacked {
			levels = &packedLevels{data: p.data[:length]}
		}
	}
	return p.found(h, levels, p.data[length:], present)
}

func (p *pages) dataPageV2(h *pageHeader) (*page, error) {
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
	var defined leveled
	if p.form.optional {
		var err error
		if present, err = countLevels(p.data[h.repetition:levels], h.values); err != nil {
			return nil, err
		}
		defined = &runs{data: p.data[h.repetition:levels], width: 1}
	}
	if h.values-present != h.nulls {
		return nil, fmt.Errorf("its header says %d nulls, its levels %d", h.nulls, h.values-present)
	}
	return p.found(h, defined, values, present)
}

// found checks the form of a page's values, and leaves out what stands behind them.
func (p *pages) found(h *pageHeader, levels leveled, data []byte, present int64) (*page, error) {
	as := encoding(h.encoding)
	data, err := p.form.check(data, as, present, p.dict.entries)
	if err != nil {
		return nil, err
	}
	return &page{form: p.form, rows: h.values, levels: levels, encoding: as, data: data, present: present, dict: &p.dict}, nil
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
	if p.codec == uncompressed {
		if len(dst) != len(src) {
			return errSize
		}
		copy(dst, src)
		return nil
	}
	return p.unpack.decompress(p.codec, dst, src)
}

// grown returns a slice of n bytes, b where that is large enough.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
