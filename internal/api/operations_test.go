package api

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestOperations(t *testing.T) {
	s := start(t, Options{Version: "v1.2.3"})
	for path, want := range map[string]string{
		"/healthz": `"status":"ok"`, "/readyz": `"status":"ok"`, "/version": `"version":"v1.2.3"`,
		"/openapi.json": `"openapi":"3.1`, "/docs": "Documentation", "/docs/interface": "interface.js", "/docs/interface.js": "fetch(", "/docs/style.css": ".prose", "/docs/theme.js": "localStorage", "/": "holdoutd", "/v1/session": `"key":null`,
		"/docs/problems": `id="budget-exhausted"`,
	} {
		r := s.get(path, "Authorization: ")
		if r.StatusCode != 200 || !strings.Contains(string(r.body), want) {
			t.Errorf("%s: %d %.200s", path, r.StatusCode, r.body)
		}
		if strings.Contains(string(r.body), "$schema") || r.Header.Get("Link") != "" {
			t.Errorf("%s links to a schema", path)
		}
		head := s.send("HEAD", path, nil)
		if head.StatusCode != 200 || len(head.body) > 0 {
			t.Errorf("HEAD %s: %d, %d bytes", path, head.StatusCode, len(head.body))
		}
	}
	if r := s.get("/problems/budget-exhausted"); r.StatusCode != 302 || r.Header.Get("Location") != "/docs/problems#budget-exhausted" {
		t.Errorf("a problem's type leads nowhere: %d %v", r.StatusCode, r.Header)
	}
	r := s.send("OPTIONS", "/v1/holdouts", nil)
	if r.StatusCode != 204 || r.Header.Get("Allow") != "GET, HEAD, OPTIONS, POST" {
		t.Errorf("OPTIONS: %d %q", r.StatusCode, r.Header.Get("Allow"))
	}
	if r := s.get("/healthz?from=balancer"); r.StatusCode != 200 {
		t.Errorf("a health check with a parameter: %d", r.StatusCode)
	}
	if r := s.get("/healthz", "X-Request-Id: mine-1"); r.Header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("X-Request-Id: %q", r.Header.Get("X-Request-Id"))
	}
	if r := s.get("/healthz", "X-Request-Id: a\tb"); r.Header.Get("X-Request-Id") == "a\tb" {
		t.Error("any X-Request-Id goes into the log")
	}
}

// TestPagesWorkOffline: nothing is loaded from elsewhere, nor may be.
func TestPagesWorkOffline(t *testing.T) {
	s := start(t, Options{})
	elsewhere := regexp.MustCompile(`(src|href|url|import|fetch)\s*[=(]?\s*["'(]?\s*(https?:)?//`)
	for _, path := range []string{"/", "/docs", "/docs/interface", "/docs/interface.js", "/docs/style.css", "/docs/problems"} {
		r := s.get(path)
		if at := elsewhere.Find(r.body); at != nil {
			t.Errorf("%s loads %s", path, at)
		}
		if policy := r.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %q", path, policy)
		}
		if strings.Contains(string(r.body), "<script>") || strings.Contains(string(r.body), " style=") {
			t.Errorf("%s has what its policy forbids", path)
		}
	}
}

// TestMetricsAndLogSayNothingOfAnswers asks questions with recognisable words and numbers and looks for them.
func TestMetricsAndLogSayNothingOfAnswers(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.5&questions=5")
	r := s.post(path+"/queries", `{"type":"fraction","of":"origin == 'ORD'","note":"remarkable"}`)
	s.post(path+"/queries/batch", `{"queries":[`+late+`]}`)
	var reply struct{ Answer struct{ Value json.Number } }
	r.decode(t, &reply)
	open, metrics := string(s.get("/metrics", "Authorization: ").body), string(s.get("/metrics").body)
	for line := range strings.Lines(open) {
		if name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), " "); !strings.HasPrefix(name, "holdoutd_http_requests_total") && !strings.HasPrefix(name, "holdoutd_build_info") {
			t.Errorf("everyone is shown %s", line)
		}
	}
	if !strings.Contains(open, `route="/v1/holdouts/:id/queries",status="200"} 1`) {
		t.Errorf("what everyone is shown has no count of questions:\n%s", open)
	}
	_, analyst := s.newKey("analyst")
	if shown := string(s.get("/metrics", "Authorization: Bearer "+analyst).body); strings.Contains(shown, "go_") || strings.Contains(shown, "in_flight") {
		t.Error("analysts are shown the process")
	}
	for _, want := range []string{
		`holdoutd_http_requests_total{method="POST",route="/v1/holdouts/:id/queries",status="200"} 1`,
		`holdoutd_http_request_duration_seconds_count{route="/v1/holdouts"} 1`, "holdoutd_build_info{", "go_goroutines", "holdoutd_uploads_in_flight 0",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	if strings.Contains(metrics, `duration_seconds_count{route="/v1/holdouts/:id/queries`) {
		t.Error("the metrics have durations of questions")
	}
	s.stop()
	log := s.log.String()
	for _, secret := range []string{"'ORD'", "origin", "remarkable", s.key, string(reply.Answer.Value), "delay > 15"} {
		if strings.Contains(log, secret) || strings.Contains(metrics, secret) {
			t.Errorf("%q stands in the log or the metrics", secret)
		}
	}
	timed := regexp.MustCompile(`"route":"/v1/holdouts/:id/queries[^}]*"ms":`)
	if line := timed.FindString(log); line != "" {
		t.Errorf("the log has the duration of a question: %s", line)
	}
	if !strings.Contains(log, card.ID) || !strings.Contains(log, `"ms":`) {
		t.Error("the log lacks what an operator needs")
	}
}

