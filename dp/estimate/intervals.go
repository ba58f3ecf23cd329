package estimate

import (
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/dp/minimum"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// Intervals are the quantiles of Release, each with an interval, at the same price: everything is computed from noisy counts of the tree. For every table
// and every rank by itself, with at least the confidence: an interval of the rows holds all numbers that are a quantile of the kept and clamped ones (of n
// rows of which less than a share q is below x, and at least q at or below it; no interval says anything where there is no row), and one of a population
// all numbers that are one of its clamped values. Two intervals of 95% are both right with 90%.
//
// An end is found by walking down the tree. At a node the lower end passes a child if it is sure that the child's upper edge is not above the quantile: if
// the noisy number of rows below the edge, less the rank's share of all rows, is so low that where it is really 0 or more the noise alone is that low with
// a probability of at most beta'. The lower end is wrong only if it passes a child that the quantile is in, which are four, one at each level, and which
// they are does not depend on the noise. With four for the upper end beta' is beta/8: nothing is paid for the many edges that are looked at. It is a fixed
// sequence of hypotheses for either end (Maurer, Hothorn and Lehmacher 1995), once for each level.
func (e Quantiles) Intervals(t Table, ranks []float64, s *noise.Stream) ([]Estimate, error) {
	beta, err := asked(e.Confidence)
	if err != nil {
		return nil, err
	}
	if e.Population && (e.Unit != unit.Row{}) {
		return nil, fmt.Errorf("%w: an interval for a population is of rows that are independent, and rows of a user are not", ErrSettings)
	}
	tree, err := e.tree(t, ranks, s)
	if err != nil {
		return nil, err
	}
	inside := func(x float64) float64 { return min(max(x, e.Low), e.High) }
	at := func(place float64) float64 { return e.Low + (e.High-e.Low)*place }
	out := make([]Estimate, len(ranks))
	for i, rank := range ranks {
		out[i].Value = at(tree.quantile(min(max(rank, extremeRank), 1-extremeRank)))
	}
	for i, rank := range ranks {
		if e.Stop != nil {
			if err := e.Stop(); err != nil {
				return nil, err
			}
		}
		edge := tree.edges(rank, beta, e.Population)
		blur := (math.Abs(e.Low) + math.Abs(e.High)) * 0x1p-49 // of a leaf's edges, by rounding
		out[i].Low = min(inside(at(float64(edge.leaf(true))/treeLeaves)-blur), out[i].Value)
		out[i].High = max(inside(at(float64(edge.leaf(false))/treeLeaves)+blur), out[i].Value)
	}
	return out, nil
}

// edges looks for the ends of one rank's interval.
type edges struct {
	tree *quantileTree
	rank float64
	beta float64 // of each of the edges that can be wrong
	rows float64 // how many there are, where that is public
	law  law     // of what is by chance in a number of rows below an edge, but for the weights
}

func (t *quantileTree) edges(rank, beta float64, population bool) edges {
	e := edges{tree: t, rank: rank, rows: -1, law: law{noise: t.guard.Noise, of: t.of, rank: rank}}
	if t.guard.PublicRows() {
		e.rows = float64(t.rows)
		if population {
			e.law.rows = e.rows
		}
	} else if population {
		// The most rows that there may be: sampling moves the less the fewer there are. A tenth of what the interval may miss by is for it.
		const share = .1
		sum := 0.
		for i := range treeBranching {
			sum += t.count(0, i)
		}
		all := law{noise: t.guard.Noise, of: t.of, counts: [2]float64{treeBranching}, weights: [2]float64{1}}
		e.law.rows, e.law.most = max(1, sum+all.reach(beta*share)), true
		beta *= 1 - share
	}
	e.beta = beta / (2 * treeHeight)
	return e
}

// leaf is the first leaf that the quantile may be in, or with lower false the one after the last.
func (e edges) leaf(lower bool) int {
	at := 0                                          // the node
	var below, above, belowNodes, aboveNodes float64 // noisy rows on either side of it, and of how many nodes
	for level := range treeHeight {
		var before [treeBranching + 1]float64
		for i := range treeBranching {
			before[i+1] = before[i] + e.tree.count(level, at*treeBranching+i)
		}
		side := func(edge int) int {
			return e.side(below+before[edge], above+before[treeBranching]-before[edge], belowNodes+float64(edge), aboveNodes+float64(treeBranching-edge))
		}
		child := 0
		if lower {
			for child < treeBranching-1 && side(child+1) < 0 {
				child++
			}
		} else {
			child = treeBranching - 1
			for child > 0 && side(child) > 0 {
				child--
			}
		}
		below, above = below+before[child], above+before[treeBranching]-before[child+1]
		belowNodes, aboveNodes = belowNodes+float64(child), aboveNodes+float64(treeBranching-1-child)
		at = at*treeBranching + child
	}
	if lower {
		return at
	}
	return at + 1
}

// side of the quantile on which an edge surely is: -1 below or at it, 1 above it, 0 where that is not sure.
//
// It is by the number of rows below the edge less the rank's share of all. Where all are public it is known from what is below and from what is above, and
// the best mixture of both has the weight of the one by the noise of the other; else it is the mixture from which their number falls out.
func (e edges) side(below, above, belowNodes, aboveNodes float64) int {
	weights, known := [2]float64{1 - e.rank, e.rank}, 0.
	if e.rows >= 0 {
		weights = [2]float64{aboveNodes / (belowNodes + aboveNodes), belowNodes / (belowNodes + aboveNodes)}
		known = (weights[1] - e.rank) * e.rows
	}
	excess := weights[0]*below - weights[1]*above + known
	far := math.Abs(excess) - 0x1p-48*(math.Abs(below)+math.Abs(above)+math.Abs(e.rows)) // what rounding can have added
	l := e.law
	l.counts, l.weights, l.more = [2]float64{belowNodes, aboveNodes}, weights, excess > 0
	// Most edges are so near or so far that the law need not be known.
	if far > l.deviation() && (far > l.chernoff(e.beta) || far > l.reach(e.beta)) {
		return int(math.Copysign(1, excess))
	}
	return 0
}

// law is that of what is by chance: of a sum of draws of the noise, weighted, and of a binomial number less its mean, rows·rank.
type law struct {
	noise   Noise
	of      unit.Sensitivity
	counts  [2]float64 // of draws
	weights [2]float64 // of each, 0 or more
	rows    float64    // of the binomial; 0 for none
	rank    float64
	most    bool // rows is a bound: there may be fewer
	more    bool // the binomial counts more than its mean, and not less
}

// reach is exceeded with probability at most beta.
func (l law) reach(beta float64) float64 {
	if l.most {
		return l.chernoff(beta)
	}
	return min(l.chernoff(beta), l.exact(beta))
}

func (l law) deviation() float64 {
	one := l.noise.deviation(l.of)
	return math.Sqrt(one*one*(l.counts[0]*l.weights[0]*l.weights[0]+l.counts[1]*l.weights[1]*l.weights[1]) + l.rows*l.rank*(1-l.rank))
}

// chernoff bounds the reach by the best of P(X >= t) <= E e^(x(X-t)). The moment of the binomial is 1 or more, so that the bound holds for fewer rows, too.
func (l law) chernoff(beta float64) float64 {
	of := func(log float64) float64 {
		x, sum := math.Exp(log), -math.Log(beta)
		for i, n := range l.counts {
			if n > 0 && l.weights[i] > 0 {
				sum += n * l.noise.logMoment(l.of, l.weights[i]*x)
			}
		}
		if l.rows > 0 && l.rank > 0 && l.rank < 1 {
			p := l.rank
			if !l.more {
				p = 1 - p // of the other outcome there are the more
			}
			if x > 300 {
				return math.Inf(1)
			}
			sum += l.rows * max(0, math.Log1p(p*math.Expm1(x))-p*x)
		}
		return sum / x
	}
	low, high := math.Log(1e-3/l.deviation()), math.Log(1e3/l.deviation())
	for high > low && math.IsInf(of(high), 1) { // beyond the largest x with a moment
		high -= .25
	}
	_, value := minimum.Brent(of, low, high+.25, 1e-3)
	return value
}

// cells of the law's grid, and of one deviation.
const (
	lawCells      = 1 << 13
	cellsOfOneDev = lawCells / 32
)

// transforms are of lawCells; their tables are worth keeping.
var transforms = sync.Pool{New: func() any { return fourier.NewFFT(lawCells) }}

// exact is the reach by the law itself, on a grid of deviation/256: each part is rounded up to the grid, so that the sum is never less than it is, and the
// parts' laws are convolved by FFT on a circle of 32 deviations. What the circle can be off by counts as beyond.
func (l law) exact(beta float64) float64 {
	const half = lawCells / 2
	cell := l.deviation() / cellsOfOneDev
	// Beyond the circle: what is below comes out above, which only widens; what is above comes out below, with at most the probability lost.
	lost := beta * 1e-3
	if l.chernoff(lost) > (half-2-l.counts[0]-l.counts[1])*cell {
		return math.Inf(1)
	}
	lost += 1e-12 // of the FFT
	fft := transforms.Get().(*fourier.FFT)
	defer transforms.Put(fft)
	product := make([]complex128, lawCells/2+1)
	for i := range product {
		product[i] = 1
	}
	times := func(cells []float64, k float64) {
		for i, c := range fft.Coefficients(nil, cells) {
			product[i] *= power(c, int(k))
		}
	}
	for i, weight := range l.weights {
		if l.counts[i] == 0 || weight == 0 {
			continue
		}
		cells, before := make([]float64, lawCells), 1. // before: P(cell u-1 < noise)
		for u := -half + 1; u <= half; u++ {
			after := l.noise.beyond(l.of, math.Floor(float64(u)*cell/weight-math.Abs(float64(u))*cell/weight*1e-14))
			cells[(u+lawCells)%lawCells] = before - after
			before = after
		}
		lost += l.counts[i] * before
		times(cells, l.counts[i])
	}
	if l.rows > 0 && l.rank > 0 && l.rank < 1 {
		cells, left := make([]float64, lawCells), 1.
		mean, wide := l.rows*l.rank, 9*math.Sqrt(l.rows*l.rank*(1-l.rank))+60
		if wide > 1<<17 {
			return math.Inf(1) // it would take long
		}
		for k := max(0, math.Floor(mean-wide)); k <= min(l.rows, mean+wide); k++ {
			p := math.Exp(binomial.LogProbability(l.rows, k, l.rank))
			off := k - mean
			if !l.more {
				off = -off
			}
			if u := int(math.Ceil(off/cell + 1e-9)); u > -half && u <= half {
				cells[(u+lawCells)%lawCells] += p
				left -= p
			}
		}
		lost += max(0, left) + 1e-10*l.rank*(1-l.rank) // of the probabilities' last digits
		times(cells, 1)
	}
	circle := fft.Sequence(nil, product)
	for u, tail := half, lost; u > -half; u-- {
		if tail += max(0, circle[(u+lawCells)%lawCells]) / lawCells; tail > beta {
			return float64(u) * cell
		}
	}
	return math.Inf(1)
}

// power by squaring, for a whole k from 0.
func power(c complex128, k int) complex128 {
	out := complex128(1)
	for ; k > 0; k /= 2 {
		if k%2 == 1 {
			out *= c
		}
		c *= c
	}
	return out
}
