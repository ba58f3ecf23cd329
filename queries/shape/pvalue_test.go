package shape

import "testing"

// TestPValueAtTheLevel: of an answer that rejects at its own level and at none below, the p-value is the level as it was declared. It notices
// 1 - 0.95 = 0.050000000000000044 beside a verdict of yes.
func TestPValueAtTheLevel(t *testing.T) {
	for confidence, want := range map[float64]float64{0.95: 0.05, 0.9: 0.1, 0.99: 0.01, 0.999: 0.001} {
		level := 1 - confidence
		o := Outcome{Level: level, Parts: []Part{{At: func(at float64) (low, high float64, ok bool) { return at, 1, true }}}}
		o.Parts[0].Low = level
		got := pValue(o, func(o Outcome) bool { return o.Parts[0].Low >= level })
		if got == nil || *got > want || *got < want-1e-15 || *got > level {
			t.Errorf("at a confidence of %v: %v, want %v or a rounding less", confidence, *got, want)
		}
	}
}
