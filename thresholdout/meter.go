package thresholdout

// Names of the meters that a budget can have. A ledger keeps them by these names.
const (
	MeterQuestions = "questions" // releases, each paid whatever it says
	MeterTokens    = "tokens"    // wrong guesses
	MeterRounds    = "rounds"    // batches of questions that are chosen before any answer of the batch
)

// Meter is one of a guarantee's counters: its name and how much may be spent in all.
type Meter struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

// Amounts are what is spent, asked for or left, in each meter. A meter that a guarantee does not have stays 0.
type Amounts struct {
	Questions int64 `json:"questions"`
	Tokens    int64 `json:"tokens"`
	Rounds    int64 `json:"rounds,omitempty"`
}

// Of is the amount in the meter of this name; 0 for a name that no meter has.
func (a Amounts) Of(meter string) int64 {
	switch meter {
	case MeterQuestions:
		return a.Questions
	case MeterTokens:
		return a.Tokens
	case MeterRounds:
		return a.Rounds
	}
	return 0
}

// AmountsOf collects amounts that are kept by the names of their meters.
func AmountsOf(of func(meter string) int64) Amounts {
	return Amounts{Questions: of(MeterQuestions), Tokens: of(MeterTokens), Rounds: of(MeterRounds)}
}

// Plus adds amounts meter by meter.
func (a Amounts) Plus(b Amounts) Amounts {
	return Amounts{Questions: a.Questions + b.Questions, Tokens: a.Tokens + b.Tokens, Rounds: a.Rounds + b.Rounds}
}

// Minus subtracts amounts meter by meter.
func (a Amounts) Minus(b Amounts) Amounts {
	return Amounts{Questions: a.Questions - b.Questions, Tokens: a.Tokens - b.Tokens, Rounds: a.Rounds - b.Rounds}
}

// Limits are what may be spent in all.
func (p Params) Limits() Amounts {
	return Amounts{Questions: p.Questions, Tokens: p.Tokens, Rounds: p.Rounds}
}

// Meters are the counters that the guarantee has, in the order in which they are shown.
func (p Params) Meters() []Meter {
	limits := p.Limits()
	var meters []Meter
	for _, name := range []string{MeterQuestions, MeterTokens, MeterRounds} {
		if limit := limits.Of(name); limit > 0 {
			meters = append(meters, Meter{name, limit})
		}
	}
	return meters
}

// Spent is what a state has spent. A round is paid by its first question.
func (s State) Spent() Amounts {
	a := Amounts{Questions: s.Questions, Tokens: s.Tokens, Rounds: s.Rounds}
	if s.InRound > 0 {
		a.Rounds++
	}
	return a
}
