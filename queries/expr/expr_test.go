package expr

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

var flights = dataset.Schema{Fields: []dataset.Field{
	{Name: "delay", Kind: dataset.Number}, {Name: "distance", Kind: dataset.Number}, {Name: "air time", Kind: dataset.Number},
	{Name: "a.b", Kind: dataset.Number}, {Name: "in", Kind: dataset.Number}, {Name: "origin", Kind: dataset.Text}, {Name: "dest", Kind: dataset.Text},
	{Name: "late", Kind: dataset.Bool}, {Name: "held", Kind: dataset.Bool}, {Name: "day", Kind: dataset.Time}, {Name: "landed", Kind: dataset.Time},
}}

func TestCanonical(t *testing.T) {
	for _, c := range [][]string{ // the canonical form, then other spellings of it
		{"delay", " delay ", "(delay)", "((delay))", `col("delay")`, `col('delay')`, "--delay", "\tdelay\n"},
		{`col("air time")`, `col('air time')`, `(col( r"air time" ))`, `col("air\u0020time")`},
		{`col("a.b")`, "a.b", "a . b"},
		{`col("in")`},
		{"15", "15.0", "1.5e1", "0x0F", "0xf", "(15)", "-(-15)", "--15", "-(-(15))", "150e-1"},
		{"-1", "-(1)", "-1.0", "(-1)", "-(1.0)"},
		{"0", "-0.0", "-0", "-(0)", "0.0", "0e9"},
		{"0.1", ".1", "1e-1", "0.10"},
		{"1e+15", "1000000000000000", "1e15"},
		{"delay > 15", "15 < delay", "delay>15.0", "(delay) > (15)"},
		{"delay >= 15", "15 <= delay"},
		{"delay < distance", "distance > delay"},
		{"delay == 15", "15 == delay"},
		{"delay != null", "null != delay"},
		{"delay + distance", "distance + delay"},
		{"delay * 2", "2 * delay", "2.0*delay"},
		{"(delay + distance) + 1", "1 + (distance + delay)", "delay + distance + 1"},
		{"(delay > 1) && (distance > 2) && late", "late && distance > 2 && delay > 1", "late && (2 < distance && 1 < delay)", "(delay > 1 && late) && distance > 2"},
		{"((delay > 1) && late) || held", "held || late && delay > 1"},
		{"min(delay, distance, 3)", "min(3, distance, delay)"},
		{"max(delay, 0)", "max(0.0, delay)"},
		{`origin in ["LAX", "SFO"]`, `origin in ['SFO','LAX','SFO']`, "origin in [\n'LAX', \"SFO\"]"},
		{"delay in [1, 2]", "delay in [2, 1.0, 0x1]"},
		{`origin == "it's"`, `"it's" == origin`, `'it\'s' == origin`, `origin == '''it's'''`},
		{`day > timestamp("2001-02-01T00:00:00Z")`, `timestamp("2001-02-01") < day`, `day > timestamp('2001-02-01T01:00:00+01:00')`},
		{"late ? 1 : 0", "(late)?(1):(0)"},
		{"!late", "! late", "!(late)", "!!!late"},
		{"-(delay + 1)", "-(1 + delay)"},
		{`origin.startsWith("S")`, `(origin).startsWith('S')`},
	} {
		for _, spelling := range c {
			s, err := Parse(spelling)
			if err != nil {
				t.Errorf("%s: %v", spelling, err)
			} else if got := s.Canonical(); got != c[0] {
				t.Errorf("%s: got %s, want %s", spelling, got, c[0])
			}
		}
	}
}

