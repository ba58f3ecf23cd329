package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/printed"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
)

// The words and the figure of a final report. They add no fact to its members.

// reportLine is one number of a report.
type reportLine struct {
	Name            string // the note, such as a model's name; "" without one
	What            string
	Value, Low      string // as printed; Low is "" where there is no interval
	High            string
	Verdict         string
	Bound           string
	measure         queries.Measure
	value, from, to float64
	bounded         bool
}

// Interval is the interval as printed.
func (l reportLine) Interval() string {
	if l.Low == "" {
		return ""
	}
	return "[" + l.Low + ", " + l.High + "]"
}

// reportLines are the numbers of a report, in order.
func reportLines(r holdout.FinalReport) (lines []reportLine) {
	for i := range r.Answers {
		a := &r.Answers[i]
		var said session.Answer
		if json.Unmarshal(a.Body, &said) != nil { // a later version's
			continue
		}
		line := reportLine{What: queries.TitleOf(a.Canonical), Verdict: string(said.Verdict), measure: a.Measure}
		if a.Note != nil {
			line.Name = *a.Note
		}
		switch a.Per {
		case "":
		case "row":
			line.What += ", per row"
		default:
			line.What += ", per " + a.Per
		}
		var low, high *float64
		if said.Interval != nil {
			low, high, line.Bound = said.Interval.Low, said.Interval.High, said.Interval.Bound
		}
		if len(said.Items) == 0 {
			lines = append(lines, line.of(said.Value, low, high))
			continue
		}
		for _, item := range said.Items {
			one := line
			one.What += ", " + item.Of
			lines = append(lines, one.of(item.Value, item.Low, item.High))
		}
	}
	return lines
}

// of is the line with its number.
func (l reportLine) of(value, low, high *float64) reportLine {
	switch {
	case value == nil:
		l.Value = "undefined"
	case low == nil || high == nil:
		l.Value = short(*value)
	default:
		l.value, l.from, l.to, l.bounded = *value, *low, *high, true
		digits := printed.Decimals(max(*high-*value, *value-*low))
		l.Value, l.Low, l.High = printed.Near(*value, digits), printed.Low(*low, digits), printed.High(*high, digits)
	}
	return l
}

