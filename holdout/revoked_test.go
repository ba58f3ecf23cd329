package holdout

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// adminKeyOf is what DIR/admin.key has.
func adminKeyOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, adminKeyFile))
	must(t, err)
	return strings.TrimSpace(string(text))
}

// opens says whether a bearer has rights.
func opens(t *testing.T, s *Service, what, bearer string, want bool) {
	t.Helper()
	_, err := s.Authenticate(t.Context(), bearer)
	if kind := KindOf(err); err == nil != want || !want && kind != Unauthorized {
		t.Errorf("%s: %v, want it to be valid: %v", what, err, want)
	}
}

// putLedger copies the ledger of a closed directory.
func putLedger(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(from, ledgerFile))
	must(t, err)
	for _, suffix := range []string{"-wal", "-shm"} {
		must(t, removeIfThere(filepath.Join(to, ledgerFile+suffix)))
	}
	must(t, os.WriteFile(filepath.Join(to, ledgerFile), text, secretMode))
}

// TestRevokedStays: a key and a grant that were revoked stay so beside an older ledger, and a revoked key of an admin beside a new one; also what was revoked before there were files. It notices a ledger whose word
// alone counts.
func TestRevokedStays(t *testing.T) {
	dir, older := t.TempDir(), t.TempDir()
	s := open(t, dir)
	first, err := s.Authenticate(t.Context(), adminKeyOf(t, dir))
	must(t, err)
	card := create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	gone, goneSecret, err := s.CreateKey(t.Context(), first, "gone", Analyst)
	must(t, err)
	stays, stay, err := s.CreateKey(t.Context(), first, "stays", Granted)
	must(t, err)
	second, secondSecret, err := s.CreateKey(t.Context(), first, "second", Admin)
	must(t, err)
	grant, err := s.CreateGrant(t.Context(), first, NewGrant{Key: stays.ID, Holdout: card.ID, Questions: 3})
	must(t, err)
	must(t, s.Close())
	putLedger(t, dir, older)
	forgotten := func(s *Service, what string) {
		t.Helper()
		opens(t, s, what+": a revoked key", goneSecret, false)
		opens(t, s, what+": the revoked key of an admin", adminKeyOf(t, older), false)
		opens(t, s, what+": another key", stay, true)
		grants, err := s.ledger.Grants(t.Context(), card.ID)
		if err != nil || len(grants) != 1 || !grants[0].Revoked {
			t.Errorf("%s: the revoked grant is %+v, %v", what, grants, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(older, adminKeyFile), []byte(adminKeyOf(t, dir)), secretMode))

	s = open(t, dir)
	by := Principal{KeyID: second.ID, Scope: Admin}
	must(t, s.RevokeKey(t.Context(), by, gone.ID))
	must(t, s.RevokeKey(t.Context(), by, first.KeyID))
	must(t, s.RevokeGrant(t.Context(), by, grant.ID))
	must(t, s.Close())
	kept, err := os.ReadDir(filepath.Join(dir, revokedDir))
	if err != nil || len(kept) != 3 {
		t.Fatalf("of three revocations there are %v, %v", kept, err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, revokedDir))) // as a program leaves it that knew of no such files
	must(t, open(t, dir).Close())
	for range 2 {
		putLedger(t, older, dir)
		s = open(t, dir)
		forgotten(s, "an older ledger")
		opens(t, s, "an admin's key that nobody revoked", secondSecret, true)
		must(t, s.Close())
	}
	for _, name := range []string{"", "-wal", "-shm"} {
		must(t, removeIfThere(filepath.Join(dir, ledgerFile+name)))
	}
	s = open(t, dir, func(o *Options) { o.AcceptLostLedger = true })
	opens(t, s, "a new ledger: the revoked key of an admin", adminKeyOf(t, older), false)
	opens(t, s, "a new ledger: the new key in admin.key", adminKeyOf(t, dir), true)
	must(t, s.Close())

	putLedger(t, older, dir)
	must(t, os.Remove(filepath.Join(dir, serverKeyFile)))
	s = open(t, dir)
	opens(t, s, "an older ledger, and no server key: a revoked key", goneSecret, false)
	opens(t, s, "an older ledger, and no server key: another one", stay, true)
}

