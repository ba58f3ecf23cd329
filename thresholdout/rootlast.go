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
	expected.Units, expected.All = int64(math.Round(s.Units)), by.N
	expected.Sum = int64(math.Round(s.Mean * float64(expected.Units) * float64(grid)))
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
	batch, expected, err := training.lastBatch(by)
	if err != nil {
		return Reading{}, err
	}
	// A plain answer's interval is that of values of which nothing but the range is known. Which of the two serves is decided by the training part alone.
	if by.Chernoff {
		return r.orChernoff(out, training == nil, batch, expected, s, by), nil
	}
	width := func(level float64) float64 { return math.Sqrt(level / (2 * float64(by.N))) }
	if low, high := batch.Interval(expected, by.Level); !r.Partial && (training == nil || high-low >= 2*width(by.Level)) {
		out.Bound = ""
		if training == nil {
			out.Sample = func(level float64) (low, high float64) { return batch.Interval(s, level) }
		}
		out.Interval = func(level float64) (low, high float64) {
			return max(0, out.Value-width(level)-gridError), min(1, out.Value+width(level)+gridError)
		}
		return out, nil
	}
	out.Interval = func(level float64) (low, high float64) { return batch.Interval(s, level) }
	return out, nil
}

// Where no training part says which of two intervals serves, both do: each end of Chernoff's has nine tenths of the probability of error, and what the sample says of itself has the tenth that is left.
var (
	rangesShare = math.Log(10.0 / 9)
	samplesCut  = math.Log(10)
)

// orChernoff is a reading by bets or, where these are planned to be no narrower, by Chernoff's inequality.
func (r RootSums) orChernoff(out Reading, untold bool, batch moments.Batch, expected, s moments.Sample, by LastPlanning) Reading {
	chernoff := func(level float64) (low, high float64) { return chernoffOf(by.N, out.Value, level) }
	bets := func(level float64) (low, high float64) { return batch.Interval(s, level) }
	out.Interval = bets
	switch {
	case r.Partial:
	case untold:
		out.Bound = boundSlice + "+" + MethodSample
		out.Interval = func(level float64) (low, high float64) {
			low, high = chernoff(level + rangesShare)
			from, to := bets(level + samplesCut)
			return max(low, from), min(high, to)
		}
	default:
		low, high := batch.Interval(expected, by.Level)
		if from, to := chernoffOf(by.N, expected.Mean, by.Level); to-from <= high-low {
			out.Bound, out.Interval = "", chernoff
		}
	}
	return out
}

// lastBatch plans the stakes of a last answer by the training part, nil without one, and says what sample is expected.
func (r *RootSums) lastBatch(by LastPlanning) (moments.Batch, moments.Sample, error) {
	if r == nil || r.Units == 0 {
		b, err := moments.PlanBatch(0.5, 0, float64(by.N), by.Level, by.Tails)
		return b, moments.Sample{}, err
	}
	mean, variance := r.Moments()
	units := float64(by.N) * float64(r.Units) / float64(r.All)
	b, err := moments.PlanBatch(mean, min(variance, 0.25), units, by.Level, by.Tails)
	return b, moments.NewSample(mean, variance, units), err
}

// ReadLast implements [LastStatistic]: bets on both groups at once.
func (d DifferenceSums) ReadLast(training LastStatistic, by LastPlanning) (Reading, error) {
	var first, second *RootSums
	if training != nil {
		t, ok := training.(DifferenceSums)
		if !ok {
			return Reading{}, otherLast(d, training)
		}
		first, second = &t.First, &t.Second
	}
	return d.reading(first, second, d.First.sample(), d.Second.sample(), by)
}

// ExpectLast implements [LastStatistic].
func (d DifferenceSums) ExpectLast(by LastPlanning) (Reading, error) {
	a, b, share := d.First.sample(), d.Second.sample(), float64(by.N)/float64(max(d.First.All, 1))
	a.Units, b.Units = a.Units*share, b.Units*share
	return d.reading(&d.First, &d.Second, a, b, by)
}

