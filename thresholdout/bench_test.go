package thresholdout

import "testing"

// BenchmarkStep is one answer of each mechanism in the middle of its budget.
func BenchmarkStep(b *testing.B) {
	const n = 20_000
	for _, c := range []struct {
		name     string
		spec     Spec
		training float64
	}{
		{"gaussian", Spec{Mechanism: Gaussian}, 0},
		{"constant", Spec{Mechanism: Gaussian, Sigma: 0.01}, 0},
		{"rounds", Spec{Mechanism: Gaussian, Rounds: 4}, 0},
		{"published", Spec{Mechanism: Gaussian, Published: true}, 0},
		{"pass", Spec{Mechanism: GuessAndCheck, Training: n}, 0.3},
		{"fail", Spec{Mechanism: GuessAndCheck, Training: n}, 0.9},
		{"thresholdout", Spec{Mechanism: Thresholdout, Training: n}, 0.3},
		{"laplace", Spec{Mechanism: Thresholdout, Form: FormLaplace, Training: n}, 0.3},
		{"split", Spec{Mechanism: Split}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.spec.N = n
			p := must(b, c.spec)
			state := State{Questions: 400, Tokens: 1}
			if p.Rounds > 0 {
				state = State{Questions: 400, Rounds: 1, InRound: 100}
			}
			if !p.HasTokens() {
				state.Tokens = 0
			}
			from, to := p.Slice(state)
			in := Input{Holdout: mean(0.3, to-from), Training: mean(c.training, n)}
			key := Keyed{Query: "sha256:q"}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Step(p, state, in, key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
