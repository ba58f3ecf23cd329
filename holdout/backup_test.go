package holdout

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// backupOf is the archive of a data directory.
func backupOf(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, _, err := Backup(t.Context(), BackupOptions{Dir: dir, Keys: true, Version: "test"}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// onWrite calls do before it writes what at knows.
type onWrite struct {
	io.Writer
	at func(text []byte) bool
	do func()
}

func (w *onWrite) Write(b []byte) (int, error) {
	if w.do != nil && w.at(b) {
		do := w.do
		w.do = nil
		do()
	}
	return w.Writer.Write(b)
}

// TestBackupWhileHoldoutsComeAndGo: a holdout that comes after the first look at the ledger is in the backup with its tables and sketches, and one that is deleted
// while it is copied is restored as deleted, without its rows. It would catch a ledger in a backup that names what is not in it.
func TestBackupWhileHoldoutsComeAndGo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	stays := create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	goes := create(t, s, Settings{Questions: 20}, visits(t, 300, 2))
	ask(t, s, stays.ID, mean(1))
	var comes Card
	var told Answer
	var b bytes.Buffer
	w := &onWrite{Writer: &b, at: func(text []byte) bool { return bytes.Contains(text, []byte("holdouts/"+goes.ID+"/holdout/columns")) }, do: func() {
		must(t, s.Delete(t.Context(), admin, goes.ID))
		comes = create(t, s, Settings{Questions: 20}, visits(t, 300, 3))
		told = ask(t, s, comes.ID, mean(1))
	}}
	_, holdouts, err := Backup(t.Context(), BackupOptions{Dir: dir, Keys: true}, w)
	must(t, err)
	if w.do != nil || len(holdouts) != 3 || slices.ContainsFunc(holdouts, func(b Backed) bool { return b.Damage != "" || b.Deleted != (b.Holdout == goes.ID) }) {
		t.Fatalf("the backup has %+v", holdouts)
	}
	to := filepath.Join(t.TempDir(), "to")
	if _, _, err := Restore(t.Context(), RestoreOptions{Dir: to}, &b); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(to, holdoutsDir, goes.ID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rows of a deleted holdout were restored: %v", err)
	}
	must(t, s.Close())
	for _, id := range []string{stays.ID, goes.ID, comes.ID} {
		if _, err := os.Lstat(filepath.Join(to, lineageDir, id)); err != nil {
			t.Errorf("the sketches of %s: %v", id, err)
		}
	}
	must(t, AcceptRestored(to, Accepted{Keys: KeysStay}))
	r := open(t, to)
	if again := ask(t, r, comes.ID, mean(1)); !again.Replayed || !bytes.Equal(again.Body, told.Body) {
		t.Errorf("%s, want %s", again.Body, told.Body)
	}
	ask(t, r, stays.ID, mean(2))
	_, _, err = r.Create(t.Context(), admin, Settings{Questions: 20, Mechanism: "gaussian"}, SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 3)))), "")
	wantKind(t, "a table that was asked", err, Exists)
}

// entry is a file of an archive.
type entry struct {
	name string
	text []byte
	kind byte
}

func readArchive(t *testing.T, archive []byte) (all []entry) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		all = append(all, entry{h.Name, text, h.Typeflag})
	}
}

// writeArchive writes an archive; with list the digests of its contents are those of what it has.
func writeArchive(t *testing.T, all []entry, list bool) []byte {
	t.Helper()
	if list {
		var c contents
		last := &all[len(all)-1]
		must(t, json.Unmarshal(last.text, &c))
		c.Files = nil
		for _, e := range all {
			if name, ok := strings.CutPrefix(e.name, backupFiles); ok {
				sum := sha256.Sum256(e.text)
				c.Files = append(c.Files, backedFile{name, int64(len(e.text)), hex.EncodeToString(sum[:])})
			}
		}
		var err error
		last.text, err = json.Marshal(c)
		must(t, err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range all {
		must(t, w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.text)), Mode: secretMode, Typeflag: e.kind}))
		_, err := w.Write(e.text)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// TestRestoreRefuses: archives that somebody who has the key put together, or a program that is wrong, do not become a directory; nothing is left of them, and the same is said by a
