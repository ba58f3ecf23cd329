//go:build postgres

package postgres_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
	"github.com/holdoutd/holdoutd/holdout/ledger/ledgertest"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

var _ ledgertest.Copied = (*database)(nil)

// dumpSample is a database with a holdout of which two questions were asked, and its dump.
func dumpSample(t *testing.T) (*database, string) {
	t.Helper()
	ctx, d := t.Context(), &database{Database: pgtest.NewDatabase(t)}
	l, err := d.Open(ctx, ledger.Options{Key: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	h := ledger.Holdout{ID: "ho_1", Digest: [32]byte{3}, Public: []byte(`{"name":"one"}`), Secret: []byte("secret"), State: []byte("state"), Limits: ledger.Meters{"questions": 9}}
	err = l.CreateHoldout(ctx, h, nil)
	for _, query := range []string{"q1", "q2"} {
		err = errors.Join(err, l.Update(ctx, "ho_1", func(tx *ledger.Tx) error {
			_, err := tx.Append(ledger.Debit{Query: query, Canonical: []byte(query), Principal: "key_a", Cost: ledger.Meters{"questions": 1}, Core: []byte(`{"value":1}`), Time: time.Unix(7, 0)})
			return err
		}))
	}
	err = errors.Join(err, l.CreateKey(ctx, ledger.Key{ID: "key_a", Name: "a", Scope: "analyst", Hash: [32]byte{2}, Holdouts: []string{"ho_1", "ho_2"}}), l.Close())
	if err != nil {
		t.Fatal(err)
	}
	return d, dumpText(t, d)
}

func dumpText(t *testing.T, d *database) string {
	t.Helper()
	var text bytes.Buffer
	if _, err := d.Dump(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// loadText loads a dump into an empty database.
func loadText(t *testing.T, into *database, text string) error {
	t.Helper()
	d, err := dump.NewReader(strings.NewReader(text))
	if err != nil {
		return err
	}
	return into.Load(t.Context(), d)
}

// TestDumpForgetsNoTable adds a table and a column to the schema. It notices a dump that leaves out what it does not know, and with the contract's test of copies
// a migration that the dump was not told of.
func TestDumpForgetsNoTable(t *testing.T) {
	for column, statement := range map[string]string{
		"more.a":         "CREATE TABLE holdoutd.more (a bigint)",
		"keys.extra":     "ALTER TABLE holdoutd.keys ADD COLUMN extra text",
		"books.reserved": "ALTER TABLE holdoutd.books ADD COLUMN reserved bigint",
	} {
		d := &database{Database: pgtest.NewDatabase(t)}
		if err := errors.Join(d.migrate(t.Context()), d.Exec(statement)); err != nil {
			t.Fatal(err)
		}
		if _, err := postgres.Dump(t.Context(), d.Super, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), column) {
			t.Errorf("%s: %v", column, err)
		}
	}
}

// TestLoadRefuses: what is no copy of a ledger makes none: the database stays as empty as it was, and takes the true copy afterwards. One that has a ledger stays as it is.
func TestLoadRefuses(t *testing.T) {
	d, text := dumpSample(t)
	into := &database{Database: pgtest.NewDatabase(t)}
	for what, old := range map[string][2]string{
		"a schema to come":       {`"schema":`, `"schema":9`},
		"another kind":           {`"kind":"sqlite"`, `"kind":"other"`},
		"a table twice":          {`{"table":"books"`, `{"table":"holdouts"`},
		"a table without name":   {`{"table":"keys"`, `{"table":"nokeys"`},
		"a column less":          {`"scope","created","hash"`, `"scope","hash"`},
		"a column of another":    {`"scope","created","hash"`, `"scope","made","hash"`},
		"a text for a number":    {`[1,0,2,"genesis"`, `[1,"zero",2,"genesis"`},
		"an entry of no holdout": {`[1,0,2,"genesis"`, `[77,0,2,"genesis"`},
		"an unknown kind":        {`"genesis"`, `"genesys"`},
		"an unknown row of meta": {`["key-check"`, `["quota"`},
		"no list of holdouts":    {`"[\"ho_1\",\"ho_2\"]"`, `"[]"`},
		"less that was spent":    {`[1,"questions",9,2]`, `[1,"questions",9,1]`},
		"another answer":         {`"q2","q2"`, `"q3","q2"`},
	} {
		if !strings.Contains(text, old[0]) {
			t.Fatalf("%s: the dump does not have %s:\n%s", what, old[0], text)
		}
		err := loadText(t, into, strings.Replace(text, old[0], old[1], 1))
		if !errors.Is(err, ledger.ErrCorrupt) && !errors.Is(err, ledger.ErrVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := loadText(t, into, text); err != nil {
		t.Errorf("after what was refused: %v", err)
	}
	if err := loadText(t, d, text); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a dump was loaded over a ledger: %v", err)
	}
	if got := dumpText(t, d); got != text {
		t.Errorf("the ledger was changed:\n%s\nit was\n%s", got, text)
	}
	// The copy is protected as the ledger is, and the next holdout has a number of its own.
	for _, statement := range []string{"DELETE FROM holdoutd.entries", "UPDATE holdoutd.meters SET spent = 0"} {
		if err := into.Exec(statement); err == nil {
			t.Errorf("%s: done in a copy", statement)
		}
	}
	l, err := into.Open(t.Context(), ledger.Options{Key: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.CreateHoldout(t.Context(), ledger.Holdout{ID: "ho_2", Digest: [32]byte{4}, Public: []byte("{}"), Limits: ledger.Meters{"questions": 9}}, nil); err != nil {
		t.Errorf("the next holdout: %v", err)
	}
}
