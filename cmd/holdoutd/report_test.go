package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// TestReportCommand: a report is planned without a cost, made with --close alone, saved as a page in a new file, and shown afterwards; what is missing or too much is misuse.
func TestReportCommand(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 30, Mechanism: "guess_and_check"})
	const questions = `[{"type":"fraction","of":"delay > 15","note":"late"},{"type":"mean","of":"delay","range":[-60,180]}]`
	if err := os.WriteFile(filepath.Join(s.dir, "report.json"), []byte(questions), 0o600); err != nil {
		t.Fatal(err)
	}
	s.says(t, []said{
		{"report", 1, nil, []string{"no final report yet"}},
		{"report --close", 2, nil, []string{"report what?"}},
		{"report @report.json --title x", 2, nil, []string{"--title and --html are of a report"}},
		{"report @report.json --html page.html", 2, nil, []string{"--title and --html are of a report"}},
		{"report '[]'", 2, nil, []string{"an empty one"}},
		{"report '{'", 2, nil, []string{"the questions is no JSON"}},
		{"report @nosuch.json", 2, nil, []string{"cannot be read"}},
		{"report '[{\"type\":\"fraction\",\"of\":\"delay > 15\",\"guess\":0.2}]'", 2, nil, []string{"guess", "compares with nothing"}},
		{"report @report.json", 0, []string{"fraction delay > 15", "±0.0", "training", "the 30 questions that are left"}, nil},
		{"budget", 0, []string{"30"}, nil},
		{"report @report.json --close --title Spring --html page.html", 0, []string{"Spring on flights", "late, share of delay > 15: 0.", "mean of delay: ", "sha256:"}, []string{"page.html"}},
		{"report", 0, []string{"Spring on flights", "late, share of delay > 15: 0."}, nil},
		{"report --html page.html", 1, nil, []string{"exists"}},
		{"report '{\"type\":\"fraction\",\"of\":\"delay > 16\"}' --close", 5, nil, []string{"closed by its final report"}},
		{"report '{\"type\":\"fraction\",\"of\":\"delay > 16\"}'", 5, nil, []string{"closed by its final report"}},
		{"ask fraction 'delay > 16'", 5, nil, []string{"closed by its final report"}},
	})
	page, err := os.ReadFile(filepath.Join(s.dir, "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, _ := s.call(t, nil, "report", "--json")
	var r client.FinalReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || len(r.Answers) != 2 || !strings.Contains(string(page), r.Ledger.Head) {
		t.Errorf("%v: %s", err, stdout)
	}
}
