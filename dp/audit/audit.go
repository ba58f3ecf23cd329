// Package audit attacks mechanisms: it runs one as a black box on two neighbouring tables, looks for an event that tells them apart, and proves by counting
// how often it happens that the mechanism spends at least so much epsilon. It never proves that a mechanism is private; it refutes those that are not (Ding
// et al., arXiv 1805.10559; Jagielski, Ullman and Oprea, arXiv 2006.07709).
package audit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// ErrSettings is wrapped by errors of settings.
var ErrSettings = errors.New("audit: bad settings")

// Mechanism is a mechanism as a black box: what it says of a table, as a text, or any other thing that can be compared. A number that it releases is best
// given as the number itself, to Numbers. All that it draws comes from the stream.
type Mechanism[Out comparable] func(s *noise.Stream) Out

// Claim is the guarantee that is attacked.
type Claim struct{ Epsilon, Delta float64 }

// Settings are how hard is looked.
type Settings struct {
	// Runs of the mechanism on each table: half to find an event, half to count it. From 100.
	Runs int
	// Confidence with which the lower bound holds, in (0,1): a private mechanism is refuted with probability at most 1 - Confidence.
	Confidence float64
}

// Report is what an attack found.
type Report struct {
	Claim      Claim
	Epsilon    float64 // the mechanism spends at least this, at the claim's delta, with the confidence of the settings; 0 where nothing was found
	Event      string  // that tells the tables apart
	Happened   [2]int  // in the counted runs: on the table where it is likelier, and on the other
	Runs       int     // counted, on each
	Confidence float64
}

// Refuted reports that the claim is wrong, but for the probability 1 - Confidence.
func (r Report) Refuted() bool { return r.Epsilon > r.Claim.Epsilon }

// String says the result in one sentence.
func (r Report) String() string {
	verdict := "does not refute"
	if r.Refuted() {
		verdict = "refutes"
	}
	return fmt.Sprintf("%s happened in %d and %d of %d runs: epsilon is at least %.4g, which %s %.4g (confidence %v)", r.Event, r.Happened[0], r.Happened[1], r.Runs, r.Epsilon, verdict, r.Claim.Epsilon, r.Confidence)
}

func (set Settings) check(claim Claim) error {
	if set.Runs < 100 || !(set.Confidence > 0 && set.Confidence < 1) || !(claim.Epsilon >= 0) || !(claim.Delta >= 0 && claim.Delta < 1) {
		return fmt.Errorf("%w: %d runs at confidence %v against (%v, %v); want from 100 runs, a confidence in (0,1), and a claim", ErrSettings, set.Runs, set.Confidence, claim.Epsilon, claim.Delta)
	}
	return nil
}

// prefixes is about how many events are tried on each side: each is the last one and some more outcomes.
const prefixes = 400

// Outcomes attacks a mechanism whose outcomes come up again. Of the first half of the runs it makes the event of all outcomes that came up more often on
// one table, as often as the best share of the claim asks for; of the second half it counts it. The same stream gives the same report.
func Outcomes[Out comparable](claim Claim, set Settings, s *noise.Stream, a, b Mechanism[Out]) (Report, error) {
	if err := set.check(claim); err != nil {
		return Report{}, err
	}
	half := set.Runs / 2
	type outcome struct {
		of Out
		at [2]int
	}
	var all []outcome // by first appearance, so that a stream gives one report
	place := map[Out]int{}
	for i, m := range [2]Mechanism[Out]{a, b} {
		for range half {
			said := m(s)
			at, seen := place[said]
			if !seen {
				at = len(all)
				place[said], all = at, append(all, outcome{of: said})
			}
			all[at].at[i]++
		}
	}
	best := Report{Claim: claim, Runs: set.Runs - half, Confidence: set.Confidence, Event: "no event"}
	event := [2]map[Out]bool{}
	for side := range 2 {
		// Outcomes by how much likelier they are on this table; the event is the first ones, as many as give the best bound on the runs in which it is looked for.
		slices.SortStableFunc(all, func(x, y outcome) int {
			return cmp.Compare(ratio(y.at[side], y.at[1-side]), ratio(x.at[side], x.at[1-side]))
		})
		last, most, looked := -1, 0.0, 0
		var sum [2]int
		for k, o := range all {
			sum[0], sum[1] = sum[0]+o.at[side], sum[1]+o.at[1-side]
			if k+1 < len(all) && sum[0]-looked < half/prefixes {
				continue
			}
			looked = sum[0]
			if e := bound(claim.Delta, sum, half, set.Confidence); e > most {
				last, most = k, e
			}
		}
		events := map[Out]bool{}
		for _, first := range all[:last+1] {
			events[first.of] = true
		}
		event[side] = events
	}
	var happened [2][2]int // of the events, on the tables
	for i, m := range [2]Mechanism[Out]{a, b} {
		for range best.Runs {
			said := m(s)
			for side := range 2 {
				if event[side][said] {
					happened[side][i]++
				}
			}
		}
	}
	for side := range 2 {
		counts := [2]int{happened[side][side], happened[side][1-side]}
		if e := bound(claim.Delta, counts, best.Runs, 1-(1-set.Confidence)/2); len(event[side]) > 0 && (e > best.Epsilon || best.Event == "no event") {
			best.Epsilon, best.Happened = e, counts
			best.Event = fmt.Sprintf("one of %d outcomes, such as %v,", len(event[side]), example(event[side]))
		}
	}
	return best, nil
}

func example[Out comparable](events map[Out]bool) string {
	var names []string
	for of := range events {
		names = append(names, fmt.Sprint(of))
	}
	return slices.Min(names)
}

func ratio(a, b int) float64 { return (float64(a) + .5) / (float64(b) + .5) }

// bound is a lower bound on epsilon: an event of probability p on one table and q on the other means p <= e^eps q + delta. p is at least the lower end, and
// q at most the upper end, of intervals of Clopper and Pearson that both hold with the confidence.
func bound(delta float64, counts [2]int, runs int, confidence float64) float64 {
	level := math.Log(2 / (1 - confidence))
	p := binomial.Low(float64(runs), float64(counts[0]), level)
	q := binomial.High(float64(runs), float64(counts[1]), level)
	if p <= delta {
		return 0
	}
	return max(0, math.Log((p-delta)/q))
}
