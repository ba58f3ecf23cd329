package expr

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
)

// A term is a node of the canonical syntax tree: number literals are doubles, commutative operands are in order,
// comparisons have one direction. Every later step starts from it, so that equal canonical forms mean equal programs.
type term struct {
	kind   termKind
	name   string // a column's name, a text's value, a call's function (for operators: the sign)
	number float64
	args   []*term
	offset int    // in code points, where the source has it
	form   string // the canonical text; of a part of a finished tree only where it is a leaf, see forget
	nodes  int    // of the subtree
	depth  int    // of the subtree; a leaf is 1
}

type termKind uint8

const (
	columnTerm termKind = iota
	numberTerm
	textTerm
	timeTerm // number is microseconds since 1970
	truthTerm
	nullTerm
	listTerm
	callTerm
)

func (t *term) constant() bool { return t.kind >= numberTerm && t.kind <= nullTerm }

func (t *term) walk(visit func(*term)) {
	visit(t)
	for _, a := range t.args {
		a.walk(visit)
	}
}

// before orders commutative operands: what depends on a row first, so that `delay > 15` keeps its direction.
func before(a, b *term) bool {
	if a.constant() != b.constant() {
		return b.constant()
	}
	return a.form < b.form
}

// flipped are the comparisons and what they are with their sides changed.
var flipped = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

// canonical puts the operands of a call in order and gives the term its form.
func (t *term) canonical() *term {
	switch {
	case t.kind == listTerm:
		sort.SliceStable(t.args, func(i, j int) bool { return t.args[i].form < t.args[j].form })
		t.args = distinct(t.args)
	case t.kind != callTerm:
	case t.name == "neg" && t.args[0].kind == numberTerm:
		t.kind, t.number, t.name, t.args = numberTerm, 0-t.args[0].number, "", nil // 0-x: no negative zero
	case t.name == "&&" || t.name == "||":
		t.args = flatten(t.name, t.args)
		sort.SliceStable(t.args, func(i, j int) bool { return before(t.args[i], t.args[j]) })
	case t.name == "+" || t.name == "*" || t.name == "min" || t.name == "max":
		sort.SliceStable(t.args, func(i, j int) bool { return before(t.args[i], t.args[j]) })
	case flipped[t.name] != "":
		if before(t.args[1], t.args[0]) || t.args[0].form == t.args[1].form && flipped[t.name] < t.name {
			t.args[0], t.args[1] = t.args[1], t.args[0]
			t.name = flipped[t.name]
		}
	}
	t.nodes, t.depth = 1, 1
	for _, a := range t.args {
		t.nodes += a.nodes
		t.depth = max(t.depth, a.depth+1)
	}
	t.form = t.print()
	return t
}

// flatten opens nested chains of one logical operator; two-valued logic is associative.
func flatten(operator string, args []*term) []*term {
	var flat []*term
	for _, a := range args {
		if a.kind == callTerm && a.name == operator {
			flat = append(flat, a.args...) // a is canonical, so its chain is flat
		} else {
			flat = append(flat, a)
		}
	}
	return flat
}

func distinct(sorted []*term) []*term {
	var kept []*term
	for _, a := range sorted {
		if len(kept) == 0 || kept[len(kept)-1].form != a.form {
			kept = append(kept, a)
		}
	}
	return kept
}

func (t *term) print() string {
	switch t.kind {
	case columnTerm:
		return printColumn(t.name)
	case numberTerm:
		return printNumber(t.number)
	case textTerm:
		return quote(t.name)
	case timeTerm:
		return printTime(t.number)
	case truthTerm:
		return strconv.FormatBool(t.number != 0)
	case nullTerm:
		return "null"
	case listTerm:
		return "[" + join(t.args, ", ", (*term).text) + "]"
	}
	f := functions[t.name]
	switch {
	case t.name == "neg":
		return "-" + t.args[0].inner()
	case t.name == "!":
		return "!" + t.args[0].inner()
	case t.name == "?:":
		return t.args[0].inner() + " ? " + t.args[1].inner() + " : " + t.args[2].inner()
	case f.style == operator:
		return join(t.args, " "+t.name+" ", (*term).inner)
	case f.style == method:
		return t.args[0].inner() + "." + t.name + "(" + join(t.args[1:], ", ", (*term).text) + ")"
	}
	return t.name + "(" + join(t.args, ", ", (*term).text) + ")"
}

func (t *term) text() string {
	if t.form == "" {
		return t.print()
	}
	return t.form
}

// forget drops the forms of all parts of a finished tree: with them a chain of k operations would hold k texts of its length.
func (t *term) forget() {
	t.walk(func(part *term) {
		if part != t && len(part.args) > 0 {
			part.form = ""
		}
	})
}

// inner is the form as an operand: operators in parentheses, so that no rule of precedence is needed to read it.
func (t *term) inner() string {
	if t.kind == callTerm && functions[t.name].style == operator {
		return "(" + t.text() + ")"
	}
	return t.text()
}

func join(args []*term, separator string, print func(*term) string) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = print(a)
	}
	return strings.Join(parts, separator)
}

// printNumber writes a double so that CEL reads the same double back: plain where that is short.
func printNumber(x float64) string {
	if a := math.Abs(x); x == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'e', -1, 64)
}

func printTime(microseconds float64) string {
	return `timestamp("` + time.UnixMicro(int64(microseconds)).UTC().Format(time.RFC3339Nano) + `")`
}

// printColumn is the name itself where CEL reads it as one identifier, else col("…").
func printColumn(name string) string {
	if isIdentifier(name) {
		return name
	}
	return "col(" + quote(name) + ")"
}

// reserved are the words that CEL does not take as an identifier.
var reserved = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true, "function": true, "if": true,
	"import": true, "in": true, "let": true, "loop": true, "package": true, "namespace": true, "null": true, "return": true, "true": true,
	"var": true, "void": true, "while": true,
}

func isIdentifier(s string) bool {
	if s == "" || reserved[s] || isDigit(s[0]) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isLetter(s[i]) && !isDigit(s[i]) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// quote writes a text in double quotes with CEL's escapes. Only what could not stand in a one-line literal is escaped: a
// rule about printable characters would change identities with the version of Unicode.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
