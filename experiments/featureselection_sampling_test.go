package experiments

import "testing"

func BenchmarkSelection(b *testing.B) {
	s := newSelectionSampler(selectionSize{10000, 10000, 0, []int{10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500}})
	b.Run("standard", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			s.standard(uint64(i))
		}
	})
	b.Run("thresholdout", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			s.thresholdout(uint64(i))
		}
	})
}
