package figure

import (
	"fmt"
	"image/color"
	"io"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// SaveRow writes figures side by side, with their axes in line, as SVG and as PNG.
func SaveRow(row []*plot.Plot, width, height vg.Length, svg, png string) error {
	for file, canvas := range map[string]interface {
		vg.CanvasSizer
		io.WriterTo
	}{
		svg: vgsvg.New(width, height),
		png: vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))},
	} {
		tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: 16, PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 12}
		for i, c := range plot.Align([][]*plot.Plot{row}, tiles, draw.New(canvas))[0] {
			row[i].Draw(c)
		}
		if err := write(canvas, file); err != nil {
			return err
		}
	}
	return nil
}

func write(canvas io.WriterTo, file string) error {
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
	return nil
}

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
