package lineage

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset"
)

const (
	// Sample is how many tokens of each kind a sketch keeps at most. Of a table with fewer it has all. With 1,024, two percent of the rows of a large table are
	// recognised, and a sketch of ten columns takes some 300 KB.
	Sample = 1024
	// NamedSample is that of kinds with names. Where most rows come again, 256 say so as surely as 1,024; nine kinds of so many make a sketch 1.3 times as large, and not 2.3 times.
	NamedSample = 256
	// MaxCells is how many cells of a sampled row are kept, those of the smallest hashes: enough to tell whether two rows agree.
	MaxCells = 32

	orders = 2              // independent orders of a row's cells
	first  = 3              // cells of each order that make tokens
	whole  = first * orders // tokens of a row: of one, two and three cells of each order, and of all cells;
	named  = whole + 1      // of all cells with their columns' names,
	halves = 8              // and of these in half of the columns, by the columns' names
	kinds  = named + 1 + halves

	// copyBits is how much a row must tell for another one with the same cells to be its copy, and not the same by chance.
	copyBits = 40
	// block is how many rows are hashed together, column by column.
	block = 256
	// examined is about how many rows of a table are looked at more closely than to choose them, and half of it at least. It is large enough for all samples.
	examined = 1 << 15
	// examinedCells are how many cells of such rows are kept at a time, by each processor: 4 MB.
	examinedCells = 1 << 19
)

// Cells without names are recognised under any names. Of a table of flags, grades or pixels a row is not told from others by its values, which all rows have, but by which column has which. So there are tokens with
// names, too: of all columns, and of eight halves of them. One column more or less is outside of one half at least, but once in 256 times.

// A row is chosen by its anchor, the smallest hash of those of its cells that tell much; of a table without such, by the hash of all its cells. So two tables choose the same rows, and one
// changed cell makes another choice only where it is the anchor. Of larger tables rows of a higher level are chosen: each level has half of the rows of the one before.

// levelOf is how many zeros an anchor begins with.
func levelOf(anchor uint64) int { return bits.LeadingZeros64(anchor) }

// levelFor is that of the rows that are chosen of a table, by the number of its cells that could be anchors.
func levelFor(rows int, columns []*column) int {
	anchors := 0
	for _, c := range columns {
		if c.chooses {
			anchors += rows
		}
	}
	return bits.Len(uint(max(rows, anchors) / examined))
}

// A Sketch is the sample of a table. It says nothing without the key, if it is kept sealed; see [Sketch.MarshalBinary].
type Sketch struct {
	Rows    int64
	level   int // of the chosen rows, at least
	samples [kinds]sample
	seen    map[uint64]*token // tokens that were watched for
}

// sample has all tokens of one kind that are at most limit, ascending.
type sample struct {
	limit  uint64
	tokens []*token
}

// token is a token with the first row that has it.
type token struct {
	hash  uint64
	whole uint64 // of the row
	level uint8  // of the row's anchor
	many  bool   // other rows have it, too, that are no copies of the first
	cells []cell // of that row
}

// cell is a cell of a row: 28 bits of its hash, and 4 of how much it tells.
type cell uint32

func (c cell) hash() uint32 { return uint32(c) >> 4 }
func (c cell) bits() int    { return int(c & 15) }

// MaxWatched is how many tokens a watch has at most by default: those of some 400 holdouts. It takes 88 MB then, and 16 MB more.
const MaxWatched = 11 << 20

// maxSeen bounds the rows that are kept because their tokens were watched for, for each processor.
const maxSeen = 1 << 18

// Watch are tokens of sketches that a new table is compared with. Its zero value watches for none. It must not be added to once it was used.
type Watch struct {
	Most   int      // tokens that are watched for at most; 0 is MaxWatched
	tokens []uint64 // ascending once it is ready
	filter []uint64 // a bit for each value of a token's low bits
}

// Families of kinds, whose rows are compared by cells of their own.
const (
	nameless = iota
	withNames
	families
)

func familyOf(kind int) int {
	if kind < named {
		return nameless
	}
	return withNames
}

