package ingest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdoutd/holdoutd/dataset"
)

// run runs a child of this test binary and checks that an error leaves no directory and no process.
func run(t *testing.T, ctx context.Context, child, path string, lim Limits) (string, Result, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "table")
	path, err = filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(ctx, []string{self, child}, path, dir, lim)
	if _, statErr := os.Lstat(dir); (err == nil) != (statErr == nil) {
		t.Errorf("error %v, directory %v", err, statErr)
	}
	var status syscall.WaitStatus
	if pid, waitErr := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); waitErr != syscall.ECHILD {
		t.Errorf("a child is left: pid %d, %v", pid, waitErr)
	}
	return dir, res, err
}

func TestRun(t *testing.T) {
	dir, res, err := run(t, context.Background(), childDecode, fixture("flights-20k.parquet"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	want, wantRes := decode(t, fixture("flights-20k.parquet"))
	if d := cmp.Diff(wantRes, res); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(shown(want, wantRes), shown(got, res)); d != "" {
		t.Error("the child decodes otherwise than this process")
	}
}

// The child's error must arrive as it was.
func TestRunRefuses(t *testing.T) {
	for name, kind := range map[string]Kind{"writers/pyarrow-far.parquet": Unsupported, "bomb.parquet": TooLarge, "make.py": NotParquet} {
		_, _, err := run(t, context.Background(), childDecode, fixture(name), Limits{})
		e := (*Error)(nil)
		if !errors.As(err, &e) || e.Kind != kind || e.Detail == "" {
			t.Errorf("%s: got %v, want kind %s", name, err, kind)
		}
		if kind == Unsupported && e.Column != "far" {
			t.Errorf("the column is %q, want far", e.Column)
		}
	}
}

// A file that grows beyond the limit while it is written: the limit of the process must hold where the estimate of
// the footer did not.
func TestRunOutputLimit(t *testing.T) {
	text := strings.Repeat("x", 5000) // one text of 5,000 bytes takes 4 bytes in the estimate
	path := filepath.Join(t.TempDir(), "f.parquet")
	table, err := dataset.FromColumns(dataset.NewText("t", []string{text, text + "y"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	exportTo(t, path, table)
	_, _, err = run(t, context.Background(), childDecode, path, Limits{MaxOutputBytes: 4096})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Limit {
		t.Errorf("got %v, want kind limit", err)
	}
}

func TestRunBadChildren(t *testing.T) {
	for child, want := range map[string]struct {
		kind Kind
		part string
	}{
		childHang:   {Limit, "too long"},
		childHog:    {Limit, "more memory than the 512 MiB that are allowed"},
		childScore:  {Unavailable, "1000"},
		childBurn:   {Limit, "computing time"},
		childSilent: {Internal, "no reply"},
		childCrash:  {Damaged, "the file ended the decoding process"},
		childPoor:   {Unavailable, "disk or system ended"},
		childDeep:   {Damaged, "the file ended the decoding process"},
		childFault:  {Unavailable, "disk or system ended"},
		childExit:   {Unavailable, "disk or system ended"},
		childKilled: {Unavailable, "killed from outside"},
		childLiar:   {Internal, "cannot be opened"},
		childFlood:  {Internal, "too much"},
	} {
		t.Run(child, func(t *testing.T) {
			lim := Limits{MemoryBytes: 512 << 20}
			switch child {
			case childHang:
				lim.Wall = 200 * time.Millisecond
			case childBurn:
				lim.CPU = time.Second
			}
			_, _, err := run(t, context.Background(), child, fixture("polars.parquet"), lim)
			e := (*Error)(nil)
			if !errors.As(err, &e) || e.Kind != want.kind || !strings.Contains(e.Detail, want.part) {
				t.Errorf("got %v, want kind %s with %q", err, want.kind, want.part)
			}
		})
	}
}

// TestLittleMemory: with little memory a page, the texts of a column and a footer are refused before they are held, with the limit; what does not need so much is decoded. It would
// notice a piece that is taken at once and goes beyond the limit of the process, which the kernel lets it do once.
func TestLittleMemory(t *testing.T) {
	const memory = 112 << 20
	for name, want := range map[string]struct {
		kind Kind
		part string
	}{
		"one-long-text.parquet":   {TooLarge, "the limit is 14680064; write the file with smaller pages"},
		"many-long-texts.parquet": {Limit, "its distinct texts needs more memory than the 112 MiB"},
		"flights-20k.parquet":     {},
	} {
		_, _, err := run(t, t.Context(), childDecode, fixture(name), Limits{MemoryBytes: memory})
		if e := (*Error)(nil); want.kind != "" && (!errors.As(err, &e) || e.Kind != want.kind || !strings.Contains(e.Detail, want.part)) || want.kind == "" && err != nil {
			t.Errorf("%s: got %v, want kind %q with %q", name, err, want.kind, want.part)
		}
	}
	d := DefaultLimits()
	if got := (Limits{MemoryBytes: d.MemoryBytes}).withDefaults(); got != d || d.MaxPageBytes != DefaultMaxPageBytes || d.MaxFooterBytes != DefaultMaxFooterBytes || d.MaxTextBytes > d.MemoryBytes/textShare {
		t.Errorf("the defaults do not fit each other: %+v", d)
	}
	if got := (Limits{MemoryBytes: memory}).withDefaults(); got.MaxFooterBytes != memory/16 || largestPiece(memory) != 2*got.MaxPageBytes {
		t.Errorf("%+v", got)
	}
}

func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, _, err := run(t, ctx, childHang, fixture("polars.parquet"), Limits{})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Limit || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want kind limit", err)
	}
}

func TestRunNoProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	for _, argv := range [][]string{nil, {filepath.Join(t.TempDir(), "none")}} {
		_, err := Run(context.Background(), argv, fixture("polars.parquet"), dir, Limits{})
		if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != Internal {
			t.Errorf("got %v, want kind internal", err)
		}
	}
}

// Run must not take a directory away that was there before.
func TestRunDirectoryExists(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), []string{self, childDecode}, fixture("polars.parquet"), dir, Limits{}); err == nil {
		t.Error("Run writes into a directory that exists")
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Error("Run removed a directory that it did not make")
	}
}
