package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// The colours of Okabe and Ito, which people with any colour vision tell apart.
var (
	black         = color.RGBA{0, 0, 0, 255}
	grey          = color.RGBA{110, 110, 110, 255}
	orange        = color.RGBA{230, 159, 0, 255}
	skyBlue       = color.RGBA{86, 180, 233, 255}
	bluishGreen   = color.RGBA{0, 158, 115, 255}
	blue          = color.RGBA{0, 114, 178, 255}
	vermillion    = color.RGBA{213, 94, 0, 255}
	reddishPurple = color.RGBA{204, 121, 167, 255}
)

// Dashes, in points, that also tell lines apart in grey print.
var (
	solid    []vg.Length
	dashed   = []vg.Length{7, 3}
	long     = []vg.Length{14, 4}
	dotted   = []vg.Length{1.5, 2.5}
	dashDot  = []vg.Length{8, 3, 1.5, 3}
	dashDots = []vg.Length{8, 3, 1.5, 2.5, 1.5, 3}
)

// curve is one line of the figure; the legend lists them in this order, about that of the lines at their right ends.
type curve struct {
	method string
	label  string
	color  color.Color
	width  vg.Length
	dashes []vg.Length
}

const attackCurve = "attack" // no method: what the strongest attack reaches

var curves = []curve{
	{bounds.MethodDFHPRR, "DFHPRR 2015", orange, 1.2, dashDot},
	{bounds.MethodBNSSSU, "BNSSSU 2016", orange, 1.2, solid},
	{bounds.MethodXR, "Xu, Raginsky 2017", reddishPurple, 1.2, dashDot},
	{bounds.MethodRZ, "Russo, Zou 2016", reddishPurple, 1.2, dashed},
	{bounds.MethodJLNRSS20, "JLNRSS 2020", vermillion, 1.2, dotted},
	{bounds.MethodJLNRSSPlus, "JLNRSS, free constants", vermillion, 1.2, dashed},
	{bounds.MethodJLNRSSGDP, "JLNRSS, exact GDP", vermillion, 1.6, solid},
	{bounds.MethodSplitting, "sample splitting", black, 1.6, long},
	{bounds.MethodTanh, "tanh transfer", skyBlue, 1.6, solid},
	{bounds.MethodConstant, "adaptive Hoeffding", blue, 1.6, dashed},
	{bounds.MethodScheduled, "… with noise schedule", blue, 2.6, solid},
	{bounds.MethodRounds, "… in %s", blue, 1.6, dotted},
	{bounds.MethodThresholdout, "Thresholdout*", bluishGreen, 1.6, dashed},
	{bounds.MethodGuessCheck, "guess and check*", bluishGreen, 2.2, solid},
	{attackCurve, "best attack on the schedule", grey, 1.6, dashDots},
	{bounds.MethodNonAdaptive, "non-adaptive batch", grey, 1.6, solid},
}

const (
	plotWidth    = 9.6 * vg.Inch
	plotHeight   = 5.6 * vg.Inch
	legendWidth  = 2.3 * vg.Inch
	plotMargin   = 0.12 * vg.Inch
	pointsDecade = 10 // of a curve; lines between them are straight in logarithms
	plotDPI      = 200
	roundsDrawn  = 5 // where the request names none
)

func checkPlotFile(file string) error {
	if ext := filepath.Ext(file); ext != ".svg" && ext != ".png" {
		return fmt.Errorf("--plot: %s is neither an .svg nor a .png file", file)
	}
	return nil
}

// writePlot draws half-width against number of questions.
func writePlot(file string, r bounds.Request, report bounds.Report) error {
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if filepath.Ext(file) == ".svg" {
		canvas = vgsvg.New(plotWidth, plotHeight)
	} else {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI))}
	}
	if err := drawPlan(draw.New(canvas), r, report); err != nil {
		return err
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return fmt.Errorf("cannot draw %s: %w", file, err)
	}
	const family = "font-family:Liberation Sans"
	contents := out.Bytes()
	if filepath.Ext(file) == ".svg" { // with names for readers that have no such font; they have the same widths
		contents = bytes.ReplaceAll(contents, []byte(family), []byte(family+",Arial,Helvetica,sans-serif"))
	}
	if err := os.WriteFile(file, contents, 0o644); err != nil {
		return fmt.Errorf("cannot write the plot: %w", err)
	}
	return nil
}

