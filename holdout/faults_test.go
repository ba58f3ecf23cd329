package holdout

//holdoutd:race

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	sqliteledger "github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/await"
)

// faults is asked by the database before each statement that writes a row, in a ledger of plantFaults: nil lets it pass, errRefused is
// the database's own refusal, as of a constraint, and any other error is one of the disk. The function of a database is the whole process's,
// and so is this.
var faults struct {
	sync.Mutex
	ask func(table string, seq int64) error
}

var errRefused = errors.New("planted: refused")

func init() {
	sqlite.MustRegisterScalarFunction("planted_fault", 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		faults.Lock()
		ask := faults.ask
		faults.Unlock()
		if ask == nil {
			return int64(0), nil
		}
		seq, _ := args[1].(int64)
		switch err := ask(args[0].(string), seq); {
		case err == nil:
			return int64(0), nil
		case errors.Is(err, errRefused):
			return int64(1), nil
		default:
			return nil, err
		}
	})
	// The ledger trusts no function that its file names; these tests' own connections do.
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
		_, err := conn.ExecContext(context.Background(), "PRAGMA trusted_schema = 1", nil)
		return err
	})
}

// setFault plants a fault until the test ends or it is set to nil.
func setFault(t *testing.T, ask func(table string, seq int64) error) {
	t.Helper()
	set := func(ask func(string, int64) error) {
		faults.Lock()
		faults.ask = ask
		faults.Unlock()
	}
	set(ask)
	t.Cleanup(func() { set(nil) })
}

// written are the statements with which a ledger writes for a question, each with its row's place in the chain.
var written = map[string]string{"entries": "INSERT", "books": "UPDATE", "meters": "UPDATE", "idempotency": "INSERT"}

// plantFaults makes an open service's database ask faults before it writes.
func plantFaults(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file://"+filepath.Join(dir, ledgerFile)+"?_pragma=busy_timeout(10000)")
	must(t, err)
	defer db.Close()
	for table, verb := range written {
		seq := "NEW.seq"
		if table == "idempotency" || table == "meters" {
			seq = "0"
		}
		_, err := db.Exec(fmt.Sprintf(`CREATE TRIGGER planted_%[1]s BEFORE %[2]s ON %[1]s WHEN planted_fault('%[1]s', %[3]s) = 1
			BEGIN SELECT RAISE(ABORT, 'planted'); END`, table, verb, seq))
		must(t, err)
	}
}

// healthy waits until the ledger has found out by itself that it can commit again.
func healthy(t *testing.T, s *Service) {
	t.Helper()
	await.Until(t, "the ledger can commit again", func() bool { return s.Ready(t.Context()) == nil })
}

// books are what a holdout has paid and what it has recorded, after the chain is verified.
func books(t *testing.T, s *Service, id string) (spent Meter, tokens int64, bodies map[string]bool) {
	t.Helper()
	var export bytes.Buffer
	must(t, s.Export(t.Context(), admin, id, &export))
	report, err := ledger.VerifyExport(&export)
	if err != nil {
		t.Fatalf("the ledger does not verify: %v", err)
	}
	b, err := s.Budget(t.Context(), analyst, id)
	must(t, err)
	page, err := s.Answers(t.Context(), admin, id, 0, MaxPage)
	must(t, err)
	if again, err := s.Budget(t.Context(), analyst, id); err != nil || again.Questions != b.Questions {
		must(t, err)
		return books(t, s, id) // something was recorded meanwhile
	}
	bodies = map[string]bool{}
	paid, paidTokens := int64(0), int64(0)
	for _, past := range page.Answers {
		bodies[string(past.Body)] = true
		cost := read(t, past.Body).Cost
		paid, paidTokens = paid+cost.Questions, paidTokens+cost.Tokens
	}
	// A question that failed after its rows were read is void: paid, and no answer.
	if got := b.Questions.Of - b.Questions.Left; (got < paid || got > paid && report.Voids == 0) && b.Rounds == nil { // what a round leaves unasked is gone
		t.Fatalf("the meter says %d questions, the recorded answers cost %d, and %d are void", got, paid, report.Voids)
	}
	if b.Tokens != nil {
		tokens = b.Tokens.Of - b.Tokens.Left
		if tokens < paidTokens || tokens > paidTokens && report.Voids == 0 {
			t.Fatalf("the meter says %d tokens, the recorded answers cost %d", tokens, paidTokens)
		}
	}
	return b.Questions, tokens, bodies
}

