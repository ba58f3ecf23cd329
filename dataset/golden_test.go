package dataset

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
)

// The digest of one table with every kind, nulls, a repeated row, an empty text and a long one. The ledger knows tables by this
// number for ever: a program that computed another would take a known table again, with a fresh budget. A change of the digest
// is a change of the format; it has to say so in its first line, "holdoutd dataset digest 1", and in docs/format/dataset.md.
func TestGoldenDigest(t *testing.T) {
	null := func(i int) bool { return i == 2 }
	table, err := FromColumns(
		Column{Field: Field{Name: "n", Kind: Number, Source: "DOUBLE"}, Numbers: []float64{1, -0.5, math.NaN(), 1}},
		Column{Field: Field{Name: "t", Kind: Time, Source: "DATE"}, Numbers: []float64{0, 86400e6, math.NaN(), 0}},
		Column{Field: Field{Name: "b", Kind: Bool, Source: "BOOLEAN"}, Bools: []uint8{0, 1, NullBool, 0}},
		NewText("s", []string{"", "é", "", ""}, null),
		NewText("long", []string{strings.Repeat("a", 255), strings.Repeat("b", 256), "", strings.Repeat("a", 255)}, null),
	)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDigest()
	if err := d.Add(table); err != nil {
		t.Fatal(err)
	}
	sum := d.Sum([]byte("golden"))
	const want = "7f8ef6b8c617aef7e642c2dd6d94281038971410ec87d4ec2a2c734a8e99b9fb"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
}

// Rows of many wide texts are hashed in bounded memory, and to the same sum as rows that are hashed many at a time.
func TestDigestOfWideRows(t *testing.T) {
	digest := func(columns int) []string {
		list := make([]Column, columns)
		for i := range list {
			list[i] = NewText(fmt.Sprint("c", i), []string{strings.Repeat("x", 200), strings.Repeat("y", 1000), "z"}, nil)
		}
		var sums []string
		for _, rows := range [][]uint32{{0, 1, 2}, {2, 1, 0}, {0, 1, 1}} {
			for i := range list {
				codes := make([]uint32, len(rows))
				for k, r := range rows {
					code, _ := list[i].Dictionary.Find([]string{strings.Repeat("x", 200), strings.Repeat("y", 1000), "z"}[r])
					codes[k] = code
				}
				list[i].Codes = codes
			}
			table, err := FromColumns(list...)
			if err != nil {
				t.Fatal(err)
			}
			d := NewDigest()
			if err := d.Add(table); err != nil {
				t.Fatal(err)
			}
			sum := d.Sum(nil)
			sums = append(sums, hex.EncodeToString(sum[:]))
		}
		return sums
	}
	for _, columns := range []int{1, digestBytes / 200} { // blocks of 128 rows, and of one
		if s := digest(columns); s[0] != s[1] || s[0] == s[2] {
			t.Errorf("%d columns: %v; the order of rows must not matter, the rows must", columns, s)
		}
	}
}
