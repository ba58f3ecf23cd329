package shape

import (
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Statistic is a question that can be checked as one, as a plan declares it: more than the mean of one row function, and for a mechanism that checks guesses one question and at most
// one token. A plan says what is to be summed of each part; package session knows how those sums make the statistic of package thresholdout.
// Its value, like a mean's, is in [0,1]: 0 is the low end of the range of what the plan makes of it. That of a [Joint] is in units of its own.
type Statistic interface {
	// Batch is what a pass over a part has to sum, of which the outcome is found.
	Batch() rowfn.Batch
	// Sampled is what a pass over the training part has to sum: all of Batch, in the same places, and what else margins are planned by.
	Sampled() rowfn.Batch
}

// Checks is a plan's other form, for a mechanism that checks statistics: each is one number, released by itself, and Shape makes the answer of these
// numbers.
type Checks struct {
	Statistics []Statistic
	Shape      Shape
	Words      CheckWords

	Alike bool // its intervals are for units that are alike: drawn from one population
	// Clustered says that it is for units of several rows, and that a mechanism must know of them: thresholdout.Guarantee.ChecksClusters.
	Clustered bool
	OneLevel  bool // its intervals are known at the guarantee's own level alone, so that a test has no p-value by them
}

// Halved is a statistic of which the holdout has to be summed in two halves, cut by the order of its units.
type Halved interface{ Halves() bool }

// IsHalved says that a statistic is [Halved].
func IsHalved(s Statistic) bool { h, ok := s.(Halved); return ok && h.Halves() }

// CheckWords is what a description says where the plan is released by its [Checks]; what is said of its means where it is empty.
type CheckWords struct {
	Functions        []string
	Combine, Instead string // Combine stands where Instead, the beginning of the plan's own, was
}

// AsChecked is the plan of the same answer, released by its [Checks]: those that it declares, or else those that follow from its equations and means. Its functions are those of
// the passes over the training part.
func (p *Plan) AsChecked() *Plan {
	if p.Checked() {
		return p
	}
	c := p.Checks
	if c == nil || c.OneLevel && p.Test != nil {
		c = p.byEquations()
	}
	checked := *p
	checked.statistics, checked.Shape = c.Statistics, c.Shape
	checked.Functions, checked.Program = nil, nil
	for _, s := range c.Statistics {
		checked.Functions = append(checked.Functions, s.Sampled().Functions...)
	}
	if c.Clustered && p.Test != nil {
		test := *p.Test
		test.Mixed, checked.Test = true, &test
	}
	if slices.ContainsFunc(p.Program, func(r Release) bool { return r.Optional }) {
		checked.Program = []Release{{Kind: Number, Count: len(c.Statistics), Optional: true}}
	}
	for _, w := range []CheckWords{c.Words, p.CheckWords} {
		if w.Functions != nil {
			checked.Words.Functions = w.Functions
			checked.Words.Combine = w.Combine + strings.TrimPrefix(p.Words.Combine, w.Instead)
		}
	}
	return &checked
}

// byEquations are the checks that follow from a plan's equations: of a number that is the root of one, that root; of the difference of two, both together where no unit can be in
// both; of items, a root each. What is made of means in another way is made of the same means, each checked by itself: as a root it has an interval
// that follows its own variance.
func (p *Plan) byEquations() *Checks {
	if e := p.Equation(); e != nil {
		c := &Checks{Statistics: []Statistic{e}, Shape: p.Shape, Words: e.Words}
		if e.B != nil || e.Link != Identity {
			c.Shape = Root{e}
		}
		return c // a mean's shape is Affine
	}
	switch s := p.Shape.(type) {
	case Contrast:
		first, second := &p.Equations[0], &p.Equations[1]
		if !first.Whole {
			return &Checks{Statistics: []Statistic{first, second}, Shape: Between{first, second}}
		}
		return &Checks{Statistics: []Statistic{&Difference{first, second}}, Shape: Moved{p.Range}}
	case Groups, Bins:
		return p.Equations.items(s.items())
	case Shares:
		if s.Where {
			return p.Equations.items(s.Names)
		}
	case Moments:
		if s.Conditional {
			return p.ratios(s)
		}
	}
	means := MeansOf(p.Functions)
	if p.single {
		means.ofRows()
	}
	return &Checks{Statistics: means.statistics(), Shape: p.Shape}
}

// ratios are the checks of moments under a condition: each by itself the root of its equation, so that the condition's own share is not asked about.
func (p *Plan) ratios(m Moments) *Checks {
	last := len(m.Functions) - 1
	var ratios Equations
	for _, f := range m.Functions[:last] {
		ratios = append(ratios, Equation{A: f, B: &m.Functions[last], Whole: !m.Rows, Range: Range{f.Lo, f.Hi}})
	}
	if p.single {
		ratios.ofRows()
	}
	m.Functions, m.Conditional, m.Ratios = m.Functions[:last], false, true
	return &Checks{Statistics: ratios.statistics(), Shape: m}
}

// items are the checks of items that are each the root of an equation.
func (e Equations) items(names []string) *Checks {
	return &Checks{Statistics: e.statistics(), Shape: Roots{names, e}}
}

func (e Equations) statistics() []Statistic {
	all := make([]Statistic, len(e))
	for i := range e {
		all[i] = &e[i]
	}
	return all
}

// ByEquations is the plan without the checks that it declares: as checked, it is released by what follows from its equations and means.
func (p *Plan) ByEquations() *Plan {
	other := *p
	other.Checks = nil
	return &other
}

// Checked says that the plan is released by its statistics.
func (p *Plan) Checked() bool { return p.statistics != nil }

// Statistics are those by which the plan is released; nil where it is released by the means of its functions.
func (p *Plan) Statistics() []Statistic { return p.statistics }

// Pass is what one pass over a part has to sum for the plan, one statistic after another; sampled says that it is the training part. The pass over
// the training part sums the more.
func (p *Plan) Pass(sampled bool) (all rowfn.Batch) {
	if !p.Checked() {
		all.Functions = slices.Clip(p.Functions)
		p.withBeside(&all, sampled)
		return all
	}
	for _, s := range p.statistics {
		if sampled {
			all.Join(s.Sampled())
		} else {
			all.Join(s.Batch())
		}
	}
	return all
}

// Pieces is how many row functions, or statistics, the plan has: of a search more than it releases.
func (p *Plan) Pieces() int {
	if p.Checked() {
		return len(p.statistics)
	}
	return len(p.Functions)
}

// Some is the plan with some of its row functions, or of its statistics, alone, for a pass that sums these.
func (p *Plan) Some(from, to int) *Plan {
	some := *p
	some.beside = Beside{}
	if p.Checked() {
		some.statistics, some.Functions = p.statistics[from:to], nil
	} else {
		some.Functions = p.Functions[from:to]
	}
	return &some
}
