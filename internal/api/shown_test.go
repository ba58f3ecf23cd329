package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

// What a key with a grant can find out, tried on every route that the server has. Two servers have holdouts of one training part, whose recorded answers differ in all but their verdicts: in their
// numbers, in where these are from and in the tokens that they took. A key that is shown a bit is told the same by both, byte for byte, whatever it sends and wherever.

// attempt is one request of somebody who wants more than is shown.
type attempt struct {
	method, path, body string
	headers            []string
}

func (a attempt) String() string {
	return fmt.Sprintf("%s %s %s %v", a.method, a.path, a.body, a.headers)
}

const (
	bitOfMean = `{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.1}`
	bitOfLate = `{"type":"passes","of":{"type":"fraction","of":"late"},"above":0.1}`
	meanOfX   = `{"type":"mean","of":"x","range":[0,1]}`
)

// wantedQueries are what such a key asks: what others asked, what nobody asked, what has no verdict, and what finds out how many tokens are spent.
var wantedQueries = []string{
	bitOfMean, bitOfLate, meanOfX, `{"type":"fraction","of":"late"}`,
	`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.15}`,
	`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.1,"half_width":0.2}`,
	`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.1,"half_width":0.0001}`,
	`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1],"guess":0.9},"above":0.1}`,
	`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.1,"measure":true}`,
	`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.1,"report":true}`,
	`{"type":"mean","of":"x","range":[0,1],"report":true}`,
	`{"type":"test","test":"mean","equals":0.05,"of":"x","range":[0,1]}`,
	`{"type":"passes","of":{"type":"accuracy","label":"late","prediction":"x > -1.0"},"above":0.1}`,
	`{"type":"argmax","of":[{"type":"mean","of":"x","range":[0,1]},{"type":"fraction","of":"late"}]}`,
	`{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]}}`, `{"type":"nothing"}`, `{"type":`,
}

