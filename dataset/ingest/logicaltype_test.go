package ingest

import "testing"

// TestNewLogicalTypes: of the union of logical types, and of the union of units inside of times and timestamps, those that this program
// knows are known, and all others are new. A known one that is taken for new would lose its unit, and so its times would be other times.
func TestNewLogicalTypes(t *testing.T) {
	field := func(delta, kind byte) byte { return delta<<4 | kind }
	for id := byte(1); id <= 15; id++ {
		if id == byte(integerKind) {
			for _, bits := range []byte{0, 8, 16, 24, 32, 64, 128} {
				r := &thriftReader{data: []byte{field(id, thriftStruct), field(1, thriftByte), bits, field(1, thriftTrue), 0, 0}}
				known := bits == 8 || bits == 16 || bits == 32 || bits == 64
				if got := r.logicalType(); (got.kind == newKind) == known || !got.signed || r.err != nil {
					t.Errorf("integers of %d bits: %+v, %v", bits, got, r.err)
				}
			}
			continue
		}
		known := logicalKind(id) != interval
		if id == byte(decimalKind) {
			r := &thriftReader{data: []byte{field(id, thriftStruct), field(1, thriftI32), 4, field(1, thriftI32), 18, 0, 0}}
			if got := r.logicalType(); got.kind != decimalKind || got.scale != 2 || got.precision != 9 || r.err != nil {
				t.Errorf("a decimal: %+v, %v", got, r.err)
			}
			continue
		}
		if id != byte(timeKind) && id != byte(stampKind) {
			r := &thriftReader{data: []byte{field(id, thriftStruct), 0, 0}}
			if got := r.logicalType().kind; (got == newKind) == known || r.err != nil {
				t.Errorf("member %d: %v, %v", id, got, r.err)
			}
			continue
		}
		for unit := byte(1); unit <= 6; unit++ {
			// isAdjustedToUTC, true, then the unit: a union of empty structs.
			r := &thriftReader{data: []byte{field(id, thriftStruct), field(1, 1), field(1, thriftStruct), field(unit, thriftStruct), 0, 0, 0, 0}}
			if got := r.logicalType(); (got.kind == newKind) != (unit > 3) || !got.utc || r.err != nil {
				t.Errorf("member %d, unit %d: %+v, %v", id, unit, got, r.err)
			}
		}
	}
}

// TestLogicalTypesThatLackSomething: a scale, sign, zone or unit that is not there is not zero, and of two members neither is meant. The
// column must be left out, or its values would be other ones.
func TestLogicalTypesThatLackSomething(t *testing.T) {
	const member = 1<<4 | thriftStruct
	for name, data := range map[string][]byte{
		"a decimal without scale":      {5<<4 | thriftStruct, 2<<4 | thriftI32, 18, 0, 0},
		"a decimal without precision":  {5<<4 | thriftStruct, 1<<4 | thriftI32, 4, 0, 0},
		"a decimal, scale of 64 bits":  {5<<4 | thriftStruct, 1<<4 | thriftI64, 4, 1<<4 | thriftI32, 18, 0, 0},
		"a time without unit":          {7<<4 | thriftStruct, 1<<4 | thriftTrue, 0, 0},
		"a timestamp without its zone": {8<<4 | thriftStruct, 2<<4 | thriftStruct, member, 0, 0, 0, 0},
		"an integer without its sign":  {10<<4 | thriftStruct, 1<<4 | thriftByte, 8, 0, 0},
		"a text that is a date":        {member, 0, 5<<4 | thriftStruct, 0, 0},
		"a text and something new":     {member, 0, 14<<4 | thriftStruct, 0, 0},
		"nothing":                      {0},
	} {
		r := &thriftReader{data: data}
		if got := r.logicalType(); got.kind != newKind || r.err != nil || r.at != len(data) {
			t.Errorf("%s: %+v, %v, %d of %d bytes", name, got, r.err, r.at, len(data))
		}
	}
}
