package holdout

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

// cellsOfFlights: 3·4·4 cells.
const cellsOfFlights = `{"on_time":[true,false,null],"origin":["SFO","OAK",null],"distance":[500,1000,1500]}`

// widthOfCells is the half-width by sets.
func widthOfCells(n, cells int64, beta float64) float64 {
	return math.Sqrt((float64(cells)*math.Ln2 + math.Log(1/beta)) / (2 * float64(n)))
}

// TestCells: whatever is asked about declared cells is answered with the holdout's own value and one half-width, for a question each, before and after a restart, and replayed with the same bytes at no cost. What is not about them is refused
// at no cost, with what to write instead; and so are settings without cells, and cells that the table does not have. It would notice an answer without a debit, a question that is let through, and an interval that grows with the questions.
func TestCells(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	set := Settings{Name: "flights", Mechanism: "cells", Cells: `{ "on_time": [true, false, null], "origin": ["SFO", "OAK", null], "distance": [500, 1000, 1500.0] }`}
	card := create(t, s, set, flights(t, 20_000, 3))
	id, n := card.ID, card.Units.Holdout
	width := widthOfCells(n, 48, 0.05)
	if math.Abs(card.Guarantee.HalfWidth-width) > 1e-12 || card.Settings.Cells != cellsOfFlights || !strings.Contains(card.Chosen, "widens no interval") || !strings.Contains(card.Assumes, "without a look") || len(card.Warnings) > 1 {
		t.Errorf("%+v, half-width %v; %q, %q, %+v", card.Settings, card.Guarantee.HalfWidth, card.Chosen, card.Assumes, card.Warnings)
	}
	if card.Widest == nil || math.Abs(*card.Widest-width) > 1e-8 {
		t.Errorf("the widest: %v", card.Widest)
	}
	distance := stored(t, s, id, "distance")
	share := func(holds func(x float64) bool) float64 {
		count := 0.0
		for _, x := range distance {
			if holds(x) {
				count++
			}
		}
		return count / float64(len(distance))
	}
	spent := int64(0)
	debited := func(questions int64) {
		t.Helper()
		spent += questions
		b, err := s.Budget(t.Context(), analyst, id)
		must(t, err)
		if b.Questions.Of-b.Questions.Left != spent || b.Tokens != nil {
			t.Fatalf("%d spent, the budget has %+v", spent, b)
		}
	}
	first := ask(t, s, id, `{"type":"fraction","of":"distance >= 1000"}`)
	debited(1)
	for query, want := range map[string]float64{
		`{"type":"fraction","of":"distance >= 1000"}`:                                                      share(func(x float64) bool { return x >= 1000 }),
		`{"type":"fraction","of":"!(distance >= 500)"}`:                                                    share(func(x float64) bool { return x < 500 }),
		`{"type":"mean","of":"distance >= 1500 ? 3.0 : distance >= 500 ? 1.0 : 0.0","range":[0,3]}`:        share(func(x float64) bool { return x >= 1500 }) + share(func(x float64) bool { return x >= 500 && x < 1500 })/3,
		`{"type":"fraction","of":"distance >= 1000 && (origin != 'OAK' || origin == 'OAK' || !on_time)"}`:  math.NaN(),
		`{"type":"fraction","of":"origin in ['SFO','OAK'] && on_time == null"}`:                            0,
		`{"type":"compare","a":{"type":"fraction","of":"on_time"},"b":{"type":"fraction","of":"on_time"}}`: 0,
	} {
		e, err := s.Explain(t.Context(), analyst, id, []byte(query))
		must(t, err)
		a := answerOf(t, ask(t, s, id, query))
		scale := map[bool]float64{true: 3, false: 1}[strings.Contains(query, `"range":[0,3]`)]
		switch {
		case a.Cost != e.Cost && query != `{"type":"fraction","of":"distance >= 1000"}` || a.Cost.Tokens != 0 || a.Outcome != "measured" || a.Value == nil:
			t.Errorf("%s: %+v, explained %+v", query, a, e.Cost)
		case !math.IsNaN(want) && math.Abs(*a.Value/scale-want) > 1e-8:
			t.Errorf("%s: %v, the held-out rows have %v", query, *a.Value/scale, want)
		case !strings.Contains(query, "compare") && max(*a.Interval.High-*a.Value, *a.Value-*a.Interval.Low) > scale*(width+1e-8):
			t.Errorf("%s: %+v is wider than ±%v", query, a.Interval, scale*width)
		}
		if query != `{"type":"fraction","of":"distance >= 1000"}` {
			debited(a.Cost.Questions)
		}
	}
	// Conditions, differences and groups are made of several means, each a question, and hold together with all others.
	for query, questions := range map[string]int64{
		`{"type":"mean","of":"distance >= 1000 ? 1.0 : 0.0","range":[0,1],"where":"origin == 'SFO'"}`:     2,
		`{"type":"difference","of":"distance >= 1000","between":["origin == 'SFO'","origin == 'OAK'"]}`:   4,
		`{"type":"test","test":"proportion","of":"distance >= 1000","equals":0.5}`:                        1,
		`{"type":"groups","of":"distance >= 1000","by":"origin","values":["SFO","OAK"]}`:                  0,
		`{"type":"argmax","of":[{"type":"fraction","of":"on_time"},{"type":"fraction","of":"!on_time"}]}`: 2,
	} {
		a := answerOf(t, ask(t, s, id, query))
		if questions > 0 && a.Cost.Questions != questions || a.Cost.Questions < 1 {
			t.Errorf("%s: %+v", query, a.Cost)
		}
		debited(a.Cost.Questions)
	}
	for query, mend := range map[string]string{
		`{"type":"fraction","of":"delay > 15"}`:                                                               `"delay" is not declared`,
		`{"type":"fraction","of":"distance >= 1000","where":"delay > 15"}`:                                    `"delay" is not declared`,
		`{"type":"fraction","of":"distance > 1000"}`:                                                          "write distance >= 1000",
		`{"type":"fraction","of":"distance >= 999"}`:                                                          "The edges are 500, 1000, 1500",
		`{"type":"mean","of":"distance","range":[0,3000]}`:                                                    "distance >= 500",
		`{"type":"fraction","of":"origin == 'SJC'"}`:                                                          `"SFO", "OAK", null`,
		`{"type":"median","of":"distance","range":[0,3000],"resolution":100}`:                                 "distance >= an edge",
		`{"type":"variance","of":"distance","range":[0,3000]}`:                                                "distance",
		`{"type":"auc","label":"on_time","prediction":"distance","edges":[0,1000,3000]}`:                      "distance",
		`{"type":"accuracy","label":"on_time","prediction":"delay > 15"}`:                                     `"delay" is not declared`,
		`{"type":"frequencies","of":"origin","values":["SFO","SJC"]}`:                                         `"SFO", "OAK", null`,
		`{"type":"fraction","of":"distance >= 500","guess":0.5}`:                                              "guess",
		`{"type":"compare","a":{"type":"fraction","of":"on_time"},"b":{"type":"fraction","of":"delay > 15"}}`: `"delay" is not declared`,
	} {
		if _, err := s.Ask(t.Context(), analyst, id, []byte(query), ""); KindOf(err) != Invalid || !strings.Contains(err.Error(), mend) {
			t.Errorf("%s: %v", query, err)
		}
		if _, err := s.Explain(t.Context(), analyst, id, []byte(query)); KindOf(err) != Invalid {
			t.Errorf("%s is explained: %v", query, err)
		}
	}
	debited(0)
	must(t, s.Close())
	s = open(t, dir)
	if again := ask(t, s, id, `{"type":"fraction","of":"distance >= 1000"}`); !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("replayed %v: %s; it was %s", again.Replayed, again.Body, first.Body)
	}
	debited(0)
	a := answerOf(t, ask(t, s, id, `{"type":"fraction","of":"on_time"}`))
	debited(1)
	if *a.Interval.High-*a.Interval.Low > 2*width+1e-8 || a.Interval.Scope != "all 1000000000 questions" {
		t.Errorf("%+v", a.Interval)
	}
	if _, err := s.Ask(t.Context(), analyst, id, []byte(`{"type":"fraction","of":"delay > 15"}`), ""); KindOf(err) != Invalid {
		t.Errorf("after a restart: %v", err)
	}
}

