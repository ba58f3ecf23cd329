package featureselection

import (
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/featuresel"
)

// shape is the size of one repetition of feature selection.
type shape struct {
	n      int   // rows of the training part, of the holdout and of the fresh part
	d      int   // columns
	biased int   // columns that know the label; the first ones
	ks     []int // numbers of columns of the classifiers, increasing, from 1 up
}

// The numbers of the experiment, in standard deviations of a correlation, 1/sqrt(n). For accuracies threshold and noise are in
// hundredths, as published for 10,000 rows, whatever n is: correlations shrink with n, what a selection gains in accuracy does not.
const (
	signalShift  = 6 // mean correlation of a column that knows the label
	filterCutoff = 1 // of the filter
)

// rules are the settings of a repetition.
type rules struct {
	cutoff         float64 // of the filter
	threshold      float64 // of Thresholdout
	thresholdNoise float64 // its standard deviation
	answerNoise    float64
}

// publishedRules are those of the paper.
var publishedRules = rules{cutoff: filterCutoff, threshold: 4, thresholdNoise: 1, answerNoise: 1}

// shift is the mean of column j times the label.
func (s shape) shift(j int) float64 {
	if j < s.biased {
		return signalShift / math.Sqrt(float64(s.n))
	}
	return 0
}

func (s shape) deviation() float64 { return 1 / math.Sqrt(float64(s.n)) }

const accuracyUnit = 0.01

// path is what one method comes to: for every k the accuracy in the training part, as told of the holdout, and in fresh data.
type path struct {
	Training []float64 `json:"training"`
	Told     []float64 `json:"told"`
	Fresh    []float64 `json:"fresh"`
	Selected int       `json:"selected"` // columns that pass the filter
	Above    int       `json:"above"`    // correlations and accuracies that Thresholdout answered from the holdout
}

// sampler draws exactly what the analyst sees, without drawing the data: see docs/proofs/feature-selection-sampling.md.
// It is made once and used for many repetitions; a repetition allocates what it returns and nothing else that grows with n or d.
type sampler struct {
	size   shape
	rules  rules
	source *rand.PCG
	random *rand.Rand

	training, holdout, told []float64 // correlations, one for each column
	selected                []int
	drift                   []float64 // by k: what every row's margin gains from the columns up to k
	added                   []int     // by k: how many columns more than for the k before
	margins                 []float64 // one for each row: the random part
}

func newSampler(s shape) *sampler {
	source := rand.NewPCG(0, 0)
	return &sampler{size: s, rules: publishedRules, source: source, random: rand.New(source),
		training: make([]float64, s.d), holdout: make([]float64, s.d), told: make([]float64, s.d), selected: make([]int, 0, s.d),
		drift: make([]float64, len(s.ks)), added: make([]int, len(s.ks)), margins: make([]float64, s.n)}
}

// standard is a repetition in which the holdout tells its own numbers.
func (s *sampler) standard(seed uint64) path {
	s.begin(seed)
	return s.finish(s.holdout, func(_, holdout, _ float64) float64 { return holdout })
}

// thresholdout is a repetition in which Thresholdout tells them.
func (s *sampler) thresholdout(seed uint64) path {
	s.begin(seed)
	above := 0
	for j, a := range s.training {
		s.told[j] = s.tell(a, s.holdout[j], s.size.deviation())
		if s.told[j] != a {
			above++
		}
	}
	p := s.finish(s.told, s.tell)
	for i, a := range p.Training {
		if p.Told[i] != a {
			above++
		}
	}
	p.Above = above
	return p
}

// tell is the published Thresholdout, in its Gaussian form.
func (s *sampler) tell(training, holdout, unit float64) float64 {
	if math.Abs(training-holdout) <= unit*(s.rules.threshold+s.rules.thresholdNoise*s.random.NormFloat64()) {
		return training
	}
	return holdout + unit*s.rules.answerNoise*s.random.NormFloat64()
}

// begin draws the correlations of both parts: independent normal variables of variance 1/n.
func (s *sampler) begin(seed uint64) {
	s.source.Seed(run.SeedOf(seed, 1), run.SeedOf(seed, 2))
	unit := s.size.deviation()
	for _, part := range [][]float64{s.training, s.holdout} {
		for j := range part {
			part[j] = s.size.shift(j) + unit*s.random.NormFloat64()
		}
	}
}

// finish selects by the correlations that were told, and draws the accuracies of the classifiers.
func (s *sampler) finish(told []float64, tell func(training, holdout, unit float64) float64) path {
	s.selected = featuresel.Filter(s.selected[:0], s.training, told, s.rules.cutoff*s.size.deviation())
	values := make([]float64, 3*len(s.size.ks))
	p := path{Training: values[:len(s.size.ks)], Told: values[len(s.size.ks) : 2*len(s.size.ks)], Fresh: values[2*len(s.size.ks):], Selected: len(s.selected)}
	s.accumulate(func(j int) float64 { return s.training[j] })
	s.walk(p.Training, true)
	s.accumulate(func(j int) float64 { return s.holdout[j] })
	s.walk(p.Told, true)
	s.accumulate(s.size.shift)
	s.walk(p.Fresh, false)
	for i, holdout := range p.Told {
		p.Told[i] = tell(p.Training[i], holdout, accuracyUnit)
	}
	return p
}

// accumulate sets drift and added for columns that have these means, each times the sign of its training correlation.
func (s *sampler) accumulate(mean func(j int) float64) {
	sum, from := 0.0, 0
	for i, k := range s.size.ks {
		to := min(k, len(s.selected))
		for _, j := range s.selected[from:to] {
			sum += math.Copysign(1, s.training[j]) * mean(j)
		}
		s.drift[i], s.added[i], from = sum, to-from, to
	}
}

// walk draws the accuracies for all k in one part. known says that the columns' means over the part are known, those that drift
// was made of, so that what is left of a column is orthogonal to the constant; else drift was made of their expectations.
func (s *sampler) walk(dst []float64, known bool) {
	clear(s.margins)
	for i, m := range s.added {
		mean := 0.0
		if m > 0 {
			addNormals(s.margins, math.Sqrt(float64(m)), s.random)
		}
		if known {
			mean = sum(s.margins) / float64(len(s.margins))
		}
		dst[i] = shareAbove(s.margins, mean-s.drift[i]) // 0 for a classifier without columns, which predicts nothing
	}
}

// addNormals adds independent normal variables of a standard deviation to dst.
func addNormals(dst []float64, deviation float64, r *rand.Rand) {
	for i := range dst {
		dst[i] += deviation * r.NormFloat64()
	}
}

func sum(values []float64) float64 {
	s := 0.0
	for _, v := range values {
		s += v
	}
	return s
}

// shareAbove is the share of values above a limit.
func shareAbove(values []float64, limit float64) float64 {
	count := 0
	for _, v := range values {
		if v > limit {
			count++
		}
	}
	return float64(count) / float64(len(values))
}
