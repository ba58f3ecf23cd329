package attack

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/internal/figure"
)

// Size of the figure.
const (
	figureWidth  = 10.5 * vg.Inch
	figureHeight = 4.4 * vg.Inch
)

// Draw writes the report as a figure into an .svg or .png file: how far analysts get with the intervals, and how well units are told from strangers.
func (r Report) Draw(file string) error {
	reach, err := r.drawReach()
	if err != nil {
		return err
	}
	told, err := r.drawTold()
	if err != nil {
		return err
	}
	return figure.Write(file, figureWidth, figureHeight, func(c draw.Canvas) error {
		figure.DrawRow([]*plot.Plot{reach, told}, c)
		return nil
	})
}

// drawReach has a row for each analyst: the largest error of a run as a part of its half-width, from the least to the largest run, with a mark at the median. Without intervals it is the error itself.
func (r Report) drawReach() (*plot.Plot, error) {
	promised := promisesIntervals(r.Guarantee)
	p := figure.New("Largest error of a run, by analyst", "as a part of the interval's half-width", "")
	if !promised {
		p.X.Label.Text = "mean over runs; no interval is promised"
	}
	var names []string
	for _, i := range r.Intervals {
		name := fmt.Sprintf("%s (%d of %d)", i.Attack, i.Missed.Events, i.Missed.Of)
		if !promised {
			name = i.Attack
		}
		names = append(names, name)
	}
	farthest := 0.0
	for row, i := range r.Intervals {
		y := figure.RowOf(row, len(names))
		from, middle, to := i.Reach[0], i.Reach[2], i.Reach[4]
		if !promised {
			from, middle, to = 0, i.Error, i.Error
		}
		line, err := plotter.NewLine(plotter.XYs{{X: from, Y: y}, {X: to, Y: y}})
		if err != nil {
			return nil, fmt.Errorf("attack: figure: %w", err)
		}
		line.LineStyle = figure.Line(0)
		mark, err := plotter.NewScatter(plotter.XYs{{X: middle, Y: y}})
		if err != nil {
			return nil, fmt.Errorf("attack: figure: %w", err)
		}
		mark.GlyphStyle = figure.Mark(0)
		p.Add(line, mark)
		farthest = max(farthest, to)
	}
	p.Y.Tick.Marker = figure.RowTicks(names)
	p.Y.Min, p.Y.Max = -0.7, float64(len(names))-0.3
	p.X.Min, p.X.Max = 0, max(1.1, 1.05*farthest)
	if promised {
		limit := figure.Line(5)
		limit.Dashes = nil
		if err := figure.Upright(p, 1, limit, ""); err != nil {
			return nil, err
		}
	} else {
		p.X.Max = max(0.01, 1.05*farthest)
	}
	return p, nil
}

// drawTold has the shares of members found and of strangers accused, of both games about who is in the holdout, under what is promised.
func (r Report) drawTold() (*plot.Plot, error) {
	p := figure.New("Who is in the holdout?", "strangers accused", "members found")
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	p.Legend.Left, p.Legend.Top = false, false
	add := func(i int, name string, points plotter.XYs) error {
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("attack: figure: %w", err)
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		p.Legend.Add(name, line)
		return nil
	}
	if t := r.Tracing; t != nil {
		var points plotter.XYs
		for j, x := range t.Accused {
			points = append(points, plotter.XY{X: x, Y: t.Found[j]})
		}
		if err := add(1, fmt.Sprintf("all units, by %s answers", figure.Thousands(t.Questions)), points); err != nil {
			return nil, err
		}
	}
	if o := r.OneRow; o != nil {
		if err := add(0, fmt.Sprintf("%s rows, all others known: %s %.2f", figure.Thousands(o.Group), o.Measure, o.Measured), curve(o.with, o.without)); err != nil {
			return nil, err
		}
		var limit plotter.XYs
		for x := 0.0; x <= 1.0001; x += .01 {
			y := min(1, x+o.Promised)
			if !(o.Measure == "advantage") {
				y = 1 - distuv.UnitNormal.CDF(distuv.UnitNormal.Quantile(1-min(1, x))-o.Promised)
			}
			limit = append(limit, plotter.XY{X: min(1, x), Y: y})
		}
		if err := add(5, fmt.Sprintf("promised of these: at most %s %.2f", o.Measure, o.Promised), limit); err != nil {
			return nil, err
		}
	}
	guess, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		return nil, fmt.Errorf("attack: figure: %w", err)
	}
	guess.LineStyle = draw.LineStyle{Color: figure.Grey, Width: 0.8, Dashes: figure.Dotted}
	p.Add(guess)
	p.Legend.Add("a guess", guess)
	return p, nil
}

// curvePoints of a measured curve are enough for the eye.
const curvePoints = 200

// curve are the shares beyond each limit, of runs without and with the rows.
func curve(with, without []float64) plotter.XYs {
	limits := slices.Concat(with, without)
	slices.SortFunc(limits, func(a, b float64) int { return cmp.Compare(b, a) })
	points := plotter.XYs{{X: 0, Y: 0}}
	step := max(1, len(limits)/curvePoints)
	for i := 0; i < len(limits); i += step {
		points = append(points, plotter.XY{X: above(without, math.Nextafter(limits[i], math.Inf(-1))), Y: above(with, math.Nextafter(limits[i], math.Inf(-1)))})
	}
	return append(points, plotter.XY{X: 1, Y: 1})
}
