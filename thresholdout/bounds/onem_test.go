package bounds

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sort"
	"testing"
)

// choice is a run of two steps in which the first outcome decides everything about the second: its kind, functions and noise.
type choice struct {
	instance
	first  step
	second map[int]step
}

// outcomes of a selection or comparison.
func (s step) outcomes() int {
	if s.kind == "selection" {
		return len(s.values)
	}
	return 2
}

// chance of an outcome given the rows.
func (s step) chance(rows []int, outcome int) float64 {
	s.answer = append([]float64{float64(outcome)}, s.answer[1:]...)
	return math.Exp(s.logLikelihood(rows))
}

func randomChoice(r *rand.Rand) choice {
	c := choice{instance: instance{n: 2 + r.IntN(4), letters: 2}, second: map[int]step{}}
	law := randomLaw(r, c.letters)
	for range c.n {
		c.laws = append(c.laws, law)
	}
	finite := func() step {
		for {
			if s := randomStep(r, c.letters); s.kind != "vector" {
				return s
			}
		}
	}
	c.first = finite()
	for outcome := range c.first.outcomes() {
		c.second[outcome] = finite()
	}
	return c
}

// path is one transcript: what it released, and for every sample the sample's probability and the transcript's given it.
type path struct {
	released       float64
	weight, chance []float64
	subsampled     []float64 // p_m for m = 1 to n-1
}

// paths enumerates all samples, subsets and transcripts.
func (c choice) paths(charge float64) []path {
	var all []path
	for one := range c.first.outcomes() {
		next := c.second[one]
		for two := range next.outcomes() {
			p := path{released: charge * (c.first.price(float64(c.n)) + next.price(float64(c.n))), subsampled: make([]float64, c.n)}
			rows := make([]int, c.n)
			c.samples(rows, 0, 1, func(weight float64) {
				p.weight = append(p.weight, weight)
				p.chance = append(p.chance, c.first.chance(rows, one)*next.chance(rows, two))
				subsets, sums := make([]float64, c.n), make([]float64, c.n)
				for set := range uint(1) << c.n {
					m := bits.OnesCount(set)
					if m == 0 || m == c.n {
						continue
					}
					var some []int
					for i, x := range rows {
						if set>>i&1 == 1 {
							some = append(some, x)
						}
					}
					subsets[m]++
					sums[m] += c.first.chance(some, one) * next.chance(some, two)
				}
				for m := 1; m < c.n; m++ {
					p.subsampled[m] += weight * sums[m] / subsets[m]
				}
			})
			all = append(all, p)
		}
	}
	return all
}

// section is a set of samples: its probability over a fresh sample, and together with the transcript.
type section struct{ gamma, joint float64 }

// sections of a path: the samples under which the transcript is likeliest, one to all of them. No others of equal probability are worse.
func (p path) sections() []section {
	order := make([]int, len(p.weight))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool { return p.chance[order[i]] > p.chance[order[j]] })
	var sections []section
	var last section
	for _, i := range order {
		last.gamma += p.weight[i]
		last.joint += p.weight[i] * p.chance[i]
		sections = append(sections, last)
	}
	return sections
}

// worst is the largest ratio of P(F), over all choices of a section for each transcript, to what the theorem says of it: the mean
// of the transcripts' shares under p_m, and the largest share. of[i] is the m with which path i's share is made. For the
// first ratio, sections are chosen by Dinkelbach's method: it grows to the best in a few turns.
func worst(all []path, of []int, m, n int) (ratio, byLargest float64) {
	chosen := make([]section, len(all))
	share := func(i int, s section) float64 {
		lambda := float64(n) / float64(of[i])
		return math.Exp((lambda-1)*all[i].released) * math.Pow(s.gamma, 1-1/lambda)
	}
	for range 6 {
		joint, expected, largest := 0.0, 0.0, 0.0
		for i, p := range all {
			best := math.Inf(-1)
			for _, s := range p.sections() {
				if gain := s.joint - ratio*share(i, s)*p.subsampled[m]; gain > best {
					best, chosen[i] = gain, s
				}
			}
			joint += chosen[i].joint
			expected += share(i, chosen[i]) * p.subsampled[m]
			largest = max(largest, share(i, chosen[i]))
		}
		ratio, byLargest = joint/expected, max(byLargest, joint/largest)
	}
	return ratio, byLargest
}

// TestOneM checks the theorem of docs/proofs/account.md with one m, exactly: runs whose every choice depends on the first
// outcome, and the worst section for each transcript. The probability of F is at most the mean under p_m of the transcripts' shares, hence
// at most the largest share. The same search must find violations when less is released than the account says.
func TestOneM(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{21}))
	const cheap = 0.1
	most, mostByLargest, violated := 0.0, 0.0, 0
	for range 1000 {
		c := randomChoice(r)
		all, fewer := c.paths(1), c.paths(cheap)
		for m := 1; m < c.n; m++ {
			total := 0.0
			of := make([]int, len(all))
			for i, p := range all {
				of[i] = m
				total += p.subsampled[m]
			}
			if math.Abs(total-1) > 1e-9 {
				t.Fatalf("p_m adds up to %v", total)
			}
			ratio, byLargest := worst(all, of, m, c.n)
			if ratio > 1+1e-12 || byLargest > 1+1e-12 {
				t.Fatalf("ratio %v, by the largest share %v: %+v, m=%d", ratio, byLargest, c, m)
			}
			most, mostByLargest = max(most, ratio), max(mostByLargest, byLargest)
			if ratio, _ := worst(fewer, of, m, c.n); ratio > 1 {
				violated++
			}
		}
	}
	t.Logf("largest ratio %v, by the largest share %v; %d violations when %v is charged", most, mostByLargest, violated, cheap)
	if violated < 50 {
		t.Errorf("charging %v went unnoticed but for %d times: the search is too weak", cheap, violated)
	}
}
