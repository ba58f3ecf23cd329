package ingest

import (
	"encoding/binary"
	"errors"
)

// Footers and page headers are Thrift structs in the compact protocol. What is needed of them is read here, in a few lines
// that can be read against the specification (thrift/doc/specs/thrift-compact-protocol.md, parquet.thrift), and that
// allocate nothing that a file merely announces.

// Types of fields in the compact protocol.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// thriftDepth is how deep structs may lie in each other: those of Parquet lie five deep.
const thriftDepth = 32

var (
	// errThriftShort says that the struct goes on beyond the bytes at hand.
	errThriftShort = errors.New("the header ends too early")
	errThrift      = errors.New("the header is not Thrift")
)

// thriftReader reads the compact protocol. After the first error everything reads as zero.
type thriftReader struct {
	data []byte
	at   int
	err  error
}

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.at = len(r.data)
}

func (r *thriftReader) byte() byte {
	if r.at >= len(r.data) {
		r.fail(errThriftShort)
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

func (r *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data[r.at:])
	switch {
	case n == 0:
		r.fail(errThriftShort)
	case n < 0:
		r.fail(errThrift)
	default:
		r.at += n
	}
	return v
}

// int reads a zigzag integer.
func (r *thriftReader) int() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// i32 reads an integer of 32 bits. One that says more is no number of a file: sums and products of sizes and counts, which rely on 32 bits
// not to overflow, would.
func (r *thriftReader) i32() int64 {
	v := r.int()
	if v != int64(int32(v)) {
		r.fail(errThrift)
		return 0
	}
	return v
}

// bytes reads a string or binary; it shares the reader's memory.
func (r *thriftReader) bytes() []byte {
	n := r.uvarint()
	from := r.at
	r.skipBytes(n)
	if r.err != nil {
		return nil
	}
	return r.data[from:r.at]
}

func (r *thriftReader) skipBytes(n uint64) {
	if n > uint64(len(r.data)-r.at) {
		r.fail(errThriftShort)
		return
	}
	r.at += int(n)
}

// structure reads a struct and calls field for each of its fields; field reads the value, or returns false to have it
// skipped.
func (r *thriftReader) structure(depth int, field func(id int16, kind byte) bool) {
	if depth > thriftDepth {
		r.fail(errThrift)
		return
	}
	id := int16(0)
	for r.err == nil {
		head := r.byte()
		kind := head & 15
		if r.err != nil || kind == thriftStop {
			return
		}
		if delta := int16(head >> 4); delta > 0 {
			id += delta
		} else {
			wide := r.int()
			if id = int16(wide); wide != int64(id) { // or it would be taken for another field
				r.fail(errThrift)
				return
			}
		}
		if !field(id, kind) {
			r.skip(kind, depth)
		}
	}
}

// structs reads a list of structs; one is called for each, and must read it.
func (r *thriftReader) structs(one func()) {
	kind, n := r.listHead()
	if kind != thriftStruct && n > 0 {
		r.fail(errThrift)
	}
	for i := uint64(0); i < n && r.err == nil; i++ {
		one()
	}
}

// skip reads over a value of a field.
func (r *thriftReader) skip(kind byte, depth int) {
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		r.byte()
	case thriftI16, thriftI32, thriftI64:
		r.uvarint()
	case thriftDouble:
		r.skipBytes(8)
	case thriftUUID:
		r.skipBytes(16)
	case thriftBinary:
		r.skipBytes(r.uvarint())
	case thriftStruct:
		r.structure(depth+1, func(int16, byte) bool { return false })
	case thriftList, thriftSet:
		kind, n := r.listHead()
		for range n {
			if r.err != nil {
				return
			}
			r.skipElement(kind, depth+1)
		}
	case thriftMap:
		n := r.uvarint()
		if n == 0 {
			return
		}
		kinds := r.byte()
		for i := uint64(0); i < n && r.err == nil; i++ {
			r.skipElement(kinds>>4, depth+1)
			r.skipElement(kinds&15, depth+1)
		}
	default:
		r.fail(errThrift)
	}
}

