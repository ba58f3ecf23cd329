package pairs

import (
	"fmt"
	"math"
	"math/big"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// Steps of a guess and its margins, and of variances.
const (
	grid    = 1 << 30
	squares = 1 << 60
)

// Rank is what a pass says: the mean over all pairs is at most Away from the guess, and there are so many units of each class.
type Rank struct {
	Away   int64 // steps of 2^-30
	N1, N0 int64
}

// Check is how one question about a pair kernel is checked. Class 1 is the one that is planned to be the smaller; sums are to be [Sums.Swapped]
// accordingly. Rank 1 also says the variances; rank 2, where there is one, does not.
type Check struct {
	Guess        int64 // of the kernel's mean, steps of 2^-30
	Monotone     bool  // an AUC
	Ranks        []Rank
	V1, V0, Rest int64 // steps of 2^-60
	Cells        int64 // a failure says which of so many cells of [0,1] the mean is in
	OneSide      bool  // a pass at rank 1 is read at what one of its ends alone can miss by
}

// Outcome is what is known of the holdout after the question.
type Outcome struct {
	Rank int   // 1, 2: the pass; 0: a failure
	Cell int64 // of a failure
	Loss int   // of a failure: 0, variances and sizes are as planned; 1, the sizes are; 2, nothing is said
}

func (o Outcome) Failed() bool { return o.Rank == 0 }
func (o Outcome) Wide() bool   { return o.Rank > 1 }

// losses is T: how many things a failure says beside its cell.
const losses = 3

// Valid says what is wrong with a check: its ranks must be a chain.
func (c Check) Valid() error {
	if c.Guess < 0 || c.Guess > grid || c.Cells < 1 || c.Cells > grid || c.V1 < 0 || c.V0 < 0 || c.Rest < 0 || max(c.V1, c.V0, c.Rest) > squares/4 {
		return fmt.Errorf("pairs: %+v is no check of a pair kernel", c)
	}
	if len(c.Ranks) < 1 || len(c.Ranks) > 2 {
		return fmt.Errorf("pairs: a check has one rank or two, not %d", len(c.Ranks))
	}
	a, b := c.Ranks[0], c.Ranks[len(c.Ranks)-1]
	if a.Away < 0 || b.Away > grid || b.Away < a.Away || b.N1 < 0 || b.N0 < 0 || a.N1 < b.N1 || a.N0 < b.N0 {
		return fmt.Errorf("pairs: rank 2 says more than rank 1; ranks must be a chain: %+v", c.Ranks)
	}
	return nil
}

// Outcome compares the holdout's sums with the margins, in integers.
func (c Check) Outcome(s Sums) (Outcome, error) {
	if err := c.Valid(); err != nil {
		return Outcome{}, err
	}
	if s.Sum == nil || s.N1 < 0 || s.N0 < 0 || s.Unit < 1 {
		return Outcome{}, fmt.Errorf("pairs: no sums of a pair kernel")
	}
	whole := new(big.Int).Mul(s.pairsOf(), big.NewInt(s.Unit))
	if whole.Sign() == 0 { // no pairs
		if c.Silent() {
			return Outcome{Rank: 1}, nil
		}
		return Outcome{Loss: losses - 1}, nil
	}
	// |Sum 2^30 - whole guess| <= whole away.
	off := new(big.Int).Lsh(s.Sum, 30)
	off.Sub(off, new(big.Int).Mul(whole, big.NewInt(c.Guess))).Abs(off)
	near := func(r Rank) bool {
		return s.N1 >= r.N1 && s.N0 >= r.N0 && off.Cmp(new(big.Int).Mul(whole, big.NewInt(r.Away))) <= 0
	}
	steady := s.within(c.V1, c.V0, c.Rest)
	switch {
	case steady && near(c.Ranks[0]):
		return Outcome{Rank: 1}, nil
	case len(c.Ranks) > 1 && near(c.Ranks[1]):
		return Outcome{Rank: 2}, nil
	}
	cell := new(big.Int).Mul(s.Sum, big.NewInt(c.Cells))
	o := Outcome{Cell: min(cell.Div(cell, whole).Int64(), c.Cells-1)}
	switch enough := s.N1 >= c.Ranks[0].N1 && s.N0 >= c.Ranks[0].N0; {
	case enough && steady:
	case enough:
		o.Loss = 1
	default:
		o.Loss = 2
	}
	return o, nil
}

// within says whether V1, V0 and V-V1 are at most these, in steps of 2^-60.
func (s Sums) within(v1, v0, rest int64) bool {
	whole := new(big.Int).Mul(s.pairsOf(), big.NewInt(s.Unit))
	whole.Mul(whole, whole)
	at, bt, vt := s.variances()
	below := func(x *big.Int, limit int64) bool {
		return new(big.Int).Lsh(x, 60).Cmp(new(big.Int).Mul(whole, big.NewInt(limit))) <= 0
	}
	return below(at, v1) && below(bt, v0) && below(vt.Sub(vt, at), rest)
}

// Dearest is what a failure adds to later levels: ln(3c).
func (c Check) Dearest() moments.Nats { return moments.PriceOf(losses * float64(c.Cells)) }

// Value is the guess, or the middle of the cell.
func (c Check) Value(o Outcome) float64 {
	if o.Failed() {
		return (float64(o.Cell) + 0.5) / float64(c.Cells)
	}
	return float64(c.Guess) / grid
}

func (c Check) statement() Statement {
	r := c.Ranks[0]
	return Statement{N1: float64(r.N1), N0: float64(r.N0), V1: float64(c.V1) / squares, V0: float64(c.V0) / squares, Rest: float64(c.Rest) / squares, Monotone: c.Monotone, OneSide: c.OneSide}
}

// Interval is that of the kernel's expectation between the two classes, given the labels, at the level E of [moments.Urn]; of a
// difference of AUCs or of tau_a, 2 Low - 1 to 2 High - 1.
func (c Check) Interval(o Outcome, level float64) (low, high float64) {
	from, to := float64(o.Cell)/float64(c.Cells), float64(o.Cell+1)/float64(c.Cells)
	r := c.Ranks[0]
	if !o.Failed() {
		r = c.Ranks[o.Rank-1]
		from, to = float64(c.Guess-r.Away)/grid, float64(c.Guess+r.Away)/grid
	}
	switch {
	case o.Rank == 1 || o.Failed() && o.Loss == 0:
		low, high = c.statement().Interval(from, to, level, o.Failed())
	case o.Failed() && o.Loss == losses-1:
		return 0, 1
	default:
		low, high = Matchings(from, to, float64(min(r.N1, r.N0)), level+matchingsLevel)
	}
	return max(0, low-slack), min(1, high+slack)
}

// slack is more than the rounding of the ends' floating point.
const slack = 1e-12

// Exact is the interval of a question that nothing is chosen after, in a batch fixed beforehand or in the last round, read at the sample's own mean. Where the
// planned statement is not true the matchings' interval is left.
func (c Check) Exact(s Sums, level float64) (low, high float64, err error) {
	if err := c.Valid(); err != nil {
		return 0, 1, err
	}
	if s.N1 == 0 || s.N0 == 0 {
		return 0, 1, nil
	}
	h, _, _, _ := s.Moments()
	if r := c.Ranks[0]; s.N1 >= r.N1 && s.N0 >= r.N0 && s.within(c.V1, c.V0, c.Rest) {
		low, high = c.statement().Interval(h, h, level, false)
	} else {
		low, high = Matchings(h, h, float64(min(s.N1, s.N0)), level+matchingsLevel)
	}
	return max(0, low-slack), min(1, high+slack), nil
}

// Foreseen is Exact of a sample with this mean of which the planned statement is true.
func (c Check) Foreseen(mean, level float64) (low, high float64) {
	low, high = c.statement().Interval(mean, mean, level, false)
	return max(0, low-slack), min(1, high+slack)
}

// Training is what the training part tells of a pair kernel.
type Training struct {
	H, V1, V0, V float64 // as of [Sums.Moments]
	N1, N0       int64   // units of the classes, class 1 being the smaller, by which the moments are as uncertain
	All          int64   // units in both classes and in neither
	Monotone     bool    // an AUC
	// Difference is for kernels that are a difference of two, whose variances are small beside their range.
	Difference bool
}

// Plan is the check from the training part's moments for a holdout of n units, where the narrowest margin leaves room for z standard deviations
// (moments.Deviations). An error says that a class has too few units for a plan.
func Plan(t Training, n int64, z float64) (Check, error) {
	if t.N1 > t.N0 || t.N1 < 1 || t.All < t.N1+t.N0 || n < 1 || n > maxUnits || !(z > 0) {
		return Check{}, fmt.Errorf("pairs: no plan from %d and %d units of %d; class 1 is the smaller one, and not empty", t.N1, t.N0, t.All)
	}
	c := Check{Guess: int64(math.Floor(t.H*grid + 0.5)), Monotone: t.Monotone}
	size := func(units int64, z float64) float64 {
		share, ratio := float64(units)/float64(t.All), float64(n)/float64(t.All)
		return math.Floor(max(0, float64(n)*share-z*math.Sqrt(float64(n)*share*(1-share)*(1+ratio))))
	}
	n1, n0 := size(t.N1, z), size(t.N0, z)
	if n1 < 1 || n0 < 1 {
		return Check{}, fmt.Errorf("pairs: too few units of a class for a plan: %d and %d in training", t.N1, t.N0)
	}
	s1, s0 := 1/n1+1/float64(t.N1), 1/n0+1/float64(t.N0)
	wider := func(v, s float64) int64 {
		w := v * (1 + z*math.Sqrt(8*s))
		if !t.Difference {
			w += z * z * s / 8
		}
		return int64(min(math.Ceil(w*squares), squares/4))
	}
	c.V1, c.V0, c.Rest = wider(t.V1, s1), wider(t.V0, s0), wider(t.V-t.V1, s1)
	d := z * math.Sqrt(float64(c.V1)/squares*s1+float64(c.V0)/squares*s0)
	away := int64(min(math.Ceil(d*grid), grid))
	c.Ranks = []Rank{{Away: away, N1: int64(n1), N0: int64(n0)}, {Away: min(2*away, grid), N1: int64(size(t.N1, 2*z)), N0: int64(size(t.N0, 2*z))}}
	c.Cells = int64(math.Exp2(min(max(math.Round(math.Log2(z/(2*max(d, 1e-6)))), 0), 20)))
	return c, nil
}

// Silent reports whether the check says nothing: it is that of the function Silent, but for the guess.
func (c Check) Silent() bool { r := c.Ranks[0]; return r.N1 == 0 && r.N0 == 0 && r.Away == grid }

// Silent is a check that says nothing: it passes whatever the sums are, and its interval is [0,1].
func Silent() Check {
	all := Rank{Away: grid}
	return Check{Guess: grid / 2, Ranks: []Rank{all, all}, V1: squares / 4, V0: squares / 4, Rest: squares / 4, Cells: 1}
}
