package thresholdout

var naiveKind = Kind{
	Name:        Naive,
	Says:        "answers with the exact holdout mean, and protects nothing",
	Unprotected: true,
	Variants:    []Variant{{"", (*naive)(nil)}},
	Plan:        planNaive,
	Read:        ReadAs[naive],
}

// naive releases the exact holdout mean, without an interval: what happens without protection.
type naive struct{ Head }

func planNaive(s Spec) (Mechanism, error) {
	return &naive{s.orDefault(DefaultQuestions).Head()}, nil
}

// Release implements [Mechanism].
func (m *naive) Release(s State, in Input, _ Noise) (Output, Memory, error) {
	return Output{Value: in.Holdout.value(0), Source: FromHoldout}, s.Memory, nil
}

// Preview implements [Mechanism].
func (m *naive) Preview(State, float64) *Interval { return nil }

// Promise implements [Mechanism].
func (m *naive) Promise(State) (Promise, bool) { return Promise{}, false }

// Fresh implements [Fresh]: the first answers, before anything was told.
func (m *naive) Fresh(begun, _ State) (units int64, sigma float64, ok bool) {
	return m.N, 0, begun.Questions == 0
}
