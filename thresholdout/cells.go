package thresholdout

import (
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// MethodCells is the name of its method, and of the bound that its answers name.
const MethodCells = "cells"

// minCells: of one cell nothing is asked.
const minCells = 2

// widestCells is the half-width from which on an interval around one half says nothing.
const widestCells = 0.5

var cellsKind = Kind{
	Name:  Cells,
	Says:  "answers every question about declared cells (columns with listed values and edges) with the exact holdout mean, at one half-width however many are asked; refuses all other questions",
	Takes: []string{ParamCells},
	Assumes: "the cells were declared without a look at the held-out rows. Every question must be constant on each cell, and is refused where it is not. " +
		"Answers are exact: whoever asks enough knows the share of the held-out units in every cell",
	Variants: []Variant{{"", (*cells)(nil)}},
	Methods: []Method{{Name: MethodCells, Formula: "min(sqrt((m ln 2 + ln(1/β))/(2n)), sqrt((m-1)/n)/2 + sqrt(ln(1/β)/(2n))) for m declared cells, whatever k is; by the first also Chernoff's interval",
		Source: "Hoeffding 1963, Bretagnolle, Huber, Carol, McDiarmid 1989, [proof](proofs/cells.md)", Published: "yes"}},
	Plan: planCells,
	Read: ReadAs[cells],
}

// cells releases the exact holdout mean of functions of a cell. All of them are near their expectations together, so that no answer costs a later one anything (docs/proofs/cells.md).
type cells struct {
	Head
	Count int64 `json:"cells" doc:"m, how many cells are declared"`
	Sets  bool  `json:"sets,omitempty" doc:"intervals are united over the sets of cells, and narrower for means near 0 and 1; else they rest on how far the cells' shares are expected to be off"`
}

func planCells(s Spec) (Mechanism, error) {
	s = s.orDefault(DefaultCellsQuestions)
	if s.Cells == 0 {
		return nil, wrong(ParamCells, "is missing: declare the columns that questions are about, with their values and edges")
	}
	m := &cells{Head: s.Head(), Count: s.Cells}
	m.Sets = m.by(true) <= m.by(false)
	if m.HalfWidth = m.by(m.Sets); m.HalfWidth >= widestCells {
		return nil, wrong(ParamCells, "%d cells of %d held-out units have ±%.2g, which says nothing; declare fewer columns, values or edges, or hold out more units", s.Cells, s.N, m.HalfWidth)
	}
	return m, nil
}

// by is the half-width by one of the two bounds.
func (m *cells) by(sets bool) float64 {
	if sets {
		return bounds.CellsBySets(m.N, m.Count, m.Beta())
	}
	return bounds.CellsBySpread(m.N, m.Count, m.Beta())
}

// DeclaredCells implements [Celled].
func (m *cells) DeclaredCells() int64 { return m.Count }

// Release implements [Mechanism].
func (m *cells) Release(s State, in Input, _ Noise) (Output, Memory, error) {
	out := Output{Value: in.Holdout.value(0), Source: FromHoldout}
	out.Interval = m.interval(out.Value, m.HalfWidth)
	return out, s.Memory, nil
}

// interval is that of a mean. By sets Chernoff's is within it, at the same level of every set.
func (m *cells) interval(value, halfWidth float64) *Interval {
	i := around(value, halfWidth, MethodCells, nil)
	if m.Sets {
		low, high := chernoffOf(m.N, value, bounds.CellsLevel(m.Count, m.Beta()))
		i.Low, i.High, i.Bound = max(low, i.Low), min(high, i.High), MethodCells+"+chernoff"
	}
	i.Parts = map[string]float64{"sampling": max(i.High-value, value-i.Low)}
	return i
}

// Preview implements [Mechanism].
func (m *cells) Preview(_ State, value float64) *Interval { return m.interval(value, m.HalfWidth) }

// Promise implements [Mechanism].
func (m *cells) Promise(State) (Promise, bool) {
	return Promise{HalfWidth: m.HalfWidth, Parts: map[string]float64{"sampling": m.HalfWidth}}, true
}

// At implements [Levels]: by the bound that was planned, so that intervals of lower levels contain those of higher ones.
func (m *cells) At(_ State, o Output, level float64) (low, high float64, ok bool) {
	h, ok := m.at(level)
	if !ok {
		return 0, 0, false
	}
	other := &cells{Head: h, Count: m.Count, Sets: m.Sets}
	return other.interval(o.Value, other.by(m.Sets)).ends()
}
