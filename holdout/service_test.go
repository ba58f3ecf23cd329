package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dataset/ingest/ingesttest"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/session"
)

func TestMain(m *testing.M) {
	ingesttest.Child()
	goleak.VerifyTestMain(m)
}

var (
	admin   = Principal{KeyID: "key_admin", Name: "admin", Scope: Admin}
	analyst = Principal{KeyID: "key_ana", Name: "ana", Scope: Analyst}
	rival   = Principal{KeyID: "key_bob", Name: "bob", Scope: Analyst}
)

// open opens a service on dir, which is closed with the test unless the test closes it.
func open(t testing.TB, dir string, change ...func(*Options)) *Service {
	t.Helper()
	stattest.Secrets(t)
	o := Options{Dir: dir, AnyFileSystem: true, Decoder: ingesttest.Decoder(t), Version: "test"}
	for _, f := range change {
		f(&o)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// visits is a table of n rows: chart (four rows each), x in [0,1) whose mean over many is 1/2, late (x < 0.2), clinic (5
// texts), seen (a time, the later the larger the row), with some nulls in score.
func visits(t testing.TB, n int, seed uint64) *dataset.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	number := func(name string, f func(i int) float64) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, n)}
		for i := range c.Numbers {
			c.Numbers[i] = f(i)
		}
		return c
	}
	x := number("x", func(int) float64 { return r.Float64() })
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	var clinics []string
	for i := range n {
		b := uint8(0)
		if x.Numbers[i] < 0.2 {
			b = 1
		}
		late.Bools = append(late.Bools, b)
		clinics = append(clinics, fmt.Sprintf("clinic %d", r.IntN(5)))
	}
	seen := number("seen", func(i int) float64 { return float64(i) * microsecondsPerDay / 50 })
	seen.Kind, seen.Source = dataset.Time, "TIMESTAMP"
	table, err := dataset.FromColumns(
		number("chart", func(i int) float64 { return float64(i / 4) }), x, late,
		dataset.NewText("clinic", clinics, func(int) bool { return false }), seen,
		number("score", func(i int) float64 {
			if i%10 == 3 {
				return math.NaN()
			}
			return math.Floor(r.Float64() * 100)
		}))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// parquet is a table as an uploaded file.
func parquet(t testing.TB, table *dataset.Table) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := ingest.Export(&b, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// create makes a holdout of visits that must come to be; gaussian unless the settings say otherwise, for whose answers tell most
// when noise, order or replay are wrong.
func create(t testing.TB, s *Service, set Settings, table *dataset.Table) Card {
	t.Helper()
	if set.Name == "" {
		set.Name = "visits"
	}
	if set.Mechanism == "" {
		set.Mechanism = "gaussian"
	}
	card, replayed, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), "")
	if err != nil || replayed {
		t.Fatalf("create: %v, replayed %v", err, replayed)
	}
	return card
}

