package adaptivity

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// What is guaranteed stands beside what is measured: how many adaptive questions have intervals of a half-width that hold together at 95%, whoever asks. It is arithmetic.

// anyAnalyst is the run.Row.Condition of what is guaranteed.
const anyAnalyst = "any analyst"

// guaranteedWithin is its measure.
func guaranteedWithin(halfWidth float64) string {
	return fmt.Sprintf("questions guaranteed within %v", halfWidth)
}

// halfWidths that questions are counted for.
var halfWidths = []float64{0.05, 0.1}

const guaranteeConfidence = 0.95

// attackLimit is a number for the mechanism gaussian that no proof can pass: from there on the attack reaches the half-width in one run of twenty.
const attackLimit = "gaussian, where the attack succeeds"

// promises are what is counted, in the order of the figure's legend.
var promises = []struct {
	title, method string // of package compare; "" is the attack
}{
	{attackLimit, ""},
	{"guess_and_check, while guesses hold", compare.MethodGuessCheck},
	{"gaussian", compare.MethodScheduled},
	{splitName, compare.MethodSplitting},
	{"the literature's best (JLNRSS 2020, exact)", compare.MethodJLNRSSGDP},
	{"the literature (BNSSSU 2016)", compare.MethodBNSSSU},
}

// guaranteedSizes of holdouts. The training part is as large.
func guaranteedSizes(quick bool) []int64 {
	if quick {
		return []int64{2000, 4000, 8000}
	}
	return []int64{1000, 2000, 4000, 8000, 16000, 32000, 64000}
}

// guaranteed counts the questions.
func guaranteed(ctx context.Context, o run.Options) (rows []run.Row, fits []run.Fit, err error) {
	sizes := guaranteedSizes(o.Quick)
	per := len(promises) * len(sizes)
	counts, finished, err := run.Repeat(ctx, o, "guaranteed", len(halfWidths)*per, func(_ context.Context, i int) (int64, error) {
		return largestWithin(promises[i%per/len(sizes)].method, sizes[i%len(sizes)], halfWidths[i/per])
	})
	for h, halfWidth := range halfWidths {
		for j, p := range promises {
			var x, y []float64
			for s, n := range sizes {
				i := h*per + j*len(sizes) + s
				if !finished[i] {
					continue
				}
				k := float64(counts[i])
				rows = append(rows, run.Row{Condition: anyAnalyst, Method: p.title, N: n, K: counts[i], Confidence: guaranteeConfidence, Set: guaranteedWithin(halfWidth),
					Mean: k, Low: k, High: k, Repetitions: 1})
				if k >= fewestFitted {
					x, y = append(x, float64(n)), append(y, k)
				}
			}
			if len(x) >= 3 {
				fits = append(fits, run.FitExponent(p.title, guaranteedWithin(halfWidth), x, y))
			}
		}
	}
	return rows, fits, err
}

// fewestFitted: fewer questions than these grow in jumps.
const fewestFitted = 8

// largestWithin is the largest number of questions of a method within a half-width.
func largestWithin(method string, n int64, halfWidth float64) (int64, error) {
	r := compare.Request{N: n, Training: n, Confidence: guaranteeConfidence, HalfWidth: halfWidth}
	return bounds.LargestWithin(halfWidth, func(k int64) (float64, error) {
		if method != "" {
			return compare.HalfWidthOf(method, r, k)
		}
		g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: n, Questions: k, Confidence: guaranteeConfidence})
		if err != nil {
			return 0, err
		}
		promise, _ := g.Promised(0)
		return bounds.Attack(n, k, 1-guaranteeConfidence, promise.Sigma)
	})
}

// What guess_and_check does while guesses hold: run.Row.Set.
const (
	errorWhileHolding  = "largest error while guesses hold"
	tokensWhileHolding = "tokens spent while guesses hold"
)

// Runs of an analyst whose guesses hold, but for the last one.
const (
	holdingRuns = 20
	mostHolding = 20_000 // questions that are played: what is guaranteed may be many more
)

