package thresholdout

import "math"

// Prospect is one way in which the next answer can come out. All of it is known from public facts and earlier answers, before a row of the holdout is read.
type Prospect struct {
	Outcome  Outcome
	Tokens   int64     // that an answer with this outcome spends
	Value    float64   // of the planned answer
	Interval *Interval // of the planned answer; nil where none is known
	// Exact says that every answer with this outcome is the planned one.
	Exact bool
	// Widest is how far, at most, an end of the interval of an answer with this outcome is from its value; +Inf where nothing is known. It is in units of the value.
	Widest float64

	memory Memory // after it; nil where nothing changes
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
	// WidestAfter is Prospect.Widest over all outcomes, whatever the outcomes of the answers ahead of it are, and what is ahead of the one after it.
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
	p := Prospect{Outcome: Measured, Value: value, Interval: m.Preview(s, value), Widest: math.Inf(1)}
	if promise, ok := m.Promise(s); ok && p.Interval != nil {
		p.Widest = promise.HalfWidth + gridError
	}
	return p
}

// WidestAfter is Prospect.Widest of an answer, whatever the outcomes of the answers ahead of it are; +Inf where nothing is known.
func (g Guarantee) WidestAfter(s State, in ProspectInput, ahead Ahead) (float64, Ahead, error) {
	if m, ok := g.own.(Mixes); ok {
		return m.WidestAfter(s, in, ahead)
	}
	return math.Inf(1), ahead, nil
}

// WidestLast is [Prospect.Widest] of a last answer with this bound, one of count of a question of this price; +Inf where nothing is known.
func (g Guarantee) WidestLast(s State, bound string, price int64, count int) float64 {
	m, ok := g.own.(Lasts)
	if !ok {
		return math.Inf(1)
	}
	return m.WidestLast(s, bound, lastShares(price, count))
}

// Suppose is the state after an answer that came out so.
func (g Guarantee) Suppose(s State, p Prospect) State {
	next := g.Spend(s, 1, p.Tokens)
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
		{Outcome: PromiseKept, Value: value, Interval: m.PreviewPledge(s, *in.Pledge, value), Widest: m.widestKept(s, *in.Pledge)},
		{Outcome: PromiseBroken, Tokens: 1, Value: in.Value, Interval: m.interval(broken, in.Value), Widest: m.widthAt(broken.Tokens) + gridError},
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
	level := m.level(s)
	c, err := m.plan(s, StatisticInput{Training: in.Training, Guess: in.Guess})
	if err != nil {
		return nil, err
	}
	add := func(f Finding, widest func(half float64) float64) {
		p := Prospect{Outcome: Output{found: f}.Outcome(), Value: f.Value(), Widest: widest(halfWidth(f, level)), Exact: !f.Failed()}
		if math.IsNaN(p.Widest) { // the answer is undefined
			p.Widest = math.Inf(1)
		}
		p.Interval, _ = f.Interval(level)
		books := accountOf(s)
		switch {
		case f.Failed():
			p.Tokens = 1
			books.Paid += c.Price()
		case f.Wide():
			books.Wide++
		}
		p.memory = books
		all = append(all, p)
	}
	if silent := c.Expected(); silent.Silent() {
		add(silent, func(float64) float64 { return widthOf(silent, level) })
		return all, nil
	}
	for _, f := range c.Passes() {
		add(f, func(half float64) float64 { return half })
	}
	add(c.Failure(), func(float64) float64 { return c.Widest(level) })
	return all, nil
}

// WidestAfter implements [Mixes]. Each answer adds to the level at most what its rarest outcome does, with the counts of now, which are only larger later.
func (m *guessAndCheck) WidestAfter(s State, in ProspectInput, ahead Ahead) (float64, Ahead, error) {
	level := m.level(s) + ahead.Nats
	c, err := in.Training.Plan(Planning{N: m.N, Questions: m.Questions, Deviations: m.Deviations, Level: level, Tails: m.tails(guessAndCheckVersion), Guess: in.Guess})
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
func widthOf(f Finding, level float64) float64 {
	i, ok := f.Interval(level)
	if !ok {
		return math.Inf(1)
	}
	return (i.High - i.Low) / 2
}

// planSlack is more than what a check that is planned at a lower level can pay in another way: a share of nine tenths for passes.
const planSlack = 0.11

// rarest is what an answer adds to the level at most: minus the logarithm of the least probability that the urn gives an outcome of it.
func (m *guessAndCheck) rarest(s State, before int64, c Check) float64 {
	return m.urn().Rarest(s.Questions, s.Tokens, accountOf(s).Wide, before, c.Price())
}

// Prospects implements [Foresees]: where the sample's own moments decide, or a quantile's counts, nothing is known of the widest answer.
func (m *splitSample) Prospects(s State, in ProspectInput) ([]Prospect, error) {
	p := measured(m, s, in.Value)
	p.Widest += 2 / float64(m.N/m.Questions)
	if in.Training == nil {
		return []Prospect{p}, nil
	}
	var err error
	if p.Value, p.Interval, err = m.ExpectedStatistic(s, StatisticInput{Training: in.Training}); err != nil {
		return nil, err
	}
	if p.Interval.Bound != boundSlice && p.Interval.Bound != MethodCounts {
		p.Widest = math.Inf(1)
	}
	return []Prospect{p}, nil
}

// Prospects implements [Foresees].
func (m *forcedRuns) Prospects(s State, in ProspectInput) ([]Prospect, error) {
	agrees, differs := m.interval(s, in.Value, FromTraining), m.interval(s, in.Value, FromHoldout)
	sampling := m.runs().Sampling(s.Questions, s.Tokens)
	return []Prospect{
		{Outcome: Agrees, Value: in.Value, Interval: agrees, Widest: m.Threshold + m.runs().ComparisonNoise() + sampling + 2*gridError},
		{Outcome: Differs, Tokens: 1, Value: in.Value, Interval: differs, Widest: m.runs().ReleaseNoise() + sampling + 2*gridError},
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
	i := m.Preview(s, in.Value)
	return []Prospect{{Outcome: Agrees, Value: in.Value, Interval: i, Widest: m.HalfWidth + gridError}, {Outcome: Differs, Tokens: 1, Value: in.Value, Interval: i, Widest: m.HalfWidth + gridError}}, nil
}

// WidestAfter implements [Mixes].
func (m *laplace) WidestAfter(_ State, _ ProspectInput, ahead Ahead) (float64, Ahead, error) {
	ahead.Answers++
	return m.HalfWidth + gridError, ahead, nil
}

// Prospects implements [Foresees]. What the board shows is for those who submit: nothing here depends on it.
func (m *ladder) Prospects(s State, _ ProspectInput) ([]Prospect, error) {
	all := []Prospect{{Outcome: Best, Widest: m.HalfWidth + gridError, memory: s.Memory}}
	if s.Questions > 0 {
		all = append(all, Prospect{Outcome: Behind, Widest: m.HalfWidth + gridError, memory: s.Memory})
	}
	return all, nil
}
