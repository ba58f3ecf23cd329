package postgres_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/await"
)

var key = [32]byte{1, 2, 3}

func open(t *testing.T, address string, change ...func(*ledger.Options)) *postgres.Ledger {
	t.Helper()
	o := ledger.Options{Key: key}
	for _, f := range change {
		f(&o)
	}
	l, err := postgres.Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func create(t *testing.T, l ledger.Ledger, id string, questions int64) {
	t.Helper()
	h := ledger.Holdout{ID: id, Digest: sha256.Sum256([]byte(id)), Public: []byte(`{}`), Secret: []byte("secret"), State: []byte("0"), Limits: ledger.Meters{"questions": questions}}
	if err := l.CreateHoldout(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
}

func debit(name string) ledger.Debit {
	canonical := []byte(`{"of":"` + name + `"}`)
	return ledger.Debit{Query: ledger.HeadText(sha256.Sum256(canonical)), Canonical: canonical, Principal: "key_a", Cost: ledger.Meters{"questions": 1},
		Core: []byte(`{"query":"` + name + `"}`), Time: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)}
}

// answer is what a server does with a question: it replays what is recorded, or debits. paid says which.
func answer(ctx context.Context, l ledger.Ledger, id, name string) (body []byte, paid bool, err error) {
	d := debit(name)
	err = l.Update(ctx, id, func(tx *ledger.Tx) error {
		if known, ok := tx.Answer(d.Query); ok {
			body, paid = known, false
			return nil
		}
		r, err := tx.Append(d)
		body, paid = r.Body, true
		tx.SetState([]byte(fmt.Sprint(tx.Spent()["questions"])))
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return body, paid, nil
}

func verify(t *testing.T, l pgtest.Ledger) map[string]ledger.Report {
	t.Helper()
	reports, err := postgres.Verify(context.Background(), l.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.VerifySealed(context.Background(), l.Address(), key); err != nil {
		t.Fatal(err)
	}
	byID := map[string]ledger.Report{}
	for _, r := range reports {
		byID[r.Holdout] = r
	}
	return byID
}

// TestRefusals: a database that may lose what it has acknowledged, or a ledger that was not prepared, is not opened, and the message says what to do.
func TestRefusals(t *testing.T) {
	c := pgtest.New(t)
	l := c.New(t)
	open(t, l.Address()).Close()
	refused := func(address, want string) {
		t.Helper()
		opened, err := postgres.Open(t.Context(), address, ledger.Options{Key: key})
		if err == nil {
			opened.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opened with %v, want an error that says %q", err, want)
		}
	}
	for _, setting := range []string{"fsync=off", "full_page_writes=off", "synchronous_commit=off", "synchronous_commit=local", "synchronous_commit=remote_write"} {
		c.Crash(t)
		c.Restart(t, setting)
		refused(l.Address(), setting[:strings.IndexByte(setting, '=')])
		if err := postgres.Prepare(t.Context(), l.Owner(), pgtest.Servers); err == nil {
			t.Errorf("%s: prepared", setting)
		}
	}
	c.Crash(t)
	c.Restart(t)
	l.Exec(t, false, "ALTER ROLE "+pgtest.Servers+" SET synchronous_commit = off")
	refused(l.Address(), "synchronous_commit=off for this role")
	l.Exec(t, false, "ALTER ROLE "+pgtest.Servers+" RESET synchronous_commit")
	refused(l.Address()+"x", "holdoutd ledger prepare")
	refused(l.Address()+`",x`, "not one name")
	refused("mysql://host/db", "postgres://")
	l.Exec(t, false, "ALTER TABLE "+l.Schema+".entries DISABLE TRIGGER entries_are_append_only")
	refused(l.Address(), "triggers")
	l.Exec(t, false, "ALTER TABLE "+l.Schema+".entries ENABLE TRIGGER entries_are_append_only", "ALTER TABLE "+l.Schema+".idempotency SET UNLOGGED")
	refused(l.Address(), "UNLOGGED")
	l.Exec(t, false, "ALTER TABLE "+l.Schema+".idempotency SET LOGGED")
	l.Exec(t, false, "UPDATE "+l.Schema+".goose_db_version SET version_id = 99 WHERE version_id = 1")
	if _, err := postgres.Open(t.Context(), l.Address(), ledger.Options{Key: key}); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("tables of a newer program: %v", err)
	}
	if err := postgres.Prepare(t.Context(), l.Owner(), pgtest.Servers); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("tables of a newer program, prepared: %v", err)
	}
}

// TestRole: the role of servers can do what functions do, and nothing else; a role that can is refused; and whatever the role sends, the functions give no budget back.
func TestRole(t *testing.T) {
	l := pgtest.Shared(t).New(t)
	opened := open(t, l.Address())
	create(t, opened, "ho_1", 10)
	if _, _, err := answer(t.Context(), opened, "ho_1", "a"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(opened.CreateKey(t.Context(), ledger.Key{ID: "k", Scope: "granted"}),
		opened.CreateGrant(t.Context(), ledger.Grant{ID: "g", Key: "k", Holdout: "ho_1", Limits: ledger.Meters{"questions": 1}, Shows: "full"}), opened.RevokeGrant(t.Context(), "g")); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"keeper", "postgres"} {
		if other, err := postgres.Open(t.Context(), l.As(role), ledger.Options{Key: key}); err == nil || !strings.Contains(err.Error(), "ledger prepare") {
			t.Errorf("%s opens the ledger: %v", role, err)
			if err == nil {
				other.Close()
			}
		}
	}
	l.Exec(t, false, "GRANT UPDATE ON "+l.Schema+".meters TO "+pgtest.Servers)
	if other, err := postgres.Open(t.Context(), l.Address(), ledger.Options{Key: key}); err == nil || !strings.Contains(err.Error(), "may only append") {
		t.Errorf("a role that may write a table opens the ledger: %v", err)
		if err == nil {
			other.Close()
		}
	}
	if err := postgres.Prepare(t.Context(), l.Owner(), pgtest.Servers); err != nil { // which takes away what is too much
		t.Fatal(err)
	}
	for _, statement := range []string{
		"UPDATE entries SET body = 'x'", "DELETE FROM entries", "TRUNCATE entries", "INSERT INTO keys VALUES ('k', '', 'admin', 0, '', false)", "UPDATE grants SET limits = '{}'", "UPDATE meters SET spent = 0", "DELETE FROM books",
		"UPDATE holdouts SET public = ''", "DROP TABLE notes", "ALTER TABLE entries DISABLE TRIGGER ALL", "CREATE TABLE mine ()", "DROP FUNCTION record", "SELECT refuse()", "SET session_replication_role = replica",
		// By the functions.
		"SELECT record(1, 1, 0, NULL, '{questions}', '{0}', '{2}', '{2}', '{answer}', '{0}', '{q}', '{x}', '{p}', '{\"{\\\"questions\\\":-1}\"}', '{\"{\\\"questions\\\":0}\"}', '{x}', ARRAY[sha256('x')], '{\"\"}', '{}', '{}', '{}', '{}', '{}', 0)",
		"SELECT record(1, 1, 0, NULL, '{}', '{}', '{2}', '{2}', '{answer}', '{0}', '{q}', '{x}', '{p}', '{\"{\\\"questions\\\":1}\"}', '{\"{\\\"questions\\\":2}\"}', '{x}', ARRAY[sha256('x')], '{\"\"}', '{}', '{}', '{}', '{}', '{}', 0)",
		"SELECT record(1, 1, 0, NULL, '{questions}', '{2}', '{2}', '{3}', '{answer}', '{0}', '{q}', '{x}', '{p}', '{\"{\\\"questions\\\":1}\"}', '{\"{\\\"questions\\\":2}\"}', '{x}', ARRAY[sha256('x')], '{\"\"}', '{}', '{}', '{}', '{}', '{}', 0)",
	} {
		if err := l.Try(pgtest.Servers, statement); !denied(err) {
			t.Errorf("a server's role can do: %s: %v", statement, err)
		}
	}
	if err := l.Try(pgtest.Servers, "SELECT count(*) FROM entries"); err != nil {
		t.Errorf("a server's role cannot read: %v", err)
	}
	err := opened.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		_, err := tx.Release(ledger.Release{Query: "sha256:r", Canonical: []byte(`{"epsilon":1,"release_epsilon":3}`), Principal: "p", Core: []byte(`{"released":true}`)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"", `{"spent":1,"limit":3000000,"made":1}`, `{"spent":1000000,"limit":9000000,"made":1}`} {
		statement := "SELECT record_released(1, 2, 0, NULL, '{questions}', '{1}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 0, '" + account + "')"
		if err := l.Try(pgtest.Servers, statement); !denied(err) {
			t.Errorf("a server's role gives epsilon back: %q: %v", account, err)
		}
	}
	// The second belt holds for the owner, too.
	for _, statement := range []string{"UPDATE entries SET body = 'x'", "DELETE FROM entries", "TRUNCATE entries CASCADE", "UPDATE meters SET spent = 0", "DELETE FROM meters", "UPDATE books SET seq = 0", "DELETE FROM books", "UPDATE books SET released = ''", `UPDATE books SET released = '{"spent":1,"limit":3000000,"made":1}'`, `UPDATE books SET released = '{"spent":1000000,"limit":9000000,"made":1}'`, "DELETE FROM keys", "DELETE FROM grants", "UPDATE grants SET limits = '{\"questions\":99}'", "UPDATE grants SET revoked = false",
		"UPDATE holdouts SET public = ''", "DELETE FROM holdouts", "INSERT INTO meters VALUES (1, 'more', 5, 0)"} {
		if err := l.Try("keeper", statement); !denied(err) {
			t.Errorf("the owner can do: %s: %v", statement, err)
		}
	}
	if r := verify(t, l)["ho_1"]; r.Spent["questions"] != 1 || r.Entries != 3 || r.Epsilon != 1 {
		t.Errorf("after all that: %+v", r)
	}
}

// denied reports whether the database denied a right, or its second belt refused.
func denied(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "42501" || said.Code == "HD002")
}

// TestPrepareTogether: several prepare one ledger at once, and again.
func TestPrepareTogether(t *testing.T) {
	l := pgtest.Ledger{Cluster: pgtest.Shared(t), Schema: "together"}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := postgres.Prepare(t.Context(), l.Owner(), pgtest.Servers); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := postgres.Prepare(t.Context(), l.Owner(), "nobody_there"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("for a role that is not there: %v", err)
	}
	// Two servers begin the ledger together: both, if they have one key; one, if not.
	var opened atomic.Int64
	for i := range 4 {
		wg.Go(func() {
			other, err := postgres.Open(t.Context(), l.Address(), ledger.Options{Key: [32]byte{byte(1 + i%2)}})
			if err == nil {
				opened.Add(1)
				other.Close()
			} else if !errors.Is(err, ledger.ErrWrongKey) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if opened.Load() != 2 {
		t.Errorf("%d of 4 servers with two keys have the ledger, want the 2 with the first one's", opened.Load())
	}
}

// TestTerms: of two servers one has a holdout at a time, in the order in which they came; the number says whether the other one had it since; and an update of a term that is over records nothing.
func TestTerms(t *testing.T) {
	l := pgtest.Shared(t).New(t)
	a, b := open(t, l.Address()), open(t, l.Address())
	create(t, a, "ho_1", 10)
	first, release, err := a.Term(t.Context(), "ho_1")
	if err != nil {
		t.Fatal(err)
	}
	release()
	again, release, err := a.Term(t.Context(), "ho_1")
	if err != nil || again != first {
		t.Fatalf("the term is %d, was %d, and nobody else had it: %v", again, first, err)
	}
	defer release()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, release, err := b.Term(short, "ho_1"); err == nil {
		release()
		t.Fatal("two servers have the holdout")
	} else if !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatal(err)
	}
	type got struct {
		number  int64
		release func()
		err     error
	}
	theirs := make(chan got, 1)
	go func() {
		number, release, err := b.Term(t.Context(), "ho_1")
		theirs <- got{number, release, err}
	}()
	l.Await(t, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)")
	update := func(term int64) error {
		return a.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			if tx.Term() != term {
				return ledger.ErrTerm
			}
			_, err := tx.Append(debit(fmt.Sprint("of term ", term, tx.Spent())))
			return err
		})
	}
	if err := update(first); err != nil {
		t.Error(err)
	}
	release()
	their := <-theirs
	if their.err == nil {
		defer their.release()
	}
	if their.err != nil || their.number <= first {
		t.Fatalf("the next term is %d, the one before was %d: %v", their.number, first, their.err)
	}
	if err := update(first); !errors.Is(err, ledger.ErrTerm) {
		t.Errorf("an update of a term that is over: %v", err)
	}
	their.release()
	third, release, err := a.Term(t.Context(), "ho_1")
	if err == nil {
		defer release()
	}
	if err != nil || third <= their.number {
		t.Fatalf("the third term is %d, the second was %d: %v", third, their.number, err)
	}
	if err := update(third); err != nil {
		t.Error(err)
	}
	release()
	if _, _, err := a.Term(t.Context(), "ho_9"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a term of nothing: %v", err)
	}
	if r := verify(t, l)["ho_1"]; r.Spent["questions"] != 2 {
		t.Errorf("%+v", r)
	}
	for id, want := range map[string]bool{"ho_1": false, "ho_9": false} {
		if deleted, err := b.Deleted(t.Context(), id); deleted != want || err != nil {
			t.Errorf("%s is deleted: %v %v", id, deleted, err)
		}
	}
	if err := a.DeleteHoldout(t.Context(), "ho_1", ""); err != nil {
		t.Fatal(err)
	}
	if deleted, err := b.Deleted(t.Context(), "ho_1"); !deleted || err != nil {
		t.Errorf("a deleted holdout is not: %v", err)
	}
}

// TestTermEndsWithItsServer: a server that loses the way to the database has its terms no more, and what it read under one it cannot record.
func TestTermEndsWithItsServer(t *testing.T) {
	c := pgtest.Shared(t)
	l := c.New(t)
	way := pgtest.NewProxy(t, c)
	a, b := open(t, l.Through(way)), open(t, l.Address())
	create(t, a, "ho_1", 10)
	mine, release, err := a.Term(t.Context(), "ho_1")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	way.Cut()
	theirs, give, err := b.Term(await.Context(t), "ho_1")
	if err == nil {
		defer give()
	}
	if err != nil || theirs <= mine {
		t.Fatalf("the term after a cut is %d, was %d: %v", theirs, mine, err)
	}
	give()
	err = a.Update(await.Context(t), "ho_1", func(tx *ledger.Tx) error {
		if tx.Term() != mine {
			return ledger.ErrTerm
		}
		_, err := tx.Append(debit("late"))
		return err
	})
	if !errors.Is(err, ledger.ErrTerm) && !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("an update under a term that was lost: %v", err)
	}
	if r := verify(t, l)["ho_1"]; r.Spent["questions"] != 0 {
		t.Errorf("it was recorded: %+v", r)
	}
}

// TestFiles: while one server adds files none sweeps, and while one sweeps none adds.
func TestFiles(t *testing.T) {
	l := pgtest.Shared(t).New(t)
	a, b := open(t, l.Address()), open(t, l.Address())
	still, added, err := a.AddFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer added()
	if _, more, err := b.AddFiles(t.Context()); err != nil {
		t.Fatal(err)
	} else {
		more()
	}
	release, ok, err := b.SweepFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if release(); ok {
		t.Error("swept while another server adds files")
	}
	if err := still(t.Context()); err != nil {
		t.Error(err)
	}
	added()
	var sweep func()
	await.Until(t, "files can be swept", func() (ok bool) {
		sweep, ok, err = b.SweepFiles(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			sweep()
		}
		return ok
	})
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, added, err := a.AddFiles(short); err == nil {
		added()
		t.Error("files are added while another server sweeps")
	} else if !errors.Is(err, ledger.ErrUnavailable) {
		t.Error(err)
	}
	sweep()
}

// TestCutConnections cuts the way to the database at each place of an update's conversation, in either direction. Whatever came through: asking again gives one answer at one price, and the same at another server.
func TestCutConnections(t *testing.T) {
	c := pgtest.Shared(t)
	l := c.New(t)
	way := pgtest.NewProxy(t, c)
	a, b := open(t, l.Through(way)), open(t, l.Address())
	create(t, a, "ho_1", 1000)
	if _, _, err := answer(t.Context(), a, "ho_1", "before"); err != nil { // connections and statements are there
		t.Fatal(err)
	}
	asked, unsure, durable := 1, 0, 0
	for _, limit := range []*atomic.Int64{&way.UpTo, &way.DownTo} {
		for at := int64(0); ; at += 61 {
			name := fmt.Sprint("question ", asked)
			asked++
			cuts := way.Cuts.Load()
			limit.Store(at)
			body, _, err := answer(await.Context(t), a, "ho_1", name)
			happened := way.Cuts.Load() > cuts
			limit.Store(-1)
			if err != nil {
				if !errors.Is(err, ledger.ErrUnavailable) {
					t.Fatalf("cut after %d bytes: %v", at, err)
				}
				unsure++
			}
			theirs, paid, err := answer(await.Context(t), b, "ho_1", name)
			if err != nil || body != nil && paid {
				t.Fatalf("cut after %d bytes: the other server: paid %v, %v", at, paid, err)
			}
			if !paid {
				durable++
			}
			await.Until(t, "the cut server can read and commit", func() bool { return a.Ready(t.Context()) == nil })
			again, paid, err := answer(await.Context(t), a, "ho_1", name)
			if err != nil || paid || !bytes.Equal(again, theirs) || body != nil && !bytes.Equal(body, theirs) {
				t.Fatalf("cut after %d bytes: %s, then %s, and %s at the other server: paid again %v, %v", at, body, again, theirs, paid, err)
			}
			if !happened {
				break
			}
		}
	}
	if unsure < 10 || durable < 2 {
		t.Errorf("%d of %d questions were not answered at once, %d were durable: the cuts come in few places", unsure, asked, durable)
	}
	if r := verify(t, l)["ho_1"]; r.Spent["questions"] != int64(asked) || r.Answers != int64(asked) {
		t.Errorf("%d questions were asked: %+v", asked, r)
	}
	t.Logf("%d questions, %d not answered at once, %d durable by then", asked, unsure, durable)
}

// TestYoungLedger: before the database has statistics of its tables, an answer reads a few entries, however many its holdout has. Statements are planned when the tables are empty.
func TestYoungLedger(t *testing.T) {
	const answers, most = 400, 10 // for an answer that is given, looked for and replayed; half of them all is what a wrong index reads
	l := pgtest.Shared(t).New(t)
	l.Exec(t, false, "ALTER TABLE entries SET (autovacuum_enabled = false)")
	a := open(t, l.Address())
	create(t, a, "ho_1", answers)
	for i := range answers {
		if _, paid, err := answer(t.Context(), a, "ho_1", fmt.Sprint("question ", i)); err != nil || !paid {
			t.Fatal(paid, err)
		}
		for _, name := range []string{fmt.Sprint("question ", i), "nothing"} {
			if _, ok, err := a.Answer(t.Context(), "ho_1", debit(name).Query); err != nil || ok != (name != "nothing") {
				t.Fatal(ok, err)
			}
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	// A connection counts what it has read when it ends.
	l.Await(t, "SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = '"+pgtest.Servers+"'")
	read := fmt.Sprintf(`(SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '%s' AND relname = 'entries')
		+ (SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = '%[1]s' AND relname = 'entries')`, l.Schema)
	if !l.Holds(t, fmt.Sprintf("SELECT %s BETWEEN %d AND %d", read, answers, most*answers)) {
		t.Errorf("%d answers read fewer than %d entries, or more than %d for each", answers, answers, most)
	}
}

// TestDatabaseCrash ends the database's processes under load: nothing that was acknowledged is missing when it is back, and the servers go on by themselves.
func TestDatabaseCrash(t *testing.T) {
	c := pgtest.New(t)
	l := c.New(t)
	servers := []*postgres.Ledger{open(t, l.Address()), open(t, l.Address())}
	create(t, servers[0], "ho_1", 1<<40)
	var mu sync.Mutex
	told := map[string][]byte{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprint(i/2, " ", n) // each by two callers, of two servers
				body, _, err := answer(context.Background(), servers[i%2], "ho_1", name)
				if err != nil {
					if !errors.Is(err, ledger.ErrUnavailable) {
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
					n--
					continue
				}
				mu.Lock()
				if known, ok := told[name]; ok && !bytes.Equal(known, body) {
					t.Errorf("two answers: %s and %s", known, body)
				}
				told[name] = body
				mu.Unlock()
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(told)
	}
	for range 3 {
		before := count()
		await.Until(t, "questions are answered", func() bool { return count() > before+50 })
		c.Crash(t)
		c.Restart(t)
	}
	before := count()
	await.Until(t, "questions are answered", func() bool { return count() > before+50 })
	close(stop)
	wg.Wait()
	r := verify(t, l)["ho_1"]
	if r.Spent["questions"] != r.Answers || r.Answers < int64(len(told)) {
		t.Errorf("%d answers were told: %+v", len(told), r)
	}
	for name, body := range told {
		if recorded, ok, err := servers[0].Answer(t.Context(), "ho_1", debit(name).Query); err != nil || !ok || !bytes.Equal(recorded, body) {
			t.Fatalf("told %s, recorded %s: %v %v", body, recorded, ok, err)
		}
	}
	t.Logf("%d answers told, %d recorded", len(told), r.Answers)
}

// TestOlderDatabase: a database that lost what it had acknowledged is noticed by the server that saw it, and nothing is appended to the holdouts that it concerns.
func TestOlderDatabase(t *testing.T) {
	l := pgtest.Shared(t).New(t)
	opened := open(t, l.Address())
	for _, id := range []string{"ho_1", "ho_2"} {
		create(t, opened, id, 10)
		if _, _, err := answer(t.Context(), opened, id, "a"); err != nil {
			t.Fatal(err)
		}
	}
	l.Exec(t, true, "DELETE FROM "+l.Schema+".notes", "DELETE FROM "+l.Schema+".entries WHERE holdout = 1 AND seq = 1", "UPDATE "+l.Schema+".meters SET spent = 0 WHERE holdout = 1",
		"UPDATE "+l.Schema+".books b SET seq = 0, head = e.head, state = NULL FROM "+l.Schema+".entries e WHERE b.holdout = 1 AND e.holdout = 1 AND e.seq = 0")
	if _, _, err := answer(t.Context(), opened, "ho_1", "b"); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("an older database goes on: %v", err)
	}
	if h, err := opened.Holdout(t.Context(), "ho_1"); err != nil || !errors.Is(h.Damage, ledger.ErrCorrupt) {
		t.Errorf("the holdout is not damaged: %v %v", h.Damage, err)
	}
	if _, _, err := answer(t.Context(), opened, "ho_2", "b"); err != nil {
		t.Errorf("another holdout is concerned: %v", err)
	}
}
