package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// MaxRounds bounds the rounds of a guarantee: beyond, asking one by one is as narrow to a part in a hundred.
const MaxRounds = 64

// gaussian plans the noise and the half-width of plain answers.
func (p Params) gaussian() (Params, error) {
	given := p
	var err error
	switch {
	case p.Rounds != 0:
		p, err = p.inRounds()
	case p.Published:
		p, err = p.asPublished()
	default:
		p, err = p.oneByOne()
	}
	if err != nil {
		return p, err
	}
	if given.HalfWidth != 0 && p.HalfWidth > given.HalfWidth {
		return p, wrong("half_width", "%d questions about %d units get ±%.4g, not ±%v; ask for fewer questions or a wider interval", p.Questions, p.N, p.HalfWidth, given.HalfWidth)
	}
	for _, f := range []struct {
		field string
		given bool
	}{
		{"capped", given.Capped != 0 && given.Capped != p.Capped},
		{"subsample", given.Subsample != 0 && given.Subsample != p.Subsample},
		{"round_sigma", given.RoundSigma != nil && !slices.Equal(given.RoundSigma, p.RoundSigma)},
	} {
		if f.given {
			return p, wrong(f.field, "gaussian plans it itself")
		}
	}
	return p, nil
}

// plainBeta is the probability of error of plain answers; the rest is Capped's.
func (p Params) plainBeta() float64 { return p.beta() * (1 - p.Capped) }

// reach sets the number of questions, where it is left open, to as many as get the wanted half-width.
func (p *Params) reach(most func(n int64, beta, w float64) (int64, error)) error {
	if p.Questions != 0 {
		return nil
	}
	p.Questions = DefaultQuestions
	if p.HalfWidth == 0 {
		return nil
	}
	k, err := most(p.N, p.plainBeta(), p.HalfWidth)
	if err != nil {
		return err
	}
	if k == 0 {
		return wrong("half_width", "%v is narrower than one question about %d units allows; ask for a wider one", p.HalfWidth, p.N)
	}
	p.Questions = k
	return nil
}

// oneByOne: any question after any answer, with the schedule's noise, or constant noise where the owner names it.
func (p Params) oneByOne() (Params, error) {
	p.Capped = cappedShare
	if err := p.reach(bounds.QuestionsWithin); err != nil {
		return p, err
	}
	var b bounds.Bound
	var err error
	if p.Sigma != 0 && !p.Scheduled {
		b, err = bounds.ConstantNoise(p.N, p.Questions, p.plainBeta(), p.Sigma)
	} else {
		b, err = bounds.AdaptiveHoeffdingScheduled(p.N, p.Questions, p.plainBeta())
	}
	if err != nil {
		return p, err
	}
	if p.Scheduled && p.Sigma != 0 && p.Sigma != b.Sigma {
		return p, wrong("sigma", "the schedule's scale for %d questions about %d units is %v, not %v; leave it out, or leave scheduled out for constant noise", p.Questions, p.N, b.Sigma, p.Sigma)
	}
	p.Sigma, p.Scheduled, p.HalfWidth = b.Sigma, b.Scheduled, b.HalfWidth
	p.cap()
	return p, nil
}

// BestSigma is the constant noise with which k plain answers about n units are narrowest.
func BestSigma(n, k int64, confidence float64) (float64, error) {
	b, err := bounds.AdaptiveHoeffding(n, k, Params{Confidence: confidence, Capped: cappedShare}.plainBeta())
	return b.Sigma, err
}

// inRounds: questions in batches, each chosen before any of its answers is seen.
func (p Params) inRounds() (Params, error) {
	if p.Questions == 0 {
		p.Questions = DefaultQuestions
	}
	switch {
	case p.Rounds < 1 || p.Rounds > min(MaxRounds, p.Questions):
		return p, wrong("rounds", "%d rounds for %d questions; between 1 and %d are possible; beyond, leave rounds out", p.Rounds, p.Questions, min(MaxRounds, p.Questions))
	case p.Published:
		return p, wrong("rounds", "no published bound knows of rounds")
	case p.Sigma != 0 || p.Scheduled:
		return p, wrong("sigma", "each round has a noise of its own, which is planned")
	}
	p.Capped = cappedShare
	r, err := bounds.AdaptiveHoeffdingRounds(p.N, p.Questions, p.Rounds, p.plainBeta())
	if err != nil {
		return p, err
	}
	p.RoundSigma, p.HalfWidth = r.Sigma, r.HalfWidth
	p.cap()
	return p, nil
}

