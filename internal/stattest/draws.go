package stattest

import "pgregory.net/rapid"

// Further is a property that draws its cases from further on in the random numbers, for a check that is made in several turns. A rapid.Check that is
// repeated as it is draws the same cases again when a seed is set (RAPID_SEED or -rapid.seed); turns that differ draw others.
func Further(turn int, property func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		for range turn {
			rapid.Uint64().Draw(t, "left out")
		}
		property(t)
	}
}
