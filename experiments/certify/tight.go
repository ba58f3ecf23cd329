package certify

import (
	"context"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// A digit's true distance to another prediction is not known, and an attack finds more than that. So each way is also tried on classifiers whose distance is
// known exactly, and for which some certificate is tight: a radius that is a little too large is beyond the distance.

// overDistance is the measure, Row.Set: a certified radius over the exact distance.
const overDistance = "certified radius over the exact distance"

// knownCase is a classifier of points with an exact distance.
type knownCase struct {
	name    string
	noise   certify.Noise
	classes int
	label   func(x []float64) int
	point   []float64
	exact   float64 // size of the smallest move after which the smoothed classifier predicts another label
}

// knownDim is the number of coordinates, of which the classifiers look at one, or all.
const knownDim = 4

// knownCases are half-spaces for Gaussian noise, where smoothing's radius is the distance (Cohen et al., arXiv 1902.02918, theorem 2); thresholds of one
// coordinate for Laplace noise, where it is the one of Teng et al.; and steps of one coordinate, where pure differential privacy's is.
func knownCases() (all []knownCase) {
	gaussian, laplace := certify.Noise{Family: certify.Gaussian, Scale: 0.25}, certify.Noise{Family: certify.Laplace, Scale: 0.15}
	for _, d := range []float64{0.3, 0.6, 1, 1.5, 2} {
		x := make([]float64, knownDim)
		for j := range x { // along (1,1,1,1)/2
			x[j] = d * gaussian.Scale / 2
		}
		all = append(all, knownCase{"half-space", gaussian, 2, func(x []float64) int {
			return int(run.Indicator(x[0]+x[1]+x[2]+x[3] > 0))
		}, x, d * gaussian.Scale})
	}
	for _, d := range []float64{0.3, 0.6, 1, 1.5, 2} {
		x := make([]float64, knownDim)
		x[0] = d * laplace.Scale
		all = append(all, knownCase{"threshold of one pixel", laplace, 2, func(x []float64) int { return int(run.Indicator(x[0] > 0)) }, x, x[0]})
	}
	// At 0 the label is 0 with probability 1/2, 1 beyond -c with e^{-c/b}/2, and 2 between. Moving to the left by r < c multiplies the first by e^{-r/b} and the
	// second by e^{r/b}, which are equal at r = c/2.
	for _, c := range []float64{0.3, 0.5, 0.65} {
		cut := c * laplace.Scale
		all = append(all, knownCase{"steps of one pixel", laplace, 3, func(x []float64) int {
			switch {
			case x[0] > 0:
				return 0
			case x[0] < -cut:
				return 1
			}
			return 2
		}, make([]float64, knownDim), cut / 2})
	}
	return all
}

// certify is the radius of each way.
func (k knownCase) certify(draws int, alpha float64, seed uint64) ([]float64, error) {
	var radii []float64
	for _, w := range ways(k.noise.Family) {
		o := certify.Options{Noise: k.noise, Select: certify.DefaultSelect, Samples: draws, Alpha: alpha, Method: w.method, Bound: w.bound}
		c := certify.Classifier{Classes: k.classes, Label: k.label}
		if w.scores {
			c = certify.Classifier{Classes: k.classes, Scores: func(dst, x []float64) {
				clear(dst)
				dst[k.label(x)] = 1
			}}
		}
		s, err := certify.New(c, o)
		if err != nil {
			return nil, err
		}
		found, err := s.Certify(k.point, seed)
		if err != nil {
			return nil, err
		}
		radii = append(radii, found.Radius)
	}
	return radii, nil
}

// knownRuns certifies every known case, repeatedly: rows with the ratios of radius and distance, and for each way that none is above 1.
func knownRuns(ctx context.Context, o run.Options, draws, repetitions int) (rows []run.Row, all []checks.Comparison, err error) {
	cases := knownCases()
	alpha := knownPart * failure / float64(len(cases)*repetitions*len(ways(certify.Gaussian)))
	radii, finished, err := run.Repeat(ctx, o, "known distances", len(cases)*repetitions, func(_ context.Context, i int) ([]float64, error) {
		return cases[i/repetitions].certify(draws, alpha, run.SeedOf(o.Seed, 5, uint64(i)))
	})
	if err != nil {
		return nil, nil, err
	}
	groups, ratios := []string{}, map[string][][]float64{}
	for i, r := range radii {
		k := cases[i/repetitions]
		if !finished[i] {
			continue
		}
		if ratios[k.name] == nil {
			groups = append(groups, k.name)
			ratios[k.name] = make([][]float64, len(r))
		}
		for w, v := range r {
			ratios[k.name][w] = append(ratios[k.name][w], v/k.exact)
		}
	}
	compared := 0
	for _, name := range groups {
		compared += len(ratios[name])
	}
	share := knownPart * failure / float64(compared)
	for _, name := range groups {
		var k knownCase
		for _, c := range cases {
			if c.name == name {
				k = c
			}
		}
		for w, way := range ways(k.noise.Family) {
			r := run.Row{Condition: fmt.Sprintf("%s, %s %v", name, familyTitle(k.noise.Family), k.noise.Scale), Method: way.String(), N: int64(draws), K: int64(len(ratios[name][w])),
				Set: overDistance, Repetitions: len(ratios[name][w])}
			r.Summarise(ratios[name][w])
			rows = append(rows, r)
			largest, beyond := 0.0, 0
			for _, v := range ratios[name][w] {
				if largest = max(largest, v); v > 1 {
					beyond++
				}
			}
			what := fmt.Sprintf("%s: radii beyond the exact distance, of %d, by %v", r.Condition, r.Repetitions, way)
			all = append(all, checks.Never(what, beyond, share, 1/largest, tooLarge(1/largest)))
		}
	}
	return rows, all, nil
}

// tooLarge says which factor on all radii would have been noticed.
func tooLarge(factor float64) string {
	if math.IsInf(factor, 1) {
		return "nothing: no radius is certified"
	}
	return fmt.Sprintf("radii %.3g times too large", factor)
}

// knownPart is the part of failure that is for certificates at known distances.
const knownPart = 0.25
