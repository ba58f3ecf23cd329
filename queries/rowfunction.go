package queries

import "github.com/holdoutd/holdoutd/rowfn"

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
