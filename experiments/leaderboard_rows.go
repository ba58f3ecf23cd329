package experiments

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// theory is the final loss by theory with so many submissions kept. Noise of deviation s makes a score tell less about the labels,
// by the correlation 1/sqrt(1 + 4 N s^2) of a noisy score with the score, and so each kept submission agrees less.
func (c *leaderboardCell) theory(kept float64) float64 {
	told := 1.0
	if c.method == boardGaussian {
		told = 0
		for j := range c.params.Questions - 1 {
			s := c.params.Sigma
			if c.params.Scheduled {
				s = bounds.ScheduledSigma(s, j+1, c.params.Questions)
			}
			told += 1 / math.Sqrt(1+4*float64(c.n)*s*s) / float64(c.params.Questions-1)
		}
	}
	return distuv.UnitNormal.Survival(told * math.Sqrt(2*kept/(math.Pi*float64(c.n))))
}

func (c *leaderboardCell) row(set string) Row {
	return Row{Condition: leaderboardAttack, Method: c.method, N: int64(c.n), K: int64(c.k), Set: set}
}

// final is the row of the final loss.
func (c *leaderboardCell) final() Row {
	return measuredRow(c.row(BoardFinal), c.runs, func(r leaderboardRun) float64 { return r.Final })
}

func (c *leaderboardCell) kept() Row {
	return measuredRow(c.row(BoardKept), c.runs, func(r leaderboardRun) float64 { return float64(r.Kept) })
}

func (c *leaderboardCell) shown() Row {
	return measuredRow(c.row(BoardShown), c.runs, func(r leaderboardRun) float64 { return r.Shown })
}

// missed and finds are rates of runs; both are of intervals.
func (c *leaderboardCell) missed() Row {
	r := c.row(boardMiss)
	r.Rate, r.Confidence = true, c.params.Confidence
	return measuredRow(r, c.runs, func(r leaderboardRun) float64 { return indicator(r.Missed) })
}

func (c *leaderboardCell) finds() Row {
	r := c.row(boardFinds)
	r.Rate, r.Confidence = true, c.params.Confidence
	return measuredRow(r, c.runs, func(r leaderboardRun) float64 { return indicator(r.Low > 0.5 || r.High < 0.5) })
}

func (c *leaderboardCell) rows() []Row {
	if len(c.runs) == 0 {
		return nil
	}
	rows := []Row{c.final(), c.shown(), measuredRow(c.row(BoardBest), c.runs, func(r leaderboardRun) float64 { return r.Best }), c.kept()}
	if c.method == boardGaussian {
		rows = append(rows, c.missed(), c.finds())
	}
	return rows
}

// leaderboardReference are final losses of a separate program with the steps of the published attack, from 100 repetitions.
var leaderboardReference = []struct {
	method string
	n, k   int
	loss   float64
}{
	{boardExact, 4000, 100, 0.4636}, {boardExact, 4000, 400, 0.42916},
	{boardRounded, 4000, 100, 0.4636}, {boardRounded, 4000, 400, 0.42916},
	{boardLadder, 4000, 100, 0.48829}, {boardLadder, 4000, 400, 0.48553},
}

const (
	leaderboardTolerance = 0.003 // of the reference
	// theoryTolerance is for the normal law in place of sums of coins, and for |I| in place of its mean.
	theoryTolerance = 0.001
	// ladderLoss is where no Ladder's final loss may be: its few moves gain a standard error each.
	ladderLoss = 0.475
)

func leaderboardChecks(cells []*leaderboardCell) []Check {
	var checks []Check
	for _, c := range cells {
		of := fmt.Sprintf("%s, k = %d: ", c.method, c.k)
		final := c.final()
		for _, r := range leaderboardReference {
			if r.method == c.method && r.n == c.n && r.k == c.k {
				checks = append(checks, near(of+"final loss against the reference", r.loss, leaderboardTolerance, final))
			}
		}
		if c.method == boardLadder {
			if c.n == 4000 {
				checks = append(checks, AtLeast(of+"final loss", ladderLoss, final))
			}
			continue
		}
		checks = append(checks, near(of+"final loss against theory", c.theory(c.kept().Mean), theoryTolerance, final))
		if c.method == boardGaussian {
			checks = append(checks, AtMost(of+boardMiss, 1-c.params.Confidence, c.missed()), AtMost(of+boardFinds, 1-c.params.Confidence, c.finds()))
		}
	}
	return checks
}

