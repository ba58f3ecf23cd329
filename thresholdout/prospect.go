package thresholdout

import "math"

// Prospect is one way in which the next answer can come out. All of it is known from public facts and earlier answers, before a row of the holdout is read.
type Prospect struct {
	Outcome   Outcome
	Questions int64   // that the answer spends; 0 is one
	Tokens    int64   // that an answer with this outcome spends
	Value     float64 // of the planned answer
	// Exact says that every answer with this outcome is the planned one.
	Exact bool

	planned func() (*Interval, float64) // what Planned returns; it takes long where an interval is looked for
	memory  Memory                      // after it; nil where nothing changes
}

// Planned is the interval of the planned answer, nil where none is known, and how far, at most, an end of the interval of an answer with this outcome is from its value; +Inf where nothing is
// known. It is in units of the value.
func (p Prospect) Planned() (interval *Interval, widest float64) { return p.planned() }

// known is what Planned returns where it is at hand.
func known(interval *Interval, widest float64) func() (*Interval, float64) {
	return func() (*Interval, float64) { return interval, widest }
}

// ProspectInput is what a prospect is planned by beside the state.
type ProspectInput struct {
	Training Statistic // of mechanisms with guesses: what the training part has
	Value    float64   // of others: the value that the answer is planned about
	Guess    *Guess
	Pledge   *Pledge // that the question bears and that would be checked; nil without
}

// Ahead is what may come before an answer of the same question, whatever its outcomes are: so many other answers, and, of a mechanism that unites over transcripts, what they
// add at most to the level.
type Ahead struct {
	Answers int64
	Nats    float64
}

// Foresees is a mechanism whose next answer can come out in several ways, or in one that [Mechanism.Promise] does not describe.
type Foresees interface {
	// Prospects are the ways, the likeliest first. An error may be a [*WidthError].
	Prospects(s State, in ProspectInput) ([]Prospect, error)
}

// Mixes is a mechanism of which one question's several answers can have different outcomes.
type Mixes interface {
	// WidestAfter is the widest of [Prospect.Planned] over all outcomes, whatever the outcomes of the answers ahead of it are, and what is ahead of the one after it. Such a question brings
	// neither a half-width nor a null hypothesis of its own, at which a check that is planned at a lower level could leave more room.
	WidestAfter(s State, in ProspectInput, ahead Ahead) (float64, Ahead, error)
}

// Prospects are the ways in which the next answer can come out, the likeliest first.
func (g Guarantee) Prospects(s State, in ProspectInput) ([]Prospect, error) {
	if m, ok := g.own.(Foresees); ok {
		return m.Prospects(s, in)
	}
	return []Prospect{measured(g.own, s, in.Value)}, nil
}

// measured is the only prospect of a mechanism that compares nothing.
func measured(m Mechanism, s State, value float64) Prospect {
	return Prospect{Outcome: Measured, Value: value, planned: func() (*Interval, float64) {
		interval := m.Preview(s, value)
		if promise, ok := m.Promise(s); ok && interval != nil {
			return interval, promise.HalfWidth + gridError
		}
		return interval, math.Inf(1)
	}}
}

// WidestAfter is the widest of [Prospect.Planned] of an answer, whatever the outcomes of the answers ahead of it are; +Inf where nothing is known.
func (g Guarantee) WidestAfter(s State, in ProspectInput, ahead Ahead) (float64, Ahead, error) {
	if m, ok := g.own.(Mixes); ok {
		return m.WidestAfter(s, in, ahead)
	}
	return math.Inf(1), ahead, nil
}

// WidestLast is the widest of [Prospect.Planned] of a last answer with this bound, one of count of a question of this price; +Inf where nothing is known.
func (g Guarantee) WidestLast(s State, bound string, price int64, count int) float64 {
	m, ok := g.own.(Lasts)
	if !ok {
		return math.Inf(1)
	}
	return m.WidestLast(s, bound, lastShares(price, count))
}

// Suppose is the state after an answer that came out so.
func (g Guarantee) Suppose(s State, p Prospect) State {
	next := g.Spend(s, max(p.Questions, 1), p.Tokens)
	if p.memory != nil {
		next.Memory = p.memory
	}
	return next
}

