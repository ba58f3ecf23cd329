package holdout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/session"
)

// checked are the values of a column in the rows of the check part, as they are stored.
func checked(t *testing.T, s *Service, id, column string) []float64 {
	t.Helper()
	h, release, err := s.tables.take(t.Context(), id)
	must(t, err)
	defer release()
	return slices.Clone(numbers(t, h.checkTable, column))
}

// shareBelow is the share of values below x.
func shareBelow(x float64, values ...float64) float64 {
	n := 0.0
	for _, v := range values {
		if v < x {
			n++
		}
	}
	return n / float64(len(values))
}

// model is the accuracy of a classifier of late, which is x < 0.2: it is right where x is not between 0.2 and the threshold.
func modelOf(threshold float64) string {
	return fmt.Sprintf(`{"type":"accuracy","label":"late","prediction":"x < %v"}`, threshold)
}

// TestCheckPart: where a label is named a fifth of the table is kept as the check part: the next units in the keyed order behind the holdout's. No download has a row
// of it. Values of questions about a model are of the check part alone, others of both parts that are not held out; the answer, explain and the history say which, and the
// number is that of these rows to the last digit. It would notice a check part that is handed out, one that is drawn without the key, a model that is valued by the rows it
// was fitted to, and a name that is not that of the rows.
func TestCheckPart(t *testing.T) {
	s := open(t, t.TempDir())
	const n = 4000
	table := visits(t, n, 21)
	card := create(t, s, Settings{Label: "late", Mechanism: "guess_and_check", Questions: 20, Tokens: 5}, table)
	if card.Rows != (Counts{Training: n / 2, Check: n / 5, Holdout: 3 * n / 10}) || *card.Settings.Check != 0.2 || card.Guarantee.Training != n/5 {
		t.Fatalf("%+v of %+v, guarantee of %d", card.Rows, card.Settings, card.Guarantee.Training)
	}
	all, byTag := numbers(t, table, "x"), order(nil, splitter{key: s.split[:]}.tags(groupByRow(n), nil, false))
	part := func(from, to int) (x []float64) {
		for _, row := range byTag[from:to] {
			x = append(x, all[row])
		}
		slices.Sort(x)
		return x
	}
	held, kept, out := part(0, card.holdoutRows()), part(card.holdoutRows(), card.holdoutRows()+n/5), part(card.holdoutRows()+n/5, n)
	given := slices.Sorted(slices.Values(numbers(t, training(t, s, card.ID), "x")))
	inCheck := checked(t, s, card.ID, "x")
	if !slices.Equal(given, out) || !slices.Equal(slices.Sorted(slices.Values(inCheck)), kept) {
		t.Errorf("the training part has %d rows of %d, the check part %d of %d", len(given), len(out), len(inCheck), len(kept))
	}
	if slices.IsSorted(checked(t, s, card.ID, "seen")) { // later rows of the upload were seen later
		t.Error("the check part lies in the order of the upload")
	}
	if stored := slices.Sorted(slices.Values(stored(t, s, card.ID, "x"))); !slices.Equal(stored, held) {
		t.Error("the holdout is not the first units in the keyed order")
	}
	right := func(threshold float64, x []float64) float64 {
		return 1 - shareBelow(threshold, x...) + shareBelow(0.2, x...)
	}
	for _, c := range []struct {
		query string
		from  session.ValueFrom
		want  float64
	}{
		{modelOf(0.25), session.ValueFromCheck, right(0.25, inCheck)},
		{`{"type":"compare","a":` + modelOf(0.3) + `,"b":` + modelOf(0.25) + `}`, session.ValueFromCheck, right(0.25, inCheck) - right(0.3, inCheck)},
		{`{"type":"loss","loss":"zero_one","label":"late","prediction":"x < 0.25"}`, session.ValueFromCheck, 1 - right(0.25, inCheck)},
		{`{"type":"fraction","of":"x < 0.25"}`, session.ValueFromBoth, shareBelow(0.25, slices.Concat(given, inCheck)...)},
		{`{"type":"accuracy","label":"late","prediction":"x < 0.35","guess":0.86}`, session.ValueFromGuess, 0.86},
		{`{"type":"accuracy","label":"late","prediction":"x < 0.35","guess":0.5}`, session.ValueFromHoldout, right(0.35, held)},
	} {
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(c.query))
		must(t, err)
		a := read(t, ask(t, s, card.ID, c.query).Body)
		// What is released is on a grid of 2^-30.
		if a.ValueFrom != c.from || a.Value == nil || math.Abs(*a.Value-c.want) > 1e-6 && c.from != session.ValueFromHoldout || math.Abs(*a.Value-c.want) > 0.02 ||
			slices.ContainsFunc(a.Warnings, func(w Warning) bool { return w.Code != session.ReadsLabel }) {
			t.Errorf("%s: %v of %s, want %v of %s; %+v", c.query, *a.Value, a.ValueFrom, c.want, c.from, a.Warnings)
		}
		if c.from == session.ValueFromGuess || c.from == session.ValueFromHoldout {
			c.from, c.want = session.ValueFromCheck, right(0.35, inCheck)
		}
		if e.ValueFrom != c.from || e.Training == nil || math.Abs(*e.Training-c.want) > 1e-6 || scoresTraining(e.Warnings) {
			t.Errorf("explain %s: %v of %s, want %v of %s; %+v", c.query, *e.Training, e.ValueFrom, c.want, c.from, e.Warnings)
		}
		page, err := s.Answers(t.Context(), analyst, card.ID, 0, 0)
		must(t, err)
		if r := page.Answers[len(page.Answers)-1].Reference; r == nil || r.Part != c.from || math.Abs(*r.Value-c.want) > 1e-6 {
			t.Errorf("history of %s: %+v, want %v of %s", c.query, r, c.want, c.from)
		}
	}
}

