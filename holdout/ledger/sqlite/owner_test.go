package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/await"
)

// elsewhere is the machine's disk by a way that no lock reaches: from another machine, or by another mount. Each has a file system of its own.
type elsewhere struct {
	machine
	device uint64
}

// Remove leaves the log's index: within one process SQLite has one for all connections, whatever becomes of its name.
func (elsewhere) Remove(string) error { return nil }

func (elsewhere) Lock(string) (io.Closer, error)   { return io.NopCloser(nil), nil }
func (e elsewhere) Device(info fs.FileInfo) uint64 { return e.device }

// journal is what a ledger has logged, by several goroutines.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// openAt opens a ledger at a place. said is what it logged.
func openAt(t *testing.T, path string, at ledger.Disk, o ledger.Options) (l *Ledger, said *journal, err error) {
	t.Helper()
	said = new(journal)
	o.Disk, o.Key, o.Logger = at, testKey, slog.New(slog.NewTextHandler(said, nil))
	if l, err = Open(t.Context(), path, o); err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, said, err
}

// stall is what becomes of an owner whose machine stands still: it answers nobody.
func stall(l *Ledger) {
	close(l.own.ends)
	<-l.own.done
	l.own.ends = make(chan struct{}) // for Close
}

// stalled is a ledger with a holdout whose owner stands still.
func stalled(t *testing.T) (old *Ledger, path string) {
	t.Helper()
	path = newPath(t)
	old, _, err := openAt(t, path, machine{}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, old, testHoldout("ho_1", 100, 0))
	stall(old)
	return old, path
}

