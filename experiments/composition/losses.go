package composition

import (
	"context"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/respond"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
)

// Mechanisms that are composed: run.Row.Method.
const (
	response = "randomized response"
	laplace  = "Laplace noise"
)

// sensitivity is that of a Laplace answer in units of the grid: so fine that it is as good as none.
const sensitivity = 1 << 10

// game composes a mechanism k times, on either of two neighbouring tables, and looks at the privacy loss of what comes out.
type game struct {
	mechanism string
	k         int
	each      float64   // epsilon of one
	at        []float64 // epsilons at which delta is measured
	runs      int       // on each table
	claims    []claim
	seen      tally
}

// claim is what an account says of a game: a delta for each epsilon; 1 where it says nothing.
type claim struct {
	Account string
	Deltas  []float64
	Exact   bool // no more than is lost
}

// tally is what runs on both tables came to.
type tally struct {
	Runs          int
	First, Second []int     // losses above each epsilon, on the first table and on the second
	Sum, Square   []float64 // of (1 - e^{epsilon-L})_+ on the first table
	Loss, Losses  float64   // sum of losses on the first table, and of their squares
}

// newGames are all games. Few questions, which basic composition is for; as many as advanced composition is for; many of a large epsilon, where its second term
// is most of what is lost; and the lecture's own.
func newGames(quick bool, repetitions int) []*game {
	var games []*game
	for _, mechanism := range []string{response, laplace} {
		games = append(games,
			&game{mechanism: mechanism, k: 4, each: 0.5, at: []float64{0.25, 0.75, 1.6}, runs: 2 * repetitions},
			&game{mechanism: mechanism, k: 100, each: 0.1, at: []float64{0.05, 0.45, 0.95, 1.45}, runs: repetitions},
			&game{mechanism: mechanism, k: 25, each: 0.8, at: []float64{0.2, 2.2, 3.4}, runs: repetitions})
	}
	if !quick {
		games = append(games, &game{mechanism: response, k: lectureQuestions, each: lectureAdvanced, at: []float64{0.0503, 0.1503, 0.2503}, runs: repetitions / 20})
	}
	return games
}

func (g *game) String() string {
	return fmt.Sprintf("%d times %s of epsilon %v", g.k, g.mechanism, g.each)
}

// claimed are the claims of all accounts.
func (g *game) claimed() ([]claim, error) {
	pure, rho := account.Pure{Epsilon: g.each, K: g.k}, zcdp(g.each, g.k)
	spent := laplaceRDP(g.each, g.k)
	if g.mechanism == response { // of which the account knows only that it is private
		spent = account.NewRDP()
		spent.ZCDP(rho)
	}
	all := []claim{
		g.claim(basic, func(eps float64) float64 { return run.Indicator(pure.Basic() > eps) }),
		g.claim(advanced, func(eps float64) float64 { return leastSlack(pure, eps) }),
		g.claim(optimal, pure.OptimalDelta),
		g.claim(concentrated, rho.Delta),
		g.claim(renyiFirst, func(eps float64) float64 { return firstDelta(spent, eps) }),
		g.claim(renyi, func(eps float64) float64 {
			delta, _ := spent.Delta(eps)
			return delta
		}),
	}
	if g.mechanism == response {
		all[2].Exact = true
		return all, nil
	}
	losses, err := laplaceLosses(g.each, g.k)
	if err != nil {
		return nil, err
	}
	law := g.claim(lossLaw, losses.Delta)
	law.Exact = true
	return append(all, law), nil
}

func (g *game) claim(name string, delta func(eps float64) float64) claim {
	c := claim{Account: name}
	for _, eps := range g.at {
		c.Deltas = append(c.Deltas, min(1, delta(eps)))
	}
	return c
}

