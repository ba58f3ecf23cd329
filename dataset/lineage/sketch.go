package lineage

import (
	"errors"
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
	// MaxCells is how many cells of a sampled row are kept, those of the smallest hashes: enough to tell whether two rows agree.
	MaxCells = 32

	orders = 2              // independent orders of a row's cells
	first  = 3              // cells of each order that make tokens
	whole  = first * orders // tokens of a row: of one, two and three cells of each order, and of all cells
	kinds  = whole + 1

	// copyBits is how much a row must tell for another one with the same cells to be its copy, and not the same by chance.
	copyBits = 40
	// block is how many rows are hashed together, column by column.
	block = 256
	// examined is about how many rows of a table are looked at more closely than to choose them, and half of it at least. It is large enough for all samples.
	examined = 1 << 15
	// examinedCells are how many cells of such rows are kept at a time, by each processor: 4 MB.
	examinedCells = 1 << 19
)

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
	named   named
	seen    map[uint64]*token  // tokens that were watched for
	met     map[uint64]meeting // by the identity of what was watched for: what was found of rows with names
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

// MaxWatched is how many tokens a watch has at most by default: those of some 300 holdouts of 20 columns. It takes 88 MB then, and 16 MB more.
const MaxWatched = 11 << 20

// maxSeen bounds the rows that are kept because their tokens were watched for, for each processor.
const maxSeen = 1 << 18

// Watch are tokens of sketches that a new table is compared with. Its zero value watches for none. It must not be added to once it was used.
type Watch struct {
	Most   int // tokens that are watched for at most, two cells with names counting as one; 0 is MaxWatched
	size   int
	tokens index
	named  []watched
}

// watched are rows with names that are looked for.
type watched struct {
	named
	level int // of the table
}

// Add watches for the tokens of a sketch. It reports false, and watches for none of them, where that would be more than its most.
func (w *Watch) Add(s *Sketch) bool {
	n := len(s.named.cells) / 2
	for k := range s.samples {
		n += len(s.samples[k].tokens)
	}
	most := w.Most
	if most == 0 {
		most = MaxWatched
	}
	if w.size+n > most {
		return false
	}
	w.size += n
	for k := range s.samples {
		for _, t := range s.samples[k].tokens {
			w.tokens.hashes = append(w.tokens.hashes, t.hash)
		}
	}
	if len(s.named.rows) > 0 {
		w.named = append(w.named, watched{s.named, s.level})
	}
	return true
}

// index finds hashes among many.
type index struct {
	hashes []uint64 // ascending once it is ready
	filter []uint64 // a bit for each value of a hash's low bits
}

// ready sorts the hashes and makes the filter: eight bits or more for each, so that one of eight others is looked up in vain.
func (x *index) ready() {
	if x.filter != nil || len(x.hashes) == 0 {
		return
	}
	slices.Sort(x.hashes)
	x.hashes = slices.Compact(x.hashes)
	size := 64
	for size < 8*len(x.hashes) {
		size *= 2
	}
	x.filter = make([]uint64, size/64)
	for _, hash := range x.hashes {
		at := hash & uint64(size-1)
		x.filter[at/64] |= 1 << (at % 64)
	}
}

func (x *index) has(hash uint64) bool {
	if x.filter == nil {
		return false
	}
	at := hash & uint64(64*len(x.filter)-1)
	if x.filter[at/64]&(1<<(at%64)) == 0 {
		return false
	}
	_, found := slices.BinarySearch(x.hashes, hash)
	return found
}

// New makes the sketch of a table under a key, on all processors, and looks for the tokens of watch on the way. Its memory does not grow with the rows. It fails with
// dataset.ErrDamaged where a mapped table cannot be read.
func New(key Key, t *dataset.Table, watch *Watch) (*Sketch, error) {
	h := newHasher(key)
	if watch == nil {
		watch = new(Watch)
	}
	watch.tokens.ready()
	var columns []*column
	if err := dataset.Guarded(func() {
		for i := range t.Columns() {
			columns = append(columns, newColumn(h, t.Column(i), t.Rows()))
			t.ReleaseAll() // it has looked all over the column
		}
	}); err != nil {
		return nil, err
	}
	level, kept := levelFor(t.Rows(), columns), keptOf(columns)
	search := newSearch(h, t, columns, watch.named, level)
	workers := make([]*worker, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i] = newWorker(h, columns, kept, search.columns, watch, level)
		if stride := t.Stride(); stride > 0 {
			workers[i].near = stride
		}
	}
	if err := throughout(t, func(i, from, to int) { workers[i].choose(from, to) }, func(i int) { workers[i].examine() }); err != nil {
		return nil, err
	}
	s := &Sketch{Rows: int64(t.Rows()), level: level, seen: map[uint64]*token{}}
	s.gather(workers)
	s.named = gatherNamed(workers)
	var err error
	s.met, err = search.run(workers)
	return s, err
}

