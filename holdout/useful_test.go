package holdout

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestUninformativeCards: a card whose intervals are too wide to be of use says so, as a draft and later, and the settings that it names are as narrow as it
// says. It would notice a suggestion that is not planned, one that could have more questions, and a warning where the width is of use.
func TestUninformativeCards(t *testing.T) {
	number := regexp.MustCompile(`questions=(\d+)[^±]*±([0-9.]*[0-9])`)
	for _, c := range []struct {
		units Counts
		set   Settings
		ways  int
	}{
		{Counts{Training: 398, Holdout: 171}, Settings{}, 0}, // the breast cancer data with no settings at all
		{Counts{Training: 700, Holdout: 300}, Settings{Mechanism: "gaussian"}, 2},
		{Counts{Training: 700, Holdout: 300}, Settings{Mechanism: "gaussian", Rounds: 2, Questions: 5000}, 2},
		{Counts{Training: 20, Holdout: 10}, Settings{}, 0},
		{Counts{Training: 140_000, Holdout: 60_000}, Settings{}, -1},
		{Counts{Training: 700, Holdout: 300}, Settings{HalfWidth: 0.2}, -1},
	} {
		set, err := c.set.withDefaults(false)
		must(t, err)
		g, err := set.guarantee(c.units)
		must(t, err)
		found := set.usefulness(c.units, g)
		if (len(found) == 1) != (c.ways >= 0) {
			t.Errorf("%+v, ±%.3g: %+v", c.set, g.HalfWidth, found)
		}
		if len(found) == 0 {
			continue
		}
		ways := number.FindAllStringSubmatch(found[0].Detail, -1)
		if len(ways) != c.ways || found[0].Code != "uninformative" || c.ways == 0 && !strings.Contains(found[0].Detail, "no number of questions") {
			t.Errorf("%+v: %s", c.set, found[0].Detail)
		}
		for _, way := range ways {
			k, err := strconv.ParseInt(way[1], 10, 64)
			must(t, err)
			says, err := strconv.ParseFloat(way[2], 64)
			must(t, err)
			for _, questions := range []int64{k, k + 1} {
				other := set
				other.Questions, other.Rounds = questions, min(set.Rounds, questions)
				if strings.Contains(way[0], "one batch") {
					other = Settings{Mechanism: "gaussian", Rounds: 1, Questions: questions}
				}
				planned, err := other.guarantee(c.units)
				if questions == k && (err != nil || planned.HalfWidth > UsefulWidth || planned.HalfWidth < says*0.9 || planned.HalfWidth > says*1.1) {
					t.Errorf("%+v: %s, planned ±%v (%v)", c.set, way[0], planned.HalfWidth, err)
				}
				if questions > k && k < g.Questions-1 && err == nil && planned.HalfWidth <= UsefulWidth {
					t.Errorf("%+v: %s, and %d are planned ±%v", c.set, way[0], questions, planned.HalfWidth)
				}
			}
		}
	}
	s := open(t, t.TempDir())
	card, err := again(t, s, Settings{}, visits(t, 400, 1))
	must(t, err)
	for _, card := range []Card{card, seen(t, s, card)} {
		if !slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == uninformative }) {
			t.Errorf("draft %v: no word of its intervals of ±%.2g: %+v", card.Draft, card.Guarantee.HalfWidth, card.Warnings)
		}
	}
}
