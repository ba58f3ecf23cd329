package holdout

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// again uploads a table that may be known.
func again(t *testing.T, s *Service, set Settings, table *dataset.Table) (Card, error) {
	t.Helper()
	card, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), "")
	return card, err
}

func dryRun(t *testing.T, s *Service, set Settings, table *dataset.Table) (Card, error) {
	t.Helper()
	return s.DryRun(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))))
}

// refusedFor demands that a table is not created again, and why.
func refusedFor(t *testing.T, what string, err error, id, reason string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != Exists || e.Members["holdout"] != id || e.Members["reason"] != reason || len(e.Detail) < 60 {
		t.Errorf("%s: %v, want the reason %s of %s", what, err, reason, id)
	}
}

// heldOut are the held-out values of x, in order.
func heldOut(t *testing.T, s *Service, id string) []float64 {
	t.Helper()
	h, release, err := s.tables.take(t.Context(), id)
	must(t, err)
	defer release()
	x := slices.Clone(numbers(t, h.holdoutTable, "x"))
	slices.Sort(x)
	return x
}

// verified demands that the data directory is in order, also offline.
func verified(t *testing.T, s *Service) map[string]Verification {
	t.Helper()
	reports, err := Verify(t.Context(), s.dir, true)
	must(t, err)
	byID := map[string]Verification{}
	for _, r := range reports {
		byID[r.Holdout] = r
	}
	return byID
}

// TestDryRunMakesNothing: a dry run leaves no file, no row of the ledger and no key, and is what the holdout's own draft says. It would notice a dry run
// that is recorded, or that burns an Idempotency-Key or the table.
func TestDryRunMakesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 1000, 1)
	for _, set := range []Settings{
		{Name: "v"}, {Name: "v", Unit: "chart"}, {Name: "v", Stratify: "clinic", Questions: 30}, {Name: "v", Split: "time:seen"}, {Name: "v", Mechanism: "gaussian", Rounds: 2},
		{Name: "v", Unit: "day(seen)", LargestUnit: 60},
	} {
		card, err := dryRun(t, s, set, table)
		must(t, err)
		all, err := s.ledger.Holdouts(t.Context())
		if left := files(t, s.dir); err != nil || len(all) != 0 || len(left) != 0 || card.ID != "" || !card.Created.IsZero() || card.Guarantee.N != card.Units.Holdout {
			t.Fatalf("%+v: %d holdouts, files %v, %+v %v", set, len(all), left, card, err)
		}
		if set.Unit != "" && (card.Rows != Counts{} || card.LargestUnit != set.LargestUnit) {
			t.Errorf("%+v: which units are large shows: %+v", set, card)
		}
		made, err := again(t, open(t, t.TempDir()), set, table)
		must(t, err)
		if !made.Draft || made.Budget == nil {
			t.Errorf("%+v: the new holdout is no draft: %+v", set, made)
		}
		made.ID, made.Created, made.Draft, made.Budget = "", card.Created, false, nil
		if made.Warnings = card.Warnings; !reflect.DeepEqual(made, card) { // another server's key may see other warnings
			t.Errorf("%+v: the dry run says\n%+v, the holdout\n%+v", set, card, made)
		}
	}
	for _, wrong := range []Settings{{Unit: "nobody"}, {Mechanism: "naive"}, {Unit: "chart", LargestUnit: 1}, {Holdout: 5000}} {
		_, dry := dryRun(t, s, wrong, table)
		_, real := again(t, s, wrong, table)
		if dry == nil || real == nil || dry.Error() != real.Error() {
			t.Errorf("%+v: a dry run says %v, an upload %v", wrong, dry, real)
		}
	}
	_, err := s.DryRun(t.Context(), analyst, Settings{}, SingleUpload(bytes.NewReader(parquet(t, table))))
	wantKind(t, "an analyst's dry run", err, Forbidden)
}

// earlier is a table with other rows in the places that are held out of visits, and the same where rows are training: what a draft says must be the
// same of both.
func earlier(t *testing.T, s *Service, table *dataset.Table, held map[int]bool, seed uint64) *dataset.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 77))
	columns := make([]dataset.Column, table.Columns())
	for i := range columns {
		c := *table.Column(i)
		c.Numbers, c.Bools = slices.Clone(c.Numbers), slices.Clone(c.Bools)
		if c.Kind == dataset.Text || c.Name == "chart" || c.Name == "seen" { // public shape: dictionaries and numbers of units
			columns[i] = c
			continue
		}
		for _, row := range slices.Sorted(maps.Keys(held)) { // in one order, for they draw from one source
			switch c.Kind {
			case dataset.Number:
				c.Numbers[row] = 1e6 * r.NormFloat64()
			case dataset.Bool:
				c.Bools[row] = uint8(r.IntN(3))
			}
		}
		columns[i] = c
	}
	other, err := dataset.FromColumns(columns...)
	must(t, err)
	return other
}

