package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// compact writes structs of the compact protocol, each field after the one before.
type compact struct {
	bytes.Buffer
	last int16
}

func (c *compact) field(id int16, kind byte) {
	if delta := id - c.last; delta > 0 && delta < 16 {
		c.WriteByte(byte(delta)<<4 | kind)
	} else {
		c.WriteByte(kind)
		c.Write(binary.AppendVarint(nil, int64(id)))
	}
	c.last = id
}

func (c *compact) int(id int16, kind byte, v int64) {
	c.field(id, kind)
	c.Write(binary.AppendVarint(nil, v))
}

func (c *compact) text(id int16, s string) {
	c.field(id, thriftBinary)
	c.Write(append(binary.AppendUvarint(nil, uint64(len(s))), s...))
}

func (c *compact) list(id int16, kind byte, n int) {
	c.field(id, thriftList)
	c.Write(append([]byte{0xf0 | kind}, binary.AppendUvarint(nil, uint64(n))...))
}

// structure writes a struct, as a field or, where id is 0, as an element of a list.
func (c *compact) structure(id int16, fields func()) {
	if id > 0 {
		c.field(id, thriftStruct)
	}
	outer := c.last
	c.last = 0
	fields()
	c.WriteByte(thriftStop)
	c.last = outer
}

// written makes a file with one int32 column for each name, required, of these rows.
func written(t testing.TB, names []string, rows int) []byte {
	t.Helper()
	out := &compact{}
	out.WriteString("PAR1")
	values := make([]byte, 4*rows)
	offsets := make([]int64, len(names))
	for i := range names {
		offsets[i] = int64(out.Len())
		out.structure(0, func() {
			out.int(1, thriftI32, int64(dataPage))
			out.int(2, thriftI32, int64(len(values)))
			out.int(3, thriftI32, int64(len(values)))
			out.structure(5, func() {
				for id, v := range []int64{int64(rows), int64(plain), int64(rle), int64(rle)} {
					out.int(int16(id+1), thriftI32, v)
				}
			})
		})
		out.Write(values)
	}
	footer := out.Len()
	out.structure(0, func() {
		out.int(1, thriftI32, 2)
		out.list(2, thriftStruct, len(names)+1)
		out.structure(0, func() {
			out.text(4, "schema")
			out.int(5, thriftI32, int64(len(names)))
		})
		for _, name := range names {
			out.structure(0, func() {
				out.int(1, thriftI32, int64(int32Type))
				out.int(3, thriftI32, int64(required))
				out.text(4, name)
			})
		}
		out.int(3, thriftI64, int64(rows))
		out.list(4, thriftStruct, 1)
		out.structure(0, func() {
			out.list(1, thriftStruct, len(names))
			for i, name := range names {
				length := int64(footer) - offsets[i]
				if i+1 < len(names) {
					length = offsets[i+1] - offsets[i]
				}
				out.structure(0, func() {
					out.int(2, thriftI64, 0)
					out.structure(3, func() {
						out.int(1, thriftI32, int64(int32Type))
						out.list(2, thriftI32, 1)
						out.Write(binary.AppendVarint(nil, int64(plain)))
						out.list(3, thriftBinary, 1)
						out.Write(append(binary.AppendUvarint(nil, uint64(len(name))), name...))
						out.int(4, thriftI32, int64(uncompressed))
						out.int(5, thriftI64, int64(rows))
						out.int(6, thriftI64, length)
						out.int(7, thriftI64, length)
						out.int(9, thriftI64, offsets[i])
					})
				})
			}
			out.int(2, thriftI64, int64(footer))
			out.int(3, thriftI64, int64(rows))
		})
	})
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(out.Len()-footer)))
	out.WriteString("PAR1")
	return out.Bytes()
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	return names
}

func TestSchemas(t *testing.T) {
	if e := refused(t, write(t, written(t, []string{"a", "b", "a"}, 1)), Limits{}, DuplicateColumn); e.Column != "a" {
		t.Errorf("the duplicate column is %q", e.Column)
	}
	refused(t, write(t, written(t, numbered(20000), 1)), Limits{}, TooManyColumns)
	refused(t, write(t, written(t, []string{"a"}, 0)), Limits{}, NoRows)
	refused(t, write(t, written(t, []string{"", "\xff", "a\x01b"}, 3)), Limits{}, NoUsableColumns)

	table, res := decode(t, write(t, written(t, []string{"a", "A", "", "a.b", "x y"}, 3)))
	names := make([]string, table.Columns())
	for i := range names {
		names[i] = table.Column(i).Name
	}
	if !slices.Equal(names, []string{"a", "A", "a.b", "x y"}) || len(res.Skipped) != 1 {
		t.Errorf("columns %q, skipped %v", names, res.Skipped)
	}
}

// A page that is larger than the limit is no damage; the sentence must say what to do about it.
func TestPageLimit(t *testing.T) {
	if e := refused(t, fixture("flights-20k.parquet"), Limits{MaxPageBytes: 1000}, TooLarge); e.Column != "date" {
		t.Errorf("column %q, want date", e.Column)
	}
}

