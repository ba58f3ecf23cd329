package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// A script answers each request with its next step, and keeps what came.
type script struct {
	mu    sync.Mutex
	steps []http.HandlerFunc
	seen  []seen
}

type seen struct {
	method, target, key, auth, media, body string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen = append(s.seen, seen{r.Method, r.URL.String(), r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)})
	step := s.steps[0]
	if len(s.steps) > 1 {
		s.steps = s.steps[1:]
	}
	s.mu.Unlock()
	step(w, r)
}

func hangUp(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "r-1")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func newClient(t *testing.T, steps ...http.HandlerFunc) (*client.Client, *script) {
	t.Helper()
	s := &script{steps: steps}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL+"/", "hk_test")
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

const (
	unavailable = `{"type":"/problems/unavailable","status":503,"code":"unavailable","detail":"later"}`
	answered    = `{"answer":{"id":"ans_1","value":0.5,  "interval":null,"cost":{"questions":1,"tokens":0},"ledger":{"seq":1,"head":"sha256:00"}},"budget":{"questions":{"left":9,"of":10},"tokens":null},"replayed":false}`
)

// TestRetries: a question goes out again after a broken connection and after a 503, as the same request.
func TestRetries(t *testing.T) {
	c, s := newClient(t, hangUp, says(503, unavailable), says(200, answered))
	reply, err := c.Ask(t.Context(), "ho_1", map[string]string{"type": "fraction"})
	if err != nil || *reply.Answer.Value != 0.5 || reply.Budget.Questions.Left != 9 || reply.Budget.Tokens != nil {
		t.Fatalf("%+v %v", reply, err)
	}
	if want := `{"id":"ans_1","value":0.5,  "interval":null,"cost":{"questions":1,"tokens":0},"ledger":{"seq":1,"head":"sha256:00"}}`; string(reply.Answer.Raw) != want {
		t.Errorf("not as it was sent: %s", reply.Answer.Raw)
	}
	if len(s.seen) != 3 || s.seen[0].key == "" || s.seen[0] != s.seen[1] || s.seen[1] != s.seen[2] {
		t.Errorf("%+v", s.seen)
	}
	if got := s.seen[0]; got.target != "/v1/holdouts/ho_1/queries" || got.auth != "Bearer hk_test" || got.media != "application/json" || got.body != `{"type":"fraction"}` {
		t.Errorf("%+v", got)
	}
	if _, err := c.Ask(t.Context(), "ho_1", 1); err != nil || s.seen[3].key == s.seen[0].key {
		t.Error("two questions share an Idempotency-Key")
	}
	if _, err := c.Ask(client.WithIdempotencyKey(t.Context(), "mine"), "ho_1", 1); err != nil || s.seen[4].key != "mine" {
		t.Errorf("%+v", s.seen[4])
	}
}

