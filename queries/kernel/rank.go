package kernel

import (
	"encoding/binary"
	"math"
	"slices"
)

// Many questions of a batch compare one Number with many constants. Without vectors such a number is ranked once: how many thresholds
// it passes, found by a branch-free search, as a byte. Each comparison is then one of bytes, eight rows in a word. With vectors a
// comparison costs less than its share of a search.

const (
	// rankFrom is the number of comparisons of one Number, in one direction, from which a rank pays.
	rankFrom = 5
	// maxRank keeps ranks below 128, so that bytes can be compared by the top bits of a subtraction of words.
	maxRank = 127
)

// family is the comparisons of one Number in one direction.
type family struct {
	a       id
	falling bool
}

// rank replaces comparisons with constants by comparisons of ranks, where there are many. All of them are made
// inclusive: x > k is x >= the next double after k, for no row is infinite.
func (g *graph) rank() {
	if fast != nil {
		return
	}
	members := map[family][]id{}
	var order []family
	for i := range g.values {
		v := &g.values[i]
		if v.op < opLess || v.op > opGreaterEq || !g.isConst(v.b) {
			continue
		}
		f := family{v.a, v.op == opLess || v.op == opLessEq}
		if members[f] == nil {
			order = append(order, f)
		}
		members[f] = append(members[f], id(i))
	}
	for _, f := range order {
		if len(members[f]) >= rankFrom {
			g.rankFamily(f, members[f])
		}
	}
}

// threshold is the constant that a comparison is inclusive of; for falling ones it is negated, as the Number will be.
func (g *graph) threshold(v *value) float64 {
	k := g.at(v.b).k
	switch v.op {
	case opLess:
		k = math.Nextafter(k, math.Inf(-1))
	case opGreater:
		k = math.Nextafter(k, math.Inf(1))
	}
	if v.op == opLess || v.op == opLessEq {
		k = -k
	}
	return k + 0
}

func (g *graph) rankFamily(f family, comparisons []id) {
	list := make([]float64, len(comparisons))
	for i, c := range comparisons {
		list[i] = g.threshold(g.at(c))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	var ranks []id
	for part := range slices.Chunk(list, maxRank) {
		name := "rises"
		if f.falling {
			name = "falls"
		}
		ranks = append(ranks, g.add(value{op: opRank, a: f.a, b: none, c: none, list: padded(part), falling: f.falling}, name+listText(part)))
	}
	for _, c := range comparisons {
		at, _ := slices.BinarySearch(list, g.threshold(g.at(c)))
		g.values[c] = value{op: opAbove, a: ranks[at/maxRank], b: none, c: none, aux: uint32(at % maxRank)}
	}
}

// ranks writes how many numbers of the padded list a is at least; for falling lists, -a. NaN passes none.
func ranks(dst []uint8, a, list []float64, falling bool) {
	a = a[:len(dst)]
	sign := uint64(0)
	if falling {
		sign = 1 << 63
	}
	if len(list) == maxRank+1 {
		list := (*[maxRank + 1]float64)(list)
		for i := range dst {
			dst[i] = rank7(list, math.Float64frombits(math.Float64bits(a[i])^sign))
		}
		return
	}
	for i := range dst {
		dst[i] = uint8(search(list, math.Float64frombits(math.Float64bits(a[i])^sign)))
	}
}

// rank7 is search in a list of 127, unrolled.
func rank7(list *[maxRank + 1]float64, x float64) uint8 {
	at := uint(bit(x >= list[63])) << 6
	at += uint(bit(x >= list[(at+31)&127])) << 5
	at += uint(bit(x >= list[(at+15)&127])) << 4
	at += uint(bit(x >= list[(at+7)&127])) << 3
	at += uint(bit(x >= list[(at+3)&127])) << 2
	at += uint(bit(x >= list[(at+1)&127])) << 1
	at += uint(bit(x >= list[at&127]))
	return uint8(at)
}

// above is 1 where the rank, at most 127, is above k, at most 126: the top bit of rank + 127 - k is set.
func above(dst, rank []uint8, k uint32) {
	rank = rank[:len(dst)]
	add := uint64(127-k) * ones
	for len(dst) >= 8 && len(rank) >= 8 {
		binary.LittleEndian.PutUint64(dst, (binary.LittleEndian.Uint64(rank)+add)>>7&ones)
		dst, rank = dst[8:], rank[8:]
	}
	for i := range dst {
		dst[i] = bit(uint32(rank[i]) > k)
	}
}
