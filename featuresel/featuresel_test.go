package featuresel_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/holdoutd/holdoutd/featuresel"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// table is a part in which column j agrees with the label by strength[j]: mean strength[j] times the label, deviation 1.
func table(seed uint64, rows int, strength []float64) featuresel.Table {
	r := rand.New(rand.NewPCG(seed, 1))
	t := featuresel.Table{Y: make([]float64, rows)}
	for i := range t.Y {
		t.Y[i] = float64(2*r.IntN(2) - 1)
	}
	for _, s := range strength {
		column := make([]float64, rows)
		for i, y := range t.Y {
			column[i] = r.NormFloat64() + s*y
		}
		t.X = append(t.X, column)
	}
	return t
}

func TestFilter(t *testing.T) {
	training := []float64{0.5, -0.3, 0.05, 0.4, -0.9, 0.3, 0.4, 0}
	holdout := []float64{0.2, -0.4, 0.9, -0.4, -0.11, 0.1, 0.3, 0}
	got := featuresel.Filter([]int{99}, training, holdout, 0.1)
	// Column 2 is weak in training, 3 disagrees, 5 is at the cutoff, 6 follows 0.
	if want := []int{99, 4, 0, 6, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("filtered %v, want %v", got, want)
	}
	if c := featuresel.Signed(got[1:], training); !reflect.DeepEqual(c.Signs, []float64{-1, 1, 1, -1}) {
		t.Errorf("signs %v", c.Signs)
	}
}

func TestAccuracy(t *testing.T) {
	d := featuresel.Table{X: [][]float64{{3, -1, 2, -2}, {-1, -1, -5, 1}}, Y: []float64{1, -1, 1, 1}}
	c := featuresel.Classifier{Columns: []int{0, 1}, Signs: []float64{1, 1}}
	if got := featuresel.Accuracy(d, c); got != 0.5 { // sums 2, -2, -3, -1
		t.Errorf("accuracy %v, want 0.5", got)
	}
	if got := featuresel.Path(d, c, []int{0, 1, 2, 9}); !reflect.DeepEqual(got, []float64{0, 0.75, 0.5, 0.5}) {
		t.Errorf("path %v", got)
	}
	if got := featuresel.Correlations(d); !reflect.DeepEqual(got, []float64{1, -1}) {
		t.Errorf("correlations %v", got)
	}
}

