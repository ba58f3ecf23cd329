package account

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// PLD is the distribution of the privacy loss of what was released so far, in steps of [PLDStep]: of all accounts the one that loses least. Losses of
// releases add up, so their distributions are convolved, by FFT (Koskela, Jälkö and Honkela, arXiv 1906.03049; Meiser and Mohammadi, CCS 2018).
//
// A loss between two steps is split between them such that its mass on both tables stays what it is ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar
// and Manurangsi, arXiv 2207.04380). The privacy curve at the steps is then exact and between them above the true one, so that everything that is said from
// it holds. What the windows of convolutions leave away counts as lost.
//
// Every mass is rounded up, by what its computation can be off by. A transform is off by as much everywhere, which is nothing where masses are large and all
// there is in the tails, where a small delta lies. So losses are convolved several times, tilted by e^{x loss} for some x, which moves a tail into the
// middle (as in a saddlepoint approximation), and of what was rounded up the least counts. A delta of 1e-12 is as exact as one of 1e-3.
//
// Both directions are kept, from a table to its neighbour and back. A PLD is a value: it is never changed. Its zero value is of nothing released.
type PLD struct {
	forth, back losses
}

// alike reports whether both directions are one, which is then computed once.
func (a PLD) alike() bool {
	return a.forth.p == nil || &a.forth.p[0] == &a.back.p[0]
}

// PLDStep is the distance of losses that are told apart.
const PLDStep = 1e-4

// MaxLosses bounds the losses of one PLD: 2^22 of them are 32 MiB, and span 419.
const MaxLosses = 1 << 22

// tail is the mass of losses that is left away on each side when a distribution is cut. Of the lowest losses more is cut, and counts as a larger loss: it is
// far from what any delta is made of.
const (
	tail   = 1e-23
	lowest = 1e-9
)

// losses is one direction: loss (first+i)·PLDStep has the mass p[i], and infinity is what is lost outright.
type losses struct {
	first    int
	p        []float64
	infinity float64
}

// curve is a pair of laws, as seen through the privacy loss of a draw from the first.
type curve interface {
	// masses of losses in (low, high], on the first table and on the second.
	masses(low, high float64) (p, q float64)
	// ends are losses with at most the mass tail beyond them, on the first table, either way.
	ends() (low, high float64)
}

// GaussianPLD is one release with Gaussian noise, multiplier = sigma / sensitivity.
func GaussianPLD(multiplier float64) (PLD, error) {
	mustMultiplier(multiplier)
	l, err := discretise(shifted{mu: 1 / multiplier, rate: 1, remove: true})
	return PLD{l, l}, err
}

// LaplacePLD is one release with Laplace noise, multiplier = scale / sensitivity.
func LaplacePLD(multiplier float64) (PLD, error) {
	mustMultiplier(multiplier)
	l, err := discretise(laplace{1 / multiplier})
	return PLD{l, l}, err
}

// PurePLD is one release of which no more is known than that it is (eps, delta)-private: its losses are those of randomized response, which are the largest
// (Kairouz, Oh and Viswanath, arXiv 1311.0776).
func PurePLD(eps, delta float64) (PLD, error) {
	mustEpsilon(eps)
	must(delta >= 0 && delta < 1, "delta %v", delta)
	l, err := discretise(response{eps, delta})
	l.infinity = min(1, l.infinity+delta)
	return PLD{l, l}, err
}

// SubsampledGaussianPLD is one step of DP-SGD: each row is taken by itself with the probability rate, and what is summed has Gaussian noise, multiplier =
// sigma / sensitivity. Neighbours have one row added or removed.
func SubsampledGaussianPLD(rate, multiplier float64) (PLD, error) {
	must(rate > 0 && rate <= 1, "rate %v is not in (0,1]", rate)
	mustMultiplier(multiplier)
	remove, err := discretise(shifted{mu: 1 / multiplier, rate: rate, remove: true})
	if err != nil {
		return PLD{}, err
	}
	add, err := discretise(shifted{mu: 1 / multiplier, rate: rate})
	return PLD{remove, add}, err
}

func mustMultiplier(m float64) {
	must(m > 0 && !math.IsInf(m, 1), "multiplier %v is not positive and finite", m)
}

