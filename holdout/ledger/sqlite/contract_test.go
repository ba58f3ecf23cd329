package sqlite

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
	"github.com/holdoutd/holdoutd/holdout/ledger/ledgertest"
)

// TestContract holds ledgers in files to the contract.
func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t testing.TB) ledgertest.Store { return file{newPath(t)} })
}

// file is a store in a file.
type file struct{ path string }

func (f file) Open(ctx context.Context, o ledger.Options) (ledger.Ledger, error) {
	l, err := Open(ctx, f.path, o)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (f file) Verify(ctx context.Context) ([]ledger.Report, error) { return Verify(ctx, f.path) }

// Crash copies what the file system has: the database, then its log, as a process finds them that comes after one that was killed.
func (f file) Crash(t testing.TB) ledgertest.Store {
	t.Helper()
	copied := file{newPath(t)}
	if err := os.MkdirAll(filepath.Dir(copied.path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(copied.path+suffix, f.path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// Dump implements ledgertest.Copied.
func (f file) Dump(ctx context.Context, out io.Writer) ([]ledger.Report, error) {
	return Dump(ctx, f.path, out)
}

// Load implements ledgertest.Copied.
func (f file) Load(ctx context.Context, d *dump.Reader) error { return Load(ctx, f.path, d) }
