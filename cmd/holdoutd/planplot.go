//go:build !nofigures

package main

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// curve is one line of the figure; the legend lists them in this order, about that of the lines at their right ends.
type curve struct {
	method string
	label  string
	color  color.Color
	width  vg.Length
	dashes []vg.Length
}

const attackCurve = "attack" // no method: what the strongest attack reaches

var curves = []curve{
	{compare.MethodDFHPRR, "DFHPRR 2015", figure.Orange, 1.2, figure.DashDot},
	{compare.MethodBNSSSU, "BNSSSU 2016", figure.Orange, 1.2, figure.Solid},
	{compare.MethodXR, "Xu, Raginsky 2017", figure.ReddishPurple, 1.2, figure.DashDot},
	{compare.MethodRZ, "Russo, Zou 2016", figure.ReddishPurple, 1.2, figure.Dashed},
	{compare.MethodJLNRSS20, "JLNRSS 2020", figure.Vermillion, 1.2, figure.Dotted},
	{compare.MethodJLNRSSPlus, "JLNRSS, free constants", figure.Vermillion, 1.2, figure.Dashed},
	{compare.MethodJLNRSSGDP, "JLNRSS, exact GDP", figure.Vermillion, 1.6, figure.Solid},
	{compare.MethodSplitting, "sample splitting", figure.Black, 1.6, figure.Long},
	{compare.MethodTanh, "tanh transfer", figure.SkyBlue, 1.6, figure.Solid},
	{compare.MethodConstant, "adaptive Hoeffding", figure.Blue, 1.6, figure.Dashed},
	{compare.MethodScheduled, "… with noise schedule", figure.Blue, 2.6, figure.Solid},
	{compare.MethodRounds, "… in %s", figure.Blue, 1.6, figure.Dotted},
	{compare.MethodThresholdout, "Thresholdout*", figure.BluishGreen, 1.6, figure.Dashed},
	{compare.MethodGuessCheck, "guess and check*", figure.BluishGreen, 2.2, figure.Solid},
	{attackCurve, "best attack on the schedule", figure.Grey, 1.6, figure.DashDots},
	{compare.MethodNonAdaptive, "non-adaptive batch", figure.Grey, 1.6, figure.Solid},
}

const (
	plotWidth    = 9.6 * vg.Inch
	plotHeight   = 5.6 * vg.Inch
	legendWidth  = 2.3 * vg.Inch
	plotMargin   = 0.12 * vg.Inch
	pointsDecade = 10 // of a curve; lines between them are straight in logarithms
	roundsDrawn  = 5  // where the request names none
)

// checkPlot refuses a file that no figure can be written into.
func checkPlot(file string) error {
	if figure.CheckFile(file) != nil {
		return misuse("--plot: %s is neither an .svg nor a .png file", file)
	}
	return nil
}

// writePlots draws half-width against number of questions, the same figure into each file.
func writePlots(files []string, r compare.Request, report compare.Report) error {
	if len(files) == 0 {
		return nil
	}
	if r.Rounds == 0 {
		r.Rounds = roundsDrawn
	}
	heights := map[string]plotter.XYs{} // by method
	for _, line := range curves {
		if !drawn(line, r) {
			continue
		}
		var err error
		if heights[line.method], err = points(line.method, r, mostQuestions(report)); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := figure.Write(file, plotWidth, plotHeight, func(c draw.Canvas) error { return drawPlan(c, r, report, heights) }); err != nil {
			return err
		}
	}
	return nil
}

func drawPlan(c draw.Canvas, r compare.Request, report compare.Report, heights map[string]plotter.XYs) error {
	p := planAxes(report, mostQuestions(report))
	legend := figure.Legend()
	low := 1.0
	for _, line := range curves {
		points := heights[line.method]
		if len(points) < 2 {
			continue
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		l.LineStyle = draw.LineStyle{Color: line.color, Width: line.width, Dashes: line.dashes}
		p.Add(l)
		label := line.label
		if line.method == compare.MethodRounds {
			label = fmt.Sprintf(label, strconv.FormatInt(r.Rounds, 10)+" rounds")
			if r.Rounds == 1 {
				label = fmt.Sprintf(line.label, "1 round")
			}
		}
		legend.Add(label, l)
		low = min(low, points[0].Y)
	}
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(low)*3)/3) // a third of a decade
	if report.HalfWidth > 0 {
		if err := mark(p, report); err != nil {
			return err
		}
	}
	left := draw.Crop(c, plotMargin, -legendWidth, plotMargin, -plotMargin)
	figure.Draw(p, left)
	right := draw.Crop(c, plotWidth-legendWidth+plotMargin, -plotMargin, plotMargin, -plotMargin)
	legend.Draw(draw.Crop(right, 0, 0, 0, -p.Title.TextStyle.Font.Size-p.Title.Padding))
	if r.Training > 0 {
		style := legend.TextStyle
		style.Font.Size = 8
		style.YAlign = draw.YBottom
		right.FillText(style, right.Min, "* while training and\n  holdout agree")
	}
	return nil
}