// discretise makes the losses of a curve, each between two steps split between them.
func discretise(c curve) (losses, error) {
	low, high := c.ends()
	if steps := (high - low) / PLDStep; !(steps < MaxLosses-2) { // before they are whole numbers, which they may be too large for
		return losses{}, tooWide(steps)
	}
	first, last := int(math.Floor(low/PLDStep)), int(math.Ceil(high/PLDStep))
	l := losses{first: first, p: make([]float64, last-first+1)}
	// The ends of a step are off by some roundings of a loss, and its mass by as large a part as they are of the step.
	rounded := 1 + 0x1p-50*(1+max(math.Abs(low), math.Abs(high)))/PLDStep
	up := -math.Expm1(-PLDStep) // 1 - e^-step
	for i := range last - first {
		at := float64(first+i) * PLDStep
		p, q := c.masses(at, float64(first+i+1)*PLDStep)
		p *= rounded
		// Mass x at the upper step and p-x at the lower: x(1-e^-step) = p - q e^at keeps the mass on both tables.
		x := min(max((p-q*math.Exp(at))/up, 0), p)
		l.p[i+1] += x
		l.p[i] += p - x
	}
	// Below the first step the loss counts as that step, which is more; above the last it is infinite.
	below, _ := c.masses(math.Inf(-1), float64(first)*PLDStep)
	above, _ := c.masses(float64(last)*PLDStep, math.Inf(1))
	l.p[0] += below * rounded
	l.infinity = above * rounded
	return l, nil
}

func tooWide(steps float64) error {
	return fmt.Errorf("account: the privacy losses span %.4g steps of %v, and at most %d are kept: so much is spent that no guarantee is left", steps, PLDStep, MaxLosses)
}

// Compose is what both spend.
func (a PLD) Compose(b PLD) (PLD, error) {
	switch {
	case a.forth.p == nil:
		return b, nil
	case b.forth.p == nil:
		return a, nil
	}
	forth, err := convolve(a.forth, b.forth)
	if err != nil || a.alike() && b.alike() {
		return PLD{forth, forth}, err
	}
	back, err := convolve(a.back, b.back)
	return PLD{forth, back}, err
}

// Times is what k of it spend, k from 1.
func (a PLD) Times(k int) (PLD, error) {
	must(k >= 1, "%d releases", k)
	if a.forth.p == nil {
		return a, nil
	}
	forth, err := a.forth.times(k)
	if err != nil || a.alike() {
		return PLD{forth, forth}, err
	}
	back, err := a.back.times(k)
	return PLD{forth, back}, err
}

// Delta is the least delta for which (eps, delta) follows, eps from 0.
func (a PLD) Delta(eps float64) float64 {
	mustEpsilon(eps)
	if a.alike() {
		return a.forth.delta(eps)
	}
	return max(a.forth.delta(eps), a.back.delta(eps))
}

// Epsilon is the least eps for which (eps, delta) follows; +Inf where delta is below what is lost outright.
func (a PLD) Epsilon(delta float64) float64 {
	mustDelta(delta)
	if a.alike() {
		return a.forth.epsilon(delta)
	}
	return max(a.forth.epsilon(delta), a.back.epsilon(delta))
}

// delta is the hockey-stick divergence: E (1 - e^{eps-L})_+, with what is infinite.
func (l losses) delta(eps float64) float64 {
	sum := 0.0
	for i := len(l.p) - 1; i >= 0; i-- {
		loss := float64(l.first+i) * PLDStep
		if loss <= eps {
			break
		}
		sum += -math.Expm1(eps-loss) * l.p[i]
	}
	return min(1, (sum+l.infinity)*l.summed())
}

// summed is what a sum of all masses has to be multiplied by to be at least what it is without rounding.
func (l losses) summed() float64 { return 1 + 0x1p-51*float64(len(l.p)+1) }

// epsilon walks down the losses. Between two steps the curve is linear in e^eps.
func (l losses) epsilon(delta float64) float64 {
	delta /= l.summed()
	if delta < l.infinity {
		return math.Inf(1)
	}
	mass, shrunk := l.infinity, 0.0 // of losses above: their mass, and the sum of their p e^{-(loss - here)}
	for i := len(l.p) - 1; i >= 0; i-- {
		// Here, at the loss of step i, delta is mass - shrunk; below it, at eps, mass + p_i - (shrunk + p_i) e^{eps-here}.
		mass, shrunk = mass+l.p[i], shrunk+l.p[i]
		here := float64(l.first+i) * PLDStep
		if mass > delta && shrunk > 0 {
			// Solve mass - shrunk e^{eps-here} = delta; it lies in this step if it is above the next one down.
			if eps := here + math.Log((mass-delta)/shrunk); eps >= here-PLDStep || i == 0 {
				return max(0, min(eps, here))
			}
		}
		shrunk *= math.Exp(-PLDStep)
	}
	return 0
}

