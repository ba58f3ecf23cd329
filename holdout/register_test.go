package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	folders "github.com/holdoutd/holdoutd/sources/files"
)

// lake is a source of folders of Parquet files, with tables of these names.
func lake(t testing.TB, dir string, tables map[string]*dataset.Table) sources.Source {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "tables"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, table := range tables {
		if err := os.WriteFile(filepath.Join(dir, "tables", name), parquet(t, table), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := folders.New(folders.Options{Dir: filepath.Join(dir, "tables"), Parts: filepath.Join(dir, "parts"), Argv: []string{self, decodeParquet}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// withSource opens a service with a source named lake.
func withSource(source sources.Source) func(*Options) {
	return func(o *Options) {
		o.Sources, o.AllowNaive = map[string]sources.Source{"lake": source}, true
	}
}

// awaited waits for the end of a registration.
func awaited(t testing.TB, s *Service, id string) Registration {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		r, err := s.Registration(t.Context(), admin, id)
		if err != nil {
			t.Fatal(err)
		}
		if r.Stage.Ended() {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("not at an end after a minute: %+v", r)
		}
	}
}

// registerTable makes a holdout of a table of the lake, which must come to be.
func registerTable(t testing.TB, s *Service, set Settings, table string) Card {
	t.Helper()
	if set.Mechanism == "" {
		set.Mechanism = "gaussian"
	}
	if set.Name == "" {
		set.Name = "registered"
	}
	r, _, err := s.Register(t.Context(), admin, set, "lake", table, "")
	if err != nil {
		t.Fatal(err)
	}
	if r = awaited(t, s, r.ID); r.Stage != RegistrationDone {
		t.Fatalf("%+v: %v", r, r.Problem)
	}
	card, err := s.Card(t.Context(), admin, r.Holdout)
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// questions of every kind that a holdout of visits answers.
var visitQuestions = []string{
	`{"type":"mean","of":"x","range":[0,1]}`, `{"type":"fraction","of":"x > 0.3 && late"}`, `{"type":"fraction","of":"late"}`, `{"type":"mean","of":"score","range":[-5,5],"null":"skip"}`,
	`{"type":"count","of":"x < 0.5"}`, `{"type":"mean","of":"exp(x) / 3.0","range":[0,1]}`, `{"type":"mean","of":"x","range":[0,1],"where":"clinic == 'north'"}`, `{"type":"histogram","of":"x","edges":[0,0.25,0.5,1]}`,
}

// TestRegisteredIsUploaded: a table that is registered has the same sides as when it is uploaded, the same card but for what depends on the order of rows, and the same sums, bit by bit: by row, by
// unit, by day, by time, in strata and with a check part. It would notice another encoding of a unit's value, sizes that are rounded otherwise, and a part that sums other rows.
func TestRegisteredIsUploaded(t *testing.T) {
	for name, set := range map[string]Settings{
		"rows":   {Holdout: 0.3},
		"check":  {Holdout: 200, Label: "late"},
		"unit":   {Holdout: 0.4, Unit: "patient"},
		"day":    {Holdout: 0.4, Unit: "day(seen)"},
		"time":   {Holdout: 0.25, Split: "time:seen"},
		"strata": {Holdout: 0.3, Stratify: "clinic"},
		"all":    {Holdout: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := visits(t, 1000, 1)
			s := open(t, t.TempDir(), withSource(lake(t, t.TempDir(), map[string]*dataset.Table{"visits.parquet": table})))
			set.Mechanism, set.Questions = "naive", 100
			up, reg := seen(t, s, create(t, s, set, table)), seen(t, s, registerTable(t, s, set, "visits.parquet"))
			if reg.Source == nil || *reg.Source != (CardSource{"lake", "file", "visits.parquet"}) {
				t.Errorf("the card's source is %+v", reg.Source)
			}
			if up.Units != reg.Units || up.Rows != reg.Rows || up.LargestUnit != reg.LargestUnit || up.Target != reg.Target || !jsonEqual(t, up.Columns, reg.Columns) || !jsonEqual(t, up.Strata, reg.Strata) {
				t.Errorf("the card of the upload\n%+v\nof the registration\n%+v", up, reg)
			}
			for _, question := range visitQuestions {
				a, b := ask(t, s, up.ID, question), ask(t, s, reg.ID, question)
				var x, y struct{ Value, Items, Cost any }
				if err := errors.Join(json.Unmarshal(a.Body, &x), json.Unmarshal(b.Body, &y)); err != nil {
					t.Fatal(err)
				}
				if !jsonEqual(t, x, y) {
					t.Errorf("%s: uploaded %s\nregistered %s", question, a.Body, b.Body)
				}
			}
			if up.Units.Training == 0 {
				return
			}
			if a, b := sortedRows(t, training(t, s, up.ID)), sortedRows(t, training(t, s, reg.ID)); !slices.Equal(a, b) {
				t.Errorf("the training parts have %d and %d rows, which differ", len(a), len(b))
			}
		})
	}
}

func jsonEqual(t testing.TB, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}

// sortedRows are the rows of a table as text, in order.
func sortedRows(t *testing.T, table *dataset.Table) (rows []string) {
	t.Helper()
	for row := range table.Rows() {
		var cells []string
		for i := range table.Columns() {
			c := table.Column(i)
			switch {
			case c.Null(row):
				cells = append(cells, "null")
			case c.Kind == dataset.Text:
				cells = append(cells, c.Dictionary.Text(int(c.Codes[row])-1))
			case c.Kind == dataset.Bool:
				cells = append(cells, fmt.Sprint(c.Bools[row]))
			default:
				cells = append(cells, fmt.Sprint(c.Numbers[row]))
			}
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	slices.Sort(rows)
	return rows
}

// TestRegisteredAnswers: every mechanism answers of a registered table, replays, explains, and writes what an export verifies.
func TestRegisteredAnswers(t *testing.T) {
	for _, mechanism := range []string{"gaussian", "guess_and_check", "thresholdout", "split", "ladder"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir(), withSource(lake(t, t.TempDir(), map[string]*dataset.Table{"v": visits(t, 3000, 2)})))
			card := registerTable(t, s, Settings{Holdout: 0.5, Mechanism: mechanism, Questions: 10}, "v")
			question := `{"type":"fraction","of":"x > 0.5"}`
			if mechanism == "ladder" {
				question = `{"type":"loss","loss":"zero_one","label":"late","prediction":"x > 0.5"}`
			}
			if _, err := s.Explain(t.Context(), analyst, card.ID, []byte(question)); err != nil {
				t.Errorf("explain: %v", err)
			}
			a, err := s.Ask(t.Context(), analyst, card.ID, []byte(question), "")
			if err != nil {
				t.Fatal(err)
			}
			if b := ask(t, s, card.ID, question); !bytes.Equal(a.Body, b.Body) || !b.Replayed {
				t.Errorf("asked again: %s, replayed %v", b.Body, b.Replayed)
			}
		})
	}
}

// TestRegistrationRefusals: what cannot be registered is refused with words that say what to do, and nothing is left of it, here and at the source.
func TestRegistrationRefusals(t *testing.T) {
	source := lake(t, t.TempDir(), map[string]*dataset.Table{"v": visits(t, 400, 3)})
	s := open(t, t.TempDir(), withSource(source))
	for want, set := range map[string]Settings{
		"features=public": {Features: "public", Label: "late"}, "split=given": {Split: "given"}, "key identifies rows": {Unit: "patient", Key: []string{"x"}},
	} {
		if _, _, err := s.Register(t.Context(), admin, set, "lake", "v", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", set, err, want)
		}
	}
	if _, _, err := s.Register(t.Context(), analyst, Settings{}, "lake", "v", ""); KindOf(err) != Forbidden {
		t.Errorf("an analyst registers: %v", err)
	}
	if _, _, err := s.Register(t.Context(), admin, Settings{}, "lak", "v", ""); KindOf(err) != Invalid {
		t.Errorf("a source that is not there: %v", err)
	}
	for want, set := range map[string]Settings{
		`"nothing", which the table does not have`: {Unit: "nothing"},
		"has nulls":             {Unit: "score"},
		"differ within a unit":  {Unit: "patient", Stratify: "clinic"},
		"largest_unit declares": {Unit: "patient", LargestUnit: 2},
		"has no table":          {Name: "absent"},
	} {
		table := "v"
		if set.Name == "absent" {
			table = set.Name
		}
		r, _, err := s.Register(t.Context(), admin, set, "lake", table, "")
		if err != nil {
			t.Fatal(err)
		}
		if r = awaited(t, s, r.ID); r.Stage != RegistrationFailed || r.Problem == nil {
			t.Errorf("%+v: %+v", set, r)
		} else if !strings.Contains(r.Problem.Detail, want) {
			t.Errorf("%+v: %s, want %q", set, r.Problem.Detail, want)
		}
	}
	nothingLeft(t, s, source)
}

// nothingLeft: no part at the source, no note, no directory.
func nothingLeft(t testing.TB, s *Service, source sources.Source) {
	t.Helper()
	if parts, err := source.Parts(context.Background()); err != nil || len(parts) > 0 {
		t.Errorf("the source keeps %v, %v", parts, err)
	}
	for _, dir := range []string{s.path(notesDir), s.path(temporaryDir), s.places.tables, s.making} {
		entries, err := os.ReadDir(dir)
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
			return e.Name() == stagingDir || strings.HasPrefix(e.Name(), registrationPrefix)
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) || len(entries) > 0 {
			t.Errorf("%s has %v, %v", dir, entries, err)
		}
	}
}
