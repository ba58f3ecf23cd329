package holdout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/release"
)

// measured is a sample of a law: rows that what they hold tells apart. Two seeds have no row in common.
func measured(t testing.TB, rows int, seed uint64) []dataset.Column {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 21))
	columns := make([]dataset.Column, 6)
	for i := range columns {
		columns[i] = dataset.Column{Field: dataset.Field{Name: string(rune('a' + i)), Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, rows)}
		for j := range rows {
			columns[i].Numbers[j] = r.NormFloat64()
			if i > 3 {
				columns[i].Numbers[j] = float64(r.IntN(4))
			}
		}
	}
	return columns
}

// some are rows of columns.
func some(t testing.TB, columns []dataset.Column, from, to int) []dataset.Column {
	t.Helper()
	all := slices.Clone(columns)
	for i := range all {
		all[i].Numbers = all[i].Numbers[from:to]
	}
	return all
}

// nudged is a copy in which one cell is changed by 1e-12.
func nudged(columns []dataset.Column) []dataset.Column {
	all := slices.Clone(columns)
	all[0].Numbers = slices.Clone(all[0].Numbers)
	all[0].Numbers[5] += 1e-12
	return all
}

func stacked(a, b []dataset.Column) []dataset.Column {
	all := slices.Clone(a)
	for i := range all {
		all[i].Numbers = slices.Concat(a[i].Numbers, b[i].Numbers)
	}
	return all
}

func madeOf(t testing.TB, columns []dataset.Column) *dataset.Table {
	t.Helper()
	made, err := dataset.FromColumns(columns...)
	must(t, err)
	return made
}

// matters are what an upload is refused for, with the shares, of one holdout; nil where it is taken.
func matters(t testing.TB, err error, id string) map[string]float64 {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) || e.Kind != RowsKnown || e.Members["holdout"] != id {
		t.Fatalf("%v, want a refusal for rows of %s", err, id)
	}
	found := map[string]float64{}
	for _, o := range e.Members["overlaps"].([]Overlap) {
		if o.Holdout != id || !strings.Contains(e.Detail, o.sentence()) {
			t.Errorf("%+v is not what %q says of %s", o, e.Detail, id)
		}
		found[o.Matter] = o.Share
	}
	return found
}

// TestRowsKnown: rows of a holdout that was asked are not held out again with a new budget, nor handed out, nor are rows held out that were shown, whatever was done to the
// table, also when the holdout is deleted and the server starts again. It notices a matter that is not looked for, and sketches that go with the holdout.
func TestRowsKnown(t *testing.T) {
	const rows = 3_000
	dir := t.TempDir()
	s := open(t, dir)
	old := measured(t, rows, 1)
	set := Settings{Name: "first", Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}
	card, err := again(t, s, set, madeOf(t, old))
	must(t, err)
	id := card.ID
	ask(t, s, id, `{"type":"mean","of":"a","range":[-5,5]}`)
	upload := func(set Settings, columns []dataset.Column) map[string]float64 {
		t.Helper()
		set.Name, set.Questions, set.Mechanism = "second", 20, "gaussian"
		_, err := again(t, s, set, madeOf(t, columns))
		return matters(t, err, id)
	}
	fresh := measured(t, rows, 2)
	if got := upload(Settings{}, fresh); got != nil {
		t.Errorf("a table without a row of it is refused: %v", got)
	}
	for name, c := range map[string]struct {
		set     Settings
		columns []dataset.Column
		want    []string
		share   float64
	}{
		"a cell by 1e-12":          {Settings{}, nudged(old), []string{heldOutAgain}, 1},
		"a column less":            {Settings{}, old[1:], []string{heldOutAgain}, 0.6},
		"and another share":        {Settings{Holdout: 0.06}, nudged(old), []string{heldOutAgain, heldOutElsewhere}, 0.7},
		"and another unit":         {Settings{Unit: "b"}, nudged(old), []string{heldOutAgain, heldOutElsewhere, shownBefore}, 0.2},
		"a third of the rows":      {Settings{}, some(t, old, 1000, 2000), []string{heldOutAgain, heldOutElsewhere, shownBefore}, 0.1},
		"among as many fresh rows": {Settings{}, stacked(measured(t, rows, 3), old), []string{heldOutAgain, heldOutElsewhere, shownBefore}, 0.1},
	} {
		got := upload(c.set, c.columns)
		for _, matter := range []string{heldOutAgain, heldOutElsewhere, shownBefore} {
			if found := got[matter] >= c.share; found != slices.Contains(c.want, matter) {
				t.Errorf("%s: %v, want %v of at least %v", name, got, c.want, c.share)
			}
		}
	}
	must(t, s.Delete(t.Context(), admin, id))
	must(t, s.Close())
	s = open(t, dir)
	if got := upload(Settings{}, nudged(old)); got[heldOutAgain] < 0.9 {
		t.Errorf("after it was deleted, and a start: %v", got)
	}
	given := Settings{Name: "third", Split: "given", Questions: 20, Mechanism: "gaussian"}
	if _, _, err := s.Create(t.Context(), admin, given, givenUpload(parquet(t, madeOf(t, old)), parquet(t, madeOf(t, measured(t, 1000, 4)))), ""); err != nil {
		t.Errorf("rows of a deleted holdout are not taken as training rows: %v", err)
	}
}

