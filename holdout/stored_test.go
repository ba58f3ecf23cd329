package holdout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestUnknownVersions: each stored text of a version to come is refused by its reader, and the error says which version, which is known, and
// what to do. It would notice a reader that takes what it does not understand for what it knows.
func TestUnknownVersions(t *testing.T) {
	guarantee, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 1000})
	must(t, err)
	card, err := writeCard(Card{ID: "ho_1", Guarantee: guarantee})
	must(t, err)
	h := &opened{id: "ho_1", guarantee: guarantee}
	state, err := json.Marshal(thresholdout.State{Questions: 3})
	must(t, err)
	secret, err := json.Marshal(secrets{Version: secretsVersion})
	must(t, err)
	checked, err := writeCard(Card{ID: "ho_1", Guarantee: guarantee, Units: Counts{Training: 2, Check: 1, Holdout: 3}})
	must(t, err)
	readers := map[string]struct {
		text  []byte
		read  func(text []byte) error
		known int64
	}{
		"card":  {card, func(text []byte) error { _, err := readCard(text); return err }, cardVersion},
		"state": {state, func(text []byte) error { _, err := h.readState(text, ""); return err }, 1},
		"keys":  {secret, func(text []byte) error { _, err := readSecrets("ho_1", text); return err }, secretsVersion},
		"mark": {[]byte(`{"version":1,"seq":3}`), func(text []byte) error {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, markFile), text, secretMode))
			_, err := readMark(dir)
			return err
		}, markVersion},
	}
	if old, now := bytes.HasPrefix(card, []byte(`{"version":1,`)), bytes.HasPrefix(checked, []byte(`{"version":2,`)); !old || !now {
		t.Errorf("cards of versions %.20s and %.20s", card, checked)
	}
	if _, err := readCard(checked); err != nil {
		t.Error(err)
	}
	for name, r := range readers {
		if err := r.read(r.text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		next := fmt.Sprintf(`"version":%d`, r.known+1)
		for _, version := range []string{next, `"version":0`, `"other":1`} {
			text := strings.Replace(string(r.text), `"version":1`, version, 1)
			err := r.read([]byte(text))
			var unknown *ledger.VersionError
			if !errors.As(err, &unknown) || unknown.Known != r.known || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %s: %v", name, version, err)
			}
			if version == next && !strings.Contains(err.Error(), "use the holdoutd that wrote it, or a newer one") {
				t.Errorf("%s: the error does not say what to do: %v", name, err)
			}
		}
	}
}

// TestHoldoutOfAnotherVersion: a holdout whose keys are of a version to come gives no new answers and is not called damaged by the disk; what
// it answered is replayed, and the other holdouts go on.
func TestHoldoutOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := create(t, s, Settings{Questions: 10}, visits(t, 300, 1))
	second := create(t, s, Settings{Questions: 10}, visits(t, 300, 2))
	body := ask(t, s, first.ID, mean(10)).Body
	place := filepath.Join(dir, holdoutsDir, first.ID)
	m, err := readMark(place)
	must(t, err)
	must(t, s.Close())
	text, err := json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(place, markFile), []byte(strings.Replace(string(text), `"version":1`, `"version":7`, 1)), secretMode))
	s = open(t, dir)
	if got := ask(t, s, first.ID, mean(10)); !got.Replayed || string(got.Body) != string(body) {
		t.Errorf("replayed %s, want %s", got.Body, body)
	}
	_, err = s.Ask(t.Context(), admin, first.ID, []byte(mean(20)), "")
	if KindOf(err) != Damaged || !strings.Contains(err.Error(), "a format that this server does not know") {
		t.Errorf("a new question: %v", err)
	}
	ask(t, s, second.ID, mean(20))
	must(t, s.Close())
	if after, err := os.ReadFile(filepath.Join(place, markFile)); err != nil || !strings.Contains(string(after), `"version":7`) {
		t.Errorf("a mark that was not understood is overwritten: %s %v", after, err)
	}
}

// TestEntryOfAnotherVersion: an entry of a version to come is not replayed, nothing is appended behind it, and the error says why.
func TestEntryOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Questions: 10}, visits(t, 300, 1)).ID
	ask(t, s, id, mean(1))
	ask(t, s, id, mean(2))
	must(t, s.Close())
	rewriteLedger(t, dir, "UPDATE entries SET version = 3 WHERE seq = 2")
	if _, err := Verify(t.Context(), dir, false); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("verify: %v", err)
	}
	s = open(t, dir)
	for _, query := range []string{mean(2), mean(3)} {
		_, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
		if KindOf(err) != Damaged || !strings.Contains(err.Error(), "a format that this server does not know") {
			t.Errorf("%s: %v", query, err)
		}
	}
	if a := ask(t, s, id, mean(1)); !a.Replayed {
		t.Error("an entry of a known version is not replayed")
	}
}
