package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sourcetest"
)

// engineWords stand for what a database says in an error: it may quote a row.
const engineWords = "Cannot parse 'row-4711-secret'"

// memoryTable is a source with a table t of n rows.
func memoryTable(n int) *sourcetest.Memory {
	x, id := make([]float64, n), make([]int64, n)
	for i := range n {
		x[i], id[i] = float64(i%100)/100, int64(i)
	}
	m := &sourcetest.Memory{Places: true}
	m.Put("t", sourcetest.Rows{{Name: "x", Type: sourcetest.Float64, Floats: x}, {Name: "id", Type: sourcetest.Int64, Ints: id}})
	return m
}

// register makes a holdout of the table t of the source lake, and returns its path.
func (s *server) register(parameters string) (path string) {
	s.t.Helper()
	r := s.send(http.MethodPost, "/v1/holdouts?source=lake&table=t&"+parameters, nil)
	var now Registration
	for r.decode(s.t, &now); !now.Stage.Ended(); r.decode(s.t, &now) {
		time.Sleep(2 * time.Millisecond)
		r = s.get("/v1/registrations/" + now.ID)
	}
	if now.Stage != holdout.RegistrationDone {
		s.t.Fatalf("%s", r.body)
	}
	return "/v1/holdouts/" + now.Holdout
}

var (
	requestID = regexp.MustCompile(`"instance":"[^"]*"|"request_id":"[^"]*"`)
	// ofAnyVoid is what entries of voids differ in, whatever failed: the question and its price, its place in the chain, and when.
	ofAnyVoid = regexp.MustCompile(`"spent":\{[^}]*\}|\\"seq\\":\d+|"(seq|time|created|at|prev|head|query|canonical|hash|core_hash|digest)":("[^"]*"|\d+)|\\"query\\":\\"[^"]*"|sha256:[0-9a-f]*|x > [0-9.]*|\\?"tokens\\?":\d`)
)

// onSecond fails the second sums of a question.
func onSecond(err error) func(context.Context) error {
	var n atomic.Int64
	return func(context.Context) error {
		if n.Add(1) < 2 {
			return nil
		}
		return err
	}
}

func above(x float64) string { return fmt.Sprintf(`{"type":"fraction","of":"x > %v"}`, x) }

// spent is what the budget says of the questions, and how many voids and entries the ledger has.
func (s *server) spent(path string) (questions int64, voids []string) {
	s.t.Helper()
	var b struct{ Questions struct{ Left, Of int64 } }
	s.get(path+"/budget").decode(s.t, &b)
	for line := range strings.Lines(string(s.get(path + "/ledger").body)) {
		var e struct {
			Void bool
			Core json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatal(err)
		}
		if e.Void || strings.Contains(line, `"void"`) {
			voids = append(voids, line)
		}
	}
	return b.Questions.Of - b.Questions.Left, voids
}

// TestSourceFailsWhileAsked: a source that goes away, says what a row has, panics, or does not come to an end after a question was reserved costs that question, as a void whose entry and reply are the same whatever it was.
// Its words are in the log, and nowhere else. Recorded answers replay meanwhile, and it answers again when it is back. It would notice a failure that costs nothing, one that is told from another, and
// words of a database in a reply or in the ledger.
func TestSourceFailsWhileAsked(t *testing.T) {
	for _, mechanism := range []string{"gaussian", "guess_and_check"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			lake := memoryTable(1000)
			s := startWith(t, t.TempDir(), Options{}, func(o *holdout.Options) { o.Sources = map[string]sources.Source{"lake": lake} })
			path := s.register("mechanism=" + mechanism + "&questions=50")
			ask := path + "/queries"
			first := s.post(ask, above(0.55))
			if first.StatusCode != http.StatusOK {
				t.Fatalf("%s", first.body)
			}
			said := map[string]string{}
			asked := 0
			for name, fails := range map[string]func(context.Context) error{
				"away": func(context.Context) error {
					return &sources.Error{Kind: sources.Unavailable, Detail: "away", Err: errors.New(engineWords)}
				},
				"its words": func(context.Context) error { return errors.New(engineWords) },
				"refused":   func(context.Context) error { return &sources.Error{Kind: sources.Refused, Detail: engineWords} },
				"too dear": func(context.Context) error {
					return &sources.Error{Kind: sources.Dear, Detail: "dear", Err: errors.New(engineWords)}
				},
				"a panic":     func(context.Context) error { panic(engineWords) },
				"a deadline":  func(context.Context) error { return fmt.Errorf("%s: %w", engineWords, context.DeadlineExceeded) },
				"cancelled":   func(context.Context) error { return fmt.Errorf("%s: %w", engineWords, context.Canceled) },
				"it is gone":  func(context.Context) error { lake.Down(errors.New(engineWords)); return nil },
				"second sums": onSecond(errors.New(engineWords)),
			} {
				if name == "second sums" && mechanism == "gaussian" {
					continue // it sums once
				}
				asked++
				before, voids := s.spent(path)
				lake.BeforeSums(fails)
				r := s.post(ask, above(0.4+float64(asked)/100))
				if again := s.post(ask, above(0.55)); again.StatusCode != http.StatusOK || !strings.Contains(string(again.body), `"replayed":true`) {
					t.Errorf("%s: a recorded answer: %d %s", name, again.StatusCode, again.body)
				}
				lake.BeforeSums(nil)
				lake.Down(nil)
				after, now := s.spent(path)
				if after != before+1 || len(now) != len(voids)+1 {
					t.Errorf("%s: %d questions more are spent, and %d voids recorded, want one each", name, after-before, len(now)-len(voids))
				}
				said[fmt.Sprintf("%d %s\n", r.StatusCode, requestID.ReplaceAllString(string(r.body), "…"))] += " " + name
				if text := string(r.body) + fmt.Sprint(r.Header) + strings.Join(now, ""); strings.Contains(text, "4711") {
					t.Errorf("%s: the source's words are in the reply or the ledger: %s", name, text)
				}
				if !strings.Contains(s.log.String(), "row-4711-secret") {
					t.Errorf("%s: what the source has said is not in the log", name)
				}
			}
			if len(said) != 1 {
				t.Errorf("failures are told from each other: %v", said)
			}
			_, voids := s.spent(path)
			alike := map[string]bool{}
			for _, line := range voids {
				alike[ofAnyVoid.ReplaceAllString(line, "…")] = true
			}
			if len(alike) != 1 {
				t.Errorf("the entries of voids differ: %v", alike)
			}
			if r := s.post(ask, above(0.41)); r.StatusCode != http.StatusOK {
				t.Errorf("when the source is back: %d %s", r.StatusCode, r.body)
			}
			if bad := s.get(path + "/ledger"); bad.StatusCode != http.StatusOK {
				t.Errorf("the ledger: %s", bad.body)
			}
		})
	}
}