// TestRestoreEndsKeys: a key that was revoked after a backup has no rights after it was restored: keys and grants from before end, and an admin is let in by a new one. Where the owner says that nothing was revoked they
// stay. Until then nobody makes a key or a grant. It notices a restore that gives a revoked key its rights back.
func TestRestoreEndsKeys(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	old := adminKeyOf(t, dir)
	card := create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	k, secret, err := s.CreateKey(t.Context(), admin, "ana", Granted)
	must(t, err)
	_, err = s.CreateGrant(t.Context(), admin, NewGrant{Key: k.ID, Holdout: card.ID, Questions: 3})
	must(t, err)
	var b bytes.Buffer
	_, _, err = Backup(t.Context(), BackupOptions{Dir: dir, Keys: true}, &b)
	must(t, err)
	must(t, s.RevokeKey(t.Context(), admin, k.ID))
	must(t, s.Close())
	for _, c := range []struct {
		said   Accepted
		stays  bool
		valid  int
		states string
	}{
		{Accepted{}, false, 1, "nothing was lost; keys and grants from before have ended"},
		{Accepted{Lost: true}, false, 1, "answers may be lost, and cards say so; keys and grants from before have ended"},
		{Accepted{Keys: KeysStay}, true, 2, "keys and grants from before stay valid"},
	} {
		to := filepath.Join(t.TempDir(), "to")
		_, _, err := Restore(t.Context(), RestoreOptions{Dir: to}, bytes.NewReader(b.Bytes()))
		must(t, err)
		s := open(t, to)
		_, _, err = s.CreateKey(t.Context(), admin, "eve", Admin)
		wantKind(t, "a key before it is accepted", err, Unavailable)
		_, err = s.CreateGrant(t.Context(), admin, NewGrant{Key: k.ID, Holdout: card.ID, Questions: 1})
		wantKind(t, "a grant before it is accepted", err, Unavailable)
		must(t, s.Close())
		must(t, AcceptRestored(to, c.said))
		if said := RestoreState(to); !strings.HasSuffix(said, c.states) {
			t.Errorf("%+v: %s", c.said, said)
		}
		for range 2 {
			s = open(t, to)
			opens(t, s, "a key of the backup", secret, c.stays)
			opens(t, s, "the admin's of the backup", old, c.stays)
			opens(t, s, "what is in admin.key", adminKeyOf(t, to), true)
			keys, err := s.ledger.Keys(t.Context())
			must(t, err)
			if valid := slices.DeleteFunc(keys, func(k ledger.Key) bool { return k.Revoked }); len(valid) != c.valid {
				t.Errorf("%+v: %d keys are valid, want %d", c.said, len(valid), c.valid)
			}
			grants, err := s.ledger.Grants(t.Context(), card.ID)
			if err != nil || len(grants) != 1 || grants[0].Revoked == c.stays {
				t.Errorf("%+v: %+v, %v", c.said, grants, err)
			}
			must(t, s.Close())
		}
		s = open(t, to)
		_, later, err := s.CreateKey(t.Context(), admin, "later", Analyst)
		must(t, err)
		must(t, s.Close())
		s = open(t, to)
		opens(t, s, "a key that was made since", later, true)
		must(t, s.Close())
	}
}

