package fairness

import (
	"math"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// told is an answer with its interval; exact answers have the standard error of their plain one.
type told struct{ value, low, high, deviation float64 }

// team is one team at work on one holdout.
type team struct {
	truth             truth
	holdout, training part
	desk              *analysts.Holdout
	compares          bool   // it asks what each rule gains, not what the accuracy is with it
	turned            []bool // rules by which the model decides the other way
	missed            bool
	first             float64 // half-width of the subgroup's first accuracy
}

// outcome is what one team comes to.
type outcome struct {
	Told      float64 `json:"told"` // the gap
	Low       float64 `json:"low"`  // its interval
	High      float64 `json:"high"`
	Deviation float64 `json:"deviation"` // standard error of an exact answer
	True      float64 `json:"true"`      // the gap that is left
	Missed    bool    `json:"missed"`    // some interval of the run
	Shrunk    float64 `json:"shrunk"`    // by how much less it is than at the beginning
	First     float64 `json:"first"`     // half-width of the subgroup's first accuracy
	Kept      int     `json:"kept"`      // rules
	Asked     int64   `json:"asked"`
	Tokens    int64   `json:"tokens"`
}

// play lets a team adjust the model and report the gap.
func (c *cell) play(people *population, seed uint64) (outcome, error) {
	coins := c.condition == nothingToFind
	t := team{truth: people.truth(coins), holdout: people.draw(run.SeedOf(seed, 1), int(c.guarantee.N), coins), desk: analysts.NewHoldout(c.guarantee, run.SeedOf(seed, 3)),
		compares: c.compares, turned: make([]bool, people.rules())}
	if c.guarantee.Training > 0 {
		t.training = people.draw(run.SeedOf(seed, 2), int(c.guarantee.Training), coins)
	}
	others, err := t.accuracy(false)
	if err != nil {
		return outcome{}, err
	}
	own, err := t.adjust(c.rules)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{Told: others.value - own.value, Low: others.low - own.high, High: others.high - own.low, Deviation: math.Hypot(others.deviation, own.deviation),
		True: t.truth.others - t.truth.turned(t.turned), Missed: t.missed, First: t.first, Asked: t.desk.State.Questions, Tokens: t.desk.State.Tokens}
	out.Shrunk = t.truth.turned(t.turned) - t.truth.turned(make([]bool, len(t.turned)))
	for _, other := range t.turned {
		out.Kept += int(run.Indicator(other))
	}
	return out, nil
}

// adjust tries the first rules one after another, keeps those that seem to help, and returns what is told of the subgroup's accuracy at last. It stops where nothing is answered any more.
func (t *team) adjust(rules int) (told, error) {
	best, err := t.accuracy(true)
	if err != nil {
		return best, err
	}
	t.first = (best.high - best.low) / 2
	for rule := range rules {
		if t.desk.Remaining() <= int64(run.Indicator(t.compares)) { // the last question is that for the accuracy
			break
		}
		if t.compares {
			gain, err := t.gain(rule)
			if err != nil {
				return best, err
			}
			t.turned[rule] = gain.value > 0
			continue
		}
		t.turned[rule] = true
		now, err := t.accuracy(true)
		if err != nil {
			return best, err
		}
		if t.turned[rule] = now.value > best.value; t.turned[rule] {
			best = now
		}
	}
	if t.compares {
		return t.accuracy(true)
	}
	return best, nil
}

// accuracy asks for the model's accuracy as it is: for the subgroup, or for all others.
func (t *team) accuracy(subgroup bool) (told, error) {
	counts := func(p part) (hits, members int64) {
		if subgroup {
			return p.hits(t.turned), p.members
		}
		return p.othersRight, p.n - p.members
	}
	truth, share := t.truth.others, 1-t.truth.share
	if subgroup {
		truth, share = t.truth.turned(t.turned), t.truth.share
	}
	switch {
	case t.desk.Guarantee.ChecksStatistics():
		statistic := func(p part) thresholdout.Statistic {
			hits, members := counts(p)
			return thresholdout.RootSums{All: p.n, Partial: true, Binary: true, Sums: sumsOf(members, hits, 0)}
		}
		out, err := t.desk.Statistic(thresholdout.StatisticInput{Holdout: statistic(t.holdout), Training: statistic(t.training)})
		return t.note(out, truth, 0, 1, err)
	case t.desk.Guarantee.Mechanism == thresholdout.Naive:
		// As a server that answers exactly does: the mean over all flights of being right and in the group, over that of being in it.
		hits, members := counts(t.holdout)
		right, err := t.desk.Mean(thresholdout.Input{Holdout: thresholdout.Mean{Sum: hits * rowfn.One, N: t.holdout.n}})
		if err != nil {
			return told{}, err
		}
		in, err := t.desk.Mean(thresholdout.Input{Holdout: thresholdout.Mean{Sum: members * rowfn.One, N: t.holdout.n}})
		value := right.Value / in.Value
		return told{value: value, deviation: math.Sqrt(value * (1 - value) / float64(members))}, err
	}
	hits, members := counts(t.holdout)
	return t.signed(2*hits-members, members, share, truth, 0.5-0.5/share, 1/share)
}

// gain asks what a rule adds to the subgroup's accuracy.
func (t *team) gain(rule int) (told, error) {
	truth := t.truth.about[rule] * (1 - 2*t.truth.accuracy[rule])
	if !t.desk.Guarantee.ChecksStatistics() {
		right, wrong := t.holdout.right[rule], t.holdout.wrong[rule]
		return t.signed(wrong-right, wrong+right, t.truth.about[rule]*t.truth.share, truth, -1/t.truth.share, 2/t.truth.share)
	}
	statistic := func(p part) thresholdout.Statistic {
		right, wrong := p.right[rule], p.wrong[rule]
		return thresholdout.RootSums{All: p.n, Partial: true, Sums: sumsOf(p.members, wrong, p.members-wrong-right)}
	}
	out, err := t.desk.Statistic(thresholdout.StatisticInput{Holdout: statistic(t.holdout), Training: statistic(t.training)})
	return t.note(out, truth, -1, 2, err)
}

// sumsOf are the sums of so many units, of which these have the value 1 and these 1/2, and the others 0.
func sumsOf(units, ones, halves int64) moments.Sums {
	s := moments.Sums{Units: units, Sum: ones*rowfn.One + halves*(rowfn.One/2)}
	s.Squares.AddSums(ones*rowfn.One, rowfn.One)
	s.Squares.AddSums(halves*(rowfn.One/2), rowfn.One/2)
	return s
}

// signed asks for a mean over all flights of values that are 1 or -1 for a share of them and 0 for the others, with the promise that no more than the share are not 0, but for five standard deviations.
func (t *team) signed(sum, nonzero int64, share, truth, low, times float64) (told, error) {
	n := t.holdout.n
	pledge, err := thresholdout.NewPledge(thresholdout.Disagreement, min(1, share+promiseDeviations*math.Sqrt(share*(1-share)/float64(n))))
	if err != nil {
		return told{}, err
	}
	distances := nonzero * rowfn.One
	out, err := t.desk.Mean(thresholdout.Input{Holdout: thresholdout.Mean{Sum: (n + sum) * (rowfn.One / 2), N: n},
		Promise: &thresholdout.Borne{Pledge: pledge, Sums: thresholdout.PledgeSums{Distances: &distances}}})
	return t.note(out, truth, low, times, err)
}

// promiseDeviations is how many standard deviations of its own a promised share has to spare: one in a million promises is broken.
const promiseDeviations = 5

// note is an answer in units of what was asked, low + times its value, and whether its interval misses the truth.
func (t *team) note(out thresholdout.Output, truth, low, times float64, err error) (told, error) {
	if err != nil {
		return told{}, err
	}
	a := told{value: low + times*out.Value, low: low + times*out.Interval.Low, high: low + times*out.Interval.High}
	t.missed = t.missed || truth < a.low || truth > a.high
	return a, nil
}
