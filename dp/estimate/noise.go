package estimate

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/normal"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// Noise is what makes whole numbers private: [Laplace] or [Gaussian]. A release that needs several numbers shares it among them.
type Noise interface {
	// Event is what a release with this noise is to accountants, however many numbers it has shared it among.
	Event() account.Event
	check(s unit.Sensitivity) error
	// draw is noise for one coordinate of numbers of that sensitivity.
	draw(s *noise.Stream, of unit.Sensitivity) int64
	// reach is the least whole number that the noise exceeds, either way, with probability at most beta.
	reach(of unit.Sensitivity, beta float64) float64
	// beyond is P(noise > k) for a whole k.
	beyond(of unit.Sensitivity, k float64) float64
	// deviation is that of the noise, and logMoment at least ln E e^(x noise) for an x above 0; +Inf where that is not finite.
	deviation(of unit.Sensitivity) float64
	logMoment(of unit.Sensitivity, x float64) float64
	// share is a part of what it spends.
	share(part float64) Noise
}

// Laplace is noise that makes a release epsilon-private: two-sided geometric, exactly. Its scale is the sensitivity over epsilon, and where such a law is
// not drawn on so fine a grid the next whole number.
type Laplace struct{ Epsilon noise.Epsilon }

// Gaussian is noise that makes a release mu-GDP: a real normal variable, rounded, exactly. See account.GDP for what mu means in (epsilon, delta).
type Gaussian struct{ Mu account.GDP }

// MaxMu bounds mu: beyond it nobody is protected. MinMu keeps the noise within what is drawn.
const (
	MaxMu = 1e6
	MinMu = 1e-6
)

// AnalyticGaussian is the least Gaussian noise that is (eps, delta)-private (Balle and Wang, arXiv 1805.06530), for any eps and delta above 0.
func AnalyticGaussian(eps, delta float64) (Gaussian, error) {
	if !(eps > 0 && eps <= noise.MaxEpsilon) || !(delta > 0 && delta < 1) {
		return Gaussian{}, fmt.Errorf("%w: Gaussian noise for (%v, %v), want an epsilon above 0 and at most %v, and a delta between 0 and 1", ErrSettings, eps, delta, noise.MaxEpsilon)
	}
	g := Gaussian{account.LargestGDP(eps, delta) * (1 - 1e-11)} // of a search's last digits
	return g, g.checkMu()
}

