package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
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
	if err := json.Unmarshal(bodies[0], &said); err != nil || said.Epsilon != .5 || len(said.Columns) != 2 || said.Columns[1].Mean == nil || said.Warnings != nil || !strings.Contains(said.Guarantee, "only this release") || !strings.Contains(said.Guarantee, "e^0.5 = 1.65") || !strings.Contains(said.Guarantee, "e^1 = 2.72") || !strings.Contains(said.Guarantee, "exact number of rows") || !strings.Contains(said.Guarantee, "of other servers") {
		t.Errorf("%s (%v)", bodies[0], err)
	}
	var refused *Error
	if _, err := s.Release(t.Context(), admin, id, aRelease(.500001)); !errors.As(err, &refused) || refused.Kind != EpsilonExhausted || refused.Members["remaining"] != .5 {
		t.Errorf("more than is left: %v", err)
	}
	if _, err := s.Release(t.Context(), analyst, id, n); KindOf(err) != Forbidden {
		t.Errorf("an analyst: %v", err)
	}
	if _, err := s.Releases(t.Context(), analyst, id, 0); KindOf(err) != Forbidden {
		t.Errorf("an analyst's list: %v", err)
	}
	other := aRelease(.1)
	other.ReleaseEpsilon = 2
	if _, err := s.Release(t.Context(), admin, id, other); KindOf(err) != Invalid {
		t.Errorf("another limit: %v", err)
	}
	last := mustRelease(t, s, id, NewRelease{Epsilon: .5})
	if list, err := s.Releases(t.Context(), admin, id, 0); err != nil || !reflect.DeepEqual(list, Releases{ReleaseAccount{Epsilon: 1, Spent: 1, Made: 2}, []json.RawMessage{bodies[0], last}, 0}) {
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
		if list, err := s.Releases(t.Context(), admin, id, 0); err != nil || list.Spent != .5 || len(list.Releases) != 1 {
			t.Errorf("%v: %+v (%v)", planted, list, err)
		}
	}
	mustRelease(t, s, id, aRelease(1))
	if list, err := s.Releases(t.Context(), admin, id, 0); err != nil || list.Spent != 1.5 || len(list.Releases) != 2 {
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
	next.ID, next.Digest, next.Spent, next.Released = "ho_next", ledger.Successor(h.Digest, id), nil, ledger.Epsilons{}
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
		if said.RowsPerUnit != max(most, 1) || (said.Rows != nil) != rows || !(said.Units.Low <= float64(card.Units.Training) && float64(card.Units.Training) <= said.Units.High) || said.Unit != "chart" || !strings.Contains(said.Guarantee, "other rows with the same values of chart") || !strings.Contains(said.Guarantee, "A row without a value of chart is protected by itself") {
			t.Errorf("%d rows of a unit: %+v of %d units", most, said, card.Units.Training)
		}
	}
}

// ofMeasured asks for a mean of a measured table.
func ofMeasured(epsilon float64) NewRelease {
	return NewRelease{Epsilon: epsilon, Columns: []release.ColumnRequest{{Name: "b", Low: new(-3.), High: new(3.)}}}
}

// TestReleaseCountsAsAsked: whatever decides whether rows were used before takes a release for a question: the table of a holdout with a release is not created again, also after its deletion, under any settings, nor with a cell changed.
// It notices a budget of epsilon that comes back.
func TestReleaseCountsAsAsked(t *testing.T) {
	rows := measured(t, 2_000, 1)
	for _, deleted := range []bool{false, true} {
		s := open(t, t.TempDir())
		first := create(t, s, Settings{Questions: 10}, madeOf(t, rows))
		mustRelease(t, s, first.ID, ofMeasured(3))
		if deleted {
			must(t, s.Delete(t.Context(), admin, first.ID))
		}
		for _, set := range []Settings{{Questions: 20}, {Questions: 10, Holdout: .3}, {Questions: 10, Overlap: overlapAccepted}} {
			set.Name, set.Mechanism = "again", "gaussian"
			_, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, madeOf(t, rows)))), "")
			var e *Error
			if !errors.As(err, &e) || e.Kind != Exists || e.Members["reason"] != reasonReleased || !strings.Contains(e.Detail, "private releases") {
				t.Errorf("deleted %v: the same table with %+v: %v", deleted, set, err)
			}
		}
		_, err := again(t, s, Settings{Name: "nudged"}, madeOf(t, nudged(rows)))
		if got := matters(t, err, first.ID); got[heldOutAgain] < .9 {
			t.Errorf("deleted %v: with one cell changed: %v", deleted, got)
		}
	}
}

