package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/sources"
	folders "github.com/holdoutd/holdoutd/sources/files"
)

// small has every upload divided piece by piece, into segments of few rows.
func small(o *Options) {
	o.Limits.AtOnce, o.segmentRows, o.AllowNaive = 1, 150, true
}

// largeService is a service in dir; whole has it divide uploads at once.
func largeService(t testing.TB, dir string) *Service {
	t.Helper()
	return open(t, dir, small)
}

// divideAtOnce has a service divide the next upload at once, or piece by piece.
func (s *Service) divideAtOnce(yes bool) {
	if s.limits.AtOnce = 1; yes {
		s.limits.AtOnce = mostAtOnce
	}
}

// likeOthers is a card without what a new holdout has of its own, and without what depends on the order of the rows.
func likeOthers(card Card) Card {
	card.ID, card.Created, card.Parts, card.TrainingPieces, card.Budget, card.Name, card.Settings.Name = "", time.Time{}, nil, 0, nil, "", ""
	card.Warnings = slices.Clone(card.Warnings)
	for i := range card.Warnings {
		if card.Warnings[i].Code == dependentRows { // measured on a sample of the training part
			card.Warnings[i].Effect, card.Warnings[i].Detail = 0, ""
		}
	}
	return card
}

// TestLargeIsUploaded: an upload that is divided piece by piece has the same card as one that is divided at once, also as a draft and in a dry run, the same digest, the same rows on each side and the same sums, bit by bit: by row,
// by unit, by day, by time, in strata, with a check part and where units are null. It would notice another encoding of a unit's value, a part that sums other rows, facts of other rows on the card, and a table that
// is not known by its rows.
func TestLargeIsUploaded(t *testing.T) {
	sameKey := func(o *Options) { o.ServerKey = func() (string, error) { return testServerKey, nil } }
	for name, set := range map[string]Settings{
		"rows":   {Holdout: 0.3},
		"check":  {Holdout: 200, Label: "late"},
		"unit":   {Holdout: 0.4, Unit: "patient"},
		"nulls":  {Holdout: 0.4, Unit: "score"},
		"day":    {Holdout: 0.4, Unit: "day(seen)"},
		"time":   {Holdout: 0.25, Split: "time:seen"},
		"strata": {Holdout: 0.3, Stratify: "clinic"},
		"all":    {Holdout: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := visits(t, 1000, 1)
			set.Mechanism, set.Questions, set.Name = "naive", 100, "visits"
			upload := func() Upload { return SingleUpload(bytes.NewReader(parquet(t, table))) }
			dir := t.TempDir()
			s := open(t, dir, small, sameKey)
			dry, err := s.DryRun(t.Context(), admin, set, upload())
			if err != nil {
				t.Fatal(err)
			}
			draft := create(t, s, set, table)
			if segmented := draft.segmented(); segmented {
				t.Error("the card of a draft names parts")
			}
			large := seen(t, s, draft)
			// The same table at once is known; in a directory with the same key it is what the large one is compared with.
			s.divideAtOnce(true)
			if _, _, err := s.Create(t.Context(), admin, set, upload(), ""); KindOf(err) != Exists || asError(err).Members["holdout"] != large.ID || asError(err).Members["reason"] != reasonSame {
				t.Errorf("the same table at once: %v, %v", err, asError(err).Members)
			}
			o := open(t, t.TempDir(), small, sameKey)
			o.divideAtOnce(true)
			dryWhole, err := o.DryRun(t.Context(), admin, set, upload())
			if err != nil {
				t.Fatal(err)
			}
			if !jsonEqual(t, likeOthers(dry), likeOthers(dryWhole)) {
				t.Errorf("dry runs:\n%+v\n%+v", dry, dryWhole)
			}
			draftWhole := create(t, o, set, table)
			if !jsonEqual(t, likeOthers(draft), likeOthers(draftWhole)) {
				t.Errorf("drafts:\n%+v\n%+v", draft, draftWhole)
			}
			whole := seen(t, o, draftWhole)
			sameHoldouts(t, s, large, o, whole, visitQuestions...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := Verify(t.Context(), dir, true); err != nil || len(got) != 1 || got[0].Tables != inOrder {
				t.Errorf("verify: %+v, %v", got, err)
			}
			if left, err := os.ReadDir(filepath.Join(dir, temporaryDir)); err != nil || len(left) > 0 {
				t.Errorf("left in tmp: %v, %v", left, err)
			}
		})
	}
}

