package prints

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// maxPostings is how many rows of a sample a token may be in that leads to them. Tokens in more rows count where rows are compared, and lead nowhere.
const maxPostings = 16

// index finds rows of samples by tokens.
type index struct {
	rows []indexed

	filter []uint64 // a bit for some bits of each token that leads somewhere: most tokens do not
	shift  int
	slots  []slot // open addressing, by the same bits
	at     []uint32

	// What rows can share at most is told by 64 bits of the other row, before any token is compared: each token has one of them.
	bounds []uint32 // of each row's tokens: the weight, rounded up, above the place of the token's bit
	from   []uint32 // where those of a row begin, and the end
	least  []uint32 // of each row: the weight that it must share, rounded down
}

type indexed struct {
	tokens  []uint64
	weights []float32
	total   float32 // of all weights
	common  float32 // of the tokens that are in too many rows to lead to them
	leads   []bool  // of each token: it is not among those
}

type slot struct {
	token    uint64
	from, to uint32
}

// filterBits is how many bits of the filter there are for each token that leads somewhere, as a power of two.
const filterBits = 4

// spare is a share of a row's weight, above the rounding of its sums: at most 256 weights of single precision.
const spare = 1e-4

const (
	// signShift is the bits of a token that are not its place among 64.
	signShift = 64 - 6
	// boundScale is the unit of weights in bounds: a weight is at most 16, of so many rows of samples as fit into memory.
	boundScale = 1 << 16
)

// newIndex indexes the samples, one after the other.
//
// A row need not be led to by all of its tokens. What agrees with it at the least of the levels has so much of its weight that it has one of the heaviest, those without which the rest does not weigh
// enough (prefix filtering: Chaudhuri, Ganti and Kaushik 2006). They are the rarest, too, so that most rows of an upload lead nowhere.
func newIndex(all ...*Prints) *index {
	x := &index{}
	type entry struct {
		token uint64
		row   uint32
	}
	var entries []entry
	var heavy []int
	for _, p := range all {
		counts := map[uint64]int{}
		for i := range p.rows {
			for _, t := range p.rows[i].tokens {
				counts[t]++
			}
		}
		for i := range p.rows {
			n := len(p.rows[i].tokens)
			r := indexed{tokens: p.rows[i].tokens, weights: make([]float32, n), leads: make([]bool, n)}
			heavy = heavy[:0]
			rest := 0.0 // of the tokens that could lead to the row, what does not
			for j, t := range r.tokens {
				w := float32(math.Log2(float64(len(p.rows)) / float64(counts[t])))
				r.weights[j] = w
				r.total += w
				if counts[t] > maxPostings {
					r.common += w
				} else {
					r.leads[j] = true
					rest += float64(w)
					heavy = append(heavy, j)
				}
			}
			slices.SortStableFunc(heavy, func(a, b int) int { return cmp.Compare(r.weights[b], r.weights[a]) })
			needed := float64(levels[0]-spare)*float64(r.total) - float64(r.common)
			for _, j := range heavy {
				if rest < needed {
					break
				}
				entries = append(entries, entry{r.tokens[j], uint32(len(x.rows))})
				rest -= float64(r.weights[j])
			}
			x.rows = append(x.rows, r)
			x.from = append(x.from, uint32(len(x.bounds)))
			for j, t := range r.tokens {
				x.bounds = append(x.bounds, uint32(math.Ceil(float64(r.weights[j])*boundScale))<<6|uint32(t>>signShift))
			}
			x.least = append(x.least, uint32((levels[0]-ownMargin-spare)*r.total*boundScale))
		}
	}
	x.from = append(x.from, uint32(len(x.bounds)))
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.row, b.row))
	})
	width := max(6, bits.Len(uint(len(entries))))
	x.shift = 64 - width - filterBits
	x.filter = make([]uint64, 1<<(width+filterBits)/64)
	x.slots = make([]slot, 1<<(width+1))
	for i := 0; i < len(entries); {
		t, from := entries[i].token, len(x.at)
		for ; i < len(entries) && entries[i].token == t; i++ {
			x.at = append(x.at, entries[i].row)
		}
		bit := t >> x.shift
		x.filter[bit/64] |= 1 << (bit % 64)
		k := x.slot(bit)
		for x.slots[k].to != 0 {
			k = (k + 1) % len(x.slots)
		}
		x.slots[k] = slot{t, uint32(from), uint32(len(x.at))}
	}
	return x
}

