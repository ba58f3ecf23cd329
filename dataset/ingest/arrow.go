package ingest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/xitongsys/parquet-go/parquet"
)

// More of the numbers of Arrow's format (format/Message.fbs, format/Schema.fbs) than footer.go reads: places of fields in their tables, and values of unions.
const (
	messageVersion, metadataV5                                       = 0, 4
	fieldNullable, fieldChildren, fieldMetadata, fieldMembers        = 1, 5, 6, 7
	dictionaryIndex, dictionaryMembers                               = 1, 4
	typeIsInt, typeIsFloat, typeIsUtf8, typeIsBool, typeIsDate       = 2, 3, 5, 6, 8
	typeIsStamp                                                      = 10
	floatIsDouble, dateIsDay, dateIsDayByDefault, stampInMicros, utc = 2, 0, 1, 2, "UTC"
	continues                                                        = 0xFFFFFFFF // begins an encapsulated message
	wideIndex                                                        = 1 << 8     // categories from which on an index has two bytes
	arrowAlignment                                                   = 8
)

// polarsEnumKey is the note by which Polars knows an Enum, and its texts, each behind its length, in a field of Arrow.
const polarsEnumKey = "_PL_ENUM_VALUES2"

// arrowSchema is what pyarrow, pandas and Polars read of a file to know that texts are categories in an order: Arrow's schema of all columns.
func arrowSchema(columns []exportColumn) string {
	b := flatbuffers.NewBuilder(0)
	fields := make([]flatbuffers.UOffsetT, len(columns))
	for i := range columns {
		fields[i] = columns[i].arrowField(b, i)
	}
	list := offsets(b, fields)
	b.StartObject(schemaFields + 1)
	b.PrependUOffsetTSlot(schemaFields, list, 0)
	schema := b.EndObject()
	b.StartObject(messageHeader + 1)
	b.PrependInt16Slot(messageVersion, metadataV5, 0)
	b.PrependByteSlot(messageHeaderType, headerIsSchema, 0)
	b.PrependUOffsetTSlot(messageHeader, schema, 0)
	b.Finish(b.EndObject())
	message := b.FinishedBytes()
	for len(message)%arrowAlignment != 0 {
		message = append(message, 0)
	}
	head := binary.LittleEndian.AppendUint32(nil, continues)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(message)))
	return base64.StdEncoding.EncodeToString(append(head, message...))
}

// arrowField writes a column's field; its number names its dictionary.
func (x *exportColumn) arrowField(b *flatbuffers.Builder, number int) flatbuffers.UOffsetT {
	name := b.CreateString(x.element.Name)
	kind, of := x.arrowType(b)
	children := offsets(b, nil)
	var dictionary, notes flatbuffers.UOffsetT
	if x.order != nil {
		bits := int32(8)
		if len(x.order) >= wideIndex {
			bits = 16
		}
		index := arrowInt(b, bits, false)
		b.StartObject(dictionaryMembers)
		b.PrependInt64Slot(0, int64(number), 0)
		b.PrependUOffsetTSlot(dictionaryIndex, index, 0)
		b.PrependBoolSlot(dictionaryOrdered, true, false)
		dictionary = b.EndObject()
		var texts strings.Builder
		for _, text := range x.order {
			fmt.Fprintf(&texts, "%d;%s", len(text), text)
		}
		key, value := b.CreateString(polarsEnumKey), b.CreateString(texts.String())
		b.StartObject(2)
		b.PrependUOffsetTSlot(0, key, 0)
		b.PrependUOffsetTSlot(1, value, 0)
		notes = offsets(b, []flatbuffers.UOffsetT{b.EndObject()})
	}
	b.StartObject(fieldMembers)
	b.PrependUOffsetTSlot(fieldName, name, 0)
	b.PrependBoolSlot(fieldNullable, true, false)
	b.PrependByteSlot(fieldTypeType, kind, 0)
	b.PrependUOffsetTSlot(fieldType, of, 0)
	b.PrependUOffsetTSlot(fieldDictionary, dictionary, 0)
	b.PrependUOffsetTSlot(fieldChildren, children, 0)
	b.PrependUOffsetTSlot(fieldMetadata, notes, 0)
	return b.EndObject()
}

// arrowType writes the type of a column's values, and returns which of the union it is.
func (x *exportColumn) arrowType(b *flatbuffers.Builder) (kind byte, at flatbuffers.UOffsetT) {
	switch el := x.element; {
	case *el.Type == parquet.Type_BOOLEAN:
		b.StartObject(0)
		return typeIsBool, b.EndObject()
	case *el.Type == parquet.Type_BYTE_ARRAY:
		b.StartObject(0)
		return typeIsUtf8, b.EndObject()
	case *el.Type == parquet.Type_DOUBLE:
		b.StartObject(1)
		b.PrependInt16Slot(0, floatIsDouble, 0)
		return typeIsFloat, b.EndObject()
	case el.LogicalType != nil && el.LogicalType.DATE != nil:
		b.StartObject(1)
		b.PrependInt16Slot(0, dateIsDay, dateIsDayByDefault)
		return typeIsDate, b.EndObject()
	case el.LogicalType != nil && el.LogicalType.TIMESTAMP != nil:
		var zone flatbuffers.UOffsetT
		if el.LogicalType.TIMESTAMP.IsAdjustedToUTC {
			zone = b.CreateString(utc)
		}
		b.StartObject(2)
		b.PrependInt16Slot(0, stampInMicros, 0)
		b.PrependUOffsetTSlot(1, zone, 0)
		return typeIsStamp, b.EndObject()
	}
	return typeIsInt, arrowInt(b, 64, true)
}

func arrowInt(b *flatbuffers.Builder, bits int32, signed bool) flatbuffers.UOffsetT {
	b.StartObject(2)
	b.PrependInt32Slot(0, bits, 0)
	b.PrependBoolSlot(1, signed, false)
	return b.EndObject()
}

// offsets writes a vector of tables.
func offsets(b *flatbuffers.Builder, of []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(flatbuffers.SizeUOffsetT, len(of), flatbuffers.SizeUOffsetT)
	for i := range of {
		b.PrependUOffsetT(of[len(of)-1-i])
	}
	return b.EndVector(len(of))
}
