package lineage

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset"
)

const (
	// ownRows is how many rows of the new table are looked for in it, too, which tells how often rows are alike by chance.
	ownRows = 4096
	// tablesTogether is how many tables' rows are looked for at a time: some 350,000 hashes, 10 MB.
	tablesTogether = 32

	// Rows are looked up by all columns that both tables have, and by parts of these: of a column whose values were changed one half at least knows nothing (but once in 256 times), of three a half or a quarter (but once in 200
	// times).
	halves   = 8
	quarters = 8
	maxSets  = 1 + halves + quarters

	// heavy is how many different rows of the own ones have one hash for it to be looked for no more: it says nothing.
	heavy = 3

	// agreeingNamed is the share of what two rows hold in the columns of both tables in which they must agree.
	agreeingNamed = 0.75
	// containedNamed is what the columns of both tables must tell at least to be compared beside many others, where they are nearly all of one table.
	containedNamed = 16
)

// meeting is what was found of some rows with names.
type meeting struct {
	rows                    int  // that were looked for
	alike, equal            int  // of them, that were found: alike to another row, or the same in all columns of both tables
	alikes, equals          int  // rows that they were found in, likewise
	own, ownAlike, ownEqual int  // rows of the new table, and which of them are so to another one
	whole                   bool // all columns of the old table are in the new one
	chance                  strangers
}

// search looks for rows with names in a new table.
type search struct {
	h       *hasher
	table   *dataset.Table
	all     []*column
	columns []int // those whose cells of the examined rows are needed
	groups  []group
	level   int
}

// group are tables that have the same columns in common with the new one.
type group struct {
	columns []int // of the new table, by their names
	tables  []watched
	whole   bool // all rows are looked at, and not only those that are examined
}

// newSearch finds out which rows can be looked for, and by which columns.
func newSearch(h *hasher, t *dataset.Table, columns []*column, tables []watched, level int) *search {
	s := &search{h: h, table: t, all: columns, level: level}
	byColumns, needed := map[string]int{}, map[int]bool{}
	for _, w := range tables {
		common, whole, ok := s.common(w)
		if !ok {
			continue
		}
		key := make([]byte, 0, 4*len(common)+1)
		for _, k := range common {
			key = append(key, byte(k), byte(k>>8), byte(k>>16), byte(k>>24))
		}
		if whole {
			key = append(key, 1)
		}
		at, known := byColumns[string(key)]
		if !known || len(s.groups[at].tables) == tablesTogether {
			at = len(s.groups)
			byColumns[string(key)] = at
			s.groups = append(s.groups, group{columns: common, whole: whole})
		}
		s.groups[at].tables = append(s.groups[at].tables, w)
		if !whole {
			for _, k := range common {
				needed[k] = true
			}
		}
	}
	for k := range columns {
		if needed[k] {
			s.columns = append(s.columns, k)
		}
	}
	return s
}

// common are the columns that the new table has in common with another one, by their names; whether all of its rows must be looked at, for those that are examined are not the same in both; and whether these columns are
// enough of what both tables tell.
func (s *search) common(w watched) (columns []int, whole, ok bool) {
	limit, byName := w.limit(), make(map[uint64]int, len(s.all))
	var told, toldOld, toldNew, choosing, anyChoosing int
	for k, c := range s.all {
		if _, twice := byName[c.name]; twice || c.name > limit {
			continue
		}
		byName[c.name] = k
		toldNew += int(c.tells)
		if c.chooses {
			anyChoosing++
		}
	}
	for _, c := range w.columns {
		toldOld += int(c.tells)
		k, both := byName[c.name]
		if !both {
			if c.chooses {
				anyChoosing++
			}
			continue
		}
		columns = append(columns, k)
		told += int(s.all[k].tells)
		switch {
		case c.chooses && s.all[k].chooses:
			choosing++
		case c.chooses:
			anyChoosing++
		}
	}
	small, large := float64(min(toldOld, toldNew)), float64(max(toldOld, toldNew))
	within := told >= containedNamed*tellsUnit && float64(told) >= contained*small
	ok = len(columns) > 1 && told > 0 && float64(told) >= agreeing*small && (within || float64(told) >= agreeingLarge*large)
	return columns, s.level > 0 && 2*choosing <= anyChoosing, ok
}

// run looks for all of them, and says what was found by the identity of what was looked for.
func (s *search) run(workers []*worker) (map[uint64]meeting, error) {
	met := map[uint64]meeting{}
	if len(s.groups) == 0 {
		return met, nil
	}
	examined := newExamined(s, workers)
	for _, g := range s.groups {
		rows := searched(examined)
		if g.whole {
			rows = wholeTable{s}
		}
		mine, err := rows.own(g.columns)
		if err != nil {
			return nil, err
		}
		hunt := newHunt(s, &g, mine)
		hunters := make([]*hunter, runtime.GOMAXPROCS(0))
		for i := range hunters {
			hunters[i] = newHunter(hunt)
		}
		if err := rows.scan(g.columns, hunters); err != nil {
			return nil, err
		}
		for at, m := range hunt.meetings() {
			met[g.tables[at].identity()] = m
		}
	}
	return met, nil
}

