package experiments

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// late is when a flight counts as late: the authority's own limit, in minutes.
const late = 15

// subgroupsAirports is how many of the busiest airports are groups of their own; the others are in no group.
const subgroupsAirports = 25

// ungrouped is the code of a value that is no group.
const ungrouped = math.MaxUint8

// subgroupTable is the flights with every attribute in groups.
type subgroupTable struct {
	codes [][]uint8 // of each attribute and row, or ungrouped
	sizes []int     // groups of each attribute
	late  []bool
	rate  float64 // of late
}

// groups is the number of groups of all attributes together; they are numbered attribute by attribute.
func (t *subgroupTable) groups() int {
	total := 0
	for _, s := range t.sizes {
		total += s
	}
	return total
}

// attribute of a group, and its code there.
func (t *subgroupTable) attribute(group int) (attribute int, code uint8) {
	for a, s := range t.sizes {
		if group < s {
			return a, uint8(group)
		}
		group -= s
	}
	panic("experiments: no such group")
}

var subgroups = sync.OnceValues(func() (*subgroupTable, error) {
	f, err := flights()
	if err != nil {
		return nil, err
	}
	t := &subgroupTable{late: make([]bool, f.rows())}
	add := func(size int, code func(row int) uint8) {
		codes := make([]uint8, f.rows())
		for i := range codes {
			codes[i] = code(i)
		}
		t.codes, t.sizes = append(t.codes, codes), append(t.sizes, size)
	}
	add(24, func(i int) uint8 { return uint8(f.hour[i]) })
	add(7, func(i int) uint8 { return uint8(f.weekday[i]) })
	add(6, func(i int) uint8 { return uint8(min(f.month[i], 5)) }) // a flight of the first of July is one of June
	sorted := slices.Sorted(slices.Values(f.distance))
	add(10, func(i int) uint8 {
		below, _ := slices.BinarySearch(sorted, f.distance[i])
		return uint8(10 * below / len(sorted))
	})
	for _, airports := range [][]uint32{f.origin, f.destination} {
		busiest := busiestAirports(airports)
		add(len(busiest), func(i int) uint8 {
			if at := slices.Index(busiest, airports[i]); at >= 0 {
				return uint8(at)
			}
			return ungrouped
		})
	}
	count := 0
	for i, delay := range f.delay {
		if t.late[i] = delay > late; t.late[i] {
			count++
		}
	}
	t.rate = float64(count) / float64(len(t.late))
	return t, nil
})

func busiestAirports(airports []uint32) []uint32 {
	flights := map[uint32]int{}
	for _, a := range airports {
		flights[a]++
	}
	var all []uint32
	for a := range flights {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b uint32) int {
		if flights[a] != flights[b] {
			return flights[b] - flights[a]
		}
		return int(a) - int(b)
	})
	return all[:min(subgroupsAirports, len(all))]
}

// subgroupPart is one part of the data: rows in sets of bits.
type subgroupPart struct {
	n       int
	sizes   []int // groups of each attribute
	codes   [][]uint8
	members [][]uint64 // of each group
	late    []uint64
}

// all is the table as it is.
func (t *subgroupTable) all() *subgroupPart {
	return t.part(len(t.late), func(i int) (int, int) { return i, i })
}

// draw takes n rows with replacement. Where the labels are shuffled, a row's label is that of another draw: then no attribute knows anything
// of it.
func (t *subgroupTable) draw(seed uint64, n int, shuffled bool) *subgroupPart {
	r := rand.New(rand.NewPCG(seed, 0))
	return t.part(n, func(int) (int, int) {
		row := r.IntN(len(t.late))
		if shuffled {
			return row, r.IntN(len(t.late))
		}
		return row, row
	})
}

// part has n rows, each with the attributes of one row of the table and the label of one.
func (t *subgroupTable) part(n int, of func(i int) (row, label int)) *subgroupPart {
	words := (n + 63) / 64
	p := &subgroupPart{n: n, sizes: t.sizes, late: make([]uint64, words)}
	rows := make([]int32, n)
	for i := range n {
		row, label := of(i)
		rows[i] = int32(row)
		if t.late[label] {
			p.late[i/64] |= 1 << (i % 64)
		}
	}
	for a, size := range t.sizes {
		codes, first := make([]uint8, n), len(p.members)
		for range size {
			p.members = append(p.members, make([]uint64, words))
		}
		for i, row := range rows {
			if codes[i] = t.codes[a][row]; codes[i] != ungrouped {
				p.members[first+int(codes[i])][i/64] |= 1 << (i % 64)
			}
		}
		p.codes = append(p.codes, codes)
	}
	return p
}

// counts are how many rows all of the groups have in common, and how many of them are late.
func (p *subgroupPart) counts(groups []int) (members, lateMembers int) {
	for w := range p.late {
		both := ^uint64(0)
		for _, g := range groups {
			both &= p.members[g][w]
		}
		members += bits.OnesCount64(both)
		lateMembers += bits.OnesCount64(both & p.late[w])
	}
	return members, lateMembers
}

// riskCounts are the same of the rows whose score is positive: the sum of a weight for each group that they are in.
func (p *subgroupPart) riskCounts(weights []float64) (members, lateMembers int) {
	score, first := make([]float64, p.n), 0
	for a, codes := range p.codes {
		for i, c := range codes {
			if c != ungrouped {
				score[i] += weights[first+int(c)]
			}
		}
		first += p.sizes[a]
	}
	for i, s := range score {
		if s > 0 {
			members++
			lateMembers += int(p.late[i/64] >> (i % 64) & 1)
		}
	}
	return members, lateMembers
}

// mean is that of the row function that asks about a group: 1 or 0 for a late or another flight of the group, and the known
// rate of all flights outside. Its mean is above the rate by the group's share times its excess.
func (p *subgroupPart) mean(members, lateMembers int, rate float64) thresholdout.Mean {
	outside := int64(math.Round(rate * float64(grid)))
	return thresholdout.Mean{Sum: int64(lateMembers)*grid + int64(p.n-members)*outside, N: int64(p.n)}
}
