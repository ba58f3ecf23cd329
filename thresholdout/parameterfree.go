package thresholdout

import (
	"errors"
	"fmt"
	"math/big"
)

// ParameterFreeLadder is the parameter-free Ladder of Blum and Hardt (arXiv 1502.04585, section 4): a leaderboard shows the loss of the
// best submission so far, and moves only for a gain beyond one standard error of the paired difference. Nothing is proved of it, and it can be
// climbed: a submission that differs from the best one in two rows, and is right in both, gains more than a standard error. It is here to
// reproduce the paper; the server's mechanism is [StepLadder]. The zero value is an empty board.
type ParameterFreeLadder struct {
	Submissions int64    `json:"submissions"`
	Shown       int64    `json:"shown"`            // what the board shows, in rows: the best loss is Shown/N, once there is a submission
	Sum         int64    `json:"sum"`              // of the best submission's row losses, in steps of 2^-30
	Square      *big.Int `json:"square,omitempty"` // of their squares, in steps of 2^-60
}

// Losses are what one step of the Ladder reads: exact sums over the holdout's rows of a submission's row losses l in [0,1],
// in whole steps of 2^-30, of l^2 and of l times the loss of the best submission so far in the same row. Which
// submission that is, the caller remembers beside the state.
type Losses struct {
	N      int64    // rows
	Sum    int64    // of l, in steps of 2^-30
	Square *big.Int // of l^2, in steps of 2^-60
	Cross  *big.Int // of l l_best, in steps of 2^-60; not read for the first submission
}

// errLosses says that sums cannot be those of losses in [0,1].
var errLosses = errors.New("thresholdout: sums that no losses in [0,1] have")

// Submit is one step: it returns what may be shown, and the state to be made durable before it is. It is a pure function.
// The comparison is exact, with the gain g = shown - loss and the differences d = l - l_best of the rows: the board moves if g > 0
// and g^2 > s^2/n, s^2 the sample variance of d, with all denominators multiplied out.
func (l ParameterFreeLadder) Submit(in Losses) (Standing, ParameterFreeLadder, error) {
	if err := l.check(in); err != nil {
		return Standing{}, l, err
	}
	next := l
	next.Submissions++
	if l.Submissions == 0 || l.gains(in) {
		next.Shown, next.Sum, next.Square = (in.Sum+grid/2)/grid, in.Sum, new(big.Int).Set(in.Square)
		return Standing{Loss: float64(next.Shown) / float64(in.N), Best: true}, next, nil
	}
	return Standing{Loss: float64(l.Shown) / float64(in.N)}, next, nil
}

func (l ParameterFreeLadder) gains(in Losses) bool {
	// (shown grid - sum)^2 (n-1) > n sum d^2 - (sum d)^2, everything in steps of 2^-30.
	gain := l.Shown*grid - in.Sum
	if gain <= 0 {
		return false
	}
	difference := big.NewInt(in.Sum - l.Sum)
	spread := l.squares(in)
	spread.Mul(spread, big.NewInt(in.N)).Sub(spread, difference.Mul(difference, difference))
	significance := big.NewInt(gain)
	significance.Mul(significance, significance).Mul(significance, big.NewInt(in.N-1))
	return significance.Cmp(spread) > 0
}

// squares is the sum of (l - l_best)^2.
func (l ParameterFreeLadder) squares(in Losses) *big.Int {
	s := new(big.Int).Add(in.Square, l.Square)
	return s.Sub(s, new(big.Int).Lsh(in.Cross, 1))
}

func (l ParameterFreeLadder) check(in Losses) error {
	switch {
	case in.N < 2 || in.N > MaxUnits:
		return fmt.Errorf("thresholdout: a ladder of %d rows; between 2 and %d are possible", in.N, int64(MaxUnits))
	case in.Sum < 0 || in.Sum > in.N*grid || in.Square == nil || l.Submissions > 0 && (in.Cross == nil || l.Square == nil):
		return errLosses
	}
	// Losses in [0,1] have l^2 <= l, and any numbers n sum x^2 >= (sum x)^2.
	variance := func(square *big.Int, sum int64) int {
		s := big.NewInt(sum)
		return new(big.Int).Mul(square, big.NewInt(in.N)).Cmp(s.Mul(s, s))
	}
	if variance(in.Square, in.Sum) < 0 || in.Square.Cmp(new(big.Int).Lsh(big.NewInt(in.Sum), 30)) > 0 {
		return errLosses
	}
	if l.Submissions > 0 && variance(l.squares(in), in.Sum-l.Sum) < 0 {
		return errLosses
	}
	return nil
}
