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

// RowTicks label the whole numbers from 0 up, the first name at the top: for figures whose rows are names. RowOf is where a row is.
func RowTicks(names []string) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(names))
	for i, name := range names {
		ticks[i] = plot.Tick{Value: RowOf(i, len(names)), Label: name}
	}
	return ticks
}

// RowOf is the height of row i of so many, of which the first is at the top.
func RowOf(i, rows int) float64 { return float64(rows - 1 - i) }

// Upright adds a vertical line over the height of the figure, which has to be known, with a name for the legend.
func Upright(p *plot.Plot, x float64, style draw.LineStyle, name string) error {
	line, err := plotter.NewLine(plotter.XYs{{X: x, Y: p.Y.Min}, {X: x, Y: p.Y.Max}})
	if err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	line.LineStyle = style
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

// Bar is a filled rectangle from x = from to x = to around a row, in series i's colour, with a number written behind its end.
type Bar struct {
	Series   int
	From, To float64
	Row      float64
	Half     float64 // of its height, in rows
	Number   string
	Beyond   float64 // the number stands behind this place too
}

// Plot implements plot.Plotter.
func (b *Bar) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	c.SetColor(Line(b.Series).Color)
	c.Fill(vg.Rectangle{Min: vg.Point{X: x(b.From), Y: y(b.Row - b.Half)}, Max: vg.Point{X: x(b.To), Y: y(b.Row + b.Half)}}.Path())
	style := Text(10)
	style.YAlign = draw.YCenter
	c.FillText(style, vg.Point{X: x(max(b.To, b.Beyond)) + 4, Y: y(b.Row)}, b.Number)
}
