//go:build !nofigures

package main

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/experiments/attacks"
	"github.com/holdoutd/holdoutd/internal/figure"
)

const (
	auditWidth  = 11.2 * vg.Inch
	auditHeight = 5.2 * vg.Inch
)

// writeAuditPlots draws what the attackers got beside what is allowed, the same figure into each file.
func writeAuditPlots(files []string, r attacks.Report) error {
	for _, file := range files {
		err := figure.Write(file, auditWidth, auditHeight, func(c draw.Canvas) error {
			reached, err := reachPlot(r)
			if err != nil {
				return err
			}
			row := []*plot.Plot{reached}
			if len(r.Membership) > 0 {
				told, err := membershipPlot(r)
				if err != nil {
					return err
				}
				row = append(row, told)
			}
			figure.DrawRow(row, draw.Crop(c, plotMargin, -plotMargin, plotMargin, -plotMargin))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reachPlot has for each analyst a bar: the largest error of the middle run, as a share of its half-width.
func reachPlot(r attacks.Report) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("Intervals of %s, n = %s, k = %s", r.Mechanism, thousands(r.N), thousands(r.Questions)), "largest error, in half-widths of its interval (dashed: a miss)", "")
	var names []string
	most := 1.
	for i := len(r.Intervals) - 1; i >= 0; i-- { // the strongest on top
		a := r.Intervals[i]
		at := float64(len(names))
		names = append(names, fmt.Sprintf("%s (%d of %d missed)", a.Analyst, a.Missed, a.Runs))
		bar, err := plotter.NewPolygon(plotter.XYs{{X: 0, Y: at - .3}, {X: a.Reach, Y: at - .3}, {X: a.Reach, Y: at + .3}, {X: 0, Y: at + .3}})
		if err != nil {
			return nil, err
		}
		bar.Color = figure.Blue
		if a.Broken {
			bar.Color = figure.Vermillion
		}
		bar.LineStyle.Width = 0
		p.Add(bar)
		most = max(most, a.Reach)
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1.1*most, -.6, float64(len(names))-.4
	edge, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -.6}, {X: 1, Y: float64(len(names)) - .4}})
	if err != nil {
		return nil, err
	}
	edge.LineStyle = draw.LineStyle{Color: figure.Black, Width: 1.2, Dashes: figure.Dashed}
	p.Add(edge)
	return p, nil
}

// membershipPlot has for each attacker the share of held-out rows that he accuses, by the share of other rows, and what the noise allows.
func membershipPlot(r attacks.Report) (*plot.Plot, error) {
	p := figure.New("Who is in the holdout", "other rows that are accused (share)", "rows of the holdout that are accused (share)")
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	figure.Grid(p)
	chance, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		return nil, err
	}
	chance.LineStyle = draw.LineStyle{Color: figure.Grey, Width: .8}
	p.Add(chance)
	bounded := false
	for i, m := range r.Membership {
		if len(m.Bound) > 0 && !bounded {
			line, err := plotter.NewLine(pointsOf(m.Bound))
			if err != nil {
				return nil, err
			}
			line.LineStyle = draw.LineStyle{Color: figure.Black, Width: 1.2, Dashes: figure.Dashed}
			p.Add(line)
			p.Legend.Add("the noise allows", line)
			bounded = true
		}
		line, err := plotter.NewLine(pointsOf(m.Curve))
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		p.Legend.Add(m.Attacker, line)
	}
	p.Legend.Add("luck", chance)
	p.Legend.Left, p.Legend.Top = false, false
	p.Legend.XOffs, p.Legend.YOffs = -6, 4
	return p, nil
}

func pointsOf(curve []attacks.Point) (xy plotter.XYs) {
	for _, c := range curve {
		if !math.IsNaN(c.True) {
			xy = append(xy, plotter.XY{X: c.False, Y: c.True})
		}
	}
	return xy
}
