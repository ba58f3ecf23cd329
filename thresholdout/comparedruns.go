package thresholdout

import (
	"encoding/json"
	"fmt"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// comparedRuns is Thresholdout in its Gaussian form since its third version (docs/proofs/two-moments.md, section 9). A mean is compared with noise, as ever, and answers say exactly, beside, whether its values vary as
// little as the training part says. What is more than a mean over all units is one question, which is checked as guess_and_check checks it.
type comparedRuns struct {
	forcedRuns

	// Relative says that threshold and noise of a comparison are for a question that varies as much as its range allows, and smaller for others.
	Relative bool `json:"relative,omitempty" doc:"threshold and noise of a comparison follow how much the question varies in the training part"`
	// Deviations is z of the margins of what is more than a mean, and of the variances that answers speak of.
	Deviations float64 `json:"deviations" doc:"how many standard deviations of training minus holdout the narrowest margins leave room for"`
}

// books are what comparedRuns remembers: with the counters of the state, what later levels pay for.
type books struct {
	Wide  int64        `json:"wide"`  // passes that said less than they might
	Paid  moments.Nats `json:"paid"`  // what the failures said beside noisy means, in nats of 2^-20
	Noisy int64        `json:"noisy"` // how many of them released a mean with noise
}

func booksOf(s State) books {
	b, _ := s.Memory.(books)
	return b
}

// ReadMemory implements [Remembers].
func (m *comparedRuns) ReadMemory(text []byte) (Memory, error) {
	var b books
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	if b.Wide < 0 || b.Paid < 0 || b.Noisy < 0 || b.Noisy > m.Tokens {
		return nil, fmt.Errorf("%d wide passes, %d nats and %d noisy means", b.Wide, b.Paid, b.Noisy)
	}
	return b, nil
}

// check refuses stored numbers with which an answer would mean nothing.
func (m *comparedRuns) check() error {
	if !(m.Deviations > 0 && m.Deviations <= 100) || m.Training < 1 || m.Tokens < 1 || !(m.Threshold >= 0 && m.Threshold <= 1) || !(m.Sigma > 0 && m.Sigma <= MaxSigma) {
		return errHead
	}
	return nil
}

// urn is the account of the strings of outcomes: a third of the probability of error, the others being the noises'.
func (m *comparedRuns) urn() moments.Urn {
	return moments.Urn{Questions: m.Questions, Beta: m.Beta() / 3}
}

// union is the level that pays for the strings.
func (m *comparedRuns) union(s State) float64 {
	b := booksOf(s)
	return m.urn().Level(s.Questions, s.Tokens, b.Wide, b.Paid)
}

// level is E of the next question: the union's, after what noisy means released.
func (m *comparedRuns) level(s State) float64 { return m.after(m.union(s), booksOf(s).Noisy) }

// after is a level after so many means were released with noise.
func (m *comparedRuns) after(union float64, noisy int64) float64 {
	n := float64(m.N)
	return bounds.AdaptiveLevel(n, union, float64(noisy)*bounds.Information(n, 0.25, m.Sigma))
}

// compared is what an answer says of a mean that was compared with noise.
type compared struct {
	check  moments.Check
	scale  float64 // of threshold and noise
	steady bool    // its variance is at most that of the first rank
}

// meanOf is the mean of a statistic that is no more than a mean over all units.
func meanOf(s Statistic) (Mean, bool) {
	switch x := s.(type) {
	case Mean:
		return x, true
	case RootSums:
		return Mean{Sum: x.Sum, N: x.All}, !x.Partial
	}
	return Mean{}, false
}

// plan is how the next question is checked, and of a mean at which scale it is compared: threshold and noise are those of three standard deviations of training minus holdout.
func (m *comparedRuns) plan(s State, training Statistic) (Check, compared, error) {
	return m.planAt(m.level(s), training)
}

// planAt is plan at a level.
func (m *comparedRuns) planAt(level float64, training Statistic) (Check, compared, error) {
	c, err := training.Plan(Planning{N: m.N, Questions: m.Questions, Deviations: m.Deviations, Level: level, Tails: m.tails(thresholdoutVersion)})
	if err != nil {
		return nil, compared{}, err
	}
	root, ok := c.(rootCheck)
	if !ok {
		return c, compared{}, nil
	}
	own := compared{check: root.Check, scale: 1, steady: true}
	if m.Relative && m.Threshold > 0 {
		away := float64(root.Ranks[0].Away) / float64(grid) * thresholdDeviations / m.Deviations
		own.scale = min(1, max(away/m.Threshold, leastScale))
	}
	return c, own, nil
}

// thresholdDeviations: see [forcedRuns.tune].
const thresholdDeviations = 3

// leastScale keeps noise coarser than the grid of sums.
const leastScale = 1e-6

// Release implements [Mechanism]: a mean of which no more is known.
func (m *comparedRuns) Release(s State, in Input, from Noise) (Output, Memory, error) {
	return m.ReleaseStatistic(s, StatisticInput{Training: in.Training, Holdout: in.Holdout, Noise: from})
}

// ReleaseStatistic implements [Statistics].
func (m *comparedRuns) ReleaseStatistic(s State, in StatisticInput) (Output, Memory, error) {
	c, own, err := m.plan(s, in.Training)
	if err != nil {
		return Output{}, nil, err
	}
	training, isMean := meanOf(in.Training)
	holdout, same := meanOf(in.Holdout)
	if !isMean || !same {
		return m.releaseChecked(s, c, in)
	}
	sums, err := sumsOf(in.Holdout)
	if err != nil {
		return Output{}, nil, err
	}
	if own.steady, err = own.check.Steady(sums); err != nil {
		return Output{}, nil, fmt.Errorf("thresholdout: %w", err)
	}
	own.steady = own.steady || own.check.OneChain() // then nothing is said of it
	told, sigma := booksOf(s), m.Sigma*own.scale
	out := Output{Value: training.value(0), Source: FromTraining, compared: &own}
	eta := noise.RoundedNormal(in.Noise.Answer("compare", s.Tokens, sigma), steps(sigma, m.N))
	if (Input{Training: training, Holdout: holdout}).beyond(steps(m.Threshold*own.scale, m.N), eta) {
		xi := noise.RoundedNormal(in.Noise.Answer("release", s.Tokens, m.Sigma), steps(m.Sigma, m.N))
		out.Value, out.Source, out.Tokens = holdout.value(xi), FromHoldout, 1
		told.Noisy++
		told.Paid += own.check.PriceOfSteady()
	} else if !own.steady {
		told.Wide++
	}
	out.Interval = m.comparedInterval(s, out)
	return out, told.memory(s), nil
}

// memory is what is remembered: what was, where nothing changed.
func (b books) memory(s State) Memory {
	if b == booksOf(s) {
		return s.Memory
	}
	return b
}

// releaseChecked answers what is more than a mean: with what the training part says while the holdout is near it, else from the holdout, rounded to a cell.
func (m *comparedRuns) releaseChecked(s State, c Check, in StatisticInput) (Output, Memory, error) {
	found, err := c.Find(in.Holdout)
	if err != nil {
		return Output{}, nil, fmt.Errorf("thresholdout: %w", err)
	}
	told := booksOf(s)
	out := Output{Value: found.Value(), Source: FromTraining, Margin: found.Margin(), found: found}
	out.Interval, _ = found.Interval(m.level(s))
	switch {
	case found.Silent():
		out.Source = FromNothing
	case found.Failed():
		out.Source, out.Tokens = FromHoldout, 1
		told.Paid += c.Dearest()
	}
	if found.Wide() {
		told.Wide++
	}
	return out, told.memory(s), nil
}

// comparedInterval is that of a mean: what the comparison or the release, with its noise, and the variance say of the holdout, and what sampling adds to it.
func (m *comparedRuns) comparedInterval(s State, o Output) *Interval {
	noises, scale := m.runs(), o.compared.scale
	threshold, u := m.Threshold*scale, noises.ComparisonNoise()*scale
	near, parts := threshold+u, map[string]float64{"threshold": threshold, "noise": u}
	if o.Source == FromHoldout {
		near = noises.ReleaseNoise()
		parts = map[string]float64{"noise": near}
	}
	i := &Interval{Bound: boundForcedRuns, Parts: parts}
	if !o.compared.check.OneChain() {
		i.Bound = boundComparedMoments
	}
	i.Low, i.High = o.compared.check.Between(o.Value-near-gridError, o.Value+near+gridError, o.compared.steady, m.level(s))
	parts["sampling_and_adaptivity"] = max(0, max(i.High-o.Value, o.Value-i.Low)-near)
	return i
}

// boundComparedMoments is the bound of means that say how much their values vary.
const boundComparedMoments = boundForcedRuns + "-two-moments"

// ExpectedStatistic implements [Statistics]: the answer if the training part's agrees, at the narrowest margins.
func (m *comparedRuns) ExpectedStatistic(s State, in StatisticInput) (value float64, _ *Interval, err error) {
	c, own, err := m.plan(s, in.Training)
	if err != nil {
		return 0, nil, err
	}
	if training, ok := meanOf(in.Training); ok {
		out := Output{Value: training.value(0), Source: FromTraining, compared: &own}
		return out.Value, m.comparedInterval(s, out), nil
	}
	found := c.Expected()
	i, _ := found.Interval(m.level(s))
	return found.Value(), i, nil
}

// Preview implements [Mechanism]: of a mean that agrees with training, of which no more is known.
func (m *comparedRuns) Preview(s State, value float64) *Interval {
	_, i, err := m.ExpectedStatistic(s, StatisticInput{Training: Mean{N: m.Training, Sum: int64(value * float64(m.Training) * float64(grid))}})
	if err != nil {
		return nil
	}
	return i
}

// Promise implements [Mechanism]: of an answer about one half that agrees with training. Where the state does not say what its failures released, each released such a mean.
func (m *comparedRuns) Promise(s State) (Promise, bool) {
	if s.Tokens > 0 && s.Memory == nil {
		s.Memory = books{Noisy: s.Tokens}
	}
	i := m.Preview(s, 0.5)
	if i == nil {
		return Promise{}, false
	}
	return Promise{HalfWidth: max(i.High-0.5, 0.5-i.Low), Sigma: m.Sigma, Parts: i.Parts}, true
}

// At implements [Levels]. What an answer says of the holdout beside its noise is a fact at every level.
func (m *comparedRuns) At(s State, o Output, level float64) (low, high float64, ok bool) {
	other := *m
	if other.Head, ok = m.at(level); !ok {
		return 0, 0, false
	}
	if o.compared != nil {
		return other.comparedInterval(s, o).ends()
	}
	if o.found == nil {
		return 0, 0, false
	}
	i, ok := o.found.Interval(other.level(s))
	if !ok {
		return 0, 0, false
	}
	return i.ends()
}