// TestRetriesEnd: not for ever, not for what another attempt cannot mend, and not against the caller's will.
func TestRetriesEnd(t *testing.T) {
	c, s := newClient(t, says(503, unavailable))
	var p *client.Problem
	if _, err := c.Budget(t.Context(), "ho_1"); !errors.As(err, &p) || p.Code != "unavailable" || len(s.seen) != 1+client.DefaultRetries {
		t.Errorf("%d attempts, %v", len(s.seen), err)
	}
	for name, call := range map[string]func(*client.Client, context.Context) error{
		"a new key": func(c *client.Client, ctx context.Context) error {
			_, err := c.CreateKey(ctx, "a", "analyst")
			return err
		},
		"a deletion": func(c *client.Client, ctx context.Context) error { return c.Delete(ctx, "ho_1") },
		"a stream": func(c *client.Client, ctx context.Context) error {
			_, err := c.CreateHoldout(ctx, io.MultiReader(strings.NewReader("PAR1")), client.Settings{})
			return err
		},
		"a query of no JSON": func(c *client.Client, ctx context.Context) error { _, err := c.Ask(ctx, "ho_1", func() {}); return err },
	} {
		c, s := newClient(t, says(503, unavailable), says(200, answered))
		if err := call(c, t.Context()); err == nil || len(s.seen) > 1 {
			t.Errorf("%s: %d attempts, %v", name, len(s.seen), err)
		}
	}
	for _, status := range []int{400, 401, 403, 404, 409, 422, 500} {
		c, s := newClient(t, says(status, `{"code":"x","status":1}`))
		if _, err := c.Ask(t.Context(), "ho_1", 1); err == nil || len(s.seen) != 1 {
			t.Errorf("%d: %d attempts, %v", status, len(s.seen), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, s = newClient(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		says(503, unavailable)(w, r)
	})
	if _, err := c.Ask(ctx, "ho_1", 1); err == nil || len(s.seen) != 1 {
		t.Errorf("cancelled: %d attempts, %v", len(s.seen), err)
	}
}

// TestUploadsAreRewound: a file is sent again from where it was, a stream is sent once.
func TestUploadsAreRewound(t *testing.T) {
	c, s := newClient(t, says(503, unavailable), says(201, `{"id":"ho_9","columns":[{"kind":"number"}]}`))
	file := strings.NewReader("xxPAR1")
	io.CopyN(io.Discard, file, 2)
	card, err := c.CreateHoldout(t.Context(), file, client.Settings{Name: "a b", Holdout: 0.3, Questions: 5, HalfWidth: 1e-3, Split: "time:date"})
	if err != nil || card.ID != "ho_9" || card.Columns[0].Kind != "number" {
		t.Fatalf("%+v %v", card, err)
	}
	if len(s.seen) != 2 || s.seen[0] != s.seen[1] || s.seen[0].body != "PAR1" || s.seen[0].key == "" {
		t.Errorf("%+v", s.seen)
	}
	if want := "/v1/holdouts?half_width=0.001&holdout=0.3&name=a+b&questions=5&split=time%3Adate"; s.seen[0].target != want {
		t.Errorf("got  %s\nwant %s", s.seen[0].target, want)
	}
}

func TestGivenParts(t *testing.T) {
	c, s := newClient(t, says(201, `{"id":"ho_9"}`))
	if _, err := c.CreateGiven(t.Context(), strings.NewReader("TTT"), strings.NewReader("HHH"), client.Settings{}); err != nil {
		t.Fatal(err)
	}
	got := s.seen[0]
	if !strings.HasPrefix(got.media, "multipart/form-data; boundary=") || !strings.Contains(got.target, "split=given") ||
		!strings.Contains(got.body, `name="training"`) || !strings.Contains(got.body, "TTT") || strings.Index(got.body, "TTT") > strings.Index(got.body, "HHH") {
		t.Errorf("%+v", got)
	}
	c, s = newClient(t, says(201, `{"id":"ho_9"}`))
	if _, err := c.CreateGivenWithCheck(t.Context(), strings.NewReader("TTT"), strings.NewReader("CCC"), strings.NewReader("HHH"), client.Settings{}); err != nil {
		t.Fatal(err)
	}
	if got := s.seen[0]; !strings.Contains(got.target, "split=given") || !strings.Contains(got.body, `name="check"`) || !strings.Contains(got.body, "CCC") {
		t.Errorf("%+v", got)
	}
}

func TestProblems(t *testing.T) {
	c, _ := newClient(t, says(403, `{"type":"/problems/budget-exhausted","title":"The budget does not pay for it","status":403,"code":"budget-exhausted","detail":"none left","requested":2,"remaining":1,"errors":[{"pointer":"/of","detail":"d","line":1}]}`))
	_, err := c.Ask(t.Context(), "ho_1", 1)
	if !client.IsBudgetExhausted(err) || client.IsNotFound(err) || !client.IsBudgetExhausted(fmt.Errorf("wrapped: %w", err)) || client.IsBudgetExhausted(nil) {
		t.Errorf("%v", err)
	}
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != 403 || p.RequestID != "r-1" || p.Errors[0].Pointer != "/of" || p.Errors[0].Line != 1 {
		t.Fatalf("%+v", p)
	}
	var remaining int
	if !p.Member("remaining", &remaining) || remaining != 1 || p.Member("affordable", &remaining) || p.Member("title", &remaining) {
		t.Errorf("members: %v", p.Members)
	}

	c, _ = newClient(t, says(409, `{"code":"holdout-exists","status":409,"holdout":"ho_7"}`))
	_, err = c.CreateHoldout(t.Context(), strings.NewReader(""), client.Settings{})
	if id, ok := client.ExistingHoldout(err); !ok || id != "ho_7" {
		t.Errorf("%q %v", id, err)
	}
	if _, ok := client.ExistingHoldout(errors.New("else")); ok {
		t.Error("any error is an existing holdout")
	}

	c, _ = newClient(t, says(418, `<html>a proxy</html>`))
	if _, err := c.Holdout(t.Context(), "ho_1"); !errors.As(err, &p) || p.Status != 418 || p.Code != "" {
		t.Errorf("%v", err)
	}
	c, _ = newClient(t, says(200, `{"id":`))
	if _, err := c.Holdout(t.Context(), "ho_1"); err == nil {
		t.Error("half a card is a card")
	}
}

func TestAnswersPageByPage(t *testing.T) {
	pages := []http.HandlerFunc{
		says(200, `{"answers":[{"answer":{"id":"1"}},{"answer":{"id":"2"}}],"next":2}`), says(200, `{"answers":[{"answer":{"id":"3"}}]}`),
	}
	c, s := newClient(t, pages...)
	var ids []string
	for a, err := range c.Answers(t.Context(), "ho_1") {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.Answer.ID)
	}
	if strings.Join(ids, "") != "123" || !strings.HasSuffix(s.seen[1].target, "after=2") {
		t.Errorf("%v %+v", ids, s.seen)
	}
	c, s = newClient(t, pages...)
	for range c.Answers(t.Context(), "ho_1") {
		break
	}
	if len(s.seen) != 1 {
		t.Error("pages were asked for that nobody wanted")
	}
	c, _ = newClient(t, says(404, `{"code":"not-found"}`))
	n := 0
	for _, err := range c.Answers(t.Context(), "ho_1") {
		if n++; !client.IsNotFound(err) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
}

// TestFollow reads events as they come, past signs of life, and says how the stream ended; a reader who leaves is not waited for.
func TestFollow(t *testing.T) {
	events := "event: answer\nid: 7\ndata: {\"answer\":{\"id\":\"1\"},\"note\":\"x\"}\n\n: nothing new\n\nevent: answer\nid: 8\ndata: {\"answer\":{\"id\":\"2\"},\"note\":null}\n\n"
	c, s := newClient(t, says(200, events))
	var got []string
	for a, err := range c.Follow(t.Context(), "ho_1", 6) {
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, a.Answer.ID)
	}
	if strings.Join(got, " ") != "1 2 client: the stream ended: unexpected EOF" || !strings.HasSuffix(s.seen[0].target, "/answers/events?after=6") {
		t.Errorf("%q %+v", got, s.seen)
	}
	c, _ = newClient(t, says(200, events))
	for range c.Follow(t.Context(), "ho_1", 0) {
		break
	}
	for reply, want := range map[string]string{"data: {]\n\n": "no answer", "data: {\"answer\"": "unexpected EOF"} {
		c, _ = newClient(t, says(200, reply))
		for _, err := range c.Follow(t.Context(), "ho_1", 0) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", reply, err)
			}
		}
	}
	c, _ = newClient(t, says(404, `{"code":"not-found"}`))
	for _, err := range c.Follow(t.Context(), "ho_1", 0) {
		if !client.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// TestLedgerCutOff: half an export is an error, not an export.
func TestLedgerCutOff(t *testing.T) {
	c, _ := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "line\n")
		w.(http.Flusher).Flush()
		hangUp(w, r)
	})
	var b bytes.Buffer
	if err := c.Ledger(t.Context(), "ho_1", &b); err == nil {
		t.Error("no error")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, base := range []string{"", "localhost:8080", "ftp://h", "http://", "://"} {
		if _, err := client.New(base, ""); err == nil {
			t.Errorf("%q is a server", base)
		}
	}
}

