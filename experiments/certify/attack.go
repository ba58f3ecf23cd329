package certify

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
)

// Settings of the attack.
const (
	attackSteps = 20
	attackDraws = 16  // of noise, for each gradient: it is of the smoothed classifier's score, not of the network's
	attackStep  = 2.5 // of the size, over the number of steps: enough to cross the ball and back
)

// pgd moves inputs within a ball so that a smoothed network predicts another label: projected gradient descent (arXiv 1706.06083)
// on the logarithm of the label's expected score over that of the best other label's, which are estimated by fresh noise at every step
// (arXiv 1906.04584). In the L2 norm a step goes along the gradient, in the L1 norm along its largest coordinate. Pixels may leave [0,1]: certificates do not
// ask for them to stay. It knows the network and the law of the noise, and is for one goroutine.
type pgd struct {
	noise  certify.Noise // of scale 0 where the network is not smoothed
	draws  int           // of noise, for each gradient
	target int           // the label to reach, anyLabel for the best other one
	pass   *learn.Pass
	random *rand.Rand

	noisy, gradients, probabilities []float64 // draws rows
	labels                          []int
	at, gradient, mean, sorted      []float64
}

// anyLabel is a target: whichever other label seems best at a step.
const anyLabel = -1

func newPGD(network *learn.Network, n certify.Noise, seed uint64) *pgd {
	dim, classes, draws := network.Dim(), network.Classes(), attackDraws
	if n.Scale == 0 {
		draws = 1
	}
	return &pgd{noise: n, draws: draws, target: anyLabel, pass: network.NewPass(draws), random: rand.New(rand.NewPCG(seed, 2)),
		noisy: make([]float64, draws*dim), gradients: make([]float64, draws*dim),
		probabilities: make([]float64, draws*classes), labels: make([]int, draws),
		at: make([]float64, dim), gradient: make([]float64, dim), mean: make([]float64, classes), sorted: make([]float64, dim)}
}

// move writes to dst the point that it likes best within size of x, in the noise's norm: where the label's expected score, less that of
// the best other one, seemed least. It begins at a random point of the ball.
func (a *pgd) move(dst, x []float64, label int, size float64) {
	for j := range a.at {
		a.at[j] = a.random.NormFloat64()
	}
	a.project(x, a.at, size*a.random.Float64())
	best := math.Inf(1)
	for step := range attackSteps + 1 {
		if margin := a.look(label); margin < best {
			best = margin
			copy(dst, a.at)
		}
		if step < attackSteps {
			a.step(size * attackStep / attackSteps)
			for j := range a.at {
				a.at[j] -= x[j]
			}
			a.project(x, a.at, size)
		}
	}
}

// look estimates the margin of the label at a.at, and the gradient there.
func (a *pgd) look(label int) (margin float64) {
	dim, classes := len(a.at), len(a.mean)
	for i := range a.labels {
		a.noise.Add(a.noisy[i*dim:(i+1)*dim], a.at, a.random)
	}
	copy(a.probabilities, a.pass.Scores(a.noisy))
	clear(a.mean)
	for i := range a.draws {
		p := a.probabilities[i*classes : (i+1)*classes]
		learn.SoftmaxTo(p, p)
		for k, v := range p {
			a.mean[k] += v / float64(a.draws)
		}
	}
	other := 1 - min(label, 1)
	for k, v := range a.mean {
		if k != label && v > a.mean[other] {
			other = k
		}
	}
	if a.target != anyLabel {
		other = a.target
	}
	clear(a.gradient)
	a.climb(label, 1)
	a.climb(other, -1)
	return a.mean[label] - a.mean[other]
}

// climb adds sign times the gradient of -ln of a label's expected score to a.gradient: the mean of the gradients of -ln of its score in each
// draw, weighted by these scores.
func (a *pgd) climb(label int, sign float64) {
	dim, classes := len(a.at), len(a.mean)
	for i := range a.labels {
		a.labels[i] = label
	}
	a.pass.InputGradients(a.gradients, a.noisy, a.labels)
	for i := range a.labels {
		weight := sign * a.probabilities[i*classes+label] / (float64(a.draws) * max(a.mean[label], 1e-300))
		for j, g := range a.gradients[i*dim : (i+1)*dim] {
			a.gradient[j] += weight * g
		}
	}
}

// step climbs the loss by a step of this length.
func (a *pgd) step(length float64) {
	if a.noise.Family == certify.Gaussian {
		norm := a.noise.Norm(a.gradient)
		if norm == 0 {
			return
		}
		for j, g := range a.gradient {
			a.at[j] += length * g / norm
		}
		return
	}
	steepest := 0
	for j, g := range a.gradient {
		if math.Abs(g) > math.Abs(a.gradient[steepest]) {
			steepest = j
		}
	}
	if g := a.gradient[steepest]; g != 0 {
		a.at[steepest] += math.Copysign(length, g)
	}
}

// project replaces move by x plus the point of the ball of this size that is nearest to it in the L2 norm.
func (a *pgd) project(x, move []float64, size float64) {
	if norm := a.noise.Norm(move); norm > size {
		if a.noise.Family == certify.Gaussian {
			for j := range move {
				move[j] *= size / norm
			}
		} else {
			a.shrink(move, size)
		}
	}
	for j := range move {
		move[j] += x[j]
	}
}

// shrink takes the same from every coordinate, none beyond 0, until the L1 norm, which is larger, is size (Duchi et al., ICML
// 2008).
func (a *pgd) shrink(move []float64, size float64) {
	for j, m := range move {
		a.sorted[j] = math.Abs(m)
	}
	slices.Sort(a.sorted)
	sum, take := 0.0, 0.0
	for i := range a.sorted {
		v := a.sorted[len(a.sorted)-1-i]
		sum += v
		if t := (sum - size) / float64(i+1); t < v {
			take = t
		}
	}
	for j, m := range move {
		move[j] = math.Copysign(max(0, math.Abs(m)-take), m)
	}
}

// nearest is the label whose boundary with this one is nearest to x by first order: the margin over the dual norm of its gradient (Moosavi-Dezfooli et al., arXiv
// 1511.04599). The label with the second score need not be: its weights may differ by less. For a model without noise.
func (a *pgd) nearest(x []float64, label int) (nearest int) {
	copy(a.at, x)
	a.look(label)
	mean, least := slices.Clone(a.mean), math.Inf(1)
	for k := range mean {
		if k == label {
			continue
		}
		clear(a.gradient)
		a.climb(label, 1)
		a.climb(k, -1)
		dual := 0.
		for _, g := range a.gradient {
			if a.noise.Family == certify.Laplace {
				dual = max(dual, math.Abs(g))
			} else {
				dual = math.Hypot(dual, g)
			}
		}
		if distance := (math.Log(mean[label]) - math.Log(max(mean[k], 1e-300))) / dual; distance < least {
			nearest, least = k, distance
		}
	}
	return nearest
}
