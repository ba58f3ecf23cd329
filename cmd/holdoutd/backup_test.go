package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/await"
)

// safe is who backups of a test are for.
type safe struct{ recipient, identity string }

func newSafe(t *testing.T) safe {
	t.Helper()
	pair, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(file, []byte(pair.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return safe{pair.Recipient().String(), file}
}

// done runs the program, which must succeed.
func done(t *testing.T, args ...string) (out, errs string) {
	t.Helper()
	out, errs, code := holdoutd(t, args...)
	if code != 0 {
		t.Fatalf("holdoutd %s: %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out, errs
}

// backup makes a backup with the server's keys.
func (s safe) backup(t *testing.T, dir string, more ...string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "the.backup")
	done(t, append([]string{"backup", "--data", dir, "--to", file, "--recipient", s.recipient, "--with-keys"}, more...)...)
	return file
}

// restore puts a backup back.
func (s safe) restore(t *testing.T, file string, more ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	done(t, append([]string{"restore", "--from", file, "--identity", s.identity, "--data", dir}, more...)...)
	return dir
}

const (
	backups    = 5
	backupSeed = 20261130
)

// TestBackup takes backups of the real server under load: clients ask, and tables come and go. Each is restored: every answer that was received before the backup
// began replays with its bytes, the books balance, and nothing new is answered before an admin has said what was lost. It would catch a ledger that is copied without
// its log, tables that the ledger names and the backup lacks, and a restore that gives budget back in silence.
func TestBackup(t *testing.T) {
	ctx, dir, key := t.Context(), t.TempDir(), newSafe(t)
	random := rand.New(rand.NewPCG(backupSeed, 0))
	w := &world{answers: map[string][]byte{}, left: crashBudget}
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: crashBudget})
	if err != nil {
		t.Fatal(err)
	}
	w.holdout = card.ID
	clients := w.load(t, c, false, random)
	comings, stop := comeAndGo(t, c, random)

	var known [backups]map[string][]byte
	var files [backups]string
	for i := range backups {
		w.await(t, 20*(i+1))
		w.mu.Lock()
		known[i] = maps.Clone(w.answers)
		w.mu.Unlock()
		files[i] = key.backup(t, dir)
	}
	stop()
	comings.Wait()
	p.kill()
	clients.Wait()
	for i, file := range files {
		out, _ := done(t, "verify", "--backup", file, "--identity", key.identity)
		if !strings.Contains(out, card.ID) || !strings.Contains(out, "tables in order") {
			t.Errorf("verify --backup: %s", out)
		}
		to := key.restore(t, file)
		reports, err := sqlite.Verify(ctx, filepath.Join(to, ledgerFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range reports {
			if r.Holdout == card.ID && (r.Answers < int64(len(known[i])) || r.Spent["questions"] != r.Answers) {
				t.Errorf("backup %d: %d answers, %v spent; %d were received before", i, r.Answers, r.Spent, len(known[i]))
			}
			if _, err := os.Stat(filepath.Join(to, "holdouts", r.Holdout)); r.Deleted != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("backup %d: %s, deleted: %v: its tables: %v", i, r.Holdout, r.Deleted, err)
			}
		}
		if i == 0 || i == backups-1 {
			checkRestored(t, to, card.ID, known[i])
		}
		os.RemoveAll(to)
	}
}

// comeAndGo uploads tables and deletes them, until it is stopped.
func comeAndGo(t *testing.T, c *client.Client, random *rand.Rand) (comings *sync.WaitGroup, stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	comings = &sync.WaitGroup{}
	var tables [][]byte
	for range 12 {
		tables = append(tables, randomTable(t, random))
	}
	comings.Go(func() {
		last := ""
		for _, table := range tables {
			card, err := c.CreateHoldout(ctx, bytes.NewReader(table), client.Settings{Name: "comes", Holdout: 0.5, Questions: 10})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if last != "" {
				if err := c.Delete(ctx, last); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			last = card.ID
		}
	})
	return comings, stop
}

// checkRestored serves a restored directory: it replays, and gives nothing new before its owner has said what was lost.
func checkRestored(t *testing.T, dir, id string, known map[string][]byte) {
	t.Helper()
	ctx := t.Context()
	fresh := map[string]any{"type": "fraction", "of": "delay > 5000.25"} // nobody has asked it
	p := startServer(t, dir)
	c := connect(t, p, dir)
	replays := func() {
		t.Helper()
		for query, answer := range known {
			minutes, _ := strconv.Atoi(query)
			again, err := c.Ask(ctx, id, above(minutes))
			if err != nil || !again.Replayed || !bytes.Equal(again.Answer.Raw, answer) {
				t.Fatalf("after the restore: %v\n%s\n%s", err, again.Answer.Raw, answer)
			}
		}
	}
	replays()
	_, err := c.Ask(ctx, id, fresh)
	if r := refusal(t, "a new question", err); r.Code != "ledger-rolled-back" || !strings.Contains(r.Detail, "--accept-lost") {
		t.Errorf("the refusal is %v", r)
	}
	_, err = c.CreateHoldout(ctx, bytes.NewReader(randomTable(t, rand.New(rand.NewPCG(9, 9)))), client.Settings{Name: "new", Holdout: 0.5, Questions: 10})
	if r := refusal(t, "a new table", err); r.Code != "unavailable" {
		t.Errorf("the refusal is %v", r)
	}
	if card, err := c.Holdout(ctx, id); err != nil || card.State != "rolled-back" {
		t.Errorf("the card: %v %q", err, card.State)
	}
	p.stop(t)
	if out, _ := done(t, "verify", "--no-tables", dir); !strings.Contains(out, "no new answers are given until") {
		t.Errorf("verify: %s", out)
	}
	done(t, "restore", "--data", dir, "--accept-lost")
	if out, errs, code := holdoutd(t, "restore", "--data", dir, "--nothing-lost"); code != 1 || !strings.Contains(errs, "no restore to accept") {
		t.Errorf("accepted twice: %d %s%s", code, out, errs)
	}
	p = startServer(t, dir)
	c = connect(t, p, dir)
	replays()
	before, err := c.Budget(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Ask(ctx, id, fresh)
	if err != nil || reply.Replayed || reply.Budget.Questions.Left != before.Questions.Left-1 {
		t.Errorf("a new question after the loss was accepted: %v %+v", err, reply)
	}
	if card, err := c.Holdout(ctx, id); err != nil || card.State != "" || !warned(card, "restored") {
		t.Errorf("the card: %v %q %+v", err, card.State, card.Warnings)
	}
	p.stop(t)
	checkAgain(t, dir, id, fresh, reply.Answer.Raw)
}

func warned(card client.Card, code string) bool {
	for _, w := range card.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// checkAgain backs a restored directory up and restores it again: what was accepted stays, and what may be lost now has to be accepted anew.
func checkAgain(t *testing.T, dir, id string, question map[string]any, answer json.RawMessage) {
	t.Helper()
	ctx, key := t.Context(), newSafe(t)
	again := key.restore(t, key.backup(t, dir))
	p := startServer(t, again)
	c := connect(t, p, again)
	reply, err := c.Ask(ctx, id, question)
	if err != nil || !reply.Replayed || !bytes.Equal(reply.Answer.Raw, answer) {
		t.Errorf("after the second restore: %v %s, want %s", err, reply.Answer.Raw, answer)
	}
	_, err = c.Ask(ctx, id, map[string]any{"type": "fraction", "of": "delay > 5000.75"})
	if r := refusal(t, "a new question after the second restore", err); r.Code != "ledger-rolled-back" {
		t.Errorf("the refusal is %v", r)
	}
	p.stop(t)
	done(t, "restore", "--data", again, "--nothing-lost", "--keep-keys")
	p = startServer(t, again)
	c = connect(t, p, again)
	if card, err := c.Holdout(ctx, id); err != nil || card.State != "" || !warned(card, "restored") {
		t.Errorf("the first loss is forgotten: %v %q %+v", err, card.State, card.Warnings)
	}
	if _, err := c.Ask(ctx, id, map[string]any{"type": "fraction", "of": "delay > 5000.75"}); err != nil {
		t.Error(err)
	}
	p.stop(t)
}

// backedUp is a stopped directory with an answer, and a backup of it.
func backedUp(t *testing.T, key safe, more ...string) (dir, file, id string) {
	t.Helper()
	dir = t.TempDir()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	id = flightsHoldout(t, c).ID
	if _, err := c.Ask(t.Context(), id, above(15)); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	return dir, key.backup(t, dir, more...), id
}

// TestBackupChanged changes one byte of a backup, at positions all over it, cuts it off, and adds to it. Nothing of that opens.
func TestBackupChanged(t *testing.T) {
	key := newSafe(t)
	_, file, _ := backedUp(t, key)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unlock := &unlockFlags{identity: key.identity}
	opens := func(backup []byte) error {
		_, err := verifyBackup(t.Context(), bytes.NewReader(backup), "-", unlock)
		return err
	}
	if err := opens(whole); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(backupSeed, 1))
	const head, chunk = 260, 64<<10 + 16 // of age: about its header, and a piece that is sealed by itself
	var positions []int
	for i := range head {
		positions = append(positions, i, len(whole)-1-i)
	}
	for range 300 {
		positions = append(positions, random.IntN(len(whole)))
	}
	for _, at := range positions {
		changed := bytes.Clone(whole)
		changed[at] ^= byte(1 << random.IntN(8))
		if opens(changed) == nil {
			t.Errorf("byte %d of %d was changed, and the backup is in order", at, len(whole))
		}
	}
	for n := head; n < len(whole); n += chunk / 4 {
		if opens(whole[:n]) == nil {
			t.Errorf("the first %d of %d bytes are in order", n, len(whole))
		}
	}
	for _, end := range [][]byte{{0}, whole[:head], make([]byte, chunk)} {
		if opens(append(bytes.Clone(whole), end...)) == nil {
			t.Errorf("%d bytes behind the backup's end are in order", len(end))
		}
	}
	for _, at := range positions[:5] { // and the command itself leaves nothing
		changed := bytes.Clone(whole)
		changed[(at+len(whole)/2)%len(whole)] ^= 1
		bad, to := filepath.Join(t.TempDir(), "bad"), filepath.Join(t.TempDir(), "to")
		if err := os.WriteFile(bad, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := holdoutd(t, "restore", "--from", bad, "--identity", key.identity, "--data", to)
		if code != 1 || !strings.Contains(errs, "holdoutd: ") {
			t.Errorf("restored: %d %s%s", code, out, errs)
		}
		nothingThere(t, filepath.Dir(to))
	}
}

func nothingThere(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%s has %v, %v", dir, left, err)
	}
}

// TestBackupKeys: what opens a backup, what does not, and what is said of it.
func TestBackupKeys(t *testing.T) {
	folder, key := t.TempDir(), newSafe(t)
	dir, _, id := backedUp(t, key)
	in := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	right, wrong, empty, file := in("right", "four words of nobody\n"), in("wrong", "five\n"), in("empty", "\n"), filepath.Join(folder, "b")
	for _, c := range []struct {
		args string
		code int
		said string
	}{
		{"backup --data " + dir + " --to " + file, 2, "always encrypted"},
		{"backup --data " + dir + " --to " + file + " --passphrase-file " + empty, 1, "must hold one line"},
		{"backup --data " + dir + " --to " + file + " --recipient age1nobody", 2, "--recipient"},
		{"backup --data " + dir + " --recipient " + key.recipient, 2, "--to FILE"},
		{"backup --data " + folder + " --to " + file + " --recipient " + key.recipient, 1, "is not a data directory"},
		{"backup --data " + dir + " --to " + file + " --passphrase-file " + right, 0, "server.key is not in it"},
		{"backup --data " + dir + " --to " + file + " --passphrase-file " + right, 1, "is there already"},
		{"verify --backup " + file + " --passphrase-file " + wrong, 1, "does not open"},
		{"verify --backup " + file + " --identity " + key.identity, 1, "does not open"},
		{"verify --backup " + file, 2, "--passphrase-file"},
		{"verify " + dir + " --passphrase-file " + right, 2, "--backup"},
		{"restore --from " + file + " --passphrase-file " + wrong + " --data " + folder + "/to", 1, "does not open"},
		{"restore --from " + file + " --passphrase-file " + right + " --data " + dir, 1, "is not empty"},
		{"restore --from " + dir + "/server.key --passphrase-file " + right + " --data " + folder + "/to", 1, "does not open"},
		{"restore --data " + folder + "/to", 2, "--from"},
		{"restore --data " + dir + " --accept-lost", 1, "no restore to accept"},
		{"restore --data " + dir + " --accept-lost --nothing-lost", 2, "opposite"},
		{"restore --data " + dir + " --accept-lost --keep-keys --end-keys", 2, "opposite"},
		{"restore --data " + dir + "-new --from x --keep-keys", 2, "--keep-keys and --end-keys belong"},
		{"restore --data " + dir + " --keep-keys", 2, "give --from"},
		{"restore --from " + file + " --passphrase-file " + right + " --data " + folder + "/bare", 0, "server.key was not in the backup"},
		{"restore --from " + file + " --passphrase-file " + right + " --data " + folder + "/other --server-key " + in("other.key", strings.Repeat("ab", 32)), 1, "another server key"},
		{"restore --from " + file + " --passphrase-file " + right + " --data " + folder + "/full --server-key " + dir + "/server.key", 0, "sealed values in order"},
	} {
		out, errs, code := holdoutd(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errs, c.said) {
			t.Errorf("%s: %d, want %d\n%s%s", c.args, code, c.code, out, errs)
		}
	}
	for _, left := range []string{"to", "to.restoring", "other", "other.restoring", "b.partial"} {
		if _, err := os.Lstat(filepath.Join(folder, left)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", left, err)
		}
	}
	for _, name := range []string{"server.key", "admin.key"} {
		if _, err := os.Lstat(filepath.Join(folder, "bare", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was in a backup without keys: %v", name, err)
		}
	}
	secret, err := os.ReadFile(filepath.Join(dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, key.backup(t, dir)} {
		text, err := os.ReadFile(name)
		if err != nil || bytes.Contains(text, bytes.TrimSpace(secret)) || bytes.Contains(text, []byte(id)) {
			t.Errorf("%s is not encrypted (%v)", name, err)
		}
	}
	admin, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, lost := range map[string]bool{"full": false, "bare": true} { // with the server's key new answers are given, without it none
		dir = filepath.Join(folder, dir)
		done(t, "restore", "--data", dir, "--nothing-lost", "--keep-keys")
		p := startServer(t, dir)
		c, err := client.New(p.url, strings.TrimSpace(string(admin)), client.WithRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := c.Ask(t.Context(), id, above(15)); err != nil || !reply.Replayed {
			t.Errorf("%s: %v", dir, err)
		}
		if _, err := c.Ask(t.Context(), id, above(16)); (err != nil) != lost {
			t.Errorf("%s: a new question: %v", dir, err)
		}
		if card, err := c.Holdout(t.Context(), id); err != nil || warned(card, "restored") {
			t.Errorf("%s: nothing was lost, and the card says %+v, %v", dir, card.Warnings, err)
		}
		p.stop(t)
	}
}

// TestBackupKilled ends backups and restores by SIGKILL, wherever they are. A file with the backup's name is whole, nothing starts on what a restore has left, and both
// can be done anew.
func TestBackupKilled(t *testing.T) {
	key := newSafe(t)
	dir, file, id := backedUp(t, key)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		to := filepath.Join(t.TempDir(), "killed")
		cmd := exec.Command(binary, "backup", "--data", dir, "--to", to, "--recipient", key.recipient)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the backup has begun", func() bool {
			info, err := os.Stat(to + ".partial")
			_, named := os.Stat(to)
			return named == nil || err == nil && info.Size() > int64(i)*1000
		})
		cmd.Process.Kill()
		cmd.Wait()
		if _, err := os.Stat(to); err == nil {
			done(t, "verify", "--backup", to, "--identity", key.identity)
			continue
		}
		if _, errs, code := holdoutd(t, "verify", "--backup", to+".partial", "--identity", key.identity); code != 1 {
			t.Errorf("a backup that was killed is in order: %d %s", code, errs)
		}
		args := []string{"backup", "--data", dir, "--to", to, "--recipient", key.recipient}
		if _, errs, code := holdoutd(t, args...); code != 1 || !strings.Contains(errs, "remove it") {
			t.Errorf("beside what was left: %d %s", code, errs)
		}
		if err := os.Remove(to + ".partial"); err != nil {
			t.Fatal(err)
		}
		done(t, args...)
	}
	for i := range 6 {
		to := filepath.Join(t.TempDir(), "killed")
		cmd := exec.Command(binary, "restore", "--from", "-", "--identity", key.identity, "--data", to)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(in, bytes.NewReader(whole[:len(whole)*(i+1)/6])); err != nil { // the last time all, and the end is not told
			t.Fatal(err)
		}
		await.Until(t, "the restore has begun", func() bool {
			_, err := os.Stat(filepath.Join(to+".restoring", "restoring"))
			return err == nil
		})
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there after a restore that was killed: %v", to, err)
		}
		if _, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", to+".restoring"); code != 1 || !strings.Contains(errs, "was interrupted") {
			t.Errorf("a server on half a restore: %d %s", code, errs)
		}
		args := []string{"restore", "--from", file, "--identity", key.identity, "--data", to}
		if _, errs, code := holdoutd(t, args...); code != 1 || !strings.Contains(errs, "remove it") {
			t.Errorf("beside what was left: %d %s", code, errs)
		}
		if err := os.RemoveAll(to + ".restoring"); err != nil {
			t.Fatal(err)
		}
		if out, _ := done(t, args...); !strings.Contains(out, id) {
			t.Errorf("restored: %s", out)
		}
	}
}

// TestBackupFullDisk makes backups and restores where files cannot grow, as on a full disk: both fail, say so, and leave nothing.
func TestBackupFullDisk(t *testing.T) {
	key := newSafe(t)
	dir, file, _ := backedUp(t, key)
	to := filepath.Join(t.TempDir(), "to")
	for _, args := range [][]string{
		{"backup", "--data", dir, "--to", to, "--recipient", key.recipient},
		{"restore", "--from", file, "--identity", key.identity, "--data", to},
	} {
		limited := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, 64), binary}, args...)...)
		said, err := limited.CombinedOutput()
		if limited.ProcessState == nil || limited.ProcessState.ExitCode() != 1 || !strings.Contains(string(said), "file too large") {
			t.Errorf("%s: %v %s", args[0], err, said)
		}
		nothingThere(t, filepath.Dir(to))
	}
}