// verification. Digests are made to fit, so that what refuses is the chain, the card, the marks.
func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first, second := create(t, s, Settings{Questions: 20}, visits(t, 300, 1)), create(t, s, Settings{Questions: 20}, visits(t, 300, 2))
	ask(t, s, first.ID, mean(1))
	must(t, s.Close())
	older := readArchive(t, backupOf(t, dir))
	s = open(t, dir)
	ask(t, s, first.ID, mean(2))
	must(t, s.Close())
	archive := backupOf(t, dir)

	at := func(all []entry, name string) *entry {
		i := slices.IndexFunc(all, func(e entry) bool { return e.name == name })
		if i < 0 {
			t.Fatalf("the archive has no %s", name)
		}
		return &all[i]
	}
	in := func(id string, elements ...string) string {
		return backupFiles + filepath.Join(append([]string{holdoutsDir, id}, elements...)...)
	}
	said := func(all []entry, change func(c *contents)) {
		last := at(all, backupContents)
		var c contents
		must(t, json.Unmarshal(last.text, &c))
		change(&c)
		var err error
		last.text, err = json.Marshal(c)
		must(t, err)
	}
	for name, harm := range map[string]struct {
		list bool
		said string
		rows bool // only a restore reads all rows
		do   func(all []entry) []entry
	}{
		"a byte": {said: "not what was backed up", do: func(all []entry) []entry { at(all, in(first.ID, "holdout", "columns")).text[70] ^= 1; return all }},
		"rows":   {list: true, rows: true, said: first.ID, do: func(all []entry) []entry { at(all, in(first.ID, "holdout", "columns")).text[70] ^= 1; return all }},
		"tables exchanged": {list: true, said: "fingerprint", do: func(all []entry) []entry {
			for _, file := range []string{"manifest", "columns"} {
				a, b := at(all, in(first.ID, "holdout", file)), at(all, in(second.ID, "holdout", file))
				a.text, b.text = b.text, a.text
			}
			return all
		}},
		"an older ledger": {list: true, said: "older", do: func(all []entry) []entry {
			at(all, backupFiles+ledgerFile).text = at(older, backupFiles+ledgerFile).text
			return all
		}},
		"an older ledger and list": {list: true, said: "older than it was", do: func(all []entry) []entry {
			at(all, backupFiles+ledgerFile).text, at(all, backupContents).text = at(older, backupFiles+ledgerFile).text, bytes.Clone(at(older, backupContents).text)
			return all
		}},
		"another head": {said: "older than the backup", do: func(all []entry) []entry {
			said(all, func(c *contents) { c.Holdouts[0].Head = c.Holdouts[1].Head })
			return all
		}},
		"no ledger": {list: true, said: "first file", do: func(all []entry) []entry {
			return slices.DeleteFunc(all, func(e entry) bool { return e.name == backupFiles+ledgerFile })
		}},
		"no mark": {list: true, said: "mark", do: func(all []entry) []entry {
			return slices.DeleteFunc(all, func(e entry) bool { return e.name == in(first.ID, markFile) })
		}},
		"a file less": {said: "missing", do: func(all []entry) []entry {
			return slices.DeleteFunc(all, func(e entry) bool { return e.name == in(first.ID, markFile) })
		}},
		"a file more": {said: "lists", do: func(all []entry) []entry {
			return slices.Insert(all, 1, entry{backupFiles + "more", []byte("more"), tar.TypeReg})
		}},
		"a file outside": {list: true, said: "not expected", do: func(all []entry) []entry {
			return slices.Insert(all, 1, entry{backupFiles + "../../outside", []byte("more"), tar.TypeReg})
		}},
		"a link": {said: "not expected", do: func(all []entry) []entry {
			return slices.Insert(all, 1, entry{backupFiles + "link", nil, tar.TypeSymlink})
		}},
		"twice":       {list: true, said: "twice", do: func(all []entry) []entry { return slices.Insert(all, 2, all[1]) }},
		"no contents": {said: "ends before", do: func(all []entry) []entry { return all[:len(all)-1] }},
		"another format": {said: "newer one", do: func(all []entry) []entry {
			all[0].text = bytes.Replace(all[0].text, []byte("backup/1"), []byte("backup/2"), 1)
			return all
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := writeArchive(t, harm.do(readArchive(t, archive)), harm.list)
			to := filepath.Join(t.TempDir(), "to")
			_, _, err := Restore(t.Context(), RestoreOptions{Dir: to}, bytes.NewReader(bad))
			if err == nil || !strings.Contains(err.Error(), harm.said) {
				t.Errorf("restored: %v, want %q", err, harm.said)
			}
			if left, _ := os.ReadDir(filepath.Dir(to)); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, _, err := VerifyBackup(t.Context(), t.TempDir(), bytes.NewReader(bad)); (err == nil) != harm.rows {
				t.Errorf("verified: %v", err)
			}
		})
	}
	whole := writeArchive(t, readArchive(t, archive), true)
	if !bytes.Equal(whole, archive) {
		t.Error("an archive that is written again is another one")
	}
	cut := errors.New("the decryption says that the end is missing")
	if _, _, err := Restore(t.Context(), RestoreOptions{Dir: filepath.Join(t.TempDir(), "to")}, io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(cut))); !errors.Is(err, cut) {
		t.Errorf("a backup whose end does not decrypt: %v", err)
	}
	to := t.TempDir() // an empty directory will do
	if _, found, err := Restore(t.Context(), RestoreOptions{Dir: to}, bytes.NewReader(whole)); err != nil || len(found) != 2 || found[0].Tables != inOrder || found[0].Sealed != inOrder {
		t.Errorf("the backup itself: %+v, %v", found, err)
	}
	if restored, want := tree(t, to), tree(t, dir); !maps.Equal(restored, want) {
		t.Errorf("restored %v\nfrom %v", restored, want)
	}
	work := t.TempDir()
	if _, _, err := VerifyBackup(t.Context(), work, bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	for name := range tree(t, work) {
		if strings.Contains(name, "columns") || strings.HasSuffix(name, ".key") {
			t.Errorf("a verification wrote %s", name)
		}
	}
}

