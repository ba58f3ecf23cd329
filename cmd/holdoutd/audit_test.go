package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func runAudit(stdin string, args ...string) (string, error) {
	cmd := auditCommand()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

// TestAuditRefutes: settings in a file whose noise says less than their promise end with 1 and say what is refuted; the same settings with their own half-width end with 0. The half-width is made a third, so that
// it is the interval game that has to find it.
func TestAuditRefutes(t *testing.T) {
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 1000, Questions: 100, Sigma: .05})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	figure := filepath.Join(t.TempDir(), "audit.svg")
	said, err := runAudit(`{"guarantee":`+string(text)+`}`, "--guarantee", "-", "--games", "10", "--plot", figure)
	if err != nil || !strings.Contains(said, "No promise is refuted") {
		t.Errorf("sound settings: %v\n%s", err, said)
	}
	if drawn, err := os.ReadFile(figure); err != nil || !bytes.Contains(drawn, []byte("strangers accused")) {
		t.Errorf("the figure: %v", err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	members["half_width"] = g.HalfWidth / 3
	delete(members, "widths") // of broken promises
	delete(members, "tokens")
	narrow, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	said, err = runAudit(string(narrow), "--guarantee", "-", "--games", "10")
	if !errors.Is(err, errRefuted) || exitCode(err) != exitFailed || !strings.Contains(said, "REFUTED") {
		t.Errorf("a third of the half-width: %v\n%s", err, said)
	}
	said, err = runAudit("", "--n", "1000", "--mechanism", "split", "--questions", "5", "--games", "1", "--json")
	if !errors.Is(err, errPowerless) || exitCode(err) != exitFailed || !strings.Contains(said, `"powerless": true`) {
		t.Errorf("one game: %v\n%s", err, said)
	}
}

// TestAuditMisused: a command line that says two things, or none that can be attacked, ends with 2.
func TestAuditMisused(t *testing.T) {
	for _, args := range [][]string{
		{"--questions", "5"}, {"flights", "--n", "100"}, {"flights", "--guarantee", "-"}, {"--guarantee", "-"}, {"--n", "100", "--plot", "x.pdf"}, {"--n", "1000", "--mechanism", "none"}, {"--n", "1000", "--mechanism", "gaussian", "--games", "-1"},
	} {
		if said, err := runAudit("{}", args...); exitCode(err) != exitMisused {
			t.Errorf("%q: %v\n%s", args, err, said)
		}
	}
}

// TestGuaranteeOfCard: what a client reads of a card is the guarantee that the server has, of every mechanism.
func TestGuaranteeOfCard(t *testing.T) {
	for _, spec := range []thresholdout.Spec{
		{Mechanism: thresholdout.Gaussian}, {Mechanism: thresholdout.Gaussian, Rounds: 3}, {Mechanism: thresholdout.Gaussian, Published: true}, {Mechanism: thresholdout.GuessAndCheck}, {Mechanism: thresholdout.Thresholdout},
		{Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormLaplace}, {Mechanism: thresholdout.Split}, {Mechanism: thresholdout.Ladder}, {Mechanism: thresholdout.Naive},
	} {
		spec.N, spec.Training, spec.Questions = 1000, 1000, 50
		g, err := thresholdout.Plan(spec)
		if err != nil {
			t.Fatal(err)
		}
		var read client.Guarantee
		var back thresholdout.Guarantee
		text, err := json.Marshal(g)
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err == nil {
			text, err = json.Marshal(read)
		}
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || !reflect.DeepEqual(g, back) {
			t.Errorf("%+v: %v\n%+v\n%+v", spec, err, g.Own(), back.Own())
		}
	}
}
