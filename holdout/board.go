package holdout

import (
	"context"
	"fmt"
	"math/big"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Under the mechanism ladder a question is a submission: the zero_one loss of a model. What is compared are the losses row by row of
// the submission and of the best one so far, so that the rows are summed for both; which one that is, is known within the
// ledger's update only, and if it has changed the sums are made again.

// board is the submission that a request's sums were made with.
type board struct {
	best     string // its canonical query; "" for an empty board
	function queries.RowFunction
	wanted   string // the one that the state has, where it is another
}

// maxSubmission bounds a submission's canonical form in bytes. The best one is kept in the state, in JSON that can make six bytes of one;
// a state that is too large would be refused for the best submission only, and so tell which it is at no price.
const maxSubmission = ledger.MaxStateBytes / 8

// checkSubmission refuses under ladder what is no submission.
func (h *opened) checkSubmission(q *queries.Query, plan *queries.Plan) error {
	switch {
	case h.params.Mechanism != thresholdout.Leaderboard:
		return nil
	case !plan.ZeroOne:
		return invalid("/type", `a ladder takes submissions: {"type":"loss","loss":"zero_one",…} over all rows, without range and where`)
	case len(q.Canonical()) > maxSubmission:
		return fail(TooLarge, "the submission has %d bytes in canonical form; a ladder takes at most %d", len(q.Canonical()), maxSubmission)
	case plan.HoldoutOnly():
		return invalid("/predictions", "a ladder has to know the best submission again, and keeps no predictions row by row; send the model")
	}
	return nil
}

// oneSubmission refuses several submissions at once: each is compared with the best of those before it.
func (a *asking) oneSubmission() error {
	if a.holdout.params.Mechanism == thresholdout.Leaderboard && len(a.fresh) > 1 {
		return invalid("/queries", "a ladder takes one new submission at a time")
	}
	return nil
}

// together is the row function of rows in which both a submission and the best one are wrong.
func (b board) together(submission queries.RowFunction) queries.RowFunction {
	both := &expr.Node{Op: expr.OpMul, Type: expr.Number, Args: []*expr.Node{submission.Value, b.function.Value}}
	return queries.RowFunction{Value: both, Lo: 0, Hi: 1}
}

// follow compiles the submission that the board shows now.
func (a *asking) follow(ctx context.Context) error {
	if a.board.wanted == a.board.best {
		return nil
	}
	best, err := queries.Parse([]byte(a.board.wanted))
	if err != nil {
		return fmt.Errorf("holdout: the best submission: %w", err)
	}
	plan, err := a.holdout.compile(ctx, best)
	if err != nil {
		return fmt.Errorf("holdout: the best submission: %w", err)
	}
	a.board = board{best: a.board.wanted, function: plan.Functions[0], wanted: a.board.wanted}
	a.list()
	return nil
}

// submit is answer for a ladder.
func (a *asking) submit(tx *ledger.Tx, q *question, state thresholdout.State) (thresholdout.State, error) {
	h := a.holdout
	squares := func(function int) *big.Int { // of numbers that are 0 or 1, in steps of 2^-60
		return new(big.Int).Lsh(big.NewInt(a.sums.holdout[function]), queries.GridBits)
	}
	in := thresholdout.Losses{N: h.holdout.Units(), Sum: a.sums.holdout[q.first], Square: squares(q.first)}
	if a.board.best != "" {
		in.Cross = squares(q.first + 1)
	}
	standing, next, err := thresholdout.StepLadder(h.params, state, in, string(q.canonical))
	if err != nil {
		return state, fmt.Errorf("holdout: step: %w", err)
	}
	core := answerJSON{ID: answerID(h.id, q.id), Holdout: h.id, Query: q.id, Value: &standing.Loss, Best: &standing.Best,
		Mechanism: h.params.Mechanism, Source: thresholdout.FromHoldout, Cost: Cost{Questions: 1}}
	return next, a.append(tx, q, core)
}