// leastSlack is the least delta at which advanced composition is within eps.
func leastSlack(p account.Pure, eps float64) float64 {
	low, high := -100.0, 0.0
	if p.Advanced(1) > eps {
		return 1
	}
	for range 60 {
		if middle := (low + high) / 2; p.Advanced(math.Exp(middle)) <= eps {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Exp(high)
}

// meanOfOne is the mean loss of one answer.
func (g *game) meanOfOne() float64 {
	if g.mechanism == response {
		return g.each * math.Tanh(g.each/2)
	}
	return g.each + math.Expm1(-g.each)
}

// loss draws the k answers on the first table, or on the second, and returns the logarithm of how much more probable they are on the first.
func (g *game) loss(s *noise.Stream, second int) float64 {
	eps := noise.Eps(g.each)
	sum := int64(0)
	if g.mechanism == response {
		people := respond.Categories{K: 2, Epsilon: eps}
		for range g.k {
			sum += 1 - 2*int64(people.Say(s, second))
		}
		return g.each * float64(sum)
	}
	for range g.k {
		answer := eps.Laplace(s, sensitivity) + int64(second)*sensitivity
		sum += distance(answer, sensitivity) - distance(answer, 0)
	}
	return g.each * float64(sum) / sensitivity
}

func distance(a, b int64) int64 {
	if a > b {
		return a - b
	}
	return b - a
}

func (g *game) play(seed uint64, runs int) tally {
	t := tally{Runs: runs, First: make([]int, len(g.at)), Second: make([]int, len(g.at)), Sum: make([]float64, len(g.at)), Square: make([]float64, len(g.at))}
	s := noise.Seeded(seed)
	for range runs {
		first, second := g.loss(s, 0), g.loss(s, 1)
		t.Loss += first
		t.Losses += first * first
		for i, eps := range g.at {
			if first > eps {
				t.First[i]++
				v := -math.Expm1(eps - first)
				t.Sum[i] += v
				t.Square[i] += v * v
			}
			if second > eps {
				t.Second[i]++
			}
		}
	}
	return t
}

func (t *tally) add(u tally) {
	if t.Runs == 0 {
		*t = u
		return
	}
	t.Runs += u.Runs
	t.Loss += u.Loss
	t.Losses += u.Losses
	for i := range u.First {
		t.First[i] += u.First[i]
		t.Second[i] += u.Second[i]
		t.Sum[i] += u.Sum[i]
		t.Square[i] += u.Square[i]
	}
}

// stretches are the pieces of work of a game.
const stretches = 20

func playAll(ctx context.Context, o run.Options, games []*game) error {
	claims, _, err := run.Repeat(ctx, o, "claims", len(games), func(_ context.Context, i int) ([]claim, error) { return games[i].claimed() })
	if err != nil {
		return err
	}
	for i, g := range games {
		g.claims = claims[i]
	}
	tallies, finished, err := run.Repeat(ctx, o, "losses", len(games)*stretches, func(_ context.Context, i int) (tally, error) {
		g := games[i/stretches]
		return g.play(run.SeedOf(o.Seed, 1, uint64(i)), max(1, g.runs/stretches)), nil
	})
	for i, t := range tallies {
		if finished[i] {
			games[i/stretches].seen.add(t)
		}
	}
	return err
}

// sampleOf is a mean and its standard deviation, from sums of values and of their squares.
func sampleOf(sum, squares float64, runs int) checks.Sample {
	n := float64(runs)
	mean := sum / n
	sd := math.Sqrt(max(0, squares/n-mean*mean) * n / max(1, n-1))
	half := 1.96 * sd / math.Sqrt(n)
	return checks.Sample{Mean: mean, SD: sd, Runs: runs, Low: mean - half, High: mean + half}
}

// byLaw is delta from the losses on the first table: it is what it should be if the mechanism's law is as stated.
func (g *game) byLaw(i int) checks.Sample {
	return sampleOf(g.seen.Sum[i], g.seen.Square[i], g.seen.Runs)
}

// byAttack is P(S) - e^eps Q(S), which delta is at least, whatever the mechanism's law: of each pair of runs the value is 1, -e^eps, both together, or 0.
func (g *game) byAttack(i int) checks.Sample {
	n, e := float64(g.seen.Runs), math.Exp(g.at[i])
	p, q := float64(g.seen.First[i])/n, float64(g.seen.Second[i])/n
	mean := p - e*q
	return sampleOf(mean*n, n*(p*(1-p)+e*e*q*(1-q)+mean*mean), g.seen.Runs)
}

func (g *game) losses() checks.Sample { return sampleOf(g.seen.Loss, g.seen.Losses, g.seen.Runs) }

func (g *game) rows() []run.Row {
	if g.seen.Runs == 0 {
		return nil
	}
	row := func(condition, set string, s checks.Sample) run.Row {
		return run.Row{Condition: fmt.Sprintf("epsilon %v each%s", g.each, condition), Method: g.mechanism, K: int64(g.k), Set: set, Mean: s.Mean, SD: s.SD, Low: s.Low, High: s.High, Repetitions: s.Runs}
	}
	all := []run.Row{row("", meanLoss, g.losses())}
	for i := range g.at {
		all = append(all, row(g.atEpsilon(i), deltaByLaw, g.byLaw(i)), row(g.atEpsilon(i), deltaByGuess, g.byAttack(i)))
		for _, c := range g.claims {
			all = append(all, arithmetic(row(g.atEpsilon(i), claimedBy+c.Account, checks.Sample{}), c.Deltas[i]))
		}
	}
	return all
}

func (g *game) atEpsilon(i int) string { return fmt.Sprintf(", at epsilon %v", g.at[i]) }

// answered counts runs of askedTogether answers whose noise is all within the half-width that is stated for it.
type answered struct {
	method string
	within checks.Count
}

const (
	askedTogether = 100
	perRow        = 1 << 20 // units of the noise's grid in what one row can move a sum by
)

// answerAll draws the noise of askedTogether answers under the usual total, again and again, as a server does: integers that are added to a sum.
func answerAll(ctx context.Context, o run.Options, runs int) ([]*answered, error) {
	all := []*answered{{method: optimal}, {method: gaussianGDP}}
	counts, finished, err := run.Repeat(ctx, o, "answers", len(all)*stretches, func(_ context.Context, i int) (checks.Count, error) {
		s, c := noise.Seeded(run.SeedOf(o.Seed, 2, uint64(i))), checks.Count{Runs: max(1, runs/stretches)}
		of, err := methodOf(all[i/stretches].method).part(askedTogether, usual)
		if err != nil {
			return c, err
		}
		limit := int64(of.Width * rows * perRow)
		for range c.Runs {
			inside := true
			for range askedTogether {
				var x int64
				if of.Epsilon > 0 {
					x = noise.Eps(of.Epsilon).Laplace(s, perRow)
				} else {
					x = noise.RoundedNormal(s, of.SD*rows*perRow)
				}
				inside = inside && distance(x, 0) <= limit
			}
			c.Events += int(run.Indicator(inside))
		}
		return c, nil
	})
	for i, c := range counts {
		if finished[i] {
			a := all[i/stretches]
			a.within.Events += c.Events
			a.within.Runs += c.Runs
		}
	}
	return all, err
}

func methodOf(name string) method {
	for _, m := range methods {
		if m.name == name {
			return m
		}
	}
	panic("composition: no method " + name)
}

func (a *answered) row() run.Row {
	r := run.Row{Condition: "total " + usual.String(), Method: a.method, N: rows, K: askedTogether, Confidence: confidence, Set: withinWidth, Rate: true, Repetitions: a.within.Runs}
	r.Mean = float64(a.within.Events) / float64(a.within.Runs)
	r.Low, r.High = run.RateInterval(int64(a.within.Events), int64(a.within.Runs), 0.05)
	return r
}
