//go:build engines

package holdout

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
)

// wire stands between the service and a real ClickHouse. break says of a statement whether the engine's answer to it is lost.
type wire struct {
	*httptest.Server
	mu     sync.Mutex
	breaks func(statement string) bool
	away   bool // nothing arrives
	sums   int  // statements that are about a holdout's rows
}

func newWire(t *testing.T, engine string) *wire {
	t.Helper()
	to, err := url.Parse(engine)
	must(t, err)
	w := &wire{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		statement := r.URL.Query().Get("query")
		if statement == "" {
			statement = string(body)
		}
		w.mu.Lock()
		lost, away := w.breaks != nil && w.breaks(statement), w.away
		if !away && aboutRows(statement) {
			w.sums++
		}
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header["X-Forwarded-For"] = nil // Trino refuses requests that say of a proxy
		if away {
			panic(http.ErrAbortHandler)
		}
		if lost { // the engine does what it is asked, and nobody hears of it
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *wire) breaking(breaks func(statement string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaks, w.away, w.sums = breaks, false, 0
}

// leave lets nothing arrive until breaking is called.
func (w *wire) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away, w.sums = true, 0
}

func (w *wire) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sums
}

// aboutRows reports whether a statement asks about the rows of a holdout.
func aboutRows(statement string) bool {
	return strings.HasPrefix(statement, "SELECT") && strings.Contains(statement, "holdoutd_") && !strings.Contains(statement, "_probe")
}

// through is a source behind a wire.
func (w *wire) through() map[string]Source {
	return map[string]Source{"warehouse": {Address: w.URL + "/default", Reader: Login{"reader", "reader"}, Loader: Login{"loader", "loader"}}}
}

// engineText is what ClickHouse answers to its loader.
func engineText(t *testing.T, address, statement string) string {
	t.Helper()
	response, err := http.Post(address, "text/plain", strings.NewReader(statement))
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if must(t, err); response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", statement, text)
	}
	return strings.TrimSpace(string(text))
}

// tables are those of holdouts in the engine, without probes.
func tablesIn(t *testing.T, loader string) []string {
	t.Helper()
	return strings.Fields(engineText(t, loader, "SELECT name FROM system.tables WHERE name LIKE 'holdoutd%' AND name NOT LIKE '%probe' FORMAT TabSeparated"))
}

// sourced are holdouts of all mechanisms, and what is asked of them.
var sourced = []struct {
	name    string
	set     Settings
	queries []string
}{
	{"gaussian", Settings{Mechanism: "gaussian", Questions: 100}, nil},
	{"rounds", Settings{Mechanism: "gaussian", Questions: 60, Rounds: 30}, nil},
	{"guess_and_check", Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 60}, nil},
	{"units", Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 60, Unit: "chart"}, []string{`{"type":"mean","of":"x","range":[0,1],"weight":"row"}`}},
	{"check part", Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 60, Label: "late"}, nil},
	{"thresholdout", Settings{Mechanism: "thresholdout", Questions: 60, Tokens: 40}, nil},
	{"split", Settings{Mechanism: "split", Questions: 60}, nil},
	{"public features", Settings{Mechanism: "gaussian", Questions: 100, Label: "late", Features: "public", Check: new(0.0)}, nil},
	{"public features, check part", Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 60, Label: "late", Features: "public"}, nil},
	{"naive", Settings{Mechanism: "naive", Questions: 100}, nil},
	{"cells", Settings{Mechanism: "cells", Cells: `{"late":[true,false],"x":[0.25,0.5]}`}, []string{`{"type":"fraction","of":"late"}`, `{"type":"fraction","of":"late && x >= 0.25"}`}},
	{"ladder", Settings{Mechanism: "ladder"}, []string{`{"type":"loss","loss":"zero_one","label":"late","prediction":"x < 0.4"}`, `{"type":"loss","loss":"zero_one","label":"late","prediction":"x < 0.21"}`}},
}

