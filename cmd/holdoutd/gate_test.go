package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/internal/gate"
)

// Models of whether a flight comes late, of which the truth is known: one that says never, which is right for four flights of five; one that
// looks at the delay itself, which is always right; one that says the opposite, which never is; and one that differs from never in one
// flight of thousands.
var gateModels = map[string]string{
	"never.json":    `{"linear":{"intercept":-1,"weights":{"distance":0}}}`,
	"right.json":    `{"linear":{"intercept":-15,"weights":{"delay":1}}}`,
	"opposite.json": `{"linear":{"intercept":15.5,"weights":{"delay":-1}}}`,
	"nearly.json":   `{"linear":{"intercept":-4500,"weights":{"distance":1}}}`,
	"sure.json":     `{"linear":{"intercept":-155,"weights":{"delay":10},"link":"logit"}}`,
	"half.json":     `{"linear":{"weights":{"distance":0},"link":"logit"}}`,
}

// A station is a real server with a holdout of flights, and a directory from which it is found.
type station struct {
	*process
	dir string // with the data in holdoutd-data
	key string
	*client.Client
	card client.Card
}

func startStation(t *testing.T, settings client.Settings) *station {
	t.Helper()
	dir := t.TempDir()
	lake := filepath.Join(dir, "lake")
	if err := os.Mkdir(lake, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &station{dir: dir, process: startServer(t, filepath.Join(dir, defaultData), "--source", "lake=file://"+lake)}
	s.Client = connect(t, s.process, filepath.Join(dir, defaultData))
	key, err := os.ReadFile(filepath.Join(dir, defaultData, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(key))
	if settings.Name != "" {
		if s.card, err = s.CreateHoldout(t.Context(), strings.NewReader(data.Flights), settings); err != nil {
			t.Fatal(err)
		}
	}
	for name, model := range gateModels {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(model), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// call runs the program in the station's directory, without what the tests' own environment says.
func (s *station) call(t *testing.T, environment []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}, environment...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	for _, text := range []string{out.String(), errs.String()} {
		if strings.ContainsAny(text, "\r\x1b") && !strings.HasPrefix(text, "PAR1") { // a table has all bytes
			t.Errorf("holdoutd %s: a pipe gets what moves a terminal: %q", strings.Join(args, " "), text)
		}
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// said is what a command says: on its standard output, and beside it.
type said struct {
	args      string
	code      int
	out, errs []string
}

// says runs commands, and compares what they say.
func (s *station) says(t *testing.T, all []said) {
	t.Helper()
	for _, c := range all {
		stdout, stderr, code := s.call(t, nil, shellWords(c.args)...)
		if code != c.code {
			t.Errorf("holdoutd %s: exit code %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		for _, words := range c.out {
			if !strings.Contains(stdout, words) {
				t.Errorf("holdoutd %s does not say %q:\n%s", c.args, words, stdout)
			}
		}
		for _, words := range c.errs {
			if !strings.Contains(stderr, words) {
				t.Errorf("holdoutd %s does not say %q beside:\n%s", c.args, words, stderr)
			}
		}
	}
}

func (s *station) left(t *testing.T) int64 {
	t.Helper()
	b, err := s.Budget(t.Context(), s.card.ID)
	if err != nil {
		t.Fatal(err)
	}
	return b.Questions.Left
}

// TestGate goes from real models through the real server to the exit code, under two mechanisms. It notices a gate that lets a pipeline go on
// with a model that is not shown to be better, and one that spends a question when it runs again.
func TestGate(t *testing.T) {
	for _, mechanism := range []string{"guess_and_check", "gaussian"} {
		s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 100, Mechanism: mechanism})
		for _, c := range []struct {
			args string
			code int
			says string
		}{
			{"--baseline never.json --candidate right.json --by 0.01", 0, "better than the baseline by more than 0.01 in accuracy"},
			{"--baseline never.json --candidate right.json --by 0.9", 3, "It is better, but by less"},
			{"--baseline never.json --candidate never.json", 3, "not shown"},
			{"--baseline never.json --candidate nearly.json --by 0.01", 3, "not shown"},
			{"--baseline right.json --candidate never.json", 4, "worse than the baseline in accuracy"},
			{"--baseline never.json --candidate opposite.json --by 0.01", 4, "worse than the baseline"},
			{"--baseline half.json --candidate sure.json --metric log_loss --clip 0.05", 0, "better than the baseline in log_loss"},
			{"--baseline sure.json --candidate half.json --metric brier", 4, "worse than the baseline in brier"},
		} {
			args := append([]string{"gate", "--label", "delay > 15"}, strings.Fields(c.args)...)
			if !strings.Contains(c.args, "metric") {
				args = append(args, "--threshold", "0")
			}
			stdout, stderr, code := s.call(t, nil, args...)
			if code != c.code || !strings.Contains(stdout, c.says) || (code != 0) != (stderr != "") || !strings.Contains(stdout, "| price | 1 question") || !strings.Contains(stdout, " of 100 questions") {
				t.Errorf("%s: %s: exit code %d, want %d\n%s%s", mechanism, c.args, code, c.code, stdout, stderr)
			}
			left := s.left(t)
			again, _, code := s.call(t, nil, args...)
			if code != c.code || s.left(t) != left || !strings.Contains(again, "| price | nothing: asked before") {
				t.Errorf("%s: %s again: exit code %d, %d of %d left\n%s", mechanism, c.args, code, s.left(t), left, again)
			}
			var found struct {
				Verdict gate.Verdict
				Reply   client.Reply
			}
			asJSON, _, code := s.call(t, nil, append(args, "--json")...)
			if err := json.Unmarshal([]byte(asJSON), &found); err != nil || code != c.code || found.Verdict.ExitCode() != code || !found.Reply.Replayed {
				t.Errorf("%s: %s --json: exit code %d, %v\n%s", mechanism, c.args, code, err, asJSON)
			}
		}
	}
}

// TestGateSummaries: the summary is on standard output, in its file, and added to GitHub's page; what cannot be written fails before
// anything is spent, and never ends with 0.
func TestGateSummaries(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 100, Label: "delay"})
	args := []string{"gate", "--baseline", "never.json", "--candidate", "right.json", "--threshold", "0", "--label", "delay > 15"}
	page := filepath.Join(s.dir, "page.md")
	for name, text := range map[string]string{"page.md": "before\n", "gate.md": strings.Repeat("old ", 1000)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, environment := range map[string][]string{"": {summaryVariable + "=" + filepath.Join(s.dir, "none", "page.md")}, "none/gate.md": nil} {
		stdout, stderr, code := s.call(t, environment, append(args, "--summary", name)...)
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, "cannot be written") || s.left(t) != 100 {
			t.Errorf("%q: exit code %d, %d left: %s%s", name, code, s.left(t), stdout, stderr)
		}
	}
	stdout, stderr, code := s.call(t, nil, append(args, "--explain")...)
	if code != exitFailed || !strings.Contains(stdout, "price  1 question") || !strings.Contains(stderr, "no verdict") || s.left(t) != 100 {
		t.Errorf("--explain: exit code %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = s.call(t, []string{summaryVariable + "=" + page}, append(args, "--summary", "gate.md")...)
	whole, err := os.ReadFile(filepath.Join(s.dir, "gate.md"))
	added, err2 := os.ReadFile(page)
	if code != 0 || err != nil || err2 != nil || string(whole) != stdout+"\n" || string(added) != "before\n"+stdout+"\n" || !strings.HasPrefix(stdout, "### Holdout gate: passed\n") {
		t.Errorf("exit code %d: %s%s\nfile: %s\npage: %s", code, stdout, stderr, whole, added)
	}
	if !strings.Contains(stdout, "the candidate reads delay, which the truth is made of") {
		t.Errorf("a model that reads the truth, and not a word of it: %s", stdout)
	}
	full := exec.CommandContext(t.Context(), binary, args...)
	full.Dir, full.Env = s.dir, []string{"HOME=" + s.dir}
	if full.Stdout, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	if err := full.Run(); full.ProcessState.ExitCode() != exitFailed {
		t.Errorf("on a full disk: %v", err)
	}
}

// TestGateWithoutAVerdict: whatever keeps a gate from a verdict ends with a code of its own, and never with one that lets a pipeline go on.
func TestGateWithoutAVerdict(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 3, Mechanism: "gaussian"})
	for name, text := range map[string]string{"list.json": `[1,0,1]`, "none.json": `{"weights":{}}`, "broken.json": `{"linear":`, "column.json": `{"linear":{"weights":{"delya":1}}}`} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	label := []string{"--label", "delay > 15"}
	both := []string{"--baseline", "never.json", "--candidate", "right.json"}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitMisused, "name both models"},
		{[]string{"--baseline", "never.json"}, exitMisused, "name both models"},
		{append([]string{"now"}, both...), exitMisused, "unknown command"},
		{append(both, "--metric", "acuracy"), exitMisused, "did you mean accuracy?"},
		{append(both, "--metric", "f1"), exitMisused, "not the mean of something in each row"},
		{append(both, "--candidat", "x"), exitMisused, "did you mean --candidate?"},
		{append(both, "--by", "-0.1"), exitMisused, "a number from 0 on"},
		{append(both, "--by", "NaN"), exitMisused, "a number from 0 on"},
		{append(both, "--edges", "1,2"), exitMisused, "accuracy has no edges"},
		{append(both, "--max-questions", "0"), exitMisused, "at least 1"},
		{append(both, "--holdout", "flihgts"), exitFailed, "did you mean flights?"},
		{[]string{"--baseline", "never.json", "--candidate", "nosuch.json"}, exitMisused, "nosuch.json cannot be read"},
		{[]string{"--baseline", "never.json", "--candidate", "broken.json"}, exitMisused, "is no JSON"},
		{[]string{"--baseline", "never.json", "--candidate", "none.json"}, exitMisused, "neither a model"},
		{append([]string{"--baseline", "never.json", "--candidate", "column.json"}, label...), exitMisused, "did you mean delay?"},
		{append([]string{"--baseline", "never.json", "--candidate", "list.json"}, label...), exitMisused, "features=public"},
		{append(both, "--label", "delya > 15"), exitMisused, "delya"},
		{append(append(both, label...), "--key", "hk_wrong"), exitFailed, "the API key is missing, unknown or revoked"},
	} {
		stdout, stderr, code := s.call(t, nil, append([]string{"gate"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("gate %v: exit code %d, want %d: %s%s", c.args, code, c.code, stdout, stderr)
		}
	}
	if s.left(t) != 3 {
		t.Errorf("refusals were paid: %d left", s.left(t))
	}
	passing := append(append([]string{"gate", "--threshold", "0"}, both...), label...)
	for i, by := range []string{"0.01", "0.02", "0.03", "0.04"} {
		_, stderr, code := s.call(t, nil, append(passing, "--by", by)...)
		if want := map[bool]int{true: exitExhausted, false: exitDone}[i == 3]; code != want {
			t.Errorf("question %d of 3: exit code %d: %s", i+1, code, stderr)
		}
	}
	if _, stderr, code := s.call(t, nil, append(passing, "--by", "0.01")...); code != exitDone {
		t.Errorf("a recorded verdict, with nothing left: exit code %d: %s", code, stderr)
	}
	s.kill()
	if stdout, stderr, code := s.call(t, nil, append(passing, "--by", "0.01")...); code != exitUnavailable || stdout != "" || !strings.Contains(stderr, "no reply from http://127.0.0.1:") {
		t.Errorf("without a server: exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestGateBesideAnotherServer: replies that are not an answer with a verdict of its own never pass.
func TestGateBesideAnotherServer(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"never.json", "right.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(gateModels[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const card = `{"id":"ho_1","name":"flights","units":{"training":1,"holdout":1}}`
	for body, want := range map[string]int{
		`{}`:                                     exitFailed,
		`null`:                                   exitFailed,
		`<html>sign in</html>`:                   exitFailed,
		``:                                       exitFailed,
		`{"answer":{"value":1}}`:                 exitFailed,
		`{"answer":{"value":1,"verdict":"yes"}}`: exitFailed,
		`{"answer":{"value":1,"verdict":"yes","interval":{"low":0.5}}}`:                                            exitFailed,
		`{"answer":{"value":1,"verdict":"yes","interval":{"low":-0.5,"high":1}}}`:                                  exitFailed,
		`{"answer":{"value":1,"verdict":"yes","interval":{"low":0.005,"high":1}}}`:                                 exitFailed, // not by 0.01
		`{"answer":{"holdout":"ho_2","value":1,"verdict":"yes","interval":{"low":0.02,"high":1}}}`:                 exitFailed, // another holdout's
		`{"answer":{"value":1,"verdict":"yes","interval":{"low":0.02,"high":1}}}`:                                  exitFailed,
		`{"answer":{"holdout":"ho_1","value":1,"verdict":"yes","interval":{"low":0.02,"high":1}}`:                  exitFailed, // cut off
		`{"answer":{"holdout":"ho_1","value":null,"verdict":"undecided","interval":null}}`:                         gate.ExitNotShown,
		`{"answer":{"holdout":"ho_1","value":1,"verdict":"undecided","interval":{"low":0.005,"high":1}}}`:          gate.ExitNotShown,
		`{"answer":{"holdout":"ho_1","value":-1,"verdict":"no","interval":{"low":-1,"high":-0.1,"confidence":1}}}`: gate.ExitWorse,
		`{"answer":{"holdout":"ho_1","value":1,"verdict":"yes","interval":{"low":0.02,"high":1,"confidence":1}}}`:  gate.ExitPassed,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				fmt.Fprint(w, card)
				return
			}
			fmt.Fprint(w, body)
		}))
		cmd := exec.CommandContext(t.Context(), binary, "gate", "--url", server.URL, "--key", "hk_x", "--holdout", "ho_1", "--by", "0.01", "--baseline", "never.json", "--candidate", "right.json")
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%s: exit code %d, want %d (%v)\n%s", body, code, want, err, out)
		}
		server.Close()
	}
}
