package shape

import (
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Selection is the shape of an answer that is the best of many candidates, each a row function of one range; with Least the functions
// are the [Opposite] of what is asked about.
type Selection struct {
	Names []string
	Range Range // of the candidates
	Least bool
	// Questions are what it costs as one release; 0 is 1.
	Questions int64
}

// Plan is the plan of the selection among functions.
func (s Selection) Plan(functions []rowfn.Function) *Plan {
	return &Plan{Functions: functions, Range: s.Range, Program: []Release{{Kind: Select, Count: len(functions), Questions: s.Questions}}, Shape: s}
}

func (s Selection) items() []string { return s.Names }

// combine selects. A mean m of a row function is the answer Low + m·width; of least, High - m·width.
func (s Selection) combine(o Outcome) Result {
	width := interval.Point(s.Range.High).Sub(interval.Point(s.Range.Low))
	inUnits := func(regret float64) *float64 {
		regret = width.Mul(interval.Point(regret)).Clip(0, s.Range.High-s.Range.Low).High
		return &regret
	}
	if len(o.Choices) > 0 {
		choice := o.Choices[0]
		result := Result{Selected: s.Names[choice.Index]}
		if choice.Bounded {
			result.Regret = inUnits(choice.Regret)
		}
		return result
	}
	best := 0
	for i, p := range o.Parts {
		if p.Value > o.Parts[best].Value {
			best = i
		}
	}
	result := Result{Selected: s.Names[best]}
	most := 0.0 // that another may be ahead
	for i, p := range o.Parts {
		part := p
		if s.Least { // back to the candidate's own units
			part = Part{Value: 1 - p.Value, Low: 1 - p.High, High: 1 - p.Low, Bounded: p.Bounded}
		}
		item := Item{Of: s.Names[i]}
		item.is(finish(part.Value, part.interval(), part.Bounded, s.Range, 1))
		result.Items = append(result.Items, item)
		if i != best {
			ahead := interval.Point(p.interval().High).Sub(interval.Point(o.Parts[best].interval().Low))
			most = max(most, ahead.High)
		}
	}
	if bounded(o.Parts) {
		result.Regret = &most
		if most > 0 { // else 0 exactly, without rounding outward
			result.Regret = inUnits(most)
		}
	}
	return result
}
