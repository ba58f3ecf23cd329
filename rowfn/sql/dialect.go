package sql

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
)

// Dialect is how an engine writes what row functions are made of: templates, in which $1, $2… stand for the arguments. What a template
// prints is one operand: a call, or something in parentheses. An operation without a template is refused.
//
// Numbers are doubles. Each template of numbers takes NaN, which is null, and gives NaN for it. Those marked "clean" get no infinite
// argument; the others may give one for an argument or a result that is infinite, for it counts as null later.
type Dialect struct {
	Name   string
	Number func(x float64) string // a double, NaN too, without a decimal in between
	Text   func(s string) string

	Add, Sub, Mul               string
	Div                         string // the divisor is clean
	Neg, Abs, Floor, Ceil, Sqrt string
	Clean                       string // of a number that may be infinite: NaN where it is
	Min, Max                    string // NaN where either is NaN or infinite
	Pick                        string // of a condition and two numbers; both are computed

	Less, LessEq, Equal, NotEqual string // of clean numbers: 0 or 1, and 0 where one is NaN
	IsNull                        string // 1 of NaN and the infinite, else 0
	True, False                   string // 1 and 0
	And, Or, Not                  string // of conditions
	PickTruth                     string // of a condition and two others

	TextEqual, Prefix, Suffix, Contains string // of texts that are not null; the second one of the last three is a literal that is not empty

	Grid   string // a number, the range's low and high, what null counts as, and the scale: the value of the row as an integer
	Double string // of an integer
	Micros string // of a time: the integer of its microseconds, cut towards 0; anything for NaN and beyond MaxTime
	OfTime string // of an integer and a time: the integer as a number, and NaN where the time is null

	Integer                string // of its digits: an integer of 64 bits
	IntAdd, IntSub, IntMul string
	IntDiv, IntMod         string // of numbers from 0, and their signs else: towards 0
	IntLess, IntEqual      string // 0 or 1
	IntPick                string // of a condition and two integers
	Low, High              string // of an integer from 0: its last 32 bits, and the others
	Sum, Count             string // of integers; of rows

	End string // of a statement
	// Flat statements write a shared subexpression as often as it is used, for an engine that computes it once and sends only a flat statement to
	// the machines where the rows are. Others, and flat ones beyond MaxText, name it in a subquery.
	Flat bool
}

// bitsOf are the digits of a double, the sign's first.
func bitsOf(x float64) uint64 {
	if x != x {
		return 0x7ff8000000000000
	}
	return math.Float64bits(x)
}

// ClickHouse is the dialect of ClickHouse, from 18.16 on. A statement about a distributed table is written anew for the other shards, with operators: of two
// negations 18.16 makes a comment, so there is none. Its profile must not allow that functions are skipped
// (short_circuit_function_evaluation, where the server knows that).
var ClickHouse = Dialect{
	Name: "ClickHouse",
	Number: func(x float64) string {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], bitsOf(x))
		return "reinterpretAsFloat64(unhex('" + hex.EncodeToString(b[:]) + "'))"
	},
	Text: func(s string) string { return "unhex('" + hex.EncodeToString([]byte(s)) + "')" },

	Add: "plus($1,$2)", Sub: "minus($1,$2)", Mul: "multiply($1,$2)", Div: "divide($1,$2)",
	Neg: "minus(0,$1)", Abs: "abs($1)", Floor: "floor($1)", Ceil: "ceil($1)", Sqrt: "sqrt($1)",
	Clean: "plus($1,multiply($1,0))",
	Min:   "plus(plus(if(less($1,$2),$1,$2),multiply($1,0)),multiply($2,0))",
	Max:   "plus(plus(if(less($2,$1),$1,$2),multiply($1,0)),multiply($2,0))",
	Pick:  "if($1,$2,$3)",

	Less: "less($1,$2)", LessEq: "lessOrEquals($1,$2)", Equal: "equals($1,$2)", NotEqual: "bitOr(less($1,$2),less($2,$1))",
	IsNull: "bitXor(lessOrEquals(abs($1)," + chMax + "),1)",
	True:   "toUInt8(1)", False: "toUInt8(0)",
	And: "bitAnd($1,$2)", Or: "bitOr($1,$2)", Not: "bitXor($1,1)", PickTruth: "if($1,$2,$3)",

	TextEqual: "equals($1,$2)", Prefix: "startsWith($1,$2)", Suffix: "endsWith($1,$2)", Contains: "notEquals(position($1,$2),0)",

	Grid:   "toInt64(floor(plus(multiply(minus(if(lessOrEquals(abs($1)," + chMax + "),if(less($1,$2),$2,if(less($3,$1),$3,$1)),$4),$2),$5),0.5)))",
	Double: "toFloat64($1)",
	Micros: "toInt64(if(lessOrEquals(abs($1)," + chTime + "),$1,toFloat64(0)))",
	OfTime: "plus(toFloat64($1),multiply($2,0))",

	Integer: "toInt64($1)",
	IntAdd:  "plus($1,$2)", IntSub: "minus($1,$2)", IntMul: "multiply($1,$2)", IntDiv: "intDiv($1,$2)", IntMod: "modulo($1,$2)",
	IntLess: "less($1,$2)", IntEqual: "equals($1,$2)", IntPick: "if($1,toInt64($2),toInt64($3))",
	Low: "bitAnd($1,4294967295)", High: "intDiv($1,4294967296)",
	Sum: "sum(toInt64($1))", Count: "count()",

	End:  " FORMAT TabSeparated",
	Flat: true,
}