func asError(err error) *Error {
	e := &Error{}
	errors.As(err, &e)
	return e
}

// rowsOf are the units of one side of a holdout, each as the text of its rows, in order: which rows are together counts.
func rowsOf(t *testing.T, s *Service, id, side string) (units []string) {
	t.Helper()
	h, release, err := s.tables.take(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var table *dataset.Table
	var offsets []uint32
	switch p := map[string]part{trainingDir: h.training, checkDir: h.check, holdoutDir: h.held}[side].(type) {
	case nil:
		return nil
	case *sourcedPart:
		table, offsets, err = p.read(t.Context(), 0, p.Units())
	case *tablePart:
		if table = p.table; h.card.Unit != rowUnit {
			offsets, err = readUnits(s.holdoutPath(id), side+unitsSuffix, &h.card)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var columns []dataset.Column // parts that are given have them in orders of their own
	for i := range table.Columns() {
		columns = append(columns, *table.Column(i))
	}
	slices.SortFunc(columns, func(a, b dataset.Column) int { return strings.Compare(a.Name, b.Name) })
	if table, err = dataset.FromColumns(columns...); err != nil {
		t.Fatal(err)
	}
	if offsets == nil {
		return sortedRows(t, table)
	}
	for u := range len(offsets) - 1 {
		units = append(units, strings.Join(sortedRows(t, table.Slice(int(offsets[u]), int(offsets[u+1]))), "\n"))
	}
	slices.Sort(units)
	return units
}

// sameHoldouts holds two holdouts of one table against each other: that of s is divided piece by piece, that of o at once. They have the same card, the same units on each side, and the same sums, bit by bit.
func sameHoldouts(t *testing.T, s *Service, large Card, o *Service, whole Card, questions ...string) {
	t.Helper()
	if !large.segmented() || whole.segmented() {
		t.Fatalf("segments: %v and %v", large.Parts, whole.Parts)
	}
	if !jsonEqual(t, likeOthers(large), likeOthers(whole)) {
		a, _ := json.MarshalIndent(likeOthers(large), "", " ")
		b, _ := json.MarshalIndent(likeOthers(whole), "", " ")
		t.Errorf("piece by piece:\n%s\nat once:\n%s", a, b)
	}
	for _, side := range []string{trainingDir, checkDir, holdoutDir} {
		if x, y := rowsOf(t, s, large.ID, side), rowsOf(t, o, whole.ID, side); !slices.Equal(x, y) {
			t.Errorf("the %s has %d and %d units, which differ", side, len(x), len(y))
		}
	}
	for _, question := range questions {
		a, b := ask(t, s, large.ID, question), ask(t, o, whole.ID, question)
		var x, y struct{ Value, Items, Cost any }
		if err := errors.Join(json.Unmarshal(a.Body, &x), json.Unmarshal(b.Body, &y)); err != nil {
			t.Fatal(err)
		}
		if !jsonEqual(t, x, y) {
			t.Errorf("%s: piece by piece %s\nat once %s", question, a.Body, b.Body)
		}
	}
}

// withNulls is a table of visits in which every column but x has nulls: the unit that a row is of is missing in some, and shared in others.
func withNulls(t *testing.T, rows int, seed uint64) *dataset.Table {
	t.Helper()
	table, r := visits(t, rows, seed), rand.New(rand.NewPCG(seed, 11))
	var columns []dataset.Column
	for i := range table.Columns() {
		c := *table.Column(i)
		c.Numbers, c.Bools, c.Codes = slices.Clone(c.Numbers), slices.Clone(c.Bools), slices.Clone(c.Codes)
		for row := range rows {
			if c.Name == "x" || r.IntN(3) > 0 {
				continue
			}
			switch c.Kind {
			case dataset.Bool:
				c.Bools[row] = dataset.NullBool
			case dataset.Text:
				c.Codes[row] = 0
			default:
				c.Numbers[row] = math.NaN()
			}
		}
		columns = append(columns, c)
	}
	found, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestLargeNullUnits: rows in which the unit is null are units of their own, on the side on which a table that is divided at once has them: of numbers, truths, texts, times and days, by time, with a check part, and where the largest unit
// is declared. It would notice nulls that are one unit, a null that is known by another place, and a unit that has lost a row.
func TestLargeNullUnits(t *testing.T) {
	sameKey := func(o *Options) { o.ServerKey = func() (string, error) { return testServerKey, nil } }
	for i, set := range []Settings{
		{Unit: "patient", Holdout: 0.4},
		{Unit: "patient", Holdout: 0.3, LargestUnit: 4, Label: "late"},
		{Unit: "late", Holdout: 0.5},
		{Unit: "clinic", Holdout: 0.3, Check: new(0.2)},
		{Unit: "seen", Holdout: 0.5},
		{Unit: "day(seen)", Holdout: 0.4},
		{Unit: "patient", Holdout: 0.3, Split: "time:seen"},
		{Unit: "score", Holdout: 0.3, Check: new(0.3)},
	} {
		t.Run(set.Unit, func(t *testing.T) {
			t.Parallel()
			set.Name, set.Mechanism, set.Questions = "visits", "naive", 100
			s, o := open(t, t.TempDir(), small, sameKey), open(t, t.TempDir(), small, sameKey)
			o.divideAtOnce(true)
			table := withNulls(t, 700, uint64(20+i))
			large, whole := seen(t, s, create(t, s, set, table)), seen(t, o, create(t, o, set, table))
			sameHoldouts(t, s, large, o, whole, visitQuestions...)
		})
	}
}

// TestLargePublicFeatures: with features=public a large upload gives out the features of the rows that are held out, numbered in one file over all segments, and sums what comes for each row as a table does that is divided at once: by
// row and by unit, with a check part and without. It would notice numbers that begin again in each segment or part, values of another row, a label that is given out, and another type of a column.
func TestLargePublicFeatures(t *testing.T) {
	sameKey := func(o *Options) { o.ServerKey = func() (string, error) { return testServerKey, nil } }
	for name, set := range map[string]Settings{
		"rows":  {Holdout: 0.5, Check: new(0.0)},
		"check": {Holdout: 0.4, Check: new(0.3)},
		"unit":  {Holdout: 0.5, Check: new(0.3), Unit: "patient"},
		"nulls": {Holdout: 0.5, Check: new(0.2), Unit: "score"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set.Name, set.Mechanism, set.Questions, set.Label, set.Features = "visits", "naive", 100, "late", featuresPublic
			s, o := open(t, t.TempDir(), small, sameKey), open(t, t.TempDir(), small, sameKey)
			o.divideAtOnce(true)
			table := visits(t, 900, 12)
			large, whole := seen(t, s, create(t, s, set, table)), seen(t, o, create(t, o, set, table))
			sameHoldouts(t, s, large, o, whole, visitQuestions...)
			features := func(s *Service, id string) *dataset.Table {
				t.Helper()
				f, err := s.Features(t.Context(), analyst, id)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				return tableOf(t, s, f)
			}
			a, b := features(s, large.ID), features(o, whole.ID)
			if n := int(large.Rows.Holdout + large.Rows.Check); a.Rows() != n || !jsonEqual(t, a.Schema(), b.Schema()) {
				t.Fatalf("%d rows of %v, want %d of %v", a.Rows(), a.Schema(), n, b.Schema())
			}
			for i, id := range numbers(t, a, RowID) {
				if id != float64(i) {
					t.Fatalf("row %d has the id %v", i, id)
				}
			}
			if again := features(s, large.ID); !slices.Equal(numbers(t, again, "x"), numbers(t, a, "x")) {
				t.Error("another download has another order")
			}
			held := func(table *dataset.Table, from, to int64) []string { // without the numbers
				var columns []dataset.Column
				for i := range table.Columns() {
					if c := *table.Column(i); c.Name != RowID {
						columns = append(columns, c)
					}
				}
				rows, err := dataset.FromColumns(columns...)
				if err != nil {
					t.Fatal(err)
				}
				return sortedRows(t, rows.Slice(int(from), int(to)))
			}
			for _, of := range [][2]int64{{0, large.Rows.Holdout}, {large.Rows.Holdout, large.Rows.Holdout + large.Rows.Check}} {
				if !slices.Equal(held(a, of[0], of[1]), held(b, of[0], of[1])) {
					t.Errorf("the rows %v are others", of)
				}
			}
			var values [2]any
			for i, side := range []struct {
				s     *Service
				id    string
				table *dataset.Table
			}{{s, large.ID, a}, {o, whole.ID, b}} {
				var list []string
				for _, x := range numbers(t, side.table, "x") { // late is x < 0.2
					list = append(list, map[bool]string{true: "1", false: "0"}[x < 0.3])
				}
				var got struct{ Value any }
				if err := json.Unmarshal(ask(t, side.s, side.id, `{"type":"accuracy","label":"late","predictions":[`+strings.Join(list, ",")+`]}`).Body, &got); err != nil {
					t.Fatal(err)
				}
				values[i] = got.Value
			}
			if values[0] == nil || values[0] != values[1] {
				t.Errorf("the accuracy is %v piece by piece, %v at once", values[0], values[1])
			}
		})
	}
	s := open(t, t.TempDir(), small)
	_, _, err := s.Create(t.Context(), admin, Settings{Name: "visits", Mechanism: "gaussian", Features: featuresPublic, Label: "late", Stratify: "late"}, SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 6)))), "")
	wantKind(t, "strata of labels", err, Invalid)
}