// seen is the card of a holdout after a first look.
func seen(t testing.TB, s *Service, card Card) Card {
	t.Helper()
	_, release, err := s.tables.take(t.Context(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if card, err = s.Card(t.Context(), admin, card.ID); err != nil || card.Draft {
		t.Fatalf("after a look: a draft %v, %v", card.Draft, err)
	}
	return card
}

// ask asks a query that must be answered.
func ask(t *testing.T, s *Service, id, query string) Answer {
	t.Helper()
	a, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
	if err != nil {
		t.Fatalf("ask %s: %v", query, err)
	}
	return a
}

// answered is an answer as a client reads it.
type answered struct {
	ID, Holdout, Query, Mechanism, Source string

	ValueFrom session.ValueFrom `json:"value_from"`
	Warnings  []Warning

	Value    *float64
	Interval *struct {
		Low, High, Confidence float64
		Scope, Target, Bound  string
		Parts                 map[string]float64
	}
	Cost   Cost
	Ledger struct {
		Seq  int64
		Head string
	}
}

func read(t *testing.T, body json.RawMessage) (a answered) {
	t.Helper()
	if err := json.Unmarshal(body, &a); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return a
}

// mean is a query that differs from any other i.
func mean(i int) string {
	return fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d]}`, i+1)
}

// wantKind fails unless err is of a kind.
func wantKind(t *testing.T, what string, err error, want Kind) {
	t.Helper()
	if err == nil || KindOf(err) != want {
		t.Errorf("%s: %v (kind %d), want kind %d", what, err, KindOf(err), want)
	}
}

// files lists what is in a data directory below tmp and holdouts.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, sub := range []string{temporaryDir, holdoutsDir} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, sub+"/"+e.Name())
		}
	}
	return list
}

func TestUploadAskReplay(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	table := visits(t, 2000, 1)
	card := create(t, s, Settings{Name: "visits", Holdout: 0.3, Label: "late", Questions: 20}, table)
	if card.Rows != (Counts{Training: 1000, Check: 400, Holdout: 600}) || card.Units != card.Rows || card.Unit != "row" || card.Budget.Questions != (Meter{Left: 20, Of: 20}) || *card.Budget.Tokens != (Meter{Left: 2, Of: 2}) {
		t.Fatalf("card: %+v", card)
	}
	if left := files(t, dir); len(left) != 1 || left[0] != "holdouts/"+card.ID {
		t.Errorf("files: %v", left)
	}
	card = seen(t, s, card)
	if c := card.Columns[1]; c.Name != "x" || c.Kind != dataset.Number || *c.Min < 0 || *c.Max >= 1 || *c.Nulls != 0 {
		t.Errorf("card of x: %+v", c)
	}
	if c := card.Columns[3]; c.Distinct != 5 || len(c.Values) != 5 || *card.Columns[5].Nulls == 0 || card.Columns[4].Latest == nil {
		t.Errorf("cards: %+v", card.Columns)
	}

	first := ask(t, s, card.ID, `{"type":"mean","of":"x","range":[0,1]}`)
	a := read(t, first.Body)
	if first.Replayed || first.Budget.Questions.Left != 19 || a.Cost != (Cost{Questions: 1, Tokens: 0}) || a.Holdout != card.ID || a.Ledger.Seq != 1 ||
		a.Mechanism != "gaussian" || a.Source != "holdout" || !strings.HasPrefix(a.ID, "ans_") {
		t.Errorf("first answer: %s, %+v", first.Body, first.Budget)
	}
	if a.Interval == nil || a.Interval.Confidence != 0.95 || a.Interval.Scope != "all 20 questions" || !(a.Interval.Low <= *a.Value && *a.Value <= a.Interval.High) {
		t.Errorf("interval: %s", first.Body)
	}
	// A true mean of 1/2 is missed with probability 0.05 at most; the noise's key is random, the rows are fixed.
	if a.Interval != nil && (a.Interval.Low > 0.6 || a.Interval.High < 0.4) {
		t.Errorf("interval far from 1/2: %s", first.Body)
	}
	again, err := s.Ask(t.Context(), rival, card.ID, []byte(` {"range":[0.0, 1e0], "of":"(x)", "type":"mean"}`), "")
	if err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) || again.Budget.Questions.Left != 19 {
		t.Errorf("another spelling: %v, %+v", err, again)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if got := ask(t, s, card.ID, `{"type":"mean","of":"x","range":[0,1]}`); !got.Replayed || !bytes.Equal(got.Body, first.Body) {
		t.Errorf("after a restart: %s\nbefore: %s", got.Body, first.Body)
	}
	if got, err := s.Card(t.Context(), analyst, card.ID); err != nil || got.Budget.Questions.Left != 19 || got.ID != card.ID {
		t.Errorf("card after a restart: %v, %+v", err, got)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAnswerShape is the reply of the documentation, member for member and in order.
func TestAnswerShape(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 10}, visits(t, 1000, 1))
	body := ask(t, s, card.ID, `{"type":"mean","of":"score","range":[0,100]}`).Body
	var names []string
	d := json.NewDecoder(bytes.NewReader(body))
	for depth := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if depth == 1 && slices.Contains([]string{"id", "holdout", "query", "value", "interval", "mechanism", "source", "cost", "ledger", "row_functions"}, v) && v != "holdout" {
				names = append(names, v)
			}
		}
	}
	if want := "id query value interval mechanism source cost ledger"; strings.Join(names, " ") != want {
		t.Errorf("members %v, want %s: %s", names, want, body)
	}
	a := read(t, body)
	parts := 0.0
	for _, v := range a.Interval.Parts {
		parts += v
	}
	// Where nothing is clipped the parts make the half-width, in the query's own units.
	if half := (a.Interval.High - a.Interval.Low) / 2; math.Abs(parts-half) > 1e-6*half && a.Interval.Low > 0 && a.Interval.High < 100 {
		t.Errorf("parts make %v, half-width %v: %s", parts, half, body)
	}
	ratio := read(t, ask(t, s, card.ID, `{"type":"mean","of":"x","range":[0,1],"where":"late"}`).Body)
	if ratio.Cost.Questions != 2 || ratio.Value == nil {
		t.Errorf("a conditional mean: %+v", ratio)
	}
}

func TestExistsWhateverTheOrder(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 500, 1)
	card := seen(t, s, create(t, s, Settings{}, table))
	shuffled := make([]uint32, table.Rows())
	for i, v := range rand.New(rand.NewPCG(1, 1)).Perm(table.Rows()) {
		shuffled[i] = uint32(v)
	}
	dir := filepath.Join(t.TempDir(), "shuffled")
	if err := dataset.Select(dir, table, shuffled, nil); err != nil {
		t.Fatal(err)
	}
	other, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	upload := func() error {
		_, _, err := s.Create(t.Context(), admin, Settings{Holdout: 0.5}, SingleUpload(bytes.NewReader(parquet(t, other))), "")
		return err
	}
	check := func(when string, err error) {
		t.Helper()
		wantKind(t, when, err, Exists)
		var e *Error
		if errors.As(err, &e) && e.Members["holdout"] != card.ID {
			t.Errorf("%s: members %v, want %s", when, e.Members, card.ID)
		}
	}
	check("shuffled", upload())
	if err := s.Delete(t.Context(), admin, card.ID); err != nil {
		t.Fatal(err)
	}
	check("after deletion", upload())
	if left := files(t, s.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := s.Card(t.Context(), admin, card.ID); KindOf(err) != NotFound {
		t.Errorf("card of a deleted holdout: %v", err)
	}
	if cards, err := s.List(t.Context(), admin); err != nil || len(cards) != 0 {
		t.Errorf("list: %v, %v", cards, err)
	}
	if err := s.Export(t.Context(), admin, card.ID, io.Discard); err != nil {
		t.Errorf("export of a deleted holdout: %v", err)
	}
}

// TestConcurrentUploads: of identical uploads at the same time one comes to be.
func TestConcurrentUploads(t *testing.T) {
	s := open(t, t.TempDir())
	body := parquet(t, visits(t, 300, 1))
	results := make(chan error)
	for range 4 {
		go func() {
			_, _, err := s.Create(context.Background(), admin, Settings{}, SingleUpload(bytes.NewReader(body)), "")
			results <- err
		}()
	}
	made := 0
	for range 4 {
		if err := <-results; err == nil {
			made++
		} else {
			wantKind(t, "the others", err, Exists)
		}
	}
	if left := files(t, s.dir); made != 1 || len(left) != 1 {
		t.Errorf("%d made, files %v", made, left)
	}
}

// brokenReader fails after some bytes, as a connection that is cut.
type brokenReader struct{ r io.Reader }

func (b brokenReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestBadUploads: whatever is wrong, the kind says so and nothing stays on the disk.
func TestBadUploads(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.UploadBytes = 1 << 20 })
	good := parquet(t, visits(t, 200, 1))
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 0xff
	one := func(b []byte) Upload { return SingleUpload(bytes.NewReader(b)) }
	two := func(names ...string) Upload {
		i := -1
		return func() (string, io.Reader, error) {
			if i++; i == len(names) {
				return "", nil, io.EOF
			}
			return names[i], bytes.NewReader(good), nil
		}
	}
	for _, c := range []struct {
		name string
		set  Settings
		up   Upload
		want []Kind
	}{
		{"no part", Settings{}, two(), []Kind{BadUpload}},
		{"empty", Settings{}, one(nil), []Kind{BadUpload}},
		{"not Parquet", Settings{}, one([]byte("a,b\n1,2\n")), []Kind{BadUpload}},
		{"truncated", Settings{}, one(good[:len(good)-20]), []Kind{BadUpload}},
		{"cut connection", Settings{}, SingleUpload(brokenReader{bytes.NewReader(good[:len(good)/2])}), []Kind{Malformed}},
		{"too large", Settings{}, one(make([]byte, 1<<20+1)), []Kind{TooLarge}},
		{"unknown unit", Settings{Unit: "nobody"}, one(good), []Kind{Invalid}},
		{"day of a number", Settings{Unit: "day(x)"}, one(good), []Kind{Invalid}},
		{"unknown label", Settings{Label: "nobody"}, one(good), []Kind{Invalid}},
		{"unknown stratum", Settings{Stratify: "nobody"}, one(good), []Kind{Invalid}},
		{"too many strata", Settings{Stratify: "x"}, one(good), []Kind{Invalid}},
		{"strata within units", Settings{Stratify: "late", Unit: "chart"}, one(good), []Kind{Invalid}},
		{"unknown time", Settings{Split: "time:x"}, one(good), []Kind{Invalid}},
		{"more than there is", Settings{Holdout: 200}, one(good), []Kind{Invalid}},
		{"negative", Settings{Holdout: -0.1}, one(good), []Kind{Invalid}},
		{"no number", Settings{Sigma: math.NaN()}, one(good), []Kind{Invalid}},
		{"naive", Settings{Mechanism: "naive"}, one(good), []Kind{Invalid}},
		{"unknown mechanism", Settings{Mechanism: "magic"}, one(good), []Kind{Invalid}},
		{"tokens of gaussian", Settings{Mechanism: "gaussian", Tokens: 3}, one(good), []Kind{Invalid}},
		{"thresholdout by time", Settings{Mechanism: "thresholdout", Split: "time:seen"}, one(good), []Kind{Invalid}},
		{"guess_and_check by time", Settings{Mechanism: "guess_and_check", Split: "time:seen"}, one(good), []Kind{Invalid}},
		{"guess_and_check alone", Settings{Mechanism: "guess_and_check", Holdout: 1}, one(good), []Kind{Invalid}},
		{"tokens of auto alone", Settings{Tokens: 3, Holdout: 1}, one(good), []Kind{Invalid}},
		{"thresholdout alone", Settings{Mechanism: "thresholdout", Holdout: 1}, one(good), []Kind{Invalid}},
		{"units alone", Settings{Unit: "chart", Holdout: 1}, one(good), []Kind{Invalid}},
		{"one part of two", Settings{Split: "given"}, two("training"), []Kind{Invalid}},
		{"parts without given", Settings{}, two("training", "holdout"), []Kind{Invalid}},
		{"given without parts", Settings{Split: "given"}, one(good), []Kind{Invalid}},
		{"a part twice", Settings{Split: "given"}, two("training", "training"), []Kind{Invalid}},
		{"a part unknown", Settings{Split: "given"}, two("test"), []Kind{Invalid}},
		{"units on both sides", Settings{Split: "given", Unit: "chart"}, two("training", "holdout"), []Kind{BadUpload}},
		{"a name of two lines", Settings{Name: "a\nb"}, one(good), []Kind{Invalid}},
	} {
		_, _, err := s.Create(t.Context(), admin, c.set, c.up, "")
		wantKind(t, c.name, err, c.want[0])
		if left := files(t, s.dir); len(left) != 0 {
			t.Fatalf("%s left %v", c.name, left)
		}
	}
	// A flipped bit can be found by no checksum in the file; then it is another table. Anything but a crash is right.
	if _, _, err := s.Create(t.Context(), admin, Settings{}, one(flipped), ""); err != nil {
		wantKind(t, "flipped", err, BadUpload)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Create(ctx, admin, Settings{}, one(good), ""); err == nil {
		t.Error("an upload whose request is over was taken")
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestLeftovers: a start removes what a crash left of uploads and deletions, and nothing else.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	kept := create(t, s, Settings{}, visits(t, 300, 1))
	doomed := create(t, s, Settings{}, visits(t, 300, 2))
	if err := s.Delete(t.Context(), admin, doomed.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	touch := func(path ...string) {
		t.Helper()
		name := filepath.Join(append([]string{dir}, path...)...)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	touch(temporaryDir, "upload-1", "table.parquet")                  // killed while it was spooled
	touch(holdoutsDir, "ho_unfinished", uncommitted)                  // killed before the commit
	touch(holdoutsDir, doomed.ID, holdoutDir, "columns")              // killed while it was deleted
	touch(holdoutsDir, kept.ID, uncommitted)                          // killed right after the commit
	touch(holdoutsDir, "ho_of_another_ledger", holdoutDir, "columns") // not ours to remove
	s = open(t, dir, func(o *Options) { o.AcceptLostLedger = true })
	want := []string{"holdouts/" + kept.ID, "holdouts/ho_of_another_ledger"}
	slices.Sort(want)
	got := files(t, dir)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, holdoutsDir, kept.ID, uncommitted)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark of a committed holdout: %v", err)
	}
	ask(t, s, kept.ID, mean(0))
}

// TestSecretsStayIn: no key lies in the data directory in clear, but for the two key files; modes keep others out.
func TestSecretsStayIn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := create(t, s, Settings{Mechanism: "thresholdout", Questions: 20, Tokens: 5}, visits(t, 1000, 1))
	ask(t, s, card.ID, mean(0))
	_, analystKey, err := s.CreateKey(t.Context(), admin, "ana", Analyst)
	if err != nil {
		t.Fatal(err)
	}
	h, release, err := s.tables.take(t.Context(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	noise := h.secret.Noise
	release()
	noiseText, err := json.Marshal(noise)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	adminKey, err := os.ReadFile(filepath.Join(dir, adminKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	needles := map[string][]byte{"an analyst's key": []byte(analystKey), "the admin key": bytes.TrimSpace(adminKey), "a noise key": noise[:],
		"a noise key in text": noiseText, "the split key": s.split[:], "the digest key": s.digest[:]}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if e.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for name, needle := range needles {
			if bytes.Contains(text, needle) && !(e.Name() == adminKeyFile && name == "the admin key") {
				t.Errorf("%s lies in clear in %s", name, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, adminKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(string(text))
	p, err := s.Authenticate(t.Context(), first)
	if err != nil || p.Scope != Admin {
		t.Fatalf("the admin key: %+v, %v", p, err)
	}
	info, secret, err := s.CreateKey(t.Context(), p, "ana", Analyst)
	if err != nil || len(secret) != 46 || !strings.HasPrefix(secret, "hk_") {
		t.Fatalf("a new key: %q, %v", secret, err)
	}
	q, err := s.Authenticate(t.Context(), secret)
	if err != nil || q != (Principal{KeyID: info.ID, Name: "ana", Scope: Analyst}) {
		t.Errorf("its principal: %+v, %v", q, err)
	}
	for _, bad := range []string{"", "hk_", secret[:45], secret + "x", "hk_" + strings.Repeat("A", 43), first + "\n"} {
		if _, err := s.Authenticate(t.Context(), bad); KindOf(err) != Unauthorized {
			t.Errorf("key %q: %v", bad, err)
		}
	}
	wantKind(t, "a key that revokes itself", s.RevokeKey(t.Context(), p, p.KeyID), Conflict)
	wantKind(t, "an unknown key", s.RevokeKey(t.Context(), p, "key_x"), NotFound)
	if err := s.RevokeKey(t.Context(), p, info.ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.Authenticate(t.Context(), secret)
	wantKind(t, "a revoked key", err, Unauthorized)
	if keys, err := s.Keys(t.Context(), p); err != nil || len(keys) != 2 || !keys[1].Revoked || keys[0].Revoked || keys[0].By != "" || keys[1].By != p.KeyID || info.By != p.KeyID {
		t.Errorf("keys: %+v, %v", keys, err)
	}
	_, _, err = s.CreateKey(t.Context(), p, "x", "root")
	wantKind(t, "an unknown scope", err, Invalid)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if again, err := os.ReadFile(filepath.Join(dir, adminKeyFile)); err != nil || !bytes.Equal(again, text) {
		t.Errorf("the admin key was written twice: %v", err)
	}
	if _, err := s.Authenticate(t.Context(), first); err != nil {
		t.Errorf("the admin key after a restart: %v", err)
	}
}

func TestAuthorization(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{}, visits(t, 300, 1))
	_, _, err := s.Create(t.Context(), analyst, Settings{}, SingleUpload(strings.NewReader("")), "")
	wantKind(t, "upload", err, Forbidden)
	wantKind(t, "delete", s.Delete(t.Context(), analyst, card.ID), Forbidden)
	wantKind(t, "export", s.Export(t.Context(), analyst, card.ID, io.Discard), Forbidden)
	_, _, err = s.CreateKey(t.Context(), analyst, "x", Analyst)
	wantKind(t, "new key", err, Forbidden)
	_, err = s.Keys(t.Context(), analyst)
	wantKind(t, "keys", err, Forbidden)
	wantKind(t, "revoke", s.RevokeKey(t.Context(), analyst, "key_x"), Forbidden)
	for what, f := range map[string]func(string) error{
		"card":    func(id string) error { _, err := s.Card(t.Context(), analyst, id); return err },
		"budget":  func(id string) error { _, err := s.Budget(t.Context(), analyst, id); return err },
		"ask":     func(id string) error { _, err := s.Ask(t.Context(), analyst, id, []byte(mean(0)), ""); return err },
		"explain": func(id string) error { _, err := s.Explain(t.Context(), analyst, id, []byte(mean(0))); return err },
		"answers": func(id string) error { _, err := s.Answers(t.Context(), analyst, id, 0, 10); return err },
		"training": func(id string) error {
			f, err := s.Training(t.Context(), analyst, id)
			return errors.Join(err, f.Close())
		},
	} {
		if what != "training" {
			wantKind(t, what+" of nothing", f("ho_unknown"), NotFound)
		}
		if err := f(card.ID); err != nil {
			t.Errorf("%s by an analyst: %v", what, err)
		}
	}
}

// TestServerKeyLost: without server.key the recorded answers can still be had, and nothing else.
func TestServerKeyLost(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	card := create(t, s, Settings{}, visits(t, 300, 1))
	first := ask(t, s, card.ID, mean(0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, serverKeyFile)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if again := ask(t, s, card.ID, mean(0)); !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("replay: %+v", again)
	}
	_, err := s.Ask(t.Context(), analyst, card.ID, []byte(mean(1)), "")
	wantKind(t, "a new question", err, Unavailable)
	_, _, err = s.Create(t.Context(), admin, Settings{}, SingleUpload(bytes.NewReader(parquet(t, visits(t, 300, 1)))), "")
	wantKind(t, "an upload", err, Unavailable)
	wantKind(t, "ready", s.Ready(t.Context()), Unavailable)
	if _, err := os.Stat(filepath.Join(dir, serverKeyFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new server key was made: %v", err)
	}
}

// TestDeadline: a request whose time is over gets no answer, and asking again is safe.
func TestDeadline(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 10}, visits(t, 300, 1))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := s.Ask(ctx, analyst, card.ID, []byte(mean(0)), "")
	if err == nil {
		t.Fatal("answered after its deadline")
	}
	if a := ask(t, s, card.ID, mean(0)); a.Budget.Questions.Left != 9 {
		t.Errorf("budget %+v", a.Budget)
	}
}

// TestFlights: a real file, written by another program, on its whole way. The interval of so many rows holds the mean of
// the file too, which is a mean of more rows from the same place: it is missed with a chance below 0.05, at a fixed split
// key far below it.
func TestFlights(t *testing.T) {
	s := open(t, t.TempDir())
	f, err := os.Open("../dataset/ingest/testdata/flights-20k.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	card, _, err := s.Create(t.Context(), admin, Settings{Name: "flights", Questions: 10, Label: "delay"}, SingleUpload(f), "")
	if err != nil {
		t.Fatal(err)
	}
	if card.Units.Holdout != 6000 || len(card.Columns) != 5 || len(card.Skipped) != 0 {
		t.Fatalf("card: %+v", card)
	}
	if !slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == "dependent-rows" }) {
		t.Errorf("flights of one day are alike, and the card does not say so: %+v", card.Warnings)
	}
	e, err := s.Explain(t.Context(), analyst, card.ID, []byte(`{"type":"fraction","of":"delay > 15"}`))
	if err != nil || e.Training == nil {
		t.Fatal(err)
	}
	a := read(t, ask(t, s, card.ID, `{"type":"fraction","of":"delay > 15"}`).Body)
	if a.Interval.Low > *e.Training || a.Interval.High < *e.Training {
		t.Errorf("holdout says %+v, training %v", a.Interval, *e.Training)
	}
	codes, ok := training(t, s, card.ID).Lookup("origin")
	if !ok || codes.Kind != dataset.Text || codes.Dictionary.Len() < 100 {
		t.Errorf("origins of the training part: %+v", codes)
	}
}

// TestNothingBeginsAfterTheEnd: what would go on in the background of a service that is closing ends where it is. It would notice a group that grows while it is waited for, which
// ends the process.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.Close())
	stack := make(chan string, 1)
	s.background(func(ctx context.Context) { stack <- fmt.Sprint(ctx.Err(), string(debug.Stack())) })
	if ran := <-stack; !strings.Contains(ran, "TestNothingBeginsAfterTheEnd(0x") || !strings.HasPrefix(ran, context.Canceled.Error()) {
		t.Errorf("it has not run here, or its context goes on: %s", ran)
	}
}