// TestEveryWriteOfAnAskFails: each statement with which an ask writes fails in turn, by the database's refusal and by the disk. Whatever
// fails, the reply is an error without a byte of an answer, and what is recorded is what is paid; asked again, the question is answered
// once, at one price. Single questions, batches and keys, under every mechanism.
func TestEveryWriteOfAnAskFails(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	mechanisms := []Settings{{Mechanism: "gaussian"}, {Mechanism: "gaussian", Rounds: 20}, {Mechanism: "guess_and_check", Tokens: 30},
		{Mechanism: "thresholdout", Tokens: 30, Threshold: 1e-6, Sigma: 0.2}, {Mechanism: "split"}}
	ids := make([]string, len(mechanisms))
	for i, set := range mechanisms {
		set.Questions, set.Holdout = 60, 0.5
		ids[i] = create(t, s, set, visits(t, 2000, uint64(40+i))).ID
	}
	plantFaults(t, dir)
	next := 0
	for i, id := range ids {
		for table := range written {
			for _, cause := range []error{errRefused, errors.New("planted: the disk is full")} {
				for _, batch := range []bool{false, true} {
					queries := []string{mean(next)}
					if batch {
						queries = []string{mean(next), mean(next + 1)}
					}
					next += len(queries)
					key := fmt.Sprint("key-", next)
					what := fmt.Sprintf("%s, %s fails by %q, %d questions", mechanisms[i].Mechanism, table, cause, len(queries))
					asking := func() (bodies []json.RawMessage, err error) {
						if !batch {
							a, err := s.Ask(t.Context(), analyst, id, []byte(queries[0]), key)
							return []json.RawMessage{a.Body}, err
						}
						b, err := s.AskBatch(t.Context(), analyst, id, batchOf(queries...), false, key)
						for _, item := range b.Answers {
							bodies = append(bodies, item.Body)
						}
						return bodies, err
					}
					before, _, _ := books(t, s, id)
					hit := false
					setFault(t, func(at string, _ int64) error {
						if at != table {
							return nil
						}
						hit = true
						return cause
					})
					got, err := asking()
					setFault(t, nil)
					if !hit {
						t.Fatalf("%s: the statement was never run", what)
					}
					if err == nil {
						t.Errorf("%s: no error", what)
					}
					for _, body := range got {
						if body != nil {
							t.Errorf("%s: the reply has the answer %s", what, body)
						}
					}
					if kind := KindOf(err); kind != Unavailable && kind != Internal {
						t.Errorf("%s: %v (kind %d)", what, err, kind)
					}
					healthy(t, s)
					after, _, _ := books(t, s, id)
					// What was read is recorded as soon as the ledger can, whether anybody asks again or not.
					if spent := before.Left - after.Left; spent != 0 && spent < int64(len(queries)) {
						t.Errorf("%s: %d questions left, before %d", what, after.Left, before.Left)
					}
					got, err = asking()
					if err != nil {
						t.Fatalf("%s: asked again: %v", what, err)
					}
					paid, _, recorded := books(t, s, id)
					price := int64(len(queries))
					if mechanisms[i].Rounds > 0 {
						price = before.Of / mechanisms[i].Rounds
					}
					if paid.Left != before.Left-price {
						t.Errorf("%s: asked again, %d questions left of %d", what, paid.Left, before.Left)
					}
					for _, body := range got {
						if body == nil || !recorded[string(body)] {
							t.Errorf("%s: the answer %s is not recorded", what, body)
						}
					}
				}
			}
		}
	}
}

// TestAnEndThatTakesLong: a holdout is deleted, or replaced, by a commit that takes longer than its caller waits. Once it is durable the holdout answers
// nothing more, not even what is recorded, and its files are gone.
func TestAnEndThatTakesLong(t *testing.T) {
	for _, how := range []string{"deleted", "replaced"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			table := visits(t, 500, 1)
			id := create(t, s, Settings{Questions: 5}, table).ID
			if how == "deleted" {
				ask(t, s, id, mean(0))
			}
			plantFaults(t, dir)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			hold := make(chan struct{})
			setFault(t, func(at string, _ int64) error {
				if at == "books" {
					leave()
					<-hold
				}
				return nil
			})
			var err error
			if how == "deleted" {
				err = s.Delete(ctx, admin, id)
			} else {
				_, _, err = s.Create(ctx, admin, Settings{Name: "visits", Mechanism: "gaussian", Questions: 6}, SingleUpload(bytes.NewReader(parquet(t, table))), "")
			}
			wantKind(t, "while the commit takes long", err, Unavailable)
			close(hold)
			await.Until(t, "its files are gone", func() bool {
				_, err := os.Stat(filepath.Join(dir, holdoutsDir, id))
				return errors.Is(err, fs.ErrNotExist)
			})
			_, err = s.Ask(t.Context(), analyst, id, []byte(mean(0)), "")
			wantKind(t, "asked after it", err, NotFound)
			_, err = s.Budget(t.Context(), analyst, id)
			wantKind(t, "its budget", err, NotFound)
		})
	}
}

