// Package selection plays the analyst of Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, The reusable holdout (Science 349, 2015, doi
// 10.1126/science.aaa9375), who selects features by asking a holdout, and votes with them. The holdout tells its own numbers, or
// Thresholdout tells them.
//
// What the analyst sees is drawn exactly instead of the data (docs/proofs/feature-selection-sampling.md), or all data are drawn. It draws no figure: a
// server plays it for its page.
package selection

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/featuresel"
)

// Who tells the holdout's numbers.
const (
	StandardReuse       = "standard"     // the holdout tells its own numbers
	ThroughThresholdout = "thresholdout" // Thresholdout tells them
)

// Shape is the size of one repetition.
type Shape struct {
	N      int   // rows of the training part, of the holdout and of the fresh part
	D      int   // columns
	Biased int   // columns that know the label; the first ones
	Ks     []int // numbers of columns of the classifiers, increasing, from 1 up
}

// PublishedKs are the numbers of columns of the published figure, for PublishedSize rows and columns.
var PublishedKs = []int{10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500}

// PublishedSize is the published number of rows of each part, and of columns; publishedBiased of these know the label, where there is a signal.
const (
	PublishedSize   = 10000
	publishedBiased = 20
)

// NewShape keeps the published picture for n rows and d columns, with a signal or without: numbers of columns go with d, since correlations go with 1/sqrt(n).
func NewShape(n, d int, withSignal bool) Shape {
	scaled := func(k int) int { return max(1, int(math.Round(float64(k)*float64(d)/PublishedSize))) }
	s := Shape{N: n, D: d}
	for _, k := range PublishedKs {
		s.Ks = append(s.Ks, scaled(k))
	}
	s.Ks = slices.Compact(s.Ks)
	if withSignal {
		s.Biased = scaled(publishedBiased)
	}
	return s
}

// The numbers of the experiment, in standard deviations of a correlation, 1/sqrt(n). For accuracies threshold and noise are in
// hundredths, as published for 10,000 rows, whatever n is: correlations shrink with n, what a selection gains in accuracy does not.
const (
	signalShift  = 6 // mean correlation of a column that knows the label
	filterCutoff = 1 // of the filter
	Threshold    = 4 // of Thresholdout
	Noise        = 1 // of Thresholdout
)

// shift is the mean of column j times the label.
func (s Shape) shift(j int) float64 {
	if j < s.Biased {
		return signalShift / math.Sqrt(float64(s.N))
	}
	return 0
}

func (s Shape) deviation() float64 { return 1 / math.Sqrt(float64(s.N)) }

const accuracyUnit = 0.01

// Path is what one method comes to: for every k the accuracy in the training part, as told of the holdout, and in fresh data.
type Path struct {
	Training []float64 `json:"training"`
	Told     []float64 `json:"told"`
	Fresh    []float64 `json:"fresh"`
	Selected int       `json:"selected"` // columns that pass the filter
	Above    int       `json:"above"`    // correlations and accuracies that Thresholdout answered from the holdout
}

// A Sampler draws exactly what the analyst sees, without drawing the data: see docs/proofs/feature-selection-sampling.md.
// It is made once and used for many repetitions; a repetition allocates what it returns and nothing else that grows with n or d.
type Sampler struct {
	size   Shape
	source *rand.PCG
	random *rand.Rand

	training, holdout, told []float64 // correlations, one for each column
	selected                []int
	drift                   []float64 // by k: what every row's margin gains from the columns up to k
	added                   []int     // by k: how many columns more than for the k before
	margins                 []float64 // one for each row: the random part
}

// NewSampler is one for repetitions of a size.
func NewSampler(s Shape) *Sampler {
	source := rand.NewPCG(0, 0)
	return &Sampler{size: s, source: source, random: rand.New(source),
		training: make([]float64, s.D), holdout: make([]float64, s.D), told: make([]float64, s.D), selected: make([]int, 0, s.D),
		drift: make([]float64, len(s.Ks)), added: make([]int, len(s.Ks)), margins: make([]float64, s.N)}
}

// Standard is a repetition in which the holdout tells its own numbers.
func (s *Sampler) Standard(seed uint64) Path {
	s.begin(seed)
	return s.finish(s.holdout, func(_, holdout, _ float64) float64 { return holdout })
}

// Thresholdout is a repetition in which Thresholdout tells them.
func (s *Sampler) Thresholdout(seed uint64) Path {
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
func (s *Sampler) tell(training, holdout, unit float64) float64 {
	if math.Abs(training-holdout) <= unit*(Threshold+Noise*s.random.NormFloat64()) {
		return training
	}
	return holdout + unit*Noise*s.random.NormFloat64()
}

// begin draws the correlations of both parts: independent normal variables of variance 1/n.
func (s *Sampler) begin(seed uint64) {
	s.source.Seed(seeds.Of(seed, 1), seeds.Of(seed, 2))
	unit := s.size.deviation()
	for _, part := range [][]float64{s.training, s.holdout} {
		for j := range part {
			part[j] = s.size.shift(j) + unit*s.random.NormFloat64()
		}
	}
}

// finish selects by the correlations that were told, and draws the accuracies of the classifiers.
func (s *Sampler) finish(told []float64, tell func(training, holdout, unit float64) float64) Path {
	s.selected = featuresel.Filter(s.selected[:0], s.training, told, filterCutoff*s.size.deviation())
	values := make([]float64, 3*len(s.size.Ks))
	p := Path{Training: values[:len(s.size.Ks)], Told: values[len(s.size.Ks) : 2*len(s.size.Ks)], Fresh: values[2*len(s.size.Ks):], Selected: len(s.selected)}
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
func (s *Sampler) accumulate(mean func(j int) float64) {
	sum, from := 0.0, 0
	for i, k := range s.size.Ks {
		to := min(k, len(s.selected))
		for _, j := range s.selected[from:to] {
			sum += math.Copysign(1, s.training[j]) * mean(j)
		}
		s.drift[i], s.added[i], from = sum, to-from, to
	}
}

// walk draws the accuracies for all k in one part. known says that the columns' means over the part are known, those that drift
// was made of, so that what is left of a column is orthogonal to the constant; else drift was made of their expectations.
func (s *Sampler) walk(dst []float64, known bool) {
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
