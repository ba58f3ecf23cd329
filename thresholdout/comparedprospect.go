package thresholdout

import (
	"math"
)

// told is a mean at a value, where the training part's sums are not at hand.
func (in ProspectInput) told(units int64) Statistic {
	if in.Training != nil {
		return in.Training
	}
	return Mean{N: units, Sum: int64(in.Value * float64(units) * float64(grid))}
}

// Prospects implements [Foresees]. An answer that agrees may say that its values vary more than was planned, and is the wider then.
func (m *comparedRuns) Prospects(s State, in ProspectInput) (all []Prospect, err error) {
	level, training := m.level(s), in.told(m.Training)
	c, own, err := m.plan(s, training)
	if err != nil {
		return nil, err
	}
	mean, ok := meanOf(training)
	if !ok {
		return m.checkedProspects(s, c, level), nil
	}
	half := func(o Output) (*Interval, float64) {
		i := m.comparedInterval(s, o)
		return i, max(i.High-o.Value, o.Value-i.Low)
	}
	agrees := Output{Value: mean.value(0), Source: FromTraining, compared: &own}
	differs := agrees
	differs.Source = FromHoldout
	unsteady := own
	unsteady.steady = false
	wide := agrees
	wide.compared = &unsteady
	after := booksOf(s)
	after.Noisy++
	after.Paid += own.check.PriceOfSteady()
	return []Prospect{
		{Outcome: Agrees, Value: agrees.Value, planned: func() (*Interval, float64) {
			narrow, width := half(agrees)
			_, widest := half(wide)
			return narrow, max(width, widest)
		}},
		{Outcome: Differs, Tokens: 1, Value: differs.Value, memory: after, planned: func() (*Interval, float64) {
			released, _ := half(differs)
			return released, m.runs().ReleaseNoise() + m.widestSampling(level)
		}},
	}, nil
}

// widestSampling is more than what sampling adds to any mean's interval at a level: Hoeffding's deviation at the share of those that vary much.
func (m *comparedRuns) widestSampling(level float64) float64 {
	n := float64(m.N)
	return math.Sqrt((level+math.Log(10))/(2*n)) + 2/n + 4*gridError
}

// checkedProspects are those of what is more than a mean.
func (m *comparedRuns) checkedProspects(s State, c Check, level float64) (all []Prospect) {
	add := func(f Finding) {
		p := found(f, c, level)
		after := booksOf(s)
		switch {
		case f.Failed():
			p.Tokens = 1
			after.Paid += c.Dearest()
		case f.Wide():
			after.Wide++
		}
		p.memory = after
		all = append(all, p)
	}
	if silent := c.Expected(); silent.Silent() {
		add(silent)
		return all
	}
	for _, f := range c.Passes() {
		add(f)
	}
	add(c.Failure())
	return all
}

// WidestAfter implements [Mixes]. Each answer adds to the level at most what its rarest outcome does, with the counts of now, which are only larger later, and one more mean that was released with noise.
func (m *comparedRuns) WidestAfter(s State, in ProspectInput, ahead Ahead) (float64, Ahead, error) {
	books := booksOf(s)
	level := m.after(m.union(s)+ahead.Nats, books.Noisy+min(ahead.Answers, m.Tokens-s.Tokens))
	training := in.told(m.Training)
	c, own, err := m.planAt(level, training)
	if err != nil {
		return 0, ahead, err
	}
	widest, price := 0.0, c.Dearest()
	if _, ok := meanOf(training); ok {
		price = own.check.PriceOfSteady()
		widest = max(own.scale*(m.Threshold+m.runs().ComparisonNoise()), m.runs().ReleaseNoise()) + m.widestSampling(level)
	} else {
		widest = widestOf(c, level)
	}
	ahead.Nats += m.urn().Rarest(s.Questions, s.Tokens, books.Wide, ahead.Answers, price)
	ahead.Answers++
	return widest, ahead, nil
}
