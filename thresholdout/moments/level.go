package moments

import (
	"fmt"
	"math"
)

// Urn is the account of the transcripts. Each question has one of three outcomes: a pass at rank 1, a wide pass, a failure. Their
// string has the probability that Polya's urn gives it, with weights k/2, 1 and 1 at the start; a failure's share is divided among what
// it may say. These probabilities add up to at most 1 over all strings of a length, which is all that the union over transcripts
// needs (docs/proofs/two-moments.md, section 4). The number of tokens is not among them: a limit on failures costs nothing.
type Urn struct {
	Questions int64   // k, fixed beforehand
	Beta      float64 // 1-confidence, for all questions together
}

// Nats is a sum of logarithms in steps of 2^-20 nats, each rounded up: a state keeps it exactly, on every machine.
type Nats int64

const natsPerUnit = 1 << 20

// nats is x in steps, rounded up; x is a logarithm of what is at least 1.
func nats(x float64) Nats { return Nats(math.Ceil(x*natsPerUnit + 1e-6)) }

// Weights of the urn. A larger first weight expects more passes; these are the best for few failures among 10 to 10,000 questions,
// within a fortieth of a level.
const (
	passShare    = 0.5 // of the questions
	wideWeight   = 1.0
	failedWeight = 1.0
)

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

// Level is E of the next question, when asked were asked before it, failed of them failed and wide passed at rank 2. paid is the sum of
// the prices of the failures. It is +Inf for counts that no run has, and where no question is left.
func (u Urn) Level(asked, failed, wide int64, paid Nats) float64 {
	if u.Check() != nil || asked < 0 || asked >= u.Questions || failed < 0 || wide < 0 || failed+wide > asked || paid < 0 {
		return math.Inf(1)
	}
	return u.level(asked, failed, wide, paid, [3]float64{passShare * float64(u.Questions), wideWeight, failedWeight})
}

// Rarest is what one more answer adds to [Urn.Level] at most, whatever the outcomes of so many others are that come after those that were counted: minus the logarithm of the least
// probability that the urn gives to an outcome. price is what a failure adds beside.
func (u Urn) Rarest(asked, failed, wide, others int64, price Nats) float64 {
	share := passShare * float64(u.Questions)
	all := math.Log(share + wideWeight + failedWeight + float64(asked+others))
	pass := all - math.Log(share+float64(max(asked-failed-wide, 0)))
	rough := all - math.Log(wideWeight+float64(wide))
	differs := all - math.Log(failedWeight+float64(failed)) + price.Float()
	return max(pass, rough, differs) + rarestSlack
}

// rarestSlack is more than the rounding of a level.
const rarestSlack = 1e-6

// level is Level with the given weights of passes, wide passes and failures: minus the logarithm of the string's probability.
func (u Urn) level(asked, failed, wide int64, paid Nats, weights [3]float64) float64 {
	level := math.Log(2 * float64(u.Questions) / u.Beta)
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