// partsUpload is an upload of parts, which are tables; without the check part where that is nil.
func partsUpload(t *testing.T, training, held, check *dataset.Table) Upload {
	t.Helper()
	type sent struct {
		part string
		body []byte
	}
	all := []sent{{partTraining, parquet(t, training)}, {partHoldout, parquet(t, held)}}
	if check != nil {
		all = append(all, sent{partCheck, parquet(t, check)})
	}
	return func() (string, io.Reader, error) {
		if len(all) == 0 {
			return "", nil, io.EOF
		}
		next := all[0]
		all = all[1:]
		return next.part, bytes.NewReader(next.body), nil
	}
}

// TestLargeGivenParts: parts that are given stay what they are when they are divided piece by piece: each has its rows and units, and the holdout has the card, the digest and the sums of one that is made at once; by row, by unit, where units are null,
// with a check part, with public features, and where the columns of the parts are in another order. It would notice rows of another part, and units that are lost where parts meet.
func TestLargeGivenParts(t *testing.T) {
	sameKey := func(o *Options) { o.ServerKey = func() (string, error) { return testServerKey, nil } }
	for i, c := range []struct {
		name  string
		set   Settings
		check bool
	}{
		{"rows", Settings{}, false},
		{"rows and check", Settings{Label: "late"}, true},
		{"unit", Settings{Unit: "patient"}, false},
		{"unit and check", Settings{Unit: "patient", LargestUnit: 4}, true},
		{"nulls", Settings{Unit: "patient", Label: "late"}, true},
		{"days", Settings{Unit: "day(seen)"}, true},
		{"features", Settings{Label: "late", Features: featuresPublic}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.set.Name, c.set.Mechanism, c.set.Questions, c.set.Split = "visits", "naive", 100, splitGiven
			s, o := open(t, t.TempDir(), small, sameKey), open(t, t.TempDir(), small, sameKey)
			o.divideAtOnce(true)
			table := visits(t, 1000, uint64(40+i))
			if c.name == "nulls" {
				table = withNulls(t, 1000, uint64(40+i))
				column, _ := table.Lookup("patient")
				for row, patient := range column.Numbers { // none is in two parts
					if patient == patient {
						column.Numbers[row] = float64(row / 4)
					}
				}
			}
			training, held, check := table.Slice(0, 400), table.Slice(400, 800), (*dataset.Table)(nil)
			if c.check {
				held, check = table.Slice(400, 700), table.Slice(700, 1000)
			}
			var columns []dataset.Column
			for i := range held.Columns() {
				columns = append(columns, *held.Column(i))
			}
			slices.Reverse(columns)
			held, err := dataset.FromColumns(columns...)
			if err != nil {
				t.Fatal(err)
			}
			create := func(s *Service) Card {
				t.Helper()
				card, _, err := s.Create(t.Context(), admin, c.set, partsUpload(t, training, held, check), "")
				if err != nil {
					t.Fatal(err)
				}
				return seen(t, s, card)
			}
			dry, err := s.DryRun(t.Context(), admin, c.set, partsUpload(t, training, held, check))
			if err != nil {
				t.Fatal(err)
			}
			large, whole := create(s), create(o)
			dryWhole, err := open(t, t.TempDir(), sameKey, func(o *Options) { o.AllowNaive = true }).DryRun(t.Context(), admin, c.set, partsUpload(t, training, held, check))
			if err != nil || !jsonEqual(t, likeOthers(dry), likeOthers(dryWhole)) {
				t.Errorf("dry runs: %v\n%+v\n%+v", err, likeOthers(dry), likeOthers(dryWhole))
			}
			sameHoldouts(t, s, large, o, whole, visitQuestions...)
			s.divideAtOnce(true) // the digest is that of the parts at once
			if _, _, err := s.Create(t.Context(), admin, c.set, partsUpload(t, training, held, check), ""); KindOf(err) != Exists || asError(err).Members["holdout"] != large.ID {
				t.Errorf("the same parts at once: %v", err)
			}
		})
	}
}