// Add watches for the tokens of a sketch. It reports false, and watches for none of them, where that would be more than its most.
func (w *Watch) Add(s *Sketch) bool {
	n := 0
	for k := range s.samples {
		n += len(s.samples[k].tokens)
	}
	most := w.Most
	if most == 0 {
		most = MaxWatched
	}
	if len(w.tokens)+n > most {
		return false
	}
	for k := range s.samples {
		for _, t := range s.samples[k].tokens {
			w.tokens = append(w.tokens, t.hash)
		}
	}
	return true
}

// ready sorts the tokens and makes the filter: eight bits or more a token, so that one of eight others is looked up in vain.
func (w *Watch) ready() {
	if w.filter != nil || len(w.tokens) == 0 {
		return
	}
	slices.Sort(w.tokens)
	w.tokens = slices.Compact(w.tokens)
	size := 64
	for size < 8*len(w.tokens) {
		size *= 2
	}
	w.filter = make([]uint64, size/64)
	for _, hash := range w.tokens {
		at := hash & uint64(size-1)
		w.filter[at/64] |= 1 << (at % 64)
	}
}

func (w *Watch) has(hash uint64) bool {
	if w.filter == nil {
		return false
	}
	at := hash & uint64(64*len(w.filter)-1)
	if w.filter[at/64]&(1<<(at%64)) == 0 {
		return false
	}
	_, found := slices.BinarySearch(w.tokens, hash)
	return found
}

// New makes the sketch of a table under a key, on all processors, and looks for the tokens of watch on the way. Its memory does not grow with the rows. It fails with
// dataset.ErrDamaged where a mapped table cannot be read.
func New(key Key, t *dataset.Table, watch *Watch) (*Sketch, error) {
	h := newHasher(key)
	if watch == nil {
		watch = new(Watch)
	}
	watch.ready()
	var columns []*column
	if err := dataset.Guarded(func() {
		for i := range t.Columns() {
			columns = append(columns, newColumn(h, t.Column(i), t.Rows()))
			t.ReleaseAll() // it has looked all over the column
		}
	}); err != nil {
		return nil, err
	}
	level := levelFor(t.Rows(), columns)
	stride := t.Stride()
	workers := make([]*worker, runtime.GOMAXPROCS(0))
	failures := make([]error, len(workers))
	var next atomic.Int64
	var wait sync.WaitGroup
	for i := range workers {
		w := newWorker(h, columns, watch, level)
		workers[i] = w
		wait.Go(func() {
			failures[i] = dataset.Guarded(func() {
				for {
					from := int(next.Add(block)) - block
					if from >= t.Rows() {
						w.examine()
						return
					}
					w.choose(from, min(from+block, t.Rows()))
					if stride > 0 && from%stride < block {
						t.Release(from-2*stride, from-stride+block)
					}
				}
			})
		})
	}
	wait.Wait()
	t.ReleaseAll()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	s := &Sketch{Rows: int64(t.Rows()), level: level, seen: map[uint64]*token{}}
	s.gather(workers)
	return s, nil
}

// gather joins what the workers have found.
func (s *Sketch) gather(workers []*worker) {
	for k := range s.samples {
		total := newBottom(k)
		for _, w := range workers {
			total.limit = min(total.limit, w.samples[k].limit)
			for _, t := range w.samples[k].tokens {
				merge(total.tokens, t)
			}
		}
		s.samples[k] = total.sample()
	}
	for _, w := range workers {
		for _, t := range w.seen {
			merge(s.seen, t)
		}
	}
}

// merge adds a token to others.
func merge(all map[uint64]*token, t *token) {
	switch known := all[t.hash]; {
	case known == nil:
		all[t.hash] = t
	case !known.many:
		known.many = t.many || !known.copied(t.whole)
	}
}

// copied reports whether a row of this hash is a copy of the token's row, and not one that is alike by chance.
func (t *token) copied(whole uint64) bool {
	if t.whole != whole {
		return false
	}
	told := 0
	for _, c := range t.cells {
		told += c.bits()
	}
	return told >= copyBits
}

// sampleOf is how many tokens of a kind a sketch keeps.
func sampleOf(kind int) int {
	if familyOf(kind) == withNames {
		return NamedSample
	}
	return Sample
}

// bottom collects the smallest tokens.
type bottom struct {
	most   int
	limit  uint64
	tokens map[uint64]*token
}

