package certify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// BatchRows is the most inputs that Classifier.Labels is given at once.
const BatchRows = 1000

// Classifier is the function that is smoothed. One of Label, Labels and Scores is set. None may keep or change x. A classifier that
// writes to memory of its own is for one goroutine.
type Classifier struct {
	Classes int // labels are 0 to Classes-1; at least 2

	// Label predicts the label of an input.
	Label func(x []float64) int
	// Labels predicts those of several inputs, one after the other in x, whose labels are written to dst: for what is far away, where a call is dear. It is called for 1 to
	// [BatchRows] inputs, and an error ends the certificate. The draws are those of Label.
	Labels func(dst []int, x []float64) error
	// Scores writes a score for each label to dst, each in [0,1], of sum at most 1: a softmax, say.
	Scores func(dst, x []float64)

	// Begin, where it is not nil, is told by Batch which row the next inputs are noisy copies of: for what a row has beside the numbers
	// that are moved, and that the classifier reads too.
	Begin func(row int)
}

// Smoother certifies the predictions of a smoothed classifier, one after another. It is for one goroutine; see [Batch] for many.
type Smoother struct {
	options    Options
	classifier Classifier
	source     *rand.PCG
	random     *rand.Rand
	noisy      []float64
	labels     []int // of a batch
	scores     []float64
	chosen     []float64
	tally      Tally
}

// New returns a smoother, or [ErrOptions].
func New(c Classifier, o Options) (*Smoother, error) {
	o, err := o.Defaults()
	if err != nil {
		return nil, err
	}
	functions := 0
	for _, set := range []bool{c.Label != nil, c.Labels != nil, c.Scores != nil} {
		if set {
			functions++
		}
	}
	if c.Classes < 2 || functions != 1 {
		return nil, fmt.Errorf("%w: a classifier has two classes or more, and one of Label, Labels and Scores; this has %d classes", ErrOptions, c.Classes)
	}
	if c.Scores != nil && o.Bound == ClopperPearson {
		return nil, fmt.Errorf("%w: Clopper-Pearson counts labels; scores need hoeffding or empirical-bernstein", ErrOptions)
	}
	s := &Smoother{options: o, classifier: c, source: rand.NewPCG(0, 0), scores: make([]float64, c.Classes), chosen: make([]float64, c.Classes),
		tally: Tally{Sums: make([]float64, c.Classes), Squares: make([]float64, c.Classes), Scores: c.Scores != nil}}
	s.random = rand.New(s.source)
	return s, nil
}

// Certify draws and certifies the prediction at x. The same x and seed give the same certificate. The seed must not have been known
// when x was chosen. Errors wrap [ErrInput], [ErrLabel] or [ErrScores].
func (s *Smoother) Certify(x []float64, seed uint64) (Certificate, error) {
	if err := s.Tally(&s.tally, x, seed); err != nil {
		return Certificate{Prediction: Abstain}, err
	}
	return s.options.Certify(&s.tally)
}

// Tally draws Select times to choose a label, and Samples times for the bounds, and writes what came to dst, whose slices it uses
// where they are long enough. After the first call with inputs of one length it does not allocate, if the classifier does not.
func (s *Smoother) Tally(dst *Tally, x []float64, seed uint64) error {
	if w := s.options.Noise.Widths; w != nil && len(w) != len(x) {
		return fmt.Errorf("%w: %d values, the noise has %d widths", ErrInput, len(x), len(w))
	}
	for j, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%w: value %d is %v", ErrInput, j, v)
		}
	}
	inputs := 1
	if s.classifier.Labels != nil {
		inputs = min(BatchRows, max(s.options.Select, s.options.Samples))
		s.labels = slices.Grow(s.labels[:0], inputs)
	}
	s.noisy = slices.Grow(s.noisy[:0], inputs*len(x))[:inputs*len(x)]
	s.source.Seed(mix(seed), mix(^seed))
	dst.Sums, dst.Squares = sized(dst.Sums, s.classifier.Classes), sized(dst.Squares, s.classifier.Classes)
	dst.N, dst.Scores = int64(s.options.Samples), s.classifier.Scores != nil
	clear(s.chosen)
	if err := s.draw(s.chosen, nil, x, s.options.Select); err != nil {
		return err
	}
	dst.Label = largest(s.chosen)
	return s.draw(dst.Sums, dst.Squares, x, s.options.Samples)
}

