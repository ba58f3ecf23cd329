package kernel

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Models. All scores of a model are computed at once, into registers of their own, from which each is copied where it is
// wanted: a model reads features while it writes scores, so it cannot write over what it reads as other steps do.

// scores is a model and what it reads.
type scores struct {
	model    rowfn.Scorer
	features []id // in a step, registers
}

// inputs are the values that a model reads; none without a model.
func (s *scores) inputs() []id {
	if s == nil {
		return nil
	}
	return s.features
}

// lookup lowers a table of numbers by text to one by code.
func (l *lowering) lookup(n *rowfn.Node) (id, error) {
	if len(n.Args) != 1 || n.Args[0] == nil || n.Args[0].Op != rowfn.OpColumn || n.Args[0].Type != rowfn.Text {
		return none, malformed(n, "wants a text column")
	}
	column, ok := l.index[n.Args[0].Text]
	if !ok || l.table.Column(column).Kind != dataset.Text {
		return none, malformed(n, "no text column %q", n.Args[0].Text)
	}
	if math.IsInf(n.Number, 0) {
		return none, malformed(n, "the number of null is infinite")
	}
	t := &table{op: rowfn.OpLookup, dictionary: &l.table.Column(column).Dictionary, null: n.Number}
	bound := math.Abs(orElse(n.Number, 0))
	var key strings.Builder
	for _, text := range slices.Sorted(maps.Keys(n.Texts)) {
		x := n.Texts[text]
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return none, malformed(n, "the number of %q is not finite", text)
		}
		t.literals, t.numbers = append(t.literals, text), append(t.numbers, x)
		bound = max(bound, math.Abs(x))
		fmt.Fprintf(&key, "%q%x", text, math.Float64bits(x))
	}
	return l.add(value{op: opLookup, a: none, b: none, c: none, column: column, k: n.Number, table: t, bound: bound}, key.String()), nil
}

func orElse(x, otherwise float64) float64 {
	if math.IsNaN(x) {
		return otherwise
	}
	return x
}

// score lowers one score of a model.
func (l *lowering) score(n *rowfn.Node) (id, error) {
	if n.Model == nil {
		return none, malformed(n, "has no model")
	}
	s := n.Model
	if len(n.Args) != s.Features() || n.Output < 0 || n.Output >= s.Outputs() {
		return none, malformed(n, "%d features and output %d of a model with %d and %d outputs", len(n.Args), n.Output, s.Features(), s.Outputs())
	}
	inputs := make([]id, len(n.Args))
	for i, a := range n.Args {
		if a == nil || a.Type != rowfn.Number {
			return none, malformed(n, "feature %d is no number", i)
		}
		var err error
		if inputs[i], err = l.node(a); err != nil {
			return none, err
		}
	}
	all := l.add(value{op: opScores, a: none, b: none, c: none, scores: &scores{s, inputs}}, s.ID()+fmt.Sprint(inputs))
	return l.add(bounded(value{op: opScore, a: all, b: none, c: none, aux: uint32(n.Output)}, math.Inf(1)), ""), nil
}

// keepScores gives a model's scores registers, and puts registers in the place of its features' ids.
func (a *assembler) keepScores(s *step) {
	s.first = int32(a.p.scores)
	a.first[id(s.dst)] = s.first
	a.p.scores += s.scores.model.Outputs()
	a.p.features = max(a.p.features, len(s.scores.features))
	numbers, bits := s.scores.model.Scratch()
	a.p.scratch, a.p.bits = max(a.p.scratch, numbers), max(a.p.bits, bits)
	registers := make([]id, len(s.scores.features))
	for i, o := range s.scores.features {
		registers[i] = id(a.at[o])
	}
	s.scores = &scores{s.scores.model, registers}
}

// model runs a step of a model.
func (s *State) model(t *step, dst []float64) {
	n := len(dst)
	switch t.op {
	case opLookup:
		lookup(dst, s.codes[t.a], t.table.list)
	case opScores:
		features := s.features[:len(t.scores.features)]
		for i, r := range t.scores.features {
			features[i] = s.numbers[r][:n]
		}
		out := s.scores[t.first:][:t.scores.model.Outputs()]
		for k := range out {
			out[k] = out[k][:n]
		}
		t.scores.model.BlockIn(s.scratch, out, features)
	case opScore:
		copy(dst, s.scores[t.first+int32(t.aux)])
		finite(dst)
	}
}

func lookup(dst []float64, codes []uint32, list []float64) {
	codes = codes[:len(dst)]
	for i := range dst {
		dst[i] = list[codes[i]]
	}
}
