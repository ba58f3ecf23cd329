package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// sample is a closed ledger of two holdouts with answers and a release, one of them deleted, with an export of each.
func sample(t testing.TB) (path string, exports [2][]byte) {
	t.Helper()
	path = newPath(t)
	l, err := Open(context.Background(), path, ledger.Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"ho_1", "ho_2"} {
		mustCreate(t, l, testHoldout(id, 10, 2))
		for _, name := range []string{"a", "b <&>", "c \u2028"} {
			d := testDebit(name)
			d.Cost["tokens"] = int64(i % 2)
			if name != "a" {
				d.Cost["tokens"] = 0
			}
			mustAsk(t, l, id, d)
			if name != "a" {
				continue
			}
			err := l.Update(context.Background(), id, func(tx *ledger.Tx) error {
				_, err := tx.Release(ledger.Release{Query: "sha256:r", Canonical: []byte(`{"epsilon":1,"release_epsilon":3}`), Principal: "p", Core: []byte(`{"released":true}`)})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.DeleteHoldout(context.Background(), "ho_2", "key_admin"); err != nil {
		t.Fatal(err)
	}
	mustVerify(t, l)
	exports = [2][]byte{export(t, l, "ho_1"), export(t, l, "ho_2")}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path, exports
}

// TestEveryByteOfAnExportCounts flips every byte of an export, one at a time, and drops or doubles every fifth.
func TestEveryByteOfAnExportCounts(t *testing.T) {
	_, exports := sample(t)
	for _, whole := range exports {
		for i := range whole {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << (i % 8)
			for what, damaged := range map[string][]byte{
				"flipped": flipped,
				"dropped": append(bytes.Clone(whole[:i]), whole[i+1:]...),
				"doubled": append(bytes.Clone(whole[:i+1]), whole[i:]...),
				"cut":     whole[:i],
			} {
				if what != "flipped" && i%5 != 0 {
					continue // to save time
				}
				_, err := ledger.VerifyExport(bytes.NewReader(damaged))
				var corrupt *ledger.CorruptError
				if !errors.As(err, &corrupt) {
					t.Fatalf("byte %d %s: %v", i, what, err)
				}
				// It says where: on the line of the damage, or after it.
				line := int64(bytes.Count(whole[:i], []byte("\n"))) + 1
				if corrupt.Line < line {
					t.Errorf("byte %d on line %d %s: found on line %d: %v", i, line, what, corrupt.Line, err)
				}
				if what == "flipped" && line > 1 && whole[i] != '\n' && corrupt.Line != line {
					t.Errorf("byte %d on line %d %s: found on line %d: %v", i, line, what, corrupt.Line, err)
				}
			}
		}
	}
}

// TestEveryLineOfAnExportCounts drops, doubles and exchanges whole lines, between holdouts too.
func TestEveryLineOfAnExportCounts(t *testing.T) {
	_, exports := sample(t)
	one, two := bytes.SplitAfter(exports[0], []byte("\n")), bytes.SplitAfter(exports[1], []byte("\n"))
	one, two = one[:len(one)-1], two[:len(two)-1]
	refuse := func(what string, lines [][]byte) {
		t.Helper()
		if _, err := ledger.VerifyExport(bytes.NewReader(bytes.Join(lines, nil))); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range one {
		refuse(fmt.Sprint("without line ", i), append(append([][]byte{}, one[:i]...), one[i+1:]...))
		refuse(fmt.Sprint("twice line ", i), append(append([][]byte{}, one[:i+1]...), one[i:]...))
		other := append([][]byte{}, one...)
		other[i] = two[i]
		refuse(fmt.Sprint("another holdout's line ", i), other)
		if i > 0 {
			swapped := append([][]byte{}, one...)
			swapped[i-1], swapped[i] = one[i], one[i-1]
			refuse(fmt.Sprint("swapped line ", i), swapped)
		}
	}
	refuse("nothing", nil)
}

// rewrite changes a copy of a ledger file by SQL, without its triggers and checks, as someone with the file can.
func rewrite(t *testing.T, path, statement string) string {
	t.Helper()
	changed := filepath.Join(t.TempDir(), "changed.db")
	if err := os.WriteFile(changed, readFile(t, path), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file://"+changed+"?_pragma=synchronous(OFF)&_pragma=journal_mode(MEMORY)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range []string{
		"PRAGMA ignore_check_constraints = 1", "PRAGMA foreign_keys = 0",
		"DROP TRIGGER entries_are_never_changed", "DROP TRIGGER entries_are_never_deleted", "DROP TRIGGER entries_have_no_gaps",
		"DROP TRIGGER spent_never_falls", "DROP TRIGGER meters_are_never_forgotten", "DROP TRIGGER meters_are_as_at_creation",
		"DROP TRIGGER books_never_go_back", "DROP TRIGGER books_are_never_forgotten", "DROP TRIGGER holdouts_are_never_changed",
		"DROP TRIGGER holdouts_are_never_forgotten", "DROP TRIGGER releases_never_go_back", "DROP TRIGGER releases_are_never_forgotten", "DROP INDEX entries_query",
		statement,
	} {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return changed
}

// TestEveryValueOfTheDatabaseCounts changes each value that the chain commits to, in each row.
func TestEveryValueOfTheDatabaseCounts(t *testing.T) {
	path, _ := sample(t)
	if _, err := Verify(t.Context(), rewrite(t, path, "SELECT 1")); err != nil {
		t.Fatalf("unchanged: %v", err)
	}
	more := func(column, meter string) string {
		return fmt.Sprintf("json_set(%s, '$.%s', 1 + (%s ->> '$.%s'))", column, meter, column, meter)
	}
	type change struct {
		statement string
		holdout   string
		seq       int64
	}
	var changes []change
	for number, id := range map[int]string{1: "ho_1", 2: "ho_2"} {
		for seq := range int64(3) {
			for column, value := range map[string]string{
				"debit": more("debit", "questions"), "spent": more("spent", "tokens"), "seq": "seq + 100", "kind": "'other'", "time": "time + 1", "query": "query || 'x'", "canonical": "canonical || ' '",
				"principal": "principal || 'x'", "version": "version + 1", "body": "replace(body, '{', '{ ')", "head": "zeroblob(32)",
			} {
				at := seq
				if column == "seq" {
					at = seq + 1 // the gap shows at the entry behind it
				}
				changes = append(changes, change{fmt.Sprintf("UPDATE entries SET %s = %s WHERE holdout = %d AND seq = %d", column, value, number, seq), id, at})
			}
			changes = append(changes, change{fmt.Sprintf("DELETE FROM entries WHERE holdout = %d AND seq = %d", number, seq), id, seq + 1})
		}
		for column, value := range map[string]string{
			"id": "'ho_9'", "created": "created + 1", "digest": "randomblob(32)", "public": "CAST('{}' AS BLOB)",
		} {
			changes = append(changes, change{fmt.Sprintf("UPDATE holdouts SET %s = %s WHERE number = %d", column, value, number), id, -2})
		}
		for _, meter := range []string{"questions", "tokens"} {
			for column, value := range map[string]string{"cap": "cap + 1", "spent": "spent + 1", "name": "name || '_'"} {
				changes = append(changes, change{fmt.Sprintf("UPDATE meters SET %s = %s WHERE holdout = %d AND name = '%s'", column, value, number, meter), id, -2})
			}
			changes = append(changes, change{fmt.Sprintf("DELETE FROM meters WHERE holdout = %d AND name = '%s'", number, meter), id, -2})
		}
		for column, value := range map[string]string{
			"seq":  "seq - 1",
			"head": "randomblob(32)", "deleted": "1 - deleted",
		} {
			changes = append(changes, change{fmt.Sprintf("UPDATE books SET %s = %s WHERE holdout = %d", column, value, number), id, -2})
		}
		changes = append(changes,
			change{fmt.Sprintf("DELETE FROM books WHERE holdout = %d", number), "", -1},
			change{fmt.Sprintf("INSERT INTO meters VALUES (%d, 'more', 5, 0)", number), id, -2},
			change{fmt.Sprintf("DELETE FROM holdouts WHERE number = %d", number), "", -1},
			change{fmt.Sprintf("DELETE FROM entries WHERE holdout = %d", number), id, -1},
			change{fmt.Sprintf("DELETE FROM entries WHERE holdout = %d AND seq = (SELECT max(seq) FROM entries WHERE holdout = %d)", number, number), id, -1},
			change{fmt.Sprintf("INSERT INTO entries SELECT %d, 50, version, kind, time, query, canonical, principal, debit, spent, body, head FROM entries WHERE holdout = %d AND seq = 1", number, 3-number), id, 50},
		)
	}
	for _, statement := range []string{
		"DELETE FROM meta WHERE name = 'releases ho_1'", `UPDATE meta SET value = CAST('{"spent":1,"limit":3000000,"made":1}' AS BLOB) WHERE name = 'releases ho_1'`,
		`UPDATE meta SET value = CAST('{"spent":1000000,"limit":3000001,"made":1}' AS BLOB) WHERE name = 'releases ho_1'`, "UPDATE meta SET value = x'00' WHERE name = 'releases ho_1'",
		`UPDATE meta SET value = CAST('{"spent":1000000,"limit":3000000,"made":1,"earlier":["ho_2"]}' AS BLOB) WHERE name = 'releases ho_1'`,
	} {
		changes = append(changes, change{statement, "ho_1", -1})
	}
	for _, c := range changes {
		_, err := Verify(t.Context(), rewrite(t, path, c.statement))
		var corrupt *ledger.CorruptError
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		if strings.Contains(c.statement, "SET id") {
			c.holdout = "ho_9"
		}
		if c.seq != -2 && corrupt.Seq != c.seq || corrupt.Holdout != c.holdout {
			t.Errorf("%s: found at %s %d, want %s %d: %v", c.statement, corrupt.Holdout, corrupt.Seq, c.holdout, c.seq, err)
		}
	}
}

// TestAccountOfReleasesAtStart: what releases have spent is compared with the chain when the ledger is opened. Nothing is appended where it was changed.
func TestAccountOfReleasesAtStart(t *testing.T) {
	release := func(l *Ledger, query string) error {
		return l.Update(t.Context(), "ho_1", func(tx *ledger.Tx) error {
			_, err := tx.Release(ledger.Release{Query: query, Canonical: []byte(`{"epsilon":1,"release_epsilon":3}`), Core: []byte(`{"released":true}`)})
			return err
		})
	}
	for _, c := range []struct {
		account string // nothing: it stays
		want    error
	}{{"", nil}, {`{"spent":1,"limit":3000000,"made":1}`, &ledger.CorruptError{}}, {`{"spent":1000000,"limit":4000000,"made":1}`, &ledger.CorruptError{}}} {
		path := newPath(t)
		l := openTest(t, path)
		mustCreate(t, l, testHoldout("ho_1", 5, 0))
		if err := errors.Join(release(l, "sha256:1"), l.Close()); err != nil {
			t.Fatal(err)
		}
		if c.account != "" {
			path = rewrite(t, path, "UPDATE meta SET value = CAST('"+c.account+"' AS BLOB) WHERE name = 'releases ho_1'")
		}
		err := release(openTest(t, path), "sha256:2")
		var corrupt *ledger.CorruptError
		if errors.As(err, &corrupt) != (c.want != nil) || c.want == nil && err != nil {
			t.Errorf("a release behind the account %q: %v", c.account, err)
		}
	}
}

// TestDamagedFile flips random bits of the file itself: either verify finds it, or all that the chain commits to is
// unchanged (the damage was in free space or in what is sealed).
func TestDamagedFile(t *testing.T) {
	path, exports := sample(t)
	whole := readFile(t, path)
	random := rand.New(rand.NewPCG(3, 4))
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	found := 0
	const trials = 200
	for range trials {
		b := bytes.Clone(whole)
		at, bit := random.IntN(len(b)), byte(1)<<random.IntN(8)
		b[at] ^= bit
		if err := os.WriteFile(damaged, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(t.Context(), damaged); err != nil {
			found++
			continue
		}
		l := &Ledger{replayOnly: true}
		var err error
		if l.readers, err = openReaders(damaged); err != nil {
			t.Fatal(err)
		}
		for i, want := range exports {
			var got bytes.Buffer
			if err := l.Export(t.Context(), fmt.Sprint("ho_", i+1), &got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Fatalf("bit %#x of byte %d: verify finds nothing, the export differs: %v", bit, at, err)
			}
		}
		l.readers.Close()
	}
	if found < trials/50 {
		t.Errorf("damage was found in %d of %d trials: the test hits nothing", found, trials)
	}
}

func TestVerifyWhatIsNoLedger(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	empty := filepath.Join(dir, "empty.db")
	if err := errors.Join(os.WriteFile(garbage, bytes.Repeat([]byte("no database"), 1000), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{garbage, empty, filepath.Join(dir, "missing.db"), dir} {
		if _, err := Verify(t.Context(), path); err == nil {
			t.Errorf("%s verifies", path)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "missing.db")); err == nil {
		t.Error("verify made a file")
	}
}