// The ids of holdouts are data, not paths.
func TestIDsAreEscaped(t *testing.T) {
	c, s := newClient(t, says(404, `{"code":"not-found"}`))
	c.Holdout(t.Context(), "../keys?x=#")
	if s.seen[0].target != "/v1/holdouts/..%2Fkeys%3Fx=%23" {
		t.Errorf("%s", s.seen[0].target)
	}
	var q json.RawMessage = []byte(`{"type": "x"}`)
	c.Explain(t.Context(), "a", q)
	if s.seen[1].body != `{"type":"x"}` || s.seen[1].key != "" {
		t.Errorf("%+v", s.seen[1])
	}
}

// TestAnswersEncode: an answer is written as the ledger has it, also within a reply, and an end of an interval that is zero is not one that is
// absent. It notices a program that prints something else than what is recorded.
func TestAnswersEncode(t *testing.T) {
	const recorded = `{"interval":{"low":0,"high":0.5,"confidence":0.95},"value":0.25,"unknown":[1e2]}`
	var reply client.Reply
	if err := json.Unmarshal([]byte(`{"answer":`+recorded+`,"replayed":true}`), &reply); err != nil {
		t.Fatal(err)
	}
	if i := reply.Answer.Interval; i.Low == nil || *i.Low != 0 || *i.High != 0.5 {
		t.Errorf("%+v", i)
	}
	if got, err := json.Marshal(reply); err != nil || !bytes.Contains(got, []byte(recorded)) {
		t.Errorf("%s %v", got, err)
	}
	var items client.Answer
	if err := json.Unmarshal([]byte(`{"interval":{"confidence":0.95},"items":[]}`), &items); err != nil || items.Interval.Low != nil || items.Interval.High != nil {
		t.Errorf("%+v %v", items.Interval, err)
	}
	made := client.Answer{ID: "ans_1"}
	if got, err := json.Marshal(made); err != nil || !bytes.Contains(got, []byte(`"id":"ans_1"`)) {
		t.Errorf("%s %v", got, err)
	}
}