// TestLargeGivenTies: units whose tags are alike, as those of a table of a hundred million units are now and then, stay in the parts in which they were given.
func TestLargeGivenTies(t *testing.T) {
	t.Parallel()
	sameKey := func(o *Options) { o.ServerKey = func() (string, error) { return testServerKey, nil } }
	s, o := open(t, t.TempDir(), small, sameKey), open(t, t.TempDir(), small, sameKey)
	o.divideAtOnce(true)
	s.tagCut = 58 // tags of six bits for 300 units, of which some are null
	table := withNulls(t, 600, 60)
	column, _ := table.Lookup("patient")
	for row, patient := range column.Numbers {
		if patient == patient {
			column.Numbers[row] = float64(row / 4)
		}
	}
	set := Settings{Name: "visits", Mechanism: "naive", Questions: 100, Split: splitGiven, Unit: "patient"}
	var cards []Card
	for _, s := range []*Service{s, o} {
		card, _, err := s.Create(t.Context(), admin, set, partsUpload(t, table.Slice(0, 300), table.Slice(300, 480), table.Slice(480, 600)), "")
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, seen(t, s, card))
	}
	sameHoldouts(t, s, cards[0], o, cards[1], visitQuestions...)
}

// TestLargeGivenRefusals: what is wrong with parts that are given is said in the same words whether they are divided at once or piece by piece.
func TestLargeGivenRefusals(t *testing.T) {
	t.Parallel()
	s := largeService(t, t.TempDir())
	table := visits(t, 600, 50)
	a, b, c := table.Slice(0, 300), table.Slice(300, 448), table.Slice(448, 600) // no patient is in two
	without := func(t *dataset.Table, name string) *dataset.Table {
		var columns []dataset.Column
		for i := range t.Columns() {
			if t.Column(i).Name != name {
				columns = append(columns, *t.Column(i))
			}
		}
		cut, err := dataset.FromColumns(columns...)
		if err != nil {
			panic(err)
		}
		return cut
	}
	for name, tt := range map[string]struct {
		set                   Settings
		training, held, check *dataset.Table
	}{
		"twice":             {Settings{}, a, a, nil},
		"check twice":       {Settings{}, a, b, b},
		"units":             {Settings{Unit: "patient"}, table.Slice(0, 322), table.Slice(322, 451), table.Slice(451, 600)},
		"units in training": {Settings{Unit: "clinic"}, a, b, nil},
		"units in all":      {Settings{Unit: "clinic"}, a, b, c},
		"largest unit":      {Settings{Unit: "patient", LargestUnit: 3}, a, b, c},
		"no rows":           {Settings{}, a, b, c.Slice(0, 0)},
		"a column fewer":    {Settings{}, a, without(b, "x"), nil},
		"a column more":     {Settings{}, without(a, "x"), b, nil},
		"no unit":           {Settings{Unit: "nobody"}, a, b, nil},
	} {
		tt.set.Name, tt.set.Mechanism, tt.set.Split = "visits", "gaussian", splitGiven
		var said [2]*Error
		for i, atOnce := range []bool{true, false} {
			s.divideAtOnce(atOnce)
			_, _, err := s.Create(t.Context(), admin, tt.set, partsUpload(t, tt.training, tt.held, tt.check), "")
			if KindOf(err) != BadUpload && KindOf(err) != Invalid {
				t.Errorf("%s: at once %v: %v", name, atOnce, err)
			}
			said[i] = asError(err)
		}
		if said[0].Kind != said[1].Kind || said[0].Detail != said[1].Detail {
			t.Errorf("%s: at once: %v\npiece by piece: %v", name, said[0], said[1])
		}
	}
}