// TestBackupOfDamage: a holdout that was damaged before is named, the backup is made all the same, and the other holdouts are restored whole.
func TestBackupOfDamage(t *testing.T) {
	key, dir := newSafe(t), t.TempDir()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	bad := flightsHoldout(t, c)
	good, err := c.CreateHoldout(t.Context(), bytes.NewReader(randomTable(t, rand.New(rand.NewPCG(1, 1)))), client.Settings{Name: "good", Holdout: 0.5, Questions: 10})
	if err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	flip(t, filepath.Join(dir, "holdouts", bad.ID, "holdout", "columns"), 100)
	file := filepath.Join(t.TempDir(), "b")
	out, errs, code := holdoutd(t, "backup", "--data", dir, "--to", file, "--recipient", key.recipient, "--with-keys")
	if code != 1 || !strings.Contains(errs, bad.ID+" was damaged before") || strings.Contains(errs, good.ID) {
		t.Errorf("backup: %d %s%s", code, out, errs)
	}
	done(t, "verify", "--backup", file, "--identity", key.identity)
	to := key.restore(t, file)
	done(t, "restore", "--data", to, "--nothing-lost", "--keep-keys")
	p = startServer(t, to)
	c = connect(t, p, to)
	if _, err := c.Ask(t.Context(), good.ID, map[string]any{"type": "mean", "of": "x", "range": []int{0, 1}}); err != nil {
		t.Error(err)
	}
	_, err = c.Ask(t.Context(), bad.ID, above(15))
	if r := refusal(t, "a damaged holdout after a restore", err); r.Code != "holdout-damaged" {
		t.Errorf("the refusal is %v", r)
	}
}

