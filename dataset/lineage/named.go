package lineage

import (
	"cmp"
	"math"
	"slices"
)

const (
	// NamedRows is how many rows a sketch keeps at most with the names of their columns. With 512, three percent of a table's rows are recognised.
	NamedRows = 512
	// NamedColumns is how many cells of each are kept at most: those of the columns whose names have the smallest hashes, so that two tables keep the same ones.
	NamedColumns = 256
)

// A table of flags, grades or pixels has rows that their values do not tell apart, which all rows have: only which column has which does. So a sketch keeps some rows with names, cell by cell. A new table is searched for them by
// the columns that both have, whatever columns came or went.

// named are some rows of a table, of the smallest hashes, with the columns that their cells are of.
type named struct {
	columns []namedColumn // ascending
	rows    []namedRow    // ascending
	cells   []uint32      // row by row; 0 where there is no value
}

type namedColumn struct {
	name    uint64 // the hash of its name
	tells   uint16 // how much a cell tells, in parts of tellsUnit
	chooses bool   // its cells choose rows
}

type namedRow struct {
	hash   uint64
	level  uint8  // of its anchor
	copies uint16 // of the table's rows, this one and those that have the same cells
}

// keptRow is a row with its cells.
type keptRow struct {
	namedRow
	cells []uint32
}

// limit is the largest hash of a name such that all columns up to it are kept.
func (n *named) limit() uint64 {
	if len(n.columns) < NamedColumns {
		return math.MaxUint64
	}
	return n.columns[len(n.columns)-1].name
}

// identity tells one sample from others.
func (n *named) identity() uint64 {
	id := uint64(len(n.rows))
	for _, c := range n.columns {
		id = mix(id, c.name)
	}
	for _, r := range n.rows {
		id = mix(id, r.hash)
	}
	return id
}

// distinct is how many different rows a table of so many rows has, by the copies of its sample.
func (n *named) distinct(rows int64) float64 {
	copies := 0
	for _, r := range n.rows {
		copies += int(r.copies)
	}
	return float64(rows) * float64(len(n.rows)) / float64(max(1, copies))
}

// keptOf are the columns of a table whose cells are kept with their names, in the order of these. Of two columns of one name, but for case and spaces, it is the first.
func keptOf(columns []*column) []int {
	kept := make([]int, len(columns))
	for k := range kept {
		kept[k] = k
	}
	byName := func(a, b int) int { return cmp.Compare(columns[a].name, columns[b].name) }
	slices.SortStableFunc(kept, byName)
	kept = slices.CompactFunc(kept, func(a, b int) bool { return columns[a].name == columns[b].name })
	return kept[:min(len(kept), NamedColumns)]
}

// short is what is kept of a cell's hash.
func short(cell uint64) uint32 {
	if cell == null {
		return 0
	}
	return max(1, uint32(cell>>32))
}

// term is what a cell adds to a hash of cells with names: a multilinear hash (Carter and Wegman 1979), whose factors are the names'. Without a value it adds nothing.
func term(cell uint32, name uint64) uint64 { return uint64(cell) * (name | 1) }

// keep counts row i of those that are examined for the sample of rows with names. It returns the hash of its cells with their names.
func (w *worker) keep(i int) (hash uint64) {
	all, sum := w.all[i*len(w.columns):(i+1)*len(w.columns)], uint64(0)
	for _, k := range w.kept {
		sum += term(short(all[k]), w.columns[k].name)
	}
	hash = mix(sum, w.h.named)
	if hash > w.named.limit || sum == 0 {
		return hash
	}
	if known := w.named.tokens[hash]; known != nil {
		known.add(1)
		return hash
	}
	row := &keptRow{namedRow{hash: hash, level: w.levels[i], copies: 1}, make([]uint32, len(w.kept))}
	for at, k := range w.kept {
		row.cells[at] = short(all[k])
	}
	if w.named.tokens[hash] = row; len(w.named.tokens) >= 2*NamedRows {
		w.named.prune()
	}
	return hash
}

// add counts copies, as far as they can be counted.
func (r *namedRow) add(copies uint16) { r.copies += min(copies, math.MaxUint16-r.copies) }

// gatherNamed joins what the workers have kept.
func gatherNamed(workers []*worker) named {
	total := newBottom[*keptRow](NamedRows)
	for _, w := range workers {
		total.limit = min(total.limit, w.named.limit)
		for hash, row := range w.named.tokens {
			if known := total.tokens[hash]; known != nil {
				known.add(row.copies)
			} else {
				total.tokens[hash] = row
			}
		}
	}
	total.end()
	var all named
	for _, k := range workers[0].kept {
		c := workers[0].columns[k]
		all.columns = append(all.columns, namedColumn{c.name, c.tells, c.chooses})
	}
	for _, row := range total.sorted() {
		all.cells = append(all.cells, row.cells...)
		all.rows = append(all.rows, row.namedRow)
	}
	return all
}