// TestCellsOfUnits: of units of several rows the mean over all rows of each is answered, with the value that it has, and what is no mean of that kind is refused, for its unit's value does not follow from the cells.
func TestCellsOfUnits(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Mechanism: "cells", Unit: "plane", Cells: `{"distance":[1000]}`}, flights(t, 9000, 4))
	a := answerOf(t, ask(t, s, card.ID, `{"type":"fraction","of":"distance >= 1000"}`))
	sum := 0.0
	distance := stored(t, s, card.ID, "distance")
	for _, x := range distance {
		if x >= 1000 {
			sum++
		}
	}
	if want := sum / float64(len(distance)); math.Abs(*a.Value-want) > 1e-8 || math.Abs(card.Guarantee.HalfWidth-widthOfCells(card.Units.Holdout, 2, 0.05)) > 1e-12 { // each plane has three rows
		t.Errorf("%v, the held-out planes have %v; ±%v", *a.Value, want, card.Guarantee.HalfWidth)
	}
	for _, query := range []string{
		`{"type":"fraction","of":"distance >= 1000","where":"distance >= 1000"}`, `{"type":"fraction","of":"distance >= 1000","weight":"row"}`, `{"type":"count","of":"distance >= 1000"}`,
	} {
		if _, err := s.Ask(t.Context(), analyst, card.ID, []byte(query), ""); KindOf(err) != Invalid || !strings.Contains(err.Error(), "several rows") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestCellsRefused: settings of cells that mean nothing are refused, and say what to send.
func TestCellsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	table := parquet(t, flights(t, 900, 9))
	for i, c := range []struct {
		set  Settings
		want string
	}{
		{Settings{Mechanism: "cells"}, "cells is missing"},
		{Settings{Mechanism: "cells", Cells: `{"on_time":true}`}, `"on_time" must have a list`},
		{Settings{Mechanism: "cells", Cells: `{"ontime":[true,false]}`}, "on_time"},
		{Settings{Mechanism: "cells", Cells: `{"on_time":[1,2]}`}, "true and false"},
		{Settings{Mechanism: "cells", Cells: `{"origin":[1,2]}`}, "has texts"},
		{Settings{Mechanism: "cells", Cells: `{"distance":["near"]}`}, "has numbers"},
		{Settings{Mechanism: "cells", Cells: `{"date":[0]}`}, "has times"},
		{Settings{Mechanism: "gaussian", Cells: `{"on_time":[true,false]}`}, "cells does"},
		{Settings{Cells: `{"on_time":[true,false]}`}, "cells does"},
		{Settings{Mechanism: "cells", Tokens: 3, Cells: `{"on_time":[true,false]}`}, "tokens"},
		{Settings{Mechanism: "cells", Cells: `{"on_time":[true,false],"distance":[` + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(edges(300))), ","), "[]") + `]}`}, "says nothing"},
	} {
		c.set.Name = fmt.Sprintf("refused %d", i)
		if _, _, err := s.Create(t.Context(), admin, c.set, SingleUpload(bytes.NewReader(table)), ""); KindOf(err) != Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.set, err)
		}
	}
	card := create(t, s, Settings{Mechanism: "cells", Holdout: 1, Cells: cellsOfFlights}, flights(t, 900, 9))
	if len(card.Warnings) == 0 || card.Warnings[0].Code != uninformative || !strings.Contains(card.Warnings[0].Detail, "48 declared cells") {
		t.Errorf("%+v", card.Warnings)
	}
}

func edges(count int) (all []int) {
	for i := range count {
		all = append(all, i)
	}
	return all
}