// TestCanonicalKeepsApart: what does not always evaluate alike must not share an identity.
func TestCanonicalKeepsApart(t *testing.T) {
	seen := map[string]string{}
	for _, src := range []string{
		"delay - distance", "distance - delay", "delay / distance", "distance / delay",
		"(delay + distance) + in2", "delay + (distance + in2)", "(delay * distance) * in2", "delay * (distance * in2)",
		"!(delay > 1)", "delay <= 1", "!(delay == 1)", "delay != 1", "delay > 1", "delay >= 1", "delay < 1",
		"clamp(delay, distance, 1)", "clamp(distance, delay, 1)", "late ? delay : distance", "late ? distance : delay",
		"delay in [1, 2]", "delay in [1, 3]", "late && held", "late || held", "late && (held || late)", "(late && held) || late",
		`origin == "a"`, `origin == "A"`, `origin == "a "`, "origin == \"e\u0301\"", "origin == \"\u00e9\"", `origin == "\\n"`, `origin == "\n"`,
		"min(delay, 1)", "max(delay, 1)", "floor(delay)", "ceil(delay)", "-delay", "delay", `col("Delay")`, `col("delay ")`,
		"delay == null", "delay != null", "0.1", "0.10000000000000002", "delay * 0.1", "delay / 10",
		`day.getDate()`, `day.getDayOfMonth()`, `day > timestamp("2001-02-01")`, `day > timestamp("2001-02-01T00:00:00.000001Z")`,
		"delay > 9007199254740992", "delay > 9007199254740994", "delay + 0", "delay * 1",
	} {
		s, err := Parse(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if other, ok := seen[s.Canonical()]; ok {
			t.Errorf("%s and %s share the form %s", src, other, s.Canonical())
		}
		seen[s.Canonical()] = src
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ src, place, want string }{ // place: line:column
		{"", "1:1", "the expression is empty"},
		{" \n ", "1:1", "the expression is empty"},
		{"dealy > 3", "1:1", `unknown column "dealy"; did you mean delay?`},
		{"1 +\n  dellay", "2:3", "did you mean delay?"},
		{"DELAY > 3", "1:1", "did you mean delay?"},
		{`col("airtime") > 3`, "1:1", `did you mean col("air time")?`},
		{"zzz > 3 && dealy > 3", "1:1", `unknown column "zzz"`},
		{"é > 3", "1:1", `unexpected "é"`},
		{`origin == "é" && dealy > 1`, "1:18", "did you mean delay?"},
		{"delay + late", "1:9", "this is a condition; expected a number; did you mean late ? 1 : 0?"},
		{"delay && late", "1:1", "this is a number; expected a condition; did you mean delay != 0?"},
		{"delay = 3", "1:7", "did you mean delay == 3?"},
		{"delay > 3 and late", "1:11", "did you mean delay > 3 && late?"},
		{"delay > 3 or late", "1:11", "did you mean delay > 3 || late?"},
		{"air time > 3", "1:5", `did you mean col("air time")?`},
		{"delay > 3 && air time > 3", "1:18", `did you mean col("air time")?`},
		{"late && number of the stops > 3", "1:16", `did you mean col("number of the stops")?`},
		{"air time and late", "1:5", `did you mean col("air time")?`},
		{"delay is null", "1:7", "did you mean delay == null?"},
		{"3 delay", "1:3", `unexpected "delay"`},
		{"day.hour > 3", "1:1", `unknown column "day.hour"; did you mean day.getHours()?`},
		{"day.dt.month == 3", "1:1", "did you mean day.getMonth()?"},
		{"delay.hour > 3", "1:1", "did you mean delay?"},
		{"delay >", "1:8", "the expression ends too early"},
		{"(delay", "1:7", "the expression ends too early"},
		{"delay)", "1:6", `unexpected ")"`},
		{"delay % 2", "1:7", "% is not part of this language"},
		{"delay[1]", "1:6", "[] is not part of this language"},
		{"abs(delay, 2)", "1:1", "abs takes 1 argument, not 2; expected abs(x)"},
		{"min(delay)", "1:1", "min takes 2 to 64 arguments, not 1"},
		{"1 + squrt(delay)", "1:5", "did you mean sqrt(x)?"},
		{"ln(delay)", "1:1", "did you mean log(x)?"},
		{"has(delay.x)", "1:1", "did you mean x != null?"},
		{"origin.startswith('a')", "1:8", `did you mean column.startsWith("text")?`},
		{"startsWith(origin, 'a')", "1:1", "startsWith is not written like this"},
		{"origin.contains(dest)", "1:17", "this is a column; expected a literal text"},
		{"day.getHours('UTC') > 1", "1:5", "getHours takes no argument"},
		{"origin > 'a'", "1:8", "texts have no order"},
		{"origin + 'a'", "1:1", "this is text; expected a number"},
		{"origin", "1:1", "the expression is text"},
		{"day > '2001-02-01'", "1:7", `did you mean timestamp("2001-02-01")?`},
		{"day > timestamp('2001-02-31')", "1:17", "this is not a time"},
		{"day > timestamp('1500-01-01')", "1:17", "outside of the years"},
		{"day > timestamp('2001-01-01T00:00:00.0000001Z')", "1:17", "finer than a microsecond"},
		{"day > timestamp(origin)", "1:7", "timestamp takes one text in quotes"},
		{"late ? 1 : 'x'", "1:12", "this is text; expected a number"},
		{"late ? 'a' : 'x'", "1:8", "text is never computed"},
		{"late ? late : null", "1:15", "a condition is never null"},
		{"(delay > 1) == null", "1:8", "a condition is never null"},
		{"delay == origin", "1:10", "this is text; expected a number"},
		{"late == 3", "1:9", "this is a number; expected a condition; did you mean 3 != 0?"},
		{"origin == late", "1:1", "this is text; expected a condition"},
		{"delay == day", "1:1", "this is a number; expected a time"},
		{"day == 3", "1:8", "this is a number; expected a time"},
		{"day - 3", "1:7", "this is a number; expected a time"},
		{"delay - day", "1:9", "this is a time; expected a number"},
		{"min(delay, late)", "1:12", "this is a condition"},
		{"clamp(1, 2, late) > (late + 1)", "1:13", "this is a condition"},
		{"'a' == 'b'", "1:5", "both sides are literal texts"},
		{"'a' == null", "1:1", "a literal text is never null"},
		{"'a' in ['a']", "1:1", "this is a literal text"},
		{"'a'.startsWith('b')", "1:1", "this is a literal text"},
		{"origin && late", "1:1", `did you mean origin == "…"?`},
		{"(late ? day : landed) in [day]", "1:7", "this is a computed time"},
		{"late in delay", "1:9", "in needs a list"},
		{"missing1 > 0 && " + strings.Repeat("delay > 0 && ", 30) + "late", "1:1", "unknown column"},
		{"(late == true) == null", "1:7", "a condition is never null"},
		{"null == null", "1:1", "null is compared with null"},
		{"delay > null", "1:9", "null stands here"},
		{"null", "1:1", "null stands here"},
		{"delay in []", "1:10", "the list is empty"},
		{"delay in distance", "1:10", "in needs a list"},
		{"delay in ['a']", "1:11", "this is text; expected a number"},
		{"origin in [dest]", "1:12", "this is a column"},
		{"late in [true]", "1:1", "this is a condition"},
		{"[1, 2]", "1:1", "a list stands only on the right of in"},
		{"{'a': 1}", "1:1", "maps and structures"},
		{"[1].exists(x, x > 1)", "1:5", `unknown function "exists"`},
		{"1u + delay", "1:1", "unsigned"},
		{"b'a' == origin", "1:1", "byte strings"},
		{"9007199254740993", "1:1", "not a float64"},
		{"delay > 1e400", "1:9", "out of range"},
		{"99999999999999999999", "1:1", "out of range"},
		{"(delay > 1) == (delay > 2)", "1:13", "two computed conditions"},
		{"for > 1", "1:1", "reserved word"},
		{"'abc", "1:1", "the text is not closed"},
		{".delay > 1", "1:1", "starts with a dot"},
		{"(delay + 1).x", "1:8", "only a column name can be followed"},
		{"origin == 'a\xff'", "1:1", "not valid UTF-8"},
		{strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000), "1:1", "nested deeper"},
		{strings.Repeat("delay+", MaxDepth) + "delay", "1:", "nested deeper"},
		{strings.Repeat("late&&", 2000) + "late", "", ""},
		{strings.Repeat("late||", MaxNodes) + "late", "1:", "bytes, more than"},
		{strings.Repeat("p||", MaxNodes) + "p", "1:", "more than 4096 nodes"},
		{"delay in [" + strings.Repeat("1,", MaxList) + "1]", "1:10", "more than 2048 members"},
	} {
		err := parseAndCheck(c.src)
		if c.want == "" {
			if err != nil {
				t.Errorf("%.60s: %v", c.src, err)
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.60s: %v, want an *Error", c.src, err)
			continue
		}
		if got := strings.TrimPrefix(e.Error(), "expr: "); !strings.HasPrefix(got, c.place) || !strings.Contains(e.Message(), c.want) {
			t.Errorf("%.60s:\n got %s\nwant %s: %s", c.src, got, c.place, c.want)
		}
		if e.Offset < 0 || e.Offset > len(e.Source) {
			t.Errorf("%.60s: offset %d of %d", c.src, e.Offset, len(e.Source))
		}
	}
}

func parseAndCheck(src string) error {
	s, err := Parse(src)
	if err != nil {
		return err
	}
	_, err = s.Check(flights)
	return err
}

func TestCaret(t *testing.T) {
	err := parseAndCheck("delay > 0 &&\n\tdest == 'é' && dealy > 1")
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	want := "\tdest == 'é' && dealy > 1\n\t               ^ unknown column \"dealy\"; did you mean delay?"
	if got := e.Caret(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !strings.HasPrefix(e.Source[e.Offset:], "dealy") {
		t.Errorf("offset %d is not at the name", e.Offset)
	}
}

// TestTree: the trees that kernels rely on, written out.
func TestTree(t *testing.T) {
	delay := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Number, Text: "delay"}
	origin := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "origin"}
	late := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Condition, Text: "late"}
	day := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Time, Text: "day"}
	x := func(v float64) *rowfn.Node { return &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Number, Number: v} }
	at := func(v float64) *rowfn.Node { return &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: v} }
	call := func(op rowfn.Op, out rowfn.Type, args ...*rowfn.Node) *rowfn.Node {
		return &rowfn.Node{Op: op, Type: out, Args: args}
	}
	for src, want := range map[string]*rowfn.Node{
		"15 < delay":                              call(rowfn.OpGreater, rowfn.Condition, delay, x(15)),
		"1 + delay":                               call(rowfn.OpAdd, rowfn.Number, delay, x(1)),
		"min(1, delay, 2)":                        call(rowfn.OpMin, rowfn.Number, call(rowfn.OpMin, rowfn.Number, delay, x(1)), x(2)),
		"delay != null":                           call(rowfn.OpNot, rowfn.Condition, call(rowfn.OpIsNull, rowfn.Condition, delay)),
		"late == null":                            call(rowfn.OpIsNull, rowfn.Condition, late),
		"origin in ['b', 'a', 'b']":               call(rowfn.OpIn, rowfn.Condition, origin, &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: "a"}, &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: "b"}),
		"late ? null : day":                       call(rowfn.OpIf, rowfn.Time, late, &rowfn.Node{Op: rowfn.OpNull, Type: rowfn.Time}, day),
		"late ? delay : null":                     call(rowfn.OpIf, rowfn.Number, late, delay, &rowfn.Node{Op: rowfn.OpNull, Type: rowfn.Number}),
		"day.getHours()":                          call(rowfn.OpHours, rowfn.Number, day),
		"day - timestamp('1970-01-01T00:00:01Z')": call(rowfn.OpSub, rowfn.Number, day, at(1e6)),
		"day in [timestamp('1970-01-02')]":        call(rowfn.OpEq, rowfn.Condition, day, at(86400e6)),
		"late == true":                            late,
		"late == false":                           call(rowfn.OpAnd, rowfn.Condition, not(late), not(isNull(late))),
		"late == held": call(rowfn.OpAnd, rowfn.Condition, call(rowfn.OpIf, rowfn.Condition, late, &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Condition, Text: "held"}, not(&rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Condition, Text: "held"})),
			not(isNull(&rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Condition, Text: "held"})), not(isNull(late))),
		"true": truth(true),
	} {
		s, err := Parse(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := s.Check(flights); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", src, got, err)
		}
	}
}

