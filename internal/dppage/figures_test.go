package dppage

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/internal/figure"
)

var update = flag.Bool("update", false, "write the figures of docs/DP.md anew")

// known is a curve that is asked for each epsilon once: a distribution of losses is slow to ask.
type known struct {
	account.Curve
	deltas map[float64]float64
}

func (k known) Delta(eps float64) float64 {
	delta, ok := k.deltas[eps]
	if !ok {
		delta = k.Curve.Delta(eps)
		k.deltas[eps] = delta
	}
	return delta
}

// curves of the page: what looks alike in (epsilon, delta), and is not alike to who tests.
func curves(t *testing.T) (names []string, all []account.Curve) {
	t.Helper()
	with := func(empty account.Accountant, e account.Event) account.Curve {
		a, err := empty.With(e)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	return []string{"epsilon 1", "epsilon 1, delta 0.05", "Gaussian, mu 1", "zCDP, rho 0.5", "Laplace of epsilon 1, by its losses"},
		[]account.Curve{with(account.Basic{}, account.Approximate{Epsilon: 1}), with(account.Basic{}, account.Approximate{Epsilon: 1, Delta: .05}), account.GDP(1), account.ZCDP(.5), known{with(account.Losses{}, account.Laplace{Multiplier: 1}), map[float64]float64{}}}
}

// lines draws f of each curve over levels.
func lines(t *testing.T, names []string, all []account.Curve, title, x, y string, levels []float64, f func(c account.Curve, level float64) float64) *plot.Plot {
	t.Helper()
	p := figure.New(title, x, y)
	figure.Grid(p)
	for i, c := range all {
		var points plotter.XYs
		for _, level := range levels {
			points = append(points, plotter.XY{X: level, Y: f(c, level)})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			t.Fatal(err)
		}
		line.LineStyle = figure.Line(i)
		p.Add(line)
		p.Legend.Add(names[i], line)
	}
	p.Legend.Top = true
	return p
}

// TestFigures keeps the figures of the page in step with the accountants; -update writes them. Where a machine rounds in another way they may differ by a
// digit, so they are compared on one kind of machine.
func TestFigures(t *testing.T) {
	if runtime.GOARCH != "amd64" && !*update {
		t.Skip("figures are compared on amd64")
	}
	var even, small []float64
	for i := 0; i <= 100; i++ {
		even = append(even, float64(i)/100)
		small = append(small, math.Pow(10, -3+float64(i)/100*3))
	}
	names, all := curves(t)
	tradeoff := lines(t, names, all, "What a test must miss", "false alarms", "misses, at least", even, account.Tradeoff)
	chance, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 0}})
	if err != nil {
		t.Fatal(err)
	}
	chance.LineStyle = draw.LineStyle{Color: figure.Pale, Width: 1}
	tradeoff.Add(chance)
	tradeoff.Legend.Add("by chance", chance)
	precision := lines(t, names, all, "Of accusations, the share that is right", "false alarms", "right, at most, where one in ten is in the table", small, func(c account.Curve, level float64) float64 { return account.Precision(c, .1, level) })
	precision.X.Scale, precision.X.Tick.Marker = plot.LogScale{}, figure.LogTicks
	precision.Y.Min = 0
	for name, p := range map[string]*plot.Plot{"dp-tradeoff": tradeoff, "dp-precision": precision} {
		file := filepath.Join(root, "docs/figures", name+".svg")
		if *update {
			if err := figure.Save(p, 6*vg.Inch, 4.2*vg.Inch, file, filepath.Join(os.TempDir(), name+".png")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		now := filepath.Join(t.TempDir(), name+".svg")
		if err := figure.Save(p, 6*vg.Inch, 4.2*vg.Inch, now, now+".png"); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(now)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Error(fmt.Sprintf("%s is not what the accountants say now: go test ./internal/dppage -update", file))
		}
	}
}
