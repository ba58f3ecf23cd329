package account

import "math"

// Odometer says how much privacy has been lost so far, at any time at which somebody chooses to look or to stop, where there is no budget and what a
// release spends is chosen by earlier answers. Sums of rho cannot be turned into (epsilon, delta) then as they can for a sum that was fixed before: the
// time of looking may depend on the loss.
//
// It is a row of filters, at the rhos First, 2 First, 4 First and so on, of which the j-th, from 0, has the share 6/(pi² (j+1)²) of delta. The releases
// that filter j admits are rho_j-zCDP together (Whitehouse et al., arXiv 2203.05481, Theorem 1), so their privacy loss exceeds
//
//	rho_j + 2 sqrt(rho_j ln(2/delta_j))
//
// in either direction with probability at most delta_j (Bun and Steinke, arXiv 1605.02065, Lemma 3.5, once for each direction). Whoever stops at the first
// moment at which it does is one more analyst of whom this holds, so with probability 1-delta no filter's loss ever does. What was spent lies within some
// filter, and the least of those says the epsilon. That is the definition of Rogers, Roth, Ullman and Vadhan (arXiv 1605.08294): with probability 1-delta
// the loss is at most what the odometer says.
type Odometer struct {
	delta, first float64
	spent        ZCDP
}

// NewOdometer begins at 0. first is the rho of the first filter, positive: below it the odometer says no less.
func NewOdometer(first ZCDP, delta float64) *Odometer {
	must(first > 0 && !math.IsInf(float64(first), 1), "a first rho of %v", float64(first))
	must(delta > 0 && delta < 1, "delta %v is not between 0 and 1", delta)
	return &Odometer{delta: delta, first: float64(first)}
}

// Spend adds a release that is rho-zCDP.
func (o *Odometer) Spend(rho ZCDP) {
	must(rho >= 0, "rho %v is negative", float64(rho))
	o.spent += rho
}

// Spent is the sum of rhos.
func (o *Odometer) Spent() ZCDP { return o.spent }

// Epsilon is what the loss so far is at most, with probability 1-delta over all times together; 0 before the first release.
func (o *Odometer) Epsilon() float64 {
	if o.spent == 0 {
		return 0
	}
	if math.IsInf(float64(o.spent), 1) {
		return math.Inf(1)
	}
	j, rho := 0., o.first
	for rho < float64(o.spent) {
		j, rho = j+1, 2*rho
	}
	delta := o.delta * 6 / (math.Pi * math.Pi * (j + 1) * (j + 1))
	return rho + 2*math.Sqrt(rho*math.Log(2/delta))
}