func newBottom(kind int) *bottom {
	return &bottom{most: sampleOf(kind), limit: math.MaxUint64, tokens: map[uint64]*token{}}
}

// prune leaves the smallest ones.
func (b *bottom) prune() {
	if len(b.tokens) <= b.most {
		return
	}
	all := slices.Collect(maps.Keys(b.tokens))
	slices.Sort(all)
	b.limit = all[b.most-1]
	for _, hash := range all[b.most:] {
		delete(b.tokens, hash)
	}
}

func (b *bottom) sorted() []*token {
	all := make([]*token, 0, len(b.tokens))
	for _, t := range b.tokens {
		all = append(all, t)
	}
	slices.SortFunc(all, func(x, y *token) int { return cmp.Compare(x.hash, y.hash) })
	return all
}

func (b *bottom) sample() sample {
	for hash := range b.tokens {
		if hash > b.limit {
			delete(b.tokens, hash)
		}
	}
	b.prune()
	return sample{limit: b.limit, tokens: b.sorted()}
}

// worker hashes blocks of rows.
type worker struct {
	h       *hasher
	columns []*column
	watch   *Watch
	samples [kinds]*bottom
	seen    map[uint64]*token

	level    int
	chosen   []int                   // rows that are to be examined, fewer than together
	levels   []uint8                 // of their anchors
	byAll    bool                    // rows are chosen by all of their cells
	together int                     // how many rows are examined together, at most a block
	all      []uint64                // the cells of the rows that are examined, row by row
	contents [families][block][]cell // of those whose content was asked for
	room     [4 * MaxCells]cell

	cells   [block]uint64
	anchors [block]uint64
	whole   [block]uint64
	named   [block]uint64
	halves  [halves][block]uint64
	ranks   [orders][block][first]float64 // ascending
	least   [orders][block][first]uint64  // the cells of these ranks
}

func newWorker(h *hasher, columns []*column, watch *Watch, level int) *worker {
	w := &worker{h: h, columns: columns, watch: watch, seen: map[uint64]*token{}, level: level}
	w.together = min(block, max(1, examinedCells/max(1, len(columns))))
	w.all = make([]uint64, w.together*len(columns))
	w.byAll = !slices.ContainsFunc(columns, func(c *column) bool { return c.chooses })
	for k := range w.samples {
		w.samples[k] = newBottom(k)
	}
	return w
}

// choose chooses rows from..to-1, at most a block, and examines what was chosen when it is enough.
func (w *worker) choose(from, to int) {
	cells, anchors := w.cells[:to-from], w.anchors[:to-from]
	for i := range anchors {
		anchors[i] = math.MaxUint64
	}
	if w.byAll {
		clear(anchors)
	}
	for _, c := range w.columns {
		if !w.byAll && !c.chooses {
			continue
		}
		c.hashes(cells, w.h, from)
		if w.byAll {
			for i, cell := range cells {
				if cell != null {
					anchors[i] += mix(cell, w.h.token[whole])
				}
			}
			continue
		}
		for i, cell := range cells {
			anchors[i] = min(anchors[i], cell-1) // null comes last
		}
	}
	for i, anchor := range anchors {
		if w.byAll {
			anchor = mix(anchor, w.h.rank[0])
		}
		level := levelOf(anchor)
		if level < w.level {
			continue
		}
		w.chosen, w.levels = append(w.chosen, from+i), append(w.levels, uint8(level))
		if len(w.chosen) == w.together {
			w.examine()
		}
	}
}

