package holdout

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// breakage is one way in which what a holdout rests on can stop being what it was.
type breakage struct {
	name string
	// harm is done to the first of two holdouts of equal shape, whose directories these are.
	harm func(t *testing.T, data, first, second string)
	both bool // it hits the second holdout too
	late bool // it shows when the rows are read, not at the start
}

// flip changes one bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(path, b, secretMode); err != nil {
		t.Fatal(err)
	}
}

// exchange swaps two names.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	if err := errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b)); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rewriteLedger changes the ledger of a closed service as someone with the file can.
func rewriteLedger(t *testing.T, data, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file://"+filepath.Join(data, ledgerFile))
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range []string{"DROP TRIGGER entries_are_never_changed", "DROP TRIGGER books_never_go_back", "DROP TRIGGER spent_never_falls", "DROP TRIGGER holdouts_are_never_changed"} {
		_, err := db.Exec(s)
		must(t, err)
	}
	done, err := db.Exec(statement, args...)
	must(t, err)
	if n, _ := done.RowsAffected(); n != 1 {
		t.Fatalf("%s changed %d rows", statement, n)
	}
}

// The names of files of a holdout.
const columnsOf, manifestOf = "columns", "manifest"

var fileBreakages = []breakage{
	{name: "columns cut short", harm: func(t *testing.T, _, first, _ string) {
		must(t, os.Truncate(filepath.Join(first, holdoutDir, columnsOf), 100))
	}},
	{name: "columns missing", harm: func(t *testing.T, _, first, _ string) {
		must(t, os.Remove(filepath.Join(first, holdoutDir, columnsOf)))
	}},
	{name: "a bit of the columns", late: true, harm: func(t *testing.T, _, first, _ string) {
		flip(t, filepath.Join(first, holdoutDir, columnsOf))
	}},
	{name: "a bit of the training columns", late: true, harm: func(t *testing.T, _, first, _ string) {
		flip(t, filepath.Join(first, trainingDir, columnsOf))
	}},
	{name: "a bit of the manifest", harm: func(t *testing.T, _, first, _ string) {
		flip(t, filepath.Join(first, holdoutDir, manifestOf))
	}},
	{name: "a bit of the units", late: true, harm: func(t *testing.T, _, first, _ string) {
		flip(t, filepath.Join(first, holdoutDir+unitsSuffix, columnsOf))
	}},
	{name: "no directory", harm: func(t *testing.T, _, first, _ string) {
		must(t, os.RemoveAll(first))
	}},
	{name: "training and holdout exchanged", harm: func(t *testing.T, _, first, _ string) {
		exchange(t, filepath.Join(first, trainingDir), filepath.Join(first, holdoutDir))
		exchange(t, filepath.Join(first, trainingDir+unitsSuffix), filepath.Join(first, holdoutDir+unitsSuffix))
	}},
	{name: "the units of the other part", harm: func(t *testing.T, _, first, _ string) {
		exchange(t, filepath.Join(first, trainingDir+unitsSuffix), filepath.Join(first, holdoutDir+unitsSuffix))
	}},
	{name: "the other holdout's directory", both: true, harm: func(t *testing.T, _, first, second string) {
		exchange(t, first, second)
	}},
	{name: "the other holdout's rows", both: true, harm: func(t *testing.T, _, first, second string) {
		exchange(t, filepath.Join(first, holdoutDir), filepath.Join(second, holdoutDir))
	}},
}

// inLedger is damage to the first holdout's row of the ledger.
func inLedger(statement string) func(t *testing.T, data, first, second string) {
	return func(t *testing.T, data, first, _ string) { rewriteLedger(t, data, statement, filepath.Base(first)) }
}

const ofFirst = " WHERE holdout = (SELECT number FROM holdouts WHERE id = ?)"