// requestsOf are what is sent to each route, whose bodies are in bodies. A route that has a body and is not there fails the test.
func requestsOf(t *testing.T, s *server, card, grant, key string) (all []attempt) {
	t.Helper()
	queries, calls := []string{}, []string{}
	batch := `{"queries":[` + strings.Join(wantedQueries[:2], ",") + `],"partial":true}`
	for i, tool := range tools {
		arguments := []string{`{}`, `{"holdout":"` + card + `"}`, `{"name":"passes"}`, `{"n":1000,"questions":10}`, `{"holdout":"` + card + `","queries":[` + strings.Join(wantedQueries[:2], ",") + `]}`,
			`{"holdout":"` + card + `","a":{"type":"fraction","of":"late"},"b":` + meanOfX + `}`}
		for _, q := range wantedQueries[:len(wantedQueries)-1] {
			if tool.name != "ask" && tool.name != "explain" {
				continue
			}
			arguments = append(arguments, `{"holdout":"`+card+`","query":`+q+`}`)
		}
		for k, a := range arguments {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, 100*i+k, tool.name, a))
		}
	}
	queries = append(queries, wantedQueries...)
	bodies := map[string][]string{
		"POST /v1/holdouts/:id/queries":         queries,
		"POST /v1/holdouts/:id/queries/explain": queries,
		"POST /v1/holdouts/:id/queries/batch": {batch, `{"queries":[` + strings.Join(wantedQueries[:3], ",") + `]}`, `{"queries":[` + wantedQueries[4] + `,` + bitOfMean + `,` + bitOfMean + `]}`,
			`{"queries":[` + wantedQueries[5] + `]}`, `{"queries":[]}`},
		"POST /v1/holdouts/:id/report":      {`{"queries":[` + meanOfX + `],"close":true}`},
		"POST /v1/holdouts/:id/report/plan": {`{"queries":[` + meanOfX + `]}`, `{"queries":[` + bitOfMean + `]}`},
		"POST /mcp":                         calls,
		"POST /v1/plans":                    {`{"n":1000,"questions":10}`},
		"POST /v1/models":                   {`{"type":"linear"}`},
		"POST /v1/keys":                     {`{"name":"mine","scope":"admin"}`},
		"POST /v1/grants":                   {`{"key":"` + key + `","holdout":"` + card + `","questions":1,"shows":"full"}`},
		"POST /v1/holdouts":                 {""},
		"POST /v1/session":                  {""},
		"DELETE /v1/session":                {""},
		"DELETE /v1/holdouts/:id":           {""},
		"POST /v1/holdouts/:id/retire":      {""},
		"DELETE /v1/holdouts/:id/held":      {""},
		"POST /v1/holdouts/:id/releases":    {`{"epsilon":1,"columns":[{"name":"x","low":0,"high":1}]}`},
		"DELETE /v1/grants/:id":             {""},
		"DELETE /v1/keys/:id":               {""},
	}
	routes := s.api.router.Routes()
	slices.SortFunc(routes, func(a, b gin.RouteInfo) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	for _, route := range routes {
		if route.Path == "/metrics" || strings.HasPrefix(route.Path, "/test/") { // counts of requests, which everyone is shown
			continue
		}
		id := card
		switch {
		case strings.HasPrefix(route.Path, "/v1/grants"):
			id = grant
		case strings.HasPrefix(route.Path, "/v1/keys"):
			id = key
		}
		path := strings.NewReplacer(":id", id, ":sha256", strings.Repeat("0", 64)).Replace(route.Path)
		path, _, _ = strings.Cut(path, "*")
		sent, ok := bodies[route.Method+" "+route.Path]
		switch {
		case route.Method == http.MethodGet && !strings.HasPrefix(path, "/v1"):
			all = append(all, attempt{method: "GET", path: path})
		case route.Method == http.MethodGet:
			all = append(all, attempt{method: "GET", path: path}, attempt{method: "HEAD", path: path}, attempt{method: "GET", path: path + "?after=1&limit=1"},
				attempt{method: "GET", path: path, headers: []string{"Accept: text/html", "Range: bytes=0-9", "If-None-Match: *", "Last-Event-ID: 1"}})
		case !ok:
			t.Errorf("%s %s: no test says what a key with a grant is told there", route.Method, route.Path)
		}
		for _, body := range sent {
			all = append(all, attempt{method: route.Method, path: path, body: body})
			if strings.HasSuffix(path, "/queries") || strings.HasSuffix(path, "/batch") {
				all = append(all, attempt{method: route.Method, path: path + "?max_questions=3", body: body, headers: []string{"Idempotency-Key: others-0"}},
					attempt{method: route.Method, path: path, body: body, headers: []string{fmt.Sprintf("Idempotency-Key: mine-%x", len(body))}})
			}
		}
	}
	return all
}

// whichever are the words of a reply that differ between any two servers, and from one moment to the next.
var whichever = regexp.MustCompile(`(ho|key|gr|ans)_[-A-Za-z0-9]+|"(holdout|training)(\.units)?\\?":\\?"sha256:[0-9a-f]+|\d{4}-\d\d-\d\dT[0-9:.]+Z|127\.0\.0\.1:\d+`)

// decimals are numbers that are not whole.
var decimals = regexp.MustCompile(`-?\d+\.\d+(e[-+]?\d+)?`)

