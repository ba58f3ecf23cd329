package lineage

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"

	"gonum.org/v1/gonum/mathext"
)

const (
	// Level is at most the probability that [Compare] takes chance for rows that came again, of two tables of independent rows of one law, or of rows that are independent beside an id that they have in
	// common, of one column or of several: of each of the tests an equal part of it.
	Level = 1e-6
	// tests are how many there are: of each kind of tokens, and of rows with names by what they have alike and, in two ways, by what is equal, in each direction.
	tests = 2*kinds + 3

	// agreeing is the share of what the row that tells less holds that must be in the other one, and agreeingLarge of what the other one holds. A row that lost half of its
	// columns, or got as many new ones, is the same row; one that shares a few columns with another (a place, a person) is not.
	agreeing      = 0.6
	agreeingLarge = 0.35
	// contained is the share of a row that tells copyBits or more, by which it is in another one whatever that has beside: features that were computed of it.
	contained = 0.95
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
	chance := sync.OnceValue(func() strangers {
		return strangersOf(&old.samples[whole], &now.samples[whole], math.Log2(float64(max(old.Rows, now.Rows)))+idBits)
	})
	for kind := range kinds {
		a, b := &old.samples[kind], &now.samples[kind]
		// Old rows are looked up in all of the new table.
		rows, alike := 0, []pair(nil)
		for _, t := range a.tokens {
			if int(t.level) < level {
				continue
			}
			rows++
			if other := now.seen[t.hash]; other != nil && !t.many && !other.many {
				alike = append(alike, pair{t.cells, other.cells})
			}
		}
		o.OfOld = max(o.OfOld, beyondChance(kind, alike, rows, b, chance))
		// New rows are looked up in the sample of the old table, as far as that goes.
		rows, alike = 0, nil
		for _, t := range b.tokens {
			if t.hash > a.limit {
				break
			}
			if int(t.level) < level {
				continue
			}
			rows++
			if other := a.find(t.hash); other != nil && !t.many && !other.many {
				alike = append(alike, pair{t.cells, other.cells})
			}
		}
		o.OfNew = max(o.OfNew, beyondChance(kind, alike, rows, a, chance))
	}
	if m, met := now.met[old.named.identity()]; met {
		alike, equal := m.surprising(old, now)
		add := func(found, in int) {
			o.OfOld = max(o.OfOld, float64(found)/float64(m.rows))
			o.OfNew = max(o.OfNew, min(1, float64(in)/float64(m.rows)*old.named.distinct(old.Rows)/float64(now.Rows)))
		}
		if alike {
			add(m.alike, m.alikes)
		}
		if equal {
			add(m.equal, m.equals)
		}
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

// pair are two rows, one of each table, that have a token in common.
type pair [2][]cell

// beyondChance is the share of rows of a table that were found in another one, or 0 where chance may have found them. Pairs have a token of this kind in common, and are found where they agree. There are two
// ways of chance.
//
// If all are independent and of one law, a row is found in the other table with the probability that a row of that table is alike to another one of it. Of n tokens
// of the other table d are of several rows, at least two each. Under that hypothesis the found ones are of all found+d at most binomial with the share
// rows/(rows+n/2).
//
// If the tables have ids in common (row numbers, days, customers) and are independent beside them, two rows of one id agree as often as any two rows do that are given one id (strangers).
func beyondChance(kind int, pairs []pair, rows int, other *sample, chance func() strangers) float64 {
	found := 0
	for _, p := range pairs {
		if kind == whole || same(p[0], p[1]) {
			found++
		}
	}
	if found == 0 || rows == 0 {
		return 0
	}
	alike := 0
	for _, t := range other.tokens {
		if t.many {
			alike++
		}
	}
	if !surprising(found, float64(alike), float64(rows)/(float64(rows)+float64(len(other.tokens))/2)) {
		return 0
	}
	trials, share := len(pairs), chance().alike
	switch {
	case kind == whole:
		trials, share = rows, chance().equal
	case kind%first > 0: // of rows with one id that differ in the other cells there is no token of this kind: all rows may have an id in common
		trials = rows
	}
	if !surprising(found, float64(trials-found), share) {
		return 0
	}
	return float64(found) / float64(rows)
}

// surprising reports whether so many that were found, beside so many others, are more than chance brings where each is found with a probability of share at most: the binomial tail.
func surprising(found int, others, share float64) bool {
	return found > 0 && share < 1 && (share <= 0 || mathext.RegIncBeta(float64(found), others+1, share) <= Level/tests)
}

// surprising reports whether more rows are alike, or equal, than chance brings, in the two ways of beyondChance. Own rows that are alike to another one count for half, for two of them are alike to each other.
//
// Where each row of the new table is there twice, its rows tell nothing of chance. If it has all columns of the old table, that table does: rows of one law are found in the new table about as often as they were copied in the old
// one, or as many times as often as it has more rows.
func (m meeting) surprising(old, now *Sketch) (alike, equal bool) {
	beyond := func(found, own int) bool {
		return surprising(found, float64(own)/2, float64(m.rows)/(float64(m.rows)+float64(m.own)/2))
	}
	copied := 0
	for _, r := range old.named.rows {
		if r.copies > 1 {
			copied++
		}
	}
	times := max(1, float64(now.Rows)/float64(old.Rows))
	alike = beyond(m.alike, m.ownAlike) && surprising(m.alike, float64(m.rows-m.alike), m.chance.alike)
	equal = (beyond(m.equal, m.ownEqual) || m.whole && surprising(m.equal, float64(copied), times/(1+times))) && surprising(m.equal, float64(m.rows-m.equal), m.chance.equal)
	return alike, equal
}

// strangers is how often a row of one table and a row of another agree, or are equal, that have nothing in common but an id.
type strangers struct{ alike, equal float64 }

const (
	// strangersCompared is how many rows are compared with a row of the other table.
	strangersCompared = 4096
	// strangersErrors is how many standard errors the shares are taken larger than they were counted, as if each row of the smaller sample were one draw. With the five that Level asks for it is as rare that an error of
	// both makes an alarm.
	strangersErrors = 3
)

// strangersOf compares sampled rows of two tables, in each of which the cells that tell most, id bits together, are taken for the id and exchanged for those of the other. Rows of one cell are not counted: there is nothing beside that.
func strangersOf(old, now *sample, id float64) strangers {
	alike, equal, compared := 0, 0, 0
	n := max(len(old.tokens), len(now.tokens))
	for i := range strangersCompared {
		if len(old.tokens) == 0 || len(now.tokens) == 0 {
			break
		}
		a, b := old.tokens[i%len(old.tokens)].cells, now.tokens[(i+i/n+1)%len(now.tokens)].cells // each time around with another one
		if min(len(a), len(b)) < 2 {
			continue
		}
		idA, idB := telling(a, id), telling(b, id)
		for k := range min(len(idA), len(idB)) {
			b = exchanged(b, idB[k], idA[k])
		}
		compared++
		if same(a, b) {
			alike++
		}
		if slices.Equal(a, b) {
			equal++
		}
	}
	return newStrangers(alike, equal, compared, min(len(old.tokens), len(now.tokens)))
}

// newStrangers are the shares of rows that were alike and equal among those that were compared, each row of the smaller sample counting as one draw. They are larger than was counted: by one row, and by standard errors.
func newStrangers(alike, equal, compared, draws int) strangers {
	if compared == 0 {
		return strangers{}
	}
	larger := func(count int) float64 {
		share := float64(count+1) / float64(compared+1)
		return min(1, share+strangersErrors*math.Sqrt(share*(1-share)/float64(draws)))
	}
	return strangers{larger(alike), larger(equal)}
}

// telling are the cells of a row that tell most, so many bits together, and not all of them.
func telling(row []cell, bits float64) []cell {
	all := slices.Clone(row)
	slices.SortStableFunc(all, func(a, b cell) int { return cmp.Compare(b.bits(), a.bits()) })
	for k, told := 0, 0.0; k < len(all)-1; k++ {
		if told += float64(all[k].bits()); told >= bits {
			return all[:k+1]
		}
	}
	return all[:len(all)-1]
}

// exchanged is a row with one cell instead of another.
func exchanged(row []cell, old, now cell) []cell {
	all := make([]cell, 0, len(row)+1)
	for _, c := range row {
		if c.hash() != old.hash() && c.hash() != now.hash() {
			all = append(all, c)
		}
	}
	at, _ := slices.BinarySearch(all, now)
	return slices.Insert(all, at, now)
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
			within := both >= copyBits && float64(both) >= contained*float64(small)
			return both > 0 && (cells > 1 || alone) && float64(both) >= agreeing*float64(small) && (within || float64(both) >= agreeingLarge*float64(large))
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
