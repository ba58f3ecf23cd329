package holdout

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// days is a table of n rows with day, the place of a row in the upload, and a label that is a fair coin.
func days(t *testing.T, n int, seed uint64) *dataset.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	day := dataset.Column{Field: dataset.Field{Name: "day", Kind: dataset.Number, Source: "INT64"}}
	label := dataset.Column{Field: dataset.Field{Name: "label", Kind: dataset.Bool, Source: "BOOLEAN"}}
	for i := range n {
		day.Numbers = append(day.Numbers, float64(i))
		label.Bools = append(label.Bools, uint8(r.IntN(2)))
	}
	table, err := dataset.FromColumns(day, label)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// stored is a column of the holdout part, in the order of its file.
func stored(t *testing.T, s *Service, id, column string) []float64 {
	t.Helper()
	h, release, err := s.tables.take(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	return slices.Clone(numbers(t, h.holdoutTable, column))
}

// TestPlacesTellNothing: who knows the order of the upload, the order of tags of the server, or the order in which another table's
// rows were given out, knows nothing about which slice of a holdout a row is in. It would notice any order that two
// holdouts share, and any that follows the upload or the tags.
//
// Of 50 predicted rows a slice of 50 of 1,000 holds a hypergeometric number with mean 2.5: 18 or more have a probability below
// 2e-10, 60 times. A rank correlation of 1,000 places beyond 0.2 has one below 1e-9, three times. Altogether a false alarm
// has a probability below 2e-8.
func TestPlacesTellNothing(t *testing.T) {
	const n, slicesOf, questions = 1000, 50, 20
	s := open(t, t.TempDir())
	shown := create(t, s, Settings{Holdout: 0.5, Check: new(0.0), Label: "label", Features: "public"}, days(t, 2*n, 1))
	f, err := s.Features(t.Context(), analyst, shown.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	another := numbers(t, tableOf(t, s, f), "day") // by row_id
	upload := slices.Clone(another)                // the same places are held out of each table of this length
	slices.Sort(upload)
	var tagged []float64
	held := map[float64]bool{}
	for _, day := range upload {
		held[day] = true
	}
	for _, u := range order(nil, splitter{key: s.split[:]}.tags(groupByRow(2*n), nil, false)) {
		if held[float64(u)] {
			tagged = append(tagged, float64(u))
		}
	}
	seed := uint64(2)
	for name, known := range map[string][]float64{"another table's rows": another, "the upload": upload, "the tags": tagged} {
		seed++
		id := create(t, s, Settings{Holdout: 0.5, Mechanism: "split", Questions: questions, Overlap: overlapAccepted}, days(t, 2*n, seed)).ID
		if len(known) != n {
			t.Fatalf("%s: %d rows", name, len(known))
		}
		for j := range questions {
			list, err := json.Marshal(known[j*slicesOf : (j+1)*slicesOf])
			if err != nil {
				t.Fatal(err)
			}
			a := read(t, ask(t, s, id, fmt.Sprintf(`{"type":"fraction","of":"day in %s"}`, list)).Body)
			if hits := *a.Value * slicesOf; hits > 17.5 {
				t.Errorf("%s: %.0f of the %d rows that it puts into slice %d are there", name, hits, slicesOf, j)
			}
		}
		if r := rankCorrelation(known, stored(t, s, id, "day")); math.Abs(r) > 0.2 {
			t.Errorf("%s: places correlate by %.3f", name, r)
		}
	}
}

// rankCorrelation is Spearman's between the places of the same values in two lists.
func rankCorrelation(a, b []float64) float64 {
	at, n := map[float64]int{}, float64(len(a))
	for i, v := range a {
		at[v] = i
	}
	sum := 0.0
	for i, v := range b {
		sum += (float64(at[v]) - (n-1)/2) * (float64(i) - (n-1)/2)
	}
	return sum / (n * (n*n - 1) / 12)
}

// TestRowsInsideUnits: the order of the upload inside a unit, which tells the labels of a file that is sorted by them, is in no file
// that is given out. Of 300 units with 10 rows each the correlation of place and label has a standard deviation of 1/sqrt(3000); 7 of
// them are exceeded with a probability below 3e-12.
func TestRowsInsideUnits(t *testing.T) {
	s := open(t, t.TempDir())
	const units, each = 600, 10
	r := rand.New(rand.NewPCG(5, 5))
	unit := dataset.Column{Field: dataset.Field{Name: "chart", Kind: dataset.Number, Source: "INT64"}}
	label := dataset.Column{Field: dataset.Field{Name: "label", Kind: dataset.Number, Source: "INT64"}}
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}}
	labelOf := map[float64]float64{}
	for i := range units * each { // all rows with the label 0, then all with the label 1
		unit.Numbers = append(unit.Numbers, float64(i%units))
		label.Numbers = append(label.Numbers, math.Floor(2*float64(i)/(units*each)))
		x.Numbers = append(x.Numbers, r.Float64())
		labelOf[x.Numbers[i]] = label.Numbers[i]
	}
	table, err := dataset.FromColumns(unit, label, x)
	if err != nil {
		t.Fatal(err)
	}
	id := create(t, s, Settings{Holdout: 0.5, Unit: "chart", Label: "label", Features: "public"}, table).ID
	f, err := s.Features(t.Context(), analyst, id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, part := range map[string]*dataset.Table{"features": tableOf(t, s, f), "training": training(t, s, id)} {
		of, shown := numbers(t, part, "chart"), numbers(t, part, "x")
		sum, place := 0.0, 0
		for i := range of {
			if place++; i == 0 || of[i] != of[i-1] {
				place = 0
			}
			sum += (float64(place) - (each-1)/2.0) * (2*labelOf[shown[i]] - 1)
		}
		rows := float64(len(of))
		if c := sum / rows / math.Sqrt((each*each-1)/12.0); math.Abs(c) > 7/math.Sqrt(rows) {
			t.Errorf("%s: the place in a unit correlates with the label by %.3f", name, c)
		}
	}
}

// TestSplitNeedsUnitsAlike: what the slices of split cannot be honest about is refused, and auto does not choose it.
func TestSplitNeedsUnitsAlike(t *testing.T) {
	for name, set := range map[string]Settings{
		"features": {Mechanism: "split", Label: "late", Features: "public"},
		"stratify": {Mechanism: "split", Stratify: "clinic"},
	} {
		_, err := set.withDefaults(false)
		wantKind(t, name, err, Invalid)
	}
	s := open(t, t.TempDir())
	published := Settings{Mechanism: "auto", Bounds: "published", Holdout: 0.5, Questions: 2}
	for seed, c := range []struct {
		set  Settings
		want string
	}{
		{Settings{}, "split"}, // the narrower one, where it may be
		{Settings{Label: "late", Features: "public"}, "gaussian"},
		{Settings{Stratify: "clinic"}, "gaussian"},
	} {
		set := published
		set.Label, set.Features, set.Stratify = c.set.Label, c.set.Features, c.set.Stratify
		if got := create(t, s, set, visits(t, 1000, uint64(seed))).Guarantee.Mechanism; string(got) != c.want {
			t.Errorf("%+v: auto took %s, want %s", c.set, got, c.want)
		}
	}
}

// TestLabelInNoLayout: the files of a holdout with public features are laid out by units, strata and times, none of which may be the
// label; a label is no unit under any settings.
func TestLabelInNoLayout(t *testing.T) {
	table := visits(t, 100, 3)
	for name, set := range map[string]Settings{
		"the unit":           {Label: "late", Unit: "late"},
		"the unit, public":   {Label: "late", Unit: "late", Features: "public"},
		"the day of it":      {Label: "seen", Unit: "day(seen)"},
		"strata, public":     {Label: "late", Stratify: "late", Features: "public"},
		"the time, public":   {Label: "seen", Split: "time:seen", Features: "public"},
		"unit of predictors": {Label: "clinic", Unit: "clinic", Features: "public"},
	} {
		unit, err := parseUnit(set.Unit, table.Schema())
		if err != nil {
			t.Fatal(err)
		}
		c := creation{settings: set, tables: map[string]*dataset.Table{partTable: table}}
		wantKind(t, name, c.checkLabel(unit), Invalid)
	}
}