// TestRedirects: nothing is sent on, neither to another server nor to the same one in the clear; net/http would hand the key to another port, a
// subdomain and plain HTTP. It notices a key, a question or an answer that takes another way than the one that was named.
func TestRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := 0
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { other++; io.WriteString(w, answered) }))
		c, s := newClient(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		_, err := c.Ask(t.Context(), "ho_1", map[string]string{"type": "fraction"})
		var p *client.Problem
		if !errors.As(err, &p) || p.Status != status || other != 0 || len(s.seen) != 1 {
			t.Errorf("%d: %v, %d requests here and %d elsewhere", status, err, len(s.seen), other)
		}
		if _, err := c.Holdouts(t.Context()); err == nil || other != 0 {
			t.Errorf("%d of a GET: %v, %d requests elsewhere", status, err, other)
		}
		elsewhere.Close()
	}
}

// TestShort: a long model is sent by itself and named, wherever it stands; what belongs to the question stays beside its digest. Short ones stay as they are.
func TestShort(t *testing.T) {
	c, s := newClient(t, says(200, `{"sha256":"abc","bytes":1,"until":"2026-11-28T00:00:00Z"}`))
	long := json.RawMessage(`{"linear":{"weights":{"` + strings.Repeat("x", client.LongModel) + `":1}},"threshold":0.3,"features":{"y":"x"}}`)
	small := json.RawMessage(`{"linear":{"weights":{"x":1}}}`)
	query := map[string]any{"type": "compare", "a": map[string]any{"type": "accuracy", "model": long}, "b": map[string]any{"type": "accuracy", "model": small}}
	got, err := c.Short(t.Context(), []any{query, map[string]any{"type": "count", "of": "true"}})
	const named = `{"features":{"y":"x"},"sha256":"abc","threshold":0.3}`
	want := `[{"a":{"model":` + named + `,"type":"accuracy"},"b":{"model":{"linear":{"weights":{"x":1}}},"type":"accuracy"},"type":"compare"},{"of":"true","type":"count"}]`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if len(s.seen) != 1 || s.seen[0].target != "/v1/models" || strings.Contains(s.seen[0].body, "threshold") || strings.Contains(s.seen[0].body, "features") {
		t.Errorf("%d requests", len(s.seen))
	}
	twice := json.RawMessage(`{"linear":{},` + string(long[1:]))
	if got, err := c.Short(t.Context(), map[string]any{"type": "accuracy", "model": twice}); err != nil || len(s.seen) != 1 || !strings.Contains(string(got), string(twice)) {
		t.Errorf("a model with a member twice is the server's to refuse: %v, %d requests", err, len(s.seen))
	}
	if got, err := c.Short(t.Context(), map[string]any{"type": "accuracy", "model": small}); err != nil || len(s.seen) != 1 || !strings.Contains(string(got), "linear") {
		t.Errorf("a short model: %s, %v, %d requests", got, err, len(s.seen))
	}
}
