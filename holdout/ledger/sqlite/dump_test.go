package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
)

// dumped is the dump of a ledger file.
func dumped(t testing.TB, path string) string {
	t.Helper()
	var text bytes.Buffer
	if _, err := Dump(t.Context(), path, &text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// loadTest loads a dump into a new file.
func loadTest(t testing.TB, text string) (path string, err error) {
	t.Helper()
	path = newPath(t)
	d, err := dump.NewReader(strings.NewReader(text))
	if err != nil {
		return path, err
	}
	return path, Load(t.Context(), path, d)
}

// TestDumpForgetsNoTable adds a table and a column to a ledger. It notices a dump that has a list of what it writes.
func TestDumpForgetsNoTable(t *testing.T) {
	path, _ := sample(t)
	db, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"CREATE TABLE more (a INTEGER, b TEXT) STRICT", "INSERT INTO more VALUES (17, 'of later')", "ALTER TABLE keys ADD COLUMN extra TEXT"} {
		_, more := db.ExecContext(t.Context(), text)
		err = errors.Join(err, more)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	text := dumped(t, path)
	for _, want := range []string{`{"table":"more","columns":["a","b"]}` + "\n" + `[17,"of later"]`, `"only_granted","extra"]}`} {
		if !strings.Contains(text, want) {
			t.Errorf("the dump does not have %s", want)
		}
	}
	if _, err := loadTest(t, text); !errors.Is(err, ledger.ErrCorrupt) || !strings.Contains(err.Error(), "does not know") {
		t.Errorf("a table that this program does not know was loaded: %v", err)
	}
}

// TestLoadRefuses: what is no copy of a ledger makes none, and a file that is there stays as it is.
func TestLoadRefuses(t *testing.T) {
	path, _ := sample(t)
	text := dumped(t, path)
	for what, old := range map[string][2]string{
		"a schema to come":       {`"schema":`, `"schema":9`},
		"a table twice":          {`{"table":"books"`, `{"table":"holdouts"`},
		"a table without name":   {`{"table":"keys"`, `{"table":"nokeys"`},
		"a column less":          {`"scope","created","hash"`, `"scope","hash"`},
		"a text for a number":    {`[1,0,2,"genesis"`, `[1,"zero",2,"genesis"`},
		"an entry of no holdout": {`[1,0,2,"genesis"`, `[77,0,2,"genesis"`},
		"an unknown kind":        {`"genesis"`, `"genesys"`},
	} {
		if !strings.Contains(text, old[0]) {
			t.Fatalf("%s: the dump does not have %s:\n%s", what, old[0], text)
		}
		_, err := loadTest(t, strings.Replace(text, old[0], old[1], 1))
		if !errors.Is(err, ledger.ErrCorrupt) && !errors.Is(err, ledger.ErrVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dump.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(context.Background(), path, d); err == nil {
		t.Error("a dump was loaded over a ledger")
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the ledger was changed (%v)", err)
	}
}