// TestOverlapAccepted: an admin can take the table all the same, and the card says so for good: as it is stored, and of a draft without a number that depends on rows.
func TestOverlapAccepted(t *testing.T) {
	s := open(t, t.TempDir())
	old := measured(t, 2_000, 1)
	first := create(t, s, Settings{}, madeOf(t, old))
	if _, err := again(t, s, Settings{Name: "v", Overlap: "perhaps"}, madeOf(t, nudged(old))); KindOf(err) != Invalid {
		t.Errorf("another word for it: %v", err)
	}
	// Of the first one nothing was asked yet, but it can be: two budgets.
	_, err := again(t, s, Settings{Name: "v", Overlap: overlapRefused}, madeOf(t, nudged(old)))
	if got := matters(t, err, first.ID); got[heldOutAgain] < 0.9 {
		t.Errorf("%v", got)
	}
	if left, err := os.ReadDir(s.path(lineageDir)); err != nil || len(left) != 1 {
		t.Errorf("a refused upload leaves %v, %v", left, err)
	}
	second := create(t, s, Settings{Overlap: overlapAccepted}, madeOf(t, nudged(old)))
	warned := func(c Card) string {
		at := slices.IndexFunc(c.Warnings, func(w Warning) bool { return w.Code == rowsKnown })
		if at < 0 || c.Settings.Overlap != overlapAccepted {
			t.Fatalf("the card does not say it: %+v", c)
		}
		return c.Warnings[at].Detail
	}
	if said := warned(second); second.Overlaps != nil || strings.ContainsAny(said, "0123456789%") {
		t.Errorf("the draft's card says of rows: %v, %q", second.Overlaps, said)
	}
	ask(t, s, second.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
	card, err := s.Card(t.Context(), analyst, second.ID)
	must(t, err)
	if want := []Overlap{{first.ID, heldOutAgain, 1}}; !reflect.DeepEqual(card.Overlaps, want) || !strings.Contains(warned(card), first.ID) {
		t.Errorf("the card says %v, %q, want %v", card.Overlaps, warned(card), want)
	}
	// A holdout of which nothing was asked can be deleted for a corrected table.
	third := create(t, s, Settings{}, madeOf(t, measured(t, 2_000, 2)))
	must(t, s.Delete(t.Context(), admin, third.ID))
	create(t, s, Settings{}, madeOf(t, nudged(measured(t, 2_000, 2))))
}

// TestSketchesComeBack: what is lost or damaged of a living holdout's sketches is made anew of its tables, and what an upload has left that came to nothing is removed. It notices sketches that anyone can read or
// exchange.
func TestSketchesComeBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	old := measured(t, 2_000, 1)
	first := create(t, s, Settings{}, madeOf(t, old))
	other := create(t, s, Settings{}, madeOf(t, measured(t, 2_000, 2)))
	of := func(id string) string { return s.path(lineageDir, id) }
	sealed, err := os.ReadFile(of(first.ID))
	must(t, err)
	spread := map[byte]int{}
	for _, b := range sealed {
		spread[b]++
	}
	if most := slices.Max(slices.Collect(maps.Values(spread))); float64(most) > float64(len(sealed))/256+8*math.Sqrt(float64(len(sealed))/256) {
		t.Errorf("one byte of 256 is there %d times of %d: this is not sealed", most, len(sealed))
	}
	for name, harm := range map[string]func() error{
		"lost":      func() error { return os.Remove(of(first.ID)) },
		"damaged":   func() error { return os.WriteFile(of(first.ID), sealed[:len(sealed)-1], secretMode) },
		"exchanged": func() error { return errors.Join(os.Remove(of(first.ID)), os.Link(of(other.ID), of(first.ID))) },
	} {
		must(t, harm())
		_, err := again(t, s, Settings{Name: "v"}, madeOf(t, nudged(old)))
		if got := matters(t, err, first.ID); got[heldOutAgain] < 0.9 {
			t.Errorf("%s: %v", name, got)
		}
	}
	must(t, os.WriteFile(of("ho_nobody"+uncommittedSuffix), sealed, secretMode))
	must(t, os.WriteFile(of(".ho_nobody.use-1"), nil, secretMode))
	must(t, os.Rename(of(other.ID), of(other.ID+uncommittedSuffix))) // a crash after the commit
	must(t, s.Close())
	s = open(t, dir)
	for _, id := range []string{first.ID, other.ID} {
		if _, err := os.Lstat(of(id)); err != nil {
			t.Errorf("after a start: %v", err)
		}
	}
	if left, err := os.ReadDir(s.path(lineageDir)); err != nil || len(left) != 2 {
		t.Errorf("after a start there are %v, %v", left, err)
	}
}