func leaderboardTable(cells []*leaderboardCell) [][]string {
	table := [][]string{{"BOARD", "LABELS", "K", "KEPT", "FINAL LOSS", "95% INTERVAL", "THEORY", "SHOWN", "HALF-WIDTH", "REPETITIONS"}}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		final, kept, theory, width := c.final(), c.kept(), "", ""
		if c.method != boardLadder {
			theory = fmt.Sprintf("%.4f", c.theory(kept.Mean))
		}
		if c.method == boardGaussian {
			width = fmt.Sprintf("%.4f", c.params.HalfWidth)
		}
		table = append(table, []string{c.method, fmt.Sprint(c.n), fmt.Sprint(c.k), fmt.Sprintf("%.1f", kept.Mean), fmt.Sprintf("%.4f", final.Mean),
			fmt.Sprintf("%.4f to %.4f", final.Low, final.High), theory, fmt.Sprintf("%.4f", c.shown().Mean), width, fmt.Sprint(final.Repetitions)})
	}
	return table
}

func leaderboardFigures(cells []*leaderboardCell) []Figure {
	for _, c := range cells {
		if len(c.runs) > 0 {
			return []Figure{
				{Name: "final", Caption: "Loss on the public labels of the majority of the submissions kept, against their number, with 95% intervals of the mean; lines by theory. " +
					"Each submission is truly wrong half of the time.", Draw: func() (*plot.Plot, error) { return leaderboardFigure(cells) }},
				{Name: "shown", Caption: "What the board shows of the final submission. Under gaussian the bars are the interval that is shown with it.",
					Draw: func() (*plot.Plot, error) { return leaderboardShownFigure(cells) }}}
		}
	}
	return nil
}

// leaderboardSeries are the cells of each board that are begun.
func leaderboardSeries(cells []*leaderboardCell) (methods []string, of map[string][]*leaderboardCell) {
	of = map[string][]*leaderboardCell{}
	for _, c := range cells {
		if len(c.runs) == 0 {
			continue
		}
		if of[c.method] == nil {
			methods = append(methods, c.method)
		}
		of[c.method] = append(of[c.method], c)
	}
	return methods, of
}

// leaderboardPlot is an empty figure of losses against k.
func leaderboardPlot(title, y string) *plot.Plot {
	p := figure.New(title, "submissions before the last, k", y)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, figure.LogTicks
	truth := plotter.NewFunction(func(float64) float64 { return 0.5 })
	truth.Width = 0.8
	p.Add(truth)
	p.Legend.Add("truth", truth)
	p.Legend.Left = true
	return p
}

func leaderboardFigure(cells []*leaderboardCell) (*plot.Plot, error) {
	methods, of := leaderboardSeries(cells)
	p := leaderboardPlot(fmt.Sprintf("The attack on a leaderboard of %d labels: loss of its final submission", cells[0].n), "loss on the public labels")
	for i, method := range methods {
		var measured barred
		var theory plotter.XYs
		for _, c := range of[method] {
			final := c.final()
			x := float64(c.k) * math.Pow(1.04, float64(i)-1.5) // beside each other
			measured.XYs = append(measured.XYs, plotter.XY{X: x, Y: final.Mean})
			measured.YErrors = append(measured.YErrors, struct{ Low, High float64 }{final.Mean - final.Low, final.High - final.Mean})
			theory = append(theory, plotter.XY{X: float64(c.k), Y: c.theory(c.kept().Mean)})
		}
		if method == boardLadder || method == boardRounded { // for which there is no theory, or the same
			if err := addMarks(p, i, method, measured); err != nil {
				return nil, err
			}
			continue
		}
		line, err := plotter.NewLine(theory)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		line.Width = 1.2
		p.Add(line)
		if err := addMarks(p, i, "", measured); err != nil {
			return nil, err
		}
		p.Legend.Add(method+", line by theory", line, &plotter.Scatter{GlyphStyle: figure.Mark(i)})
	}
	p.Y.Max = 0.505
	p.Y.Tick.Marker = evenTicks
	return p, nil
}

func leaderboardShownFigure(cells []*leaderboardCell) (*plot.Plot, error) {
	methods, of := leaderboardSeries(cells)
	p := leaderboardPlot(fmt.Sprintf("The attack on a leaderboard of %d labels: what is shown of its final submission", cells[0].n), "loss that is shown")
	for i, method := range methods {
		var points barred
		for _, c := range of[method] {
			points.XYs = append(points.XYs, plotter.XY{X: float64(c.k) * math.Pow(1.04, float64(i)-1.5), Y: c.shown().Mean})
			points.YErrors = append(points.YErrors, struct{ Low, High float64 }{c.params.HalfWidth, c.params.HalfWidth})
		}
		if method == boardGaussian {
			if err := addMarks(p, i, method+", with its interval", points); err != nil {
				return nil, err
			}
			continue
		}
		marks, err := plotter.NewScatter(points.XYs)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = figure.Mark(i)
		p.Add(marks)
		p.Legend.Add(method, marks)
	}
	p.Y.Tick.Marker = evenTicks
	return p, nil
}