// TestSourceAnswersAsHere: under every mechanism a holdout in ClickHouse gives the answers, byte for byte, that one of the same table and secrets gives here.
func TestSourceAnswersAsHere(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	w := newWire(t, cluster.Address(0, "loader"))
	for _, of := range sourced {
		t.Run(of.name, func(t *testing.T) {
			set, table := of.set, visits(t, 2000, 3)
			set.Holdout = 0.5
			asked := of.queries
			if of.queries == nil || of.name == "units" {
				asked = slices.Concat(sourcedQueries, of.queries)
			}
			here := openWith(t, t.TempDir(), nil)
			one := create(t, here, set, table)
			there := openWith(t, t.TempDir(), w.through())
			set.Source = "warehouse"
			two := create(t, there, set, table)
			w.breaking(nil)
			if set.Features != "" {
				predictions := slices.Repeat([]string{"1", "0", "0.25"}, 1000)[:one.Rows.Holdout+one.Rows.Check]
				asked = append(slices.Clone(asked), `{"type":"accuracy","label":"late","predictions":[`+strings.Join(predictions, ",")+`]}`)
			}
			if answers := sameAnswers(t, here, one.ID, there, two.ID, asked); answers < 2 || w.asked() < answers {
				t.Errorf("%d of %d queries were answered, by %d statements", answers, len(asked), w.asked())
			}
			first, err := here.contents(here.path(holdoutsDir, one.ID, trainingDir))
			must(t, err)
			second, err := there.contents(there.path(holdoutsDir, two.ID, trainingDir))
			must(t, err)
			if first != second {
				t.Error("the training parts differ")
			}
			if set.Features != "" {
				if a, b := featuresOf(t, here, one.ID), featuresOf(t, there, two.ID); !bytes.Equal(a, b) {
					t.Errorf("%d bytes of features of the one in the source, %d of the other, and they are not the same", len(b), len(a))
				}
				public, err := dataset.Open(there.path(holdoutsDir, two.ID, holdoutDir+featuresSuffix))
				if must(t, err); public.Rows() != int(two.Rows.Holdout) {
					t.Errorf("%d rows are public", public.Rows())
				}
				if _, ok := public.Lookup("late"); ok {
					t.Error("labels lie here")
				}
				must(t, public.Close())
			}
			if left, err := os.ReadDir(there.path(holdoutsDir, two.ID)); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == holdoutDir }) {
				t.Errorf("held-out rows lie here: %v, %v", left, err)
			}
		})
	}
}

// heldOf is what the ledger holds of a holdout, and its state.
func heldOf(t *testing.T, s *Service, id string) (holds map[string]hold, spent int64) {
	t.Helper()
	record, err := s.ledger.Holdout(t.Context(), id)
	must(t, err)
	card := s.readCard(record)
	state, holds, err := (&opened{id: id, guarantee: card.Guarantee}).readBooks(record.State)
	must(t, err)
	return holds, state.Questions
}

