package thresholdout

import (
	"math"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// ReadLast implements [LastStatistic]: a yes/no mean over all units by its count, everything else by the sample's own moments.
func (r RootSums) ReadLast(training LastStatistic, by LastPlanning) (Reading, error) {
	var t *RootSums
	if training != nil {
		same, ok := training.(RootSums)
		if !ok {
			return Reading{}, otherLast(r, training)
		}
		t = &same
	}
	return r.reading(t, r.sample(), r.Sum/grid, by)
}

// ExpectLast implements [LastStatistic].
func (r RootSums) ExpectLast(by LastPlanning) (Reading, error) {
	s, share := r.sample(), float64(by.N)/float64(max(r.All, 1))
	s.Units *= share
	expected := r
	expected.Units = int64(math.Round(s.Units))
	expected.All = by.N
	return expected.reading(&r, s, int64(math.Round(s.Mean*float64(by.N))), by)
}

// sample are the moments that the sums tell.
func (r RootSums) sample() moments.Sample {
	if r.Higher == nil {
		return r.Sums.Sample()
	}
	return r.SampleWith(r.Higher.Third, r.Higher.Fourth)
}

// reading is that of sums over by.N units, with this sample and, of a yes/no mean, this count.
func (r RootSums) reading(training *RootSums, s moments.Sample, count int64, by LastPlanning) (Reading, error) {
	out := Reading{Value: float64(r.mean()) / float64(grid), Bound: MethodSample, Whole: !r.Partial}
	if r.Binary && !r.Partial {
		out.Bound = MethodCounts
		out.Interval = func(level float64) (low, high float64) {
			low, high, err := moments.FractionInterval(by.N, count, level)
			if err != nil {
				return 0, 1
			}
			return low, high
		}
		return out, nil
	}
	if training == nil && !r.Partial {
		out.Plain, out.Interval = true, nil // nothing says how much the function varies
		return out, nil
	}
	batch, expected, err := training.lastBatch(by)
	if err != nil {
		return Reading{}, err
	}
	if low, high := batch.Interval(expected, by.Level); !r.Partial && high-low >= 2*by.Plain {
		out.Plain = true
		return out, nil
	}
	out.Interval = func(level float64) (low, high float64) { return batch.Interval(s, level) }
	return out, nil
}

// lastBatch plans the stakes of a last answer by the training part, nil without one, and says what sample is expected.
func (r *RootSums) lastBatch(by LastPlanning) (moments.Batch, moments.Sample, error) {
	if r == nil || r.Units == 0 {
		b, err := moments.PlanBatch(0.5, 0, float64(by.N), by.Level)
		return b, moments.Sample{}, err
	}
	mean, variance := r.Moments()
	units := float64(by.N) * float64(r.Units) / float64(r.All)
	b, err := moments.PlanBatch(mean, min(variance, 0.25), units, by.Level)
	return b, moments.NewSample(mean, variance, units), err
}
