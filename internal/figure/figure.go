// Package figure is the common style of figures: colours, dashes and marks that are told apart by any eye and in grey
// print, ticks of logarithmic axes that read well, labels in the middle of their axes, and files in SVG and PNG.
package figure

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// New is an empty figure with a title and labels of its axes.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font = Text(12).Font
	p.Title.Padding = 8
	p.Legend.TextStyle.Font = Text(9.5).Font
	p.Legend.Padding = 3
	p.Legend.ThumbnailWidth = 32
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = Text(10.5).Font
		axis.Label.Padding = 6
		axis.Tick.Label.Font = Text(9).Font
	}
	return p
}

// Grid adds pale lines at the labelled ticks.
func Grid(p *plot.Plot) {
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: Pale, Width: 0.5}
	grid.Horizontal = grid.Vertical
	p.Add(grid)
}

// labels of the axes, taken off a plot while gonum draws it: it takes the middle of a logarithmic axis for that of a linear one, and
// so leaves room at its end for a label that is not there.
type labels struct{ x, y string }

func takeLabels(p *plot.Plot) labels {
	l := labels{p.X.Label.Text, p.Y.Label.Text}
	p.X.Label.Text, p.Y.Label.Text = "", ""
	return l
}

func (l labels) giveBack(p *plot.Plot) { p.X.Label.Text, p.Y.Label.Text = l.x, l.y }

// room is how much the labels need at the left and at the bottom.
func (l labels) room(p *plot.Plot) (left, bottom vg.Length) {
	if l.x != "" {
		bottom = p.X.Label.TextStyle.Height(l.x) + p.X.Label.Padding
	}
	if l.y != "" {
		left = p.Y.Label.TextStyle.Height(l.y) + p.Y.Label.Padding
	}
	return left, bottom
}

// write puts the labels beside the middles of the area where data are, left of and below the canvas that the plot was drawn on.
func (l labels) write(p *plot.Plot, c draw.Canvas) {
	left, bottom := l.room(p)
	data := p.DataCanvas(c)
	x := p.X.Label.TextStyle
	x.XAlign, x.YAlign = draw.XCenter, draw.YBottom
	c.FillText(x, vg.Point{X: data.Center().X, Y: c.Min.Y - bottom + x.FontExtents().Descent}, l.x)
	y := p.Y.Label.TextStyle
	y.Rotation = math.Pi / 2
	y.XAlign, y.YAlign = draw.XCenter, draw.YTop
	c.FillText(y, vg.Point{X: c.Min.X - left, Y: data.Center().Y}, l.y)
}

// Draw draws a plot with its labels in the middle of their axes.
func Draw(p *plot.Plot, c draw.Canvas) {
	l := takeLabels(p)
	defer l.giveBack(p)
	settle(&p.X)
	settle(&p.Y)
	left, bottom := l.room(p)
	c = draw.Crop(c, left, 0, bottom, 0)
	p.Draw(c)
	l.write(p, c)
}

// DrawRow draws plots side by side, with their axes in line.
func DrawRow(row []*plot.Plot, c draw.Canvas) {
	taken := make([]labels, len(row))
	var left, bottom vg.Length
	for i, p := range row {
		taken[i] = takeLabels(p)
		defer taken[i].giveBack(p)
		settle(&p.X)
		settle(&p.Y)
		l, b := taken[i].room(p)
		left, bottom = max(left, l), max(bottom, b)
	}
	const gap = 16
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: gap + left}
	for i, c := range plot.Align([][]*plot.Plot{row}, tiles, draw.Crop(c, left, 0, bottom, 0))[0] {
		row[i].Draw(c)
		taken[i].write(row[i], c)
	}
}
