package learn

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// falseAlarm of each statistical check; seeds are fixed.
const falseAlarm = 1e-6

// own returns the gradient of one row alone, clipped by what the norm of the whole vector says.
func own(n *Network, d Data, i int, limit float64) []float64 {
	sum := newBatchSum(n)
	sum.of(d, []int{i}, math.Inf(1))
	if norm := math.Sqrt(square(sum.gradient)); norm > limit {
		for k := range sum.gradient {
			sum.gradient[k] *= limit / norm
		}
	}
	return sum.gradient
}

// TestClippedSum: the sum that is built without any example's gradient is the sum of the clipped gradients, with limits
// that clip none, some and all, over several chunks.
func TestClippedSum(t *testing.T) {
	d := blobs(10, 3*chunk+5, 6, 3)
	all := span(0, d.Len())
	for name, n := range models(11, 6, 3) {
		norms := make([]float64, d.Len())
		for i := range norms {
			norms[i] = math.Sqrt(square(own(n, d, i, math.Inf(1))))
		}
		slices.Sort(norms)
		median := norms[len(norms)/2]
		for _, limit := range []float64{0.05, median, 100} {
			want, clipped := make([]float64, len(n.params)), 0
			for i := range all {
				gradient := own(n, d, i, limit)
				if math.Sqrt(square(gradient)) > limit*(1-1e-9) {
					clipped++
				}
				for k, v := range gradient {
					want[k] += v
				}
			}
			sum := newBatchSum(n)
			sum.of(d, all, limit)
			for k := range want {
				if math.Abs(sum.gradient[k]-want[k]) > 1e-12*float64(d.Len())*limit {
					t.Fatalf("%s, limit %v: coordinate %d is %v, one by one %v", name, limit, k, sum.gradient[k], want[k])
				}
			}
			if limit == median && (clipped == 0 || clipped == d.Len()) {
				t.Errorf("%s: %d of %d clipped, the test wants some", name, clipped, d.Len())
			}
		}
	}
}

// TestRowsAreComputedAlone is what the sensitivity rests on: the same bits for a row in any batch, at any place in it.
// 200 units are wide enough for gonum to cut the product into blocks.
func TestRowsAreComputedAlone(t *testing.T) {
	d := blobs(12, chunk, 7, 3)
	for _, n := range []*Network{Perceptron(noise.Seeded(13), 7, []int{5}, 3), Perceptron(noise.Seeded(14), 7, []int{200, 300}, 3)} {
		together := n.NewPass(chunk)
		together.Scores(d.X)
		together.backward(d.Y)
		for rows := 1; rows < 6; rows++ {
			for from := 0; from+rows <= chunk; from += 7 {
				apart := n.NewPass(chunk)
				apart.Scores(d.X[from*7 : (from+rows)*7])
				apart.backward(d.Y[from : from+rows])
				for i, l := range n.layers {
					if !slices.Equal(apart.deltas[i][:rows*l.out], together.deltas[i][from*l.out:(from+rows)*l.out]) {
						t.Fatalf("%v: layer %d of %d rows from %d differs", n.sizes, i, rows, from)
					}
				}
			}
		}
	}
}

