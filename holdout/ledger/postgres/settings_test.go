//go:build postgres

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// TestRefusesWhatWouldNotLast: a server on which a debit would not be durable is not opened, and the message says what to set. A running ledger notices a
// server that was made so by a reload, and goes on when it is mended.
func TestRefusesWhatWouldNotLast(t *testing.T) {
	c := pgtest.NewCluster(t)
	db := c.NewDatabase(t)
	newLedger(t, db, 100)
	l := open(t, db.Service)
	// The server's configuration is read again when a new connection says so.
	set := func(name, value string) {
		t.Helper()
		if err := c.Exec(fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, value), "SELECT pg_reload_conf()"); err != nil {
			t.Fatal(err)
		}
		for {
			if err := db.Exec(fmt.Sprintf("DO $$ BEGIN ASSERT current_setting('%s') = '%s'; END $$", name, value)); err == nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	refused := func(url, says string) {
		t.Helper()
		other, err := postgres.Open(t.Context(), url, ledger.Options{Key: testKey})
		if err == nil {
			other.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("opened, or refused without a word of %q: %v", says, err)
		}
	}
	if _, _, err := ask(t.Context(), l, "ho_1", named("first", 1)); err != nil { // it has a connection now
		t.Fatal(err)
	}
	for _, name := range []string{"fsync", "full_page_writes"} {
		set(name, "off")
		refused(db.Service, name+" = off")
		refused(db.Owner, name+" = off")
		if _, _, err := ask(t.Context(), l, "ho_1", named(name, 1)); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s was turned off under a running ledger: %v", name, err)
		}
		set(name, "on")
		for l.Ready(t.Context()) != nil {
			time.Sleep(10 * time.Millisecond)
		}
		if _, _, err := ask(t.Context(), l, "ho_1", named(name, 1)); err != nil {
			t.Error(err)
		}
	}
	for _, value := range []string{"off", "local", "remote_write"} {
		if err := c.Exec("ALTER ROLE service SET synchronous_commit = " + value); err != nil {
			t.Fatal(err)
		}
		refused(db.Service, "synchronous_commit = "+value)
	}
	if err := c.Exec("ALTER ROLE service RESET synchronous_commit"); err != nil {
		t.Fatal(err)
	}
	// A connection that is open already keeps its own setting.
	if _, _, err := ask(t.Context(), l, "ho_1", named("a", 1)); err != nil {
		t.Fatal(err)
	}
	set("synchronous_commit", "off")
	if _, _, err := ask(t.Context(), l, "ho_1", named("b", 1)); err != nil {
		t.Errorf("a reload weakened, or broke, a connection that was open: %v", err)
	}
	set("synchronous_commit", "on")
	if err := c.Exec("CREATE DATABASE latin OWNER owner ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	refused(c.Database("latin").Owner, "LATIN1")
	several := strings.Replace(db.Service, "@127.0.0.1", "@127.0.0.1:1,127.0.0.1", 1)
	refused(several, "synchronous_standby_names")
	refused("postgres://%zz", "URL")
	h, err := l.Holdout(t.Context(), "ho_1")
	if err != nil || h.Spent["questions"] != 5 {
		t.Errorf("%v spent, want 5: %v", h.Spent, err)
	}
}

// recorded are the tables whose rows say what was answered, and what it cost. Of books, meters and the like a row changes; it changes by functions alone.
var recorded = []string{"entries", "notes", "payers"}

// TestServiceRole: the role that serves can read and execute, and cannot write, whatever it says. The owner can write, and triggers keep even it from changing
// what is recorded.
func TestServiceRole(t *testing.T) {
	db := pgtest.NewDatabase(t)
	newLedger(t, db, 100)
	l := open(t, db.Service)
	d := named("a", 1)
	d.Note = "a note"
	if _, _, err := ask(t.Context(), l, "ho_1", d); err != nil {
		t.Fatal(err)
	}
	code := func(url, statement string) string {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), statement)
		var e *pgconn.PgError
		if errors.As(err, &e) {
			return e.Code
		}
		if err != nil {
			return err.Error()
		}
		return "none"
	}
	const denied, raised = "42501", "P0001"
	for _, table := range tables {
		for _, statement := range []string{"INSERT INTO holdoutd.%s DEFAULT VALUES", "DELETE FROM holdoutd.%s", "TRUNCATE holdoutd.%s CASCADE", "SELECT 1 FROM holdoutd.%s FOR UPDATE",
			"DROP TABLE holdoutd.%s", "ALTER TABLE holdoutd.%s DISABLE TRIGGER ALL"} {
			if got := code(db.Service, fmt.Sprintf(statement, table)); got != denied {
				t.Errorf("the service role: "+statement+": %s, want %s", table, got, denied)
			}
		}
		if got := code(db.Service, "SELECT count(*) FROM holdoutd."+table); got != "none" {
			t.Errorf("the service role cannot read %s: %s", table, got)
		}
	}
	for _, statement := range []string{"UPDATE holdoutd.entries SET body = ''", "UPDATE holdoutd.meters SET spent = 0", "UPDATE holdoutd.books SET seq = 0", "UPDATE holdoutd.keys SET revoked = false",
		"SELECT holdoutd.admit('service')", "SELECT holdoutd.move_grants(1, '{\"made\":[],\"begun\":[],\"moved\":[],\"ended\":[],\"held\":[{\"name\":\"questions\",\"held\":0}],\"changes\":1}')",
		"CREATE FUNCTION holdoutd.x() RETURNS void LANGUAGE sql AS ''", "CREATE TABLE holdoutd.x ()"} {
		if got := code(db.Service, statement); got != denied {
			t.Errorf("the service role: %s: %s, want %s", statement, got, denied)
		}
	}
	for _, table := range recorded {
		if table == "payers" {
			continue // it has no rows here, so that a trigger of rows has nothing to say
		}
		column := map[string]string{"entries": "body = ''", "notes": "note = 'x'"}[table]
		for _, statement := range []string{"UPDATE holdoutd." + table + " SET " + column, "DELETE FROM holdoutd." + table, "TRUNCATE holdoutd." + table + " CASCADE"} {
			if got := code(db.Owner, statement); got != raised {
				t.Errorf("the owner: %s: %s, want %s", statement, got, raised)
			}
		}
	}
	for _, statement := range []string{"UPDATE holdoutd.meters SET spent = 0", "UPDATE holdoutd.meters SET cap = cap + 1", "DELETE FROM holdoutd.meters", "DELETE FROM holdoutd.books",
		"UPDATE holdoutd.books SET seq = 0", "UPDATE holdoutd.books SET head = decode(repeat('00', 32), 'hex')", "UPDATE holdoutd.holdouts SET public = '{}'::bytea || ' '",
		"INSERT INTO holdoutd.meters (holdout, name, cap, spent) SELECT number, 'more', 5, 0 FROM holdoutd.holdouts",
		"INSERT INTO holdoutd.entries SELECT holdout, 7, version, kind, time, 'q', canonical, principal, debit, spent, body, head FROM holdoutd.entries WHERE seq = 1", "TRUNCATE holdoutd.payers"} {
		if got := code(db.Owner, statement); got != raised {
			t.Errorf("the owner: %s: %s, want %s", statement, got, raised)
		}
	}
	if got := code(db.Owner, "UPDATE holdoutd.meters SET spent = cap + 1"); got != "23514" && got != raised {
		t.Errorf("the owner overspends: %s", got)
	}
	if _, err := postgres.Verify(t.Context(), db.Service); err != nil {
		t.Error(err)
	}
}

