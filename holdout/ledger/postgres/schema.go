package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the number of the newest migration, firstSchema that of the first.
const schemaVersion, firstSchema = 1, 1

// migrationLock is what a process holds while it migrates: one at a time in a database.
const migrationLock = 5207667809441

// Migrate brings the database's schema up to date, as the role of the URL, which owns it or may make it: one process at a time, and the others
// wait. With a service role, that role may serve the ledger from then on, and do nothing else in it (docs/format/ledger.md says
// what). It fails with a *ledger.VersionError if the ledger is of a newer program.
func Migrate(ctx context.Context, url, service string) error {
	conn, err := connectOwner(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // which releases the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return fmt.Errorf("ledger: wait for another process to migrate: %w", err)
	}
	if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS holdoutd"); err != nil {
		return fmt.Errorf("ledger: make the schema: %w", err)
	}
	if err := migrate(ctx, conn.Config()); err != nil {
		return err
	}
	if service != "" {
		if _, err := conn.Exec(ctx, "SELECT holdoutd.admit($1)", service); err != nil {
			return fmt.Errorf("ledger: admit the role %q: %w", service, err)
		}
	}
	return nil
}

// connectOwner connects to a server that can keep a ledger.
func connectOwner(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: the ledger's URL: %w", ledger.ErrInvalid, err)
	}
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		said, err := readSettings(ctx, conn)
		if err == nil && said.standby {
			err = errStandby
		}
		return errors.Join(err, said.check(false))
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return conn, nil
}

func migrate(ctx context.Context, config *pgx.ConnConfig) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName("holdoutd.goose_db_version"))
	if err != nil {
		return fmt.Errorf("ledger: migrations: %w", err)
	}
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("ledger: schema version: %w", err)
	}
	if version > schemaVersion {
		return &ledger.VersionError{What: "the ledger's database", Got: version, Known: schemaVersion}
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("ledger: migrate: %w", err)
	}
	return nil
}

// rower is a pool, a connection or a transaction.
type rower interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schemaOf is the version of the schema that is there, 0 where there is none, and whether our role may migrate it.
func schemaOf(ctx context.Context, db rower) (version int64, ours bool, err error) {
	var there bool
	err = db.QueryRow(ctx, `SELECT to_regclass('holdoutd.goose_db_version') IS NOT NULL,
		coalesce((SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'holdoutd'), has_database_privilege(current_database(), 'CREATE'))`).Scan(&there, &ours)
	if err != nil || !there {
		return 0, ours, err
	}
	err = db.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM holdoutd.goose_db_version WHERE is_applied").Scan(&version)
	return version, ours, err
}

// checkVersion refuses a schema that this program does not know.
func checkVersion(version int64) error {
	if version > schemaVersion || version < firstSchema {
		return &ledger.VersionError{What: "the ledger's database", Got: version, Known: schemaVersion}
	}
	return nil
}
