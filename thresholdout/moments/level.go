package moments

import (
	"fmt"
	"math"
)

// Urn is the account of the transcripts. Each question has one of three outcomes: a pass at rank 1, a wide pass, a failure. Their
// string has the probability that Polya's urn gives it, with weights k/2, 1 and 1 at the start (k/2, 1/4 and 1/4 since version 4 of
// guess_and_check); a failure's share is divided among what it may say. These probabilities add up to at most 1 over all strings of a
// length, which is all that the union over transcripts needs (docs/proofs/two-moments.md, section 4). The number of tokens is not among
// them: a limit on failures costs nothing.
type Urn struct {
	Questions int64   // k, fixed beforehand
	Beta      float64 // 1-confidence, for all questions together
	Half      bool    // k checks have half of Beta, and the rest is for what is measured and reported; false: all of it
}

// Nats is a sum of logarithms in steps of 2^-20 nats, each rounded up: a state keeps it exactly, on every machine.
type Nats int64

const natsPerUnit = 1 << 20

// nats is x in steps, rounded up; x is a logarithm of what is at least 1.
func nats(x float64) Nats { return Nats(math.Ceil(x*natsPerUnit + 1e-6)) }

// Weights of the urn. A larger first weight expects more passes; these are the best for few failures among 10 to 10,000 questions,
// within a fortieth of a level. A rare outcome is a wide pass or a failure.
const (
	passShare      = 0.5 // of the questions
	rareWeight     = 1.0
	rareWeightHalf = 0.25 // where checks have half of the error: 300 passes of 1,000 questions then add .24 nats to a report, and not .94
)

// weights are those of passes, wide passes and failures at the start.
func (u Urn) weights() [3]float64 {
	rare := rareWeight
	if u.Half {
		rare = rareWeightHalf
	}
	return [3]float64{passShare * float64(u.Questions), rare, rare}
}

// Check says what is wrong with an account.
func (u Urn) Check() error {
	if u.Questions < 1 || u.Questions > maxQuestions {
		return fmt.Errorf("moments: %d questions; between 1 and %d are possible", u.Questions, int64(maxQuestions))
	}
	if !(u.Beta > 0 && u.Beta < 1) {
		return fmt.Errorf("moments: a probability of error of %v is not strictly between 0 and 1", u.Beta)
	}
	return nil
}

// maxQuestions is up to where the level's rounding costs less than a nat.
const maxQuestions = 1 << 40

// Level is E of the next check, ln(2/(Beta Share)) + N, when asked were asked before it, failed of them failed and wide passed at rank 2. paid is
// the sum of the prices of the failures. It is +Inf for counts that no run has, and where no question is left.
func (u Urn) Level(asked, failed, wide int64, paid Nats) float64 {
	if u.Check() != nil || asked < 0 || asked >= u.Questions || failed < 0 || wide < 0 || failed+wide > asked || paid < 0 {
		return math.Inf(1)
	}
	return u.level(asked, failed, wide, paid, u.weights())
}

// Said is N, what the outcomes said: [Urn.Level] without what a check's share costs.
func (u Urn) Said(asked, failed, wide int64, paid Nats) float64 {
	return max(u.Level(asked, failed, wide, paid)-u.first(), 0)
}

// first is [Urn.Level] of the first check.
func (u Urn) first() float64 {
	level := math.Log(2 * float64(u.Questions) / u.Beta)
	if u.Half {
		level += math.Ln2
	}
	return level
}

// Rarest is what one more answer adds to [Urn.Level] at most, whatever the outcomes of so many others are that come after those that were counted: minus the logarithm of the least
// probability that the urn gives to an outcome. price is what a failure adds beside.
func (u Urn) Rarest(asked, failed, wide, others int64, price Nats) float64 {
	w := u.weights()
	all := math.Log(w[0] + w[1] + w[2] + float64(asked+others))
	pass := all - math.Log(w[0]+float64(max(asked-failed-wide, 0)))
	rough := all - math.Log(w[1]+float64(wide))
	differs := all - math.Log(w[2]+float64(failed)) + price.Float()
	return max(pass, rough, differs) + rarestSlack
}

// rarestSlack is more than the rounding of a level.
const rarestSlack = 1e-6

// level is Level with the given weights of passes, wide passes and failures: minus the logarithm of the string's probability.
func (u Urn) level(asked, failed, wide int64, paid Nats, weights [3]float64) float64 {
	level := u.first()
	size := level
	add := func(sign, from float64, count int64) {
		if count == 0 {
			return
		}
		a, _ := math.Lgamma(from + float64(count))
		b, _ := math.Lgamma(from)
		level += sign * (a - b)
		size += math.Abs(a) + math.Abs(b)
	}
	add(1, weights[0]+weights[1]+weights[2], asked)
	for i, count := range []int64{asked - failed - wide, wide, failed} {
		add(-1, weights[i], count)
	}
	const relative = 1e-15 // of each logarithm, several times math.Lgamma's error
	return level + relative*size + paid.Float()
}

// PriceOf is the price of a failure that says one of so many things, as of package pairs.
func PriceOf(things float64) Nats { return nats(math.Log(max(things, 1))) }

// Float is the sum in nats.
func (n Nats) Float() float64 { return float64(n) / natsPerUnit }
