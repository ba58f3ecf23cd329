package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/attacks"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func runAudit(in string, args ...string) (string, error) {
	cmd := auditCommand()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append(args, "--minutes", "0.001"))
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

// TestAuditHolds: settings that keep what they promise end with 0, and the page says what each attacker got, in words and in a figure.
func TestAuditHolds(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "audit.svg")
	text, err := runAudit("", "--n", "100", "--questions", "12", "--mechanism", "gaussian", "--plot", svg)
	for _, part := range []string{"Attacks on gaussian: 12 questions", "single-adaptive, knows the noise", "0.0500", "knows all other rows", "RECONSTRUCTION of a secret column from 11 answers", "No attacker broke what is promised", "Seed 1."} {
		if err != nil || !strings.Contains(text, part) {
			t.Errorf("no %q in %v %s", part, err, text)
		}
	}
	drawn, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Intervals of gaussian", "Who is in the holdout", "the noise allows", "in half-widths of its interval"} {
		if !bytes.Contains(drawn, []byte(part)) {
			t.Errorf("no %q in the figure", part)
		}
	}
}

// TestAuditFails: where nothing is protected the attackers win, and the exit code says so.
func TestAuditFails(t *testing.T) {
	text, err := runAudit("", "--n", "100", "--questions", "60", "--mechanism", "naive", "--json")
	var r attacks.Report
	if json.Unmarshal([]byte(text), &r) != nil || r.Verdict != attacks.Unprotected || err == nil || exitCode(err) != exitFailed {
		t.Errorf("%v: %s", err, text)
	}
	text, err = runAudit("", "--n", "100", "--questions", "60", "--mechanism", "naive")
	if err == nil || !strings.Contains(text, "nothing promised") || !strings.Contains(text, "naive promises nothing. The strongest against the intervals") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestAuditOfACard: the guarantee of a card is attacked as it is stored, from a file or from standard input, and no other flag says what it is.
func TestAuditOfACard(t *testing.T) {
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Split, N: 90, Questions: 9})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "card.json")
	if err := os.WriteFile(file, stored, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, file string }{{`{"name":"x","guarantee":` + string(stored) + `}`, "-"}, {"", file}} {
		if text, err := runAudit(c.in, "--guarantee", c.file); err != nil || !strings.Contains(text, "Attacks on split: 9 questions about a holdout of 90 units") {
			t.Errorf("%s: %v: %s", c.file, err, text)
		}
	}
}

func TestAuditFlags(t *testing.T) {
	for _, c := range []struct {
		in   string
		args []string
		says string
	}{
		{"", []string{"--n", "100", "--mechanism", "cells"}, "--mechanism: the attackers ask about columns of their own"},
		{"", nil, "--n 10000"},
		{"", []string{"--n", "1"}, "--n: "},
		{"", []string{"--n", "100", "--mechanism", "gausian"}, "--mechanism: "},
		{"", []string{"--n", "100", "--mechanism", "guess_and_check"}, "--mechanism: "},
		{"", []string{"--n", "100", "--bounds", "none"}, "--bounds: "},
		{"", []string{"--n", "100", "--plot", "p.pdf"}, "neither an .svg nor a .png"},
		{"{}", []string{"--guarantee", "-", "--n", "100"}, "leave --n out"},
		{"{}", []string{"--guarantee", "-"}, "--guarantee: "},
		{"no", []string{"--guarantee", "-"}, "no card in JSON"},
		{"", []string{"--guarantee", "/nowhere/card.json"}, "--guarantee: "},
	} {
		if _, err := runAudit(c.in, c.args...); err == nil || !strings.Contains(err.Error(), c.says) || exitCode(err) != exitMisused {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}
