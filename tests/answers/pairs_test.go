package answers

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestPairsNeedUnitsThatAreAlike: an area and Kendall's tau are one question where units may be alike. Where they are known to differ, an area keeps the price of its bins, and
// Kendall's tau, which has no other form, is refused before a row is read. It would notice intervals for one population that are given for strata.
func TestPairsNeedUnitsThatAreAlike(t *testing.T) {
	s := open(t, t.TempDir())
	area, tau := `{"type":"auc","label":"late","prediction":"x","edges":[0.25,0.5,0.75]}`, `{"type":"kendall","x":"x","y":"chart","edges_x":[0.5],"edges_y":[500]}`
	for i, c := range []struct {
		set       holdout.Settings
		questions int64
		tau       string // "" where it is answered
	}{
		{holdout.Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 20}, 1, ""},
		{holdout.Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 20, Stratify: "clinic"}, 7, "known to differ"},
		{holdout.Settings{Mechanism: "gaussian", Questions: 100}, 4, "has no answer"},
	} {
		card := create(t, s, c.set, visits(t, 4000, uint64(i)))
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(area))
		a := read(t, ask(t, s, card.ID, area).Body)
		if err != nil || a.Cost.Questions != c.questions || e.Cost.Questions != c.questions {
			t.Errorf("%+v: an area costs %+v, explained as %+v: %v", c.set, a.Cost, e.Cost, err)
		}
		_, err = s.Ask(t.Context(), analyst, card.ID, []byte(tau), "")
		var refused *holdout.Error
		switch {
		case c.tau == "" && err != nil:
			t.Errorf("%+v: %v", c.set, err)
		case c.tau != "" && (!errors.As(err, &refused) || refused.Kind != holdout.Invalid || refused.Pointer != "/type" || !strings.Contains(refused.Detail, c.tau)):
			t.Errorf("%+v: %v", c.set, err)
		}
	}
}
