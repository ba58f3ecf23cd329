package noise

// DiscreteLaplace returns an integer X with P(X = x) proportional to e^{-|x|/scale}, exactly: algorithm 2 of Canonne, Kamath
// and Steinke (arXiv 2004.00010). scale is a whole number from 1 to 2^62. Added to an integer of sensitivity D it is
// (D/scale)-differentially private. P(|X| >= x) < e^{-(x-1)/scale} for x >= 1.
func DiscreteLaplace(s *Stream, scale uint64) int64 {
	if scale < 1 || scale > 1<<62 {
		panic("noise: the scale of a discrete Laplace variable is not in [1, 2^62]")
	}
	for {
		u := s.Below(scale)
		if !s.expMinusRatio(u, scale) {
			continue
		}
		v := uint64(0)
		for s.expMinusRatio(1, 1) {
			v++
		}
		negative := s.flip()
		if negative && u == 0 && v == 0 {
			continue // 0 has one sign only
		}
		x := Saturation
		if v <= uint64(Saturation)/scale {
			x = min(int64(u+scale*v), Saturation)
		}
		if negative {
			x = -x
		}
		return x
	}
}

// expMinusRatio returns true with probability e^{-a/b}, 0 <= a <= b: the first k at which a trial of probability
// (a/b)/k fails is odd.
func (s *Stream) expMinusRatio(a, b uint64) bool {
	for k := uint64(1); ; k++ {
		if s.Below(b) >= a || s.Below(k) != 0 {
			return k%2 == 1
		}
	}
}
