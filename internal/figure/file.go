package figure

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const dpi = 200

// CheckFile refuses names of files that no figure can be written into.
func CheckFile(file string) error {
	if ext := filepath.Ext(file); ext != ".svg" && ext != ".png" {
		return fmt.Errorf("figure: %s is neither an .svg nor a .png file", file)
	}
	return nil
}

// Write draws into an .svg or .png file.
func Write(file string, width, height vg.Length, onto func(c draw.Canvas) error) error {
	if err := CheckFile(file); err != nil {
		return err
	}
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	isSVG := filepath.Ext(file) == ".svg"
	if isSVG {
		canvas = vgsvg.New(width, height)
	} else {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	}
	c := draw.New(canvas)
	c.SetColor(color.White) // labels of the axes stand outside of the plot's own white: on a dark page nobody would read them
	c.Fill(c.Rectangle.Path())
	if err := onto(c); err != nil {
		return err
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return fmt.Errorf("figure: %s: %w", file, err)
	}
	contents := out.Bytes()
	if isSVG {
		contents = withLengths(withFallback(contents))
	}
	if err := os.WriteFile(file, contents, 0o644); err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	return nil
}

// withFallback names fonts for readers that have no Liberation Sans; the first two have the same widths.
func withFallback(svg []byte) []byte {
	const family = "font-family:Liberation Sans"
	return bytes.ReplaceAll(svg, []byte(family), []byte(family+",Arial,Helvetica,sans-serif"))
}

// svgText is a text as vgsvg writes it, with its size and content. All are of normal weight.
var svgText = regexp.MustCompile(`(<text)( [^>]*font-size:([0-9.]+)px[^"]*">)([^<]*)(</text>)`)

// withLengths says how long each text is, so that a reader whose fonts are wider neither cuts it off nor lets it run into others.
func withLengths(svg []byte) []byte {
	return svgText.ReplaceAllFunc(svg, func(text []byte) []byte {
		part := svgText.FindSubmatch(text)
		size, err := strconv.ParseFloat(string(part[3]), 64)
		content := html.UnescapeString(string(part[4]))
		if err != nil || len(content) < 2 { // one character has nothing to be spread
			return text
		}
		face := font.DefaultCache.Lookup(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Length(size))
		return fmt.Appendf(nil, `%s textLength="%.5g" lengthAdjust="spacingAndGlyphs"%s%s%s`, part[1], face.Width(content).Points(), part[2], part[4], part[5])
	})
}

// margins are left around what is drawn.
func margins(c draw.Canvas) draw.Canvas { return draw.Crop(c, 8, -12, 8, -8) }

// Save writes a figure as SVG and as PNG.
func Save(p *plot.Plot, width, height vg.Length, svg, png string) error {
	return save(width, height, svg, png, func(c draw.Canvas) { Draw(p, c) })
}

// SaveRow writes figures side by side, with their axes in line, as SVG and as PNG.
func SaveRow(row []*plot.Plot, width, height vg.Length, svg, png string) error {
	return save(width, height, svg, png, func(c draw.Canvas) { DrawRow(row, c) })
}

func save(width, height vg.Length, svg, png string, onto func(c draw.Canvas)) error {
	for _, file := range []string{svg, png} {
		err := Write(file, width, height, func(c draw.Canvas) error {
			onto(margins(c))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
