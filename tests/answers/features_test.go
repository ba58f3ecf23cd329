package answers

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
)

// TestPublicFeatures: with features=public everything but the label of the holdout's rows is given out, numbered, in an order that says
// nothing; the targets say so, and nothing is given out without it.
func TestPublicFeatures(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 1000, 1)
	card := create(t, s, holdout.Settings{Holdout: 0.4, Check: new(0.0), Label: "late", Features: "public"}, table)
	f, err := s.Features(t.Context(), analyst, card.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := tableOf(t, s, f)
	if got.Rows() != 400 || len(got.Schema().Fields) != len(table.Schema().Fields) {
		t.Fatalf("%d rows, %v", got.Rows(), got.Schema())
	}
	if _, ok := got.Lookup("late"); ok {
		t.Error("the label is given out")
	}
	of := map[float64]bool{}
	for _, x := range numbers(t, table, "x") {
		of[x] = true
	}
	for _, x := range numbers(t, training(t, s, card.ID), "x") {
		delete(of, x)
	}
	for i, x := range numbers(t, got, "x") {
		if !of[x] {
			t.Fatalf("row %d is not a row of the holdout", i)
		}
	}
	for i, id := range numbers(t, got, holdout.RowID) {
		if id != float64(i) {
			t.Fatalf("row %d has the id %v", i, id)
		}
	}
	a := read(t, ask(t, s, card.ID, `{"type":"fraction","of":"late"}`).Body)
	if !strings.HasSuffix(a.Interval.Target, "in the population of labels that rows with the features of the holdout's have") {
		t.Errorf("target: %s", a.Interval.Target)
	}
	secret := create(t, s, holdout.Settings{Holdout: 0.4, Label: "late", Features: "secret"}, visits(t, 1000, 2))
	_, err = s.Features(t.Context(), analyst, secret.ID)
	wantKind(t, "secret features", err, holdout.NotFound)
}

func TestPublicFeaturesRefused(t *testing.T) {
	s := open(t, t.TempDir())
	ids := visits(t, 100, 3)
	columns := []dataset.Column{{Field: dataset.Field{Name: holdout.RowID, Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, 100)}}
	for i := range ids.Columns() {
		columns = append(columns, *ids.Column(i))
	}
	numbered, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	for pointer, c := range map[string]struct {
		set   holdout.Settings
		table *dataset.Table
	}{
		"features": {holdout.Settings{Label: "late", Features: "open"}, ids},
		"label":    {holdout.Settings{Features: "public"}, ids},
		"stratify": {holdout.Settings{Features: "public", Label: "late", Stratify: "late"}, ids},
		" ids":     {holdout.Settings{Features: "public", Label: "late"}, numbered},
	} {
		c.set.Name, c.set.Mechanism = "visits", "gaussian"
		_, _, err := s.Create(t.Context(), admin, c.set, holdout.SingleUpload(bytes.NewReader(parquet(t, c.table))), "")
		wantKind(t, pointer, err, holdout.Invalid)
	}
}

// TestPredictionsOfTheRows: a model is judged by its predictions of the holdout's rows, in the order of row_id, without being sent; the
// same predictions in another spelling, and their digest, replay the answer.
func TestPredictionsOfTheRows(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 20_000, 5)
	id := create(t, s, holdout.Settings{Holdout: 0.5, Check: new(0.0), Label: "late", Features: "public", Questions: 3}, table).ID
	f, err := s.Features(t.Context(), analyst, id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	predicted := make([]string, 0, 10_000)
	for i, x := range numbers(t, tableOf(t, s, f), "x") { // late is x < 0.2; one in ten is wrong
		late := x < 0.2
		if i%10 == 0 {
			late = !late
		}
		predicted = append(predicted, map[bool]string{true: "1", false: "0"}[late])
	}
	query := func(numbers string) string {
		return `{"type":"accuracy","label":"late","predictions":` + numbers + `}`
	}
	list := "[" + strings.Join(predicted, ",") + "]"
	a := read(t, ask(t, s, id, query(list)).Body)
	if a.Interval.Low > 0.9 || a.Interval.High < 0.9 || a.Interval.High-a.Interval.Low > 0.1 {
		t.Errorf("an accuracy of 0.9: %+v", a.Interval)
	}
	if again := ask(t, s, id, query("[ "+strings.Join(predicted, ".0 , ")+".0 ]")); !again.Replayed {
		t.Error("another spelling is asked anew")
	}
	e, err := s.Explain(t.Context(), analyst, id, []byte(query(list)))
	if err != nil || !e.Answered || e.Training != nil || !strings.Contains(string(e.Canonical), `"count":10000,"sha256":"`) {
		t.Fatalf("%+v, %v", e, err)
	}
	if by := ask(t, s, id, string(e.Canonical)); !by.Replayed {
		t.Error("the digest is asked anew")
	}
	for what, body := range map[string]string{
		"too few":         query("[1,0]"),
		"another digest":  query(`{"sha256":"` + strings.Repeat("0", 64) + `","count":10000}`),
		"edges of scores": `{"type":"auc","label":"late","predictions":` + list + `}`,
	} {
		_, err := s.Ask(t.Context(), analyst, id, []byte(body), "")
		wantKind(t, what, err, holdout.Invalid)
	}
	compares := create(t, s, holdout.Settings{Mechanism: "guess_and_check", Holdout: 0.5, Check: new(0.0), Label: "late", Features: "public"}, visits(t, 1000, 6)).ID
	secret := create(t, s, holdout.Settings{Holdout: 0.5, Label: "late"}, visits(t, 1000, 7)).ID
	for id, want := range map[string]string{compares: "compares with the training part", secret: "features=public"} {
		_, err := s.Ask(t.Context(), analyst, id, []byte(query("[1,0]")), "")
		wantKind(t, want, err, holdout.Invalid)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
