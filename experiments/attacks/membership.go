package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Membership is how well an attacker told a row of the holdout from a row that is not in it.
type Membership struct {
	Attacker  string  `json:"attacker"`
	Games     int     `json:"games"`     // half with the row, half without; as many more chose the threshold
	Accused   [2]int  `json:"accused"`   // of the rows that were in the holdout, and of those that were not, of Games/2 each
	Right     float64 `json:"right"`     // the share of games that the attacker got right; 0.5 is chance
	RightLow  float64 `json:"right_low"` // a 95% interval of Clopper and Pearson
	RightHigh float64 `json:"right_high"`

	// Mu is that of Gaussian differential privacy which the noise of these answers has, or Rho that of concentrated privacy; Allowed is the largest
	// share of games that anybody can get right then. They are null where answers have no noise that is proved to protect a row.
	Mu      *float64 `json:"mu"`
	Rho     *float64 `json:"rho,omitempty"`
	Allowed *float64 `json:"allowed"`

	MuAtLeast      float64  `json:"mu_at_least"`       // proved by the games, at the confidence of the audit
	EpsilonAtLeast float64  `json:"epsilon_at_least"`  // at Delta, the same
	EpsilonAtMost  *float64 `json:"epsilon_at_most"`   // what the noise has at Delta
	Delta          float64  `json:"delta"`             // of the epsilons
	Broken         bool     `json:"broken"`            // better than the noise allows
	Curve          []Point  `json:"curve"`             // the share of rows in the holdout that is accused, by that of other rows
	Bound          []Point  `json:"bound,omitempty"`   // what the noise allows there
	Answers        int64    `json:"answers,omitempty"` // from the holdout that an attacker saw, at most
}

// Point is one of a curve.
type Point struct {
	False float64 `json:"false"`
	True  float64 `json:"true"`
}

// Games of one attacker.
const (
	leastGames = 200
	mostGames  = 8000
	// mostClaims are how many promises about noise an audit can find broken, beside its intervals.
	mostClaims = 3
)

// claim is what the noise is proved to have, for a replaced row: of single means that bear no promises.
type claim struct {
	curve   account.Curve
	mu, rho *float64
	scale   float64 // of Laplace noise; 0 of other noise
}

// claimOf is what the mechanism's noise has over all answers that have some. whole is false where others have none.
func claimOf(g thresholdout.Guarantee) (c claim, whole, ok bool, err error) {
	n := float64(g.N)
	if g.Mechanism == thresholdout.Thresholdout {
		// Of the Laplace form an epoch is (1/(sigma n))-private by its comparisons and again by its release, docs/proofs/tanh-transfer.md.
		var stored thresholdout.Comparison
		text, err := json.Marshal(g)
		if err == nil {
			err = json.Unmarshal(text, &stored)
		}
		if err != nil {
			return claim{}, false, false, fmt.Errorf("attacks: guarantee: %w", err)
		}
		if stored.Form != thresholdout.FormLaplace {
			return claim{}, true, false, nil
		}
		rho := float64(g.Tokens) / math.Pow(stored.Sigma*n, 2)
		return claim{curve: account.ZCDP(rho), rho: &rho, scale: stored.Sigma}, true, true, nil
	}
	if g.Mechanism != thresholdout.Gaussian {
		return claim{}, true, false, nil
	}
	square := 0.
	whole = true
	s := thresholdout.State{}
	for g.Left(s) > 0 {
		if g.Affordable(s) == 0 {
			s = g.EndRound(s)
			continue
		}
		switch sigma := sigmaOf(g, s); {
		case sigma > 0:
			square += 1 / (n * n * sigma * sigma)
		default:
			whole = false
		}
		s = g.Spend(s, 1, 0)
	}
	mu := math.Sqrt(square)
	return claim{curve: account.GDP(mu), mu: &mu}, whole, mu > 0, nil
}

// sigmaOf is the standard deviation of the next answer's noise, where it is from the holdout and public; 0 for none.
func sigmaOf(g thresholdout.Guarantee, s thresholdout.State) float64 {
	if _, sigma, ok := g.FreshNoise(thresholdout.State{}, s); ok {
		return sigma
	}
	if p, ok := g.Promised(0); ok {
		return p.Sigma
	}
	return 0
}

// attacker is somebody who knows a row and asks whether it is in the holdout.
type attacker struct {
	name    string
	knows   bool // all other rows of the holdout; else the population alone
	noisy   bool // stops where answers have no noise
	claimed bool // what the noise has holds for all that this one sees
}

