package model

import (
	"math"

	"github.com/holdoutd/holdoutd/rowfn"
)

var _ rowfn.Scorer = (*Scorer)(nil)

// Scorer computes the scores of blocks of rows. It is immutable.
type Scorer struct {
	of       *Model
	features int
	outputs  int
	form     evaluator
}

// evaluator is a form of models, as Scorer asks it. Its block takes the same steps for every row.
type evaluator interface {
	scratch() (numbers, bits int) // that block needs for itself
	steps() int64                 // about how many nanoseconds block takes for a row
	bytes() int64                 // in memory, beside weights and texts
}

// ID tells scorers apart: two with the same ID have the same scores for the same features. It is the model's.
func (s *Scorer) ID() string { return s.of.id }

// Outputs is the number of scores of a row.
func (s *Scorer) Outputs() int { return s.outputs }

// Features is the number of features of a row.
func (s *Scorer) Features() int { return s.features }

// MaxBlock is the largest number of rows of a block.
const MaxBlock = rowfn.MaxBlock

// Scratch is how many numbers, and how many bits of rows, BlockIn needs for itself.
func (s *Scorer) Scratch() (numbers, bits int) { return s.form.scratch() }

// MakeScratch makes what BlockIn needs for itself.
func (s *Scorer) MakeScratch() rowfn.Scratch {
	numbers, bits := s.Scratch()
	return rowfn.Scratch{Numbers: make([]float64, numbers), Bits: make([]rowfn.Bits, bits)}
}

// Steps is about how many nanoseconds BlockIn takes for a row: walks of trees are as deep as the tree, whatever the row is.
func (s *Scorer) Steps() int64 { return s.form.steps() }

// linearOutput is intercept + sum of weight · feature, added from the first term to the last with one rounding each.
type linearOutput struct {
	intercept float64
	terms     []term
}

type term struct {
	feature int
	weight  float64
	null    float64 // what a null counts as
}

// Block writes the scores of a block: dst[k][i] is output k of row i, features[j][i] is feature j of row i, with all slices of
// one length, at most MaxBlock. Features are finite or NaN, which is null. What overflows is infinite or NaN.
func (s *Scorer) Block(dst, features [][]float64) {
	s.BlockIn(s.MakeScratch(), dst, features)
}

// BlockIn is Block that does not allocate. scratch has what Scratch says, or more, and is written over.
func (s *Scorer) BlockIn(scratch rowfn.Scratch, dst, features [][]float64) {
	switch f := s.form.(type) { // known calls: through the interface, what is made for a block would be on the heap
	case linearOutputs:
		f.block(dst, features)
	case *forest:
		f.block(dst, features, scratch)
	case *network:
		f.block(dst, features, scratch.Numbers)
	case *kernel:
		f.block(dst, features, scratch.Numbers)
	case *neighbors:
		f.block(dst, features, scratch.Numbers)
	case *mixture:
		f.block(dst, features, scratch)
	}
}

// linearOutputs are linear models, one for each output.
type linearOutputs []linearOutput

func (linearOutputs) scratch() (numbers, bits int) { return 0, 0 }

func (linearOutputs) bytes() int64 { return 0 }

func (l linearOutputs) steps() (steps int64) {
	for i := range l {
		steps += 1 + int64(len(l[i].terms))
	}
	return steps
}

func (l linearOutputs) block(dst, features [][]float64) {
	for k := range l {
		l[k].block(dst[k], features)
	}
}

// block adds four terms in one pass, so that sums are loaded and stored a quarter as often.
func (l *linearOutput) block(dst []float64, features [][]float64) {
	for i := range dst {
		dst[i] = l.intercept
	}
	terms := l.terms
	for ; len(terms) >= 4; terms = terms[4:] {
		a, b, c, d := &terms[0], &terms[1], &terms[2], &terms[3]
		addFour(dst, features[a.feature], features[b.feature], features[c.feature], features[d.feature],
			[4]float64{a.weight, b.weight, c.weight, d.weight},
			[4]uint64{math.Float64bits(a.null), math.Float64bits(b.null), math.Float64bits(c.null), math.Float64bits(d.null)})
	}
	for _, t := range terms {
		addOne(dst, features[t.feature], t.weight, math.Float64bits(t.null))
	}
}

// orElse is x, or the number with the bits null where x is NaN, without a branch.
func orElse(x float64, null uint64) float64 {
	v := math.Float64bits(x)
	if x != x {
		v = null
	}
	return math.Float64frombits(v)
}

func addOne(dst, a []float64, w float64, null uint64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = math.FMA(w, orElse(a[i], null), dst[i])
	}
}

func addFour(dst, a, b, c, d []float64, w [4]float64, null [4]uint64) {
	a, b, c, d = a[:len(dst)], b[:len(dst)], c[:len(dst)], d[:len(dst)]
	for i, sum := range dst {
		sum = math.FMA(w[0], orElse(a[i], null[0]), sum)
		sum = math.FMA(w[1], orElse(b[i], null[1]), sum)
		sum = math.FMA(w[2], orElse(c[i], null[2]), sum)
		dst[i] = math.FMA(w[3], orElse(d[i], null[3]), sum)
	}
}
