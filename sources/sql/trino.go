package sql

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Trino is the language of Trino, from 476.
var Trino = &Dialect{
	name: "trino",
	operations: templates(map[op]string{
		opNeg: "-({a})", opAbs: "abs({a})", opSqrt: "sqrt({a})", opFloor: "floor({a})", opCeil: "ceil({a})", opFinite: "({a} + ({a} - {a}))",
		opAdd: "({a} + {b})", opSub: "({a} - {b})", opMul: "({a} * {b})", opDiv: "({a} / {b})",
		opMin: "CASE WHEN {b} < {a} THEN {b} ELSE {a} + ({b} - {b}) END", opMax: "CASE WHEN {a} < {b} THEN {b} ELSE {a} + ({b} - {b}) END",
		opAtMost: "CASE WHEN {b} < {a} THEN {b} ELSE {a} END", opAtLeast: "CASE WHEN {a} < {b} THEN {b} ELSE {a} END",
		opClamp:  "CASE WHEN {a} < {b} THEN {b} WHEN {c} < {a} THEN {c} ELSE {a} END",
		opSelect: "CASE WHEN {a?} THEN {b} ELSE {c} END",
		opTrue:   "true", opFalse: "false", opIsTrue: "({a} = 1)", opIsNullBool: "({a} = 2)",
		opNot: "bitwise_xor({a}, 1)", opAnd: "bitwise_and({a}, {b})", opOr: "bitwise_or({a}, {b})",
		opLess: "({a} < {b})", opLessEq: "({a} <= {b})", opEq: "({a} = {b})", opNe: "({a} < {b} OR {b} < {a})",
		opIsNaN: "is_nan({a})", opIsNotFinite: "(NOT is_finite({a}))",
		opTextIs: "({a} = {t})", opTextIsNot: "({a} <> {t})", opTextIn: "({a} IN ({t}))",
		opTextPrefix: "starts_with({a}, {t})", opTextSuffix: "(substr({a}, -{n}) = {t})", opTextContains: "(strpos({a}, {t}) > 0)", opTextIsNull: "({a} IS NULL)",
		opTextsEqual: "({a} = {b})", opTextsDiffer: "({a} <> {b})",
		opWhole: "CAST({a} AS bigint)", opDecimal: "CAST({a} AS double)", opFloored: "CAST(floor({a}) AS bigint)", opBit: "{a}",
		opPlus: "({a} + {b})", opMinus: "({a} - {b})", opTimes: "({a} * {b})", opQuotient: "({a} / {b})", opRemainder: "({a} % {b})",
		opHigh: "bitwise_right_shift({a}, 32)", opLow: "bitwise_and({a}, 4294967295)", opIntegerLess: "({a} < {b})", opChoose: "CASE WHEN {a?} THEN {b} ELSE {c} END",
	}),
	truths: map[op]bool{opTrue: true, opFalse: true, opIsTrue: true, opIsNullBool: true, opLess: true, opLessEq: true, opEq: true, opNe: true, opIsNaN: true, opIsNotFinite: true,
		opTextIs: true, opTextIsNot: true, opTextIn: true, opTextPrefix: true, opTextSuffix: true, opTextContains: true, opTextIsNull: true, opTextsEqual: true, opTextsDiffer: true,
		opIntegerLess: true},
	bit:     "CASE WHEN {a} THEN BIGINT '1' ELSE BIGINT '0' END",
	truth:   "({a} = 1)",
	number:  func(x float64) string { return "from_ieee754_64(x'" + bigEndian(x) + "')" },
	integer: func(k int64) string { return fmt.Sprintf("BIGINT '%d'", k) },
	text:    func(s string) string { return "from_utf8(x'" + hex.EncodeToString([]byte(s)) + "')" },
	null:    "CAST(NULL AS varchar)",
	length:  utf8.RuneCountInString,
	name1:   func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` },
	lookup: func(d *Dialect, column string, v *value) string {
		var b strings.Builder
		b.WriteString("CASE")
		for i, text := range v.list {
			fmt.Fprintf(&b, " WHEN %s = %s THEN %s", column, d.text(text), d.number(v.pairs[i]))
		}
		fmt.Fprintf(&b, " WHEN %s IS NULL THEN %s ELSE %s END", column, d.number(v.constant()), d.number(0))
		return b.String()
	},
	total: parse("coalesce(sum({a}), 0)"),
	whole: parse("{a}"),
	// Bits of a value and of a multiple of its unit: where two units exchange values that differ, all four are others. It takes a third to a half of what checksum(ROW(_unit, …)) does. The factor is odd, and below 2^32, so that nothing overflows.
	bound: trinoChecksum(map[class]string{
		numbers:  "bitwise_xor(_unit * 2654435761, from_big_endian_64(to_ieee754_64({a})))",
		integers: "bitwise_xor(_unit * 2654435761, {a})",
		texts:    "bitwise_xor(coalesce(from_big_endian_64(xxhash64(to_utf8({a}))), 0), _unit * 2654435761)",
	}),
	unbound: trinoChecksum(map[class]string{numbers: "{a}", integers: "{a}", texts: "{a}"}),
}

// trinoChecksum is that of some expression of a column.
func trinoChecksum(of map[class]string) checksum {
	all := map[class]template{}
	for c, text := range of {
		all[c] = parse("coalesce(from_big_endian_64(reverse(checksum(" + text + "))), 0)")
	}
	// A sum of Trino's stops with an error where it overflows, so that halves are added.
	return checksum{rows: all, unit: all, units: []template{parse("coalesce(sum(bitwise_right_shift({a}, 32)), 0)"), parse("coalesce(sum(bitwise_and({a}, 4294967295)), 0)")}}
}