// Prospects implements [Foresees]: of a question with a promise that would be checked, kept or broken.
func (m *gaussian) Prospects(s State, in ProspectInput) ([]Prospect, error) {
	if in.Pledge == nil || s.Tokens >= m.Tokens {
		return []Prospect{measured(m, s, in.Value)}, nil
	}
	broken := s
	broken.Tokens++
	value := in.Pledge.clip(in.Value)
	return []Prospect{
		{Outcome: PromiseKept, Value: value, planned: func() (*Interval, float64) { return m.PreviewPledge(s, *in.Pledge, value), m.widestKept(s, *in.Pledge) }},
		{Outcome: PromiseBroken, Tokens: 1, Value: in.Value, planned: func() (*Interval, float64) { return m.interval(broken, in.Value), m.widthAt(broken.Tokens) + gridError }},
	}, nil
}

// widestKept is the widest half-width where a promise is kept. By Hoeffding's inequality what is promised of a mean, or of distances, is no wider than a plain answer. The bound by a variance knows one
// end of the range alone, and is the wider the farther the answer is from the other (docs/proofs/promises.md, section 5): so it is widest at the range's ends.
func (m *gaussian) widestKept(s State, p Pledge) float64 {
	widest := m.widthAt(s.Tokens)
	for _, end := range []float64{p.clip(0), p.clip(1)} {
		i := m.PreviewPledge(s, p, end)
		widest = max(widest, i.High-end, end-i.Low)
	}
	return widest*(1+promisedSlack) + 2*gridError
}

// promisedSlack is more than the precision with which the ends of promised intervals are found.
const promisedSlack = 1e-6

// WidestLast implements [Lasts]: where the sample's own moments decide, or a quantile's counts, nothing is known; else it is Hoeffding's, than which no bound here is wider.
func (m *gaussian) WidestLast(s State, bound string, shares float64) float64 {
	if bound != MethodCounts && bound != m.bound() {
		return math.Inf(1)
	}
	return math.Sqrt(m.lastLevel(s, m, shares)/(2*float64(m.N))) + 2/float64(m.N) + 2*gridError
}

// Prospects implements [Foresees]: an answer that passes is known but for its outcome.
func (m *guessAndCheck) Prospects(s State, in ProspectInput) (all []Prospect, err error) {
	if in.Guess.measures() {
		return m.measuredProspects(s, in)
	}
	level := m.level(s)
	c, err := m.plan(s, StatisticInput{Training: in.Training, Guess: in.Guess})
	if err != nil {
		return nil, err
	}
	add := func(f Finding) {
		p := found(f, c, level)
		books := accountOf(s)
		switch {
		case f.Failed():
			p.Tokens = 1
			books.Paid += c.Price(f)
		case f.Wide():
			books.Wide++
		}
		p.memory = books
		all = append(all, p)
	}
	if silent := c.Expected(); silent.Silent() {
		add(silent)
		return all, nil
	}
	for _, f := range c.Passes() {
		add(f)
	}
	add(c.Failure())
	return all, nil
}

// found is the prospect that a check finds so.
func found(f Finding, c Check, level float64) Prospect {
	return Prospect{Outcome: Output{found: f}.Outcome(), Value: f.Value(), Exact: !f.Failed(), planned: func() (*Interval, float64) {
		i, ok := f.Interval(level)
		widest := 0.0
		switch {
		case f.Silent():
			widest = widthOf(i, ok)
		case f.Failed():
			widest = c.Widest(level)
		default:
			widest = halfOf(f.Value(), i, ok)
		}
		if math.IsNaN(widest) { // the answer is undefined
			widest = math.Inf(1)
		}
		return i, widest
	}}
}

// WidestAfter implements [Mixes]. Each answer adds to the level at most what its rarest outcome does, with the counts of now, which are only larger later.
func (m *guessAndCheck) WidestAfter(s State, in ProspectInput, ahead Ahead) (float64, Ahead, error) {
	level := m.level(s) + ahead.Nats
	c, err := in.Training.Plan(m.planning(level, in.Guess))
	if err != nil {
		return 0, ahead, err
	}
	widest := widestOf(c, level)
	ahead.Nats += m.rarest(s, ahead.Answers, c)
	ahead.Answers++
	return widest, ahead, nil
}

