package compare

import (
	"fmt"
	"io"
	"math"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// The kinds of answer that a holdout of guess_and_check gives, side by side.

const (
	answersQuestions = 1000
	answersShare     = 0.77
	answersMeasured  = 10
	answersBefore    = 300 // questions before the report
	answersReported  = 5   // its numbers
)

var answersUnits = []int64{1000, 5000, 12_000, 60_000}

// AnswerWidths are half-widths of one holdout's answers to yes/no questions, as planned where the holdout has what the training part has.
type AnswerWidths struct {
	Check         float64 // the first question, a guess that passes
	First, Tenth  float64 // measured answers, those before the tenth as surprising as answers to good guesses are
	Report        float64 // one of five numbers after 300 questions that passed
	AfterMeasured float64 // the same after ten measured answers
	Textbook      float64 // of one question that was fixed beforehand
}

// AnswerWidthsOf are those of a holdout of n units, with as many for training, 1,000 questions and the table's confidence, for a share of this size.
func AnswerWidthsOf(n int64, share float64) (w AnswerWidths, err error) {
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: answersQuestions, Confidence: tableConfidence})
	if err != nil {
		return w, err
	}
	yes := int64(math.Round(share * float64(n)))
	training := thresholdout.RootSums{All: n, Binary: true, Sums: moments.Sums{Units: n, Sum: yes << gridBits}}
	training.Squares.AddSums(training.Sum, 1<<gridBits)
	half := func(value float64, i *thresholdout.Interval) float64 { return max(i.High-value, value-i.Low) }

	value, interval, err := g.ExpectedStatistic(thresholdout.State{}, thresholdout.StatisticInput{Training: training})
	if err != nil {
		return w, err
	}
	w.Check, w.Textbook = half(value, interval), textbookZ*math.Sqrt(share*(1-share)/float64(n))
	state := thresholdout.State{}
	for i := range answersMeasured {
		ways, err := g.Prospects(state, thresholdout.ProspectInput{Training: training, Guess: &thresholdout.Guess{Measure: true}})
		if err != nil {
			return w, err
		}
		planned, _ := ways[0].Planned()
		if w.Tenth = half(ways[0].Value, planned); i == 0 {
			w.First = w.Tenth
		}
		state = g.Suppose(state, ways[0])
	}
	for _, c := range []struct {
		before thresholdout.State
		into   *float64
	}{{thresholdout.State{Questions: answersBefore}, &w.Report}, {g.Spend(state, answersBefore, 0), &w.AfterMeasured}} {
		closing, err := g.Close(c.before, answersReported)
		if err != nil {
			return w, err
		}
		out, err := g.ExpectedLast(closing, training, 1, 1)
		if err != nil {
			return w, err
		}
		*c.into = half(out.Value, out.Interval)
	}
	return w, nil
}

// gridBits are those of a row function's values.
const gridBits = 30

// WriteAnswers writes the section of docs/CHOOSING.md about the kinds of answers.
func WriteAnswers(w io.Writer) error {
	fmt.Fprintf(w, `Half-widths of a share of %v under `+"`guess_and_check`"+`, in textbook half-widths for one question. The holdout has
%s questions, and as many training units as held-out ones. A measured answer costs %d questions and a token
([proof](proofs/measured.md)). The report has %d numbers after %d questions that passed, in the last column also after
%d measured answers ([proof](proofs/closing.md)). `+"`holdoutd plan --answers`"+` prints it.

| n | a check that passes | the first measured answer | the tenth | the report | after measured answers | textbook |
|---|---|---|---|---|---|---|
`, answersShare, thousands(answersQuestions), (answersQuestions+39)/40, answersReported, answersBefore, answersMeasured)
	for _, n := range answersUnits {
		a, err := AnswerWidthsOf(n, answersShare)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s |", thousands(n))
		for _, half := range []float64{a.Check, a.First, a.Tenth, a.Report, a.AfterMeasured} {
			fmt.Fprintf(w, " %.2f |", half/a.Textbook)
		}
		fmt.Fprintf(w, " ±%#.3g |\n", a.Textbook)
	}
	return nil
}