// TestDraftsTellNothingOfHeldOutRows is the second promise for what is said before the first look. Of two tables of one public shape, which differ where the default split holds
// rows out, every dry run says the same, with any settings: fractions, units, strata, times, largest units. And nothing but one warning differs where every row
// is another. It would notice strata, numbers of rows by units, largest units, columns' ranges or fingerprints on a draft, and warnings from held-out rows.
func TestDraftsTellNothingOfHeldOutRows(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 1200, 1)
	size, err := holdoutSize(DefaultHoldout, table.Rows())
	must(t, err)
	tags := splitter{key: s.split[:]}.tags(groupByRow(table.Rows()), nil, false)
	held, all := map[int]bool{}, map[int]bool{}
	for _, u := range byTags(nil, tags, sizes{size, 0}).holdout {
		held[int(u)] = true
	}
	for row := range table.Rows() {
		all[row] = true
	}
	sets := []Settings{{}, {Holdout: 0.1}, {Holdout: 0.9}, {Holdout: 1, Mechanism: "gaussian"}, {Unit: "chart"}, {Unit: "chart", Holdout: 0.5, Label: "late"}, {Unit: "day(seen)"}, {Split: "time:seen"},
		{Stratify: "clinic"}, {Stratify: "late"}, {Stratify: "clinic", Unit: "chart"}, {Label: "late", Features: "public", Mechanism: "gaussian"}, {Questions: 7, Mechanism: "gaussian", Rounds: 1}, {Unit: "chart", LargestUnit: 9}}
	same := func(a, b Card) bool { return reflect.DeepEqual(a, b) }
	for seed := range uint64(1) {
		twin, stranger := earlier(t, s, table, held, seed), earlier(t, s, table, all, seed)
		for _, set := range sets {
			set.Name = "v"
			a, errA := dryRun(t, s, set, table)
			b, errB := dryRun(t, s, set, twin)
			c, errC := dryRun(t, s, set, stranger)
			if fmt.Sprint(errA) != fmt.Sprint(errB) || !same(a, b) {
				t.Errorf("%+v: of one table\n%+v (%v)\nof the other\n%+v (%v)", set, a, errA, b, errB)
			}
			a.Warnings, c.Warnings = nil, nil
			if fmt.Sprint(errA) != fmt.Sprint(errC) || !same(a, c) {
				t.Errorf("%+v: more than warnings differ:\n%+v (%v)\n%+v (%v)", set, a, errA, c, errC)
			}
		}
	}
}

// TestOneForewarning: what a dry run says of dependent rows is the same sentence whatever the settings are. It would notice a search that goes by the
// split or the unit of the settings: each dry run would be another look.
func TestOneForewarning(t *testing.T) {
	s := open(t, t.TempDir())
	table, err := dataset.FromColumns(clustered(4000, 1)...)
	must(t, err)
	dependent := func(w Warning) bool { return w.Code == dependentRows }
	card, err := dryRun(t, s, Settings{}, table)
	must(t, err)
	i := slices.IndexFunc(card.Warnings, dependent)
	if i < 0 || card.Warnings[i].Unit != "day(date)" || !strings.Contains(card.Warnings[i].Detail, "would leave 200 units") {
		t.Fatalf("%+v", card.Warnings)
	}
	first := card.Warnings[i]
	for _, set := range []Settings{{Holdout: 0.05}, {Holdout: 0.95}, {Unit: "id"}, {Split: "time:date"}, {Label: "x"}, {Holdout: 400, Questions: 3}} {
		card, err := dryRun(t, s, set, table)
		must(t, err)
		if i := slices.IndexFunc(card.Warnings, dependent); i < 0 || card.Warnings[i] != first {
			t.Errorf("%+v: %+v", set, card.Warnings)
		}
	}
	mended, err := dryRun(t, s, Settings{Unit: "day(date)"}, table)
	must(t, err)
	if slices.ContainsFunc(mended.Warnings, dependent) {
		t.Errorf("the unit itself: %+v", mended.Warnings)
	}
}