// scoresTraining reports whether a reader is warned that a number is a training score, and told what to do.
func scoresTraining(all []Warning) bool {
	return slices.ContainsFunc(all, func(w Warning) bool {
		return w.Code == session.TrainingScore && strings.Contains(w.Detail, "check=0.2") && strings.Contains(w.Detail, `"guess"`)
	})
}

// holdoutRows is the size of the holdout, as a place in the keyed order.
func (c Card) holdoutRows() int { return int(c.Rows.Holdout) }

// TestTrainingScoreIsSaid: without a check part the value of a model's check is its training score; the answer and explain say so, and what to do. A plain question, a guess of
// one's own and the holdout's own number are not warned of.
func TestTrainingScoreIsSaid(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Label: "late", Check: new(0.0), Mechanism: "guess_and_check", Questions: 50, Tokens: 40}, visits(t, 4000, 22))
	if card.Units.Check != 0 || *card.Settings.Check != 0 {
		t.Fatalf("%+v", card.Units)
	}
	for query, want := range map[string]struct {
		from            session.ValueFrom
		answer, explain bool
	}{
		strings.TrimSuffix(modelOf(0.25), "}") + `,"measure":false}`: {session.ValueFromTraining, true, true},
		modelOf(0.25): {session.ValueFromHoldout, false, false},
		`{"type":"confusion","label":"late","prediction":"x < 0.25"}`:                        {session.ValueFromTraining, true, true},
		`{"type":"fraction","of":"x < 0.25"}`:                                                {session.ValueFromTraining, false, false},
		`{"type":"accuracy","label":"late","prediction":"x < 0.35","guess":0.85}`:            {session.ValueFromGuess, false, true},
		`{"type":"accuracy","label":"late","prediction":"x < 0.35","guess":0.3}`:             {session.ValueFromHoldout, false, true},
		`{"type":"compare","a":` + modelOf(0.3) + `,"b":{"type":"fraction","of":"x < 0.1"}}`: {session.ValueFromTraining, true, true},
	} {
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
		must(t, err)
		a := read(t, ask(t, s, card.ID, query).Body)
		if a.ValueFrom != want.from || scoresTraining(a.Warnings) != want.answer || e.ValueFrom != session.ValueFromTraining || scoresTraining(e.Warnings) != want.explain {
			t.Errorf("%s: %s %+v; explain %s %+v", query, a.ValueFrom, a.Warnings, e.ValueFrom, e.Warnings)
		}
	}
}

