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

import "github.com/holdoutd/holdoutd/rowfn"

// Expressions are trees of package rowfn. Their types and operations have the same names here.
type (
	Node = rowfn.Node
	Op   = rowfn.Op
	Type = rowfn.Type
)

const (
	Number    = rowfn.Number
	Condition = rowfn.Condition
	Text      = rowfn.Text
	Time      = rowfn.Time

	OpColumn       = rowfn.OpColumn
	OpNumber       = rowfn.OpNumber
	OpText         = rowfn.OpText
	OpTrue         = rowfn.OpTrue
	OpFalse        = rowfn.OpFalse
	OpNull         = rowfn.OpNull
	OpNeg          = rowfn.OpNeg
	OpAbs          = rowfn.OpAbs
	OpLog          = rowfn.OpLog
	OpExp          = rowfn.OpExp
	OpSqrt         = rowfn.OpSqrt
	OpFloor        = rowfn.OpFloor
	OpCeil         = rowfn.OpCeil
	OpAdd          = rowfn.OpAdd
	OpSub          = rowfn.OpSub
	OpMul          = rowfn.OpMul
	OpDiv          = rowfn.OpDiv
	OpMin          = rowfn.OpMin
	OpMax          = rowfn.OpMax
	OpClamp        = rowfn.OpClamp
	OpIf           = rowfn.OpIf
	OpLess         = rowfn.OpLess
	OpLessEq       = rowfn.OpLessEq
	OpGreater      = rowfn.OpGreater
	OpGreaterEq    = rowfn.OpGreaterEq
	OpEq           = rowfn.OpEq
	OpNe           = rowfn.OpNe
	OpIn           = rowfn.OpIn
	OpHasPrefix    = rowfn.OpHasPrefix
	OpHasSuffix    = rowfn.OpHasSuffix
	OpContains     = rowfn.OpContains
	OpIsNull       = rowfn.OpIsNull
	OpNot          = rowfn.OpNot
	OpAnd          = rowfn.OpAnd
	OpOr           = rowfn.OpOr
	OpFullYear     = rowfn.OpFullYear
	OpMonth        = rowfn.OpMonth
	OpDayOfMonth   = rowfn.OpDayOfMonth
	OpDate         = rowfn.OpDate
	OpDayOfWeek    = rowfn.OpDayOfWeek
	OpDayOfYear    = rowfn.OpDayOfYear
	OpHours        = rowfn.OpHours
	OpMinutes      = rowfn.OpMinutes
	OpSeconds      = rowfn.OpSeconds
	OpMilliseconds = rowfn.OpMilliseconds
	OpLookup       = rowfn.OpLookup
	OpScore        = rowfn.OpScore
	OpRow          = rowfn.OpRow
)