// TestForewarningIsOfTrainingRows: rows that the default split holds out are alike by day, and the others are not: no dry run says so, whatever it would hold out. Where
// the others are, each does. It would notice a warning that is worked out from all rows, or from those that other settings leave to training.
func TestForewarningIsOfTrainingRows(t *testing.T) {
	s := open(t, t.TempDir())
	const n = 4000
	tags := splitter{key: s.split[:]}.tags(groupByRow(n), nil, false)
	held := make([]bool, n)
	for _, row := range byTags(nil, tags, sizes{n * 3 / 10, 0}).holdout {
		held[row] = true
	}
	for _, alike := range []bool{true, false} { // the held-out rows, or the others
		columns := clustered(n, 0)
		days := clustered(n, 1e6)[1].Numbers // the effect of each row's day, a millionfold
		for row := range n {
			if held[row] == alike {
				columns[1].Numbers[row] += days[row] / 2e5
			}
		}
		table, err := dataset.FromColumns(columns...)
		must(t, err)
		for _, set := range []Settings{{}, {Holdout: 0.05}, {Holdout: 0.9}, {Unit: "id", Holdout: 0.1}} {
			card, err := dryRun(t, s, set, table)
			must(t, err)
			if said := slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == dependentRows }); said == alike {
				t.Errorf("held-out rows alike: %v; %+v: warned %v", alike, set, said)
			}
		}
	}
}

// TestCreatedAgain: before the first look every setting may change, and the rows held out are those of the same keyed split: of a larger fraction more, of other settings of the
// guarantee the same. It would notice a fresh split, a holdout that stays beside its successor, and one whose noise is reused.
func TestCreatedAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	table := visits(t, 1000, 1)
	first := create(t, s, Settings{Questions: 900}, table)
	if !first.Draft || first.Replaces != "" {
		t.Fatalf("%+v", first)
	}
	_, err := again(t, s, first.Settings, table)
	refusedFor(t, "the same settings", err, first.ID, reasonSame)
	ids, sets := []string{first.ID}, []Settings{{Mechanism: "gaussian", Questions: 40}, {Unit: "chart"}, {Stratify: "clinic"}, {Split: "time:seen"}, {Mechanism: "gaussian", Holdout: 0.5, Questions: 20}}
	for _, set := range sets {
		set.Name = "visits"
		last := ids[len(ids)-1]
		card, err := again(t, s, set, table)
		if err != nil || card.Replaces != last || !card.Draft {
			t.Fatalf("%+v: %+v, %v", set, card, err)
		}
		for _, old := range ids {
			_, err := s.Card(t.Context(), admin, old)
			var gone *Error
			if KindOf(err) != NotFound || !errors.As(err, &gone) || gone.Members["holdout"] != card.ID || gone.Members["reason"] != reasonReplaced {
				t.Errorf("the old one %s is there still, or does not say that it is %s now: %v", old, card.ID, err)
			}
		}
		if _, err := s.Ask(t.Context(), analyst, last, []byte(mean(1)), ""); KindOf(err) != NotFound {
			t.Errorf("the old one answers: %v", err)
		}
		ids = append(ids, card.ID)
	}
	if left := files(t, dir); !slices.Equal(left, []string{"holdouts/" + ids[len(ids)-1]}) {
		t.Errorf("files %v", left)
	}
	if err := s.Export(t.Context(), admin, ids[0], io.Discard); KindOf(err) != NotFound {
		t.Errorf("the card of a draft that was replaced is told: %v", err)
	}
	id := ids[len(ids)-1]
	half := heldOut(t, s, id)
	tags, x := splitter{key: s.split[:]}.tags(groupByRow(table.Rows()), nil, false), numbers(t, table, "x")
	for _, row := range byTags(nil, tags, sizes{300, 0}).holdout { // what the first one held out
		if _, in := slices.BinarySearch(half, x[row]); !in {
			t.Fatalf("row %d was held out at 0.3 and is not at 0.5", row)
		}
	}
	must(t, s.Export(t.Context(), admin, id, io.Discard))
	reports := verified(t, s)
	for i, old := range ids {
		if r := reports[old]; r.Deleted != (i < len(ids)-1) || r.Answers != 0 {
			t.Errorf("%s: %+v", old, r)
		}
	}
	must(t, s.Close())
	s = open(t, dir)
	if card, err := s.Card(t.Context(), admin, id); err != nil || card.Replaces != ids[len(ids)-2] || card.State != "" {
		t.Errorf("after a start: %+v, %v", card, err)
	}
	ask(t, s, id, mean(1))
	_, err = again(t, s, Settings{Questions: 5}, table)
	refusedFor(t, "what was asked", err, id, reasonAsked)
}