// tree are the files of a directory that a backup has as they are, by their digests.
func tree(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ledgerFile) || d.Name() == restoredFile {
			return err
		}
		text, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, dir)] = sha256.Sum256(text)
		return err
	}))
	return all
}

// TestRestoredRecord: a directory whose record of restores cannot be read gives nothing new, and one that was never restored says nothing.
func TestRestoredRecord(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	told := ask(t, s, card.ID, mean(1))
	must(t, s.Close())
	if said := RestoreState(dir); said != "" {
		t.Errorf("never restored: %s", said)
	}
	if err := AcceptRestored(dir, Accepted{Lost: true}); err == nil {
		t.Error("there was a restore to accept")
	}
	for _, text := range []string{"", "{}", `{"version":1}`, `{"version":1,"restores":[]}`, `{"version":1,"restores":[{"loss":"none","keys":"ended"}]}`, `{"version":3,"restores":[{"loss":"none"}]}`, `{"version":1,"restores":[{"loss":""}]}`} {
		must(t, os.WriteFile(filepath.Join(dir, restoredFile), []byte(text), secretMode))
		s := open(t, dir)
		if again := ask(t, s, card.ID, mean(1)); !again.Replayed || !bytes.Equal(again.Body, told.Body) {
			t.Errorf("%q: %s", text, again.Body)
		}
		_, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(2)), "")
		wantKind(t, text, err, RolledBack)
		_, _, err = s.Create(t.Context(), admin, Settings{Questions: 20}, SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 2)))), "")
		wantKind(t, text, err, Unavailable)
		must(t, s.Close())
	}
	must(t, restores{Restores: []restore{{Backup: card.Created, Restored: time.Now()}}}.write(dir))
	must(t, AcceptRestored(dir, Accepted{Lost: true}))
	s = open(t, dir)
	ask(t, s, card.ID, mean(2))
	later := seen(t, s, create(t, s, Settings{Questions: 20}, visits(t, 300, 2)))
	for id, said := range map[string]string{card.ID: "this holdout was restored", later.ID: "if this table was uploaded in between"} {
		card, err := s.Card(t.Context(), admin, id)
		must(t, err)
		if !slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == Restored && strings.Contains(w.Detail, said) }) {
			t.Errorf("the card warns of %+v, want %q", card.Warnings, said)
		}
	}
}

// TestRestoredMoreThanOnce: a card names each restore whose loss was accepted, and one that has forgotten answers of the holdout itself before those that were before it.
func TestRestoredMoreThanOnce(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	r := restores{Restores: []restore{{Backup: day(2), Restored: day(3), Loss: lossAccepted}, {Backup: day(5), Restored: day(6), Loss: nothingLost, Keys: keysEnded}, {Backup: day(8), Restored: day(9), Loss: lossAccepted}}}
	for _, c := range []struct {
		created time.Time
		want    []string
	}{
		{day(1), []string{"this holdout was restored at 2026-03-03", "of 2026-03-02", "and at 2026-03-09", "of 2026-03-08"}},
		{day(7), []string{"this holdout was restored at 2026-03-09", "of 2026-03-08"}},
		{day(10), []string{"if this table was uploaded in between", "at 2026-03-03", "and at 2026-03-09"}},
	} {
		said := r.warning(c.created)
		for _, want := range c.want {
			if said == nil || !strings.Contains(said.Detail, want) || strings.Contains(said.Detail, "03-06") {
				t.Errorf("created at %v: %+v, want %q", c.created, said, want)
			}
		}
	}
	if said := (restores{Restores: r.Restores[1:2]}).warning(day(1)); said != nil {
		t.Errorf("nothing was lost: %+v", said)
	}
}

// TestBackupEnds: a backup whose caller gives up ends with its error.
func TestBackupEnds(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	must(t, s.Close())
	ctx, cancel := context.WithCancel(t.Context())
	w := &onWrite{Writer: io.Discard, at: func(text []byte) bool { return bytes.Contains(text, []byte("columns")) }, do: cancel}
	if _, _, err := Backup(ctx, BackupOptions{Dir: dir, Keys: true}, w); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
