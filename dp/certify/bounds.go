package certify

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/binomial"
)

// Bound is a confidence bound for an expectation in [0,1] from independent draws. Its ends, each for itself, miss with
// probability at most alpha.
type Bound uint8

const (
	// ClopperPearson is exact for labels: the draws are 0 or 1. It is not defined for scores.
	ClopperPearson Bound = iota
	// Hoeffding is mean +- sqrt(ln(1/alpha)/(2n)), for any draws in [0,1].
	Hoeffding
	// EmpiricalBernstein is mean +- sqrt(2 V ln(2/alpha)/n) + 7 ln(2/alpha)/(3(n-1)) with the sample's variance V, for any draws in
	// [0,1]: narrower than Hoeffding where they vary little (Maurer, Pontil, arXiv:0907.3740, theorem 4).
	EmpiricalBernstein
)

var boundNames = [...]string{"clopper-pearson", "hoeffding", "empirical-bernstein"}

// String returns "clopper-pearson", "hoeffding" or "empirical-bernstein".
func (b Bound) String() string { return nameOf(boundNames[:], int(b), "Bound") }

// ParseBound reads what String writes.
func ParseBound(name string) (Bound, error) {
	i, err := parseName(boundNames[:], name, "bound")
	return Bound(i), err
}

// Ends returns lower and upper bound of an expectation from n >= 2 draws with this sum and sum of squares, each end missing with
// probability at most alpha in (0,1).
func (b Bound) Ends(sum, squares float64, n int64, alpha float64) (low, high float64, err error) {
	if n < 2 || !(alpha > 0 && alpha < 1) || !(sum >= 0 && sum <= float64(n)*(1+1e-9)) {
		return 0, 0, fmt.Errorf("%w: a sum of %v in %d draws at alpha %v", ErrOptions, sum, n, alpha)
	}
	mean, width := min(sum/float64(n), 1), 0.0
	switch b {
	case ClopperPearson:
		if sum != math.Trunc(sum) {
			return 0, 0, fmt.Errorf("%w: Clopper-Pearson counts labels; scores need hoeffding or empirical-bernstein", ErrOptions)
		}
		level := -math.Log(alpha)
		return binomial.Low(float64(n), sum, level), binomial.High(float64(n), sum, level), nil
	case Hoeffding:
		width = math.Sqrt(math.Log(1/alpha) / (2 * float64(n)))
	case EmpiricalBernstein:
		variance := max(0, (squares-float64(n)*mean*mean)/float64(n-1))
		width = math.Sqrt(2*variance*math.Log(2/alpha)/float64(n)) + 7*math.Log(2/alpha)/(3*float64(n-1))
	default:
		return 0, 0, fmt.Errorf("%w: %v is no bound", ErrOptions, b)
	}
	return max(0, mean-width), min(1, mean+width), nil
}

func nameOf(names []string, i int, kind string) string {
	if i >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, i)
	}
	return names[i]
}

func parseName(names []string, name, kind string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: %q is no %s, there are %v", ErrOptions, name, kind, names)
}