// TestReleasedRowsComeAgain: rows that were in the training part of a holdout with releases have no fresh budget in another holdout, however they come there: under the same split or another one, as given parts, among other rows, from a
// retired or a deleted holdout. The refusal names the holdout and what it spent; accepted, the release, the list and both cards say so for good, with the sum. Other rows are not refused. It notices training parts that are not compared.
func TestReleasedRowsComeAgain(t *testing.T) {
	rows, fresh := measured(t, 2_000, 1), measured(t, 2_000, 2)
	file := func(columns []dataset.Column) []byte { return parquet(t, madeOf(t, columns)) }
	given := func(training, holdout []dataset.Column) func(t *testing.T, s *Service) Card {
		return func(t *testing.T, s *Service) Card {
			card, _, err := s.Create(t.Context(), admin, Settings{Name: "given", Mechanism: "gaussian", Split: splitGiven, Unit: rowUnit, Questions: 10, Overlap: overlapAccepted}, givenUpload(file(training), file(holdout)), "")
			must(t, err)
			return card
		}
	}
	accepted := func(columns []dataset.Column, set Settings) func(t *testing.T, s *Service) Card {
		return func(t *testing.T, s *Service) Card {
			set := set
			set.Questions, set.Overlap = 10, overlapAccepted
			return create(t, s, set, madeOf(t, columns))
		}
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, s *Service, id string)
		second func(t *testing.T, s *Service) Card
		share  float64
	}{
		"one cell changed":              {second: accepted(nudged(rows), Settings{}), share: .9},
		"another split":                 {second: accepted(nudged(rows), Settings{Holdout: .3}), share: .6},
		"after its deletion":            {before: func(t *testing.T, s *Service, id string) { must(t, s.Delete(t.Context(), admin, id)) }, second: accepted(nudged(rows), Settings{}), share: .9},
		"given, beside fresh held-out":  {second: given(rows, fresh), share: .9},
		"given, among fresh ones":       {second: given(stacked(rows, fresh), measured(t, 500, 3)), share: .9},
		"of a retired one, in the next": {before: func(t *testing.T, s *Service, id string) { retire(t, s, id) }, second: given(stacked(rows, fresh), measured(t, 500, 4)), share: .9},
		"other rows":                    {second: accepted(fresh, Settings{})},
		"held out there":                {second: given(fresh, rows)},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			first := create(t, s, Settings{Questions: 10, Holdout: .5}, madeOf(t, rows))
			n := ofMeasured(2)
			mustRelease(t, s, first.ID, n)
			if c.before != nil {
				c.before(t, s, first.ID)
			}
			second := c.second(t, s)
			n.Epsilon = .5
			_, err := s.Release(t.Context(), admin, second.ID, n)
			if c.share == 0 {
				must(t, err)
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Kind != ReleasedBefore || e.Members["holdout"] != first.ID || !strings.Contains(e.Detail, first.ID+" (2)") {
				t.Fatalf("rows of %s: %v", first.ID, err)
			}
			found := e.Members["earlier_releases"].([]EarlierRelease)
			if len(found) != 1 || found[0].Share < c.share || *found[0].Epsilon != 2 {
				t.Errorf("found %+v, want %v or more", found, c.share)
			}
			if list, err := s.Releases(t.Context(), admin, second.ID, 0); err != nil || list.Spent != 0 || len(list.Releases) != 0 {
				t.Errorf("the refusal spent: %+v (%v)", list, err)
			}
			n.EarlierReleases = "yes"
			_, err = s.Release(t.Context(), admin, second.ID, n)
			wantKind(t, "another word than accepted", err, Invalid)
			n.EarlierReleases = overlapAccepted
			body := mustRelease(t, s, second.ID, n)
			n.EarlierReleases = ""
			if again := mustRelease(t, s, second.ID, n); !bytes.Equal(again, body) {
				t.Errorf("the same without the word is another release: %s", again)
			}
			if bytes.Contains(body, []byte(first.ID)) || bytes.Contains(body, []byte("share\":0")) || bytes.Contains(body, []byte(releasedBeforeCode)) {
				t.Errorf("the release says what the rows have in common with others: %s", body)
			}
			n.Epsilon = .25
			_, err = s.Release(t.Context(), admin, second.ID, n)
			wantKind(t, "the next one, which nobody accepted", err, ReleasedBefore)
			must(t, s.Close())
			s = open(t, s.dir)
			list, err := s.Releases(t.Context(), admin, second.ID, 0)
			if err != nil || !reflect.DeepEqual(list.Earlier, []string{first.ID}) {
				t.Errorf("the list: %+v (%v)", list, err)
			}
			for _, id := range []string{first.ID, second.ID} {
				card, err := s.Card(t.Context(), admin, id)
				if id == first.ID && KindOf(err) == NotFound {
					continue
				}
				must(t, err)
				says := func(w Warning) bool {
					return w.Code == releasedBeforeCode && strings.Contains(w.Detail, "2.5 together")
				}
				if !slices.ContainsFunc(card.Warnings, says) {
					t.Errorf("the card of %s warns of %+v", id, card.Warnings)
				}
				all, err := s.List(t.Context(), admin)
				must(t, err)
				if !slices.ContainsFunc(all, func(c Card) bool { return c.ID == id && slices.ContainsFunc(c.Warnings, says) }) {
					t.Errorf("the list of holdouts does not warn of %s", id)
				}
			}
			report := verified(t, s)[second.ID]
			if report.Epsilon != .5 || report.Releases != 1 {
				t.Errorf("verified: %+v", report)
			}
		})
	}
}