// slot is where the search for a token with this bit of the filter begins.
func (x *index) slot(bit uint64) int { return int(bit >> (filterBits - 1)) }

// postings are the rows that a token leads to.
func (x *index) postings(t uint64) []uint32 {
	bit := t >> x.shift
	if x.filter[bit/64]&(1<<(bit%64)) == 0 {
		return nil
	}
	for k := x.slot(bit); x.slots[k].to != 0; k = (k + 1) % len(x.slots) {
		if s := &x.slots[k]; s.token == t {
			return x.at[s.from:s.to]
		}
	}
	return nil
}

// shared is the weight of the tokens that a row of the sample has in common with these, which are in order, and of those that could lead to it.
func (r *indexed) shared(tokens []uint64) (sum, leading float32) {
	i := 0
	for j, t := range r.tokens {
		for i < len(tokens) && tokens[i] < t {
			i++
		}
		if i < len(tokens) && tokens[i] == t {
			sum += r.weights[j]
			if r.leads[j] {
				leading += r.weights[j]
			}
		}
	}
	return sum, leading
}

// seeker compares rows with those of an index. It is not for concurrent use.
type seeker struct {
	x       *index
	touched []uint32
	sorted  []uint64
}

func newSeeker(x *index) *seeker { return &seeker{x: x} }

// reaches reports whether a row can share as much weight as matters with one whose tokens have these bits.
func (x *index) reaches(row uint32, sign uint64) bool {
	sum := uint32(0)
	for _, b := range x.bounds[x.from[row]:x.from[row+1]] {
		sum += b >> 6 & -uint32(sign>>(b&63)&1)
	}
	return sum >= x.least[row]
}

// each yields the rows of the index that can agree with a row of these tokens at the least of the levels, by the tokens that are not common, with the weight that they share. Of rows that share less than
// the lowest level at which anything is counted, ownMargin below the least, none need be yielded.
func (s *seeker) each(tokens []uint64, yield func(row uint32, shared float32)) {
	s.touched = s.touched[:0]
	for _, t := range tokens {
		s.touched = append(s.touched, s.x.postings(t)...)
	}
	if len(s.touched) == 0 {
		return
	}
	sign := uint64(0)
	for _, t := range tokens {
		sign |= 1 << (t >> signShift)
	}
	s.touched = slices.DeleteFunc(s.touched, func(row uint32) bool { return !s.x.reaches(row, sign) })
	if len(s.touched) == 0 {
		return
	}
	slices.Sort(s.touched)
	s.sorted = append(s.sorted[:0], tokens...)
	slices.Sort(s.sorted)
	for _, row := range slices.Compact(s.touched) {
		r := &s.x.rows[row]
		if shared, leading := r.shared(s.sorted); leading+r.common >= levels[0]*r.total {
			yield(row, shared)
		}
	}
}

// seek raises best, for each row of the index, to the weight that it shares with the row of r that shares the most. Rows in skip are not looked at.
func (x *index) seek(r *Rows, skip map[int]struct{}, best []float32) {
	type worker struct {
		*seeker
		h      *hasher
		tokens []uint64
		best   []float32
	}
	r.each(r.key.hasher(), func(p *piece) {
		inBlocks(p, func() *worker {
			return &worker{seeker: newSeeker(x), h: r.key.hasher().remembering(len(p.columns)), best: make([]float32, len(x.rows))}
		}, func(w *worker, from, to int) {
			for row := from; row < to; row++ {
				if _, is := skip[p.first+row]; is {
					continue
				}
				w.tokens = p.tokens(w.h, w.tokens[:0], row, nil)
				w.each(w.tokens, func(found uint32, shared float32) {
					if shared > w.best[found] {
						w.best[found] = shared
					}
				})
			}
		}, func(w *worker) {
			for i, b := range w.best {
				best[i] = max(best[i], b)
			}
		})
	})
}
