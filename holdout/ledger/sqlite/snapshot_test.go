package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestSnapshotIsOneMoment: what is committed while a snapshot is read, also into the database file itself, is not in its copy, and all that was
// committed before is, also from the log.
func TestSnapshotIsOneMoment(t *testing.T) {
	ctx, path := t.Context(), newPath(t)
	l := openTest(t, path)
	mustCreate(t, l, testHoldout("a", 1000, 10))
	debit := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := ask(l, ctx, "a", testDebit(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	debit(0, 20)
	s, err := OpenSnapshot(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	debit(20, 40)
	if err := l.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	var copied bytes.Buffer
	if err := s.Copy(ctx, &copied); err != nil {
		t.Fatal(err)
	}
	if int64(copied.Len()) != s.Size() {
		t.Errorf("%d bytes, and the size is %d", copied.Len(), s.Size())
	}
	reports, err := s.Verify(ctx)
	if err != nil || len(reports) != 1 || reports[0].Answers != 20 {
		t.Errorf("the snapshot: %+v, %v", reports, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(alone, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Verify(ctx, alone)
	if err != nil || len(again) != 1 || again[0].Head != reports[0].Head || again[0].Answers != 20 {
		t.Errorf("the copy: %+v, %v; want %+v", again, err, reports)
	}
	now, err := Verify(ctx, path)
	if err != nil || now[0].Answers != 40 {
		t.Errorf("the ledger itself: %+v, %v", now, err)
	}
}