// listHead reads the type and the number of a list's elements.
func (r *thriftReader) listHead() (kind byte, n uint64) {
	head := r.byte()
	n = uint64(head >> 4)
	if n == 15 {
		n = r.uvarint()
	}
	return head & 15, n
}

// skipElement reads over an element of a list or map, where booleans take a byte.
func (r *thriftReader) skipElement(kind byte, depth int) {
	switch {
	case depth > thriftDepth:
		r.fail(errThrift)
	case kind == thriftTrue || kind == thriftFalse:
		r.byte()
	default:
		r.skip(kind, depth)
	}
}

// pageType is the kind of a page, as parquet.thrift numbers them.
type pageType int64

const (
	dataPage       pageType = 0
	indexPage      pageType = 1
	dictionaryPage pageType = 2
	dataPageV2     pageType = 3
)

// pageHeader is what is needed of a page's header.
type pageHeader struct {
	kind                     pageType
	uncompressed, compressed int64
	crc                      uint32
	hasCRC                   bool
	hasBody                  bool // the struct of this page's kind was there
	values, nulls, rows      int64
	encoding                 int64
	levelEncoding            int64 // of the definition levels; version 1
	repetitionEncoding       int64 // version 1; of no use here, but every writer must say it
	definition, repetition   int64 // bytes of the levels; version 2
	compressedValues         bool  // version 2
}

// readPageHeader reads the header at the beginning of data and returns its length. errThriftShort says that more bytes
// are needed.
func readPageHeader(data []byte) (h pageHeader, length int, err error) {
	h = pageHeader{kind: -1, uncompressed: -1, compressed: -1, values: -1, nulls: -1, rows: -1, encoding: -1, levelEncoding: -1,
		repetitionEncoding: -1, definition: -1, repetition: -1, compressedValues: true} // -1: not there
	r := &thriftReader{data: data}
	r.structure(0, func(id int16, kind byte) bool {
		switch {
		case kind == thriftStruct && (id == 5 && h.kind == dataPage || id == 7 && h.kind == dictionaryPage || id == 8 && h.kind == dataPageV2):
			h.hasBody = true
			r.structure(1, func(id int16, kind byte) bool { return h.readBody(r, id, kind) })
		case kind != thriftI32:
			return false
		case id == 1:
			h.kind = pageType(r.i32())
		case id == 2:
			h.uncompressed = r.i32()
		case id == 3:
			h.compressed = r.i32()
		case id == 4:
			h.crc, h.hasCRC = uint32(r.i32()), true
		default:
			return false
		}
		return true
	})
	return h, r.at, r.err
}

// complete reports whether the header says everything that the specification requires of its kind of page.
func (h *pageHeader) complete() bool {
	if !h.hasBody || h.values < 0 || h.encoding < 0 {
		return false
	}
	switch h.kind {
	case dataPage:
		return h.levelEncoding >= 0 && h.repetitionEncoding >= 0
	case dataPageV2:
		return h.nulls >= 0 && h.rows >= 0 && h.definition >= 0 && h.repetition >= 0
	}
	return true
}

// readBody reads a field of the struct that is particular to the page's kind.
func (h *pageHeader) readBody(r *thriftReader, id int16, kind byte) bool {
	if h.kind == dataPageV2 && id == 7 && (kind == thriftTrue || kind == thriftFalse) {
		h.compressedValues = kind == thriftTrue
		return true
	}
	var target *int64
	switch {
	case kind != thriftI32:
		return false
	case id == 1:
		target = &h.values
	case id == 2 && h.kind != dataPageV2, id == 4 && h.kind == dataPageV2:
		target = &h.encoding
	case id == 3 && h.kind == dataPage:
		target = &h.levelEncoding
	case id == 4 && h.kind == dataPage:
		target = &h.repetitionEncoding
	case id == 2 && h.kind == dataPageV2:
		target = &h.nulls
	case id == 3 && h.kind == dataPageV2:
		target = &h.rows
	case id == 5 && h.kind == dataPageV2:
		target = &h.definition
	case id == 6 && h.kind == dataPageV2:
		target = &h.repetition
	default:
		return false
	}
	*target = r.i32()
	return true
}