// TestAskerOfASlowSourceLeaves: a question whose asker leaves while its source sums is answered and paid all the same, and replays: nobody hears for nothing how long a sum takes.
func TestAskerOfASlowSourceLeaves(t *testing.T) {
	lake := memoryTable(1000)
	s := startWith(t, t.TempDir(), Options{}, func(o *holdout.Options) { o.Sources = map[string]sources.Source{"lake": lake} })
	path := s.register("mechanism=gaussian&questions=50")
	summing, goOn := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(summing) })
	lake.BeforeSums(func(ctx context.Context) error {
		begun()
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	ctx, leave := context.WithCancel(t.Context())
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path+"/queries", strings.NewReader(above(0.6)))
	if err != nil {
		t.Fatal(err)
	}
	asked.Header.Set("Authorization", "Bearer "+s.key)
	asked.Header.Set("Content-Type", "application/json")
	left := make(chan struct{})
	go func() {
		defer close(left)
		if reply, err := http.DefaultClient.Do(asked); err == nil {
			t.Errorf("%s, and nobody waits any more", reply.Status)
		}
	}()
	<-summing
	leave()
	<-left
	close(goOn)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if spent, voids := s.spent(path); spent == 1 && len(voids) == 0 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d questions are spent, with %d voids, want 1 and none", spent, len(voids))
		}
	}
	lake.BeforeSums(nil)
	if r := s.post(path+"/queries", above(0.6)); r.StatusCode != http.StatusOK || !strings.Contains(string(r.body), `"replayed":true`) {
		t.Errorf("asked again: %d %s", r.StatusCode, r.body)
	}
}

// TestAnalystHearsNothingOfSources: who is no admin is told the same of a registration that there is and of one that there is not, of a source and a table that there are and that there are not, and of any piece of
// rows that are held out. It would notice a reply by which tables of a source can be found, and one that says how many rows there are of a part that nobody was given.
func TestAnalystHearsNothingOfSources(t *testing.T) {
	lake := memoryTable(1000)
	s := startWith(t, t.TempDir(), Options{}, func(o *holdout.Options) { o.Sources = map[string]sources.Source{"lake": lake} })
	path := s.register("mechanism=gaussian&questions=50")
	id := "re_" + strings.TrimPrefix(path, "/v1/holdouts/ho_")
	if r := s.get("/v1/registrations/" + id); r.StatusCode != http.StatusOK {
		t.Fatalf("an admin: %s", r.body)
	}
	_, analyst := s.newKey("analyst")
	as := "Authorization: Bearer " + analyst
	for what, requests := range map[string][][2]string{
		"a registration":         {{"GET", "/v1/registrations/" + id}, {"GET", "/v1/registrations/re_nosuch"}, {"GET", "/v1/registrations"}, {"GET", "/v1/sources"}},
		"the end of one":         {{"DELETE", "/v1/registrations/" + id}, {"DELETE", "/v1/registrations/re_nosuch"}},
		"a table":                {{"POST", "/v1/holdouts?source=lake&table=t"}, {"POST", "/v1/holdouts?source=lake&table=nosuch"}, {"POST", "/v1/holdouts?source=nosuch&table=t"}},
		"pieces of the holdout":  {{"GET", path + "/released/holdout?piece=0"}, {"GET", path + "/released/holdout?piece=1"}, {"GET", path + "/released/holdout?piece=99999"}, {"GET", path + "/released/holdout"}, {"GET", path + "/released/check?piece=3"}},
		"pieces that are not":    {{"GET", path + "/training?piece=1"}, {"GET", path + "/training?piece=99999"}},
		"ranges of what is held": {{"GET", path + "/released/holdout?piece=0#"}, {"GET", path + "/released/holdout?piece=2#"}},
	} {
		said := map[string]bool{}
		for _, r := range requests {
			headers := []string{as}
			if target, ranged := strings.CutSuffix(r[1], "#"); ranged {
				r[1], headers = target, append(headers, "Range: bytes=0-9")
			}
			reply := s.send(r[0], r[1], nil, headers...)
			if reply.StatusCode < 400 {
				t.Errorf("%s: %v is answered with %d", what, r, reply.StatusCode)
			}
			said[fmt.Sprintf("%d %d %s", reply.StatusCode, len(reply.Header.Get("X-Holdoutd-Pieces")), requestID.ReplaceAllString(string(reply.body), "…"))] = true
		}
		if len(said) != 1 {
			t.Errorf("%s: replies tell one from another: %v", what, said)
		}
	}
}