// convolve adds the losses of two releases.
func convolve(a, b losses) (losses, error) {
	n := len(a.p) + len(b.p) - 1
	if n > 2*MaxLosses {
		return losses{}, tooWide(float64(n))
	}
	size := 1 << bits.Len(uint(n-1))
	fft := fourier.NewFFT(size)
	out := losses{first: a.first + b.first, p: make([]float64, n), infinity: (1 - (1-a.infinity)*(1-b.infinity)) + 0x1p-52*(a.infinity+b.infinity)}
	for pass, x := range tilts(func(x float64) (float64, float64) {
		logA, slopeA := a.moment(x)
		logB, slopeB := b.moment(x)
		return logA + logB, slopeA + slopeB
	}) {
		logA, _ := a.moment(x)
		logB, _ := b.moment(x)
		fa, normA := a.spectrum(fft, size, x, logA)
		fb, normB := b.spectrum(fft, size, x, logB)
		for i := range fa {
			fa[i] *= fb[i]
		}
		out.take(pass, fft.Sequence(nil, fa), size, x, logA+logB, 2*normA*normB, a.roundings(x, logA)+b.roundings(x, logB))
	}
	out.cut()
	if len(out.p) > MaxLosses {
		return losses{}, tooWide(float64(len(out.p)))
	}
	return out, nil
}

// times adds the losses of k releases that are alike: in a window outside of which there is next to nothing, by Chernoff's bound, one power of the spectrum.
func (l losses) times(k int) (losses, error) {
	if k == 1 {
		return l, nil
	}
	from, to := l.window(k)
	n := to - from + 1
	if n > MaxLosses {
		return losses{}, tooWide(float64(n))
	}
	size := 1 << bits.Len(uint(n-1))
	fft := fourier.NewFFT(size)
	out := losses{first: from, p: make([]float64, n), infinity: -math.Expm1(float64(k)*math.Log1p(-l.infinity))*(1+0x1p-50) + 2*tail}
	for pass, x := range tilts(func(x float64) (float64, float64) {
		log, slope := l.moment(x)
		return float64(k) * log, float64(k) * slope
	}) {
		log, _ := l.moment(x)
		f, norm := l.spectrum(fft, size, x, log)
		square := 0.0
		for i, c := range f {
			r, phase := cmplx.Polar(c)
			less := math.Pow(r, float64(k-1))
			square += less * less
			f[i] = cmplx.Rect(less*r, phase*float64(k))
		}
		rest := math.Sqrt(2 * square / float64(size)) // the norm of k-1 releases: each coefficient but the ends stands for two
		out.take(pass, fft.Sequence(nil, f), size, x, float64(k)*log, float64(k)*norm*rest, float64(k)*l.roundings(x, log))
	}
	out.cut()
	return out, nil
}

func mod(a, n int) int { return ((a % n) + n) % n }

// tilts are the x by which losses are convolved: 0, and the one at which Chernoff's bound is about e^-14 where the tilted losses have their mean, which serves
// for tails from one to nine standard deviations away. Where a tail is made of one large loss among many small ones, the tilted losses go over from the one
// to the other within a short range of x, and two more from there are needed. chernoff is ln E e^{xL} and its slope.
func tilts(chernoff func(x float64) (log, slope float64)) []float64 {
	at := func(level float64) float64 { // the least x of a bound of e^-level, or nearly
		bound := func(x float64) float64 {
			log, slope := chernoff(x)
			return x*slope - log
		}
		x := 0x1p-6
		there := bound(x)
		for there < level && x < 0x1p12 {
			x *= 2
			there = bound(x)
		}
		for from := x / 2; there > 1.5*level && x > 1.001*from; {
			if middle := math.Sqrt(from * x); bound(middle) < level {
				from = middle
			} else {
				x, there = middle, bound(middle)
			}
		}
		return x
	}
	far := at(14)
	if early := at(.1); far < 8*early { // of a normal law it is the twelfth part
		return []float64{0, early, at(1), far}
	}
	return []float64{0, far}
}

