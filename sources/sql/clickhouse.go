package sql

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ClickHouse is the language of ClickHouse from 18.16 to at least 26.7. Operations are written as functions, not as operators: old parsers take exponential time for parentheses in each other.
// toInt64 of a number cuts off its fraction. Whoever connects sets short_circuit_function_evaluation = 'disable' for the user, where the version knows it, so that no side of a choice is skipped.
var ClickHouse = &Dialect{
	name: "clickhouse",
	operations: templates(map[op]string{
		opNeg: "negate({a})", opAbs: "abs({a})", opSqrt: "sqrt({a})", opFloor: "floor({a})", opCeil: "ceil({a})", opFinite: "plus({a}, minus({a}, {a}))",
		opAdd: "plus({a}, {b})", opSub: "minus({a}, {b})", opMul: "multiply({a}, {b})", opDiv: "divide({a}, {b})",
		opMin: "if(less({b}, {a}), {b}, plus({a}, minus({b}, {b})))", opMax: "if(less({a}, {b}), {b}, plus({a}, minus({b}, {b})))",
		opAtMost: "if(less({b}, {a}), {b}, {a})", opAtLeast: "if(less({a}, {b}), {b}, {a})", opClamp: "if(less({a}, {b}), {b}, if(less({c}, {a}), {c}, {a}))",
		opSelect: "if({a}, {b}, {c})",
		opTrue:   "toUInt8(1)", opFalse: "toUInt8(0)", opIsTrue: "equals({a}, 1)", opIsNullBool: "equals({a}, 2)",
		opNot: "bitXor({a}, 1)", opAnd: "bitAnd({a}, {b})", opOr: "bitOr({a}, {b})",
		opLess: "less({a}, {b})", opLessEq: "lessOrEquals({a}, {b})", opEq: "equals({a}, {b})", opNe: "bitOr(less({a}, {b}), less({b}, {a}))",
		opIsNaN: "isNaN({a})", opIsNotFinite: "bitXor(isFinite({a}), 1)",
		opTextIs: "equals({a}, {t})", opTextIsNot: "bitAnd(notEquals({a}, {t}), notEquals({a}, {null}))", opTextIn: "in({a}, tuple({t}))",
		opTextPrefix: "startsWith({a}, {t})", opTextSuffix: "endsWith({a}, {t})", opTextContains: "notEquals(position({a}, {t}), 0)", opTextIsNull: "equals({a}, {null})",
		opTextsEqual: "bitAnd(equals({a}, {b}), notEquals({a}, {null}))", opTextsDiffer: "bitAnd(bitAnd(notEquals({a}, {b}), notEquals({a}, {null})), notEquals({b}, {null}))",
		opWhole: "toInt64({a})", opDecimal: "toFloat64({a})", opFloored: "toInt64({a})", opBit: "{a}",
		opPlus: "plus({a}, {b})", opMinus: "minus({a}, {b})", opTimes: "multiply({a}, {b})", opQuotient: "intDiv({a}, {b})", opRemainder: "modulo({a}, {b})",
		opHigh: "bitShiftRight({a}, 32)", opLow: "bitAnd({a}, 4294967295)", opIntegerLess: "less({a}, {b})", opChoose: "if({a}, {b}, {c})",
	}),
	number:  func(x float64) string { return "reinterpretAsFloat64(unhex('" + littleEndian(x) + "'))" },
	integer: func(k int64) string { return fmt.Sprintf("toInt64(%d)", k) },
	text:    func(s string) string { return "unhex('" + hex.EncodeToString([]byte(s)) + "')" },
	null:    "unhex('ff')",
	length:  func(text string) int { return len(text) },
	name1: func(name string) string {
		return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
	},
	lookup: func(d *Dialect, column string, v *value) string {
		var b strings.Builder
		b.WriteString("multiIf(")
		for i, text := range v.list {
			fmt.Fprintf(&b, "equals(%s, %s), %s, ", column, d.text(text), d.number(v.pairs[i]))
		}
		fmt.Fprintf(&b, "equals(%s, %s), %s, %s)", column, d.null, d.number(v.constant()), d.number(0))
		return b.String()
	},
	total: parse("sum({a})"),
	whole: parse("toInt64({a})"),
	// A value times its unit, hashes of both: a sum of those wraps around, and the sum of a unit's rows can be multiplied as a whole. Hashes are of the bits; the same in 18.16 and 26.7. No unit's is 0.
	bound: checksum{
		rows: map[class]template{
			numbers:  parse("sum(multiply(cityHash64(_unit), cityHash64({a})))"),
			integers: parse("sum(multiply(cityHash64(_unit), {a}))"),
			texts:    parse("sum(multiply(cityHash64(_unit), cityHash64({a})))"),
		},
		unit:  clickHouseUnbound,
		units: []template{parse("sum(multiply(cityHash64(_unit), {a}))")},
	},
	unbound: checksum{rows: clickHouseUnbound, unit: clickHouseUnbound, units: []template{parse("sum({a})")}},
}

var clickHouseUnbound = map[class]template{
	numbers:  parse("sum(cityHash64({a}))"),
	integers: parse("sum(toUInt64({a}))"),
	texts:    parse("sum(cityHash64({a}))"),
}