// TestKeyOfAReplacedDraft: the same upload under the same Idempotency-Key has the card of the first time, though the holdout was created again since; the holdout that has its place stays. It would
// notice a replay that is told that there is no such holdout, and one that makes a third one. After that one is deleted the old id is gone like any other.
func TestKeyOfAReplacedDraft(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 1000, 1)
	upload := func(set Settings) (Card, bool, error) {
		return s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), "key-"+set.Name)
	}
	first, _, err := upload(Settings{Name: "first", Questions: 50})
	must(t, err)
	second, replayed, err := upload(Settings{Name: "second", Questions: 60})
	if err != nil || replayed || second.Replaces != first.ID {
		t.Fatalf("%+v %v %v", second, replayed, err)
	}
	again, replayed, err := upload(Settings{Name: "first", Questions: 50})
	if err != nil || !replayed || again.ID != first.ID || again.Guarantee.Questions != 50 || again.Parts != nil {
		t.Errorf("the first upload again: %+v, replayed %v, %v", again, replayed, err)
	}
	if card, err := s.Card(t.Context(), admin, second.ID); err != nil || card.Replaces != first.ID {
		t.Errorf("the second: %+v %v", card, err)
	}
	must(t, s.Delete(t.Context(), admin, second.ID))
	_, err = s.Card(t.Context(), admin, first.ID)
	var gone *Error
	if KindOf(err) != NotFound || !errors.As(err, &gone) || gone.Members != nil {
		t.Errorf("after both: %v", err)
	}
}

// TestPartsAreOtherRows would notice a training part that is taken for the holdout as well, in whatever order its rows are.
func TestPartsAreOtherRows(t *testing.T) {
	s := open(t, t.TempDir())
	table := parquet(t, visits(t, 1000, 1))
	_, _, err := s.Create(t.Context(), admin, Settings{Split: splitGiven}, givenUpload(table, table), "")
	if wantKind(t, "one table as both parts", err, BadUpload); err == nil || !strings.Contains(err.Error(), "same rows") {
		t.Errorf("one table as both parts: %v", err)
	}
	_, _, err = s.Create(t.Context(), admin, Settings{Split: splitGiven}, givenUpload(table, parquet(t, visits(t, 1000, 2))), "")
	must(t, err)
}

// TestFirstLookEndsADraft: each way to see something of the parts ends the draft, durably, before it is seen: then the split is fixed, and only what does not
// touch it may change. It would notice a way that was forgotten, and a look that is only remembered.
func TestFirstLookEndsADraft(t *testing.T) {
	looks := map[string]func(s *Service, id string) error{
		"training": func(s *Service, id string) error {
			f, err := s.Training(t.Context(), analyst, id)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"features": func(s *Service, id string) error { s.Features(t.Context(), analyst, id); return nil }, // refused, for they are secret
		"explain": func(s *Service, id string) error {
			_, err := s.Explain(t.Context(), analyst, id, []byte(mean(1)))
			return err
		},
		"export": func(s *Service, id string) error { return s.Export(t.Context(), admin, id, io.Discard) },
		"refused": func(s *Service, id string) error { // by what the training part says, perhaps
			s.Ask(t.Context(), analyst, id, []byte(`{"type":"mean","of":"x","range":[0,1],"half_width":1e-9,"guess":0.5}`), "")
			return nil
		},
	}
	i := uint64(0)
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			i++
			dir := t.TempDir()
			s := open(t, dir)
			table := visits(t, 600, i)
			card := create(t, s, Settings{Questions: 30}, table)
			if _, err := s.Card(t.Context(), analyst, card.ID); err != nil {
				t.Fatal(err)
			}
			if cards, err := s.List(t.Context(), analyst); err != nil || !cards[0].Draft || cards[0].Columns[1].Min != nil {
				t.Fatalf("listed: %+v, %v", cards, err)
			}
			must(t, look(s, card.ID))
			must(t, s.Close())
			s = open(t, dir)
			after, err := s.Card(t.Context(), analyst, card.ID)
			if err != nil || after.Draft || after.Columns[1].Min == nil || after.Parts == nil {
				t.Fatalf("after a look: %+v, %v", after, err)
			}
			for _, set := range []Settings{{Holdout: 0.5}, {Holdout: 0.2}, {Unit: "chart"}, {Stratify: "clinic"}, {Split: "time:seen"}, {Features: "public", Label: "late", Check: new(0.0)}} {
				set.Mechanism = "gaussian"
				_, err := again(t, s, set, table)
				refusedFor(t, fmt.Sprintf("%+v", set), err, card.ID, reasonShown)
				if set.Holdout > 0 {
					_, err = dryRun(t, s, set, table)
					refusedFor(t, fmt.Sprintf("a dry run with %+v", set), err, card.ID, reasonShown)
				}
			}
			before := heldOut(t, s, card.ID)
			next, err := again(t, s, Settings{Name: "visits", Mechanism: "guess_and_check", Questions: 12}, table)
			if err != nil || next.Draft || next.Replaces != card.ID || next.Columns[1].Min == nil {
				t.Fatalf("other questions: %+v, %v", next, err)
			}
			if !slices.Equal(before, heldOut(t, s, next.ID)) {
				t.Error("other rows are held out than before")
			}
			must(t, s.Delete(t.Context(), admin, next.ID))
			_, err = again(t, s, Settings{Questions: 5}, table)
			refusedFor(t, "deleted after a look", err, next.ID, reasonDeleted)
			verified(t, s)
		})
	}
}

