package phacking

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/holdoutd/holdoutd/experiments/tables"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// part is the training part or the holdout, as bits: so 200 groups and what they have in common are counted quickly.
type part struct {
	n       int
	sizes   []int // groups of each attribute
	codes   [][]uint8
	members [][]uint64 // of each group
	late    []uint64
}

// wholePart is all flights of the table, once each: the population that holdouts are drawn from.
func wholePart(t *tables.Groups) *part {
	return newPart(t, len(t.Late), func(i int) (int, int) { return i, i })
}

// drawPart takes n rows with replacement. Where the labels are shuffled, a row's label is that of another draw: then no attribute knows anything
// of it.
func drawPart(t *tables.Groups, seed uint64, n int, shuffled bool) *part {
	r := rand.New(rand.NewPCG(seed, 0))
	return newPart(t, n, func(int) (int, int) {
		row := r.IntN(len(t.Late))
		if shuffled {
			return row, r.IntN(len(t.Late))
		}
		return row, row
	})
}

// newPart has n rows. of says for each which row of the table its attributes are of, and which its label.
func newPart(t *tables.Groups, n int, of func(i int) (row, label int)) *part {
	words := (n + 63) / 64
	p := &part{n: n, sizes: t.Sizes, late: make([]uint64, words)}
	rows := make([]int32, n)
	for i := range n {
		row, label := of(i)
		rows[i] = int32(row)
		if t.Late[label] {
			p.late[i/64] |= 1 << (i % 64)
		}
	}
	for a, size := range t.Sizes {
		codes, first := make([]uint8, n), len(p.members)
		for range size {
			p.members = append(p.members, make([]uint64, words))
		}
		for i, row := range rows {
			if codes[i] = t.Codes[a][row]; codes[i] != tables.Ungrouped {
				p.members[first+int(codes[i])][i/64] |= 1 << (i % 64)
			}
		}
		p.codes = append(p.codes, codes)
	}
	return p
}

// counts are how many rows of a range all of the groups have in common, and how many of them are late.
func (p *part) counts(groups []int, from, to int) (members, lateMembers int) {
	for w := from / 64; 64*w < to; w++ {
		both := ^uint64(0)
		if 64*w < from {
			both <<= from % 64
		}
		if 64*(w+1) > to {
			both &= 1<<(to%64) - 1
		}
		for _, g := range groups {
			both &= p.members[g][w]
		}
		members += bits.OnesCount64(both)
		lateMembers += bits.OnesCount64(both & p.late[w])
	}
	return members, lateMembers
}

// riskCounts are the same of the rows whose score is positive: the sum of a weight for each group that they are in.
func (p *part) riskCounts(weights []float64, from, to int) (members, lateMembers int) {
	score, first := make([]float64, to-from), 0
	for a, codes := range p.codes {
		for i, c := range codes[from:to] {
			if c != tables.Ungrouped {
				score[i] += weights[first+int(c)]
			}
		}
		first += p.sizes[a]
	}
	for i, s := range score {
		if at := from + i; s > 0 {
			members++
			lateMembers += int(p.late[at/64] >> (at % 64) & 1)
		}
	}
	return members, lateMembers
}

// meanOf is that of the row function that asks about a group, over so many rows: 1 or 0 for a late or another flight of the group, and the known
// rate of all flights outside. Its mean is above the rate by the group's share times its excess.
func meanOf(rows, members, lateMembers int, rate float64) thresholdout.Mean {
	outside := int64(math.Round(rate * float64(rowfn.One)))
	return thresholdout.Mean{Sum: int64(lateMembers)*rowfn.One + int64(rows-members)*outside, N: int64(rows)}
}
