package holdout

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

// lentSource is a source that several services have open: it is closed by the test.
type lentSource struct{ sources.Source }

func (lentSource) Close() error         { return nil }
func (lentSource) RowsHavePlaces() bool { return true }
func visitsTables(t *testing.T, seed uint64) map[string]*dataset.Table {
	return map[string]*dataset.Table{"v": visits(t, 400, seed)}
}

// begun registers the table v, and waits until the source divides it, where it stays until the test goes on.
func begun(t *testing.T, s *Service, source *faulty, set Settings) (r Registration, goOn func()) {
	t.Helper()
	dividing, wait := make(chan struct{}), make(chan struct{})
	source.divided = func() error {
		close(dividing)
		<-wait
		return nil
	}
	goOn = sync.OnceFunc(func() { close(wait) })
	t.Cleanup(goOn)
	set.Mechanism, set.Questions = "gaussian", 20
	r, _, err := s.Register(t.Context(), admin, set, "lake", "v", "")
	must(t, err)
	<-dividing
	return r, goOn
}

// TestRegistrationElsewhere: a server says of a registration that another one works on how far it is, also in its list; it ends it, and the one that works on it drops what it had made, although its source has
// made all parts by then; and it says why one has failed, and that one is silent whose server has stopped. It would notice a reply that nothing is left of a registration that goes on, a cancellation that nobody
// hears, and a holdout that is recorded after it was cancelled.
func TestRegistrationElsewhere(t *testing.T) {
	source := faultyLake(t, 400, 31)
	all := replicas(t, 2, withSource(lentSource{source}))
	r, goOn := begun(t, all[0], source, Settings{})
	awaitedAs := func(s *Service, want RegistrationStage) Registration {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			now, err := s.Registration(t.Context(), admin, r.ID)
			if err == nil && now.Stage == want {
				return now
			}
			if time.Now().After(deadline) {
				t.Fatalf("want %s: %+v, %v", want, now, err)
			}
		}
	}
	if now := awaitedAs(all[1], RegistrationDividing); now.Table != "v" || now.Rows != 400 {
		t.Errorf("another server says %+v", now)
	}
	if list, err := all[1].Registrations(t.Context(), admin); err != nil || len(list) != 1 || list[0].ID != r.ID {
		t.Errorf("another server lists %+v, %v", list, err)
	}
	if list, err := all[0].Registrations(t.Context(), admin); err != nil || len(list) != 1 {
		t.Errorf("its own server lists %+v, %v", list, err)
	}
	if _, err := all[1].Registration(t.Context(), analyst, r.ID); KindOf(err) != Forbidden {
		t.Errorf("an analyst hears of it: %v", err)
	}
	for _, id := range []string{"re_nosuch", "re_../" + r.ID, "../replica.lock", "re_"} {
		if _, err := all[1].Registration(t.Context(), admin, id); KindOf(err) != NotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
	// Its server hears of it before the commit at the latest.
	if now, err := all[1].CancelRegistration(t.Context(), admin, r.ID); err != nil || now.Stage.Ended() {
		t.Errorf("cancelled while its source divides: %+v, %v", now, err)
	}
	goOn()
	awaitedAs(all[0], RegistrationCancelled)
	awaitedAs(all[1], RegistrationCancelled)
	nothingLeft(t, all[1], source)
	if cards, err := all[1].List(t.Context(), admin); err != nil || len(cards) != 0 {
		t.Errorf("there is a holdout: %v, %v", cards, err)
	}

	source.divided = func() error {
		return &sources.Error{Kind: sources.Refused, Detail: "a reason", Err: errors.New("secret")}
	}
	r, _, err := all[0].Register(t.Context(), admin, Settings{Questions: 20}, "lake", "v", "")
	must(t, err)
	if now := awaitedAs(all[1], RegistrationFailed); now.Problem == nil || now.Problem.Kind != SourceRefused || now.Problem.Detail != "a reason" || strings.Contains(now.Problem.Error(), "secret") {
		t.Errorf("another server says why: %+v", now.Problem)
	}

	silent := r
	silent.ID, silent.Stage, silent.Problem = "re_silent", RegistrationDividing, nil
	must(t, all[0].tell(silent))
	old := time.Now().Add(-2 * silentFor)
	must(t, os.Chtimes(all[0].toldPath(silent.ID), old, old))
	if now, err := all[1].Registration(t.Context(), admin, silent.ID); err != nil || now.Stage != RegistrationFailed || now.Problem.Kind != Unavailable {
		t.Errorf("of a server that says nothing any more: %+v, %v", now, err)
	}
	if now, err := all[1].CancelRegistration(t.Context(), admin, silent.ID); err != nil || now.Stage != RegistrationFailed {
		t.Errorf("cancelled: %+v, %v", now, err)
	}
}

// TestCancelledBeforeTheCommit: a registration that was ended at another server is not recorded, although its own has not heard of it otherwise.
func TestCancelledBeforeTheCommit(t *testing.T) {
	source := faultyLake(t, 400, 32)
	all := replicas(t, 2, withSource(lentSource{source}))
	source.divided = func() error {
		list := all[0].registrations.newest()
		return all[1].ledger.EndSession(context.Background(), cancellation(list[0].ID), time.Now().Add(time.Hour))
	}
	r, _, err := all[0].Register(t.Context(), admin, Settings{Questions: 20}, "lake", "v", "")
	must(t, err)
	if r = awaited(t, all[0], r.ID); r.Stage != RegistrationCancelled {
		t.Errorf("%+v, %v", r, r.Problem)
	}
	nothingLeft(t, all[1], source)
}

