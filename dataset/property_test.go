package dataset

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

// randomTable draws a table of 1 to 5 columns; few distinct values, so that equal rows and cells are common.
func randomTable(t *rapid.T) []Column {
	rows := rapid.IntRange(1, 300).Draw(t, "rows")
	seed := rapid.Uint64().Draw(t, "seed")
	r := rand.New(rand.NewPCG(seed, 1))
	columns := make([]Column, rapid.IntRange(1, 5).Draw(t, "columns"))
	for i := range columns {
		c := &columns[i]
		c.Field = Field{Name: string(rune('a' + i)), Kind: Kind(1 + r.IntN(4)), Source: "x"}
		switch c.Kind {
		case Bool:
			c.Bools = make([]uint8, rows)
			for j := range c.Bools {
				c.Bools[j] = uint8(r.IntN(3))
			}
		case Text:
			c.Dictionary = NewDictionary("", "a", "aa", "é")
			c.Codes = make([]uint32, rows)
			for j := range c.Codes {
				c.Codes[j] = r.Uint32N(5)
			}
		default:
			c.Numbers = make([]float64, rows)
			for j := range c.Numbers {
				c.Numbers[j] = []float64{0, 1, -2.5, 1e300, math.NaN()}[r.IntN(5)]
			}
		}
	}
	return columns
}

func take(c Column, order []uint32) Column {
	d := Column{Field: c.Field, Dictionary: c.Dictionary}
	for _, row := range order {
		switch c.Kind {
		case Bool:
			d.Bools = append(d.Bools, c.Bools[row])
		case Text:
			d.Codes = append(d.Codes, c.Codes[row])
		default:
			d.Numbers = append(d.Numbers, c.Numbers[row])
		}
	}
	return d
}

func takeAll(columns []Column, order []uint32) []Column {
	taken := make([]Column, len(columns))
	for i := range columns {
		taken[i] = take(columns[i], order)
	}
	return taken
}

func digestOf(t *rapid.T, tables ...[]Column) [32]byte {
	d := NewDigest()
	for _, columns := range tables {
		table, err := FromColumns(columns...)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Add(table); err != nil {
			t.Fatal(err)
		}
	}
	return d.Sum([]byte("key"))
}

func ordinals(n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	return order
}

// A permutation of rows or columns, another spelling of the same texts, another source type and a division into two
// tables leave the digest; one cell, one row more or less, a name, a kind and the key change it.
func TestDigestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := randomTable(t)
		rows := columns[0].Len()
		want := digestOf(t, columns)
		same := func(what string, got [32]byte) {
			if got != want {
				t.Fatalf("%s changed the digest", what)
			}
		}
		differs := func(what string, got [32]byte) {
			if got == want {
				t.Fatalf("%s left the digest", what)
			}
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "changes"), 2))
		order := ordinals(rows)
		r.Shuffle(rows, func(i, j int) { order[i], order[j] = order[j], order[i] })
		cut := r.IntN(rows + 1)
		same("a permutation of rows", digestOf(t, takeAll(columns, order)))
		same("a division", digestOf(t, takeAll(columns, order[:cut]), takeAll(columns, order[cut:])))
		joint := NewDigest()
		for _, rows := range [][]uint32{order[:cut], order[cut:]} {
			one, part := NewDigest(), takeAll(columns, rows)
			table, err := FromColumns(part...)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(one.Add(table), joint.Join(one), joint.Join(NewDigest())); err != nil {
				t.Fatal(err)
			}
		}
		same("a division into digests of their own", joint.Sum([]byte("key")))

		other := slices.Clone(columns)
		slices.Reverse(other)
		for i := range other {
			other[i].Source = "y"
			if other[i].Kind == Text {
				other[i].Dictionary = NewDictionary("", "a", "aa", "é", "zzz")
			}
		}
		same("an order of columns", digestOf(t, other))

		differs("a repeated row", digestOf(t, takeAll(columns, append(order, order[0]))))
		differs("a missing row", digestOf(t, takeAll(columns, order[1:])))
		other = slices.Clone(columns)
		other[r.IntN(len(other))].Name = "renamed"
		differs("a name", digestOf(t, other))
		other = slices.Clone(columns)
		changeCell(&other[r.IntN(len(other))], r.IntN(rows))
		differs("a cell", digestOf(t, other))
		table, err := FromColumns(columns...)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDigest()
		if err := d.Add(table); err != nil {
			t.Fatal(err)
		}
		differs("a key", d.Sum([]byte("another key")))
	})
}

// changeCell changes one value, null to a value as well as a value to another.
func changeCell(c *Column, row int) {
	switch c.Kind {
	case Bool:
		c.Bools = slices.Clone(c.Bools)
		c.Bools[row] = (c.Bools[row] + 1) % 3
	case Text:
		c.Codes = slices.Clone(c.Codes)
		c.Codes[row] = (c.Codes[row] + 1) % 5
	default:
		c.Numbers = slices.Clone(c.Numbers)
		if c.Numbers[row] == 7 || math.IsNaN(c.Numbers[row]) {
			c.Numbers[row] = 8
		} else {
			c.Numbers[row] = 7
		}
	}
}

