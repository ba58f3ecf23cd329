package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// faulty is a source whose answers a test decides about.
type faulty struct {
	sources.Source
	down    atomic.Pointer[sources.Error] // Ready, and all else
	sums    atomic.Pointer[sources.Error] // sums of rows
	price   atomic.Pointer[sources.Error]
	summed  atomic.Int64 // statements
	shuffle atomic.Bool  // rows of a unit come in another order each time
	hangs   atomic.Bool  // sums do not come to an end by themselves
	dropped atomic.Bool  // Drop fails
	divided func() error // at the end of Divide
	checked atomic.Int64
}

func (f *faulty) RowsHavePlaces() bool { return true }

func (f *faulty) Ready(ctx context.Context) error {
	if e := f.down.Load(); e != nil {
		return e
	}
	return f.Source.Ready(ctx)
}

func (f *faulty) Drop(ctx context.Context, name string) error {
	if f.dropped.Load() {
		return &sources.Error{Kind: sources.Unavailable, Detail: "away"}
	}
	return f.Source.Drop(ctx, name)
}

func (f *faulty) Divide(ctx context.Context, of sources.Snapshot, by sources.Keys, parts []sources.PartSpec, place func(sources.Units, []sources.Place) error, done func(int64)) ([]sources.PartInfo, error) {
	infos, err := f.Source.Divide(ctx, of, by, parts, place, done)
	if err == nil && f.divided != nil {
		err = f.divided()
	}
	return infos, err
}

func (f *faulty) Open(ctx context.Context, of sources.PartInfo, most int64) (sources.Part, error) {
	if e := f.down.Load(); e != nil {
		return nil, e
	}
	p, err := f.Source.Open(ctx, of, most)
	if err != nil {
		return nil, err
	}
	return &faultyPart{p, f}, nil
}

type faultyPart struct {
	sources.Part
	source *faulty
}

func (p *faultyPart) Moments(ctx context.Context, b rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	p.source.summed.Add(1)
	if p.source.hangs.Load() {
		select {
		case <-ctx.Done():
			return rowfn.Sums{}, ctx.Err()
		case <-time.After(20 * time.Second): // nobody ends it: then it answers, which the test notices
		}
	}
	if e := p.source.sums.Load(); e != nil {
		return rowfn.Sums{}, e
	}
	return p.Part.Moments(ctx, b, from, to)
}

func (p *faultyPart) Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	if !p.source.shuffle.Load() {
		return p.Part.Read(ctx, columns, from, to, yield)
	}
	return p.Part.Read(ctx, columns, from, to, func(b sources.Block) error {
		order := rand.Perm(b.Rows.Rows())
		for u := range len(b.Offsets) - 1 {
			for i := b.Offsets[u]; i < b.Offsets[u+1]; i++ {
				order[i] = int(i)
			}
			rows := order[b.Offsets[u]:b.Offsets[u+1]]
			rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		}
		places := make([]uint32, len(order))
		for i, row := range order {
			places[i] = uint32(row)
		}
		all := make([]dataset.Column, b.Rows.Columns())
		for i := range all {
			all[i] = pick(*b.Rows.Column(i), places)
		}
		var err error
		if b.Rows, err = dataset.FromColumns(all...); err != nil {
			return err
		}
		return yield(b)
	})
}

func (p *faultyPart) Check(ctx context.Context) error {
	p.source.checked.Add(1)
	if e := p.source.sums.Load(); e != nil {
		return e
	}
	return p.Part.Check(ctx)
}

func (p *faultyPart) Price(b rowfn.Batch) (sources.Price, error) {
	if e := p.source.price.Load(); e != nil {
		return sources.Price{}, e
	}
	return p.Part.Price(b)
}

// faultyLake is a source of visits that a test decides about.
func faultyLake(t testing.TB, rows int, seed uint64) *faulty {
	t.Helper()
	return &faulty{Source: lake(t, t.TempDir(), map[string]*dataset.Table{"v": visits(t, rows, seed)})}
}