// asked are the questions of an attacker about membership: of each the whole holdout, or a slice of it, has a mean that is known but for the row, or that is that of
// random rows. Where the mechanism compares, all training rows have the value 0, so that answers come from the holdout.
type asked struct {
	g     thresholdout.Guarantee
	a     attacker
	row   bool  // the row is in the holdout
	place int64 // there, in the secret order
	rows  *rand.Rand
	scale float64 // of Laplace noise; 0 of other noise
}

// score plays a game: the logarithm of how much likelier the answers are with the row than without it, but for a constant, and for random rows in the normal
// approximation. No attack on these questions is better.
func (q asked) score(seed uint64) (score float64, answers int64, err error) {
	score, _, answers, err = q.play(seed)
	return score, answers, err
}

// play is score with by how much the scores of both kinds of games differ by theory, in their standard deviations and squared.
func (q asked) play(seed uint64) (score, separation float64, answers int64, err error) {
	h := session.Simulated{Guarantee: q.g, Seed: seed}
	zero := 0.
	for h.Remaining() > 0 {
		if q.g.Rounds > 0 && q.g.Affordable(h.State) == 0 {
			if h.State = q.g.EndRound(h.State); q.g.Affordable(h.State) == 0 {
				break
			}
		}
		sigma := sigmaOf(q.g, h.State)
		if q.a.noisy && sigma == 0 {
			break
		}
		from, to := h.Slice()
		size := to - from
		in, value := q.sum(from, to)
		input := thresholdout.Input{Holdout: thresholdout.Mean{Sum: in, N: size}}
		if q.g.UsesTraining() {
			input.Training = thresholdout.Mean{N: q.g.Training}
		}
		if q.g.TakesGuesses() {
			input.Guess = &thresholdout.Guess{Value: &zero}
		}
		out, err := h.Mean(input)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("attacks: membership: %w", err)
		}
		if out.Source != thresholdout.FromHoldout {
			continue
		}
		answers++
		if q.a.knows && q.scale > 0 {
			score += (math.Abs(out.Value-.5+.5/float64(size)) - math.Abs(out.Value-.5-.5/float64(size))) / q.scale
			continue
		}
		variance := sigma*sigma + 1/(12*float64(rowfn.One)*float64(rowfn.One))
		moves := 1 / float64(size) // by how much the row moves the mean
		if !q.a.knows {
			variance += 1 / (4 * float64(size))
			moves = .5 / float64(size)
		}
		separation += moves * moves / variance
		score += (out.Value - .5) * value / (float64(size) * variance)
	}
	return score, separation, answers, nil
}

// sum is that of a range of units, in steps, and which way the row moves the mean of it: 1/2 or -1/2.
func (q asked) sum(from, to int64) (sum int64, value float64) {
	there := q.row && from <= q.place && q.place < to
	if q.a.knows { // each other row has the value 1/2, the row 1, and the one that is in its place otherwise 0
		sum = (to - from) * rowfn.One / 2
		switch {
		case there:
			sum += rowfn.One / 2
		case from <= q.place && q.place < to:
			sum -= rowfn.One / 2
		}
		return sum, .5
	}
	others := to - from
	value = .5
	if q.rows.Uint64()&1 == 0 {
		value = -.5
	}
	if there {
		others--
		if value > 0 {
			sum = rowfn.One
		}
	}
	return sum + heads(q.rows, others)*rowfn.One, value
}

// heads is how many of so many coins show heads.
func heads(r *rand.Rand, coins int64) (count int64) {
	for ; coins >= 64; coins -= 64 {
		count += int64(bits.OnesCount64(r.Uint64()))
	}
	return count + int64(bits.OnesCount64(r.Uint64()>>1&(1<<coins-1)))
}

