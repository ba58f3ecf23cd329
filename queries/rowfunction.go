package queries

import "github.com/holdoutd/holdoutd/queries/expr"

// GridBits: a row function's value is rounded to a multiple of 2^-GridBits; One is the integer that stands for 1.
const (
	GridBits = 30
	One      = int64(1) << GridBits
)

// PerUnit says how the rows of one unit make the unit's value. Where units are single rows all three are the
// value of the row, or 0 where Where does not hold.
type PerUnit uint8

const (
	// UnitMean is the mean of the row values over the unit's rows in which Where holds; 0 if there are none.
	UnitMean PerUnit = iota
	// UnitAny is 1 if Where holds in any row of the unit, else 0. Value is not used.
	UnitAny
	// UnitShare is the sum of the row values over the unit's rows in which Where holds, divided by the unit's number
	// of rows m and multiplied by min(m, Cap)/Cap, where Cap is the table's declared largest unit.
	UnitShare
)

// RowFunction is a bounded function of one unit, phi: unit -> [0,1], evaluated exactly in fixed point:
// a row's value v becomes floor((clamp(v, Lo, Hi)-Lo) * (One/(Hi-Lo)) + 0.5), an integer in [0, One].
type RowFunction struct {
	Value   *expr.Node // Number, or Condition (then Lo, Hi, Null are 0, 1, 0); nil is the constant 1
	Lo, Hi  float64    // Lo < Hi, finite, Hi-Lo finite
	Null    float64    // what a null Value counts as, in [Lo, Hi]
	Where   *expr.Node // Condition; nil holds everywhere
	PerUnit PerUnit
}
