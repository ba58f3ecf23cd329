package expr

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/parser"
)

// maxTranslated bounds the length of an expression that an error suggests, in bytes.
const maxTranslated = 4 * maxEcho

// translated is an expression in the words of SQL or of pandas in those of this language: of plan = 'plus' AND region IS NOT NULL it is plan == 'plus' && region != null.
// It is "" where that is not an expression of this language. It is for people to read: nothing evaluates it.
func translated(source string, cel *parser.Parser) string {
	if len(source) > maxTranslated {
		return ""
	}
	t := translator{in: lexemes(source)}
	for len(t.in) > 0 {
		if !t.next() {
			return ""
		}
	}
	var b strings.Builder
	for _, l := range t.out {
		b.WriteString(l.space + l.text)
	}
	text := strings.TrimSpace(b.String())
	if text == strings.TrimSpace(source) || len(text) > maxTranslated {
		return ""
	}
	tree, errs := cel.Parse(common.NewTextSource(text))
	if len(errs.GetErrors()) > 0 {
		return ""
	}
	r := reader{syntax: &Syntax{source: text}, info: tree.SourceInfo()}
	if _, err := r.term(tree.Expr(), 1); err != nil {
		return ""
	}
	return text
}

// lexeme is a word, a text in quotes, a run of operator foreign, or one other sign, and the space before it.
type lexeme struct{ space, text string }

func (l lexeme) is(words ...string) bool { return slices.Contains(words, strings.ToUpper(l.text)) }

// operand reports whether it is a word or a text in quotes that can stand on one side of an operator.
func (l lexeme) operand() bool {
	return l.text != "" && (isLetter(l.text[0]) || isDigit(l.text[0]) || quoted(l.text)) && !l.is("AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE")
}

func quoted(s string) bool { return len(s) > 1 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] }

func lexemes(source string) (all []lexeme) {
	for source != "" {
		bare := strings.TrimLeft(source, " \t\r\n\f")
		l := lexeme{space: source[:len(source)-len(bare)]}
		if bare == "" {
			break
		}
		switch {
		case bare[0] == '\'' || bare[0] == '"':
			end := 1
			for end < len(bare) && bare[end] != bare[0] {
				if bare[end] == '\\' {
					end++
				}
				end++
			}
			l.text = bare[:min(end+1, len(bare))]
		case isDigit(bare[0]):
			end := 1
			for end < len(bare) && (isDigit(bare[end]) || isLetter(bare[end]) || bare[end] == '.') {
				end++
			}
			l.text = bare[:end]
		default:
			l.text = firstToken(bare)
		}
		all = append(all, l)
		source = bare[len(l.text):]
	}
	return all
}

// translator writes lexemes in the words of this language.
type translator struct{ in, out []lexeme }

// foreign are the operators and words that have one in this language wherever they stand.
var foreign = map[string]string{
	"=": "==", "===": "==", "<>": "!=", "&": "&&", "|": "||", "AND": "&&", "OR": "||", "NULL": "null", "NONE": "null", "TRUE": "true", "FALSE": "false",
}

// at is one of the lexemes to come; empty behind the last.
func (t *translator) at(i int) lexeme {
	if i < len(t.in) {
		return t.in[i]
	}
	return lexeme{}
}

// take writes a text in place of the next n lexemes.
func (t *translator) take(n int, text string) bool {
	t.out = append(t.out, lexeme{t.in[0].space, text})
	t.in = t.in[n:]
	return true
}