func spentQuestions(t testing.TB, s *Service, id string) int64 {
	t.Helper()
	b, err := s.Budget(t.Context(), admin, id)
	if err != nil {
		t.Fatal(err)
	}
	return b.Questions.Of - b.Questions.Left
}

// TestSourceAway: a source that does not answer, or that finds a question too dear, is a refusal before anything is read or debited; what was answered replays. One that fails after the
// first statement was sent costs the question. It would notice a question that is debited though nothing was sent, and one that is not though rows were read.
func TestSourceAway(t *testing.T) {
	source := faultyLake(t, 1000, 11)
	s := open(t, t.TempDir(), withSource(source))
	card := registerTable(t, s, Settings{Questions: 50}, "v")
	first := ask(t, s, card.ID, mean(0))
	refused := func(what string, kind Kind, spent int64, sent bool) {
		t.Helper()
		before := source.summed.Load()
		_, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(1)), "")
		if KindOf(err) != kind {
			t.Errorf("%s: %v, want kind %d", what, err, kind)
		}
		if got := spentQuestions(t, s, card.ID); got != spent {
			t.Errorf("%s: %d questions are spent, want %d", what, got, spent)
		}
		if got := source.summed.Load() > before; got != sent {
			t.Errorf("%s: statements were sent: %v", what, got)
		}
		if err != nil && strings.Contains(err.Error(), "secret") && !strings.Contains(err.Error(), ": secret") {
			t.Errorf("%s: the source's own words are in the reply: %v", what, err)
		}
		var e *Error
		if errors.As(err, &e) && strings.Contains(e.Detail, "secret") {
			t.Errorf("%s: the source's own words are in the reply: %v", what, e.Detail)
		}
	}
	s.sources["lake"].asked = time.Time{}
	source.down.Store(&sources.Error{Kind: sources.Unavailable, Detail: "the lake does not answer", Err: errors.New("secret")})
	refused("away at admission", SourceUnavailable, 1, false)
	if again := ask(t, s, card.ID, mean(0)); !again.Replayed || string(again.Body) != string(first.Body) {
		t.Errorf("while the source is away: %s", again.Body)
	}
	if all, err := s.Sources(t.Context(), admin); err != nil || len(all) != 1 || all[0].Ready || all[0].Problem != "the lake does not answer" {
		t.Errorf("sources: %+v, %v", all, err)
	}
	source.down.Store(nil)
	s.sources["lake"].asked = time.Time{}
	source.price.Store(&sources.Error{Kind: sources.Dear, Detail: "that is dear; ask for less"})
	refused("too dear", SourceTooDear, 1, false)
	source.price.Store(nil)
	source.sums.Store(&sources.Error{Kind: sources.Unavailable, Detail: "the lake does not answer", Err: errors.New("secret")})
	refused("away at the scan", Internal, 2, true)
	source.sums.Store(nil)
	ask(t, s, card.ID, mean(1))
}

// TestChangedRows: rows that are not those that were registered take the holdout out of service, with a state of its own; they are compared whole before it answers again. It would notice a
// sum of changed rows that is answered, and a holdout that answers again because its parts could be opened.
func TestChangedRows(t *testing.T) {
	source := faultyLake(t, 1000, 12)
	s := open(t, t.TempDir(), withSource(source))
	card := registerTable(t, s, Settings{Questions: 50}, "v")
	ask(t, s, card.ID, mean(0))
	source.sums.Store(&sources.Error{Kind: sources.Changed, Detail: "rows are missing"})
	if _, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(1)), ""); KindOf(err) != Damaged {
		t.Errorf("of changed rows: %v", err)
	}
	state := func(want string) {
		t.Helper()
		if now, err := s.Card(t.Context(), analyst, card.ID); err != nil || now.State != want {
			t.Errorf("state %q, %v, want %q", now.State, err, want)
		}
	}
	state(StateChanged)
	spent := spentQuestions(t, s, card.ID)
	if _, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(2)), ""); KindOf(err) != Damaged {
		t.Errorf("after that: %v", err)
	}
	if source.checked.Load() != 0 {
		t.Error("the rows were compared again at once")
	}
	if got := spentQuestions(t, s, card.ID); got != spent {
		t.Errorf("a question that was not read is debited: %d, before %d", got, spent)
	}
	if a := ask(t, s, card.ID, mean(0)); !a.Replayed {
		t.Error("an answer is not replayed")
	}
	look := func() {
		s.quarantine.mu.Lock()
		defer s.quarantine.mu.Unlock()
		r := s.quarantine.reasons[card.ID]
		r.looked = r.looked.Add(-2 * checkEvery)
		s.quarantine.reasons[card.ID] = r
	}
	look()
	if _, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(3)), ""); KindOf(err) != Damaged || source.checked.Load() == 0 {
		t.Errorf("a minute later: %v, compared %d times", err, source.checked.Load())
	}
	state(StateChanged)
	source.sums.Store(nil)
	look()
	ask(t, s, card.ID, mean(4))
	state("")
}

