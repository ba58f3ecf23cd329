package expr

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestRespelling: whitespace, parentheses, the order of operands, the direction of comparisons and the spelling of
// literals leave the canonical form alone, and it parses to itself.
func TestRespelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(0, 5).Draw(t, "depth")
		first, second := spellings(t, depth, rapid.Bool().Draw(t, "is condition"))
		a, err := Parse(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		b, err := Parse(second)
		if err != nil {
			t.Fatalf("%s: %v", second, err)
		}
		if a.Canonical() != b.Canonical() {
			t.Fatalf("%s\n%s\ndiffer:\n%s\n%s", first, second, a.Canonical(), b.Canonical())
		}
		again, err := Parse(a.Canonical())
		if err != nil || again.Canonical() != a.Canonical() {
			t.Fatalf("%s is read as %v, %v", a.Canonical(), again, err)
		}
	})
}

// spellings draws two spellings of one expression.
func spellings(t *rapid.T, depth int, condition bool) (string, string) {
	pick := func(options ...[2]string) (string, string) {
		p := rapid.SampledFrom(options).Draw(t, "leaf")
		return p[0], p[1]
	}
	number := func() (string, string) { return spellings(t, depth-1, false) }
	test := func() (string, string) { return spellings(t, depth-1, true) }
	space := func() string { return rapid.SampledFrom([]string{"", " ", "\n", "\t "}).Draw(t, "space") }
	wrap := func(s string) string { return "(" + space() + s + space() + ")" }
	swapped := func(sign, other string, operand func() (string, string)) (string, string) {
		a1, a2 := operand()
		b1, b2 := operand()
		one := wrap(a1) + sign + wrap(b1)
		if rapid.Bool().Draw(t, "swap") {
			return one, wrap(wrap(b2)) + space() + other + wrap(a2)
		}
		return one, wrap(a2) + space() + sign + space() + wrap(b2)
	}
	switch {
	case depth <= 0 && condition:
		return pick([2]string{"late", `col("late")`}, [2]string{"true", "(true)"}, [2]string{"!late", "!!!late"},
			[2]string{"delay == null", "null == delay"}, [2]string{"origin == 'a'", `"a" == origin`}, [2]string{"delay in [1,2]", "delay in [2.0, 1e0, 1]"})
	case depth <= 0:
		return pick([2]string{"delay", `col('delay')`}, [2]string{"15", "0x0F"}, [2]string{"15.0", "1.5e1"}, [2]string{"-1", "-(1.0)"},
			[2]string{"a.b", `col("a.b")`}, [2]string{"0", "-0.0"}, [2]string{"0.5", "5e-1"})
	case condition:
		signs := [][2]string{{"<", ">"}, {"<=", ">="}, {">", "<"}, {">=", "<="}, {"==", "=="}, {"!=", "!="}}
		switch rapid.IntRange(0, 3).Draw(t, "condition") {
		case 0:
			sign := rapid.SampledFrom(signs).Draw(t, "sign")
			return swapped(sign[0], sign[1], number)
		case 1:
			a1, a2 := test()
			return "!" + wrap(a1), "!" + space() + wrap(wrap(a2))
		}
		sign := rapid.SampledFrom([]string{"&&", "||"}).Draw(t, "logic")
		a1, a2 := test()
		b1, b2 := test()
		c1, c2 := test()
		return wrap(wrap(a1)+sign+wrap(b1)) + sign + wrap(c1), wrap(c2) + space() + sign + wrap(wrap(b2)+sign+wrap(a2))
	}
	switch rapid.IntRange(0, 4).Draw(t, "number") {
	case 0:
		sign := rapid.SampledFrom([]string{"+", "*"}).Draw(t, "commutative")
		return swapped(sign, sign, number)
	case 1:
		sign := rapid.SampledFrom([]string{"-", "/"}).Draw(t, "not commutative")
		a1, a2 := number()
		b1, b2 := number()
		return wrap(a1) + sign + wrap(b1), wrap(a2) + space() + sign + wrap(wrap(b2))
	case 2:
		a1, a2 := number()
		b1, b2 := number()
		return "max(" + a1 + "," + b1 + ")", "max(" + space() + b2 + " , " + wrap(a2) + ")"
	case 3:
		a1, a2 := number()
		return "-" + wrap(a1), "-" + space() + wrap(wrap(a2))
	}
	c1, c2 := test()
	a1, a2 := number()
	b1, b2 := number()
	return wrap(c1) + "?" + wrap(a1) + ":" + wrap(b1), wrap(wrap(c2)) + space() + "?" + space() + wrap(a2) + " : " + wrap(b2)
}

// TestAnyTextReadsBack: every text literal and column name survives its canonical form.
func TestAnyTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(rapid.String().Draw(t, "text"), "")
		s, err := Parse("col(" + quote(text) + ") == " + quote(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(s.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		if got := again.root.args[0].name; got != text {
			t.Fatalf("column: got %q, want %q", got, text)
		}
		if got := again.root.args[1].name; got != text {
			t.Fatalf("text: got %q, want %q", got, text)
		}
	})
}

// FuzzParse: no input panics, errors are *Error at a place inside of the source, the canonical form is a fixed point,
// cel-go's two parsers read the same, and its checker never refuses a tree that ours accepts.
func FuzzParse(f *testing.F) {
	for _, src := range []string{
		"delay > 15 && distance < 500", "late ? 1 : 0", "origin in ['SFO', \"LAX\"]", "-(-1)", "a.b + col('air time')", "day.getHours() < 3",
		"min(delay, 3, 0x0F)", "late == (delay > 3)", "delay == null ? 0 : delay", "day - timestamp('2001-02-01') > 3.6e9", "clamp(delay, -60, 180)",
		"'''a\nb''' == origin", "dealy > 1", "delay = 3", "[1].map(x, x)", "b'x'", "delay in [1, 1.0, 1u]", "late ? null : day", "1e400", "for.if",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s, err := Parse(src)
		if generated, other := parse(src, celParser(false)); (err == nil) != (other == nil) || err == nil && s.Canonical() != generated.Canonical() {
			t.Fatalf("%q is read differently by cel-go's two parsers: %v, %v", src, err, other)
		}
		if err != nil {
			checkError(t, err)
			return
		}
		again, err := Parse(s.Canonical())
		if err != nil && len(s.Canonical()) <= MaxSource && s.root.depth < MaxDepth/2 {
			t.Fatalf("%q has the form %q: %v", src, s.Canonical(), err)
		}
		if err == nil && again.Canonical() != s.Canonical() {
			t.Fatalf("%q has the form %q, which has the form %q", src, s.Canonical(), again.Canonical())
		}
		for _, schema := range []dataset.Schema{flights, {}} {
			if _, err := s.Check(schema); err != nil {
				checkError(t, err)
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	var e *Error
	if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Offset < 0 || e.Offset > len(e.Source) || e.Detail == "" {
		t.Fatalf("%#v", err)
	}
	if strings.Contains(e.Detail, "does not type-check") {
		t.Fatalf("cel-go refuses what the checker accepts: %v", err)
	}
	_ = e.Caret()
}
