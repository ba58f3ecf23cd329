package subsample_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/subsample"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

const falseAlarm = 1e-6

// informed is the mutual information, in nats, of a table of rows from {0, ..., kinds-1}, drawn by the law, and of a transcript of votes. ask is the
// analyst: from the votes so far, the probability that a row of each kind votes yes. If whole is set, a question is answered by the whole table instead,
// yes or no by its larger part: what nothing protects.
func informed(rows, votes int, law []float64, ask func(so []bool) []float64, whole bool) float64 {
	kinds := len(law)
	tables := int(math.Pow(float64(kinds), float64(rows)))
	prior, shares := make([]float64, tables), make([][]float64, tables)
	for table := range tables {
		prior[table], shares[table] = 1, make([]float64, kinds)
		for row, rest := 0, table; row < rows; row, rest = row+1, rest/kinds {
			prior[table] *= law[rest%kinds]
			shares[table][rest%kinds] += 1 / float64(rows)
		}
	}
	nats := 0.0
	var walk func(so []bool, likely []float64)
	walk = func(so []bool, likely []float64) {
		if len(so) == votes {
			total := 0.0
			for table, p := range likely {
				total += prior[table] * p
			}
			for table, p := range likely {
				if p > 0 {
					nats += prior[table] * p * math.Log(p/total)
				}
			}
			return
		}
		q := ask(so)
		for _, vote := range []bool{false, true} {
			next := make([]float64, tables)
			for table, p := range likely {
				yes := 0.0
				for kind, share := range shares[table] {
					yes += share * q[kind]
				}
				if whole {
					yes = math.Round(yes)
				}
				if !vote {
					yes = 1 - yes
				}
				next[table] = p * yes
			}
			walk(append(append([]bool{}, so...), vote), next)
		}
	}
	certain := make([]float64, tables)
	for table := range certain {
		certain[table] = 1
	}
	walk(nil, certain)
	return nats
}

// TestInformation: the information of a transcript, by enumeration of all small tables and all votes, is at most what Theorem 2 says, for analysts who ask
// by a random tree, and for the one who follows what he has heard. Answers of the whole table say more than that: the test would notice them.
func TestInformation(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 2302))
	most := 0.0
	for range 60 {
		rows, votes, kinds := 2+random.IntN(4), 1+random.IntN(5), 2+random.IntN(2)
		law := make([]float64, kinds)
		total := 0.0
		for i := range law {
			law[i] = random.ExpFloat64()
			total += law[i]
		}
		for i := range law {
			law[i] /= total
		}
		tree := map[string][]float64{}
		ask := func(so []bool) []float64 {
			name := fmt.Sprint(so)
			if tree[name] == nil {
				q := make([]float64, kinds)
				for i := range q {
					q[i] = min(1, max(0, 2*random.Float64()-.5))
				}
				tree[name] = q
			}
			return tree[name]
		}
		bound, err := subsample.Information(int64(rows), subsample.Asked{Times: float64(votes), Rows: 1, Outcomes: 2})
		if err != nil {
			t.Fatal(err)
		}
		share := informed(rows, votes, law, ask, false) / bound
		if most = max(most, share); share > 1 {
			t.Errorf("%d rows, %d votes: %.3f of the bound", rows, votes, share)
		}
	}
	half := informed(3, 1, []float64{.5, .5}, func([]bool) []float64 { return []float64{0, 1} }, true)
	if wide, _ := subsample.Information(1001, subsample.Asked{Times: 1, Rows: 1, Outcomes: 2}); half < 100*wide {
		t.Errorf("what the larger part of the whole table says is %v nats, and a vote of 1,001 rows may say %v: the test would not notice", half, wide)
	}
	t.Logf("at most %.3f of the bound", most)
}

// TestReference: the information is the number of the formula sheet, and half-widths are those of another program (SciPy's brentq and minimize_scalar).
func TestReference(t *testing.T) {
	nats, err := subsample.Information(100_000, subsample.Asked{Times: 100_000, Rows: 1, Outcomes: 2})
	if err != nil || math.Abs(nats-4) > 1e-9 {
		t.Errorf("100 questions of 1,000 votes about 100,000 rows say %v nats, want 4 (%v)", nats, err)
	}
	for _, c := range []struct {
		set         subsample.Settings
		beta, width float64
	}{
		{subsample.Settings{Rows: 10_000, Questions: 100, Votes: 100}, .05, .294465300},
		{subsample.Settings{Rows: 1_000_000, Questions: 100, Votes: 1000}, .05, .069756976},
		{subsample.Settings{Rows: 1_000_000, Questions: 10_000, Votes: 300}, .1, .157667146},
		{subsample.Settings{Rows: 100, Questions: 1000, Votes: 1000}, .05, 1},
	} {
		if got := c.set.HalfWidth(c.beta); math.Abs(got-c.width) > 1e-6 {
			t.Errorf("%+v: a half-width of %.7f, want %.7f", c.set, got, c.width)
		}
	}
	set, width, err := subsample.Plan(1_000_000, 100, .05)
	if err != nil || width != set.HalfWidth(.05) {
		t.Errorf("%+v has %v and not %v (%v)", set, set.HalfWidth(.05), width, err)
	}
	for _, votes := range []int64{1, 10, 100, set.Votes / 2, set.Votes * 2, 100_000} {
		if other := (subsample.Settings{Rows: set.Rows, Questions: set.Questions, Votes: votes}); other.HalfWidth(.05) < width*(1-1e-4) {
			t.Errorf("%d votes have %v, planned are %d with %v", votes, other.HalfWidth(.05), set.Votes, width)
		}
	}
}