// TestSensitivity: with any example taken out, the integers move by at most the clipping norm, also where a gradient is
// huge, infinite, or in the direction of all the others.
func TestSensitivity(t *testing.T) {
	r := rand.New(noise.Seeded(15))
	for _, spread := range []float64{1e-8, 1, 1e8, 1e155, 1e300} {
		d := blobs(16, 150, 6, 3)
		same := append([]float64(nil), d.Row(0)...)
		for i := range d.X {
			if i/6%2 == 0 {
				d.X[i], d.Y[i/6] = same[i%6], d.Y[0]
			}
			d.X[i] *= spread
		}
		all := models(17, 6, 3)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			n := all[name]
			for _, clip := range []float64{1e-9, 0.7, 1e9} {
				grid, limit := gridOf(clip), clip*shrink(n, d.Len())
				if !(limit > 0.995*clip && limit < clip) {
					t.Fatalf("clipping norm %v became %v", clip, limit)
				}
				with, without, moved := newBatchSum(n), newBatchSum(n), 0.0
				rows := span(0, d.Len())
				with.of(d, rows, limit)
				for range 20 {
					out := r.IntN(len(rows))
					without.of(d, slices.Delete(slices.Clone(rows), out, out+1), limit)
					squared := 0.0
					for k := range with.gradient {
						difference := float64(units(with.gradient[k], grid) - units(without.gradient[k], grid))
						squared += difference * difference
					}
					moved = max(moved, math.Sqrt(squared)*grid)
				}
				if moved > clip {
					t.Errorf("%s, features of %v: an example moves the sum by %v, clipped at %v", name, spread, moved, clip)
				}
				if spread == 1e8 && clip == 0.7 && moved < 0.99*clip {
					t.Errorf("%s: no example moved the sum by more than %v, the test wants one that is clipped", name, moved)
				}
			}
		}
	}
}

// TestNoiseLaw takes one step with all examples: what is left of the move beside the clipped sum is normal with the
// standard deviation that the account is made for. Noise five percent narrower would be noticed.
func TestNoiseLaw(t *testing.T) {
	d := blobs(18, 40, 999, 10)
	n := Softmax(999, 10)
	o := Private{Steps: 1, Sampling: 1, Clip: 0.5, Multiplier: 3, Rate: 2}
	sum := newBatchSum(n)
	sum.of(d, span(0, 40), o.Clip)
	if err := n.TrainPrivately(context.Background(), d, o, noise.Seeded(19)); err != nil {
		t.Fatal(err)
	}
	sample := make([]float64, len(n.params))
	for i, v := range n.params {
		sample[i] = (-v*40/o.Rate - sum.gradient[i]) / (o.Multiplier * o.Clip)
	}
	if err := stattest.Kolmogorov(sample, distuv.UnitNormal.CDF, falseAlarm); err != nil {
		t.Error(err)
	}
	variance := square(sample) / float64(len(sample))
	if tolerance := 5 * math.Sqrt(2/float64(len(sample))); math.Abs(variance-1) > tolerance || tolerance > 0.09 { // 5 standard errors: 6e-7
		t.Errorf("variance %v", variance)
	}
}

// TestSampling: with a feature of its own each example shows in the gradient whether it was drawn. Each is, with the
// stated frequency, and independently of another.
func TestSampling(t *testing.T) {
	const rows, steps = 40, 3000
	d := Data{Dim: rows, Classes: 2, X: make([]float64, rows*rows), Y: make([]int, rows)}
	for i := range rows {
		d.X[i*rows+i] = 1
	}
	o := Private{Steps: 1, Sampling: 0.2, Clip: 1, Multiplier: 1e-6, Rate: 1}
	s, n := noise.Seeded(20), Softmax(rows, 2)
	drawn, both := 0, 0
	for range steps {
		clear(n.params)
		if err := n.TrainPrivately(context.Background(), d, o, s); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if math.Abs(n.params[i]) > 1e-3 {
				drawn++
				if i%2 == 1 && math.Abs(n.params[i-1]) > 1e-3 {
					both++
				}
			}
		}
	}
	if err := stattest.Frequency(drawn, rows*steps, o.Sampling, falseAlarm); err != nil {
		t.Error(err)
	}
	if err := stattest.Frequency(both, rows/2*steps, o.Sampling*o.Sampling, falseAlarm); err != nil {
		t.Error(err)
	}
}

