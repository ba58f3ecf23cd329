package api

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
)

// past is an answer of the history as a client reads it.
type past struct {
	Answer, Canonical json.RawMessage
	Note              *string
	AskedBy           holdout.Asker `json:"asked_by"`
	Time              string
	Measure           struct{ Kind string }
	Outcome           *string
	Reference         *holdout.Reference
}

// recorded is what the tests read of an answer.
type recordedAnswer struct {
	Query, Holdout, Outcome, Source, Mechanism string
	Ledger                                     struct{ Seq int64 }
}

// history reads the whole history, page by page.
func (s *server) history(t *testing.T, path string, limit int, headers ...string) (all []past) {
	t.Helper()
	for after := int64(0); ; {
		var page struct {
			Answers []past
			Next    int64
		}
		r := s.get(fmt.Sprintf("%s/answers?limit=%d&after=%d", path, limit, after), headers...)
		if r.StatusCode != 200 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		r.decode(t, &page)
		if len(page.Answers) > limit || len(page.Answers) == 0 && page.Next != 0 {
			t.Fatalf("a page of %d answers", len(page.Answers))
		}
		if all = append(all, page.Answers...); page.Next == 0 {
			return all
		}
		after = page.Next
	}
}

// references compares what the history says beside an answer with what explain says to the same query: by another way through the server.
func (s *server) references(t *testing.T, path string, p past) {
	t.Helper()
	var e struct {
		Query    string
		Training *float64
		Items    []holdout.Item
		Selected string
	}
	r := s.post(path+"/queries/explain", string(p.Canonical))
	if r.StatusCode != 200 {
		t.Fatalf("%s: %d %s", p.Canonical, r.StatusCode, r.body)
	}
	r.decode(t, &e)
	if p.Reference == nil {
		if e.Training != nil || e.Items != nil {
			t.Errorf("%s: no reference, explain says %s", p.Canonical, r.body)
		}
		return
	}
	same := p.Reference.Part == "training" && reflect.DeepEqual(p.Reference.Value, e.Training) && p.Reference.Selected == e.Selected && len(p.Reference.Items) == len(e.Items)
	for i, item := range p.Reference.Items {
		// Means in explain's items are rounded to the grid of what is released, 2^-30 of a range, and a ratio of two small ones is that much less exact.
		same = same && item.Of == e.Items[i].Of && (item.Value == nil) == (e.Items[i].Value == nil) &&
			(item.Value == nil || math.Abs(*item.Value-*e.Items[i].Value) <= 1e-5*math.Abs(*item.Value)+1e-8)
	}
	if !same {
		t.Errorf("%s: the reference is %+v, explain says otherwise", p.Canonical, *p.Reference)
	}
	digest := sha256.Sum256(p.Canonical)
	if "sha256:"+hex.EncodeToString(digest[:]) != e.Query {
		t.Errorf("%s is not the canonical form of %s", p.Canonical, e.Query)
	}
}