// TestCheckPartOfEverySplit: the sizes and the rules of the check part for units, strata, time, parts that are given, and counts; what cannot be is refused, and says why.
func TestCheckPartOfEverySplit(t *testing.T) {
	s := open(t, t.TempDir())
	seed := uint64(30)
	next := func(n int) *dataset.Table { seed++; return visits(t, n, seed) }
	for name, c := range map[string]struct {
		set  Settings
		want Counts // units
	}{
		"no label":    {Settings{}, Counts{Training: 280, Holdout: 120}},
		"label":       {Settings{Label: "late"}, Counts{Training: 200, Check: 80, Holdout: 120}},
		"none":        {Settings{Label: "late", Check: new(0.0)}, Counts{Training: 280, Holdout: 120}},
		"asked for":   {Settings{Check: new(0.1)}, Counts{Training: 240, Check: 40, Holdout: 120}},
		"a count":     {Settings{Check: new(7.0)}, Counts{Training: 273, Check: 7, Holdout: 120}},
		"little left": {Settings{Label: "late", Holdout: 0.9}, Counts{Training: 20, Check: 20, Holdout: 360}},
		"one left":    {Settings{Label: "late", Holdout: 399}, Counts{Training: 1, Holdout: 399}},
		"units":       {Settings{Label: "late", Unit: "chart"}, Counts{Training: 50, Check: 20, Holdout: 30}},
		"strata":      {Settings{Label: "late", Stratify: "clinic"}, Counts{Training: 200, Check: 80, Holdout: 120}},
		"whole":       {Settings{Label: "late", Holdout: 1}, Counts{Holdout: 400}},
		"time":        {Settings{Label: "late", Split: "time:seen"}, Counts{Training: 200, Check: 80, Holdout: 120}},
	} {
		c.set.Questions = 10
		card := create(t, s, c.set, next(400))
		if card.Units != c.want || card.Settings.Check == nil || (*card.Settings.Check > 0) != (c.want.Check > 0) {
			t.Errorf("%s: %+v, want %+v; check %v", name, card.Units, c.want, card.Settings.Check)
		}
		switch {
		case c.set.Stratify != "":
			var sum Counts
			for _, of := range seen(t, s, card).Strata {
				sum.Training, sum.Check, sum.Holdout = sum.Training+of.Training, sum.Check+of.Check, sum.Holdout+of.Holdout
			}
			if sum != card.Units {
				t.Errorf("strata %+v of %+v", sum, card.Units)
			}
		case c.set.Split != "":
			x := checked(t, s, card.ID, "seen")
			if before := slices.Max(numbers(t, training(t, s, card.ID), "seen")); slices.Min(x) < before || slices.Max(x) > slices.Min(stored(t, s, card.ID, "seen")) {
				t.Error("the check part is not between training and holdout")
			}
		}
	}
	parts := map[string]*dataset.Table{"training": next(50), "holdout": next(40), "check": next(30)}
	upload := func(names ...string) Upload {
		return func() (string, io.Reader, error) {
			if len(names) == 0 {
				return "", nil, io.EOF
			}
			name := names[0]
			names = names[1:]
			return name, bytes.NewReader(parquet(t, parts[name])), nil
		}
	}
	card, _, err := s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven, Label: "late", Questions: 10}, upload("training", "check", "holdout"), "")
	if err != nil || card.Units != (Counts{Training: 50, Check: 30, Holdout: 40}) || card.Settings.Check != nil {
		t.Fatalf("%+v, %v", card.Units, err)
	}
	if got := slices.Sorted(slices.Values(checked(t, s, card.ID, "x"))); !slices.Equal(got, slices.Sorted(slices.Values(numbers(t, parts["check"], "x")))) {
		t.Error("the check part is not the one that was given")
	}
	_, _, err = s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven, Unit: "chart", Questions: 10}, upload("training", "check", "holdout"), "")
	wantKind(t, "the same rows again", err, Exists)
	parts["training"] = next(60)
	_, _, err = s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven, Unit: "chart", Questions: 10}, upload("training", "check", "holdout"), "")
	if wantKind(t, "shared units", err, BadUpload); err != nil && !strings.Contains(err.Error(), "check") {
		t.Error(err)
	}
	for name, set := range map[string]Settings{
		"negative": {Check: new(-0.1)}, "all": {Check: new(1.0)}, "half a unit": {Check: new(2.5)}, "no number": {Check: new(math.NaN())},
		"nothing left": {Check: new(0.7)}, "too many": {Check: new(1e9)}, "of nothing": {Holdout: 1, Check: new(0.2)},
	} {
		_, _, err := s.Create(t.Context(), admin, Settings{Name: name, Holdout: set.Holdout, Check: set.Check, Questions: 10}, SingleUpload(bytes.NewReader(parquet(t, next(100)))), "")
		if wantKind(t, name, err, Invalid); err != nil && !strings.Contains(err.Error(), "check") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err = s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven, Check: new(0.2), Questions: 10}, upload("training", "holdout"), "")
	wantKind(t, "a share of given parts", err, Invalid)
	_, _, err = s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven, Questions: 10}, upload("holdout", "check"), "")
	wantKind(t, "no training part", err, Invalid)
}