// TestSourceIsLost: an answer of the engine's that is lost costs a question once, whenever it comes; nobody else can spend what is held for it; and the
// answer is the one that the first would have been. A source that cannot be reached costs nothing.
func TestSourceIsLost(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	w := newWire(t, cluster.Address(0, "loader"))
	for _, set := range []Settings{{Mechanism: "gaussian", Questions: 3}, {Mechanism: "guess_and_check", Questions: 3, Tokens: 3}, {Mechanism: "split", Questions: 3}} {
		t.Run(set.Mechanism, func(t *testing.T) {
			w.breaking(nil)
			set.Holdout = 0.5
			table := visits(t, 2000, 4)
			here := openWith(t, t.TempDir(), nil)
			want := said(t, ask(t, here, create(t, here, set, table).ID, mean(0)).Body)
			dir := t.TempDir()
			s := openWith(t, dir, w.through())
			set.Source = "warehouse"
			id := create(t, s, set, table).ID
			_, release, err := s.take(t.Context(), id) // checked, and on the shelf
			must(t, err)
			release()

			w.leave()
			_, err = s.Ask(t.Context(), analyst, id, []byte(mean(7)), "")
			wantKind(t, "a source that does not answer", err, Unavailable)
			if holds, spent := heldOf(t, s, id); len(holds) != 0 || spent != 0 || w.asked() != 0 {
				t.Errorf("a source that cannot be reached: %v held, %d spent, %d statements about rows", holds, spent, w.asked())
			}

			w.breaking(aboutRows)
			for range 2 {
				_, err = s.Ask(t.Context(), analyst, id, []byte(mean(0)), "")
				if wantKind(t, "an answer of the engine's that is lost", err, Unavailable); !strings.Contains(err.Error(), "warehouse") {
					t.Errorf("it says %v", err)
				}
				if holds, spent := heldOf(t, s, id); len(holds) != 1 || spent != 0 || w.asked() == 0 {
					t.Errorf("lost: %v held, %d spent, %d statements", holds, spent, w.asked())
				}
			}
			// Its question is nobody else's, now and after a restart.
			w.breaking(nil)
			for _, when := range []string{"before", "after"} {
				_, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(1), mean(2), mean(3)), false, "")
				wantKind(t, when+" a restart, three questions while one of three is held", err, BudgetExhausted)
				if err != nil && !strings.Contains(err.Error(), "kept for questions") {
					t.Errorf("the refusal says %v", err)
				}
				if when == "before" {
					must(t, s.Close())
					s = openWith(t, dir, w.through())
				}
			}
			if got := said(t, ask(t, s, id, mean(0)).Body); got != want {
				t.Errorf("asked again:\n%s, want\n%s", got, want)
			}
			if holds, spent := heldOf(t, s, id); len(holds) != 0 || spent != 1 {
				t.Errorf("answered: %v held, %d spent", holds, spent)
			}
			ask(t, s, id, mean(1))
			ask(t, s, id, mean(2))
			_, err = s.Ask(t.Context(), analyst, id, []byte(mean(3)), "")
			wantKind(t, "a fourth question of three", err, BudgetExhausted)
		})
	}
}

// otherValue is a statement that makes a table of the one named spare, with another value in a row. 18.16 has no REPLACE.
func otherValue(t *testing.T, loader, name string) string {
	t.Helper()
	columns := strings.Fields(engineText(t, loader, "SELECT name FROM system.columns WHERE table = 'spare' FORMAT TabSeparated"))
	for i, c := range columns {
		if c == "c1" {
			columns[i] = "c1 + (row_number = 7) AS c1"
		}
	}
	return "CREATE TABLE " + name + " ENGINE = MergeTree() ORDER BY row_number AS SELECT " + strings.Join(columns, ",") + " FROM spare"
}

