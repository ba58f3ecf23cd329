package postgres

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
)

// Dump writes all rows of the ledger that a URL names as they were at one moment, in the form of a ledger in a file, and verifies them as Verify does. It reads only, needs no server
// key, and may run while servers use the ledger. It fails where the schema has a table or a column that it does not know.
func Dump(ctx context.Context, url string, out io.Writer) (reports []ledger.Report, err error) {
	err = reading(ctx, url, func(tx pgx.Tx) error {
		if err := knowsAll(ctx, tx); err != nil {
			return err
		}
		if reports, err = verifyMoment(ctx, tx); err != nil {
			return err
		}
		w, err := dump.NewWriter(out, rowsKind, rowsSchema)
		if err != nil {
			return err
		}
		for i := range tables {
			if err := dumpTable(ctx, tx, w, &tables[i]); err != nil {
				return fmt.Errorf("ledger: dump: table %s: %w", tables[i].name, err)
			}
		}
		return w.End()
	})
	if err != nil {
		return nil, err
	}
	return reports, nil
}

// knowsAll refuses a schema of which a dump would leave something out.
func knowsAll(ctx context.Context, db rower) error {
	known := map[string]bool{}
	for _, t := range tables {
		for _, c := range t.columns {
			known[t.name+"."+c.name] = true
		}
	}
	there, err := readAll(ctx, db, func(row pgx.Row) (name string, err error) { return name, row.Scan(&name) },
		`SELECT c.relname || '.' || a.attname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
		WHERE n.nspname = 'holdoutd' AND c.relkind IN ('r', 'p', 'f', 'm') AND c.relname <> 'goose_db_version' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1`)
	if err != nil {
		return err
	}
	for _, name := range there {
		if !known[name] && !elsewhere[name] {
			return fmt.Errorf("ledger: the database has the column %s, which this program does not know: a backup would lack it", name)
		}
	}
	return nil
}

// metaRows are the rows of meta, and as such rows what has columns here.
const metaRows = `SELECT convert_from(name, 'UTF8'), value FROM (
	SELECT convert_to(name, 'UTF8') AS name, value FROM holdoutd.meta
	UNION ALL SELECT 'draft '::bytea || h.id, ''::bytea FROM holdoutd.holdouts h JOIN holdoutd.books b ON b.holdout = h.number WHERE b.draft
	UNION ALL SELECT 'restored '::bytea || h.id, ''::bytea FROM holdoutd.holdouts h JOIN holdoutd.books b ON b.holdout = h.number WHERE b.restored
	UNION ALL SELECT convert_to('ended ' || encode(id, 'hex'), 'UTF8'), int8send(greatest(until, 0)) FROM holdoutd.ended_sessions) m ORDER BY name`

func dumpTable(ctx context.Context, tx pgx.Tx, w *dump.Writer, t *table) error {
	head := dump.Table{Table: t.name}
	values, into := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i := range t.columns {
		head.Columns, into[i] = append(head.Columns, t.columns[i].name), t.columns[i].into()
	}
	if err := w.Table(head); err != nil {
		return err
	}
	query := "SELECT " + strings.Join(head.Columns, ", ") + " FROM holdoutd." + t.name + " ORDER BY " + t.order
	if t.name == "meta" {
		query = metaRows
	}
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return wrapRead(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return wrapRead(err)
		}
		for i := range t.columns {
			if values[i], err = t.columns[i].write(into[i]); err != nil {
				return err
			}
		}
		if err := w.Row(values); err != nil {
			return err
		}
	}
	return wrapRead(rows.Err())
}
