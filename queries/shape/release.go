package shape

import "errors"

// ReleaseKind says how row functions that belong together may be released.
type ReleaseKind uint8

// The kinds of release.
const (
	Number ReleaseKind = iota // each mean by itself
	Vector                    // all means as one vector, which releases less than its coordinates one by one
	Select                    // only which mean is the largest
)

// Release is a stretch of a plan's row functions that may be released as one. A mechanism that cannot releases numbers
// instead: Vector and Select say what is enough, not what must be hidden.
type Release struct {
	Kind  ReleaseKind
	Count int // row functions
	// Variance of a Vector is a sure bound, over all tables, of the variance over the units of its coordinates, summed:
	// at most Count/4; 1-1/d for d functions of which one is 1 and the others 0 at every unit.
	Variance float64
	// Questions are what a Select costs, where it is released as one; 0 is 1. The more, the less it errs.
	Questions int64
	// Optional Numbers are released as far as tokens last, and are Missing after that. Without it, a question
	// is answered whole or not asked.
	Optional bool
}

// Price is how many questions a selection costs that is released as one.
func (r Release) Price() int64 { return max(1, r.Questions) }

// ErrSpent is what a Releaser returns for an Optional number for which no token is left.
var ErrSpent = errors.New("shape: no token is left for an optional mean")

// Releaser releases means of a plan's row functions: a mechanism, or what foresees one.
type Releaser interface {
	// Together reports whether vectors and selections can be released as one.
	Together() bool
	// Number releases the mean of one row function of Functions.
	Number(function int) (Part, error)
	// Vector releases the means of count row functions from first on, if Together.
	Vector(first, count int, variance float64) ([]Part, error)
	// Select releases which of count row functions from first on has the largest mean, for so many questions, if Together.
	Select(first, count int, questions int64) (Choice, error)
}

// OneByOne are the means of count row functions from first on, each released by number: a vector that is better released so.
func OneByOne(first, count int, number func(function int) (Part, error)) ([]Part, error) {
	parts := make([]Part, count)
	for i := range parts {
		var err error
		if parts[i], err = number(first + i); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// Release runs the plan's program. n is the number of units of the holdout.
func (p *Plan) Release(n int64, r Releaser) (Outcome, error) {
	out := Outcome{N: n}
	if s, ok := p.Shape.(Search); ok {
		for range s.Steps {
			function := s.Next(out.Parts)
			part, err := r.Number(function)
			if err != nil {
				return out, err
			}
			part.Function = function
			out.Parts = append(out.Parts, part)
		}
		return out, nil
	}
	first := 0
	for _, release := range p.Releases() {
		if err := out.release(r, release, first); err != nil {
			return out, err
		}
		first += release.Count
	}
	return out, nil
}

func (out *Outcome) release(r Releaser, release Release, first int) error {
	switch {
	case release.Kind == Vector && r.Together():
		parts, err := r.Vector(first, release.Count, release.Variance)
		for i := range parts {
			parts[i].Function = first + i
		}
		out.Parts = append(out.Parts, parts...)
		return err
	case release.Kind == Select && r.Together():
		choice, err := r.Select(first, release.Count, release.Price())
		out.Choices = append(out.Choices, choice)
		return err
	}
	spent := false
	for i := first; i < first+release.Count; i++ {
		part := Part{Missing: true}
		if !spent {
			var err error
			part, err = r.Number(i)
			if spent = release.Optional && errors.Is(err, ErrSpent); spent {
				part = Part{Missing: true}
			} else if err != nil {
				return err
			}
		}
		part.Function = i
		out.Parts = append(out.Parts, part)
	}
	return nil
}

// Step is the place, from 0, of a row function among those that are asked one after another: a search asks one of each step.
func (p *Plan) Step(function int) int {
	if _, ok := p.Shape.(Search); ok {
		return stepOf(function)
	}
	return function
}

// Sequential reports whether what is asked depends on earlier answers of the same query, as in a search.
func (p *Plan) Sequential() bool {
	_, ok := p.Shape.(Search)
	return ok
}

// Numbers is how many means are released where each is released by itself.
func (p *Plan) Numbers() int {
	if s, ok := p.Shape.(Search); ok {
		return s.Steps
	}
	if p.Checked() {
		return len(p.statistics)
	}
	return len(p.Functions)
}

// Releases are the plan's releases in order; a search is so many numbers.
func (p *Plan) Releases() []Release {
	if p.Program == nil {
		return []Release{{Kind: Number, Count: p.Numbers()}}
	}
	return p.Program
}
