package certify

import (
	"math"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// digitWork certifies and attacks digits under one condition.
type digitWork struct {
	condition
	network *learn.Network
	draws   int
	alpha   float64 // of one certificate
}

func (w digitWork) digit(x []float64, label int, seed uint64) (certified, error) {
	out := certified{Label: label}
	all := ways(w.noise.Family)
	for _, scores := range []bool{false, true} {
		found, against, err := w.function(x, all, scores, seed)
		if err != nil {
			return out, err
		}
		out.Found = append(out.Found, found...) // ways of labels come first
		if scores {
			out.Scores = against
		} else {
			out.Labels = against
		}
	}
	return out, nil
}

// function certifies and attacks the prediction by expected labels, or by expected scores. Both see the same noise.
func (w digitWork) function(x []float64, all []way, scores bool, seed uint64) ([]verdict, assault, error) {
	s, err := certify.New(w.classifier(scores), w.options(judge(scores), w.draws))
	if err != nil {
		return nil, assault{}, err
	}
	var tally certify.Tally
	if err := s.Tally(&tally, x, seeds.Of(seed, 1)); err != nil {
		return nil, assault{}, err
	}
	against := assault{Prediction: most(tally.Sums)}
	var found []verdict
	for _, way := range all {
		if way.scores != scores {
			continue
		}
		c, err := w.options(way, w.draws).Certify(&tally)
		if err != nil {
			return nil, assault{}, err
		}
		found = append(found, verdict{Prediction: c.Prediction, Radius: c.Radius})
		if c.Radius > against.Radius {
			against.Prediction, against.Radius = c.Prediction, c.Radius
		}
	}
	return found, against, w.assault(&against, x, scores, seed)
}

// Sizes of attacks, in scales of the noise.
const (
	firstAttack    = 0.25 // on a prediction that is not certified
	largestAttack  = 64
	attackHalvings = 4 // of the interval that the smallest attack is in
)

// assault attacks inside the certified radius, where only a change of which it is sure counts, and then looks for the smallest size
// that succeeds by what is predicted most often.
func (w digitWork) assault(a *assault, x []float64, scores bool, seed uint64) error {
	attack := newPGD(w.network, w.noise, seeds.Of(seed, 2))
	moved, tries := make([]float64, len(x)), uint64(0)
	try := func(size float64, draws int) (changed, surely bool, err error) {
		o := w.options(judge(scores), draws)
		s, err := certify.New(w.classifier(scores), o)
		if err != nil {
			return false, false, err
		}
		attack.move(moved, x, a.Prediction, size)
		tries++
		var tally certify.Tally
		if err := s.Tally(&tally, moved, seeds.Of(seed, 3, tries)); err != nil {
			return false, false, err
		}
		c, err := o.Certify(&tally)
		return most(tally.Sums) != a.Prediction, c.Prediction != certify.Abstain && c.Prediction != a.Prediction, err
	}
	if a.Radius > 0 {
		for range insideTries {
			_, surely, err := try(inside*a.Radius, min(insideDraws, w.draws))
			if err != nil {
				return err
			}
			a.Broken = a.Broken || surely
		}
	}
	var err error
	a.Smallest, err = smallest(a.Radius, max(2*a.Radius, firstAttack*w.noise.Scale), largestAttack*w.noise.Scale, func(size float64) (bool, error) {
		changed, _, err := try(size, min(searchDraws, w.draws/4))
		return changed, err
	})
	return err
}

// smallest is the smallest size that succeeds, above low: high is doubled until it does, at most to largest, and the interval halved.
func smallest(low, high, largest float64, succeeds func(size float64) (bool, error)) (float64, error) {
	for {
		success, err := succeeds(high)
		if err != nil {
			return 0, err
		}
		if success {
			break
		}
		if low, high = high, 2*high; high > largest {
			return largest, nil
		}
	}
	for range attackHalvings {
		middle := (low + high) / 2
		success, err := succeeds(middle)
		if err != nil {
			return 0, err
		}
		if success {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}

// judge is the way that says surely what a smoothed function predicts.
func judge(scores bool) way {
	if scores {
		return way{true, certify.TwoSided, certify.EmpiricalBernstein}
	}
	return way{false, certify.TwoSided, certify.ClopperPearson}
}

// options of a certificate in one way from this many draws.
func (w digitWork) options(way way, draws int) certify.Options {
	return certify.Options{Noise: w.noise, Select: certify.DefaultSelect, Samples: draws, Alpha: w.alpha, Method: way.method, Bound: way.bound}
}

// classifier is the network's labels or its scores, for one goroutine.
func (w digitWork) classifier(scores bool) certify.Classifier {
	pass := w.network.NewPass(1)
	if scores {
		return certify.Classifier{Classes: tables.DigitClasses, Scores: func(dst, x []float64) { learn.SoftmaxTo(dst, pass.Scores(x)) }}
	}
	return certify.Classifier{Classes: tables.DigitClasses, Label: func(x []float64) int { return learn.Predict(pass.Scores(x)) }}
}

func most(sums []float64) int { return learn.Predict(sums) }

// survives reports whether the prediction is right and no attack of this size is known to change it.
func (a assault) survives(label int, size float64) bool {
	return a.Prediction == label && a.Smallest > size
}

// ratio of the smallest attack that succeeded to the certified radius, infinite where nothing is certified.
func (a assault) ratio() float64 {
	if a.Radius == 0 {
		return math.Inf(1)
	}
	return a.Smallest / a.Radius
}
