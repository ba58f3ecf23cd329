package scale

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/holdoutd/holdoutd/internal/figure"
)

// Results reads a file of results.
func Results(name string) ([]Result, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []Result
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// perRow is nanoseconds of processors for each row and run.
func (r Result) perRow(used float64) float64 {
	return used / float64(len(r.Seconds)) / float64(r.Rows) * 1e9
}

// Table is the results as a table of the page docs/SCALE.md.
func Table(all []Result) string {
	var b strings.Builder
	b.WriteString("| engine | rows | a unit has | questions | columns read | sums, in statements | ours, ns a row | by hand, ns a row | ratio | ratio of wall times | bytes sent, received |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		questions := fmt.Sprint(r.Questions)
		if r.Squares {
			questions += ", with variances"
		}
		unit := "1 row"
		if r.Unit > 1 {
			unit = fmt.Sprintf("%d rows", r.Unit)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %d in %d | %.0f | %.0f | %.2f | %.2f | %s, %s |\n", r.Engine, figure.Thousands(r.Rows), unit, questions, r.Columns, r.Sums, r.Scans,
			r.perRow(r.Used), r.perRow(r.UsedBy), r.Used/r.UsedBy, r.Ratio(), figure.Thousands(int64(r.Sent)), figure.Thousands(int64(r.Received)))
	}
	return b.String()
}

// Draw draws what a row costs as questions grow, ours and by hand, for each engine.
func Draw(all []Result, svg, png string) error {
	p := figure.New("What a row costs as questions grow", "questions in one request", "processor time, ns a row")
	type series struct {
		name string
		of   func(Result) float64
	}
	engines, largest := []string{}, map[string]int64{}
	for _, r := range all {
		if largest[r.Engine] == 0 {
			engines = append(engines, r.Engine)
		}
		largest[r.Engine] = max(largest[r.Engine], r.Rows)
	}
	at := 0
	for _, engine := range engines {
		for _, s := range []series{{"holdoutd", func(r Result) float64 { return r.perRow(r.Used) }}, {"by hand", func(r Result) float64 { return r.perRow(r.UsedBy) }}} {
			var points plotter.XYs
			for _, r := range all {
				if r.Engine == engine && r.Rows == largest[engine] && r.Unit == 1 && !r.Squares {
					points = append(points, plotter.XY{X: float64(r.Questions), Y: s.of(r)})
				}
			}
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			line.LineStyle, marks.GlyphStyle = figure.Line(at), figure.Mark(at)
			p.Add(line, marks)
			p.Legend.Add(engine+", "+s.name, line, marks)
			at++
		}
	}
	figure.Grid(p)
	p.X.Min, p.Y.Min = 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = figure.EvenTicks, figure.EvenTicks
	p.Legend.Top, p.Legend.Left = true, true
	return figure.Save(p, 16*vg.Centimeter, 10*vg.Centimeter, svg, png)
}
