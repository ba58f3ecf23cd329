package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// flights writes the table into the station's directory.
func (s *station) flights(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "flights.parquet"), []byte(data.Flights), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestJourney goes from an upload to an exhausted budget with the program alone, found by the connect.json of serve. What is asked for is on
// standard output, what is said beside it on standard error, and each refusal has its code.
func TestJourney(t *testing.T) {
	s := startStation(t, client.Settings{})
	s.flights(t)
	for _, folder := range []string{"lake/_delta_log", "parts"} {
		if err := os.MkdirAll(filepath.Join(s.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(s.dir, "flights.parquet"), filepath.Join(s.dir, "parts", "flights.parquet")); err != nil {
		t.Fatal(err)
	}
	type step struct {
		args string
		code int
		out  string // a regular expression for standard output, whole where it begins with a caret and ends with a dollar
		errs string // and for standard error; empty: nothing there
	}
	for _, c := range []step{
		{"holdouts", 0, `^NAME +UNITS .*\n$`, `no holdout yet`},
		{"budget", 1, `^$`, `no holdout yet; holdoutd upload`},
		{"upload nosuch.parquet", 1, `^$`, `cannot read the table: open nosuch.parquet`},
		{"upload lake", 1, `^$`, `cannot read the table: lake is a Delta table, .*deltalake\.DeltaTable\("lake"\)`},
		{"upload parts --dry-run", 0, `\nunits      30,000 held out, 70,000 to train on; `, `^parts: 1 part files, 100,000 rows\n$`},
		{"upload flights.parquet --questions 0", 2, `^$`, `must not be zero`},
		{"upload flights.parquet --quetsions 5", 2, `^$`, `did you mean --questions\?`},
		{"upload flights.parquet --label delya", 2, `^$`, `did you mean delay\?`},
		{"upload flights.parquet --mechanism gausian", 2, `^$`, `there is no mechanism "gausian"`},
		{"upload flights.parquet --dry-run --name flights --questions 20", 0, `^holdout    flights\nunits      30,000 held out, 70,000 to train on; a unit is row\nguarantee  20 questions at 95% together`, ``},
		{"upload never.json", 1, `^$`, `holdoutd: `},
		{"upload flights.parquet --name flights --questions 20 --idempotency-key one", 0, `(?s)holdout    flights \(ho_.*left       20 of 20 questions.*warning    rows with the same day\(date\) are alike`, ``},
		{"upload flights.parquet --name flights --questions 20 --idempotency-key one", 0, `holdout    flights \(ho_`, ``},
		{"holdouts flights", 0, `columns    date \(time\), delay \(number\)`, ``},
		{"holdouts flihgts", 1, `^$`, `there is no holdout "flihgts"; did you mean flights\?`},
		{"holdouts ho_nosuch", 1, `^$`, `holdoutd: `},
		{"budget", 0, `^METER +LEFT +OF\nquestions +20 +20\ntokens +20 +20\n$`, ``},
		{"history", 0, `^WHEN +WHO +QUESTION +ANSWER +REFERENCE +COST\n$`, ``},
		{"history --last=-1", 2, `^$`, `--last must be more than 0`},
		{"ask fraction 'delay > 15' --explain", 0, `(?s)^price  1 question, at most 1 token\nwidth  ±0\.\d+ planned, ±\d.* at the widest\nvalue  0\.[12]\d* in the part training\nOUTCOME .*close `, ``},
		{"ask fraction 'delay > 15' --note 'first look'", 0, `^0\.[12]\d* \[0\.1\d*, 0\.2\d*\]  at 95% for all 20 questions\ncost 1 question; left 19 of 20 questions, 20 of 20 tokens\n$`, ``},
		{`ask '{"type":"fraction","of":"15 < delay"}'`, 0, `cost nothing: asked before, for 1 question; left 19 of 20`, ``},
		{`ask '{"type":"fraction","of":"15 < delay"}' --note x`, 0, `cost nothing: asked before`, ``},
		{"ask fraction --of 'delay > 15'", 0, `cost nothing: asked before`, ``},
		{"ask fraction 'delay > 15' --explain", 0, `price  nothing: it was answered before`, ``},
		{"ask", 2, `^$`, `ask what\?`},
		{"ask frction x", 2, `^$`, `unknown type "frction"; did you mean fraction\?`},
		{"ask fraction", 2, `^$`, `OF is missing: the condition`},
		{"ask fraction a b", 2, `^$`, `accepts at most 1 arg`},
		{"ask fraction a --of b", 2, `^$`, `OF is given both as an argument and by --of`},
		{"ask mean delay", 2, `^$`, `--range is missing`},
		{"ask mean delay --range=180", 2, `^$`, `--range must be two numbers`},
		{"ask mean delay --range=180,-60", 2, `^$`, `low|less|below`},
		{"ask mean delya --range=-60,180", 2, `^$`, `unknown column "delya"; did you mean delay\?`},
		{"ask mean delay --range=-60,180 --wehre x", 2, `^$`, `did you mean --where\?`},
		{"ask mean delay --range=-60,180 --weight rows", 2, `^$`, `must be`},
		{"ask mean delay --range=-60,180 --max-questions 0", 2, `^$`, `--max-questions must be at least 1`},
		{"ask '{\"type\":'", 2, `^$`, `the question is no JSON`},
		{"ask '{}'", 2, `^$`, `"type" is missing`},
		{"ask '{}' '{}'", 2, `^$`, `is one argument, not 2`},
		{"ask @nosuch.json", 2, `^$`, `cannot be read`},
		{"ask '{}' --partial", 2, `^$`, `--partial is of a batch`},
		{"ask '[]' --note x", 2, `^$`, `--note is of one question`},
		{"ask '{\"type\":\"mean\",\"note\":\"a\"}' --note x", 2, `^$`, `has a note already`},
		{"ask groups delay --by origin --range=-60,180", 6, `^$`, `costs 102 of this holdout's 20 questions.*say --max-questions 102`},
		{"ask groups delay --by origin --range=-60,180 --max-questions 200", 5, `^$`, `budget|questions`},
		{"ask groups delay --by origin --values SFO --values OAK --range=-60,180 --max-questions 5", 0, `(?s)^\d numbers  at 95% for all 20 questions\nOF +VALUE +INTERVAL\nSFO +.*\nOAK `, ``},
		{"ask accuracy 'delay > 15' --model @right.json --threshold 0", 0, `^(1|0\.9)`, `.`},
		{"ask compare '{\"type\":\"mean\",\"of\":\"delay\",\"range\":[-60,180]}' '{\"type\":\"mean\",\"of\":\"delay + 30.0\",\"range\":[-60,180]}' --by 5", 0, `^yes: `, ``},
		{"ask test proportion --of 'delay > 15' --equals 0.9", 0, `p = `, ``},
		{"ask fraction 'delay > 15' --key hk_wrong", 1, `^$`, `the API key is missing, unknown or revoked`},
		{"ask fraction 'delay > 15' --url http://127.0.0.1:1", 2, `^$`, `a key is needed for http://127.0.0.1:1`},
		{"budget --url http://127.0.0.1:1 --key hk_x", 7, `^$`, `no reply from http://127.0.0.1:1: .*refused; is the server running there\?`},
		{"budget --url 127.0.0.1 --key hk_x", 2, `^$`, `is not the URL of a server`},
		{"budget nosuch extra", 2, `^$`, `accepts at most 1 arg`},
		{"budget --holdouts x", 2, `^$`, `unknown flag`},
		{"history --last 1", 0, `(?s)^WHEN .*test .*p = [^\n]*\n$`, ``},
		{"history", 0, `(?s)admin  fraction (delay > 15|15 < delay)  # first look +0\.[12]`, ``},
		{"completion fish", 2, `^$`, `invalid argument`},
	} {
		stdout, stderr, code := s.call(t, nil, shellWords(c.args)...)
		if code != c.code || !regexp.MustCompile(c.out).MatchString(stdout) || !regexp.MustCompile(c.errs).MatchString(stderr) || c.errs == "" && stderr != "" {
			t.Errorf("holdoutd %s: exit code %d, want %d\nstdout: %s\nstderr: %s", c.args, code, c.code, stdout, stderr)
		}
	}
	for i := 0; ; i++ { // to the end of the budget
		_, stderr, code := s.call(t, nil, "ask", "fraction", fmt.Sprintf("delay > %d", 100+i))
		if code == exitDone && i < 20 {
			continue
		}
		if code != exitExhausted || strings.Count(stderr, "\n") != 1 {
			t.Errorf("question %d: exit code %d: %s", i, code, stderr)
		}
		break
	}
	if stdout, stderr, code := s.call(t, nil, "ask", "fraction", "delay > 15"); code != exitDone || !strings.Contains(stdout, "left 0 of 20 questions") {
		t.Errorf("a replay with nothing left: exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestJSON: --json prints what the server has, value for value, and answers byte for byte but for white space.
func TestJSON(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 30})
	query := `{"type":"histogram","of":"delay","edges":[-60,0,15,180]}`
	for _, args := range []string{"ask '" + query + "'", "ask histogram delay --edges=-60,0,15,180"} {
		stdout, stderr, code := s.call(t, nil, append(shellWords(args), "--json", "--max-questions", "10")...)
		var reply client.Reply
		if err := json.Unmarshal([]byte(stdout), &reply); err != nil || code != 0 || stderr != "" && strings.Contains(stderr, "warning: ") == false || len(reply.Answer.Items) == 0 {
			t.Errorf("%s: exit code %d, %v: %s%s", args, code, err, stdout, stderr)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "batch.json"), []byte("[ "+query+",\n {\"type\":\"fraction\",\"of\":\"delay > 15\"} ]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var batch client.BatchReply
	stdout, stderr, code := s.call(t, nil, "ask", "@batch.json", "--json", "--max-questions", "10")
	if err := json.Unmarshal([]byte(stdout), &batch); err != nil || code != 0 || len(batch.Answers) != 2 || !batch.Answers[0].Replayed || batch.Answers[1].Replayed {
		t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if stdout, stderr, code := s.call(t, nil, "ask", "@batch.json", "--max-questions", "10"); code != 0 || !strings.Contains(stdout, "asked before") || !strings.Contains(stdout, "cost 0 questions; left ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	var explained []client.Explanation
	stdout, stderr, code = s.call(t, nil, "ask", "@batch.json", "--explain", "--json", "--max-questions", "10")
	if err := json.Unmarshal([]byte(stdout), &explained); err != nil || code != 0 || len(explained) != 2 || !explained[1].Answered {
		t.Errorf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	cmd := exec.CommandContext(t.Context(), binary, "ask", "-", "--json", "--max-questions", "10")
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, []string{"HOME=" + s.dir}, strings.NewReader(query)
	if out, err := cmd.Output(); err != nil || !bytes.Contains(out, []byte(`"replayed": true`)) {
		t.Errorf("from standard input: %s %v", out, err)
	}
	for args, path := range map[string]string{"holdouts flights": "/v1/holdouts/" + s.card.ID, "budget": "/v1/holdouts/" + s.card.ID + "/budget", "history": "/v1/holdouts/" + s.card.ID + "/answers"} {
		stdout, stderr, code := s.call(t, nil, append(strings.Fields(args), "--json")...)
		curl, err := exec.CommandContext(t.Context(), "curl", "-s", s.url+path, "-H", "Authorization: Bearer "+s.key).Output()
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || stderr != "" {
			t.Fatalf("%s: exit code %d, %v: %s%s", args, code, err, stdout, stderr)
		}
		if err := json.Unmarshal(curl, &want); err != nil {
			t.Fatal(err)
		}
		if args == "history" {
			want = want.(map[string]any)["answers"]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s --json is not what the server has:\n%s\n%s", args, stdout, curl)
		}
	}
}

// TestWhichHoldout: with several of them one is named, by flag or environment; two of one name by their ids.
func TestWhichHoldout(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 30})
	for i, table := range []string{data.Digits, data.BreastCancer} {
		if _, err := s.CreateHoldout(t.Context(), strings.NewReader(table), client.Settings{Name: "twin", Questions: int64(10 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]string{"budget": "2 there are 3 holdouts; say which", "budget twin": "2 2 holdouts are called \"twin\"; name one by its id: ho_", "budget flights": "0 ", "budget " + s.card.ID: "0 "} {
		code, says, _ := strings.Cut(want, " ")
		if _, stderr, got := s.call(t, nil, strings.Fields(args)...); strconv.Itoa(got) != code || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s", args, got, stderr)
		}
	}
	for _, args := range [][]string{{"ask", "fraction", "delay > 15", "--holdout", "flights"}, {"ask", "--holdout=flights", "fraction", "delay > 15"}} {
		if stdout, stderr, code := s.call(t, nil, args...); code != 0 {
			t.Errorf("%v: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
	if stdout, stderr, code := s.call(t, []string{holdoutVariable + "=flights"}, "budget"); code != 0 || !strings.Contains(stdout, "questions  29") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestCompletion asks for words as the shells' scripts do: types, flags' values, holdouts, and columns at the end of an expression. The
// scripts themselves are read by a shell.
func TestCompletion(t *testing.T) {
	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 30})
	for line, want := range map[string]string{
		"ask frac":                         "fraction",
		"budget fl":                        "flights",
		"budget ":                          "flights",
		"ask --holdout ":                   "flights",
		"ask mean de":                      "delay",
		"ask fraction delay>15&&dis":       "delay>15&&distance",
		"ask fraction x --where ori":       "origin",
		"ask test ":                        "two-sample",
		"ask mean delay --weight ":         "unit",
		"gate --metric acc":                "accuracy",
		"gate --label de":                  "delay",
		"ask mean delay --holdout flights": "flights",
		"completion ":                      "zsh",
		"ask mean delay --ran":             "--range",
		"hist":                             "history",
	} {
		words := strings.Split(line, " ")
		stdout, _, code := s.call(t, nil, append([]string{"__complete"}, words...)...)
		if !strings.Contains("\n"+stdout, "\n"+want) || code != 0 {
			t.Errorf("%s: %q, not %s", line, stdout, want)
		}
	}
	bash, _, _ := s.call(t, nil, "completion", "bash")
	if out, err := shell(t, s, "bash", bash); err != nil {
		t.Errorf("bash cannot read its script: %s", out)
	}
	// The script asks the program for words and offers them, with the function that bash-completion has for its parts of a line.
	try := bash + `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
COMP_WORDS=(holdoutd ask mean de); COMP_CWORD=3; COMP_LINE="holdoutd ask mean de"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_holdoutd; printf '%s\n' "${COMPREPLY[@]}"`
	if out, err := shell(t, s, "bash", try); err != nil || !strings.Contains(out, "delay") {
		t.Errorf("bash completes %q (%v)", out, err)
	}
	zsh, _, code := s.call(t, nil, "completion", "zsh")
	if !strings.HasPrefix(zsh, "#compdef holdoutd") || code != 0 {
		t.Errorf("zsh: %.100q", zsh)
	}
	s.kill()
	if stdout, _, code := s.call(t, nil, "__complete", "budget", ""); code != 0 || strings.Contains(stdout, "flights") {
		t.Errorf("without a server: exit code %d: %s", code, stdout)
	}
}

// shell runs a script in the station's directory, where holdoutd is the program.
func shell(t *testing.T, s *station, name, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name)
	cmd.Dir, cmd.Stdin = s.dir, strings.NewReader(script)
	cmd.Env = []string{"HOME=" + s.dir, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestInterrupted: Ctrl-C ends a request that waits, with 130 and a line that says what it means; and a history that is followed, with 0.
func TestInterrupted(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never replies
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	dir := t.TempDir()
	for _, args := range [][]string{{"budget", "ho_1"}, {"ask", "fraction", "delay > 15", "--holdout", "ho_1"}, {"gate", "--holdout", "ho_1", "--baseline", "m.json", "--candidate", "m.json"}} {
		if err := os.WriteFile(filepath.Join(dir, "m.json"), []byte(gateModels["never.json"]), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), binary, append(args, "--url", "http://"+silent.Addr().String(), "--key", "hk_x")...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		connection, err := silent.Accept() // it has asked
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		connection.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || out.Len() > 0 || !strings.Contains(errs.String(), "asking again brings it at no cost") {
			t.Errorf("%v: exit code %d: %s%s", args, code, out.String(), errs.String())
		}
	}

	s := startStation(t, client.Settings{Name: "flights", Holdout: 0.3, Questions: 30})
	cmd := exec.CommandContext(t.Context(), binary, "history", "--follow", "--json")
	cmd.Dir, cmd.Env = s.dir, []string{"HOME=" + s.dir}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ask(t.Context(), s.card.ID, above(15)); err != nil {
		t.Fatal(err)
	}
	var past client.PastAnswer
	if err := json.NewDecoder(out).Decode(&past); err != nil || past.Answer.Value == nil {
		t.Errorf("%+v %v", past, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("followed to Ctrl-C: %v", err)
	}
}

// TestPredictionsThroughTheGate downloads the features, predicts, and asks by the predictions alone, as a pipeline does whose model cannot be
// exported. A download is whole or not there.
func TestPredictionsThroughTheGate(t *testing.T) {
	s := startStation(t, client.Settings{Name: "tumours"}) // flights under another name, with secret features
	if _, stderr, code := s.call(t, nil, "download", "features", "--out", "f.parquet"); code == exitDone || stderr == "" {
		t.Errorf("secret features: exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "f.parquet")); !os.IsNotExist(err) {
		t.Errorf("a file of a refusal: %v", err)
	}
	card, err := s.CreateHoldout(t.Context(), strings.NewReader(data.BreastCancer), client.Settings{Name: "open", Features: "public", Label: "malignant", Holdout: 0.5, Questions: 5, Mechanism: "gaussian"})
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := s.call(t, nil, "download", "features", "open", "-o", "f.parquet"); code != exitDone || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	file, err := os.ReadFile(filepath.Join(s.dir, "f.parquet"))
	if err != nil || !bytes.HasPrefix(file, []byte("PAR1")) || !bytes.HasSuffix(file, []byte("PAR1")) {
		t.Errorf("%d bytes, %v", len(file), err)
	}
	if stdout, _, code := s.call(t, nil, "download", "training", "open"); code != exitDone || !strings.HasPrefix(stdout, "PAR1") {
		t.Errorf("exit code %d, %.10q", code, stdout)
	}
	for name, x := range map[string]float64{"benign.json": 0, "malignant.json": 1} {
		predictions := make([]float64, card.Units.Holdout+card.Units.Check)
		for i := range predictions {
			predictions[i] = x
		}
		text, err := json.Marshal(predictions)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, code := s.call(t, nil, "gate", "--holdout", "open", "--baseline", "malignant.json", "--candidate", "benign.json", "--label", "malignant != 0.0")
	if code != exitDone && code != 3 || !strings.Contains(stdout, "| price | 1 question |") { // of a few hundred rows, three of five are benign
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	for args, code := range map[string]int{"download": 2, "download trainig": 2, "download training nosuch": 1, "download training open --out none/x": 1} {
		if stdout, stderr, got := s.call(t, nil, strings.Fields(args)...); got != code || stdout != "" || stderr == "" {
			t.Errorf("%s: exit code %d, want %d: %s", args, got, code, stderr)
		}
	}
}