// flip changes a bit of a file.
func flip(t *testing.T, name string, at int) {
	t.Helper()
	contents, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	contents[at] ^= 1
	if err := os.WriteFile(name, contents, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBackupShared backs up a directory whose ledger is in PostgreSQL: the tables are restored beside that ledger, and not beside another one.
func TestBackupShared(t *testing.T) {
	key, r := newSafe(t), startReplicas(t, 1)
	id := r.create(t, r.clients[0], client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100})
	r.ask(t, r.clients[0], id, "15", above(15))
	file := key.backup(t, r.dir, "--ledger", r.address)
	r.ask(t, r.clients[0], id, "16", above(16))
	later, err := r.clients[0].CreateHoldout(t.Context(), bytes.NewReader(randomTable(t, rand.New(rand.NewPCG(1, 1)))), client.Settings{Name: "later", Holdout: 0.5, Questions: 10})
	if err != nil {
		t.Fatal(err)
	}
	r.all[0].stop(t)
	done(t, "verify", "--backup", file, "--identity", key.identity)
	to := filepath.Join(t.TempDir(), "to")
	for said, more := range map[string][]string{
		"give its address":            {},
		"nothing is restored: ledger": {"--ledger", pgtest.Shared(t).New(t).Address()},
	} {
		if _, errs, code := holdoutd(t, append([]string{"restore", "--from", file, "--identity", key.identity, "--data", to}, more...)...); code != 1 || !strings.Contains(errs, said) {
			t.Errorf("restored with %v: %d %s", more, code, errs)
		}
		nothingThere(t, filepath.Dir(to))
	}
	to = filepath.Join(t.TempDir(), "restored")
	if out, _ := done(t, "restore", "--from", file, "--identity", key.identity, "--data", to, "--ledger", r.address); !strings.Contains(out, "tables not in the backup") || !strings.Contains(out, "--end-keys") {
		t.Errorf("of a holdout that was made after the backup, and of keys, it says\n%s", out)
	}
	if _, errs, code := holdoutd(t, "restore", "--data", to, "--nothing-lost"); code != 1 || !strings.Contains(errs, "--end-keys: all keys") {
		t.Errorf("nobody has said what becomes of the keys of all servers: %d %s", code, errs)
	}
	done(t, "restore", "--data", to, "--nothing-lost", "--keep-keys")
	p := startServer(t, to, "--ledger", r.address)
	c := connect(t, p, to)
	for name, answer := range r.received {
		minutes, _ := strconv.Atoi(strings.TrimPrefix(name, id))
		if reply, err := c.Ask(t.Context(), id, above(minutes)); err != nil || !reply.Replayed || !bytes.Equal(reply.Answer.Raw, answer) {
			t.Errorf("question %s: %v", name, err)
		}
	}
	if _, err := c.Ask(t.Context(), id, above(17)); err != nil {
		t.Error(err)
	}
	_, err = c.Ask(t.Context(), later.ID, map[string]any{"type": "mean", "of": "x", "range": []int{0, 1}})
	if r := refusal(t, "a holdout whose tables came after the backup", err); r.Code != "holdout-damaged" {
		t.Errorf("the refusal is %v", r)
	}
}
