package agents

import (
	"math"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// outcome is what one agent comes to.
type outcome struct {
	Claimed []float64 `json:"claimed"` // best score told so far, at lookedAt
	Fresh   []float64 `json:"fresh"`   // score of that ensemble on the rows held back
	Low     float64   `json:"low"`     // interval of the last claim: the mechanism's, or the plain one
	High    float64   `json:"high"`
	Members int       `json:"members"` // of the ensemble
	Asked   int64     `json:"asked"`
	Tokens  int64     `json:"tokens"`
}

// lookedAt is after how many configurations the claim is written down, for the figure.
var lookedAt = []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}

const (
	maxConfigurations = 1000
	curiosity         = 0.2 // how often the bandit tries any arm
	againstShare      = 0.3 // how often a model counts against its classes
)

// ensemble is the agent's ensemble on one part of the rows: its scores of them.
type ensemble struct {
	problem *task
	rows    []int32
	score   []float64 // of each row and class
	next    []float64 // with the configuration that is tried
}

func newEnsemble(p *task, rows []int32) *ensemble {
	return &ensemble{problem: p, rows: rows, score: make([]float64, len(rows)*p.classes), next: make([]float64, len(rows)*p.classes)}
}

// try adds a model's scores to the ensemble's.
func (a *ensemble) try(model func(dst []float64, row int32)) {
	copy(a.next, a.score)
	c := a.problem.classes
	for i, row := range a.rows {
		model(a.next[i*c:(i+1)*c], row)
	}
}

// keep makes what was tried the ensemble.
func (a *ensemble) keep() { a.score, a.next = a.next, a.score }

// mean is the accuracy of what was tried.
func (a *ensemble) mean() thresholdout.Mean {
	c, correct := a.problem.classes, int64(0)
	for i, row := range a.rows {
		best := 0
		for class := 1; class < c; class++ {
			if a.next[i*c+class] > a.next[i*c+best] {
				best = class
			}
		}
		if best == int(a.problem.label[row]) {
			correct++
		}
	}
	return thresholdout.Mean{Sum: correct * rowfn.One, N: int64(len(a.rows))}
}

// tune lets an agent tune. It picks a kind of model as a bandit does, whose reward is a better score; draws the rest of the
// configuration, with a weight; asks for the accuracy of the ensemble with this model in it; and keeps the model where the answer is no worse than
// the best so far.
func tune(problem *task, p thresholdout.Guarantee, seed uint64, configurations int) (outcome, error) {
	r := rand.New(rand.NewPCG(seeds.Of(seed, 1), 0))
	order := make([]int32, len(problem.label))
	for i, row := range r.Perm(len(order)) {
		order[i] = int32(row)
	}
	n := problem.part
	fit := order[:n]
	validation, holdout, fresh := newEnsemble(problem, order[n:2*n]), newEnsemble(problem, order[2*n:3*n]), newEnsemble(problem, order[3*n:3*n+problem.fresh])
	o := analysts.NewHoldout(p, seeds.Of(seed, 2))
	tried, better := make([]float64, len(problem.arms)), make([]float64, len(problem.arms))
	out, best, score := outcome{}, math.Inf(-1), 0.0
	var claim *thresholdout.Interval
	point := 0
	for i := 1; i <= configurations; i++ {
		if o.Remaining() > 0 {
			arm := pickArm(tried, better, r)
			model, err := problem.member(fit, arm, r)
			if err != nil {
				return out, err
			}
			weighted := weightedModel(model, drawWeight(out.Members, r), problem.classes)
			holdout.try(weighted)
			if p.UsesTraining() {
				validation.try(weighted)
			}
			told, interval, err := o.Ask(analysts.Question{Holdout: func(int64, int64) thresholdout.Mean { return holdout.mean() }, Training: validation.mean})
			if err != nil {
				return out, err
			}
			tried[arm]++
			if told >= best {
				if told > best {
					better[arm]++
				}
				best, claim = told, interval
				out.Members++
				fresh.try(weighted)
				m := fresh.mean()
				score = float64(m.Sum) / float64(rowfn.One) / float64(m.N)
				for _, part := range []*ensemble{holdout, validation, fresh} {
					part.keep()
				}
			}
		}
		if point < len(lookedAt) && i == lookedAt[point] {
			out.Claimed, out.Fresh = append(out.Claimed, best), append(out.Fresh, score)
			point++
		}
	}
	if claim == nil {
		half := 1.96 * math.Sqrt(best*(1-best)/float64(p.N))
		claim = &thresholdout.Interval{Low: max(0, best-half), High: min(best+half, 1)}
	}
	out.Low, out.High, out.Asked, out.Tokens = claim.Low, claim.High, o.State.Questions, o.State.Tokens
	return out, nil
}

// drawWeight is drawn in proportion to what an ensemble's score has grown to, so that late models can still change it, and against the model
// at times, which takes back what an earlier one did.
func drawWeight(members int, r *rand.Rand) float64 {
	weight := math.Exp(r.NormFloat64()) * math.Sqrt(float64(members+1))
	if r.Float64() < againstShare {
		return -weight
	}
	return weight
}

// weightedModel is a model with a weight in the vote.
func weightedModel(model func(dst []float64, row int32), weight float64, classes int) func(dst []float64, row int32) {
	own := make([]float64, classes)
	return func(dst []float64, row int32) {
		clear(own)
		model(own, row)
		for c, v := range own {
			dst[c] += weight * v
		}
	}
}

// pickArm is the arm with the largest share of better scores, or now and then any.
func pickArm(tried, better []float64, r *rand.Rand) int {
	if r.Float64() < curiosity {
		return r.IntN(len(tried))
	}
	best := 0
	for i := range tried {
		if (better[i]+1)/(tried[i]+2) > (better[best]+1)/(tried[best]+2) {
			best = i
		}
	}
	return best
}