func TestCheckAs(t *testing.T) {
	number, condition := mustParse(t, "delay"), mustParse(t, "late")
	if _, err := number.CheckNumber(flights); err != nil {
		t.Error(err)
	}
	if _, err := condition.CheckCondition(flights); err != nil {
		t.Error(err)
	}
	if _, err := number.CheckCondition(flights); err == nil || !strings.Contains(err.Error(), "did you mean delay != 0?") {
		t.Error(err)
	}
	if _, err := condition.CheckNumber(flights); err == nil || !strings.Contains(err.Error(), "did you mean late ? 1 : 0?") {
		t.Error(err)
	}
}

func mustParse(t testing.TB, src string) *Syntax {
	t.Helper()
	s, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestColumns(t *testing.T) {
	if got := mustParse(t, `delay + col("air time") * delay > a.b`).Columns(); !reflect.DeepEqual(got, []string{"a.b", "air time", "delay"}) {
		t.Error(got)
	}
}

// TestNoBlowUp: checking is linear in the source; a subtree that is typed twice is built once.
func TestNoBlowUp(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("(", 150) + "delay" + strings.Repeat(" - 1)", 150),
		strings.Repeat("(", 60) + "late" + strings.Repeat(" == held)", 60),
		strings.Repeat("(late ? ", 60) + "delay" + strings.Repeat(" : null)", 60),
	} {
		s := mustParse(t, src)
		n, err := s.Check(flights)
		if err != nil {
			t.Fatal(err)
		}
		if size := treeSize(n); size > 12*s.root.nodes {
			t.Errorf("%.30s…: %d nodes from %d", src, size, s.root.nodes)
		}
	}
}

