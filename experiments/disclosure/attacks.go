package disclosure

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// column is a bit of every row.
type column []uint64

// coins draws columns.
type coins struct{ *rand.PCG }

func newCoins(seed uint64) coins { return coins{rand.NewPCG(seed, 0)} }

func (c coins) column(n int) column {
	bits := make(column, (n+63)/64)
	for i := range bits {
		bits[i] = c.Uint64()
	}
	if n%64 != 0 {
		bits[len(bits)-1] &= 1<<(n%64) - 1
	}
	return bits
}

func (c column) at(i int) int64 { return int64(c[i/64] >> (i % 64) & 1) }

// sign is 1 for a bit that is set, else -1.
func (c column) sign(i int) float64 { return float64(2*c.at(i) - 1) }

// agreeing is in how many of n rows two columns are the same.
func agreeing(a, b column, n int) int64 {
	count := n
	for i := range a {
		count -= bits.OnesCount64(a[i] ^ b[i])
	}
	return int64(count)
}

func (c column) count() int64 {
	count := 0
	for _, w := range c {
		count += bits.OnesCount64(w)
	}
	return int64(count)
}

// ask asks for a mean, in steps of 2^-30 over all rows, that is 0 over the training part. Answers that the training part gave tell nothing.
func (c *cell) ask(h *analysts.Holdout, sum int64) (value float64, told bool, err error) {
	in := thresholdout.Input{Holdout: thresholdout.Mean{Sum: sum, N: int64(c.n)}}
	if c.guarantee.UsesTraining() {
		in.Training = thresholdout.Mean{N: c.guarantee.Training}
	}
	out, err := h.Mean(in)
	if err != nil {
		return 0, false, fmt.Errorf("experiments: disclosure: %s: %w", c.method, err)
	}
	value = out.Value
	if c.method == rounded {
		value = math.Round(value/roundedTo) * roundedTo
	}
	return value, !c.guarantee.NeedsTokens() || out.Tokens > 0, nil
}

// told is what the attacker has after all questions: which coins, and by how much the answers differ from one half.
type told struct {
	coins  []column
	excess []float64
	noise  []float64 // deviation of the answers' errors, as far as the plan tells it
}

// askAll asks k questions, each of which is a column that may be added to the rows.
func (c *cell) askAll(h *analysts.Holdout, next func() (coin column, count int64)) (told, error) {
	var all told
	noise := c.noise()
	for j := 0; j < c.k && h.Remaining() > 0; j++ {
		coin, count := next()
		value, ok, err := c.ask(h, count*rowfn.One)
		if err != nil {
			return told{}, err
		}
		if ok {
			all.coins, all.excess, all.noise = append(all.coins, coin), append(all.excess, value-0.5), append(all.noise, noise(int64(j)))
		}
	}
	return all, nil
}

// reconstruct asks how often random coins agree with the secret bits, and solves for these.
func (c *cell) reconstruct(h *analysts.Holdout, r coins) (float64, error) {
	secret := r.column(c.n)
	all, err := c.askAll(h, func() (column, int64) {
		coin := r.column(c.n)
		return coin, agreeing(coin, secret, c.n)
	})
	if err != nil {
		return 0, err
	}
	found, err := c.solve(all)
	if err != nil {
		return 0, err
	}
	right := 0
	for i, v := range found {
		if v*secret.sign(i) > 0 {
			right++
		}
	}
	return float64(right) / float64(c.n), nil
}

// leastVariance stands for none, in units of a row: far below what moves a bit.
const leastVariance = 1e-8

// variance is that of 2n times an answer's error.
func (c *cell) variance(noise float64) float64 {
	s := 2 * float64(c.n) * noise
	return max(leastVariance, s*s)
}