var ledgerBreakages = []breakage{
	{name: "the sealed state", harm: inLedger("UPDATE books SET state = CAST(substr(state, 1, 40) || zeroblob(1) || substr(state, 42) AS BLOB)" + ofFirst)},
	{name: "the sealed secret", harm: inLedger("UPDATE holdouts SET secret = CAST(substr(secret, 1, 40) || zeroblob(1) || substr(secret, 42) AS BLOB) WHERE id = ?")},
	{name: "a card that is no JSON", harm: inLedger("UPDATE holdouts SET public = CAST('{' AS BLOB) WHERE id = ?")},
	{name: "a card of other facts", harm: inLedger("UPDATE holdouts SET public = CAST(replace(CAST(public AS TEXT), '0.95', '0.96') AS BLOB) WHERE id = ?")},
	{name: "the books' head", harm: inLedger("UPDATE books SET head = zeroblob(32)" + ofFirst)},
	{name: "the books' seq", harm: inLedger("UPDATE books SET seq = seq - 1" + ofFirst)},
	{name: "what is spent", harm: inLedger("UPDATE meters SET spent = 0" + ofFirst + " AND name = 'questions'")},
	{name: "the limits", harm: inLedger("UPDATE meters SET cap = cap + 1" + ofFirst + " AND name = 'questions'")},
}

// broken makes two holdouts of equal shape, asks each a question, harms the first, and looks at what is left. It closes and
// opens the service around the harm, or does it while the first is open.
func (b breakage) run(t *testing.T, live bool) {
	data := t.TempDir()
	s := open(t, data)
	set := Settings{Holdout: 0.5, Unit: "chart", Questions: 20, Confidence: 0.95}
	first, second := create(t, s, set, visits(t, 2000, 1)), create(t, s, set, visits(t, 2000, 2))
	answered, other := ask(t, s, first.ID, mean(1)), ask(t, s, second.ID, mean(1))
	dirs := []string{s.path(holdoutsDir, first.ID), s.path(holdoutsDir, second.ID)}
	if live {
		b.harm(t, data, dirs[0], dirs[1])
		for _, id := range []string{first.ID, second.ID} { // as where there is no room for all
			s.tables.drop(id, func() {})
		}
	} else {
		must(t, s.Close())
		b.harm(t, data, dirs[0], dirs[1])
		s = open(t, data)
		if cards, err := s.List(t.Context(), analyst); err != nil || len(cards) != 2 || (cards[0].State != "") == b.late {
			t.Errorf("listed at start: %v %+v", err, cards)
		}
	}
	hurt := map[string]Answer{first.ID: answered}
	if b.both {
		hurt[second.ID] = other
	} else {
		ask(t, s, second.ID, mean(2))
	}
	for id, known := range hurt {
		_, err := s.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
		wantKind(t, "a new question", err, Damaged)
		if a := ask(t, s, id, mean(1)); !a.Replayed || string(a.Body) != string(known.Body) {
			t.Errorf("a recorded answer is replayed as %s, it was %s", a.Body, known.Body)
		}
		batch, err := s.AskBatch(t.Context(), analyst, id, []json.RawMessage{[]byte(mean(1)), []byte(mean(1))}, false, "")
		if err != nil || len(batch.Answers) != 2 || !batch.Answers[1].Replayed {
			t.Errorf("a batch of recorded answers: %+v %v", batch, err)
		}
		_, err = s.Training(t.Context(), analyst, id)
		wantKind(t, "the training part", err, Damaged)
		if card, err := s.Card(t.Context(), analyst, id); err != nil || card.State != StateDamaged || card.ID != id {
			t.Errorf("the card: %+v %v", card, err)
		}
	}
	cards, err := s.List(t.Context(), analyst)
	if err != nil || len(cards) != 2 || (cards[1].State != "") != b.both {
		t.Errorf("listed: %v %+v", err, cards)
	}
}