// draw adds what the classifier says of n noisy inputs to sums, and squares of scores to squares where there are any.
func (s *Smoother) draw(sums, squares, x []float64, n int) error {
	if s.classifier.Scores != nil {
		return s.drawScores(sums, squares, x, n)
	}
	if s.classifier.Labels != nil {
		return s.drawLabels(sums, squares, x, n)
	}
	for range n {
		s.options.Noise.Add(s.noisy, x, s.random)
		label := s.classifier.Label(s.noisy)
		if label < 0 || label >= len(sums) {
			return fmt.Errorf("%w: %d of %d", ErrLabel, label, len(sums))
		}
		sums[label]++
	}
	copy(squares, sums)
	return nil
}

func (s *Smoother) drawLabels(sums, squares, x []float64, n int) error {
	for n > 0 {
		inputs := min(n, BatchRows)
		n -= inputs
		labels, noisy := s.labels[:inputs], s.noisy[:inputs*len(x)]
		for i := range labels {
			s.options.Noise.Add(noisy[i*len(x):(i+1)*len(x)], x, s.random)
		}
		if err := s.classifier.Labels(labels, noisy); err != nil {
			return err
		}
		for _, label := range labels {
			if label < 0 || label >= len(sums) {
				return fmt.Errorf("%w: %d of %d", ErrLabel, label, len(sums))
			}
			sums[label]++
		}
	}
	copy(squares, sums)
	return nil
}

func (s *Smoother) drawScores(sums, squares, x []float64, n int) error {
	for range n {
		s.options.Noise.Add(s.noisy, x, s.random)
		s.classifier.Scores(s.scores, s.noisy)
		total := 0.0
		for label, v := range s.scores {
			if !(v >= 0 && v <= 1) {
				return fmt.Errorf("%w: label %d has %v", ErrScores, label, v)
			}
			total += v
			sums[label] += v
			if squares != nil {
				squares[label] += v * v
			}
		}
		if total > 1+scoreSlack {
			return fmt.Errorf("%w: their sum is %v", ErrScores, total)
		}
	}
	return nil
}

// scoreSlack is what rounding may add to the sum of a softmax of a few thousand labels.
const scoreSlack = 1e-12

// sized returns n zeros, in the memory of s where it is enough.
func sized(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// largest is the index of the largest value, the first of equal ones.
func largest(values []float64) int {
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}

// mix is the finalizer of SplitMix64: seeds 1, 2, 3 give unrelated states.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Rows are the inputs of a batch.
type Rows interface {
	// Len is their number.
	Len() int
	// Row returns row i, which must stay as it is until the batch has ended. It is called from several goroutines.
	Row(i int) []float64
}

// Slice is Rows in memory, one slice a row.
type Slice [][]float64

// Len implements Rows.
func (s Slice) Len() int { return len(s) }

// Row implements Rows.
func (s Slice) Row(i int) []float64 { return s[i] }

// Batch certifies the prediction of every row on all cores. classifier is called once a core, at the same time, so that each may have memory of its
// own. Row i is drawn from a seed made of seed and i: the certificates are the same on any number of cores. done, where it is not
// nil, is told of each certificate, in no order, one at a time.
//
// On an error, that of an ended context included, certificates that were finished are returned with it; others have the
// Prediction Abstain and no radius.
func Batch(ctx context.Context, classifier func() Classifier, o Options, rows Rows, seed uint64, done func(row int, c Certificate)) ([]Certificate, error) {
	certificates := make([]Certificate, rows.Len())
	for i := range certificates {
		certificates[i].Prediction = Abstain
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), rows.Len()))
	var next int
	var mu sync.Mutex // guards next, and calls of done
	group, groupCtx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			s, err := New(classifier(), o)
			if err != nil {
				return err
			}
			for groupCtx.Err() == nil {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= rows.Len() {
					break
				}
				if s.classifier.Begin != nil {
					s.classifier.Begin(i)
				}
				c, err := s.Certify(rows.Row(i), SeedOf(seed, i))
				if err != nil {
					return fmt.Errorf("row %d: %w", i, err)
				}
				mu.Lock()
				certificates[i] = c
				if done != nil {
					done(i, c)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return certificates, err
	}
	return certificates, ctx.Err()
}

// SeedOf is the seed that [Batch] certifies row i with.
func SeedOf(seed uint64, i int) uint64 { return mix(mix(seed) ^ uint64(i)) }
