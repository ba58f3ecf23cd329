package learn

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/floats"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/normal"
)

// Logistic is logistic regression of two classes as one strongly convex problem, which can be made private at its ends: by noise on its solution
// ([Logistic.OutputPerturbation]) or in its objective ([Logistic.ObjectivePerturbation]). Features are scaled down where a row's Euclidean norm is above
// Radius. There is no intercept; give a feature that is always 1.
//
// The settings are public and must not be chosen by looking at the data.
type Logistic struct {
	Dim    int
	Radius float64 // of rows
	// Lambda is of the penalty Lambda/2 |w|²: beside the mean loss for OutputPerturbation, beside the sum of losses for ObjectivePerturbation.
	Lambda float64
}

// Limits of Logistic. Below MinMu the noise would be beyond what is drawn, above MaxMu nobody is protected. MaxConvexSteps bounds the work where the
// problem is badly conditioned; what is private does not depend on it.
const (
	MaxConvexRows  = 1 << 20
	MaxConvexSteps = 20_000
	MinMu          = 1e-6
	MaxMu          = 1e6
	maxConvexDim   = 1 << 16
)

func (l Logistic) check(d Data) error {
	positive := func(v float64) bool { return v >= 1e-12 && v <= 1e12 }
	if l.Dim < 1 || l.Dim > maxConvexDim || !positive(l.Radius) || !positive(l.Lambda) {
		return fmt.Errorf("%w: %+v", ErrSettings, l)
	}
	if err := d.check(l.Dim, 2); err != nil {
		return err
	}
	if d.Len() > MaxConvexRows {
		return fmt.Errorf("%w: %d rows, at most %d", ErrData, d.Len(), MaxConvexRows)
	}
	return nil
}

// signed are the rows, of norm at most Radius and with the sign of their class: the loss of w is the sum of ln(1 + e^-(row w)).
func (l Logistic) signed(d Data) []float64 {
	x := make([]float64, len(d.X))
	limit := l.Radius * (1 - float64(l.Dim+8)*0x1p-52) // so that the norm as computed is not above it
	for i, y := range d.Y {
		row := x[i*l.Dim : (i+1)*l.Dim]
		copy(row, d.Row(i))
		if largest := floats.Norm(row, math.Inf(1)); largest > 0 {
			scale := 1.
			if norm := floats.Norm(row, 2); math.IsInf(norm, 1) || norm > limit {
				for k := range row { // the largest number first, so that no square overflows
					row[k] /= largest
				}
				scale = limit / floats.Norm(row, 2)
			}
			if y == 0 {
				scale = -scale
			}
			floats.Scale(scale, row)
		}
	}
	return x
}

// descend is gradient descent of step 1/smooth on share · sum of losses + lambda/2 |w|² + b w, from 0.
func (l Logistic) descend(x, b []float64, share, smooth float64, steps int) []float64 {
	rows := len(x) / l.Dim
	w, gradient, weights := make([]float64, l.Dim), make([]float64, l.Dim), make([]float64, rows)
	for range steps {
		engine.Dgemv(blas.NoTrans, rows, l.Dim, 1, x, l.Dim, w, 1, 0, weights, 1)
		for i, margin := range weights {
			weights[i] = -share / (1 + math.Exp(margin))
		}
		engine.Dgemv(blas.Trans, rows, l.Dim, 1, x, l.Dim, weights, 1, 0, gradient, 1)
		floats.AddScaled(gradient, l.Lambda, w)
		if b != nil {
			floats.Add(gradient, b)
		}
		floats.AddScaled(w, -1/smooth, gradient)
	}
	return w
}

// stepsFor brings a distance down by the factor: each step shrinks it by 1 - 1/condition.
func stepsFor(condition, factor float64) float64 {
	return math.Ceil(math.Log(factor) / -math.Log1p(-1/max(condition, 1.0001)))
}

// sensitivity is how far a replaced row moves the weights that descend finds, of the mean loss of that many rows, in Euclidean norm:
//
//	2 Radius/(rows Lambda)
//
// (Chaudhuri, Monteleoni and Sarwate 2011, Corollary 8, for the minimum; here for the steps themselves, converged or not.) A step of 1/smooth brings any
// two points nearer by 1 - Lambda/smooth, and a replaced row moves a gradient by at most 2 Radius/rows: the sum of the geometric series is the bound
// (Hardt, Recht and Singer, arXiv 1509.01240, section 3). Rounding is in it as steps that are off by as much as sums of so many terms can be.
func (l Logistic) sensitivity(rows int) float64 {
	const u = 0x1p-53
	n, dim, condition := float64(rows), float64(l.Dim), l.smooth()/l.Lambda
	rounding := 4 * u * n * (n + dim + 20 + condition*(dim+20))
	return 2 * l.Radius / (n * l.Lambda) * (1 + rounding)
}