// TestSourceIsChanged: a row more, a row with another value and a lost table are each noticed, and nothing is answered of them; as it was before, the holdout answers on.
func TestSourceIsChanged(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	loader := cluster.Address(0, "loader")
	w := newWire(t, loader)
	dir := t.TempDir()
	s := openWith(t, dir, w.through())
	id := create(t, s, Settings{Mechanism: "gaussian", Questions: 50, Holdout: 0.5, Source: "warehouse"}, visits(t, 2000, 5)).ID
	first := ask(t, s, id, mean(0))
	all := tablesIn(t, loader)
	if len(all) != 1 {
		t.Fatalf("tables of one holdout: %v", all)
	}
	table := all[0]
	engineText(t, loader, "CREATE TABLE spare ENGINE = MergeTree() ORDER BY row_number AS SELECT * FROM "+table)
	restore := func() {
		engineText(t, loader, "DROP TABLE IF EXISTS "+table)
		engineText(t, loader, "CREATE TABLE "+table+" ENGINE = MergeTree() ORDER BY row_number AS SELECT * FROM spare")
	}
	question := 0
	for what, change := range map[string]struct {
		statements []string
		reopen     bool
	}{
		"a row more":    {statements: []string{"INSERT INTO " + table + " SELECT * FROM spare LIMIT 1"}},
		"a lost table":  {statements: []string{"DROP TABLE " + table}},
		"another value": {[]string{"DROP TABLE " + table, ""}, true},
	} {
		outer := t
		t.Run(what, func(t *testing.T) {
			for _, statement := range change.statements {
				if statement == "" {
					statement = otherValue(t, loader, table)
				}
				engineText(t, loader, statement)
			}
			if change.reopen {
				must(t, s.Close())
				s = openWith(outer, dir, w.through())
			}
			question++
			_, before := heldOf(t, s, id)
			_, err := s.Ask(t.Context(), analyst, id, []byte(mean(question)), "")
			wantKind(t, "a question", err, Damaged)
			if holds, after := heldOf(t, s, id); len(holds) != 0 || after > before+1 {
				t.Errorf("%v held, %d spent after %d", holds, after, before)
			}
			if card, err := s.Card(t.Context(), analyst, id); err != nil || card.State != StateDamaged {
				t.Errorf("the card: %q, %v", card.State, err)
			}
			if again := ask(t, s, id, mean(0)); !again.Replayed || !bytes.Equal(again.Body, first.Body) {
				t.Errorf("a recorded answer: %+v", again)
			}
			restore()
			question++
			ask(t, s, id, mean(question))
		})
	}
}

// TestSourceIsTidy: the table of a holdout in a source goes with it: when it is deleted, when its draft is created again, when its upload fails and when a
// deletion found the source away. A source that nobody named is refused.
func TestSourceIsTidy(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	loader := cluster.Address(0, "loader")
	w := newWire(t, loader)
	dir, table := t.TempDir(), visits(t, 2000, 6)
	s := openWith(t, dir, w.through())
	set := Settings{Name: "visits", Mechanism: "gaussian", Questions: 5, Holdout: 0.5, Source: "warehouse"}
	upload := func(set Settings, table *dataset.Table) (Card, error) {
		card, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), "")
		return card, err
	}
	wrong := set
	wrong.Source = "elsewhere"
	_, err := upload(wrong, table)
	wantKind(t, "an unknown source", err, Invalid)
	w.breaking(func(statement string) bool {
		return strings.HasPrefix(statement, "INSERT") && !strings.Contains(statement, "_probe")
	})
	_, err = upload(set, table)
	if wantKind(t, "an upload whose rows do not arrive", err, Unavailable); len(tablesIn(t, loader)) != 0 {
		t.Errorf("a failed upload left %v", tablesIn(t, loader))
	}
	w.breaking(nil)
	if _, err := s.DryRun(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table)))); err != nil || len(tablesIn(t, loader)) != 0 {
		t.Errorf("a dry run: %v, %v", err, tablesIn(t, loader))
	}
	draft := create(t, s, set, table)
	before := tablesIn(t, loader)
	set.Questions = 6
	card := create(t, s, set, table)
	if now := tablesIn(t, loader); len(before) != 1 || len(now) != 1 || now[0] == before[0] || card.Replaces != draft.ID {
		t.Errorf("created again in place of %s (%s): %v, then %v", draft.ID, card.Replaces, before, now)
	}
	ask(t, s, card.ID, mean(0))
	w.leave()
	must(t, s.Delete(t.Context(), admin, card.ID))
	if now := tablesIn(t, loader); len(now) != 1 {
		t.Fatalf("deleted while the source is away: %v", now)
	}
	w.breaking(nil)
	must(t, s.Close())
	s = openWith(t, dir, w.through())
	if now := tablesIn(t, loader); len(now) != 0 || len(files(t, dir)) != 0 {
		t.Errorf("after a start: %v, %v", now, files(t, dir))
	}
	again := create(t, s, set, visits(t, 2000, 7))
	must(t, s.Close())
	reports, err := Verify(t.Context(), dir, true)
	if err != nil || !slices.ContainsFunc(reports, func(v Verification) bool { return v.Holdout == again.ID && v.Tables == inOrder }) {
		t.Errorf("verified: %+v, %v", reports, err)
	}
	s = openWith(t, dir, nil)
	_, err = s.Ask(t.Context(), analyst, again.ID, []byte(mean(0)), "")
	wantKind(t, "asking a server without the source", err, Unavailable)
	must(t, s.Close())
	s = openWith(t, dir, w.through())
	ask(t, s, again.ID, mean(0))
	must(t, s.Delete(t.Context(), admin, again.ID))
	if now := tablesIn(t, loader); len(now) != 0 {
		t.Errorf("deleted: %v", now)
	}
}

