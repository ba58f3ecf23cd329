package noise

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Epsilon is a privacy parameter as a ratio of whole numbers, so that what is drawn by it can be drawn exactly.
type Epsilon struct{ Num, Den uint64 }

// Limits of an Epsilon: beyond them a mechanism protects nobody, or answers nothing.
const (
	MinEpsilon = 0x1p-30
	MaxEpsilon = 64
	maxDen     = 1 << 54
)

// ErrEpsilon is wrapped by the error of a parameter that is out of range.
var ErrEpsilon = errors.New("noise: bad epsilon")

// Eps is eps, rounded down to [Digits] binary digits: it promises no less, and denominators stay small enough for noise of large sensitivities. eps is from
// [MinEpsilon] to [MaxEpsilon], else the result fails its Check.
func Eps(eps float64) Epsilon {
	if !(eps >= MinEpsilon && eps <= MaxEpsilon) {
		return Epsilon{}
	}
	fraction, exponent := math.Frexp(eps) // eps = fraction·2^exponent, fraction in [1/2, 1)
	num, down := uint64(math.Floor(math.Ldexp(fraction, Digits))), Digits-exponent
	shift := min(bits.TrailingZeros64(num), down)
	return Epsilon{num >> shift, 1 << (down - shift)}
}

// Digits are those that Eps keeps: an epsilon of 1/3 is 6e-8 of itself smaller.
const Digits = 24

// Float is the epsilon as a number.
func (e Epsilon) Float() float64 { return float64(e.Num) / float64(e.Den) }

// Check refuses what is out of range.
func (e Epsilon) Check() error {
	if e.Num < 1 || e.Den < 1 || e.Den > maxDen || e.Num > MaxEpsilon*e.Den || e.Float() < MinEpsilon {
		return fmt.Errorf("%w: %d/%d, want from 2^-30 to 64, with a denominator of at most 2^54", ErrEpsilon, e.Num, e.Den)
	}
	return nil
}

// String writes it as people do.
func (e Epsilon) String() string { return fmt.Sprint(e.Float()) }

// laplaceBits: two-sided geometric noise of a scale of at most 2^54 reaches 2^60 with a probability below e^-64. Sums, maxima and comparisons with it fit
// an int64, and what clamps them comes up as good as never.
const laplaceBits = 54

// Draws reports whether noise of this epsilon can be drawn for a sensitivity: that is from 1, its product with the denominator at most 2^62, and its ratio
// to epsilon, the scale of the noise, at most 2^54.
func (e Epsilon) Draws(sensitivity uint64) bool {
	hi, lo := bits.Mul64(e.Den, sensitivity)
	return hi == 0 && lo > 0 && lo <= 1<<62 && (lo-1)>>laplaceBits < e.Num
}

// Keep is true with probability e^{-loss·e/per}, exactly: how mechanisms accept a candidate that is worse than the best. It must draw for per.
func (e Epsilon) Keep(s *Stream, loss, per uint64) bool {
	e.must(per)
	hi, lo := bits.Mul64(loss, e.Num)
	den := e.Den * per
	if hi >= den {
		return false // e^{-2^64}
	}
	whole, rest := bits.Div64(hi, lo, den)
	for range whole {
		if !s.expMinusRatio(1, 1) {
			return false
		}
	}
	return s.expMinusRatio(rest, den)
}

// Laplace is two-sided geometric noise that makes an integer of a sensitivity e-private: P(x) proportional to e^{-|x|·e/sensitivity}. It must draw for the
// sensitivity.
func (e Epsilon) Laplace(s *Stream, sensitivity uint64) int64 {
	e.must(sensitivity)
	return TwoSidedGeometric(s, e.Num, e.Den*sensitivity)
}

func (e Epsilon) must(sensitivity uint64) {
	if !e.Draws(sensitivity) {
		panic(fmt.Sprintf("noise: a sensitivity of %d at epsilon %d/%d is not among those that are drawn", sensitivity, e.Num, e.Den))
	}
}