// examine makes the tokens of the chosen rows.
func (w *worker) examine() {
	n := len(w.chosen)
	for o := range orders {
		for i := range n {
			w.ranks[o][i] = [first]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
			w.least[o][i] = [first]uint64{}
		}
	}
	clear(w.whole[:n])
	clear(w.named[:n])
	for f := range w.contents {
		clear(w.contents[f][:n])
	}
	for half := range w.halves {
		clear(w.halves[half][:n])
	}
	for k, c := range w.columns {
		cells := w.cells[:n]
		c.at(cells, w.h, w.chosen)
		for i, cell := range cells {
			w.all[i*len(w.columns)+k] = cell
			if cell == null {
				continue
			}
			w.whole[i] += mix(cell, w.h.token[whole])
			with := mix(mix(cell, c.name), w.h.token[named])
			w.named[i] += with
			for half := range w.halves {
				if c.name>>half&1 == 1 {
					w.halves[half][i] += with
				}
			}
		}
		if c.weight == 0 {
			continue
		}
		for o := range orders {
			order(w.ranks[o][:n], w.least[o][:n], cells, w.h.rank[o], c.weight)
		}
	}
	for i := range n {
		for o := range orders {
			sum := uint64(0)
			for k, cell := range w.least[o][i] {
				if cell == null {
					break
				}
				sum += cell
				w.add(o*first+k, mix(sum, w.h.token[o*first+k]), i)
			}
		}
		if w.whole[i] != 0 {
			w.add(whole, mix(w.whole[i], w.h.token[whole]), i)
			w.add(named, mix(w.named[i], w.h.token[named]), i)
		}
		for half := range w.halves {
			if sum := w.halves[half][i]; sum != 0 {
				w.add(named+1+half, mix(sum, w.h.token[named+1+half]), i)
			}
		}
	}
	w.chosen, w.levels = w.chosen[:0], w.levels[:0]
}

// order puts the cells of a column into the order of their rows. Ranks are exponential variables divided by weights, so that a cell comes first with a probability
// that is proportional to its weight (Efraimidis and Spirakis 2006); the logarithm is that of the exponent and, between powers of two, linear.
func order(ranks [][first]float64, least [][first]uint64, cells []uint64, key uint64, weight float64) {
	for i, cell := range cells {
		if cell == null {
			continue
		}
		rank := (1087 - float64(math.Float64bits(float64(mix(cell, key)|1)))*0x1p-52) * weight
		r, l := &ranks[i], &least[i]
		if rank >= r[first-1] || cell == l[0] || cell == l[1] {
			continue // a value that a row has twice counts once
		}
		switch {
		case rank < r[0]:
			r[0], r[1], r[2] = rank, r[0], r[1]
			l[0], l[1], l[2] = cell, l[0], l[1]
		case rank < r[1]:
			r[1], r[2] = rank, r[1]
			l[1], l[2] = cell, l[1]
		default:
			r[2], l[2] = rank, cell
		}
	}
}

// add counts a token of a chosen row.
func (w *worker) add(kind int, hash uint64, i int) {
	if b := w.samples[kind]; hash <= b.limit {
		w.count(b.tokens, kind, hash, i)
		if len(b.tokens) >= 2*b.most {
			b.prune()
		}
	}
	if w.watch.has(hash) && len(w.seen) < maxSeen {
		w.count(w.seen, kind, hash, i)
	}
}

func (w *worker) count(all map[uint64]*token, kind int, hash uint64, i int) {
	if known := all[hash]; known != nil {
		if !known.many {
			known.many = !known.copied(w.whole[i])
		}
		return
	}
	all[hash] = &token{hash: hash, whole: w.whole[i], level: w.levels[i], cells: w.content(familyOf(kind), i)}
}

// content are the cells of row i of those that are examined: the smallest, ascending, each value once; with names each of a column is one.
func (w *worker) content(family, i int) []cell {
	if w.contents[family][i] != nil {
		return w.contents[family][i]
	}
	cells, bound := w.room[:0], uint32(math.MaxUint32)
	for k, hash := range w.all[i*len(w.columns) : (i+1)*len(w.columns)] {
		if hash == null {
			continue
		}
		if family == withNames {
			hash = mix(hash, w.columns[k].name)
		}
		if at := uint32(hash >> 36); at <= bound {
			cells = append(cells, cell(at<<4|w.columns[k].bits))
		}
		if len(cells) == cap(cells) {
			if cells = smallest(cells); len(cells) == MaxCells {
				bound = cells[MaxCells-1].hash()
			}
		}
	}
	w.contents[family][i] = slices.Clone(smallest(cells))
	return w.contents[family][i]
}

// smallest sorts cells and leaves the first of them, of each hash the one that tells most.
func smallest(cells []cell) []cell {
	slices.Sort(cells)
	kept := cells[:0]
	for _, c := range cells {
		if last := len(kept) - 1; last >= 0 && kept[last].hash() == c.hash() {
			kept[last] = c // it tells more
			continue
		}
		kept = append(kept, c)
	}
	return kept[:min(len(kept), MaxCells)]
}
