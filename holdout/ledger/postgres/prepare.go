package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the number of the newest migration.
const schemaVersion = 7

// tables are all of the ledger's, and functions are what servers may execute.
var (
	tables    = []string{"meta", "holdouts", "books", "meters", "entries", "notes", "idempotency", "keys", "grants"}
	functions = []string{"record", "record_released", "use_keys", "serialize", "create_holdout", "end_holdout", "settle_holdout", "begin_ledger", "probe", "create_key", "bind_key", "make_key", "revoke_key", "create_grant", "revoke_grant", "take", "release", "add_files", "sweep_files"}
)

// Prepare makes the tables of a ledger, or brings them up to date, and gives a role what a server needs, and nothing more. It is for the owner of the database, whose
// address it takes: servers have the role's, and Open refuses them any other. The role must be there. Several may prepare at once, and again: one after the other does what is left to do. It fails with a
// *ledger.VersionError where the tables are a newer program's.
func Prepare(ctx context.Context, dsn, role string) error {
	a, err := parse(dsn)
	if err != nil {
		return err
	}
	if role == a.config.User {
		return fmt.Errorf("%w: the role of the servers must be another than the owner's, %s", ledger.ErrInvalid, role)
	}
	a.config.ValidateConnect = onPrimary
	conn, err := pgx.ConnectConfig(ctx, a.config)
	if err != nil {
		return fmt.Errorf("ledger: connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // and with it the lock
	if err := checkDurable(ctx, conn); err != nil {
		return err
	}
	var known bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1)", role).Scan(&known); err != nil {
		return fmt.Errorf("ledger: prepare: %w", err)
	}
	if !known {
		return fmt.Errorf("%w: there is no role %s; make one (CREATE ROLE %s LOGIN PASSWORD '…')", ledger.ErrNotFound, role, pgx.Identifier{role}.Sanitize())
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended('holdoutd ' || $1 || ' prepare', 0))", a.schema); err != nil {
		return fmt.Errorf("ledger: prepare: %w", err)
	}
	if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{a.schema}.Sanitize()); err != nil {
		return fmt.Errorf("ledger: prepare: %w", err)
	}
	if err := a.migrate(ctx); err != nil {
		return err
	}
	return a.grant(ctx, conn, role)
}

// migrate brings the tables to schemaVersion.
func (a address) migrate(ctx context.Context) (err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*a.config)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("ledger: migrations: %w", err)
	}
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("ledger: schema version: %w", err)
	}
	if version > schemaVersion {
		return unknownSchema(version)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("ledger: migrate: %w", err)
	}
	return nil
}

// grant gives a role what a server needs. Everyone may execute a new function by default; of these nobody but the role may.
func (a address) grant(ctx context.Context, conn *pgx.Conn, role string) error {
	schema, to := pgx.Identifier{a.schema}.Sanitize(), pgx.Identifier{role}.Sanitize()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("ledger: grant: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // does nothing after the commit
	statements := []string{
		"REVOKE ALL ON SCHEMA " + schema + " FROM PUBLIC",
		"REVOKE ALL ON ALL TABLES IN SCHEMA " + schema + " FROM PUBLIC, " + to,
		"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA " + schema + " FROM PUBLIC, " + to,
		"GRANT USAGE ON SCHEMA " + schema + " TO " + to,
		"GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO " + to,
	}
	for _, name := range functions {
		statements = append(statements, "GRANT EXECUTE ON FUNCTION "+schema+"."+name+" TO "+to)
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("ledger: grant: %s: %w", statement, err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("ledger: grant: %w", err)
	}
	return nil
}

func unknownSchema(version int64) error {
	return &ledger.VersionError{What: "the ledger's database", Got: version, Known: schemaVersion}
}

// rower is a connection, a pool or a transaction.
type rower interface {
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}

// checkVersion refuses tables that this program does not know. Where there are none, what is missing is said, with the command that makes them.
func (a address) checkVersion(ctx context.Context, db rower) error {
	var version sql.NullInt64
	err := db.QueryRow(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&version)
	switch c := code(err); {
	case c == codeNoTable || c == codeNoSchema || c == codeNoRights:
		return &notPreparedError{a.schema, a.config.User, err}
	case err != nil:
		return wrapRead(err)
	case version.Int64 < schemaVersion:
		return &notPreparedError{schema: a.schema, role: a.config.User}
	case version.Int64 > schemaVersion:
		return unknownSchema(version.Int64)
	}
	return nil
}

// notPreparedError says that the tables are not there, are an older program's, or are not the role's to read.
type notPreparedError struct {
	schema, role string
	err          error
}

func (e *notPreparedError) Error() string {
	return fmt.Sprintf("ledger: the schema %s has no tables of this version that the role %s may use; prepare them as the database's owner: holdoutd ledger prepare postgres://OWNER@… --role %s", e.schema, e.role, e.role)
}

// Unwrap returns what the database says, if anything.
func (e *notPreparedError) Unwrap() error { return e.err }

// checkRole refuses a role that could do more than append: it would make the tables' history a matter of trust in whoever knows its password.
func (a address) checkRole(ctx context.Context, db rower) error {
	var super, owns, writes bool
	err := db.QueryRow(ctx, `SELECT rolsuper OR rolbypassrls OR rolcreaterole OR pg_has_role(current_user, 'pg_write_all_data', 'MEMBER'),
		EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1 AND pg_has_role(nspowner, 'MEMBER'))
			OR EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1 AND pg_has_role(c.relowner, 'MEMBER'))
			OR has_schema_privilege($1, 'CREATE'),
		EXISTS (SELECT 1 FROM unnest($2::text[]) AS name WHERE has_table_privilege(quote_ident($1) || '.' || name, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER'))
		FROM pg_roles WHERE rolname = current_user`, a.schema, tables).Scan(&super, &owns, &writes)
	if err != nil {
		return wrapRead(err)
	}
	if super || owns || writes {
		return fmt.Errorf("ledger: the role %s may change or remove what the ledger has recorded; servers need one that may only append: prepare one as the database's owner: "+
			"holdoutd ledger prepare postgres://OWNER@… --role NAME", a.config.User)
	}
	return nil
}

// checkTables refuses tables that do not survive a crash, and such whose second belt was taken off.
func (a address) checkTables(ctx context.Context, db rower) error {
	var durable, guards int
	err := db.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1 AND relname = ANY ($2) AND relkind = 'r' AND relpersistence = 'p'),
		(SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1 AND NOT tgisinternal AND tgenabled IN ('O', 'A'))`,
		a.schema, tables).Scan(&durable, &guards)
	switch {
	case err != nil:
		return wrapRead(err)
	case durable != len(tables):
		return &unsafeError{fmt.Sprintf("has %d of the ledger's %d tables in the schema %s that survive a crash: were they made UNLOGGED?", durable, len(tables), a.schema)}
	case guards != triggers:
		return &unsafeError{fmt.Sprintf("has %d of the %d triggers in the schema %s that keep what is recorded from being changed; put them back (holdoutd ledger prepare does not)", guards, triggers, a.schema)}
	}
	return nil
}

// triggers are those of the newest schema.
const triggers = 14
