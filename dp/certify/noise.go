package certify

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Family is the distribution of the noise on one coordinate.
type Family uint8

const (
	// Gaussian noise certifies against attacks that are small in the L2 norm.
	Gaussian Family = iota
	// Laplace noise certifies against attacks that are small in the L1 norm.
	Laplace
)

var familyNames = [...]string{"gaussian", "laplace"}

// String returns "gaussian" or "laplace".
func (f Family) String() string { return nameOf(familyNames[:], int(f), "Family") }

// ParseFamily reads what String writes.
func ParseFamily(name string) (Family, error) {
	i, err := parseName(familyNames[:], name, "noise")
	return Family(i), err
}

// Noise is added to an input: independent on each coordinate j, with standard deviation (Gaussian) or scale (Laplace; its standard
// deviation is sqrt(2) times that) Scale Widths[j].
type Noise struct {
	Family Family
	Scale  float64   // > 0, in the unit of the input, or of widths where they are given
	Widths []float64 // of each coordinate, > 0; nil means 1 for all
}

// Norm of a move of the input, one value a coordinate, in the unit of a certificate's Radius: the L2 norm of move[j]/Widths[j] for
// Gaussian noise, the L1 norm for Laplace noise.
func (n Noise) Norm(move []float64) float64 {
	sum := 0.0
	for j, m := range move {
		if n.Widths != nil {
			m /= n.Widths[j]
		}
		if n.Family == Laplace {
			sum += math.Abs(m)
		} else {
			sum += m * m
		}
	}
	if n.Family == Laplace {
		return sum
	}
	return math.Sqrt(sum)
}

func (n Noise) check() error {
	if n.Family > Laplace {
		return fmt.Errorf("%w: %v is no noise", ErrOptions, n.Family)
	}
	if !(n.Scale > 0) || math.IsInf(n.Scale, 1) {
		return fmt.Errorf("%w: the scale of the noise is %v, it must be positive", ErrOptions, n.Scale)
	}
	for j, w := range n.Widths {
		if !(w > 0) || math.IsInf(w, 1) {
			return fmt.Errorf("%w: the width of coordinate %d is %v, it must be positive", ErrOptions, j, w)
		}
	}
	return nil
}

// Add writes x plus fresh noise to dst, which has the length of x.
func (n Noise) Add(dst, x []float64, random *rand.Rand) {
	if n.Family == Laplace {
		fillLaplace(dst, n.Scale, random)
	} else {
		fillGaussian(dst, n.Scale, random)
	}
	if n.Widths != nil {
		for j, w := range n.Widths {
			dst[j] *= w
		}
	}
	for j, v := range x {
		dst[j] += v
	}
}

func fillGaussian(dst []float64, sigma float64, random *rand.Rand) {
	for j := range dst {
		dst[j] = sigma * random.NormFloat64()
	}
}

func fillLaplace(dst []float64, scale float64, random *rand.Rand) {
	for j := range dst {
		e := scale * random.ExpFloat64()
		if random.Uint64()&1 == 0 {
			e = -e
		}
		dst[j] = e
	}
}
