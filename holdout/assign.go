package holdout

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/hashes"
	"github.com/holdoutd/holdoutd/sources"
)

// assigning decides on which side each unit of a table of a source is, and which number it has there. It reads the units once, keeps a tag of each in a room and no value, and finds a unit
// that comes again by its tag. So some fifty bytes a unit are all that it takes, on disk, and neither the key of the tags nor the order of the numbers leaves the server.
type assigning struct {
	key  []byte // of HMAC-SHA256
	day  bool   // units are days
	cut  int    // bits of a tag that are left away: in tests, so that units share tags; 0 elsewhere
	room *room  // of what is kept of each unit
	most int64  // units that there can be: the table's rows

	largest int64       // LargestUnit, as declared; 0: not
	latest  bool        // the latest time of each unit decides
	stratum string      // the column that does; "": none
	columns []string    // of the key; none: rows are known by their places
	places  bool        // units come with the places of their rows, and those without a value are known by them
	given   *givenSides // on whose sides units are; nil: they are split

	tags  []uint64  // of the units in the order in which they came
	times []float64 // the latest of each; nil where not wanted
	of    []uint32  // the stratum of each, or the part in which it was given; nil where not wanted
	names map[stratumName]uint32
	rows  int64

	shared map[[2]int]int // units that are in two parts that were given, by their numbers
}

// stratumName is a stratum as a source says it.
type stratumName struct {
	text string
	null bool
}

// assignedBytes and placedBytes are what the arrays of a registration take: for each row of the table until its units are counted, and for each unit then.
const (
	assignedBytes = 8 + 8 + 4             // a tag, a time, a stratum
	placedBytes   = 1 + 2*4 + 4 + 8 + 2*4 // a side, two orders, the units of each side, a sorted tag, a place twice
)

// begin makes room for the units of a table.
func (a *assigning) begin() {
	a.tags = makeIn[uint64](a.room, int(a.most))[:0]
	if a.latest {
		a.times = makeIn[float64](a.room, int(a.most))[:0]
	}
	if a.given != nil {
		a.of, a.shared = makeIn[uint32](a.room, int(a.most))[:0], map[[2]int]int{}
	}
	if a.stratum != "" {
		a.of, a.names = makeIn[uint32](a.room, int(a.most))[:0], map[stratumName]uint32{}
	}
}

// add takes some units in.
func (a *assigning) add(u sources.Units) error {
	n := u.Len()
	if int64(len(a.tags)+n) > a.most || len(u.Rows) != n {
		return fmt.Errorf("holdout: the source gives %d units more, after %d of %d rows", n, len(a.tags), a.most)
	}
	for i, rows := range u.Rows {
		if a.largest > 0 && rows > a.largest && a.given == nil { // of a part that is given it is looked later: a unit may be in two
			return tooLargeUnit(a.largest)
		}
		if rows < 1 {
			return fmt.Errorf("holdout: the source gives unit %d of no rows", i)
		}
		a.rows += rows
	}
	if err := a.checkKeys(u); err != nil {
		return err
	}
	first := len(a.tags)
	a.tags = a.tags[:first+n]
	a.tagsOf(u, a.tags[first:], nil)
	if a.latest {
		for _, t := range u.Latest {
			if t != t {
				t = math.Inf(-1) // units without a time are the earliest
			}
			a.times = append(a.times, t)
		}
		if len(u.Latest) != n {
			return fmt.Errorf("holdout: the source gives %d times of %d units", len(u.Latest), n)
		}
	}
	if a.given != nil {
		for i := range n {
			a.of = append(a.of, a.partOf(u, i))
		}
		return nil
	}
	if a.stratum != "" {
		return a.addStrata(u.Strata, n)
	}
	return nil
}

// partOf is the part in which a unit was given. Of one that is in several it counts which: they are refused when all are counted.
func (a *assigning) partOf(u sources.Units, i int) uint32 {
	if !a.places {
		return uint32(a.given.at(int64(u.Keys.Column(0).Numbers[i])))
	}
	places := u.Places[i]
	last := a.given.at(int64(places[len(places)-1])) // they rise, so most units begin and end in the same part
	if a.given.at(int64(places[0])) == last {
		return uint32(last)
	}
	var in []int
	for _, place := range places {
		if part := a.given.at(int64(place)); !slices.Contains(in, part) {
			in = append(in, part)
		}
	}
	for _, x := range in {
		for _, y := range in {
			if x != y {
				a.shared[[2]int{x, y}]++
			}
		}
	}
	return uint32(last)
}

// checkShared refuses units that were given in two parts.
func (a *assigning) checkShared(unit unitRule) error {
	if len(a.shared) == 0 {
		return nil
	}
	number := func(part string) int { return slices.Index(a.given.names, part) }
	for _, pair := range [][2]string{{partCheck, partHoldout}, {partTraining, partHoldout}, {partTraining, partCheck}} {
		if n := a.shared[[2]int{number(pair[0]), number(pair[1])}]; n > 0 {
			return sharedUnits(n, unit, pair[0], pair[1])
		}
	}
	return fmt.Errorf("holdout: units are in two of the parts %q", a.given.names)
}

