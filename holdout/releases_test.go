package holdout

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/release"
)

// aRelease asks for a mean and counts.
func aRelease(epsilon float64) NewRelease {
	return NewRelease{Epsilon: epsilon, Columns: []release.ColumnRequest{{Name: "late"}, {Name: "x", Low: new(0.), High: new(1.)}}}
}

func mustRelease(t testing.TB, s *Service, id string, n NewRelease) json.RawMessage {
	t.Helper()
	body, err := s.Release(t.Context(), admin, id, n)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestReleaseIsPaidOnce: the same release in another order, later, of racing callers and after a restart is the recorded one and costs nothing; what they spend adds up to the limit of the first and no further, and only admins may.
func TestReleaseIsPaidOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	n := aRelease(.5)
	n.ReleaseEpsilon = 1
	bodies := make([]json.RawMessage, 4)
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() { bodies[i] = mustRelease(t, s, id, n) })
	}
	wg.Wait()
	turned := aRelease(.5)
	turned.Columns[0], turned.Columns[1] = turned.Columns[1], turned.Columns[0]
	bodies = append(bodies, mustRelease(t, s, id, turned))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	bodies = append(bodies, mustRelease(t, s, id, n))
	for i, body := range bodies {
		if !bytes.Equal(body, bodies[0]) {
			t.Errorf("release %d: %s, want %s", i, body, bodies[0])
		}
	}
	var said Released
	if err := json.Unmarshal(bodies[0], &said); err != nil || said.Epsilon != .5 || len(said.Columns) != 2 || said.Columns[1].Mean == nil || !strings.Contains(said.Guarantee, "only this release") {
		t.Errorf("%s (%v)", bodies[0], err)
	}
	var refused *Error
	if _, err := s.Release(t.Context(), admin, id, aRelease(.500001)); !errors.As(err, &refused) || refused.Kind != EpsilonExhausted || refused.Members["remaining"] != .5 {
		t.Errorf("more than is left: %v", err)
	}
	if _, err := s.Release(t.Context(), analyst, id, n); KindOf(err) != Forbidden {
		t.Errorf("an analyst: %v", err)
	}
	if _, err := s.Releases(t.Context(), analyst, id); KindOf(err) != Forbidden {
		t.Errorf("an analyst's list: %v", err)
	}
	other := aRelease(.1)
	other.ReleaseEpsilon = 2
	if _, err := s.Release(t.Context(), admin, id, other); KindOf(err) != Invalid {
		t.Errorf("another limit: %v", err)
	}
	last := mustRelease(t, s, id, NewRelease{Epsilon: .5})
	if list, err := s.Releases(t.Context(), admin, id); err != nil || !reflect.DeepEqual(list, Releases{ReleaseAccount{1, 1, 0}, []json.RawMessage{bodies[0], last}}) {
		t.Errorf("the list: %+v %v", list, err)
	}
	if again := mustRelease(t, s, id, n); !bytes.Equal(again, bodies[0]) {
		t.Errorf("with nothing left: %s", again)
	}
	if b, err := s.Budget(t.Context(), admin, id); err != nil || b.Questions.Left != 10 {
		t.Errorf("releases spent questions: %+v (%v)", b, err)
	}
}

// TestReleaseIsOfTheChain: a release carries its place in the chain, stands in the export with what it spent, and is noticed as missing where an older ledger is put back: nothing new is released then, and what is there is replayed.
func TestReleaseIsOfTheChain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	first := mustRelease(t, s, id, aRelease(1))
	must(t, s.Close())
	older := copyLedger(t, dir)
	s = open(t, dir)
	var said struct {
		Ledger struct {
			Seq  int64
			Head string
		}
	}
	must(t, json.Unmarshal(mustRelease(t, s, id, aRelease(2)), &said))
	if head, ok, err := s.ledger.HeadAt(t.Context(), id, said.Ledger.Seq); !ok || err != nil || head != said.Ledger.Head || said.Ledger.Seq != 2 {
		t.Errorf("a release at %+v, where the chain has %q (%v)", said.Ledger, head, err)
	}
	var export bytes.Buffer
	must(t, s.Export(t.Context(), admin, id, &export))
	if report, err := ledger.VerifyExport(&export); err != nil || report.Releases != 2 || report.Epsilon != 3 {
		t.Errorf("the export: %+v (%v)", report, err)
	}
	must(t, s.Close())
	older()
	s = open(t, dir)
	_, err := s.Release(t.Context(), admin, id, aRelease(1.5))
	wantKind(t, "a new release of an older ledger", err, RolledBack)
	if again := mustRelease(t, s, id, aRelease(1)); !bytes.Equal(again, first) {
		t.Errorf("replayed as %s", again)
	}
}