// holding is one of them.
type holding struct {
	Worst  float64 `json:"worst"`
	Tokens int64   `json:"tokens"`
}

// whileHolding lets the single-adaptive analyst ask with the training part's means as guesses, as many questions as are guaranteed within the tolerance. The guesses about columns hold, and
// that about the vote, which it overfits to both parts, does not.
func whileHolding(ctx context.Context, o run.Options, promised []run.Row, checks *run.Checks) (rows []run.Row, err error) {
	var cells []run.Row
	for _, r := range promised {
		if r.Method == promises[1].title && r.Set == guaranteedWithin(tolerance) && r.N <= largestHolding(o.Quick) {
			r.K = min(r.K, mostHolding)
			cells = append(cells, r)
		}
	}
	games, finished, err := run.Repeat(ctx, o, "guesses that hold", len(cells)*holdingRuns, func(_ context.Context, i int) (holding, error) {
		n, k := cells[i%len(cells)].N, cells[i%len(cells)].K
		g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: n, Questions: k, Confidence: guaranteeConfidence})
		if err != nil {
			return holding{}, fmt.Errorf("experiments: guesses that hold: %w", err)
		}
		seed := seeds.Of(o.Seed, 8, uint64(i))
		h := analysts.NewHoldout(g, seeds.Of(seed, 1))
		game, err := analysts.Play(analysts.Analyst{Play: analysts.SingleAdaptive(analysts.LogOdds)}, h, seeds.Of(seed, 2), n, n)
		return holding{game.Worst, h.State.Tokens}, err
	})
	for i, found := range run.Dealt(games, finished, max(1, len(cells))) {
		if len(found) < holdingRuns {
			continue
		}
		row := func(set string, of func(h holding) float64) run.Row {
			return run.Measured(run.Row{Condition: "single-adaptive, training as guesses", Method: string(thresholdout.GuessAndCheck), N: cells[i].N, K: cells[i].K, Confidence: guaranteeConfidence, Set: set}, found, of)
		}
		worst := row(errorWhileHolding, func(h holding) float64 { return h.Worst })
		rows = append(rows, worst, row(tokensWhileHolding, func(h holding) float64 { return float64(h.Tokens) }))
		checks.AtMost(fmt.Sprintf("guess_and_check, n = %d: the largest error of %d questions whose guesses hold", worst.N, worst.K), tolerance, worst)
	}
	return rows, err
}

// largestHolding is the largest holdout that is played.
func largestHolding(quick bool) int64 {
	if quick {
		return 2000
	}
	return 8000
}

//go:embed guaranteed.json
var guaranteedText []byte

// guaranteedTolerance is what a number of questions may be off by, as a part: the released half-width pays for whole numbers in its proof, and searches for the best noise stop where
// widths are flat.
const guaranteedTolerance = 0.005

