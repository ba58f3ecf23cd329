package holdout

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// rolledBack is a data directory whose ledger was put back after 130 more questions, so that the mark knows of them, with the answers that were kept of each holdout.
func rolledBack(t *testing.T, set Settings) (dir, id string, kept []Evidence) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	id = create(t, s, set, visits(t, 600, 1)).ID
	for i := range 5 {
		kept = append(kept, evidenceIn(ask(t, s, id, mean(i)).Body)...)
	}
	must(t, s.Close())
	putBack := copyLedger(t, dir)
	s = open(t, dir)
	for i := range 3 {
		kept = append(kept, evidenceIn(ask(t, s, id, mean(100+i)).Body)...)
	}
	must(t, s.Close()) // writes the mark
	putBack()
	return dir, id, kept
}

// TestRolledBackIsAccepted: what was asked since is debited, once and for good, and at least as much as is known to be missing. It notices a holdout that goes on with the budget that it had.
func TestRolledBackIsAccepted(t *testing.T) {
	dir, id, kept := rolledBack(t, Settings{Mechanism: "gaussian", Questions: 60})
	for what, a := range map[string]Acceptance{
		"nothing said":       {},
		"nothing asked":      {Nothing: true},
		"less than is known": {Spent: thresholdout.Amounts{Questions: 2}},
		"two things":         {Nothing: true, Spent: thresholdout.Amounts{Questions: 10}},
		"more than is left":  {Spent: thresholdout.Amounts{Questions: 56}},
		"rounds of none":     {Spent: thresholdout.Amounts{Questions: 4, Rounds: 1}},
	} {
		if out, err := Accept(t.Context(), dir, id, a); err == nil {
			t.Errorf("%s was accepted: %+v", what, out)
		}
	}
	s := open(t, dir)
	if card, err := s.Card(t.Context(), analyst, id); err != nil || card.State != StateRolledBack {
		t.Errorf("a refused acceptance left the state %q (%v)", card.State, err)
	}
	must(t, s.Close())
	out, err := Accept(t.Context(), dir, id, Acceptance{Spent: thresholdout.Amounts{Questions: 7}, Kept: kept})
	if err != nil || out.Lost != 3 || out.Debited.Questions != 7 || out.Left != 48 || out.Name != "visits" || out.Seq != 5 {
		t.Fatalf("accepted: %+v, %v", out, err)
	}
	if _, err := Accept(t.Context(), dir, id, Acceptance{Spent: thresholdout.Amounts{Questions: 7}}); err == nil || !strings.Contains(err.Error(), "nothing to accept") {
		t.Errorf("accepted again: %v", err)
	}
	s = open(t, dir)
	a := ask(t, s, id, mean(200))
	if spent, _ := spentOf(t, s, id); spent != 13 || read(t, a.Body).Ledger.Seq != 7 {
		t.Errorf("%d questions spent, the answer is %s", spent, a.Body)
	}
	must(t, s.Close())
	if _, err := Verify(t.Context(), dir, true); err != nil {
		t.Error(err)
	}
	// The answers that were lost are of another history now.
	places := newPlaces(t, dir)
	for i, e := range kept {
		err := e.Compare(t.Context(), places)
		var lost *LostError
		if fork := i == 5 || i == 6; i < 5 && err != nil || i >= 5 && (!errors.As(err, &lost) || fork != (lost.Head != "")) {
			t.Errorf("kept answer %d: %v", i, err)
		}
	}
}

