package compare

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// tableSpreads are the standard deviations of the questions in the page's last tables, in ranges. One half is that of a yes/no question that half of the rows answer yes.
var tableSpreads = []float64{0.5, 0.25, 0.1, 0.03}

// FirstHalfWidth is the half-width of the first answer that guess_and_check gives to a question whose values have the mean 1/2 and this
// standard deviation, in ranges, if its guess passes: it is 1/2 for a yes/no question, and below 0.28 the values are taken to have the fourth moment of a normal law. The training part has
// as many units as the holdout.
func FirstHalfWidth(r Request, spread float64) (float64, error) {
	if !(spread > 0 && spread <= maxSpread || spread == 0.5) {
		return 0, &RequestError{"spread", fmt.Sprintf("%v is neither 1/2 nor between 0 and %.2f", spread, maxSpread)}
	}
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: r.N, Training: r.N, Questions: r.Questions, Confidence: r.Confidence, Tokens: r.tokens(r.Questions)})
	if err != nil {
		return 0, err
	}
	value, i, err := g.ExpectedStatistic(thresholdout.State{}, thresholdout.StatisticInput{Training: sample(r.N, spread)})
	if err != nil {
		return 0, err
	}
	return max(i.High-value, value-i.Low), nil
}

// grid is the number of steps from 0 to 1 of a row function's values.
const grid = 1 << 30

// maxSpread is the largest for which the three values of sample are in [0,1].
const maxSpread = 0.5 / 1.7320508075688772

// sample are the sums of n units with the mean 1/2 and a standard deviation: of a coin if it is 1/2; else of three values whose first five moments are
// those of a normal law, the nodes of Gauss and Hermite: two thirds are 1/2, and a sixth each is sqrt(3) standard deviations above and below.
func sample(n int64, spread float64) thresholdout.RootSums {
	outer, step := n/6, math.Sqrt(3)*spread
	if spread == 0.5 {
		outer, step = n/2, 0.5
	}
	s := thresholdout.RootSums{All: n, Binary: spread == 0.5, Higher: &thresholdout.Higher{}}
	for _, part := range []struct {
		units int64
		value float64
	}{{outer, 0.5 - step}, {n - 2*outer, 0.5}, {outer, 0.5 + step}} {
		x := int64(part.value * grid)
		square := x * x / grid
		s.Units += part.units
		s.Sum += part.units * x
		s.Squares.AddSums(part.units*x, x)
		s.Higher.Third.AddSums(part.units*square, x)
		s.Higher.Fourth.AddSums(part.units*square, square)
	}
	return s
}

// writeSpreads writes how the half-width follows a question's own variance.
func writeSpreads(w io.Writer) error {
	fmt.Fprintf(w, `
## By how much a question varies

The table above is for the worst case: values that are 0 or 1, half and half. `+"`guess_and_check`"+` follows the values of
each question. Below is the half-width of its first answer, if the guess passes. The values have the mean 1/2 and the
standard deviation sd, both in ranges. Failed guesses widen later answers. The textbook's interval is for one question.

| n | sd |`)
	for _, k := range tableQuestions {
		fmt.Fprintf(w, " k = %s |", thousands(k))
	}
	fmt.Fprintf(w, " textbook |\n|---|---|%s\n", strings.Repeat("---|", len(tableQuestions)+1))
	for _, n := range spreadUnits {
		for _, spread := range tableSpreads {
			fmt.Fprintf(w, "| %s | %v |", thousands(n), spread)
			for _, k := range tableQuestions {
				half, err := FirstHalfWidth(Request{N: n, Questions: k, Confidence: tableConfidence}, spread)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, " %#.3g |", half)
			}
			fmt.Fprintf(w, " %#.3g |\n", textbookZ*spread/math.Sqrt(float64(n)))
		}
	}
	return nil
}

// textbookZ is the normal quantile of a two-sided interval at the table's confidence.
const textbookZ = 1.959963984540054
