package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// mapped writes a table of one long column of numbers and opens it.
func mapped(t *testing.T, rows int) (*Table, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	table, err := FromColumns(Column{Field: Field{Name: "x", Kind: Number}, Numbers: make([]float64, rows)})
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, table); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened, filepath.Join(dir, columnsFile)
}

// TestGuarded cuts a file short while it is mapped. It would catch a read that ends the process: by Guarded itself, or in
// the goroutines of a digest.
func TestGuarded(t *testing.T) {
	table, path := mapped(t, 200_000)
	if err := os.Truncate(path, headerSize); err != nil {
		t.Fatal(err)
	}
	x, sum := table.Column(0).Numbers, 0.0
	err := Guarded(func() {
		for _, v := range x {
			sum += v
		}
	})
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("a read beyond the end: %v", err)
	}
	if err := NewDigest().Add(table); !errors.Is(err, ErrDamaged) {
		t.Errorf("the digest: %v", err)
	}
	if err := Guarded(func() {}); err != nil {
		t.Error(err)
	}
}

// TestGuardedGatherers: a long column that is cut short while its rows are selected is damage to whoever selects, though others read it.
func TestGuardedGatherers(t *testing.T) {
	table, path := mapped(t, farValues)
	if err := os.Truncate(path, headerSize); err != nil {
		t.Fatal(err)
	}
	order := make([]uint32, farValues)
	for i := range order {
		order[i] = uint32(farValues - 1 - i)
	}
	err := Guarded(func() {
		err := Select(filepath.Join(t.TempDir(), "part"), table, order, nil)
		t.Errorf("it was selected: %v", err)
	})
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("a selection beyond the end: %v", err)
	}
}

// TestGuardedPanics: what is a bug stays a panic.
func TestGuardedPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"index": func() { var none []int; i := 3; none[i] = 1 },
		"nil":   func() { var none *Table; none.rows++ },
		"own":   func() { panic("own") },
	} {
		func() {
			defer func() {
				p := recover()
				if p == nil {
					t.Errorf("%s: no panic", name)
				}
				if err, ok := p.(error); ok && errors.Is(err, ErrDamaged) {
					t.Errorf("%s: taken for damage", name)
				}
				if _, ok := p.(runtime.Error); !ok && name != "own" {
					t.Errorf("%s: %v", name, p)
				}
			}()
			if err := Guarded(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}()
	}
}

// TestFingerprint: it is that of the files, it changes with each of them, and two copies of one table have two, so that
// nobody can tell from a fingerprint whether a guess of all rows is right.
func TestFingerprint(t *testing.T) {
	base := t.TempDir()
	a, b := filepath.Join(base, "a"), filepath.Join(base, "b")
	for _, dir := range []string{a, b} {
		if err := Write(dir, sample(t)); err != nil {
			t.Fatal(err)
		}
	}
	first, err := Fingerprint(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Fingerprint(b)
	if err != nil || first == second {
		t.Errorf("two copies of one table have the fingerprints %x and %x, %v", first, second, err)
	}
	opened, err := Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if opened.Fingerprint() != first {
		t.Error("the open table has another fingerprint")
	}
	if err := os.Truncate(filepath.Join(a, columnsFile), headerSize); err != nil {
		t.Fatal(err)
	}
	if _, err := Fingerprint(a); !errors.Is(err, ErrDamaged) {
		t.Errorf("columns cut short: %v", err)
	}
	if err := os.Truncate(filepath.Join(b, manifestFile), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := Fingerprint(b); !errors.Is(err, ErrDamaged) {
		t.Errorf("manifest cut short: %v", err)
	}
}