// TestSharedKeysAreSaid: a directory beside a ledger in a database is restored by itself, and the keys are those of all servers. So its owner has to say what becomes of them.
func TestSharedKeysAreSaid(t *testing.T) {
	for said, ends := range map[string]bool{"": false, KeysStay: false, KeysEnd: true} {
		dir := t.TempDir()
		must(t, open(t, dir).Close())
		must(t, restores{Restores: []restore{{Backup: time.Now(), Restored: time.Now(), Shared: true}}}.write(dir))
		err := AcceptRestored(dir, Accepted{Keys: said})
		if said == "" {
			if err == nil || !strings.Contains(err.Error(), "--end-keys") {
				t.Errorf("nothing is said of the keys: %v", err)
			}
			continue
		}
		must(t, err)
		s := open(t, dir)
		keys, err := s.ledger.Keys(t.Context())
		must(t, err)
		if keys[0].Revoked != ends {
			t.Errorf("%q: the key of before is %+v", said, keys[0])
		}
		must(t, s.Close())
	}
}

// TestGrantsWithoutServerKey: a server without its key, which replays alone, shows nothing to a grant that was revoked, or that is a slice of one whose key was, though an older ledger beside it has forgotten that. It notices a server that
// asks the ledger alone.
func TestGrantsWithoutServerKey(t *testing.T) {
	dir, older := t.TempDir(), t.TempDir()
	s := open(t, dir)
	card := create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	grantee := func(name, parent string) (secret, key, grant string) {
		k, secret, err := s.CreateKey(t.Context(), admin, name, Granted)
		must(t, err)
		g, err := s.CreateGrant(t.Context(), admin, NewGrant{Key: k.ID, Holdout: card.ID, Parent: parent, Questions: 2})
		must(t, err)
		return secret, k.ID, g.ID
	}
	gone, _, goneGrant := grantee("gone", "")
	stays, _, _ := grantee("stays", "")
	above, aboveKey, aboveGrant := grantee("above", "")
	below, _, _ := grantee("below", aboveGrant)
	secrets := map[string]string{"gone": gone, "stays": stays, "above": above, "below": below}
	q := []byte(mean(1))
	for name, secret := range secrets {
		p, err := s.Authenticate(t.Context(), secret)
		must(t, err)
		if _, err := s.Ask(t.Context(), p, card.ID, q, ""); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	must(t, s.Close())
	putLedger(t, dir, older)
	s = open(t, dir)
	must(t, s.RevokeGrant(t.Context(), admin, goneGrant))
	must(t, s.RevokeKey(t.Context(), admin, aboveKey))
	must(t, s.Close())
	putLedger(t, older, dir)
	must(t, os.Remove(filepath.Join(dir, serverKeyFile)))
	s = open(t, dir)
	opens(t, s, "a revoked key", above, false)
	for name, refused := range map[string]bool{"gone": true, "below": true, "stays": false} {
		p, err := s.Authenticate(t.Context(), secrets[name])
		must(t, err)
		_, err = s.Ask(t.Context(), p, card.ID, q, "")
		if refused != (KindOf(err) == GrantEnded) || !refused && err != nil {
			t.Errorf("%s: %v, want it to be refused: %v", name, err, refused)
		}
	}
}

// TestRevokedWithoutAMark: a key and a grant are revoked, and whoever revokes them is told so, where the mark of it cannot be written; the next start writes it. It notices a refusal that leaves the key revoked.
func TestRevokedWithoutAMark(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	k, secret, err := s.CreateKey(t.Context(), admin, "ana", Granted)
	must(t, err)
	g, err := s.CreateGrant(t.Context(), admin, NewGrant{Key: k.ID, Holdout: card.ID, Questions: 3})
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, revokedDir)))
	must(t, s.RevokeGrant(t.Context(), admin, g.ID))
	must(t, s.RevokeKey(t.Context(), admin, k.ID))
	opens(t, s, "a revoked key", secret, false)
	must(t, s.Close())
	must(t, open(t, dir).Close())
	if kept, err := os.ReadDir(filepath.Join(dir, revokedDir)); err != nil || len(kept) != 2 {
		t.Errorf("of two revocations there are %v, %v", kept, err)
	}
}

