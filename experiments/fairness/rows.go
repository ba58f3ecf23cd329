package fairness

import (
	"math/bits"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// part is rows of the law: the holdout, a training part, or fresh rows. Which rows an adjustment decides rightly is drawn from a seed of its own, so that none has to be kept.
type part struct {
	seed  uint64
	n     int
	fixed int       // rows that count for the gap whatever is adjusted: of A and right, or of B, decided and wrong
	score []float64 // of each undecided row: the sum of the adjustments' weights for the right side, less those for the wrong one
}

func newPart(seed uint64, n int64) *part {
	p, r := &part{seed: seed, n: int(n)}, rand.New(rand.NewPCG(seed, 0))
	open := 0
	for range n {
		switch a := r.Float64() < groupShare; {
		case a && r.Float64() < rightA:
			p.fixed++
		case a:
		case r.Float64() < undecided:
			open++
		case r.Float64() >= rightB:
			p.fixed++
		}
	}
	p.score = make([]float64, open)
	return p
}

// coins calls do with 64 undecided rows at a time: a bit of right says that the adjustment decides the row rightly. Bits beyond the last row are 0.
func (p *part) coins(adjustment int, do func(from, count int, right uint64)) {
	r := rand.NewPCG(p.seed, uint64(adjustment+1))
	for from := 0; from < len(p.score); from += 64 {
		count, right := min(64, len(p.score)-from), r.Uint64()
		if count < 64 {
			right &= 1<<count - 1
		}
		do(from, count, right)
	}
}

// mean is that of the question about a rule that is wrong about so many of the undecided rows.
func (p *part) mean(wrong int) thresholdout.Mean {
	return thresholdout.Mean{Sum: int64(p.fixed+wrong) * rowfn.One, N: int64(p.n)}
}

// of is the question's mean about one adjustment.
func (p *part) of(adjustment int) thresholdout.Mean {
	wrong := len(p.score)
	p.coins(adjustment, func(_, _ int, right uint64) { wrong -= bits.OnesCount64(right) })
	return p.mean(wrong)
}

// follow adds an adjustment to the last rule.
func (p *part) follow(adjustment int, weight float64) {
	p.coins(adjustment, func(from, count int, right uint64) {
		for i := range count {
			p.score[from+i] += weight * float64(2*int(right>>i&1)-1)
		}
	})
}

// last is the question's mean about the rule that follows the adjustments.
func (p *part) last() thresholdout.Mean {
	wrong := 0
	for _, s := range p.score {
		if s <= 0 {
			wrong++
		}
	}
	return p.mean(wrong)
}

// gapOf is the gap that goes with a mean of the question: accuracy of A less that of B, both halves of the population.
func gapOf(mean float64) float64 { return 2*mean - 1 }

// play lets one analyst tune the gap.
func (c *cell) play(seed uint64) (outcome, error) {
	g := c.guarantee
	holdout, fresh := newPart(seeds.Of(seed, 1), g.N), newPart(seeds.Of(seed, 2), g.N)
	parts, training := []*part{holdout, fresh}, (*part)(nil)
	if g.UsesTraining() {
		training = newPart(seeds.Of(seed, 3), g.Training)
		parts = append(parts, training)
	}
	asked := analysts.NewHoldout(g, seeds.Of(seed, 4))
	referee := &analysts.Referee{Oracle: asked}
	ask := func(of func(p *part) thresholdout.Mean) (float64, *thresholdout.Interval, error) {
		return referee.Ask(analysts.Question{Truth: (1 + lawGap) / 2,
			Holdout:  func(int64, int64) thresholdout.Mean { return of(holdout) },
			Training: func() thresholdout.Mean { return of(training) }})
	}
	answers, average := make([]float64, c.k), 0.0
	for j := range answers {
		var err error
		if answers[j], _, err = ask(func(p *part) thresholdout.Mean { return p.of(j) }); err != nil {
			return outcome{}, err
		}
		average += answers[j] / float64(c.k)
	}
	for j, a := range answers {
		for _, p := range parts {
			p.follow(j, average-a)
		}
	}
	told, interval, err := ask((*part).last)
	if err != nil {
		return outcome{}, err
	}
	last := fresh.last()
	out := outcome{Shown: gapOf(told), Fresh: gapOf(float64(last.Sum) / float64(last.N*rowfn.One)), Missed: referee.Game.Missed, Tokens: asked.State.Tokens}
	if interval != nil {
		out.Low, out.High = gapOf(interval.Low), gapOf(interval.High)
	} else {
		half := c.textbook(told)
		out.Low, out.High = out.Shown-half, out.Shown+half
	}
	return out, nil
}
