package noise

// Exponential returns an index i with probability proportional to e^{-losses[i]/scale}, exactly: the exponential mechanism
// (McSherry and Talwar, FOCS 2007). A uniform index is kept with probability e^{-loss/scale}, and drawn again otherwise. The
// least loss must be 0, so that this takes len(losses) draws on average at the most; scale is from 1 to 2^62.
func Exponential(s *Stream, losses []uint64, scale uint64) int {
	if scale < 1 || scale > 1<<62 {
		panic("noise: the scale of an exponential mechanism is not in [1, 2^62]")
	}
	for {
		i := int(s.Below(uint64(len(losses))))
		if s.expMinus(losses[i], scale) {
			return i
		}
	}
}

// expMinus returns true with probability e^{-a/b}: as many trials of probability 1/e as a/b has whole ones, and one for the rest.
func (s *Stream) expMinus(a, b uint64) bool {
	for range a / b {
		if !s.expMinusRatio(1, 1) {
			return false
		}
	}
	return s.expMinusRatio(a%b, b)
}
