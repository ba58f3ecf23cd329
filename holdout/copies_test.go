package holdout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// copied is a table of independent rows of which so many are there twice, in a random order: two numbers, a text, a truth value and nulls.
func copied(seed uint64, rows, twice int) []dataset.Column {
	r := rand.New(rand.NewPCG(seed, 9))
	number := func(name string, nulls int) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}}
		for range rows {
			if v := r.NormFloat64(); nulls > 0 && r.IntN(nulls) == 0 {
				c.Numbers = append(c.Numbers, math.NaN())
			} else {
				c.Numbers = append(c.Numbers, v)
			}
		}
		return c
	}
	flag := dataset.Column{Field: dataset.Field{Name: "flag", Kind: dataset.Bool, Source: "BOOLEAN"}}
	texts := make([]string, rows)
	for i := range rows {
		flag.Bools, texts[i] = append(flag.Bools, uint8(r.IntN(3))), fmt.Sprint("t", r.IntN(50))
	}
	columns := []dataset.Column{number("x", 0), number("y", 5), dataset.NewText("text", texts, nil), flag}
	of := make([]int, rows) // the row that each is
	for i := range of {
		if of[i] = i; i >= rows-twice {
			of[i] = i - (rows - twice)
		}
	}
	r.Shuffle(rows, func(i, j int) { of[i], of[j] = of[j], of[i] })
	for k := range columns {
		c := &columns[k]
		numbers, bools, codes := slices.Clone(c.Numbers), slices.Clone(c.Bools), slices.Clone(c.Codes)
		for i, from := range of {
			switch c.Kind {
			case dataset.Number:
				c.Numbers[i] = numbers[from]
			case dataset.Bool:
				c.Bools[i] = bools[from]
			default:
				c.Codes[i] = codes[from]
			}
		}
	}
	return columns
}

// TestEqualRows: the share of rows of which another unit has an equal one is counted, also among many; rows that are alike because there are few values are not, and the column of the unit does not tell rows apart.
func TestEqualRows(t *testing.T) {
	units := func(rows int, of func(i int) uint32) grouping {
		g := grouping{n: rows}
		for i := range rows {
			g.of = append(g.of, of(i))
		}
		return g
	}
	few := copied(1, 4000, 0)[2:]
	ids := dataset.Column{Field: dataset.Field{Name: "id", Kind: dataset.Number, Source: "DOUBLE"}}
	for i := range 4000 {
		ids.Numbers = append(ids.Numbers, float64(i))
	}
	signed := copied(2, 4000, 2000)
	for i, v := range signed[0].Numbers {
		if math.Abs(v) < 0.1 {
			signed[0].Numbers[i] = math.Copysign(0, float64(i%2)-0.5)
		}
	}
	for name, test := range map[string]struct {
		columns []dataset.Column
		unit    string
		g       grouping
		want    float64
	}{
		"each row once":                   {copied(1, 4000, 0), "", groupByRow(4000), 0},
		"every row twice":                 {copied(1, 4000, 2000), "", groupByRow(4000), 1},
		"a tenth of them twice":           {copied(1, 4000, 200), "", groupByRow(4000), 0.1},
		"many rows, a fifth of them":      {copied(1, 400_000, 40_000), "", groupByRow(400_000), 0.2},
		"few values":                      {few, "", groupByRow(4000), 0},
		"a zero with a sign":              {signed, "", groupByRow(4000), 1},
		"two rows":                        {copied(1, 2, 1), "", groupByRow(2), 0},
		"told apart by an id":             {append(copied(1, 4000, 2000), ids), "", groupByRow(4000), 0},
		"twice, of different units":       {append(copied(1, 4000, 2000), ids), "id", units(4000, func(i int) uint32 { return uint32(i) }), 1},
		"twice, all of them of one unit":  {copied(1, 4000, 2000), "id", units(4000, func(int) uint32 { return 0 }), 0},
		"nothing but the unit's own name": {[]dataset.Column{ids}, "id", groupByRow(4000), 0},
	} {
		if got := equalRows(test.columns, test.unit, test.g, func() {}); math.Abs(got-test.want) > 0.01 {
			t.Errorf("%s: %.4f, want %.4f", name, got, test.want)
		}
	}
}

// TestEqualRowsAreWarnedOf: the card of a random split says how many rows of the training part have an equal one in it; that is what holds of held-out rows, too, of which nothing was read. Of other splits it says nothing.
func TestEqualRowsAreWarnedOf(t *testing.T) {
	s := open(t, t.TempDir())
	const rows, twice = 4000, 1000
	table := func(seed uint64) *dataset.Table {
		columns := copied(seed, rows, twice)
		day := dataset.Column{Field: dataset.Field{Name: "day", Kind: dataset.Time, Source: "TIMESTAMP"}, Numbers: make([]float64, rows)}
		made, err := dataset.FromColumns(append(columns, day)...)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	warned := func(id string) (found []Warning) {
		t.Helper()
		if _, err := s.Explain(t.Context(), analyst, id, []byte(`{"type":"mean","of":"x","range":[-3,3]}`)); err != nil { // ends the draft
			t.Fatal(err)
		}
		card, err := s.Card(t.Context(), analyst, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range card.Warnings {
			if w.Code == EqualRows {
				found = append(found, w)
			}
		}
		return found
	}
	id := create(t, s, Settings{Questions: 50, Holdout: 0.5}, table(1)).ID
	found := warned(id)
	if len(found) != 1 || !strings.Contains(found[0].Detail, "up to 30% of the training part's rows") { // half of the table's half that has a copy
		t.Errorf("%+v", found)
	}
	h, release, err := s.take(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	known, again := map[float64]bool{}, 0
	column := func(of *dataset.Table) []float64 { c, _ := of.Lookup("x"); return c.Numbers }
	for _, x := range column(h.trainingTable) {
		known[x] = true
	}
	for _, x := range column(h.holdoutTable) {
		if known[x] {
			again++
		}
	}
	if share := float64(again) / float64(h.holdoutTable.Rows()); math.Abs(share-0.25) > 0.06 { // five standard errors
		t.Errorf("%.3f of the held-out rows have an equal one in the training part; the warning says it of other rows", share)
	}
	if found := warned(create(t, s, Settings{Questions: 50, Holdout: 0.5, Split: "time:day"}, table(2)).ID); len(found) > 0 {
		t.Errorf("a split by time: %+v", found)
	}
	card, _, err := s.Create(t.Context(), admin, Settings{Questions: 50, Split: "given", Name: "given"}, givenUpload(parquet(t, table(3)), parquet(t, table(4))), "")
	if err != nil {
		t.Fatal(err)
	}
	if found := warned(card.ID); len(found) > 0 {
		t.Errorf("given parts: %+v", found)
	}
}
