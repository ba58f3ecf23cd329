package holdout

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/session"
)

// TestUninformativeCards: a card whose intervals are too wide to be of use says so, as a draft and later, and the settings that it names are as narrow as it
// says. It would notice a suggestion that is not planned, one that could have more questions, and a warning where the width is of use; a card that does not say how many questions there are where nobody named a number, or has more of them than are of use.
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
	card, err := again(t, s, Settings{Questions: 7}, visits(t, 400, 2))
	must(t, err)
	if card.Chosen != "" || card.Guarantee.Questions != 7 {
		t.Errorf("seven questions were named, and the card has %d: %q", card.Guarantee.Questions, card.Chosen)
	}
	card, err = again(t, s, Settings{}, visits(t, 400, 1))
	must(t, err)
	for _, card := range []Card{card, seen(t, s, card)} {
		if card.Guarantee.Questions != 100 || !strings.Contains(card.Chosen, "there are 100") {
			t.Errorf("draft %v: %d questions, %q", card.Draft, card.Guarantee.Questions, card.Chosen)
		}
		if !slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == uninformative }) {
			t.Errorf("draft %v: no word of its intervals of ±%.2g: %+v", card.Draft, card.Guarantee.HalfWidth, card.Warnings)
		}
	}
}

// TestWidestHalfWidthIsOnTheCard: beside the planned half-width a card, that of a dry run too, says the widest that a share can get, which no first answer exceeds; it is not stored. It would notice a card
// without it, one that has the planned one, and a stored member that older programs do not know.
func TestWidestHalfWidthIsOnTheCard(t *testing.T) {
	s := open(t, t.TempDir())
	for i, set := range []Settings{{Questions: 100, Tokens: 10, Mechanism: "guess_and_check"}, {Questions: 50, Mechanism: "gaussian"}, {Questions: 5, Mechanism: "split"}} {
		table := visits(t, 2000+i, uint64(i))
		dry, err := s.DryRun(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))))
		must(t, err)
		card := create(t, s, set, table)
		if card.Widest == nil || dry.Widest == nil || *dry.Widest != *card.Widest || *card.Widest < card.Guarantee.HalfWidth {
			t.Fatalf("%s: ±%v planned; at most %v, of a dry run %v", set.Mechanism, card.Guarantee.HalfWidth, card.Widest, dry.Widest)
		}
		stored, err := s.ledger.Holdout(t.Context(), card.ID)
		must(t, err)
		if bytes.Contains(stored.Public, []byte("widest_half_width")) {
			t.Errorf("stored: %s", stored.Public)
		}
		query := `{"type":"fraction","of":"late"}`
		if set.Mechanism == "guess_and_check" { // differs: its interval is wider than planned
			query = `{"type":"fraction","of":"late","guess":0.9}`
		}
		var a session.Answer
		must(t, json.Unmarshal(ask(t, s, card.ID, query).Body, &a))
		if half := max(*a.Interval.High-*a.Value, *a.Value-*a.Interval.Low); half > *card.Widest {
			t.Errorf("%s: ±%v, and at most ±%v was said", set.Mechanism, half, *card.Widest)
		}
	}
}
