package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// unrun are the lines of helps and pages that TestLinesRun does not run, by how they begin, each with the reason.
var unrun = map[string]string{
	"holdoutd ledger prepare":                   "it needs a database that is not there: TestReplicas prepares one",
	"holdoutd verify /shared/holdoutd --ledger": "it reads a ledger in a database: TestReplicas verifies one",
	"holdoutd bench --clients 1,32,256":         "it needs an empty ledger in a database: TestBench has one",
	"createdb budgets":                          "it needs a PostgreSQL of the machine's own",
	"holdoutd demo":                             "serves until it is stopped: TestDemo",
	"holdoutd serve":                            "serves until it is stopped: TestServe, TestTLS, TestNonsenseLimits",
	"./holdoutd serve":                          "serves until it is stopped: TestTutorial",
	"holdoutd history flights --follow":         "goes on until it is stopped: TestInterrupted",
	"holdoutd experiment ":                      "takes minutes: each experiment has a test of its own, and TestExperimentInterrupted runs the command",
	"holdoutd certify patients.parquet --url":   "needs a predictor of one's own: TestCertifyOverHTTP has one",
	"holdoutd completion bash > /etc":           "writes outside of the test's directory",
	"holdoutd completion zsh >":                 "needs zsh, and writes outside of the test's directory",
	"holdoutd key revoke key_":                  "names an id of its own: TestKeysByName",
	"holdoutd grant create run-7":               "names the id of another grant: TestGrantCommand makes a slice of a slice",
	"holdoutd grant revoke gr_":                 "names an id of its own: TestGrantCommand",
	"holdoutd key create bot":                   "a server on the internet",
	"holdoutd key create ci ":                   "needs a server with an issuer: TestTokensOfAnIssuer",
	"holdoutd key list --url":                   "a server on the internet",
	"holdoutd retire flights-q1":                "names a holdout of its own: TestRetireCommand",
	"holdoutd download retired flights-q1":      "names a holdout of its own: TestRetireCommand",
	"holdoutd upload q2.parquet --name flights": "names the id of another holdout: TestRetireCommand",
	"holdoutd bench soak --time 1h --servers 2": "it needs a ledger in a database: TestSoakShared has one",
	"deploy/secrets.sh":                         "TestDeploymentRuns runs it",
	"docker compose ":                           "needs containers: TestDeploymentRuns runs its command lines without",
	"holdoutd release --epsilon 1 ":             "names columns of its own: TestReleaseCommand",
	"holdoutd release --holdout customers":      "names a holdout of its own: TestReleaseCommand",
	"make ":                                     "TestREADME asks make for it",
	"pip install":                               "TestREADME installs the client",
	"systemctl ":                                "needs systemd",
	"age-keygen ":                               "needs age",
	"holdoutd backup --data /var":               "the server's own directory: TestBackup",
	"holdoutd backup --to ":                     "needs a passphrase or recipients of one's own: TestBackupKeys",
	"holdoutd restore ":                         "needs a backup and what opens it: TestBackup, TestBackupKeys",
	"holdoutd verify --backup":                  "needs a backup and what opens it: TestBackup, TestBackupKeys",
	`curl "$URL/v1/holdouts/$ID/report"`:        "the model is left out: TestReportCommand and the tests of the API send reports",
	"curl -s …/v1/holdouts/ho_…/ledger ":        "the address is left out; verify's help has it whole, and that is run",
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
		group := strings.Join(strings.Fields(shown.from + " .")[:2], " ")
		if shown.from == selects {
			group = selects
		}
		if s == nil || group != of { // the commands of a group share a server
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
		code := cmd.ProcessState.ExitCode()
		said := words[1] == "gate" && (code == 3 || code == 1 && strings.Contains(line, "--explain")) || // not shown is a verdict, and an explanation is none
			words[1] == "audit" && code == 1 && strings.Contains(line, "naive") // which promises nothing, and the attackers win
		if err != nil && !said {
			t.Errorf("%s: %s: %v\n%.2000s", shown.from, shown.line, err, out)
		}
	}
	for begins, reason := range unrun {
		if !needed[begins] {
			t.Errorf("no line begins with %q, which is not run: %s", begins, reason)
		}
	}
}

// labelledFlights are the flights as a Parquet file, with the label late.
var labelledFlights = sync.OnceValues(func() ([]byte, error) {
	flights, err := tables.Rows("flights", data.Flights)
	if err != nil {
		return nil, err
	}
	var columns []dataset.Column
	for i := range flights.Columns() {
		columns = append(columns, *flights.Column(i))
	}
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	delay, _ := flights.Lookup("delay")
	for _, minutes := range delay.Numbers {
		value := uint8(0)
		if minutes > 15 {
			value = 1
		}
		late.Bools = append(late.Bools, value)
	}
	table, err := dataset.FromColumns(append(columns, late)...)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	err = ingest.Export(&file, table)
	return file.Bytes(), err
})

// selects is a command whose example selects at once, which is for mechanisms that do.
const selects = "holdoutd ask argmax"

// lineStation is a server with what the lines of one group name.
func lineStation(t *testing.T, group string) *station {
	s := startStation(t, client.Settings{})
	if group != "holdoutd upload" && group != "holdoutd ." && group != "SELECTING-MODELS.md ." { // which upload flights themselves
		settings := client.Settings{Name: "flights", Label: "late", Questions: 5000}
		if group == "holdoutd download" || group == "AGENTS.md ." {
			settings.Features = "public"
		}
		if group == selects {
			settings.Mechanism = "gaussian"
		}
		table, err := labelledFlights()
		if err != nil {
			t.Fatal(err)
		}
		if s.card, err = s.CreateHoldout(t.Context(), bytes.NewReader(table), settings); err != nil {
			t.Fatal(err)
		}
	}
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
	for _, region := range []string{"region=n", "region=s"} {
		if err := os.MkdirAll(filepath.Join(s.dir, "orders", region), 0o700); err != nil {
			t.Fatal(err)
		}
		parquet(t, filepath.Join(s.dir, "orders", region, "part-0.parquet"), unit, distance)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "lake", "orders", "2026"), 0o700); err != nil {
		t.Fatal(err)
	}
	parquet(t, filepath.Join(s.dir, "lake", "orders", "2026", "part-0.parquet"), unit, numbersColumn("distance", func(row int) float64 { return number(row+3) + 0.25 }))
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
		"report.json":    `[{"type":"fraction","of":"delay > 15","note":"late"}]`,
		"admin.key":      s.key,
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	experiments, err := filepath.Abs("../../experiments")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(experiments, filepath.Join(s.dir, "experiments")); err != nil {
		t.Fatal(err)
	}
	if group == "holdoutd grant" {
		if _, err := s.CreateKey(t.Context(), "reviewer", "granted"); err != nil {
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