// listening is a shared ledger of one server of several, which lets a test run something between two of its steps.
type listening struct {
	numberedTerms
	listed    func() // after the holdouts that there are were listed for the second time, to be compared with
	recording func() // before a holdout is recorded
	again     func() // before they are listed for the third time, to see what has come meanwhile
	lists     int
}

func (l *listening) Holdouts(ctx context.Context) ([]ledger.Holdout, error) {
	if l.lists == 2 && l.again != nil {
		l.again()
	}
	all, err := l.Ledger.Holdouts(ctx)
	if l.lists++; l.lists == 2 && l.listed != nil {
		l.listed()
	}
	return all, err
}

func (l *listening) CreateHoldout(ctx context.Context, h ledger.Holdout, i *ledger.Idempotency) error {
	if l.recording != nil {
		l.recording()
	}
	return l.Ledger.CreateHoldout(ctx, h, i)
}

// twoServers are two services on one data directory and one ledger.
func twoServers(t *testing.T) (a, b *Service, ofA *listening) {
	t.Helper()
	a, b = open(t, t.TempDir()), open(t, t.TempDir())
	ofA = &listening{numberedTerms: numberedTerms{Ledger: a.ledger}}
	ofB := &listening{numberedTerms: numberedTerms{Ledger: a.ledger}}
	dir, own := b.dir, b.ledger
	t.Cleanup(func() { b.dir, b.ledger = dir, own }) // it closes its own
	a.ledger, a.shared = ofA, ofA
	b.dir, b.ledger, b.shared = a.dir, ofB, ofB
	b.split, b.digest, b.lineage = a.split, a.digest, a.lineage
	return a, b, ofA
}

// TestTwoServersAtOnce: two servers that take the same rows at the same moment never make two holdouts of them, whichever step each is at. An upload that came to nothing keeps nobody off for ever.
func TestTwoServersAtOnce(t *testing.T) {
	old := measured(t, 2_000, 1)
	t.Run("the other is compared and not recorded yet", func(t *testing.T) {
		a, b, ofA := twoServers(t)
		var late error
		ofA.recording = func() { _, late = again(t, b, Settings{Name: "b"}, madeOf(t, nudged(old))) }
		first, err := again(t, a, Settings{Name: "a"}, madeOf(t, old))
		must(t, err)
		if KindOf(late) != Unavailable {
			t.Errorf("the second of two at the same time: %v", late)
		}
		if left, err := os.ReadDir(a.path(lineageDir)); err != nil || len(left) != 1 {
			t.Errorf("it leaves %v, %v", left, err)
		}
		ofA.recording = nil
		_, err = again(t, b, Settings{Name: "b"}, madeOf(t, nudged(old)))
		if got := matters(t, err, first.ID); got[heldOutAgain] < 0.9 {
			t.Errorf("sent again: %v", got)
		}
	})
	t.Run("the other is recorded since the holdouts were listed", func(t *testing.T) {
		a, b, ofA := twoServers(t)
		var first Card
		ofA.listed = func() {
			var err error
			first, err = again(t, b, Settings{Name: "b"}, madeOf(t, nudged(old)))
			must(t, err)
			hidden := a.path(lineageDir, first.ID) + ".hidden" // as if it had come after the sketches were read
			must(t, os.Rename(a.path(lineageDir, first.ID), hidden))
			ofA.again = func() { must(t, os.Rename(hidden, a.path(lineageDir, first.ID))) }
		}
		_, err := again(t, a, Settings{Name: "a"}, madeOf(t, old))
		if got := matters(t, err, first.ID); got[heldOutAgain] < 0.9 {
			t.Errorf("%v", got)
		}
	})
	t.Run("other rows at the same time", func(t *testing.T) {
		a, b, ofA := twoServers(t)
		ofA.recording = func() {
			_, err := again(t, b, Settings{Name: "b"}, madeOf(t, measured(t, 2_000, 2)))
			must(t, err)
		}
		_, err := again(t, a, Settings{Name: "a"}, madeOf(t, old))
		must(t, err)
	})
	t.Run("the other came to nothing", func(t *testing.T) {
		a, b, _ := twoServers(t)
		parts, err := a.sketch(t.Context(), partsOf(t, old), dataset.Open, nil)
		must(t, err)
		must(t, a.storeSketches("ho_crashed"+uncommittedSuffix, "ho_crashed", parts))
		if _, err := again(t, b, Settings{Name: "b"}, madeOf(t, old)); KindOf(err) != Unavailable {
			t.Errorf("an upload that may yet come to something: %v", err)
		}
		before := time.Now().Add(-sketchStale - time.Minute)
		must(t, os.Chtimes(a.path(lineageDir, "ho_crashed"+uncommittedSuffix), before, before))
		_, err = again(t, b, Settings{Name: "b"}, madeOf(t, old))
		must(t, err)
		c := &creation{sketched: time.Now().Add(-sketchTime - time.Minute)}
		if err := c.inTime(); KindOf(err) != Unavailable {
			t.Errorf("an upload that others take for a leftover is recorded: %v", err)
		}
	})
}

