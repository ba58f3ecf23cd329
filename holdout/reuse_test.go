package holdout

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// changed is visits with one cell changed by 1e-12.
func changed(t testing.TB, table *dataset.Table) *dataset.Table {
	t.Helper()
	columns := make([]dataset.Column, table.Columns())
	for i := range columns {
		columns[i] = *table.Column(i)
		if columns[i].Name == "x" {
			columns[i].Numbers = slices.Clone(columns[i].Numbers)
			columns[i].Numbers[0] += 1e-12
		}
	}
	out, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// someRows are rows of a table, by number.
func someRows(t testing.TB, table *dataset.Table, rows []uint32) *dataset.Table {
	t.Helper()
	columns := make([]dataset.Column, table.Columns())
	for i := range columns {
		columns[i] = pick(*table.Column(i), rows)
	}
	out, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func from(start, end uint32) (rows []uint32) {
	for row := start; row < end; row++ {
		rows = append(rows, row)
	}
	return rows
}

// givenParts is an upload of a training part and a holdout part.
func givenParts(t testing.TB, training, held *dataset.Table) Upload {
	bodies := [][]byte{parquet(t, training), parquet(t, held)}
	i := -1
	return func() (string, io.Reader, error) {
		if i++; i > 1 {
			return "", nil, io.EOF
		}
		return []string{partTraining, partHoldout}[i], bytes.NewReader(bodies[i]), nil
	}
}

// tryCreate uploads a table under gaussian.
func tryCreate(t testing.TB, s *Service, set Settings, table *dataset.Table) (Card, error) {
	t.Helper()
	set.Name = "again"
	if set.Mechanism == "" {
		set.Mechanism = "gaussian"
	}
	card, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), "")
	return card, err
}

// wantReused fails unless an upload was refused for these reasons, one by one.
func wantReused(t *testing.T, what string, err error, id string, why ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != Exists || e.Members["reason"] != reasonReused {
		t.Errorf("%s: %v", what, err)
		return
	}
	var got []string
	for _, r := range e.Members["reused"].([]Reuse) {
		if r.Holdout != id {
			t.Errorf("%s: of %s", what, r.Holdout)
		}
		if !slices.Contains(got, r.Why) {
			got = append(got, r.Why)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, why) {
		t.Errorf("%s: %v, want %v (%v)", what, got, why, e.Detail)
	}
}

// TestReuploadIsRefused: rows about which something was asked get no second budget, whichever way they come back: not with a cell changed, after a deletion or a restart, nor without the file
// of prints. Rows that are held out are not handed out, and rows that were shown are not held out. Fresh rows are taken.
func TestReuploadIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	table := visits(t, 600, 1)
	first := create(t, s, Settings{}, table)
	_, err := tryCreate(t, s, Settings{}, changed(t, table))
	wantReused(t, "beside a draft", err, first.ID, reuseDraft)
	if err := s.Delete(t.Context(), admin, first.ID); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Fatalf("a deleted draft leaves %v", left)
	}
	first, err = tryCreate(t, s, Settings{}, changed(t, changed(t, table)))
	if err != nil {
		t.Fatalf("after a draft: %v", err)
	}
	before := files(t, dir)
	ask(t, s, first.ID, mean(0))
	refused := func(what string) {
		t.Helper()
		_, err := tryCreate(t, s, Settings{}, changed(t, table))
		wantReused(t, what, err, first.ID, reuseAsked)
		_, err = s.DryRun(t.Context(), admin, Settings{Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(parquet(t, changed(t, table)))))
		wantReused(t, what+", dry", err, first.ID, reuseAsked)
		if left := files(t, dir); !slices.Equal(left, before) {
			t.Errorf("%s: left %v", what, left)
		}
	}
	refused("one cell changed")
	prints := filepath.Join(dir, holdoutsDir, first.ID, printsFile)
	if err := os.Remove(prints); err != nil {
		t.Fatal(err)
	}
	refused("without prints, as of an older version")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	refused("after a restart")
	// The split is by the number of the row, so that other rows in front move all of them.
	_, err = tryCreate(t, s, Settings{}, someRows(t, table, append(from(300, 600), from(0, 300)...)[1:]))
	wantReused(t, "rows moved, one less", err, first.ID, reuseAsked, reuseHandedOut, reuseShown)
	held, err := dataset.Open(filepath.Join(dir, holdoutsDir, first.ID, holdoutDir))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_, _, err = s.Create(t.Context(), admin, Settings{Mechanism: "gaussian", Split: "given"}, givenParts(t, someRows(t, held, from(0, uint32(held.Rows())-1)), visits(t, 100, 7)), "")
	wantReused(t, "held-out rows as training part", err, first.ID, reuseHandedOut)
	if card, err := tryCreate(t, s, Settings{}, visits(t, 600, 2)); err != nil || len(card.Reused) > 0 {
		t.Errorf("fresh rows: %v %v", card.Reused, err)
	} else if err := s.Delete(t.Context(), admin, card.ID); err != nil {
		t.Error(err)
	}
	if err := os.Remove(prints); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), admin, first.ID); err != nil {
		t.Fatal(err)
	}
	refused("after a deletion")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	refused("after a deletion and a restart")
}