// TestLargeReplaces: a large upload replaces the draft of a holdout that was divided at once, and the other way; after a look with the same split alone, whose parts are compared across the two forms; and not after a question.
func TestLargeReplaces(t *testing.T) {
	t.Parallel()
	table := visits(t, 800, 2)
	for _, first := range []bool{true, false} {
		s := largeService(t, t.TempDir())
		s.divideAtOnce(first)
		a := create(t, s, Settings{Holdout: 0.3}, table)
		s.divideAtOnce(!first)
		b := create(t, s, Settings{Holdout: 0.4}, table)
		if b.Replaces != a.ID {
			t.Errorf("the draft was not replaced: %+v", b)
		}
		seen(t, s, b)
		s.divideAtOnce(first)
		if _, _, err := s.Create(t.Context(), admin, Settings{Holdout: 0.2, Name: "visits", Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(parquet(t, table))), ""); KindOf(err) != Exists {
			t.Errorf("another split after a look: %v", err)
		}
		c := create(t, s, Settings{Holdout: 0.4, Questions: 77}, table) // the parts that were shown are the same
		if c.Replaces != b.ID {
			t.Errorf("the holdout was not replaced: %+v", c)
		}
		if entries, err := os.ReadDir(s.holdoutPath(b.ID)); err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !lasting(e) }) {
			t.Errorf("left of the one that was replaced: %v", entries)
		}
		ask(t, s, c.ID, visitQuestions[0])
		if _, _, err := s.Create(t.Context(), admin, Settings{Holdout: 0.4, Questions: 78, Name: "visits", Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(parquet(t, table))), ""); KindOf(err) != Exists {
			t.Errorf("after a question: %v", err)
		}
	}
}