// TestAcceptedWithoutServerKey: a restore whose keys would end is not accepted where no new one can be made: everybody would be locked out.
func TestAcceptedWithoutServerKey(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	create(t, s, Settings{Questions: 20}, visits(t, 300, 1))
	old := adminKeyOf(t, dir)
	var b bytes.Buffer
	_, _, err := Backup(t.Context(), BackupOptions{Dir: dir}, &b)
	must(t, err)
	must(t, s.Close())
	to := filepath.Join(t.TempDir(), "to")
	_, _, err = Restore(t.Context(), RestoreOptions{Dir: to}, bytes.NewReader(b.Bytes()))
	must(t, err)
	if err := AcceptRestored(to, Accepted{Lost: true}); err == nil || !strings.Contains(err.Error(), "--keep-keys") {
		t.Fatalf("accepted without a server key: %v", err)
	}
	must(t, AcceptRestored(to, Accepted{Lost: true, Keys: KeysStay}))
	opens(t, open(t, to), "the admin's key", old, true)
}

// TestKeysEndOnce: keys that were made since a restore stay, also where the clock of the machine is behind the one that restored. It notices keys that end at every start.
func TestKeysEndOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	old := adminKeyOf(t, dir)
	must(t, s.Close())
	ahead := time.Now().Add(10 * time.Minute)
	must(t, restores{Restores: []restore{{Backup: ahead, Restored: ahead, Loss: nothingLost, Keys: keysEnded}}}.write(dir))
	s = open(t, dir)
	opens(t, s, "a key from before", old, false)
	made := adminKeyOf(t, dir)
	_, bob, err := s.CreateKey(t.Context(), admin, "bob", Analyst)
	must(t, err)
	must(t, s.Close())
	s = open(t, dir)
	opens(t, s, "a key that was made since", bob, true)
	opens(t, s, "the admin's that was made since", made, true)
	if said := RestoreState(dir); !strings.HasSuffix(said, "have ended") {
		t.Error(said)
	}
}

// TestRevokedDuringItsUpload: a key that is revoked while its upload comes makes no holdout.
func TestRevokedDuringItsUpload(t *testing.T) {
	s := open(t, t.TempDir())
	k, _, err := s.CreateKey(t.Context(), admin, "second", Admin)
	must(t, err)
	whole := SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 1))))
	_, _, err = s.Create(t.Context(), Principal{KeyID: k.ID, Scope: Admin}, Settings{Questions: 20}, func() (string, io.Reader, error) {
		must(t, s.RevokeKey(t.Context(), admin, k.ID))
		return whole()
	}, "")
	wantKind(t, "the upload", err, Unauthorized)
	if cards, err := s.List(t.Context(), admin); err != nil || len(cards) != 0 {
		t.Errorf("there are %v, %v", cards, err)
	}
}

// TestAdminKeyOfAnother: where no admin has a valid key, and admin.key holds a key of another scope, an admin is let in by a new one.
func TestAdminKeyOfAnother(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first, err := s.Authenticate(t.Context(), adminKeyOf(t, dir))
	must(t, err)
	_, ana, err := s.CreateKey(t.Context(), first, "ana", Analyst)
	must(t, err)
	must(t, s.RevokeKey(t.Context(), admin, first.KeyID))
	must(t, s.Close())
	must(t, os.WriteFile(filepath.Join(dir, adminKeyFile), []byte(ana), secretMode))
	must(t, os.Mkdir(filepath.Join(dir, revokedDir, "not ours"), privateMode))
	s = open(t, dir)
	p, err := s.Authenticate(t.Context(), adminKeyOf(t, dir))
	if err != nil || p.Scope != Admin {
		t.Errorf("admin.key lets in %+v, %v", p, err)
	}
	opens(t, s, "the other key", ana, true)
	if _, _, err := Backup(t.Context(), BackupOptions{Dir: dir}, io.Discard); err != nil {
		t.Errorf("a backup beside a folder that is not ours: %v", err)
	}
}
