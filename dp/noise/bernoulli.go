package noise

import "math/big"

// BernoulliExp is true with probability e^{-num/den}, exactly, den from 1: Algorithm 1 of Canonne, Kamath and Steinke (arXiv 2004.00010), of
// which randomized response, permute-and-flip and the staircase are made.
func BernoulliExp(s *Stream, num, den uint64) bool {
	if den == 0 {
		panic("noise: e^{-num/0} is no probability")
	}
	return s.expMinus(num, den)
}

// ratio is true with probability a/b, 0 <= a <= b, exactly: a uniform number in [0,1) is compared with a/b, binary digit by binary digit, until they differ. That
// takes two digits on average, however large a and b are.
func (s *Stream) ratio(a, b *big.Int) bool {
	if a.Cmp(b) >= 0 {
		return true
	}
	for rest := new(big.Int).Set(a); rest.Sign() > 0; {
		digit := rest.Lsh(rest, 1).Cmp(b) >= 0
		if digit {
			rest.Sub(rest, b)
		}
		if s.flip() != digit {
			return digit // the uniform number's digit is the other one: it is below if ours is 1
		}
	}
	return false // all digits were alike, and a/b has no more: the uniform number is not below it
}

// expMinusBig is true with probability e^{-a/b}, 0 <= a, 0 < b, exactly.
func (s *Stream) expMinusBig(a, b *big.Int) bool {
	whole, rest := new(big.Int).QuoRem(a, b, new(big.Int))
	for one := big.NewInt(1); whole.Sign() > 0; whole.Sub(whole, one) {
		if !s.expMinusRatio(1, 1) {
			return false
		}
	}
	for k := uint64(1); ; k++ {
		if !s.ratio(rest, b) || s.Below(k) != 0 {
			return k%2 == 1
		}
	}
}
