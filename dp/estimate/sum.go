package estimate

import "github.com/holdoutd/holdoutd/dp/noise"

// Sum is the sum of numbers, each clamped to [Low, High].
type Sum struct {
	Guard
	Low, High  float64
	Confidence float64 // of the interval; 0 is DefaultConfidence
}

// Release is the sum with noise: unbiased for the sum of the clamped values. The guarantee needs a stream of a secret key that is used for nothing else; so
// it is with every Release here.
func (e Sum) Release(t Table, s *noise.Stream) (Estimate, error) {
	beta, err := asked(e.Confidence)
	if err != nil {
		return Estimate{}, err
	}
	g, err := gridFor(e.Low, e.High)
	if err != nil {
		return Estimate{}, err
	}
	if err := e.Guard.check(); err != nil {
		return Estimate{}, err
	}
	of := g.sensitivity(e.Protection)
	if err := e.Noise.check(of); err != nil {
		return Estimate{}, err
	}
	values, err := e.kept(t, s)
	if err != nil {
		return Estimate{}, err
	}
	sum, reach := float64(e.noisy(g.sum(values), of, e.Noise, s)), e.Noise.reach(of, beta)
	return Estimate{sum * g.step, (sum - reach) * g.step, (sum + reach) * g.step}, nil
}

// Count is how many rows there are, or how many have a property: give those.
type Count struct {
	Guard
	Confidence float64
}

// Release is the number of rows with noise; it can be below 0. Where neighbours have equally many rows that have the property or not, count those that do:
// the sensitivity is that of such a count. Values of the table are not looked at.
func (e Count) Release(t Table, s *noise.Stream) (Estimate, error) {
	beta, err := asked(e.Confidence)
	if err != nil {
		return Estimate{}, err
	}
	if err := e.Guard.check(); err != nil {
		return Estimate{}, err
	}
	of := e.Protection.Count()
	if err := e.Noise.check(of); err != nil {
		return Estimate{}, err
	}
	values, err := e.kept(t, s)
	if err != nil {
		return Estimate{}, err
	}
	count := float64(e.noisy(int64(len(values)), of, e.Noise, s))
	reach := e.Noise.reach(of, beta)
	return Estimate{count, count - reach, count + reach}, nil
}