// Time and Number cells of the same bits are different content, as are columns whose texts could be glued differently.
func TestDigestTellsApart(t *testing.T) {
	digest := func(columns ...Column) [32]byte {
		table, err := FromColumns(columns...)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDigest()
		if err := d.Add(table); err != nil {
			t.Fatal(err)
		}
		return d.Sum(nil)
	}
	number := Column{Field: Field{Name: "a", Kind: Number}, Numbers: []float64{1}}
	moment := Column{Field: Field{Name: "a", Kind: Time}, Numbers: []float64{1}}
	if digest(number) == digest(moment) {
		t.Error("a number and a time have one digest")
	}
	two := func(a, b string) [32]byte {
		return digest(NewText("a", []string{a}, nil), NewText("b", []string{b}, nil))
	}
	if two("xy", "z") == two("x", "yz") {
		t.Error("texts are glued together")
	}
	if digest(NewText("a", []string{""}, nil)) == digest(NewText("a", []string{""}, func(int) bool { return true })) {
		t.Error("an empty text and a null have one digest")
	}
	d := NewDigest()
	for i, c := range []Column{number, moment} {
		table, err := FromColumns(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Add(table); (err == nil) != (i == 0) {
			t.Errorf("table %d of another schema: %v", i, err)
		}
	}
}

// Select must give what picking values one by one gives, with dictionaries of exactly the texts that occur.
func TestSelectProperty(t *testing.T) {
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		columns := randomTable(t)
		src, err := FromColumns(columns...)
		if err != nil {
			t.Fatal(err)
		}
		order := rapid.SliceOfN(rapid.Uint32Range(0, uint32(src.Rows()-1)), 0, 500).Draw(t, "order")
		n++
		dir := filepath.Join(root, string(rune('a'+n%26))+string(rune('a'+n/26%26))+string(rune('a'+n/676)))
		if err := Select(dir, src, order, nil); err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		want := takeAll(columns, order)
		for i := range want {
			want[i] = compacted(want[i])
		}
		wantTable, err := FromColumns(want...)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(wantTable, got); d != "" {
			t.Fatal(d)
		}
	})
}

// SelectJoint has the rows that Select has, and dictionaries of all texts of both tables: which rows were taken does not show in its
// shape.
func TestSelectJointProperty(t *testing.T) {
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (*Table, []string, []bool) {
			values := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "é", "long enough"}), 1, 30).Draw(t, name)
			null := rapid.SliceOfN(rapid.Bool(), len(values), len(values)).Draw(t, "null")
			table, err := FromColumns(NewText("t", values, func(i int) bool { return null[i] }))
			if err != nil {
				t.Fatal(err)
			}
			return table, values, null
		}
		src, values, null := draw("values")
		other, more, otherNull := draw("others")
		order := rapid.SliceOfN(rapid.Uint32Range(0, uint32(src.Rows()-1)), 0, 40).Draw(t, "order")
		n++
		dir := filepath.Join(root, fmt.Sprint(n))
		shape, err := SelectJoint(dir, src, order, nil, other)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		want := make([]string, len(order))
		for i, row := range order {
			if want[i] = values[row]; null[row] {
				want[i] = "null"
			}
		}
		if !slices.Equal(textsOf(got.Column(0)), want) {
			t.Fatalf("rows %q, want %q", textsOf(got.Column(0)), want)
		}
		all := map[string]bool{}
		for i, v := range values {
			all[v] = all[v] || !null[i]
		}
		for i, v := range more {
			all[v] = all[v] || !otherNull[i]
		}
		bytes, texts := 1, 0
		for v, there := range all {
			code, found := got.Column(0).Dictionary.Find(v)
			if found != there || found && got.Column(0).Dictionary.Text(int(code)-1) != v {
				t.Fatalf("%q: found %v as %d, want %v", v, found, code, there)
			}
			if there {
				bytes, texts = bytes+len(v)+1, texts+1
			}
		}
		if s := got.Shape(); s.Texts["t"] != shape.Texts["t"] || s.Texts["t"].Texts < int64(texts) || s.Texts["t"].Bytes < int64(bytes) ||
			s.Texts["t"].Texts >= 2*max(1, int64(texts)) || s.Texts["t"].Bytes >= 2*int64(bytes) {
			t.Fatalf("shape %v, said to be %v, of %d texts and %d bytes", s.Texts["t"], shape.Texts["t"], texts, bytes)
		}
	})
}

func compacted(c Column) Column {
	if c.Kind != Text {
		return c
	}
	values := make([]string, len(c.Codes))
	for i, code := range c.Codes {
		if code != 0 {
			values[i] = c.Dictionary.Text(int(code) - 1)
		}
	}
	source := c.Source
	c = NewText(c.Name, values, func(i int) bool { return c.Codes[i] == 0 })
	c.Source = source
	return c
}

func TestSelectRefuses(t *testing.T) {
	src := sample(t)
	dir := filepath.Join(t.TempDir(), "x")
	if err := Select(dir, src, []uint32{0, 4}, nil); err == nil {
		t.Error("row 4 of 4 rows is selected")
	}
	if _, err := Open(dir); err == nil {
		t.Error("a failed Select leaves a dataset")
	}
	empty, err := FromColumns(Column{Field: Field{Name: "a", Kind: Number}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Select(dir, empty, []uint32{0}, nil); err == nil {
		t.Error("a row of an empty table is selected")
	}
}