// TestNoDurationOfRowsBeingRead: whatever reads held-out rows, or waits for what does, has its duration in no log line and no metric: questions, batches, the final report, a retirement.
func TestNoDurationOfRowsBeingRead(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&questions=30&mechanism=guess_and_check")
	for _, call := range [][2]string{{"/queries", late}, {"/queries/batch", `{"queries":[` + late + `]}`}, {"/report", `{"queries":[` + late + `],"close":true}`}, {"/retire", ""}} {
		if r := s.post(path+call[0], call[1]); r.StatusCode != 200 {
			t.Fatalf("%s: %d %s", call[0], r.StatusCode, r.body)
		}
	}
	metrics := string(s.get("/metrics").body)
	s.stop()
	log := s.log.String()
	for _, route := range []string{"/queries", "/queries/batch", "/report", "/retire"} {
		route = "/v1/holdouts/:id" + route
		if !strings.Contains(log, `"route":"`+route+`"`) || !strings.Contains(metrics, `route="`+route+`",status="200"`) {
			t.Errorf("%s is not in the log and the metrics", route)
		}
		if strings.Contains(metrics, `duration_seconds_count{route="`+route+`"`) || regexp.MustCompile(`"route":"`+regexp.QuoteMeta(route)+`"[^}]*"ms":`).MatchString(log) {
			t.Errorf("%s has a duration", route)
		}
	}
}

func TestMetricsAccess(t *testing.T) {
	admin := start(t, Options{Metrics: MetricsAdmin})
	if r := admin.get("/metrics", "Authorization: "); r.StatusCode != 401 {
		t.Errorf("without key: %d", r.StatusCode)
	}
	_, analyst := admin.newKey("analyst")
	if r := admin.get("/metrics", "Authorization: Bearer "+analyst); r.StatusCode != 403 {
		t.Errorf("as analyst: %d", r.StatusCode)
	}
	if r := admin.get("/metrics"); r.StatusCode != 200 {
		t.Errorf("as admin: %d", r.StatusCode)
	}
	token := strings.Repeat("0123456789abcdef", 3)
	scraper, err := ParseMetricsToken([]byte(token + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for access, want := range map[MetricsAccess]int{MetricsPublic: 200, MetricsAdmin: 401} {
		s := start(t, Options{Metrics: access, Scraper: scraper})
		if r := s.get("/metrics", "Authorization: Bearer "+token); r.StatusCode != 200 || !strings.Contains(string(r.body), "go_goroutines") {
			t.Errorf("%s, with the scraper's token: %d %.200s", access, r.StatusCode, r.body)
		}
		if r := s.get("/metrics", "Authorization: "); r.StatusCode != want || strings.Contains(string(r.body), "go_goroutines") {
			t.Errorf("%s, with no token: %d %.200s", access, r.StatusCode, r.body)
		}
		for _, wrong := range []string{token[1:], token + "0", strings.ToUpper(token)} {
			if r := s.get("/metrics", "Authorization: Bearer "+wrong); r.StatusCode != 401 {
				t.Errorf("%s, with %s: %d", access, wrong, r.StatusCode)
			}
		}
		for _, path := range []string{"/v1/holdouts", "/v1/keys", "/v1/grants"} { // it is no key
			if r := s.get(path, "Authorization: Bearer "+token); r.StatusCode != 401 {
				t.Errorf("%s with the scraper's token: %d", path, r.StatusCode)
			}
		}
		s.stop()
		if strings.Contains(s.log.String(), token) {
			t.Error("the token is in the log")
		}
	}
	for text, want := range map[string]string{
		token[:31]: "at least 32 characters, and this has 31", "": "this has 0", token + " " + token: "one word", token + "\x00": "one word", "hk_" + token: "a key of a server",
	} {
		if got, err := ParseMetricsToken([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if r := start(t, Options{Metrics: MetricsOff}).get("/metrics"); r.StatusCode != 404 {
		t.Errorf("off: %d", r.StatusCode)
	}
}