// TestTrainPrivatelyLearns, and that the same stream gives the same model.
func TestTrainPrivatelyLearns(t *testing.T) {
	all := blobs(21, 3000, 6, 3)
	train, test := all.Subset(span(0, 2000)), all.Subset(span(2000, 3000))
	o := Private{Steps: 150, Sampling: 0.1, Clip: 1, Multiplier: 3, Rate: 1, Momentum: 0.5}
	spent, err := o.Account()
	if err != nil {
		t.Fatal(err)
	}
	if eps, _ := spent.Epsilon(1e-5); eps > 2 || eps < 1 {
		t.Errorf("epsilon %v", eps)
	}
	for name, make := range map[string]func() *Network{"softmax": func() *Network { return Softmax(6, 3) }, "perceptron": func() *Network { return Perceptron(noise.Seeded(22), 6, []int{8}, 3) }} {
		n, again := make(), make()
		for _, each := range []*Network{n, again} {
			if err := each.TrainPrivately(context.Background(), train, o, noise.Seeded(23)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(n.params, again.params) {
			t.Errorf("%s: the same stream gave two models", name)
		}
		if a := n.Accuracy(test); a < 0.9 {
			t.Errorf("%s: accuracy %v", name, a)
		}
	}
}

func TestRefusals(t *testing.T) {
	d := blobs(24, 20, 3, 2)
	good := Private{Steps: 1, Sampling: 0.5, Clip: 1, Multiplier: 1, Rate: 1}
	ctx, seeded := context.Background(), func() *noise.Stream { return noise.Seeded(25) }
	for name, change := range map[string]func(*Private){
		"steps":    func(o *Private) { o.Steps = 0 },
		"sampling": func(o *Private) { o.Sampling = 1.5 },
		"no draw":  func(o *Private) { o.Sampling = 0 },
		"clip":     func(o *Private) { o.Clip = math.NaN() },
		"noise":    func(o *Private) { o.Multiplier = 0 },
		"rate":     func(o *Private) { o.Rate = math.Inf(1) },
		"momentum": func(o *Private) { o.Momentum = 1 },
	} {
		o := good
		change(&o)
		if err := Softmax(3, 2).TrainPrivately(ctx, d, o, seeded()); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := o.Account(); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: account %v", name, err)
		}
	}
	for name, bad := range map[string]Data{
		"features": {Dim: 4, Classes: 2, X: make([]float64, 4), Y: []int{0}},
		"classes":  {Dim: 3, Classes: 3, X: make([]float64, 3), Y: []int{0}},
		"empty":    {Dim: 3, Classes: 2},
		"length":   {Dim: 3, Classes: 2, X: make([]float64, 4), Y: []int{0}},
		"label":    {Dim: 3, Classes: 2, X: make([]float64, 3), Y: []int{2}},
		"negative": {Dim: 3, Classes: 2, X: make([]float64, 3), Y: []int{-1}},
		"NaN":      {Dim: 3, Classes: 2, X: []float64{0, 0, math.NaN()}, Y: []int{0}},
	} {
		n := Softmax(3, 2)
		if err := n.TrainPrivately(ctx, bad, good, seeded()); !errors.Is(err, ErrData) {
			t.Errorf("%s: %v", name, err)
		}
		if err := n.Train(ctx, bad, Plain{}, seeded()); !errors.Is(err, ErrData) {
			t.Errorf("%s: plain %v", name, err)
		}
	}
	for _, o := range []Plain{{Epochs: -1}, {Batch: -1}, {Rate: -1}, {Momentum: 1}, {Decay: -1}} {
		if err := Softmax(3, 2).Train(ctx, d, o, seeded()); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := Softmax(3, 2).TrainPrivately(cancelled, d, good, seeded()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := Softmax(3, 2).Train(cancelled, d, Plain{}, seeded()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLoopsAllocateNothing: what runs for every batch.
func TestLoopsAllocateNothing(t *testing.T) {
	d := blobs(26, 200, 6, 3)
	n := Perceptron(noise.Seeded(27), 6, []int{8}, 3)
	sum, rows, x := newBatchSum(n), span(0, 200), make([]float64, chunk*6)
	if got := testing.AllocsPerRun(10, func() {
		sum.of(d, rows, 1)
		sum.pass.InputGradients(x, d.X[:chunk*6], d.Y[:chunk])
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkClippedBatch(b *testing.B) {
	d := blobs(28, 512, 64, 10)
	n := Perceptron(noise.Seeded(29), 64, []int{32}, 10)
	sum, rows := newBatchSum(n), span(0, 512)
	for b.Loop() {
		sum.of(d, rows, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/example")
}
