package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/await"
)

// hostileLimits keep a mutated file that says too much from taking long.
var hostileLimits = Limits{FreeExpansionBytes: 3 << 20, MaxOutputBytes: 1 << 24}

// failer is what a test and a check of rapid have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// survives decodes arbitrary bytes: the outcome must be an Error and no directory, or a dataset that opens and has
// the rows that were announced.
func survives(t failer, root string, data []byte) (decoded bool) {
	t.Helper()
	path, dir := filepath.Join(root, "upload"), filepath.Join(root, "table")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), await.Patience)
	defer cancel()
	res, err := Decode(ctx, path, dir, hostileLimits)
	if err != nil {
		if text := err.Error(); strings.Contains(text, "panic: ") || strings.Contains(text, "the decoder failed") {
			t.Fatalf("a panic was caught: %v", err)
		}
		e := (*Error)(nil)
		if !errors.As(err, &e) || e.Detail == "" || e.Kind == Internal || e.Kind == Limit {
			t.Fatalf("got %v, want an Error that blames the file", err)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the file is refused (%v) but the directory is left", e)
		}
		return false
	}
	table, err := dataset.Open(dir)
	if err != nil {
		t.Fatalf("decoded, but: %v", err)
	}
	if int64(table.Rows()) != res.Rows || table.Columns() != len(res.Schema.Fields) || res.Rows == 0 {
		t.Fatalf("%d rows of %d columns, the result says %+v", table.Rows(), table.Columns(), res)
	}
	if err := errors.Join(table.Close(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	return true
}

// mutate damages a file as disks, networks and attackers do.
func mutate(r *rand.Rand, data []byte) []byte {
	b := slices.Clone(data)
	for range 1 + r.IntN(3) {
		if len(b) < 16 {
			break
		}
		at := r.IntN(len(b))
		if r.IntN(2) == 0 { // the footer is where the numbers are that sizes depend on
			at = len(b) - 1 - r.IntN(min(len(b), 700))
		}
		n := min(1+r.IntN(64), len(b)-at)
		switch r.IntN(6) {
		case 0:
			b = b[:at]
		case 1:
			b = slices.Delete(b, at, at+n)
		case 2:
			b[at] ^= 1 << r.IntN(8)
		case 3:
			clear(b[at : at+n])
		case 4:
			b[at] = byte(r.Uint32())
		case 5:
			for i := at; i < at+n; i++ {
				b[i] = 0xff
			}
		}
	}
	return b
}

var seeds = []string{"types-pyarrow-none-v1.parquet", "types-pyarrow-zstd-v2.parquet", "types-pyarrow-brotli-v1.parquet",
	"types-pyarrow-lz4-v2.parquet", "types-pyarrow-gzip-v1.parquet", "encodings.parquet", "int96.parquet", "polars.parquet",
	"duckdb.parquet", "bomb.parquet", "checksums.parquet", "writers/fastparquet-none.parquet", "writers/duckdb-skipped.parquet"}

// 60 seeded mutations of each of the files, in this process: nothing may panic, hang, or come out half.
func TestMutations(t *testing.T) {
	root := t.TempDir()
	decoded := 0
	for i, name := range seeds {
		data := read(t, name)
		r := rand.New(rand.NewPCG(uint64(i), 7))
		for range 60 {
			if survives(t, root, mutate(r, data)) {
				decoded++
			}
		}
	}
	// Files carry no checksums of pages, so some damage must pass; if none or all did, the mutations would be at fault.
	if decoded == 0 || decoded == 60*len(seeds) {
		t.Errorf("%d of %d mutated files were decoded", decoded, 60*len(seeds))
	}
}

// Every prefix of a small file, as an upload that broke off.
func TestPrefixes(t *testing.T) {
	root := t.TempDir()
	data := read(t, "int96.parquet")
	for n := range data {
		if survives(t, root, data[:n]) {
			t.Fatalf("%d of %d bytes are decoded", n, len(data))
		}
	}
}

// Each byte of a small file's footer, set to each of some telling values.
func TestFooterBytes(t *testing.T) {
	root := t.TempDir()
	data := read(t, "int96.parquet")
	for at := len(data) / 2; at < len(data); at++ {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := slices.Clone(data)
			b[at] = v
			survives(t, root, b)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range seeds {
		f.Add(read(f, name))
	}
	damaged, err := filepath.Glob(fixture("damaged/*.parquet"))
	if err != nil || len(damaged) == 0 {
		f.Fatal(damaged, err)
	}
	for _, path := range damaged { // small, and near to what the decoders go wrong at
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{})
	f.Add([]byte("PAR1PAR1"))
	root := f.TempDir()
	n := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		n++
		dir := filepath.Join(root, fmt.Sprint(os.Getpid(), "-", n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		survives(t, dir, data)
	})
}
