package sparse

import (
	"fmt"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Adaptive are the settings of a run in which a question that is far above its threshold costs half of what another costs that is above: it is first
// compared with twice the noise, and only if that does not find it above by Margin, with the noise of [Vector] (Ding, Wang, Zhang and Kifer, arXiv
// 1904.12773, Algorithm 2). So a run has up to 2·Above - 1 questions that are above, and each says its gap at no cost. It is (Threshold + Query)-private,
// however many questions are asked.
//
// Why: take neighbouring tables, and what a run says. On the other table let the threshold's noise be larger by the sensitivity D, the noise of the comparison
// that found a question above by as much as keeps its gap, at most 2D either way, and all other noise as it was. Then no comparison that failed passes, each
// gap is the same, and so is all that is said. That is as likely but for a factor of e^Threshold, of e^(Query/(2·Above)) for each comparison with twice the noise
// that passed, and of e^(Query/Above) for each of the others. The price is counted by what was said, so that no run goes beyond Query; Margin, and which
// questions are asked, may be anything that is public.
type Adaptive struct {
	Sensitivity uint64        // of each question: how much its value changes where one row is replaced
	Above       int           // how many questions may be above if none is far above, from 1 to MaxAbove/2
	Threshold   noise.Epsilon // of the threshold's noise, of scale Sensitivity/Threshold
	Query       noise.Epsilon // of the questions' noise: of scale 4·Above·Sensitivity/Query in the first comparison, and half of that in the second
	Margin      int64         // how far above is far, from 0 to MaxValue
	Monotone    bool          // as in Vector: questions then need half the noise
}

// Epsilon is what a run costs.
func (a Adaptive) Epsilon() float64 { return a.Threshold.Float() + a.Query.Float() }

// SplitAdaptive are the settings in which an epsilon is shared as in Split, and far above is two standard deviations of the first comparison's noise, as in
// the paper: a question at its threshold is then found far above in about a thirtieth of the cases.
func SplitAdaptive(eps float64, above int, sensitivity uint64, monotone bool) Adaptive {
	v := Split(eps, above, sensitivity, monotone)
	a := Adaptive{Sensitivity: sensitivity, Above: above, Threshold: v.Threshold, Query: v.Query, Monotone: monotone}
	if a.Query.Check() == nil {
		const deviations = 2.8284271247461903 // 2·sqrt(2) scales of Laplace's law
		a.Margin = int64(min(deviations*float64(a.scale(2))/a.Query.Float(), float64(MaxValue)))
	}
	return a
}

// scale is that of a comparison's noise, times Query: twice is 2 for the first comparison, 1 for the second.
func (a Adaptive) scale(twice uint64) uint64 {
	s := twice * 2 * uint64(a.Above) * a.Sensitivity
	if a.Monotone {
		s /= 2
	}
	return s
}

// Check refuses settings that are none.
func (a Adaptive) Check() error {
	if a.Margin < 0 || a.Margin > MaxValue {
		return fmt.Errorf("%w: a margin of %d, want 0 to 2^60", ErrSettings, a.Margin)
	}
	if a.Above < 1 || a.Above > MaxAbove/2 {
		return fmt.Errorf("%w: %d questions above, want 1 to %d", ErrSettings, a.Above, MaxAbove/2)
	}
	return Vector{Sensitivity: a.Sensitivity, Above: 2 * a.Above, Threshold: a.Threshold, Query: a.Query}.Check()
}

// AdaptiveRun is a run of questions. It is not safe for concurrent use.
type AdaptiveRun struct {
	adaptive  Adaptive
	stream    *noise.Stream
	threshold int64 // the noise of all thresholds
	left      int   // in half prices
}

// Start draws the threshold's noise. The guarantee needs a stream of a secret key that is used for nothing else.
func (a Adaptive) Start(s *noise.Stream) (*AdaptiveRun, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	return &AdaptiveRun{adaptive: a, stream: s, threshold: a.Threshold.Laplace(s, a.Sensitivity), left: 2 * a.Above}, nil
}

// Left is how many more questions may be above at the full price. A half price that is left over is not enough to go on: a question that is near could not be paid.
func (r *AdaptiveRun) Left() int { return r.left / 2 }

// Ask answers one question, as [Run.Ask] does; the answer always has its gap. The error wraps ErrSpent when less than a whole price is left.
func (r *AdaptiveRun) Ask(value, threshold int64) (Answer, error) {
	a := r.adaptive
	if r.left < 2 {
		return Answer{}, fmt.Errorf("%w: %d at the full price", ErrSpent, a.Above)
	}
	if threshold > MaxValue || threshold < -MaxValue {
		return Answer{}, fmt.Errorf("%w: a threshold of %d, want at most 2^60 either way", ErrSettings, threshold)
	}
	value = min(max(value, -MaxValue), MaxValue)
	for _, try := range [2]struct {
		wider  uint64
		margin int64
		price  int
	}{{2, a.Margin, 1}, {1, 0, 2}} {
		gap := plus(plus(value-threshold, a.Query.Laplace(r.stream, a.scale(try.wider))), -r.threshold)
		if gap >= try.margin {
			r.left -= try.price
			return Answer{Above: true, Gap: gap, Far: try.price == 1}, nil
		}
	}
	return Answer{}, nil
}
