package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// moments are questions of many means, of searches, and with constants of the training part.
var moments = []string{
	`{"type":"variance","of":"x","range":[0,1]}`,
	`{"type":"stddev","of":"x","range":[0,1],"where":"late"}`,
	`{"type":"correlation","x":"x","y":"score","range_x":[0,1],"range_y":[0,100]}`,
	`{"type":"covariance","x":"x","y":"score","range_x":[0,1],"range_y":[0,100],"form":"exact"}`,
	`{"type":"correlation","x":"x","y":"score","range_x":[0,1],"range_y":[0,100],"form":"exact","where":"late"}`,
	`{"type":"quantile","of":"score","range":[0,100],"p":0.4,"resolution":10}`,
	`{"type":"median","of":"x","range":[0,1],"resolution":0.125,"where":"late"}`,
	`{"type":"histogram","of":"x","edges":[0,0.2,0.6,1]}`,
	`{"type":"frequencies","of":"clinic","where":"late"}`,
	`{"type":"groups","of":"x","range":[0,1],"by":"clinic","values":["clinic 1","clinic 3"]}`,
	`{"type":"mean","of":"x","range":[0,1],"weights":{"of":"score","range":[0,100]}}`,
}

// TestMomentsUnderEveryMechanism: each question is answered by each mechanism, at the price that was said before, and replayed.
func TestMomentsUnderEveryMechanism(t *testing.T) {
	s := open(t, t.TempDir(), func(o *holdout.Options) { o.AllowNaive = true })
	for i, set := range []holdout.Settings{
		{Mechanism: "gaussian"}, {Mechanism: "gaussian", Unit: "chart"}, {Mechanism: "gaussian", Rounds: 20}, {Mechanism: "guess_and_check", Tokens: 60},
		{Mechanism: "thresholdout", Tokens: 60}, {Mechanism: "split"}, {Mechanism: "split", Unit: "chart"}, {Mechanism: "naive"},
	} {
		set.Questions, set.Holdout = 200, 0.5
		t.Run(fmt.Sprint(set.Mechanism, set.Unit, set.Rounds), func(t *testing.T) {
			card := create(t, s, set, visits(t, 8000, uint64(100+i)))
			for _, query := range moments {
				explained, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
				if set.Rounds > 0 && holdout.KindOf(err) == holdout.Invalid {
					continue // a search asks by what it was told
				}
				if err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				got := ask(t, s, card.ID, query)
				var core struct {
					Cost     holdout.Cost
					Value    *float64
					Interval *struct{ Low, High *float64 }
					Items    []holdout.Item
				}
				if err := json.Unmarshal(got.Body, &core); err != nil {
					t.Fatal(err)
				}
				if core.Cost.Questions != explained.Cost.Questions {
					t.Errorf("%s cost %+v, said were %+v", query, core.Cost, explained.Cost)
				}
				if (core.Interval == nil) != (set.Mechanism == "naive") {
					t.Errorf("%s has the interval %v", query, core.Interval)
				}
				if core.Value == nil && len(core.Items) == 0 && set.Mechanism == "naive" {
					t.Errorf("%s: %s", query, got.Body)
				}
				for _, item := range core.Items {
					if item.Value != nil && (math.IsNaN(*item.Value) || item.Low != nil && (*item.Value < *item.Low || *item.Value > *item.High)) {
						t.Errorf("%s: %+v", query, item)
					}
				}
				if again := ask(t, s, card.ID, query); !again.Replayed || !bytes.Equal(again.Body, got.Body) {
					t.Errorf("%s is not replayed", query)
				}
			}
		})
	}
}

// TestItemsThatTellNothing: explain counts the items whose interval would be wider than they are.
func TestItemsThatTellNothing(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, holdout.Settings{Questions: 100, Holdout: 0.5}, visits(t, 8000, 120))
	for query, want := range map[string]string{
		`{"type":"histogram","of":"x","edges":[0,0.001,1]}`:    "4 of 5 items would have no value, or an interval wider than the number that it is about",
		`{"type":"variance","of":"x","range":[-100,100]}`:      "the interval (half-width",
		`{"type":"variance","of":"x","range":[0,1]}`:           "",
		`{"type":"histogram","of":"x","edges":[-1,0.5,1e300]}`: "3 of 5 items would",
	} {
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(e.Warnings, func(w holdout.Warning) bool { return w.Code == "uninformative" })
		if (i >= 0) != (want != "") || i >= 0 && !strings.HasPrefix(e.Warnings[i].Detail, want) {
			t.Errorf("%s: %+v, want %q", query, e.Warnings, want)
		}
	}
}
