package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// TestAnotherWriterIsNoticed changes the books behind the ledger's back: what is believed about them is dropped.
func TestAnotherWriterIsNoticed(t *testing.T) {
	l := openTest(t, newPath(t))
	mustCreate(t, l, testHoldout("ho_1", 100, 0))
	mustAsk(t, l, "ho_1", testDebit("a"))
	db, err := openWriter(t.Context(), l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Another program appends what it would: the next entry, with books to match.
	rows, err := readRows(t.Context(), l.readers, l.schema, "WHERE id = 'ho_1'")
	if err != nil {
		t.Fatal(err)
	}
	before := &books{Books: ledger.Books{ID: "ho_1", Limits: rows[0].Limits, Spent: rows[0].Spent, Seq: 1, Head: rows[0].head}, number: rows[0].number}
	drafted, err := ledger.Draft(before.Books, recorded{newGroup(l), before}, func(tx *ledger.Tx) error {
		tx.SetState([]byte("state 2"))
		d := testDebit("b")
		d.Principal = "other"
		_, err := tx.Append(d)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var stmt statements
	if err := stmt.prepare(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	defer stmt.close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	after := &books{Books: drafted.Books, number: before.number}
	err = errors.Join(stmt.insertEntry(tx, before.number, &drafted.Entries[0]), stmt.updateBooks(tx, &l.sealer, before, after), tx.Commit())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(l, t.Context(), "ho_1", testDebit("c")); err == nil {
		t.Error("an update on stale books was accepted")
	}
	for l.Ready(t.Context()) != nil {
		time.Sleep(5 * time.Millisecond)
	}
	// The refusal above is of the gap trigger or of the books; either way they are read again.
	if r := mustAsk(t, l, "ho_1", testDebit("c")); r.Seq != 3 {
		t.Errorf("seq %d, want 3", r.Seq)
	}
	mustVerify(t, l)
}
