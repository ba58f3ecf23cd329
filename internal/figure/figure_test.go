package figure

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

func logarithmic(t *testing.T) *plot.Plot {
	t.Helper()
	p := New("a title", "a long label of the horizontal axis", "of the vertical")
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: 0.01}, {X: 1e5, Y: 1}})
	if err != nil {
		t.Fatal(err)
	}
	line.LineStyle = Line(0)
	p.Add(line)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Scale = plot.LogScale{}
		axis.Padding = 0
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = CountTicks, PlusMinusTicks
	return p
}

// TestLabelsAreCentred: on logarithmic axes too, in one plot and in a row, and the labels are back afterwards.
func TestLabelsAreCentred(t *testing.T) {
	const width, height = 400, 300
	p := logarithmic(t)
	x := p.X.Label.Text
	var record recorder.Canvas
	Draw(p, draw.NewCanvas(&record, width, height))
	if p.X.Label.Text != x {
		t.Fatalf("the label is %q afterwards", p.X.Label.Text)
	}
	at, ok := written(&record, x)
	if !ok {
		t.Fatal("the label is not drawn")
	}
	end, _ := written(&record, "100,000") // centred at the right end
	last := end + vg.Length(p.X.Tick.Label.Width("100,000"))/2
	start, _ := written(&record, "1")
	first := start + vg.Length(p.X.Tick.Label.Width("1"))/2
	centre := at + vg.Length(p.X.Label.TextStyle.Width(x))/2
	if math.Abs(float64(centre-(first+last)/2)) > 0.5 {
		t.Errorf("the label is centred at %v, the axis from %v to %v", centre, first, last)
	}
	var row recorder.Canvas
	DrawRow([]*plot.Plot{p, logarithmic(t)}, draw.NewCanvas(&row, width, height))
	if _, ok := written(&row, x); !ok {
		t.Error("a row has no labels")
	}
}

// written is where a string starts.
func written(c *recorder.Canvas, text string) (vg.Length, bool) {
	for _, action := range c.Actions {
		if s, ok := action.(*recorder.FillString); ok && s.String == text {
			return s.Point.X, true
		}
	}
	return 0, false
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	svg, png := filepath.Join(dir, "f.svg"), filepath.Join(dir, "f.png")
	if err := Save(logarithmic(t), 200, 150, svg, png); err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	if families := bytes.Count(drawn, []byte("font-family:")); families == 0 || bytes.Count(drawn, []byte(",Arial,Helvetica,sans-serif")) != families {
		t.Errorf("%d families, not all with a fallback", families)
	}
	if long, short := bytes.Count(drawn, []byte(` textLength="`)), regexp.MustCompile(`>[^<\n]</text>`).FindAll(drawn, -1); long == 0 || long+len(short) != bytes.Count(drawn, []byte("<text")) {
		t.Errorf("%d texts say how long they are, %d are of one character, of %d", long, len(short), bytes.Count(drawn, []byte("<text")))
	}
	if !bytes.Contains(drawn, []byte(`<path d="M0,0L200,0L200,150L0,150Z" style="fill:#FFFFFF" />`)) {
		t.Error("the figure has no ground of its own: on a dark page its labels cannot be read")
	}
	if raster, err := os.ReadFile(png); err != nil || !bytes.HasPrefix(raster, []byte("\x89PNG")) {
		t.Errorf("no PNG: %v", err)
	}
	for _, file := range []string{"figure.pdf", "figure", filepath.Join(dir, "none", "f.svg")} {
		if err := Write(file, 10, 10, func(draw.Canvas) error { return nil }); err == nil {
			t.Errorf("%s was written", file)
		}
	}
}

// TestBars: each bar has its number above it, also one that is too small to be seen.
func TestBars(t *testing.T) {
	p := New("a title", "x", "y")
	for i, values := range [][]float64{{176.5, 0}, {1.05, 3}} {
		if err := AddBars(p, Bars{Series: i, Of: 2, Width: 20, Number: "%.1f"}, "", values); err != nil {
			t.Fatal(err)
		}
	}
	p.X.Min, p.X.Max, p.Y.Min = -0.5, 1.5, 0
	var record recorder.Canvas
	Draw(p, draw.NewCanvas(&record, 400, 300))
	left, ok := written(&record, "176.5")
	if right, also := written(&record, "1.1"); !ok || !also || right < left+10 {
		t.Errorf("numbers of bars side by side are at %v and %v, drawn: %v, %v", left, right, ok, also)
	}
	if _, ok := written(&record, "0.0"); !ok {
		t.Error("a bar of 0 has no number")
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		ticks     plot.TickerFunc
		low, high float64
		want      []string
	}{
		{CountTicks, 1, 1e4, []string{"1", "10", "100", "1,000", "10,000"}},
		{PlusMinusTicks, 0.005, 1, []string{"±0.005", "±0.01", "±0.02", "±0.05", "±0.1", "±0.2", "±0.5", "±1"}},
		{LogTicks, 0.04, 3, []string{"0.05", "0.1", "0.2", "0.5", "1", "2"}},
		{LogTicks, 1e-9, 2e-9, []string{"0.000000001", "0.000000002"}},
		{LogTicks, 0, 1, nil}, // these do not end, and some do not begin
		{LogTicks, -1, 1, nil},
		{LogTicks, math.NaN(), 1, nil},
		{LogTicks, 1, math.Inf(1), nil},
	} {
		var got []string
		for _, tick := range c.ticks(c.low, c.high) {
			if tick.Label != "" {
				got = append(got, tick.Label)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("from %v to %v: %q, want %q", c.low, c.high, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("from %v to %v: %q, want %q", c.low, c.high, got, c.want)
				break
			}
		}
	}
}