// TestALivingOwnerKeepsItsLedger: a server that no lock keeps out gives up, and says who has the ledger; the owner goes on. Once the owner was closed the next one
// asks nobody.
func TestALivingOwnerKeepsItsLedger(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	first, _, err := openAt(t, path, machine{}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, first, testHoldout("ho_1", 100, 0))
	for i := range 2 { // the second time it asks again
		_, said, err := openAt(t, path, elsewhere{device: 1}, ledger.Options{})
		host, _ := os.Hostname()
		if !errors.Is(err, ledger.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on %s, which serves %s since ", os.Getpid(), host, path)) {
			t.Fatalf("the second server: %v", err)
		}
		if !strings.Contains(said.String(), "asking whether it is alive") {
			t.Errorf("the log does not say what is waited for: %s", said)
		}
		mustAsk(t, first, "ho_1", testDebit(fmt.Sprint(i)))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, said, err := openAt(t, path, elsewhere{device: 1}, ledger.Options{})
	if err != nil || strings.Contains(said.String(), "asking") {
		t.Fatalf("after the first was closed: %v, %s", err, said)
	}
	mustAsk(t, second, "ho_1", testDebit("after"))
	mustVerify(t, second)
}

// TestATakenLedgerIsLeftAlone: an owner that answers nobody loses its ledger. Whatever it does then is refused, says who has the ledger, and changes nothing for the new owner; what it
// had told is there. It would notice an owner that commits once more, tells of a commit that came too late, or copies its log when it is closed.
func TestATakenLedgerIsLeftAlone(t *testing.T) {
	for _, first := range []string{"a question", "ready", "nothing", "a commit on its way", "the end"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel() // a stalled owner is asked for seconds
			path := newPath(t)
			var halted atomic.Int64
			var onItsWay func()
			old, said, err := openAt(t, path, machine{}, ledger.Options{
				Halted: func() { halted.Add(1) },
				Fault: func(step string) error {
					if step == ledger.StepCommitted && onItsWay != nil {
						onItsWay()
					}
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			mustCreate(t, old, testHoldout("ho_1", 100, 0))
			told := mustAsk(t, old, "ho_1", testDebit("told"))
			stall(old)
			var next *Ledger
			take := func() {
				if next, _, err = openAt(t, path, elsewhere{device: 1}, ledger.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			question := func(query string) error { _, err := ask(old, t.Context(), "ho_1", testDebit(query)); return err }
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "taken over by process") {
					t.Errorf("%s at the old owner: %v", what, err)
				}
			}
			switch first {
			case "a question":
				take()
				refused(first, question("first"))
			case "ready":
				take()
				old.committed.Store(0)
				refused(first, old.Ready(t.Context()))
			case "nothing": // it goes on, and looks by itself
				take()
				old.own.done = make(chan struct{})
				go old.own.answer()
				await.Until(t, "the old owner says that it knows", func() bool { return strings.Contains(said.String(), "took the ledger over") })
				_, err := old.Keys(t.Context())
				refused("keys", err)
				old.committed.Store(time.Now().UnixNano()) // a commit of a moment ago vouches for nothing now
				refused("ready", old.Ready(t.Context()))
				refused("the next question", question("next"))
			case "a commit on its way":
				onItsWay = sync.OnceFunc(take)
				refused(first, question("first"))
			case "the end":
				take()
			}
			for i := range 20 {
				mustAsk(t, next, "ho_1", testDebit(fmt.Sprint("next ", i)))
			}
			if first != "the end" {
				if halted.Load() == 0 || !strings.Contains(said.String(), "took the ledger over") || strings.Contains(said.String(), "the ledger cannot commit") { // which it would say before it opens its files again
					t.Errorf("halted %d times; the log: %s", halted.Load(), said)
				}
				refused("another question", question("another"))
				_, _, err := old.Answer(t.Context(), "ho_1", testDebit("told").Query)
				refused("a replay", err)
				_, err = old.Holdout(t.Context(), "ho_1")
				refused("a budget", err)
				_, _, err = old.KeyByHash(t.Context(), [32]byte{})
				refused("a key", err)
			}
			old.Close() // its error says the same
			for i := range 20 {
				mustAsk(t, next, "ho_1", testDebit(fmt.Sprint("after ", i)))
			}
			if body, ok, err := next.Answer(t.Context(), "ho_1", testDebit("told").Query); !ok || err != nil || !bytes.Equal(body, told.Body) {
				t.Errorf("what the old owner had told: %s %v %v", body, ok, err)
			}
			if err := next.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			mustVerify(t, next)
			if err := next.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnOwnerDoesNotComeBack: an owner that stood still while another server had its ledger, and ended, has lost it all the same: the other may have told what it does not know. It would
// notice a record that is taken for free once it is empty.
func TestAnOwnerDoesNotComeBack(t *testing.T) {
	t.Parallel()
	old, path := stalled(t)
	next, _, err := openAt(t, path, elsewhere{device: 1}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	told := mustAsk(t, next, "ho_1", testDebit("told"))
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(old, t.Context(), "ho_1", testDebit("late")); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "the record of its server is gone") {
		t.Errorf("a question to the old owner: %v", err)
	}
	old.Close()
	again := openTest(t, path)
	if body, ok, err := again.Answer(t.Context(), "ho_1", testDebit("told").Query); !ok || err != nil || !bytes.Equal(body, told.Body) {
		t.Errorf("what its successor told: %s %v %v", body, ok, err)
	}
	mustVerify(t, again)
}

// TestAllWhoAskAreAnswered: several servers that ask a living owner at the same time all give up. It would notice one whose question was written over, and which takes silence for death.
func TestAllWhoAskAreAnswered(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	l, _, err := openAt(t, path, machine{}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			o, err := newOwnership(path, elsewhere{device: uint64(i + 1)}, slog.New(slog.DiscardHandler))
			if err == nil {
				err = o.take(t.Context())
			}
			if !errors.Is(err, ledger.ErrInUse) {
				t.Errorf("newcomer %d: %v", i, err)
			}
		})
	}
	all.Wait()
	mustAsk(t, l, "ho_1", testDebit("a"))
}

// together is a way by which newcomers write their records at the same time, each after all have found that the owner does not answer.
type together struct {
	elsewhere
	path string
	all  *sync.WaitGroup
	once *sync.Once
}

func (d together) OpenFile(name string, flag int) (ledger.File, error) {
	if name == d.path+".owner" && flag&os.O_WRONLY != 0 {
		d.once.Do(func() { d.all.Done(); d.all.Wait() })
	}
	return d.elsewhere.OpenFile(name, flag)
}

// TestOneNewcomerTakesTheLedger: of several that take a dead owner's place at the same time, one has the ledger then.
func TestOneNewcomerTakesTheLedger(t *testing.T) {
	t.Parallel()
	_, path := stalled(t)
	var all, writing sync.WaitGroup
	var owners atomic.Int64
	const newcomers = 4
	writing.Add(newcomers)
	for i := range newcomers {
		all.Go(func() {
			o, err := newOwnership(path, together{elsewhere{device: uint64(i + 1)}, path, &writing, new(sync.Once)}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Error(err)
				return
			}
			switch err := o.take(t.Context()); {
			case err == nil:
				owners.Add(1)
				t.Cleanup(func() { o.release() })
			case !errors.Is(err, ledger.ErrInUse):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := owners.Load(); n != 1 {
		t.Errorf("%d newcomers have the ledger", n)
	}
}

// TestOwnersRecord: a record that is none is not believed, one that is gone ends all commits until the next start, and names of any length fit.
func TestOwnersRecord(t *testing.T) {
	path := newPath(t)
	l, _, err := openAt(t, path, machine{}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	record := path + ".owner"
	whole := readFile(t, record)
	if err := overwrite(record, 0, []byte("not JSON")); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "the record of the ledger's server is none") {
		t.Errorf("a record that is none: %v", err)
	}
	if err := overwrite(record, 0, whole); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the ledger is ready", func() bool { return l.Ready(t.Context()) == nil })
	mustAsk(t, l, "ho_1", testDebit("c"))
	mustVerify(t, l)

	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := ask(l, t.Context(), "ho_1", testDebit("d")); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "the record of its server is gone") {
			t.Errorf("a removed record: %v", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	mustAsk(t, openTest(t, path), "ho_1", testDebit("d"))

	long, err := newOwnership(path, machine{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	long.self.Host, long.self.Path = shorten(strings.Repeat("\x01", 5000)), shorten(strings.Repeat("<é", 5000))
	long.self.Boot, long.self.Answered = strings.Repeat("b", 64), long.self.Token
	if err := long.write(path+".long", long.self); err != nil {
		t.Fatal(err)
	}
	if r, err := l.own.read(path + ".long"); err != nil || r.Path != long.self.Path || r.Host != long.self.Host {
		t.Errorf("long names: %v %v", r, err)
	}
}

// TestARecordThatACrashLeft: an empty record, which a machine that lost its power can leave, keeps nobody from starting for longer than an owner is asked.
func TestARecordThatACrashLeft(t *testing.T) {
	for _, content := range []string{"", strings.Repeat("\x00", recordBytes)} {
		t.Run(fmt.Sprint(len(content)), func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			mustCreate(t, openTest(t, path), testHoldout("ho_1", 100, 0))
			copied := newPath(t)
			if err := errors.Join(os.MkdirAll(filepath.Dir(copied), 0o700), copyFile(copied, path), copyFile(copied+"-wal", path+"-wal"), os.WriteFile(copied+".owner", []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
			l, said, err := openAt(t, copied, machine{}, ledger.Options{})
			if err != nil || !strings.Contains(said.String(), "asking whether it is alive") {
				t.Fatalf("%v, %s", err, said)
			}
			mustAsk(t, l, "ho_1", testDebit("a"))
		})
	}
}

// TestAskingCanBeGivenUp: whoever waits for an owner's answer may stop.
func TestAskingCanBeGivenUp(t *testing.T) {
	path := newPath(t)
	old, _, err := openAt(t, path, machine{}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stall(old)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, path, ledger.Options{Key: testKey, Disk: elsewhere{device: 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if _, err := ask(old, t.Context(), "ho_1", testDebit("a")); !errors.Is(err, ledger.ErrNotFound) { // it is the owner still
		t.Errorf("the owner: %v", err)
	}
}