func (d DifferenceSums) reading(first, second *RootSums, a, b moments.Sample, by LastPlanning) (Reading, error) {
	one, _, err := first.lastBatch(by)
	if err != nil {
		return Reading{}, err
	}
	other, _, err := second.lastBatch(by)
	if err != nil {
		return Reading{}, err
	}
	bets := moments.PlanBatchDifference(one, other, by.Level)
	value, ok := d.Value()
	if !ok {
		value = 0.5
	}
	return Reading{Value: value, Bound: MethodSample, Interval: func(level float64) (low, high float64) {
		low, high = bets.Interval(a, b, level)
		return (1 + low) / 2, (1 + high) / 2
	}}, nil
}

// ReadLast implements [LastStatistic].
func (w WeightedSums) ReadLast(training LastStatistic, by LastPlanning) (Reading, error) {
	var planned moments.Sample
	if training != nil {
		t, ok := training.(WeightedSums)
		if !ok {
			return Reading{}, otherLast(w, training)
		}
		planned = t.Sample()
	}
	return w.reading(planned, w.Sample(), by)
}

// ExpectLast implements [LastStatistic].
func (w WeightedSums) ExpectLast(by LastPlanning) (Reading, error) {
	expected := w.Sample()
	expected.Units *= float64(by.N) / float64(max(w.Units, 1))
	return w.reading(w.Sample(), expected, by)
}

// reading is planned by the sample of the training part; by the middle where that has none.
func (w WeightedSums) reading(planned, sample moments.Sample, by LastPlanning) (Reading, error) {
	mean, variance := 0.5, 0.0
	if planned.Units > 0 {
		mean, variance = planned.Mean, min(planned.Variance, 0.25)
	}
	batch, err := moments.PlanBatch(mean, variance, float64(by.N), by.Level, by.Tails)
	if err != nil {
		return Reading{}, err
	}
	return Reading{Value: float64(w.mean()) / float64(grid), Bound: MethodSample, Interval: func(level float64) (low, high float64) {
		return batch.Interval(sample, level)
	}}, nil
}

// ReadLast implements [LastStatistic]: each mean by its own sample, with its share of the probability of error.
func (j JointSums) ReadLast(training LastStatistic, by LastPlanning) (Reading, error) {
	var planned JointSums
	if training != nil {
		var ok bool
		if planned, ok = training.(JointSums); !ok || len(planned.Means) != len(j.Means) {
			return Reading{}, otherLast(j, training)
		}
	}
	return j.reading(by, func(i int, by LastPlanning) (Reading, error) {
		if training == nil {
			return j.Means[i].ReadLast(nil, by)
		}
		return j.Means[i].ReadLast(planned.Means[i], by)
	})
}

// ExpectLast implements [LastStatistic].
func (j JointSums) ExpectLast(by LastPlanning) (Reading, error) {
	return j.reading(by, func(i int, by LastPlanning) (Reading, error) { return j.Means[i].ExpectLast(by) })
}

func (j JointSums) reading(by LastPlanning, mean func(i int, by LastPlanning) (Reading, error)) (Reading, error) {
	means := make([]Reading, len(j.Means))
	at := func(i int, level float64) float64 { return level - math.Log(j.Shares[i]) }
	for i := range means {
		own := by
		own.Level = at(i, by.Level)
		var err error
		if means[i], err = mean(i, own); err != nil {
			return Reading{}, err
		}
	}
	made := func(level float64) Known {
		known := make([]Known, len(means))
		for i, m := range means {
			known[i].Value = m.Value
			known[i].Low, known[i].High = m.Interval(at(i, level))
		}
		return j.Make(known, by.N)
	}
	return Reading{Value: made(by.Level).Value, Bound: MethodSample, Interval: func(level float64) (low, high float64) {
		m := made(level)
		return m.Low, m.High
	}}, nil
}