// TestSourceIsBackedUp: a backup beside a running server has what is registered and what is held, and no row of the source. Restored, its recorded answers replay, what is held is still nobody else's, and the question that was
// sent is answered as it would have been, of the same table. Where the engine lost the table meanwhile, or has it no more as it was, the holdout is damaged until it is put back, and deleting it there needs no table.
func TestSourceIsBackedUp(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	loader := cluster.Address(0, "loader")
	w := newWire(t, loader)
	set := Settings{Name: "visits", Mechanism: "guess_and_check", Questions: 3, Tokens: 3, Holdout: 0.5, Unit: "chart"}
	table := visits(t, 2000, 12)
	here := openWith(t, t.TempDir(), nil)
	local := create(t, here, set, table)
	ask(t, here, local.ID, mean(0))
	want := said(t, ask(t, here, local.ID, mean(1)).Body)

	dir := t.TempDir()
	s := openWith(t, dir, w.through())
	set.Source = "warehouse"
	id := create(t, s, set, table).ID
	first := ask(t, s, id, mean(0))
	w.breaking(aboutRows)
	_, err := s.Ask(t.Context(), analyst, id, []byte(mean(1)), "")
	wantKind(t, "an answer of the engine's that is lost", err, Unavailable)
	w.breaking(nil)
	backup := backupOf(t, dir)
	for _, file := range readArchive(t, backup) {
		if strings.Contains(file.name, "/"+holdoutDir+"/") {
			t.Errorf("held-out rows are in the backup: %s", file.name)
		}
	}
	if _, found, err := VerifyBackup(t.Context(), t.TempDir(), bytes.NewReader(backup)); err != nil || len(found) != 1 || found[0].Tables != inOrder {
		t.Errorf("the backup: %+v, %v", found, err)
	}
	must(t, s.Close())

	to := t.TempDir() + "/to"
	_, found, err := Restore(t.Context(), RestoreOptions{Dir: to}, bytes.NewReader(backup))
	if err != nil || len(found) != 1 || found[0].Tables != inOrder {
		t.Fatalf("restored: %+v, %v", found, err)
	}
	must(t, AcceptRestored(to, Accepted{Keys: KeysStay}))
	s = openWith(t, to, w.through())
	if again := ask(t, s, id, mean(0)); !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("a recorded answer: %+v", again)
	}
	if holds, spent := heldOf(t, s, id); len(holds) != 1 || spent != 1 {
		t.Errorf("%v held, %d spent", holds, spent)
	}
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(0)), false, "")
	if must(t, err); b.Budget.Held == nil || b.Budget.Held.Questions != 1 || b.Budget.Questions.Left != 2 {
		t.Errorf("the budget beside a replay: %+v", b.Budget)
	}
	_, err = s.AskBatch(t.Context(), analyst, id, batchOf(mean(2), mean(3)), false, "")
	wantKind(t, "what is held", err, BudgetExhausted)
	if got := said(t, ask(t, s, id, mean(1)).Body); got != want {
		t.Errorf("asked again:\n%s, want\n%s", got, want)
	}

	lost := tablesIn(t, loader)
	if len(lost) != 1 {
		t.Fatalf("tables of one holdout: %v", lost)
	}
	must(t, s.Close())
	engineText(t, loader, "RENAME TABLE "+lost[0]+" TO away")
	s = openWith(t, to, w.through())
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
	wantKind(t, "without its table", err, Damaged)
	engineText(t, loader, "RENAME TABLE away TO "+lost[0])
	ask(t, s, id, mean(2))
	engineText(t, loader, "DROP TABLE "+lost[0])
	must(t, s.Delete(t.Context(), admin, id))
	must(t, s.Close())
	s = openWith(t, to, w.through())
	if left := files(t, to); len(left) != 0 {
		t.Errorf("deleted: %v", left)
	}
}

