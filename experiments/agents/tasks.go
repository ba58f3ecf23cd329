package agents

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// task is a data set with the models that an agent can make of it.
type task struct {
	name    string
	classes int
	label   []uint8
	part    int // rows to fit on, to validate on, and of the holdout, each
	fresh   int // rows held back
	arms    []string

	// member fits a model of the arm's kind on some rows, the rest of its configuration at random. The model adds its score of a row's classes to dst.
	member func(fit []int32, arm int, r *rand.Rand) (func(dst []float64, row int32), error)
}

// tasks are the three data sets.
var tasks = sync.OnceValues(func() ([]*task, error) {
	cancer, err := breastCancer()
	if err != nil {
		return nil, err
	}
	handwritten, err := tables.Digits()
	if err != nil {
		return nil, err
	}
	labels := make([]uint8, handwritten.Len())
	for i, y := range handwritten.Y {
		labels[i] = uint8(y)
	}
	written := linearProblem("digits", handwritten.X, labels, tables.DigitPixels, tables.DigitClasses)
	flown, err := flightsProblem()
	if err != nil {
		return nil, err
	}
	return []*task{flown, cancer, written}, nil
})

func breastCancer() (*task, error) {
	columns, rows, err := tables.Columns("breast-cancer", data.BreastCancer)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range columns {
		if name != "malignant" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	labels, x := make([]uint8, rows), make([]float64, rows*len(names))
	for i, v := range columns["malignant"].Numbers {
		labels[i] = uint8(v)
	}
	for j, name := range names {
		for i, v := range standardised(columns[name].Numbers) {
			x[i*len(names)+j] = v
		}
	}
	return linearProblem("breast cancer", x, labels, len(names), 2), nil
}

// standardised are values less their mean, over their standard deviation.
func standardised(values []float64) []float64 {
	mean, sd := run.MeanSD(values)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = (v - mean) / sd
	}
	return out
}

// linearArms are kinds of linear models: features that are drawn for one, and its ridge penalty for each row.
var linearArms = []struct {
	features int
	penalty  float64
}{{2, 0.01}, {2, 1}, {5, 0.01}, {5, 1}, {12, 0.01}, {12, 1}}

// linearProblem is classified by linear regressions on one indicator for each class, with features of its own drawn for each model, on
// rows drawn with replacement. x has dim numbers a row.
func linearProblem(name string, x []float64, label []uint8, dim, classes int) *task {
	p := &task{name: name, classes: classes, label: label, part: len(label) / 4}
	p.fresh = len(label) - 3*p.part
	for _, a := range linearArms {
		p.arms = append(p.arms, fmt.Sprintf("%d features, penalty %v", a.features, a.penalty))
	}
	p.member = func(fit []int32, arm int, r *rand.Rand) (func(dst []float64, row int32), error) {
		a := linearArms[arm]
		features := r.Perm(dim)[:a.features]
		width := len(features) + 1
		gram, right := mat.NewSymDense(width, nil), mat.NewDense(width, classes, nil)
		v := make([]float64, width)
		read := func(row int32) {
			v[0] = 1
			for j, f := range features {
				v[j+1] = x[int(row)*dim+f]
			}
		}
		for range fit {
			row := fit[r.IntN(len(fit))]
			read(row)
			gram.SymRankOne(gram, 1, mat.NewVecDense(width, v))
			for j := range v {
				right.Set(j, int(label[row]), right.At(j, int(label[row]))+v[j])
			}
		}
		for j := range width {
			gram.SetSym(j, j, gram.At(j, j)+a.penalty*float64(len(fit)))
		}
		var cholesky mat.Cholesky
		if !cholesky.Factorize(gram) {
			return nil, fmt.Errorf("experiments: %s: no model of %d features", name, a.features)
		}
		var weights mat.Dense
		if err := cholesky.SolveTo(&weights, right); err != nil {
			return nil, fmt.Errorf("experiments: %s: %w", name, err)
		}
		flat := weights.RawMatrix().Data
		return func(dst []float64, row int32) {
			read(row)
			for j, vj := range v {
				for c := range dst {
					dst[c] += vj * flat[j*classes+c]
				}
			}
		}, nil
	}
	return p
}

// crossArms are kinds of models of flights: attributes that are crossed, and how many rows of the mean a cell starts with.
var crossArms = []struct {
	attributes int
	prior      float64
}{{1, 1}, {1, 30}, {2, 1}, {2, 30}, {3, 1}, {3, 30}}

const (
	flightRows      = 5000  // fitted on, and so on
	freshFlightRows = 40000 // held back
)

// flightsProblem: is a flight late at all? A model is a table of how often flights were that agree in some attributes, on rows drawn with
// replacement.
func flightsProblem() (*task, error) {
	f, err := tables.Flights()
	if err != nil {
		return nil, err
	}
	table, err := tables.FlightGroups()
	if err != nil {
		return nil, err
	}
	p := &task{name: "flights", classes: 2, label: make([]uint8, f.Rows()), part: flightRows, fresh: freshFlightRows}
	for i, d := range f.Delay {
		if d > 0 {
			p.label[i] = 1
		}
	}
	for _, a := range crossArms {
		p.arms = append(p.arms, fmt.Sprintf("%d attributes crossed, prior of %v flights", a.attributes, a.prior))
	}
	p.member = func(fit []int32, arm int, r *rand.Rand) (func(dst []float64, row int32), error) {
		a := crossArms[arm]
		attributes := r.Perm(len(table.Codes))[:a.attributes]
		cell := func(row int32) int {
			at := 0
			for _, attribute := range attributes {
				code := table.Codes[attribute][row]
				if code == tables.Ungrouped {
					code = uint8(table.Sizes[attribute])
				}
				at = at*(table.Sizes[attribute]+1) + int(code)
			}
			return at
		}
		cells := 1
		for _, attribute := range attributes {
			cells *= table.Sizes[attribute] + 1
		}
		count, lateCount, total := make([]float64, cells), make([]float64, cells), 0.0
		for range fit {
			row := fit[r.IntN(len(fit))]
			at := cell(row)
			count[at]++
			lateCount[at] += float64(p.label[row])
			total += float64(p.label[row])
		}
		mean := total / float64(len(fit))
		value := make([]float64, cells)
		for i := range value {
			odds := (lateCount[i] + a.prior*mean) / (count[i] - lateCount[i] + a.prior*(1-mean))
			value[i] = math.Log(odds)
		}
		return func(dst []float64, row int32) { dst[1] += value[cell(row)] }, nil
	}
	return p, nil
}
