package holdout

import (
	"fmt"
	"strings"

	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// UsefulWidth is the planned half-width above which a card says that its holdout is uninformative.
const UsefulWidth = thresholdout.UsefulWidth

// uninformative is the code of warnings that an answer would tell little.
const uninformative = session.Uninformative

// usefulness warns of a guarantee whose intervals are too wide to be of use, and names settings that would give narrower ones, by the planner and from public
// facts alone. A half-width that the owner asked for is what was wanted.
func (set Settings) usefulness(units Counts, g thresholdout.Guarantee) []Warning {
	if set.HalfWidth != 0 || !(g.HalfWidth > UsefulWidth) {
		return nil
	}
	if count, celled := g.DeclaredCells(); celled {
		return []Warning{{Code: uninformative, Detail: fmt.Sprintf("%d declared cells of %d held-out units get intervals of about ±%.2g around one half, which tell little: "+
			"declare fewer columns, values or edges, hold out a larger share, or upload more rows.", count, g.N, g.HalfWidth)}}
	}
	width := func(change func(*Settings)) (float64, bool) {
		other := set
		change(&other)
		planned, err := thresholdout.Plan(other.spec(units))
		return planned.HalfWidth, err == nil && planned.HalfWidth > 0
	}
	var ways []string
	fewer := func(k int64) func(*Settings) {
		return func(s *Settings) { s.Questions, s.Rounds = k, min(s.Rounds, k) }
	}
	if w, ok := width(func(s *Settings) { s.Sealed = 0 }); ok && set.Sealed > 0 && w <= UsefulWidth {
		ways = append(ways, fmt.Sprintf("sealed=0 would have ±%.2g", w))
	}
	if k, w := most(g.Questions-1, fewer, width); k > 0 {
		ways = append(ways, fmt.Sprintf("questions=%d would have ±%.2g", k, w))
	}
	batch := func(k int64) func(*Settings) {
		return func(s *Settings) {
			*s = Settings{Mechanism: string(thresholdout.Gaussian), Rounds: 1, Questions: k, Confidence: set.Confidence, Holdout: set.Holdout}
		}
	}
	if k, w := most(g.Questions, batch, width); k > 0 && set.Rounds != 1 {
		ways = append(ways, fmt.Sprintf("mechanism=gaussian with rounds=1 and questions=%d, all in one batch, ±%.2g", k, w))
	}
	detail := fmt.Sprintf("%d questions about %d held-out units get intervals of about ±%.2g around one half, which tell little", g.Questions, g.N-g.Sealed(), g.HalfWidth)
	if len(ways) > 0 {
		detail += ": " + strings.Join(ways, "; ") + ". So would a larger share as the holdout, or more rows"
	} else {
		detail += fmt.Sprintf(", and no number of questions gets to ±%v", UsefulWidth)
		if w, ok := width(batch(1)); ok {
			detail += fmt.Sprintf(" (a single one, in a batch of its own, ±%.2g)", w)
		}
		detail += ": hold out a larger share, upload more rows, or judge by the training part (cross-validation) and keep the holdout for one last look"
	}
	return []Warning{{Code: uninformative, Detail: detail + "."}}
}

// most is the largest number of questions, at most limit, that is planned at most UsefulWidth wide, and how wide; 0 where not even one is. Fewer questions are never wider.
func most(limit int64, with func(k int64) func(*Settings), width func(func(*Settings)) (float64, bool)) (k int64, w float64) {
	low, high := int64(0), limit // low is narrow enough, high+1 is not
	for low < high {
		middle := low + (high-low+1)/2
		if got, ok := width(with(middle)); ok && got <= UsefulWidth {
			low, w = middle, got
		} else {
			high = middle - 1
		}
	}
	return low, w
}
