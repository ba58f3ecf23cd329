package shape

import "math"

// Place says how one number of an answer follows from the number that is released for it, so that a guess of the one is a guess of the other.
type Place struct {
	Range Range // of the answer's number; what is released is in [0,1]
	Link  Link
	Down  bool    // what is released falls as the number rises
	Step  float64 // of a quantile: the distance of neighbouring rungs, of which there are Steps and one more; 0: any number will do
	Steps int
	Own   bool // it is released as it is, in its own units
}

// Places are those of the numbers of a plan that is [Plan.Checked], in the order of its items, in a holdout of n units; nil where an item is not made of one released number.
func (p *Plan) Places(n int64) (all []Place) {
	if !p.Checked() {
		return nil
	}
	switch s := p.Shape.(type) {
	case Affine:
		times := s.times(n)
		all = []Place{{Range: Range{p.Range.Low * times, p.Range.High * times}}}
	case Root:
		all = []Place{{Range: s.Equation.Range, Link: s.Equation.Link}}
	case Moved:
		all = []Place{{Range: s.Range}}
	case Made:
		all = []Place{{Range: s.Range, Own: true}}
	case Rung:
		all = []Place{{Range: Range{s.Search.Low, s.Search.High}, Step: s.Search.Resolution, Steps: s.Search.Rungs}}
	case Roots:
		for _, e := range s.Equations {
			all = append(all, Place{Range: e.Range, Link: e.Link})
		}
	case Shares:
		if s.Where {
			return nil
		}
		for range s.Names {
			all = append(all, Place{Range: Range{0, 1}})
		}
	case Selection:
		for range s.Names {
			all = append(all, Place{Range: s.Range, Down: s.Least})
		}
	}
	if len(all) != p.Numbers() {
		return nil
	}
	return all
}

// unit is the place of a number in the range, from 0 to 1.
func (p Place) unit(x float64) float64 {
	return min(max((x-p.Range.Low)/(p.Range.High-p.Range.Low), 0), 1)
}

// Of is what is released for a number of the answer.
func (p Place) Of(x float64) float64 {
	switch {
	case p.Own:
		return x
	case p.Step > 0:
		return min(max(math.Round((x-p.Range.Low)/p.Step), 0), float64(p.Steps)) / float64(p.Steps)
	case p.Down:
		return 1 - p.unit(x)
	}
	return p.Link.inverse(p.unit(x))
}

// number is the number of the answer that is released so.
func (p Place) number(released float64) float64 {
	switch {
	case p.Own:
		return released
	case p.Step > 0:
		return min(p.Range.Low+math.Round(released*float64(p.Steps))*p.Step, p.Range.High)
	case p.Down:
		released = 1 - released
	}
	return p.Range.Low + p.Link.value(released)*(p.Range.High-p.Range.Low)
}

// Within is how far, to both sides, what is released may be from a place so that the number of the answer is within halfWidth of that of the place. A side on which the range ends before allows everything.
func (p Place) Within(released, halfWidth float64) float64 {
	switch {
	case p.Own:
		return halfWidth
	case p.Step > 0:
		return min(halfWidth/p.Step/float64(p.Steps), 1)
	}
	half := halfWidth / (p.Range.High - p.Range.Low)
	if p.Link == Identity {
		return min(half, 1)
	}
	at, most := p.Link.value(released), 1.0
	if at-half > 0 {
		most = min(most, released-p.Link.inverse(at-half))
	}
	if at+half < 1 {
		most = min(most, p.Link.inverse(at+half)-released)
	}
	return most
}

// HalfWidth is how far the number of the answer may be from that of a place where what is released is within so much of it.
func (p Place) HalfWidth(released, within float64) float64 {
	switch {
	case p.Own:
		return within
	case p.Step > 0:
		return within * p.Step * float64(p.Steps)
	case p.Link == Identity:
		return within * (p.Range.High - p.Range.Low)
	}
	at := p.number(released)
	return max(at-p.number(max(released-within, 0)), p.number(min(released+within, 1))-at)
}