// searched are the rows of the new table that are looked at.
type searched interface {
	// own are some of them, with the cells of some columns, which are looked for in them, too: the same ones whichever processor does what.
	own(columns []int) (own, error)
	// scan shows all of them to hunters, on all processors.
	scan(columns []int, hunters []*hunter) error
}

// own are rows of the new table.
type own struct {
	rows  []int
	cells []uint32 // row by row
}

// slab are the cells of examined rows, by a worker or by all of them.
type slab struct {
	columns []int
	rows    []int
	hashes  []uint64 // of the rows' cells with their names
	cells   []uint32 // row by row
}

func (s *slab) add(row int, hash uint64, cells []uint64) {
	if len(s.columns) == 0 {
		return
	}
	s.rows, s.hashes = append(s.rows, row), append(s.hashes, hash)
	for _, k := range s.columns {
		s.cells = append(s.cells, short(cells[k]))
	}
}

// examinedRows are the rows that were examined.
type examinedRows struct {
	slab
	places []int // of each column of the table, where its cells are in a row of the slab
	order  []int // the places of the own rows: different ones, by a hash of all cells
}

func newExamined(s *search, workers []*worker) *examinedRows {
	e := &examinedRows{slab: slab{columns: s.columns}, places: make([]int, len(s.all))}
	for _, w := range workers {
		e.rows, e.hashes, e.cells = append(e.rows, w.slab.rows...), append(e.hashes, w.slab.hashes...), append(e.cells, w.slab.cells...)
		w.slab = slab{}
	}
	for at, k := range s.columns {
		e.places[k] = at
	}
	e.order = make([]int, len(e.rows))
	for i := range e.order {
		e.order[i] = i
	}
	by := func(i int) uint64 { return mix(e.hashes[i], s.h.set) }
	slices.SortFunc(e.order, func(a, b int) int { return cmp.Or(cmp.Compare(by(a), by(b)), cmp.Compare(e.rows[a], e.rows[b])) })
	e.order = slices.CompactFunc(e.order, func(a, b int) bool { return e.hashes[a] == e.hashes[b] })
	e.order = e.order[:min(len(e.order), ownRows)]
	return e
}

func (e *examinedRows) own(columns []int) (o own, err error) {
	for _, i := range e.order {
		o.rows = append(o.rows, e.rows[i])
		for _, k := range columns {
			o.cells = append(o.cells, e.cells[i*len(e.columns)+e.places[k]])
		}
	}
	return o, nil
}

func (e *examinedRows) scan(columns []int, hunters []*hunter) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	for _, u := range hunters {
		wait.Go(func() {
			for {
				from := int(next.Add(block)) - block
				if from >= len(e.rows) {
					return
				}
				n := min(block, len(e.rows)-from)
				for at, k := range columns {
					for i := range n {
						u.cells[at][i] = e.cells[(from+i)*len(e.columns)+e.places[k]]
					}
				}
				u.look(n, func(i int) int { return e.rows[from+i] })
			}
		})
	}
	wait.Wait()
	return nil
}

// wholeTable are all rows of the table.
type wholeTable struct{ *search }

func (w wholeTable) own(columns []int) (o own, err error) {
	n := min(ownRows, w.table.Rows())
	err = dataset.Guarded(func() {
		for i := range n {
			row := int(int64(i) * int64(w.table.Rows()) / int64(n))
			o.rows = append(o.rows, row)
			for _, k := range columns {
				var cell [1]uint64
				w.all[k].hashes(cell[:], w.h, row)
				o.cells = append(o.cells, short(cell[0]))
			}
		}
		w.table.ReleaseAll()
	})
	return o, err
}

func (w wholeTable) scan(columns []int, hunters []*hunter) error {
	return throughout(w.table, func(i, from, to int) {
		u := hunters[i]
		for at, k := range columns {
			cells := u.room[:to-from]
			w.all[k].hashes(cells, w.h, from)
			for j, cell := range cells {
				u.cells[at][j] = short(cell)
			}
		}
		u.look(to-from, func(j int) int { return from + j })
	}, func(int) {})
}

// hunt looks for rows in a table: those of others and own ones, the targets.
type hunt struct {
	s       *search
	bits    []int // of the columns, by place
	names   []uint64
	sets    [][]int // of each column, the sets of columns that it is in
	n       int     // how many sets there are
	group   *group
	mine    own
	targets []*target
	cells   []uint32 // of the targets, row by row
	hashes  hashes
	ids     []bool // of the columns, which are taken for the id in strangers
}

