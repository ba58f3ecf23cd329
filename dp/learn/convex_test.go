package learn

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// weightsOf are those of a model that Logistic returns.
func weightsOf(n *Network) []float64 { return n.params[n.Dim() : 2*n.Dim()] }

// minimum is what descend finds without noise.
func (l Logistic) minimum(d Data) []float64 {
	return l.descend(l.signed(d), nil, 1/float64(d.Len()), l.smooth(), int(stepsFor(l.smooth()/l.Lambda, 1e8)))
}

// pulled are rows that pull the weights down along the first feature, and one of a row's own that differs along the second.
func pulled(rows int, last float64) Data {
	d := Data{Dim: 2, Classes: 2}
	for range rows - 1 {
		d.X, d.Y = append(d.X, 1, 0), append(d.Y, 0)
	}
	d.X, d.Y = append(d.X, .4, last), append(d.Y, 1)
	return d
}

// TestLogisticSensitivity: a replaced row moves the weights by no more than is said, after any number of steps, also for rows that are far too long; and in
// the worst direction by more than half of it, so that a bound without its factor of 2 would be noticed.
func TestLogisticSensitivity(t *testing.T) {
	r := rand.New(noise.Seeded(40))
	for range 60 {
		rows, dim := 2+r.IntN(30), 1+r.IntN(4)
		l := Logistic{Dim: dim, Radius: math.Exp(4*r.Float64() - 2), Lambda: math.Exp(8*r.Float64() - 6)}
		d := Data{Dim: dim, Classes: 2}
		for range rows {
			for range dim {
				d.X = append(d.X, r.NormFloat64()*math.Exp(4*r.NormFloat64()))
			}
			d.Y = append(d.Y, r.IntN(2))
		}
		other := d.Subset(span(0, rows))
		for k := range dim {
			other.X[k] = -other.X[k] * 1e3
		}
		steps := 1 + r.IntN(300)
		a, b := l.descend(l.signed(d), nil, 1/float64(rows), l.smooth(), steps), l.descend(l.signed(other), nil, 1/float64(rows), l.smooth(), steps)
		if moved := floats.Distance(a, b, 2); moved > l.sensitivity(rows) {
			t.Errorf("%+v, %d rows, %d steps: moved by %v, at most %v", l, rows, steps, moved, l.sensitivity(rows))
		}
	}
	l := Logistic{Dim: 2, Radius: 1, Lambda: 2e-3}
	up, down := pulled(2000, math.Sqrt(1-.16)), pulled(2000, -math.Sqrt(1-.16))
	if moved := floats.Distance(l.minimum(up), l.minimum(down), 2); moved < .6*l.sensitivity(2000) || moved > l.sensitivity(2000) {
		t.Errorf("the worst row moves the weights by %v, said is %v", moved, l.sensitivity(2000))
	}
}

// TestRowsAreShortened: no row is longer than Radius, however large its numbers, and short ones stay as they are, but for the sign of their class.
func TestRowsAreShortened(t *testing.T) {
	l := Logistic{Dim: 3, Radius: 2, Lambda: 1}
	d := Data{Dim: 3, Classes: 2, X: []float64{1, 0, -1, 1e308, 1e308, -1e308, 0, 0, 0, 5e-324, 0, 0, 3, 4, 0}, Y: []int{0, 1, 1, 1, 1}}
	x := l.signed(d)
	for i := range d.Len() {
		if norm := floats.Norm(x[3*i:3*i+3], 2); !(norm <= 2) {
			t.Errorf("row %d has norm %v", i, norm)
		}
	}
	for i, want := range map[int]float64{0: -1, 2: 1, 3: 2 / math.Sqrt(3), 9: 5e-324, 12: 1.2, 13: 1.6} {
		if math.Abs(x[i]-want) > 1e-14 {
			t.Errorf("number %d is %v, want %v", i, x[i], want)
		}
	}
}

// TestOutputPerturbation: what it adds to the minimum is normal with the deviation of the sensitivity over mu (false alarm 1e-6; noise five percent
// narrower would be noticed), and with little noise it is as accurate as without.
func TestOutputPerturbation(t *testing.T) {
	d := blobs(41, 50, 4000, 2)
	l := Logistic{Dim: 4000, Radius: 1, Lambda: .5}
	n, err := l.OutputPerturbation(d, 2, noise.Seeded(42))
	if err != nil {
		t.Fatal(err)
	}
	sample := weightsOf(n)
	floats.Sub(sample, l.minimum(d))
	floats.Scale(2/l.sensitivity(50), sample)
	if err := stattest.Kolmogorov(sample, distuv.UnitNormal.CDF, falseAlarm); err != nil {
		t.Error(err)
	}
	if v := square(sample) / 4000; math.Abs(v-1) > 5.5*math.Sqrt(2./4000) {
		t.Errorf("variance %v", v)
	}
	all := blobs(43, 2000, 6, 2)
	train, test := all.Subset(span(0, 1000)), all.Subset(span(1000, 2000))
	for i := range train.X {
		train.X[i] /= 10
		test.X[i] /= 10
	}
	l = Logistic{Dim: 6, Radius: 1, Lambda: .02}
	exact := l.model(l.minimum(train)).Accuracy(test)
	n, err = l.OutputPerturbation(train, 1, noise.Seeded(44))
	if err != nil || exact < .9 || n.Accuracy(test) < exact-.03 {
		t.Errorf("accuracy %v, without noise %v: %v", n.Accuracy(test), exact, err)
	}
	n, err = l.ObjectivePerturbation(train, 1000, 1, 1e-6, noise.Seeded(45))
	if !errors.Is(err, ErrSettings) {
		t.Errorf("a sum with lambda .02 at epsilon 1: %v", err)
	}
	l.Lambda = 5
	n, err = l.ObjectivePerturbation(train, 1000, 1, 1e-6, noise.Seeded(45))
	if err != nil || n.Accuracy(test) < exact-.05 {
		t.Errorf("accuracy %v by the objective, without noise %v: %v", n.Accuracy(test), exact, err)
	}
}

