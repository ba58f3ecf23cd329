package certify

import (
	"fmt"
	"math"
)

// Method turns bounds on expected scores into a radius.
type Method uint8

const (
	// Smoothing bounds the top label alone, at Alpha, and takes 1 minus that for every other label: [SmoothingGaussian] (Cohen et
	// al.) or [SmoothingLaplace]. It abstains unless the lower bound is above one half.
	Smoothing Method = iota
	// TwoSided bounds every label, at Alpha divided by their number, for the same formulas. It also certifies a label with less than
	// half of the score, where the others have still less.
	TwoSided
	// PixelDP bounds every label likewise, for [PixelDPGaussian] or [PixelDPLaplace].
	PixelDP
	// Renyi bounds every label likewise, for [RenyiGaussian]; there is no such certificate for Laplace noise here.
	Renyi
)

var methodNames = [...]string{"smoothing", "two-sided", "pixeldp", "renyi"}

// String returns "smoothing", "two-sided", "pixeldp" or "renyi".
func (m Method) String() string { return nameOf(methodNames[:], int(m), "Method") }

// ParseMethod reads what String writes.
func ParseMethod(name string) (Method, error) {
	i, err := parseName(methodNames[:], name, "certificate")
	return Method(i), err
}

// Defaults of Options, those of arXiv:1902.02918 but for fewer draws.
const (
	DefaultSelect  = 100
	DefaultSamples = 10_000
	DefaultAlpha   = 0.001
)

// MaxSamples bounds the draws of one prediction: up to it the incomplete beta function has the digits that Clopper and Pearson's bound needs, and a
// wrong number is an error instead of a day's wait.
const MaxSamples = 1 << 26

// Options of a certificate.
type Options struct {
	Noise   Noise
	Select  int     // draws that choose the label, apart from those of the bounds; 0 is DefaultSelect
	Samples int     // draws of the bounds, at least 2; 0 is DefaultSamples
	Alpha   float64 // probability that a certificate is wrong, in (0,1); 0 is DefaultAlpha
	Bound   Bound
	Method  Method
}

// Defaults returns o with its zeros replaced, or [ErrOptions].
func (o Options) Defaults() (Options, error) {
	if o.Select == 0 {
		o.Select = DefaultSelect
	}
	if o.Samples == 0 {
		o.Samples = DefaultSamples
	}
	if o.Alpha == 0 {
		o.Alpha = DefaultAlpha
	}
	switch {
	case o.Select < 1 || o.Select > MaxSamples:
		return o, fmt.Errorf("%w: %d draws to choose a label, 1 to %d are possible", ErrOptions, o.Select, MaxSamples)
	case o.Samples < 2 || o.Samples > MaxSamples:
		return o, fmt.Errorf("%w: %d draws, 2 to %d are possible", ErrOptions, o.Samples, MaxSamples)
	case !(o.Alpha > 0 && o.Alpha < 1):
		return o, fmt.Errorf("%w: alpha is %v, it must be between 0 and 1", ErrOptions, o.Alpha)
	case o.Bound > EmpiricalBernstein:
		return o, fmt.Errorf("%w: %v is no bound", ErrOptions, o.Bound)
	case o.Method > Renyi:
		return o, fmt.Errorf("%w: %v is no certificate", ErrOptions, o.Method)
	case o.Method == Renyi && o.Noise.Family == Laplace:
		return o, fmt.Errorf("%w: the renyi certificate is for gaussian noise", ErrOptions)
	}
	return o, o.Noise.check()
}

// Abstain is the Prediction of a certificate that certifies nothing.
const Abstain = -1

// Certificate is what is known of one prediction.
type Certificate struct {
	Prediction int     // the label, or Abstain
	Radius     float64 // the prediction is this at every point nearer than Radius in the noise's norm; 0 when it abstains
	Label      int     // the label that was chosen and tested, also where it abstains
	Top, Rest  float64 // lower bound on its expected score, upper bound on that of every other label
	Sum, Next  float64 // what the bounds are made of: times that Label was predicted in the draws, or the sum of its scores, and the largest of any other label
}

// Tally is what the draws for one input gave.
type Tally struct {
	Label   int       // chosen by draws of its own, so that bounds on the others are honest
	N       int64     // draws of the bounds
	Sums    []float64 // of each label: times that it was predicted, or the sum of its scores
	Squares []float64 // of each label: sum of squared scores; as Sums for labels
	Scores  bool      // the classifier gives scores
}

// Certify turns a tally into a certificate, with the options that it was drawn with, or with another Bound, Method or Alpha that
// was fixed before. It does not allocate.
//
// The label is fixed before the draws of the bounds. So one end for each of H labels is all that must hold together: Alpha/H for
// each makes Alpha (Bonferroni).
func (o Options) Certify(t *Tally) (Certificate, error) {
	each := o.Alpha
	if o.Method != Smoothing {
		each /= float64(len(t.Sums))
	}
	c := Certificate{Prediction: Abstain, Label: t.Label}
	if t.Label < 0 || t.Label >= len(t.Sums) {
		return c, fmt.Errorf("%w: %d of %d", ErrLabel, t.Label, len(t.Sums))
	}
	if t.Scores && o.Bound == ClopperPearson {
		return c, fmt.Errorf("%w: Clopper-Pearson counts labels; scores need hoeffding or empirical-bernstein", ErrOptions)
	}
	for label, sum := range t.Sums {
		if label == t.Label {
			c.Sum = sum
		} else {
			c.Next = max(c.Next, sum)
		}
		if label != t.Label && o.Method == Smoothing {
			continue
		}
		low, high, err := o.Bound.Ends(t.Sums[label], t.Squares[label], t.N, each)
		if err != nil {
			return c, err
		}
		if label == t.Label {
			c.Top = low
		} else {
			c.Rest = max(c.Rest, high)
		}
	}
	if o.Method == Smoothing {
		c.Rest = 1
	}
	c.Rest = min(c.Rest, 1-c.Top) // expected scores sum to at most 1
	if r := o.radius(c.Top, c.Rest); r > 0 {
		c.Prediction, c.Radius = c.Label, r
	}
	return c, nil
}

func (o Options) radius(top, rest float64) float64 {
	laplace := o.Noise.Family == Laplace
	switch {
	case o.Method == PixelDP && laplace:
		return PixelDPLaplace(top, rest, o.Noise.Scale)
	case o.Method == PixelDP:
		return PixelDPGaussian(top, rest, o.Noise.Scale)
	case o.Method == Renyi:
		return RenyiGaussian(top, rest, o.Noise.Scale)
	case laplace:
		return SmoothingLaplace(top, rest, o.Noise.Scale)
	}
	return SmoothingGaussian(top, rest, o.Noise.Scale)
}

// Accuracy is the certified accuracy at an attack size: the share of certificates that predict the true label with a radius above
// size, in the noise's norm. labels has the true label of each. At size 0 it is the share that is right and did not abstain; it is
// NaN where there are no certificates.
func Accuracy(certificates []Certificate, labels []int, size float64) float64 {
	right := 0
	for i, c := range certificates {
		if c.Prediction == labels[i] && c.Radius > size {
			right++
		}
	}
	if len(certificates) == 0 {
		return math.NaN()
	}
	return float64(right) / float64(len(certificates))
}