// target is a row that is looked for.
type target struct {
	table int          // whose row it is; -1 is an own one
	row   int          // of an own one
	live  bool         // it has a hash by which it is looked up
	hits  atomic.Int32 // rows that are alike
	equal atomic.Int32 // rows that are the same in all columns of both tables
}

func newHunt(s *search, g *group, mine own) *hunt {
	h := &hunt{s: s, group: g, mine: mine}
	members := make([]string, maxSets) // of each set, its columns
	for _, k := range g.columns {
		h.bits, h.names = append(h.bits, int(s.all[k].tells)), append(h.names, s.all[k].name)
		name := s.all[k].name
		for set := range maxSets {
			in := true
			switch {
			case set > halves:
				in = name>>(halves+2*(set-halves-1))&3 == 3
			case set > 0:
				in = name>>(set-1)&1 == 1
			}
			members[set] += map[bool]string{true: "x", false: "."}[in]
		}
	}
	h.sets = make([][]int, len(g.columns))
	for set, in := range members {
		if slices.Contains(members[:set], in) {
			continue
		}
		for at := range g.columns {
			if in[at] == 'x' {
				h.sets[at] = append(h.sets[at], h.n)
			}
		}
		h.n++
	}
	h.cells = append(h.cells, mine.cells...)
	for _, row := range mine.rows {
		h.targets = append(h.targets, &target{table: -1, row: row})
	}
	for t, w := range g.tables {
		places := make([]int, len(g.columns))
		for i, name := range h.names {
			places[i] = slices.IndexFunc(w.columns, func(c namedColumn) bool { return c.name == name })
		}
		for r, row := range w.rows {
			if !g.whole && int(row.level) < max(w.level, s.level) {
				continue // it may not be examined in both tables
			}
			h.targets = append(h.targets, &target{table: t})
			for _, p := range places {
				h.cells = append(h.cells, w.cells[r*len(w.columns)+p])
			}
		}
	}
	h.hashes = newHashes(len(h.targets) * h.n)
	for id := range h.targets {
		h.add(int32(id))
	}
	h.thin()
	h.ids = idsOf(h.bits, s.table.Rows())
	return h
}

// of are the cells of a target.
func (h *hunt) of(id int) []uint32 { return h.cells[id*len(h.names) : (id+1)*len(h.names)] }

// hash is that of a set, of the sum of its terms.
func (h *hunt) hash(set int, sum uint64) uint64 { return mix(sum, h.s.h.set+uint64(set)) }

// add adds the hashes of a target.
func (h *hunt) add(id int32) {
	var sums [maxSets]uint64
	for at, cell := range h.of(int(id)) {
		for _, set := range h.sets[at] {
			sums[set] += term(cell, h.names[at])
		}
	}
	for set, sum := range sums[:h.n] {
		if sum != 0 {
			h.hashes.add(h.hash(set, sum), id)
		}
	}
}

// thin drops the hashes that say nothing, which many own rows have. An own row is no reason against itself.
func (h *hunt) thin() {
	for slot, first := range h.hashes.first {
		mine := 0
		for e := first; e != 0; e = h.hashes.entries[e].next {
			if h.targets[h.hashes.entries[e].id].table < 0 {
				mine++
			}
		}
		kept := &h.hashes.first[slot]
		for e := first; e != 0; e = h.hashes.entries[e].next {
			if t := h.targets[h.hashes.entries[e].id]; mine < heavy || mine == heavy && t.table < 0 {
				t.live = true
				*kept = e
				kept = &h.hashes.entries[e].next
			}
		}
		if *kept = 0; h.hashes.first[slot] == 0 && first != 0 {
			h.hashes.first[slot] = first // the slot stays taken
			h.hashes.entries[first] = hashed{hash: h.hashes.entries[first].hash, id: nobody}
		}
	}
}

// nobody is the target of a hash that nothing is looked up by.
const nobody = -1

// hashed are targets by their hashes: a table with linear probing, whose slots have the targets of one hash each.
type hashed struct {
	hash uint64
	id   int32
	next int32 // entry of the same hash; 0 is none
}

type hashes struct {
	first   []int32 // entries by slot; 0 is none
	entries []hashed
}

// newHashes has room for so many.
func newHashes(n int) hashes {
	size := 64
	for size < 2*n {
		size *= 2
	}
	return hashes{first: make([]int32, size), entries: make([]hashed, 1, n+1)}
}

// slot is that of a hash, or the one where it would be.
func (t *hashes) slot(hash uint64) uint64 {
	mask := uint64(len(t.first) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		if e := t.first[at]; e == 0 || t.entries[e].hash == hash {
			return at
		}
	}
}

