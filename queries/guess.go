package queries

// guess is the pair of members that the mechanism guess_and_check reads.
type guess struct {
	Value     *float64
	HalfWidth *float64
}

var zero = 0.0

func (g *guess) members() []member {
	return []member{
		optional("guess", number{into: &g.Value}, "under guess_and_check: your own guess of the answer; default: the training part's answer"),
		optional("half_width", number{into: &g.HalfWidth, above: &zero}, "under guess_and_check: the half-width of the interval that you want if your guess passes; default: planned by the server"),
	}
}

// rules checks the pair against the range of the answer.
func (g *guess) rules(v *violations, pointer string, r Range) {
	if !r.Valid() {
		return
	}
	if g.Value != nil && !r.Contains(*g.Value) {
		v.add(pointer+"/guess", "must lie in the range of the answer")
	}
	if g.HalfWidth != nil && *g.HalfWidth > r.High-r.Low {
		v.add(pointer+"/half_width", "must not be more than the width of the answer's range")
	}
}