// TestLargeReused: rows of a large upload are known when they come again, in a small upload or a large one, and those of a small one when they come in a large one; copies of rows are warned of. It would notice prints that are not made, or of other
// rows.
func TestLargeReused(t *testing.T) {
	t.Parallel()
	table := visits(t, 2000, 3)
	half := table.Slice(0, 1500)
	for _, first := range []bool{true, false} {
		for _, second := range []bool{true, false} {
			if first && second {
				continue
			}
			s := largeService(t, t.TempDir())
			s.divideAtOnce(first)
			a := seen(t, s, create(t, s, Settings{Holdout: 0.5}, table))
			ask(t, s, a.ID, visitQuestions[0])
			s.divideAtOnce(second)
			_, _, err := s.Create(t.Context(), admin, Settings{Holdout: 0.3, Name: "again", Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(parquet(t, half))), "")
			if KindOf(err) != Exists || asError(err).Members["reason"] != reasonReused {
				t.Errorf("at once %v, then %v: %v", first, second, err)
			}
		}
	}
	twice := visits(t, 600, 4)
	rows := make([]uint32, 0, 1200)
	for i := range 600 {
		rows = append(rows, uint32(i), uint32(i))
	}
	columns := make([]dataset.Column, twice.Columns())
	for i := range columns {
		columns[i] = pick(*twice.Column(i), rows)
	}
	doubled, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	s := largeService(t, t.TempDir())
	card := seen(t, s, create(t, s, Settings{Holdout: 0.3}, doubled))
	if !slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == "copied-rows" }) {
		t.Errorf("no warning of copies: %+v", card.Warnings)
	}
}

