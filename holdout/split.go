package holdout

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/hashes"
)

// MaxStrata is the largest number of values that a stratify column may have: each stratum's counts are public and
// stand on the card, and strata of a few rows would say much about single rows.
const MaxStrata = 100

// splitter chooses the side of each unit by a secret key of the server: the side is reproducible by the server and looks
// random to everyone else. It says nothing about where a unit is stored: that is placing's (docs/decisions/0002-split.md).
type splitter struct {
	key []byte // of HMAC-SHA256
}

// tags returns the tag of each unit: the first 64 bits of HMAC-SHA256(key, value of the unit). Two units share a tag
// with probability below n^2/2^65 (3e-7 for 3 million); such a tie is broken by the order of their first rows.
func (s splitter) tags(g grouping, c *dataset.Column, day bool) []uint64 {
	tags := makeIn[uint64](g.room, g.n)
	s.each(g, c, day, 0, g.n, func(from int, some []uint64) { copy(tags[from:], some) })
	return tags
}

const (
	// tagBlock is how many units are tagged at a time: enough for registers to be full of messages.
	tagBlock = 256
	// tagShare is how many a processor takes before it asks for more.
	tagShare = 1 << 14
)

// each gives take the tags of the units from..to-1, some at a time, on all processors: take is called from several goroutines.
func (s splitter) each(g grouping, c *dataset.Column, day bool, from, to int, take func(from int, tags []uint64)) {
	mac := hashes.NewMAC(s.key)
	var next atomic.Int64
	next.Store(int64(from))
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 1+(to-from)/tagShare) {
		wg.Go(func() {
			t := newTagger(mac)
			for {
				low := int(next.Add(tagShare)) - tagShare
				for at := low; at < min(low+tagShare, to); at += tagBlock {
					n := min(tagBlock, low+tagShare-at, to-at)
					for i := range n {
						row := uint32(at + i)
						if g.first != nil {
							row = g.first[at+i]
						}
						t.add(appendUnitValue(t.text, c, day, row))
					}
					take(at, t.tags(nil))
				}
				if low >= to {
					return
				}
			}
		})
	}
	wg.Wait()
}

// tagger makes tags of messages, some at a time.
type tagger struct {
	mac      *hashes.MAC
	hasher   hashes.Hasher
	text     []byte // of all messages
	ends     []int
	messages [][]byte
	first    [tagBlock]uint64
}

func newTagger(mac *hashes.MAC) *tagger { return &tagger{mac: mac} }

// add takes the text that has a message more at its end; at most tagBlock of them are tagged together.
func (t *tagger) add(text []byte) {
	t.text = text
	t.ends = append(t.ends, len(text))
}

// tags are those of the messages that were added, until it is called again. second, where it is not nil, gets the next 64 bits of each.
func (t *tagger) tags(second []uint64) []uint64 {
	t.messages = t.messages[:0]
	from := 0
	for _, end := range t.ends {
		t.messages = append(t.messages, t.text[from:end])
		from = end
	}
	first := t.first[:len(t.messages)]
	t.hasher.Tags(t.mac, first, second, t.messages)
	t.text, t.ends = t.text[:0], t.ends[:0]
	return first
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
	byTag := func(a, b uint32) int {
		if c := cmp.Compare(tags[a], tags[b]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	}
	if len(tags) < 1<<16 {
		slices.SortFunc(units, byTag)
		return units
	}
	// Tags are spread evenly, so buckets of their first bits are short, and what is compared lies close together.
	width := bucketBits(len(tags))
	next := make([]uint32, 1<<width+1)
	for _, tag := range tags {
		next[tag>>(64-width)+1]++
	}
	for i := range 1 << width {
		next[i+1] += next[i]
	}
	for u, tag := range tags {
		b := tag >> (64 - width)
		units[next[b]] = uint32(u)
		next[b]++
	}
	for b, from := 0, uint32(0); b < 1<<width; b++ { // next[b] is the end of bucket b now
		slices.SortFunc(units[from:next[b]], byTag)
		from = next[b]
	}
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
	inBand // not decided yet
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

// A side near the border of two parts is not decided by the tag alone, but by its place among the others.
const (
	// bandWidths is how many standard deviations of a binomial law the tag at a place may be from where it is expected: beyond them it is with a probability of 1e-15.
	bandWidths = 8
	// bandLeast is added for tables of few units, in units.
	bandLeast = 64
)

// band are the tags between which the one at a place is that so many of n uniform tags are not above.
type band struct{ low, high uint64 }

func bandOf(place, n int) band {
	p := float64(place) / float64(n)
	width := (bandWidths*math.Sqrt(float64(n)*p*(1-p)) + bandLeast) / float64(n)
	at := func(share float64) uint64 {
		switch {
		case share <= 0:
			return 0
		case share >= 1:
			return math.MaxUint64
		}
		return uint64(share * (1 << 64))
	}
	return band{at(p - width), at(p + width)}
}

// bandUnit is a unit whose tag is in a band.
type bandUnit struct {
	tag  uint64
	unit uint32
}

func (a bandUnit) compare(b bandUnit) int {
	return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.unit, b.unit))
}