// smooth is of the mean loss with its penalty.
func (l Logistic) smooth() float64 { return l.Radius*l.Radius/4 + l.Lambda }

// model has the weights as those of class 1 against class 0.
func (l Logistic) model(w []float64) *Network {
	n := Softmax(l.Dim, 2)
	copy(n.params[l.Dim:2*l.Dim], w)
	return n
}

// OutputPerturbation minimises the mean loss and adds Gaussian noise to the weights, which makes them mu-GDP where one row is replaced and the number of rows is public. Noise is an integer on a grid, exact (noise.RoundedNormal). The error wraps
// ErrSettings where rounding could be a hundredth of the sensitivity: too many rows for so bad a condition.
func (l Logistic) OutputPerturbation(d Data, mu account.GDP, s *noise.Stream) (*Network, error) {
	if err := l.check(d); err != nil {
		return nil, err
	}
	if !(mu >= MinMu && mu <= MaxMu) {
		return nil, fmt.Errorf("%w: mu %v, want %v to %v", ErrSettings, float64(mu), MinMu, MaxMu)
	}
	moved := l.sensitivity(d.Len())
	if moved > 1.01*2*l.Radius/(float64(d.Len())*l.Lambda) {
		return nil, fmt.Errorf("%w: %d rows of radius %v at lambda %v: rounding is no longer small beside what a row moves", ErrSettings, d.Len(), l.Radius, l.Lambda)
	}
	steps := min(stepsFor(l.smooth()/l.Lambda, 1e8), MaxConvexSteps)
	w := l.descend(l.signed(d), nil, 1/float64(d.Len()), l.smooth(), int(steps))
	return l.model(perturb(w, moved, l.Radius/l.Lambda, float64(mu), s)), nil
}

// perturb puts a vector of that sensitivity, whose numbers are at most reach either way, on a grid of about 2^-30 of the sensitivity and adds Gaussian
// noise. Where that is too fine for an int64 the grid is 2^-60 of reach. Sums are of integers, so that no digit of them is a vector's alone; what clamps
// them comes up as good as never.
func perturb(w []float64, moved, reach, mu float64, s *noise.Stream) []float64 {
	_, exponent := math.Frexp(moved)
	_, far := math.Frexp(reach)
	grid := math.Ldexp(1, max(exponent-30, far-60))
	// Rounding moves each coordinate by at most half a grid, on either table.
	scale := (moved/grid + math.Sqrt(float64(len(w)))) / mu * (1 + 1e-14)
	out := make([]float64, len(w))
	for i, v := range w {
		whole := int64(math.Round(min(max(v/grid, -0x1p61), 0x1p61)))
		out[i] = float64(whole+noise.RoundedNormal(s, scale)) * grid
	}
	return out
}

// shareOfSolving is the share of epsilon and delta that hides how far the computed minimum is from the true one.
const shareOfSolving = 0.05

// objective is the noise of ObjectivePerturbation.
type objective struct {
	sigma float64 // of each coordinate of the linear term
	reach float64 // at most so far is the minimum from 0
	far   float64 // and at most so far the solution from the minimum
	mu    float64 // of the noise that hides this
	steps int
}