// TestDamage harms one of two holdouts in each way and looks at both. It would catch damage that is not noticed, that
// answers under another's intervals, that takes the other holdout or the server along, or that takes recorded answers along.
func TestDamage(t *testing.T) {
	for _, b := range fileBreakages {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/live=%v", b.name, live), func(t *testing.T) { b.run(t, live) })
		}
	}
	for _, b := range ledgerBreakages {
		t.Run(b.name, func(t *testing.T) { b.run(t, false) })
	}
}

// TestDamageIsMended: files that are put back while the server runs end the quarantine.
func TestDamageIsMended(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 20}, visits(t, 1000, 1))
	columns := s.path(holdoutsDir, card.ID, holdoutDir, columnsOf)
	must(t, os.Rename(columns, columns+".away"))
	_, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(1)), "")
	wantKind(t, "without columns", err, Damaged)
	must(t, os.Rename(columns+".away", columns))
	ask(t, s, card.ID, mean(1))
	if again, err := s.Card(t.Context(), analyst, card.ID); err != nil || again.State != "" {
		t.Errorf("the card after the files came back: %q %v", again.State, err)
	}
}

// TestTamperedAnswer: an entry that is not what the chain says is not replayed, and the others are.
func TestTamperedAnswer(t *testing.T) {
	data := t.TempDir()
	s := open(t, data)
	card := create(t, s, Settings{Questions: 20}, visits(t, 1000, 1))
	ask(t, s, card.ID, mean(1))
	second := ask(t, s, card.ID, mean(2))
	ask(t, s, card.ID, mean(3))
	must(t, s.Close())
	rewriteLedger(t, data, `UPDATE entries SET body = replace(body, '"value":0', '"value":1') WHERE seq = 1`)
	s = open(t, data)
	_, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(1)), "")
	wantKind(t, "an answer that was changed", err, Damaged)
	_, err = s.Answers(t.Context(), admin, card.ID, 0, 10)
	wantKind(t, "the history with it", err, Damaged)
	if a := ask(t, s, card.ID, mean(2)); !a.Replayed || string(a.Body) != string(second.Body) {
		t.Errorf("the next answer is replayed as %s", a.Body)
	}
}

// TestVerifyDamage: verify finds each damage, with the key beside it; without the key it says what it did not look at.
func TestVerifyDamage(t *testing.T) {
	set := Settings{Holdout: 0.5, Unit: "chart", Questions: 20, Confidence: 0.95}
	export := breakage{name: "the exported training part", harm: func(t *testing.T, _, first, _ string) { flip(t, filepath.Join(first, trainingParquet)) }}
	older := breakage{name: "a mark that is ahead", harm: func(t *testing.T, _, first, _ string) {
		must(t, mark{Seq: 7, Head: "sha256:", Digest: ""}.write(first, markFile))
	}}
	for _, b := range slices.Concat(fileBreakages, ledgerBreakages, []breakage{export, older}) {
		t.Run(b.name, func(t *testing.T) {
			data := t.TempDir()
			s := open(t, data)
			first, second := create(t, s, set, visits(t, 2000, 1)), create(t, s, set, visits(t, 2000, 2))
			ask(t, s, first.ID, mean(1))
			f, err := s.Training(t.Context(), analyst, first.ID)
			must(t, err)
			must(t, f.Close())
			must(t, s.Close())
			all, err := Verify(t.Context(), data, true)
			if err != nil || len(all) != 2 || all[0].Tables != inOrder || all[0].Sealed != inOrder {
				t.Fatalf("before: %+v %v", all, err)
			}
			b.harm(t, data, s.path(holdoutsDir, first.ID), s.path(holdoutsDir, second.ID))
			if all, err := Verify(t.Context(), data, true); err == nil {
				t.Errorf("not found: %+v", all)
			}
		})
	}
	data := t.TempDir()
	s := open(t, data)
	create(t, s, set, visits(t, 2000, 1))
	must(t, s.Close())
	must(t, os.Remove(filepath.Join(data, serverKeyFile)))
	all, err := Verify(t.Context(), data, false)
	if err != nil || len(all) != 1 || all[0].Tables != notChecked || all[0].Sealed != notChecked {
		t.Errorf("without key and tables: %+v %v", all, err)
	}
}

