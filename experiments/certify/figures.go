package certify

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// curve is a share of digits against attack size.
type curve struct {
	name  string
	share func(size float64) float64
}

// figuresOf draw certified accuracy against attack size: of the certificates for each noise, and of two-sided ones for each model.
func figuresOf(all []condition, found []certified, finished []bool, count int, plain map[subject][]bare) (figures []run.Figure) {
	var of [2][]int // conditions that are finished, by family
	for c := range all {
		if run.AllFinished(finished[c*count : (c+1)*count]) {
			f := all[c].noise.Family
			of[f] = append(of[f], c)
		}
	}
	for family, these := range of {
		if len(these) == 0 {
			continue
		}
		family := certify.Family(family)
		name, norm := family.String(), all[these[0]].unit()
		shown := these[0] // the last model, at the smaller scale
		for _, c := range these {
			if all[c].noise.Scale <= all[shown].noise.Scale {
				shown = c
			}
		}
		digits := found[shown*count : (shown+1)*count]
		figures = append(figures, run.Figure{Name: name,
			Caption: fmt.Sprintf("%v: the share of digits that are predicted right and certified against attacks of a size, by certificate, and the share that the "+
				"attack leaves right; and what it leaves right of the same model without a defence. Attacks are in the %s norm of pixels in [0,1].", all[shown], norm),
			Draw: func() (*plot.Plot, error) {
				curves := certificateCurves(all[shown], digits, plain)
				return drawAccuracy(fmt.Sprintf("Certified accuracy of digits: %v", all[shown]), norm, curves, endOf(curves[:1], 0.5))
			}})
		figures = append(figures, run.Figure{Name: name + "-models",
			Caption: fmt.Sprintf("Certified accuracy of all models with %s noise, by two-sided bounds of labels: more noise certifies further, and predicts less.",
				familyTitle(family)),
			Draw: func() (*plot.Plot, error) {
				var curves []curve
				for _, c := range these {
					curves = append(curves, wayCurve(all[c].String(), 1, found[c*count:(c+1)*count]))
				}
				return drawAccuracy(fmt.Sprintf("Certified accuracy of digits: %s noise", familyTitle(family)), norm, curves, endOf(curves[:1], 0.5))
			}})
	}
	return figures
}

// certificateCurves are the attack and the certificates worth comparing for a condition.
func certificateCurves(c condition, digits []certified, plain map[subject][]bare) []curve {
	curves := []curve{{"smoothed, right under attack", func(size float64) float64 {
		return shareOf(digits, func(f certified) bool { return f.Labels.survives(f.Label, size) })
	}}}
	for i, w := range ways(c.noise.Family) {
		if w.bound == certify.ClopperPearson || w.method == certify.PixelDP && w.bound == certify.EmpiricalBernstein && w.scores {
			curves = append(curves, wayCurve(w.title(c.noise.Family), i, digits))
		}
	}
	for m := range models {
		if of := plain[subject{m, c.noise.Family}]; models[m].name == c.model.name && len(of) > 0 {
			curves = append(curves, undefendedCurve(of))
		}
	}
	return curves
}

// title names a certificate by its paper.
func (w way) title(family certify.Family) string {
	names := map[certify.Method]string{certify.Smoothing: "smoothing (Cohen et al.)", certify.TwoSided: "two-sided (Gaussian DP)",
		certify.Renyi: "Rényi (Li et al.)", certify.PixelDP: "PixelDP (Lecuyer et al.)"}
	if family == certify.Laplace {
		names[certify.Smoothing], names[certify.TwoSided] = "smoothing (Teng et al.)", "two-sided (pure DP)"
	}
	if w.scores {
		return names[w.method] + ", of scores"
	}
	return names[w.method]
}

// wayCurve is the certified accuracy of way i.
func wayCurve(name string, i int, digits []certified) curve {
	return curve{name, func(size float64) float64 {
		return shareOf(digits, func(f certified) bool { return f.Found[i].accurate(f.Label, size) })
	}}
}

func shareOf(digits []certified, event func(f certified) bool) float64 {
	count := 0
	for _, f := range digits {
		if event(f) {
			count++
		}
	}
	return float64(count) / float64(len(digits))
}

// endOf is the largest attack size of a figure: where none of these curves has more than a share.
func endOf(curves []curve, share float64) float64 {
	end := 1.0
	for end < 2 && slices.ContainsFunc(curves, func(c curve) bool { return c.share(end) > share }) {
		end += 0.5
	}
	return end
}

// drawAccuracy draws curves up to an attack size.
func drawAccuracy(title, norm string, curves []curve, end float64) (*plot.Plot, error) {
	p := figure.New(title, "size of the attack ("+norm+" norm)", "share of digits")
	const steps = 200
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, end, 0, 1.35 // room for the legend above
	p.X.Tick.Marker = plot.TickerFunc(func(low, high float64) (ticks []plot.Tick) {
		for i := 0; float64(i) <= 5*high; i++ {
			ticks = append(ticks, plot.Tick{Value: float64(i) / 5, Label: fmt.Sprintf("%.1f", float64(i)/5)})
		}
		return ticks
	})
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.25, Label: "0.25"}, {Value: 0.5, Label: "0.5"}, {Value: 0.75, Label: "0.75"}, {Value: 1, Label: "1"}}
	for i, c := range curves {
		points := make(plotter.XYs, steps+1)
		for s := range points {
			points[s].X = end * float64(s) / steps
			if points[s].Y = c.share(points[s].X); points[s].Y == 0 {
				points = points[:s+1] // the rest is 0 too
				break
			}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = figure.Line(i)
		var marked plotter.XYs
		for s := 5 + 3*i; s < len(points); s += 25 {
			marked = append(marked, points[s])
		}
		marks, err := plotter.NewScatter(marked)
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = figure.Mark(i)
		p.Add(line, marks)
		p.Legend.Add(c.name, line, marks)
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p, nil
}