// next writes the next lexemes, and reports whether it could.
func (t *translator) next() bool {
	first, second := t.at(0), t.at(1)
	switch {
	case quoted(first.text) && second.is("=", "==", "<>", "!=", "IS", "IN", "LIKE", "BETWEEN", "NOT"):
		return false // a name in quotes, as SQL has them, is a text here: the whole would be another condition
	case first.is("IS") && second.is("NULL", "NONE"):
		return t.take(2, "== null")
	case first.is("IS") && second.is("NOT") && t.at(2).is("NULL", "NONE"):
		return t.take(3, "!= null")
	case first.is("IN", "LIKE", "BETWEEN"):
		return t.test(0)
	case first.is("NOT") && second.is("IN", "LIKE", "BETWEEN"):
		return t.test(1)
	case first.is("NOT", "~") && second.text == "(":
		t.in[1].space = ""
		return t.take(1, "!")
	case first.is("NOT", "~"):
		// Elsewhere NOT is of the whole comparison behind it, and ! of the next operand alone.
		if after := t.at(2); !second.operand() || after.text != "" && !after.is("AND", "OR", "&", "|", "&&", "||", ")") {
			return false
		}
		t.in[1].space = ""
		return t.take(1, "!")
	}
	if sign, ok := foreign[strings.ToUpper(first.text)]; ok {
		return t.take(1, sign)
	}
	return t.take(1, first.text)
}

// test writes the test whose word is at a place of the lexemes to come, with the column before it, which is written already: x NOT IN ('a', 'b') is !(x in ['a', 'b']).
func (t *translator) test(at int) bool {
	if at == 0 && t.in[0].is("IN") {
		space := t.in[0].space
		t.in = t.in[1:]
		t.out = append(t.out, lexeme{space, "in " + t.list()})
		return true
	}
	last := len(t.out) - 1
	if last < 0 || !t.out[last].operand() || last > 0 && !slices.Contains([]string{"(", "&&", "||", "!"}, t.out[last-1].text) {
		return false
	}
	x, word := t.out[last], t.in[at]
	t.in = t.in[at+1:]
	text := ""
	switch {
	case word.is("IN"):
		text = x.text + " in " + t.list()
	case word.is("BETWEEN"):
		low := t.number()
		if low == "" || !t.at(0).is("AND") {
			return false
		}
		t.in = t.in[1:]
		high := t.number()
		if high == "" {
			return false
		}
		text = x.text + " >= " + low + " && " + x.text + " <= " + high
	default:
		pattern := t.at(0).text
		if !quoted(pattern) {
			return false
		}
		if text = like(x.text, pattern); text == "" {
			return false
		}
		t.in = t.in[1:]
	}
	if at > 0 {
		text = "!(" + text + ")"
	}
	t.out[last].text = text
	return true
}

// list takes the list on the right of in; its brackets are round elsewhere. What is no list stays, and is then no expression either.
func (t *translator) list() string {
	if t.at(0).text != "(" && t.at(0).text != "[" {
		return ""
	}
	text := "["
	for i, l := range t.in[1:] {
		switch {
		case l.text == ")" || l.text == "]":
			t.in = t.in[i+2:]
			return text + "]"
		case l.text != "," && l.text != "-" && !l.operand():
			return ""
		}
		text += l.space + l.text
	}
	return ""
}

// number takes a bound of BETWEEN, which may have a sign.
func (t *translator) number() string {
	sign := ""
	if t.at(0).text == "-" {
		sign, t.in = "-", t.in[1:]
	}
	l := t.at(0)
	if !l.operand() {
		return ""
	}
	t.in = t.in[1:]
	return sign + l.text
}

// like is the test for a pattern of SQL that has % at its ends alone; "" for others.
func like(column, pattern string) string {
	inner := pattern[1 : len(pattern)-1]
	text := strings.Trim(inner, "%")
	begins, ends := strings.HasSuffix(inner, "%"), strings.HasPrefix(inner, "%")
	text = pattern[:1] + text + pattern[:1]
	switch {
	case strings.ContainsAny(text, "%_"):
		return ""
	case begins && ends:
		return column + ".contains(" + text + ")"
	case begins:
		return column + ".startsWith(" + text + ")"
	case ends:
		return column + ".endsWith(" + text + ")"
	}
	return column + " == " + text
}
