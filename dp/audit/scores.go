package audit

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/dp/normal"
)

// ScoreReport is what an attack by scores found: how well a threshold tells members, units that are in the table, from others.
type ScoreReport struct {
	Runs       int     // counted, of members and of others each
	Confidence float64 // with which all bounds here hold together
	Threshold  float64 // scores from here on are accused
	Accused    [2]int  // of the counted members, and of the counted others
	True       float64 // at least this share of members is accused
	False      float64 // at most this share of others is accused
	Allowed    float64 // the largest share of members that the guarantee allows to be accused where that share of others is; 1 without a guarantee
	Mu         float64 // the mechanism is mu-GDP for no mu below this; 0 where nothing was found
	Epsilon    float64 // at the asked delta it is (epsilon, delta)-private for no epsilon below this; 0 where nothing was found
	Refuted    bool    // the guarantee is wrong, but for the probability 1 - Confidence
}

// Advantage is the counted share of members that is accused minus that of others.
func (r ScoreReport) Advantage() float64 {
	return float64(r.Accused[0]-r.Accused[1]) / float64(r.Runs)
}

// triedThresholds are about how many are tried on the first half of the scores.
const triedThresholds = 200

// Scores attacks a guarantee by an attack that somebody made: the scores of runs in which a unit is in the table, and of as many runs in which it is not, all
// independent of each other; the higher, the more the attack believes that it is. Infinite scores are certain. From the first half of each it takes the
// threshold that bounds mu best and the one that bounds epsilon best, and it counts the second half. The guarantee, which may be nil, is refuted where a
// counted threshold accuses more members than its trade-off curve allows (Nasr et al., arXiv 2302.07956; Dong, Roth and Su, arXiv 1905.02383).
//
// The report's threshold is the one that bounds mu best, or the one that refutes. confidence is in (0,1), delta in [0,1); there are at least 50 scores of
// each kind, and none is NaN. Errors wrap ErrSettings.
func Scores(guarantee account.Curve, delta, confidence float64, members, others []float64) (ScoreReport, error) {
	if len(members) != len(others) || len(members) < 50 || !(confidence > 0 && confidence < 1) || !(delta >= 0 && delta < 1) {
		return ScoreReport{}, fmt.Errorf("%w: %d and %d scores at confidence %v and delta %v; want as many of each, from 50 on, a confidence in (0,1) and a delta in [0,1)", ErrSettings, len(members), len(others), confidence, delta)
	}
	for _, s := range [][]float64{members, others} {
		if slices.ContainsFunc(s, math.IsNaN) {
			return ScoreReport{}, fmt.Errorf("%w: a score is not a number", ErrSettings)
		}
	}
	half := len(members) / 2
	seen := [2][]float64{slices.Sorted(slices.Values(members[:half])), slices.Sorted(slices.Values(others[:half]))}
	counted := [2][]float64{slices.Sorted(slices.Values(members[half:])), slices.Sorted(slices.Values(others[half:]))}
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(seen[0], seen[1]))))
	level := math.Log(4 / (1 - confidence)) // two thresholds, and two ends of each
	var best [2]ScoreReport                 // on the first half: for mu, and for epsilon
	for i := 0; i < len(all); i += max(1, len(all)/triedThresholds) {
		r := judged(delta, level, all[i], seen)
		if i == 0 || r.Mu > best[0].Mu {
			best[0] = r
		}
		if i == 0 || r.Epsilon > best[1].Epsilon {
			best[1] = r
		}
	}
	r, other := judged(delta, level, best[0].Threshold, counted), judged(delta, level, best[1].Threshold, counted)
	r.against(guarantee)
	other.against(guarantee)
	if other.Refuted && !r.Refuted {
		r, other = other, r
	}
	r.Mu, r.Epsilon, r.Confidence = max(r.Mu, other.Mu), max(r.Epsilon, other.Epsilon), confidence
	return r, nil
}

// judged is what a threshold says that was chosen before the scores, which are in order, were seen: each of two ends is wrong with probability e^-level.
func judged(delta, level, threshold float64, scores [2][]float64) ScoreReport {
	r := ScoreReport{Threshold: threshold, Runs: len(scores[0])}
	for i, s := range scores {
		at, _ := slices.BinarySearch(s, threshold)
		r.Accused[i] = len(s) - at
	}
	n := float64(r.Runs)
	r.True, r.False = binomial.Low(n, float64(r.Accused[0]), level), binomial.High(n, float64(r.Accused[1]), level)
	if r.True > 0 && r.False < 1 {
		r.Mu = max(0, normal.UpperQuantile(r.False)-normal.UpperQuantile(r.True))
		r.Epsilon = max(0, loss(r.True, r.False, delta), loss(1-r.False, 1-r.True, delta))
	}
	return r
}

// against says what a guarantee allows where so many are accused.
func (r *ScoreReport) against(guarantee account.Curve) {
	r.Allowed = 1
	if guarantee != nil {
		r.Allowed = 1 - account.Tradeoff(guarantee, r.False)
		r.Refuted = r.True > r.Allowed
	}
}

// loss is what an event of probability p on one table and at most q on another says of epsilon.
func loss(p, q, delta float64) float64 {
	if p <= delta {
		return 0
	}
	return math.Log((p - delta) / q)
}
