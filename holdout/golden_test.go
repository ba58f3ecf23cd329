package holdout

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/session"
)

// What is stored is frozen: docs/format/README.md says what that means. testdata/golden holds a whole data directory as it was once recorded,
// with what it must read as and what the same program writes of it. The tests below fail where a change of the code reads old bytes otherwise,
// or would write others. `go test ./holdout -run TestGolden -update` records all of it anew, which makes every older data directory
// unreadable as far as the tests can say: a change of a format is a migration, and keeps these files. What is recorded after a change lies beside what was recorded before.
var (
	update     = flag.Bool("update", false, "record the newest of testdata/golden* anew")
	updateNext = flag.Bool("update-next", false, "record what the holdouts of testdata/golden* answer next, and further: for a change of new answers that is meant and is of no value, interval or p-value")
)

// recording is a recorded data directory, with what it must read as.
type recording struct {
	dir    string
	number int // a holdout is in it that is recorded since then
}

// recordings are all that were ever made, the newest last.
var recordings = []recording{{"testdata/golden", 1}, {"testdata/golden-2", 2}, {"testdata/golden-3", 3}, {"testdata/golden-4", 4}, {"testdata/golden-5", 5}, {"testdata/golden-6", 6}, {"testdata/golden-7", 7}}

func newest() recording { return recordings[len(recordings)-1] }

func (r recording) archive() string { return filepath.Join(r.dir, "datadir.tar.gz") }

// additions is the number of the first recording that holds only what no earlier one has, and the holdout with the keys.
const additions = 3

// holdouts are those that were recorded in it.
func (r recording) holdouts() (in []goldenHoldout) {
	for _, g := range goldenHoldouts {
		if r.number < additions && g.since <= r.number || r.number >= additions && (g.since == r.number || g.name == "gaussian") {
			in = append(in, g)
		}
	}
	return in
}

// golden is one kind of recorded text of a holdout: testdata/golden/kind/NAME.ext.
func (r recording) golden(kind, name string) string {
	ext := map[string]string{"exports": ".jsonl", "states": ".json", "next": ".json", "further": ".jsonl"}[kind]
	return filepath.Join(r.dir, kind, name+ext)
}

// equal compares with a golden file, or records it.
func (r recording) equal(t *testing.T, path string, got []byte) {
	t.Helper()
	kind := filepath.Base(filepath.Dir(path))
	if again := *updateNext && (kind == "next" || kind == "further"); again || *update && r == newest() {
		if before, err := os.ReadFile(path); again && err == nil && !slices.Equal(numbersOf(t, before), numbersOf(t, got)) {
			t.Fatalf("%s: other numbers. What an older holdout answers next is a matter of its guarantee's version: other intervals are a new version, and this file stays", path)
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs.\ngot  %s\nwant %s", path, firstDifference(got, want), firstDifference(want, got))
	}
}

// numbersOf are what answers say by a guarantee, one answer a line.
func numbersOf(t *testing.T, lines []byte) (all []string) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var a struct {
			Value, Interval, Items json.RawMessage
			PValue                 json.RawMessage `json:"p_value"`
		}
		must(t, json.Unmarshal(line, &a))
		all = append(all, string(slices.Concat(a.Value, a.Interval, a.Items, a.PValue)))
	}
	return all
}

// firstDifference is what a has around the first byte that b has not.
func firstDifference(a, b []byte) []byte {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return a[max(0, at-80):min(len(a), at+160)]
}

// open unpacks the recorded data directory and opens it. In it are the recorded holdouts by the names on their cards.
func (r recording) open(t *testing.T) (s *Service, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	unpack(t, r.archive(), dir)
	// Idempotency keys are forgotten after a week: to the server these are of today.
	db, err := sql.Open("sqlite", "file://"+filepath.Join(dir, ledgerFile))
	must(t, err)
	_, err = db.Exec("UPDATE idempotency SET created = ?", time.Now().UnixNano())
	must(t, errors.Join(err, db.Close()))
	return open(t, dir, func(o *Options) { o.AllowNaive = true }), dir
}

// found are the holdouts of the ledger by name, deleted ones included.
func (r recording) found(t *testing.T, s *Service) map[string]ledger.Holdout {
	t.Helper()
	all, err := s.ledger.Holdouts(t.Context())
	must(t, err)
	byName := map[string]ledger.Holdout{}
	for _, h := range all {
		card, err := readCard(h.Public)
		must(t, err)
		byName[card.Name] = h
	}
	if recorded := len(r.holdouts()); len(byName) != len(all) || len(all) < recorded {
		t.Fatalf("%d holdouts with %d names, recorded were %d", len(all), len(byName), recorded)
	}
	return byName
}

