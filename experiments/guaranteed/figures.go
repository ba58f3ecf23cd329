package guaranteed

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/internal/figure"
)

// drawnLine is one line of both panels.
type drawnLine struct {
	curve  string
	legend string
	draw.LineStyle
}

// Thick lines are holdoutd's, thin ones the literature's: the others of the table lie between these.
var drawnLines = []drawnLine{
	{guessing, "guess_and_check, 20 tokens", draw.LineStyle{Color: figure.BluishGreen, Width: 2.2, Dashes: figure.Dashed}},
	{gaussian, "gaussian", draw.LineStyle{Color: figure.Blue, Width: 2.2}},
	{guessesFail, "guess_and_check, all fail", draw.LineStyle{Color: figure.ReddishPurple, Width: 2.2, Dashes: figure.DashDot}},
	{split, "splitting", draw.LineStyle{Color: figure.Orange, Width: 2.2, Dashes: figure.Long}},
	{rogers, "Rogers et al. 2020", draw.LineStyle{Color: figure.Black, Width: 0.9}},
	{jung, "Jung et al. 2020", draw.LineStyle{Color: figure.Black, Width: 0.9, Dashes: figure.Dashed}},
	{bassily, "Bassily et al. 2016", draw.LineStyle{Color: figure.Black, Width: 0.9, Dashes: figure.DashDot}},
	{dwork, "Dwork et al. 2015", draw.LineStyle{Color: figure.Black, Width: 0.9, Dashes: figure.Dotted}},
}

// drawnAttack is an attack in both panels.
type drawnAttack struct {
	rival, legend string
	color         color.Color
	shape         draw.GlyphDrawer
}

var drawnAttacks = []drawnAttack{
	{"gaussian", "attack breaks gaussian", figure.SkyBlue, draw.CircleGlyph{}},
	{"naive", "attack breaks a raw holdout", figure.Vermillion, draw.CrossGlyph{}},
}

// mostDrawn is where the panels end.
const mostDrawn = 1e9

func drawPanels(counted, theories []point, cells []*cell) ([]*plot.Plot, error) {
	var row []*plot.Plot
	for i, w := range widths {
		p := figure.New("All answers within "+named(w), "units in the holdout, n", "questions")
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = figure.CountTicks, figure.CountTicks
		first := i == 0 // the legend is for both
		for _, l := range drawnLines {
			if err := addLine(p, l, w, counted, first); err != nil {
				return nil, err
			}
		}
		for _, a := range drawnAttacks {
			if err := addAttack(p, a, w, theories, cells, first); err != nil {
				return nil, err
			}
		}
		p.Y.Min, p.Y.Max = 0.8, mostDrawn
		p.Legend.Top, p.Legend.Left = true, true
		p.Legend.TextStyle.Font.Size = 8.5
		row = append(row, p)
	}
	return row, nil
}

// addLine draws a curve as far as the panel goes.
func addLine(p *plot.Plot, l drawnLine, w float64, counted []point, named bool) error {
	var points plotter.XYs
	for _, c := range counted {
		if c.name != l.curve || c.w != w || !c.known || c.value < 1 {
			continue
		}
		next := plotter.XY{X: float64(c.n), Y: c.value}
		if next.Y > mostDrawn {
			// To the edge, on the line to the next point: where that is beyond what is counted it is steeper still.
			if len(points) > 0 {
				last := points[len(points)-1]
				part := math.Log(mostDrawn/last.Y) / math.Log(next.Y/last.Y)
				points = append(points, plotter.XY{X: last.X * math.Pow(next.X/last.X, part), Y: mostDrawn})
			}
			break
		}
		points = append(points, next)
	}
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = l.LineStyle
	p.Add(line)
	if named {
		p.Legend.Add(l.legend, line)
	}
	return nil
}

// addAttack draws where an attack breaks the half-width: a pale line by theory, and marks where it was measured.
func addAttack(p *plot.Plot, a drawnAttack, w float64, theories []point, cells []*cell, named bool) error {
	var points, marks plotter.XYs
	for _, t := range theories {
		if t.name == a.rival && t.w == w && t.known {
			points = append(points, plotter.XY{X: float64(t.n), Y: t.value})
		}
	}
	for _, c := range cells {
		if c.rival.Name == a.rival && c.w == w && !c.promised && len(c.runs) > 0 {
			marks = append(marks, plotter.XY{X: float64(c.n), Y: c.row().Mean})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: a.color, Width: 1, Dashes: []vg.Length{2, 2}}
	scatter, err := plotter.NewScatter(marks)
	if err != nil {
		return err
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: a.color, Radius: 3.5, Shape: a.shape}
	p.Add(line)
	if len(marks) > 0 {
		p.Add(scatter)
	}
	if named {
		p.Legend.Add(a.legend, line, scatter)
	}
	return nil
}