// TestReleasesOfTheSameRowsAtOnce: of two holdouts of the same rows whose first releases race, one is made and the other sees it, on one server; on another server a release waits for the term of the first holdout there was.
func TestReleasesOfTheSameRowsAtOnce(t *testing.T) {
	rows := measured(t, 2_000, 1)
	s := open(t, t.TempDir())
	ids := []string{create(t, s, Settings{Questions: 10}, madeOf(t, rows)).ID, create(t, s, Settings{Questions: 10, Overlap: overlapAccepted}, madeOf(t, nudged(rows))).ID}
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			switch _, err := s.Release(t.Context(), admin, ids[i%2], ofMeasured(float64(i+1)/10)); {
			case err == nil:
				made.Add(1)
			case KindOf(err) == ReleasedBefore:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var spent [2]float64
	for i, id := range ids {
		list, err := s.Releases(t.Context(), admin, id, 0)
		must(t, err)
		spent[i] = list.Spent
	}
	if spent[0]*spent[1] != 0 || made.Load()+refused.Load() != 6 {
		t.Errorf("%d made, %d refused, with %v spent of the same rows", made.Load(), refused.Load(), spent)
	}
	asked := &askedTerms{numberedTerms: numberedTerms{Ledger: s.ledger}}
	s.shared, s.tenures.shared, s.tenures.look = asked, asked, s.lookAtMark
	var e *Error
	if _, err := s.Release(t.Context(), admin, ids[1], ofMeasured(.7)); !errors.As(err, &e) && err != nil {
		t.Error(err)
	}
	if !slices.Contains(asked.of, ids[0]) {
		t.Errorf("a release asked for the terms of %v, and not of the first holdout, %s", asked.of, ids[0])
	}
}

// TestReleaseWaitsForItsTurn: a release whose turn does not come is told so, and not that the server was too slow.
func TestReleaseWaitsForItsTurn(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	defer func(was time.Duration) { releaseTurn = was }(releaseTurn)
	releaseTurn = time.Millisecond
	s.releasing <- struct{}{}
	_, err := s.Release(t.Context(), admin, id, aRelease(.5))
	var e *Error
	if !errors.As(err, &e) || e.Kind != Unavailable || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(e.Detail, "did not come within 1ms") {
		t.Errorf("beside another release: %v", err)
	}
	<-s.releasing
	mustRelease(t, s, id, aRelease(.5))
}

// askedTerms keeps of which holdouts terms were asked for.
type askedTerms struct {
	numberedTerms
	mu sync.Mutex
	of []string
}

func (l *askedTerms) Term(ctx context.Context, id string) (int64, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of = append(l.of, id)
	return l.numberedTerms.Term(ctx, id)
}

// TestReleaseIsMarkedFirst: once a release was shown, a ledger that has forgotten it is noticed, however soon it is put back: no mark lags behind a release. A release whose mark cannot be written is not shown, also not when it is asked for
// again, until it can.
func TestReleaseIsMarkedFirst(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	ask(t, s, id, mean(1))
	must(t, s.Close())
	older := filepath.Join(t.TempDir(), "older")
	must(t, os.CopyFS(older, os.DirFS(dir)))
	must(t, filepath.WalkDir(older, func(name string, d fs.DirEntry, err error) error { // it is copied with other modes
		if err != nil || d.IsDir() {
			return errors.Join(err, os.Chmod(name, privateMode))
		}
		return os.Chmod(name, secretMode)
	}))
	s = open(t, dir)
	body := mustRelease(t, s, id, aRelease(3))
	mark, err := os.ReadFile(s.path(holdoutsDir, id, releaseMark))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(older, holdoutsDir, id, releaseMark), mark, secretMode)) // all else is as it was before, also the other mark
	set := open(t, older)
	_, err = set.Release(t.Context(), admin, id, aRelease(2))
	wantKind(t, "a release of a ledger that forgot one", err, RolledBack)
	_, err = set.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
	wantKind(t, "a question of a ledger that forgot a release", err, RolledBack)
	must(t, os.Remove(s.path(holdoutsDir, id, releaseMark)))
	must(t, os.Mkdir(s.path(holdoutsDir, id, releaseMark), privateMode))
	for what, shown := range map[string]func() (json.RawMessage, error){
		"replayed": func() (json.RawMessage, error) { return s.Release(t.Context(), admin, id, aRelease(3)) },
		"listed": func() (json.RawMessage, error) {
			list, err := s.Releases(t.Context(), admin, id, 0)
			if len(list.Releases) > 0 {
				return list.Releases[0], err
			}
			return nil, err
		},
	} {
		if got, err := shown(); err == nil || got != nil {
			t.Errorf("%s without a mark: %s", what, got)
		}
	}
	must(t, os.Remove(s.path(holdoutsDir, id, releaseMark)))
	if again := mustRelease(t, s, id, aRelease(3)); !bytes.Equal(again, body) {
		t.Errorf("once it can be marked: %s", again)
	}
	if again, err := os.ReadFile(s.path(holdoutsDir, id, releaseMark)); err != nil || !bytes.Equal(again, mark) {
		t.Errorf("its mark is %s, was %s (%v)", again, mark, err)
	}
}

