package kernel

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// absent is a code that no row has: a dictionary has at most as many texts as a table has rows.
const absent = math.MaxUint32

// text lowers a test of texts.
func (l *lowering) text(n *rowfn.Node) (id, error) {
	if want := arity(n.Op); len(n.Args) < want || len(n.Args) > want && n.Op != rowfn.OpIn {
		return none, malformed(n, "%d arguments", len(n.Args))
	}
	for i, a := range n.Args {
		if a == nil || a.Type != rowfn.Text || a.Op != rowfn.OpColumn && a.Op != rowfn.OpText {
			return none, malformed(n, "argument %d is no text", i)
		}
		if a.Op == rowfn.OpText && !utf8.ValidString(a.Text) {
			return none, malformed(n, "argument %d is not UTF-8", i)
		}
		if a.Op == rowfn.OpColumn {
			if c, ok := l.index[a.Text]; !ok || l.table.Column(c).Kind != dataset.Text {
				return none, malformed(a, "no text column %q", a.Text)
			}
		}
	}
	left, rest := n.Args[0], n.Args[1:]
	switch {
	case n.Op == rowfn.OpIsNull:
		if left.Op == rowfn.OpText {
			return l.truth(false), nil
		}
		return l.add(value{op: opCodeEq, a: none, b: none, c: none, column: l.index[left.Text], aux: 0}, ""), nil
	case n.Op != rowfn.OpEq && n.Op != rowfn.OpNe:
		for _, a := range rest {
			if a.Op != rowfn.OpText {
				return none, malformed(n, "a column stands where a literal text is wanted")
			}
		}
		return l.textTable(n.Op, left, rest), nil
	case left.Op == rowfn.OpText && rest[0].Op == rowfn.OpText:
		return l.truth((left.Text == rest[0].Text) == (n.Op == rowfn.OpEq)), nil
	case left.Op == rowfn.OpText:
		left, rest = rest[0], n.Args[:1]
	case rest[0].Op == rowfn.OpColumn:
		return l.twoTexts(n.Op == rowfn.OpEq, l.index[left.Text], l.index[rest[0].Text]), nil
	}
	o := opCodeEq
	if n.Op == rowfn.OpNe {
		o = opCodeNe
	}
	return l.codeTest(o, left, rest[0].Text), nil
}

// codeTest compares a column with a literal. Whether the dictionary has the literal must not shape the program, or its time would
// tell: a literal that is absent is compared as any other, and two of them are two values, by their text.
func (l *lowering) codeTest(o op, column *rowfn.Node, literal string) id {
	at := l.index[column.Text]
	return l.add(value{op: o, a: none, b: none, c: none, column: at, aux: l.code(at, literal)}, "="+literal)
}

// code is the code of a text in a column, or absent.
func (l *lowering) code(column int, text string) uint32 {
	if code, ok := l.table.Column(column).Dictionary.Find(text); ok {
		return code
	}
	return absent
}

// textTable is in, or a test of a part of the text: a bit for each code of the dictionary.
func (l *lowering) textTable(o rowfn.Op, left *rowfn.Node, literals []*rowfn.Node) id {
	if left.Op == rowfn.OpText {
		for _, a := range literals {
			if textTest(o, left.Text, a.Text) {
				return l.truth(true)
			}
		}
		return l.truth(false)
	}
	column := l.index[left.Text]
	var name strings.Builder
	name.WriteString(strconv.Itoa(int(o)))
	texts := make([]string, len(literals))
	for i, a := range literals {
		texts[i] = a.Text
		name.WriteString(strconv.Quote(a.Text))
	}
	t := &table{op: o, dictionary: &l.table.Column(column).Dictionary, literals: texts}
	return l.add(value{op: opCodeTable, a: none, b: none, c: none, column: column, table: t}, name.String())
}

func textTest(o rowfn.Op, text, literal string) bool {
	switch o {
	case rowfn.OpHasPrefix:
		return strings.HasPrefix(text, literal)
	case rowfn.OpHasSuffix:
		return strings.HasSuffix(text, literal)
	case rowfn.OpContains:
		return strings.Contains(text, literal)
	}
	return text == literal
}

// twoTexts compares two columns by the marks of their texts.
func (l *lowering) twoTexts(equal bool, a, b int) id {
	a, b = min(a, b), max(a, b)
	o := opCodesNe
	if equal {
		o = opCodesEq
	}
	return l.add(value{op: o, a: none, b: none, c: none, column: a, other: b,
		marks: &[2][]dataset.Mark{l.table.Column(a).Dictionary.Marks(), l.table.Column(b).Dictionary.Marks()}}, "")
}

// padded is a sorted list made longer, for search, with infinities, which no row holds: to a power of two of which the
// last is never looked at.
func padded(list []float64) []float64 {
	n := 1
	for n-1 < len(list) {
		n *= 2
	}
	out := slices.Clone(list)
	for len(out) < n {
		out = append(out, math.Inf(1))
	}
	return out
}

// listText is the list's bits as a key.
func listText(list []float64) string {
	var b []byte
	for _, x := range list {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return string(b)
}
