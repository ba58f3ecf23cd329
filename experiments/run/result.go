package run

// Fit is an exponent: the slope of ln y on ln x, with a 95% interval.
type Fit struct {
	Method   string  `json:"method"`
	Of       string  `json:"of"` // y
	Exponent float64 `json:"exponent"`
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

// Agrees reports whether all checks do.
func (r Result) Agrees() bool {
	for _, c := range r.Checks {
		if !c.Agrees {
			return false
		}
	}
	return true
}