// TestLabelOfPublicFeatures: once the features of the held-out rows were downloaded the label cannot become another column, whose held-out values
// that download had, nor the features secret; what does not touch what was shown may change. While nothing was shown the label may, too. It
// would notice a label that is corrected after a look, which gave every held-out value of the new one away.
func TestLabelOfPublicFeatures(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 600, 44)
	public := func(label string, questions int64) Settings {
		return Settings{Features: "public", Label: label, Check: new(0.0), Mechanism: "gaussian", Questions: questions}
	}
	card := create(t, s, public("x", 20), table)
	card, err := again(t, s, public("late", 20), table)
	if err != nil {
		t.Fatalf("the label of a draft: %v", err)
	}
	f, err := s.Features(t.Context(), analyst, card.ID)
	if err != nil {
		t.Fatal(err)
	}
	must(t, f.Close())
	for what, set := range map[string]Settings{
		"another label": public("x", 20), "another label and questions": public("x", 30),
		"secret features": {Label: "x", Check: new(0.0), Mechanism: "gaussian", Questions: 20},
	} {
		_, err := again(t, s, set, table)
		refusedFor(t, what, err, card.ID, reasonShown)
	}
	if _, err := again(t, s, public("late", 30), table); err != nil {
		t.Errorf("other questions: %v", err)
	}
}

// TestOtherPlacesAfterALook: rows without a unit are known by their places, so a file of the same rows in another order would hold out other rows. A draft may; after
// a look it is refused. It would notice a comparison of settings alone.
func TestOtherPlacesAfterALook(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 500, 1)
	places := make([]uint32, table.Rows())
	for i := range places {
		places[i] = uint32(len(places) - 1 - i)
	}
	dir := filepath.Join(t.TempDir(), "turned")
	must(t, dataset.Select(dir, table, places, nil))
	turned, err := dataset.Open(dir)
	must(t, err)
	defer turned.Close()
	first := create(t, s, Settings{Questions: 10}, table)
	draft, err := again(t, s, Settings{Questions: 20}, turned)
	if err != nil || draft.Replaces != first.ID {
		t.Fatalf("a draft: %+v, %v", draft, err)
	}
	seen(t, s, draft)
	_, err = again(t, s, Settings{Questions: 30}, table)
	refusedFor(t, "other places", err, draft.ID, reasonShown)
	if _, err := again(t, s, Settings{Questions: 30}, turned); err != nil {
		t.Errorf("the same places: %v", err)
	}
}

// TestDeletedDraft: a draft that was deleted burns nothing.
func TestDeletedDraft(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.Holdouts = 1 })
	table := visits(t, 500, 1)
	first := create(t, s, Settings{}, table)
	must(t, s.Delete(t.Context(), admin, first.ID))
	second := create(t, s, Settings{}, table)
	if second.Replaces != first.ID || !second.Draft {
		t.Errorf("%+v", second)
	}
	if third, err := again(t, s, Settings{Questions: 3}, table); err != nil || third.Replaces != second.ID { // and a full server replaces
		t.Errorf("%+v, %v", third, err)
	}
	verified(t, s)
}