// TestMinimumIsFound: descents end within far of the minimum, as the size of the gradient there over lambda says.
func TestMinimumIsFound(t *testing.T) {
	d := blobs(46, 300, 5, 2)
	l := Logistic{Dim: 5, Radius: 3, Lambda: 4}
	o, err := l.plan(500, 2, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	b := []float64{3 * o.sigma, -o.sigma, 0, 2 * o.sigma, o.sigma}
	x := l.signed(d)
	w := l.descend(x, b, 1, 500*l.Radius*l.Radius/4+l.Lambda, o.steps)
	gradient := append([]float64(nil), b...)
	floats.AddScaled(gradient, l.Lambda, w)
	for i := range d.Len() {
		row := x[5*i : 5*i+5]
		floats.AddScaled(gradient, -1/(1+math.Exp(floats.Dot(row, w))), row)
	}
	if off := floats.Norm(gradient, 2) / l.Lambda; off > o.far {
		t.Errorf("off by up to %v, promised %v", off, o.far)
	}
	if o.far > 1e-4*o.sigma/l.Lambda {
		t.Errorf("%v is not far below the noise %v", o.far, o.sigma/l.Lambda)
	}
}

// TestAttackOnConvex: the auditor refutes neither perturbation by 20,000 runs on each of two neighbouring tables (false alarm 1e-6 each), and proves enough
// that half of the noise would be refuted, which is demanded to be seen.
func TestAttackOnConvex(t *testing.T) {
	set := audit.Settings{Runs: 20_000, Confidence: 1 - 1e-6}
	table := func(labels ...int) Data {
		d := Data{Dim: 1, Classes: 2, Y: labels}
		for range labels {
			d.X = append(d.X, 1)
		}
		return d
	}
	claim := audit.Claim{Epsilon: 1, Delta: .01}
	l := Logistic{Dim: 1, Radius: 1, Lambda: 5}
	objective := func(d Data, eps float64) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 { return weightsOf(must1(l.ObjectivePerturbation(d, 3, eps, .01, s)))[0] }
	}
	output := func(d Data, mu account.GDP) audit.Mechanism[float64] {
		return func(s *noise.Stream) float64 { return weightsOf(must1(l.OutputPerturbation(d, mu, s)))[0] }
	}
	gdp := account.LargestGDP(1, .01)
	for _, c := range []struct {
		name    string
		a, b    audit.Mechanism[float64]
		refuted bool
	}{
		{"objective", objective(table(0, 0, 1), 1), objective(table(0, 0), 1), false},
		{"objective, 8 for 1", objective(table(0, 0, 1), 8), objective(table(0, 0), 8), true},
		{"output", output(table(0, 1), gdp), output(table(0, 0), gdp), false},
		{"output, 6 mu for mu", output(table(0, 1), 6*gdp), output(table(0, 0), 6*gdp), true},
	} {
		report, err := audit.Numbers(claim, set, noise.Seeded(47), c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		if report.Refuted() != c.refuted {
			t.Errorf("%s: %v", c.name, report)
		}
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestObjectiveNoise: the tail of the loss that the noise is made for, against draws: |g|²/2 sigma² + p b g / sigma² with p next to 1 exceeds eps1 in about
// a share delta1 of 200,000 draws, and by the formula no more often (false alarm 1e-6).
func TestObjectiveNoise(t *testing.T) {
	l := Logistic{Dim: 1, Radius: 2, Lambda: 30}
	const eps, delta, draws = 1., .05, 200_000
	o := must1(l.plan(10, eps, delta))
	eps1 := eps*(1-shareOfSolving) - math.Log1p(1/l.Lambda)
	s, exceeded := noise.Seeded(48), 0
	for range draws {
		b := o.sigma * float64(noise.RoundedNormal(s, 0x1p40)) / 0x1p40
		if (l.Radius*l.Radius+2*b*l.Radius)/(2*o.sigma*o.sigma) > eps1 {
			exceeded++
		}
	}
	if err := stattest.Frequency(exceeded, draws, delta*(1-shareOfSolving), falseAlarm); err != nil {
		t.Error(err)
	}
	if got := account.GDP(o.mu).Delta(eps * shareOfSolving); got > delta*shareOfSolving {
		t.Errorf("what hides the descent has delta %v", got)
	}
}

// TestWeightsOnTheGrid: what is released is a whole number of grids, and weights that are far beyond what a row moves, of which a grid of the sensitivity
// would not fit an int64, are released near themselves.
func TestWeightsOnTheGrid(t *testing.T) {
	s := noise.Seeded(53)
	for range 100 {
		if grids := perturb([]float64{1. / 3}, 1, 2, 1, s)[0] * 0x1p29; grids != math.Trunc(grids) { // the sensitivity is 2^29 grids
			t.Fatalf("%v is no whole number of grids", grids)
		}
	}
	for _, w := range []float64{1e9, -1e9} {
		if got := perturb([]float64{w}, 1e-12, 1e9, 1e3, s)[0]; math.Abs(got-w) > 1e-6 {
			t.Errorf("a weight of %v became %v", w, got)
		}
	}
}

// TestConvexRefusals: settings and data that the proofs do not cover.
func TestConvexRefusals(t *testing.T) {
	d := blobs(49, 20, 3, 2)
	good, s := Logistic{Dim: 3, Radius: 1, Lambda: 5}, noise.Seeded(1)
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"radius", func() error { l := good; l.Radius = 0; _, err := l.OutputPerturbation(d, 1, s); return err }},
		{"lambda", func() error { l := good; l.Lambda = math.NaN(); _, err := l.OutputPerturbation(d, 1, s); return err }},
		{"mu", func() error { _, err := good.OutputPerturbation(d, 0, s); return err }},
		{"rounding", func() error { l := good; l.Lambda = 1e-12; _, err := l.OutputPerturbation(d, 1, s); return err }},
		{"epsilon", func() error { _, err := good.ObjectivePerturbation(d, 20, 0, .1, s); return err }},
		{"delta", func() error { _, err := good.ObjectivePerturbation(d, 20, 1, 0, s); return err }},
		{"delta below the tail", func() error { _, err := good.ObjectivePerturbation(d, 20, 1, 1e-304, s); return err }},
		{"epsilon for so little", func() error { _, err := good.ObjectivePerturbation(d, 20, .01, .1, s); return err }},
		{"small mu", func() error { _, err := good.OutputPerturbation(d, 1e-7, s); return err }},
		{"badly conditioned", func() error {
			l := good
			l.Radius, l.Lambda = 1e5, 2e10
			_, err := l.ObjectivePerturbation(d, 1<<20, 1, .1, s)
			return err
		}},
	} {
		if err := c.call(); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, bad := range []Data{blobs(50, 20, 3, 3), blobs(50, 20, 4, 2), {Dim: 3, Classes: 2}} {
		if _, err := good.OutputPerturbation(bad, 1, s); !errors.Is(err, ErrData) {
			t.Errorf("%d rows of %d features in %d classes: %v", bad.Len(), bad.Dim, bad.Classes, err)
		}
	}
	if _, err := good.ObjectivePerturbation(d, 19, 1, .1, s); !errors.Is(err, ErrData) {
		t.Errorf("more rows than promised: %v", err)
	}
}

// TestAdam: against the algorithm, written out for two steps; it learns privately; and it is an event to accountants, which say what Account does.
func TestAdam(t *testing.T) {
	a := &adam{params: []float64{1}, mean: []float64{0}, square: []float64{0}, rate: .1, decay: .9, unbias1: 1, unbias2: 1}
	a.step([]float64{2})
	if want := 1 - .1*2/(2+1e-8); math.Abs(a.params[0]-want) > 1e-15 {
		t.Errorf("after one step %v, want %v", a.params[0], want)
	}
	a.step([]float64{-1})
	mean, square := (.9*.2-.1)/(1-.81), (.999*.004+.001)/(1-.999*.999)
	if want := 1 - .1*2/(2+1e-8) - .1*mean/(math.Sqrt(square)+1e-8); math.Abs(a.params[0]-want) > 1e-15 {
		t.Errorf("after two steps %v, want %v", a.params[0], want)
	}
	all := blobs(51, 3000, 6, 3)
	train, test := all.Subset(span(0, 2000)), all.Subset(span(2000, 3000))
	o := Private{Steps: 150, Sampling: .1, Clip: 1, Multiplier: 3, Rate: .05, Adam: true}
	n := Softmax(6, 3)
	if err := n.TrainPrivately(context.Background(), train, o, noise.Seeded(52)); err != nil {
		t.Fatal(err)
	}
	if got := n.Accuracy(test); got < .9 {
		t.Errorf("accuracy %v", got)
	}
	for _, o.Sampling = range []float64{.1, 1} {
		event := must1(o.Event())
		first, _ := must1(o.Account()).Epsilon(1e-5)
		if got := must1(account.NewRenyi().With(event)).Epsilon(1e-5); math.Abs(got-first) > 1e-12*first {
			t.Errorf("the event has epsilon %v, the account %v", got, first)
		}
	}
	if _, err := (account.GDP(0)).With(must1(o.Event())); err != nil {
		t.Errorf("gradient descent with noise is Gaussian: %v", err)
	}
}
