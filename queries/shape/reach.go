package shape

// Reach bounds how far the ends of an answer's interval are from its value in a holdout of n units, where those of the i-th number that is released are at most width(i) from that number's:
// in the answer's units, of an answer of items over all of them. Where the answer is more than its numbers moved to ranges, it is what the range leaves.
func (p *Plan) Reach(n int64, width func(i int) float64) float64 {
	within := func(r Range, i int) float64 { return (r.High - r.Low) * min(1, width(i)) }
	most := 0.0
	switch s := p.Shape.(type) {
	case Affine:
		return s.Scale(n) * min(1, width(0))
	case Moved:
		return within(s.Range, 0)
	case Root:
		return s.Equation.reach(width(0))
	case Made:
		return min(s.Range.High-s.Range.Low, width(0))
	case Roots:
		for i := range s.Equations {
			most = max(most, s.Equations[i].reach(width(i)))
		}
	case Shares:
		for i := range s.Names {
			if s.Where {
				return 1
			}
			most = max(most, min(1, width(i)))
		}
	case Each:
		next := 0
		for i := range s.Names {
			if s.Defined == nil || s.Defined[i] {
				most = max(most, min(within(s.Range, next), s.Within.High-s.Within.Low))
				next++
			}
		}
	case Fit:
		for i := range s.Names {
			most = max(most, min(1, width(i)))
		}
	case Selection:
		for i := range s.Names {
			most = max(most, within(s.Range, i))
		}
	case Bins:
		most = 1
		for i := range s.Names {
			most = max(most, s.Edges[i+1]-s.Edges[i])
		}
	default:
		return p.Range.High - p.Range.Low
	}
	return most
}

// reach is that of the root of an equation, which is known within width.
func (e *Equation) reach(width float64) float64 {
	if e.Link != Identity {
		width = 1
	}
	return (e.Range.High - e.Range.Low) * min(1, width)
}
