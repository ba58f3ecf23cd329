package learn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
)

// Private are the settings of DP-SGD. They are public and must not be chosen by looking at the data, or that choice is
// another release.
type Private struct {
	Steps      int
	Sampling   float64 // probability with which a step takes each example, in (0,1]
	Clip       float64 // largest Euclidean norm of one example's gradient
	Multiplier float64 // standard deviation of the noise on the batch's summed gradient, over Clip
	Rate       float64 // learning rate, for the noisy sum over the expected batch Sampling * rows
	Momentum   float64 // in [0,1)
	// Adam moves each parameter by its own running mean over the root of its running mean square (Kingma and Ba, arXiv 1412.6980), of gradients that are
	// private already: it costs nothing more. Momentum is then the first mean's, and 0 counts as 0.9; a Rate is much smaller than without, about 0.01. The
	// running squares hold the noise, too.
	Adam bool
}

// ErrSettings is wrapped by what Train and TrainPrivately say of impossible settings.
var ErrSettings = errors.New("learn: bad settings")

func (o Private) check() error {
	finite := func(v float64) bool { return v > 0 && v < math.Inf(1) }
	switch {
	case o.Steps < 1:
		return fmt.Errorf("%w: %d steps", ErrSettings, o.Steps)
	case !(o.Sampling > 0 && o.Sampling <= 1):
		return fmt.Errorf("%w: sampling probability %v is not in (0,1]", ErrSettings, o.Sampling)
	case !(o.Clip >= MinClip && o.Clip <= MaxClip):
		return fmt.Errorf("%w: clipping norm %v is not in [%v, %v]", ErrSettings, o.Clip, MinClip, MaxClip)
	case !(o.Multiplier > 0 && o.Multiplier <= account.MaxMultiplier):
		return fmt.Errorf("%w: noise multiplier %v is not in (0, %v]", ErrSettings, o.Multiplier, account.MaxMultiplier)
	case !finite(o.Rate):
		return fmt.Errorf("%w: learning rate %v", ErrSettings, o.Rate)
	case !(o.Momentum >= 0 && o.Momentum < 1):
		return fmt.Errorf("%w: momentum %v is not in [0,1)", ErrSettings, o.Momentum)
	}
	return nil
}

// Limits of the clipping norm: far inside what float64 holds, also divided by the grid.
const (
	MinClip = 1e-9
	MaxClip = 1e9
)

// MaxPrivateRows bounds the rows of TrainPrivately, so that the rounding errors of a batch's sum stay a small part of the
// clipping norm (half a percent) and its integers far from overflow.
const MaxPrivateRows = 1 << 22

// Account is what training with these settings spends, whatever the data: neighbours differ in one example that is added
// or removed, and the number of rows that divides the sum is taken as public.
func (o Private) Account() (*account.RDP, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	spent := account.NewRDP()
	spent.SubsampledGaussian(o.Sampling, o.Multiplier, o.Steps)
	return spent, nil
}

// Event is what training with these settings is to any accountant. With Sampling 1 it is gradient descent with noise, and no sample.
func (o Private) Event() (account.Event, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var step account.Event = account.Gaussian{Multiplier: o.Multiplier}
	if o.Sampling < 1 {
		step = account.Poisson{Rate: o.Sampling, Event: step}
	}
	return account.Times{Event: step, Times: o.Steps}, nil
}

// TrainPrivately is DP-SGD from the parameters that the network has, which must not come from the data. Every
// intermediate model is private together with the last one, and what was spent is o.Account(). A cancelled context ends
// training between two steps with the context's error: when it comes must not depend on the data. That data are refused
// (ErrData) does depend on them, and is for nobody but who holds them.
//
// Batches and noise come from s. The guarantee needs a stream of a secret key that is used for nothing else; with
// noise.Seeded it is a simulation of private training. Row i is drawn when 64 random bits are below floor(2^64 Sampling),
// so with at most that probability.
//
// What a step releases is integers: the batch's clipped sum in units of a grid, rounded, plus the rounding of a real normal
// variable (noise.RoundedNormal). The sensitivity is that of the numbers as the machine computes them; see shrink.
func (n *Network) TrainPrivately(ctx context.Context, d Data, o Private, s *noise.Stream) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := d.check(n.Dim(), n.Classes()); err != nil {
		return err
	}
	if d.Len() > MaxPrivateRows {
		return fmt.Errorf("%w: %d rows, at most %d", ErrData, d.Len(), MaxPrivateRows)
	}
	grid := gridOf(o.Clip)
	limit, scale := o.Clip*shrink(n, d.Len()), o.Multiplier*o.Clip/grid
	divisor := o.Sampling * float64(d.Len())
	below := uint64(math.MaxUint64)
	if o.Sampling < 1 {
		below = uint64(o.Sampling * 0x1p64)
	}
	batch, sum, descent := make([]int, 0, d.Len()), newBatchSum(n), o.descent(n)
	for range o.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch = batch[:0]
		for i := range d.Len() {
			if o.Sampling == 1 || s.Uint64() < below {
				batch = append(batch, i)
			}
		}
		sum.of(d, batch, limit)
		for i, v := range sum.gradient {
			sum.gradient[i] = float64(units(v, grid)+noise.RoundedNormal(s, scale)) * grid / divisor
		}
		descent.step(sum.gradient)
	}
	return nil
}

// descent follows noisy gradients.
func (o Private) descent(n *Network) interface{ step(gradient []float64) } {
	if !o.Adam {
		return newDescent(n, o.Rate, o.Momentum)
	}
	a := &adam{params: n.params, mean: make([]float64, len(n.params)), square: make([]float64, len(n.params)), rate: o.Rate, decay: o.Momentum, unbias1: 1, unbias2: 1}
	if a.decay == 0 {
		a.decay = adamDecay
	}
	return a
}

// gridBits: the grid is between 2^-36 and 2^-35 of the clipping norm, so that 2^22 rows and the noise of the largest
// multiplier fit an int64 twice over.
const gridBits = 36

// gridOf is a power of two, so that dividing by it is exact.
func gridOf(clip float64) float64 {
	_, exponent := math.Frexp(clip)
	return math.Ldexp(1, exponent-gridBits)
}

// units is a coordinate of a batch's sum as an integer.
func units(v, grid float64) int64 { return int64(math.Round(v / grid)) }

// shrink is the factor by which gradients are clipped more than to Clip, so that one example moves a batch's sum of
// integers by at most Clip in Euclidean norm as computed, not only in real arithmetic. An example's own gradient, as
// computed, is the same bits in every batch: gonum computes a row of a product by itself. With u = 2^-53, m rows, a
// network of p parameters and w the longest sum in a norm, in units of Clip:
//
//   - a clipped gradient's own norm is off by a relative (w+8) u: its squared norm is a sum of non-negative products, and
//     a root, a quotient and two products follow;
//   - a batch's sum is off by at most m u (1 + m u) times the sum of its gradients' norms, which is at most m, whatever
//     the order; neighbouring batches are off by as much each, so together by 2 m^2 u, and a little;
//   - rounding moves each coordinate by at most half a grid, of either neighbour: sqrt(p) grids together, each at most
//     2^-35.
func shrink(n *Network, rows int) float64 {
	const u = 0x1p-53
	m, widest := float64(rows+1), 0
	for _, size := range n.sizes {
		widest = max(widest, size)
	}
	own := (float64(2*widest+len(n.sizes)) + 8) * u
	return 1 - own - 2*m*m*u*1.001 - math.Sqrt(float64(len(n.params)))*0x1p-35 - 4*u
}
