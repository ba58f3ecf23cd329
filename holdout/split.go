package holdout

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/manysha"
)

// MaxStrata is the largest number of values that a stratify column may have: each stratum's counts are public and
// stand on the card, and strata of a few rows would say much about single rows.
const MaxStrata = 100

// splitter chooses the side of each unit by a secret key of the server: the side is reproducible by the server and looks
// random to everyone else. It says nothing about where a unit is stored: that is placing's (docs/decisions/0002-split.md).
type splitter struct {
	key []byte // of HMAC-SHA256
}

// tagger makes the tags of units from a place on, as many as there is room for.
type tagger func(tags []uint64, first int)

// tags returns the tag of each unit.
func (s splitter) tags(g grouping, c *dataset.Column, day bool) []uint64 {
	tags := makeIn[uint64](g.room, g.n)
	s.tagger(g, c, day)(tags, 0)
	return tags
}

// tagsTogether is how many tags are made together.
const tagsTogether = 4 * manysha.Lanes

// tagger makes the tags of units: of each the first 64 bits of HMAC-SHA256(key, value of the unit). Two units share a tag
// with probability below n^2/2^65 (3e-7 for 3 million); such a tie is broken by the order of their first rows.
func (s splitter) tagger(g grouping, c *dataset.Column, day bool) tagger {
	return func(tags []uint64, first int) {
		workers := min(runtime.GOMAXPROCS(0), 1+len(tags)/4096)
		var wg sync.WaitGroup
		for w := range workers {
			from, to := len(tags)*w/workers, len(tags)*(w+1)/workers
			wg.Go(func() {
				mac := manysha.NewMAC(s.key)
				var messages [tagsTogether][]byte
				for at := from; at < to; at += tagsTogether {
					some := tags[at:min(at+tagsTogether, to)]
					for i := range some {
						row := uint32(first + at + i)
						if g.first != nil {
							row = g.first[row]
						}
						messages[i] = appendUnitValue(messages[i][:0], c, day, row)
					}
					mac.Heads(some, messages[:len(some)])
				}
			})
		}
		wg.Wait()
	}
}

// holdoutSize is the number of units, of n, that the setting asks for: a fraction of at most 1 gives the nearest whole
// number (halves upwards), a number above 1 is the count itself. Unless all units are asked for, each side gets at
// least one. The size depends on n alone, so it tells nothing about the rows.
func holdoutSize(setting float64, n int) (int, error) {
	switch {
	case n == 0:
		return 0, fail(BadUpload, "the table has no rows")
	case math.IsNaN(setting) || setting <= 0:
		return 0, invalid("holdout", "holdout must be a fraction in (0, 1] or a whole number of units above 1")
	case setting == 1:
		return n, nil
	case setting > 1 && setting != math.Floor(setting):
		return 0, invalid("holdout", "holdout is above 1, so it is a number of units, which must be whole")
	case n == 1:
		return 0, fail(BadUpload, "the table has a single unit, which cannot be split; holdout=1.0 takes it all")
	case setting >= float64(n):
		return 0, invalid("holdout", "holdout asks for %v units of the %d that there are; holdout=1.0 takes them all", setting, n)
	case setting > 1:
		return int(setting), nil
	}
	return min(max(int(math.Floor(setting*float64(n)+0.5)), 1), n-1), nil
}

// checkSize is the number of units of the check part, of n of which so many are held out, as holdoutSize is that of the holdout: at least one of them
// stays in the training part. What is only the default takes no more than half of what is not held out, and may be nothing.
func checkSize(setting *float64, byDefault float64, n, heldOut int) (int, error) {
	rest := n - heldOut
	if setting == nil {
		return min(int(math.Floor(byDefault*float64(n)+0.5)), rest/2), nil
	}
	size, v := 0, *setting
	switch {
	case v == 0:
		return 0, nil
	case v > 1:
		size = int(min(v, float64(n)))
	default:
		size = max(1, int(math.Floor(v*float64(n)+0.5)))
	}
	if size >= rest {
		return 0, invalid("check", "check asks for %d units, and %d of %d are left beside the holdout, of which the training part needs one; check=0 makes no check part", size, rest, n)
	}
	return size, nil
}