// ClassicalGaussian is Gaussian noise as textbooks have it, of deviation sqrt(2 ln(1.25/delta))/eps. Its proof holds for eps up to 1 and delta up to 0.4
// (account.ClassicalSigma), and it is refused beyond: at eps = 8 and delta = 0.001 it is not private. AnalyticGaussian is never more noise.
func ClassicalGaussian(eps, delta float64) (Gaussian, error) {
	sigma, err := account.ClassicalSigma(1, eps, delta)
	if err != nil {
		return Gaussian{}, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	g := Gaussian{account.GDP(1 / sigma * (1 - 1e-15))}
	return g, g.checkMu()
}

// maxScale bounds the scale of noise: beyond 2^56 it would drown any sum that fits.
const maxScale = 1 << 56

// wide is the whole scale of Laplace noise where the law of exactly this epsilon is not drawn: sensitivity/epsilon, rounded up.
func (l Laplace) wide(of unit.Sensitivity) (scale uint64, ok bool) {
	hi, lo := bits.Mul64(of.L1, l.Epsilon.Den)
	if hi >= l.Epsilon.Num {
		return 0, false
	}
	scale, rest := bits.Div64(hi, lo, l.Epsilon.Num)
	if rest > 0 {
		scale++
	}
	return scale, scale <= maxScale
}

// Event implements Noise.
func (l Laplace) Event() account.Event { return account.Approximate{Epsilon: l.Epsilon.Float()} }

// Event implements Noise.
func (g Gaussian) Event() account.Event { return account.Gaussian{Multiplier: 1 / float64(g.Mu)} }

func (l Laplace) check(of unit.Sensitivity) error {
	if err := l.Epsilon.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if _, ok := l.wide(of); !ok {
		return fmt.Errorf("%w: epsilon %v for a sensitivity of %d on the grid: the noise would drown any sum", ErrSettings, l.Epsilon, of.L1)
	}
	return nil
}

func (l Laplace) draw(s *noise.Stream, of unit.Sensitivity) int64 {
	if of.L1 == 0 {
		return 0
	}
	if l.Epsilon.Draws(of.L1) {
		return l.Epsilon.Laplace(s, of.L1)
	}
	scale, _ := l.wide(of)
	return noise.DiscreteLaplace(s, scale)
}

// reach: P(|X| > k) is 2 a^(k+1)/(1+a) for a = e^(-1/scale).
func (l Laplace) reach(of unit.Sensitivity, beta float64) float64 {
	if of.L1 == 0 {
		return 0
	}
	scale := l.scale(of)
	k := math.Log(beta*(1+math.Exp(-1/scale))/2)*-scale - 1
	return max(0, math.Ceil(k*(1+1e-15)))
}

// scale of what is drawn: a is e^(-1/scale).
func (l Laplace) scale(of unit.Sensitivity) float64 {
	if !l.Epsilon.Draws(of.L1) {
		whole, _ := l.wide(of)
		return float64(whole)
	}
	return float64(of.L1) / l.Epsilon.Float()
}

// beyond: P(X > k) is a^(k+1)/(1+a) for a k from 0.
func (l Laplace) beyond(of unit.Sensitivity, k float64) float64 {
	if k < 0 {
		return 1 - l.beyond(of, -k-1)
	}
	scale := l.scale(of)
	return math.Exp(-(k+1)/scale) / (1 + math.Exp(-1/scale))
}

// deviation: the variance is 2a/(1-a)².
func (l Laplace) deviation(of unit.Sensitivity) float64 {
	scale := l.scale(of)
	return math.Sqrt2 * math.Exp(-.5/scale) / -math.Expm1(-1/scale)
}

// logMoment: E e^(xX) is (1-a)²/((1-a e^x)(1-a e^-x)).
func (l Laplace) logMoment(of unit.Sensitivity, x float64) float64 {
	rate := 1 / l.scale(of)
	if x >= rate {
		return math.Inf(1)
	}
	return 2*math.Log(-math.Expm1(-rate)) - math.Log(-math.Expm1(x-rate)) - math.Log(-math.Expm1(-x-rate))
}

func (l Laplace) share(part float64) Noise { return Laplace{noise.Eps(l.Epsilon.Float() * part)} }

func (g Gaussian) checkMu() error {
	if mu := float64(g.Mu); !(mu >= MinMu && mu <= MaxMu) {
		return fmt.Errorf("%w: mu %v, want %v to %v", ErrSettings, mu, float64(MinMu), float64(MaxMu))
	}
	return nil
}

func (g Gaussian) check(of unit.Sensitivity) error {
	if err := g.checkMu(); err != nil {
		return err
	}
	if g.scale(of) > maxScale {
		return fmt.Errorf("%w: mu %v for a sensitivity of %v on the grid: the noise would drown any sum", ErrSettings, float64(g.Mu), of.L2)
	}
	return nil
}

func (g Gaussian) scale(of unit.Sensitivity) float64 { return of.L2 / float64(g.Mu) * (1 + 1e-15) }

func (g Gaussian) draw(s *noise.Stream, of unit.Sensitivity) int64 {
	if of.L2 == 0 {
		return 0
	}
	return noise.RoundedNormal(s, g.scale(of))
}

// reach: a rounded normal variable is at most a half away from the normal one.
func (g Gaussian) reach(of unit.Sensitivity, beta float64) float64 {
	if of.L2 == 0 {
		return 0
	}
	return math.Floor(g.scale(of)*normal.UpperQuantile(beta/2)*(1+1e-12) + .5)
}

func (g Gaussian) beyond(of unit.Sensitivity, k float64) float64 {
	return normal.Upper((k + .5) / g.scale(of))
}

func (g Gaussian) deviation(of unit.Sensitivity) float64 {
	return math.Hypot(g.scale(of), math.Sqrt(1./12))
}

// logMoment: that of the normal variable, and of the most that rounding moves it.
func (g Gaussian) logMoment(of unit.Sensitivity, x float64) float64 {
	scaled := g.scale(of) * x
	return scaled*scaled/2 + x/2
}

// share: the squares of mu add up.
func (g Gaussian) share(part float64) Noise {
	return Gaussian{g.Mu * account.GDP(math.Sqrt(part)*(1-1e-15))}
}