// TestADeletionIsToldByACommit: who deletes a holdout again, for the first time ended without a word, is told that it is gone by a commit that lasts, and not by what can be read: that may be lost
// with a log that is not what was written.
func TestADeletionIsToldByACommit(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 5}, visits(t, 500, 1)).ID
	other := create(t, s, Settings{Questions: 5}, visits(t, 500, 2)).ID
	plantFaults(t, dir)
	must(t, s.Delete(t.Context(), admin, id))
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	setFault(t, func(string, int64) error {
		select {
		case held <- struct{}{}:
		default:
		}
		<-hold
		return nil
	})
	var wait sync.WaitGroup
	wait.Go(func() { s.Ask(context.Background(), analyst, other, []byte(mean(0)), "") })
	<-held // nothing can be committed
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	wantKind(t, "while nothing can be committed", s.Delete(ctx, admin, id), Unavailable)
	close(hold)
	wait.Wait()
	wantKind(t, "after it", s.Delete(t.Context(), admin, id), NotFound)
	wantKind(t, "one that never was", s.Delete(t.Context(), admin, "ho_nobody"), NotFound)
}

// TestARefusedGroupIsAskedAgain: two questions share a commit that the database refuses, so that each is run a second time, by itself.
// What the first run released must not leave by the second: every answer that a caller gets is recorded, and paid.
func TestARefusedGroupIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 500}, visits(t, 500, 1)).ID
	other := create(t, s, Settings{Questions: 500}, visits(t, 500, 2)).ID
	plantFaults(t, dir)
	ask(t, s, id, mean(0))
	before, _, _ := books(t, s, id)
	first := before.Of - before.Left // entries are numbered from 1, after the genesis
	release, held := make(chan struct{}), make(chan struct{}, 1)
	var mu sync.Mutex
	refusals, blocked := 0, false
	setFault(t, func(table string, seq int64) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case table != "entries":
		case !blocked: // the other holdout's question keeps the writer busy while the two are queued
			blocked = true
			held <- struct{}{}
			mu.Unlock()
			<-release
			mu.Lock()
		case refusals == 0 && seq == first+2: // the second of the two, behind the first in one transaction
			refusals++
			return errRefused
		}
		return nil
	})
	var wait sync.WaitGroup
	bodies := make([]json.RawMessage, 3)
	errs := make([]error, 3)
	asking := func(i int, holdout, query string) {
		wait.Go(func() {
			a, err := s.Ask(context.Background(), analyst, holdout, []byte(query), "")
			bodies[i], errs[i] = a.Body, err
		})
	}
	asking(0, other, mean(3))
	<-held
	asking(1, id, mean(1))
	asking(2, id, mean(2))
	await.Until(t, "both are queued behind it", func() bool { return s.ledger.(*sqliteledger.Ledger).Waiting() == 2 })
	close(release)
	wait.Wait()
	setFault(t, nil)
	after, _, recorded := books(t, s, id)
	answers, voids := 0, 0
	for i := range 3 {
		if errs[i] != nil {
			var ours *Error
			if i > 0 && errors.As(errs[i], &ours) && ours.Members["void"] == true {
				voids++ // refused in a commit of its own
			}
			continue
		}
		if i > 0 {
			answers++
		}
		if i > 0 && !recorded[string(bodies[i])] {
			t.Fatalf("an answer that is not recorded was released: %s", bodies[i])
		}
	}
	if spent := before.Left - after.Left; spent != int64(answers+voids) {
		t.Fatalf("%d answers were released, %d questions void, for %d questions", answers, voids, spent)
	}
	// Alone, the refused question comes after the first one's commit and is let through: both are answered.
	if refusals != 1 || answers != 2 {
		t.Fatalf("%d refusals, %d answers: no two questions shared a refused commit", refusals, answers)
	}
}

// TestSearchesAreNotAskedInRounds: a search chooses by the answers of its own round, which the bound of rounds does not allow.
func TestSearchesAreNotAskedInRounds(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 100, Rounds: 2}, visits(t, 2000, 1)).ID
	median := `{"type":"median","of":"x","range":[0,1],"resolution":0.125}`
	for _, query := range []string{
		median, `{"type":"quantile","of":"score","range":[0,100],"p":0.4,"resolution":10}`,
		`{"type":"compare","a":` + median + `,"b":{"type":"fraction","of":"late"}}`,
		`{"type":"passes","of":` + median + `,"above":0.3}`,
		`{"type":"test","test":"value","query":` + median + `,"equals":0.5}`,
	} {
		_, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
		wantKind(t, query, err, Invalid)
		_, err = s.AskBatch(t.Context(), analyst, id, batchOf(mean(1), query), false, "")
		wantKind(t, "in a batch, "+query, err, Invalid)
		_, err = s.Explain(t.Context(), analyst, id, []byte(query))
		wantKind(t, "explained, "+query, err, Invalid)
	}
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions != (Meter{Left: 100, Of: 100}) || *b.Rounds != (Meter{Left: 2, Of: 2}) {
		t.Errorf("refusals cost: %+v, %v", b, err)
	}
	if a := ask(t, s, id, mean(1)); a.Body == nil {
		t.Error("a mean is asked in rounds")
	}
}
