package seed

import "testing"

// TestValue: the default, another one, and what is no seed.
func TestValue(t *testing.T) {
	for text, want := range map[string]uint64{"": Default, "7": 7, "18446744073709551615": 1<<64 - 1} {
		t.Setenv(Variable, text)
		if got := Value(); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"0", "-1", "1.5", "random"} {
		t.Setenv(Variable, text)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken for a seed", text)
				}
			}()
			Value()
		}()
	}
}