// TestRegisteredForAll: a holdout that one server has registered is answered by all servers with the same bytes and of one budget; the same registration at two servers at once is one holdout.
func TestRegisteredForAll(t *testing.T) {
	source := faultyLake(t, 3000, 33)
	all := replicas(t, 2, withSource(lentSource{source}))
	var both sync.WaitGroup
	ended := make([]Registration, 2)
	for i, s := range all {
		both.Go(func() {
			r, _, err := s.Register(context.Background(), admin, Settings{Mechanism: "gaussian", Questions: 3}, "lake", "v", "once")
			if err != nil {
				t.Error(err)
				return
			}
			ended[i] = awaited(t, s, r.ID)
		})
	}
	both.Wait()
	if ended[0].Stage != RegistrationDone || ended[1].Stage != RegistrationDone || ended[0].Holdout != ended[1].Holdout {
		t.Fatalf("the same request at two servers: %+v %v\n%+v %v", ended[0], ended[0].Problem, ended[1], ended[1].Problem)
	}
	id := ended[0].Holdout
	if parts, err := source.Parts(t.Context()); err != nil || len(parts) != 2 {
		t.Errorf("the source keeps %v, %v", parts, err)
	}
	first := ask(t, all[0], id, mean(0))
	if again := ask(t, all[1], id, mean(0)); !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("one server says %s, another %s", first.Body, again.Body)
	}
	ask(t, all[1], id, mean(1))
	ask(t, all[0], id, mean(2))
	for _, s := range all {
		if _, err := s.Ask(t.Context(), analyst, id, []byte(mean(3)), ""); KindOf(err) != BudgetExhausted {
			t.Errorf("after the last question: %v", err)
		}
	}
}

// TestServerDiesRegistering: what a server has made of a holdout goes when it starts again, and not before it is sure that the ledger does not have it; other servers leave it alone. It would notice parts that are
// dropped while the ledger may yet record their holdout, and what stays beside shared tables for a day.
func TestServerDiesRegistering(t *testing.T) {
	source := faultyLake(t, 400, 34)
	all := replicas(t, 2, withSource(lentSource{source}))
	dead := all[0]
	must(t, dead.noteParts("ho_dead", "lake", []string{"hodead_training", "hodead_holdout"}))
	lake := source.Source
	made, err := lake.Look(t.Context(), "v")
	must(t, err)
	_, err = lake.Divide(t.Context(), made, sources.Keys{}, []sources.PartSpec{{Name: "hodead_training", Units: 200}, {Name: "hodead_holdout", Units: 200}}, alternating(), nil)
	must(t, err)
	for _, dir := range []string{filepath.Join(dead.making, "ho_dead"), dead.holdoutPath("ho_dead")} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	must(t, os.WriteFile(dead.holdoutPath("ho_dead", uncommitted), nil, 0o600))
	there := func(want bool) {
		t.Helper()
		parts, err := source.Parts(t.Context())
		_, making := os.Lstat(filepath.Join(dead.making, "ho_dead"))
		_, table := os.Lstat(dead.holdoutPath("ho_dead"))
		_, note := os.Lstat(dead.path(notesDir, "ho_dead"))
		if err != nil || (len(parts) == 2) != want || (making == nil) != want || (table == nil) != want || (note == nil) != want {
			t.Errorf("want all there: %v; parts %v, %v; %v, %v, %v", want, parts, err, making, table, note)
		}
	}
	all[1].dropAllNoted(t.Context())
	must(t, all[1].sweep(t.Context()))
	there(true)
	dead.dropAllNoted(t.Context())
	there(true)
	old := time.Now().Add(-2 * outcomeWithin)
	must(t, os.Chtimes(dead.path(notesDir, "ho_dead"), old, old))
	dead.dropAllNoted(t.Context())
	there(false)
}

// alternating puts units on two sides in turn.
func alternating() func(sources.Units, []sources.Place) error {
	next := 0
	return func(_ sources.Units, places []sources.Place) error {
		for i := range places {
			places[i] = sources.Place{Part: next % 2, Number: int64(next / 2)}
			next++
		}
		return nil
	}
}

// TestPartsOfAnotherServer: a server whose source keeps parts in another directory says so, and neither that rows were changed nor that tables are missing; it answers once the parts are there.
func TestPartsOfAnotherServer(t *testing.T) {
	at := []string{t.TempDir(), t.TempDir()}
	all := replicas(t, 2)
	for i, s := range all {
		s.sources["lake"] = &place{Source: lake(t, at[i], visitsTables(t, 35)), name: "lake"}
	}
	card := registerTable(t, all[0], Settings{Questions: 20}, "v")
	ask(t, all[0], card.ID, mean(0))
	if a := ask(t, all[1], card.ID, mean(0)); !a.Replayed {
		t.Error("an answer is not replayed")
	}
	if _, err := all[1].Ask(t.Context(), analyst, card.ID, []byte(mean(1)), ""); KindOf(err) != SourceUnavailable || !strings.Contains(err.Error(), "the same directory of parts") {
		t.Errorf("without the parts: %v", err)
	}
	if spent := spentQuestions(t, all[1], card.ID); spent != 1 {
		t.Errorf("%d questions are spent", spent)
	}
	must(t, os.RemoveAll(filepath.Join(at[1], "parts")))
	must(t, os.Symlink(filepath.Join(at[0], "parts"), filepath.Join(at[1], "parts")))
	ask(t, all[1], card.ID, mean(1))
}