// TestGolden opens each recorded data directory with the program of today: it verifies, it exports the recorded bytes, every recorded answer is
// replayed byte for byte at no cost, states and cards are read and written as they were, and each holdout answers a new question as it
// would have done then.
func TestGolden(t *testing.T) {
	if *update {
		recordGolden(t)
	}
	for _, r := range recordings {
		t.Run(filepath.Base(r.dir), r.reads)
	}
}

func (r recording) reads(t *testing.T) {
	s, dir := r.open(t)
	reports, err := Verify(t.Context(), dir, true)
	must(t, err)
	for _, report := range reports {
		if !report.Deleted && (report.Sealed != inOrder || report.Tables != inOrder) {
			t.Errorf("%s: sealed values %s, tables %s", report.Holdout, report.Sealed, report.Tables)
		}
	}
	holdouts := r.found(t, s)
	for name, h := range holdouts {
		t.Run(name, func(t *testing.T) {
			var export bytes.Buffer
			must(t, s.Export(t.Context(), admin, h.ID, &export))
			r.equal(t, r.golden("exports", name), export.Bytes())
			card, early, err := readCards(h.Public)
			must(t, err)
			if again, err := writeCard(card, early...); err != nil || !bytes.Equal(again, h.Public) {
				t.Errorf("the card is written otherwise (%v):\ngot  %s\nwant %s", err, firstDifference(again, h.Public), firstDifference(h.Public, again))
			}
			if h.Deleted {
				return
			}
			r.equal(t, r.golden("states", name), h.State)
			state, err := (&opened{id: h.ID, guarantee: card.Guarantee}).readState(h.State)
			must(t, err)
			if again, err := json.Marshal(state); err != nil || !bytes.Equal(again, h.State) {
				t.Errorf("the state is written otherwise (%v): %s, not %s", err, again, h.State)
			}
			replays(t, s, h, export.Bytes())
			marksAndTables(t, s.path(holdoutsDir, h.ID))
		})
	}
	keysAndIdempotency(t, s, holdouts["gaussian"].ID)
	for _, g := range r.holdouts() {
		if g.next == "" {
			continue
		}
		t.Run("next/"+g.name, func(t *testing.T) {
			id := holdouts[g.name].ID
			before, err := s.ledger.Holdout(t.Context(), id)
			must(t, err)
			a := ask(t, s, id, g.next)
			after, err := s.ledger.Holdout(t.Context(), id)
			must(t, err)
			if a.Replayed || after.Spent["questions"] <= before.Spent["questions"] {
				t.Errorf("a new question: replayed %v, spent %v after %v", a.Replayed, after.Spent, before.Spent)
			}
			// Its place in the ledger depends on the time.
			core := regexp.MustCompile(`,"ledger":\{[^}]*\}\}$`).ReplaceAll(a.Body, []byte("}"))
			r.equal(t, r.golden("next", g.name), append(core, '\n'))
			var more []byte
			for _, query := range goldenFurther {
				a, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
				if err != nil { // it has no such question, or none is left
					more = append(more, "null\n"...)
					continue
				}
				more = append(append(more, regexp.MustCompile(`,"ledger":\{[^}]*\}\}$`).ReplaceAll(a.Body, []byte("}"))...), '\n')
			}
			r.equal(t, r.golden("further", g.name), more)
		})
	}
	must(t, s.Close())
	if _, err := Verify(t.Context(), dir, true); err != nil {
		t.Errorf("after new questions: %v", err)
	}
}