func treeSize(n *rowfn.Node) int {
	size := 1
	for _, a := range n.Args {
		size += treeSize(a)
	}
	return size
}

func TestPrintNumberReadsBack(t *testing.T) {
	for _, x := range []float64{0, 1, -1, 0.1, 1e15, 1e15 - 1, -1e15, 1e-6, 9.99e-7, 0x1p53, math.MaxFloat64, 5e-324, math.Pi, 1e21, 123456789.125} {
		s := mustParse(t, printNumber(x))
		if s.root.kind != numberTerm || s.root.number != x {
			t.Errorf("%v is printed as %s and read as %v", x, printNumber(x), s.root.number)
		}
	}
}

// TestDeepestReadsBack: the parentheses of a canonical form do not run into the parser's own limit.
func TestDeepestReadsBack(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("delay + ", MaxDepth-1) + "delay",
		strings.Repeat("delay - (", MaxDepth-1) + "delay" + strings.Repeat(")", MaxDepth-1),
		strings.Repeat("-(", MaxDepth-1) + "delay" + strings.Repeat(")", MaxDepth-1),
		strings.Repeat("late ? 1 : ", MaxDepth-1) + "delay",
		strings.Repeat("abs(", MaxDepth-1) + "delay" + strings.Repeat(")", MaxDepth-1),
	} {
		s, err := Parse(src)
		if err != nil {
			t.Errorf("%.40s…: %v", src, err)
			continue
		}
		if again, err := Parse(s.Canonical()); err != nil || again.Canonical() != s.Canonical() {
			t.Errorf("%.40s… has the form %.40s…: %v", src, s.Canonical(), err)
		}
		if _, err := s.Check(flights); err != nil {
			t.Errorf("%.40s…: %v", src, err)
		}
	}
}