// TestHistory asks the examples of all types, some with notes, by two keys, and reads the history: the recorded bytes, the query, the note, who asked, when, the
// outcome, the measure and what the training part says.
func TestHistory(t *testing.T) {
	for _, mechanism := range []string{"guess_and_check&questions=100000&tokens=5000", "gaussian&questions=100000"} {
		s := start(t, Options{})
		path, _ := s.upload("name=flights&holdout=0.5&mechanism=" + mechanism)
		id, analyst := s.newKey("analyst")
		begun := time.Now().Truncate(time.Second)
		sent, notes, by := []string{}, []string{}, []string{}
		for i, e := range examples(t) {
			query, headers := string(e), []string(nil)
			if i%2 == 0 {
				headers = []string{"Authorization: Bearer " + analyst}
			}
			var has struct{ Note string }
			if err := json.Unmarshal(e, &has); err != nil {
				t.Fatal(err)
			}
			if has.Note == "" && i%3 == 0 {
				has.Note = fmt.Sprintf("note %d, <b>", i)
				query = fmt.Sprintf(`{"note":%q,%s`, has.Note, query[1:])
			}
			if r := s.post(path+"/queries", query, headers...); r.StatusCode == 200 && strings.HasSuffix(string(r.body), `"replayed":false}`) {
				sent, notes, by = append(sent, rawAnswer(t, r.body)), append(notes, has.Note), append(by, map[bool]string{true: "analyst"}[headers != nil])
			}
		}
		all := s.history(t, path, 7)
		if len(all) != len(sent) || len(sent) < 20 {
			t.Fatalf("%d answers, %d in the history", len(sent), len(all))
		}
		mine := s.history(t, path, 500, "Authorization: Bearer "+analyst)
		theirs := 0
		for i, p := range all {
			var a recordedAnswer
			if err := json.Unmarshal(p.Answer, &a); err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, p.Time)
			switch {
			case string(p.Answer) != sent[i]:
				t.Errorf("answer %d is %s, sent was %s", i, p.Answer, sent[i])
			case (p.Note == nil) != (notes[i] == "") || p.Note != nil && *p.Note != notes[i]:
				t.Errorf("answer %d has the note %v, not %q", i, p.Note, notes[i])
			case p.AskedBy.Name == nil || (p.AskedBy.ID == id) != (by[i] == "analyst") || *p.AskedBy.Name == "":
				t.Errorf("answer %d: asked by %+v", i, p.AskedBy)
			case err != nil || at.Before(begun) || at.After(time.Now()) || at.Nanosecond() != 0 || strings.Contains(p.Time, "."):
				t.Errorf("answer %d: recorded at %s (%v), the test began at %v", i, p.Time, err, begun)
			case p.Outcome == nil || *p.Outcome != a.Outcome || a.Outcome == "" || p.Measure.Kind == "":
				t.Errorf("answer %d: outcome %v, measured in %+v", i, p.Outcome, p.Measure)
			}
			s.references(t, path, p)
			if by[i] != "" {
				if theirs >= len(mine) || string(mine[theirs].Answer) != sent[i] || !reflect.DeepEqual(mine[theirs], p) {
					t.Errorf("answer %d is not in its asker's own history", i)
				}
				theirs++
			}
		}
		if theirs != len(mine) {
			t.Errorf("%d answers in the analyst's history, %d are theirs", len(mine), theirs)
		}
	}
}

// TestHistoryOfOldAnswers reads the history of the recorded data directory over HTTP: every answer as it was recorded, null for what was not recorded then,
// and the training part's value, which is worked out, as explain says it.
func TestHistoryOfOldAnswers(t *testing.T) {
	const golden = "../../holdout/testdata/golden/"
	dir := filepath.Join(t.TempDir(), "data")
	unpackGolden(t, golden+"datadir.tar.gz", dir)
	s := startIn(t, dir, Options{})
	var cards Holdouts
	s.get("/v1/holdouts").decode(t, &cards)
	valued := 0
	for _, card := range cards.Holdouts {
		path := "/v1/holdouts/" + card.ID
		export, err := os.ReadFile(golden + "exports/" + card.Name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for line := range strings.Lines(string(export)) {
			var e struct{ Kind, Body string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Kind == "answer" {
				bodies = append(bodies, e.Body)
			}
		}
		all := s.history(t, path, 3)
		if len(all) != len(bodies) || len(all) == 0 {
			t.Fatalf("%s: %d answers in the history, %d in the export", card.Name, len(all), len(bodies))
		}
		for i, p := range all {
			if string(p.Answer) != bodies[i] || p.Note != nil || p.Outcome != nil || p.AskedBy.ID == "" || p.Time == "" {
				t.Errorf("%s: %+v for %s", card.Name, p, bodies[i])
			}
			if p.Reference != nil {
				valued++
			}
			s.references(t, path, p)
		}
	}
	if valued < 50 {
		t.Errorf("%d old answers have a value of the training part beside them", valued)
	}
}

func unpackGolden(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		text, err := io.ReadAll(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// stream is somebody who follows.
type stream struct {
	t     *testing.T
	reply *http.Response
	lines *bufio.Scanner
}

func (s *server) follow(t *testing.T, path, key string, headers ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reply.Body.Close() })
	return &stream{t, reply, bufio.NewScanner(reply.Body)}
}

// next is the next answer with its cursor; "" at the end.
func (s *stream) next() (id string, p past) {
	s.t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		if rest, ok := strings.CutPrefix(line, "id: "); ok {
			id = rest
		}
		if rest, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(rest), &p); err != nil {
				s.t.Fatalf("%v: %s", err, rest)
			}
			return id, p
		}
	}
	return "", past{}
}