// TestReleaseAfterARestore: where releases may be forgotten with a restore, a new one is refused, or accepted and says so for good, also of a holdout that was made since; where nothing was lost nothing is said.
func TestReleaseAfterARestore(t *testing.T) {
	for _, lost := range []bool{true, false} {
		dir := t.TempDir()
		s := open(t, dir)
		before := create(t, s, Settings{Questions: 10}, visits(t, 400, 1))
		first := mustRelease(t, s, before.ID, aRelease(.5))
		must(t, s.Close())
		must(t, restores{Restores: []restore{{Backup: before.Created, Restored: time.Now()}}}.write(dir))
		s = open(t, dir)
		_, err := s.Release(t.Context(), admin, before.ID, aRelease(1))
		wantKind(t, "before anybody has said what was lost", err, RolledBack)
		must(t, s.Close())
		must(t, AcceptRestored(dir, Accepted{Lost: lost}))
		s = open(t, dir)
		if again := mustRelease(t, s, before.ID, aRelease(.5)); !bytes.Equal(again, first) {
			t.Errorf("replayed as %s", again)
		}
		after := create(t, s, Settings{Questions: 10}, visits(t, 400, 2))
		for _, id := range []string{before.ID, after.ID} { // the table of the second one may have been uploaded in between, and released of
			n := aRelease(1)
			if lost {
				_, err := s.Release(t.Context(), admin, id, n)
				var e *Error
				if !errors.As(err, &e) || e.Kind != ReleasedBefore || !strings.Contains(e.Detail, "forgotten") {
					t.Fatalf("after a loss that was accepted: %v", err)
				}
				n.EarlierReleases = overlapAccepted
			}
			var said Released
			must(t, json.Unmarshal(mustRelease(t, s, id, n), &said))
			if warned := len(said.Warnings) == 1 && said.Warnings[0].Code == Restored && strings.Contains(said.Warnings[0].Detail, "add up to this one"); warned != lost {
				t.Errorf("lost %v: the release of %s warns of %+v", lost, id, said.Warnings)
			}
		}
	}
}

