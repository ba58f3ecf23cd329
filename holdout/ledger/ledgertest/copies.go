package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
)

// copyIsTheSame dumps a ledger with everything that it can hold, and loads it again. It notices a row or a column that a dump forgets, a copy that gives new answers
// before somebody has said what was asked since, and one that could be replaced by a holdout with a fresh budget.
func copyIsTheSame(t *testing.T, s *suite) {
	store, ok := s.store.(Copied)
	if !ok {
		return // it promises no copies
	}
	ctx, l := t.Context(), s.open(t)
	digest := [32]byte{7}
	for _, id := range []string{"ho_1", "ho_gone", "ho_draft"} {
		h := testHoldout(id, 20, 3)
		if id == "ho_draft" {
			h.Digest, h.Draft = digest, true
		}
		if err := l.CreateHoldout(ctx, h, &ledger.Idempotency{Principal: "key_admin", Key: "upload of " + id, Request: [32]byte{1}, Resource: id}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 7 {
		d := numbered(i)
		d.Note, d.Void = "<note> of "+d.Query, i == 3
		mustAsk(t, l, "ho_1", d)
		mustAsk(t, l, "ho_gone", d)
	}
	err := l.Update(ctx, "ho_1", func(tx *ledger.Tx) error {
		tx.SetState([]byte("state 7"))
		return tx.Idempotent(ledger.Idempotency{Principal: "key_a", Key: "a batch", Request: [32]byte{2}})
	})
	if err = errors.Join(err, l.DeleteHoldout(ctx, "ho_gone", "key_admin")); err != nil {
		t.Fatal(err)
	}
	for _, k := range []ledger.Key{{ID: "key_admin", Name: "admin", Scope: "admin", Hash: [32]byte{8}}, {ID: "key_old", Name: "Zoë \u2028 <&>", Scope: "analyst", Hash: [32]byte{9}}} {
		if err := l.CreateKey(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.RevokeKey(ctx, "key_old"), l.EndSession(ctx, [32]byte{5}, time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}

	var text bytes.Buffer
	reports, err := store.Dump(ctx, &text)
	if err != nil {
		t.Fatal(err)
	}
	if want := s.verify(t, l); !reflect.DeepEqual(reports, want) {
		t.Errorf("the dump says %+v, the ledger %+v", reports, want)
	}
	copied := s.empty(t)
	d, err := dump.NewReader(bytes.NewReader(text.Bytes()))
	if err == nil {
		err = copied.(Copied).Load(ctx, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := copied.Open(ctx, ledger.Options{Key: [32]byte{99}}); !errors.Is(err, ledger.ErrWrongKey) {
		t.Errorf("the copy opens with another key: %v", err)
	}
	other := &suite{store: copied}
	again := other.open(t)
	if got := other.verify(t, again); !reflect.DeepEqual(got, reports) {
		t.Errorf("the copy says %+v, not %+v", got, reports)
	}
	sameReads(t, ctx, l, again)

	// It gives no new answers, and makes no room for a holdout with a fresh budget.
	if _, err := ask(again, ctx, "ho_1", numbered(9)); !errors.Is(err, ledger.ErrRestored) {
		t.Errorf("a holdout of a backup was asked: %v", err)
	}
	next := testHoldout("ho_next", 20, 3)
	next.Digest = ledger.Successor(digest, "ho_draft")
	if err := again.ReplaceHoldout(ctx, ledger.Replaced{ID: "ho_draft", Principal: "key_admin"}, next, nil); !errors.Is(err, ledger.ErrRestored) {
		t.Errorf("a holdout of a backup was replaced: %v", err)
	}
	refusal := errors.New("no")
	if err := again.AcceptHoldout(ctx, "ho_1", func(*ledger.Tx) error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("accepting failed with %v", err)
	}
	if _, err := ask(again, ctx, "ho_1", numbered(9)); !errors.Is(err, ledger.ErrRestored) {
		t.Errorf("a holdout was accepted by an update that failed: %v", err)
	}
	void := numbered(100)
	void.Void, void.Cost = true, ledger.Meters{"questions": 5, "tokens": 1}
	err = again.AcceptHoldout(ctx, "ho_1", func(tx *ledger.Tx) error {
		_, err := tx.Append(void)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	spent(t, again, "ho_1", ledger.Meters{"questions": 12, "tokens": 1})
	mustAsk(t, again, "ho_1", numbered(9))
	other.verify(t, again)
	if err := again.AcceptHoldout(ctx, "ho_draft", func(*ledger.Tx) error { return nil }); err != nil { // nothing is recorded but that
		t.Fatal(err)
	}
	mustAsk(t, again, "ho_draft", numbered(9))
	third := other.reopen(t, again)
	for id, want := range map[string]bool{"ho_1": false, "ho_draft": false} {
		if h, err := third.Holdout(ctx, id); err != nil || h.Restored != want {
			t.Errorf("%s: restored %v (%v) after it was accepted", id, h.Restored, err)
		}
	}
}

// reopen closes a ledger of the store and opens it again.
func (s *suite) reopen(t testing.TB, l ledger.Ledger) ledger.Ledger {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return s.open(t)
}

// sameReads compares what two ledgers say, but for what is another thing of a copy.
func sameReads(t testing.TB, ctx context.Context, l, again ledger.Ledger) {
	t.Helper()
	same := func(what string, read func(l ledger.Ledger) (any, error)) {
		t.Helper()
		want, err := read(l)
		got, err2 := read(again)
		if err := errors.Join(err, err2); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the copy has %+v, not %+v (%v)", what, got, want, err)
		}
	}
	same("holdouts", func(of ledger.Ledger) (any, error) {
		all, err := of.Holdouts(ctx)
		for i := range all {
			if of == again && all[i].Restored == all[i].Deleted || of == l && all[i].Restored || of == again && all[i].Draft {
				t.Errorf("%s: restored %v, draft %v", all[i].ID, all[i].Restored, all[i].Draft)
			}
			all[i].Restored, all[i].Draft = false, false
		}
		return all, err
	})
	same("keys", func(l ledger.Ledger) (any, error) { return l.Keys(ctx) })
	for _, id := range []string{"ho_1", "ho_gone", "ho_draft"} {
		same("answers of "+id, func(l ledger.Ledger) (any, error) { return l.Answers(ctx, id, "", 0, 0) })
		same("chain of "+id, func(l ledger.Ledger) (any, error) { return string(export(t, l, id)), nil })
	}
	for principal, key := range map[string]string{"key_a": "a batch", "key_admin": "upload of ho_gone"} {
		same("use of "+key, func(l ledger.Ledger) (any, error) {
			i, ok, err := l.Idempotency(ctx, principal, key)
			return []any{i, ok}, err
		})
	}
	same("sessions", func(l ledger.Ledger) (any, error) { return l.SessionEnded(ctx, [32]byte{5}) })
}