// checkKeys refuses units without a value, unless they are rows that are units of their own.
func (a *assigning) checkKeys(u sources.Units) error {
	if a.places && len(u.Places) != u.Len() {
		return fmt.Errorf("holdout: the source gives places of %d units, want %d", len(u.Places), u.Len())
	}
	for i := range u.Keys.Columns() {
		c := u.Keys.Column(i)
		for row := range c.Len() {
			if c.Null(row) && !(a.places && len(u.Places[row]) == 1) {
				return fail(BadUpload, "the column %q, by which units are known, is null in some rows: of these nobody can say which belong together. Give them a value, or leave them away", c.Name)
			}
		}
	}
	return nil
}

func (a *assigning) addStrata(c *dataset.Column, n int) error {
	if c == nil || c.Len() != n {
		return fmt.Errorf("holdout: the source gives no strata of %d units", n)
	}
	name, _ := stratumNames(*c)
	for i := range n {
		text, ok := name(i)
		known := stratumName{text, !ok}
		id, found := a.names[known]
		if !found {
			if len(a.names) == MaxStrata {
				return tooManyStrata(a.stratum)
			}
			id = uint32(len(a.names))
			a.names[known] = id
		}
		a.of = append(a.of, id)
	}
	return nil
}

// strata are those of the units, in the order of their names: that of a source is none.
func (a *assigning) strata() strata {
	type named struct {
		name string
		id   uint32
	}
	var all []named
	null := "(null)"
	for {
		if _, taken := a.names[stratumName{text: null}]; !taken {
			break
		}
		null = "(" + null + ")"
	}
	for name, id := range a.names {
		if name.null {
			name.text = null
		}
		all = append(all, named{name.text, id})
	}
	slices.SortFunc(all, func(x, y named) int { return strings.Compare(x.name, y.name) })
	s, rank := strata{of: a.of}, make([]uint32, len(all))
	for i, n := range all {
		rank[n.id] = uint32(i)
		s.names = append(s.names, n.name)
	}
	for u, id := range s.of {
		s.of[u] = rank[id]
	}
	return s
}

// appendUnit appends an injective encoding of a unit's key: that of an upload's unit with the same value, so that a unit is on the same side however its table came. Keys of several
// columns have a letter of their own, and the length of each value.
func (a *assigning) appendUnit(dst []byte, u sources.Units, i int) []byte {
	keys := u.Keys
	c := keys.Column(0)
	switch {
	case a.places && c.Null(i):
		return appendNullUnit(dst, u.Places[i][0])
	case len(a.columns) == 0: // the row's place
		if place := uint64(c.Numbers[i]); place > math.MaxUint32 {
			return binary.BigEndian.AppendUint64(append(dst, 'R'), place)
		}
		return appendUnitValue(dst, nil, false, uint32(c.Numbers[i]))
	case a.day:
		day := c.Numbers[i]
		if c.Kind == dataset.Time {
			day = dayOf(day)
		}
		return binary.BigEndian.AppendUint64(append(dst, 'd'), math.Float64bits(day))
	case keys.Columns() == 1:
		return appendUnitValue(dst, c, false, uint32(i))
	}
	dst = append(dst, 'k')
	for k := range keys.Columns() {
		start := len(dst)
		dst = appendUnitValue(append(dst, 0, 0, 0, 0), keys.Column(k), false, uint32(i))
		binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	}
	return dst
}

// tagsOf writes the first 64 bits of each unit's tag and, where it is not nil, the next.
func (a *assigning) tagsOf(u sources.Units, first, second []uint64) {
	n := u.Len()
	workers := min(runtime.GOMAXPROCS(0), 1+n/4096)
	mac := hashes.NewMAC(a.key)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			t := newTagger(mac)
			to := n * (w + 1) / workers
			for at := n * w / workers; at < to; at += tagBlock {
				some := min(tagBlock, to-at)
				for i := range some {
					t.add(a.appendUnit(t.text, u, at+i))
				}
				var next []uint64
				if second != nil {
					next = second[at : at+some]
				}
				for i, tag := range t.tags(next) {
					first[at+i] = tag >> a.cut
				}
			}
		})
	}
	wg.Wait()
}

// ties are the tags that units share, with room for the next 64 bits of each unit's. Of a hundred million units two share one with a probability of some 3e-4.
func (a *assigning) ties(sorted []uint32) map[uint64]*tie {
	found := map[uint64]*tie{}
	for i := 1; i < len(sorted); i++ {
		if tag := a.tags[sorted[i]]; tag == a.tags[sorted[i-1]] {
			t := found[tag]
			if t == nil {
				t = &tie{units: []uint32{sorted[i-1]}}
				found[tag] = t
			}
			t.units = append(t.units, sorted[i])
		}
	}
	return found
}

// tie is a tag that units share.
type tie struct {
	units []uint32 // in the order in which they came first
	known []tied   // as they came again, by their next bits
}

