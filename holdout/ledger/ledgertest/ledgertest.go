// Package ledgertest says whether an implementation keeps the contract of package ledger: what is durable when, what a refusal
// leaves behind, what a failed commit costs, and that the books of every meter add up.
//
// It tests through the contract alone, so that one implementation is held to the same as another. What only one has (files, tables,
// a lock) is for its own tests. That these tests can fail is kept by tests/faults/contract.txt.
package ledgertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Store is where one ledger is kept: a file, or a schema of a database.
type Store interface {
	// Open opens the ledger, and makes it where there is none. One ledger of a store is open at a time, unless the store is Shared.
	Open(ctx context.Context, o ledger.Options) (ledger.Ledger, error)
	// Crash is a store that holds what would be there if every process of the open ledger had been killed at this moment. The open ledger goes
	// on, and what it writes from now on is not in it.
	Crash(t testing.TB) Store
	// Verify recomputes all chains and books, without the server key, in the order of the holdouts' creation. It may be called while the ledger
	// is open.
	Verify(ctx context.Context) ([]ledger.Report, error)
}

// Shared is a store that several servers may have open at once, each with a ledger of its own.
type Shared interface {
	Store
	// Servers is how many ledgers the tests open at once where callers are many.
	Servers() int
}

// Run tests an implementation. empty makes a store with nothing in it, which may live as long as the test.
func Run(t *testing.T, empty func(t testing.TB) Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"AnswerIsRecordedAndReplayed", answerIsRecordedAndReplayed},
		{"MetersAreKeptByName", metersAreKeptByName},
		{"LimitOfEachMeter", limitOfEachMeter},
		{"RefusalLeavesNothing", refusalLeavesNothing},
		{"FailedUpdateKeepsNothing", failedUpdateKeepsNothing},
		{"VoidIsPaidAndAskedAgain", voidIsPaidAndAskedAgain},
		{"InvalidIsRefused", invalidIsRefused},
		{"AnswersPages", answersPages},
		{"NotesAreKept", notesAreKept},
		{"NotFound", notFound},
		{"DraftsAreReplaced", draftsAreReplaced},
		{"AcknowledgedIsDurable", acknowledgedIsDurable},
		{"FailedCommit", failedCommit},
		{"DeadlineWhileACommitHangs", deadlineWhileACommitHangs},
		{"BegunUpdateCommitsWithoutItsCaller", begunUpdateCommitsWithoutItsCaller},
		{"ManyCallersNeverOverspend", manyCallersNeverOverspend},
		{"AnswersAreSeenByTheNext", answersAreSeenByTheNext},
		{"CloseFinishesWhatWasAccepted", closeFinishesWhatWasAccepted},
		{"PanicIsTheCallersOwn", panicIsTheCallersOwn},
		{"CommittedIsTold", committedIsTold},
		{"ChainIsWhole", chainIsWhole},
		{"ClosingIsTheEnd", closingIsTheEnd},
		{"RetirementIsTheEnd", retirementIsTheEnd},
		{"ExportIsConsistentWhileWriting", exportIsConsistentWhileWriting},
		{"SameTableIsRefusedForEver", sameTableIsRefusedForEver},
		{"Idempotency", idempotency},
		{"Keys", keys},
		{"KeysOfSubjects", keysOfSubjects},
		{"Grants", grants},
		{"GrantsAreNested", grantsAreNested},
		{"GrantsAreMadeOnce", grantsAreMadeOnce},
		{"DebitsAreTheChains", debitsAreTheChains},
		{"Releases", releases},
		{"ReleasesArePaid", releasesArePaid},
		{"WrongKeyAndReplayOnly", wrongKeyAndReplayOnly},
		{"MustExist", mustExist},
		{"Model", model},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, &suite{store: empty(t)}) })
	}
}

// suite is one test's store, and what makes its commits fail or wait.
type suite struct {
	store Store

	mu    sync.Mutex
	fault func(step string) error
}

// serverKey seals what the tests store.
var serverKey = [32]byte{1, 2, 3}