// TestReuseWarning: under warn the table is taken; admins read how much of it is known from where, everybody else that there is something.
func TestReuseWarning(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.ReusedRows = ReusedWarn })
	table := visits(t, 600, 1)
	first := create(t, s, Settings{}, table)
	ask(t, s, first.ID, mean(0))
	card, err := tryCreate(t, s, Settings{}, changed(t, table))
	want := []Reuse{{Holdout: first.ID, From: "holdout", To: "holdout", Share: 1, Why: reuseAsked}}
	if err != nil || !reflect.DeepEqual(card.Reused, want) {
		t.Fatalf("%+v %v", card.Reused, err)
	}
	for _, look := range []bool{false, true} {
		if look {
			seen(t, s, card)
		}
		for _, p := range []Principal{analyst, admin} {
			card, err := s.Card(t.Context(), p, card.ID)
			if err != nil || !slices.Contains(card.Warnings, reusedWarning) || (len(card.Reused) > 0) != (p.KeyID == admin.KeyID) {
				t.Errorf("%s: %+v %v %v", p.Name, card.Warnings, card.Reused, err)
			}
			all, err := s.List(t.Context(), p)
			if err != nil || (len(all[1].Reused) > 0) != (p.KeyID == admin.KeyID) {
				t.Errorf("%s: the list says %v %v", p.Name, all[1].Reused, err)
			}
		}
	}
	if strings.Contains(reusedWarning.Detail, first.ID) {
		t.Error("the warning names a holdout")
	}
}

