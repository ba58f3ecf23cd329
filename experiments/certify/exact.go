package certify

import (
	"context"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
)

// radiusOfDistance is the measure of exact models, run.Row.Set: a certified radius over the distance at which the prediction changes.
const radiusOfDistance = "certified radius over the boundary's distance"

// Exact models have one boundary, at a known distance from each row in the norm of the noise: an attack of that size changes the prediction and
// no smaller one does. They are those for which the certificates are tight: a half-space for Gaussian noise, a threshold of one number for
// Laplace noise. So a radius that is a little too large ends beyond the boundary.
const (
	exactRows  = 40
	exactDraws = 100_000 // of each row: bounds are within a hundredth of the probability

	// Distances of the rows, in scales of the noise: nearer nothing is certified, and farther the draws are too few for a tight bound.
	nearestRow, farthestRow = 0.3, 2.5
)

// exactModel is one of them. Its label of x is 1 where normal x > 0.
type exactModel struct {
	name   string
	noise  certify.Noise
	normal []float64 // of norm 1 in the dual of the noise's norm
}

var exactModels = []exactModel{
	{"half-space", certify.Noise{Family: certify.Gaussian, Scale: 0.25}, []float64{0.6, -0.8}},
	{"threshold of one number", certify.Noise{Family: certify.Laplace, Scale: 0.15}, []float64{1, 0}},
}

func (m exactModel) String() string {
	return fmt.Sprintf("%s, %s %v", m.name, familyTitle(m.noise.Family), m.noise.Scale)
}

// row i has a distance from the boundary of distance(i).
func (m exactModel) row(i int) []float64 {
	x := make([]float64, len(m.normal))
	for j, w := range m.normal {
		x[j] = m.distance(i) * w // along the normal, whose L2 norm is 1
	}
	return x
}

func (m exactModel) distance(i int) float64 {
	return m.noise.Scale * (nearestRow + (farthestRow-nearestRow)*float64(i)/(exactRows-1))
}

// exactAlpha of one certificate leaves all of them together a tenth of a run's false alarm.
var exactAlpha = 0.1 * run.FalseAlarm / float64(len(exactModels)*exactRows*eventsPerDigit)

// ratios are a row's certified radii, in all ways, over its distance.
func (m exactModel) ratios(i int, seed uint64) ([]float64, error) {
	label := func(x []float64) int {
		side := 0.0
		for j, w := range m.normal {
			side += w * x[j]
		}
		if side > 0 {
			return 1
		}
		return 0
	}
	var ratios []float64
	for _, scores := range []bool{false, true} {
		c := certify.Classifier{Classes: 2, Label: label}
		if scores {
			c = certify.Classifier{Classes: 2, Scores: func(dst, x []float64) {
				dst[label(x)] = 1
				dst[1-label(x)] = 0
			}}
		}
		options := func(w way) certify.Options {
			return certify.Options{Noise: m.noise, Samples: exactDraws, Alpha: exactAlpha, Method: w.method, Bound: w.bound}
		}
		s, err := certify.New(c, options(judge(scores)))
		if err != nil {
			return nil, err
		}
		var tally certify.Tally
		if err := s.Tally(&tally, m.row(i), seed); err != nil {
			return nil, err
		}
		for _, w := range ways(m.noise.Family) { // ways of labels come first
			if w.scores != scores {
				continue
			}
			certificate, err := options(w).Certify(&tally)
			if err != nil {
				return nil, err
			}
			ratio := certificate.Radius / m.distance(i)
			if certificate.Prediction == 0 {
				ratio = math.Inf(1) // the row itself has label 1
			}
			ratios = append(ratios, ratio)
		}
	}
	return ratios, nil
}

// tightest is what the largest ratio of the tightest way is at least: else its check would not notice a radius that is a tenth too large.
const tightest = 0.95

// exactCertificates certifies the rows of exact models in all ways.
func exactCertificates(ctx context.Context, o run.Options, checks *run.Checks) (rows []run.Row, err error) {
	found, finished, err := run.Repeat(ctx, o, "exact models", len(exactModels)*exactRows, func(_ context.Context, i int) ([]float64, error) {
		return exactModels[i/exactRows].ratios(i%exactRows, seeds.Of(o.Seed, 5, uint64(i)))
	})
	if err != nil || !run.AllFinished(finished) {
		return nil, err
	}
	for k, m := range exactModels {
		of, largest := found[k*exactRows:(k+1)*exactRows], 0.0
		for i, w := range ways(m.noise.Family) {
			r := run.Measured(run.Row{Condition: m.String(), Method: w.String(), N: exactDraws, K: exactRows, Set: radiusOfDistance}, of,
				func(ratios []float64) float64 { return ratios[i] })
			rows = append(rows, r)
			worst := 0.0
			for _, ratios := range of {
				worst = max(worst, ratios[i])
			}
			largest = max(largest, worst)
			checks.Stated(exactAlpha*exactRows, run.Check{What: fmt.Sprintf("%v: the largest of %d radii over the boundary's distance, %v", m, exactRows, w),
				Expected: 1, Got: worst, Low: worst, High: worst, Agrees: worst <= 1, Criterion: "at most", Notices: fmt.Sprintf("radii %.3g times too large", 1/worst)})
		}
		checks.Stated(0, run.Check{What: m.String() + ": the largest of them in any way", Expected: tightest, Got: largest, Low: largest, High: largest,
			Agrees: largest >= tightest, Criterion: "at least: or the checks above would see too little", Notices: fmt.Sprintf("all radii %.3g times too small", tightest/largest)})
	}
	return rows, nil
}