type tied struct {
	second  uint64
	time    float64
	stratum uint32 // or the part in which it was given
}

// untie tells units that share a tag apart, by reading them again: each gets the place among them that the next bits of its tag have, whatever the order in which a source gives them.
func (a *assigning) untie(ties map[uint64]*tie, u sources.Units) error {
	first, second := make([]uint64, u.Len()), make([]uint64, u.Len())
	a.tagsOf(u, first, second)
	for i, tag := range first {
		t := ties[tag]
		if t == nil {
			continue
		}
		x := tied{second: second[i]}
		if a.latest {
			if x.time = u.Latest[i]; x.time != x.time {
				x.time = math.Inf(-1)
			}
		}
		if a.given != nil {
			x.stratum = a.partOf(u, i)
		}
		if a.stratum != "" {
			name, _ := stratumNames(*u.Strata)
			text, ok := name(i)
			x.stratum = a.names[stratumName{text, !ok}]
		}
		t.known = append(t.known, x)
	}
	return nil
}

// settle gives the units that share tags what they said the second time, in the order of their next bits.
func (a *assigning) settle(ties map[uint64]*tie) error {
	for _, t := range ties {
		if len(t.known) != len(t.units) {
			return changedMeanwhile()
		}
		slices.SortFunc(t.known, func(x, y tied) int { return cmp.Compare(x.second, y.second) })
		slices.Sort(t.units)
		for i, x := range t.known {
			if i > 0 && x.second == t.known[i-1].second {
				return fmt.Errorf("holdout: the source gives a unit twice")
			}
			if a.latest {
				a.times[t.units[i]] = x.time
			}
			if a.stratum != "" || a.given != nil {
				a.of[t.units[i]] = x.stratum
			}
		}
	}
	return nil
}

// changedMeanwhile refuses a table that is not what it was when its units were read first.
func changedMeanwhile() error {
	return fail(SourceChanged, "the table was changed while it was registered; register it again when nobody writes to it, or a copy of it")
}

// assigned are the places of all units.
type assigned struct {
	assigning *assigning
	ties      map[uint64]*tie
	sorted    []uint64 // the tags
	place     []uint32 // of each of them: among the units of all parts, part after part
	start     []uint32 // where the tags of a bucket begin, by their first bits
	shift     int
	first     []int64 // the place of each part's first unit, and the end
	given     []uint64

	mu    sync.Mutex
	units int64
}

// assign gives each unit its place: the parts list their units in the order of their numbers. order lists all units by their tags.
func (a *assigning) assign(r *room, order []uint32, ties map[uint64]*tie, parts ...[]uint32) *assigned {
	n := len(a.tags)
	x := &assigned{assigning: a, ties: ties, first: []int64{0}, given: make([]uint64, n/64+1)}
	place := makeIn[uint32](r, n)
	at := uint32(0)
	for _, units := range parts {
		for _, u := range units {
			place[u] = at
			at++
		}
		x.first = append(x.first, int64(at))
	}
	x.sorted, x.place = makeIn[uint64](r, n), makeIn[uint32](r, n)
	for i, u := range order {
		x.sorted[i], x.place[i] = a.tags[u], place[u]
	}
	width := bucketBits(n)
	x.shift = 64 - a.cut - width
	x.start = make([]uint32, 1<<width+1)
	for _, tag := range x.sorted {
		x.start[tag>>x.shift+1]++
	}
	for i := range 1 << width {
		x.start[i+1] += x.start[i]
	}
	return x
}

// bucketBits is by how many bits n tags are cut into buckets of about sixteen.
func bucketBits(n int) int { return max(0, bits.Len(uint(n))-4) }

// find says where units go that come again. Each comes once.
func (x *assigned) find(u sources.Units, places []sources.Place) error {
	n := u.Len()
	first, second := make([]uint64, n), []uint64(nil)
	if len(x.ties) > 0 {
		second = make([]uint64, n)
	}
	x.assigning.tagsOf(u, first, second)
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, tag := range first {
		low, high := x.start[tag>>x.shift], x.start[tag>>x.shift+1]
		at, ok := slices.BinarySearch(x.sorted[low:high], tag)
		if !ok {
			return changedMeanwhile()
		}
		at += int(low)
		if t := x.ties[tag]; t != nil {
			k, ok := slices.BinarySearchFunc(t.known, second[i], func(known tied, second uint64) int { return cmp.Compare(known.second, second) })
			if !ok {
				return changedMeanwhile()
			}
			at += k
		}
		place := int64(x.place[at])
		if bit := uint64(1) << (place % 64); x.given[place/64]&bit != 0 {
			return fmt.Errorf("holdout: the source gives a unit twice")
		} else {
			x.given[place/64] |= bit
		}
		part := len(x.first) - 2
		for place < x.first[part] {
			part--
		}
		places[i] = sources.Place{Part: part, Number: place - x.first[part]}
	}
	x.units += int64(n)
	return nil
}
