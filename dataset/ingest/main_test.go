package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdoutd/holdoutd/dataset"
)

// The test binary is its own child process: the first argument says which.
const (
	childDecode = "child-decode" // the real one
	childHang   = "child-hang"   // never answers
	childHog    = "child-hog"    // limits itself as the real one does, then wants too much memory
	childBurn   = "child-burn"   // … too much CPU time
	childPoor   = "child-poor"   // is given too little memory before it limits itself
	childSilent = "child-silent" // ends well and says nothing
	childCrash  = "child-crash"  // panics
	childDeep   = "child-deep"   // calls itself without end
	childFault  = "child-fault"  // reads a mapped page that the disk does not have any more
	childExit   = "child-exit"   // ends badly, without a word
	childKilled = "child-killed" // is killed
	childLiar   = "child-liar"   // says that it wrote what it did not
	childScore  = "child-score"  // limits itself as the real one does, then says how soon the kernel ends it where memory is short
	childFlood  = "child-flood"  // writes without end to both outputs, then ends well
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case childDecode:
			os.Exit(ChildMain())
		case childHang:
			time.Sleep(time.Hour)
		case childPoor:
			if unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: 64 << 20, Max: 64 << 20}) == nil {
				hog()
			}
		case childHog, childBurn, childScore:
			spend(os.Args[1])
		case childSilent:
			os.Exit(0)
		case childCrash:
			panic("crash")
		case childDeep:
			debug.SetMaxStack(1 << 20)
			fmt.Println(deep(0))
		case childFault:
			readLost()
		case childExit:
			os.Exit(3)
		case childKilled:
			unix.Kill(os.Getpid(), unix.SIGKILL)
		case childLiar:
			fmt.Println(`{"result":{"rows":1,"schema":{"fields":[]}}}`)
			os.Exit(0)
		case childFlood:
			flood()
		}
	}
	os.Exit(m.Run())
}

func spend(what string) {
	var req request
	if err := json.NewDecoder(os.Stdin).Decode(&req); err != nil {
		os.Exit(3)
	}
	if err := limitProcess(req.Limits); err != nil {
		os.Exit(4)
	}
	if what == childScore {
		score, err := os.ReadFile("/proc/self/oom_score_adj")
		os.Exit(answer(Result{}, &Error{Kind: Unavailable, Detail: strings.TrimSpace(string(score)), Err: err}))
	}
	if what == childBurn {
		for x := 1; ; x = x*3 + 1 {
			burnt = x
		}
	}
	hog()
}

func hog() {
	for {
		b := make([]byte, 64<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		hoard = append(hoard, b)
	}
}

var (
	burnt int
	hoard [][]byte
)

func deep(n int) int { return n + deep(n+1) }

// readLost reads what was cut off a mapped file: for the process it is as a disk that cannot be read.
func readLost() {
	f, err := os.CreateTemp("", "lost-")
	if err != nil {
		os.Exit(3)
	}
	os.Remove(f.Name())
	f.Truncate(4096)
	page, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		os.Exit(3)
	}
	f.Truncate(0)
	os.Exit(int(page[0]))
}

func flood() {
	b := make([]byte, 1<<20)
	for range 2 * maxReplyBytes / len(b) {
		os.Stdout.Write(b)
		os.Stderr.Write(b)
	}
	os.Exit(0)
}

func fixture(name string) string { return filepath.Join("testdata", name) }

// decode decodes a file in this process and opens the result.
func decode(t testing.TB, path string) (*dataset.Table, Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	res, err := Decode(context.Background(), path, dir, Limits{})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	table, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table, res
}

// refused checks that a file gives an error of this kind and no directory.
func refused(t testing.TB, path string, lim Limits, want Kind) *Error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	_, err := Decode(context.Background(), path, dir, lim)
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		t.Fatalf("%s: got %v, want an Error of kind %s", path, err, want)
	}
	if e.Kind != want || e.Detail == "" {
		t.Errorf("%s: got %v, want kind %s", path, err, want)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: a refused file leaves a directory", path)
	}
	return e
}

// rendered shows the values of a column for people.
func rendered(c *dataset.Column) []string {
	var out []string
	for i := range c.Len() {
		switch {
		case c.Null(i) && c.Numbers != nil && dataset.Infinite(c.Numbers[i]):
			out = append(out, "infinite")
		case c.Null(i):
			out = append(out, "null")
		case c.Kind == dataset.Bool:
			out = append(out, strconv.FormatBool(c.Bools[i] == 1))
		case c.Kind == dataset.Text:
			out = append(out, strconv.Quote(c.Dictionary.Text(int(c.Codes[i])-1)))
		case c.Kind == dataset.Time:
			out = append(out, time.UnixMicro(int64(math.Floor(c.Numbers[i]))).UTC().Format("2006-01-02T15:04:05.999999"))
		default:
			out = append(out, strconv.FormatFloat(c.Numbers[i], 'g', -1, 64))
		}
	}
	return out
}

// shown shows a table, one line a column.
func shown(t *dataset.Table, res Result) []string {
	var lines []string
	for i := range t.Columns() {
		c := t.Column(i)
		line := fmt.Sprintf("%s %v %s %v", c.Name, c.Kind, c.Source, rendered(c))
		if c.Note != "" {
			line += " (" + c.Note + ")"
		}
		lines = append(lines, line)
	}
	for _, s := range res.Skipped {
		lines = append(lines, fmt.Sprintf("%s skipped: %s", s.Name, s.Reason))
	}
	return lines
}
