package expr

import "github.com/holdoutd/holdoutd/rowfn"

// style is how a function is written.
type style uint8

const (
	operator style = iota + 1 // a + b
	free                      // f(a, b)
	method                    // a.f(b)
)

// function is one function of the language. The table below is the only list of them: the reader, the checker and
// cel-go's environment are all made from it.
type function struct {
	style    style
	min, max int // arguments, the receiver of a method included
	op       rowfn.Op
	use      string // how it is written, for errors
}

// MaxArguments bounds the arguments of min and max.
const MaxArguments = 64

var functions = map[string]function{
	"+": {operator, 2, 2, rowfn.OpAdd, "a + b"}, "-": {operator, 2, 2, rowfn.OpSub, "a - b"}, "*": {operator, 2, 2, rowfn.OpMul, "a * b"}, "/": {operator, 2, 2, rowfn.OpDiv, "a / b"},
	"neg": {operator, 1, 1, rowfn.OpNeg, "-a"},
	"<":   {operator, 2, 2, rowfn.OpLess, "a < b"}, "<=": {operator, 2, 2, rowfn.OpLessEq, "a <= b"},
	">": {operator, 2, 2, rowfn.OpGreater, "a > b"}, ">=": {operator, 2, 2, rowfn.OpGreaterEq, "a >= b"},
	"==": {operator, 2, 2, rowfn.OpEq, "a == b"}, "!=": {operator, 2, 2, rowfn.OpNe, "a != b"},
	"in": {operator, 2, 2, rowfn.OpIn, "x in [a, b]"},
	"&&": {operator, 2, MaxNodes, rowfn.OpAnd, "a && b"}, "||": {operator, 2, MaxNodes, rowfn.OpOr, "a || b"}, "!": {operator, 1, 1, rowfn.OpNot, "!a"},
	"?:": {operator, 3, 3, rowfn.OpIf, "condition ? a : b"},

	"abs": {free, 1, 1, rowfn.OpAbs, "abs(x)"}, "log": {free, 1, 1, rowfn.OpLog, "log(x)"}, "exp": {free, 1, 1, rowfn.OpExp, "exp(x)"}, "sqrt": {free, 1, 1, rowfn.OpSqrt, "sqrt(x)"},
	"floor": {free, 1, 1, rowfn.OpFloor, "floor(x)"}, "ceil": {free, 1, 1, rowfn.OpCeil, "ceil(x)"},
	"min": {free, 2, MaxArguments, rowfn.OpMin, "min(a, b)"}, "max": {free, 2, MaxArguments, rowfn.OpMax, "max(a, b)"},
	"clamp": {free, 3, 3, rowfn.OpClamp, "clamp(x, low, high)"},

	"startsWith": {method, 2, 2, rowfn.OpHasPrefix, `column.startsWith("text")`}, "endsWith": {method, 2, 2, rowfn.OpHasSuffix, `column.endsWith("text")`},
	"contains": {method, 2, 2, rowfn.OpContains, `column.contains("text")`},

	"getFullYear": {method, 1, 1, rowfn.OpFullYear, "time.getFullYear()"}, "getMonth": {method, 1, 1, rowfn.OpMonth, "time.getMonth()"},
	"getDayOfMonth": {method, 1, 1, rowfn.OpDayOfMonth, "time.getDayOfMonth()"}, "getDate": {method, 1, 1, rowfn.OpDate, "time.getDate()"},
	"getDayOfWeek": {method, 1, 1, rowfn.OpDayOfWeek, "time.getDayOfWeek()"}, "getDayOfYear": {method, 1, 1, rowfn.OpDayOfYear, "time.getDayOfYear()"},
	"getHours": {method, 1, 1, rowfn.OpHours, "time.getHours()"}, "getMinutes": {method, 1, 1, rowfn.OpMinutes, "time.getMinutes()"},
	"getSeconds": {method, 1, 1, rowfn.OpSeconds, "time.getSeconds()"}, "getMilliseconds": {method, 1, 1, rowfn.OpMilliseconds, "time.getMilliseconds()"},
}

// literals are the functions of one text that make a leaf.
var literals = map[string]string{"col": `col("column name")`, "timestamp": `timestamp("2001-02-01T00:00:00Z")`}

// elsewhere is what other languages call a thing, with what it is called here.
var elsewhere = map[string]string{
	"has": "x != null", "isnull": "x == null", "coalesce": "x == null ? y : x", "ln": "log(x)", "pow": "exp(b * log(a))", "power": "exp(b * log(a))",
	"greatest": "max(a, b)", "least": "min(a, b)", "clip": "clamp(x, low, high)", "ceiling": "ceil(x)", "if": "condition ? a : b", "where": "condition ? a : b",
	"date": `timestamp("2001-02-01")`, "year": "time.getFullYear()", "month": "time.getMonth()", "hour": "time.getHours()", "weekday": "time.getDayOfWeek()",
	"day": "time.getDate()", "minute": "time.getMinutes()", "second": "time.getSeconds()", "dayofweek": "time.getDayOfWeek()", "dayofyear": "time.getDayOfYear()",
	"isnan": "x == null", "double": "x", "int": "floor(x)", "round": "floor(x + 0.5)", "startswith": `column.startsWith("text")`,
}
