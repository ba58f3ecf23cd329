package session

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Source sums row functions over the units of one part of a table. queries/engine has one.
type Source interface {
	// Sums returns the exact sum of each row function over the units from up to to, in steps of 1/queries.One.
	Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error)
	// Moments returns these sums and those of products of two functions, in the same pass. Only a mechanism that releases the roots of
	// equations asks for products.
	Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error)
	Units() int64
}

// Sums are what a question's mechanism reads of the parts. They are good for the state that they were made for; a mechanism that gives
// every question its own rows accepts no other.
type Sums struct {
	Holdout, Training PartSums
	pledge            *thresholdout.Pledge // that the question bears; nil for none
	warned            warned               // of the answer: from public facts and the training part alone
	at                thresholdout.State
}

// PartSums are the exact sums of a question over one part: the means of its plan's row functions, in their order, or, of a plan that is
// released by statistics, what decides about each of these. The zero PartSums are none.
type PartSums struct {
	Means      []thresholdout.Mean
	Statistics []thresholdout.Statistic
	Beside     *Beside   // of a plan that bears a promise
	From       ValueFrom // of what the holdout is compared with: which part it is

	units int64 // of the part, of what the holdout is compared with
}

// None reports that the part was not read.
func (p PartSums) None() bool { return p.Means == nil && p.Statistics == nil }

// value is that of a row function's mean, or of a statistic; false where there is none, as where no unit satisfies a condition, and where the part was not read.
func (p PartSums) value(function int) (float64, bool) {
	switch {
	case p.Statistics != nil:
		return p.Statistics[function].Value()
	case p.Means != nil:
		return p.Means[function].Value()
	}
	return 0, false
}

// fits reports whether the sums are those of a plan.
func (p PartSums) fits(plan *queries.Plan) bool {
	if plan.Checked() {
		return len(p.Statistics) == len(plan.Statistics())
	}
	return len(p.Means) == len(plan.Functions)
}

// Scan reads the rows for questions that will be asked in this order from this state on: one pass over each part for all of
// them, or over the slices that will be theirs.
//
// From the first row that it reads every question must be paid for: with Ask, or with Void if anything fails.
func (s *Session) Scan(ctx context.Context, state thresholdout.State, questions []*Question, holdout Source, reference Reference) ([]Sums, error) {
	warned, err := s.warned(ctx, questions, reference.Training)
	if err != nil {
		return nil, err
	}
	sums, err := s.scan(ctx, state, questions, holdout, reference)
	if err != nil {
		return nil, err
	}
	for i := range sums {
		sums[i].warned = warned[i]
	}
	return sums, nil
}

// scan is Scan but for what answers warn of.
func (s *Session) scan(ctx context.Context, state thresholdout.State, questions []*Question, holdout Source, reference Reference) ([]Sums, error) {
	if s.Guarantee.Sliced() {
		return s.scanSlices(ctx, state, questions, holdout, reference)
	}
	plans := make([]*queries.Plan, len(questions))
	for i, q := range questions {
		plans[i] = s.Played(state, q.Plan)
	}
	role := holdoutPart
	if s.Guarantee.Last(state) {
		role = lastPart
	}
	if from, to := s.Guarantee.Slice(state); from > 0 || to < holdout.Units() { // some units are sealed
		holdout = sliceOf{holdout, from, to}
	}
	onHoldout, err := read(ctx, holdout, plans, role)
	if err != nil {
		return nil, err
	}
	onTraining := make([]PartSums, len(plans))
	switch {
	case s.Guarantee.UsesTraining():
		if onTraining, err = reference.read(ctx, plans); err != nil {
			return nil, err
		}
	case s.Guarantee.Last(state):
		if err = plannedBy(ctx, reference, plans, onTraining); err != nil {
			return nil, err
		}
	}
	suggested, err := s.suggested(ctx, questions, reference)
	if err != nil {
		return nil, err
	}
	sums := make([]Sums, len(questions))
	for i, q := range questions {
		sums[i] = Sums{Holdout: onHoldout[i], Training: onTraining[i], pledge: s.Pledge(state, q, suggested[q]), at: state}
	}
	return sums, nil
}