// TestAnswer: the number of votes for yes has the binomial law of the table's mean weight, at a false-alarm probability of 1e-6, and a weight above One is
// One.
func TestAnswer(t *testing.T) {
	const draws = 20_000
	weights := []uint32{0, subsample.One / 4, subsample.One, 2 * subsample.One, math.MaxUint32} // a mean of .65
	set := subsample.Settings{Rows: 5, Questions: draws, Votes: 4}
	s := noise.Seeded(2302)
	observed, expected := make([]int, 5), make([]float64, 5)
	for range draws {
		observed[set.Answer(s, func(row int64) uint32 { return weights[row] })]++
	}
	for yes, ways := range []float64{1, 4, 6, 4, 1} {
		expected[yes] = draws * ways * math.Pow(.65, float64(yes)) * math.Pow(.35, float64(4-yes))
	}
	if err := stattest.ChiSquare(observed, expected, falseAlarm); err != nil {
		t.Error(err)
	}
}

// TestAttack: an analyst who follows the votes, by the question whether a row agrees with most of what was heard (the single-adaptive attack), finds one
// that is larger in the table than in the population, on average by no more than what the information allows, sqrt(I/(2n)) (Russo and Zou 2016). By answers of the whole table
// he finds one that is more. An alarm is five standard errors above, which is false with a probability below 1e-6. No answer leaves the half-width either.
func TestAttack(t *testing.T) {
	const rows, questions, beta, tables = 2000, 400, .05, 40
	random := rand.New(rand.NewPCG(11, 2023))
	set := subsample.Settings{Rows: rows, Questions: questions + 1, Votes: 30}
	nats, err := subsample.Information(rows, subsample.Asked{Times: float64(set.Questions * set.Votes), Rows: 1, Outcomes: 2})
	if err != nil {
		t.Fatal(err)
	}
	allowed := math.Sqrt(nats / (2 * rows))
	var votes, exact, squares float64
	missed := 0
	for table := range tables {
		bits := make([][questions]bool, rows)
		for i := range bits {
			for j := range bits[i] {
				bits[i][j] = random.Uint64()&1 == 1
			}
		}
		whole := func(weight func(row int64) uint32) float64 {
			sum := 0.0
			for row := range int64(rows) {
				sum += float64(weight(row)) / subsample.One
			}
			return sum / rows
		}
		// found is the question that the attack ends with: of a row of the population it is true with probability one half.
		found := func(answer func(func(row int64) uint32) float64) func(row int64) uint32 {
			var heard [questions]bool
			for j := range heard {
				heard[j] = answer(func(row int64) uint32 { return weight(bits[row][j]) }) > .5
			}
			return func(row int64) uint32 {
				agrees := 0
				for j, yes := range heard {
					if bits[row][j] == yes {
						agrees += 2
					}
				}
				if agrees == questions {
					return subsample.One / 2
				}
				return weight(agrees > questions)
			}
		}
		s := noise.Seeded(uint64(table))
		byVotes := func(w func(int64) uint32) float64 { return float64(set.Answer(s, w)) / float64(set.Votes) }
		last := found(byVotes)
		bias := whole(last) - .5
		votes, squares = votes+bias/tables, squares+bias*bias/tables
		exact += (whole(found(whole)) - .5) / tables
		if math.Abs(byVotes(last)-.5) > set.HalfWidth(beta) {
			missed++
		}
	}
	t.Logf("too large by %.4f, allowed is %.4f; by exact answers %.4f; %d answers missed", votes, allowed, exact, missed)
	if votes > allowed+5*math.Sqrt((squares-votes*votes)/tables) {
		t.Errorf("a question that is too large by %v was found, and what was told allows %v", votes, allowed)
	}
	if exact < 1.5*allowed || votes < .01 {
		t.Error("the attack is none: the test would not notice votes that tell too much")
	}
	if err := stattest.AtMost(missed, tables, beta, falseAlarm); err != nil {
		t.Error(err)
	}
}

func weight(yes bool) uint32 {
	if yes {
		return subsample.One
	}
	return 0
}

// TestRefused: settings that are none are errors, and panics where only a program's mistake can make them.
func TestRefused(t *testing.T) {
	for _, f := range []func() error{
		func() error { _, err := subsample.Information(0); return err },
		func() error {
			_, err := subsample.Information(10, subsample.Asked{Times: 1, Rows: 11, Outcomes: 2})
			return err
		},
		func() error {
			_, err := subsample.Information(10, subsample.Asked{Times: math.NaN(), Rows: 1, Outcomes: 2})
			return err
		},
		func() error { _, _, err := subsample.Plan(10, 0, .05); return err },
		func() error { _, _, err := subsample.Plan(10, 10, 1); return err },
	} {
		if err := f(); !errors.Is(err, subsample.ErrSettings) {
			t.Errorf("accepted, or another error: %v", err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no votes were counted")
		}
	}()
	subsample.Settings{Rows: 1, Questions: 1}.Answer(noise.Seeded(1), func(int64) uint32 { return 0 })
}

// Which share of a million visits ended with a purchase? Each question reads a few thousand of them.
func ExampleSettings_Answer() {
	bought := func(visit int64) uint32 { return uint32(visit%10/9) * subsample.One } // one in ten
	set, halfWidth, err := subsample.Plan(1_000_000, 100, .05)
	if err != nil {
		fmt.Println(err)
		return
	}
	var key noise.Key // 32 secret random bytes
	yes := set.Answer(key.Stream("question 1"), bought)
	fmt.Printf("%.3f, and at most %.3f from the population, after 100 questions of anyone\n", float64(yes)/float64(set.Votes), halfWidth)
	// Output: 0.100, and at most 0.025 from the population, after 100 questions of anyone
}
