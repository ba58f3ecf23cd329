// Package figure is the common style of figures: colours, dashes and marks that are told apart by any eye and in grey
// print, ticks of logarithmic axes that read well, and files in SVG and PNG.
package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const dpi = 200

// style of one series.
type style struct {
	color  color.Color
	dashes []vg.Length
	shape  draw.GlyphDrawer
}

// The colours of Okabe and Ito, each with dashes and a mark of its own.
var styles = []style{
	{color.RGBA{0, 114, 178, 255}, nil, draw.CircleGlyph{}},
	{color.RGBA{0, 158, 115, 255}, []vg.Length{7, 3}, draw.TriangleGlyph{}},
	{color.RGBA{230, 159, 0, 255}, []vg.Length{8, 3, 1.5, 3}, draw.SquareGlyph{}},
	{color.RGBA{204, 121, 167, 255}, []vg.Length{1.5, 2.5}, draw.RingGlyph{}},
	{color.RGBA{86, 180, 233, 255}, []vg.Length{14, 4}, draw.BoxGlyph{}},
	{color.RGBA{213, 94, 0, 255}, []vg.Length{8, 3, 1.5, 2.5, 1.5, 3}, draw.CrossGlyph{}},
}

// Line is the style of the line of series i.
func Line(i int) draw.LineStyle {
	s := styles[i%len(styles)]
	return draw.LineStyle{Color: s.color, Width: 1.8, Dashes: s.dashes}
}

// Mark is the style of the marks of series i.
func Mark(i int) draw.GlyphStyle {
	s := styles[i%len(styles)]
	return draw.GlyphStyle{Color: s.color, Radius: 3.5, Shape: s.shape}
}

// New is an empty figure with a title and labels of its axes.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font = font.From(sans, 12)
	p.Title.Padding = 8
	p.Legend.TextStyle.Font = font.From(sans, 9.5)
	p.Legend.Padding = 3
	p.Legend.ThumbnailWidth = 32
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = font.From(sans, 10.5)
		axis.Label.Padding = 6
		axis.Tick.Label.Font = font.From(sans, 9)
	}
	return p
}

// LogTicks labels 1, 2 and 5 times the powers of ten.
var LogTicks = plot.TickerFunc(func(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for i := 1.0; i < 10; i++ {
			if v := i * decade; v >= low*0.999 && v <= high*1.001 {
				tick := plot.Tick{Value: v}
				if i == 1 || i == 2 || i == 5 {
					tick.Label = strconv.FormatFloat(v, 'f', -1, 64)
				}
				ticks = append(ticks, tick)
			}
		}
	}
	return ticks
})

// Save writes a figure as SVG and as PNG.
func Save(p *plot.Plot, width, height vg.Length, svg, png string) error {
	for file, canvas := range map[string]interface {
		vg.CanvasSizer
		io.WriterTo
	}{
		svg: vgsvg.New(width, height),
		png: vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))},
	} {
		p.Draw(draw.Crop(draw.New(canvas), 8, -12, 8, -8))
		out, err := os.Create(file)
		if err != nil {
			return fmt.Errorf("figure: %w", err)
		}
		_, err = canvas.WriteTo(out)
		if closing := out.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return fmt.Errorf("figure: %s: %w", file, err)
		}
	}
	return nil
}
