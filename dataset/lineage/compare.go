package lineage

import (
	"sort"

	"gonum.org/v1/gonum/mathext"
)

const (
	// Level is at most the probability that [Compare] takes chance for rows that came again, of two tables of independent rows of one law: of each of
	// the kinds of tokens, in each direction, a seventh of it.
	Level = 1e-6

	// agreeing is the share of what the row that tells less holds that must be in the other one, and agreeingLarge of what the other one holds. A row that lost half of its
	// columns, or got as many new ones, is the same row; one that shares a few columns with another (a place, a person) is not.
	agreeing      = 0.6
	agreeingLarge = 0.35
)

// Overlap is what two sketches have in common. Both shares are lower estimates, with a standard error of at most 0.5/sqrt(n) for a sample of n rows.
type Overlap struct {
	OfOld float64 `json:"of_old"` // the share of the old table's rows that are in the new one, in [0,1]; 0 where no more is in it than chance brings
	OfNew float64 `json:"of_new"` // the share of the new table's rows that are in the old one, likewise
}

// Compare says which share of an old table's rows are in a new one, and the other way round. The sketch of the new table must have watched for the tokens of the
// old one's, and both have one key.
func Compare(old, now *Sketch) (o Overlap) {
	level := max(old.level, now.level) // of the rows that both have chosen
	for kind := range kinds {
		a, b := &old.samples[kind], &now.samples[kind]
		// Old rows are looked up in all of the new table.
		rows, found := 0, 0
		for _, t := range a.tokens {
			if int(t.level) < level {
				continue
			}
			rows++
			if other := now.seen[t.hash]; other != nil && !t.many && !other.many && (kind == whole || same(t.cells, other.cells)) {
				found++
			}
		}
		o.OfOld = max(o.OfOld, beyondChance(found, rows, b))
		// New rows are looked up in the sample of the old table, as far as that goes.
		rows, found = 0, 0
		for _, t := range b.tokens {
			if t.hash > a.limit {
				break
			}
			if int(t.level) < level {
				continue
			}
			rows++
			if other := a.find(t.hash); other != nil && !t.many && !other.many && (kind == whole || same(t.cells, other.cells)) {
				found++
			}
		}
		o.OfNew = max(o.OfNew, beyondChance(found, rows, a))
	}
	// What is too few of a large table to be told from chance may be most of a small one; the rows are the same.
	switch {
	case o.OfOld == 0 && o.OfNew > 0:
		o.OfOld = min(1, o.OfNew*float64(now.Rows)/float64(old.Rows))
	case o.OfNew == 0 && o.OfOld > 0:
		o.OfNew = min(1, o.OfOld*float64(old.Rows)/float64(now.Rows))
	}
	return o
}

// find returns the token of a hash, or nil.
func (s *sample) find(hash uint64) *token {
	at := sort.Search(len(s.tokens), func(i int) bool { return s.tokens[i].hash >= hash })
	if at == len(s.tokens) || s.tokens[at].hash != hash {
		return nil
	}
	return s.tokens[at]
}

// beyondChance is the share of rows that were found, of a table, in another one, or 0 where chance may have found them. If all are independent and of one law,
// a row is found in the other table with the probability that a row of that table is alike to another one of it. Of n tokens
// of the other table d are of several rows, at least two each. Under that hypothesis the found ones are of all found+d at most binomial with the share
// rows/(rows+n/2).
func beyondChance(found, rows int, other *sample) float64 {
	if found == 0 || rows == 0 {
		return 0
	}
	alike := 0
	for _, t := range other.tokens {
		if t.many {
			alike++
		}
	}
	share := float64(rows) / (float64(rows) + float64(len(other.tokens))/2)
	if p := mathext.RegIncBeta(float64(found), float64(alike+1), share); p > Level/kinds {
		return 0
	}
	return float64(found) / float64(rows)
}

// same reports whether two rows agree in most of what they hold. Of rows with more cells than are kept, the smaller hashes that both could have are compared.
func same(a, b []cell) bool {
	reach := uint32(1<<28 - 1)
	for _, row := range [2][]cell{a, b} {
		if len(row) == MaxCells {
			reach = min(reach, row[MaxCells-1].hash())
		}
	}
	var inA, inB, both, cells int
	for i, j := 0, 0; ; {
		moreA, moreB := i < len(a) && a[i].hash() <= reach, j < len(b) && b[j].hash() <= reach
		switch {
		case !moreA && !moreB:
			small, large := min(inA, inB), max(inA, inB)
			alone := min(len(a), len(b)) == 1 && max(len(a), len(b)) <= 2
			return both > 0 && (cells > 1 || alone) && float64(both) >= agreeing*float64(small) && float64(both) >= agreeingLarge*float64(large)
		case !moreB || moreA && a[i].hash() < b[j].hash():
			inA += a[i].bits()
			i++
		case !moreA || b[j].hash() < a[i].hash():
			inB += b[j].bits()
			j++
		default:
			told := min(a[i].bits(), b[j].bits())
			inA, inB, both, cells = inA+told, inB+told, both+told, cells+1
			i, j = i+1, j+1
		}
	}
}