// asPublished: constant noise under the narrowest published bound.
func (p Params) asPublished() (Params, error) {
	if p.Scheduled {
		return p, wrong("scheduled", "published bounds have constant noise")
	}
	width := func(n, k int64, beta float64) (bounds.Transfer, error) { return bounds.JLNRSSGDP(n, k, beta) }
	err := p.reach(func(n int64, beta, w float64) (int64, error) {
		return bounds.LargestWithin(w, func(k int64) (float64, error) {
			t, err := width(n, k, beta)
			return t.HalfWidth, err
		})
	})
	if err != nil {
		return p, err
	}
	t, err := width(p.N, p.Questions, p.beta())
	if err != nil {
		return p, err
	}
	if p.Sigma != 0 && p.Sigma != t.Sigma {
		return p, wrong("sigma", "a published bound plans its own noise, %v", t.Sigma)
	}
	p.Sigma, p.HalfWidth = t.Sigma, t.HalfWidth
	return p, nil
}

// RoundSize is the most questions of a round, from 0: they are divided as equally as can be, larger rounds first.
func (p Params) RoundSize(round int64) int64 {
	size := p.Questions / p.Rounds
	if round < p.Questions%p.Rounds {
		size++
	}
	return size
}

// Left is how many questions can still be asked; in rounds, after what earlier ones left unasked is gone.
func (p Params) Left(s State) int64 {
	if p.Rounds == 0 {
		return p.Questions - s.Questions
	}
	left := -s.InRound
	for r := s.Rounds; r < p.Rounds; r++ {
		left += p.RoundSize(r)
	}
	return left
}

// Affordable is how many questions can be asked now, in one batch.
func (p Params) Affordable(s State) int64 {
	switch {
	case p.Rounds == 0:
		return p.Questions - s.Questions
	case s.Rounds >= p.Rounds:
		return 0
	}
	return p.RoundSize(s.Rounds) - s.InRound
}

// EndRound is the state after the answers of a batch have been seen, where questions are asked in rounds.
func (p Params) EndRound(s State) State {
	if p.Rounds > 0 && s.InRound > 0 {
		s.Rounds++
		s.InRound = 0
	}
	return s
}

// Spend is the state after so many questions and tokens more, whatever they released: nothing, if the question failed.
func (p Params) Spend(s State, questions, tokens int64) State {
	s = p.after(s, questions)
	s.Tokens += tokens
	return s
}

// after is the state after so many questions more.
func (p Params) after(s State, price int64) State {
	s.Questions += price
	if p.Rounds > 0 {
		s.InRound += price
	}
	return s
}

// FreshNoise reports whether an answer in this state says the holdout mean of units of which nothing had been told at the state before,
// begun, with how many units and how much noise: gaussian and naive at the very beginning, split always.
func (p Params) FreshNoise(begun, s State) (units int64, sigma float64, ok bool) {
	switch {
	case p.Mechanism == Split:
		from, to := p.Slice(s)
		return to - from, 0, true
	case begun.Questions > 0:
		return 0, 0, false
	case p.Mechanism == Gaussian:
		return p.N, p.sigmaOf(s), true
	case p.Mechanism == Naive:
		return p.N, 0, true
	}
	return 0, 0, false
}

// sigmaOf is the standard deviation of the next answer's noise; 0 for an exact answer of the last round.
func (p Params) sigmaOf(s State) float64 {
	switch {
	case p.Rounds > 0:
		return p.RoundSigma[s.Rounds]
	case p.Scheduled:
		return bounds.ScheduledSigma(p.Sigma, s.Questions+1, p.Questions)
	}
	return p.Sigma
}