// take is splitByTag without a list of all tags: of most units the tag alone tells the side, and only those in the bands of tags where the sides meet are put in order.
func (s splitter) take(g grouping, c *dataset.Column, day bool, size sizes) parts {
	first, second := bandOf(size.holdout, g.n), bandOf(size.holdout+size.check, g.n)
	if size.check == 0 || first.high >= second.low { // the units of both borders are put in order together
		first = band{first.low, second.high}
		second = band{math.MaxUint64, 0} // none
	}
	sides := makeIn[side](g.room, g.n)
	var mu sync.Mutex
	var below, between int
	var near [2][]bandUnit
	s.each(g, c, day, 0, g.n, func(from int, tags []uint64) {
		var mine [2]int
		for i, tag := range tags {
			at := from + i
			switch {
			case tag < first.low:
				sides[at] = inHoldout
				mine[0]++
			case tag <= first.high:
				sides[at] = inBand
			case tag >= second.low && tag <= second.high:
				sides[at] = inBand
			case tag < second.low && second.high != 0:
				sides[at] = inCheck
				mine[1]++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		below, between = below+mine[0], between+mine[1]
		for i, tag := range tags {
			if sides[from+i] == inBand {
				k := 0
				if tag > first.high {
					k = 1
				}
				near[k] = append(near[k], bandUnit{tag, uint32(from + i)})
			}
		}
	})
	for k := range near {
		slices.SortFunc(near[k], bandUnit.compare)
	}
	// The counts tell whether the tags at both places are in their bands.
	heldOut, check := size.holdout-below, size.check
	last := 0 // of the second band, units of the check part
	if second.high != 0 {
		last = size.check - between - (len(near[0]) - heldOut)
		check = len(near[0]) - heldOut
	}
	if heldOut < 0 || check < 0 || heldOut+check > len(near[0]) || last < 0 || last > len(near[1]) {
		return splitByTag(g.room, s.tags(g, c, day), size)
	}
	for i, u := range near[0] {
		switch {
		case i < heldOut:
			sides[u.unit] = inHoldout
		case i < heldOut+check:
			sides[u.unit] = inCheck
		default:
			sides[u.unit] = inTraining
		}
	}
	for i, u := range near[1] {
		sides[u.unit] = inTraining
		if i < last {
			sides[u.unit] = inCheck
		}
	}
	return divide(g.room, sides)
}

// splitByTag takes the first units in keyed order as the holdout, and those behind them as the check part: so a holdout is the same units whatever check part there is.
func splitByTag(r *room, tags []uint64, size sizes) parts {
	sides := makeIn[side](r, len(tags))
	first := func(size int, as side) {
		last, ties := selectTag(tags, size)
		for u, tag := range tags {
			switch {
			case tag > last:
				continue
			case tag == last && ties == 0:
				continue
			case tag == last:
				ties--
			}
			if sides[u] == inTraining {
				sides[u] = as
			}
		}
	}
	first(size.holdout, inHoldout)
	if size.check > 0 {
		first(size.holdout+size.check, inCheck)
	}
	return divide(r, sides)
}

// selectTag returns the tag at place size (from 1) in order, and how many units of that very tag are among the first size. It
// reads the tags in passes, two bytes more each time, so that it needs no order of them.
func selectTag(tags []uint64, size int) (last uint64, ties int) {
	if size <= 0 {
		return 0, 0
	}
	ties = size
	const step = 16
	counts := make([]int, 1<<step)
	for shift := 64 - step; shift >= 0; shift -= step {
		clear(counts)
		for _, tag := range tags {
			if tag>>shift>>step == last {
				counts[tag>>shift&(1<<step-1)]++
			}
		}
		digit := 0
		for ; ties > counts[digit]; digit++ {
			ties -= counts[digit]
		}
		last = last<<step | uint64(digit)
	}
	return last, ties
}

// splitByTime takes the latest units as the holdout, and the latest before them as the check part, which is then more like the holdout than the training part is. A unit is as late as its latest row, so that no training row is
// later than the earliest of the holdout units' latest rows; units without a time are the earliest. Ties go by tag.
func splitByTime(tags []uint64, g grouping, times []float64, size sizes) parts {
	return splitByLatest(g.room, tags, latestOf(g, times), size)
}

// latestOf is the latest of each unit's times.
func latestOf(g grouping, times []float64) []float64 {
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
	return latest
}

// splitByLatest is splitByTime by the latest time of each unit.
func splitByLatest(r *room, tags []uint64, latest []float64, size sizes) parts {
	sides, byTime := makeIn[side](r, len(tags)), allUnits(r, len(tags))
	slices.SortFunc(byTime, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(latest[b], latest[a]), cmp.Compare(tags[a], tags[b]), cmp.Compare(a, b))
	})
	for i, u := range byTime[:size.holdout+size.check] {
		if sides[u] = inCheck; i < size.holdout {
			sides[u] = inHoldout
		}
	}
	return divide(r, sides)
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
				return s, tooManyStrata(c.Name)
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

// tooManyStrata refuses to stratify by a column.
func tooManyStrata(column string) error {
	return invalid("stratify", "the column %q has more than %d values, too many to stratify by", column, MaxStrata)
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