// TestUnregistered: whatever fails while a table is registered, and whoever cancels it, nothing is left at the source or here; and a part that cannot be dropped at once is dropped later.
func TestUnregistered(t *testing.T) {
	source := faultyLake(t, 400, 13)
	s := open(t, t.TempDir(), withSource(source))
	run := func() Registration {
		t.Helper()
		r, _, err := s.Register(t.Context(), admin, Settings{Mechanism: "gaussian", Questions: 20}, "lake", "v", "")
		if err != nil {
			t.Fatal(err)
		}
		return awaited(t, s, r.ID)
	}
	source.divided = func() error { return errors.New("secret") }
	if r := run(); r.Stage != RegistrationFailed || r.Problem == nil || strings.Contains(r.Problem.Detail, "secret") {
		t.Errorf("%+v", r)
	}
	nothingLeft(t, s, source)
	source.divided = func() error {
		all, err := s.Registrations(t.Context(), admin)
		if err != nil {
			t.Error(err)
		}
		go s.CancelRegistration(context.Background(), admin, all[0].ID)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if r := s.registrations.find(all[0].ID); func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.cancelled }() {
				return context.Canceled
			}
		}
		return errors.New("not cancelled")
	}
	if r := run(); r.Stage != RegistrationCancelled {
		t.Errorf("%+v: %v", r, r.Problem)
	}
	nothingLeft(t, s, source)
	source.dropped.Store(true)
	source.divided = func() error { return errors.New("secret") }
	run()
	if parts, err := source.Parts(t.Context()); err != nil || len(parts) == 0 {
		t.Fatalf("parts %v, %v", parts, err)
	}
	source.dropped.Store(false)
	s.dropAllNoted(t.Context())
	nothingLeft(t, s, source)
}

