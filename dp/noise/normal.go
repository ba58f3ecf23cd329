package noise

import (
	"fmt"
	"math"
	"math/big"
)

// Saturation bounds what the samplers return: noise beyond ±Saturation is returned as ±Saturation. A sum of row functions
// is at most 2^61 (2^31 units of 2^30), so that sum plus noise, clipped to the sum's range, is the same either way.
const Saturation = int64(1) << 62

// MaxScale is the largest scale of a sampler, in units of the integer grid.
const MaxScale = float64(1 << 62)

// RoundedNormal returns floor(scale*Z + 1/2) for a standard normal Z, exactly: the probability of each integer is that of the
// real variable. scale is positive and at most MaxScale; like every float64 it is a dyadic rational, taken as it is.
//
// Z = ±(k + x) comes from Karney's algorithm N (arXiv 1303.6257), in which x is a uniform deviate whose binary digits are
// drawn only as far as they are looked at. All tests are comparisons of digits, hence exact; the digits go on until the
// integer that scale*Z rounds to is decided, which happens with probability 1.
func RoundedNormal(s *Stream, scale float64) int64 {
	if !(scale > 0 && scale <= MaxScale) {
		panic(fmt.Sprintf("noise: scale %v is not in (0, 2^62]", scale))
	}
	for {
		k := s.geometricHalf()
		if !s.acceptInteger(k) {
			continue
		}
		x := new(uniform)
		if !s.acceptFraction(k, x) {
			continue
		}
		return roundProduct(s, scale, k, x, s.flip())
	}
}

// geometricHalf returns k >= 0 with probability e^{-k/2} (1 - e^{-1/2}): step N1.
func (s *Stream) geometricHalf() uint64 {
	k := uint64(0)
	for s.expMinusHalf() {
		k++
	}
	return k
}

// acceptInteger returns true with probability e^{-k(k-1)/2}: step N2.
func (s *Stream) acceptInteger(k uint64) bool {
	if k < 2 {
		return true
	}
	for range k * (k - 1) {
		if !s.expMinusHalf() {
			return false
		}
	}
	return true
}

// acceptFraction returns true with probability e^{-x(2k+x)/2}: step N4, k+1 trials of probability e^{-x(2k+x)/(2k+2)}.
func (s *Stream) acceptFraction(k uint64, x *uniform) bool {
	for range k + 1 {
		if !s.vonNeumann(k, x) {
			return false
		}
	}
	return true
}

// expMinusHalf returns true with probability e^{-1/2}: algorithm H, the length of a falling run of uniform deviates that
// begins below 1/2 is even.
func (s *Stream) expMinusHalf() bool {
	last := new(uniform)
	if s.digit(last, 0)>>63 == 1 {
		return true // the run has length 0
	}
	for even := false; ; even = !even {
		next := new(uniform)
		if !s.less(next, last) {
			return even
		}
		last = next
	}
}

// vonNeumann returns true with probability e^{-x(2k+x)/(2k+2)}: algorithm B, a falling run that begins below x and that
// also ends, at each step, with probability 1-(2k+x)/(2k+2).
func (s *Stream) vonNeumann(k uint64, x *uniform) bool {
	last := x
	for even := true; ; even = !even {
		next := new(uniform)
		if !s.less(next, last) {
			return even
		}
		switch f := s.Below(2*k + 2); {
		case f < 2*k:
		case f > 2*k || !s.less(new(uniform), x):
			return even
		}
		last = next
	}
}

// uniform is a deviate in (0,1): the digits, base 2^64, that have been looked at so far.
type uniform struct{ digits []uint64 }

// digit returns digit i of u, drawing what is missing.
func (s *Stream) digit(u *uniform, i int) uint64 {
	for len(u.digits) <= i {
		u.digits = append(u.digits, s.Uint64())
	}
	return u.digits[i]
}

// less reports whether a < b.
func (s *Stream) less(a, b *uniform) bool {
	for i := 0; ; i++ {
		if x, y := s.digit(a, i), s.digit(b, i); x != y {
			return x < y
		}
	}
}

// roundProduct returns ±scale*(k+x) rounded half up, drawing digits of x until every continuation rounds alike.
func roundProduct(s *Stream, scale float64, k uint64, x *uniform, negative bool) int64 {
	fraction, exponent := math.Frexp(scale)
	mantissa := big.NewInt(int64(fraction * (1 << 53))) // scale = mantissa * 2^shift
	shift := exponent - 53
	integer := new(big.Int).SetUint64(k)
	for digits := 1; ; digits++ {
		s.digit(x, digits-1)
		known := new(big.Int).Set(integer)
		for _, d := range x.digits[:digits] {
			known.Lsh(known, 64).Add(known, new(big.Int).SetUint64(d))
		}
		// scale*(k+x) lies between low and high, both over 2^down.
		low := new(big.Int).Mul(mantissa, known)
		high := new(big.Int).Mul(mantissa, new(big.Int).Add(known, big.NewInt(1)))
		down := 64*digits - shift
		if negative {
			low, high = high.Neg(high), low.Neg(low)
		}
		a, b := roundHalfUp(low, down), roundHalfUp(high, down)
		if a.Cmp(b) == 0 {
			return saturate(a)
		}
	}
}

// roundHalfUp returns floor(v/2^down + 1/2); down may be negative.
func roundHalfUp(v *big.Int, down int) *big.Int {
	if down <= 0 {
		return new(big.Int).Lsh(v, uint(-down))
	}
	half := new(big.Int).Lsh(big.NewInt(1), uint(down-1))
	return half.Add(half, v).Rsh(half, uint(down)) // Rsh rounds toward minus infinity
}

func saturate(v *big.Int) int64 {
	if v.CmpAbs(big.NewInt(Saturation)) >= 0 {
		return Saturation * int64(v.Sign())
	}
	return v.Int64()
}