// gaussianStep releases the holdout mean plus N(0, sigma_j^2).
func (p Params) gaussianStep(s State, holdout Mean, from Noise) Output {
	sigma := p.sigmaOf(s)
	z := int64(0)
	if sigma > 0 {
		z = noise.RoundedNormal(from.Answer("release", 0, sigma), steps(sigma, p.N))
	}
	value := holdout.value(z)
	return Output{Value: value, Source: FromHoldout, Interval: p.gaussianInterval(s, value)}
}

// gaussianInterval is that of a plain answer.
func (p Params) gaussianInterval(s State, value float64) *Interval {
	adaptivity := min(p.HalfWidth, p.adaptivity(s))
	i := around(value, p.HalfWidth, p.plainBound(), map[string]float64{"sampling_and_noise": p.HalfWidth - adaptivity, "adaptivity": adaptivity})
	if p.Capped > 0 {
		p.narrow(s, value, i)
	}
	return i
}

func (p Params) plainBound() string {
	switch {
	case p.Rounds > 0:
		return "adaptive-hoeffding-rounds"
	case p.Published:
		return "jlnrss-gdp"
	case p.Scheduled:
		return "adaptive-hoeffding-scheduled"
	}
	return "adaptive-hoeffding"
}

// narrow cuts the interval of a plain answer to its common part with Chernoff's, which is narrower for means near 0 and 1 once
// the noise is small. Both hold at once: Chernoff's is paid from the capped share, for every question, whether it helps or not.
func (p Params) narrow(s State, value float64, i *Interval) {
	low, high, err := p.account(s, 1, 1).MeanInterval(value, p.sigmaOf(s), gridError)
	if err != nil {
		return // a guarantee so wide that the account has no interval
	}
	if low > i.Low || high < i.High {
		i.Low, i.High = max(low, i.Low), min(high, i.High)
		i.Bound += "+chernoff"
	}
}

// adaptivity is about what earlier answers cost this one, sqrt(I/(2n)).
func (p Params) adaptivity(s State) float64 {
	if p.Published {
		return 0 // the published bounds do not tell it apart
	}
	return math.Sqrt(p.releasedAtMost(s) / (2 * float64(p.N)))
}

// releasedAtMost bounds from above how many nats the answers before the next one have released. With the schedule, where 12u(1-u)^2 du =
// dj/k, the integral of 1/(8 sigma^2 (n-1)) is 3k u^2/(4 s^2 (n-1)); the sum over the midpoints of the first questions is
// at most the integral half a question further, for the terms grow.
func (p Params) releasedAtMost(s State) float64 {
	n := float64(p.N)
	switch {
	case p.Rounds > 0:
		total := 0.0
		for r := range s.Rounds {
			total += float64(p.RoundSize(r)) * bounds.Information(n, 0.25, p.RoundSigma[r])
		}
		return total
	case p.Scheduled && s.Questions > 0:
		u := 1 - bounds.ScheduledSigma(1, s.Questions+1, p.Questions)
		return 3 * float64(p.Questions) * u * u / (4 * p.Sigma * p.Sigma * (n - 1))
	case p.Scheduled:
		return 0
	}
	return float64(s.Questions) * bounds.Information(n, 0.25, p.Sigma)
}

// cap plans the account of answers that are not plain: M for what all answers but the last release.
func (p *Params) cap() {
	last := State{Questions: p.Questions - 1}
	if p.Rounds > 0 {
		last.Rounds = p.Rounds - 1
	}
	share := (1 - mechanismShare) * p.Capped * p.beta() / float64(p.Questions)
	p.Subsample = int64(bounds.CappedM(float64(p.N), share, p.releasedAtMost(last)))
}

// checkRound is nil where the next question fits into the present round.
func (p Params) checkRound(s State, price int64) error {
	switch {
	case p.Rounds > 0 && s.Rounds >= p.Rounds:
		return ErrNoRounds
	case p.Affordable(s) < price:
		return fmt.Errorf("%w in this round", ErrNoQuestions)
	}
	return nil
}
