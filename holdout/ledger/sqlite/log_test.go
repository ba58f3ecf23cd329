package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/await"
)

// pin keeps the log from being copied whole: a reader of an older moment needs the database as it is.
func pin(t *testing.T, l *Ledger) (unpin func()) {
	t.Helper()
	tx, err := l.readers.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SELECT count(*) FROM entries").Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	return func() { tx.Rollback() }
}

// endOf is how far the log has come.
func endOf(t *testing.T, l *Ledger) (end logEnd) {
	t.Helper()
	var busy int
	if err := l.keeper.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &end.frames, &end.copied); err != nil {
		t.Fatal(err)
	}
	return end
}

// quiet waits until the idle ledger has copied its log.
func quiet(t *testing.T, l *Ledger) {
	t.Helper()
	await.Until(t, "the database has what is in the log", func() bool { end := endOf(t, l); return end.copied == end.frames })
}

// soonIdle makes ledgers copy their logs sooner than usual. The test must not be parallel.
func soonIdle(t *testing.T) {
	usual := idleAfter
	idleAfter = 50 * time.Millisecond
	t.Cleanup(func() { idleAfter = usual })
}

// overwrite changes bytes of a file in place.
func overwrite(name string, at int64, with []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(with, at)
	return errors.Join(err, f.Close())
}

// TestBrokenLog harms the log in place under a running ledger, in each way, with entries in it that the database has not. Nothing is committed any more, whoever asks for
// it; nothing is copied into the database, now and when the ledger is closed; whoever was told of commits is told that they are in danger; and what the next process finds is the database as it
// was before. It would notice a commit beyond a hole, and a checkpoint of one, after which the database is none.
func TestBrokenLog(t *testing.T) {
	soonIdle(t)
	for name, harm := range map[string]func(log string, size int64) error{
		"emptied":               func(log string, _ int64) error { return os.Truncate(log, 0) },
		"cut in its head":       func(log string, _ int64) error { return os.Truncate(log, 20) },
		"cut behind its head":   func(log string, _ int64) error { return os.Truncate(log, 40) },
		"cut at its last frame": func(log string, size int64) error { return os.Truncate(log, size-100) },
		"its head is another's": func(log string, _ int64) error { return overwrite(log, 0, []byte("SQLite format 3\x00")) },
		"its salt is changed":   func(log string, _ int64) error { return overwrite(log, 17, []byte{0xff, 0xfe}) },
		"a page in a frame of many": func(log string, _ int64) error {
			return overwrite(log, logHeader+frameHeader+100, bytes.Repeat([]byte{0xa5}, 2000))
		},
		"a salt in a frame of many": func(log string, _ int64) error { return overwrite(log, logHeader+8, []byte{0xff, 0xfe, 0xff}) },
	} {
		for _, first := range []string{"ready", "a question", "a key", "a deletion", "the idle ledger", "the end"} {
			if strings.Contains(name, "frame of many") && (first == "ready" || first == "a question") {
				continue // a commit looks at the head and the size; the copy at every frame, and what is to last is copied before it is told
			}
			t.Run(name+", "+first, func(t *testing.T) {
				t.Parallel() // each waits for an idle ledger
				path := newPath(t)
				var halted atomic.Int64
				l, err := Open(t.Context(), path, ledger.Options{Key: testKey, Halted: func() { halted.Add(1) }})
				if err != nil {
					t.Fatal(err)
				}
				mustCreate(t, l, testHoldout("ho_1", 100, 0))
				before := mustAsk(t, l, "ho_1", testDebit("before"))
				quiet(t, l)
				unpin := pin(t, l)
				mustAsk(t, l, "ho_1", testDebit("in the log"))
				end := endOf(t, l) // the file can be longer: it is written anew from its first byte
				if err := harm(path+"-wal", logHeader+end.frames*(frameHeader+4096)); err != nil {
					t.Fatal(err)
				}
				unpin()
				question := func() error { _, err := ask(l, t.Context(), "ho_1", testDebit(first)); return err }
				key := func() error { return l.CreateKey(t.Context(), ledger.Key{ID: "key", Scope: "admin"}) }
				deletion := func() error { return l.DeleteHoldout(t.Context(), "ho_1", "key") }
				ready := func() error { l.committed.Store(0); return l.Ready(t.Context()) } // it believes no commit before
				switch first {
				case "ready":
					err = ready()
				case "a question":
					err = question()
				case "a key":
					err = key()
				case "a deletion":
					err = deletion()
				default:
					err = ledger.ErrUnavailable // nobody asks
				}
				if !errors.Is(err, ledger.ErrUnavailable) {
					t.Fatalf("the first commit after it: %v", err)
				}
				if first != "the end" {
					await.Until(t, "the log is found to be broken", func() bool { return halted.Load() > 0 })
					for what, write := range map[string]func() error{"ready": ready, "a question": question, "a key": key, "a deletion": deletion} {
						if err := write(); !errors.Is(err, ledger.ErrUnavailable) {
							t.Errorf("%s: %v", what, err)
						}
					}
				}
				l.Close()
				copied := newPath(t)
				if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o700), copyFile(copied, path), copyFile(copied+"-wal", path+"-wal")); err != nil {
					t.Fatal(err)
				}
				again := openTest(t, copied)
				if body, ok, err := again.Answer(t.Context(), "ho_1", testDebit("before").Query); !ok || err != nil || !bytes.Equal(body, before.Body) {
					t.Errorf("the next process finds %s %v %v", body, ok, err)
				}
				mustVerify(t, again)
			})
		}
	}
}