// TestFollow: a stream has the old answers, then the new ones when they are recorded, each as the history has it; an analyst's has their own alone; it goes on
// after a cursor, and ends when its key is revoked, when the holdout is deleted and when the server stops.
func TestFollow(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.4&mechanism=gaussian&questions=100")
	id, analyst := s.newKey("analyst")
	events := path + "/answers/events"
	ask := func(minutes int, headers ...string) string {
		r := s.post(path+"/queries", fmt.Sprintf(`{"type":"fraction","of":"delay > %d","note":"n%d"}`, minutes, minutes), headers...)
		return rawAnswer(t, r.body)
	}
	mine := "Authorization: Bearer " + analyst
	first := ask(1)
	all, own := s.follow(t, events, s.key), s.follow(t, events, analyst)
	if ct := all.reply.Header.Get("Content-Type"); all.reply.StatusCode != 200 || ct != eventsType {
		t.Fatalf("%d %s", all.reply.StatusCode, ct)
	}
	want := []string{first, ask(2, mine), ask(3), ask(4, mine)}
	for i, w := range want {
		cursor, p := all.next()
		if string(p.Answer) != w || cursor != fmt.Sprint(i+1) || *p.Note != fmt.Sprintf("n%d", i+1) || p.Reference == nil {
			t.Errorf("event %s is %+v, want %s", cursor, p, w)
		}
		if i%2 == 1 {
			if cursor, p := own.next(); string(p.Answer) != w || cursor != fmt.Sprint(i+1) {
				t.Errorf("the analyst's event %s is %s, want %s", cursor, p.Answer, w)
			}
		}
	}
	for _, again := range []*stream{s.follow(t, events, s.key, "Last-Event-ID", "3"), s.follow(t, events+"?after=3", s.key), s.follow(t, events+"?after=0", s.key, "Last-Event-ID", "3")} {
		if cursor, p := again.next(); cursor != "4" || string(p.Answer) != want[3] {
			t.Errorf("after the cursor 3 comes %s %s", cursor, p.Answer)
		}
		again.reply.Body.Close()
	}
	for bad, status := range map[string]int{events + "?after=x": 422, events + "?after=-1": 422, "/v1/holdouts/ho_none/answers/events": 404, events + "?limit=1": 422} {
		if r := s.get(bad); r.StatusCode != status {
			t.Errorf("%s: %d %s", bad, r.StatusCode, r.body)
		}
	}
	if r := s.send("HEAD", events, nil); r.StatusCode != 200 || len(r.body) != 0 {
		t.Errorf("HEAD: %d %q", r.StatusCode, r.body)
	}
	if r := s.send("DELETE", "/v1/keys/"+id, nil); r.StatusCode != 204 {
		t.Fatal(r.StatusCode)
	}
	ask(5) // wakes the streams
	if cursor, p := own.next(); cursor != "" || own.lines.Err() != nil {
		t.Errorf("a revoked key is told of %s %s, and its stream ends with %v", cursor, p.Answer, own.lines.Err())
	}
	if cursor, _ := all.next(); cursor != "5" {
		t.Errorf("the stream goes on with %q", cursor)
	}
	begun := time.Now()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if cursor, _ := all.next(); cursor != "" || time.Since(begun) > 5*time.Second {
		t.Errorf("a server that stops sends %q, and waited %v", cursor, time.Since(begun))
	}
}

// TestStreamsAreCounted: a key has so many streams at a time and no more; one that was left makes room.
func TestStreamsAreCounted(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.4&mechanism=gaussian&questions=100")
	_, other := s.newKey("analyst")
	var open []*stream
	for range streamsOfKey {
		open = append(open, s.follow(t, path+"/answers/events", s.key))
	}
	r := s.get(path + "/answers/events")
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", r.StatusCode, r.body)
	}
	if f := s.follow(t, path+"/answers/events", other); f.reply.StatusCode != 200 {
		t.Errorf("another key: %d", f.reply.StatusCode)
	}
	open[0].reply.Body.Close()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		f := s.follow(t, path+"/answers/events", s.key)
		if f.reply.StatusCode == 200 {
			return
		}
		if time.Since(begun) > 5*time.Second {
			t.Fatal("a stream that was left keeps its place")
		}
	}
}
