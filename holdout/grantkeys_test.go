package holdout

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
)

// TestGrantUnderAForgottenKey: the same request under the same Idempotency-Key makes one grant, also when the ledger has forgotten the key; another request under it is
// refused while the key is known, and is a grant of its own after that. It would notice an id that is made of the key alone, by which the other request got the first one's grant as its own,
// and one that is drawn, by which the first was granted twice.
func TestGrantUnderAForgottenKey(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 100}, visits(t, 3000, 1)).ID
	ana, _, err := s.CreateKey(t.Context(), admin, "ana", Analyst)
	must(t, err)
	asked, other := NewGrant{Holder: ana.ID, Questions: 5, Tokens: new(int64)}, NewGrant{Holder: ana.ID, Questions: 7, Tokens: new(int64)}
	first := map[string]string{}
	for _, key := range []string{"monday", "tuesday"} {
		g, replayed, err := s.MakeGrant(t.Context(), admin, id, asked, key)
		if err != nil || replayed {
			t.Fatal(replayed, err)
		}
		first[key] = g.ID
		if _, _, err := s.MakeGrant(t.Context(), admin, id, other, key); KindOf(err) != IdempotencyMismatch {
			t.Errorf("another request under a known key: %v", err)
		}
	}
	must(t, s.Close())
	db, err := sql.Open("sqlite", "file://"+filepath.Join(dir, ledgerFile))
	must(t, err)
	_, err = db.Exec("DELETE FROM idempotency") // as after ledger.IdempotencyLife
	must(t, errors.Join(err, db.Close()))
	s = open(t, dir)
	again, replayed, err := s.MakeGrant(t.Context(), admin, id, asked, "monday")
	if err != nil || !replayed || again.ID != first["monday"] {
		t.Errorf("the same request under a forgotten key: %v, replayed %v, %v", again.ID, replayed, err)
	}
	second, replayed, err := s.MakeGrant(t.Context(), admin, id, other, "tuesday")
	if err != nil || replayed || second.ID == first["tuesday"] || second.Questions.Of != 7 {
		t.Errorf("another request under a forgotten key: %+v, replayed %v, %v", second, replayed, err)
	}
}