// newPlaces are those of a data directory's ledger.
func newPlaces(t *testing.T, dir string) Places {
	t.Helper()
	p, err := DirectoryPlaces(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

// TestRolledBackIsRetired: a holdout whose loss nobody can count is ended; its recorded answers replay.
func TestRolledBackIsRetired(t *testing.T) {
	dir, id, kept := rolledBack(t, Settings{Mechanism: "guess_and_check", Questions: 60, Tokens: 20})
	_, err := Accept(t.Context(), dir, id, Acceptance{Spent: thresholdout.Amounts{Questions: 3, Tokens: 2}})
	if !errors.Is(err, thresholdout.ErrUnseen) {
		t.Errorf("tokens of guess_and_check: %v", err)
	}
	out, err := Accept(t.Context(), dir, id, Acceptance{Retire: true})
	if err != nil || !out.Retired || out.Left != 0 {
		t.Fatalf("retired: %+v, %v", out, err)
	}
	s := open(t, dir)
	if a := ask(t, s, id, mean(0)); !a.Replayed || !bytes.Equal(a.Body, kept[0].Body) {
		t.Errorf("a recorded answer: %s", a.Body)
	}
	if _, err := s.Ask(t.Context(), analyst, id, []byte(mean(500)), ""); err == nil {
		t.Error("a retired holdout was asked")
	}
	must(t, s.Close())
}

// TestEvidence finds answers in what people keep, and sees what a ledger has otherwise.
func TestEvidence(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Mechanism: "gaussian", Questions: 60}, visits(t, 600, 1)).ID
	var bodies []string
	for i := range 3 {
		bodies = append(bodies, string(ask(t, s, id, mean(i)).Body))
	}
	must(t, s.Close())
	text := bodies[0] + "\n" + `{"answers":[{"answer":` + bodies[1] + `,"replayed":false}],"budget":{}}` + "\n[" + bodies[2] + "]"
	found, err := ReadEvidence(strings.NewReader(text))
	if err != nil || len(found) != 3 {
		t.Fatalf("%d answers (%v)", len(found), err)
	}
	places := newPlaces(t, dir)
	for i, e := range found {
		if e.Holdout != id || e.Seq != int64(i+1) || e.Compare(t.Context(), places) != nil {
			t.Errorf("%+v: %v", e, e.Compare(t.Context(), places))
		}
		for what, change := range map[string]func(e *Evidence){
			"another head":    func(e *Evidence) { e.Head = found[(i+1)%3].Head },
			"a later place":   func(e *Evidence) { e.Seq = 4 },
			"no such holdout": func(e *Evidence) { e.Holdout = "ho_none" },
			"a changed value": func(e *Evidence) { e.Body = bytes.Replace(e.Body, []byte(`"value":`), []byte(`"value":1`), 1) },
		} {
			changed := e
			change(&changed)
			if changed.Compare(t.Context(), places) == nil {
				t.Errorf("%s was not noticed", what)
			}
		}
		spaced := e
		spaced.Body = bytes.ReplaceAll(e.Body, []byte(`,"`), []byte(",\n \""))
		if err := spaced.Compare(t.Context(), places); err != nil {
			t.Errorf("with spaces: %v", err)
		}
	}
	for _, text := range []string{"", "{}", "[1,2", `{"ledger":{"seq":1}}`, "x"} {
		if found, err := ReadEvidence(strings.NewReader(text)); err == nil {
			t.Errorf("%q has answers: %+v", text, found)
		}
	}
}

// TestGrantsPayForWhatWasLost: what was lost may have been paid by any grant, so that it is debited from what is not granted, or with the grants ended. It notices a charge that lets grants and the
// holdout's own budget pay for the same twice.
func TestGrantsPayForWhatWasLost(t *testing.T) {
	dir, id, _ := rolledBack(t, Settings{Mechanism: "gaussian", Questions: 60})
	secret, err := readServerSecret(filepath.Join(dir, serverKeyFile))
	must(t, err)
	l, err := sqlite.Open(t.Context(), filepath.Join(dir, ledgerFile), ledger.Options{Key: secret.derive("ledger")})
	must(t, err)
	must(t, l.Update(t.Context(), id, func(tx *ledger.Tx) error {
		limits := ledger.Meters{}
		for name := range tx.Limits() {
			limits[name] = 0
		}
		limits["questions"] = 50
		return tx.MakeGrant(ledger.Grant{ID: "grant_1", Holder: "key_ana", Shows: "full", Limits: limits})
	}))
	must(t, l.Close())
	a := Acceptance{Spent: thresholdout.Amounts{Questions: 7}}
	if _, err := Accept(t.Context(), dir, id, a); !errors.Is(err, ledger.ErrBudget) || !strings.Contains(err.Error(), "--end-grants") {
		t.Errorf("accepted from what is granted: %v", err)
	}
	a.EndGrants = true
	out, err := Accept(t.Context(), dir, id, a)
	if err != nil || out.Debited.Questions != 7 || out.Left != 48 {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := Verify(t.Context(), dir, false); err != nil {
		t.Error(err)
	}
}
