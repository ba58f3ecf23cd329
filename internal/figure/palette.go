package figure

import (
	"image/color"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of Okabe and Ito, which people with any colour vision tell apart; Pale is for grids.
var (
	Black         = color.RGBA{0, 0, 0, 255}
	Grey          = color.RGBA{110, 110, 110, 255}
	Pale          = color.RGBA{225, 225, 225, 255}
	Orange        = color.RGBA{230, 159, 0, 255}
	SkyBlue       = color.RGBA{86, 180, 233, 255}
	BluishGreen   = color.RGBA{0, 158, 115, 255}
	Blue          = color.RGBA{0, 114, 178, 255}
	Vermillion    = color.RGBA{213, 94, 0, 255}
	ReddishPurple = color.RGBA{204, 121, 167, 255}
)

// Dashes, in points, that also tell lines apart in grey print.
var (
	Solid    []vg.Length
	Dashed   = []vg.Length{7, 3}
	Long     = []vg.Length{14, 4}
	Dotted   = []vg.Length{1.5, 2.5}
	DashDot  = []vg.Length{8, 3, 1.5, 3}
	DashDots = []vg.Length{8, 3, 1.5, 2.5, 1.5, 3}
)

// style of one series.
type style struct {
	color  color.Color
	dashes []vg.Length
	shape  draw.GlyphDrawer
}

// Each series has a colour, dashes and a mark of its own.
var styles = []style{
	{Blue, Solid, draw.CircleGlyph{}},
	{BluishGreen, Dashed, draw.TriangleGlyph{}},
	{Orange, DashDot, draw.SquareGlyph{}},
	{ReddishPurple, Dotted, draw.RingGlyph{}},
	{SkyBlue, Long, draw.BoxGlyph{}},
	{Vermillion, DashDots, draw.CrossGlyph{}},
	{Grey, Solid, draw.PlusGlyph{}},
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

// Text is the style of text of a size in points.
func Text(size vg.Length) text.Style {
	return text.Style{Color: Black, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size), Handler: text.Plain{Fonts: font.DefaultCache}}
}