// TestReleaseIsRecordedFirst: where the ledger cannot commit, nothing is shown and nothing is spent; asked again, the release has the same numbers.
func TestReleaseIsRecordedFirst(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	mustRelease(t, s, id, aRelease(.5))
	plantFaults(t, dir)
	for _, planted := range []error{errors.New("planted: the disk"), errRefused} {
		setFault(t, func(table string, seq int64) error {
			if table == "books" && seq == 2 {
				return planted
			}
			return nil
		})
		body, err := s.Release(t.Context(), admin, id, aRelease(1))
		if err == nil || body != nil {
			t.Errorf("%v: shown without a record: %s", planted, body)
		}
		setFault(t, nil)
		healthy(t, s)
		if list, err := s.Releases(t.Context(), admin, id); err != nil || list.Spent != .5 || len(list.Releases) != 1 {
			t.Errorf("%v: %+v (%v)", planted, list, err)
		}
	}
	mustRelease(t, s, id, aRelease(1))
	if list, err := s.Releases(t.Context(), admin, id); err != nil || list.Spent != 1.5 || len(list.Releases) != 2 {
		t.Errorf("once it can be recorded: %+v (%v)", list, err)
	}
}

// TestReleaseOfAClosedHoldout: a closed holdout has no new release, and neither has a retired one; both replay those that they have.
func TestReleaseOfAClosedHoldout(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "guess_and_check", Questions: 10}, visits(t, 400, 1)).ID
	first := mustRelease(t, s, id, aRelease(1))
	if _, err := s.CloseWithReport(t.Context(), admin, id, []json.RawMessage{json.RawMessage(mean(1))}, "", ""); err != nil {
		t.Fatal(err)
	}
	_, err := s.Release(t.Context(), admin, id, aRelease(.5))
	wantKind(t, "a release after the report", err, Invalid)
	if again := mustRelease(t, s, id, aRelease(1)); !bytes.Equal(again, first) {
		t.Errorf("replayed as %s", again)
	}
	if _, err := s.Retire(t.Context(), admin, id); err != nil {
		t.Fatal(err)
	}
	_, err = s.Release(t.Context(), admin, id, aRelease(.5))
	wantKind(t, "a release after the retirement", err, Invalid)
	if again := mustRelease(t, s, id, aRelease(1)); !bytes.Equal(again, first) {
		t.Errorf("replayed after the retirement as %s", again)
	}
}

// TestReleaseReadsNoHeldOutRow: two holdouts whose held-out rows differ, and whose training parts do not, have the same release from the same noise.
func TestReleaseReadsNoHeldOutRow(t *testing.T) {
	s := open(t, t.TempDir())
	training := parquet(t, visits(t, 500, 1))
	var all []*release.Result
	for seed := range uint64(2) {
		card, _, err := s.Create(t.Context(), admin, Settings{Name: "given", Split: splitGiven, Unit: rowUnit, Questions: 10, Overlap: "accepted"}, givenUpload(training, parquet(t, visits(t, 300+200*int(seed), 7+seed))), "")
		if err != nil {
			t.Fatal(err)
		}
		h, done, err := s.take(t.Context(), card.ID)
		if err != nil {
			t.Fatal(err)
		}
		r, err := new(aRelease(1)).request(&h.card)
		if err != nil {
			t.Fatal(err)
		}
		out, err := h.released(t.Context(), s.path(holdoutsDir, card.ID), r, noise.Seeded(3))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out)
		done()
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		t.Errorf("%+v\n%+v", all[0], all[1])
	}
}

// TestReleaseEndsTheDraft: the table of a holdout with a release is not created again, which would begin with nothing spent.
func TestReleaseEndsTheDraft(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 400, 1)
	id := create(t, s, Settings{Questions: 10}, table).ID
	mustRelease(t, s, id, aRelease(1))
	h, err := s.ledger.Holdout(t.Context(), id)
	if err != nil || h.Draft {
		t.Errorf("a draft: %v", err)
	}
	next := h
	next.ID, next.Digest, next.Spent = "ho_next", ledger.Successor(h.Digest, id), nil
	if err := s.ledger.ReplaceHoldout(t.Context(), ledger.Replaced{ID: id}, next, nil); !errors.Is(err, ledger.ErrAsked) {
		t.Errorf("replaced: %v", err)
	}
}

// TestReleaseOfUnits: the rows of a unit are protected together, and at most one counts where nothing else is said.
func TestReleaseOfUnits(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 10, Unit: "chart"}, visits(t, 4000, 1)).ID
	card, err := s.Card(t.Context(), admin, id)
	if err != nil {
		t.Fatal(err)
	}
	for most, rows := range map[int]bool{0: false, 4: true} {
		n := aRelease(1)
		n.RowsPerUnit = most
		var said Released
		if err := json.Unmarshal(mustRelease(t, s, id, n), &said); err != nil {
			t.Fatal(err)
		}
		if said.RowsPerUnit != max(most, 1) || (said.Rows != nil) != rows || !(said.Units.Low <= float64(card.Units.Training) && float64(card.Units.Training) <= said.Units.High) || said.Unit != "chart" {
			t.Errorf("%d rows of a unit: %+v of %d units", most, said, card.Units.Training)
		}
	}
}