// TestPredictionsOfTheCheckPart: with public features the download has the rows of the check part behind the holdout's, without the label, and predictions come for both:
// so mechanisms that compare take them. It would notice predictions of the holdout's rows that are held against labels of the check part, and the other way.
func TestPredictionsOfTheCheckPart(t *testing.T) {
	s := open(t, t.TempDir())
	const n = 2000
	for _, set := range []Settings{
		{Mechanism: "guess_and_check", Questions: 20, Tokens: 5},
		{Mechanism: "gaussian", Questions: 20, Tokens: 2},
		{Mechanism: "guess_and_check", Questions: 20, Tokens: 5, Unit: "chart"},
	} {
		set.Label, set.Features = "late", "public"
		card := create(t, s, set, visits(t, n, uint64(50+len(set.Unit)+len(set.Mechanism))))
		f, err := s.Features(t.Context(), analyst, card.ID)
		must(t, err)
		given := tableOf(t, s, f)
		must(t, f.Close())
		x, ids := numbers(t, given, "x"), numbers(t, given, RowID)
		held, kept := stored(t, s, card.ID, "x"), checked(t, s, card.ID, "x")
		if _, labelled := given.Lookup("late"); labelled || !slices.Equal(x, slices.Concat(held, kept)) || ids[len(ids)-1] != float64(len(x)-1) {
			t.Fatalf("%d rows of features, %d held out and %d kept", len(x), len(held), len(kept))
		}
		// Right about all but a tenth of the holdout's rows, and all but three tenths of the check part's.
		predictions, right := make([]int, len(x)), 0.0
		for i, v := range x {
			late, wrong := v < 0.2, i%10 == 0
			if i >= len(held) {
				if wrong = i%10 < 3; !wrong {
					right++
				}
			}
			if late != wrong {
				predictions[i] = 1
			}
		}
		list, err := json.Marshal(predictions)
		must(t, err)
		query := `{"type":"accuracy","label":"late","predictions":` + string(list) + `}`
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
		must(t, err)
		if set.Unit == "" && (e.ValueFrom != session.ValueFromCheck || math.Abs(*e.Training-right/float64(len(kept))) > 1e-6) {
			t.Errorf("explain: %v of %s, want %v of the check part", *e.Training, e.ValueFrom, right/float64(len(kept)))
		}
		others := make([]int, len(predictions)) // as numbers of two classes: another question, of the same value
		for i, yes := range predictions {
			others[i] = 1 - yes
		}
		each, err := json.Marshal([][]int{predictions, others})
		must(t, err)
		classes, err := s.Explain(t.Context(), analyst, card.ID, []byte(`{"type":"accuracy","label":"late ? 1.0 : 0.0","predictions":{"classes":[1,0],"of":`+string(each)+`}}`))
		must(t, err)
		if classes.Query == e.Query || *classes.Training != *e.Training || classes.ValueFrom != e.ValueFrom {
			t.Errorf("numbers of each class: %v of %s, want %v", *classes.Training, classes.ValueFrom, *e.Training)
		}
		a := read(t, ask(t, s, card.ID, query).Body)
		if a.Interval == nil || a.Interval.Low > 0.9 || a.Interval.High < 0.9 || set.Unit == "" && a.ValueFrom != session.ValueFromHoldout {
			t.Errorf("%s: an accuracy of 0.9 in the holdout: %v of %s, %+v", set.Mechanism, *a.Value, a.ValueFrom, a.Interval)
		}
		for name, wrong := range map[string]any{"the holdout alone": predictions[:len(held)], "one more": append(slices.Clone(predictions), 0)} {
			list, err := json.Marshal(wrong)
			must(t, err)
			_, err = s.Ask(t.Context(), analyst, card.ID, []byte(`{"type":"accuracy","label":"late","predictions":`+string(list)+`}`), "")
			if wantKind(t, name, err, Invalid); err != nil && !strings.Contains(err.Error(), "then") {
				t.Error(err)
			}
		}
	}
}

// TestDamagedCheckPart: the chain binds the check part as it binds the others: one that was exchanged or changed gives no answers, and verify says so. Values would come from it.
func TestDamagedCheckPart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := create(t, s, Settings{Label: "late", Unit: "chart", Questions: 10}, visits(t, 400, 60))
	place := s.path(holdoutsDir, card.ID)
	must(t, s.Close())
	for what, harm := range map[string]func(){
		"changed":   func() { flip(t, filepath.Join(place, checkDir, columnsOf)) },
		"exchanged": func() { exchange(t, filepath.Join(place, checkDir), filepath.Join(place, trainingDir)) },
	} {
		harm()
		reports, err := Verify(t.Context(), dir, true)
		if err == nil && (len(reports) == 0 || reports[0].Tables == inOrder) {
			t.Errorf("%s: verify finds all in order", what)
		}
		s := open(t, dir)
		_, err = s.Ask(t.Context(), analyst, card.ID, []byte(mean(3)), "")
		wantKind(t, what, err, Damaged)
		must(t, s.Close())
		harm() // as it was
	}
	s = open(t, dir)
	ask(t, s, card.ID, mean(3))
	card, err := s.Card(t.Context(), admin, card.ID)
	must(t, err)
	if card.Parts[checkDir] == "" || card.Parts[checkDir+unitsSuffix] == "" {
		t.Errorf("the card has the fingerprints %v", card.Parts)
	}
}
