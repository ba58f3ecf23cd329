package bounds

import (
	"math"
	"math/big"
	"testing"
)

// TestLogBinomialIsABound: the logarithm of a count of transcripts is never below the exact one, and above it by no more than its margin for
// rounding. Exact counts are whole numbers of any size; one below would let a union be over fewer transcripts than there are.
func TestLogBinomialIsABound(t *testing.T) {
	for _, n := range []int64{2, 3, 10, 57, 300, 2000} {
		for k := int64(1); k <= n; k = max(k+1, k*9/8) {
			exact := new(big.Float).SetPrec(200).SetInt(new(big.Int).Binomial(n, k))
			mantissa, exponent := new(big.Float), 0
			exponent = exact.MantExp(mantissa)
			m, _ := mantissa.Float64()
			want := math.Log(m) + float64(exponent)*math.Ln2
			got := logBinomial(n, k)
			if got < want || got > want*(1+1e-9)+1e-9 {
				t.Errorf("ln C(%d, %d) is %v, the bound %v", n, k, want, got)
			}
		}
	}
}