// TestReleaseOfALostLedger: a holdout that the ledger has forgotten may have had releases: one of its rows is refused, and accepted says that nobody knows what was spent.
func TestReleaseOfALostLedger(t *testing.T) {
	dir, rows := t.TempDir(), measured(t, 2_000, 1)
	s := open(t, dir)
	lost := create(t, s, Settings{Questions: 10}, madeOf(t, rows)).ID
	mustRelease(t, s, lost, ofMeasured(3))
	must(t, s.Close())
	for _, name := range []string{ledgerFile, ledgerFile + "-wal", ledgerFile + "-shm"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	s = open(t, dir, func(o *Options) { o.AcceptLostLedger = true })
	id := create(t, s, Settings{Questions: 10, Overlap: overlapAccepted}, madeOf(t, nudged(rows))).ID
	n := ofMeasured(1)
	_, err := s.Release(t.Context(), admin, id, n)
	var e *Error
	if !errors.As(err, &e) || e.Kind != ReleasedBefore || e.Members["holdout"] != lost || !strings.Contains(e.Detail, "nobody knows") {
		t.Fatalf("of rows of a holdout that was forgotten: %v", err)
	}
	n.EarlierReleases = overlapAccepted
	mustRelease(t, s, id, n)
	card, err := s.Card(t.Context(), admin, id)
	must(t, err)
	if !slices.ContainsFunc(card.Warnings, func(w Warning) bool {
		return w.Code == releasedBeforeCode && strings.Contains(w.Detail, "nobody knows")
	}) {
		t.Errorf("the card warns of %+v", card.Warnings)
	}
}

// TestRefusedReleaseLeavesTheDraft: what public facts refuse does not end a holdout's being a draft, and is never the server's own fault.
func TestRefusedReleaseLeavesTheDraft(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.Work = 3_000_000_000 })
	id := create(t, s, Settings{Questions: 10, Unit: "chart"}, visits(t, 400, 1)).ID
	ranks := make([]float64, 99)
	for i := range ranks {
		ranks[i] = float64(i+1) / 100
	}
	bounded := func(low, high float64, ranks ...float64) []release.ColumnRequest {
		var all []release.ColumnRequest
		for _, name := range []string{"chart", "score", "x"} {
			all = append(all, release.ColumnRequest{Name: name, Low: new(low), High: new(high), Quantiles: ranks})
		}
		return all
	}
	for name, c := range map[string]struct {
		n    NewRelease
		want Kind
	}{
		"more work than is given":     {NewRelease{Epsilon: 1, Columns: bounded(0, 1, ranks...)}, TooLarge},
		"bounds that are one":         {NewRelease{Epsilon: 1, Columns: bounded(0, 5e-324)}, Invalid},
		"more epsilon than there is":  {NewRelease{Epsilon: 4}, EpsilonExhausted},
		"an epsilon that drowns all":  {NewRelease{Epsilon: .001, RowsPerUnit: 1025}, Invalid},
		"a rank beyond what is known": {NewRelease{Epsilon: 1, Columns: bounded(0, 1, .001)}, Invalid},
	} {
		_, err := s.Release(t.Context(), admin, id, c.n)
		wantKind(t, name, err, c.want)
		if h, err := s.ledger.Holdout(t.Context(), id); err != nil || !h.Draft {
			t.Errorf("%s: the holdout is a draft no more (%v)", name, err)
		}
	}
	if _, err := s.Release(t.Context(), admin, id, NewRelease{Epsilon: .001, RowsPerUnit: 1024, Columns: bounded(0, 1)}); err != nil && KindOf(err) != Invalid {
		t.Errorf("the least epsilon for the most rows of a unit: %v", err)
	}
}

