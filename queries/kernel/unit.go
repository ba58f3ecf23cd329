package kernel

import (
	"sort"

	"github.com/holdoutd/holdoutd/rowfn"
)

// endedBy is how many units from next on end at or before a row.
func (s *State) endedBy(row int) int {
	ends := s.units.Offsets[s.next+1:]
	return sort.Search(min(len(ends), s.block), func(i int) bool { return int(ends[i]) > row })
}

// unitSum adds the units that end in the block to a function's sum. Running sums over the rows make a unit's sum the
// difference of two of them, whatever its size; what the last unit has so far is carried to the next block.
func (s *State) unitSum(t *step, base, n, ended int) {
	k, carry := t.sink, &s.carries[t.sink.function]
	where := s.bytes[t.c][:n]
	sums, counts := s.prefix[0][:n+1], s.prefix[1][:n+1]
	switch {
	case k.number != none:
		s.fast.prefixFixed(sums, carry[0], s.numbers[t.a][:n], where, k.grid, &s.fixed)
	case k.off == 0:
		prefixCount(sums, carry[0], s.bytes[t.b][:n])
	default:
		prefixTwo(sums, carry[0], s.bytes[t.b][:n], where, k.on, k.off)
	}
	scale := int64(1)
	if k.number == none && k.off == 0 {
		scale = k.on
	}
	offsets := s.units.Offsets[s.next : s.next+ended+1]
	if k.values != noValues {
		s.unitValues(t, n, ended, base, scale, offsets)
		return
	}
	var total, last, lastCount int64
	switch {
	case k.perUnit == rowfn.UnitAny:
		total, last = anyOf(sums, offsets, base)
	case k.perUnit == rowfn.UnitShare:
		total, last = shareOf(sums, offsets, base, scale, s.units.Cap)
	case k.everyRow:
		total, last = shareOf(sums, offsets, base, scale, 1)
	default:
		prefixCount(counts, carry[1], where)
		total, last, lastCount = meanOf(sums, counts, offsets, base, scale)
		carry[1] = counts[n] - lastCount
	}
	carry[0] = sums[n] - last
	s.sums[k.function] += total
}

// unitValues is the end of unitSum for a row function whose values products need: they are left in its list.
func (s *State) unitValues(t *step, n, ended, base int, scale int64, offsets []uint32) {
	k, carry := t.sink, &s.carries[t.sink.function]
	sums, counts, values := s.prefix[0][:n+1], s.prefix[1][:n+1], s.values[t.sink.values][:ended]
	var last, lastCount int64
	switch {
	case k.perUnit == rowfn.UnitAny:
		last = anyValues(values, sums, offsets, base)
	case k.perUnit == rowfn.UnitShare:
		last = shareValues(values, sums, offsets, base, scale, s.units.Cap)
	case k.everyRow:
		last = shareValues(values, sums, offsets, base, scale, 1)
	default:
		prefixCount(counts, carry[1], s.bytes[t.c][:n])
		last, lastCount = meanValues(values, sums, counts, offsets, base, scale)
		carry[1] = counts[n] - lastCount
	}
	carry[0] = sums[n] - last
	s.sums[k.function] += total(values)
}

// rounded is s/d for 0 <= s <= 2^61 and 0 < d < 2^31, halves upwards.
func rounded(s, d int64) int64 { return int64((2*uint64(s) + uint64(d)) / (2 * uint64(d))) }

// anyOf counts the units with a positive sum, in fixed point, and returns the running sum at the end of the last one.
func anyOf(sums []int64, offsets []uint32, base int) (total, last int64) {
	for _, end := range offsets[1:] {
		at := sums[int(end)-base]
		total += int64(bit(at > last))
		last = at
	}
	return total * rowfn.One, last
}

// shareOf divides each unit's sum by its number of rows, or by least where that is more. With m rows and the sum s that is
// s/m · min(m, least)/least in one rounding.
func shareOf(sums []int64, offsets []uint32, base int, scale, least int64) (total, last int64) {
	start := int64(offsets[0])
	for _, end := range offsets[1:] {
		at := sums[int(end)-base]
		total += rounded((at-last)*scale, max(int64(end)-start, least))
		last, start = at, int64(end)
	}
	return total, last
}

// meanOf divides each unit's sum by its number of rows in which where holds; 0 where there are none.
func meanOf(sums, counts []int64, offsets []uint32, base int, scale int64) (total, last, lastCount int64) {
	for _, end := range offsets[1:] {
		at, count := sums[int(end)-base], counts[int(end)-base]
		total += rounded((at-last)*scale, max(count-lastCount, 1))
		last, lastCount = at, count
	}
	return total, last, lastCount
}