// TestRegisteredOnce: the same request with its Idempotency-Key is the same registration, also after the server was started again; another is refused; and a table that has a holdout is
// refused with its id, under whatever name it comes.
func TestRegisteredOnce(t *testing.T) {
	dir, at, table := t.TempDir(), t.TempDir(), visits(t, 400, 14)
	tables := map[string]*dataset.Table{"v": table, "copy": table}
	s := open(t, dir, withSource(lake(t, at, tables)))
	set := Settings{Mechanism: "gaussian", Questions: 20}
	r, replayed, err := s.Register(t.Context(), admin, set, "lake", "v", "once")
	if err != nil || replayed {
		t.Fatal(r, replayed, err)
	}
	if again, replayed, err := s.Register(t.Context(), admin, set, "lake", "v", "once"); err != nil || !replayed || again.ID != r.ID {
		t.Errorf("again: %+v, %v, %v", again, replayed, err)
	}
	r = awaited(t, s, r.ID)
	if _, _, err := s.Register(t.Context(), admin, set, "lake", "copy", "once"); KindOf(err) != IdempotencyMismatch {
		t.Errorf("another table with the key: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, withSource(lake(t, at, tables)))
	if again, replayed, err := s.Register(t.Context(), admin, set, "lake", "v", "once"); err != nil || !replayed || again.Holdout != r.Holdout || again.Stage != RegistrationDone || again.ID != r.ID {
		t.Errorf("after a start: %+v, %v, %v", again, replayed, err)
	}
	if now, err := s.Registration(t.Context(), admin, r.ID); err != nil || now.Holdout != r.Holdout {
		t.Errorf("after a start: %+v, %v", now, err)
	}
	ask(t, s, r.Holdout, mean(0))
	again, _, err := s.Register(t.Context(), admin, set, "lake", "copy", "")
	if err != nil {
		t.Fatal(err)
	}
	if again = awaited(t, s, again.ID); again.Problem == nil || again.Problem.Kind != Exists || again.Problem.Members["holdout"] != r.Holdout {
		t.Errorf("the same table under another name: %+v, %v", again, again.Problem)
	}
}

// TestDeletedParts: deleting a holdout drops its parts at the source, also when that was away or the server stopped in between; those of other holdouts stay. Without the source a holdout is
// there, replays, and says what is missing.
func TestDeletedParts(t *testing.T) {
	dir, source := t.TempDir(), faultyLake(t, 400, 15)
	s := open(t, dir, withSource(source))
	card := registerTable(t, s, Settings{Questions: 20}, "v")
	first := ask(t, s, card.ID, mean(0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir) // without the source
	if a := ask(t, s, card.ID, mean(0)); !a.Replayed || string(a.Body) != string(first.Body) {
		t.Errorf("without its source: %s", a.Body)
	}
	if _, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(1)), ""); KindOf(err) != SourceUnavailable || !strings.Contains(err.Error(), "--source lake=URL") {
		t.Errorf("without its source: %v", err)
	}
	if err := s.Delete(t.Context(), admin, card.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if parts, err := source.Parts(t.Context()); err != nil || len(parts) == 0 {
		t.Fatalf("parts %v, %v", parts, err)
	}
	s = open(t, dir, withSource(source))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		parts, err := source.Parts(t.Context())
		notes, noted := os.ReadDir(s.path(notesDir))
		if err == nil && noted == nil && len(parts)+len(notes) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the source keeps %v, %v; notes %v, %v", parts, err, notes, noted)
		}
	}
}

// TestUnitsThatShareATag: units whose tags are alike are told apart by the rest of them, whatever the order in which a source gives them, so that strata have the sizes that the card says.
func TestUnitsThatShareATag(t *testing.T) {
	table := visits(t, 400, 16)
	s := open(t, t.TempDir(), withSource(lake(t, t.TempDir(), map[string]*dataset.Table{"v": table})))
	s.tagCut = 58 // tags of six bits for 400 rows
	card := registerTable(t, s, Settings{Mechanism: "naive", Holdout: 100, Questions: 100, Stratify: "clinic"}, "v")
	card = seen(t, s, card)
	if card.Units.Holdout != 100 || card.Units.Training != 300 {
		t.Errorf("%+v", card.Units)
	}
	for clinic, counts := range card.Strata {
		var a struct{ Value float64 }
		body := ask(t, s, card.ID, `{"type":"count","of":"clinic == '`+clinic+`'"}`).Body
		if clinic == "(null)" {
			continue
		}
		if err := json.Unmarshal(body, &a); err != nil || math.Round(a.Value) != float64(counts.Holdout) {
			t.Errorf("%s: %v of %d, %v", clinic, a.Value, counts.Holdout, err)
		}
	}
}

