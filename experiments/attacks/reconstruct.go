package attacks

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Reconstruction is how much of a secret yes/no column of the holdout somebody found out who knows all other columns of its rows, and nothing of the secret (Dinur and Nissim,
// PODS 2003). Each question asks in how many rows the secret agrees with coins that the attacker threw for them; the secrets are then estimated together, by the best linear
// estimate.
type Reconstruction struct {
	Runs    int      `json:"runs"`
	Right   float64  `json:"right"`   // the share of the secrets that was found, in the mean of the runs; 0.5 is chance
	Least   float64  `json:"least"`   // of a run
	Most    float64  `json:"most"`    // of a run
	Allowed *float64 `json:"allowed"` // the expected share, at most, for the noise of these answers; null where that protects no row
	Answers int64    `json:"answers"` // from the holdout that the attacker saw
}

const (
	mostReconstructions = 10
	// mostBits are those of all coins, a bit each: 128 MB.
	mostBits = 1 << 30
	// steps of the conjugate gradients, of which each goes over all coins twice.
	gradientSteps = 40
)

// coinTosses are the coins of all questions: of each block of eight questions a byte for each unit.
type coinTosses struct {
	blocks [][]byte
	n      int
}

// plus is dst += E^T w: of each unit the sum of the questions' weights, by the signs of its coins.
func (t coinTosses) plus(dst, w []float64) {
	for b, block := range t.blocks {
		var votes [256]float64
		for pattern := range votes {
			for bit := range 8 {
				if j := 8*b + bit; j < len(w) {
					votes[pattern] += w[j] * sign(pattern>>bit)
				}
			}
		}
		for i := range dst {
			dst[i] += votes[block[i]]
		}
	}
}

// times is dst = E x: of each question the sum over the units, by the signs of its coins.
func (t coinTosses) times(dst, x []float64) {
	for b, block := range t.blocks {
		var sums [256]float64
		for i, v := range x {
			sums[block[i]] += v
		}
		for bit := range 8 {
			j := 8*b + bit
			if j >= len(dst) {
				return
			}
			dst[j] = 0
			for pattern, v := range sums {
				dst[j] += v * sign(pattern>>bit)
			}
		}
	}
}

func sign(bit int) float64 { return float64(2*(bit&1) - 1) }

// reconstruct plays the attack a few times.
func (r Request) reconstruct(ctx context.Context, work float64) (*Reconstruction, []string, error) {
	g := r.Guarantee
	c, _, ok, err := claimOf(g)
	if err != nil {
		return nil, nil, err
	}
	answers := g.Questions
	if g.NeedsTokens() {
		answers = min(answers, g.Tokens)
	}
	size := float64(answers) * float64(g.N)
	cost := size*(.25+2*gradientSteps/8) + float64(answers)*eachAnswer
	runs := int(min(work/cost, mostReconstructions))
	if runs < 1 || size > mostBits {
		return nil, []string{"there was no time, or no room, to reconstruct a secret column: the questions are too many for so many units"}, nil
	}
	shares, seen := make([]float64, runs), make([]int64, runs)
	err = r.each(ctx, "reconstruction", runs, func(i int) error {
		found, err := Reconstruct(g, ok, seeds.Of(r.Seed, 3, uint64(i)))
		shares[i], seen[i] = found.Right, found.Answers
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	result := &Reconstruction{Runs: runs, Least: 1}
	for i, s := range shares {
		result.Right += s / float64(runs)
		result.Least, result.Most = min(result.Least, s), max(result.Most, s)
		result.Answers = max(result.Answers, seen[i])
	}
	if ok {
		allowed := (1 + account.Advantage(c.curve)) / 2
		result.Allowed = &allowed
	}
	return result, nil, nil
}

// Found is what one attack on a secret column comes to.
type Found struct {
	Right    float64 `json:"right"`    // the share of the secrets; 0.5 is chance
	Expected float64 `json:"expected"` // that share in a large holdout, by theory, for as many answers with as much noise
	Answers  int64   `json:"answers"`  // from the holdout that the attacker saw
}

// Reconstruct plays the attack of [Reconstruction] once. Where noisy, it stops where answers have no noise. The same guarantee and seed give the same result.
func Reconstruct(g thresholdout.Guarantee, noisy bool, seed uint64) (Found, error) {
	n := int(g.N)
	r := rand.New(rand.NewPCG(seeds.Of(seed, 1), 0))
	secret := make([]byte, (n+7)/8*8) // 0 or 255
	for i := range secret {
		secret[i] = byte(-int(r.Uint64() >> 63))
	}
	h := session.Simulated{Guarantee: g, Seed: seeds.Of(seed, 2)}
	tosses := coinTosses{n: n}
	var y, variance []float64 // 2 n (answer - 1/2), which is the sum of the secrets' signs by those of the coins; and its noise
	zero := 0.
	for asked := 0; h.Remaining() > 0; asked++ {
		if g.Rounds > 0 && g.Affordable(h.State) == 0 {
			if h.State = g.EndRound(h.State); g.Affordable(h.State) == 0 {
				break
			}
		}
		sigma := sigmaOf(g, h.State)
		if noisy && sigma == 0 {
			break
		}
		if len(y)%8 == 0 && len(y)/8 == len(tosses.blocks) {
			block := make([]byte, len(secret))
			for i := 0; i < len(block); i += 8 {
				binary.LittleEndian.PutUint64(block[i:], r.Uint64())
			}
			tosses.blocks = append(tosses.blocks, block)
		}
		block, bit := tosses.blocks[len(y)/8], len(y)%8
		from, to := h.Slice()
		agree := int64(0)
		for i := from; i < to; i++ {
			agree += int64(^(block[i]^secret[i])>>bit) & 1
		}
		in := thresholdout.Input{Holdout: thresholdout.Mean{Sum: agree * rowfn.One, N: to - from}}
		if g.UsesTraining() {
			in.Training = thresholdout.Mean{N: g.Training}
		}
		if g.TakesGuesses() {
			in.Guess = &thresholdout.Guess{Value: &zero}
		}
		out, err := h.Mean(in)
		if err != nil {
			return Found{}, fmt.Errorf("attacks: reconstruction: %w", err)
		}
		if out.Source != thresholdout.FromHoldout {
			continue
		}
		y = append(y, 2*float64(n)*(out.Value-.5))
		sliced := 1 / float64(to-from) * (1 - float64(to-from)/float64(n)) / 4 // which units are in a slice is secret
		variance = append(variance, 4*float64(n)*float64(n)*(sigma*sigma+sliced)+1e-9)
	}
	estimate := tosses.estimate(y, variance)
	right := 0.
	for i, e := range estimate {
		switch {
		case e == 0:
			right += .5
		case (e > 0) == (secret[i] != 0):
			right++
		}
	}
	return Found{right / float64(n), expectedShare(variance, float64(n)), int64(len(y))}, nil
}

// expectedShare is the share of n signs that the best linear estimate finds from answers with noise of these variances, in the limit of large n: the normal law at the root of
// what is then its ratio of signal to noise, g = sum over the answers of 1 / (v + n/(1+g)) (Tse, Hanly, IEEE Transactions on Information Theory 45, 1999).
func expectedShare(variance []float64, n float64) float64 {
	const steps, precision, sure = 10_000, 1e-9, 100 // from there on nothing is missed
	g := 0.
	for range steps {
		next := 0.
		for _, v := range variance {
			next += 1 / (v + n/(1+g))
		}
		if done := next-g < precision*next; done || next > sure {
			g = next
			break
		}
		g = next
	}
	return distuv.UnitNormal.CDF(math.Sqrt(g))
}

// estimate is the best linear estimate of signs that are as likely 1 as -1, E^T (E E^T + V)^-1 y, by conjugate gradients on the equation that is scaled by the noise.
func (t coinTosses) estimate(y, variance []float64) []float64 {
	k := len(y)
	estimate := make([]float64, t.n)
	if k == 0 {
		return estimate
	}
	// With D = (V + n)^-1/2, the diagonal of the matrix: solve D (E E^T + V) D z = D y, w = D z.
	d := make([]float64, k)
	for j, v := range variance {
		d[j] = 1 / math.Sqrt(v+float64(t.n))
	}
	w, residual, direction, image, units := make([]float64, k), make([]float64, k), make([]float64, k), make([]float64, k), make([]float64, t.n)
	for j := range y {
		residual[j] = d[j] * y[j]
		direction[j] = residual[j]
	}
	scaled := make([]float64, k)
	before := dot(residual, residual)
	for first, step := before, 0; step < gradientSteps && before > 1e-12*first && before > 0; step++ {
		for j := range scaled {
			scaled[j] = d[j] * direction[j]
		}
		clear(units)
		t.plus(units, scaled)
		t.times(image, units)
		for j := range image {
			image[j] = d[j] * (image[j] + variance[j]*scaled[j])
		}
		length := before / dot(direction, image)
		for j := range w {
			w[j] += length * direction[j]
			residual[j] -= length * image[j]
		}
		now := dot(residual, residual)
		for j := range direction {
			direction[j] = residual[j] + now/before*direction[j]
		}
		before = now
	}
	for j := range w {
		w[j] *= d[j]
	}
	t.plus(estimate, w)
	return estimate
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
