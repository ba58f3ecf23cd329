//go:build postgres

package backup

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// TestRowsMove takes rows of every table from a file to PostgreSQL, to another database and back to a file. It notices a column that is exchanged with another, and a value that is not the same behind a move.
func TestRowsMove(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "first.db")
	l, err := sqlite.Open(ctx, path, ledger.Options{Key: [32]byte{1}})
	must(t, err)
	must(t, l.CreateHoldout(ctx, ledger.Holdout{ID: "ho_1", Digest: [32]byte{3}, Public: []byte(`{"name":"öne \u0000"}`), Secret: []byte("s"), State: []byte("t"), Limits: ledger.Meters{"questions": 50}}, &ledger.Idempotency{Principal: "key_a", Key: "k", Request: [32]byte{9}}))
	grant := func(id, parent string, n int64, expires time.Time) {
		must(t, l.Update(ctx, "ho_1", func(tx *ledger.Tx) error {
			return tx.MakeGrant(ledger.Grant{ID: id, Parent: parent, Holder: "holder of " + id, Name: "n " + id, Shows: "value", MayGrant: parent == "", By: "key_a", Limits: ledger.Meters{"questions": n}, Expires: expires})
		}))
	}
	grant("gr_1", "", 20, time.Now().Add(time.Hour))
	grant("gr_2", "gr_1", 7, time.Time{})
	grant("gr_3", "", 3, time.Time{})
	for i, by := range []string{"", "gr_1", "gr_2", "gr_3"} {
		must(t, l.Update(ctx, "ho_1", func(tx *ledger.Tx) error {
			_, err := tx.Append(ledger.Debit{Query: "q" + by, Canonical: []byte("c\u2028<" + by), Principal: "key_b", Grant: by, Cost: ledger.Meters{"questions": int64(i) % 3}, Core: []byte(`{"value":1}`), Note: "a <note> " + by, Time: time.Unix(7, 0)})
			return err
		}))
	}
	must(t, l.Update(ctx, "ho_1", func(tx *ledger.Tx) error { return tx.EndGrant("gr_3", "key_a") }))
	must(t, l.CreateKey(ctx, ledger.Key{ID: "key_a", Name: "a", Scope: "analyst", Hash: [32]byte{2}, Holdouts: []string{"ho_1", "ho_<2>"}, OnlyGranted: true}))
	must(t, l.EndSession(ctx, [32]byte{5}, time.Now().Add(time.Hour)))
	must(t, l.Close())

	text := func(d func(out *bytes.Buffer) error) []string {
		t.Helper()
		var out bytes.Buffer
		must(t, d(&out))
		return strings.Split(out.String(), "\n")
	}
	file := func(path string) []string {
		return text(func(out *bytes.Buffer) error { return second(sqlite.Dump(ctx, path, out)) })
	}
	rows := file(path)
	want := slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(rows), func(s string) bool {
		return strings.HasPrefix(s, `["draft `) || strings.HasPrefix(s, `{"end"`)
	})))
	same := func(what string, got []string) {
		t.Helper()
		got = slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.HasPrefix(s, `["restored `) || strings.HasPrefix(s, `{"end"`) })))
		if !slices.Equal(got, want) {
			t.Errorf("%s has\n%s\nnot\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	cluster := pgtest.NewCluster(t)
	for _, what := range []string{"the database", "the next database"} {
		url := cluster.NewDatabase(t).Owner
		d, err := dump.NewReader(strings.NewReader(strings.Join(rows, "\n")))
		must(t, err)
		loaded, err := postgres.Load(ctx, url, d)
		must(t, err)
		must(t, loaded.Commit(ctx))
		rows = text(func(out *bytes.Buffer) error { return second(postgres.Dump(ctx, url, out)) })
		same(what, rows)
	}
	d, err := dump.NewReader(strings.NewReader(strings.Join(rows, "\n")))
	must(t, err)
	path = filepath.Join(dir, "second.db")
	must(t, sqlite.Load(ctx, path, d))
	same("the file", file(path))
}