// TestConcurrent: one Syntax can be checked against different schemas at the same time (the race detector looks on).
func TestConcurrent(t *testing.T) {
	text := dataset.Schema{Fields: []dataset.Field{{Name: "delay", Kind: dataset.Text}}}
	s := mustParse(t, "delay == null")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 50 {
				schema, want := flights, rowfn.Number
				if i%2 == 0 {
					schema, want = text, rowfn.Text
				}
				n, err := s.Check(schema)
				if err != nil || n.Args[0].Type != want {
					t.Errorf("%v, %v", n, err)
				}
				mustParse(t, "delay + 1 > 2")
			}
		})
	}
	group.Wait()
}

// TestCELChecks: cel-go, asked alone, refuses what is ill-typed and notices where our own types are wrong.
func TestCELChecks(t *testing.T) {
	b := func(s *Syntax) builder {
		return builder{syntax: s, fields: fieldsOf(flights, s.Columns()), nodes: map[*term]*rowfn.Node{}}
	}
	for _, src := range []string{
		"delay + late", "late && delay", "origin > 'a'", "day + day", "late ? delay : late", "delay in ['a']", "origin in [1]", "abs(late)",
		"delay.startsWith('a')", "delay.getHours()", "origin == delay", "!delay", "-late", "min(delay, late)", "day > 3",
	} {
		s := mustParse(t, src)
		if _, detail := celAgrees(s.root, b(s)); detail == "" {
			t.Errorf("cel-go accepts %s", src)
		}
	}
	s := mustParse(t, "1 + abs(delay)")
	wrong := b(s)
	wrong.nodes[s.root.args[0]] = &rowfn.Node{Op: rowfn.OpTrue, Type: rowfn.Condition}
	if _, detail := celAgrees(s.root, wrong); !strings.Contains(detail, "double for a condition") {
		t.Errorf("a wrong type was not noticed: %q", detail)
	}
}

