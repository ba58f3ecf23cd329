package shape

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Plain p-values of single tests, from the law that the released, noisy numbers have under the null (a noisy null). They are what a
// statistician would print who ran this test alone: right for a hypothesis that was fixed before anything was known of the units,
// and not to be read as one of many. So they are given only where nothing had been told of the units before: for the first request
// of a holdout, and under split, where each mean is of units of its own.
//
// All of them are tails that hold for every n and for independent units that differ: of a proportion the binomial one, but where it is not the largest; of a mean the largest that numbers in [0,1] can have. A
// normal law would be several times too small for a null near 0 or 1.

// Plain is a plain p-value: which law the released means have under the null hypothesis.
type Plain struct {
	Law  Law
	Null []float64 // the means of the row functions under the null hypothesis
}

// Law is what is known of the law of a row function's mean.
type Law uint8

const (
	// OfMean is the mean of numbers in [0,1].
	OfMean Law = iota
	// OfShare is the share of units of which each has 0 or 1.
	OfShare
)

// pValue is that of one mean, or of many, each tested by itself; nil where a part is not fresh.
func (p *Plain) pValue(o Outcome, alternative Alternative) *float64 {
	fresh, ok := o.fresh()
	if !ok {
		return nil
	}
	if len(p.Null) == 1 {
		return fresh[0].tail(p.Law).pValue(o.Parts[0].Value, p.Null[0], alternative)
	}
	values := make([]float64, len(o.Parts))
	for i, part := range o.Parts {
		values[i] = part.Value
	}
	return cellsPValue(fresh, p.Law, values, p.Null)
}

// freshness is what a plain p-value needs to know of a part.
type freshness struct {
	units int64   // that the part is a mean of
	sigma float64 // its noise
}

// tail is that of a released number by the law.
func (f freshness) tail(l Law) upper {
	if l == OfShare {
		return f.reaches
	}
	return f.meanReaches
}

// fresh is the freshness of each part; false where one of them is not fresh. Parts that were released one by one may have different noise.
func (o Outcome) fresh() (all []freshness, ok bool) {
	for _, p := range o.Parts {
		if !p.Fresh || p.Units < 1 {
			return nil, false
		}
		all = append(all, freshness{p.Units, p.Sigma})
	}
	return all, len(all) > 0
}

// slack is what rounding to the grid may add to a deviation: in doubt a p-value is larger.
const slack = 0x1p-28

// upper bounds the probability that a released number is at least x, given its expectation under the null. For 1 minus the number it is the same
// function of 1 minus the null. x is in (0,1].
type upper func(null, x float64) float64

// at is the bound for any x: released numbers are clipped, so that all are at least 0 and none is above 1.
func (tail upper) at(null, x float64) float64 {
	switch {
	case x <= 0:
		return 1
	case x > 1:
		return 0
	}
	return tail(null, x)
}

// pValue is that of a number whose expectation is null. Two-sided it is of a deviation at least as large, on either side. It is nil where the
// null leaves no room for chance.
func (tail upper) pValue(value, null float64, alternative Alternative) *float64 {
	if !(null > 0 && null < 1) {
		return nil
	}
	away := value - null
	if alternative == TwoSided {
		away = math.Abs(away)
	}
	p := 0.0
	if alternative != Less {
		p += tail.at(null, null+away-slack)
	}
	if alternative == TwoSided {
		away = -away
	}
	if alternative != Greater {
		p += tail.at(1-null, 1-null-away-slack)
	}
	p = min(p, 1)
	return &p
}

// reaches is the same for the share of independent units of which each has 0 or 1, whatever their expectations are one by one, from above. Of a number of units with 1 that is n·null + 1 or more
// the binomial tail is the largest there is (Hoeffding 1956, theorem 4). It is not so nearer to n·null: where one unit has 1 with probability q and the others surely have 0, a single 1 is more probable than n tries at q/n make it. There
// it is [counts.hinge], which rare events do not break either. Both bounds fall, so that with noise they are read at each number that the noise may make necessary.
func (f freshness) reaches(null, x float64) float64 {
	c := f.counts(null)
	if f.sigma == 0 {
		return c.reach(math.Ceil(x*c.n - 1e-9))
	}
	// With a noise of z the share without it has to be at least x - z: no more than k are needed with this probability.
	needs := func(k float64) float64 { return distuv.UnitNormal.CDF((k/c.n - x) / f.sigma) }
	k := math.Floor(c.n * null)
	total, before, bound := needs(k), needs(k), 1.0
	for k < c.n && bound > c.outside {
		k++
		bound = c.reach(k)
		next := needs(k)
		total += bound * (next - before)
		before = next
	}
	return min(total+bound*(1-before), 1)
}

// reach bounds the probability that k units or more have 1.
func (c counts) reach(k float64) float64 {
	if k >= c.n*c.null*(1-0x1p-51)+1 { // n·null is rounded
		return c.atLeast(k)
	}
	bound, _ := c.hinge(k, 0)
	return bound
}

