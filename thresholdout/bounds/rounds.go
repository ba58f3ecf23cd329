package bounds

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/optimize"

	"github.com/holdoutd/holdoutd/dp/minimum"
)

// Rounds is a guarantee for questions that come in batches: each batch is submitted whole before any of its answers is seen.
type Rounds struct {
	HalfWidth  float64
	Size       []int64   // the most questions of each round, fixed beforehand
	Sigma      []float64 // the noise of each round; the last has none, for nothing is chosen after it
	Adaptivity float64   // sqrt(I/(2n)) before the last round: what earlier rounds cost it
}

const (
	// tunedRounds is up to how many rounds each gets its own best noise. Beyond, they follow the schedule, which is as good
	// to a part in a hundred.
	tunedRounds = 64
	// mostRounds bounds the work of one half-width; thresholdout.MaxRounds is what a guarantee may have.
	mostRounds = 1 << 14
	// A search for the best noise ends by itself, mostly after two to five turns. With millions of questions the schedule is so far from it that
	// the probability of missing vanishes on the way, and a turn gets only a part of the way: fewTurns would leave intervals of three rounds up to
	// 15% too wide. Of many rounds a turn costs more (it grows with their square) and is worth less (1% for 32): turnsOfRounds is shared by them.
	fewTurns, turnsOfRounds = 6, 320
)

type roundsKey struct {
	n, k, rounds int64
	beta         float64
}

var knownRounds memo[roundsKey, Rounds]

// AdaptiveHoeffdingRounds is the narrowest half-width of k questions in the given number of rounds, with its noise. One round is a batch
// fixed beforehand. The slices are shared: they are not to be changed.
func AdaptiveHoeffdingRounds(n, k, rounds int64, beta float64) (Rounds, error) {
	if err := check(n, k, beta); err != nil {
		return Rounds{}, err
	}
	if rounds < 1 || rounds > min(k, mostRounds) {
		return Rounds{}, fmt.Errorf("bounds: %d rounds of %d questions; between 1 and %d are possible", rounds, k, min(k, mostRounds))
	}
	key := roundsKey{n, k, rounds, beta}
	if r, ok := knownRounds.remembered(key); ok {
		return r, nil
	}
	if rounds > 1 && hopeless(float64(n), float64(k)) {
		return Rounds{HalfWidth: math.Inf(1), Size: make([]int64, rounds), Sigma: make([]float64, rounds)}, nil
	}
	p := newRoundPlan(float64(n), k, rounds, beta)
	sigma := p.scheduled()
	if rounds > 1 && rounds <= tunedRounds {
		sigma = p.tuned(sigma)
	}
	r := Rounds{HalfWidth: p.width(sigma), Size: make([]int64, rounds), Sigma: append(sigma, 0)}
	for i, size := range p.size {
		r.Size[i] = int64(size)
	}
	r.Adaptivity = math.Sqrt(p.released(sigma) / (2 * float64(n)))
	knownRounds.remember(key, r)
	return r, nil
}

type roundPlan struct {
	n, beta float64
	size    []float64
}

// newRoundPlan divides k questions as equally as can be, larger rounds first.
func newRoundPlan(n float64, k, rounds int64, beta float64) roundPlan {
	p := roundPlan{n: n, beta: beta, size: make([]float64, rounds)}
	for i := range p.size {
		p.size[i] = float64(k / rounds)
		if int64(i) < k%rounds {
			p.size[i]++
		}
	}
	return p
}

// released is I after the rounds that have noise.
func (p roundPlan) released(sigma []float64) float64 {
	total := 0.0
	for i, s := range sigma {
		total += p.size[i] * information(p.n, s)
	}
	return total
}

// miss bounds the probability that any interval of half-width w misses: by pbar in rounds with noise, by the adaptive tail in
// the last.
func (p roundPlan) miss(sigma []float64, w float64) float64 {
	total, released := 0.0, 0.0
	for i, s := range sigma {
		total += miss(p.n, []stretch{{count: p.size[i], low: s, high: s, released: max(released, minInformation), fresh: i == 0}}, w)
		if i == 0 {
			total *= p.size[0] // a fresh stretch stands for one question
		}
		released += p.size[i] * information(p.n, s)
	}
	return total + 2*p.size[len(p.size)-1]*math.Exp(logAdapted(p.n, 2*p.n*w*w, released))
}

func (p roundPlan) width(sigma []float64) float64 {
	if len(sigma) == 0 {
		return Exact(p.n, p.size[0], p.beta, 0)
	}
	return solve(4/math.Sqrt(p.n), func(w float64) float64 { return math.Log(p.miss(sigma, w) / p.beta) })
}

// scheduled is the noise of the rounds but the last by the schedule's shape, at the best scale.
func (p roundPlan) scheduled() []float64 {
	rounds := float64(len(p.size))
	sigma := make([]float64, len(p.size)-1)
	at := func(logScale float64) float64 {
		for i := range sigma {
			sigma[i] = math.Exp(logScale) * shape(float64(i+1), rounds)
		}
		return p.width(sigma)
	}
	middle := math.Log(0.5 * math.Pow(rounds*p.size[0], 0.25) / math.Sqrt(p.n))
	x, _ := minimum.Brent(at, middle-3, middle+3, 1e-4)
	at(x)
	return sigma
}

// tuned improves the noise of each round. At a given half-width the best noise is the one with the least probability of
// missing; its half-width is then narrower, and so on: each turn squares the distance from the optimum.
func (p roundPlan) tuned(sigma []float64) []float64 {
	best, narrowest := sigma, p.width(sigma)
	for range max(fewTurns, turnsOfRounds/len(sigma)) {
		w := narrowest
		improved := p.improve(best, w)
		got := p.width(improved)
		if got < narrowest {
			best, narrowest = improved, got
		}
		if !(got < w*(1-1e-9)) {
			break
		}
	}
	return best
}

// improve minimises the logarithm of the probability of missing w over the logarithms of the noise.
func (p roundPlan) improve(sigma []float64, w float64) []float64 {
	values := make([]float64, len(sigma))
	exp := func(x []float64) []float64 {
		for i := range x {
			values[i] = math.Exp(x[i])
		}
		return values
	}
	start := make([]float64, len(sigma))
	for i, s := range sigma {
		start[i] = math.Log(s)
	}
	f := func(x []float64) float64 { return math.Log(p.miss(exp(x), w)) }
	problem := optimize.Problem{Func: f, Grad: func(grad, x []float64) {
		const h = 1e-5
		moved := append([]float64(nil), x...)
		for i := range x {
			moved[i] = x[i] + h
			up := f(moved)
			moved[i] = x[i] - h
			grad[i] = (up - f(moved)) / (2 * h)
			moved[i] = x[i]
		}
	}}
	// An error says that the search ended early; its best point serves, since any noise is valid.
	result, _ := optimize.Minimize(problem, start, &optimize.Settings{MajorIterations: 200, GradientThreshold: 1e-6}, &optimize.BFGS{})
	if result == nil {
		return sigma
	}
	return append([]float64(nil), exp(result.X)...)
}
