package widths

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/internal/printed"
)

// findings are what was measured, in the order of askAll.
type findings struct {
	runs [][]measured
	n    int64
}

// ways are the textbook's intervals, then the methods.
func ways() (names []string) {
	names = []string{textbook, bonferroni}
	for _, m := range methods {
		names = append(names, m.name)
	}
	return names
}

// row is a measure of a question by a way.
func (f findings) row(q, way int, set string, of func(measured) float64) run.Row {
	r := run.Row{Condition: questions[q].name, Method: ways()[way], N: f.n, K: budget, Confidence: confidence, Set: set, Rate: set == misses}
	return run.Measured(r, f.runs, func(all []measured) float64 { return of(all[q*len(ways())+way]) })
}

// refused reports whether a way does not answer a question.
func (f findings) refused(q, way int) bool { return f.runs[0][q*len(ways())+way].Refused }

func (m measured) half() float64  { return m.Half }
func (m measured) ratio() float64 { return m.Ratio }
func (m measured) cost() float64  { return m.Cost }
func (m measured) miss() float64  { return m.Miss }

func (f findings) rows() (rows []run.Row) {
	for q := range questions {
		for way, name := range ways() {
			if f.refused(q, way) {
				continue
			}
			rows = append(rows, f.row(q, way, halfWidth, measured.half), f.row(q, way, ratio, measured.ratio))
			if name != textbook && name != bonferroni {
				rows = append(rows, f.row(q, way, cost, measured.cost), f.row(q, way, misses, measured.miss))
			}
		}
	}
	return rows
}

// checks: no method misses more often than it promises, and no question is answered wider by two moments than by its range alone.
func (f findings) checks() []run.Check {
	var checks run.Checks
	names := ways()
	for way := 2; way < len(names); way++ {
		worst := 0
		for q := range questions {
			if f.row(q, way, misses, measured.miss).Mean > f.row(worst, way, misses, measured.miss).Mean {
				worst = q
			}
		}
		missed := f.row(worst, way, misses, measured.miss)
		checks.Worst(len(questions), names[way]+": intervals that miss, of the question that is missed most often ("+questions[worst].name+")", 1-confidence, missed)
	}
	range_, own := slices.Index(names, byRange), slices.Index(names, "guess_and_check")
	for q, question := range questions {
		r := f.row(q, own, ratio, func(m measured) float64 { return m.Ratio })
		limit := f.row(q, range_, ratio, measured.ratio)
		checks.Stated(0, run.Check{What: question.name + ": half-width of guess_and_check, in textbook half-widths", Expected: limit.Mean, Got: r.Mean, Low: r.Low, High: r.High,
			Criterion: "at most what it is by the range alone, of the same splits", Agrees: r.Mean <= limit.Mean*(1+1e-9),
			Notices: fmt.Sprintf("half-widths %.3g times as large", limit.Mean/r.Mean)})
	}
	return checks.Decide()
}

// table has half-widths, and the questions that an answer costs where it is more than one.
func (f findings) table() [][]string {
	table := [][]string{append([]string{"question"}, ways()...)}
	for q, question := range questions {
		line := []string{question.name}
		for way := range ways() {
			if f.refused(q, way) {
				line = append(line, "refused")
				continue
			}
			text := short(f.row(q, way, halfWidth, measured.half).Mean)
			if c := f.row(q, way, cost, measured.cost).Mean; c > 1 {
				text += fmt.Sprintf(" (%.0f questions)", c)
			}
			line = append(line, text)
		}
		table = append(table, line)
	}
	return table
}

// short is a number with three digits.
func short(v float64) string { return fmt.Sprintf("%.3g", v) }

// figure draws the ratios to the textbook, a line for each question.
func (f findings) figure() (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("First of %d questions, %s flights held out", budget, printed.Thousands(f.n)), "half-width, in textbook half-widths for one question", "")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, figure.LogTicks
	names := make([]plot.Tick, len(questions))
	for q, question := range questions {
		names[q] = plot.Tick{Value: float64(len(questions) - 1 - q), Label: question.name}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(names)
	p.Y.Min, p.Y.Max = -0.7, float64(len(questions))+2 // room for the legend
	figure.Grid(p)
	all := ways()
	for series, way := range []struct{ name, label string }{
		{"guess_and_check", "guess_and_check"}, {bonferroni, fmt.Sprintf("textbook, Bonferroni over %d", budget)}, {byRange, "guess_and_check, by the range alone"}, {oneRound, "one batch, fixed beforehand (gaussian, rounds=1)"},
	} {
		var marks plotter.XYs
		for q := range questions {
			if w := slices.Index(all, way.name); !f.refused(q, w) {
				marks = append(marks, plotter.XY{X: f.row(q, w, ratio, measured.ratio).Mean, Y: float64(len(questions) - 1 - q)})
			}
		}
		s, err := plotter.NewScatter(marks)
		if err != nil {
			return nil, err
		}
		s.GlyphStyle = figure.Mark(series)
		s.GlyphStyle.Radius = 4.5
		p.Add(s)
		p.Legend.Add(way.label, s)
	}
	p.Legend.Top, p.Legend.Left = true, false
	p.X.Min = 1
	p.X.Max *= 1.1
	return p, nil
}
