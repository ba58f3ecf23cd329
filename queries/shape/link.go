package shape

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/interval"
)

// Link is how an answer follows from a mean in [0,1] that is released: a rising function onto [0,1], so that the ends of an interval go where they
// belong.
type Link uint8

// The links.
const (
	Identity   Link = iota
	SquareRoot      // of a mean square, as of errors
	Dice            // 2J/(1+J) of the share J of those with both of two properties among those with any: F1
)

// value is the link of a mean.
func (l Link) value(mean float64) float64 {
	mean = min(max(mean, 0), 1)
	switch l {
	case SquareRoot:
		return math.Sqrt(mean)
	case Dice:
		return 2 * mean / (1 + mean)
	}
	return mean
}

// inverse is the mean whose link is x.
func (l Link) inverse(x float64) float64 {
	switch l {
	case SquareRoot:
		return x * x
	case Dice:
		return x / (2 - x)
	}
	return x
}

// of is the link of a mean and of its interval.
func (l Link) of(value float64, bounds interval.Interval) (float64, interval.Interval) {
	linked := l.value(value)
	switch l {
	case SquareRoot:
		return linked, bounds.Sqrt()
	case Dice:
		b, one := bounds.Clip(0, 1), interval.Point(1)
		end := func(x float64) interval.Interval {
			p := interval.Point(x)
			return p.Add(p).Div(one.Add(p))
		}
		return linked, interval.Interval{Low: end(b.Low).Low, High: end(b.High).High}.Clip(0, 1)
	}
	return linked, bounds
}
