package certify

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
)

// Undefended models learn from the digits as they are, and predict without noise: what an attack leaves of them is what certificates stand beside.

// attackOverDistance is the measure of a linear model, run.Row.Set: the smallest attack that succeeds over the distance at which one exists.
const attackOverDistance = "smallest attack over the boundary's distance"

// undefendedAttack names the attack in Row.Method.
func undefendedAttack(f certify.Family) string { return "attack, " + unitOf(f) }

// bare is what came of one digit of an undefended model.
type bare struct {
	Label    int     `json:"label"`    // the true one
	Against  assault `json:"against"`  // without a radius
	Distance float64 `json:"distance"` // of the boundary, where the model is linear; else 0
}

// subject is an undefended model with the norm in which it is attacked.
type subject struct {
	model  int
	family certify.Family
}

func (s subject) String() string { return models[s.model].name + ", undefended" }

// undefended are all of them, a norm after the other.
func undefended() (all []subject) {
	for _, f := range []certify.Family{certify.Gaussian, certify.Laplace} {
		for m := range models {
			all = append(all, subject{m, f})
		}
	}
	return all
}

// attackUndefended trains the models and attacks their predictions of the first count digits.
func attackUndefended(ctx context.Context, o run.Options, training, others learn.Data, count int) (map[subject][]bare, error) {
	params, _, err := run.Repeat(ctx, o, "undefended training", len(models), func(ctx context.Context, i int) ([]float64, error) {
		s := noise.Seeded(seeds.Of(o.Seed, 6, uint64(i)))
		network := models[i].network(s)
		if err := network.Train(ctx, training, learn.Plain{Epochs: undefendedEpochs, Rate: models[i].plain.Rate, Momentum: models[i].plain.Momentum}, s); err != nil {
			return nil, fmt.Errorf("experiments: undefended %s: %w", models[i].name, err)
		}
		return network.Params(), nil
	})
	if err != nil {
		return nil, err
	}
	all := undefended()
	found, finished, err := run.Repeat(ctx, o, "undefended digits", len(all)*count, func(_ context.Context, i int) (bare, error) {
		s, digit := all[i/count], i%count
		network := models[s.model].network(noise.Seeded(0))
		copy(network.Params(), params[s.model])
		return s.attack(network, others.Row(digit), others.Y[digit], seeds.Of(o.Seed, 6, 1, uint64(i)))
	})
	of := map[subject][]bare{}
	for i, s := range all {
		if run.AllFinished(finished[i*count : (i+1)*count]) {
			of[s] = found[i*count : (i+1)*count]
		}
	}
	return of, err
}

// undefendedEpochs over the digits themselves, of which there are no copies.
const undefendedEpochs = 40

// firstUndefended is the size of the first attack, in pixels' range.
const firstUndefended = 0.05

// attack looks for the smallest size that changes the prediction.
func (s subject) attack(network *learn.Network, x []float64, label int, seed uint64) (bare, error) {
	out := bare{Label: label, Against: assault{Prediction: learn.Predict(network.Scores(x))}}
	attack, moved := newPGD(network, certify.Noise{Family: s.family}, seed), make([]float64, len(x))
	pass := network.NewPass(1)
	targets := []int{anyLabel, attack.nearest(x, out.Against.Prediction)}
	var err error
	out.Against.Smallest, err = smallest(0, firstUndefended, largestAttack, func(size float64) (bool, error) {
		for _, attack.target = range targets {
			attack.move(moved, x, out.Against.Prediction, size)
			if learn.Predict(pass.Scores(moved)) != out.Against.Prediction {
				return true, nil
			}
		}
		return false, nil
	})
	if len(network.Sizes()) == 2 {
		out.Distance = distance(network, x, out.Against.Prediction, s.family)
	}
	return out, err
}

