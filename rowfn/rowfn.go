// Package rowfn is the ground floor of a question: row functions, bounded functions of one row or unit, as small typed trees. Kernels
// evaluate them, engines sum them, and the language (package queries) writes them. It imports nothing of this module.
//
// A row function is a value, not code: it can be compared, counted and sent to another engine. Nothing here knows of text, of JSON, of
// mechanisms or of how a row is stored.
package rowfn

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

// Function is a bounded function of one unit, phi: unit -> [0,1], evaluated exactly in fixed point:
// a row's value v becomes floor((clamp(v, Lo, Hi)-Lo) * (One/(Hi-Lo)) + 0.5), an integer in [0, One].
type Function struct {
	Value   *Node   // Number, or Condition (then Lo, Hi, Null are 0, 1, 0); nil is the constant 1
	Lo, Hi  float64 // Lo < Hi, finite, Hi-Lo finite
	Null    float64 // what a null Value counts as, in [Lo, Hi]
	Where   *Node   // Condition; nil holds everywhere
	PerUnit PerUnit
}

// Type is the type of a node.
type Type uint8

const (
	// Number is a nullable finite float64. Any operation whose result is not finite (1/0, log(-1), overflow) is null,
	// and null in gives null out.
	Number Type = iota + 1
	// Condition is two-valued: a comparison with a null on either side is false.
	Condition
	// Text is a nullable string: a column or a literal, never computed.
	Text
	// Time is a Number of microseconds since 1970-01-01T00:00:00Z.
	Time
)

// String is the type's name in error messages.
func (t Type) String() string {
	switch t {
	case Number:
		return "a number"
	case Condition:
		return "a condition"
	case Text:
		return "text"
	case Time:
		return "a time"
	}
	return "nothing"
}

// Op is the operation of a node.
type Op uint8

const (
	// Leaves.
	OpColumn Op = iota + 1 // Text: the column's name. A Bool column is a Condition (null reads as false).
	OpNumber               // Number: the value (finite). Also Time literals, in microseconds, with Type Time.
	OpText                 // Text: the value
	OpTrue                 // Condition
	OpFalse                // Condition
	OpNull                 // Number: null

	// Number -> Number.
	OpNeg
	OpAbs
	OpLog // natural
	OpExp
	OpSqrt
	OpFloor
	OpCeil

	// Number, Number -> Number. Time - Time is a Number of microseconds.
	OpAdd
	OpSub
	OpMul
	OpDiv // division by zero is null
	OpMin // null if either is null
	OpMax

	// x, lo, hi -> Number: min(max(x, lo), hi); null if any is null.
	OpClamp

	// Condition, T, T -> T for T Number, Time or Condition: both sides are evaluated, one is taken.
	OpIf

	// Number, Number -> Condition (also Time, Time); Eq and Ne also Text, Text. False if either side is null.
	OpLess
	OpLessEq
	OpGreater
	OpGreaterEq
	OpEq
	OpNe

	// Text, then literal Texts -> Condition; Number, then Numbers -> Condition. False if null.
	OpIn
	// Text column, literal Text -> Condition. False if null.
	OpHasPrefix
	OpHasSuffix
	OpContains

	// any column or Number -> Condition. On a Bool column: whether the cell is null.
	OpIsNull

	// Conditions -> Condition. And and Or take two or more.
	OpNot
	OpAnd
	OpOr

	// Time -> Number, UTC, null for null. As CEL counts: months, days of the month and of the year from 0,
	// days of the week from 0 = Sunday; OpDate is the day of the month from 1.
	OpFullYear
	OpMonth
	OpDayOfMonth
	OpDate
	OpDayOfWeek
	OpDayOfYear
	OpHours
	OpMinutes
	OpSeconds
	OpMilliseconds

	// Not of the language; queries with models build them.

	// Text column -> Number: Texts[text], 0 for any other text, Number (which may be NaN) for null.
	OpLookup
	// Numbers -> Number: output Output of Model's scores, before its link. The arguments are the model's features; null if
	// the score is not finite.
	OpScore
	// Number: that of the row in Values, NaN for null. It fits one table only, the one whose rows Values are about.
	OpRow
)

// Node is one node of an expression. Nodes are immutable once built and may be shared.
type Node struct {
	Op     Op
	Type   Type
	Args   []*Node
	Number float64
	Text   string

	Texts  map[string]float64 // OpLookup
	Model  Scorer             // OpScore
	Output int                // OpScore
	Values []float64          // OpRow: one of each row; finite or NaN
}

// MaxBlock is the largest number of rows that kernels, and the models that they call, evaluate together.
const MaxBlock = 1024

// Bits are a bit for each of 256 rows.
type Bits [4]uint64

// Scratch is what a Scorer needs for itself while it computes a block.
type Scratch struct {
	Numbers []float64
	Bits    []Bits
}

// Scorer computes the scores of a model, block by block. It is immutable and safe for concurrent use. Package queries/model has one.
type Scorer interface {
	// ID is the hex digest of the model: two scorers with the same ID have the same scores for the same features.
	ID() string
	// Features is the number of features of a row, which OpScore has as arguments.
	Features() int
	// Outputs is the number of scores of a row.
	Outputs() int
	// Steps is about how many nanoseconds a row takes, whatever the row is.
	Steps() int64
	// Scratch is how many numbers, and how many bits of rows, BlockIn needs for itself.
	Scratch() (numbers, bits int)
	// BlockIn writes the scores of at most MaxBlock rows: dst[k][i] is output k of row i, features[j][i] is feature j of row i, finite
	// or NaN, which is null. What overflows may be infinite or NaN. scratch has what Scratch says, or more, and is written over.
	BlockIn(scratch Scratch, dst, features [][]float64)
}
