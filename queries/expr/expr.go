// Package expr is the language of row expressions: CEL text, parsed and type-checked by cel-go against a
// table's schema, made total, and held as a small typed tree that kernels evaluate.
//
// A row expression sees one row, so it cannot aggregate and its sensitivity is known. It is total: at every row it has a
// value, whatever the row holds, and it cannot fail. Numbers are nullable finite doubles, conditions are two-valued; the
// rules are the comments of [Op] and docs/EXPRESSIONS.md, and tests hold them against CEL's own interpreter.
//
// [Parse] reads the syntax and gives it one canonical form; every later step starts from that form, so that two
// expressions with the same form are the same program. [Syntax.Check] types it against a schema.
package expr

import "github.com/holdoutd/holdoutd/queries/model"

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
	Model  *model.Model       // OpScore
	Output int                // OpScore
	Values []float64          // OpRow: one of each row; finite or NaN
}
