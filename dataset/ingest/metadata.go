package ingest

import (
	"errors"
	"fmt"
	"strings"
)

// metadata is what is needed of a file's footer: the struct FileMetaData of parquet.thrift.
type metadata struct {
	version bool // was there
	rows    int64
	padded  bool // by a writer that miscounts
	schema  schema
	groups  []rowGroup
	chunks  []chunk           // of all row groups, those of one after those of another
	arrow   string            // the value of arrowSchemaKey
	notes   map[string]string // of the other keys that an origin is made of
	by      program
	data    []byte // the footer itself
}

// rowGroup is a stretch of rows; each leaf has one chunk of it.
type rowGroup struct {
	rows  int64
	first int // of its chunks
	count int // of chunks
}

// chunk is where the values of one leaf in one row group lie: ColumnChunk and ColumnMetaData.
type chunk struct {
	physical         physicalType
	codec            codec
	values           int64
	compressed       int64 // bytes in the file
	dataOffset       int64 // of its first data page
	dictionaryOffset int64 // -1 where it has none
	path             int32 // where in the footer its leaf's path stands, path_in_schema; a footer is shorter than 2^31 bytes
	encrypted        bool
	elsewhere        bool  // its values are in another file
	statistics       int32 // where in the footer they stand; 0: nowhere
	described        bool  // has a ColumnMetaData with all that the specification requires
}

// maxSchemaElements bounds the groups and leaves of a schema, far above what the limit of columns lets through. An element may be as
// small as three bytes of a footer, and takes a hundred in memory.
const maxSchemaElements = 1 << 20

var errFooter = errors.New("the footer is not complete")

// readMetadata reads a footer. Its numbers are as the file has them: whoever uses one checks it.
func readMetadata(data []byte) (*metadata, error) {
	m := &metadata{rows: -1, data: data, notes: map[string]string{}}
	r := &thriftReader{data: data}
	var elements []element
	haveSchema, haveGroups := false, false
	r.structure(0, func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftI32:
			r.i32()
			m.version = true
		case id == 2 && kind == thriftList && !haveSchema:
			haveSchema = true
			r.structs(func() {
				if len(elements) == maxSchemaElements {
					r.fail(fmt.Errorf("the schema has more than %d elements", maxSchemaElements))
					return
				}
				elements = append(elements, readElement(r))
			})
		case id == 3 && kind == thriftI64:
			m.rows = r.int()
		case id == 4 && kind == thriftList && !haveGroups:
			haveGroups = true
			r.structs(func() { m.readGroup(r) })
		case id == 5 && kind == thriftList:
			r.structs(func() { m.readKeyValue(r) })
		case id == 6 && kind == thriftBinary:
			by := r.bytes()
			m.padded, m.by = miscounts(by), writerOf(by)
		default:
			return false
		}
		return true
	})
	switch {
	case r.err != nil:
		return nil, r.err
	case !m.version || !haveSchema || m.rows == -1 || !haveGroups:
		return nil, errFooter
	}
	var err error
	if m.schema, err = newSchema(elements); err != nil {
		return nil, err
	}
	return m, nil
}

// readGroup reads a RowGroup.
func (m *metadata) readGroup(r *thriftReader) {
	g := rowGroup{rows: -1, first: len(m.chunks)}
	have := [4]bool{}
	r.structure(1, func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftList && !have[1]:
			r.structs(func() { m.chunks = append(m.chunks, readChunk(r)) })
			g.count = len(m.chunks) - g.first
		case id == 2 && kind == thriftI64:
			r.int()
		case id == 3 && kind == thriftI64:
			g.rows = r.int()
		default:
			return false
		}
		have[id] = true
		return true
	})
	if !have[1] || !have[2] || !have[3] {
		r.fail(errFooter)
	}
	m.groups = append(m.groups, g)
}

// readChunk reads a ColumnChunk.
func readChunk(r *thriftReader) (c chunk) {
	c.dictionaryOffset = -1
	offset := false
	r.structure(2, func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftBinary:
			c.elsewhere = len(r.bytes()) > 0
		case id == 2 && kind == thriftI64:
			r.int()
			offset = true
		case id == 3 && kind == thriftStruct:
			c.readDescription(r)
		case (id == 8 && kind == thriftStruct) || (id == 9 && kind == thriftBinary):
			c.encrypted = true
			return false
		default:
			return false
		}
		return true
	})
	if !offset { // which is required, and keeps a footer of a few bytes from becoming many chunks
		r.fail(errFooter)
	}
	return c
}

// readDescription reads a ColumnMetaData.
func (c *chunk) readDescription(r *thriftReader) {
	have := [10]bool{}
	r.structure(3, func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftI32:
			c.physical = physicalType(r.i32())
		case id == 3 && kind == thriftList:
			c.path = int32(r.at)
			r.skip(kind, 3)
		case id == 4 && kind == thriftI32:
			c.codec = codec(r.i32())
		case id == 5 && kind == thriftI64:
			c.values = r.int()
		case id == 7 && kind == thriftI64:
			c.compressed = r.int()
		case id == 9 && kind == thriftI64:
			c.dataOffset = r.int()
		case id == 11 && kind == thriftI64:
			c.dictionaryOffset = r.int()
			return true
		case id == 12 && kind == thriftStruct:
			c.statistics = int32(r.at)
			return false
		default:
			return false
		}
		have[id] = true
		return true
	})
	c.described = have[1] && have[3] && have[4] && have[5] && have[7] && have[9]
}

// readKeyValue reads a KeyValue; the first of a key stands.
func (m *metadata) readKeyValue(r *thriftReader) {
	var key, value []byte
	r.structure(1, func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftBinary:
			key = r.bytes()
		case id == 2 && kind == thriftBinary:
			value = r.bytes()
		default:
			return false
		}
		return true
	})
	switch k := string(key); {
	case k == arrowSchemaKey && m.arrow == "":
		m.arrow = string(value)
	case (k == pandasKey || k == geoKey || k == sparkKey) && m.notes[k] == "":
		m.notes[k] = string(value)
	}
}

// isOf reports whether a chunk says that it is of this field of the root. Chunks stand in the order of the leaves; a file that says another
// one would have its columns exchanged.
func (m *metadata) isOf(c *chunk, name string) bool {
	r := &thriftReader{data: m.data, at: int(c.path)}
	kind, n := r.listHead()
	return kind == thriftBinary && n == 1 && string(r.bytes()) == name
}

// maxWriterName is how much of a writer's name is looked at.
const maxWriterName = 256

// miscounts reports a writer that did not count the dictionary's header among a chunk's bytes (PARQUET-816): parquet-mr before 1.2.9.
func miscounts(createdBy []byte) bool {
	app, version, _ := strings.Cut(strings.ToLower(string(createdBy[:min(len(createdBy), maxWriterName)])), " version ")
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); strings.TrimSpace(app) != "parquet-mr" {
		return false
	} else if n < 3 { // it does not say
		return true
	}
	return major < 1 || major == 1 && (minor < 2 || minor == 2 && patch < 9)
}