// widestOf is how wide an answer is at most after a check that was planned at this level, or at a lower one.
func widestOf(c Check, level float64) float64 {
	widest := c.Widest(level)
	for _, f := range c.Passes() {
		widest = max(widest, halfWidth(f, level+planSlack))
	}
	return widest
}

// widthOf is half of the interval of a finding that has no value.
func widthOf(i *Interval, ok bool) float64 {
	if !ok {
		return math.Inf(1)
	}
	return (i.High - i.Low) / 2
}

// planSlack is more than what a check that is planned at a lower level can pay in another way: a share of nine tenths for passes.
const planSlack = 0.11

// rarest is what an answer adds to the level at most: minus the logarithm of the least probability that the urn gives an outcome of it.
func (m *guessAndCheck) rarest(s State, before int64, c Check) float64 {
	a := accountOf(s)
	return m.urn().Rarest(m.checked(s), s.Tokens-a.Measured, a.Wide, before, c.Dearest())
}

// Prospects implements [Foresees]: where the sample's own moments decide, or a quantile's counts, nothing is known of the widest answer.
func (m *splitSample) Prospects(s State, in ProspectInput) ([]Prospect, error) {
	p := measured(m, s, in.Value)
	interval, widest := p.Planned()
	widest += 2 / float64(m.N/m.Questions)
	if in.Training != nil {
		var err error
		if p.Value, interval, err = m.ExpectedStatistic(s, StatisticInput{Training: in.Training}); err != nil {
			return nil, err
		}
		if interval.Bound != boundSlice && interval.Bound != MethodCounts {
			widest = math.Inf(1)
		}
	}
	p.planned = known(interval, widest)
	return []Prospect{p}, nil
}

// Prospects implements [Foresees].
func (m *forcedRuns) Prospects(s State, in ProspectInput) ([]Prospect, error) {
	agrees, differs := m.interval(s, in.Value, FromTraining), m.interval(s, in.Value, FromHoldout)
	sampling := m.runs().Sampling(s.Questions, s.Tokens)
	return []Prospect{
		{Outcome: Agrees, Value: in.Value, planned: known(agrees, m.Threshold+m.runs().ComparisonNoise()+sampling+2*gridError)},
		{Outcome: Differs, Tokens: 1, Value: in.Value, planned: known(differs, m.runs().ReleaseNoise()+sampling+2*gridError)},
	}, nil
}

// mostMixed bounds how many answers are looked ahead of: the work grows with its square.
const mostMixed = 64

// WidestAfter implements [Mixes]: the answers ahead of it may have spent any number of tokens.
func (m *forcedRuns) WidestAfter(s State, _ ProspectInput, ahead Ahead) (float64, Ahead, error) {
	before := ahead.Answers
	ahead.Answers++
	if before > mostMixed {
		return math.Inf(1), ahead, nil
	}
	runs, sampling := m.runs(), 0.0
	for spent := range min(before, m.Tokens-s.Tokens) + 1 {
		sampling = max(sampling, runs.Sampling(s.Questions+before, s.Tokens+spent))
	}
	return max(m.Threshold+runs.ComparisonNoise(), runs.ReleaseNoise()) + sampling + 2*gridError, ahead, nil
}

// Prospects implements [Foresees].
func (m *laplace) Prospects(s State, in ProspectInput) ([]Prospect, error) {
	planned := known(m.Preview(s, in.Value), m.HalfWidth+gridError)
	return []Prospect{{Outcome: Agrees, Value: in.Value, planned: planned}, {Outcome: Differs, Tokens: 1, Value: in.Value, planned: planned}}, nil
}

// WidestAfter implements [Mixes].
func (m *laplace) WidestAfter(_ State, _ ProspectInput, ahead Ahead) (float64, Ahead, error) {
	ahead.Answers++
	return m.HalfWidth + gridError, ahead, nil
}

// Prospects implements [Foresees]. What the board shows is for those who submit: nothing here depends on it.
func (m *ladder) Prospects(s State, _ ProspectInput) ([]Prospect, error) {
	planned := known(nil, m.HalfWidth+gridError)
	all := []Prospect{{Outcome: Best, planned: planned, memory: s.Memory}}
	if s.Questions > 0 {
		all = append(all, Prospect{Outcome: Behind, planned: planned, memory: s.Memory})
	}
	return all, nil
}
