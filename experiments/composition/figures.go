package composition

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// drawn are the methods of the figures: Rényi's present conversion lies between zCDP and the best composition, the distribution of losses on the latter, and zCDP on the former where questions are many.
var drawn = []struct {
	method, legend string
	draw.LineStyle
}{
	{gaussianGDP, "Gaussian noise, exactly", draw.LineStyle{Color: figure.Blue, Width: 2}},
	{gaussianZCDP, "Gaussian noise, zCDP", draw.LineStyle{Color: figure.SkyBlue, Width: 1.6, Dashes: figure.Long}},
	{optimal, "Laplace noise, best composition", draw.LineStyle{Color: figure.BluishGreen, Width: 2}},
	{renyi, "Laplace noise, Rényi divergence", draw.LineStyle{Color: figure.ReddishPurple, Width: 1.6, Dashes: figure.DashDots}},
	{advanced, "Laplace noise, advanced composition", draw.LineStyle{Color: figure.Vermillion, Width: 2, Dashes: figure.Dashed}},
	{basic, "Laplace noise, basic composition", draw.LineStyle{Color: figure.Black, Width: 1.2}},
}

func figures(plans []plan, games []*game) []run.Figure {
	return []run.Figure{
		{Name: "factor", Caption: "How many times less noise than basic composition asks for, by account, against the number of questions, for a total epsilon of 1 and delta of 1e-9; for Laplace noise that is how many times as much epsilon each question may have. " +
			"The lecture's example, 35 times at 50,000 questions, is marked. Below 1 an account is worse than basic composition.", Draw: func() (*plot.Plot, error) { return drawFactors(plans) }},
		{Name: "noise", Caption: fmt.Sprintf("Standard deviation of the noise of each answer, the mean of numbers in [0,1] over %s rows, against the number of questions, for a total epsilon of 1 and delta of 1e-6. "+
			"The dotted line is the largest standard error of such a mean itself.", figure.Thousands(rows)), Draw: func() (*plot.Plot, error) { return drawNoise(plans) }},
		{Name: "delta", Caption: "Delta of 100 answers with Laplace noise, each of epsilon 0.1, against epsilon: what each account says, and what is measured, with 95% intervals: by the losses that were drawn (circles) and by an attack that knows nothing of the law (crosses).",
			Draw: func() (*plot.Plot, error) { return drawDeltas(games) }},
	}
}

// lines draws a value of every drawn method against k.
func lines(p *plot.Plot, plans []plan, t total, value func(p plan, method string) float64) error {
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = figure.CountTicks
	for _, d := range drawn {
		var points plotter.XYs
		for _, of := range plans {
			if of.known && of.total == t {
				points = append(points, plotter.XY{X: float64(of.k), Y: value(of, d.method)})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.LineStyle = d.LineStyle
		p.Add(line)
		p.Legend.Add(d.legend, line)
	}
	p.Legend.Top, p.Legend.Left = true, true
	return nil
}

func drawFactors(plans []plan) (*plot.Plot, error) {
	p := figure.New("Times less noise than by basic composition; total epsilon 1, delta 1e-9", "questions", "times")
	err := lines(p, plans, lecture, func(of plan, method string) float64 { return of.of(basic).SD / of.of(method).SD })
	if err != nil {
		return nil, err
	}
	p.Y.Tick.Marker = figure.LogTicks
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, 1e6, 0.1, 500
	factor := firstTerm(lecture, lectureQuestions) / lectureBasic
	for _, to := range []plotter.XYs{{{X: lectureQuestions, Y: p.Y.Min}, {X: lectureQuestions, Y: factor}}, {{X: p.X.Min, Y: factor}, {X: lectureQuestions, Y: factor}}} {
		if err := addGuide(p, to, figure.Grey); err != nil {
			return nil, err
		}
	}
	mark, err := plotter.NewScatter(plotter.XYs{{X: lectureQuestions, Y: factor}})
	if err != nil {
		return nil, err
	}
	mark.GlyphStyle = draw.GlyphStyle{Color: figure.Black, Radius: 4.5, Shape: draw.CircleGlyph{}}
	p.Add(mark, &figure.Label{XY: plotter.XY{X: lectureQuestions, Y: factor}, Text: "35 times at 50,000", Color: figure.Black, Offset: vg.Point{X: 8, Y: -8}})
	if first := planOf(plans, lecture, 1).of(advanced).First; first > 0 {
		p.Add(&figure.Label{XY: plotter.XY{X: float64(first), Y: 1}, Text: fmt.Sprintf("advanced is better from %d", first), Color: figure.Vermillion, Offset: vg.Point{X: 4, Y: -6}})
	}
	return p, nil
}

func addGuide(p *plot.Plot, points plotter.XYs, c color.Color) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: c, Width: 1, Dashes: figure.Dotted}
	p.Add(line)
	return nil
}

