package figure

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars are one of several series of bars that stand side by side at the places 0, 1, 2 … Each bar has its number above it, so that one is read that is too small to be seen.
type Bars struct {
	Series, Of int       // which of how many
	Style      int       // whose colour it has
	Width      vg.Length // of a bar
	Number     string    // how the number is printed, such as "%.1f"
}

// AddBars draws the values, and names them in the legend where they have a name.
func AddBars(p *plot.Plot, b Bars, name string, values []float64) error {
	bars, err := plotter.NewBarChart(plotter.Values(values), b.Width)
	if err != nil {
		return err
	}
	bars.Offset = b.Width * vg.Length(float64(b.Series)-float64(b.Of-1)/2)
	bars.Color = Line(b.Style).Color
	bars.LineStyle.Width = 0
	labels := &plotter.Labels{Offset: vg.Point{X: bars.Offset, Y: 3}}
	for i, v := range values {
		labels.XYs = append(labels.XYs, plotter.XY{X: float64(i), Y: v})
		labels.Labels = append(labels.Labels, fmt.Sprintf(b.Number, v))
		style := Text(10.5)
		style.XAlign = draw.XCenter
		labels.TextStyle = append(labels.TextStyle, style)
	}
	p.Add(bars, labels)
	if name != "" {
		p.Legend.Add(name, bars)
	}
	return nil
}

// Dash is a short level line at a place: what a bar there should have been.
type Dash struct {
	plotter.XY
	Width vg.Length
}

// Plot implements plot.Plotter.
func (d *Dash) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := vg.Point{X: x(d.X), Y: y(d.Y)}
	c.StrokeLine2(draw.LineStyle{Color: Black, Width: 1.6}, at.X-d.Width/2, at.Y, at.X+d.Width/2, at.Y)
}

// Thumbnail implements plot.Thumbnailer.
func (d *Dash) Thumbnail(c *draw.Canvas) {
	y := c.Center().Y
	c.StrokeLine2(draw.LineStyle{Color: Black, Width: 1.6}, c.Min.X, y, c.Max.X, y)
}

// Shade fills the area right of a value in a pale colour: where something is so that should not be.
type Shade struct{ From float64 }

// Plot implements plot.Plotter.
func (s Shade) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	c.SetColor(color.NRGBA{213, 94, 0, 28})
	c.Fill(vg.Rectangle{Min: vg.Point{X: x(s.From), Y: c.Min.Y}, Max: c.Max}.Path())
}
