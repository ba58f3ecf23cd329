package api

import (
	"bytes"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestFinalReport: over HTTP a report is planned at no cost, refused where it does not say that it closes, made by an admin alone, and then the same bytes as JSON, whose text and page name every
// number and the ledger's head. A name that somebody gave is text on the page.
func TestFinalReport(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=<b>flights</b>&mechanism=guess_and_check&questions=50&tokens=5")
	_, secret := s.newKey("analyst")
	analyst := "Authorization: Bearer " + secret
	const queries = `[{"type":"fraction","of":"delay > 15","note":"<script>late</script>"},{"type":"mean","of":"delay","range":[-60,180]},{"type":"groups","of":"delay > 15","by":"origin","values":["SFO","OAK"]}]`
	if r := s.post(path+"/queries", `{"type":"fraction","of":"delay > 30"}`, analyst); r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for _, get := range []string{"/report", "/report.html"} {
		if r := s.get(path + get); r.StatusCode != 404 {
			t.Errorf("%s before the report: %d %s", get, r.StatusCode, r.body)
		}
	}
	var plan holdout.ReportPlan
	r := s.post(path+"/report/plan", `{"queries":`+queries+`}`, analyst)
	if r.decode(t, &plan); r.StatusCode != 200 || len(plan.Answers) != 3 || plan.Closes != 49 || plan.Answers[0].HalfWidth == nil {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for _, c := range []struct {
		body    string
		headers []string
		status  int
		pointer string
	}{
		{`{"queries":` + queries + `}`, nil, 422, "/close"},
		{`{"queries":` + queries + `,"close":false}`, nil, 422, "/close"},
		{`{"queries":` + queries + `,"close":true,"title":7}`, nil, 422, "/title"},
		{`{"queries":[],"close":true}`, nil, 422, "/queries"},
		{`{"close":true}`, nil, 422, ""},
		{`{"queries":[{"type":"fraction","of":"delay > 15","guess":0.5}],"close":true}`, nil, 422, "/queries/0/guess"},
		{`{"queries":` + queries + `,"close":true}`, []string{analyst}, 403, ""},
	} {
		r := s.post(path+"/report", c.body, c.headers...)
		if p := r.problem(t); r.StatusCode != c.status || c.pointer != "" && (len(p.Errors) == 0 || p.Errors[0].Pointer != c.pointer) {
			t.Errorf("%s: %d %s", c.body, r.StatusCode, r.body)
		}
	}
	made := s.post(path+"/report", `{"queries":`+queries+`,"title":"Flights & delays","close":true}`)
	if made.StatusCode != 200 {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	again, read := s.post(path+"/report", `{"queries":`+queries+`,"close":true}`), s.get(path+"/report", analyst)
	if !bytes.Equal(made.body, again.body) || !bytes.Equal(made.body, read.body) {
		t.Errorf("the report is\n%s, made again\n%s, read\n%s", made.body, again.body, read.body)
	}
	var report FinalReport
	made.decode(t, &report)
	if len(report.Answers) != 3 || report.Ledger.Seq != 5 || report.Title != "Flights & delays" {
		t.Fatalf("%+v", report)
	}
	history := s.history(t, path, 10)
	for i, a := range history[1:] {
		var raw struct {
			Answers []struct{ Answer json.RawMessage }
		}
		made.decode(t, &raw)
		if !bytes.Equal(a.Answer, raw.Answers[i].Answer) {
			t.Errorf("answer %d of the report is %s, in the history %s", i, raw.Answers[i].Answer, a.Answer)
		}
	}
	page := s.get(path+"/report.html", analyst)
	if page.StatusCode != 200 || page.Header.Get("Content-Type") != htmlType || page.Header.Get("Content-Security-Policy") != reportPolicy {
		t.Errorf("the page: %d %v", page.StatusCode, page.Header)
	}
	for _, words := range []string{report.Ledger.Head, "share of delay", "SFO", "Flights"} {
		if !strings.Contains(report.Text, words) || !bytes.Contains(page.body, []byte(words)) {
			t.Errorf("%q is not in the text or on the page", words)
		}
	}
	var card holdout.Card
	s.get(path).decode(t, &card)
	warned := 0
	for _, w := range card.Warnings {
		if w.Code == "dependent-rows" {
			warned++
			if !strings.Contains(report.Text, strings.TrimSuffix(w.Detail, ".")) || !bytes.Contains(page.body, []byte(html.EscapeString(w.Detail))) {
				t.Errorf("the report does not warn: %s", w.Detail)
			}
		}
	}
	if warned == 0 || len(report.Warnings) != warned {
		t.Errorf("the card warns of %d groups of rows, the report of %d", warned, len(report.Warnings))
	}
	for _, name := range []string{"<script>late", "<b>flights"} {
		if bytes.Contains(page.body, []byte(name)) || !bytes.Contains(page.body, []byte(html.EscapeString(name))) {
			t.Errorf("%q is no text on the page", name)
		}
	}
	if dir := os.Getenv("HOLDOUTD_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "report.html"), page.body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = s.post(path+"/queries", `{"type":"fraction","of":"delay > 45"}`)
	if p := r.problem(t); r.StatusCode != 403 || !strings.Contains(p.Detail, "final report") {
		t.Errorf("a question after the report: %d %s", r.StatusCode, r.body)
	}
}

// TestOutward: what a report prints of an interval holds it.
func TestOutward(t *testing.T) {
	value, low, high := 0.8514, 0.83049, 0.8721
	if l := (reportLine{}).of(&value, &low, &high); l.Value != "0.851" || l.Low != "0.830" || l.High != "0.873" {
		t.Errorf("%s [%s, %s]", l.Value, l.Low, l.High)
	}
}

// TestReportTarget: a report says how rows vote only where one of its numbers is of rows.
func TestReportTarget(t *testing.T) {
	target := `the population, independently of each other; each unit has one vote, or with "weight":"row" each row, a unit of more than 5 having 5`
	of := func(per ...string) holdout.FinalReport {
		r := holdout.FinalReport{}
		r.Target = target
		for _, p := range per {
			r.Answers = append(r.Answers, holdout.ReportAnswer{Per: p})
		}
		return r
	}
	if got := targetOf(of("customer", "")); got != "the population, independently of each other; each unit has one vote in these" {
		t.Errorf("of units: %s", got)
	}
	if got := targetOf(of("customer", "row")); got != target {
		t.Errorf("of rows: %s", got)
	}
	single := of("")
	single.Target = "the population, independently of each other."
	if got := targetOf(single); got != "the population, independently of each other" {
		t.Errorf("where units are rows: %s", got)
	}
}
