package certify

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/tables"
)

// halves is softmax regression of two classes: class 1 where x[0] - 2 x[1] > 0.
func halves() *learn.Network {
	n := learn.Softmax(4, 2)
	copy(n.Params(), []float64{-10, 20, 0, 0, 10, -20, 0, 0, 0, 0})
	return n
}

// TestAttackIsAsStrongAsCanBe: against a half-space, whose distance is known in both norms, the attack succeeds a little beyond the
// distance, never leaves its ball, and does not succeed before the distance.
func TestAttackIsAsStrongAsCanBe(t *testing.T) {
	network := halves()
	x := []float64{1, 0, 0.3, -0.3}
	for _, c := range []struct {
		family   certify.Family
		distance float64
	}{{certify.Gaussian, 1 / math.Sqrt(5)}, {certify.Laplace, 0.5}} {
		n := certify.Noise{Family: c.family, Scale: 0.25}
		attack := newPGD(network, n, 1)
		moved, move := make([]float64, 4), make([]float64, 4)
		for _, size := range []float64{0.5, 0.95, 1.1, 2} {
			attack.move(moved, x, 1, size*c.distance)
			for j := range move {
				move[j] = moved[j] - x[j]
			}
			if norm := n.Norm(move); norm > size*c.distance*(1+1e-9) {
				t.Errorf("%v: moved by %v, %v is allowed", c.family, norm, size*c.distance)
			}
			// By symmetry of the noise the smoothed classifier has the same boundary.
			if crossed := moved[0]-2*moved[1] < 0; crossed != (size > 1) {
				t.Errorf("%v: at %v of the distance the boundary is crossed: %v", c.family, size, crossed)
			}
		}
	}
}

// TestShrink: the projection on the L1 ball is on its surface and no point of the ball is nearer.
func TestShrink(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	n := certify.Noise{Family: certify.Laplace, Scale: 1}
	attack := newPGD(halves(), n, 1)
	for range 200 {
		from, to := make([]float64, 4), make([]float64, 4)
		for j := range from {
			from[j] = random.NormFloat64()
		}
		copy(to, from)
		size := n.Norm(from) * random.Float64()
		attack.shrink(to, size)
		if math.Abs(n.Norm(to)-size) > 1e-9 {
			t.Fatalf("%v to %v: norm %v, want %v", from, to, n.Norm(to), size)
		}
		distance := func(p []float64) (d float64) {
			for j := range p {
				d += (p[j] - from[j]) * (p[j] - from[j])
			}
			return d
		}
		best := distance(to)
		for range 200 {
			other := make([]float64, 4)
			for j := range other {
				other[j] = to[j] + 0.1*random.NormFloat64()
			}
			if norm := n.Norm(other); norm > size {
				for j := range other {
					other[j] *= size / norm
				}
			}
			if distance(other) < best-1e-12 {
				t.Fatalf("%v to %v: %v is nearer", from, to, other)
			}
		}
	}
}

// TestTooLargeRadiusIsBroken: the attack inside finds out radii of three (L2) or eight (L1) times what is certified, for most digits, so that
// a wrong certificate would not pass for a right one.
func TestTooLargeRadiusIsBroken(t *testing.T) {
	training, others, err := tables.SplitDigits(1, trainingDigits)
	if err != nil {
		t.Fatal(err)
	}
	all := conditions(true)[:2] // softmax regression with either noise
	networks, err := train(context.Background(), run.Options{Seed: 1}, all, training, quickCopies)
	if err != nil {
		t.Fatal(err)
	}
	for i, factor := range map[int]float64{0: 3, 1: 8} {
		w := digitWork{condition: all[i], network: networks[i], draws: 2000, alpha: 1e-5}
		broken, attacked, honest := 0, 0, 0
		for digit := range 8 {
			x := others.Row(digit)
			out, err := w.digit(x, others.Y[digit], uint64(digit))
			if err != nil {
				t.Fatal(err)
			}
			if out.Labels.Broken || out.Scores.Broken {
				honest++
			}
			if out.Labels.Radius == 0 {
				continue
			}
			a := assault{Prediction: out.Labels.Prediction, Radius: factor * out.Labels.Radius}
			if err := w.assault(&a, x, false, uint64(digit)); err != nil {
				t.Fatal(err)
			}
			attacked++
			if a.Broken {
				broken++
			}
		}
		if honest > 0 || attacked < 4 || broken*2 < attacked {
			t.Errorf("%v: of %d radii times %v, %d are broken, and %d of those that are certified", all[i], attacked, factor, broken, honest)
		}
	}
}

func TestSmallest(t *testing.T) {
	for _, truth := range []float64{0.3, 1.7, 9, 1000} {
		tried := 0
		got, err := smallest(0.25, 0.5, 64, func(size float64) (bool, error) {
			tried++
			return size >= truth, nil
		})
		if err != nil || got < min(truth, 64) || got > min(64, truth*1.07) || tried > 12 {
			t.Errorf("%v found as %v in %d tries, %v", truth, got, tried, err)
		}
	}
}

// TestNearestBoundary: the attack on a model without a defence crosses the nearest boundary, where another label has the second score.
func TestNearestBoundary(t *testing.T) {
	network := learn.Softmax(4, 3)
	// Of x = 0 class 0 has the score 1, class 1 has 0.5 and needs a move of 5, class 2 has 0 and needs one of 1/3.
	copy(network.Params(), []float64{0, 0, 0, 0, 0.1, 0, 0, 0, 0, 3, 0, 0, 1, 0.5, 0})
	for _, family := range []certify.Family{certify.Gaussian, certify.Laplace} {
		out, err := subject{family: family}.attack(network, make([]float64, 4), 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if part := out.Against.Smallest * 3; math.Abs(out.Distance*3-1) > 1e-12 || part < 1 || part > 1.1 {
			t.Errorf("%v: the boundary at %v is crossed at %v times its distance", family, out.Distance, part)
		}
	}
}
