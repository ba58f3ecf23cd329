package celoracle_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

var schema = dataset.Schema{Fields: []dataset.Field{
	{Name: "x", Kind: dataset.Number}, {Name: "y", Kind: dataset.Number}, {Name: "air time", Kind: dataset.Number}, {Name: "a.b", Kind: dataset.Number},
	{Name: "p", Kind: dataset.Bool}, {Name: "q", Kind: dataset.Bool},
	{Name: "s", Kind: dataset.Text}, {Name: "t", Kind: dataset.Text},
	{Name: "d", Kind: dataset.Time}, {Name: "e", Kind: dataset.Time},
}}

// Edge values of the columns; nil is null. Numbers are what a table can hold: no NaN, no infinity, no negative zero.
var (
	numbers = []any{nil, 0.0, 1.0, -1.0, 2.0, 3.0, 0.5, 0.1, 0.2, 0.3, 15.0, -60.0, 180.0, 1e-300, -1e-300, 5e-324, -5e-324, math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 0x1p-1022, 1e308, -1e308, 0x1p53, 0x1p53 - 1, -0x1p53, 709.0, 710.0, -745.0, -746.0, math.Pi, math.E, 1e15 + 0.5}
	texts = []any{nil, "", "a", "A", "ab", "abc", "b", "SFO", "é", "e\u0301", "\"", "\\", "a b", "a\nb", "%s", "日本"}
	truth = []any{nil, true, false}
	times = []any{nil, 0.0, 1.0, -1.0, 981072000e6, 981072000e6 - 1, 951782400e6, 951868799999999.0, -2203891200e6, 4102444800e6, -9e15, 9e15, 1e15 + 1}
)

func pool(k dataset.Kind) []any {
	switch k {
	case dataset.Bool:
		return truth
	case dataset.Text:
		return texts
	case dataset.Time:
		return times
	}
	return numbers
}

// row draws one row: by column name a float64 (Number, and Time in microseconds), string, bool or nil.
func row(t *rapid.T) map[string]any {
	r := map[string]any{}
	for _, f := range schema.Fields {
		r[f.Name] = rapid.SampledFrom(pool(f.Kind)).Draw(t, f.Name)
		if f.Kind == dataset.Number && rapid.Bool().Draw(t, "any float") {
			if x := rapid.Float64().Draw(t, "float"); !math.IsNaN(x) && !math.IsInf(x, 0) {
				r[f.Name] = x + 0
			}
		}
	}
	return r
}

// forOracle is the row as CEL sees it, with times instead of microseconds.
func forOracle(r map[string]any) map[string]any {
	o := map[string]any{}
	for _, f := range schema.Fields {
		o[f.Name] = r[f.Name]
		if x, ok := r[f.Name].(float64); ok && f.Kind == dataset.Time {
			o[f.Name] = time.UnixMicro(int64(x)).UTC()
		}
	}
	return o
}

// source draws the text of a random well-typed expression.
type source struct{ t *rapid.T }

func (g source) one(options ...string) string { return rapid.SampledFrom(options).Draw(g.t, "pick") }

func (g source) literal() string {
	return g.one("0", "1", "-1", "2", "15", "15.0", "1.5e1", "0x0F", "0.1", "0.5", "1e300", "-1e308", "5e-324", "1e-310", "-0.0", "9007199254740992", "(3)", "-(4)", "0.2", "0.3",
		"180", "-60", "710", "3.141592653589793", "1e15")
}