// TestRegisteredAgain: another version of a table, whose units are known by the same key, is recognised by its units, also when the first holdout was deleted: it is refused, or says so
// where the server's owner has allowed it. Tables that are known by the places of their rows, or by other columns, are not. It would notice a budget that begins anew with each version of a table.
func TestRegisteredAgain(t *testing.T) {
	dir, at := t.TempDir(), t.TempDir()
	tables := map[string]*dataset.Table{"v": visits(t, 1000, 17), "newer": visits(t, 1000, 18), "longer": visits(t, 1200, 19)}
	s := open(t, dir, withSource(lake(t, at, tables)))
	set := Settings{Unit: "patient", Questions: 20, Mechanism: "gaussian"}
	first := registerTable(t, s, set, "v")
	ask(t, s, first.ID, mean(0))
	try := func(table string, set Settings) Registration {
		t.Helper()
		r, _, err := s.Register(t.Context(), admin, set, "lake", table, "")
		if err != nil {
			t.Fatal(err)
		}
		return awaited(t, s, r.ID)
	}
	refused := func(r Registration) {
		t.Helper()
		if r.Problem == nil || r.Problem.Kind != Exists || r.Problem.Members["reason"] != reasonReused || r.Problem.Members["holdout"] != first.ID {
			t.Errorf("%+v: %v", r, r.Problem)
		}
	}
	refused(try("newer", set))
	refused(try("longer", set))
	if err := s.Delete(t.Context(), admin, first.ID); err != nil {
		t.Fatal(err)
	}
	refused(try("newer", set))
	if r := try("longer", Settings{Unit: "day(seen)", Questions: 20, Mechanism: "gaussian"}); r.Stage != RegistrationDone {
		t.Errorf("by another key: %+v: %v", r, r.Problem)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, withSource(lake(t, at, tables)), func(o *Options) { o.ReusedRows = ReusedWarn })
	if r := try("newer", set); r.Stage != RegistrationDone {
		t.Errorf("where it is allowed: %+v: %v", r, r.Problem)
	} else if card, err := s.Card(t.Context(), admin, r.Holdout); err != nil || len(card.Reused) == 0 || card.Reused[0].Holdout != first.ID {
		t.Errorf("the card says %+v, %v", card.Reused, err)
	}
}

// TestNumbersAreSecret: the numbers of a part's units are in no order of the table: a slice of them is a random sample, which the mechanism split needs, and nobody who has the table can tell
// which question reads a row. It would notice numbers by place; a random order of 300 units passes for one in order with a probability below 1e-9.
func TestNumbersAreSecret(t *testing.T) {
	table := visits(t, 1000, 20)
	s := open(t, t.TempDir(), withSource(lake(t, t.TempDir(), map[string]*dataset.Table{"v": table})))
	card := registerTable(t, s, Settings{Holdout: 300, Questions: 20}, "v")
	h, release, err := s.tables.take(t.Context(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	x, _ := table.Lookup("x")
	place := map[float64]int{}
	for row, v := range x.Numbers {
		place[v] = row
	}
	for _, p := range []part{h.training, h.held} {
		rows, _, err := p.(*sourcedPart).read(t.Context(), 0, p.Units())
		if err != nil {
			t.Fatal(err)
		}
		c, _ := rows.Lookup("x")
		rising := 0
		for i := 1; i < c.Len(); i++ {
			if place[c.Numbers[i]] > place[c.Numbers[i-1]] {
				rising++
			}
		}
		if n := c.Len(); rising < n/3 || rising > 2*n/3 {
			t.Errorf("%d of %d units come after the one before them in the table", rising, n)
		}
	}
}

// TestVerifyRegistered: a data directory with a holdout of a source is in order by what the server keeps of the parts, and verify says that the rows were not looked at; a part's file that was
// changed is found.
func TestVerifyRegistered(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, withSource(lake(t, t.TempDir(), map[string]*dataset.Table{"v": visits(t, 400, 21)})))
	card := registerTable(t, s, Settings{Questions: 20}, "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := Verify(t.Context(), dir, true)
	if err != nil || len(all) != 1 || !strings.Contains(all[0].Tables, "source lake, which was not asked") {
		t.Errorf("%+v, %v", all, err)
	}
	name := s.holdoutPath(card.ID, holdoutDir+partSuffix)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), `"rows": `, `"rows": 1`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), dir, true); err == nil || !strings.Contains(err.Error(), "fingerprint") {
		t.Errorf("a changed file: %v", err)
	}
}

