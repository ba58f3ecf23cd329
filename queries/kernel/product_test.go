package kernel

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestDot: a sum of products is that of integers of any size, for values at both ends and lists of every length.
func TestDot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "values")
		value := rapid.OneOf(rapid.SampledFrom([]uint32{0, 1, uint32(rowfn.One) - 1, uint32(rowfn.One), uint32(rowfn.One)}), rapid.Uint32Range(0, uint32(rowfn.One)))
		a, b := rapid.SliceOfN(value, n, n).Draw(t, "a"), rapid.SliceOfN(value, n, n).Draw(t, "b")
		want := new(big.Int)
		for i := range a {
			want.Add(want, new(big.Int).Mul(big.NewInt(int64(a[i])), big.NewInt(int64(b[i]))))
		}
		if got := dot(a, b).Big(); got.Cmp(want) != 0 {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// TestDotAtTheLimit: as many units as a table can have, all with the largest value, need 91 bits; their sum is exact.
func TestDotAtTheLimit(t *testing.T) {
	ones := make([]uint32, MaxBlock)
	for i := range ones {
		ones[i] = uint32(rowfn.One)
	}
	var sum rowfn.Wide
	for left := int64(dataset.MaxRows); left > 0; left -= MaxBlock {
		if left == dataset.MaxRows || left < MaxBlock { // the first, and the rest
			sum = sum.Plus(dot(ones[:min(left, MaxBlock)], ones[:min(left, MaxBlock)]))
			continue
		}
		sum = sum.Plus(rowfn.Wide{Hi: 1 << 6}) // what the first was: 1024 · 2^60 = 2^70
	}
	want := new(big.Int).Lsh(big.NewInt(dataset.MaxRows), 2*rowfn.GridBits)
	if got := sum.Big(); got.Cmp(want) != 0 || dot(ones, ones) != (rowfn.Wide{Hi: 1 << 6}) || want.BitLen() > 91 {
		t.Errorf("%v, want %v", got, want)
	}
}
