package thresholdout

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// TestUnseenLevelIsEnough draws runs of which a part in the middle is not known any more, as after a restored backup, and compares the level that later answers are given at with the one that the whole run has. It notices
// a charge that counts lost answers as plain passes, whatever they were, so that later intervals would be too narrow.
func TestUnseenLevelIsEnough(t *testing.T) {
	for _, mechanism := range []Name{GuessAndCheck, Thresholdout} {
		g := must(t, Spec{Mechanism: mechanism, N: 20_000, Training: 20_000, Questions: 60, Tokens: 20, Confidence: 0.95})
		level, remember := levelOf(t, g)
		rapid.Check(t, func(t *rapid.T) {
			count := func(name string, most int) int64 { return int64(rapid.IntRange(0, most).Draw(t, name)) }
			before := [3]int64{count("passes before", 20), count("wide before", 5), count("failed before", 5)}
			lost := [2]int64{count("passes lost", 8), count("wide lost", 8)}
			said := lost[0] + lost[1] + count("said beside", 3) // at most so many, and perhaps fewer
			after := [3]int64{count("passes after", 6), count("wide after", 6), count("failed after", 6)}
			paid := moments.Nats(5 << 20)
			first := State{Questions: before[0] + before[1] + before[2], Tokens: before[2]}
			first.Memory = remember(before[1], paid*moments.Nats(before[2]))
			s, err := g.Unseen(first, Amounts{Questions: said})
			if err != nil {
				t.Fatal(err)
			}
			wide, price := memoryOf(s)
			later := State{Questions: s.Questions + after[0] + after[1] + after[2], Tokens: s.Tokens + after[2], Memory: remember(wide+after[1], price+paid*moments.Nats(after[2]))}
			whole := State{Questions: first.Questions + lost[0] + lost[1] + after[0] + after[1] + after[2], Tokens: before[2] + after[2],
				Memory: remember(before[1]+lost[1]+after[1], paid*moments.Nats(before[2]+after[2]))}
			if later.Questions >= g.Questions {
				return
			}
			if got, want := level(later), level(whole); got < want || math.IsInf(got, 0) {
				t.Errorf("%s: %v before, %v lost, %v after: the level is %v, and the whole run's is %v", mechanism, before, lost, after, got, want)
			}
		})
	}
}

// levelOf is the level of a guarantee's states, and how it remembers.
func levelOf(t *testing.T, g Guarantee) (func(State) float64, func(wide int64, paid moments.Nats) Memory) {
	switch m := g.own.(type) {
	case *guessAndCheck:
		return m.level, func(wide int64, paid moments.Nats) Memory { return account{Wide: wide, Paid: paid} }
	case *comparedRuns:
		return m.level, func(wide int64, paid moments.Nats) Memory { return books{Wide: wide, Paid: paid} }
	}
	t.Fatalf("%T", g.own)
	return nil, nil
}

func memoryOf(s State) (int64, moments.Nats) {
	if a, ok := s.Memory.(account); ok {
		return a.Wide, a.Paid
	}
	b := s.Memory.(books)
	return b.Wide, b.Paid
}

// TestUnseen says which answers a guarantee can go on after that are not known, and what it has then.
func TestUnseen(t *testing.T) {
	for _, c := range []struct {
		spec  Spec
		from  State
		lost  Amounts
		left  int64
		fails bool
	}{
		{Spec{Mechanism: Gaussian, Questions: 100}, State{Questions: 10}, Amounts{Questions: 15}, 75, false},
		{Spec{Mechanism: Gaussian, Questions: 100}, State{Questions: 10}, Amounts{}, 90, false},
		{Spec{Mechanism: Gaussian, Questions: 100}, State{Questions: 10}, Amounts{Questions: 91}, 0, true},
		{Spec{Mechanism: Gaussian, Questions: 100}, State{Questions: 10}, Amounts{Questions: -1}, 0, true},
		{Spec{Mechanism: Split, Questions: 100}, State{Questions: 10}, Amounts{Questions: 15}, 75, false},
		{Spec{Mechanism: Gaussian, Questions: 100, Rounds: 10}, State{Questions: 5, InRound: 5}, Amounts{Questions: 12, Rounds: 2}, 70, false},
		{Spec{Mechanism: Gaussian, Questions: 100, Rounds: 10}, State{Questions: 5, InRound: 5}, Amounts{Questions: 12, Rounds: 1}, 0, true},
		{Spec{Mechanism: GuessAndCheck, Questions: 100, Tokens: 10}, State{Questions: 10, Tokens: 1, Memory: account{Paid: 9}}, Amounts{Questions: 15}, 75, false},
		{Spec{Mechanism: GuessAndCheck, Questions: 100, Tokens: 10}, State{Questions: 10}, Amounts{Questions: 15, Tokens: 1}, 0, true},
		{Spec{Mechanism: GuessAndCheck, Questions: 100, Tokens: 10}, State{Questions: 10}, Amounts{Questions: 15, Tokens: 10}, 75, false}, // nothing is answered without tokens
		{Spec{Mechanism: Thresholdout, Questions: 100, Tokens: 10}, State{Questions: 10}, Amounts{Questions: 15, Tokens: 1}, 0, true},
		{Spec{Mechanism: Ladder, Questions: 100}, State{Questions: 10}, Amounts{Questions: 15}, 0, true},
		{Spec{Mechanism: Ladder, Questions: 100}, State{Questions: 10}, Amounts{Questions: 90}, 0, false},
	} {
		c.spec.N, c.spec.Training, c.spec.Confidence = 20_000, 20_000, 0.95
		g := must(t, c.spec)
		s, err := g.Unseen(c.from, c.lost)
		if c.fails {
			if !errors.Is(err, ErrUnseen) {
				t.Errorf("%s, %+v lost: %v", c.spec.Mechanism, c.lost, err)
			}
			continue
		}
		if err != nil || g.Left(s) != c.left || s.Spent().Tokens != c.from.Tokens+c.lost.Tokens {
			t.Errorf("%s, %+v lost: %+v (%v), %d left", c.spec.Mechanism, c.lost, s, err, g.Left(s))
		}
		text, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := g.ReadState(text); err != nil || again != s {
			t.Errorf("%s: %s is read as %+v (%v)", c.spec.Mechanism, text, again, err)
		}
	}
}
