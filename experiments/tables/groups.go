package tables

import (
	"math"
	"slices"
	"sync"
)

// LateMinutes is when a flight counts as late: the authority's own limit, in minutes.
const LateMinutes = 15

// busyAirports is how many airports, the busiest, are groups of their own; the others are in no group.
const busyAirports = 25

// Ungrouped is the code of a value that is no group.
const Ungrouped = math.MaxUint8

// Groups are the flights with every attribute cut into groups, such as the 24 hours of the day.
type Groups struct {
	Codes [][]uint8 // of each attribute and row, or Ungrouped
	Sizes []int     // groups of each attribute
	Late  []bool
	Rate  float64 // of late
}

// Count is the number of groups of all attributes together; they are numbered attribute by attribute.
func (t *Groups) Count() int {
	total := 0
	for _, s := range t.Sizes {
		total += s
	}
	return total
}

// Attribute says which attribute a group is of, and the group's code among those of the attribute.
func (t *Groups) Attribute(group int) (attribute int, code uint8) {
	for a, s := range t.Sizes {
		if group < s {
			return a, uint8(group)
		}
		group -= s
	}
	panic("experiments: no such group")
}

// FlightGroups are the flights by hour, weekday, month, tenth of the distance, origin and destination; made once.
var FlightGroups = sync.OnceValues(func() (*Groups, error) {
	f, err := Flights()
	if err != nil {
		return nil, err
	}
	t := &Groups{Late: make([]bool, f.Rows())}
	add := func(size int, code func(row int) uint8) {
		codes := make([]uint8, f.Rows())
		for i := range codes {
			codes[i] = code(i)
		}
		t.Codes, t.Sizes = append(t.Codes, codes), append(t.Sizes, size)
	}
	add(24, func(i int) uint8 { return uint8(f.Hour[i]) })
	add(7, func(i int) uint8 { return uint8(f.Weekday[i]) })
	add(6, func(i int) uint8 { return uint8(min(f.Month[i], 5)) }) // a flight of the first of July is one of June
	sorted := slices.Sorted(slices.Values(f.Distance))
	add(10, func(i int) uint8 {
		below, _ := slices.BinarySearch(sorted, f.Distance[i])
		return uint8(10 * below / len(sorted))
	})
	for _, airports := range [][]uint32{f.Origin, f.Destination} {
		busiest := busiestAirports(airports)
		add(len(busiest), func(i int) uint8 {
			if at := slices.Index(busiest, airports[i]); at >= 0 {
				return uint8(at)
			}
			return Ungrouped
		})
	}
	count := 0
	for i, delay := range f.Delay {
		if t.Late[i] = delay > LateMinutes; t.Late[i] {
			count++
		}
	}
	t.Rate = float64(count) / float64(len(t.Late))
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
	return all[:min(busyAirports, len(all))]
}
