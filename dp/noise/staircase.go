package noise

import (
	"fmt"
	"math"
)

// Staircase is noise for integers of a sensitivity whose law goes down in steps (Geng and Viswanath, arXiv 1212.1186, the discrete mechanism of section 5):
// with b = e^{-Num/Den} and a block of Sensitivity integers, of which the first Width are the block's upper stair,
//
//	P(x) proportional to b^k for |x| = k·Sensitivity + i with i < Width, and to b^(k+1) for the other i.
//
// It is (Num/Den)-differentially private whatever the width. At a large epsilon it is much narrower than Laplace noise: the mean of |X| goes down as
// e^{-eps/2} and not as 1/eps.
type Staircase struct {
	Num, Den    uint64 // epsilon, as TwoSidedGeometric has it: Num from 1 to 2^60, Den from 1 to 2^62
	Sensitivity uint64 // from 1, at most 2^62
	Width       uint64 // of the upper stair, from 1 to Sensitivity
}

// NewStaircase is the staircase whose |X| has the least mean in the limit of large sensitivities: the upper stair has the share 1/(1+e^{eps/2}) of a block.
func NewStaircase(num, den, sensitivity uint64) Staircase {
	share := 1 / (1 + math.Exp(float64(num)/float64(den)/2))
	width := uint64(math.Round(share * float64(sensitivity)))
	return Staircase{num, den, sensitivity, min(max(width, 1), sensitivity)}
}

// Draw returns one value, exactly. Beyond ±Saturation it is Saturation.
func (c Staircase) Draw(s *Stream) int64 {
	mustBeRatio(c.Num, c.Den)
	if c.Sensitivity < 1 || c.Sensitivity > 1<<62 || c.Width < 1 || c.Width > c.Sensitivity {
		panic(fmt.Sprintf("noise: %+v is no staircase", c))
	}
	for {
		i := s.Below(c.Sensitivity)
		if i >= c.Width && !s.expMinus(c.Num, c.Den) {
			continue
		}
		x := Saturation
		if k := uint64(s.geometric(c.Num, c.Den)); k <= uint64(Saturation)/c.Sensitivity {
			x = int64(min(i+k*c.Sensitivity, uint64(Saturation)))
		}
		if !s.flip() {
			return x
		}
		if x != 0 { // 0 has one sign only
			return -x
		}
	}
}
