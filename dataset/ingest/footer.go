package ingest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// readFooter lets the library read the footer. The library panics at a logical type that is newer than itself; the
// footer is then read with that type replaced by the null type, and the columns that have it are skipped.
func (d *decoder) readFooter() error {
	reader, err := openParquet(d.source)
	if err == nil {
		d.reader = reader
		return nil
	}
	if source := d.withoutNewTypes(); source != nil {
		if reader, again := openParquet(source); again == nil {
			d.reader = reader
			return nil
		}
	}
	return &Error{Kind: Damaged, Detail: "the footer of the Parquet file cannot be read", Err: err}
}

func openParquet(source parquet.ReaderAtSeeker) (reader *file.Reader, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return file.NewParquetReader(source, file.WithReadProps(parquet.NewReaderProperties(memory.NewGoAllocator())))
}

// footerTail is the length of the footer, in four bytes, and the magic.
const footerTail = 8

// withoutNewTypes returns the file with another footer, and notes the leaves that had a new type; nil where there are
// none.
func (d *decoder) withoutNewTypes() parquet.ReaderAtSeeker {
	var tail [footerTail]byte
	if _, err := d.source.ReadAt(tail[:], d.size-footerTail); err != nil {
		return nil
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	start := d.size - footerTail - length
	footer := make([]byte, length)
	if _, err := d.source.ReadAt(footer, start); err != nil {
		return nil
	}
	patched, leaves := replaceNewTypes(footer)
	if len(leaves) == 0 {
		return nil
	}
	d.newTypes = leaves
	patched = binary.LittleEndian.AppendUint32(patched, uint32(len(patched)))
	s := &spliced{head: d.source, start: start, tail: append(patched, tail[4:]...)}
	return io.NewSectionReader(s, 0, start+int64(len(s.tail)))
}

// spliced is a file whose bytes from start on are others.
type spliced struct {
	head  io.ReaderAt
	start int64
	tail  []byte
}

// ReadAt reads from the file and from the other bytes.
func (s *spliced) ReadAt(b []byte, at int64) (n int, err error) {
	if at < s.start {
		if n, err = s.head.ReadAt(b[:min(int64(len(b)), s.start-at)], at); err != nil || n == len(b) {
			return n, err
		}
	}
	m := copy(b[n:], s.tail[min(at+int64(n)-s.start, int64(len(s.tail))):])
	if n += m; n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// The union LogicalType of parquet.thrift. Its members 7 and 8, TIME and TIMESTAMP, have a union of units, 1 to 3.
const (
	lastLogicalType = 18
	gapLogicalType  = 9 // reserved for INTERVAL
	nullLogicalType = "\xbc\x00\x00"
)

// replaceNewTypes returns the footer with every logical type that the library does not know replaced by the null type,
// and which leaves those were.
func replaceNewTypes(footer []byte) (patched []byte, leaves map[int]bool) {
	leaves = map[int]bool{}
	done, leaf := 0, 0
	r := &thriftReader{data: footer}
	element := func() {
		isLeaf, isNew := true, false
		r.structure(1, func(id int16, kind byte) bool {
			switch {
			case id == 5 && kind == thriftI32:
				isLeaf = r.int() == 0
			case id == 10 && kind == thriftStruct:
				from := r.at
				if isNew = r.newLogicalType(); isNew && r.err == nil {
					patched = append(append(patched, footer[done:from]...), nullLogicalType...)
					done = r.at
				}
			default:
				return false
			}
			return true
		})
		if isLeaf {
			if isNew {
				leaves[leaf] = true
			}
			leaf++
		}
	}
	r.structure(0, func(id int16, kind byte) bool {
		if id != 2 || kind != thriftList {
			return false
		}
		_, n := r.listHead()
		for i := uint64(0); i < n && r.err == nil; i++ {
			element()
		}
		return true
	})
	if r.err != nil {
		return nil, nil
	}
	return append(patched, footer[done:]...), leaves
}

// newLogicalType reads a LogicalType and reports whether it is one that the library does not know.
func (r *thriftReader) newLogicalType() bool {
	known := false
	r.structure(2, func(id int16, kind byte) bool {
		known = id >= 1 && id <= lastLogicalType && id != gapLogicalType
		if id != 7 && id != 8 || kind != thriftStruct {
			return false
		}
		known = false
		r.structure(3, func(id int16, kind byte) bool {
			if id != 2 || kind != thriftStruct {
				return false
			}
			r.structure(4, func(unit int16, _ byte) bool {
				known = unit >= 1 && unit <= 3
				return false
			})
			return true
		})
		return true
	})
	return !known
}

// encrypted reports whether any chunk of a leaf is encrypted; the footer says so in plain text.
func (d *decoder) encrypted(leaf int) bool {
	for _, group := range d.reader.MetaData().RowGroups {
		if leaf < len(group.Columns) && group.Columns[leaf].IsSetCryptoMetadata() {
			return true
		}
	}
	return false
}

const (
	arrowSchemaKey = "ARROW:schema"
	// maxArrowSchema bounds what is parsed to learn the units of durations: that of 16,384 columns has about 3 MB.
	maxArrowSchema = 16 << 20
)

// durations returns the units of the columns that Arrow calls durations. Parquet has no such type: their numbers are
// bare integers, and only a copy of Arrow's schema, which pyarrow and Polars keep in the footer, knows the unit.
func (d *decoder) durations() map[string]string {
	text := d.reader.MetaData().KeyValueMetadata().FindValue(arrowSchemaKey)
	if text == nil || len(*text) > maxArrowSchema {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(*text)
	if err != nil || len(data) < 8 {
		return nil
	}
	return arrowDurations(data[8:]) // after four bytes of ones and the length of the message
}

// The few numbers of Arrow's flatbuffers (format/Message.fbs, format/Schema.fbs) that lead to the unit of a duration:
// places of fields in their tables, and values of unions.
const (
	messageHeaderType, messageHeader      = 1, 2
	headerIsSchema                        = 1
	schemaFields                          = 1
	fieldName, fieldTypeType, fieldType   = 0, 2, 3
	typeIsDuration                        = 18
	durationUnit, durationUnitWhenMissing = 0, 1
)

var durationUnits = [...]string{"s", "ms", "us", "ns"}

// arrowDurations reads the units of durations out of a schema message. It allocates nothing that the message asks for
// (Arrow's own reader does); where the message is damaged the units are unknown, for the numbers are good without them.
func arrowDurations(message []byte) (units map[string]string) {
	defer func() {
		if recover() != nil { // an offset out of bounds
			units = nil
		}
	}()
	b := flatbuffer(message)
	root := b.follow(0)
	if at, ok := b.field(root, messageHeaderType); !ok || b[at] != headerIsSchema {
		return nil
	}
	at, ok := b.field(root, messageHeader)
	if !ok {
		return nil
	}
	fields, ok := b.field(b.follow(at), schemaFields)
	if !ok {
		return nil
	}
	fields = b.follow(fields)
	units = map[string]string{}
	for i := range int(b.u32(fields)) {
		field := b.follow(fields + 4 + 4*i)
		name, named := b.field(field, fieldName)
		kind, kinded := b.field(field, fieldTypeType)
		if !named || !kinded || b[kind] != typeIsDuration {
			continue
		}
		unit := durationUnitWhenMissing
		if of, ok := b.field(field, fieldType); ok {
			if at, ok := b.field(b.follow(of), durationUnit); ok {
				unit = int(binary.LittleEndian.Uint16(b[at:]))
			}
		}
		text := b.follow(name)
		units[string(b[text+4:][:b.u32(text)])] = durationUnits[unit]
	}
	return units
}

// flatbuffer is a buffer of FlatBuffers; a position out of bounds panics.
type flatbuffer []byte

func (b flatbuffer) u32(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

// follow returns where the offset at a position leads.
func (b flatbuffer) follow(at int) int { return at + int(b.u32(at)) }

// field returns the position of a table's field.
func (b flatbuffer) field(table, index int) (at int, ok bool) {
	vtable := table - int(int32(b.u32(table)))
	slot := 4 + 2*index
	if slot+2 > int(binary.LittleEndian.Uint16(b[vtable:])) {
		return 0, false
	}
	offset := int(binary.LittleEndian.Uint16(b[vtable+slot:]))
	return table + offset, offset != 0
}
