package holdout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestSealed: questions read the units that are not sealed, and the report the sealed ones alone after wrong guesses: to the last one. The plan says so before, the report after, and the interval is as wide as it is with nothing asked. Where
// nothing went wrong the report reads all. After a restart all is the same. Sealing is refused where the held-out rows are known to differ.
func TestSealed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	set := Settings{Name: "flights", Mechanism: "guess_and_check", Questions: 300, Tokens: 20, Sealed: 0.5}
	width := map[int]float64{}
	for wrong := range 2 {
		card := create(t, s, set, flights(t, 6000, uint64(3+wrong)))
		id, n := card.ID, int(card.Units.Holdout)
		values := stored(t, s, id, "delay")
		share := func(values []float64) float64 {
			late := 0.0
			for _, x := range values {
				if x > 15 {
					late++
				}
			}
			return late / float64(len(values))
		}
		for i := range 12 * wrong {
			a := answerOf(t, ask(t, s, id, fmt.Sprintf(`{"type":"fraction","of":"delay > %d","guess":0.9%d}`, 15+i, i)))
			if a.Cost.Tokens != 1 {
				t.Fatalf("a wrong guess: %+v", a)
			}
			if i == 0 && (math.Abs(*a.Value-share(values[:n/2])) > 0.05 || a.Interval.Scope != "all 300 questions") {
				t.Errorf("answered %v, the open units have %v", *a.Value, share(values[:n/2]))
			}
		}
		must(t, s.Close())
		s = open(t, dir)
		batch := []json.RawMessage{json.RawMessage(`{"type":"fraction","of":"delay > 15"}`)}
		plan, err := s.PlanReport(t.Context(), analyst, id, batch)
		must(t, err)
		report, err := s.CloseWithReport(t.Context(), admin, id, batch, "", "")
		must(t, err)
		again, err := s.Report(t.Context(), analyst, id)
		must(t, err)
		read := values
		if wrong > 0 {
			read = values[n/2:]
		}
		a := answerOf(t, Answer{Body: report.Answers[0].Body})
		if plan.Sealed != (wrong > 0) || report.Sealed != plan.Sealed || again.Sealed != plan.Sealed || int(report.Units) != len(read) || again.Units != report.Units || math.Abs(*a.Value-share(read)) > 1e-8 {
			t.Errorf("%d wrong: planned %+v, reported %+v: %v, the units have %v", wrong, plan, report.ReportFacts, *a.Value, share(read))
		}
		width[wrong] = *a.Interval.High - *a.Interval.Low
		if w := 2 * *plan.Answers[0].HalfWidth; w < 0.9*width[wrong] || w > 1.1*width[wrong] {
			t.Errorf("%d wrong: planned %v wide, and it is %v", wrong, w, width[wrong])
		}
	}
	if r := width[1] / width[0]; r < 1.4 || r > 1.9 { // the root of two, and a part of the probability of error
		t.Errorf("after twelve wrong guesses the report is %v times as wide", r)
	}
	set.Name = "few"
	card := create(t, s, set, flights(t, 7500, 8)) // just enough units, were none sealed
	if w := card.Warnings; len(w) == 0 || w[0].Code != uninformative || !strings.Contains(w[0].Detail, fmt.Sprintf("about %d held-out units", card.Units.Holdout/2)) || !strings.Contains(w[0].Detail, "sealed=0 would have") {
		t.Errorf("a card of too few open units: %+v", w)
	}
	for name, set := range map[string]Settings{"strata": {Stratify: "origin", Sealed: 0.5}, "public": {Label: "delay", Features: "public", Sealed: 0.5}, "too many": {Sealed: 0.95}, "gaussian": {Mechanism: "gaussian", Sealed: 0.5}} {
		set.Name = "refused"
		if _, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, flights(t, 900, 9)))), ""); KindOf(err) != Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
