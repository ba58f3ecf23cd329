package ledgertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// chainIsWhole: every entry follows from the one before, of every kind, and is what was recorded.
func chainIsWhole(t *testing.T, s *suite) {
	l := s.open(t)
	h := testHoldout("ho_1", 10, 2)
	create(t, l, h)
	heads := []string{ledger.HeadText(h.Genesis().Head)}
	err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error { // two in one update, with what JSON escapes
		for _, name := range []string{"b <&>", "c \u2028"} {
			r, err := tx.Append(testDebit(name))
			if err != nil {
				return err
			}
			heads = append(heads[:r.Seq], r.Head)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	void := testDebit("void")
	void.Void = true
	void.Cost = ledger.Meters{"tokens": 1}
	heads = append(heads, mustAsk(t, l, "ho_1", void).Head)
	heads = append(heads, closing(t, l, "ho_1").Head, retirement(t, l, "ho_1").Head)
	if err := l.DeleteHoldout(t.Context(), "ho_1", "key_admin"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(export(t, l, "ho_1")), "\n"), "\n")
	kinds := []string{ledger.KindGenesis, ledger.KindAnswer, ledger.KindAnswer, ledger.KindVoid, ledger.KindClosed, ledger.KindRetired, ledger.KindDeleted}
	if len(lines) != 1+len(kinds) {
		t.Fatalf("%d lines of an export", len(lines))
	}
	for seq, kind := range kinds {
		var e struct {
			Version    int
			Seq        int64
			Kind, Head string
		}
		if err := json.Unmarshal([]byte(lines[seq+1]), &e); err != nil {
			t.Fatal(err)
		}
		if e.Version != ledger.EntryVersion || e.Seq != int64(seq) || e.Kind != kind || seq < len(heads) && e.Head != heads[seq] {
			t.Errorf("entry %d is %+v, want a %s", seq, e, kind)
		}
		if head, ok, err := l.HeadAt(t.Context(), "ho_1", int64(seq)); head != e.Head || !ok || err != nil {
			t.Errorf("head at %d: %s %v %v, want %s", seq, head, ok, err, e.Head)
		}
	}
	if _, ok, err := l.HeadAt(t.Context(), "ho_1", int64(len(kinds))); ok || err != nil {
		t.Errorf("a head behind the last: %v", err)
	}
	s.verify(t, l)
}

// closingCore is the core of a test's closing.
const closingCore = `{"closed":true}`

// closing closes a holdout.
func closing(t *testing.T, l ledger.Ledger, id string) (r ledger.Receipt) {
	t.Helper()
	err := l.Update(t.Context(), id, func(tx *ledger.Tx) (err error) {
		r, err = tx.Close(ledger.Closing{Principal: "key_admin", Core: []byte(closingCore)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// closingIsTheEnd: a closing takes all that is left, together with what its update appends, and after it nothing is appended and nothing is lost; a deletion ends the chain all the same.
func closingIsTheEnd(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 10, 2))
	first := mustAsk(t, l, "ho_1", testDebit("a"))
	if _, ok, err := l.Closing(t.Context(), "ho_1"); ok || err != nil {
		t.Fatalf("a closing before there is one: %v", err)
	}
	if _, _, err := l.Closing(t.Context(), "ho_2"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the closing of nothing: %v", err)
	}
	planted := errors.New("planted")
	for _, fails := range []error{planted, nil} {
		err := l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			if _, err := tx.Append(testDebit("b")); err != nil {
				return err
			}
			if _, err := tx.Close(ledger.Closing{Core: []byte("{}")}); !errors.Is(err, ledger.ErrInvalid) {
				t.Errorf("an empty core: %v", err)
			}
			if _, err := tx.Close(ledger.Closing{Principal: "key_admin", Core: []byte(closingCore)}); err != nil {
				return err
			}
			if _, err := tx.Close(ledger.Closing{Core: []byte(closingCore)}); !errors.Is(err, ledger.ErrBudget) {
				t.Errorf("a second closing: %v", err)
			}
			nothing := testDebit("c")
			nothing.Cost = ledger.Meters{}
			if _, err := tx.Append(nothing); !errors.Is(err, ledger.ErrBudget) {
				t.Errorf("an answer for nothing after the closing: %v", err)
			}
			return fails
		})
		if !errors.Is(err, fails) {
			t.Fatal(err)
		}
		h, err := l.Holdout(t.Context(), "ho_1")
		if err != nil || h.Closed != (fails == nil) || (fails == nil) != h.Spent.Equal(ledger.Meters{"questions": 10, "tokens": 2}) {
			t.Errorf("%v: closed %v, spent %v, %v", fails, h.Closed, h.Spent, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	e, ok, err := l.Closing(t.Context(), "ho_1")
	if err != nil || !ok || e.Seq != 3 || e.Principal != "key_admin" || !strings.HasPrefix(string(e.Body), strings.TrimSuffix(closingCore, "}")) {
		t.Errorf("the closing is %+v %v", e, err)
	}
	err = l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
		if body, ok := tx.Answer(testDebit("a").Query); !ok || !bytes.Equal(body, first.Body) {
			t.Error("an answer is lost with the closing")
		}
		_, err := tx.Append(testDebit("d"))
		return err
	})
	if !errors.Is(err, ledger.ErrBudget) {
		t.Errorf("an answer after the closing: %v", err)
	}
	s.verify(t, l)
	if err := l.DeleteHoldout(t.Context(), "ho_1", ""); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := l.Closing(t.Context(), "ho_1"); err != nil || !ok || e.Seq != 3 {
		t.Errorf("the closing of a deleted holdout: %+v %v", e, err)
	}
	s.verify(t, l)
}

// retiredCore is the core of a test's retirement.
const retiredCore = `{"retired":true}`

// retirement retires a holdout.
func retirement(t *testing.T, l ledger.Ledger, id string) (r ledger.Receipt) {
	t.Helper()
	err := l.Update(t.Context(), id, func(tx *ledger.Tx) (err error) {
		r, err = tx.Retire(ledger.Closing{Principal: "key_admin", Core: []byte(retiredCore)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// retirementIsTheEnd: a retirement takes all that is left and is known for ever, of a holdout that is open and of one that is closed; after it nothing is appended and nothing is lost. One of a holdout
// of which nothing was asked keeps it from being replaced. A deletion ends the chain all the same.
func retirementIsTheEnd(t *testing.T, s *suite) {
	l := s.open(t)
	for _, id := range []string{"ho_open", "ho_closed", "ho_unasked"} {
		create(t, l, testHoldout(id, 10, 2))
		if _, ok, err := l.Retirement(t.Context(), id); ok || err != nil {
			t.Fatalf("a retirement of %s before there is one: %v", id, err)
		}
	}
	if _, _, err := l.Retirement(t.Context(), "ho_none"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the retirement of nothing: %v", err)
	}
	first := mustAsk(t, l, "ho_open", testDebit("a"))
	closing(t, l, "ho_closed")
	for id, seq := range map[string]int64{"ho_open": 2, "ho_closed": 2, "ho_unasked": 1} { // each is a chain of its own, so that any order will do
		planted := errors.New("planted")
		for _, fails := range []error{planted, nil} {
			err := l.Update(t.Context(), id, func(tx *ledger.Tx) error {
				if _, err := tx.Retire(ledger.Closing{Core: []byte("{}")}); !errors.Is(err, ledger.ErrInvalid) || tx.Retired() {
					t.Errorf("%s: an empty core: %v", id, err)
				}
				if _, err := tx.Retire(ledger.Closing{Principal: "key_admin", Core: []byte(retiredCore)}); err != nil {
					return err
				}
				if _, err := tx.Retire(ledger.Closing{Core: []byte(retiredCore)}); !errors.Is(err, ledger.ErrRetired) || !tx.Retired() {
					t.Errorf("%s: a second retirement: %v", id, err)
				}
				if _, err := tx.Close(ledger.Closing{Core: []byte(closingCore)}); !errors.Is(err, ledger.ErrBudget) {
					t.Errorf("%s: a closing after the retirement: %v", id, err)
				}
				nothing := testDebit("c")
				nothing.Cost = ledger.Meters{}
				if _, err := tx.Append(nothing); !errors.Is(err, ledger.ErrBudget) {
					t.Errorf("%s: an answer for nothing after the retirement: %v", id, err)
				}
				return fails
			})
			if !errors.Is(err, fails) {
				t.Fatal(err)
			}
			h, err := l.Holdout(t.Context(), id)
			if err != nil || h.Retired != (fails == nil) || h.Closed != (id == "ho_closed") || fails == nil && !h.Spent.Equal(ledger.Meters{"questions": 10, "tokens": 2}) {
				t.Errorf("%s, %v: retired %v, closed %v, spent %v, %v", id, fails, h.Retired, h.Closed, h.Spent, err)
			}
		}
		if err := l.SettleHoldout(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		old := testHoldout(id, 10, 2)
		next := testHoldout(id+"_next", 10, 2)
		next.Digest = ledger.Successor(old.Digest, id)
		if err := l.ReplaceHoldout(t.Context(), ledger.Replaced{ID: id}, next, nil); !errors.Is(err, ledger.ErrAsked) {
			t.Errorf("%s is replaced though it is retired: %v", id, err)
		}
		if e, ok, err := l.Retirement(t.Context(), id); err != nil || !ok || e.Seq != seq || e.Kind != ledger.KindRetired || e.Principal != "key_admin" {
			t.Errorf("the retirement of %s is %+v %v", id, e, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	err := l.Update(t.Context(), "ho_open", func(tx *ledger.Tx) error {
		if body, ok := tx.Answer(testDebit("a").Query); !ok || !bytes.Equal(body, first.Body) || !tx.Retired() {
			t.Error("an answer is lost with the retirement")
		}
		_, err := tx.Append(testDebit("d"))
		return err
	})
	if !errors.Is(err, ledger.ErrBudget) {
		t.Errorf("an answer after the retirement: %v", err)
	}
	s.verify(t, l)
	for _, id := range []string{"ho_open", "ho_closed"} {
		if err := l.DeleteHoldout(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		if h, err := l.Holdout(t.Context(), id); err != nil || !h.Retired || h.Closed || !h.Deleted {
			t.Errorf("%s after its deletion: retired %v, closed %v, deleted %v, %v", id, h.Retired, h.Closed, h.Deleted, err)
		}
		if _, ok, err := l.Retirement(t.Context(), id); err != nil || !ok {
			t.Errorf("the retirement of a deleted holdout: %v %v", ok, err)
		}
	}
	s.verify(t, l)
}

// exportIsConsistentWhileWriting exports while others ask: every export verifies.
func exportIsConsistentWhileWriting(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 1<<40, 0))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := ask(l, context.Background(), "ho_1", numbered(i)); err != nil {
				t.Error(err)
			}
		}
	}()
	var last int64
	for range 8 {
		r, err := ledger.VerifyExport(bytes.NewReader(export(t, l, "ho_1")))
		if err != nil || r.Entries < last {
			t.Fatalf("%+v after %d entries: %v", r, last, err)
		}
		last = r.Entries
		reports, err := s.store.Verify(t.Context())
		if err != nil || reports[0].Entries < last {
			t.Fatalf("%+v after %d entries: %v", reports, last, err)
		}
	}
	cancel()
	<-ended
}

// sameTableIsRefusedForEver: a digest is known for ever, and a deleted holdout keeps its answers and nothing secret.
func sameTableIsRefusedForEver(t *testing.T, s *suite) {
	l := s.open(t)
	h := testHoldout("ho_1", 5, 0)
	create(t, l, h)
	got, err := l.Holdout(t.Context(), "ho_1")
	want := h
	want.Spent = ledger.Meters{"questions": 0, "tokens": 0}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("holdout %+v %v, want %+v", got, err, want)
	}
	mustAsk(t, l, "ho_1", testDebit("a"))
	h.ID = "ho_2"
	check := func() {
		t.Helper()
		var known *ledger.ExistsError
		if err := l.CreateHoldout(t.Context(), h, nil); !errors.As(err, &known) || known.ID != "ho_1" || !errors.Is(err, ledger.ErrExists) {
			t.Errorf("create again: %v", err)
		}
		if id, ok, err := l.HoldoutByDigest(t.Context(), h.Digest); id != "ho_1" || !ok || err != nil {
			t.Errorf("by digest: %q %v %v", id, ok, err)
		}
	}
	check()
	for range 2 { // deleting again does nothing
		if err := l.DeleteHoldout(t.Context(), "ho_1", "key_admin"); err != nil {
			t.Fatal(err)
		}
	}
	check()
	gone, err := l.Holdout(t.Context(), "ho_1")
	if err != nil || !gone.Deleted || gone.Secret != nil || gone.State != nil {
		t.Errorf("deleted holdout: %+v %v", gone, err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ledger.ErrDeleted) {
		t.Errorf("update: %v", err)
	}
	if body, ok, err := l.Answer(t.Context(), "ho_1", testDebit("a").Query); !ok || err != nil || len(body) == 0 {
		t.Errorf("old answer: %v %v", ok, err)
	}
	if r := s.verify(t, l); !r[0].Deleted || r[0].Entries != 3 {
		t.Errorf("report %+v", r)
	}
	h.Digest[0]++
	h.ID = "ho_1"
	if err := l.CreateHoldout(t.Context(), h, nil); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("another table under a known id: %v", err)
	}
	h.ID, h.Created = "ho_0", time.Time{}
	create(t, l, h)
	all, err := l.Holdouts(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "ho_1" || all[1].ID != "ho_0" || all[1].Created.IsZero() {
		t.Errorf("holdouts %+v %v, want both in the order of their creation", all, err)
	}
}

// draftsAreReplaced: a holdout of which nothing was asked gives way to another of the same table, once, and only as long as it is the draft that
// it was asked to be. A failed commit leaves the old one, or the new one where only its word was lost; a crash leaves what was durable.
func draftsAreReplaced(t *testing.T, s *suite) {
	l := s.open(t)
	draft := func(id string, digest [32]byte) ledger.Holdout {
		h := testHoldout(id, 5, 0)
		h.Digest, h.Draft = digest, true
		return h
	}
	first := draft("ho_1", [32]byte{1})
	create(t, l, first)
	other := draft("ho_o", [32]byte{2})
	create(t, l, other)
	next := func(id string) ledger.Holdout { return draft(id, ledger.Successor(first.Digest, "ho_1")) }
	old := ledger.Replaced{ID: "ho_1", Principal: "key_admin", Draft: true}
	whole := func(id string, deleted, isDraft bool) {
		t.Helper()
		h, err := l.Holdout(t.Context(), id)
		if err != nil || h.Deleted != deleted || (h.Secret == nil) != deleted || h.Draft != isDraft {
			t.Errorf("%s: deleted %v, draft %v, a secret of %d bytes (%v); want deleted %v, draft %v", id, h.Deleted, h.Draft, len(h.Secret), err, deleted, isDraft)
		}
		s.verify(t, l)
	}
	wrong := next("ho_2")
	wrong.Digest[0]++
	if err := l.ReplaceHoldout(t.Context(), old, wrong, nil); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("with the digest of another table: %v", err)
	}
	if err := l.ReplaceHoldout(t.Context(), ledger.Replaced{ID: "ho_9"}, next("ho_2"), nil); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("nothing is replaced: %v", err)
	}
	whole("ho_1", false, true)

	s.plant(func(step string) error {
		if step == ledger.StepCommit {
			return errors.New("planted")
		}
		return nil
	})
	if err := l.ReplaceHoldout(t.Context(), old, next("ho_2"), nil); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a failed commit: %v", err)
	}
	s.plant(nil)
	ready(l)
	whole("ho_1", false, true)
	if _, err := l.Holdout(t.Context(), "ho_2"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("half of a replacement is left: %v", err)
	}
	survivor := s.store.Crash(t)
	request := &ledger.Idempotency{Principal: "p", Key: "again", Request: [32]byte{7}, Resource: "ho_2"}
	if err := l.ReplaceHoldout(t.Context(), old, next("ho_2"), request); err != nil {
		t.Fatal(err)
	}
	whole("ho_1", true, true)
	whole("ho_2", false, true)
	var known *ledger.ExistsError
	if err := l.ReplaceHoldout(t.Context(), old, next("ho_3"), nil); !errors.As(err, &known) || known.ID != "ho_2" {
		t.Errorf("replaced twice: %v", err)
	}
	if err := l.ReplaceHoldout(t.Context(), old, next("ho_3"), request); !errors.As(err, &known) || known.ID != "ho_2" {
		t.Errorf("the same request again: %v", err)
	}
	for _, id := range []string{"ho_1", "ho_2"} {
		if err := l.SettleHoldout(t.Context(), id); (id == "ho_1") != errors.Is(err, ledger.ErrDeleted) || id == "ho_2" && err != nil {
			t.Errorf("settle %s: %v", id, err)
		}
	}
	third := draft("ho_3", ledger.Successor(next("ho_2").Digest, "ho_2"))
	old = ledger.Replaced{ID: "ho_2", Draft: true}
	if err := l.ReplaceHoldout(t.Context(), old, third, nil); !errors.Is(err, ledger.ErrSettled) {
		t.Errorf("what was shown is replaced as a draft: %v", err)
	}
	whole("ho_2", false, false)
	mustAsk(t, l, "ho_o", testDebit("a"))
	if err := l.ReplaceHoldout(t.Context(), ledger.Replaced{ID: "ho_o"}, draft("ho_4", ledger.Successor(other.Digest, "ho_o")), nil); !errors.Is(err, ledger.ErrAsked) {
		t.Errorf("what was asked is replaced: %v", err)
	}
	old.Draft = false
	if err := l.ReplaceHoldout(t.Context(), old, third, nil); err != nil {
		t.Errorf("what was shown and not asked: %v", err)
	}
	whole("ho_2", true, false)
	if err := l.DeleteHoldout(t.Context(), "ho_3", "p"); err != nil {
		t.Fatal(err)
	}
	fourth := draft("ho_4", ledger.Successor(third.Digest, "ho_3"))
	if err := l.ReplaceHoldout(t.Context(), ledger.Replaced{ID: "ho_3", Draft: true}, fourth, nil); err != nil {
		t.Errorf("a draft that was deleted: %v", err)
	}
	whole("ho_3", true, true)
	whole("ho_4", false, true)
	if err := l.SettleHoldout(t.Context(), "ho_9"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("settle nothing: %v", err)
	}

	if err := l.Close(); err != nil { // and what a crash before the first replacement had left
		t.Fatal(err)
	}
	s.store = survivor
	l = s.open(t)
	whole("ho_1", false, true)
	if _, err := l.Holdout(t.Context(), "ho_2"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("half of a replacement is left by a crash: %v", err)
	}
}

// idempotency: a key stands for one request of one principal, for ever as far as a test can see.
func idempotency(t *testing.T, s *suite) {
	l := s.open(t)
	first := ledger.Idempotency{Principal: "p", Key: "k", Request: [32]byte{1}}
	if err := l.CreateHoldout(t.Context(), testHoldout("ho_1", 5, 0), &first); err != nil {
		t.Fatal(err)
	}
	got, ok, err := l.Idempotency(t.Context(), "p", "k")
	if first.Resource = "ho_1"; got != first || !ok || err != nil {
		t.Fatalf("recorded %+v %v %v", got, ok, err)
	}
	other := first
	other.Request[0]++
	if err := l.CreateHoldout(t.Context(), testHoldout("ho_2", 5, 0), &other); !errors.Is(err, ledger.ErrIdempotencyMismatch) {
		t.Errorf("upload with another body: %v", err)
	}
	var known *ledger.ExistsError
	if err := l.CreateHoldout(t.Context(), testHoldout("ho_2", 5, 0), &first); !errors.As(err, &known) || known.ID != "ho_1" {
		t.Errorf("upload again: %v", err)
	}
	if _, err := l.Holdout(t.Context(), "ho_2"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a refused upload left its holdout: %v", err)
	}
	use := func(i ledger.Idempotency) error {
		return l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			if err := tx.Idempotent(i); err != nil {
				return err
			}
			return tx.Idempotent(i) // also within an update
		})
	}
	question := ledger.Idempotency{Principal: "p", Key: "q", Request: [32]byte{2}, Resource: "ho_1"}
	for _, question.Outcome = range []string{"", "an outcome", "an outcome", "what came of it in the end"} { // the newest counts
		if err := use(question); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := l.Idempotency(t.Context(), "p", "q"); got != question || !ok || err != nil {
			t.Fatalf("recorded %+v %v %v", got, ok, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = s.open(t)
	}
	question.Outcome = strings.Repeat("o", ledger.MaxOutcomeBytes+1)
	if err := use(question); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("an outcome that is too long: %v", err)
	}
	question.Outcome = "another's"
	question.Request[0]++
	if err := use(question); !errors.Is(err, ledger.ErrIdempotencyMismatch) {
		t.Errorf("question with another body: %v", err)
	}
	if got, _, err := l.Idempotency(t.Context(), "p", "q"); got.Outcome != "what came of it in the end" || err != nil {
		t.Errorf("a refused use changed what was recorded: %+v %v", got, err)
	}
	question.Principal = "someone else"
	if err := use(question); err != nil {
		t.Errorf("the same key of another principal: %v", err)
	}
	if err := use(ledger.Idempotency{Principal: "p"}); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("empty key: %v", err)
	}
}

// keys are found by their hash until they are revoked, and known for ever.
func keys(t *testing.T, s *suite) {
	l := s.open(t)
	k := ledger.Key{ID: "key_1", Name: "Ann", Scope: "analyst", Created: time.Unix(7, 0).UTC(), Hash: [32]byte{9}}
	if err := l.CreateKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := l.KeyByHash(t.Context(), k.Hash); got != k || !ok || err != nil {
		t.Errorf("by hash: %+v %v %v", got, ok, err)
	}
	same := ledger.Key{ID: "key_2", Scope: "admin", Hash: k.Hash}
	if err := l.CreateKey(t.Context(), same); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("the same hash: %v", err)
	}
	for range 2 {
		if err := l.RevokeKey(t.Context(), "key_1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	if _, ok, err := l.KeyByHash(t.Context(), k.Hash); ok || err != nil {
		t.Errorf("a revoked key is found: %v %v", ok, err)
	}
	if err := l.CreateKey(t.Context(), same); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("the hash of a revoked key: %v", err)
	}
	if all, err := l.Keys(t.Context()); err != nil || len(all) != 1 || !all[0].Revoked {
		t.Errorf("keys %+v %v", all, err)
	}
	if err := l.CreateKey(t.Context(), ledger.Key{ID: "key_3", Hash: [32]byte{1}}); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a key without a scope: %v", err)
	}
	if err := l.RevokeKey(t.Context(), "key_9"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("revoke an unknown key: %v", err)
	}
	if err := l.CreateKey(t.Context(), ledger.Key{ID: "key_4", Scope: "admin", Hash: [32]byte{4}, By: "key_1"}); !errors.Is(err, ledger.ErrRevoked) {
		t.Errorf("a key that a revoked one makes: %v", err)
	}
}

// keysOfSubjects are found by whom they are for: issuer, claim and value together. A subject has one key at a time, and another one once that is revoked.
func keysOfSubjects(t *testing.T, s *suite) {
	l := s.open(t)
	ann := ledger.Subject{Issuer: "https://issuer.example", Claim: "sub", Value: "ann\x00 ∀"}
	k := ledger.Key{ID: "key_1", Name: "Ann", Scope: "analyst", Created: time.Unix(7, 0).UTC(), Hash: [32]byte{1}, Subject: ann, By: "key_0"}
	secret := ledger.Key{ID: "key_2", Name: "Ann", Scope: "analyst", Created: time.Unix(8, 0).UTC(), Hash: [32]byte{2}, By: "key_1"}
	for _, k := range []ledger.Key{k, secret} {
		if err := l.CreateKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	find := func(l ledger.Ledger, s ledger.Subject, want ledger.Key) {
		t.Helper()
		if got, ok, err := l.KeyBySubject(t.Context(), s); got != want || ok != (want.ID != "") || err != nil {
			t.Errorf("%+v: %+v %v %v, want %+v", s, got, ok, err, want)
		}
	}
	find(l, ann, k)
	for _, other := range []ledger.Subject{{}, {Issuer: ann.Issuer, Claim: ann.Claim}, {Issuer: ann.Issuer, Claim: "email", Value: ann.Value}, {Issuer: "https://other.example", Claim: "sub", Value: ann.Value}, {Issuer: ann.Issuer, Claim: "sub", Value: "Ann\x00 ∀"}} {
		find(l, other, ledger.Key{})
	}
	same := ledger.Key{ID: "key_3", Scope: "admin", Created: time.Unix(9, 0).UTC(), Hash: [32]byte{3}, Subject: ann}
	if err := l.CreateKey(t.Context(), same); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("a second key of a subject: %v", err)
	}
	if err := l.RevokeKey(t.Context(), "key_1"); err != nil {
		t.Fatal(err)
	}
	find(l, ann, ledger.Key{})
	if err := l.CreateKey(t.Context(), same); err != nil {
		t.Errorf("a key of a subject whose key was revoked: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = s.open(t)
	find(l, ann, same)
	k.Revoked = true
	if all, err := l.Keys(t.Context()); err != nil || !slices.Equal(all, []ledger.Key{k, secret, same}) {
		t.Errorf("keys %+v %v", all, err)
	}
	for _, half := range []ledger.Subject{{Issuer: "i"}, {Issuer: "i", Claim: "c"}, {Claim: "c", Value: "v"}, {Issuer: "i", Claim: "c", Value: "\xff"}} {
		if err := l.CreateKey(t.Context(), ledger.Key{ID: "key_4", Scope: "admin", Hash: [32]byte{4}, Subject: half}); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("a key of %+v: %v", half, err)
		}
	}
	// Of many who bind a subject at once one does.
	made := make(chan error)
	bob := ledger.Subject{Issuer: ann.Issuer, Claim: "sub", Value: "bob"}
	for n := range 8 {
		go func() {
			made <- l.CreateKey(t.Context(), ledger.Key{ID: fmt.Sprintf("key_b%d", n), Scope: "analyst", Hash: [32]byte{5, byte(n)}, Subject: bob})
		}()
	}
	ok := 0
	for range 8 {
		switch err := <-made; {
		case err == nil:
			ok++
		case !errors.Is(err, ledger.ErrExists):
			t.Errorf("one of many: %v", err)
		}
	}
	if ok != 1 {
		t.Errorf("%d keys of one subject at once", ok)
	}
}

// wrongKeyAndReplayOnly: another server key opens nothing; without one everything recorded is there, and nothing secret.
func wrongKeyAndReplayOnly(t *testing.T, s *suite) {
	l := s.open(t)
	create(t, l, testHoldout("ho_1", 5, 0))
	r := mustAsk(t, l, "ho_1", testDebit("a"))
	want := export(t, l, "ho_1")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Open(t.Context(), ledger.Options{Key: [32]byte{4}}); !errors.Is(err, ledger.ErrWrongKey) {
		t.Fatalf("wrong key: %v", err)
	}
	if _, err := s.store.Open(t.Context(), ledger.Options{}); !errors.Is(err, ledger.ErrInvalid) {
		t.Fatalf("no key: %v", err)
	}
	old, err := s.store.Open(t.Context(), ledger.Options{ReplayOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if body, ok, err := old.Answer(t.Context(), "ho_1", testDebit("a").Query); !bytes.Equal(body, r.Body) || !ok || err != nil {
		t.Errorf("replay: %s %v %v", body, ok, err)
	}
	if !bytes.Equal(export(t, old, "ho_1"), want) {
		t.Error("export differs")
	}
	if h, err := old.Holdout(t.Context(), "ho_1"); err != nil || h.Secret != nil || h.State != nil || len(h.Public) == 0 {
		t.Errorf("holdout %+v %v", h, err)
	}
	if _, err := ask(old, t.Context(), "ho_1", testDebit("b")); !errors.Is(err, ledger.ErrReplayOnly) {
		t.Errorf("update: %v", err)
	}
	if err := old.Ready(t.Context()); !errors.Is(err, ledger.ErrReplayOnly) {
		t.Errorf("ready: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, s.open(t), "ho_1", testDebit("b")) // none of it did harm
}

// mustExist: an empty store is not taken for the ledger that was there.
func mustExist(t *testing.T, s *suite) {
	if _, err := s.store.Open(t.Context(), ledger.Options{Key: serverKey, MustExist: true}); !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("nothing is opened as a ledger that must exist: %v", err)
	}
	if err := s.open(t).Close(); err != nil {
		t.Fatal(err)
	}
	l, err := s.store.Open(t.Context(), ledger.Options{Key: serverKey, MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