// membership plays all attackers.
func (r Request) membership(ctx context.Context, work float64) (results []Membership, notes []string, err error) {
	g := r.Guarantee
	c, whole, ok, err := claimOf(g)
	if err != nil {
		return nil, nil, err
	}
	attackers := []attacker{{name: "knows all other rows", knows: true, claimed: ok && whole}}
	if ok && !whole {
		attackers = append(attackers, attacker{name: "the same, by noisy answers alone", knows: true, noisy: true, claimed: true})
	}
	attackers = append(attackers, attacker{name: "knows the population", claimed: ok && whole})
	answers := float64(g.Questions)
	if g.NeedsTokens() {
		answers = float64(g.Tokens)
	}
	for i, a := range attackers {
		cost := answers * eachAnswer
		if !a.knows {
			cost += answers * float64(g.N) / 32
		}
		games := leastGames
		if share := work / float64(len(attackers)-i); !ok || whole || a.noisy || !a.knows { // an exact answer tells everything: few games show it
			games = max(int(min(share/cost, mostGames))/4*4, 0)
		}
		if games < leastGames {
			if !a.knows {
				notes = append(notes, fmt.Sprintf("there was no time for one who %s; give more minutes", a.name))
				continue
			}
			games = leastGames
		}
		work -= float64(games) * cost
		played := c
		if !a.claimed {
			played = claim{}
		}
		m, err := r.tells(ctx, a, i, games, played)
		if err != nil {
			return nil, nil, err
		}
		results = append(results, m)
	}
	return results, notes, nil
}

// tells plays one attacker: half of the games have the row in the holdout.
func (r Request) tells(ctx context.Context, a attacker, index, games int, c claim) (Membership, error) {
	g := r.Guarantee
	scores, answers := make([]float64, games), make([]int64, games)
	err := r.each(ctx, "membership", games, func(i int) error {
		seed := seeds.Of(r.Seed, 2, uint64(index), uint64(i))
		rows := rand.New(rand.NewPCG(seeds.Of(seed, 1), 0))
		var err error
		scores[i], answers[i], err = asked{g, a, i < games/2, rows.Int64N(g.N), rows, c.scale}.score(seeds.Of(seed, 2))
		return err
	})
	if err != nil {
		return Membership{}, err
	}
	return weighed(a.name, g.N, c, scores[:games/2], scores[games/2:], answers)
}

// weighed is what the scores of both kinds of games prove.
func weighed(name string, n int64, c claim, members, others []float64, answers []int64) (Membership, error) {
	m := Membership{Attacker: name, Mu: c.mu, Rho: c.rho, Delta: 1 / float64(n)}
	confidence := 1 - FalseAlarm/(mostClaims+1)
	r, err := audit.Scores(c.curve, m.Delta, confidence, members, others)
	if err != nil {
		return m, err
	}
	m.Games, m.Accused = 2*r.Runs, r.Accused
	right := r.Accused[0] + r.Runs - r.Accused[1]
	m.Right = float64(right) / float64(m.Games)
	m.RightLow, m.RightHigh = rate(right, m.Games, .05)
	m.MuAtLeast, m.EpsilonAtLeast, m.Broken = r.Mu, r.Epsilon, r.Refuted
	m.Curve = curveOf(members, others)
	for _, a := range answers {
		m.Answers = max(m.Answers, a)
	}
	if c.curve != nil {
		allowed, epsilon := (1+account.Advantage(c.curve))/2, epsilonOf(c.curve, m.Delta)
		m.Allowed, m.EpsilonAtMost = &allowed, &epsilon
		for _, level := range levels {
			m.Bound = append(m.Bound, Point{level, 1 - account.Tradeoff(c.curve, level)})
		}
	}
	return m, nil
}

func epsilonOf(c account.Curve, delta float64) float64 {
	switch c := c.(type) {
	case account.GDP:
		return c.Epsilon(delta)
	case account.ZCDP:
		return c.Epsilon(delta)
	}
	return math.Inf(1)
}

// levels are the shares of false accusations at which curves are said: closer together where they are few.
var levels = func() (levels []float64) {
	for i := range 51 {
		x := float64(i) / 50
		levels = append(levels, x*x)
	}
	return levels
}()

// curveOf is the share of members that is accused, where so many of the others are.
func curveOf(members, others []float64) []Point {
	in, out := slices.Sorted(slices.Values(members)), slices.Sorted(slices.Values(others))
	points := make([]Point, 0, len(levels))
	for _, level := range levels {
		threshold := math.Inf(1)
		accused := int(level * float64(len(out)))
		if accused > 0 {
			threshold = out[len(out)-accused]
		}
		points = append(points, Point{float64(above(out, threshold)) / float64(len(out)), float64(above(in, threshold)) / float64(len(in))})
	}
	return points
}

// above is how many of the values, which are in order, are the threshold or more.
func above(values []float64, threshold float64) int {
	at, _ := slices.BinarySearch(values, threshold)
	return len(values) - at
}
