package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// another opens a connection beside the ledger's own, as another program does.
func another(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := openWriter(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestEveryStatementIsRefused: each statement that a change of the ledger is made of is refused by the database in turn. The caller hears
// of it, nothing of the change is kept, and the same change succeeds afterwards. It would notice an error of a statement that is dropped:
// half a holdout, a deletion that left its secrets, a key that was not revoked.
func TestEveryStatementIsRefused(t *testing.T) {
	l := openTest(t, newPath(t))
	db := another(t, l.path)
	mustCreate(t, l, testHoldout("ho_0", 10, 0))
	request := func(i int) *ledger.Idempotency {
		return &ledger.Idempotency{Principal: "p", Key: fmt.Sprint("key ", i), Request: [32]byte{byte(i)}}
	}
	id := func(i int) string { return fmt.Sprint("ho_", i) }
	draft := func(id string) ledger.Holdout {
		h := testHoldout(id, 10, 0)
		h.Draft = true
		return h
	}
	makeDraft := func(i int) error { return l.CreateHoldout(t.Context(), draft(id(i)), nil) }
	grantable := func(i int) error {
		return l.CreateKey(t.Context(), ledger.Key{ID: id(i), Hash: [32]byte{byte(i)}, Scope: "granted"})
	}
	grant := func(i int) error {
		return l.CreateGrant(t.Context(), ledger.Grant{ID: id(i), Key: id(i), Holdout: "ho_0", Limits: ledger.Meters{"questions": 1}, Shows: "full"})
	}
	next := 0
	changes := []struct {
		name       string
		statements []string
		before, do func(i int) error
	}{
		{"create", []string{"INSERT ON holdouts", "INSERT ON books", "INSERT ON meters", "INSERT ON entries", "INSERT ON idempotency"}, nil,
			func(i int) error { return l.CreateHoldout(t.Context(), testHoldout(id(i), 10, 0), request(i)) }},
		{"update", []string{"INSERT ON entries", "UPDATE ON books", "UPDATE ON meters", "INSERT ON idempotency"},
			func(i int) error { return l.CreateHoldout(t.Context(), testHoldout(id(i), 10, 0), nil) },
			func(i int) error {
				return l.Update(t.Context(), id(i), func(tx *ledger.Tx) error {
					if _, err := tx.Append(testDebit("a")); err != nil {
						return err
					}
					return tx.Idempotent(*request(i))
				})
			}},
		{"delete", []string{"INSERT ON entries", "UPDATE ON holdouts", "UPDATE ON books"},
			func(i int) error { return l.CreateHoldout(t.Context(), testHoldout(id(i), 10, 0), nil) },
			func(i int) error { return l.DeleteHoldout(t.Context(), id(i), "p") }},
		{"replace", []string{"INSERT ON entries", "UPDATE ON holdouts", "UPDATE ON books", "INSERT ON holdouts", "INSERT ON meta", "INSERT ON idempotency"}, makeDraft,
			func(i int) error {
				h := draft(id(i) + " again")
				h.Digest = ledger.Successor(draft(id(i)).Digest, id(i))
				return l.ReplaceHoldout(t.Context(), ledger.Replaced{ID: id(i), Draft: true}, h, request(i))
			}},
		{"settle", []string{"DELETE ON meta"}, makeDraft, func(i int) error { return l.SettleHoldout(t.Context(), id(i)) }},
		{"create a key", []string{"INSERT ON keys"}, nil,
			func(i int) error {
				return l.CreateKey(t.Context(), ledger.Key{ID: id(i), Hash: [32]byte{byte(i)}, Scope: "admin"})
			}},
		{"revoke a key", []string{"UPDATE ON keys"},
			func(i int) error {
				return l.CreateKey(t.Context(), ledger.Key{ID: id(i), Hash: [32]byte{byte(i)}, Scope: "admin"})
			},
			func(i int) error { return l.RevokeKey(t.Context(), id(i)) }},
		{"make a grant", []string{"INSERT ON grants"}, grantable, grant},
		{"revoke a grant", []string{"UPDATE ON grants"}, func(i int) error { return errors.Join(grantable(i), grant(i)) },
			func(i int) error { return l.RevokeGrant(t.Context(), id(i)) }},
	}
	all := func() string {
		holdouts, err := l.Holdouts(t.Context())
		keys, err2 := l.Keys(t.Context())
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		grants, err := l.Grants(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%+v\n%+v\n%+v\n", holdouts, keys, grants)
		for _, h := range holdouts {
			text += string(export(t, l, h.ID))
		}
		for i := range 100 {
			known, ok, err := l.Idempotency(t.Context(), "p", request(i).Key)
			text += fmt.Sprint(known, ok, err)
		}
		return text
	}
	for _, c := range changes {
		for _, statement := range c.statements {
			next++
			if c.before != nil {
				if err := c.before(next); err != nil {
					t.Fatal(c.name, err)
				}
			}
			before := all()
			if _, err := db.Exec("CREATE TRIGGER planted BEFORE " + statement + " BEGIN SELECT RAISE(ABORT, 'planted'); END"); err != nil {
				t.Fatal(err)
			}
			err := c.do(next)
			if _, err := db.Exec("DROP TRIGGER planted"); err != nil {
				t.Fatal(err)
			}
			if err == nil || errors.Is(err, ledger.ErrUnavailable) || isOurs(err) {
				t.Errorf("%s, refused at %s: %v", c.name, statement, err)
			}
			if after := all(); after != before {
				t.Errorf("%s, refused at %s, kept something:\n%s\nbefore:\n%s", c.name, statement, after, before)
			}
			if err := c.do(next); err != nil {
				t.Errorf("%s, after it was refused at %s: %v", c.name, statement, err)
			}
			mustVerify(t, l)
		}
	}
}

// TestWriterCannotRead: what an update looks up cannot be read. Everyone whose updates share the commit hears that the ledger is
// unavailable, whatever the update made of it; nothing is kept; and the ledger comes back by itself. It would notice a read that is taken
// for "no such answer", and so a question that is answered twice.
func TestWriterCannotRead(t *testing.T) {
	for name, broken := range map[string]func(s *statements) *sql.Stmt{
		"books":       func(s *statements) *sql.Stmt { return s.books },
		"answer":      func(s *statements) *sql.Stmt { return s.answer },
		"idempotency": func(s *statements) *sql.Stmt { return s.idempotency },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			first := openTest(t, path)
			mustCreate(t, first, testHoldout("ho_1", 10, 0))
			mustAsk(t, first, "ho_1", testDebit("before"))
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			l := openTest(t, path)
			// The writer is idle: it does not look at its statements before the next request, which is sent after this.
			broken(&l.writer.stmt).Close()
			before := export(t, l, "ho_1")
			key := ledger.Idempotency{Principal: "p", Key: "k", Request: [32]byte{1}}
			asking := func() error {
				return l.Update(context.Background(), "ho_1", func(tx *ledger.Tx) error {
					tx.Answer(testDebit("new").Query) // its error is the update's, whether fn looks at it or not
					tx.Idempotent(key)
					tx.SetState([]byte("another"))
					tx.Append(testDebit("new"))
					return nil
				})
			}
			if err := asking(); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			if after := export(t, l, "ho_1"); !bytes.Equal(after, before) {
				t.Errorf("kept:\n%s", after)
			}
			for l.Ready(t.Context()) != nil {
			}
			if err := asking(); err != nil {
				t.Errorf("after the recovery: %v", err)
			}
			if q, err := spent(l, t.Context(), "ho_1"); err != nil || q != 2 {
				t.Errorf("%d questions spent, %v", q, err)
			}
			mustVerify(t, l)
		})
	}
}

// TestLimitsAreReached: what is exactly as large as may be is recorded, and one more is refused.
func TestLimitsAreReached(t *testing.T) {
	l := openTest(t, newPath(t))
	json := func(n int) []byte { return append(append([]byte{'"'}, bytes.Repeat([]byte{'p'}, n-2)...), '"') }
	next := 0
	for what, c := range map[string]struct {
		most int
		set  func(h *ledger.Holdout, n int)
	}{
		"public": {ledger.MaxPublicBytes, func(h *ledger.Holdout, n int) { h.Public = json(n) }},
		"secret": {ledger.MaxSecretBytes, func(h *ledger.Holdout, n int) { h.Secret = make([]byte, n) }},
		"state":  {ledger.MaxStateBytes, func(h *ledger.Holdout, n int) { h.State = make([]byte, n) }},
	} {
		for _, more := range []int{0, 1} {
			if what == "public" && more == 0 {
				continue // 32 MB of it take seconds
			}
			next++
			h := testHoldout(fmt.Sprint("ho_", next), 1, 0)
			c.set(&h, c.most+more)
			if err := l.CreateHoldout(t.Context(), h, nil); (err == nil) != (more == 0) || err != nil && !errors.Is(err, ledger.ErrInvalid) {
				t.Errorf("%s of %d bytes: %v", what, c.most+more, err)
			}
		}
	}
	mustCreate(t, l, testHoldout("ho_many", 3*ledger.MaxAppends, 0))
	r := rand.New(rand.NewPCG(1, 2))
	for _, more := range []int{0, 1} {
		err := l.Update(t.Context(), "ho_many", func(tx *ledger.Tx) error {
			for range ledger.MaxAppends + more {
				d := testDebit("a")
				d.Query = fmt.Sprintf("sha256:%x", r.Uint64())
				if _, err := tx.Append(d); err != nil {
					return err
				}
			}
			return nil
		})
		if (err == nil) != (more == 0) || err != nil && !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("%d answers in one update: %v", ledger.MaxAppends+more, err)
		}
	}
	if q, err := spent(l, t.Context(), "ho_many"); err != nil || q != ledger.MaxAppends {
		t.Errorf("%d questions spent, %v", q, err)
	}
}
