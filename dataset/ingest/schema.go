package ingest

import "errors"

// element is a node of the schema as the footer has it, the tree written from the root down: SchemaElement.
type element struct {
	physical   physicalType
	typed      bool // has a physical type: it is a leaf
	length     int64
	repetition repetition
	repeats    bool // says its repetition
	name       string
	children   int64
	logical    logicalType
	union      bool // the logical type is from the union, which counts before the converted type
}

// leaf is a column of values.
type leaf struct {
	name       string      // of the root's field that it is, or lies in
	nested     bool        // not a field of the root with at most one value a row
	group      logicalKind // of that field, where it is a group
	repeated   bool        // of the root, with many values a row
	optional   bool        // may be null
	physical   physicalType
	typeLength int64 // of FIXED_LEN_BYTE_ARRAY
	logical    logicalType
}

// schema is the tree, as far as it is needed.
type schema struct {
	fields []string // names of the root's fields
	leaves []leaf
}

// maxSchemaDepth is how deep groups may lie in each other; lists of structs of lists have ten levels.
const maxSchemaDepth = 1000

var errSchema = errors.New("the schema is not a tree")

// readElement reads a SchemaElement.
func readElement(r *thriftReader) (e element) {
	e.repetition = required
	var scale, precision int64
	old, named := int64(-1), false
	r.structure(1, func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftI32:
			e.physical, e.typed = physicalType(r.i32()), true
		case id == 2 && kind == thriftI32:
			e.length = r.i32()
		case id == 3 && kind == thriftI32:
			e.repetition, e.repeats = repetition(r.i32()), true
		case id == 4 && kind == thriftBinary:
			e.name, named = string(r.bytes()), true
		case id == 5 && kind == thriftI32:
			e.children = r.i32()
		case id == 6 && kind == thriftI32:
			old = r.i32()
		case id == 7 && kind == thriftI32:
			scale = r.i32()
		case id == 8 && kind == thriftI32:
			precision = r.i32()
		case id == 10 && kind == thriftStruct:
			e.logical, e.union = r.logicalType(), true
		default:
			return false
		}
		return true
	})
	if !named {
		r.fail(errFooter)
	}
	switch {
	case e.union || old < 0:
	case old < int64(len(converted)):
		e.logical = converted[old]
		e.logical.scale, e.logical.precision = scale, precision
	default:
		e.logical = logicalType{kind: newKind}
	}
	return e
}

// logicalType reads a LogicalType. A member, or a unit, that this program does not know is newKind, and so is a union of two members or of
// one that lacks a parameter: the values must not be read as what they are not.
func (r *thriftReader) logicalType() (t logicalType) {
	t.kind = newKind
	members, parameters := 0, 0
	r.structure(2, func(id int16, kind byte) bool {
		members++
		if k := logicalKind(id); k < stringKind || k > lastLogical || k == interval {
			return false
		}
		t.kind = logicalKind(id)
		if kind != thriftStruct {
			return false
		}
		r.structure(3, func(id int16, kind byte) bool {
			read := t.readParameter(r, id, kind)
			if read {
				parameters |= 1 << id
			}
			return read
		})
		return true
	})
	switch {
	case members != 1:
		t.kind = newKind
	case (t.kind == decimalKind || t.kind == timeKind || t.kind == stampKind || t.kind == integerKind) && parameters != 1<<1|1<<2:
		t.kind = newKind // both are required: a scale, a sign or a zone that is not said is not zero
	case (t.kind == timeKind || t.kind == stampKind) && unitNames[t.unit] == "":
		t.kind = newKind
	case t.kind == integerKind && t.bits != 8 && t.bits != 16 && t.bits != 32 && t.bits != 64:
		t.kind = newKind
	}
	return t
}

// readParameter reads a field of the logical types that have any.
func (t *logicalType) readParameter(r *thriftReader, id int16, kind byte) bool {
	truth := kind == thriftTrue
	isBool := truth || kind == thriftFalse
	switch {
	case t.kind == decimalKind && id == 1 && kind == thriftI32:
		t.scale = r.i32()
	case t.kind == decimalKind && id == 2 && kind == thriftI32:
		t.precision = r.i32()
	case (t.kind == timeKind || t.kind == stampKind) && id == 1 && isBool:
		t.utc = truth
	case (t.kind == timeKind || t.kind == stampKind) && id == 2 && kind == thriftStruct:
		r.structure(4, func(unit int16, _ byte) bool {
			t.unit = timeUnit(unit)
			return false
		})
	case t.kind == integerKind && id == 1 && kind == thriftByte:
		t.bits = int64(int8(r.byte()))
	case t.kind == integerKind && id == 2 && isBool:
		t.signed = truth
	default:
		return false
	}
	return true
}

// newSchema makes the tree of its elements: the root, then depth first each group before its children.
func newSchema(elements []element) (s schema, err error) {
	if len(elements) == 0 || elements[0].typed || elements[0].children < 0 {
		return s, errSchema
	}
	type open struct {
		left  int64 // children that are still to come
		name  string
		group logicalKind
	}
	stack := []open{{left: elements[0].children}}
	for _, e := range elements[1:] {
		for len(stack) > 0 && stack[len(stack)-1].left == 0 {
			stack = stack[:len(stack)-1]
		}
		if len(stack) == 0 || !e.repeats || e.repetition < required || e.repetition > repeated ||
			e.children < 0 || e.typed && e.children > 0 || e.typed && (e.physical < boolean || e.physical > fixedLenByteArray) {
			return schema{}, errSchema
		}
		parent := &stack[len(stack)-1]
		parent.left--
		name, nested := parent.name, true
		if len(stack) == 1 {
			name, nested = e.name, false
			s.fields = append(s.fields, name)
		}
		if e.typed {
			s.leaves = append(s.leaves, leaf{name: name, nested: nested || e.repetition == repeated, group: parent.group, repeated: !nested && e.repetition == repeated, optional: e.repetition == optional,
				physical: e.physical, typeLength: e.length, logical: e.logical})
			continue
		}
		if len(stack) > maxSchemaDepth {
			return schema{}, errSchema
		}
		group := parent.group
		if len(stack) == 1 {
			group = e.logical.kind
		}
		stack = append(stack, open{left: e.children, name: name, group: group})
	}
	for _, o := range stack {
		if o.left > 0 {
			return schema{}, errSchema
		}
	}
	return s, nil
}