func drawPlan(c draw.Canvas, r bounds.Request, report bounds.Report) error {
	most := mostQuestions(report)
	p := planAxes(report, most)
	legend := planLegend()
	if r.Rounds == 0 {
		r.Rounds = roundsDrawn
	}
	low := 1.0
	for _, line := range curves {
		if !drawn(line, r) {
			continue
		}
		points, err := points(line.method, r, most)
		if err != nil {
			return err
		}
		if len(points) < 2 {
			continue
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		l.LineStyle = draw.LineStyle{Color: line.color, Width: line.width, Dashes: line.dashes}
		p.Add(l)
		label := line.label
		if line.method == bounds.MethodRounds {
			label = fmt.Sprintf(label, strconv.FormatInt(r.Rounds, 10)+" rounds")
			if r.Rounds == 1 {
				label = fmt.Sprintf(line.label, "1 round")
			}
		}
		legend.Add(label, l)
		low = min(low, points[0].Y)
	}
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(low)*3)/3) // a third of a decade
	if report.HalfWidth > 0 {
		if err := mark(p, report); err != nil {
			return err
		}
	}
	left := draw.Crop(c, plotMargin, -legendWidth, plotMargin, -plotMargin)
	p.Draw(labelAxes(left, p.Title.TextStyle))
	right := draw.Crop(c, plotWidth-legendWidth+plotMargin, -plotMargin, plotMargin, -plotMargin)
	legend.Draw(draw.Crop(right, 0, 0, 0, -p.Title.TextStyle.Font.Size-p.Title.Padding))
	if r.Training > 0 {
		style := legend.TextStyle
		style.Font.Size = 8
		style.YAlign = draw.YBottom
		right.FillText(style, right.Min, "* while training and\n  holdout agree")
	}
	return nil
}

// drawn: which curves belong into the figure of this request.
func drawn(line curve, r bounds.Request) bool {
	switch line.method {
	case bounds.MethodThresholdout, bounds.MethodGuessCheck:
		return r.Training > 0 && !r.Published
	case bounds.MethodTanh, bounds.MethodConstant, bounds.MethodScheduled, bounds.MethodRounds, attackCurve:
		return !r.Published // the attack is on the scheduled mechanism
	}
	return true
}

// mostQuestions is the right end: a power of ten with room beyond the questions asked for and those within reach.
func mostQuestions(report bounds.Report) float64 {
	most := float64(report.Questions)
	for _, m := range report.Methods {
		if m.QuestionsWithin != nil && m.Assumes == "nothing" {
			most = max(most, float64(*m.QuestionsWithin))
		}
	}
	return math.Pow(10, min(12, max(3, math.Ceil(math.Log10(4*most)))))
}

// points of a curve, down to where it leaves the figure at half-width 1.
func points(method string, r bounds.Request, most float64) (plotter.XYs, error) {
	var points plotter.XYs
	last := int64(0)
	steps := int(math.Round(math.Log10(most))) * pointsDecade
	for i := range steps + 1 {
		k := int64(math.Round(math.Pow(10, float64(i)/pointsDecade)))
		if k == last || method == bounds.MethodRounds && k < r.Rounds {
			continue
		}
		last = k
		w, err := heightAt(method, r, k)
		if err != nil {
			return nil, err
		}
		if w > 1 {
			if n := len(points); n > 0 { // up to the upper edge
				before := points[n-1]
				slope := math.Log(w/before.Y) / math.Log(float64(k)/before.X)
				if !math.IsInf(w, 0) {
					points = append(points, plotter.XY{X: before.X * math.Exp(-math.Log(before.Y)/slope), Y: 1})
				}
			}
			break
		}
		points = append(points, plotter.XY{X: float64(k), Y: w})
	}
	return points, nil
}

func heightAt(method string, r bounds.Request, k int64) (float64, error) {
	if method == attackCurve {
		return bounds.Attack(r.N, k, 1-r.Confidence)
	}
	return bounds.HalfWidthOf(method, r, k)
}

func planAxes(report bounds.Report, most float64) *plot.Plot {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	p.Title.Text = fmt.Sprintf("Half-width of intervals that hold together at %s, holdout of %s units", percent(report.Confidence), thousands(report.N))
	p.Title.TextStyle.Font = font.From(sans, 12)
	p.Title.Padding = 8
	p.X.Min, p.X.Max, p.Y.Max = 1, most, 1
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Scale = plot.LogScale{}
		axis.Tick.Label.Font = font.From(sans, 9)
		axis.Padding = 0
		axis.LineStyle.Width = 0.6
		axis.Tick.LineStyle.Width = 0.6
	}
	p.X.Tick.Marker = plot.TickerFunc(questionTicks)
	p.Y.Tick.Marker = plot.TickerFunc(widthTicks)
	grid := plotter.NewGrid()
	pale := draw.LineStyle{Color: color.RGBA{225, 225, 225, 255}, Width: 0.5}
	grid.Vertical, grid.Horizontal = pale, pale
	p.Add(grid)
	return p
}

