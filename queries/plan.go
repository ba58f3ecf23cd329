package queries

import (
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// What a query compiles to, by the names of package shape, where plans and the shapes of answers are.
type (
	Plan        = shape.Plan
	Description = shape.Description
	Release     = shape.Release
	ReleaseKind = shape.ReleaseKind
	Releaser    = shape.Releaser
	Part        = shape.Part
	Choice      = shape.Choice
	Outcome     = shape.Outcome
	Result      = shape.Result
	Item        = shape.Item
	Verdict     = shape.Verdict
	Range       = shape.Range
)

// The kinds of release, the verdicts, and the limits of ranges.
const (
	Number    = shape.Number
	Vector    = shape.Vector
	Selection = shape.Select

	Yes       = shape.Yes
	No        = shape.No
	Undecided = shape.Undecided

	MaxMagnitude  = shape.MaxMagnitude
	MinWidth      = shape.MinWidth
	MinWidthRatio = shape.MinWidthRatio
)

// ErrSpent is what a Releaser returns for an optional number for which no token is left.
var ErrSpent = shape.ErrSpent

// OneByOne releases a vector as numbers.
var OneByOne = shape.OneByOne

// RowFunction is what a query compiles to, and what engines sum.
type RowFunction = rowfn.Function

// PerUnit says how the rows of one unit make the unit's value.
type PerUnit = rowfn.PerUnit

// The grid of a row function's values and the ways in which rows make a unit, by the names of package rowfn.
const (
	GridBits = rowfn.GridBits
	One      = rowfn.One

	UnitMean  = rowfn.UnitMean
	UnitAny   = rowfn.UnitAny
	UnitShare = rowfn.UnitShare
)
