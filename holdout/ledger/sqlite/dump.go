package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
)

// dumpKind is how a dump names this schema.
const dumpKind = "sqlite"

// Dump writes all rows of the ledger file at path as they were at one moment, and verifies them as Verify does. It reads only, needs no server key, and may run
// while a server uses the file. The log of a ledger in use grows until it has returned, so out must not be slower than a disk.
func Dump(ctx context.Context, path string, out io.Writer) ([]ledger.Report, error) {
	db, done, err := openForVerify(ctx, path)
	if err != nil {
		return nil, err
	}
	reports, err := dumpDatabase(ctx, db.DB, out)
	return reports, errors.Join(err, done())
}

func dumpDatabase(ctx context.Context, db *sql.DB, out io.Writer) ([]ledger.Report, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("ledger: dump: %w", err)
	}
	defer tx.Rollback() // nothing was written
	reports, err := verifyMoment(ctx, tx)
	if err != nil {
		return nil, err
	}
	var version int64
	if err := tx.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
		return nil, unreadable(err)
	}
	w, err := dump.NewWriter(out, dumpKind, version)
	if err != nil {
		return nil, err
	}
	tables, err := tablesOf(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if err := dumpTable(ctx, tx, w, t); err != nil {
			return nil, fmt.Errorf("ledger: dump: table %s: %w", t.Table, err)
		}
	}
	return reports, w.End()
}

// tablesOf are all tables of a ledger with their columns, but for what goose and SQLite keep of themselves.
func tablesOf(ctx context.Context, db querier) ([]dump.Table, error) {
	var tables []dump.Table
	type column struct{ table, name string }
	columns, err := readAll(ctx, db, func(row scanner) (c column, err error) { return c, row.Scan(&c.table, &c.name) },
		`SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND m.name <> 'goose_db_version' ORDER BY m.rowid, c.cid`)
	for _, c := range columns {
		if len(tables) == 0 || tables[len(tables)-1].Table != c.table {
			tables = append(tables, dump.Table{Table: c.table})
		}
		last := &tables[len(tables)-1]
		last.Columns = append(last.Columns, c.name)
	}
	return tables, err
}

func dumpTable(ctx context.Context, tx *sql.Tx, w *dump.Writer, t dump.Table) error {
	if err := w.Table(t); err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+strings.Join(t.Columns, ", ")+" FROM "+t.Table)
	if err != nil {
		return unreadable(err)
	}
	defer rows.Close()
	values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return unreadable(err)
		}
		if err := w.Row(values); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return unreadable(err)
	}
	return nil
}

// loadTransaction is how many bytes of rows are loaded in one transaction.
const loadTransaction = 16 << 20

// Load makes a ledger file at path, where there must be none, of a dump of this or of an older schema, and brings the schema up to date. Every holdout that is not
// deleted is one that was restored (ledger.Holdout.Restored). What the rows say is not believed: call Verify before the file gets the name of a ledger. A file that Load
// failed to make is to be removed, with path-wal and path-shm.
func Load(ctx context.Context, path string, d *dump.Reader) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ledger: load: %s is there already", path)
	}
	if err := create(path); err != nil {
		return err
	}
	db, err := openWriter(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(load(ctx, db, d), db.Close())
}

func load(ctx context.Context, db *sql.DB, d *dump.Reader) error {
	files, err := migrator(db)
	if err != nil {
		return err
	}
	version := schemaVersion
	if d.Header.Kind == dumpKind {
		version = schema(d.Header.Schema)
	}
	if version > schemaVersion || version < firstSchema {
		return &ledger.VersionError{What: "the ledger in the backup", Got: int64(version), Known: int64(schemaVersion)}
	}
	if _, err := files.UpTo(ctx, int64(version)); err != nil {
		return fmt.Errorf("ledger: load: %w", err)
	}
	l := loader{db: db, dump: d, left: map[string]map[string]bool{}}
	if err := l.run(ctx); err != nil {
		return err
	}
	if _, err := files.Up(ctx); err != nil {
		return fmt.Errorf("ledger: load: migrate: %w", err)
	}
	for _, text := range []string{
		"INSERT OR IGNORE INTO meta (name, value) SELECT 'restored ' || id, x'' FROM holdouts JOIN books ON holdout = number WHERE deleted = 0",
		// What was shown of a draft since the backup is not known, so it is a draft no more.
		"DELETE FROM meta WHERE name GLOB 'draft *'",
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("ledger: load: %w", err)
		}
	}
	return settle(ctx, db)
}