// told is all that comes back: status, headers and body. Of a stream it is what there is so far.
func (s *server) told(a attempt, key string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, a.method, s.url+a.path, strings.NewReader(a.body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if a.body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	reply, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(a, err)
	}
	defer reply.Body.Close()
	var body []byte
	if reply.Header.Get("Content-Type") == eventsType && a.method == "GET" {
		for lines := bufio.NewReader(reply.Body); !bytes.Contains(body, []byte(": nothing new")); { // comes after the answers that there are
			line, err := lines.ReadBytes('\n')
			if body = append(body, line...); err != nil || bytes.HasPrefix(line, []byte("data: ")) && a.headers == nil && !strings.Contains(a.path, "?") {
				break
			}
			if strings.HasPrefix(string(line), "data: ") {
				break
			}
		}
	} else if body, err = io.ReadAll(reply.Body); err != nil {
		s.t.Fatal(a, err)
	}
	var heads []string
	for name, values := range reply.Header {
		if name != "Date" && name != "X-Request-Id" && name != "Set-Cookie" && name != "Content-Length" { // ids and times may be of other lengths
			heads = append(heads, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(heads)
	return whichever.ReplaceAllString(fmt.Sprintf("%d\n%s\n\n%s", reply.StatusCode, strings.Join(heads, "\n"), body), "NAME")
}

// TestNoRouteSaysMore: no route tells a key more than its grant shows, whatever it sends: before and after the holdout was closed, and nothing at all after the grant has ended.
// It would notice a route that forgets the grant, a price, a length or a refusal that follows from a recorded answer, and a member that is new in answers and is not narrowed. A route that it does not know fails it.
func TestNoRouteSaysMore(t *testing.T) {
	type twin struct {
		*server
		path, card string
		keys       map[holdout.Shows][2]string // id and secret
		grants     map[holdout.Shows]string
	}
	training := twinTable(t, "normal", 1)
	twins := [2]*twin{}
	for i, kind := range []string{"normal", "high"} {
		w := &twin{server: start(t, Options{Limits: Limits{Rate: 1e6, Burst: 1e6}}), keys: map[holdout.Shows][2]string{}, grants: map[holdout.Shows]string{}}
		twins[i] = w
		w.path = w.given("name=twin&mechanism=guess_and_check&questions=2000&tokens=400", training, twinTable(t, kind, uint64(50+i)))
		w.card = strings.TrimPrefix(w.path, "/v1/holdouts/")
		for _, shows := range []holdout.Shows{holdout.ShowsFull, holdout.ShowsValue, holdout.ShowsBit} {
			id, secret := w.newKey("granted")
			var g holdout.GrantInfo
			w.post("/v1/grants", fmt.Sprintf(`{"key":%q,"holdout":%q,"questions":500,"shows":%q}`, id, w.card, shows)).decode(t, &g)
			w.keys[shows], w.grants[shows] = [2]string{id, secret}, g.ID
		}
		for k, q := range []string{bitOfMean, meanOfX, `{"type":"mean","of":"y","range":[-4,4]}`} { // by a key that is shown all of it
			if r := w.post(w.path+"/queries", q, "Authorization: Bearer "+w.keys[holdout.ShowsFull][1], fmt.Sprintf("Idempotency-Key: others-%d", k)); r.StatusCode != 200 {
				t.Fatalf("%s: %d %s", q, r.StatusCode, r.body)
			}
		}
	}
	compare := func(when string, shows holdout.Shows) {
		t.Helper()
		var all [2][]attempt
		for i, w := range twins {
			all[i] = requestsOf(t, w.server, w.card, w.grants[shows], w.keys[shows][0])
		}
		answered := 0
		for k := range all[0] {
			a, b := twins[0].told(all[0][k], twins[0].keys[shows][1]), twins[1].told(all[1][k], twins[1].keys[shows][1])
			if shows == holdout.ShowsValue {
				a, b = decimals.ReplaceAllString(a, "N"), decimals.ReplaceAllString(b, "N")
			}
			if a != b {
				at := 0
				for at < min(len(a), len(b)) && a[at] == b[at] {
					at++
				}
				t.Errorf("%s, to a key that is shown %s: %v\n  %.300s\n  %.300s", when, shows, all[0][k], a[max(0, at-150):], b[max(0, at-150):])
			}
			if strings.Contains(a, `"passed":true`) {
				answered++
			}
			for _, never := range []string{`"low":0`, `"low":-`, `"low":1`, `"outcome":"`, `"p_value"`, `"value_from"`, `"tokens":{`} {
				if strings.Contains(a, never) && !strings.Contains(all[0][k].path+all[0][k].body, "plan") && !strings.Contains(all[0][k].path, "openapi") && !strings.Contains(all[0][k].path, "docs") {
					t.Errorf("%s, to a key that is shown %s: %v has %s: %.1500s", when, shows, all[0][k], never, a)
				}
			}
		}
		if shows == holdout.ShowsBit && answered < 10 {
			t.Errorf("%s: only %d bits were answered", when, answered)
		}
	}
	compare("open", holdout.ShowsBit)
	compare("open", holdout.ShowsValue)
	for _, w := range twins {
		if r := w.post(w.path+"/report", `{"queries":[`+meanOfX+`,{"type":"passes","of":{"type":"mean","of":"x","range":[0,1]},"above":0.1}],"close":true}`); r.StatusCode != 200 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	compare("closed", holdout.ShowsBit)
	compare("closed", holdout.ShowsValue)
}

// TestEndedKeysHearNothing: what a key is told after its grant has ended does not change any more, whatever others ask: it hears nothing of the holdout, and nothing of what is left of it.
func TestEndedKeysHearNothing(t *testing.T) {
	s := start(t, Options{Limits: Limits{Rate: 1e6, Burst: 1e6}})
	path := s.given("name=given&mechanism=guess_and_check&questions=60&tokens=20", twinTable(t, "normal", 1), twinTable(t, "high", 51))
	card := strings.TrimPrefix(path, "/v1/holdouts/")
	id, secret := s.newKey("granted")
	var g holdout.GrantInfo
	s.post("/v1/grants", fmt.Sprintf(`{"key":%q,"holdout":%q,"questions":50,"tokens":20}`, id, card)).decode(t, &g)
	if r := s.post(path+"/queries", meanOfX, "Authorization: Bearer "+secret); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.send(http.MethodDelete, "/v1/grants/"+g.ID, nil); r.StatusCode != http.StatusNoContent {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	all := requestsOf(t, s, card, g.ID, id)
	before := make([]string, len(all))
	for i, a := range all {
		before[i] = s.told(a, secret)
	}
	for i := range 30 {
		if r := s.post(path+"/queries", fmt.Sprintf(`{"type":"fraction","of":"y > 0.%02d","measure":false}`, i)); r.StatusCode != 200 && i < 10 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	for i, a := range all {
		if now := s.told(a, secret); now != before[i] {
			t.Errorf("%v: after the end of the grant the reply follows what others ask:\n  %.1500s\n  %.1500s", a, before[i], now)
		}
	}
}

// TestReportIsNotReplayed: the answers of a final report are no answers of questions, and a key that is shown less than all gets none of them by asking for one.
func TestReportIsNotReplayed(t *testing.T) {
	s := start(t, Options{})
	path := s.given("name=given&mechanism=guess_and_check&questions=60&tokens=20", twinTable(t, "normal", 1), twinTable(t, "high", 51))
	if r := s.post(path+"/report", `{"queries":[`+meanOfX+`,`+bitOfMean+`],"close":true}`); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for shows, want := range map[holdout.Shows]int{holdout.ShowsFull: 200, holdout.ShowsValue: 403, holdout.ShowsBit: 403} {
		id, secret := s.newKey("granted")
		if r := s.post("/v1/grants", fmt.Sprintf(`{"key":%q,"holdout":%q,"questions":50,"shows":%q}`, id, strings.TrimPrefix(path, "/v1/holdouts/"), shows)); r.StatusCode != 201 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		for _, q := range []string{meanOfX, bitOfMean} {
			q = q[:len(q)-1] + `,"report":true}`
			for route, body := range map[string]string{"/queries": q, "/queries/explain": q, "/queries/batch": `{"queries":[` + q + `]}`} {
				if r := s.post(path+route, body, "Authorization: Bearer "+secret); r.StatusCode != want {
					t.Errorf("shows %s: %s %s: %d %s, want %d", shows, route, body, r.StatusCode, r.body, want)
				}
			}
		}
	}
}