// plannedBy reads of the training or check part what answers that are read by their own sample are planned by: of the plans that are released by statistics and have such a part.
func plannedBy(ctx context.Context, reference Reference, plans []*queries.Plan, into []PartSums) error {
	var some []*queries.Plan
	var places []int
	for i, plan := range plans {
		if plan.Checked() {
			some, places = append(some, plan), append(places, i)
		}
	}
	if len(some) == 0 {
		return nil
	}
	parts, err := reference.read(ctx, some)
	if err != nil {
		return err
	}
	for i, at := range places {
		into[at] = parts[i]
	}
	return nil
}

// suggested reads the training part for the questions to which it suggests a promise.
func (s *Session) suggested(ctx context.Context, questions []*Question, reference Reference) (map[*Question]PartSums, error) {
	var asked []*Question
	var plans []*queries.Plan
	for _, q := range questions {
		if q.suggested {
			asked, plans = append(asked, q), append(plans, q.Plan)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	parts, err := reference.read(ctx, plans)
	if err != nil {
		return nil, err
	}
	all := map[*Question]PartSums{}
	for i, q := range asked {
		all[q] = parts[i]
	}
	return all, nil
}

// role is what a part is summed for.
type role uint8

const (
	holdoutPart  role = iota // to be compared with what is planned
	lastPart                 // the holdout, where nothing is chosen after: to be read by itself
	trainingPart             // to plan by
)

// sampled says that all is summed that a sample has to say of its question.
func (r role) sampled() bool { return r != holdoutPart }

// read sums what plans need of one part in one pass.
func read(ctx context.Context, part Source, plans []*queries.Plan, role role) ([]PartSums, error) {
	sampled := role.sampled()
	var all rowfn.Batch
	for _, plan := range plans {
		all.Join(plan.Pass(sampled))
	}
	n := part.Units()
	var sums rowfn.Sums
	var err error
	if len(all.Products) > 0 {
		sums, err = part.Moments(ctx, all, 0, n)
	} else {
		sums.Values, err = part.Sums(ctx, all.Functions, 0, n)
	}
	if err != nil {
		return nil, err
	}
	var half rowfn.Sums
	if h := Halves(plans); role != trainingPart && len(h.Functions) > 0 {
		if len(h.Products) > 0 {
			half, err = part.Moments(ctx, h, 0, n/2)
		} else {
			half.Values, err = part.Sums(ctx, h.Functions, 0, n/2)
		}
		if err != nil {
			return nil, err
		}
	}
	parts := make([]PartSums, len(plans))
	for i, plan := range plans {
		own := sums.Cut(plan.Pass(sampled))
		if !plan.Checked() {
			parts[i] = PartSums{Means: meansOf(own.Values[:len(plan.Functions)], n)}
			if plan.Beside() != (shape.Beside{}) {
				beside := besideOf(plan, plan.BesideOf(own, sampled))
				parts[i].Beside = &beside
			}
			continue
		}
		for _, declared := range plan.Statistics() {
			statistic, err := statisticOf(declared, &own, &half, n, role)
			if err != nil {
				return nil, err
			}
			parts[i].Statistics = append(parts[i].Statistics, statistic)
		}
	}
	return parts, nil
}

func meansOf(sums []int64, n int64) []thresholdout.Mean {
	out := make([]thresholdout.Mean, len(sums))
	for i, sum := range sums {
		out[i] = thresholdout.Mean{Sum: sum, N: n}
	}
	return out
}

// scanSlices sums what each question needs over the slice that it will have, and over the training part what statistics are planned by.
func (s *Session) scanSlices(ctx context.Context, state thresholdout.State, questions []*Question, holdout Source, reference Reference) ([]Sums, error) {
	plans, planned := make([]*queries.Plan, len(questions)), make([]PartSums, len(questions))
	for i, q := range questions {
		plans[i] = q.Plan
	}
	if s.ReadsTraining() {
		if err := plannedBy(ctx, reference, plans, planned); err != nil {
			return nil, err
		}
	}
	sums := make([]Sums, len(questions))
	for i, plan := range plans {
		sums[i] = Sums{Training: planned[i], at: state}
		// What belongs to one step, as in a search, shares a slice.
		for from, to := 0, 0; from < plan.Pieces(); from = to {
			step := plan.Step(from)
			for to = from + 1; to < plan.Pieces() && plan.Step(to) == step; to++ {
			}
			low, high := s.Guarantee.Slice(s.Guarantee.Spend(state, int64(step), 0))
			parts, err := read(ctx, sliceOf{holdout, low, high}, []*queries.Plan{plan.Some(from, to)}, lastPart)
			if err != nil {
				return nil, err
			}
			sums[i].Holdout.Means = append(sums[i].Holdout.Means, parts[0].Means...)
			sums[i].Holdout.Statistics = append(sums[i].Holdout.Statistics, parts[0].Statistics...)
		}
		state = s.Guarantee.Spend(state, int64(plan.Numbers()), 0)
	}
	return sums, nil
}

// sliceOf is a [Source] of some units of another, those from first up to after.
type sliceOf struct {
	Source
	first, after int64
}

// Units implements [Source].
func (s sliceOf) Units() int64 { return s.after - s.first }

// Sums implements [Source].
func (s sliceOf) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	return s.Source.Sums(ctx, functions, s.first+from, s.first+to)
}

// Moments implements [Source].
func (s sliceOf) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	return s.Source.Moments(ctx, batch, s.first+from, s.first+to)
}

