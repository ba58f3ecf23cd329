package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
)

// unrun are the lines of helps and pages that TestLinesRun does not run, by how they begin, each with the reason.
var unrun = map[string]string{
	"holdoutd demo":                      "serves until it is stopped: TestDemo",
	"holdoutd serve":                     "serves until it is stopped: TestServe, TestTLS, TestNonsenseLimits",
	"./holdoutd serve":                   "serves until it is stopped: TestTutorial",
	"holdoutd history flights --follow":  "goes on until it is stopped: TestInterrupted",
	"holdoutd experiment ":               "takes minutes: each experiment has a test of its own, and TestExperimentInterrupted runs the command",
	"holdoutd completion bash > /etc":    "writes outside of the test's directory",
	"holdoutd completion zsh >":          "needs zsh, and writes outside of the test's directory",
	"holdoutd key revoke key_":           "names an id of its own: TestKeysByName",
	"holdoutd key create bot":            "a server on the internet",
	"holdoutd key list --url":            "a server on the internet",
	"make ":                              "TestREADME asks make for it",
	"pip install":                        "TestREADME installs the client",
	"systemctl ":                         "needs systemd",
	"cp -a /var/lib":                     "the server's own directory",
	"curl -s …/v1/holdouts/ho_…/ledger ": "the address is left out; verify's help has it whole, and that is run",
}

// A line of a shell that a help or a page shows.
type shownLine struct{ from, line string }

// shownLines are those of every help, and of the shell blocks of every page.
func shownLines(t *testing.T) (lines []shownLine) {
	everyCommand(rootCommand(), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, shownLine{c.CommandPath(), line})
			}
		}
	})
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md", "../../python/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					lines = append(lines, shownLine{filepath.Base(page), line})
				}
			}
		}
	}
	return lines
}

// TestLinesRun runs the lines that helps and pages show, in a shell beside a real server; what a help shows in the order of the help. It notices one that is
// refused, and a reason not to run one that no line needs any more.
func TestLinesRun(t *testing.T) {
	needed := map[string]bool{}
	var s *station
	of := ""
	for _, shown := range shownLines(t) {
		reason := ""
		for begins := range unrun {
			if strings.HasPrefix(shown.line, begins) && shown.line != "holdoutd experiment list" {
				reason = begins
			}
		}
		if reason != "" {
			needed[reason] = true
			continue
		}
		words := strings.Fields(shown.line)
		if group := strings.Join(strings.Fields(shown.from + " .")[:2], " "); s == nil || group != of { // the commands of a group share a server
			s, of = lineStation(t, group), group
		}
		line := strings.NewReplacer("http://127.0.0.1:8080", s.url, "@DIR/", "@"+defaultData+"/", " DIR ", " "+defaultData+" ").Replace(shown.line)
		if strings.HasPrefix(line, "holdoutd bench") {
			line += " --time 20ms"
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "curl() { command curl --fail-with-body --noproxy '*' \"$@\"; }; set -o pipefail; "+line)
		cmd.Dir = s.dir
		cmd.Env = []string{"HOME=" + s.dir, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "URL=" + s.url, "KEY=" + s.key, "ADMIN=" + s.key, "ID=" + s.card.ID}
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); err != nil && !(words[1] == "gate" && code == 3) { // not shown is a verdict
			t.Errorf("%s: %s: %v\n%.2000s", shown.from, shown.line, err, out)
		}
	}
	for begins, reason := range unrun {
		if !needed[begins] {
			t.Errorf("no line begins with %q, which is not run: %s", begins, reason)
		}
	}
}

// lineStation is a server with what the lines of one group name.
func lineStation(t *testing.T, group string) *station {
	settings := client.Settings{Name: "flights", Label: "delay > 15", Questions: 5000}
	switch group {
	case "holdoutd upload", "SELECTING-MODELS.md .":
		settings = client.Settings{}
	case "holdoutd download", "AGENTS.md .":
		settings.Features = "public"
	}
	s := startStation(t, settings)
	s.flights(t)
	third := func(row int) bool { return row%3 == 0 }
	number := func(row int) float64 { return float64(row * 7919 % 101) }
	delay, distance := numbersColumn("delay", number), numbersColumn("distance", func(row int) float64 { return 10 * number(row+1) })
	several := numbersColumn("customer", func(row int) float64 { return float64(row / 3) })
	unit := several
	unit.Name = "customer_id"
	parquet(t, filepath.Join(s.dir, "patients.parquet"), delay, distance, boolsColumn("diagnosis", third))
	parquet(t, filepath.Join(s.dir, "digits.parquet"), delay, distance)
	parquet(t, filepath.Join(s.dir, "visits.parquet"), unit, delay, boolsColumn("churned", third))
	parquet(t, filepath.Join(s.dir, "churn.parquet"), several, delay, boolsColumn("churned", third))
	parquet(t, filepath.Join(s.dir, "claims.parquet"), delay, boolsColumn("answer", third))
	parquet(t, filepath.Join(s.dir, "a.parquet"), delay, distance)
	parquet(t, filepath.Join(s.dir, "b.parquet"), numbersColumn("delay", func(row int) float64 { return number(row) + 0.5 }), distance)
	for name, text := range map[string]string{
		"model.json":     `{"linear":{"intercept":-1,"weights":{"delay":0.01,"distance":0.001},"link":"logit"}}`,
		"forest.json":    `{"linear":{"intercept":-1,"weights":{"delay":0.01,"distance":0.001},"link":"logit"}}`,
		"a.json":         gateModels["half.json"],
		"b.json":         gateModels["sure.json"],
		"questions.json": `[{"type":"fraction","of":"delay > 15"},{"type":"fraction","of":"delay > 30"}]`,
		"admin.key":      s.key,
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if group == "holdoutd verify" {
		cmd := exec.CommandContext(t.Context(), "curl", "-s", "--fail", "--noproxy", "*", "-o", "flights.ledger", s.url+"/v1/holdouts/"+s.card.ID+"/ledger", "-H", "Authorization: Bearer "+s.key)
		cmd.Dir = s.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	return s
}
