package prints

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Prints are what is kept of a table: a sample of the rows of each of its parts.
type Prints struct {
	rest    int64 // rows of the table, in all parts, that are not sampled
	sampled int64 // rows of the sample, before those that agree with another one were left out
	rows    []printed
}

// printed is a row of the sample.
type printed struct {
	part   uint8
	place  uint16   // in the sample, which is in a random order
	chance float32  // how well the best of the rows that are not sampled agrees with it, 0 to 1
	tokens []uint64 // in order, each once
}

// MaxParts is how many parts a table may have.
const MaxParts = 8

// Make makes the prints of a table from its parts, of which some may be nil. seed decides which rows are sampled; the same seed and rows make the same prints.
func Make(key Key, seed [32]byte, parts []*Rows) *Prints {
	if len(parts) > MaxParts {
		panic("prints: too many parts")
	}
	p := &Prints{}
	h := key.hasher()
	random := rand.New(rand.NewChaCha8(seed))
	skip := make([]map[int]struct{}, len(parts)) // the sample: what it is compared with is not in it
	for i, part := range parts {
		if part == nil {
			continue
		}
		sample := chosen(random, part.rows, min(SampleRows, (part.rows+1)/2))
		p.rest += int64(part.rows - len(sample))
		kept := part.keep(h, sample)
		skip[i] = make(map[int]struct{}, len(sample))
		for _, row := range sample {
			skip[i][row] = struct{}{}
		}
		part.among(h, sample, func(of *piece, row, _ int) {
			p.rows = append(p.rows, printed{part: uint8(i), tokens: unique(of.tokens(h, nil, row, kept))})
		})
	}
	random.Shuffle(len(p.rows), func(i, j int) { p.rows[i], p.rows[j] = p.rows[j], p.rows[i] })
	p.sampled = int64(len(p.rows))
	// Of rows that agree with each other, such as those of one patient, the first is kept: what is counted later are agreements of their own. Which are kept is decided by the
	// sample alone, so that beside it the rest of the table and fresh rows are alike.
	x := newIndex(p)
	kept, gone := 0, make([]bool, len(p.rows))
	s := newSeeker(x)
	for i := range p.rows {
		p.rows[i].place = uint16(i)
		s.each(p.rows[i].tokens, func(row uint32, shared float32) {
			if int(row) < i && !gone[row] && shared >= levels[0]*x.rows[row].total {
				gone[i] = true
			}
		})
	}
	for i := range p.rows {
		if !gone[i] && x.rows[i].total > 0 {
			p.rows[kept] = p.rows[i]
			kept++
		}
	}
	p.rows = slices.Clip(p.rows[:kept])
	x = newIndex(p)
	best := make([]float32, len(p.rows))
	for i, part := range parts {
		if part != nil {
			x.seek(part, skip[i], best)
		}
	}
	for i := range p.rows {
		p.rows[i].chance = min(1, best[i]/x.rows[i].total)
	}
	return p
}

// chosen are up to most of n rows, in order, each set of them as likely as any other.
func chosen(random *rand.Rand, n, most int) []int {
	if n <= most {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	set := make(map[int]struct{}, most) // Floyd's algorithm
	for i := n - most; i < n; i++ {
		row := random.IntN(i + 1)
		if _, is := set[row]; is {
			row = i
		}
		set[row] = struct{}{}
	}
	rows := make([]int, 0, most)
	for row := range set {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return rows
}

func unique(tokens []uint64) []uint64 {
	slices.Sort(tokens)
	return slices.Clip(slices.Compact(tokens))
}

// Version is that of the stored form.
const Version = 1

const header = "holdoutd prints "

// ErrVersion is of prints that another version of the program has made.
var ErrVersion = errors.New("prints: unknown version")

// Bytes are the stored form (docs/format/prints.md).
func (p *Prints) Bytes() []byte {
	b := append([]byte(header), Version)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.rest))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.sampled))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.rows)))
	for _, r := range p.rows {
		b = append(b, r.part, uint8(len(r.tokens)))
		b = binary.LittleEndian.AppendUint16(b, r.place)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(r.chance))
		for _, t := range r.tokens {
			b = binary.LittleEndian.AppendUint64(b, t)
		}
	}
	return b
}

// Parse reads the stored form.
func Parse(b []byte) (*Prints, error) {
	damaged := func(what string) (*Prints, error) { return nil, fmt.Errorf("prints: %s", what) }
	const fixed, each = len(header) + 1 + 8 + 4 + 4, 2 + 2 + 4
	switch {
	case len(b) < fixed || string(b[:len(header)]) != header:
		return damaged("no prints")
	case b[len(header)] != Version:
		return nil, fmt.Errorf("%w %d: use the holdoutd that wrote them, or a newer one", ErrVersion, b[len(header)])
	}
	p := &Prints{rest: int64(binary.LittleEndian.Uint64(b[len(header)+1:])), sampled: int64(binary.LittleEndian.Uint32(b[len(header)+9:]))}
	n := binary.LittleEndian.Uint32(b[fixed-4:])
	if b = b[fixed:]; p.rest < 0 || p.sampled < int64(n) || int64(n) > int64(len(b)/each) {
		return damaged("fewer rows than they say")
	}
	p.rows = make([]printed, n)
	for i := range p.rows {
		if len(b) < each {
			return damaged("cut off")
		}
		r, k := &p.rows[i], int(b[1])
		r.part, r.place, r.chance = b[0], binary.LittleEndian.Uint16(b[2:]), math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
		if b = b[each:]; r.part >= MaxParts || !(r.chance >= 0 && r.chance <= 1) || k == 0 || len(b) < 8*k {
			return damaged(fmt.Sprintf("row %d is none", i))
		}
		r.tokens = make([]uint64, k)
		for j := range r.tokens {
			r.tokens[j] = binary.LittleEndian.Uint64(b[8*j:])
			if j > 0 && r.tokens[j] <= r.tokens[j-1] {
				return damaged(fmt.Sprintf("the tokens of row %d are not in order", i))
			}
		}
		b = b[8*k:]
	}
	if len(b) > 0 {
		return damaged("more than they say")
	}
	return p, nil
}