// TestAgreementHangsOnTheForm: cel-go says the same of any two trees of one form, so that it need be asked about one; and literals have no part in a form.
func TestAgreementHangsOnTheForm(t *testing.T) {
	operands := []string{"delay", "distance", "late", "origin", "day", "1", "-2.5", "'a'", "'b'", "true", "timestamp('2026-01-01T00:00:00Z')", "[1, 2]", "['a']", "abs(delay)", "null"}
	var sources []string
	for _, a := range operands {
		for _, b := range operands {
			for _, sign := range []string{"+", "-", ">", "==", "&&", "in"} {
				sources = append(sources, fmt.Sprintf("%s %s %s", a, sign, b))
			}
			sources = append(sources, fmt.Sprintf("late ? %s : %s", a, b), fmt.Sprintf("min(%s, %s)", a, b), fmt.Sprintf("%s.startsWith(%s)", a, b))
		}
	}
	type verdict struct{ source, says string }
	known, met, wrong, alike := map[string]verdict{}, 0, 0, map[string]string{}
	for _, source := range sources {
		s, err := Parse(source)
		if err != nil {
			continue
		}
		empty := builder{syntax: s, fields: fieldsOf(flights, s.Columns()), nodes: map[*term]*rowfn.Node{}}
		full := empty
		full.nodes = map[*term]*rowfn.Node{}
		if _, err := full.node(s.root); err != nil {
			full.nodes = map[*term]*rowfn.Node{}
		}
		s.root.walk(func(x *term) { // types that nobody has built, so that all are compared
			if x.kind == columnTerm && len(full.nodes) == 0 {
				full.nodes[x] = &rowfn.Node{Type: rowfn.Text}
			}
		})
		for _, b := range []builder{empty, full} {
			if _, built := b.nodes[s.root]; !built && strings.Contains(source, "null") {
				continue // the writer asks for the type of what a null is beside
			}
			_, says := celAgrees(s.root, b)
			form := string(b.form(nil, s.root, map[string]int{}))
			if other, ok := known[form]; ok {
				if met++; (other.says == "") != (says == "") {
					t.Errorf("%s and %s have the form %s; cel-go says %q of the one and %q of the other", other.source, source, form, other.says, says)
				}
			}
			known[form], alike[source] = verdict{source, says}, form
			if says != "" {
				wrong++
			}
		}
	}
	if met < 500 || wrong < 500 {
		t.Errorf("of %d trees %d have the form of another one, and cel-go refuses %d: that proves nothing", len(sources), met, wrong)
	}
	if alike["delay > 1"] != alike["distance > -2.5"] || alike["origin == 'a'"] != alike["origin == 'b'"] {
		t.Error("literals and names are in the form")
	}
}

// TestManyColumns reads more columns than are looked up one by one.
func TestManyColumns(t *testing.T) {
	schema := dataset.Schema{}
	src := "0"
	for i := range 3 * fewColumns {
		name := fmt.Sprintf("column %d", i)
		schema.Fields = append(schema.Fields, dataset.Field{Name: name, Kind: dataset.Number})
		src += " + col(" + quote(name) + ")"
	}
	if _, err := mustParse(t, src).Check(schema); err != nil {
		t.Error(err)
	}
	schema.Fields = schema.Fields[1:]
	if _, err := mustParse(t, src).Check(schema); err == nil || !strings.Contains(err.Error(), `unknown column "column 0"`) {
		t.Error(err)
	}
}