// TestLargeRegistration: a large upload is a registration with stages, under its Idempotency-Key one, which others find by its holdout after a restart; cancelled it leaves nothing; given up by who waits for it, too.
func TestLargeRegistration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := largeService(t, dir)
	table := parquet(t, visits(t, 900, 5))
	set := Settings{Holdout: 0.3, Mechanism: "gaussian", Name: "visits"}
	s.registering <- struct{}{} // somebody else's turn
	begin := func() Begun {
		t.Helper()
		begun, err := s.Upload(t.Context(), admin, set, SingleUpload(bytes.NewReader(table)), "once")
		if err != nil || begun.Registration == nil {
			t.Fatalf("%+v %v", begun, err)
		}
		return begun
	}
	a, b := begin(), begin()
	if a.Replayed || !b.Replayed || a.Registration.ID != b.Registration.ID || a.Registration.Stage != RegistrationWaiting || a.Registration.Rows != 900 {
		t.Errorf("%+v\n%+v", a.Registration, b.Registration)
	}
	if now, err := s.CancelRegistration(t.Context(), admin, a.Registration.ID); err != nil || now.Stage != RegistrationCancelled {
		t.Errorf("%+v %v", now, err)
	}
	gone, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.Create(gone, admin, set, SingleUpload(bytes.NewReader(table)), ""); KindOf(err) != Unavailable {
		t.Errorf("given up: %v", err)
	}
	<-s.registering
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // who is given up is told so before its files are removed
		left, err := os.ReadDir(filepath.Join(dir, temporaryDir))
		if err == nil && len(left) == 0 {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("left in tmp: %v, %v", left, err)
		}
	}
	c := begin()
	done := awaited(t, s, c.Registration.ID)
	if c.Replayed || done.Stage != RegistrationDone {
		t.Fatalf("%+v %v", done, done.Problem)
	}
	again, err := s.Upload(t.Context(), admin, set, SingleUpload(bytes.NewReader(table)), "once")
	if err != nil || again.Registration != nil || !again.Replayed || again.Card.ID != done.Holdout {
		t.Errorf("%+v %v", again, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = largeService(t, dir)
	if now, err := s.Registration(t.Context(), admin, done.ID); err != nil || now.Holdout != done.Holdout || now.Stage != RegistrationDone {
		t.Errorf("after a restart: %+v %v", now, err)
	}
}

// TestLargeRefusals: what is wrong with a large upload is said as of others.
func TestLargeRefusals(t *testing.T) {
	t.Parallel()
	s := largeService(t, t.TempDir())
	good := parquet(t, visits(t, 300, 6))
	for name, tt := range map[string]struct {
		set  Settings
		body []byte
		kind Kind
	}{
		"no Parquet":   {Settings{}, []byte("no Parquet at all"), BadUpload},
		"cut off":      {Settings{}, good[:len(good)-300], BadUpload},
		"no unit":      {Settings{Unit: "nobody"}, good, Invalid},
		"no label":     {Settings{Label: "nobody"}, good, Invalid},
		"stratum":      {Settings{Unit: "patient", Stratify: "x"}, good, BadUpload},
		"largest unit": {Settings{Unit: "patient", LargestUnit: 2}, good, Invalid},
		"one unit":     {Settings{Holdout: 1000}, good, Invalid},
		"key":          {Settings{Key: []string{"patient"}}, good, Invalid},
	} {
		tt.set.Name, tt.set.Mechanism = "visits", "gaussian"
		_, _, err := s.Create(t.Context(), admin, tt.set, SingleUpload(bytes.NewReader(tt.body)), "")
		if KindOf(err) != tt.kind {
			t.Errorf("%s: %v", name, err)
		}
		if name != "key" && strings.Contains(asError(err).Detail, "source") {
			t.Errorf("%s speaks of a source: %v", name, err)
		}
	}
}

// TestLargeDamage: a holdout whose segments are damaged gives no answer, and none is debited for it twice: it is damaged until its files have been compared whole. verify finds it, too.
func TestLargeDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := largeService(t, dir)
	card := seen(t, s, create(t, s, Settings{Holdout: 0.4, Questions: 50}, visits(t, 1000, 7)))
	first := ask(t, s, card.ID, visitQuestions[0])
	path := s.holdoutPath(card.ID, holdoutDir+segmentsSuffix, "segment1", dataset.ColumnsFile)
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bytes[len(bytes)/3] ^= 1
	if err := os.WriteFile(path, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	spent := func() any {
		t.Helper()
		b, err := s.Budget(t.Context(), admin, card.ID)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var whole []any
	for _, question := range []string{`{"type":"mean","of":"x","range":[0,1],"where":"late"}`, `{"type":"mean","of":"score","range":[0,100]}`, `{"type":"mean","of":"x * score","range":[0,100],"where":"clinic == 'clinic 1'"}`,
		`{"type":"mean","of":"x * score + patient","range":[0,1000],"where":"clinic == 'clinic 2' && late"}`, `{"type":"mean","of":"x + score","range":[0,100]}`} {
		_, err := s.Ask(t.Context(), analyst, card.ID, []byte(question), "")
		if err != nil && KindOf(err) != Damaged {
			t.Errorf("%s: %v", question, err)
		}
		if err != nil {
			whole = append(whole, spent())
		}
	}
	if len(whole) == 0 {
		t.Fatal("no question met the damage")
	}
	for _, b := range whole {
		if !jsonEqual(t, b, whole[0]) {
			t.Errorf("debited again: %v", whole)
		}
	}
	if replayed := ask(t, s, card.ID, visitQuestions[0]); !replayed.Replayed || string(replayed.Body) != string(first.Body) {
		t.Errorf("a recorded answer does not replay: %+v", replayed)
	}
	if c, err := s.Card(t.Context(), admin, card.ID); err != nil || c.State != StateDamaged {
		t.Errorf("%q %v", c.State, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), dir, true); err == nil || !strings.Contains(err.Error(), card.ID) {
		t.Errorf("verify: %v", err)
	}
}

// TestLargeDeleted: a large holdout that is deleted leaves its prints alone; one that is retired gives its rows out in pieces.
func TestLargeDeleted(t *testing.T) {
	t.Parallel()
	s := largeService(t, t.TempDir())
	a := seen(t, s, create(t, s, Settings{Holdout: 0.4}, visits(t, 1000, 8)))
	ask(t, s, a.ID, visitQuestions[0])
	if err := s.Delete(t.Context(), admin, a.ID); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.holdoutPath(a.ID))
	if err != nil || len(entries) != 1 || entries[0].Name() != printsFile {
		t.Errorf("left: %v %v", entries, err)
	}
	b := seen(t, s, create(t, s, Settings{Holdout: 0.4}, visits(t, 1000, 9)))
	if _, err := s.Retire(t.Context(), admin, b.ID); err != nil {
		t.Fatal(err)
	}
	f, pieces, err := s.ReleasedPiece(t.Context(), admin, b.ID, partHoldout, 0)
	if err != nil || pieces != 1 {
		t.Fatalf("%d pieces, %v", pieces, err)
	}
	f.Close()
}

// TestLargeWarns: a draft of a large upload says of its rows what one says that is divided at once, here that they are alike within a day.
func TestLargeWarns(t *testing.T) {
	t.Parallel()
	table := visits(t, 4000, 10)
	columns := make([]dataset.Column, table.Columns())
	for i := range columns {
		columns[i] = *table.Column(i)
		if columns[i].Name == "x" {
			columns[i].Numbers = slices.Clone(columns[i].Numbers)
			for row := range columns[i].Numbers {
				columns[i].Numbers[row] = float64(row/50%7) + columns[i].Numbers[row]
			}
		}
	}
	alike, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	sameKey := func(o *Options) { o.ServerKey = func() (string, error) { return testServerKey, nil } }
	var said [2][]Warning
	for i, atOnce := range []bool{true, false} {
		s := open(t, t.TempDir(), small, sameKey)
		s.divideAtOnce(atOnce)
		said[i] = create(t, s, Settings{Holdout: 0.4}, alike).Warnings
	}
	if !slices.ContainsFunc(said[0], func(w Warning) bool { return w.Code == dependentRows }) || !jsonEqual(t, said[0], said[1]) {
		t.Errorf("at once: %+v\npiece by piece: %+v", said[0], said[1])
	}
}

// TestLargeErrors: what the machine fails at while a large upload is divided is said as of any upload, and a disk without room is told before the work begins.
func TestLargeErrors(t *testing.T) {
	t.Parallel()
	s := largeService(t, t.TempDir())
	if err := s.roomFor(folders.Size{Bytes: 1 << 60}); KindOf(err) != DiskFull {
		t.Errorf("a table that no disk has room for: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want Kind
	}{
		{t.Context(), &sources.Error{Kind: sources.Unavailable, Detail: "full", Err: syscall.ENOSPC}, DiskFull},
		{t.Context(), &sources.Error{Kind: sources.Unavailable, Detail: "files", Err: syscall.EMFILE}, Unavailable},
		{t.Context(), &sources.Error{Kind: sources.Changed, Detail: "changed"}, Unavailable},
		{t.Context(), &sources.Error{Kind: sources.Refused, Detail: "a decoder's", Err: &ingest.Error{Kind: ingest.TooLarge}}, TooLarge},
		{t.Context(), &sources.Error{Kind: sources.Refused, Detail: "nulls", Column: "x"}, BadUpload},
		{gone, &sources.Error{Kind: sources.Changed, Detail: "killed"}, Unavailable},
		{t.Context(), invalid("unit", "none"), Invalid},
		{t.Context(), errors.New("a fault of ours"), Internal},
	} {
		if err := storageError((&creation{ctx: c.ctx}).largeError(c.err)); KindOf(err) != c.want {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}
