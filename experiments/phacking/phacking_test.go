package phacking

import (
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/tables"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestSubgroupTable: the table is the demo's, and what groups have in common in a range of rows is counted as row by row.
func TestSubgroupTable(t *testing.T) {
	table, err := tables.FlightGroups()
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Late) != 100000 || math.Abs(table.Rate-0.20031) > 1e-9 || table.Count() != 97 {
		t.Fatalf("%d flights, %v of them late, %d groups", len(table.Late), table.Rate, table.Count())
	}
	all := wholePart(table)
	weights := make([]float64, table.Count())
	for g := range weights {
		weights[g] = math.Sin(float64(g))
	}
	pair, score := []int{30, 50}, []int{0, 0}
	members, lateMembers := 0, 0
	const from, to = 130, 99_937 // within words, as slices are
	for i := from; i < to; i++ {
		in, sum, first := 0, 0.0, 0
		for a, size := range table.Sizes {
			if code := table.Codes[a][i]; code != tables.Ungrouped {
				sum += weights[first+int(code)]
				for _, g := range pair {
					if g == first+int(code) {
						in++
					}
				}
			}
			first += size
		}
		if in == len(pair) {
			members++
			lateMembers += int(run.Indicator(table.Late[i]))
		}
		if sum > 0 {
			score[0]++
			score[1] += int(run.Indicator(table.Late[i]))
		}
	}
	if a, b := all.counts(pair, from, to); a != members || b != lateMembers || members == 0 {
		t.Errorf("a pair has %d flights, %d late; row by row %d and %d", a, b, members, lateMembers)
	}
	group := func(i int) bool { // whether a flight is of the first group, one of hours
		return table.Codes[0][i] == 0
	}
	for from := 1; from < 4000; from += 61 { // slices begin and end anywhere within words
		to, members, late := from+700, 0, 0
		for i := from; i < to; i++ {
			if group(i) {
				members, late = members+1, late+int(run.Indicator(table.Late[i]))
			}
		}
		if a, b := all.counts([]int{0}, from, to); a != members || b != late {
			t.Errorf("from %d: a group has %d flights, %d late; row by row %d and %d", from, a, b, members, late)
		}
	}
	if a, b := all.riskCounts(weights, from, to); a != score[0] || b != score[1] {
		t.Errorf("the risk group has %d flights, %d late; row by row %d and %d", a, b, score[0], score[1])
	}
	m := meanOf(to-from, members, lateMembers, table.Rate)
	want := (float64(lateMembers) + float64(to-from-members)*table.Rate) / (to - from)
	if got := float64(m.Sum) / float64(rowfn.One) / float64(m.N); math.Abs(got-want) > 1e-8 {
		t.Errorf("mean %v, want %v", got, want)
	}
}

// TestShuffledLabels: a shuffled label knows nothing of the hour, a real one does. At 23 h 42% are late instead of 20%; with 50,000
// flights, of which about 440 leave then, a false alarm needs six standard errors: one in a billion, the seed being fixed.
func TestShuffledLabels(t *testing.T) {
	table, err := tables.FlightGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, shuffled := range []bool{true, false} {
		members, lateMembers := drawPart(table, 1, 50000, shuffled).counts([]int{23}, 0, 50000)
		deviation := (float64(lateMembers) - table.Rate*float64(members)) / math.Sqrt(float64(members)*table.Rate*(1-table.Rate))
		if shuffled == (math.Abs(deviation) > 6) {
			t.Errorf("shuffled %v: %d of %d are late, %.1f standard errors", shuffled, lateMembers, members, deviation)
		}
	}
}