// TestTrinoSource: a holdout in Trino gives the answers, byte for byte, that one of the same table and secrets gives here, of rows and of units of several, also where rows are read in blocks. A question whose answer is lost
// is held, and answered when it is asked again. A table that is gone makes the holdout damaged; deleted, it leaves nothing there. No name of a column and no text of a question stands in a statement.
func TestTrinoSource(t *testing.T) {
	coordinator := enginetest.Trino(t)
	w := newWire(t, coordinator)
	sources := map[string]Source{"lake": {Engine: EngineTrino, Address: w.URL + "/memory/default", Reader: Login{User: "reader"}, Loader: Login{User: "loader"}}}
	var sent []string
	w.breaking(func(statement string) bool { sent = append(sent, statement); return false })
	loader, err := remote.NewTrino(strings.Replace(coordinator, "//", "//loader@", 1)+"/memory/default", remote.Options{})
	must(t, err)
	tables := func() string {
		row, err := loader.Integers(t.Context(), "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'holdoutd%'", 1)
		must(t, err)
		return row[0]
	}
	here, dir := openWith(t, t.TempDir(), nil), t.TempDir()
	there := openWith(t, dir, sources)
	table, set := visits(t, 2000, 13), Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 60, Holdout: 0.5, Unit: "chart"}
	one := create(t, here, set, table)
	set.Source = "lake"
	two := create(t, there, set, table)
	asked := []string{
		`{"type":"mean","of":"x","range":[0,1],"weight":"row"}`,
		`{"type":"mean","of":"score","range":[0,100],"where":"late"}`,
		`{"type":"fraction","of":"clinic == 'clinic 3' && !late"}`,
		`{"type":"mean","of":"log(x + 1.0)","range":[0,1]}`, // its rows are read in blocks
		`{"type":"quantile","of":"score","p":0.5,"range":[0,100]}`,
		`{"type":"fraction","of":"seen.getFullYear() > 1970"}`,
	}
	if answers := sameAnswers(t, here, one.ID, there, two.ID, asked); answers < 5 {
		t.Errorf("%d of %d queries were answered", answers, len(asked))
	}
	rows := 0
	for _, statement := range sent {
		if aboutRows(statement) {
			rows++
		}
		for _, secret := range []string{"clinic", "score", "late", "chart"} {
			if strings.Contains(statement, secret) {
				t.Errorf("%s stands in %.300s", secret, statement)
			}
		}
	}
	if rows < len(asked) {
		t.Errorf("%d statements about rows", rows)
	}
	w.breaking(aboutRows)
	const late = `{"type":"fraction","of":"late"}`
	_, err = there.Ask(t.Context(), analyst, two.ID, []byte(late), "")
	wantKind(t, "an answer of the engine's that is lost", err, Unavailable)
	w.breaking(nil)
	if holds, _ := heldOf(t, there, two.ID); len(holds) != 1 {
		t.Errorf("%v is held", holds)
	}
	must(t, there.Close())
	there = openWith(t, dir, sources)
	sameAnswers(t, here, one.ID, there, two.ID, []string{late})
	if holds, _ := heldOf(t, there, two.ID); len(holds) != 0 || tables() != "2" {
		t.Errorf("%v is held, %s tables", holds, tables())
	}
	r, _, err := readRegistration(there.path(holdoutsDir, two.ID))
	must(t, err)
	layout := remote.Layout(r.Table, r.Schema, r.Largest)
	must(t, loader.Drop(t.Context(), &layout))
	_, err = there.Ask(t.Context(), analyst, two.ID, []byte(mean(3)), "")
	wantKind(t, "without its table", err, Damaged)
	must(t, there.Delete(t.Context(), admin, two.ID))
	if tables() != "0" {
		t.Errorf("deleted: %s tables", tables())
	}
}