// TestDamagedExport: a training part that is not what was exported is not served; it is written again.
func TestDamagedExport(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"flipped":     func(path string) error { flip(t, path); return nil },
		"cut short":   func(path string) error { return os.Truncate(path, 50) },
		"removed":     os.Remove,
		"no checksum": func(path string) error { return os.Remove(path + sumSuffix) },
	} {
		s := open(t, t.TempDir())
		card := create(t, s, Settings{Questions: 20}, visits(t, 1000, 1))
		download := func() string {
			f, err := s.Training(t.Context(), analyst, card.ID)
			must(t, err)
			defer f.Close()
			b, err := io.ReadAll(f)
			must(t, err)
			return string(b)
		}
		first := download()
		must(t, harm(s.path(holdoutsDir, card.ID, trainingParquet)))
		if again := download(); again != first {
			t.Errorf("%s: served %d bytes that are not the %d of before", name, len(again), len(first))
		}
	}
}

// TestDamageInFlight: the ledger's place for a holdout is damaged, or refuses whatever it is given, after rows were read. The request hears that the
// holdout is damaged or that it must come back, nothing of it is released, nothing more is read, what was reserved is given back, and the holdout can be
// deleted; the others go on. It would notice a commit that is tried again for ever, and so a deletion that never has its turn.
func TestDamageInFlight(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, dir, id string){
		"the state does not open": func(t *testing.T, dir, id string) {
			db, err := sql.Open("sqlite", "file://"+filepath.Join(dir, ledgerFile))
			must(t, err)
			defer db.Close()
			_, err = db.Exec("UPDATE books SET state = zeroblob(100)"+ofFirst, id)
			must(t, err)
		},
		"every entry is refused": func(t *testing.T, dir, id string) {
			setFault(t, func(table string, seq int64) error {
				if table == "entries" {
					return errRefused
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			first, second := create(t, s, Settings{Questions: 20}, visits(t, 1000, 1)), create(t, s, Settings{Questions: 20}, visits(t, 1000, 2))
			known := ask(t, s, first.ID, mean(1))
			plantFaults(t, dir)
			var harmed atomic.Bool
			harmed.Store(true) // not by what opening commits
			reopenLedger(t, s, func(step string) error {
				if step == ledger.StepBegin && harmed.CompareAndSwap(false, true) {
					harm(t, dir, first.ID)
					return errors.New("the disk fails once, so that the books are read again")
				}
				return nil
			})
			c := count(t, s, first.ID)
			harmed.Store(false)
			_, err := s.Ask(t.Context(), analyst, first.ID, []byte(mean(2)), "")
			if kind := KindOf(err); kind != Unavailable && kind != Damaged {
				t.Errorf("the question in flight: %v", err)
			}
			atRest(t, s, first.ID)
			if card, err := s.Card(t.Context(), analyst, first.ID); err != nil || card.State != StateDamaged {
				t.Errorf("the card: %+v %v", card.State, err)
			}
			before := c.functions.Load()
			_, err = s.Ask(t.Context(), analyst, first.ID, []byte(mean(3)), "")
			wantKind(t, "a new question", err, Damaged)
			if c.functions.Load() != before {
				t.Error("rows are read of a holdout that cannot be debited")
			}
			if a := ask(t, s, first.ID, mean(1)); !a.Replayed || string(a.Body) != string(known.Body) {
				t.Errorf("a recorded answer is replayed as %s", a.Body)
			}
			setFault(t, nil)
			ask(t, s, second.ID, mean(2))
			if questions, _ := spentOf(t, s, first.ID); questions != 1 {
				t.Errorf("%d questions spent, want the 1 that was answered", questions)
			}
			must(t, s.Delete(t.Context(), admin, first.ID))
		})
	}
}
