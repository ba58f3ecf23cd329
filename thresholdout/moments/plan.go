package moments

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Training is what the training part tells of a question: central moments over its units with B = 1. Margins are planned by it;
// what intervals promise never depends on it.
type Training struct {
	All     int64   // units of the training part
	Units   int64   // those with B = 1; All for a mean
	Mean    float64 // of A over them, in [0,1]
	Second  float64 // their variance
	Fourth  float64 // their fourth central moment
	Guess   float64 // where the holdout's mean is expected; Mean unless the analyst names another
	Binary  bool    // by its form the function has no value but 0 and 1
	Partial bool    // B is a condition; false for a mean over all units
}

// Deviations is z of rank 1: how many standard deviations of training mean minus holdout mean the narrowest margin leaves room for. With k
// questions about one honest guess in seven runs misses it: the upper-tail quantile of .15/k, between 2 and 4.5.
func Deviations(questions int64) float64 {
	return min(max(-distuv.UnitNormal.Quantile(0.15/float64(max(questions, 1))), leastDeviations), mostDeviations)
}

const leastDeviations, mostDeviations = 2, 4.5

// maxDeviations is more than any margin needs.
const maxDeviations = 100

// margins are those of rank l = 1, 2, …: the mean's, the variance's and the least number of units; z is Deviations times 2^(l-1).
func (t Training) margins(n int64, z float64) (away, variance, units float64) {
	share := 1.0
	if t.Partial {
		share = float64(t.Units) / float64(t.All)
	}
	units = float64(n)
	if t.Partial && t.Units < t.All {
		units = max(0, units*share-z*math.Sqrt(units*share*(1-share)*(1+units/float64(t.All))))
	}
	if t.Units == 0 {
		return 1, 1, 0
	}
	s := 1/(float64(n)*share) + 1/float64(t.Units)
	y2 := 1.0
	if t.Second > 0 {
		y2 = min(1, t.Fourth/t.Second)
	}
	away = z*math.Sqrt(s*t.Second+z*z*s*s*y2/4) + z*z*s*math.Sqrt(y2)/2
	variance = t.Second + z*math.Sqrt(max(0, t.Fourth-t.Second*t.Second)*s) + z*z*s*y2
	return min(away, 1), min(variance, 1), units
}

func (t Training) check() error {
	ok := t.All >= 1 && t.Units >= 0 && t.Units <= t.All && (t.Partial || t.Units == t.All) &&
		t.Mean >= 0 && t.Mean <= 1 && t.Guess >= 0 && t.Guess <= 1 && t.Second >= 0 && t.Second <= 1 && t.Fourth >= 0 && t.Fourth <= 1
	if !ok {
		return fmt.Errorf("moments: %+v is no training part: moments of values between 0 and 1 are needed, and units among all", t)
	}
	return nil
}

// PlanWith is the check of the next question about a holdout of n units: two ranks of margins and the cells of a failure. z is how many standard deviations
// rank 1 leaves room for. Rank 2 says nothing of the variance, so that an unlucky one never costs a token. Where rank 1 leaves room for no unit at all the check is [Check.Silent].
func PlanWith(t Training, n int64, z float64) (Check, error) {
	if err := t.check(); err != nil {
		return Check{}, err
	}
	if n < 1 || n > maxUnits {
		return Check{}, fmt.Errorf("moments: %d units; between 1 and %d are possible", n, int64(maxUnits))
	}
	if !(z > 0 && z <= maxDeviations) {
		return Check{}, fmt.Errorf("moments: room for %v standard deviations; between 0 and %v is possible", z, float64(maxDeviations))
	}
	c := Check{N: n, Guess: int64(math.Floor(t.Guess*grid + 0.5)), Partial: t.Partial, Binary: t.Binary && !t.Partial, Cells: cells(t, n)}
	for l, z := range []float64{z, 2 * z} {
		away, variance, units := t.margins(n, z)
		if t.Binary || l > 0 {
			variance = 1
		}
		c.Ranks = append(c.Ranks, Rank{Away: int64(math.Ceil(away * grid)), Variance: int64(math.Ceil(variance * squares)), Units: int64(units)})
	}
	if c.Partial && c.Ranks[0].Units == 0 {
		c.Ranks, c.Cells = []Rank{nothing, nothing}, 1
	}
	return c, nil
}

// maxCells bounds what a failure says: finer than the standard deviation of the mean of 2^30 units.
const maxCells = 1 << 20

// cells is a power of two, so that half a cell is about a standard deviation of the holdout's mean: wider ones say less than they could,
// narrower ones cost later answers more.
func cells(t Training, n int64) int64 {
	units := float64(n)
	if t.Partial {
		units *= float64(t.Units) / float64(t.All)
	}
	if units < 1 {
		return 1
	}
	deviation := max(math.Sqrt(t.Second/units), 1/units)
	return int64(math.Exp2(min(max(math.Round(math.Log2(1/(2*deviation))), 0), math.Log2(maxCells))))
}

// WidestMean is how far, at most, an end of an answer's interval at a level is from its value, of a question about the mean of [0,1] over all of n units: whatever the training part, of so many units,
// says, whatever the guess is, and however the check of PlanWith comes out. Margins are largest, and cells fewest, where the training values' variance is 1/4 and the fourth moment as large as the
// variance; beyond the margin no bound here is wider than Hoeffding's.
func WidestMean(n, training int64, z, level float64) float64 {
	c, err := PlanWith(Training{All: training, Units: training, Mean: 0.5, Second: 0.25, Fourth: 0.25, Guess: 0.5}, n, z)
	if err != nil || !(level >= 0) {
		return 1
	}
	widest := c.Widest(level)
	beyond := math.Sqrt((level+passLevel)*(1+levelSlack)/(2*float64(n))) + 2/float64(n) + 2*gridError
	for _, r := range c.Ranks {
		widest = max(widest, float64(r.Away)/grid+beyond)
	}
	return min(widest, 1)
}