// plan finds the noise, for at most rows rows.
//
// A row that is added moves the gradient of the sum by g = -p x, 0 < p < 1, |x| <= Radius, and its curvature by a matrix of rank one of at most Radius²/4.
// The weights are a smooth and invertible function of the linear term b, so the ratio of their densities is that of b's, times that of the determinants,
// which is between 1 and 1 + Radius²/(4 Lambda). The logarithm of the former is (|g|² ∓ 2 b g)/(2 sigma²): b g is p times a normal variable of deviation at
// most Radius·sigma, whose sign matters one way, so it exceeds eps1 with probability at most Phi(-(sigma eps1/Radius - Radius/(2 sigma))). In both
// directions this is (eps1 + ln(1 + Radius²/(4 Lambda)), delta1) (after Kifer, Smith and Thakurta, COLT 2012, Theorem 2, with an exact tail).
//
// What is released is not the minimum but the end of a descent, off by at most far. Given the minimum, where it ends is a function of the table that lies
// in a ball of that radius: Gaussian noise hides which (Iyengar et al., S&P 2019). The two compose.
func (l Logistic) plan(rows int, eps, delta float64) (objective, error) {
	curvature := l.Radius * l.Radius / 4
	eps1, delta1 := eps*(1-shareOfSolving)-math.Log1p(curvature/l.Lambda), delta*(1-shareOfSolving)
	// The descent is good where no coordinate of the linear term is above 40 sigma: else with a probability of e^-700 each, of both tables.
	if delta1 -= float64(l.Dim) * (math.Exp(eps-700) + math.Exp(-700)); !(delta1 > 0) {
		return objective{}, fmt.Errorf("%w: delta %v is smaller than what the noise's own tail leaves out at epsilon %v; take a larger delta", ErrSettings, delta, eps)
	}
	if !(eps1 > 0) {
		least := curvature / math.Expm1(eps*(1-shareOfSolving)/2)
		return objective{}, fmt.Errorf("%w: lambda %v is too small for epsilon %v at radius %v: from about %.3g on half of epsilon is left for the noise", ErrSettings, l.Lambda, eps, l.Radius, least)
	}
	var o objective
	z := normal.UpperQuantile(min(delta1, .5))
	o.sigma = l.Radius * (z + math.Sqrt(z*z+2*eps1)) / (2 * eps1) * (1 + 1e-12)
	o.mu = float64(account.LargestGDP(eps*shareOfSolving, delta*shareOfSolving)) * (1 - 1e-11)
	const u = 0x1p-53
	n, dim := float64(rows), float64(l.Dim)
	condition := (n*curvature + l.Lambda) / l.Lambda
	// The minimum is within reach of 0 where the linear term is within 40 sigma.
	o.reach = (n*l.Radius + 40*o.sigma*math.Sqrt(dim)) / l.Lambda
	rounding := 4 * u * o.reach * condition * (n + dim + 40 + condition*(dim+20)) // of a descent, and of sums in it
	o.far = max(1e-7*o.sigma/l.Lambda, 4*rounding)
	steps := stepsFor(condition, 4*o.reach/o.far)
	if steps > MaxConvexSteps || 2*o.far/o.mu > o.sigma/l.Lambda {
		return objective{}, fmt.Errorf("%w: %d rows at lambda %v: the minimum is not found so exactly in %d steps; a larger lambda helps", ErrSettings, rows, l.Lambda, MaxConvexSteps)
	}
	o.steps = int(steps)
	return o, nil
}

// ObjectivePerturbation minimises the sum of losses with a random linear term, and is (eps, delta)-private where one row is added or removed. rows bounds
// how many there are, is public, and data with more are refused; so are a lambda that is too small for epsilon, and problems that are not solved exactly
// enough for what hides the rest.
func (l Logistic) ObjectivePerturbation(d Data, rows int, eps, delta float64, s *noise.Stream) (*Network, error) {
	if err := l.check(d); err != nil {
		return nil, err
	}
	if !(eps > 0 && eps <= noise.MaxEpsilon && delta > 0 && delta < 1) || rows < 1 || rows > MaxConvexRows {
		return nil, fmt.Errorf("%w: (%v, %v) for at most %d rows", ErrSettings, eps, delta, rows)
	}
	if d.Len() > rows {
		return nil, fmt.Errorf("%w: %d rows, and at most %d were promised", ErrData, d.Len(), rows)
	}
	o, err := l.plan(rows, eps, delta)
	if err != nil {
		return nil, err
	}
	// The linear term on a grid is off from a real one by half a grid, which moves the minimum by that over lambda: far below far/4.
	_, exponent := math.Frexp(min(o.sigma, o.far*l.Lambda/math.Sqrt(float64(l.Dim))))
	grid := math.Ldexp(1, exponent-4)
	b := make([]float64, l.Dim)
	for i := range b {
		b[i] = float64(noise.RoundedNormal(s, o.sigma/grid)) * grid
	}
	smooth := float64(rows)*l.Radius*l.Radius/4 + l.Lambda
	w := l.descend(l.signed(d), b, 1, smooth, o.steps)
	return l.model(perturb(w, 2*o.far, o.reach, o.mu, s)), nil
}