func drawNoise(plans []plan) (*plot.Plot, error) {
	p := figure.New(fmt.Sprintf("Noise of an answer over %s rows; total epsilon 1, delta 1e-6", figure.Thousands(rows)), "questions", "standard deviation of the noise")
	if err := lines(p, plans, usual, func(of plan, method string) float64 { return of.of(method).SD }); err != nil {
		return nil, err
	}
	p.Y.Tick.Marker = powersOfTen
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, 1e6, 1e-5, 100
	own := 0.5 / math.Sqrt(rows)
	return p, addGuide(p, plotter.XYs{{X: p.X.Min, Y: own}, {X: p.X.Max, Y: own}}, figure.Black)
}

// powersOfTen labels 0.1, 0.01 and so on.
var powersOfTen = plot.TickerFunc(func(low, high float64) []plot.Tick {
	ticks := figure.LogTicks(low, high)
	for i, t := range ticks {
		if exponent := math.Log10(t.Value); math.Abs(exponent-math.Round(exponent)) > 1e-9 {
			ticks[i].Label = ""
		} else {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', 3, 64)
		}
	}
	return ticks
})

// drawnGame is the one of the figure of deltas, and drawnLeast where that ends.
const (
	drawnQuestions = 100
	drawnEpsilon   = 0.1
	drawnMost      = 6.0
	drawnLeast     = 1e-7
)

// drawDeltas draws the accounts of one game over a range of epsilons, and what is measured.
func drawDeltas(games []*game) (*plot.Plot, error) {
	p := figure.New("Delta of 100 answers of epsilon 0.1", "epsilon of all", "delta")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powersOfTen
	grid := game{mechanism: laplace, k: drawnQuestions, each: drawnEpsilon}
	for eps := 0.0; eps <= drawnMost; eps += 0.05 {
		grid.at = append(grid.at, eps)
	}
	law, err := laplaceLosses(grid.each, grid.k)
	if err != nil {
		return nil, err
	}
	pure, rho, spent := account.Pure{Epsilon: grid.each, K: grid.k}, zcdp(grid.each, grid.k), laplaceRDP(grid.each, grid.k)
	for _, c := range []struct {
		legend string
		delta  func(eps float64) float64
		draw.LineStyle
	}{
		{"advanced composition", func(eps float64) float64 { return leastSlack(pure, eps) }, draw.LineStyle{Color: figure.Vermillion, Width: 2, Dashes: figure.Dashed}},
		{"Rényi divergence, first conversion", func(eps float64) float64 { return firstDelta(spent, eps) }, draw.LineStyle{Color: figure.Orange, Width: 1.6, Dashes: figure.DashDot}},
		{"zCDP", rho.Delta, draw.LineStyle{Color: figure.SkyBlue, Width: 1.6, Dashes: figure.Long}},
		{"Rényi divergence", func(eps float64) float64 {
			delta, _ := spent.Delta(eps)
			return delta
		}, draw.LineStyle{Color: figure.ReddishPurple, Width: 1.6, Dashes: figure.DashDots}},
		{"best composition of private answers", pure.OptimalDelta, draw.LineStyle{Color: figure.BluishGreen, Width: 1.6}},
		{"distribution of losses", law.Delta, draw.LineStyle{Color: figure.Black, Width: 1, Dashes: figure.Dotted}},
	} {
		var points plotter.XYs
		for _, eps := range grid.at {
			if delta := min(1, c.delta(eps)); delta >= drawnLeast {
				points = append(points, plotter.XY{X: eps, Y: delta})
			}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = c.LineStyle
		p.Add(line)
		p.Legend.Add(c.legend, line)
	}
	for _, g := range games {
		if g.mechanism == laplace && g.k == drawnQuestions && g.each == drawnEpsilon && g.seen.Runs > 0 {
			if err := addMeasured(p, g); err != nil {
				return nil, err
			}
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, drawnMost, drawnLeast, 1
	p.Legend.Top = true
	return p, nil
}

func addMeasured(p *plot.Plot, g *game) error {
	var byLaw, byAttack figure.Points
	for i, eps := range g.at {
		if s := g.byLaw(i); s.Low > drawnLeast {
			byLaw.Add(eps, s.Mean, s.Low, s.High)
		}
		if s := g.byAttack(i); s.Low > drawnLeast {
			byAttack.Add(eps, s.Mean, s.Low, s.High)
		}
	}
	for _, m := range []struct {
		legend string
		of     figure.Points
		draw.GlyphStyle
	}{
		{"measured, by the losses", byLaw, draw.GlyphStyle{Color: figure.Blue, Radius: 3.5, Shape: draw.CircleGlyph{}}},
		{"measured, by an attack", byAttack, draw.GlyphStyle{Color: figure.Black, Radius: 4, Shape: draw.CrossGlyph{}}},
	} {
		if len(m.of.XYs) == 0 {
			continue
		}
		marks, err := plotter.NewScatter(m.of.XYs)
		if err != nil {
			return err
		}
		bars, err := plotter.NewYErrorBars(m.of)
		if err != nil {
			return err
		}
		marks.GlyphStyle = m.GlyphStyle
		bars.LineStyle = draw.LineStyle{Color: m.Color, Width: vg.Length(1)}
		p.Add(bars, marks)
		p.Legend.Add(m.legend, marks)
	}
	return nil
}