// open opens the store's ledger until the test's end.
func (s *suite) open(t testing.TB) ledger.Ledger {
	t.Helper()
	l, err := s.tryOpen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// openAll opens a ledger for each server that the store is shared by; one, where it is not.
func (s *suite) openAll(t testing.TB) []ledger.Ledger {
	t.Helper()
	all := []ledger.Ledger{s.open(t)}
	if shared, ok := s.store.(Shared); ok {
		for len(all) < shared.Servers() {
			all = append(all, s.open(t))
		}
	}
	return all
}

func (s *suite) tryOpen() (ledger.Ledger, error) {
	return s.store.Open(context.Background(), ledger.Options{Key: serverKey, Fault: s.step})
}

// plant makes commits do this at their steps; nil mends them.
func (s *suite) plant(fault func(step string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *suite) step(name string) error {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(name)
}

// hold lets the next commit wait at a step. entered is closed when it is there; release lets it, and all behind it, go on. A test that
// ends before it releases does so at its end, before its ledgers are closed: closing waits for the commit.
func (s *suite) hold(t testing.TB, at string) (entered <-chan struct{}, release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(in) })
	s.plant(func(step string) error {
		if step == at {
			once()
			<-out
		}
		return nil
	})
	release = sync.OnceFunc(func() {
		s.plant(nil)
		close(out)
	})
	t.Cleanup(release)
	return in, release
}

// verify recomputes the store and the export of every holdout, and compares the two.
func (s *suite) verify(t testing.TB, l ledger.Ledger) []ledger.Report {
	t.Helper()
	reports, err := s.store.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range reports {
		got, err := ledger.VerifyExport(bytes.NewReader(export(t, l, want.Holdout)))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("export says %+v, the store %+v", got, want)
		}
	}
	return reports
}

func testHoldout(id string, questions, tokens int64) ledger.Holdout {
	return ledger.Holdout{
		ID: id, Created: time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC), Digest: sha256.Sum256([]byte("table of " + id)),
		Public: []byte(`{"name":"flights <3"}`), Secret: []byte("the holdout key"), State: []byte("state 0"),
		Limits: ledger.Meters{"questions": questions, "tokens": tokens},
	}
}

func create(t testing.TB, l ledger.Ledger, h ledger.Holdout) {
	t.Helper()
	if err := l.CreateHoldout(context.Background(), h, nil); err != nil {
		t.Fatal(err)
	}
}

func testDebit(name string) ledger.Debit {
	canonical := []byte(`{"of":"` + name + `"}`)
	return ledger.Debit{
		Query: ledger.HeadText(sha256.Sum256(canonical)), Canonical: canonical, Principal: "key_a", Cost: ledger.Meters{"questions": 1},
		Core: []byte(`{"query":"` + name + `","value":0.25}`), Time: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC),
	}
}

func ask(l ledger.Ledger, ctx context.Context, id string, d ledger.Debit) (r ledger.Receipt, err error) {
	err = l.Update(ctx, id, func(tx *ledger.Tx) (err error) {
		r, err = tx.Append(d)
		return err
	})
	return r, err
}

func mustAsk(t testing.TB, l ledger.Ledger, id string, d ledger.Debit) ledger.Receipt {
	t.Helper()
	r, err := ask(l, context.Background(), id, d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func export(t testing.TB, l ledger.Ledger, id string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := l.Export(context.Background(), id, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// spent demands what is spent of a holdout.
func spent(t testing.TB, l ledger.Ledger, id string, want ledger.Meters) {
	t.Helper()
	if h, err := l.Holdout(context.Background(), id); err != nil || !h.Spent.Equal(want) {
		t.Errorf("spent %v (%v), want %v", h.Spent, err, want)
	}
}

// ready waits until the ledger can commit again.
func ready(l ledger.Ledger) {
	for l.Ready(context.Background()) != nil {
		time.Sleep(time.Millisecond)
	}
}

func numbered(i int) ledger.Debit { return testDebit(fmt.Sprint(i)) }
