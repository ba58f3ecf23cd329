package ingest

import (
	"encoding/base64"
	"encoding/binary"
)

// footerTail is the length of the footer, in four bytes, and the magic.
const footerTail = 8

// readFooter reads the footer, whose length checkFrame has checked.
func (d *decoder) readFooter() error {
	var tail [footerTail]byte
	if _, err := d.source.ReadAt(tail[:], d.size-footerTail); err != nil {
		return err
	}
	footer := make([]byte, binary.LittleEndian.Uint32(tail[:4]))
	if _, err := d.source.ReadAt(footer, d.size-footerTail-int64(len(footer))); err != nil {
		return err
	}
	var err error
	if d.meta, err = readMetadata(footer); err != nil {
		return &Error{Kind: Damaged, Detail: "the footer of the Parquet file cannot be read", Err: err}
	}
	return nil
}

// encrypted reports whether any chunk of a leaf is encrypted; the footer says so in plain text.
func (d *decoder) encrypted(leaf int) bool {
	for _, group := range d.meta.groups {
		if leaf < group.count && d.meta.chunks[group.first+leaf].encrypted {
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

// arrowFacts is what a copy of Arrow's schema, which pyarrow and Polars keep in the footer, knows beside Parquet's types.
type arrowFacts struct {
	durations map[string]string // units of columns that Arrow calls durations: Parquet has no such type, and their numbers are bare integers
	arrays    map[string]bool   // lists of one length, which Polars calls arrays: Parquet has lists
	ordered   map[string]bool   // categories whose order means something, as those of pandas may and those of a Polars Enum do
}

// readArrow reads it. Where it is damaged nothing is known: the columns are good without it.
func readArrow(schema string) (known arrowFacts) {
	if len(schema) > maxArrowSchema {
		return known
	}
	data, err := base64.StdEncoding.DecodeString(schema)
	if err != nil || len(data) < 8 {
		return known
	}
	return arrowMessage(data[8:]) // after four bytes of ones and the length of the message
}

// The few numbers of Arrow's flatbuffers (format/Message.fbs, format/Schema.fbs) that lead to the type of a field:
// places of fields in their tables, and values of unions.
const (
	messageHeaderType, messageHeader      = 1, 2
	headerIsSchema                        = 1
	schemaFields                          = 1
	fieldName, fieldTypeType, fieldType   = 0, 2, 3
	fieldDictionary, dictionaryOrdered    = 4, 2
	typeIsFixedSizeList                   = 16
	typeIsDuration                        = 18
	durationUnit, durationUnitWhenMissing = 0, 1
)

var durationUnits = [...]string{"s", "ms", "us", "ns"}

// arrowMessage reads a schema message. It allocates nothing that the message asks for (Arrow's own reader does).
func arrowMessage(message []byte) (known arrowFacts) {
	defer func() {
		if recover() != nil { // an offset out of bounds
			known = arrowFacts{}
		}
	}()
	b := flatbuffer(message)
	root := b.follow(0)
	if at, ok := b.field(root, messageHeaderType); !ok || b[at] != headerIsSchema {
		return arrowFacts{}
	}
	at, ok := b.field(root, messageHeader)
	if !ok {
		return arrowFacts{}
	}
	fields, ok := b.field(b.follow(at), schemaFields)
	if !ok {
		return arrowFacts{}
	}
	fields = b.follow(fields)
	known = arrowFacts{durations: map[string]string{}, arrays: map[string]bool{}, ordered: map[string]bool{}}
	left := len(b) // bytes of names: many fields may share one long name, which would be copied for each
	for i := range int(b.u32(fields)) {
		field := b.follow(fields + 4 + 4*i)
		name, named := b.field(field, fieldName)
		kind, kinded := b.field(field, fieldTypeType)
		ordered := b.ordered(field)
		if !named || !kinded || b[kind] != typeIsDuration && b[kind] != typeIsFixedSizeList && !ordered {
			continue
		}
		text := b.follow(name)
		if left -= int(b.u32(text)); left < 0 {
			return arrowFacts{}
		}
		of := string(b[text+4:][:b.u32(text)])
		switch {
		case b[kind] == typeIsFixedSizeList:
			known.arrays[of] = true
		case ordered:
			known.ordered[of] = true
		default:
			known.durations[of] = durationUnits[b.unit(field)]
		}
	}
	return known
}

// unit is that of a field that is a duration.
func (b flatbuffer) unit(field int) int {
	if of, ok := b.field(field, fieldType); ok {
		if at, ok := b.field(b.follow(of), durationUnit); ok {
			return int(binary.LittleEndian.Uint16(b[at:]))
		}
	}
	return durationUnitWhenMissing
}

// ordered reports whether a field has a dictionary whose order means something.
func (b flatbuffer) ordered(field int) bool {
	at, ok := b.field(field, fieldDictionary)
	if !ok {
		return false
	}
	said, ok := b.field(b.follow(at), dictionaryOrdered)
	return ok && b[said] != 0
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
