package leaderboard

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// board shows scores of submissions. A submission is given by its errors: one bit for each label.
type board interface {
	// submit returns what is shown, which interval it has if any, and whether the attack keeps the submission. trained are its errors on the training part, of a board that compares.
	submit(errors, trained []byte) (shown float64, interval *thresholdout.Interval, keep bool, err error)
}

func countErrors(errors []byte) int64 {
	count := 0
	for i := 0; i < len(errors); i += 8 {
		count += bits.OnesCount64(binary.LittleEndian.Uint64(errors[i:]))
	}
	return int64(count)
}

func lossOf(errors []byte, n int64) thresholdout.Mean {
	return thresholdout.Mean{Sum: countErrors(errors) * rowfn.One, N: n}
}

// holdoutBoard shows the answers of a holdout, rounded to a step where it is not 0.
type holdoutBoard struct {
	holdout analysts.Holdout
	step    float64
}

func (b *holdoutBoard) submit(errors, trained []byte) (float64, *thresholdout.Interval, bool, error) {
	shown, interval, err := b.holdout.Ask(analysts.Question{
		Holdout:  func(int64, int64) thresholdout.Mean { return lossOf(errors, b.holdout.Guarantee.N) },
		Training: func() thresholdout.Mean { return lossOf(trained, b.holdout.Guarantee.Training) },
	})
	if b.step > 0 {
		shown = math.Round(shown/b.step) * b.step
	}
	return shown, interval, shown <= 0.5, err
}

// ladderBoard is the Ladder with the submission that is on top. The attack keeps what moves it to 1/2 or below.
type ladderBoard struct {
	ladder thresholdout.ParameterFreeLadder
	best   []byte
	n      int64
}

func (b *ladderBoard) submit(errors, _ []byte) (float64, *thresholdout.Interval, bool, error) {
	count, both := countErrors(errors), int64(0)
	for i := 0; i < len(b.best); i += 8 {
		both += int64(bits.OnesCount64(binary.LittleEndian.Uint64(b.best[i:]) & binary.LittleEndian.Uint64(errors[i:])))
	}
	// A loss of 0 or 1 is its own square, and a whole number of steps of 2^-30.
	square := func(count int64) *big.Int { return new(big.Int).Lsh(big.NewInt(count), 60) }
	standing, next, err := b.ladder.Submit(thresholdout.Losses{N: b.n, Sum: count * rowfn.One, Square: square(count), Cross: square(both)})
	if err != nil {
		return 0, nil, false, err
	}
	b.ladder = next
	if standing.Best {
		b.best = append(b.best[:0], errors...)
	}
	return standing.Loss, nil, standing.Best && standing.Loss <= 0.5, nil
}
