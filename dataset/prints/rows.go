package prints

import (
	"encoding/binary"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
)

const (
	// SampleRows is how many rows of each part are kept at most. A share of it is known to within a percent or two, and shares below a half percent are not noticed.
	SampleRows = 1 << 12
	// maxCells is how many cells of a row have a token of their own in the sample. The groups are of all cells.
	maxCells = 64
	// groups is how many tokens tell what cells a row has together.
	groups    = 8
	groupBits = 3
)

// Rows is a table that is read as tokens, whole or piece by piece.
type Rows struct {
	key   Key
	rows  int
	whole *piece // nil: it is read piece by piece
	table Pieces
	used  []bool // columns; not those that only number the rows

	err error // that kept a piece from being read
}

// Pieces is a table that may be larger than memory, as tables of its rows, one behind the other.
type Pieces interface {
	Rows() int
	Columns() int
	// Each yields the pieces in order. An error that yield returns ends it and is returned.
	Each(yield func(t *dataset.Table) error) error
}

// piece is some rows of a table.
type piece struct {
	first   int // of them
	rows    int
	columns []column
	table   *dataset.Table
}

// restRows is after how many rows here and there memory of a large table is given back: of each the kernel maps some pages around it, in every column.
const restRows = 256

// oneTable is a table as one piece.
type oneTable struct{ *dataset.Table }

func (t oneTable) Rows() int                                     { return t.Table.Rows() }
func (t oneTable) Each(yield func(t *dataset.Table) error) error { return yield(t.Table) }

// Read prepares a table, which is a part of one that has so many rows in all.
func Read(key Key, t *dataset.Table, inAll int) *Rows {
	r := ReadPieces(key, oneTable{t}, inAll)
	r.whole = &piece{rows: t.Rows(), columns: columnsOf(key.hasher(), t, r.used), table: t}
	return r
}

// ReadPieces is Read of a table that is read piece by piece, once now and once or twice for each use. What keeps it from being read is Err: then nothing that was made of the rows counts.
func ReadPieces(key Key, p Pieces, inAll int) *Rows {
	r := &Rows{key: key, rows: p.Rows(), table: p, used: make([]bool, p.Columns())}
	numberings := make([]*numbering, p.Columns())
	r.err = p.Each(func(t *dataset.Table) error {
		for i := range numberings {
			if c := t.Column(i); c.Kind == dataset.Number {
				if numberings[i] == nil {
					numberings[i] = newNumbering()
				}
				numberings[i].add(c.Numbers, r.rows)
				t.ReleaseAll()
			}
		}
		return nil
	})
	for i, n := range numberings {
		r.used[i] = n == nil || !n.numbers(inAll)
	}
	return r
}

// Len is the number of rows.
func (r *Rows) Len() int { return r.rows }

// Err is what kept a piece from being read; nil of a table that is read whole.
func (r *Rows) Err() error { return r.err }

// each goes through the pieces, unless one could not be read before.
func (r *Rows) each(h *hasher, f func(p *piece)) {
	if r.whole != nil {
		f(r.whole)
		return
	}
	if r.err != nil {
		return
	}
	first := 0
	r.err = r.table.Each(func(t *dataset.Table) error {
		f(&piece{first: first, rows: t.Rows(), columns: columnsOf(h, t, r.used), table: t})
		first += t.Rows()
		return nil
	})
}

// among goes through some rows, which are in order: row is that of the piece, and at its place among them.
func (r *Rows) among(h *hasher, rows []int, f func(p *piece, row, at int)) {
	at := 0
	r.each(h, func(p *piece) {
		for ; at < len(rows) && rows[at] < p.first+p.rows; at++ {
			if at%restRows == 0 {
				p.table.ReleaseAll()
			}
			f(p, rows[at]-p.first, at)
		}
	})
}

// maxGathered bounds the tokens that are gathered of a table that is read piece by piece: 128 MB.
const maxGathered = 1 << 24

// cells yields, of each column, the tokens of some rows, which are in order. Of a table that is read piece by piece and has very many columns it takes fewer of the rows.
func (r *Rows) cells(h *hasher, rows []int, f func(column int, tokens []uint64)) {
	if r.whole != nil {
		tokens := make([]uint64, len(rows))
		for i := range r.whole.columns {
			r.whole.table.ReleaseAll()
			for at, row := range rows {
				tokens[at] = r.whole.columns[i].at(h, row)
			}
			f(i, tokens)
		}
		return
	}
	columns := r.columns()
	if most := max(1, maxGathered/max(1, columns)); len(rows) > most {
		fewer := make([]int, most)
		for i := range fewer {
			fewer[i] = rows[i*len(rows)/most]
		}
		rows = fewer
	}
	tokens := make([][]uint64, columns)
	for i := range tokens {
		tokens[i] = make([]uint64, len(rows))
	}
	r.among(h, rows, func(p *piece, row, at int) {
		for i := range tokens {
			tokens[i][at] = p.columns[i].at(h, row)
		}
	})
	for i, t := range tokens {
		f(i, t)
	}
}

