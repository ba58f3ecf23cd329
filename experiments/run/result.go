package run

// Fit is an exponent: the slope of ln y on ln x, with a 95% interval.
type Fit struct {
	Method   string  `json:"method"`
	Of       string  `json:"of"` // y
	Exponent float64 `json:"exponent"`
	Error    float64 `json:"error"` // standard error of the exponent
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Points   int     `json:"points"`
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

// Agrees reports whether the run is complete and all checks agree: of one that was interrupted nothing is decided.
func (r Result) Agrees() bool { return r.Complete && len(r.Disagreeing()) == 0 }

// Disagreeing are the checks that do not agree.
func (r Result) Disagreeing() []Check {
	var found []Check
	for _, c := range r.Checks {
		if !c.Agrees {
			found = append(found, c)
		}
	}
	return found
}