// TrainingSums are what the parts beside the holdout have to say to the plan of a [Question]; none where they have no say in it.
func TrainingSums(ctx context.Context, plan *queries.Plan, reference Reference) (PartSums, error) {
	parts, err := AllTrainingSums(ctx, []*queries.Plan{plan}, reference)
	if err != nil {
		return PartSums{}, err
	}
	return parts[0], nil
}

// AllTrainingSums are TrainingSums of several plans, in one pass over each part.
func AllTrainingSums(ctx context.Context, plans []*queries.Plan, reference Reference) ([]PartSums, error) {
	return reference.read(ctx, plans)
}

// read sums what each plan is compared with: plans that are compared with the same in one pass. Where no part has a say the sums are none.
func (r Reference) read(ctx context.Context, plans []*queries.Plan) ([]PartSums, error) {
	parts := make([]PartSums, len(plans))
	byPart := map[ValueFrom][]int{}
	for i, plan := range plans {
		if part, from := r.For(plan); part != nil {
			byPart[from] = append(byPart[from], i)
		}
	}
	for from, places := range byPart {
		some := make([]*queries.Plan, len(places))
		for i, at := range places {
			some[i] = plans[at]
		}
		part, _ := r.For(some[0])
		said, err := read(ctx, part, some, trainingPart)
		if err != nil {
			return nil, err
		}
		for i, at := range places {
			parts[at] = said[i]
			parts[at].From, parts[at].units = from, part.Units()
		}
	}
	return parts, nil
}

// check refuses sums that were made for another state or another question.
func (s *Session) check(state thresholdout.State, q *Question, sums Sums) error {
	plan := s.Played(state, q.Plan)
	if !sums.Holdout.fits(plan) || (s.Guarantee.UsesTraining() || !sums.Training.None()) && !sums.Training.fits(plan) {
		return fmt.Errorf("session: sums of %d row functions for a question of %d", len(sums.Holdout.Means), len(q.Plan.Functions))
	}
	if s.Guarantee.Sliced() && sums.at.Questions != state.Questions {
		return fmt.Errorf("session: the slices of question %d for question %d", sums.at.Questions, state.Questions)
	}
	return nil
}