// TestNotesOfTheDead: what a server leaves of a note that it was writing when it was killed is gone when it starts again, and a note of parts that nobody knows is worked off.
func TestNotesOfTheDead(t *testing.T) {
	dir, source := t.TempDir(), faultyLake(t, 10, 22)
	for name, text := range map[string]string{noteDraft + "17": `{"version":1,"so`, "ho_of_nobody": `{"version":1,"source":"lake","parts":["hoofnobody_training","hoofnobody_holdout"]}`} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, notesDir), 0o700), os.WriteFile(filepath.Join(dir, notesDir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir, withSource(source))
	s.dropAllNoted(t.Context())
	nothingLeft(t, s, source)
}

// TestSourceThatHangs: a source that does not come to an end with its sums is given up in the end, and the question is a void. It would notice a reservation that stays for ever.
func TestSourceThatHangs(t *testing.T) {
	source := faultyLake(t, 400, 23)
	s := open(t, t.TempDir(), withSource(source))
	card := registerTable(t, s, Settings{Questions: 2}, "v")
	defer func(d time.Duration) { sumsWithin = d }(sumsWithin)
	sumsWithin = 10 * time.Millisecond
	source.hangs.Store(true)
	var e *Error
	if _, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(0)), ""); !errors.As(err, &e) || e.Members["void"] != true {
		t.Errorf("of a source that hangs: %v", err)
	}
	source.hangs.Store(false)
	sumsWithin = time.Hour
	ask(t, s, card.ID, mean(1))
	if spent := spentQuestions(t, s, card.ID); spent != 2 {
		t.Errorf("%d questions are spent, want 2", spent)
	}
}

// TestPieceIsTheSameBytes: a piece of a training part is the same file whenever it is asked for, although its source gives the rows of a unit in another order each time: a download that was cut off goes on in the
// middle of it. It would notice rows in the order in which they came, and an order of texts by where they came first.
func TestPieceIsTheSameBytes(t *testing.T) {
	words, patients := make([]string, 1000), make([]float64, 1000)
	for i := range words {
		words[i], patients[i] = fmt.Sprint("word ", i*7919%31), float64(i/10)
	}
	table, err := dataset.FromColumns(dataset.NewText("word", words, nil), dataset.Column{Field: dataset.Field{Name: "patient", Kind: dataset.Number}, Numbers: patients})
	must(t, err)
	source := &faulty{Source: lake(t, t.TempDir(), map[string]*dataset.Table{"v": table})}
	s := open(t, t.TempDir(), withSource(source))
	card := registerTable(t, s, Settings{Questions: 2, Unit: "patient"}, "v")
	source.shuffle.Store(true)
	var first []byte
	for range 4 {
		f, pieces, err := s.TrainingPiece(t.Context(), analyst, card.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil || pieces != 1 {
			t.Fatal(pieces, err)
		}
		if first == nil {
			first = text
		}
		if !bytes.Equal(text, first) {
			t.Fatalf("another time it is another file, of %d bytes and of %d", len(first), len(text))
		}
	}
}

// TestVerifyRows: where a source is named, all rows are compared there; one that is away, that is another, or whose rows are not those that were registered, is said.
func TestVerifyRows(t *testing.T) {
	dir, source := t.TempDir(), faultyLake(t, 400, 25)
	s := open(t, dir, withSource(source))
	registerTable(t, s, Settings{Questions: 20}, "v")
	must(t, s.Close())
	verify := func(name, says string) {
		t.Helper()
		all, err := VerifyRows(t.Context(), dir, map[string]sources.Source{name: source})
		if err == nil {
			err = errors.New(all[0].Tables)
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("verified: %v, want %q", err, says)
		}
	}
	verify("lake", "the source lake has compared all rows")
	if n := source.checked.Load(); n != 2 {
		t.Errorf("%d parts were compared, want 2", n)
	}
	verify("other", "which was not named")
	source.sums.Store(&sources.Error{Kind: sources.Changed, Detail: "a row is another"})
	verify("lake", "is not what was registered")
	source.sums.Store(nil)
	source.down.Store(&sources.Error{Kind: sources.Unavailable, Detail: "away"})
	verify("lake", "its rows were not compared: the source lake does not give the part")
}