// solve is the linear estimate with the least mean squared error of bits +-1 from answers 2n excess = coins bits + error: with equations weighted by their
// errors it is a ridge regression. Of its two forms the one with the smaller matrix is solved.
func (c *cell) solve(all told) ([]float64, error) {
	k := len(all.excess)
	if k == 0 {
		return make([]float64, c.n), nil
	}
	a, y := mat.NewDense(k, c.n, nil), mat.NewVecDense(k, nil)
	for j, coin := range all.coins {
		weight := 1 / math.Sqrt(c.variance(all.noise[j]))
		for i, row := 0, a.RawRowView(j); i < c.n; i++ {
			row[i] = weight * coin.sign(i)
		}
		y.SetVec(j, weight*2*float64(c.n)*all.excess[j])
	}
	size, of := k, mat.Matrix(a)
	if c.n <= k {
		size, of = c.n, a.T()
	}
	square := mat.NewSymDense(size, nil)
	square.SymOuterK(1, of)
	for i := range size {
		square.SetSym(i, i, square.At(i, i)+1)
	}
	var factor mat.Cholesky
	if !factor.Factorize(square) {
		return nil, fmt.Errorf("experiments: disclosure: %d equations for %d bits are not positive definite", k, c.n)
	}
	var bits, solved mat.VecDense
	var err error
	if c.n <= k {
		bits.MulVec(a.T(), y)
		err = factor.SolveVecTo(&solved, &bits)
	} else {
		err = factor.SolveVecTo(&bits, y)
		solved.MulVec(a.T(), &bits)
	}
	if err != nil {
		return nil, fmt.Errorf("experiments: disclosure: %w", err)
	}
	return solved.RawVector().Data, nil
}

// packed is how many bits are in one mean: the digits of a row function's value below one half, which is in every row.
const packed = rowfn.GridBits - 1

// unpack asks for means in which every row of a block has a digit of its own, and reads the digits. Of rows without an answer a bit is guessed.
func (c *cell) unpack(h *analysts.Holdout, r coins) (float64, error) {
	secret, guess := r.column(c.n), r.column(c.n)
	right := 0.0
	for from := 0; from < c.n; from += packed {
		to, sum, digits := min(from+packed, c.n), int64(0), int64(0)
		for i := from; i < to; i++ {
			sum += secret.at(i) << (i - from)
		}
		ok := h.Remaining() > 0
		if ok {
			// Without one half in every row a guess of 0 would be near enough, and nothing would be told.
			value, answered, err := c.ask(h, int64(c.n)*rowfn.One/2+sum)
			if err != nil {
				return 0, err
			}
			ok = answered
			digits = int64(math.Round(max(0, min((value-0.5)*float64(c.n)*float64(rowfn.One), 1<<packed-1))))
		}
		for i := from; i < to; i++ {
			bit := guess.at(i)
			if ok {
				bit = digits >> (i - from) & 1
			}
			if bit == secret.at(i) {
				right++
			}
		}
	}
	return right / float64(c.n), nil
}

// trace asks for the means of attributes, and calls a target a member where its attributes lean with the answers: by the likelihood ratio of the sum of both, for answers
// of which each has an error beside that of the rows.
func (c *cell) trace(h *analysts.Holdout, r coins) (float64, error) {
	var others []column
	all, err := c.askAll(h, func() (column, int64) {
		attribute := r.column(c.n)
		others = append(others, r.column(targets))
		return attribute, attribute.count()
	})
	if err != nil {
		return 0, err
	}
	var inside, outside [targets]float64
	limit := 0.0
	for j, excess := range all.excess {
		weight := c.weight(all.noise[j])
		limit += weight / float64(c.n) / 2
		for t := range targets {
			inside[t] += weight * all.coins[j].sign(t) * 2 * excess
			outside[t] += weight * others[j].sign(t) * 2 * excess
		}
	}
	right := 0
	for t := range targets {
		if inside[t] > limit {
			right++
		}
		if outside[t] <= limit {
			right++
		}
	}
	return float64(right) / (2 * targets), nil
}

// weight is one over the variance of twice an answer about a fair coin.
func (c *cell) weight(noise float64) float64 { return 1 / (1/float64(c.n) + 4*noise*noise) }