// reportText is a report in sentences, for a paper or a pull request.
func reportText(r holdout.FinalReport) string {
	var b strings.Builder
	title := cmp.Or(r.Title, "Final report")
	fmt.Fprintf(&b, "%s on %s, %s.\n", title, named(r.Name), r.Time.Format(time.DateOnly))
	fmt.Fprintf(&b, "Measured on %s. %s\n", heldOut(r), beforeWords(r))
	for _, l := range reportLines(r) {
		if l.Name != "" {
			b.WriteString(l.Name + ", ")
		}
		b.WriteString(l.What + ": " + l.Value)
		if l.Low != "" {
			b.WriteString(" " + l.Interval())
		}
		if l.Verdict != "" {
			b.WriteString(" (" + l.Verdict + ")")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "All intervals that this holdout gave, these and all earlier ones, hold together with %s%% confidence, whatever was asked and changed in between. They are about %s.%s ", short(100*r.Confidence), targetOf(r), warningWords(r.Warnings))
	fmt.Fprintf(&b, "The holdout is closed. Its ledger ends at %s.", reportHead(r))
	return b.String()
}

// byRows is where the sentence of what intervals are about comes to questions in which rows vote.
const byRows = `, or with "weight":"row"`

// targetOf is what a report's intervals are about; of how rows vote it says nothing where none of its numbers is of rows.
func targetOf(r holdout.FinalReport) string {
	target := strings.TrimSuffix(r.Target, ".")
	units, _, ok := strings.Cut(target, byRows)
	if !ok || slices.ContainsFunc(r.Answers, func(a holdout.ReportAnswer) bool { return a.Per == "row" }) {
		return target
	}
	return units + " in these"
}

// heldOut is what a report was measured on.
func heldOut(r holdout.FinalReport) string {
	sealed := ""
	if r.Sealed {
		sealed = "sealed and "
	}
	if r.Unit == "row" {
		return numbered(int(r.Units), "%d "+sealed+"held-out row", "%d "+sealed+"held-out rows")
	}
	return numbered(int(r.Units), "%d "+sealed+"held-out unit", "%d "+sealed+"held-out units") + " (" + r.Unit + ")"
}

// beforeWords say what had been asked before a report, and by whom.
func beforeWords(r holdout.FinalReport) string {
	if r.Before.Questions == 0 {
		return "Nothing had been asked about them before."
	}
	s := fmt.Sprintf("Before, %s had been asked about them", questions(r.Before.Questions))
	if len(r.AskedBy) > 0 {
		var names []string
		for _, k := range r.AskedBy {
			name := k.ID
			if k.Name != nil && *k.Name != "" {
				name = *k.Name
			}
			names = append(names, fmt.Sprintf("%s %d", name, k.Answers))
		}
		s += " (answers by key: " + strings.Join(names, ", ") + ")"
	}
	if r.Before.Tokens == 0 {
		return s + ", and for no token: no guess was wrong, and nothing was measured."
	}
	return s + ", for " + tokens(r.Before.Tokens) + ". (A wrong guess costs one, and so does a measured answer.)"
}

// reportHead is the ledger's head with a report.
func reportHead(r holdout.FinalReport) string {
	var place LedgerPlace
	if json.Unmarshal(r.Ledger, &place) != nil {
		return ""
	}
	return place.Head
}

// reportPageView is what the page of a report shows.
type reportPageView struct {
	Title, Name, Day, ClosedBy, HeldOut, Before, Confidence, Target, Head, Text string
	Warnings                                                                    []holdout.Warning
	Lines                                                                       []reportLine
	Panels                                                                      []reportPanel
}

func reportView(r holdout.FinalReport) reportPageView {
	v := reportPageView{Title: cmp.Or(r.Title, "Final report"), Name: named(r.Name), Day: r.Time.Format(time.RFC3339), ClosedBy: r.ClosedBy.ID, HeldOut: heldOut(r), Before: beforeWords(r),
		Confidence: short(100 * r.Confidence), Target: targetOf(r), Head: reportHead(r), Text: reportText(r), Warnings: r.Warnings, Lines: reportLines(r)}
	if r.ClosedBy.Name != nil && *r.ClosedBy.Name != "" {
		v.ClosedBy = *r.ClosedBy.Name
	}
	v.Panels = panelsOf(v.Lines)
	return v
}

// Measures of the figure, in its own units.
const (
	panelWidth, panelLabels = 760, 300 // the labels' part of it
	panelRow                = 30
	panelTop, panelBottom   = 8, 34
	panelMargin             = 24
	panelTicks              = 5
	longestLabel            = 44 // characters
)

// reportPanel is a figure of numbers that may stand on one axis: a row each, with its interval.
type reportPanel struct {
	Width, Height, Axis, Left, Right int
	Rows                             []panelMark
	Ticks                            []panelTick
}

type panelMark struct {
	Label, Said          string
	Y                    int
	Text                 int // where the label stands
	Low, Value, High     float64
	LabelX, CapTop, Caps int
}

type panelTick struct {
	X    float64
	Text string
}

// panelsOf puts numbers of one measure into one panel.
func panelsOf(lines []reportLine) (panels []reportPanel) {
	var groups [][]reportLine
	for _, l := range lines {
		if !l.bounded {
			continue
		}
		at := slices.IndexFunc(groups, func(g []reportLine) bool {
			return g[0].measure.Kind == l.measure.Kind && slices.Equal(g[0].measure.Of, l.measure.Of)
		})
		if at < 0 {
			groups = append(groups, nil)
			at = len(groups) - 1
		}
		groups[at] = append(groups[at], l)
	}
	for _, g := range groups {
		panels = append(panels, panelOf(g))
	}
	return panels
}

func panelOf(lines []reportLine) reportPanel {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		low, high = min(low, l.from), max(high, l.to)
	}
	ticks := niceTicks(low, high)
	low, high = min(low, ticks[0]), max(high, ticks[len(ticks)-1])
	p := reportPanel{Width: panelWidth, Height: panelTop + panelRow*len(lines) + panelBottom, Left: panelLabels, Right: panelWidth - panelMargin}
	p.Axis = panelTop + panelRow*len(lines)
	x := func(v float64) float64 {
		if high == low {
			return float64(p.Left)
		}
		return math.Round(10*(float64(p.Left)+(v-low)/(high-low)*float64(p.Right-p.Left))) / 10
	}
	for i, l := range lines {
		y := panelTop + panelRow*i + panelRow/2
		label := cmp.Or(l.Name, l.What)
		if r := []rune(label); len(r) > longestLabel {
			label = string(r[:longestLabel-1]) + "…"
		}
		p.Rows = append(p.Rows, panelMark{Label: label, Said: strings.TrimSpace(l.What + " " + l.Value + " " + l.Interval()), Y: y, Text: y + 4, Low: x(l.from), Value: x(l.value), High: x(l.to),
			LabelX: p.Left - 16, CapTop: y - 5, Caps: y + 5})
	}
	for _, t := range ticks {
		p.Ticks = append(p.Ticks, panelTick{x(t), short(t)})
	}
	return p
}

// niceTicks are round numbers from at most low to at least high.
func niceTicks(low, high float64) (ticks []float64) {
	if !(high > low) {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/panelTicks)))
	for _, by := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*by) <= panelTicks {
			step *= by
			break
		}
	}
	from, to := math.Floor(low/step), math.Ceil(high/step)
	for i := from; i <= to; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}