// distance is that of the nearest boundary of a linear model: a margin over the norm of the difference of two rows of weights that is dual to the attack's.
func distance(network *learn.Network, x []float64, label int, family certify.Family) float64 {
	scores, weights, nearest := network.Scores(x), network.Params(), math.Inf(1)
	for k := range scores {
		if k == label {
			continue
		}
		dual := 0.
		for j := range x {
			d := math.Abs(weights[label*len(x)+j] - weights[k*len(x)+j])
			if family == certify.Laplace {
				dual = max(dual, d)
			} else {
				dual = math.Hypot(dual, d)
			}
		}
		nearest = min(nearest, (scores[label]-scores[k])/dual)
	}
	return nearest
}

// undefendedRows are the rows of all that are finished.
func undefendedRows(of map[subject][]bare) (rows []run.Row) {
	for _, s := range undefended() {
		digits := of[s]
		if len(digits) == 0 {
			continue
		}
		base := run.Row{Condition: s.String(), Method: undefendedAttack(s.family), K: int64(len(digits))}
		for _, size := range attackSizes {
			r := base
			r.Set, r.Rate = attackedAccuracy(size), true
			rows = append(rows, run.Measured(r, digits, func(b bare) float64 { return run.Indicator(b.Against.survives(b.Label, size)) }))
		}
		r := base
		r.Set = smallestAttack
		rows = append(rows, run.Measured(r, digits, func(b bare) float64 { return b.Against.Smallest }))
		if digits[0].Distance > 0 {
			r.Set = attackOverDistance
			rows = append(rows, run.Measured(r, digits, bare.overDistance))
		}
	}
	return rows
}

func (b bare) overDistance() float64 { return b.Against.Smallest / b.Distance }

// nearAttack is what the attack's size is at most over the distance of a linear model's boundary, for nine digits of ten: else what it leaves right would say little. A search
// halves sizes so far only that a seventeenth of it is the search's.
const nearAttack = 1.2

// undefendedChecks hold the attack against linear models, whose boundary's distance is arithmetic: it never succeeds before it, and soon after.
func undefendedChecks(checks *run.Checks, of map[subject][]bare) {
	for _, s := range undefended() {
		digits := of[s]
		if len(digits) == 0 || digits[0].Distance == 0 {
			continue
		}
		ratios := make([]float64, len(digits))
		for i, b := range digits {
			ratios[i] = b.overDistance()
		}
		slices.Sort(ratios)
		what := fmt.Sprintf("%v, %s: the attack's size over the distance of the boundary, ", s, unitOf(s.family))
		least, most := ratios[0], ratios[len(ratios)*9/10]
		checks.Stated(0, run.Check{What: what + "the smallest", Expected: 1, Got: least, Low: least, High: least, Agrees: least >= 1-1e-9, Criterion: "at least: none is nearer",
			Notices: fmt.Sprintf("distances %.3g times too large", least)})
		checks.Stated(0, run.Check{What: what + "of nine digits of ten", Expected: nearAttack, Got: most, Low: most, High: most, Agrees: most <= nearAttack, Criterion: "at most: or the attack is weak",
			Notices: fmt.Sprintf("attacks that are %.3g times larger than need be", nearAttack/most)})
	}
}

// undefendedTable are lines of the table.
func undefendedTable(rows []run.Row) (lines [][]string) {
	for _, s := range undefended() {
		find := func(set string) run.Row { return run.Find(rows, s.String(), undefendedAttack(s.family), 0, set) }
		mean := find(smallestAttack)
		if mean.Repetitions == 0 {
			continue
		}
		line := []string{s.String(), undefendedAttack(s.family), "", fmt.Sprintf("(%.3f)", mean.Mean)}
		for _, size := range attackSizes {
			line = append(line, fmt.Sprintf("%.3f", find(attackedAccuracy(size)).Mean))
		}
		lines = append(lines, line)
	}
	return lines
}

// undefendedCurve is the share of digits that an attack leaves right.
func undefendedCurve(digits []bare) curve {
	return curve{"undefended, right under attack", func(size float64) float64 {
		count := 0
		for _, b := range digits {
			if b.Against.survives(b.Label, size) {
				count++
			}
		}
		return float64(count) / float64(len(digits))
	}}
}
