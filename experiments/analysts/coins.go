package analysts

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// coins is data in which there is nothing to find: every column agrees with the label in a row with probability 1/2,
// independently. Whatever classifier is made of the columns, it is right half of the time in the population.
//
// Columns come in blocks of eight, one bit of a row's byte each, drawn when they are first asked about and drawn again
// when they are needed again, so that memory is a few bytes a row for any number of columns.
type coins struct {
	seed              uint64
	holdout, training coinRows
	block             int        // that is drawn
	pending           [8]float64 // weights of its columns that are not in the scores yet
	unweighed         bool       // pending has weights
}

// coinRows are the rows of the holdout or of the training part.
type coinRows struct {
	agree []byte    // bit c: column 8 block + c agrees with the label; padded to whole words
	tie   []byte    // 0 or 1: which way a tied score falls
	score []float64 // of each row: the weighted vote of columns, columns that agree counting +, others -
	part  uint64
}

const (
	holdoutPart uint64 = iota
	trainingPart
)

func newCoins(seed uint64, n, training int64) *coins {
	c := &coins{seed: seed, block: -1}
	for part, rows := range map[uint64]*coinRows{holdoutPart: &c.holdout, trainingPart: &c.training} {
		size := n
		if part == trainingPart {
			size = training
		}
		rows.part = part
		rows.agree = make([]byte, (size+7)/8*8)
		rows.tie = make([]byte, size)
		rows.score = make([]float64, size)
		r := rand.New(rand.NewPCG(seeds.Of(seed, part, 1), 0))
		for i := range rows.tie {
			rows.tie[i] = byte(r.Uint64() >> 63)
		}
	}
	return c
}

// turn draws the block that a column is in, if another one is drawn.
func (c *coins) turn(column int) {
	if column/8 == c.block {
		return
	}
	c.settle()
	c.block = column / 8
	for _, rows := range []*coinRows{&c.holdout, &c.training} {
		r := rand.NewPCG(seeds.Of(c.seed, rows.part, 0), uint64(c.block))
		for i := 0; i < len(rows.agree); i += 8 {
			binary.LittleEndian.PutUint64(rows.agree[i:], r.Uint64())
		}
	}
}

// column asks how often a column agrees with the label.
func (c *coins) column(column int) Question {
	return Question{
		Truth: 0.5,
		Holdout: func(from, to int64) thresholdout.Mean {
			c.turn(column)
			return ones(c.holdout.agree[from:to], column%8)
		},
		Training: func() thresholdout.Mean {
			c.turn(column)
			return ones(c.training.agree[:len(c.training.tie)], column%8)
		},
	}
}

// weigh gives a column a weight in the vote, beside what it has.
func (c *coins) weigh(column int, weight float64) {
	c.turn(column)
	c.pending[column%8] += weight
	c.unweighed = true
}

// settle adds the pending weights to every row's score: by a table of the 256 ways in which eight columns can vote.
func (c *coins) settle() {
	if !c.unweighed {
		return
	}
	var votes [256]float64
	for pattern := range votes {
		for bit, w := range c.pending {
			if pattern>>bit&1 == 1 {
				votes[pattern] += w
			} else {
				votes[pattern] -= w
			}
		}
	}
	addVotes(c.holdout.score, c.holdout.agree, &votes)
	addVotes(c.training.score, c.training.agree, &votes)
	c.pending, c.unweighed = [8]float64{}, false
}

// vote asks how often the sign of the vote agrees with the label: truly 1/2, as the columns know nothing of it.
func (c *coins) vote() Question {
	c.settle()
	return Question{
		Truth: 0.5,
		Holdout: func(from, to int64) thresholdout.Mean {
			return positive(c.holdout.score[from:to], c.holdout.tie[from:to])
		},
		Training: func() thresholdout.Mean { return positive(c.training.score, c.training.tie) },
	}
}

func addVotes(dst []float64, pattern []byte, votes *[256]float64) {
	for i := range dst {
		dst[i] += votes[pattern[i]]
	}
}

// ones is the mean of one bit of each byte.
func ones(rows []byte, bit int) thresholdout.Mean {
	mask := uint64(0x0101010101010101) << bit
	count, i := 0, 0
	for ; i+8 <= len(rows); i += 8 {
		count += bits.OnesCount64(binary.LittleEndian.Uint64(rows[i:]) & mask)
	}
	for ; i < len(rows); i++ {
		count += int(rows[i] >> bit & 1)
	}
	return thresholdout.Mean{Sum: int64(count) * rowfn.One, N: int64(len(rows))}
}

// positive is the fraction of positive scores; a tie falls as it was drawn.
func positive(score []float64, tie []byte) thresholdout.Mean {
	count := 0
	for i, s := range score {
		if s > 0 || s == 0 && tie[i] == 1 {
			count++
		}
	}
	return thresholdout.Mean{Sum: int64(count) * rowfn.One, N: int64(len(score))}
}
