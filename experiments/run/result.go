package run

import "github.com/holdoutd/holdoutd/experiments/run/checks"

// Fit is an exponent: the slope of ln y on ln x, with a 95% interval.
type Fit struct {
	Method   string  `json:"method"`
	Of       string  `json:"of"` // y
	Exponent float64 `json:"exponent"`
	Error    float64 `json:"standard_error"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Points   int     `json:"points"`
	Freedom  int     `json:"freedom"` // degrees of freedom of the standard error
}

// Result is what an experiment found.
type Result struct {
	Experiment string `json:"experiment"`
	Seed       uint64 `json:"seed"`
	Quick      bool   `json:"quick"`
	Complete   bool   `json:"complete"` // false after an interruption
	Rows       []Row  `json:"rows"`
	Fits       []Fit  `json:"fits,omitempty"`

	Checks     []checks.Check `json:"checks"`                // whether it agrees with what was expected; none after an interruption
	FalseAlarm float64        `json:"false_alarm,omitempty"` // with which any check disagrees although all is as expected
	Notes      []string       `json:"notes,omitempty"`       // what was run, in sentences

	Summary [][]string `json:"-"` // a table for a person, headings first
	Figures []Figure   `json:"-"` // none where nothing was finished
}

// Compare judges the comparisons of a complete run. Those of an interrupted run are dropped: levels and powers are those of the whole run, and
// an agreement of what happens to be finished is none.
func (r *Result) Compare(all []checks.Comparison) {
	if !r.Complete {
		return
	}
	r.Checks = checks.Judge(all, checks.RunFalseAlarm)
	r.FalseAlarm = checks.FalseAlarm(r.Checks)
}

// Agrees reports whether the run is complete, something was compared, and all of it agrees.
func (r Result) Agrees() bool {
	all, _ := checks.Agree(r.Checks)
	return r.Complete && len(r.Checks) > 0 && all
}

// Agreeing is how many comparisons agree.
func (r Result) Agreeing() int {
	_, count := checks.Agree(r.Checks)
	return count
}