const (
	chMax    = "reinterpretAsFloat64(unhex('ffffffffffffef7f'))" // the largest double
	chTime   = "reinterpretAsFloat64(unhex('000000000000c043'))" // MaxTime
	one      = "BIGINT '1'"
	zero     = "BIGINT '0'"
	trinoMax = "from_ieee754_64(X'7fefffffffffffff')"
	maxTime  = "from_ieee754_64(X'43c0000000000000')"
)

func truth(test string) string {
	return "(CASE WHEN " + test + " THEN " + one + " ELSE " + zero + " END)"
}

// Trino is the dialect of Trino. It computes one side of CASE only, so that both are columns of a subquery by then: they are used more than
// once, and such columns it does not put into the place where they are used.
var Trino = Dialect{
	Name:   "Trino",
	Number: func(x float64) string { return fmt.Sprintf("from_ieee754_64(X'%016x')", bitsOf(x)) },
	Text:   func(s string) string { return "from_utf8(X'" + hex.EncodeToString([]byte(s)) + "')" },

	Add: "($1 + $2)", Sub: "($1 - $2)", Mul: "($1 * $2)", Div: "($1 / $2)",
	Neg: "(- $1)", Abs: "abs($1)", Floor: "floor($1)", Ceil: "ceil($1)", Sqrt: "sqrt($1)",
	Clean: "($1 + $1 * 0e0)",
	Min:   "((CASE WHEN $1 < $2 THEN $1 ELSE $2 END) + $1 * 0e0 + $2 * 0e0)",
	Max:   "((CASE WHEN $1 > $2 THEN $1 ELSE $2 END) + $1 * 0e0 + $2 * 0e0)",
	Pick:  "(CASE WHEN $2 IS NOT NULL AND $3 IS NOT NULL AND $1 = " + one + " THEN $2 ELSE $3 END)",

	Less: truth("$1 < $2"), LessEq: truth("$1 <= $2"), Equal: truth("$1 = $2"), NotEqual: "bitwise_or(" + truth("$1 < $2") + ", " + truth("$2 < $1") + ")",
	IsNull: "(CASE WHEN abs($1) <= " + trinoMax + " THEN " + zero + " ELSE " + one + " END)",
	True:   one, False: zero,
	And: "bitwise_and($1, $2)", Or: "bitwise_or($1, $2)", Not: "(" + one + " - $1)",
	PickTruth: "bitwise_or(bitwise_and($1, $2), bitwise_and(" + one + " - $1, $3))",

	TextEqual: truth("$1 = $2"), Prefix: truth("starts_with($1, $2)"), Suffix: truth("substr($1, - length($2)) = $2"), Contains: truth("strpos($1, $2) > 0"),

	Grid: "CAST(floor(((CASE WHEN abs($1) <= " + trinoMax + " THEN (CASE WHEN $1 < $2 THEN $2 WHEN $3 < $1 THEN $3 ELSE $1 END) ELSE $4 END) - $2) * $5 + 0.5e0)" +
		" AS bigint)",
	Double: "CAST($1 AS double)",
	Micros: "CAST(truncate(CASE WHEN abs($1) <= " + maxTime + " THEN $1 ELSE 0e0 END) AS bigint)",
	OfTime: "(CAST($1 AS double) + $2 * 0e0)",

	Integer: "BIGINT '$1'",
	IntAdd:  "($1 + $2)", IntSub: "($1 - $2)", IntMul: "($1 * $2)", IntDiv: "($1 / $2)", IntMod: "($1 % $2)",
	IntLess: truth("$1 < $2"), IntEqual: truth("$1 = $2"), IntPick: "(CASE WHEN $1 = " + one + " THEN $2 ELSE $3 END)",
	Low: "bitwise_and($1, BIGINT '4294967295')", High: "($1 / BIGINT '4294967296')",
	Sum: "coalesce(sum($1), " + zero + ")", Count: "count(*)",
}