// TestLogOfWhichTheDatabaseHasAll: a log that was emptied when everything in it had been copied is no loss, and the ledger goes on.
func TestLogOfWhichTheDatabaseHasAll(t *testing.T) {
	soonIdle(t)
	path := newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	for i := range 3 {
		mustAsk(t, l, "ho_1", testDebit(fmt.Sprint(i)))
		quiet(t, l)
		if err := os.Truncate(path+"-wal", 40); err != nil {
			t.Fatal(err)
		}
		if err := l.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustVerify(t, l)
}

// TestLogIsKeptShort: with a stream of commits and no quiet second the log is copied, by the writer itself. It would notice a log that grows for ever.
func TestLogIsKeptShort(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 10_000, 0))
	long := testDebit("")
	for i := range 40 {
		long.Query = fmt.Sprint("sha256:long ", i)
		long.Core = []byte(`{"value":"` + strings.Repeat("x", 1<<20) + `"}`)
		mustAsk(t, l, "ho_1", long)
		if end := endOf(t, l); end.frames-end.copied > logPages+600 { // the last commit may not be looked at yet
			t.Fatalf("after %d MB the log has %d frames that the database has not", i, end.frames-end.copied)
		}
	}
}

// TestReadsThatFail: while the ledger's database cannot be read, a replay is unavailable, and so is the ledger, which commits nothing; when it can be read again both go on by
// themselves. It would notice a probe that looks at writing alone, or at pages that are in memory, and an error that is nobody's to come back for.
func TestReadsThatFail(t *testing.T) {
	path := newPath(t)
	var halted atomic.Int64
	l, err := Open(t.Context(), path, ledger.Options{Key: testKey, Halted: func() { halted.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	before := mustAsk(t, l, "ho_1", testDebit("before"))
	quiet(t, l)
	whole := readFile(t, path)
	if err := overwrite(path, 0, bytes.Repeat([]byte{0xff}, len(whole))); err != nil { // in place, as a disk that fails
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("ready: %v", err)
	}
	fresh, err := openReaders(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := l.readers
	l.readers = fresh // whose connections know no page
	_, _, err = l.Answer(t.Context(), "ho_1", testDebit("before").Query)
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a replay: %v", err)
	}
	if _, err := l.Holdouts(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("holdouts: %v", err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("meanwhile")); !errors.Is(err, ledger.ErrUnavailable) || halted.Load() == 0 {
		t.Errorf("a question: %v, halted %d times", err, halted.Load())
	}
	if err := overwrite(path, 0, whole); err != nil {
		t.Fatal(err)
	}
	l.readers = kept
	if err := fresh.Close(); err != nil {
		t.Error(err)
	}
	await.Until(t, "the ledger is ready", func() bool { return l.Ready(t.Context()) == nil })
	if body, ok, err := l.Answer(t.Context(), "ho_1", testDebit("before").Query); !ok || err != nil || !bytes.Equal(body, before.Body) {
		t.Errorf("a replay: %s %v %v", body, ok, err)
	}
	mustAsk(t, l, "ho_1", testDebit("after"))
	mustVerify(t, l)
}

// TestAFailedLookPasses: a look at the ledger's files that fails is no loss of them: the ledger goes on by itself when it can look again. One that finds no file, or another one, is. It would
// notice a server that has to be started again for an error of a moment.
func TestAFailedLookPasses(t *testing.T) {
	for name, passes := range map[string]bool{"a loop": true, "nowhere": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			way := filepath.Join(dir, "way")
			lead := func(to string) {
				t.Helper()
				if err := errors.Join(os.Symlink(to, way+".new"), os.Rename(way+".new", way)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
				t.Fatal(err)
			}
			lead("data")
			l := openTest(t, filepath.Join(way, "ledger.db"))
			mustCreate(t, l, testHoldout("ho_1", 100, 0))
			lead(map[string]string{"a loop": "way", "nowhere": "gone"}[name]) // a look fails with ELOOP, or finds nothing
			if _, err := ask(l, t.Context(), "ho_1", testDebit("a")); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("a question: %v", err)
			}
			if err := l.Ready(t.Context()); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("ready: %v", err)
			}
			lead("data")
			if !passes {
				if _, err := ask(l, t.Context(), "ho_1", testDebit("a")); !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("a ledger whose files were gone goes on: %v", err)
				}
				return
			}
			await.Until(t, "the ledger is ready", func() bool { return l.Ready(t.Context()) == nil })
			mustAsk(t, l, "ho_1", testDebit("b"))
			mustVerify(t, l)
		})
	}
}

// blind is the machine's disk, on which looks at a name fail for a while.
type blind struct {
	machine
	fails atomic.Pointer[error]
}

func (b *blind) Stat(name string) (fs.FileInfo, error) {
	if err := b.fails.Load(); err != nil && strings.HasSuffix(name, "-wal") {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: *err}
	}
	return b.machine.Stat(name)
}

// TestALookThatFailsIsNoLoss: where the system cannot say whether the log is the one that was opened, however often it is asked, the log is not taken for lost; where it says that
// it is not there, it is. The owner's record can be read meanwhile.
func TestALookThatFailsIsNoLoss(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.EACCES, fs.ErrNotExist} {
		disk := &blind{}
		l, _, err := openAt(t, newPath(t), disk, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		mustCreate(t, l, testHoldout("ho_1", 100, 0))
		mustAsk(t, l, "ho_1", testDebit("a"))
		disk.fails.Store(&cause)
		if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%v: a question: %v", cause, err)
		}
		disk.fails.Store(nil)
		if cause == fs.ErrNotExist {
			if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("a ledger whose log was gone goes on: %v", err)
			}
			continue
		}
		await.Until(t, "the ledger is ready", func() bool { return l.Ready(t.Context()) == nil })
		mustAsk(t, l, "ho_1", testDebit("b"))
	}
}
