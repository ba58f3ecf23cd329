package session

import (
	"context"
	"fmt"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Source sums row functions over the units of one part of a table. queries/engine has one.
type Source interface {
	// Sums returns the exact sum of each row function over the units from up to to, in steps of 1/queries.One.
	Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error)
	Units() int64
}

// Sums are the exact means of a question's row functions over the parts that its mechanism reads, in the order of its plan. They are
// good for the state that they were made for; a mechanism that gives every question its own rows accepts no other.
type Sums struct {
	Holdout, Training []thresholdout.Mean
	at                thresholdout.State
}

// Scan reads the rows for questions that will be asked in this order from this state on: one pass over each part for all of
// them, or over the slices that will be theirs. training may be nil where the mechanism does not compare with it.
//
// From the first row that it reads every question must be paid for: with Ask, or with Void if anything fails.
func (s *Session) Scan(ctx context.Context, state thresholdout.State, questions []*Question, holdout, training Source) ([]Sums, error) {
	if s.Guarantee.Sliced() {
		return s.scanSlices(ctx, state, questions, holdout)
	}
	var functions []queries.RowFunction
	for _, q := range questions {
		functions = append(functions, q.Plan.Functions...)
	}
	onHoldout, err := means(ctx, holdout, functions)
	if err != nil {
		return nil, err
	}
	var onTraining []thresholdout.Mean
	if s.Guarantee.UsesTraining() {
		if onTraining, err = means(ctx, training, functions); err != nil {
			return nil, err
		}
	}
	sums, first := make([]Sums, len(questions)), 0
	for i, q := range questions {
		last := first + len(q.Plan.Functions)
		sums[i] = Sums{Holdout: onHoldout[first:last], at: state}
		if onTraining != nil {
			sums[i].Training = onTraining[first:last]
		}
		first = last
	}
	return sums, nil
}

func means(ctx context.Context, part Source, functions []queries.RowFunction) ([]thresholdout.Mean, error) {
	n := part.Units()
	sums, err := part.Sums(ctx, functions, 0, n)
	if err != nil {
		return nil, err
	}
	return meansOf(sums, n), nil
}

func meansOf(sums []int64, n int64) []thresholdout.Mean {
	out := make([]thresholdout.Mean, len(sums))
	for i, sum := range sums {
		out[i] = thresholdout.Mean{Sum: sum, N: n}
	}
	return out
}

// scanSlices sums each row function over the slice that its question will have.
func (s *Session) scanSlices(ctx context.Context, state thresholdout.State, questions []*Question, holdout Source) ([]Sums, error) {
	sums := make([]Sums, len(questions))
	for i, q := range questions {
		sums[i] = Sums{Holdout: make([]thresholdout.Mean, 0, len(q.Plan.Functions)), at: state}
		// Row functions of one step, as a search has them, share a slice.
		for from, to := 0, 0; from < len(q.Plan.Functions); from = to {
			step := q.Plan.Step(from)
			for to = from + 1; to < len(q.Plan.Functions) && q.Plan.Step(to) == step; to++ {
			}
			low, high := s.Guarantee.Slice(s.Guarantee.Spend(state, int64(step), 0))
			part, err := holdout.Sums(ctx, q.Plan.Functions[from:to], low, high)
			if err != nil {
				return nil, err
			}
			sums[i].Holdout = append(sums[i].Holdout, meansOf(part, high-low)...)
		}
		state = s.Guarantee.Spend(state, int64(q.Plan.Numbers()), 0)
	}
	return sums, nil
}

// TrainingMeans are the means of a plan's row functions over the training part; nil where it has no say in them.
func TrainingMeans(ctx context.Context, plan *queries.Plan, training Source) ([]thresholdout.Mean, error) {
	if training == nil || plan.HoldoutOnly {
		return nil, nil
	}
	return means(ctx, training, plan.Functions)
}

// check refuses sums that were made for another state or another question.
func (s *Session) check(state thresholdout.State, q *Question, sums Sums) error {
	if len(sums.Holdout) != len(q.Plan.Functions) || s.Guarantee.UsesTraining() && len(sums.Training) != len(q.Plan.Functions) {
		return fmt.Errorf("session: sums of %d row functions for a question of %d", len(sums.Holdout), len(q.Plan.Functions))
	}
	if s.Guarantee.Sliced() && sums.at.Questions != state.Questions {
		return fmt.Errorf("session: the slices of question %d for question %d", sums.at.Questions, state.Questions)
	}
	return nil
}
