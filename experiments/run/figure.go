package run

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/holdoutd/holdoutd/internal/figure"
)

// Figure is one drawing. The first of a result is written as figure.svg and figure.png, another as figure-NAME.svg and .png.
type Figure struct {
	Name    string // letters, digits and hyphens
	Caption string // what is to be seen, in a sentence or two
	Draw    func() (*plot.Plot, error)
	Row     func() ([]*plot.Plot, error) // instead of Draw: panels side by side
}

// save writes the figure as base.svg and base.png.
func (f Figure) save(base string) error {
	if f.Row == nil {
		p, err := f.Draw()
		if err != nil {
			return fmt.Errorf("experiments: figure %s: %w", f.Name, err)
		}
		return figure.Save(p, FigureWidth, FigureHeight, base+".svg", base+".png")
	}
	row, err := f.Row()
	if err != nil {
		return fmt.Errorf("experiments: figure %s: %w", f.Name, err)
	}
	return figure.SaveRow(row, RowWidth, RowHeight, base+".svg", base+".png")
}

// FigureWidth and FigureHeight are the size of the figures, RowWidth and RowHeight that of panels side by side.
const (
	FigureWidth  = 8 * vg.Inch
	FigureHeight = 5.4 * vg.Inch
	RowWidth     = 10 * vg.Inch
	RowHeight    = 4.6 * vg.Inch
)