// throughout calls each with blocks of a table's rows from..to-1, and then done, on all processors i.
func throughout(t *dataset.Table, each func(i, from, to int), done func(i int)) error {
	stride := t.Stride()
	failures := make([]error, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var wait sync.WaitGroup
	for i := range failures {
		wait.Go(func() {
			failures[i] = dataset.Guarded(func() {
				for {
					from := int(next.Add(block)) - block
					if from >= t.Rows() {
						done(i)
						return
					}
					each(i, from, min(from+block, t.Rows()))
					if stride > 0 && from%stride < block {
						t.Release(from-2*stride, from-stride+block)
					}
				}
			})
		})
	}
	wait.Wait()
	t.ReleaseAll()
	return errors.Join(failures...)
}

// gather joins what the workers have found.
func (s *Sketch) gather(workers []*worker) {
	for k := range s.samples {
		total := newBottom[*token](Sample)
		for _, w := range workers {
			total.limit = min(total.limit, w.samples[k].limit)
			for _, t := range w.samples[k].tokens {
				merge(total.tokens, t)
			}
		}
		total.end()
		s.samples[k] = sample{limit: total.limit, tokens: total.sorted()}
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

// bottom collects what has the smallest hashes.
type bottom[T any] struct {
	most   int
	limit  uint64
	tokens map[uint64]T
}

func newBottom[T any](most int) *bottom[T] {
	return &bottom[T]{most: most, limit: math.MaxUint64, tokens: map[uint64]T{}}
}

// prune leaves the smallest ones.
func (b *bottom[T]) prune() {
	if len(b.tokens) <= b.most {
		return
	}
	all := b.hashes()
	b.limit = all[b.most-1]
	for _, hash := range all[b.most:] {
		delete(b.tokens, hash)
	}
}

// end leaves those that all parts have kept, whose limits it was given.
func (b *bottom[T]) end() {
	for hash := range b.tokens {
		if hash > b.limit {
			delete(b.tokens, hash)
		}
	}
	b.prune()
}

func (b *bottom[T]) hashes() []uint64 { return slices.Sorted(maps.Keys(b.tokens)) }

func (b *bottom[T]) sorted() []T {
	all := make([]T, 0, len(b.tokens))
	for _, hash := range b.hashes() {
		all = append(all, b.tokens[hash])
	}
	return all
}

// worker hashes blocks of rows.
type worker struct {
	h       *hasher
	columns []*column
	watch   *Watch
	samples [kinds]*bottom[*token]
	named   *bottom[*keptRow]
	seen    map[uint64]*token
	slab    slab

	level    int
	kept     []int         // columns whose cells are kept with their names
	near     int           // how far behind its last row a worker may examine one
	chosen   []int         // rows that are to be examined, fewer than together
	levels   []uint8       // of their anchors
	byAll    bool          // rows are chosen by all of their cells
	together int           // how many rows are examined together, at most a block
	all      []uint64      // the cells of the rows that are examined, row by row
	contents [block][]cell // of those whose content was asked for
	room     [4 * MaxCells]cell

	cells   [block]uint64
	anchors [block]uint64
	whole   [block]uint64
	ranks   [orders][block][first]float64 // ascending
	least   [orders][block][first]uint64  // the cells of these ranks
}

func newWorker(h *hasher, columns []*column, kept, searched []int, watch *Watch, level int) *worker {
	w := &worker{h: h, columns: columns, watch: watch, seen: map[uint64]*token{}, level: level, near: math.MaxInt, kept: kept, named: newBottom[*keptRow](NamedRows), slab: slab{columns: searched}}
	w.together = min(block, max(1, examinedCells/max(1, len(columns))))
	w.all = make([]uint64, w.together*len(columns))
	w.byAll = !slices.ContainsFunc(columns, func(c *column) bool { return c.chooses })
	for k := range w.samples {
		w.samples[k] = newBottom[*token](Sample)
	}
	return w
}

// choose chooses rows from..to-1, at most a block, and examines what was chosen when it is enough.
func (w *worker) choose(from, to int) {
	if len(w.chosen) > 0 && from-w.chosen[0] >= w.near { // their memory is given back soon
		w.examine()
	}
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
	clear(w.contents[:n])
	for k, c := range w.columns {
		cells := w.cells[:n]
		c.at(cells, w.h, w.chosen)
		for i, cell := range cells {
			w.all[i*len(w.columns)+k] = cell
			if cell == null {
				continue
			}
			w.whole[i] += mix(cell, w.h.token[whole])
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
		}
		w.slab.add(w.chosen[i], w.keep(i), w.all[i*len(w.columns):(i+1)*len(w.columns)])
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
		w.count(b.tokens, hash, i)
		if len(b.tokens) >= 2*b.most {
			b.prune()
		}
	}
	if w.watch.tokens.has(hash) && len(w.seen) < maxSeen {
		w.count(w.seen, hash, i)
	}
}

func (w *worker) count(all map[uint64]*token, hash uint64, i int) {
	if known := all[hash]; known != nil {
		if !known.many {
			known.many = !known.copied(w.whole[i])
		}
		return
	}
	all[hash] = &token{hash: hash, whole: w.whole[i], level: w.levels[i], cells: w.content(i)}
}

// content are the cells of row i of those that are examined: the smallest, ascending, each value once.
func (w *worker) content(i int) []cell {
	if w.contents[i] != nil {
		return w.contents[i]
	}
	cells, bound := w.room[:0], uint32(math.MaxUint32)
	for k, hash := range w.all[i*len(w.columns) : (i+1)*len(w.columns)] {
		if hash == null {
			continue
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
	w.contents[i] = slices.Clone(smallest(cells))
	return w.contents[i]
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
