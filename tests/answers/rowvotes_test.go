package answers

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
)

// wards is a table of units of these sizes; in unit i, x is i/10 in all rows but the first, where it is 1.
func wards(t *testing.T, from int, sizes ...int) *dataset.Table {
	t.Helper()
	unit := dataset.Column{Field: dataset.Field{Name: "ward", Kind: dataset.Number, Source: "DOUBLE"}}
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}}
	for i, m := range sizes {
		for k := range m {
			unit.Numbers = append(unit.Numbers, float64(from+i))
			if k == 0 {
				x.Numbers = append(x.Numbers, 1)
			} else {
				x.Numbers = append(x.Numbers, float64(i)/10)
			}
		}
	}
	table, err := dataset.FromColumns(unit, x)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// givenUpload is an upload of two parts.
func givenUpload(training, holdout []byte) holdout.Upload {
	names, files := []string{"training", "holdout"}, [][]byte{training, holdout}
	return func() (string, io.Reader, error) {
		if len(names) == 0 {
			return "", nil, io.EOF
		}
		name, file := names[0], files[0]
		names, files = names[1:], files[1:]
		return name, bytes.NewReader(file), nil
	}
}

// TestRowVotes: with one vote a row, the value is what the target says, with the training part's largest unit as the cap where none is declared; explain and
// the card say the same cap. A declared one is checked on both parts, and then the target is about every row.
func TestRowVotes(t *testing.T) {
	s := open(t, t.TempDir(), func(o *holdout.Options) { o.AllowNaive = true })
	sizes := []int{1, 2, 3, 50, 4}
	create := func(name string, declared int64) (holdout.Card, error) {
		card, _, err := s.Create(t.Context(), admin, holdout.Settings{Name: name, Mechanism: "naive", Split: "given", Unit: "ward", Questions: 20, LargestUnit: declared},
			givenUpload(parquet(t, wards(t, 100+int(declared), 3, 1, 3)), parquet(t, wards(t, 0, sizes...))), "")
		if err == nil { // a draft's card says no cap: a first look ends it
			if _, err = s.Explain(t.Context(), analyst, card.ID, []byte(mean(1))); err == nil {
				card, err = s.Card(t.Context(), analyst, card.ID)
			}
		}
		return card, err
	}
	mean := func(cap int) float64 {
		above, below := 0.0, 0.0
		for i, m := range sizes {
			own := (1 + float64(m-1)*float64(i)/10) / float64(m)
			votes := float64(min(m, cap))
			above, below = above+own*votes, below+votes
		}
		return above / below
	}
	for _, c := range []struct {
		declared int64
		cap      int
		says     string
		card     string
	}{
		{0, 3, "every row having one vote, units of more than 3 rows counting as 3 rows, in ", `with "weight":"row" each row, a unit of more than 3 having 3`},
		{50, 50, "every row having one vote, no unit having more than 50 rows, as declared, in ", `with "weight":"row" each row, no unit having more than 50, as declared`},
		{61, 61, "every row having one vote, no unit having more than 61 rows, as declared, in ", "no unit having more than 61, as declared"},
	} {
		card, err := create("wards", c.declared)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(card.Target, c.card) || card.LargestUnit != int64(c.cap) {
			t.Errorf("declared %d: the card says %d, %q", c.declared, card.LargestUnit, card.Target)
		}
		query := `{"type":"mean","of":"x","range":[0,1],"weight":"row"}`
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
		if err != nil || !strings.Contains(e.Target, c.says) {
			t.Errorf("declared %d: %q, %v", c.declared, e.Target, err)
		}
		if a := read(t, ask(t, s, card.ID, query).Body); math.Abs(*a.Value-mean(c.cap)) > 1e-6 {
			t.Errorf("declared %d: %v, want %v", c.declared, *a.Value, mean(c.cap))
		}
		if c.declared == 0 {
			continue
		}
		// What is added up over rows is over rows: here without noise. A sum that counts units, or a unit by its share of rows, is 6 times too small.
		rows, sum, below, ones := 0.0, 0.0, 0.0, 0.0
		for i, m := range sizes {
			own := 1 + float64(m-1)*float64(i)/10
			rows, sum, ones = rows+float64(m), sum+own, ones+1
			below += float64(m-1) * min(float64(i)/10, 0.2)
		}
		for query, want := range map[string]float64{
			`{"type":"sum","of":"x","range":[0,1]}`:                                   sum,
			`{"type":"sum","of":"-x","range":[-1,5]}`:                                 -sum,
			`{"type":"sum","of":"x","range":[0,0.2],"where":"x < 0.9"}`:               below,
			`{"type":"count","of":"x == 1"}`:                                          ones,
			`{"type":"count","of":"x < 2"}`:                                           rows,
			`{"type":"passes","of":{"type":"sum","of":"x","range":[0,1]},"above":10}`: sum,
		} {
			a := read(t, ask(t, s, card.ID, query).Body)
			if math.Abs(*a.Value-want) > 1e-5 || a.Cost.Questions != 2 {
				t.Errorf("declared %d: %s is %v for %d questions, want %v for 2", c.declared, query, *a.Value, a.Cost.Questions, want)
			}
		}
	}
	for _, declared := range []int64{2, 49} { // larger units in both parts, and in the holdout alone
		if card, err := create("wards", declared); holdout.KindOf(err) != holdout.Invalid || !strings.Contains(err.Error(), "largest_unit") {
			t.Errorf("declared %d: %+v, %v", declared, card, err)
		}
	}
}
