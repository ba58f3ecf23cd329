package thresholdout

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// lossesOf are the sums of a submission's row losses beside those of the best one, in steps of 2^-30.
func lossesOf(row, best []int64) Losses {
	in := Losses{N: int64(len(row)), Square: new(big.Int), Cross: new(big.Int)}
	for i, l := range row {
		in.Sum += l
		in.Square.Add(in.Square, new(big.Int).Mul(big.NewInt(l), big.NewInt(l)))
		if best != nil {
			in.Cross.Add(in.Cross, new(big.Int).Mul(big.NewInt(l), big.NewInt(best[i])))
		}
	}
	return in
}

// board submits predictions in turn and returns what it shows after each.
func board(t testing.TB, labels []int, submissions [][]int) (shown []float64) {
	t.Helper()
	var state ParameterFreeLadder
	var best []int64
	for _, s := range submissions {
		row := make([]int64, len(labels))
		for i := range row {
			if s[i] != labels[i] {
				row[i] = grid
			}
		}
		standing, next, err := state.Submit(lossesOf(row, best))
		if err != nil {
			t.Fatal(err)
		}
		if standing.Best {
			best = row
		}
		text, err := json.Marshal(next) // states are stored
		if err != nil {
			t.Fatal(err)
		}
		state = ParameterFreeLadder{}
		if err := json.Unmarshal(text, &state); err != nil {
			t.Fatal(err)
		}
		shown = append(shown, standing.Loss)
	}
	return shown
}

// TestParameterFreeAgainstReference: the second submission gains exactly one standard error, which floating point decides by chance.
func TestParameterFreeAgainstReference(t *testing.T) {
	for _, r := range gncReferences(t, "ladder_parameter_free") {
		var in struct {
			Labels      []int
			Submissions [][]int
		}
		var want []float64
		r.read(t, &in, &want)
		got := board(t, in.Labels, in.Submissions)
		for i := range want {
			if math.Abs(got[i]-want[i]) > r.Tolerance {
				t.Errorf("submission %d shows %v, the reference %v", i, got[i], want[i])
			}
		}
	}
}

// TestParameterFreeStands: against the boosting attack of the same paper (keep random submissions that look better than chance, submit
// their majority) the board stays near the truth, 1/2, while the plain loss does not. One fixed run.
func TestParameterFreeStands(t *testing.T) {
	const rows, tries = 2000, 300
	r := rand.New(rand.NewPCG(1, 2))
	labels, votes := make([]int, rows), make([]int, rows)
	for i := range labels {
		labels[i] = r.IntN(2)
	}
	submissions := [][]int{}
	for range tries {
		s, wrong := make([]int, rows), 0
		for i := range s {
			s[i] = r.IntN(2)
			wrong += s[i] ^ labels[i]
		}
		submissions = append(submissions, s)
		if 2*wrong < rows {
			for i := range s {
				votes[i] += 2*s[i] - 1
			}
		}
	}
	boosted, wrong := make([]int, rows), 0
	for i, v := range votes {
		if v > 0 {
			boosted[i] = 1
		}
		wrong += boosted[i] ^ labels[i]
	}
	if plain := float64(wrong) / rows; plain > 0.45 {
		t.Errorf("the plain loss of the attack is %v: the attack does not work", plain)
	}
	shown := board(t, labels, submissions)
	if last := shown[len(shown)-1]; last < 0.45 {
		t.Errorf("the board shows %v for random submissions", last)
	}
}

func TestParameterFreeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "rows")
		losses := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(0, grid), n, n), 1, 6).Draw(t, "losses")
		var state ParameterFreeLadder
		var best []int64
		last := math.Inf(1)
		for _, row := range losses {
			in := lossesOf(row, best)
			a, next, err := state.Submit(in)
			b, again, err2 := state.Submit(in)
			if err != nil || err2 != nil || a != b || !reflect.DeepEqual(next, again) {
				t.Fatalf("a step is not pure: %+v %v, then %+v %v", a, err, b, err2)
			}
			if a.Loss > last || a.Best && math.Abs(a.Loss-float64(in.Sum)/float64(grid)/float64(n)) > 0.5/float64(n)+1e-12 {
				t.Fatalf("the board shows %v after %v, the submission's loss is %v", a.Loss, last, in.Sum)
			}
			if a.Best {
				best = row
			}
			state, last = next, a.Loss
		}
		if same, _, err := state.Submit(lossesOf(best, best)); err != nil || same.Loss != last {
			t.Fatalf("the best submission again: %+v %v, the board showed %v", same, err, last)
		}
	})
}

func TestParameterFreeRefuses(t *testing.T) {
	row := []int64{0, grid, grid / 2}
	_, state, err := ParameterFreeLadder{}.Submit(lossesOf(row, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Losses){
		"sum":    func(in *Losses) { in.Sum = 3*grid + 1 },
		"square": func(in *Losses) { in.Square = new(big.Int).Lsh(big.NewInt(1), 62) },
		"small":  func(in *Losses) { in.Square = big.NewInt(1) },
		"cross":  func(in *Losses) { in.Cross = new(big.Int).Lsh(big.NewInt(1), 70) },
		"none":   func(in *Losses) { in.Cross = nil },
		"rows":   func(in *Losses) { in.N = 1 },
	} {
		in := lossesOf(row, row)
		change(&in)
		if _, s, err := state.Submit(in); err == nil || !reflect.DeepEqual(s, state) {
			t.Errorf("%s: %+v was accepted", name, in)
		}
	}
}

func ExampleParameterFreeLadder() {
	one := int64(1) << 30 // a loss of 1: a wrong prediction
	// Wrong in four rows of six; squares of losses that are 0 or 1 sum to as many.
	first := Losses{N: 6, Sum: 4 * one, Square: new(big.Int).Lsh(big.NewInt(4), 60)}
	// Wrong in two, both among those four.
	better := Losses{N: 6, Sum: 2 * one, Square: new(big.Int).Lsh(big.NewInt(2), 60), Cross: new(big.Int).Lsh(big.NewInt(2), 60)}
	var ladder ParameterFreeLadder
	standing, ladder, err := ladder.Submit(first)
	fmt.Printf("%.3f %v %v\n", standing.Loss, standing.Best, err)
	standing, _, err = ladder.Submit(better)
	fmt.Printf("%.3f %v %v\n", standing.Loss, standing.Best, err)
	// Output:
	// 0.667 true <nil>
	// 0.333 true <nil>
}
