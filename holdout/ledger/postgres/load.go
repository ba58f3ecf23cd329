package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
)

// Loading is a ledger that was loaded and that nobody else sees yet.
type Loading struct {
	conn *pgx.Conn
	tx   pgx.Tx
}

// Load loads a dump, of this or of an older schema of a ledger in a file, into the database that a URL names, as the role that owns the schema or may make it. There must be nothing in the ledger that is there.
// Every holdout that is not deleted is one that was restored (ledger.Holdout.Restored). What the rows say is not believed: call Verify, and then Commit or Discard. Until Commit nothing is there but the empty
// tables, and servers cannot write to them.
func Load(ctx context.Context, url string, d *dump.Reader) (*Loading, error) {
	if h := d.Header; h.Kind != rowsKind || h.Schema > rowsSchema || h.Schema < firstRows {
		return nil, &ledger.VersionError{What: "the ledger in the backup", Got: h.Schema, Known: rowsSchema}
	}
	if err := Migrate(ctx, url, ""); err != nil {
		return nil, err
	}
	conn, err := connectOwner(ctx, url)
	if err != nil {
		return nil, err
	}
	l := &Loading{conn: conn}
	if l.tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}); err == nil {
		err = (&loader{tx: l.tx, dump: d}).run(ctx)
	}
	if err != nil {
		l.Discard()
		return nil, err
	}
	return l, nil
}

// Verify recomputes the chains and the books of what was loaded.
func (l *Loading) Verify(ctx context.Context) ([]ledger.Report, error) {
	return verifyMoment(ctx, l.tx)
}

// VerifySealed opens the sealed values of what was loaded, as the function of that name.
func (l *Loading) VerifySealed(ctx context.Context, key [32]byte) error {
	return verifySealed(ctx, l.tx, key)
}

// Commit makes what was loaded the ledger of the database.
func (l *Loading) Commit(ctx context.Context) error {
	defer l.Discard()
	if err := l.tx.Commit(ctx); err != nil {
		return fmt.Errorf("ledger: load: %w", err)
	}
	return nil
}

// Discard leaves the database without what was loaded. After Commit it does nothing.
func (l *Loading) Discard() { l.conn.Close(context.Background()) } // the server undoes what was not committed

// loader puts the rows of a dump into empty tables.
type loader struct {
	tx   pgx.Tx
	dump *dump.Reader

	// The line that was read last and belongs to nobody yet.
	head   *dump.Table
	values []any
	err    error
}

func (l *loader) run(ctx context.Context) error {
	names := []string{"ended_sessions"}
	for _, t := range tables {
		names = append(names, t.name)
	}
	// The triggers are about what a server may write, row after row; a copy has its rows at once. Keys to other tables are compared. To change a trigger locks the table, also before those who would write.
	if err := l.each(ctx, names, "ALTER TABLE holdoutd.%s DISABLE TRIGGER USER"); err != nil {
		return err
	}
	if err := knowsAll(ctx, l.tx); err != nil {
		return err
	}
	for _, name := range names {
		var some bool
		if err := l.tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM holdoutd."+name+")").Scan(&some); err != nil {
			return fmt.Errorf("ledger: load: %w", err)
		}
		if some {
			return fmt.Errorf("ledger: load: %w: the database has a ledger already, with rows in %s: a backup is loaded into an empty database", ledger.ErrExists, name)
		}
	}
	if err := l.rows(ctx); err != nil {
		return err
	}
	for _, name := range []string{"holdouts", "grants"} {
		if _, err := l.tx.Exec(ctx, "SELECT setval(pg_get_serial_sequence('holdoutd."+name+"', 'number'), greatest(max(number), 1)) FROM holdoutd."+name+" HAVING count(*) > 0"); err != nil {
			return fmt.Errorf("ledger: load: %w", err)
		}
	}
	return l.each(ctx, names, "ALTER TABLE holdoutd.%s ENABLE TRIGGER USER")
}

func (l *loader) each(ctx context.Context, names []string, statement string) error {
	for _, name := range names {
		if _, err := l.tx.Exec(ctx, fmt.Sprintf(statement, name)); err != nil {
			return fmt.Errorf("ledger: load: the role must own the ledger's tables: %w", err)
		}
	}
	return nil
}

// next reads a line.
func (l *loader) next() { l.head, l.values, l.err = l.dump.Next() }