// drawn: which curves belong into the figure of this request.
func drawn(line curve, r compare.Request) bool {
	switch line.method {
	case compare.MethodThresholdout, compare.MethodGuessCheck:
		return r.Training > 0 && !r.Published
	case compare.MethodTanh, compare.MethodConstant, compare.MethodScheduled, compare.MethodRounds, attackCurve:
		return !r.Published // the attack is on the scheduled mechanism
	}
	return true
}

// mostQuestions is the right end: a power of ten with room beyond the questions asked for and those within reach.
func mostQuestions(report compare.Report) float64 {
	most := float64(report.Questions)
	for _, m := range report.Methods {
		if m.QuestionsWithin != nil && m.Assumes == compare.AssumesNothing {
			most = max(most, float64(*m.QuestionsWithin))
		}
	}
	return math.Pow(10, min(12, max(3, math.Ceil(math.Log10(4*most)))))
}

// points of a curve, down to where it leaves the figure at half-width 1.
func points(method string, r compare.Request, most float64) (plotter.XYs, error) {
	var points plotter.XYs
	last := int64(0)
	steps := int(math.Round(math.Log10(most))) * pointsDecade
	for i := range steps + 1 {
		k := int64(math.Round(math.Pow(10, float64(i)/pointsDecade)))
		if k == last || method == compare.MethodRounds && k < r.Rounds {
			continue
		}
		last = k
		w, err := heightAt(method, r, k)
		if err != nil {
			return nil, err
		}
		if w > 1 {
			if n := len(points); n > 0 { // up to the upper edge
				before := points[n-1]
				slope := math.Log(w/before.Y) / math.Log(float64(k)/before.X)
				if !math.IsInf(w, 0) {
					points = append(points, plotter.XY{X: before.X * math.Exp(-math.Log(before.Y)/slope), Y: 1})
				}
			}
			break
		}
		points = append(points, plotter.XY{X: float64(k), Y: w})
	}
	return points, nil
}

func heightAt(method string, r compare.Request, k int64) (float64, error) {
	if method == attackCurve {
		g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: r.N, Questions: k, Confidence: r.Confidence})
		if err != nil {
			return 0, err
		}
		promise, _ := g.Promised(0)
		return bounds.Attack(r.N, k, 1-r.Confidence, promise.Sigma)
	}
	return compare.HalfWidthOf(method, r, k)
}

func planAxes(report compare.Report, most float64) *plot.Plot {
	p := figure.New(fmt.Sprintf("Half-width of intervals that hold together at %s, holdout of %s units", percent(report.Confidence), thousands(report.N)),
		"number of questions, each chosen after seeing the answers before", "half-width, as a part of the query's range")
	p.X.Min, p.X.Max, p.Y.Max = 1, most, 1
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Scale = plot.LogScale{}
		axis.Padding = 0
		axis.LineStyle.Width = 0.6
		axis.Tick.LineStyle.Width = 0.6
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.CountTicks, figure.PlusMinusTicks
	figure.Grid(p)
	return p
}

// mark draws the half-width asked for and how many questions the notable methods answer within it.
func mark(p *plot.Plot, report compare.Report) error {
	line, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: report.HalfWidth}, {X: p.X.Max, Y: report.HalfWidth}})
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: figure.Grey, Width: 0.6}
	p.Add(line)
	for _, m := range report.Methods {
		label, notable := map[string]figure.Label{
			compare.MethodSplitting: {Color: figure.Black, Offset: vg.Point{X: 5, Y: -5}},
			compare.MethodJLNRSSGDP: {Color: figure.Vermillion, Offset: vg.Point{X: 5, Y: -5}},
			compare.MethodScheduled: {Color: figure.Blue, Offset: vg.Point{X: -22, Y: 28}}, // below are other lines
		}[m.Method]
		if !notable || m.QuestionsWithin == nil || *m.QuestionsWithin < 1 {
			continue
		}
		at := plotter.XYs{{X: float64(*m.QuestionsWithin), Y: report.HalfWidth}}
		dot, err := plotter.NewScatter(at)
		if err != nil {
			return err
		}
		dot.GlyphStyle = draw.GlyphStyle{Color: label.Color, Radius: 3, Shape: draw.CircleGlyph{}}
		label.XY, label.Text = at[0], thousands(*m.QuestionsWithin)
		p.Add(dot, &label)
	}
	return nil
}