// TestMigrateTogether lets servers start at the same time on an empty database: one makes the ledger, and all serve it. One with another server key is refused,
// and so is a schema of a newer program, a service role before it was admitted, and a role that may make no ledger.
func TestMigrateTogether(t *testing.T) {
	db := pgtest.NewDatabase(t)
	if _, err := postgres.Open(t.Context(), db.Service, ledger.Options{Key: testKey}); err == nil || !strings.Contains(err.Error(), "owner") {
		t.Errorf("a role that may make no ledger: %v", err)
	}
	var all sync.WaitGroup
	ledgers := make([]*postgres.Ledger, 4)
	for i := range ledgers {
		all.Go(func() {
			var err error
			if ledgers[i], err = postgres.Open(t.Context(), db.Owner, ledger.Options{Key: testKey}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, l := range ledgers {
		if l == nil {
			t.Fatal("not open")
		}
		if err := l.CreateHoldout(t.Context(), testHoldout(fmt.Sprint("ho_", i), 5), nil); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := postgres.Open(t.Context(), db.Owner, ledger.Options{Key: [32]byte{9}}); !errors.Is(err, ledger.ErrWrongKey) {
		t.Errorf("another key: %v", err)
	}
	if _, err := postgres.Open(t.Context(), db.Service, ledger.Options{Key: testKey}); err == nil {
		t.Error("the service role serves before it was admitted")
	}
	if err := postgres.Migrate(t.Context(), db.Owner, "service"); err != nil {
		t.Fatal(err)
	}
	if all, err := open(t, db.Service).Holdouts(t.Context()); err != nil || len(all) != len(ledgers) {
		t.Errorf("%d holdouts: %v", len(all), err)
	}
	if err := db.Exec("INSERT INTO holdoutd.goose_db_version (version_id, is_applied) VALUES (999, true)"); err != nil {
		t.Fatal(err)
	}
	var version *ledger.VersionError
	for _, url := range []string{db.Owner, db.Service} {
		if _, err := postgres.Open(t.Context(), url, ledger.Options{Key: testKey}); !errors.As(err, &version) {
			t.Errorf("a ledger of a newer program: %v", err)
		}
		if _, err := postgres.Verify(t.Context(), url); !errors.As(err, &version) {
			t.Errorf("a ledger of a newer program is verified: %v", err)
		}
	}
}