// replays asks every recorded query again, and writes every recorded answer again.
func replays(t *testing.T, s *Service, h ledger.Holdout, export []byte) {
	t.Helper()
	answers := 0
	for _, line := range strings.Split(strings.TrimSuffix(string(export), "\n"), "\n")[1:] {
		var e struct {
			Kind, Canonical, Body string
			Seq                   int64
		}
		must(t, json.Unmarshal([]byte(line), &e))
		if e.Kind != ledger.KindAnswer {
			continue
		}
		answers++
		if a := ask(t, s, h.ID, e.Canonical); !a.Replayed || string(a.Body) != e.Body {
			t.Errorf("seq %d: replayed %v\ngot  %s\nwant %s", e.Seq, a.Replayed, a.Body, e.Body)
		}
		var answer session.Answer
		strict := json.NewDecoder(strings.NewReader(withoutPlace(e.Body)))
		strict.DisallowUnknownFields()
		must(t, strict.Decode(&answer))
		version := session.AnswerVersion
		if answer.Promise != nil {
			version = session.PromisedAnswerVersion
		}
		if answer.Version != version {
			t.Errorf("seq %d has version %d, want %d", e.Seq, answer.Version, version)
		}
		if again, err := answer.JSON(); err != nil || string(again) != withoutPlace(e.Body) {
			t.Errorf("seq %d is written otherwise (%v):\ngot  %s\nwant %s", e.Seq, err, again, withoutPlace(e.Body))
		}
	}
	after, err := s.ledger.Holdout(t.Context(), h.ID)
	must(t, err)
	if answers == 0 || !after.Spent.Equal(h.Spent) {
		t.Errorf("%d replays; spent %v after %v", answers, after.Spent, h.Spent)
	}
}

// withoutPlace is a recorded answer without its place in the ledger.
func withoutPlace(body string) string { return body[:strings.LastIndex(body, `,"ledger":`)] + "}" }

// marksAndTables writes the mark and every table of a holdout's directory again. Only the salt of a manifest is new.
func marksAndTables(t *testing.T, dir string) {
	t.Helper()
	m, err := readMark(dir)
	must(t, err)
	again := t.TempDir()
	must(t, m.write(again, markFile))
	sameFile(t, filepath.Join(dir, markFile), filepath.Join(again, markFile), nil)
	tables := 0
	for _, part := range []string{trainingDir, holdoutDir, trainingDir + unitsSuffix, holdoutDir + unitsSuffix} {
		table, err := dataset.Open(filepath.Join(dir, part))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		tables++
		copied := filepath.Join(again, part)
		must(t, dataset.Write(copied, table))
		must(t, table.Close())
		sameFile(t, filepath.Join(dir, part, columnsOf), filepath.Join(copied, columnsOf), nil)
		salted := regexp.MustCompile(`^(holdoutd dataset \d+) [0-9a-f]{8}|"salt":"[0-9a-f]*"`)
		sameFile(t, filepath.Join(dir, part, manifestOf), filepath.Join(copied, manifestOf), salted)
	}
	if tables == 0 {
		t.Error("no tables")
	}
}

// sameFile compares two files, but for what differs each time.
func sameFile(t *testing.T, want, got string, but *regexp.Regexp) {
	t.Helper()
	a, err := os.ReadFile(want)
	must(t, err)
	b, err := os.ReadFile(got)
	must(t, err)
	if but != nil {
		a, b = but.ReplaceAll(a, []byte("$1")), but.ReplaceAll(b, []byte("$1"))
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s is written otherwise:\ngot  %q\nwant %q", filepath.Base(filepath.Dir(want)), firstDifference(b, a), firstDifference(a, b))
	}
}

// keysAndIdempotency: the recorded admin key opens the door, and the recorded Idempotency-Key stands for its request alone.
func keysAndIdempotency(t *testing.T, s *Service, id string) {
	t.Helper()
	key, err := os.ReadFile(s.path(adminKeyFile))
	must(t, err)
	if p, err := s.Authenticate(t.Context(), strings.TrimSpace(string(key))); err != nil || p.Scope != Admin {
		t.Errorf("the recorded admin key: %+v %v", p, err)
	}
	if a, err := s.Ask(t.Context(), analyst, id, []byte(goldenKeyed), goldenKey); err != nil || !a.Replayed {
		t.Errorf("the recorded request under its key: %v %v", a.Replayed, err)
	}
	_, err = s.Ask(t.Context(), analyst, id, []byte(`{"type":"count","of":"delay > 16"}`), goldenKey)
	wantKind(t, "another request under a recorded key", err, IdempotencyMismatch)
}

// pack writes a directory as an archive: names in order, no times, no owners.
func pack(t *testing.T, dir, archive string) {
	t.Helper()
	var b bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(t, err)
	w := tar.NewWriter(zipped)
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || slices.Contains([]string{"ledger.db.lock"}, name) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: secretMode, Size: int64(len(text)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}))
	must(t, errors.Join(w.Close(), zipped.Close()))
	must(t, os.WriteFile(archive, b.Bytes(), 0o644))
}

// unpack is the inverse of pack.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	must(t, err)
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	must(t, err)
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		must(t, os.MkdirAll(filepath.Dir(path), privateMode))
		text, err := io.ReadAll(r)
		must(t, err)
		must(t, os.WriteFile(path, text, secretMode))
	}
}
