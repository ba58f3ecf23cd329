package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"go.uber.org/goleak"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/thresholdout"
)

const decodeParquet = "decode-parquet"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == decodeParquet {
		os.Exit(ingest.ChildMain())
	}
	goleak.VerifyTestMain(m)
}

var (
	admin   = holdout.Principal{KeyID: "key_admin", Name: "admin", Scope: holdout.Admin}
	analyst = holdout.Principal{KeyID: "key_ana", Name: "ana", Scope: holdout.Analyst}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve opens a service on dir.
func serve(t testing.TB, dir string, change ...func(*holdout.Options)) *holdout.Service {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	o := holdout.Options{Dir: dir, Decoder: []string{self, decodeParquet}, Version: "test"}
	for _, f := range change {
		f(&o)
	}
	s, err := holdout.Open(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// create makes a holdout of a random table.
func create(t testing.TB, s *holdout.Service, seed uint64, set holdout.Settings) string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	x := dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}}
	var texts []string
	for range 400 {
		x.Numbers = append(x.Numbers, r.Float64())
		texts = append(texts, fmt.Sprintf("city %d", r.IntN(5)))
	}
	table, err := dataset.FromColumns(x, dataset.NewText("city", texts, func(int) bool { return false }))
	must(t, err)
	var file bytes.Buffer
	must(t, ingest.Export(&file, table))
	if set.Mechanism == "" {
		set.Mechanism = "gaussian"
	}
	if set.Questions == 0 {
		set.Questions = 200
	}
	set.Name = fmt.Sprintf("table %d", seed)
	card, _, err := s.Create(t.Context(), admin, set, holdout.SingleUpload(&file), "")
	must(t, err)
	return card.ID
}

