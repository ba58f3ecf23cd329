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
// it holds. What the windows of convolutions leave away, and what their rounding could be off by, counts as lost.
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

// tail is the mass of losses that is left away on each side when a distribution is cut.
const tail = 1e-16

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
	up := -math.Expm1(-PLDStep) // 1 - e^-step
	for i := range last - first {
		at := float64(first+i) * PLDStep
		p, q := c.masses(at, float64(first+i+1)*PLDStep)
		// Mass x at the upper step and p-x at the lower: x(1-e^-step) = p - q e^at keeps the mass on both tables.
		x := min(max((p-q*math.Exp(at))/up, 0), p)
		l.p[i+1] += x
		l.p[i] += p - x
	}
	// Below the first step the loss counts as that step, which is more; above the last it is infinite.
	below, _ := c.masses(math.Inf(-1), float64(first)*PLDStep)
	above, _ := c.masses(float64(last)*PLDStep, math.Inf(1))
	l.p[0] += below
	l.infinity = above + 0x1p-46 // what sums of masses can be off by
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
	return min(1, sum+l.infinity)
}

// epsilon walks down the losses. Between two steps the curve is linear in e^eps.
func (l losses) epsilon(delta float64) float64 {
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
	fa, fb := spectrum(fft, a.p, size), spectrum(fft, b.p, size)
	for i := range fa {
		fa[i] *= fb[i]
	}
	p := fft.Sequence(nil, fa)[:n]
	out := losses{a.first + b.first, p, 1 - (1-a.infinity)*(1-b.infinity)}
	out.settle(float64(size), 2)
	if len(out.p) > MaxLosses {
		return losses{}, tooWide(float64(len(out.p)))
	}
	return out, nil
}

func spectrum(fft *fourier.FFT, p []float64, size int) []complex128 {
	padded := make([]float64, size)
	copy(padded, p)
	return fft.Coefficients(nil, padded)
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
	wrapped := make([]float64, size)
	for i, mass := range l.p { // around the circle: what falls outside the window at the end does so, too, and is left away below
		wrapped[mod(l.first+i, size)] += mass
	}
	fft := fourier.NewFFT(size)
	f := fft.Coefficients(nil, wrapped)
	for i, c := range f {
		f[i] = cmplx.Pow(c, complex(float64(k), 0))
		if c == 0 {
			f[i] = 0
		}
	}
	circle := fft.Sequence(nil, f)
	p := make([]float64, n)
	for i := range p {
		p[i] = circle[mod(from+i, size)]
	}
	out := losses{from, p, -math.Expm1(float64(k)*math.Log1p(-l.infinity)) + 2*tail}
	out.settle(float64(size), float64(k))
	return out, nil
}

func mod(a, n int) int { return ((a % n) + n) % n }

// settle puts right what an FFT of a size leaves: it divides by the size, makes what rounding made negative 0, counts what rounding can be off by as lost,
// and cuts off what is next to nothing at the ends.
//
// Each coefficient of a spectrum is off by at most log2(size) roundings, and its power by k times that, relative to itself; by Parseval's equation the
// masses are then off by as much relative to their Euclidean norm, and a sum of n of them by sqrt(n) times that.
func (l *losses) settle(size, k float64) {
	square := 0.0
	for i, mass := range l.p {
		l.p[i] = max(0, mass/size)
		square += l.p[i] * l.p[i]
	}
	l.infinity += 0x1p-53 * math.Log2(size) * k * math.Sqrt(square*float64(len(l.p)))
	high, mass := len(l.p), 0.0
	for high > 1 && mass+l.p[high-1] < tail {
		high--
		mass += l.p[high]
	}
	l.infinity += mass
	low, moved := 0, 0.0
	for low < high-1 && moved+l.p[low] < tail {
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
		up, down := l.moment(x), l.moment(-x)
		to = min(to, int(math.Ceil((float64(k)*up-level)/x/PLDStep)))
		from = max(from, int(math.Floor((level-float64(k)*down)/x/PLDStep)))
	}
	return from, max(from, to)
}

// moment is ln E e^{xL} over the finite losses: by Horner's rule from the end at which the exponential is largest, so that no term overflows.
func (l losses) moment(x float64) float64 {
	last := len(l.p) - 1
	sum, ratio := 0.0, math.Exp(-math.Abs(x)*PLDStep)
	end := float64(l.first+last) * PLDStep
	if x >= 0 {
		for _, mass := range l.p {
			sum = sum*ratio + mass
		}
	} else {
		end = float64(l.first) * PLDStep
		for i := last; i >= 0; i-- {
			sum = sum*ratio + l.p[i]
		}
	}
	return x*end + math.Log(sum)
}