// order sorts all units by their tags: a random order that only the key's holder can tell, and the same for all tables of
// the server in which units have these values.
func order(r *room, tags []uint64) []uint32 {
	units := makeIn[uint32](r, len(tags))
	for i := range units {
		units[i] = uint32(i)
	}
	slices.SortFunc(units, func(a, b uint32) int {
		if c := cmp.Compare(tags[a], tags[b]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	return units
}

// sizes are the numbers of units of the parts that are not handed out.
type sizes struct{ holdout, check int }

// side is the part that a unit belongs to.
type side uint8

const (
	inTraining side = iota
	inCheck
	inHoldout
)

// parts are the units of each side, by the units' first rows. Where a side is stored in another order, placing
// draws it.
type parts struct {
	training, check, holdout []uint32
}

// divide lists the units of each side.
func divide(r *room, sides []side) parts {
	var count [inHoldout + 1]int
	for _, s := range sides {
		count[s]++
	}
	var units [inHoldout + 1][]uint32
	for s, n := range count {
		units[s] = makeIn[uint32](r, n)[:0]
	}
	for u, s := range sides {
		units[s] = append(units[s], uint32(u))
	}
	return parts{training: units[inTraining], check: units[inCheck], holdout: units[inHoldout]}
}

// splitByTag takes the first of n units in keyed order as the holdout, and those behind them as the check part: so a holdout is the same units whatever check part there is.
func splitByTag(r *room, n int, tags tagger, size sizes) parts {
	k := firstBits(r, n, tags)
	kept, holdout := k.cut(size.holdout+size.check), k.cut(size.holdout)
	p := parts{
		holdout:  makeIn[uint32](r, size.holdout)[:0],
		check:    makeIn[uint32](r, size.check)[:0],
		training: makeIn[uint32](r, n-size.holdout-size.check)[:0],
	}
	k.each([]*cut{&kept, &holdout}, func(u uint32, tag uint64) {
		switch {
		case !kept.takes(tag):
			p.training = append(p.training, u)
		case holdout.takes(tag):
			p.holdout = append(p.holdout, u)
		default:
			p.check = append(p.check, u)
		}
	})
	return p
}

const (
	// keptBits is how many bits of each tag are kept: where a side ends in keyed order, they leave one of 2^16 units in doubt.
	keptBits = 16
	// taggedTogether is how many tags there are at a time.
	taggedTogether = 1 << 18
)

// keyed are units in keyed order, as far as a split asks for it: it needs no order of those that are far from where a side ends, and two bytes of each tag.
type keyed struct {
	room   *room
	first  []uint16           // bits of each unit's tag
	counts [1 << keptBits]int // of the units with these bits
	tags   tagger
}

func firstBits(r *room, n int, tags tagger) *keyed {
	k := &keyed{room: r, first: makeIn[uint16](r, n), tags: tags}
	together := make([]uint64, min(n, taggedTogether))
	r.inTurns(n, func(from, to int) {
		for ; from < to; from += len(together) {
			some := together[:min(len(together), to-from)]
			tags(some, from)
			for i, tag := range some {
				bits := tag >> (64 - keptBits)
				k.first[from+i] = uint16(bits)
				k.counts[bits]++
			}
		}
	})
	return k
}

// cut is where the first units of an order end: they are those with a tag below last, and so many of those with that very tag, as they come.
type cut struct {
	last uint64
	ties int
}

// takes reports whether the next unit is one of the first. Units are asked about as they come.
func (c *cut) takes(tag uint64) bool {
	if tag == c.last && c.ties > 0 {
		c.ties--
		return true
	}
	return tag < c.last
}

// bits are those of its last tag that are kept.
func (c *cut) bits() uint16 { return uint16(c.last >> (64 - keptBits)) }

// cut finds where so many units end.
func (k *keyed) cut(size int) cut {
	if size == 0 {
		return cut{}
	}
	bits := 0
	for ; size > k.counts[bits]; bits++ {
		size -= k.counts[bits]
	}
	c := cut{last: uint64(bits) << (64 - keptBits)}
	var doubtful []uint64
	k.each([]*cut{&c}, func(_ uint32, tag uint64) {
		if uint16(tag>>(64-keptBits)) == uint16(bits) {
			doubtful = append(doubtful, tag)
		}
	})
	slices.Sort(doubtful)
	c.last = doubtful[size-1]
	first, _ := slices.BinarySearch(doubtful, c.last)
	c.ties = size - first
	return c
}

// each calls do with all units in the order of their first rows. The tag is whole where it begins as that of a cut; of others it is zero behind the bits that are kept.
func (k *keyed) each(cuts []*cut, do func(u uint32, tag uint64)) {
	var doubts [1 << keptBits]bool
	for _, c := range cuts {
		doubts[c.bits()] = true
	}
	var whole [1]uint64
	k.room.inTurns(len(k.first), func(from, to int) {
		for u := from; u < to; u++ {
			tag := uint64(k.first[u]) << (64 - keptBits)
			if doubts[k.first[u]] {
				k.tags(whole[:], u)
				tag = whole[0]
			}
			do(uint32(u), tag)
		}
	})
}

// splitByTime takes the latest units as the holdout, and the latest before them as the check part, which is then more like the holdout than the training part is. A unit is as late as its latest row, so that no training row is
// later than the earliest of the holdout units' latest rows; units without a time are the earliest. Ties go by tag.
func splitByTime(tags []uint64, g grouping, times []float64, size sizes) parts {
	latest := makeIn[float64](g.room, g.n)
	for u := range latest {
		latest[u] = math.Inf(-1)
	}
	for row, t := range times {
		u := row
		if g.of != nil {
			u = int(g.of[row])
		}
		if t > latest[u] {
			latest[u] = t
		}
	}
	sides, byTime := makeIn[side](g.room, g.n), order(g.room, tags)
	slices.SortStableFunc(byTime, func(a, b uint32) int { return cmp.Compare(latest[b], latest[a]) })
	for i, u := range byTime[:size.holdout+size.check] {
		if sides[u] = inCheck; i < size.holdout {
			sides[u] = inHoldout
		}
	}
	return divide(g.room, sides)
}

// strata gives each unit a stratum: the value of a column, which must be the same in all rows of the unit.
type strata struct {
	of    []uint32 // of each unit
	names []string // of each stratum, distinct
}

// stratify reads the strata off a column.
func stratify(c dataset.Column, g grouping) (strata, error) {
	s := strata{of: makeIn[uint32](g.room, g.n)}
	seen := make(map[string]uint32)
	names, null := stratumNames(c)
	for u := range s.of {
		row := u
		if g.first != nil {
			row = int(g.first[u])
		}
		name, ok := names(row)
		if !ok {
			name = null
		}
		id, known := seen[name]
		if !known {
			if len(s.names) == MaxStrata {
				return s, invalid("stratify", "the column %q has more than %d values, too many to stratify by", c.Name, MaxStrata)
			}
			id = uint32(len(s.names))
			seen[name] = id
			s.names = append(s.names, name)
		}
		s.of[u] = id
	}
	for row, u := range g.of {
		if !sameCell(c, row, int(g.first[u])) {
			return s, invalid("stratify", "the column %q differs between rows of one unit; only what is the same in a unit's rows can stratify units", c.Name)
		}
	}
	return s, nil
}

// stratumNames returns how to name the value in a row (false: null), and a name for null that no value has.
func stratumNames(c dataset.Column) (name func(row int) (string, bool), null string) {
	null = "(null)"
	switch c.Kind {
	case dataset.Text:
		for {
			if _, taken := c.Dictionary.Find(null); !taken {
				break
			}
			null = "(" + null + ")"
		}
		return func(row int) (string, bool) {
			if c.Codes[row] == 0 {
				return "", false
			}
			return c.Dictionary.Text(int(c.Codes[row]) - 1), true
		}, null
	case dataset.Bool:
		return func(row int) (string, bool) {
			return strconv.FormatBool(c.Bools[row] == 1), c.Bools[row] < dataset.NullBool
		}, null
	}
	return func(row int) (string, bool) {
		v := c.Numbers[row]
		return strconv.FormatFloat(v, 'g', -1, 64), v == v
	}, null
}

func sameCell(c dataset.Column, a, b int) bool {
	switch c.Kind {
	case dataset.Text:
		return c.Codes[a] == c.Codes[b]
	case dataset.Bool:
		return c.Bools[a] == c.Bools[b]
	}
	x, y := c.Numbers[a], c.Numbers[b]
	return x == y || x != x && y != y
}

// splitByStrata takes units for the holdout, shared among the strata in proportion to their sizes (largest remainders first, ties
// by the order of the strata), and within each stratum by tag; and of what is left the check part in the same way.
func splitByStrata(r *room, tags []uint64, s strata, size sizes) (parts, map[string]Counts) {
	total := make([]int, len(s.names))
	for _, id := range s.of {
		total[id]++
	}
	left := apportion(total, size.holdout)
	rest := make([]int, len(total))
	for id := range rest {
		rest[id] = total[id] - left[id]
	}
	check := make([]int, len(total))
	if size.check > 0 {
		check = apportion(rest, size.check)
	}
	counts := make(map[string]Counts, len(total))
	for id, name := range s.names {
		counts[name] = Counts{Training: int64(rest[id] - check[id]), Check: int64(check[id]), Holdout: int64(left[id])}
	}
	sides := makeIn[side](r, len(tags))
	for _, u := range order(r, tags) {
		switch id := s.of[u]; {
		case left[id] > 0:
			left[id]--
			sides[u] = inHoldout
		case check[id] > 0:
			check[id]--
			sides[u] = inCheck
		}
	}
	return divide(r, sides), counts
}

// apportion shares size among classes in proportion to their totals by the largest remainders (Hamilton's method):
// each class gets its exact share rounded down or up.
func apportion(totals []int, size int) []int {
	n := 0
	for _, t := range totals {
		n += t
	}
	shares, remainders, given := make([]int, len(totals)), make([]int, len(totals)), 0
	for i, t := range totals {
		shares[i], remainders[i] = t*size/n, t*size%n
		given += shares[i]
	}
	byRemainder := make([]int, len(totals))
	for i := range byRemainder {
		byRemainder[i] = i
	}
	slices.SortStableFunc(byRemainder, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range byRemainder[:size-given] {
		shares[i]++
	}
	return shares
}