// TestSourceIsRetired: the rows of a retired holdout come from its source just as they come from one here, those of the check part behind them; what was held is spent. Before it no row leaves. A table that was changed is not given out.
func TestSourceIsRetired(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	loader := cluster.Address(0, "loader")
	w := newWire(t, loader)
	table := visits(t, 2000, 14)
	for _, set := range []Settings{
		{Name: "visits", Mechanism: "guess_and_check", Questions: 3, Tokens: 3, Holdout: 0.5, Label: "late"}, // with a check part
		{Name: "visits", Mechanism: "gaussian", Questions: 3, Holdout: 0.5, Unit: "chart"},
		{Name: "visits", Mechanism: "gaussian", Questions: 3, Holdout: 0.5, Label: "late", Features: "public"},
	} {
		t.Run(set.Mechanism+set.Unit+set.Label, func(t *testing.T) {
			here, dir := openWith(t, t.TempDir(), nil), t.TempDir()
			one := create(t, here, set, table)
			there := openWith(t, dir, w.through())
			set.Source = "warehouse"
			two := create(t, there, set, table)
			_, err := there.Released(t.Context(), admin, two.ID)
			wantKind(t, "rows that are held out", err, Conflict)
			ask(t, there, two.ID, mean(0))
			w.breaking(aboutRows)
			_, err = there.Ask(t.Context(), analyst, two.ID, []byte(mean(1)), "")
			wantKind(t, "an answer of the engine's that is lost", err, Unavailable)
			w.breaking(nil)

			for s, id := range map[*Service]string{here: one.ID, there: two.ID} {
				if card, err := s.Retire(t.Context(), admin, id); err != nil || !card.Budget.Retired || card.Budget.Questions.Left != 0 || card.Budget.Held != nil {
					t.Fatalf("retired: %+v, %v", card.Budget, err)
				}
			}
			want, got := releasedRows(t, here, one.ID), releasedRows(t, there, two.ID)
			if !bytes.Equal(want, got) {
				t.Errorf("%d bytes of rows come from the source, %d from here, and they are not the same", len(got), len(want))
			}
			if tables := tablesIn(t, loader); len(tables) != 1 {
				t.Errorf("retired: %v", tables)
			}
			for _, name := range []string{retiredParquet, retiredParquet + sumSuffix} {
				must(t, os.Remove(there.path(holdoutsDir, two.ID, name)))
			}
			name := tablesIn(t, loader)[0]
			engineText(t, loader, "RENAME TABLE "+name+" TO spare")
			engineText(t, loader, otherValue(t, loader, name))
			engineText(t, loader, "DROP TABLE spare")
			_, err = there.Released(t.Context(), admin, two.ID)
			wantKind(t, "a table with another value", err, Damaged)
			must(t, there.Close())
			if reports, err := Verify(t.Context(), dir, true); err != nil || !slices.ContainsFunc(reports, func(v Verification) bool { return v.Holdout == two.ID && v.Tables == inOrder }) {
				t.Errorf("verified: %+v, %v", reports, err)
			}
			if public := there.path(holdoutsDir, two.ID, holdoutDir+featuresSuffix); set.Features != "" {
				must(t, os.Rename(public, dir+"/spare"))
				must(t, dataset.Write(public, visits(t, 10, 1)))
				if _, err := Verify(t.Context(), dir, true); err == nil {
					t.Error("features of another table are verified")
				}
			}
			there = openWith(t, dir, w.through())
			must(t, there.Delete(t.Context(), admin, two.ID))
			if tables := tablesIn(t, loader); len(tables) != 0 {
				t.Errorf("deleted: %v", tables)
			}
		})
	}
}

