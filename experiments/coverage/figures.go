package coverage

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// figuresOf are the rate of misses of each mechanism, and how near each analyst comes to a miss, for the largest guarantee at the highest confidence
// that all are finished for.
func figuresOf(rows []run.Row) []run.Figure {
	if len(rows) == 0 {
		return nil
	}
	last := rows[0]
	for _, r := range rows {
		if r.Confidence >= last.Confidence {
			last = r
		}
	}
	of := fmt.Sprintf("n = %s, k = %d, confidence %v", figure.Thousands(last.N), last.K, last.Confidence)
	return []run.Figure{
		{Name: "misses", Caption: fmt.Sprintf("Runs in which any of %d intervals misses its target, of all analysts together. What is promised is at most the line.", last.K),
			Draw: func() (*plot.Plot, error) { return drawMisses(rows, last, of) }},
		{Name: "reach", Caption: "The largest error of a run over the half-width of its interval, on average over runs: beyond 1 an interval misses. How far a mark is from 1 is how much narrower " +
			"the interval could be before this analyst breaks it.", Draw: func() (*plot.Plot, error) { return drawReach(rows, last, of) }},
	}
}

// like reports whether a row is of the same guarantee.
func like(r, last run.Row) bool {
	return r.N == last.N && r.K == last.K && r.Confidence == last.Confidence
}

// drawMisses has a bar for each mechanism with its counts.
func drawMisses(rows []run.Row, last run.Row, of string) (*plot.Plot, error) {
	p := figure.New("Runs in which any interval misses: "+of, "share of runs", "")
	var names []string
	var bars []*figure.Bar
	for i, m := range methods {
		var events, runs int64
		for _, r := range rows {
			if r.Method == m.name && r.Set == nonCoverage && like(r, last) {
				events, runs = events+r.Events(), runs+int64(r.Repetitions)
			}
		}
		names = append(names, m.name)
		if runs > 0 {
			bars = append(bars, &figure.Bar{Series: i, To: float64(events) / float64(runs), Row: figure.RowOf(i, len(methods)), Half: 0.28, Beyond: 1 - last.Confidence,
				Number: fmt.Sprintf("%s of %s", figure.Thousands(events), figure.Thousands(runs))})
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1.15, -0.6, float64(len(names))-0.4
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.25, Label: "0.25"}, {Value: 0.5, Label: "0.5"}, {Value: 0.75, Label: "0.75"}, {Value: 1, Label: "1"}}
	p.Y.Tick.Marker = figure.RowTicks(names)
	figure.Grid(p)
	for _, b := range bars {
		p.Add(b)
	}
	if err := figure.Upright(p, 1-last.Confidence, draw.LineStyle{Color: figure.Black, Width: 1, Dashes: figure.Dashed}, fmt.Sprintf("promised at most: %.2g", 1-last.Confidence)); err != nil {
		return nil, err
	}
	p.Legend.Top = true
	return p, nil
}

// drawReach has a row for each analyst, and a mark for each mechanism.
func drawReach(rows []run.Row, last run.Row, of string) (*plot.Plot, error) {
	p := figure.New("How near each attack comes: "+of, "largest error of a run, in half-widths of its interval", "")
	var names []string
	for _, a := range analysts.All {
		names = append(names, a.Name)
	}
	p.Y.Min, p.Y.Max = -0.7, float64(len(names))+3 // room for the legend
	p.Y.Tick.Marker = figure.RowTicks(names)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, figure.LogTicks
	figure.Grid(p)
	low, high := 1.0, 1.0
	for i, m := range methods {
		var marks plotter.XYs
		for _, r := range rows {
			if r.Method != m.name || r.Set != worstReach || !like(r, last) {
				continue
			}
			for at, name := range names {
				if name == r.Condition && r.Mean > 0 {
					marks = append(marks, plotter.XY{X: r.Mean, Y: figure.RowOf(at, len(names))})
					low, high = min(low, r.Mean), max(high, r.Mean)
				}
			}
		}
		if len(marks) == 0 {
			continue
		}
		s, err := plotter.NewScatter(marks)
		if err != nil {
			return nil, err
		}
		s.GlyphStyle = figure.Mark(i)
		s.GlyphStyle.Radius = vg.Points(4.5)
		p.Add(s)
		p.Legend.Add(m.name, s)
	}
	p.X.Min, p.X.Max = low/1.2, high*1.2
	if err := figure.Upright(p, 1, draw.LineStyle{Color: figure.Black, Width: 1, Dashes: figure.Dashed}, "an interval misses beyond"); err != nil {
		return nil, err
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