// loader puts the rows of a dump into the tables of an empty ledger.
type loader struct {
	db   *sql.DB
	dump *dump.Reader
	left map[string]map[string]bool // columns by table, of those that did not come yet

	tx     *sql.Tx
	insert *sql.Stmt
	size   int
}

func (l *loader) run(ctx context.Context) (err error) {
	tables, err := tablesOf(ctx, l.db)
	if err != nil {
		return err
	}
	for _, t := range tables {
		columns := map[string]bool{}
		for _, c := range t.Columns {
			columns[c] = true
		}
		l.left[t.Table] = columns
	}
	// The triggers are about what a server may write, row after row; a copy has its rows at once. Keys to other tables are compared at the end.
	triggers, err := readAll(ctx, l.db, func(row scanner) (s [2]string, err error) { return s, row.Scan(&s[0], &s[1]) }, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
	if err != nil {
		return err
	}
	if _, err := l.db.ExecContext(ctx, "PRAGMA foreign_keys = 0"); err != nil {
		return err
	}
	for _, t := range triggers {
		if _, err := l.db.ExecContext(ctx, "DROP TRIGGER "+t[0]); err != nil {
			return err
		}
	}
	if err := l.rows(ctx); err != nil {
		return errors.Join(err, l.end(false))
	}
	if err := l.end(true); err != nil {
		return err
	}
	for _, t := range triggers {
		if _, err := l.db.ExecContext(ctx, t[1]); err != nil {
			return err
		}
	}
	var broken int64
	if err := l.db.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&broken); err != nil {
		return err
	}
	if broken > 0 {
		return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("%d rows of the backup belong to rows that are not in it", broken)}
	}
	_, err = l.db.ExecContext(ctx, "PRAGMA foreign_keys = 1")
	return err
}

// rows puts in all rows.
func (l *loader) rows(ctx context.Context) error {
	for {
		t, values, err := l.dump.Next()
		switch {
		case errors.Is(err, io.EOF):
			for table := range l.left {
				if l.dump.Header.Kind == dumpKind {
					return &ledger.CorruptError{Seq: -1, Reason: "the backup does not have the table " + table}
				}
			}
			return nil
		case err != nil:
			return err
		case values == nil:
			err = l.begin(ctx, t)
		default:
			err = l.row(ctx, values)
		}
		if err != nil {
			return err
		}
	}
}

// begin prepares for the rows of a table. What the schema itself puts in is in the dump, too.
func (l *loader) begin(ctx context.Context, t *dump.Table) error {
	columns, ok := l.left[t.Table]
	if !ok {
		return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the backup has a table %s that this program does not know, or has it twice", t.Table)}
	}
	delete(l.left, t.Table)
	for _, c := range t.Columns {
		if !columns[c] {
			return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the backup has a column %s.%s that this program does not know", t.Table, c)}
		}
	}
	if len(t.Columns) != len(columns) && l.dump.Header.Kind == dumpKind {
		return &ledger.CorruptError{Seq: -1, Reason: "the backup does not have all columns of the table " + t.Table}
	}
	if err := l.end(true); err != nil {
		return err
	}
	if _, err := l.db.ExecContext(ctx, "DELETE FROM "+t.Table); err != nil {
		return err
	}
	var err error
	l.insert, err = l.db.PrepareContext(ctx, "INSERT INTO "+t.Table+" ("+strings.Join(t.Columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(t.Columns)-1)+")")
	return err
}

// row puts in a row.
func (l *loader) row(ctx context.Context, values []any) (err error) {
	if l.tx == nil {
		if l.tx, err = l.db.BeginTx(ctx, nil); err != nil {
			return err
		}
	}
	for _, v := range values {
		switch x := v.(type) {
		case string:
			l.size += len(x)
		case []byte:
			l.size += len(x)
		}
		l.size += 8
	}
	if _, err := l.tx.StmtContext(ctx, l.insert).ExecContext(ctx, values...); err != nil {
		if noRoom(err) {
			return fmt.Errorf("ledger: load: %w", err)
		}
		return &ledger.CorruptError{Seq: -1, Reason: "a row of the backup is not one of its table", Err: err}
	}
	if l.size < loadTransaction {
		return nil
	}
	l.size = 0
	tx := l.tx
	l.tx = nil
	return tx.Commit()
}

// end ends the rows of a table.
func (l *loader) end(keep bool) (err error) {
	if l.tx != nil {
		if keep {
			err = l.tx.Commit()
		} else {
			err = l.tx.Rollback()
		}
		l.tx = nil
	}
	if l.insert != nil {
		err = errors.Join(err, l.insert.Close())
		l.insert = nil
	}
	return err
}