// TestPublished: the analyst finds the columns that matter, and is told the holdout's own accuracies by the standard reuse.
func TestPublished(t *testing.T) {
	strength := []float64{0, 0.5, 0, -0.5, 0.5, 0}
	training, holdout := table(1, 2000, strength), table(2, 2000, strength)
	c, told, err := featuresel.Published(context.Background(), featuresel.Exact{Data: holdout}, featuresel.Correlations(training), 0.2, []int{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Columns) != 3 || !reflect.DeepEqual(told, featuresel.Path(holdout, c, []int{1, 3})) {
		t.Errorf("%+v, told %v", c, told)
	}
	if want := math.Erfc(-0.5*math.Sqrt(3)/math.Sqrt2) / 2; math.Abs(told[1]-want) > 0.05 { // 4.5 standard errors
		t.Errorf("accuracy %v, theory says %v", told[1], want)
	}
	_, _, err = featuresel.Published(context.Background(), featuresel.Exact{Data: holdout}, make([]float64, 5), 0.2, nil)
	if err == nil {
		t.Error("a training part of other columns passed")
	}
}

// TestHoldout: what the mechanism tells is the training part's where the parts agree and near the holdout's where not, in
// the units of correlations and accuracies, and is debited.
func TestHoldout(t *testing.T) {
	const n = 4000
	training, holdout := table(1, n, []float64{0, 0.3, -0.3}), table(2, n, []float64{0, 0.3, 0.3})
	p, err := featuresel.Science2015(n, n, 5)
	if err != nil {
		t.Fatal(err)
	}
	o := &featuresel.Holdout{Simulated: session.Simulated{Guarantee: p, Seed: 3}, Training: training, Holdout: holdout}
	told, err := o.Correlations(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	a, b := featuresel.Correlations(training), featuresel.Correlations(holdout)
	noise := 6 / math.Sqrt(n)
	for j, want := range []float64{a[0], a[1], b[2]} {
		tolerance := 1e-3 // clamping
		if j == 2 {
			tolerance = noise
		}
		if math.Abs(told[j]-want) > tolerance {
			t.Errorf("column %d: told %v, want %v", j, told[j], want)
		}
	}
	if told[2] == b[2] {
		t.Error("the holdout's correlation was told without noise")
	}
	good, bad := featuresel.Classifier{Columns: []int{1}, Signs: []float64{1}}, featuresel.Classifier{Columns: []int{2}, Signs: []float64{-1}}
	first, err := o.Accuracy(context.Background(), good)
	if err != nil || math.Abs(first-featuresel.Accuracy(training, good)) > 1e-6 {
		t.Errorf("told %v, in training %v, error %v", first, featuresel.Accuracy(training, good), err)
	}
	second, err := o.Accuracy(context.Background(), bad)
	if err != nil || math.Abs(second-featuresel.Accuracy(holdout, bad)) > 0.06 {
		t.Errorf("told %v, in the holdout %v, error %v", second, featuresel.Accuracy(holdout, bad), err)
	}
	if o.State.Questions != 5 || o.State.Tokens != 2 {
		t.Errorf("debited %+v, want 5 questions and 2 tokens", o.State)
	}
	if _, err := o.Accuracy(context.Background(), good); !errors.Is(err, thresholdout.ErrNoQuestions) {
		t.Errorf("a sixth question: %v", err)
	}
}

// counting counts questions.
type counting struct {
	featuresel.Oracle
	asked int
}

func (o *counting) Accuracy(ctx context.Context, c featuresel.Classifier) (float64, error) {
	o.asked++
	return o.Oracle.Accuracy(ctx, c)
}

// TestForward: forward selection keeps what helps, in one question for each column, and its accuracy is what was told last.
func TestForward(t *testing.T) {
	strength := []float64{0.8, 0, 0.8, 0, -0.8}
	training, holdout := table(5, 3000, strength), table(6, 3000, strength)
	o := &counting{Oracle: featuresel.Exact{Data: holdout}}
	kept, told, err := featuresel.Forward(context.Background(), o, featuresel.Correlations(training), 4)
	if err != nil || o.asked != 4 {
		t.Fatalf("%d questions, error %v", o.asked, err)
	}
	if got := featuresel.Accuracy(holdout, kept); got != told || got < 0.85 {
		t.Errorf("kept %+v of accuracy %v, told %v", kept, got, told)
	}
	signs := map[int]float64{}
	for i, j := range kept.Columns {
		signs[j] = kept.Signs[i]
	}
	if signs[0] != 1 || signs[2] != 1 || signs[4] != -1 {
		t.Errorf("kept %+v", kept)
	}
	if none, told, err := featuresel.Forward(context.Background(), o, nil, 4); err != nil || len(none.Columns) != 0 || !math.IsNaN(told) {
		t.Errorf("of no columns: %+v, %v, %v", none, told, err)
	}
}

// scripted tells accuracies by the set of columns.
type scripted map[[3]bool]float64

func (s scripted) Correlations(context.Context) ([]float64, error) { return nil, nil }

func (s scripted) Accuracy(_ context.Context, c featuresel.Classifier) (float64, error) {
	var has [3]bool
	for _, j := range c.Columns {
		has[j] = true
	}
	return s[has], nil
}

// TestStepwise: the search adds what helps most, takes back what has become useless, and ends where nothing is better.
func TestStepwise(t *testing.T) {
	o := scripted{
		{true, false, false}: 0.7, {false, true, false}: 0.6, {false, false, true}: 0.6,
		{true, true, false}: 0.75, {true, false, true}: 0.72, {false, true, true}: 0.9,
		{true, true, true}: 0.8,
	}
	training := []float64{1, -1, 1}
	kept, told, err := featuresel.Stepwise(context.Background(), o, training, []int{0, 1, 2}, 10)
	if err != nil || told != 0.9 || !reflect.DeepEqual(kept.Columns, []int{1, 2}) || !reflect.DeepEqual(kept.Signs, []float64{-1, 1}) {
		t.Errorf("kept %+v, told %v, %v", kept, told, err)
	}
	kept, told, err = featuresel.Stepwise(context.Background(), o, training, []int{0, 1, 2}, 2)
	if err != nil || told != 0.75 || len(kept.Columns) != 2 {
		t.Errorf("after two steps: kept %+v, told %v, %v", kept, told, err)
	}
}

// TestErrorsReachTheAnalyst: an oracle that fails ends every analyst with its error.
func TestErrorsReachTheAnalyst(t *testing.T) {
	d := table(1, 50, []float64{0, 0})
	p, err := featuresel.Science2015(50, 50, 1)
	if err != nil {
		t.Fatal(err)
	}
	spent := func() *featuresel.Holdout {
		return &featuresel.Holdout{Simulated: session.Simulated{Guarantee: p, State: thresholdout.State{Questions: 1}}, Training: d, Holdout: d}
	}
	training := []float64{1, 1}
	for name, play := range map[string]func() error{
		"published": func() error {
			_, _, err := featuresel.Published(context.Background(), spent(), training, 0, []int{1})
			return err
		},
		"forward": func() error { _, _, err := featuresel.Forward(context.Background(), spent(), training, 2); return err },
		"stepwise": func() error {
			_, _, err := featuresel.Stepwise(context.Background(), spent(), training, []int{0}, 2)
			return err
		},
	} {
		if err := play(); !errors.Is(err, thresholdout.ErrNoQuestions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// promised is what a guarantee says of its answers.
func promised(p thresholdout.Guarantee) thresholdout.Promise {
	promise, _ := p.Promised(0)
	return promise
}

// TestRanges: threshold and noise come to the published numbers.
func TestRanges(t *testing.T) {
	p, err := featuresel.Science2015(10000, 10000, 100)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	c, a := featuresel.CorrelationRange, featuresel.AccuracyRange(10000)
	near("threshold of a correlation", promised(p).Parts["threshold"]*(c[1]-c[0]), 0.04)
	near("noise of a correlation", promised(p).Sigma*(c[1]-c[0]), 0.01)
	near("threshold of an accuracy", promised(p).Parts["threshold"]*(a[1]-a[0]), 0.04)
	if p, err = featuresel.Science2015(2500, 2500, 100); err != nil {
		t.Fatal(err)
	}
	a = featuresel.AccuracyRange(2500)
	near("threshold of a correlation", promised(p).Parts["threshold"]*(c[1]-c[0]), 0.08)
	near("threshold of an accuracy", promised(p).Parts["threshold"]*(a[1]-a[0]), 0.04)
	near("the middle", a[0]+a[1], 1)
	if a = featuresel.AccuracyRange(100); a != [2]float64{0, 1} {
		t.Errorf("the range of a small holdout is %v", a)
	}
}
