package holdout

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
)

// Rows that are in a table twice are, after a random split, in the training part and held out: a model knows them, and its score says less of new rows. How many held-out rows have an equal one in the training part is a fact
// about held-out rows, which no question pays for. It need not be known: the split is random, so a row of the training part has an equal one in the rest of that part about as often.
// That is said, and is made of rows that everybody is shown.

// EqualRows is the code of the warning.
const EqualRows = "equal-rows"

const (
	// equalShare is the share of rows from which on the card warns: fewer change a score by less than it is uncertain.
	equalShare = 0.05
	// equalChance is how many equal ones a row may have, on average, if columns were independent: where it is more, rows are alike because there are few values, and not because they are copies.
	equalChance = 0.01
	// equalCells bounds rows times columns that are hashed: a third of a second of one core. Of a larger table it is the first rows, whose equals far behind are not seen.
	equalCells = 1 << 26
	// equalKept is about how many rows are compared: those of the smallest hashes, so that equal rows are chosen together. A share is then exact to half a percent.
	equalKept = 1 << 17
	// equalStripe is how many rows are hashed before their pages are given back.
	equalStripe = 1 << 14
	// equalJudged is from how many rows it is estimated how often two have the same in a column.
	equalJudged = 1 << 12
)

// equalRows is the share of rows of which another unit has an equal one, in all columns but that of the unit; 0 where so many are equal because there are few values. g are the units. It calls after when pages can be given back.
func equalRows(columns []dataset.Column, unit string, g grouping, after func()) float64 {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c dataset.Column) bool { return c.Name == unit })
	if len(columns) == 0 || columns[0].Len() < 2 {
		return 0
	}
	rows := min(columns[0].Len(), equalCells/len(columns))
	chance := float64(rows)
	for i := 0; i < len(columns) && chance > equalChance; i++ { // it gets no larger
		chance *= sameChance(&columns[i], rows)
		after()
	}
	if chance > equalChance {
		return 0
	}
	limit := uint64(math.MaxUint64)
	if rows > equalKept {
		limit = uint64(float64(math.MaxUint64) * equalKept / float64(rows))
	}
	type kept struct {
		hash uint64
		unit uint32
	}
	var chosen []kept
	hashes := make([]uint64, min(rows, equalStripe))
	for from := 0; from < rows; from += equalStripe {
		stripe := hashes[:min(equalStripe, rows-from)]
		clear(stripe)
		for i := range columns {
			addHashes(stripe, &columns[i], from, uint64(i+1)*0x9E3779B97F4A7C15)
		}
		for i, hash := range stripe {
			if hash > limit {
				continue
			}
			of := uint32(from + i)
			if g.of != nil {
				of = g.of[from+i]
			}
			chosen = append(chosen, kept{hash, of})
		}
		after()
	}
	slices.SortFunc(chosen, func(a, b kept) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return 0
	})
	equal := 0
	for from := 0; from < len(chosen); {
		to, others := from+1, false
		for to < len(chosen) && chosen[to].hash == chosen[from].hash {
			others = others || chosen[to].unit != chosen[from].unit
			to++
		}
		if others {
			equal += to - from
		}
		from = to
	}
	return float64(equal) / float64(max(1, len(chosen)))
}

// addHashes adds the hashes of a column's cells to those of their rows. Nulls are alike.
func addHashes(dst []uint64, c *dataset.Column, from int, key uint64) {
	mix := func(v uint64) uint64 {
		high, low := bits.Mul64(v^key, 0xD6E8FEB86659FD93)
		high, low = bits.Mul64(high^low^key, 0x9E3779B97F4A7C15)
		return high ^ low
	}
	switch c.Kind {
	case dataset.Text:
		for i, code := range c.Codes[from : from+len(dst)] {
			dst[i] += mix(uint64(code))
		}
	case dataset.Bool:
		for i, b := range c.Bools[from : from+len(dst)] {
			dst[i] += mix(uint64(b))
		}
	default:
		for i, v := range c.Numbers[from : from+len(dst)] {
			if v != v {
				v = math.NaN() // of which there are many
			}
			dst[i] += mix(math.Float64bits(v + 0)) // -0 is 0
		}
	}
}

// sameChance is about the probability that two rows have the same in a column.
func sameChance(c *dataset.Column, rows int) float64 {
	counts := map[uint64]int{}
	n := min(rows, equalJudged)
	for i := range n {
		var hash [1]uint64
		addHashes(hash[:], c, int(int64(i)*int64(rows)/int64(n)), 1)
		counts[hash[0]]++
	}
	same := 0
	for _, k := range counts {
		same += k * (k - 1) / 2
	}
	return min(1, (float64(same)+0.5)/(float64(n)*float64(n-1)/2+0.5))
}

// equalWarnings is the card's warning of equal rows, for a split that was drawn at random.
func equalWarnings(columns []dataset.Column, unit string, g grouping, after func()) []Warning {
	share := equalRows(columns, unit, g, after)
	if share < equalShare {
		return nil
	}
	tenths := math.Ceil(10*share-1e-9) / 10
	other, remedy := "another row", "Drop copies before the upload; or, where rows belong together, name what they belong to as the unit"
	if unit != "" {
		other, remedy = "a row of another "+unit, "Drop copies before the upload"
	}
	return []Warning{{Code: EqualRows, Detail: fmt.Sprintf("up to %.0f%% of the training part's rows are equal to %s of it. The split was drawn at random, so about as many held-out rows have an equal one in the training part: "+
		"if these are copies, a model knows them, its score says less about new rows, and units are not independent. %s.", 100*tenths, other, remedy)}}
}