func featuresOf(t *testing.T, s *Service, id string) []byte {
	t.Helper()
	f, err := s.Features(t.Context(), analyst, id)
	must(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	must(t, err)
	return text
}

func releasedRows(t *testing.T, s *Service, id string) []byte {
	t.Helper()
	f, err := s.Released(t.Context(), admin, id)
	must(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	must(t, err)
	return text
}

// TestSourceKeepsOthers: rows in a source that another holdout holds out which still answers are not released.
func TestSourceKeepsOthers(t *testing.T) {
	w := newWire(t, enginetest.ClickHouse18(t).Address(0, "loader"))
	s, table := openWith(t, t.TempDir(), w.through()), measured(t, 3_000, 1)
	set := Settings{Name: "first", Holdout: 0.3, Questions: 20, Mechanism: "gaussian", Source: "warehouse"}
	first, err := again(t, s, set, madeOf(t, table))
	must(t, err)
	ask(t, s, first.ID, `{"type":"mean","of":"a","range":[-5,5]}`)
	set.Name, set.Overlap = "second", overlapAccepted
	second, err := again(t, s, set, madeOf(t, nudged(table)))
	must(t, err)
	_, err = s.Retire(t.Context(), admin, second.ID)
	if wantKind(t, "rows that another holdout holds out", err, RowsKnown); !strings.Contains(err.Error(), first.ID) {
		t.Errorf("it says %v", err)
	}
	must(t, s.Delete(t.Context(), admin, first.ID))
	retire(t, s, second.ID)
}

// TestSourceOfShards: a holdout whose held-out rows lie in two shards of a cluster answers as one that lies here; a shard that is away makes no answer of the others, and what is dropped is dropped on both.
func TestSourceOfShards(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	bare := func(shard int) string {
		u, err := url.Parse(cluster.Address(shard, "loader"))
		must(t, err)
		u.User = nil
		return u.String()
	}
	sources := map[string]Source{"warehouse": {Address: bare(0), Reader: Login{"reader", "reader"}, Loader: Login{"loader", "loader"}, Cluster: "shards", Shards: []string{bare(1)}}}
	table := visits(t, 2000, 3)
	for _, unit := range []string{"", "clinic"} {
		set := Settings{Holdout: 0.5, Mechanism: "gaussian", Questions: 200, Unit: unit}
		here := openWith(t, t.TempDir(), nil)
		one := create(t, here, set, table)
		there := openWith(t, t.TempDir(), sources) // its secrets begin anew
		set.Source = "warehouse"
		two := create(t, there, set, table)
		if answers := sameAnswers(t, here, one.ID, there, two.ID, sourcedQueries); answers < 2 {
			t.Errorf("unit %q: %d answers", unit, answers)
		}
		if unit == "" {
			must(t, there.Delete(t.Context(), admin, two.ID))
			for shard := range 2 {
				if left := tablesIn(t, cluster.Address(shard, "loader")); len(left) > 0 {
					t.Errorf("shard %d has %v", shard, left)
				}
			}
			continue
		}
		cluster.Crash(1)
		_, err := there.Ask(t.Context(), analyst, two.ID, []byte(`{"type":"mean","of":"x","range":[0,0.5]}`), "")
		if KindOf(err) != Unavailable {
			t.Errorf("a shard is away: %v", err)
		}
	}
}
