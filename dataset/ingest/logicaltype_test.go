package ingest

import "testing"

// TestNewLogicalTypes: of the union of logical types, and of the union of units inside of times and timestamps, those that the library
// knows are known, and all others are new. A known one that is taken for new would lose its unit, and so its times would be other times.
func TestNewLogicalTypes(t *testing.T) {
	field := func(delta, kind byte) byte { return delta<<4 | kind }
	for id := byte(1); id <= 15; id++ {
		known := id != gapLogicalType
		if id != 7 && id != 8 {
			r := &thriftReader{data: []byte{field(id, thriftStruct), 0, 0}}
			if got := r.newLogicalType(); got == known || r.err != nil {
				t.Errorf("member %d: new %v, %v", id, got, r.err)
			}
			continue
		}
		for unit := byte(1); unit <= 6; unit++ {
			// isAdjustedToUTC, true, then the unit: a union of empty structs.
			r := &thriftReader{data: []byte{field(id, thriftStruct), field(1, 1), field(1, thriftStruct), field(unit, thriftStruct), 0, 0, 0, 0}}
			if got := r.newLogicalType(); got != (unit > 3) || r.err != nil {
				t.Errorf("member %d, unit %d: new %v, %v", id, unit, got, r.err)
			}
		}
	}
}
