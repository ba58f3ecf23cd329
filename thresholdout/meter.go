package thresholdout

import (
	"fmt"
	"iter"
)

// Names of the meters that a budget can have. A ledger keeps them by these names.
const (
	MeterQuestions = "questions" // releases, each paid whatever it says
	MeterTokens    = "tokens"    // wrong guesses, measured answers, and broken promises
	MeterRounds    = "rounds"    // batches of questions that are chosen before any answer of the batch
)

// meterNames in the order in which they are shown.
var meterNames = [...]string{MeterQuestions, MeterTokens, MeterRounds}

// Meter is one of a guarantee's counters: its name and how much may be spent in all.
type Meter struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

// Amounts are what is spent, asked for or left, in each meter. A meter that a guarantee does not have stays 0.
type Amounts struct {
	Questions int64 `json:"questions"`
	Tokens    int64 `json:"tokens" doc:"spent on wrong guesses, on measured answers and on broken promises; of an explanation, at most"`
	Rounds    int64 `json:"rounds,omitempty" doc:"1 for the first question of a round"`
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

// All are the amounts by the names of their meters, in the order in which they are shown.
func (a Amounts) All() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, name := range meterNames {
			if !yield(name, a.Of(name)) {
				return
			}
		}
	}
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
func (h *Head) Limits() Amounts {
	return Amounts{Questions: h.Questions, Tokens: h.Tokens, Rounds: h.Rounds}
}

// Meters are the counters that the guarantee has, in the order in which they are shown.
func (h *Head) Meters() []Meter {
	limits := h.Limits()
	var meters []Meter
	for _, name := range meterNames {
		if limit := limits.Of(name); limit > 0 {
			meters = append(meters, Meter{name, limit})
		}
	}
	return meters
}

// HasTokens reports whether a budget has tokens beside the questions.
func (h *Head) HasTokens() bool { return h.Tokens > 0 }

// RoundSize is the most questions of a round, from 0: they are divided as equally as can be, larger rounds first.
func (h *Head) RoundSize(round int64) int64 {
	size := h.Questions / h.Rounds
	if round < h.Questions%h.Rounds {
		size++
	}
	return size
}

// Left is how many questions can still be asked; in rounds, after what earlier ones left unasked is gone.
func (h *Head) Left(s State) int64 {
	if h.Rounds == 0 {
		return h.Questions - s.Questions
	}
	left := -s.InRound
	for r := s.Rounds; r < h.Rounds; r++ {
		left += h.RoundSize(r)
	}
	return left
}

// Affordable is how many questions can be asked now, in one batch.
func (h *Head) Affordable(s State) int64 {
	switch {
	case h.Rounds == 0:
		return h.Questions - s.Questions
	case s.Rounds >= h.Rounds:
		return 0
	}
	return h.RoundSize(s.Rounds) - s.InRound
}

// EndRound is the state after the answers of a batch have been seen, where questions are asked in rounds.
func (h *Head) EndRound(s State) State {
	if h.Rounds > 0 && s.InRound > 0 {
		s.Rounds++
		s.InRound = 0
	}
	return s
}

// Spend is the state after so many questions and tokens more, whatever they released: nothing, if the question failed.
func (h *Head) Spend(s State, questions, tokens int64) State {
	s.Questions += questions
	s.Tokens += tokens
	if h.Rounds > 0 {
		s.InRound += questions
	}
	return s
}

// NeedsTokens reports whether a question is only answered while there are tokens, since every answer can take one. Tokens for broken promises are not needed
// for any other answer.
func (g Guarantee) NeedsTokens() bool {
	_, promises := g.own.(Promises)
	return g.HasTokens() && !promises
}

// pays is nil where the budget pays for so many questions of a release now; a release that can be wrong needs a token, too.
func (g Guarantee) pays(s State, questions int64) error {
	h := &g.Head
	switch {
	case h.Questions-s.Questions < questions:
		return ErrNoQuestions
	case h.Rounds > 0 && s.Rounds >= h.Rounds:
		return ErrNoRounds
	case h.Rounds > 0 && h.Affordable(s) < questions:
		return fmt.Errorf("%w in this round", ErrNoQuestions)
	case g.NeedsTokens() && !s.Reporting() && s.Tokens >= h.Tokens:
		return ErrNoTokens
	}
	return nil
}
