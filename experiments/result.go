package experiments

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/internal/figure"
)

// Experiment is one of All.
type Experiment struct {
	Name  string
	Short string  // one line for a list, without a full stop
	Paper string  // what the paper reports and where, or what the theory says: sentences for the report
	Flags []Flag  // its own, beside those of every experiment
	Small Options // a size that a test can afford; its rows are compared with stored expectations

	// Run measures. On an error, that of a cancelled context included, the result has what was finished until then.
	// Equal options give equal results, on any number of cores and however often interrupted: work is done by Repeat.
	Run func(ctx context.Context, o Options) (Result, error)
}

// Flag is an option of one experiment. One whose default is "true" or "false" is a switch.
type Flag struct {
	Name, Default, Usage string
	Secret               bool // never written to a file
}

// All experiments, in the order of a list.
var All = []Experiment{
	coverageExperiment,
	adaptivityExperiment,
	featureSelectionExperiment,
	freedmanExperiment,
	leaderboardExperiment,
	pHackingExperiment,
	agentsExperiment,
	certifyExperiment,
	privateMeanExperiment,
	dpsgdExperiment,
}

// Options of an experiment.
type Options struct {
	Seed        uint64
	Repetitions int                                // 0 is the experiment's own number
	Quick       bool                               // a smaller grid
	Set         map[string]string                  // the experiment's own flags; what is missing has its default
	Progress    func(part string, done, total int) // nil: nobody watches. Calls do not overlap
	Checkpoint  *Checkpoint                        // nil: nothing is stored
}

// Text is the value of one of the experiment's flags, "" where it is not set.
func (o Options) Text(name string) string { return o.Set[name] }

// Switch reports whether a switch is on.
func (o Options) Switch(name string) bool { return o.Set[name] == "true" }

// Int is the value of a flag that is a positive whole number, or otherwise where it is not set.
func (o Options) Int(name string, otherwise int) (int, error) {
	text := o.Set[name]
	if text == "" {
		return otherwise, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 {
		return 0, fmt.Errorf("experiments: --%s is a whole number from 1 up, not %q", name, text)
	}
	return v, nil
}

// repetitions is the number of runs that was asked for, else the experiment's own.
func (o Options) repetitions(own int) int {
	if o.Repetitions > 0 {
		return o.Repetitions
	}
	return own
}

// Row is one measured number.
type Row struct {
	Condition   string  `json:"condition"` // who asks
	Method      string  `json:"method"`    // mechanism
	N           int64   `json:"n"`
	K           int64   `json:"k"`
	Confidence  float64 `json:"confidence,omitempty"`
	Set         string  `json:"set"` // what is measured
	Mean        float64 `json:"mean"`
	SD          float64 `json:"sd"`
	Low         float64 `json:"low"` // 95% interval of the mean
	High        float64 `json:"high"`
	Repetitions int     `json:"repetitions"`
	Rate        bool    `json:"rate,omitempty"` // Mean is the share of the repetitions in which something happened
}

// Fit is an exponent: the slope of ln y on ln x, with a 95% interval.
type Fit struct {
	Method   string  `json:"method"`
	Of       string  `json:"of"` // y
	Exponent float64 `json:"exponent"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Points   int     `json:"points"`
}

// Check compares one number with what a paper reports or a theorem says.
type Check struct {
	What      string  `json:"what"`
	Expected  float64 `json:"expected"` // or the limit, where the criterion is one-sided
	Got       float64 `json:"got"`
	Low       float64 `json:"low"` // interval of Got
	High      float64 `json:"high"`
	Criterion string  `json:"criterion"` // in words: what had to hold
	Agrees    bool    `json:"agrees"`
}

// Within is a check that a measured mean is no farther than a tolerance from what is expected.
func Within(what string, expected, tolerance float64, r Row) Check {
	return Check{What: what, Expected: expected, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: fmt.Sprintf("within %v", tolerance), Agrees: math.Abs(r.Mean-expected) <= tolerance}
}

// AtMost is a check that a measured mean is not above a limit: it fails where the whole interval is.
func AtMost(what string, limit float64, r Row) Check {
	return Check{What: what, Expected: limit, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: "at most; the interval begins no higher", Agrees: r.Low <= limit}
}

// AtLeast is a check that a measured mean is not below a limit: it fails where the whole interval is.
func AtLeast(what string, limit float64, r Row) Check {
	return Check{What: what, Expected: limit, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: "at least; the interval ends no lower", Agrees: r.High >= limit}
}

// Contains is a check that an interval contains what is expected.
func Contains(what string, expected, got, low, high float64) Check {
	return Check{What: what, Expected: expected, Got: got, Low: low, High: high,
		Criterion: "within the interval", Agrees: low <= expected && expected <= high}
}

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

// Result is what an experiment found.
type Result struct {
	Experiment string `json:"experiment"`
	Seed       uint64 `json:"seed"`
	Quick      bool   `json:"quick"`
	Complete   bool   `json:"complete"` // false after an interruption
	Rows       []Row  `json:"rows"`
	Fits       []Fit  `json:"fits,omitempty"`

	Checks []Check  `json:"checks"`          // whether it agrees with the paper; of what is finished
	Notes  []string `json:"notes,omitempty"` // what was run, in sentences

	Summary [][]string `json:"-"` // a table for a person, headings first
	Figures []Figure   `json:"-"` // none where nothing was finished
}

// Agrees reports whether all checks do.
func (r Result) Agrees() bool {
	for _, c := range r.Checks {
		if !c.Agrees {
			return false
		}
	}
	return true
}
