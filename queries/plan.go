package queries

// Plan is a query as row functions and the way back from their means to the answer.
type Plan struct {
	Functions []RowFunction // what is asked: one question each
	Target    string        // what the interval is about, in a sentence
	combine   func(n int64, parts []Part) Result
	describe  Description
}

// Part is a released mean of one row function, in [0,1].
type Part struct {
	Value     float64
	Low, High float64 // the interval, where Bounded
	Bounded   bool
}

// Result is the answer in the query's own units.
type Result struct {
	Value     *float64 // nil where the answer is undefined: the condition holds nowhere as far as can be told
	Low, High *float64 // nil where a part has no interval
}

// Combine turns the released means of Functions, in their order, into the answer. n is the number of units of the holdout.
func (p *Plan) Combine(n int64, parts []Part) Result { return p.combine(n, parts) }

// Description is a plan in words, for people.
type Description struct {
	Functions []string `json:"row_functions"` // each row function, in words and canonical text
	Combine   string   `json:"combine"`       // how their means make the answer
	Null      string   `json:"null"`          // what a null counts as
	Target    string   `json:"target"`        // what the interval is about
	Questions int      `json:"questions"`     // the cost
}

// Describe says what will be asked.
func (p *Plan) Describe() Description { return p.describe }