// TestReplacementFails: a ledger that fails at any step leaves the old holdout or the new one, whole, and what a kill leaves is cleared at the next start. It would notice files
// that go before the commit, and two commits.
func TestReplacementFails(t *testing.T) {
	for _, step := range []string{ledger.StepBegin, ledger.StepCommit, ledger.StepCommitted} {
		for _, looked := range []bool{false, true} {
			dir := t.TempDir()
			s := open(t, dir)
			table := visits(t, 500, 1)
			old := create(t, s, Settings{Questions: 10}, table)
			if looked {
				seen(t, s, old)
			}
			must(t, s.ledger.Close())
			secret, _, err := loadServerSecret(dir, true)
			must(t, err)
			var armed atomic.Bool
			s.ledger, err = sqlite.Open(t.Context(), s.path(ledgerFile), ledger.Options{Key: secret.derive("ledger"), Fault: func(at string) (err error) {
				if at == step && armed.CompareAndSwap(true, false) {
					err = errors.New("the disk is gone")
				}
				return err
			}})
			must(t, err)
			armed.Store(true)
			_, err = again(t, s, Settings{Questions: 20, Mechanism: "gaussian", Name: "new"}, table)
			wantKind(t, step, err, Unavailable)
			must(t, s.Close())
			s = open(t, dir)
			cards, err := s.List(t.Context(), admin)
			if err != nil || len(cards) != 1 || cards[0].State != "" || cards[0].Draft == looked || (cards[0].ID == old.ID) != (step != ledger.StepCommitted) {
				t.Fatalf("%s: %+v, %v", step, cards, err)
			}
			if left := files(t, dir); !slices.Equal(left, []string{"holdouts/" + cards[0].ID}) {
				t.Errorf("%s: files %v of %s", step, left, cards[0].ID)
			}
			if n := len(heldOut(t, s, cards[0].ID)); n != 150 {
				t.Errorf("%s: %d rows are held out", step, n)
			}
			ask(t, s, cards[0].ID, mean(0))
			verified(t, s)
			must(t, s.Close())
		}
	}
}

// TestLookRacesWithReplacement: who looks at a draft while it is replaced sees the old parts and stops the replacement, or sees nothing of them. Ten
// races of four looks each; it would notice a look that is not recorded before the files are opened.
func TestLookRacesWithReplacement(t *testing.T) {
	s := open(t, t.TempDir())
	for seed := range uint64(10) {
		table := visits(t, 300, 100+seed)
		card := create(t, s, Settings{Questions: 10}, table)
		var saw, replaced bool
		var mu sync.Mutex
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if _, err := s.Explain(t.Context(), analyst, card.ID, []byte(mean(1))); err == nil {
					mu.Lock()
					saw = true
					mu.Unlock()
				} else if KindOf(err) != NotFound {
					t.Errorf("a look: %v", err)
				}
			})
		}
		_, err := again(t, s, Settings{Unit: "chart"}, table)
		replaced = err == nil
		wait.Wait()
		if saw == replaced {
			t.Errorf("seen %v, replaced %v (%v)", saw, replaced, err)
		}
	}
}

// TestLostLedgerKnowsReplacedTables: the mark of a holdout that was created again names its table, so that the table stays refused when the ledger is lost.
func TestLostLedgerKnowsReplacedTables(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	table := visits(t, 400, 1)
	create(t, s, Settings{Questions: 10}, table)
	card, err := again(t, s, Settings{Questions: 20}, table)
	must(t, err)
	ask(t, s, card.ID, mean(1))
	must(t, s.Close())
	m, err := readMark(filepath.Join(dir, holdoutsDir, card.ID))
	if err != nil || m.Table == "" || m.Table == m.Digest || m.Seq != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, name := range []string{ledgerFile, ledgerFile + "-wal", ledgerFile + "-shm"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	s = open(t, dir, func(o *Options) { o.AcceptLostLedger = true })
	_, err = again(t, s, Settings{Questions: 20}, table)
	refusedFor(t, "after the loss", err, card.ID, reasonDamaged)
}

// givenUpload is an upload of two parts.
func givenUpload(training, holdout []byte) Upload {
	names, files := []string{partTraining, partHoldout}, [][]byte{training, holdout}
	return func() (string, io.Reader, error) {
		if len(names) == 0 {
			return "", nil, io.EOF
		}
		name, file := names[0], files[0]
		names, files = names[1:], files[1:]
		return name, bytes.NewReader(file), nil
	}
}