// rows puts in all tables. They come in the order of tables, which is the one that ledgers of both kinds write.
func (l *loader) rows(ctx context.Context) error {
	l.next()
	for i := range tables {
		t := &tables[i]
		if t.since > l.dump.Header.Schema {
			continue
		}
		switch {
		case errors.Is(l.err, io.EOF):
			return &ledger.CorruptError{Seq: -1, Reason: "the backup does not have the table " + t.name}
		case l.err != nil:
			return l.err
		case l.head.Table != t.name:
			return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the backup has a table %s where %s belongs", l.head.Table, t.name)}
		}
		if err := l.table(ctx, t); err != nil {
			return err
		}
	}
	switch {
	case l.err == nil:
		return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the backup has a table %s that this program does not know, or has it twice", l.head.Table)}
	case !errors.Is(l.err, io.EOF):
		return l.err
	}
	return nil
}

// table puts in the rows of a table, whose head was read.
func (l *loader) table(ctx context.Context, t *table) error {
	into := intoTable{loader: l, table: t}
	there := map[string]int{}
	for i, name := range l.head.Columns {
		there[name] = i
	}
	var names []string
	for _, c := range t.columns {
		at, ok := there[c.name]
		if c.since > l.dump.Header.Schema {
			at = -1
		} else if !ok {
			return &ledger.CorruptError{Seq: -1, Reason: "the backup does not have the column " + t.name + "." + c.name}
		} else {
			delete(there, c.name)
		}
		names, into.from = append(names, c.name), append(into.from, at)
	}
	for name := range there {
		return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the backup has a column %s.%s that this program does not know", t.name, name)}
	}
	if t.name == "books" {
		names = append(names, "moves", "draft", "restored")
	}
	if t.name == "meta" {
		return l.meta(ctx, &into)
	}
	_, err := l.tx.CopyFrom(ctx, pgx.Identifier{"holdoutd", t.name}, names, &into)
	if own := cmp.Or(into.wrong, into.Err()); own != nil {
		return own // PostgreSQL says only that it was given up
	}
	return loaded(err)
}

// loaded names what is the backup's fault.
func loaded(err error) error {
	switch {
	case err == nil || errors.Is(err, ledger.ErrCorrupt):
		return err
	case refused(err):
		return &ledger.CorruptError{Seq: -1, Reason: "a row of the backup is not one of its table, or belongs to a row that is not there", Err: err}
	}
	return fmt.Errorf("ledger: load: %w", err)
}

// intoTable are the rows of one table, as pgx.CopyFromSource.
type intoTable struct {
	*loader
	table *table
	from  []int // where in the dump's row each column is; -1: nowhere
	wrong error // why a row is none of the table
}

// Next implements pgx.CopyFromSource. It ends where the next table begins.
func (t *intoTable) Next() bool {
	t.next()
	return t.err == nil && t.values != nil
}

// Err implements pgx.CopyFromSource.
func (t *intoTable) Err() error {
	if errors.Is(t.err, io.EOF) {
		return nil
	}
	return t.err
}

// Values implements pgx.CopyFromSource.
func (t *intoTable) Values() ([]any, error) {
	row := make([]any, len(t.from), len(t.from)+3)
	for i, at := range t.from {
		c := &t.table.columns[i]
		if at < 0 {
			row[i] = c.absent()
			continue
		}
		var err error
		if row[i], err = c.read(t.table.name, t.values[at]); err != nil {
			t.wrong = err
			return nil, err
		}
	}
	if t.table.name == "books" {
		// What was shown of a draft since the backup is not known, so it is a draft no more; and nobody has said yet what was asked since.
		const seq, deleted = 2, 4
		row = append(row, row[seq], false, !row[deleted].(bool))
	}
	return row, nil
}

// Names of the table meta in a ledger in a file.
const (
	draftName    = "draft "
	restoredName = "restored "
	endedName    = "ended "
)

// meta puts in the rows of meta, one by one: they are few, and some belong elsewhere.
func (l *loader) meta(ctx context.Context, rows *intoTable) error {
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			return err
		}
		name, value := row[0].(string), row[1].([]byte)
		switch {
		case name == "key-check" || name == "probe":
			_, err = l.tx.Exec(ctx, "INSERT INTO holdoutd.meta (name, value) VALUES ($1, $2)", name, value)
		case strings.HasPrefix(name, draftName), strings.HasPrefix(name, restoredName):
			// A copy has no drafts, and all of it is restored.
		case strings.HasPrefix(name, endedName):
			id, errID := hex.DecodeString(strings.TrimPrefix(name, endedName))
			if errID != nil || len(id) != 32 || len(value) != 8 || binary.BigEndian.Uint64(value) > math.MaxInt64 {
				return &ledger.CorruptError{Seq: -1, Reason: "an ended session of the backup is none"}
			}
			_, err = l.tx.Exec(ctx, "INSERT INTO holdoutd.ended_sessions (id, until) VALUES ($1, $2)", id, int64(binary.BigEndian.Uint64(value)))
		default:
			return &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("the backup has a row %.80q of meta that this program does not know", name)}
		}
		if err != nil {
			return loaded(err)
		}
	}
	return rows.Err()
}
