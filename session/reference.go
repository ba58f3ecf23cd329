package session

import (
	"context"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Reference are the parts of a table whose rows are facts to every mechanism, beside the holdout: what answers are compared with, and what checks and previews
// are planned by. What is said of them costs nothing, and no interval depends on who knows them.
type Reference struct {
	Training Source // what analysts are given to fit models to; nil without one
	// Check is of rows that nobody is given: a model was not fitted to them, so its mean over them is one over fresh rows, as long as few models are chosen by it. nil
	// without one.
	Check Source
}

// ValueFrom says which rows a value is of.
type ValueFrom string

const (
	ValueFromTraining ValueFrom = "training"
	ValueFromCheck    ValueFrom = "check"
	ValueFromBoth     ValueFrom = "training+check"
	ValueFromGuess    ValueFrom = "guess"   // the asker's own number
	ValueFromHoldout  ValueFrom = "holdout" // what the mechanism released of it
	ValueFromMixed    ValueFrom = "mixed"   // different for its row functions
)

// For is what a plan is compared with: for questions about a model, whose training score says too much good, the check part; for all others, both parts together,
// which say more. It is nil where no part has a say.
func (r Reference) For(plan *queries.Plan) (Source, ValueFrom) {
	switch {
	case plan.HoldoutOnly:
		return nil, ""
	case r.Check == nil && r.Training == nil:
		return nil, ""
	case r.Check == nil:
		return r.Training, ValueFromTraining
	case r.Training == nil, plan.Fitted:
		return r.Check, ValueFromCheck
	}
	return joined{r.Training, r.Check}, ValueFromBoth
}

// joined is one source of the units of two: those of the first, then those of the second.
type joined struct{ first, second Source }

// Units implements [Source].
func (j joined) Units() int64 { return j.first.Units() + j.second.Units() }

// Sums implements [Source].
func (j joined) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	sums, err := j.each(from, to, func(part Source, from, to int64) (s rowfn.Sums, err error) {
		s.Values, err = part.Sums(ctx, functions, from, to)
		return s, err
	})
	return sums.Values, err
}

// Moments implements [Source].
func (j joined) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	return j.each(from, to, func(part Source, from, to int64) (rowfn.Sums, error) { return part.Moments(ctx, batch, from, to) })
}

// each adds what both parts say of their units between from and to.
func (j joined) each(from, to int64, say func(part Source, from, to int64) (rowfn.Sums, error)) (rowfn.Sums, error) {
	n := j.first.Units()
	first, err := say(j.first, min(from, n), min(to, n))
	if err != nil {
		return first, err
	}
	second, err := say(j.second, max(from-n, 0), max(to-n, 0))
	if err != nil {
		return first, err
	}
	for i, v := range second.Values {
		first.Values[i] += v
	}
	for i, v := range second.Products {
		first.Products[i] = first.Products[i].Plus(v)
	}
	return first, nil
}

// TrainingScore is the code of the warning about a model's value that is from rows it may have been fitted to.
const TrainingScore = "training-score"

// trainingScore is said of a model's value that is from the training part.
var trainingScore = Warning{Code: TrainingScore, Detail: "the value is of the training part, which everyone with a key can download: a model that was fitted to these rows looks better here than it is. " +
	"The interval holds all the same. Bring your own number from rows that the model has not seen as \"guess\", or have the holdout created with a check part (check=0.2), which the server keeps for this"}

// Doubted is the warning about what the parts say to a plan; none where there is nothing to warn of.
func (p PartSums) Doubted(plan *queries.Plan) []Warning {
	if plan.Fitted && p.From == ValueFromTraining {
		return []Warning{trainingScore}
	}
	return nil
}

// compared is the guarantee for what is compared with these sums: they can be of more units than it was planned for.
func (p PartSums) compared(g thresholdout.Guarantee) thresholdout.Guarantee {
	if p.units > 0 {
		return g.Compared(p.units)
	}
	return g
}

// valueFrom says which rows a value is of that a mechanism took from there.
func (p PartSums) valueFrom(source thresholdout.Source) ValueFrom {
	switch source {
	case thresholdout.FromGuess:
		return ValueFromGuess
	case thresholdout.FromNothing:
		return ""
	case thresholdout.FromTraining:
		return p.From
	}
	return ValueFromHoldout
}