// spectrum is that of the losses around a circle of a size, tilted: loss L has its mass times e^{xL - log}. The norm is that of these masses.
func (l losses) spectrum(fft *fourier.FFT, size int, x, log float64) (_ []complex128, norm float64) {
	circle := make([]float64, size)
	for i, mass := range l.p {
		if x != 0 {
			mass *= math.Exp(x*PLDStep*float64(l.first+i) - log)
		}
		circle[mod(l.first+i, size)] += mass // what falls outside of a window at the end falls into it, and is more there
	}
	for _, mass := range circle {
		norm += mass * mass
	}
	return fft.Coefficients(nil, circle), math.Sqrt(norm)
}

// roundings is how large a part of itself the tilt of a mass can be off by: the rounding of the exponent.
func (l losses) roundings(x, log float64) float64 {
	return 0x1p-51 * (2 + math.Abs(log) + x*PLDStep*math.Abs(float64(max(-l.first, l.first+len(l.p)))))
}

// take takes over what a circle of convolved losses, tilted by x, says of each mass: it is rounded up, and counts where it is less than what other tilts
// say. log is what the losses were divided by, as a logarithm. size is what the transform's values are to be divided by.
//
// Each coefficient of a transform is off by some roundings for each of its log2(size) stages, relative to the Euclidean norm of all of them. By Parseval's
// equation and Cauchy's inequality a mass is then off by as many times product, the norm of one factor times that of all others, for each factor; and by
// as many of the norm of the result. off is what tilts can be off by, relative to a mass.
func (l *losses) take(pass int, circle []float64, size int, x, log, product, off float64) {
	norm := 0.0
	for _, mass := range circle {
		norm += mass * mass
	}
	stages := 0x1p-50 * math.Log2(float64(size))
	rounding := stages * (product + math.Sqrt(norm)/float64(size))
	for i := range l.p {
		mass := max(0, circle[mod(l.first+i, size)]/float64(size)) + rounding
		if x != 0 {
			mass *= math.Exp(log - x*PLDStep*float64(l.first+i))
		}
		if mass *= 1 + 2*off; pass == 0 || mass < l.p[i] {
			l.p[i] = mass
		}
	}
}

// cut cuts off what is next to nothing at the ends.
func (l *losses) cut() {
	high, mass := len(l.p), 0.0
	for high > 1 && mass+l.p[high-1] < tail {
		high--
		mass += l.p[high]
	}
	l.infinity += mass
	low, moved := 0, 0.0
	for low < high-1 && moved+l.p[low] < lowest {
		moved += l.p[low]
		low++
	}
	l.p = slices.Clone(l.p[low:high])
	l.p[0] += moved // as a larger loss
	l.first += low
	l.infinity = min(1, l.infinity)
}

// window is between which steps the sum of k losses lies, but for the mass tail on either side: by Chernoff's bound P(S >= t) <= e^{k ln E e^{xL} - xt},
// for the best x of some.
func (l losses) window(k int) (from, to int) {
	from, to = k*l.first, k*(l.first+len(l.p)-1)
	level := math.Log(tail)
	for exponent := -6.; exponent <= 12; exponent += .5 {
		x := math.Exp2(exponent)
		up, _ := l.moment(x)
		down, _ := l.moment(-x)
		to = min(to, int(math.Ceil((float64(k)*up-level)/x/PLDStep)))
		from = max(from, int(math.Floor((level-float64(k)*down)/x/PLDStep)))
	}
	return from, max(from, to)
}

// moment is ln E e^{xL} over the finite losses, and its slope, the mean of losses that are tilted by x: by Horner's rule from the end at which the
// exponential is largest, so that no term overflows.
func (l losses) moment(x float64) (log, slope float64) {
	last := len(l.p) - 1
	sum, steps, ratio := 0.0, 0.0, math.Exp(-math.Abs(x)*PLDStep) // steps: from the end, each times its term
	if x >= 0 {
		for _, mass := range l.p {
			steps = (steps + sum) * ratio
			sum = sum*ratio + mass
		}
		end := float64(l.first+last) * PLDStep
		return x*end + math.Log(sum), end - PLDStep*steps/sum
	}
	for i := last; i >= 0; i-- {
		steps = (steps + sum) * ratio
		sum = sum*ratio + l.p[i]
	}
	end := float64(l.first) * PLDStep
	return x*end + math.Log(sum), end + PLDStep*steps/sum
}