func (t *hashes) add(hash uint64, id int32) {
	at := t.slot(hash)
	t.entries = append(t.entries, hashed{hash, id, t.first[at]})
	t.first[at] = int32(len(t.entries) - 1)
}

// hunter looks at blocks of rows.
type hunter struct {
	*hunt
	cells [][block]uint32 // by place of the column
	room  [block]uint64
	sums  [maxSets][block]uint64
	last  []int // of each target, one more than the row that it was last compared with
}

func newHunter(h *hunt) *hunter {
	return &hunter{hunt: h, cells: make([][block]uint32, len(h.names)), last: make([]int, len(h.targets))}
}

// look looks at n rows, whose cells were written.
func (u *hunter) look(n int, row func(i int) int) {
	for set := range u.n {
		clear(u.sums[set][:n])
	}
	for at := range u.cells {
		var terms [block]uint64
		for i, cell := range u.cells[at][:n] {
			terms[i] = term(cell, u.names[at])
		}
		for _, set := range u.sets[at] {
			sums := u.sums[set][:n]
			for i := range sums {
				sums[i] += terms[i]
			}
		}
	}
	for i := range n {
		for set := range u.n {
			sum := u.sums[set][i]
			if sum == 0 {
				continue
			}
			for e := u.hashes.first[u.hashes.slot(u.hash(set, sum))]; e != 0; e = u.hashes.entries[e].next {
				if id := u.hashes.entries[e].id; id != nobody {
					u.compare(int(id), i, row(i))
				}
			}
		}
	}
}

// compare compares a target with row i of the block, once.
func (u *hunter) compare(id, i, row int) {
	t := u.targets[id]
	if u.last[id] == row+1 || t.table < 0 && t.row == row {
		return
	}
	u.last[id] = row + 1
	if alike, equal := u.alike(u.of(id), func(at int) uint32 { return u.cells[at][i] }, nil); alike {
		t.hits.Add(1)
		if equal {
			t.equal.Add(1)
		}
	}
}

// alike reports whether two rows agree in most of what they hold, and whether in all, if they had the same values in the columns that are given.
func (h *hunt) alike(a []uint32, b func(at int) uint32, given []bool) (alike, equal bool) {
	told, agreed, equal := 0, 0, true
	for at, cell := range a {
		switch other := b(at); {
		case given != nil && given[at] || cell == other && cell != 0:
			told += h.bits[at]
			agreed += h.bits[at]
		case cell != other:
			told += h.bits[at]
			equal = false
		}
	}
	return agreed > 0 && float64(agreed) >= agreeingNamed*float64(told), equal
}

// meetings counts what was found, by table.
func (h *hunt) meetings() []meeting {
	all := make([]meeting, len(h.group.tables))
	var mine meeting
	for _, t := range h.targets {
		m := &mine
		if t.table >= 0 {
			m = &all[t.table]
		}
		if m.rows++; t.table < 0 && !t.live {
			m.rows-- // it cannot be found
		}
		if n := int(t.hits.Load()); n > 0 {
			m.alike++
			m.alikes += n
		}
		if n := int(t.equal.Load()); n > 0 {
			m.equal++
			m.equals += n
		}
	}
	first := len(h.mine.rows)
	for at := range all {
		m := &all[at]
		m.own, m.ownAlike, m.ownEqual = mine.rows, mine.alike, mine.equal
		m.whole = len(h.names) == len(h.group.tables[at].columns)
		m.chance = h.strangers(first, m.rows)
		first += m.rows
	}
	return all
}

// idBits is how much more than the number of a table's rows columns must tell to be taken for an id of its rows.
const idBits = 2

// idsOf are the columns that tell most, as many as could be an id of each of so many rows, and not all of them: a date and a store are one together.
func idsOf(bits []int, rows int) []bool {
	order := make([]int, len(bits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bits[b], bits[a]) })
	ids, told := make([]bool, len(bits)), 0.0
	for _, at := range order[:len(order)-1] {
		if told >= math.Log2(float64(rows))+idBits {
			break
		}
		ids[at], told = true, told+float64(bits[at])/tellsUnit
	}
	return ids
}

// strangers compares n targets from first on with own rows, as if they had the same id.
func (h *hunt) strangers(first, n int) strangers {
	mine := len(h.mine.rows)
	alike, equal, compared := 0, 0, 0
	for i := range strangersCompared {
		if mine == 0 || n == 0 {
			break
		}
		b := h.of((i + i/n) % mine) // each time around with another one
		a, e := h.alike(h.of(first+i%n), func(at int) uint32 { return b[at] }, h.ids)
		compared++
		if a {
			alike++
		}
		if e {
			equal++
		}
	}
	return newStrangers(alike, equal, compared, min(mine, n))
}
