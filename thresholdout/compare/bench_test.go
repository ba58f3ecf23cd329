package compare

import (
	"fmt"
	"testing"
)

// BenchmarkMethods: every method of a plan, remembered ("warm") and for an n never seen ("cold").
func BenchmarkMethods(b *testing.B) {
	for _, m := range methods() {
		r := Request{N: 1_000_000, Confidence: 0.95, Rounds: 5, Training: 1_000_000, Tokens: 20}
		for _, k := range []int64{100, 10_000} {
			b.Run(fmt.Sprintf("%s/%d/warm", m.name, k), func(b *testing.B) {
				for b.Loop() {
					if _, err := HalfWidthOf(m.name, r, k); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("%s/%d/cold", m.name, k), func(b *testing.B) {
				for r := r; b.Loop(); r.N++ {
					if _, err := HalfWidthOf(m.name, r, k); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
