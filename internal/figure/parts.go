package figure

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Band is the area between two curves over the same places, in a light tint of series i's colour: it goes under lines.
func Band(i int, x, low, high []float64) (*plotter.Polygon, error) {
	var around plotter.XYs
	for j := range x {
		around = append(around, plotter.XY{X: x[j], Y: high[j]})
	}
	for j := len(x) - 1; j >= 0; j-- {
		around = append(around, plotter.XY{X: x[j], Y: low[j]})
	}
	band, err := plotter.NewPolygon(around)
	if err != nil {
		return nil, fmt.Errorf("figure: band: %w", err)
	}
	r, g, b, _ := styles[i%len(styles)].color.RGBA()
	band.Color = color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 60}
	band.LineStyle.Width = 0
	return band, nil
}

// Label is text beside a point, on white, so that lines do not cross it. Offset is that of its upper left corner.
type Label struct {
	plotter.XY
	Text   string
	Color  color.Color
	Offset vg.Point
}

// Plot implements plot.Plotter.
func (l *Label) Plot(c draw.Canvas, p *plot.Plot) {
	style := Text(10.5)
	style.Color, style.YAlign = l.Color, draw.YTop
	x, y := p.Transforms(&c)
	at := vg.Point{X: x(l.X), Y: y(l.Y)}.Add(l.Offset)
	size := style.Rectangle(l.Text).Size()
	c.SetColor(color.White)
	c.Fill(vg.Rectangle{Min: vg.Point{X: at.X - 1, Y: at.Y - size.Y}, Max: vg.Point{X: at.X + size.X + 1, Y: at.Y}}.Path())
	c.FillText(style, at, l.Text)
}

// Legend is one that stands beside a plot, from its upper left corner down.
func Legend() plot.Legend {
	l := plot.NewLegend()
	l.TextStyle = Text(9.5)
	l.Top, l.Left = true, true
	l.ThumbnailWidth = 30
	l.Padding = 4
	return l
}