// TestReuploadInherits: under inherit a copy goes on where the first holdout was: with as many questions and tokens spent, at the same level, and that one answers nothing new.
func TestReuploadInherits(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, func(o *Options) { o.ReusedRows = ReusedInherit })
	table := visits(t, 600, 1)
	set := Settings{Mechanism: "guess_and_check", Questions: 50, Tokens: 5}
	first := create(t, s, set, table)
	ask(t, s, first.ID, mean(0))
	wrong := ask(t, s, first.ID, `{"type":"mean","of":"x","range":[0,1],"guess":0.95}`)
	if a := read(t, wrong.Body); a.Cost.Tokens != 1 {
		t.Fatalf("the guess costs %+v", a.Cost)
	}
	_, err := tryCreate(t, s, Settings{}, changed(t, table))
	wantReused(t, "under gaussian", err, first.ID, reuseAsked)
	if b, err := s.Budget(t.Context(), analyst, first.ID); err != nil || b.Questions.Left != 48 {
		t.Fatalf("a refusal has cost %+v %v", b, err)
	}
	narrow := set
	narrow.Questions, narrow.Tokens = 2, 1
	_, err = tryCreate(t, s, narrow, changed(t, table))
	wantReused(t, "with nothing left", err, first.ID, reuseAsked)

	heir, err := tryCreate(t, s, set, changed(t, table))
	if err != nil || !slices.Equal(heir.Inherits, []string{first.ID}) || heir.Budget.Questions != (Meter{Left: 48, Of: 50}) || *heir.Budget.Tokens != (Meter{Left: 4, Of: 5}) {
		t.Fatalf("%+v %v %v", heir.Budget, heir.Inherits, err)
	}
	_, err = s.Ask(t.Context(), analyst, first.ID, []byte(mean(2)), "")
	wantKind(t, "a new question to the first", err, BudgetExhausted)
	if again := ask(t, s, first.ID, mean(0)); !again.Replayed {
		t.Error("no replay")
	}
	old, err := s.Card(t.Context(), analyst, first.ID)
	if err != nil || old.Ended != string(ledger.Closed) || !slices.Equal(old.FollowedBy, []string{heir.ID}) {
		t.Errorf("the first card: %q %v %v", old.Ended, old.FollowedBy, err)
	}
	wantAlone(t, s, first.ID)
	wantAlone(t, s, heir.ID)
	was, err := s.ledger.Books(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	is, err := s.ledger.Books(t.Context(), heir.ID)
	if err != nil || !bytes.Equal(was.State, is.State) {
		t.Errorf("the states %s and %s differ (%v)", was.State, is.State, err)
	}
	ask(t, s, heir.ID, mean(3))
	if b, err := s.Budget(t.Context(), analyst, heir.ID); err != nil || b.Questions.Left != 47 {
		t.Errorf("%+v %v", b, err)
	}

	// A third one inherits all of it once, though it has the rows of both.
	again := changed(t, changed(t, table))
	third, err := tryCreate(t, s, set, again)
	if err != nil || third.Budget.Questions.Left != 47 || !slices.Equal(third.Inherits, []string{heir.ID, first.ID}) {
		t.Fatalf("%+v %v %v", third.Budget, third.Inherits, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	reports, err := Verify(t.Context(), dir, true)
	if err != nil || !slices.Equal(reports[1].Inherited, []string{first.ID}) || reports[0].End != ledger.Closed {
		t.Errorf("%+v %v", reports, err)
	}
	s = open(t, dir, func(o *Options) { o.ReusedRows = ReusedInherit })
	if err := s.Delete(t.Context(), admin, third.ID); err != nil {
		t.Fatal(err)
	}
	fourth := changed(t, again)
	if _, err = tryCreate(t, s, set, fourth); KindOf(err) == Exists {
		t.Errorf("%v", err) // nothing of the third was shown, and it has asked nothing of its own
	}
}

// TestRetire: a retired holdout answers nothing new for good, replays, and gives its rows away; they may be training rows then and are not held out again.
func TestRetire(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	table := visits(t, 600, 1)
	first := create(t, s, Settings{Label: "late"}, table)
	ask(t, s, first.ID, mean(0))
	for _, part := range []string{partHoldout, partCheck} {
		_, err := s.Released(t.Context(), analyst, first.ID, part)
		wantKind(t, "rows that are held out", err, NotFound)
	}
	follows := Settings{Mechanism: "gaussian", Split: "given", Follows: first.ID}
	_, _, err := s.Create(t.Context(), admin, follows, givenParts(t, table, visits(t, 200, 9)), "")
	wantKind(t, "follow what is not retired", err, Invalid)
	_, err = s.Retire(t.Context(), analyst, first.ID)
	wantKind(t, "an analyst retires", err, Forbidden)
	for range 2 {
		card, err := s.Retire(t.Context(), admin, first.ID)
		if err != nil || card.Ended != string(ledger.Retired) || card.Budget.Questions.Left != 0 {
			t.Fatalf("%+v %v", card.Ended, err)
		}
		_, err = s.Ask(t.Context(), analyst, first.ID, []byte(mean(5)), "")
		wantKind(t, "a new question", err, BudgetExhausted)
		if !ask(t, s, first.ID, mean(0)).Replayed {
			t.Error("no replay")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
	}
	rows := 0
	for _, part := range []string{partHoldout, partCheck} {
		f, err := s.Released(t.Context(), analyst, first.ID, part)
		if err != nil {
			t.Fatal(err)
		}
		rows += decoded(t, f).Rows()
	}
	if want := int(first.Rows.Holdout + first.Rows.Check); rows != want {
		t.Errorf("%d rows released, want %d", rows, want)
	}
	_, err = s.Released(t.Context(), analyst, first.ID, "training")
	wantKind(t, "another part", err, Invalid)

	_, err = tryCreate(t, s, Settings{}, changed(t, table))
	wantReused(t, "released rows held out", err, first.ID, reuseShown)
	next, _, err := s.Create(t.Context(), admin, follows, givenParts(t, table, visits(t, 200, 9)), "")
	if err != nil || next.Settings.Follows != first.ID {
		t.Fatalf("%+v %v", next.Settings, err)
	}
	ask(t, s, next.ID, mean(0))
	if card, err := s.Card(t.Context(), analyst, first.ID); err != nil || !slices.Equal(card.FollowedBy, []string{next.ID}) {
		t.Errorf("followed by %v %v", card.FollowedBy, err)
	}
	wantAlone(t, s, next.ID)
}

// wantAlone checks that a key which is limited to one holdout is told of no other by its card.
func wantAlone(t *testing.T, s *Service, id string) {
	t.Helper()
	limited := Principal{KeyID: "key_limited", Scope: Analyst, Holdouts: []string{id}}
	card, err := s.Card(t.Context(), limited, id)
	listed, wrong := s.List(t.Context(), limited)
	if err != nil || wrong != nil || len(listed) != 1 {
		t.Fatalf("%v %v, %d cards", err, wrong, len(listed))
	}
	for _, c := range append(listed, card) {
		if c.Replaces != "" || c.Settings.Follows != "" || len(c.Inherits) > 0 || len(c.FollowedBy) > 0 {
			t.Errorf("a key of %s alone is told of %q, %q, %v and %v", id, c.Replaces, c.Settings.Follows, c.Inherits, c.FollowedBy)
		}
	}
}

// TestRetireKeepsOthersRows: rows are not released while another holdout that answers holds them out: not those of a predecessor before its heir has ended, nor of one of two that have
// the same rows under warn, nor where cards know nothing of each other. It would notice rows that a download makes known to those who ask about them.
func TestRetireKeepsOthersRows(t *testing.T) {
	refused := func(s *Service, what, id, other string) {
		t.Helper()
		_, err := s.Retire(t.Context(), admin, id)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Exists || e.Members["reason"] != reasonReused || e.Members["holdout"] != other {
			t.Errorf("%s: %v", what, err)
		}
		_, err = s.Released(t.Context(), analyst, id, partHoldout)
		wantKind(t, what+", the rows", err, NotFound)
	}
	retired := func(s *Service, id string) {
		t.Helper()
		if card, err := s.Retire(t.Context(), admin, id); err != nil || card.Ended != string(ledger.Retired) {
			t.Errorf("%q %v", card.Ended, err)
		}
	}
	s := open(t, t.TempDir(), func(o *Options) { o.ReusedRows = ReusedInherit })
	table := visits(t, 600, 1)
	set := Settings{Mechanism: "guess_and_check", Questions: 50, Tokens: 5}
	first := create(t, s, set, table)
	ask(t, s, first.ID, mean(0))
	heir, err := tryCreate(t, s, set, changed(t, table))
	if err != nil {
		t.Fatal(err)
	}
	refused(s, "the predecessor of an heir", first.ID, heir.ID)
	retired(s, heir.ID)
	retired(s, first.ID)

	s = open(t, t.TempDir(), func(o *Options) { o.ReusedRows = ReusedWarn })
	first = create(t, s, Settings{}, table)
	ask(t, s, first.ID, mean(0))
	second, err := tryCreate(t, s, Settings{}, changed(t, table))
	if err != nil {
		t.Fatal(err)
	}
	refused(s, "the first of two", first.ID, second.ID)
	refused(s, "the second of two", second.ID, first.ID)
	for _, way := range [][2]string{{first.ID, second.ID}, {second.ID, first.ID}} {
		if other, err := s.alsoHeld(t.Context(), way[0], []older{{id: way[1]}}); err != nil || other != way[1] {
			t.Errorf("by its rows alone: %q %v", other, err)
		}
	}
	if err := s.Delete(t.Context(), admin, second.ID); err != nil {
		t.Fatal(err)
	}
	retired(s, first.ID)
}

// decoded is an exported file as a table.
func decoded(t *testing.T, f *os.File) *dataset.Table {
	t.Helper()
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "decoded")
	if _, err := ingest.Decode(context.Background(), f.Name(), dir, ingest.Limits{}); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// TestCopiedRows: rows that are in the upload twice are told by the training part alone: uploads with one training part and other held-out rows have the same warning.
func TestCopiedRows(t *testing.T) {
	said := func(card Card) (detail string) {
		for _, w := range card.Warnings {
			if w.Code == "copied-rows" {
				detail += w.Detail
			}
		}
		return detail
	}
	s := open(t, t.TempDir())
	if detail := said(seen(t, s, create(t, s, Settings{}, visits(t, 600, 2)))); detail != "" {
		t.Errorf("rows that differ: %s", detail)
	}
	table := visits(t, 600, 1)
	if said(seen(t, s, create(t, s, Settings{}, someRows(t, table, append(from(0, 600), from(100, 300)...))))) == "" {
		t.Error("no word of copies")
	}
	var details []string
	for _, held := range []*dataset.Table{visits(t, 300, 21), someRows(t, table, append(from(0, 150), from(0, 150)...))} {
		s := open(t, t.TempDir())
		training := someRows(t, table, append(from(300, 600), from(300, 600)...))
		card, _, err := s.Create(t.Context(), admin, Settings{Mechanism: "gaussian", Split: "given"}, givenParts(t, training, held), "")
		if err != nil {
			t.Fatal(err)
		}
		details = append(details, said(seen(t, s, card)))
	}
	if details[0] == "" || details[0] != details[1] {
		t.Errorf("of one training part: %q", details)
	}
}
