package featureselection

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/selection"
	"github.com/holdoutd/holdoutd/internal/figure"
)

// figuresOf are one for each condition, of two panels.
func figuresOf(rows []run.Row) []run.Figure {
	var out []run.Figure
	for _, f := range []struct{ name, condition, caption string }{
		{"no-signal", noSignal, "No column knows anything of the label: every classifier is right half of the time in fresh data. "},
		{"signal", signal, "A five-hundredth of the columns knows a little of the label. "},
	} {
		if len(pick(rows, cell{f.condition, selection.StandardReuse}, toldAccuracy)) == 0 ||
			len(pick(rows, cell{f.condition, selection.ThroughThresholdout}, toldAccuracy)) == 0 {
			continue
		}
		out = append(out, run.Figure{Name: f.name, Caption: f.caption + "Accuracy of the classifier in the training part, as the holdout tells it, and in fresh data, against the number " +
			"of its columns: means with bands of one standard deviation. Left the standard reuse, right Thresholdout.",
			Row: func() ([]*plot.Plot, error) { return drawPanels(rows, f.condition) }})
	}
	if len(out) == 2 {
		out = append(out, run.Figure{Name: "gap", Caption: "The generalisation gap: what a classifier is said to be right, less what it is right in fresh data, with 95% intervals. Without a holdout its own training rows " +
			"say it. A holdout that answers exactly is learned by heart, too. What Thresholdout says stays near the truth.",
			Row: func() ([]*plot.Plot, error) { return drawGaps(rows) }})
	}
	return out
}

// drawGaps has a panel for each condition. A repetition of a curve is of data of its own, and its two accuracies are taken for independent.
func drawGaps(rows []run.Row) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	high := 0.
	for _, condition := range []string{noSignal, signal} {
		p := figure.New("Generalisation gap, "+condition, "columns of the classifier, k", "accuracy as told, less in fresh data")
		p.Add(plotter.NewGrid())
		for i, c := range []struct{ name, method, set string }{
			{"no holdout: its training rows", selection.ThroughThresholdout, trainingAccuracy},
			{"a holdout that answers exactly", selection.StandardReuse, toldAccuracy},
			{"Thresholdout", selection.ThroughThresholdout, toldAccuracy},
		} {
			var points figure.Points
			fresh := pick(rows, cell{condition, c.method}, freshAccuracy)
			for k, r := range pick(rows, cell{condition, c.method}, c.set) {
				gap, half := r.Mean-fresh[k].Mean, math.Hypot((r.High-r.Low)/2, (fresh[k].High-fresh[k].Low)/2)
				points.Add(float64(r.K), gap, gap-half, gap+half)
				high = max(high, gap+half)
			}
			line, err := plotter.NewLine(points.XYs)
			if err != nil {
				return nil, err
			}
			line.LineStyle = figure.Line(styles[i])
			p.Add(line)
			if err := figure.AddMarks(p, styles[i], "", points); err != nil {
				return nil, err
			}
			p.Legend.Add(c.name, line, &plotter.Scatter{GlyphStyle: figure.Mark(styles[i])})
		}
		p.Legend.Top, p.Legend.Left = true, true
		panels = append(panels, p)
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = min(0, p.Y.Min), 1.35*high // room for the legend
		p.X.Tick.Marker, p.Y.Tick.Marker = figure.EvenTicks, figure.EvenTicks
	}
	return panels, nil
}

func drawPanels(rows []run.Row, condition string) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	low, high := 1.0, 0.0
	for _, c := range []struct{ method, title string }{
		{selection.StandardReuse, "standard holdout"}, {selection.ThroughThresholdout, "Thresholdout"},
	} {
		p := figure.New(fmt.Sprintf("%s, %s", c.title, condition), "columns of the classifier, k", "accuracy (share of rows)")
		if err := addCurves(p, rows, cell{condition, c.method}); err != nil {
			return nil, err
		}
		p.Legend.Top, p.Legend.Left = true, true
		low, high = min(low, p.Y.Min), max(high, p.Y.Max)
		panels = append(panels, p)
	}
	for _, p := range panels { // one scale for both; room for the legend above the curves
		p.Y.Min, p.Y.Max = low-0.01, high+0.3*(high-low)
		p.X.Tick.Marker, p.Y.Tick.Marker = figure.EvenTicks, figure.EvenTicks
	}
	return panels, nil
}

// addCurves adds mean and band of the three accuracies, which begin with one half for no columns.
func addCurves(p *plot.Plot, rows []run.Row, c cell) error {
	p.Add(plotter.NewGrid())
	var lines []plot.Plotter
	for i, set := range accuracies {
		x, low, high := []float64{0}, []float64{0.5}, []float64{0.5}
		points := plotter.XYs{{X: 0, Y: 0.5}}
		for _, r := range pick(rows, c, set) {
			x, low, high = append(x, float64(r.K)), append(low, r.Mean-r.SD), append(high, r.Mean+r.SD)
			points = append(points, plotter.XY{X: float64(r.K), Y: r.Mean})
		}
		band, err := figure.Band(styles[i], x, low, high)
		if err != nil {
			return err
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.LineStyle, marks.GlyphStyle = figure.Line(styles[i]), figure.Mark(styles[i])
		p.Add(band)
		lines = append(lines, line, marks)
		p.Legend.Add(set, line, marks)
	}
	p.Add(lines...)
	return nil
}

// styles are those of the sets: colours that stay apart where two bands lie over each other.
var styles = []int{0, 5, 1}
