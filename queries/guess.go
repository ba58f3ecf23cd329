package queries

import (
	"fmt"
	"maps"
	"slices"
)

// guess are the members that the mechanism guess_and_check reads.
type guess struct {
	Value     *float64
	HalfWidth *float64
	Measure   *bool // nil: it is left to the mechanism
}

// guessing are these in a body whose answer is one number.
type guessing struct{ Guess guess }

func (g *guessing) guess() *guess { return &g.Guess }

var zero = 0.0

func (g *guess) members() []member {
	return []member{
		optional("guess", number{into: &g.Value}, "under guess_and_check: your own guess of the answer; default: the answer on the check part where a model or predictions are asked about, else on the training and the check part together"),
		optional("half_width", number{into: &g.HalfWidth, above: &zero}, "under guess_and_check: the half-width that you want, if your guess passes or the answer is measured; default: planned by the server"),
		optional("measure", eitherTruth{&g.Measure}, "under guess_and_check: true to be told where the holdout is, whatever was guessed: a narrow interval, for a token and a fortieth of all questions, rounded up. Of means and shares, also under a condition. "+
			"false to have a guess checked. Default: measured where only that reaches your half_width, or where the guess would be a model's score (not the difference of two) on rows that it may have been fitted to, while less than half of the tokens are spent; else checked"),
	}
}

// rules checks them against the range of the answer.
func (g *guess) rules(v *violations, pointer string, r Range) {
	if !r.Valid() {
		return
	}
	if g.Value != nil && !r.Contains(*g.Value) {
		v.add(pointer+"/guess", fmt.Sprintf("must lie in the range of the answer, %v", r))
	}
	if g.HalfWidth != nil && *g.HalfWidth > r.High-r.Low {
		v.add(pointer+"/half_width", "must not be more than the width of the answer's range")
	}
}

// itemGuesses is the member "guess" of a body whose answer is items, each checked by itself.
type itemGuesses struct{ Guesses map[string]float64 }

func (g *itemGuesses) ofItems() map[string]float64 { return g.Guesses }

func (g *itemGuesses) member() member {
	return optional("guess", itemGuessesForm{&g.Guesses}, "under guess_and_check: your own guesses of some of the answer's items, by their names; default: what the check part says where a model or predictions are asked about, else the training and the check part together")
}

// itemGuessesForm is an object of numbers by the names of items. Which there are is known when the query is compiled.
type itemGuessesForm struct{ into *map[string]float64 }

func (f itemGuessesForm) read(v *violations, pointer string, in *value) {
	if in.kind != objectValue {
		v.wrongType(pointer, `an object of numbers by the names of the answer's items, such as {"SFO": 0.3}`, in)
		return
	}
	if len(in.members) == 0 || len(in.members) > maxItemGuesses {
		v.add(pointer, fmt.Sprintf("must have 1 to %d guesses", maxItemGuesses))
		return
	}
	all := make(map[string]float64, len(in.members))
	for _, m := range in.members {
		x, ok := m.value.float()
		if !ok {
			v.add(pointer+"/"+escape(m.name), "must be a finite number")
			return
		}
		all[m.name] = x
	}
	*f.into = all
}

// maxItemGuesses is as many as the answer with the most items has: a reliability diagram, three of each bin.
const maxItemGuesses = 3 * MaxEdges

func (f itemGuessesForm) canonical() any {
	if *f.into == nil {
		return nil
	}
	o := make(map[string]any, len(*f.into))
	for _, name := range slices.Sorted(maps.Keys(*f.into)) {
		o[name] = (*f.into)[name]
	}
	return o
}

func (f itemGuessesForm) schema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "number"}, "minProperties": 1, "maxProperties": maxItemGuesses}
}
