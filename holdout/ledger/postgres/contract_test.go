//go:build postgres

package postgres_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
	"github.com/holdoutd/holdoutd/holdout/ledger/ledgertest"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

func TestMain(m *testing.M) {
	runChild()
	pgtest.Main(m)
}

// TestContract holds ledgers in databases to the contract, three of them open at once where callers are many. They are open as the service role, which
// may do no more than the ledger needs.
func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t testing.TB) ledgertest.Store { return &database{Database: pgtest.NewDatabase(t)} })
}

// database is a store in a database.
type database struct {
	*pgtest.Database
	migrated sync.Once
}

func (d *database) migrate(ctx context.Context) (err error) {
	d.migrated.Do(func() { err = postgres.Migrate(ctx, d.Owner, "service") })
	return err
}

func (d *database) Open(ctx context.Context, o ledger.Options) (ledger.Ledger, error) {
	if !o.MustExist && !o.ReplayOnly {
		if err := d.migrate(ctx); err != nil {
			return nil, err
		}
	}
	url := d.Service
	if o.MustExist { // an empty database has admitted nobody
		url = d.Owner
	}
	l, err := postgres.Open(ctx, url, o)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (d *database) Verify(ctx context.Context) ([]ledger.Report, error) {
	return postgres.Verify(ctx, d.Service)
}

func (d *database) Dump(ctx context.Context, out io.Writer) ([]ledger.Report, error) {
	return postgres.Dump(ctx, d.Service, out)
}

// Load loads a dump as the owner of the database, and admits the role that then serves it.
func (d *database) Load(ctx context.Context, rows *dump.Reader) error {
	l, err := postgres.Load(ctx, d.Owner, rows)
	if err == nil {
		_, err = l.Verify(ctx)
		if err == nil {
			err = l.Commit(ctx)
		}
		l.Discard()
	}
	return errors.Join(err, d.migrate(ctx))
}

func (d *database) Servers() int { return 3 }

// Crash copies what is committed, which is what a process finds that comes after those that were killed. That the server itself loses nothing of it in a crash is for
// TestPostmasterStops and its neighbours.
func (d *database) Crash(t testing.TB) ledgertest.Store {
	t.Helper()
	copied := &database{Database: pgtest.NewDatabase(t)}
	if err := copied.migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.copyTo(t, copied)
	return copied
}

// tables are all of the schema, in an order in which each comes after those that it refers to.
var tables = []string{"meta", "holdouts", "books", "meters", "entries", "notes", "idempotency", "ended_sessions", "keys", "grants", "grant_meters", "granted", "granting", "payers"}

// copyTo copies the rows of one moment, without triggers.
func (d *database) copyTo(t testing.TB, to *database) {
	t.Helper()
	ctx := context.Background()
	src, err := pgx.Connect(ctx, d.Super)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close(ctx)
	dst, err := pgx.Connect(ctx, to.Super)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close(ctx)
	for _, s := range []string{"SET session_replication_role = replica", "TRUNCATE holdoutd." + strings.Join(tables, ", holdoutd.")} {
		if _, err := dst.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := src.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	for _, table := range tables {
		var rows strings.Builder
		if _, err := src.PgConn().CopyTo(ctx, &rows, "COPY holdoutd."+table+" TO STDOUT"); err != nil {
			t.Fatal(err)
		}
		if _, err := dst.PgConn().CopyFrom(ctx, strings.NewReader(rows.String()), "COPY holdoutd."+table+" FROM STDIN"); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"holdouts", "grants"} {
		if _, err := dst.Exec(ctx, "SELECT setval(pg_get_serial_sequence('holdoutd."+table+"', 'number'), (SELECT coalesce(max(number), 0) + 1 FROM holdoutd."+table+"))"); err != nil {
			t.Fatal(err)
		}
	}
}