func (g source) number(depth int) string {
	if depth <= 0 {
		return g.one("x", "y", `col("air time")`, "a.b", `col("x")`, g.literal())
	}
	sub := func() string { return g.number(depth - 1) }
	switch rapid.IntRange(0, 14).Draw(g.t, "number") {
	case 0, 1, 2, 3:
		return fmt.Sprintf("(%s %s %s)", sub(), g.one("+", "-", "*", "/"), sub())
	case 4:
		return "-(" + sub() + ")"
	case 5, 6:
		return g.one("abs", "log", "exp", "sqrt", "floor", "ceil") + "(" + sub() + ")"
	case 7:
		return g.one("min", "max") + "(" + sub() + ", " + sub() + g.one("", ", "+sub()) + ")"
	case 8:
		return "clamp(" + sub() + ", " + sub() + ", " + sub() + ")"
	case 9, 10:
		return fmt.Sprintf("(%s ? %s : %s)", g.condition(depth-1), g.one(sub(), sub(), "null"), sub())
	case 11:
		return fmt.Sprintf("(%s ? %s : null)", g.condition(depth-1), sub())
	case 12:
		return "(" + g.time(depth-1) + " - " + g.time(depth-1) + ")"
	case 13:
		return g.time(depth-1) + "." + g.one("getFullYear", "getMonth", "getDayOfMonth", "getDate", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds") + "()"
	}
	return g.number(0)
}

func (g source) time(depth int) string {
	if depth > 0 && rapid.IntRange(0, 3).Draw(g.t, "time") == 0 {
		return fmt.Sprintf("(%s ? %s : %s)", g.condition(depth-1), g.time(depth-1), g.one("null", g.time(depth-1)))
	}
	return g.one("d", "e", "d", "e", `timestamp("2001-02-01")`, `timestamp("2001-02-01T00:00:00Z")`, `timestamp("1969-12-31T23:59:59.999999+02:00")`)
}

func (g source) text() string {
	return g.one(`""`, `"a"`, `'A'`, `"ab"`, `"SFO"`, `"é"`, `'"'`, `"\\"`, `"a\nb"`, `r"\"`, `"%s"`)
}

func (g source) condition(depth int) string {
	if depth <= 0 {
		return g.one("p", "q", "true", "false", "!p", "(x > 0)", "(p == null)", "(s == null)", "(d != null)", "(s == t)", "(s != t)")
	}
	sub := func() string { return g.condition(depth - 1) }
	comparison := func() string { return g.one("<", "<=", ">", ">=", "==", "!=") }
	switch rapid.IntRange(0, 12).Draw(g.t, "condition") {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", g.number(depth-1), comparison(), g.number(depth-1))
	case 2:
		return fmt.Sprintf("(%s %s %s)", g.time(depth-1), comparison(), g.time(depth-1))
	case 3, 4:
		return "(" + sub() + g.one(" && ", " || ") + sub() + g.one("", " && "+sub(), " || "+sub()) + ")"
	case 5:
		return "!(" + sub() + ")"
	case 6:
		return fmt.Sprintf("(%s ? %s : %s)", sub(), sub(), sub())
	case 7:
		return "(" + g.number(depth-1) + g.one(" == null", " != null") + ")"
	case 8:
		return g.one("s", "t") + "." + g.one("startsWith", "endsWith", "contains") + "(" + g.text() + ")"
	case 9:
		return "(" + g.one("s", "t") + g.one(" == ", " != ") + g.one("s", "t", g.text(), g.text()) + ")"
	case 10:
		return "(" + g.one("p", "q", "true", "false") + g.one(" == ", " != ") + g.one("p", "q", "true", sub(), sub()) + ")"
	case 11:
		return g.ladder(depth)
	}
	return g.membership(depth)
}

// ladder compares one number with many literals from one side, which kernels do in one step.
func (g source) ladder(depth int) string {
	x := g.one("x", "y", "x", g.number(depth-1))
	inclusive, strict := " >= ", " > "
	if rapid.Bool().Draw(g.t, "falling") {
		inclusive, strict = " <= ", " < "
	}
	rungs := make([]string, rapid.IntRange(6, 10).Draw(g.t, "rungs"))
	for i := range rungs {
		rungs[i] = "(" + x + g.one(inclusive, strict) + g.literal() + ")"
		if rapid.Bool().Draw(g.t, "negated") {
			rungs[i] = "!" + rungs[i]
		}
	}
	if rapid.Bool().Draw(g.t, "nested") { // which of them hold is seen in more than whether all do
		return "(" + strings.Join(rungs[:len(rungs)/2], " && ") + " || " + strings.Join(rungs[len(rungs)/2:], " && ") + ")"
	}
	return "(" + strings.Join(rungs, g.one(" && ", " || ")) + ")"
}

func (g source) membership(depth int) string {
	var left string
	var members []string
	n := rapid.SampledFrom([]int{1, 2, 3, 12}).Draw(g.t, "members") // kernels search long lists and walk short ones
	which := rapid.IntRange(0, 2).Draw(g.t, "membership")
	for range n {
		switch which {
		case 0:
			left = g.one("s", "t")
			members = append(members, g.text())
		case 1:
			left = g.number(depth - 1)
			members = append(members, g.one(g.literal(), g.literal(), g.literal(), g.number(min(depth-1, 1))))
		default:
			left = g.one("d", "e")
			members = append(members, g.time(depth-1))
		}
	}
	return "(" + left + " in [" + strings.Join(members, ", ") + "])"
}

func draw(t *rapid.T) string {
	g := source{t}
	depth := rapid.IntRange(0, 5).Draw(t, "depth")
	if rapid.Bool().Draw(t, "is condition") {
		return g.condition(depth)
	}
	return g.number(depth)
}