// partsOf is a directory with a holdout part.
func partsOf(t *testing.T, columns []dataset.Column) string {
	t.Helper()
	dir, table := t.TempDir(), madeOf(t, columns)
	rows := make([]uint32, table.Rows())
	for i := range rows {
		rows[i] = uint32(i)
	}
	must(t, dataset.Select(filepath.Join(dir, holdoutDir), table, rows, nil))
	return dir
}

// TestNotCompared: an upload is not taken without a word beside a holdout that can be asked and whose rows nobody can compare, nor are rows released, nor is a private release made of them: its files are damaged, or not in
// this server's directory.
func TestNotCompared(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	set := Settings{Name: "first", Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}
	card, err := again(t, s, set, madeOf(t, measured(t, 2000, 1)))
	must(t, err)
	ask(t, s, card.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
	ofA := NewRelease{Epsilon: .5, Columns: []release.ColumnRequest{{Name: "a", Low: new(-5.), High: new(5.)}}}
	mustRelease(t, s, card.ID, ofA)
	other := Settings{Name: "other", Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}
	mine, err := again(t, s, other, madeOf(t, measured(t, 2000, 2)))
	must(t, err)
	must(t, s.Close())
	must(t, os.RemoveAll(s.path(lineageDir, card.ID)))
	must(t, os.RemoveAll(s.path(holdoutsDir, card.ID, holdoutDir)))
	s = open(t, dir)
	other.Name = "third"
	_, err = again(t, s, other, madeOf(t, measured(t, 2000, 3)))
	if got, ok := matters(t, err, card.ID)[notCompared]; !ok || got != 0 {
		t.Errorf("refused for %v, %v", got, err)
	}
	other.Overlap = overlapAccepted
	taken, err := again(t, s, other, madeOf(t, measured(t, 2000, 3)))
	must(t, err)
	ask(t, s, taken.ID, `{"type":"mean","of":"a","range":[-5,5]}`) // a draft's card says nothing of rows
	taken, err = s.Card(t.Context(), admin, taken.ID)
	must(t, err)
	if len(taken.Overlaps) != 1 || taken.Overlaps[0] != (Overlap{Holdout: card.ID, Matter: notCompared}) {
		t.Errorf("the card says %+v", taken.Overlaps)
	}
	ask(t, s, mine.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
	_, err = s.Release(t.Context(), admin, mine.ID, ofA)
	wantKind(t, "a release", err, Conflict)
	_, err = s.Retire(t.Context(), admin, mine.ID)
	wantKind(t, "a retirement", err, Conflict)
}

// TestComparedInTurns: an upload is compared with all holdouts, however many there are, also with those that the ledger has forgotten: so many at a time as are watched for. It notices those that are left out.
func TestComparedInTurns(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var cards []Card
	for i := range uint64(6) {
		card, err := again(t, s, Settings{Name: fmt.Sprint(i), Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}, madeOf(t, measured(t, 600, i+1)))
		must(t, err)
		ask(t, s, card.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
		cards = append(cards, card)
	}
	must(t, s.Close())
	for _, name := range []string{"", "-wal", "-shm"} {
		must(t, removeIfThere(filepath.Join(dir, ledgerFile+name)))
	}
	s = open(t, dir, func(o *Options) { o.AcceptLostLedger = true })
	for _, watched := range []int{0, 12_000} { // tokens; a holdout has some 9,000
		s.watched = watched
		for i, card := range cards {
			_, err := again(t, s, Settings{Name: "again", Holdout: 0.3, Questions: 20, Mechanism: "gaussian"}, madeOf(t, nudged(measured(t, 600, uint64(i)+1))))
			if got := matters(t, err, card.ID); got[heldOutAgain] == 0 {
				t.Errorf("holdout %d, watched %d: refused for %v", i, watched, got)
			}
		}
	}
}