// labelAxes writes what the axes are and returns the canvas that is left: gonum/plot takes the middle of a logarithmic axis for
// that of a linear one, and would leave room at the right and at the top for labels that are not there.
func labelAxes(c draw.Canvas, style draw.TextStyle) draw.Canvas {
	style.Font.Size = 10
	style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
	const room = 16
	inner := draw.Crop(c, room, 0, room, 0)
	c.FillText(style, vg.Point{X: inner.Center().X + room, Y: c.Min.Y}, "number of questions, each chosen after seeing the answers before")
	style.Rotation = math.Pi / 2
	style.YAlign = draw.YTop
	c.FillText(style, vg.Point{X: c.Min.X, Y: inner.Center().Y}, "half-width, as a part of the query's range")
	return inner
}

// questionTicks labels the powers of ten: 1, 10, 100, 1,000 …
func questionTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := 1.0; decade <= high*1.001; decade *= 10 {
		ticks = append(ticks, plot.Tick{Value: decade, Label: thousands(int64(decade))})
		for i := 2.0; i < 10 && i*decade <= high; i++ {
			ticks = append(ticks, plot.Tick{Value: i * decade})
		}
	}
	return ticks
}

// widthTicks labels 1, 2 and 5 times the powers of ten: ±0.01, ±0.02, ±0.05 …
func widthTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high*1.001; decade *= 10 {
		for i := 1.0; i < 10; i++ {
			v := i * decade
			if v < low*0.999 || v > high*1.001 {
				continue
			}
			tick := plot.Tick{Value: v}
			if i == 1 || i == 2 || i == 5 {
				tick.Label = "±" + strconv.FormatFloat(v, 'g', 1, 64)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

func planLegend() plot.Legend {
	l := plot.NewLegend()
	l.TextStyle.Font = font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, 9.5)
	l.TextStyle.Handler = text.Plain{Fonts: font.DefaultCache}
	l.Top, l.Left = true, true
	l.ThumbnailWidth = 0.42 * vg.Inch
	l.Padding = 4
	return l
}

// mark draws the half-width asked for and how many questions the notable methods answer within it.
func mark(p *plot.Plot, report bounds.Report) error {
	line, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: report.HalfWidth}, {X: p.X.Max, Y: report.HalfWidth}})
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: grey, Width: 0.6}
	p.Add(line)
	for _, m := range report.Methods {
		label, notable := map[string]boxedLabel{
			bounds.MethodSplitting: {color: black, offset: vg.Point{X: 5, Y: -5}},
			bounds.MethodJLNRSSGDP: {color: vermillion, offset: vg.Point{X: 5, Y: -5}},
			bounds.MethodScheduled: {color: blue, offset: vg.Point{X: -22, Y: 28}}, // below are other lines
		}[m.Method]
		if !notable || m.QuestionsWithin == nil || *m.QuestionsWithin < 1 {
			continue
		}
		at := plotter.XYs{{X: float64(*m.QuestionsWithin), Y: report.HalfWidth}}
		dot, err := plotter.NewScatter(at)
		if err != nil {
			return err
		}
		dot.GlyphStyle = draw.GlyphStyle{Color: label.color, Radius: 3, Shape: draw.CircleGlyph{}}
		label.XY, label.text = at[0], thousands(*m.QuestionsWithin)
		p.Add(dot, &label)
	}
	return nil
}

// boxedLabel is text beside a point, on white, so that lines do not cross it. offset is that of its upper left corner.
type boxedLabel struct {
	plotter.XY
	text   string
	color  color.Color
	offset vg.Point
}

// Plot implements plot.Plotter.
func (l *boxedLabel) Plot(c draw.Canvas, p *plot.Plot) {
	style := draw.TextStyle{Color: l.color, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, 10.5),
		YAlign: draw.YTop, Handler: text.Plain{Fonts: font.DefaultCache}}
	x, y := p.Transforms(&c)
	at := vg.Point{X: x(l.X), Y: y(l.Y)}.Add(l.offset)
	size := style.Rectangle(l.text).Size()
	c.SetColor(color.White)
	c.Fill(vg.Rectangle{Min: vg.Point{X: at.X - 1, Y: at.Y - size.Y}, Max: vg.Point{X: at.X + size.X + 1, Y: at.Y}}.Path())
	c.FillText(style, at, l.text)
}