// TestSameRequestIsPaidOnce: no columns, none named, and an empty list are one request, and so are the zeros of bounds.
func TestSameRequestIsPaidOnce(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	bounded := func(low float64) []release.ColumnRequest {
		return []release.ColumnRequest{{Name: "x", Low: new(low), High: new(1.), Edges: []float64{low, .5}}}
	}
	for i, same := range [][2][]release.ColumnRequest{{nil, {}}, {bounded(0), bounded(math.Copysign(0, -1))}} {
		first := mustRelease(t, s, id, NewRelease{Epsilon: .5, Columns: same[0]})
		if second := mustRelease(t, s, id, NewRelease{Epsilon: .5, ReleaseEpsilon: 3, Columns: same[1]}); !bytes.Equal(first, second) {
			t.Errorf("%s\n%s", first, second)
		}
		if list, err := s.Releases(t.Context(), admin, id, 0); err != nil || list.Spent != .5*float64(i+1) {
			t.Errorf("%+v (%v)", list.ReleaseAccount, err)
		}
	}
}

// TestReleasesComeInPages: a list of large releases comes in pages, each of a bounded size, and all of it comes once.
func TestReleasesComeInPages(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 10}, visits(t, 400, 1)).ID
	var texts []string
	for i := range 800 {
		texts = append(texts, fmt.Sprintf("%04d%s", i, strings.Repeat("x", 800)))
	}
	var want, got []string
	for i := range 5 {
		want = append(want, string(mustRelease(t, s, id, NewRelease{Epsilon: float64(10+i) / 100, Columns: []release.ColumnRequest{{Name: "clinic", Texts: texts}}})))
	}
	pages := 0
	for after := int64(0); ; pages++ {
		page, err := s.Releases(t.Context(), admin, id, after)
		must(t, err)
		size := 0
		for _, r := range page.Releases {
			got, size = append(got, string(r)), size+len(r)
		}
		if size > releasesPage+ledger.MaxCoreBytes || page.Made != 5 {
			t.Errorf("a page of %d bytes, of %d releases", size, page.Made)
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	if pages == 0 || !slices.Equal(got, want) {
		t.Errorf("%d releases on %d pages, want %d", len(got), pages+1, len(want))
	}
}