// counts are the probabilities of a binomial number of successes, but for some that are less probable together than outside.
type counts struct {
	n, null float64
	first   float64   // the count of mass[0]
	mass    []float64 // of first, first+1, …
	tail    []float64 // the sum of mass from there on
	sum     []float64 // the sum of count · mass from there on
	outside float64
}

const (
	// By Bernstein's inequality a binomial count is tails standard deviations and tails²/3 beside its expectation, or more, with a probability of
	// at most e^(-tails²/2) on either side.
	tails = 9
	// outsideMass is more than twice e^(-tails²/2).
	outsideMass = 6e-18
)

func (f freshness) counts(null float64) counts {
	n := float64(f.units)
	b := distuv.Binomial{N: n, P: null}
	far := tails*math.Sqrt(n*null*(1-null)) + tails*tails/3.0
	c := counts{n: n, null: null, first: max(0, math.Floor(n*null-far)), outside: outsideMass}
	last := min(n, math.Ceil(n*null+far))
	size := int(last-c.first) + 1
	c.mass, c.tail, c.sum = make([]float64, size), make([]float64, size+1), make([]float64, size+1)
	for i := size - 1; i >= 0; i-- {
		k := c.first + float64(i)
		c.mass[i] = math.Exp(b.LogProb(k))
		c.tail[i] = c.tail[i+1] + c.mass[i]
		c.sum[i] = c.sum[i+1] + k*c.mass[i]
	}
	return c
}

// atLeast is the probability of k successes or more, from above.
func (c counts) atLeast(k float64) float64 {
	i := k - c.first
	switch {
	case i <= 0:
		return 1
	case i >= float64(len(c.mass)):
		return c.outside
	}
	return min(c.tail[int(i)]+c.outside, 1)
}

// meanReaches is the same for the mean of independent values in [0,1] of any laws, from above. With noise it is the expectation of [counts.hinge] over the noise, from above: that bound falls, and is read at the lower end of each step.
func (f freshness) meanReaches(null, x float64) float64 {
	c := f.counts(null)
	if f.sigma == 0 {
		bound, _ := c.hinge(x*c.n-1e-9, 0)
		return bound
	}
	// With a noise of z the mean without it has to be at least x - z: it is needed to be at most s/n with this probability.
	needs := func(s float64) float64 { return distuv.UnitNormal.CDF((s/c.n - x) / f.sigma) }
	s, bound, at := c.n*null, 1.0, 0
	total, before := needs(s), needs(s)
	step := max(math.Sqrt(c.n*null*(1-null)), 1) / noiseSteps
	for bound > c.outside && s < c.n {
		bound, at = c.hinge(s, at)
		s += step
		next := needs(s)
		total += bound * (next - before)
		before = next
	}
	return min(total+bound*(1-before), 1)
}

// noiseSteps of a standard deviation: a bound that falls like a normal tail is up by 4% at five deviations.
const noiseSteps = 128

// hinge bounds the probability that the sum of n independent values in [0,1], with expectations that add up to n·null, is at least s. The expectation of
// a convex function of the sum is largest for the binomial count B (Hoeffding 1963, section 5; Hoeffding 1956 where they are not alike), so that for every t < s
//
//	P(sum >= s) <= E(B-t)+ / (s-t).
//
// The least over t is at most e P(B >= s) for whole s (Bentkus, Annals of Probability 32, 2004) and no more than Hoeffding's own bound; it is at the whole t = k-1 with
// the least k for which E[B | B >= k] >= s. That k rises with s: of a smaller s it is at least from.
func (c counts) hinge(s float64, from int) (bound float64, at int) {
	switch {
	case s > c.n:
		return 0, from
	case s <= c.n*c.null:
		return 1, from
	}
	for at = from; at < len(c.mass); at++ {
		if c.sum[at] >= s*c.tail[at] && c.tail[at] > 0 {
			t := c.first + float64(at) - 1
			return min((c.sum[at]-t*c.tail[at])/(s-t)+c.outside, 1), at
		}
	}
	return c.outside, from
}

// cellsPValue is that of shares of cells whose expectations are null, each tested by itself with its own law: as many times the least
// p-value as there are cells, by Bonferroni. It holds whether the shares are of the same units or, under split, each of other ones.
func cellsPValue(fresh []freshness, law Law, values, null []float64) *float64 {
	least, cells := 1.0, 0.0
	for i, expected := range null {
		f := fresh[i]
		switch {
		case expected >= 1: // only the others can deviate
		case expected > 0:
			least = min(least, *f.tail(law).pValue(values[i], expected, TwoSided))
			cells++
		case f.sigma > 0:
			least = min(least, distuv.UnitNormal.Survival((values[i]-slack)/f.sigma))
			cells++
		case values[i] > slack: // a cell that cannot be
			least = 0
		}
	}
	p := min(1, least*max(cells, 1))
	return &p
}
