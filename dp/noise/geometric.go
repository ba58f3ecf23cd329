package noise

import (
	"fmt"
	"math/bits"
)

// TwoSidedGeometric returns an integer X with P(X = x) = (1-a)/(1+a) a^{|x|}, a = e^{-num/den}, exactly. It is the discrete Laplace law at any rational scale den/num (Ghosh, Roughgarden
// and Sundararajan, STOC 2009: of all private noise for a count it serves every user best); [DiscreteLaplace] is the same for whole scales. Added to a count of sensitivity 1
// it is (num/den)-differentially private. num is from 1 to 2^60, den from 1 to 2^62.
func TwoSidedGeometric(s *Stream, num, den uint64) int64 {
	if num < 1 || num > 1<<60 || den < 1 || den > 1<<62 {
		panic(fmt.Sprintf("noise: a two-sided geometric variable of e^{-%d/%d} is not among those that are drawn", num, den))
	}
	for {
		// A geometric variable of e^{-1/den}, cut into runs of num: each run is one of e^{-num/den} (Canonne, Kamath and Steinke, Algorithm 2).
		u := s.Below(den)
		if !s.expMinusRatio(u, den) {
			continue
		}
		v := uint64(0)
		for s.expMinusRatio(1, 1) {
			v++
		}
		hi, lo := bits.Mul64(den, v)
		lo, carry := bits.Add64(lo, u, 0)
		x := Saturation
		if hi += carry; hi < num {
			run, _ := bits.Div64(hi, lo, num)
			x = int64(min(run, uint64(Saturation)))
		}
		if !s.flip() {
			return x
		}
		if x != 0 { // 0 has one sign only
			return -x
		}
	}
}