// guaranteedChecks compare gaussian's numbers with an independent program's, and with attacks: no attack succeeds within what is guaranteed.
func guaranteedChecks(checks *run.Checks, rows, measured []run.Row) error {
	var known struct {
		Cells []struct {
			N         int64   `json:"n"`
			HalfWidth float64 `json:"half_width"`
			Questions float64 `json:"questions"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(guaranteedText, &known); err != nil {
		return fmt.Errorf("experiments: guaranteed.json: %w", err)
	}
	for _, c := range known.Cells {
		if r := run.Find(rows, anyAnalyst, "gaussian", c.N, guaranteedWithin(c.HalfWidth)); r.Repetitions > 0 {
			checks.Arithmetic(fmt.Sprintf("gaussian, n = %d: %s (SciPy)", c.N, r.Set), c.Questions, guaranteedTolerance, r.Mean)
		}
	}
	for _, r := range rows {
		if r.Method != "gaussian" {
			continue
		}
		limit := run.Find(rows, anyAnalyst, attackLimit, r.N, r.Set)
		checks.Stated(0, run.Check{What: fmt.Sprintf("gaussian, n = %d: %s, at most where the attack succeeds", r.N, r.Set), Expected: limit.Mean, Got: r.Mean, Low: r.Mean, High: r.Mean,
			Criterion: "at most", Agrees: r.Mean <= limit.Mean, Notices: fmt.Sprintf("a guarantee of %.3g times as many questions", limit.Mean/max(1, r.Mean))})
	}
	for _, m := range measured {
		if r := run.Find(rows, anyAnalyst, m.Method, m.N, guaranteedWithin(tolerance)); r.Repetitions > 0 {
			checks.AtLeast(fmt.Sprintf("%s, n = %d: questions until the attack's mean error is %v, at least those guaranteed", m.Method, m.N, tolerance), r.Mean, m)
		}
	}
	return nil
}

// guaranteedTable are lines of the table, under the measured ones.
func guaranteedTable(rows []run.Row, fits []run.Fit) (lines [][]string) {
	for i, r := range rows {
		line := []string{r.Method, r.Set, fmt.Sprint(r.N), fmt.Sprintf("%.0f", r.Mean), "", "", ""}
		if i == len(rows)-1 || rows[i+1].Method != r.Method {
			for _, f := range fits {
				if f.Method == r.Method && f.Of == r.Set {
					line[5] = fmt.Sprintf("%.2f", f.Exponent)
				}
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// drawGuaranteed draws what is guaranteed against units, a panel for each half-width, and where the attack was measured.
func drawGuaranteed(rows, measured []run.Row) ([]*plot.Plot, error) {
	var row []*plot.Plot
	for h, halfWidth := range halfWidths {
		p := figure.New(fmt.Sprintf("Adaptive questions within ±%v", halfWidth), "units in the holdout, n", "questions that are guaranteed at 95%")
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker = figure.CountTicks
		p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick { return figure.CountTicks.Ticks(low, min(high, mostDrawn)) })
		for i, promise := range promises {
			var points plotter.XYs
			for _, r := range rows {
				if r.Method == promise.title && r.Set == guaranteedWithin(halfWidth) && r.Mean >= 1 {
					points = append(points, plotter.XY{X: float64(r.N), Y: r.Mean})
				}
			}
			points = upTo(points, mostDrawn)
			if len(points) == 0 {
				continue
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return nil, err
			}
			line.LineStyle = figure.Line(promiseStyles[i])
			p.Add(line)
			if h == len(halfWidths)-1 { // the literature answers some within the largest
				p.Legend.Add(promise.title, line)
			}
		}
		var points figure.Points
		for _, r := range measured {
			if r.Method == "gaussian" && halfWidth == tolerance {
				points.Add(float64(r.N), r.Mean, max(r.Low, r.Mean/4), r.High)
			}
		}
		if len(points.XYs) > 0 {
			if err := figure.AddMarks(p, promiseStyles[0], "gaussian, the attack as measured", points); err != nil {
				return nil, err
			}
		}
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 900, 70_000, 1, 1e4*mostDrawn // room for the legend above the curves
		figure.Grid(p)
		p.Legend.Top, p.Legend.Left = true, true
		row = append(row, p)
	}
	return row, nil
}

// mostDrawn questions are drawn: a number that grows as e^n leaves the figure there.
const mostDrawn = 1e6

// upTo are the points up to where their line, which is straight in logarithms, leaves the figure.
func upTo(points plotter.XYs, most float64) plotter.XYs {
	for i, p := range points {
		if p.Y <= most {
			continue
		}
		if i == 0 {
			return nil
		}
		before := points[i-1]
		part := math.Log(most/before.Y) / math.Log(p.Y/before.Y)
		return append(slices.Clone(points[:i]), plotter.XY{X: before.X * math.Pow(p.X/before.X, part), Y: most})
	}
	return points
}

// promiseStyles are the series of the promises in package figure, so that a mechanism has the style that it has in the first figure.
var promiseStyles = []int{6, 4, 2, 1, 5, 3}