// columns is how many say something of the rows.
func (r *Rows) columns() (n int) {
	for _, used := range r.used {
		if used {
			n++
		}
	}
	return n
}

// tokens appends a row's: those of its cells in the columns that kept names (nil: all), then those of its groups. A token can be there twice.
func (p *piece) tokens(h *hasher, dst []uint64, row int, kept []bool) []uint64 {
	var sums [groups]uint64
	var filled [groups]bool
	for i := range p.columns {
		t := h.cell(p.columns, i, row)
		if t == none {
			continue
		}
		g := t >> (64 - groupBits)
		sums[g] += t
		filled[g] = true
		if kept == nil || kept[i] {
			dst = append(dst, t)
		}
	}
	for g, sum := range sums {
		if filled[g] {
			dst = append(dst, h.group(g, sum))
		}
	}
	return dst
}

// group is the token of a group whose cells' tokens have this sum. The sum knows no order of columns.
func (h *hasher) group(g int, sum uint64) uint64 {
	binary.LittleEndian.PutUint64(h.in[:], sum)
	binary.LittleEndian.PutUint64(h.in[8:], uint64(g)+2)
	return h.token(h.numbers)
}

// keep chooses the columns whose cells have tokens of their own, by how many values they have in these rows; nil is all of them.
func (r *Rows) keep(h *hasher, sample []int) []bool {
	if r.columns() <= maxCells {
		return nil
	}
	type rank struct{ column, values int }
	ranks := make([]rank, r.columns())
	r.cells(h, sample, func(i int, tokens []uint64) {
		seen := map[uint64]struct{}{}
		for _, t := range tokens {
			seen[t] = struct{}{}
		}
		ranks[i] = rank{i, len(seen)}
	})
	slices.SortStableFunc(ranks, func(a, b rank) int { return b.values - a.values })
	kept := make([]bool, len(ranks))
	for _, k := range ranks[:maxCells] {
		kept[k.column] = true
	}
	return kept
}

// inBlocks runs f on all rows of a piece, a block a time, on all processors. Each goroutine has its own worker. Memory of rows that were read is given back.
func inBlocks[W any](p *piece, worker func() W, f func(w W, from, to int), done func(W)) {
	const block = 1 << 12
	rows, stride := p.rows, p.table.Stride()
	workers := min(runtime.GOMAXPROCS(0), 1+rows/block)
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range workers {
		wg.Go(func() {
			w := worker()
			for from := range next {
				f(w, from, min(from+block, rows))
			}
			mu.Lock()
			defer mu.Unlock()
			done(w)
		})
	}
	for from := 0; from < rows; from += block {
		next <- from
		if stride > 0 && from%stride < block {
			p.table.Release(from-2*stride, from-stride+block)
		}
	}
	close(next)
	wg.Wait()
	p.table.ReleaseAll()
}

// maxCopied is about how many rows are looked at for copies: of more, those whose cells have a hash in some share of all hashes, so that the copies of a row are all among them. 64 MB.
const maxCopied = 1 << 23

// Copies is the share of rows that have a copy among the others, cell by cell. telling is false where rows have so few values that copies would come by chance.
func Copies(r *Rows) (share float64, telling bool) { return copies(r, maxCopied) }

func copies(r *Rows, most int) (share float64, telling bool) {
	if r.rows < 2 || r.entropy() < 2*math.Log2(float64(r.rows))+10 {
		return 0, false
	}
	among := uint64(1)
	for uint64(r.rows)/among > uint64(most) {
		among *= 2
	}
	var whole []uint64
	type worker struct {
		*hasher
		found []uint64
	}
	r.each(r.key.hasher(), func(p *piece) {
		inBlocks(p, func() *worker { return &worker{hasher: r.key.hasher().remembering(len(p.columns))} }, func(w *worker, from, to int) {
			for row := from; row < to; row++ {
				sum := uint64(0)
				for i := range p.columns {
					t := w.cell(p.columns, i, row)
					sum += bits.RotateLeft64(t, i) * 0x9e3779b97f4a7c15 // here the columns are the same
				}
				if sum>>32%among == 0 {
					w.found = append(w.found, sum)
				}
			}
		}, func(w *worker) { whole = append(whole, w.found...) })
	})
	slices.Sort(whole)
	copies := 0
	for i, w := range whole {
		if i > 0 && whole[i-1] == w || i+1 < len(whole) && whole[i+1] == w {
			copies++
		}
	}
	return float64(copies) / float64(max(1, len(whole))), true
}

// entropy is, over the columns, the sum of minus the binary logarithm of the probability that two rows of a sample have the same value.
func (r *Rows) entropy() (sum float64) {
	var sample []int
	for row := 0; row < r.rows; row += max(1, r.rows/SampleRows) {
		sample = append(sample, row)
	}
	r.cells(r.key.hasher(), sample, func(_ int, tokens []uint64) {
		counts := map[uint64]float64{}
		for _, t := range tokens {
			counts[t]++
		}
		n, same := float64(len(tokens)), 0.0
		for _, k := range counts {
			same += k * k / (n * n)
		}
		sum -= math.Log2(same)
	})
	return sum
}