// The widest table that is taken.
func TestMaxColumns(t *testing.T) {
	table, _ := decode(t, write(t, written(t, numbered(DefaultMaxColumns), 2)))
	if table.Columns() != DefaultMaxColumns || table.Rows() != 2 {
		t.Errorf("%d columns of %d rows", table.Columns(), table.Rows())
	}
}

// TestFootersAreHeldAgainstThemselves: numbers and structs of a footer that contradict each other are refused before a page is read: a
// schema that is no tree, row groups of other widths or row counts, structs without what they must have.
func TestFootersAreHeldAgainstThemselves(t *testing.T) {
	leaf := func(name string) func(*compact) {
		return func(c *compact) {
			c.int(1, thriftI32, int64(int32Type))
			c.int(3, thriftI32, int64(required))
			c.text(4, name)
		}
	}
	group := func(children int64) func(*compact) {
		return func(c *compact) {
			c.int(3, thriftI32, int64(required))
			c.text(4, "g")
			c.int(5, thriftI32, children)
		}
	}
	chunk := func(c *compact) { c.int(2, thriftI64, 4) }
	of := func(rows int64, chunks ...func(*compact)) func(*compact) {
		return func(c *compact) {
			c.list(1, thriftStruct, len(chunks))
			for _, one := range chunks {
				c.structure(0, func() { one(c) })
			}
			c.int(2, thriftI64, 0)
			c.int(3, thriftI64, rows)
		}
	}
	for name, f := range map[string]struct {
		elements []func(*compact)
		rows     int64
		groups   []func(*compact)
		kind     Kind
	}{
		"nothing wrong but the missing places": {[]func(*compact){group(1), leaf("a")}, 2, []func(*compact){of(2, chunk)}, Damaged},
		"no schema":                            {nil, 0, nil, Damaged},
		"a leaf as root":                       {[]func(*compact){leaf("a")}, 0, nil, Damaged},
		"a child too few":                      {[]func(*compact){group(2), leaf("a")}, 0, nil, Damaged},
		"a child too many":                     {[]func(*compact){group(1), leaf("a"), leaf("b")}, 0, nil, Damaged},
		"fewer children than none":             {[]func(*compact){group(-1)}, 0, nil, Damaged},
		"an inner group without its child":     {[]func(*compact){group(2), leaf("a"), group(1)}, 0, nil, Damaged},
		"a leaf of no type":                    {[]func(*compact){group(1), func(c *compact) { c.int(1, thriftI32, 8); c.int(3, thriftI32, 0); c.text(4, "a") }}, 0, nil, Damaged},
		"a leaf without a repetition":          {[]func(*compact){group(1), func(c *compact) { c.int(1, thriftI32, 1); c.text(4, "a") }}, 0, nil, Damaged},
		"a leaf without a name":                {[]func(*compact){group(1), func(c *compact) { c.int(1, thriftI32, 1); c.int(3, thriftI32, 0) }}, 0, nil, Damaged},
		"no columns":                           {[]func(*compact){group(0)}, 0, nil, NoUsableColumns},
		"a chunk too few":                      {[]func(*compact){group(2), leaf("a"), leaf("b")}, 2, []func(*compact){of(2, chunk)}, Damaged},
		"a chunk too many":                     {[]func(*compact){group(1), leaf("a")}, 2, []func(*compact){of(2, chunk, chunk)}, Damaged},
		"rows of another number":               {[]func(*compact){group(1), leaf("a")}, 3, []func(*compact){of(2, chunk)}, Damaged},
		"fewer rows than none":                 {[]func(*compact){group(1), leaf("a")}, 2, []func(*compact){of(-1, chunk), of(3, chunk)}, Damaged},
		"a group without its rows":             {[]func(*compact){group(1), leaf("a")}, 0, []func(*compact){func(c *compact) { c.list(1, thriftStruct, 0); c.int(2, thriftI64, 0) }}, Damaged},
		"an empty chunk":                       {[]func(*compact){group(1), leaf("a")}, 2, []func(*compact){of(2, func(*compact) {})}, Damaged},
	} {
		out := &compact{}
		out.WriteString("PAR1")
		footer := out.Len()
		out.structure(0, func() {
			out.int(1, thriftI32, 2)
			out.list(2, thriftStruct, len(f.elements))
			for _, one := range f.elements {
				out.structure(0, func() { one(out) })
			}
			out.int(3, thriftI64, f.rows)
			out.list(4, thriftStruct, len(f.groups))
			for _, one := range f.groups {
				out.structure(0, func() { one(out) })
			}
		})
		out.Write(binary.LittleEndian.AppendUint32(nil, uint32(out.Len()-footer)))
		out.WriteString("PAR1")
		t.Run(name, func(t *testing.T) {
			e := refused(t, write(t, out.Bytes()), Limits{}, f.kind)
			if name == "nothing wrong but the missing places" && !strings.Contains(e.Detail, "does not say where") {
				t.Error(e)
			}
			if strings.HasPrefix(name, "a chunk") && !strings.Contains(e.Detail, "the schema") {
				t.Error(e)
			}
		})
	}
}