func question(i int) []byte {
	return []byte(fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d]}`, i+1))
}

// ask asks the i-th question.
func ask(t testing.TB, s *holdout.Service, id string, i int) []byte {
	t.Helper()
	a, err := s.Ask(t.Context(), analyst, id, question(i), "")
	must(t, err)
	return a.Body
}

// keys are those of a backup that a test opens.
func keys(t testing.TB) ([]age.Recipient, []age.Identity) {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	must(t, err)
	return []age.Recipient{i.Recipient()}, []age.Identity{i}
}

// backedUp is a backup of a directory.
func backedUp(t testing.TB, from Source) ([]byte, Manifest) {
	t.Helper()
	from.Spool = t.TempDir()
	var out bytes.Buffer
	m, err := Create(t.Context(), &out, from)
	must(t, err)
	if left, err := os.ReadDir(from.Spool); err != nil || len(left) > 0 {
		t.Errorf("the backup left %v (%v)", left, err)
	}
	return out.Bytes(), m
}

// sample is a data directory with holdouts of which one was deleted, the answers that were given, and a backup with its keys.
type sample struct {
	dir      string
	ids      []string
	answers  [][]byte // to questions 0 to 4 of the first
	backup   []byte
	manifest Manifest
	opens    []age.Identity
}

func newSample(t testing.TB) *sample { return newSampleOf(t, func(*holdout.Options) {}) }

// large has all uploads divided piece by piece.
func large(o *holdout.Options) { o.Limits.AtOnce = 1 }

func newSampleOf(t testing.TB, change func(*holdout.Options)) *sample {
	t.Helper()
	x := &sample{dir: filepath.Join(t.TempDir(), "data")}
	s := serve(t, x.dir, change)
	for seed := range uint64(3) {
		x.ids = append(x.ids, create(t, s, seed, holdout.Settings{}))
	}
	for i := range 5 {
		x.answers = append(x.answers, ask(t, s, x.ids[0], i))
		ask(t, s, x.ids[2], i)
	}
	must(t, s.Delete(t.Context(), admin, x.ids[2]))
	recipients, opens := keys(t)
	x.opens = opens
	x.backup, x.manifest = backedUp(t, Source{Dir: x.dir, Recipients: recipients, WithServerKey: true, Program: "test"}) // while it is served
	must(t, s.Close())
	return x
}

// restore restores the sample's backup into a new directory.
func (x *sample) restore(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	m, err := Restore(t.Context(), bytes.NewReader(x.backup), dir, Options{Identities: x.opens})
	must(t, err)
	if !reflect.DeepEqual(m, x.manifest) {
		t.Errorf("the manifest was read as %+v, not %+v", m, x.manifest)
	}
	return dir
}

// TestRestoredAnswersTheSame backs a directory up while it is served and restores it. It notices an answer that is not replayed byte for byte, a holdout that can be asked
// before somebody said what was asked since, rows of a deleted one that come back, and a key that does not come along.
func TestRestoredAnswersTheSame(t *testing.T) {
	for name, change := range sampled {
		t.Run(name, func(t *testing.T) { restoredAnswersTheSame(t, newSampleOf(t, change)) })
	}
}

// sampled are the two forms that tables of uploads have.
var sampled = map[string]func(*holdout.Options){"at once": func(*holdout.Options) {}, "piece by piece": large}

func restoredAnswersTheSame(t *testing.T, x *sample) {
	dir := x.restore(t)
	s := serve(t, dir)
	for i, want := range x.answers {
		a, err := s.Ask(t.Context(), analyst, x.ids[0], question(i), "")
		if err != nil || !a.Replayed || !bytes.Equal(a.Body, want) {
			t.Errorf("answer %d of the copy: %v, %s is not %s", i, err, a.Body, want)
		}
	}
	for _, id := range x.ids[:2] {
		if card, err := s.Card(t.Context(), analyst, id); err != nil || card.State != holdout.StateRestored {
			t.Errorf("%s has the state %q (%v)", id, card.State, err)
		}
		if _, err := s.Ask(t.Context(), analyst, id, question(77), ""); holdout.KindOf(err) != holdout.RolledBack || !strings.Contains(err.Error(), "confirm") {
			t.Errorf("%s was asked: %v", id, err)
		}
	}
	noRows(t, filepath.Join(dir, holdoutsDir, x.ids[2]))
	must(t, s.Close())

	// A server goes on where the owner says that nothing was asked since, and answers as the first one would have.
	original := serve(t, x.dir)
	want := ask(t, original, x.ids[0], 77)
	for _, id := range x.ids[:2] {
		_, err := holdout.Accept(t.Context(), dir, id, holdout.Acceptance{Nothing: true})
		must(t, err)
	}
	s = serve(t, dir)
	got, _, _ := bytes.Cut(ask(t, s, x.ids[0], 77), []byte(`,"ledger"`)) // the head binds the time
	if want, _, _ := bytes.Cut(want, []byte(`,"ledger"`)); !bytes.Equal(got, want) {
		t.Errorf("the copy answers %s, the original %s", got, want)
	}
	ask(t, s, x.ids[1], 1)
	must(t, s.Close())
	if _, err := holdout.Verify(t.Context(), dir, true); err != nil {
		t.Error(err)
	}
}

// TestNothingIsForgotten: whatever a data directory and a holdout's directory hold is in the backup, or is known here not to belong there. A file that the service writes from now on is to be
// added to one of the two.
func TestNothingIsForgotten(t *testing.T) {
	for name, change := range sampled {
		t.Run(name, func(t *testing.T) { nothingIsForgotten(t, newSampleOf(t, change)) })
	}
}

func nothingIsForgotten(t *testing.T, x *sample) {
	s := serve(t, x.dir)
	f, err := s.Training(t.Context(), analyst, x.ids[0])
	must(t, err)
	must(t, f.Close())
	notCopied := []string{"ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.lock", "tmp", "holdouts"} // the ledger is copied as rows
	entries, err := os.ReadDir(x.dir)
	must(t, err)
	for _, e := range entries {
		if rank(e.Name()) < 0 && !slices.Contains(notCopied, e.Name()) {
			t.Errorf("a backup does not know %s of the data directory", e.Name())
		}
	}
	must(t, filepath.WalkDir(filepath.Join(x.dir, holdoutsDir), func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(x.dir, path)
		in := slices.ContainsFunc(x.manifest.Files, func(f File) bool { return f.Path == filepath.ToSlash(name) })
		if err == nil && !e.IsDir() && !in && !holdout.Derived(e.Name()) {
			t.Errorf("%s is not in the backup", name)
		}
		return err
	}))
	if len(x.manifest.Files) < 8 {
		t.Errorf("files of the backup: %+v", x.manifest.Files)
	}
}

// noRows fails if a deleted holdout has come back with more than the prints by which its rows are known.
func noRows(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) > 1 || len(left) == 1 && left[0].Name() != "prints" {
		t.Errorf("the rows of a deleted holdout are back: %v %v", left, err)
	}
}

// TestBackupWhileAsked backs up again and again while questions are asked and holdouts are made and deleted. It notices a copy that is not of one moment: one that does not verify, or lacks tables
// of a holdout that its ledger has, or has lost an answer that was there before it began.
func TestBackupWhileAsked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := serve(t, dir)
	id := create(t, s, 1, holdout.Settings{Questions: 5000})
	recipients, opens := keys(t)
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	asked := make(chan int, 1)
	wait.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := s.Ask(ctx, analyst, id, question(i), ""); err != nil {
				return
			}
			select {
			case <-asked:
			default:
			}
			asked <- i
		}
	})
	wait.Go(func() {
		for seed := uint64(10); ctx.Err() == nil && seed < 40; seed++ {
			made := create(t, s, seed, holdout.Settings{})
			if seed%2 == 0 {
				if err := s.Delete(ctx, admin, made); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}
	})
	for range 4 {
		before := <-asked
		backup, m := backedUp(t, Source{Dir: dir, Recipients: recipients})
		again, err := Check(t.Context(), bytes.NewReader(backup), Options{Identities: opens})
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("the backup does not verify: %v", err)
		}
		for _, h := range m.Holdouts {
			if h.Without != "" {
				t.Errorf("%+v is without its tables", h)
			}
			if h.ID == id && h.Spent[thresholdout.MeterQuestions] < int64(before) {
				t.Errorf("%d questions in the backup, and %d were answered before it", h.Spent[thresholdout.MeterQuestions], before)
			}
		}
		restored := filepath.Join(t.TempDir(), "restored")
		_, err = Restore(t.Context(), bytes.NewReader(backup), restored, Options{Identities: opens, ServerKeyFile: filepath.Join(dir, serverKey)})
		must(t, err)
	}
}

// TestLedgerAlone: a backup without tables restores the ledger, and says that the tables are not in it. One without the keys has none.
func TestLedgerAlone(t *testing.T) {
	x := newSample(t)
	recipients, opens := keys(t)
	backup, m := backedUp(t, Source{Dir: x.dir, Recipients: recipients, NoTables: true})
	if len(m.Files) != 2 || m.Holdouts[0].Without != LeftOut || len(m.Incomplete()) != 0 || m.ServerKey {
		t.Errorf("the ledger alone: %+v", m)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	_, err := Restore(t.Context(), bytes.NewReader(backup), dir, Options{Identities: opens, ServerKeyFile: filepath.Join(x.dir, serverKey)})
	must(t, err)
	s := serve(t, dir)
	if a, err := s.Ask(t.Context(), analyst, x.ids[0], question(0), ""); err != nil || !bytes.Equal(a.Body, x.answers[0]) {
		t.Errorf("a recorded answer: %v", err)
	}
}

// TestDamagedHoldoutIsLeftOut: a backup of a directory of which one holdout is damaged has all others, and says so.
func TestDamagedHoldoutIsLeftOut(t *testing.T) {
	segments := map[string]func(dir string) error{
		"a segment's column": func(dir string) error {
			return flip(filepath.Join(dir, "holdout_segments", "segment0", "columns"), 5000)
		},
		"a segment that is gone": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "training_segments", "segment0")) },
		"segments exchanged": func(dir string) error {
			return exchange(filepath.Join(dir, "holdout_segments"), filepath.Join(dir, "training_segments"))
		},
		"a description": func(dir string) error { return os.Remove(filepath.Join(dir, "holdout.part")) },
	}
	for what, damage := range segments {
		t.Run(what, func(t *testing.T) { damagedIsLeftOut(t, newSampleOf(t, large), damage) })
	}
	for what, damage := range map[string]func(dir string) error{
		"a column":  func(dir string) error { return flip(filepath.Join(dir, "holdout", "columns"), 5000) },
		"exchanged": func(dir string) error { return exchange(filepath.Join(dir, "holdout"), filepath.Join(dir, "training")) },
		"a part":    func(dir string) error { return os.RemoveAll(filepath.Join(dir, "training")) },
	} {
		t.Run(what, func(t *testing.T) { damagedIsLeftOut(t, newSample(t), damage) })
	}
}

func damagedIsLeftOut(t *testing.T, x *sample, damage func(dir string) error) {
	must(t, damage(filepath.Join(x.dir, holdoutsDir, x.ids[0])))
	recipients, opens := keys(t)
	backup, m := backedUp(t, Source{Dir: x.dir, Recipients: recipients})
	if bad := m.Incomplete(); len(bad) != 1 || bad[0].ID != x.ids[0] || !strings.HasPrefix(bad[0].Without, "damaged") {
		t.Fatalf("incomplete: %+v", bad)
	}
	_, err := Restore(t.Context(), bytes.NewReader(backup), filepath.Join(t.TempDir(), "restored"), Options{Identities: opens})
	must(t, err)
}

func flip(path string, at int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text[min(at, len(text)-1)] ^= 1
	return os.WriteFile(path, text, 0o600)
}

func exchange(a, b string) error {
	return errors.Join(os.Rename(a, a+"x"), os.Rename(b, a), os.Rename(a+"x", b))
}

// refused restores and checks what is no good backup, and sees that nothing is left of it.
func refused(t *testing.T, what string, backup []byte, o Options, want error, says string) {
	t.Helper()
	parent := t.TempDir()
	for name, read := range map[string]func() error{
		"check": func() error {
			_, err := Check(t.Context(), bytes.NewReader(backup), o)
			return err
		},
		"restore": func() error {
			_, err := Restore(t.Context(), bytes.NewReader(backup), filepath.Join(parent, "data"), o)
			return err
		},
	} {
		err := read()
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%s, %s: %v", name, what, err)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%s: %v are left (%v)", what, left, err)
	}
}

// TestDamagedBackup cuts, flips and exchanges. It notices a restore that takes a part of a backup, or a changed one, or that leaves something.
func TestDamagedBackup(t *testing.T) {
	x := newSample(t)
	o := Options{Identities: x.opens}
	for _, n := range []int{0, 10, 100, len(x.backup) / 3, len(x.backup) / 2, len(x.backup) - 20, len(x.backup) - 1} {
		refused(t, fmt.Sprintf("cut after %d of %d bytes", n, len(x.backup)), x.backup[:n], o, ErrDamaged, "")
	}
	refused(t, "something behind it", append(bytes.Clone(x.backup), 0), o, ErrDamaged, "")
	refused(t, "twice", append(bytes.Clone(x.backup), x.backup...), o, ErrDamaged, "")
	for i := range 12 { // each layer of encryption refuses it
		flipped := bytes.Clone(x.backup)
		flipped[i*(len(flipped)-1)/11] ^= 1 << (i % 8)
		refused(t, fmt.Sprintf("a bit at %d", i*(len(flipped)-1)/11), flipped, o, nil, "backup")
	}
	_, other := keys(t)
	refused(t, "another key", x.backup, Options{Identities: other}, nil, "another passphrase or another key")
}

// TestRestoreNeverOverwrites: neither a directory in use nor one with anything else in it; an empty one is taken.
func TestRestoreNeverOverwrites(t *testing.T) {
	x := newSample(t)
	o := Options{Identities: x.opens}
	for _, dir := range []string{x.dir, t.TempDir()} {
		must(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("mine"), 0o600))
		if _, err := Restore(t.Context(), bytes.NewReader(x.backup), dir, o); err == nil || !strings.Contains(err.Error(), "never over one that is in use") {
			t.Errorf("restored over %s: %v", dir, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	must(t, os.Mkdir(empty, 0o700))
	_, err := Restore(t.Context(), bytes.NewReader(x.backup), empty, o)
	must(t, err)
	serve(t, empty)
}

// TestInterrupted ends a backup and a restore at many moments by their context, as Ctrl-C does. Nothing is left.
func TestInterrupted(t *testing.T) {
	x := newSample(t)
	recipients, _ := keys(t)
	reason := errors.New("interrupted")
	for n := 0; n < len(x.backup); n += 1 + len(x.backup)/9 {
		ctx, cancel := context.WithCancelCause(t.Context())
		parent := t.TempDir()
		_, err := Restore(ctx, &cancelling{bytes.NewReader(x.backup), n, func() { cancel(reason) }}, filepath.Join(parent, "data"), Options{Identities: x.opens})
		if left, dirErr := os.ReadDir(parent); err == nil && n < len(x.backup)/2 || dirErr != nil || err != nil && len(left) > 0 {
			t.Errorf("restore interrupted after %d bytes: %v, %v left", n, err, left)
		}
		cancel(reason)
		ctx, cancel = context.WithCancelCause(t.Context())
		spool := t.TempDir()
		_, err = Create(ctx, &cancelling{nil, n, func() { cancel(reason) }}, Source{Dir: x.dir, Recipients: recipients, Spool: spool})
		if left, dirErr := os.ReadDir(spool); n == 0 && !errors.Is(err, reason) || dirErr != nil || len(left) > 0 {
			t.Errorf("backup interrupted after %d bytes: %v, %v left", n, err, left)
		}
		cancel(reason)
	}
}

// cancelling cancels after so many bytes.
type cancelling struct {
	of     any
	left   int
	cancel func()
}

func (c *cancelling) count(n int, err error) (int, error) {
	if c.left -= n; c.left < 0 {
		c.cancel()
	}
	return n, err
}

func (c *cancelling) Read(p []byte) (int, error) {
	return c.count(c.of.(io.Reader).Read(p[:min(len(p), 4096)]))
}

func (c *cancelling) Write(p []byte) (int, error) { return c.count(len(p), nil) }

// TestPassphrase backs up for a passphrase. It notices one that opens with another, or with a line end that the file has.
func TestPassphrase(t *testing.T) {
	x := newSample(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"right": "correct horse\n", "same": "correct horse\r\nmore", "wrong": "battery", "empty": "\nx"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	recipients, err := Recipients(nil, filepath.Join(dir, "right"))
	must(t, err)
	recipients[0].(*age.ScryptRecipient).SetWorkFactor(10) // the default takes a second
	backup, _ := backedUp(t, Source{Dir: x.dir, Recipients: recipients, NoTables: true})
	opens, err := Identities("", filepath.Join(dir, "same"))
	must(t, err)
	if _, err := Check(t.Context(), bytes.NewReader(backup), Options{Identities: opens}); err != nil {
		t.Error(err)
	}
	wrong, err := Identities("", filepath.Join(dir, "wrong"))
	must(t, err)
	refused(t, "a wrong passphrase", backup, Options{Identities: wrong}, nil, "another passphrase")
	for what, err := range map[string]error{
		"an empty one": second(Identities("", filepath.Join(dir, "empty"))), "neither": second(Identities("", "")), "both": second(Identities(dir, dir)),
		"no recipient": second(Recipients(nil, "")), "both recipients": second(Recipients([]string{"age1x"}, dir)), "no key": second(Recipients([]string{"ssh-rsa x"}, "")),
	} {
		if err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func second[T any](_ T, err error) error { return err }
