package noise

import (
	"fmt"
	"math/bits"
)

// TwoSidedGeometric returns an integer X with P(X = x) = (1-a)/(1+a) a^{|x|}, a = e^{-num/den}, exactly. It is the discrete Laplace law at any rational
// scale den/num (Ghosh, Roughgarden and Sundararajan, STOC 2009: of all private noise for a count it serves every user best); [DiscreteLaplace] is the same
// for whole scales. Added to a count of sensitivity 1 it is (num/den)-differentially private. num is from 1 to 2^60, den from 1 to 2^62.
func TwoSidedGeometric(s *Stream, num, den uint64) int64 {
	mustBeRatio(num, den)
	for {
		x := s.geometric(num, den)
		if !s.flip() {
			return x
		}
		if x != 0 { // 0 has one sign only
			return -x
		}
	}
}

// Geometric returns an integer X >= 0 with P(X = x) = (1-a) a^x, a = e^{-num/den}, exactly: exponential noise of scale den/num, rounded down. A count with
// it is never below the true one. To an integer of sensitivity D it gives (D·num/den, 1-e^{-D·num/den})-privacy and no better, since only one of two tables
// can have the lowest values: it is for parts of a mechanism, and not for releases. num is from 1 to 2^60, den from 1 to 2^62; beyond Saturation it is
// Saturation.
func Geometric(s *Stream, num, den uint64) int64 {
	mustBeRatio(num, den)
	return s.geometric(num, den)
}

func mustBeRatio(num, den uint64) {
	if num < 1 || num > 1<<60 || den < 1 || den > 1<<62 {
		panic(fmt.Sprintf("noise: noise of e^{-%d/%d} is not among what is drawn", num, den))
	}
}

// geometric returns k >= 0 with probability (1-a) a^k, a = e^{-num/den}, exactly, however near to 1 a is; beyond Saturation it is Saturation. A geometric
// variable of e^{-1/den} is cut into runs of num, each of which is one of e^{-num/den} (Canonne, Kamath and Steinke, Algorithm 2).
func (s *Stream) geometric(num, den uint64) int64 {
	u := s.Below(den)
	for !s.expMinusRatio(u, den) {
		u = s.Below(den)
	}
	v := uint64(0)
	for s.expMinusRatio(1, 1) {
		v++
	}
	hi, lo := bits.Mul64(den, v)
	lo, carry := bits.Add64(lo, u, 0)
	if hi += carry; hi >= num {
		return Saturation
	}
	run, _ := bits.Div64(hi, lo, num)
	return int64(min(run, uint64(Saturation)))
}
