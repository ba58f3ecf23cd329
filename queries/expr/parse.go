package expr

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/parser"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Limits on one expression. They bound the time to parse it (some milliseconds) and the scratch memory of a kernel,
// which holds one block of rows for each level of depth. A linear score of a hundred features fits with room to spare.
const (
	MaxSource = 16 << 10 // bytes of text
	MaxNodes  = 4096     // nodes of the tree, members of lists included
	MaxDepth  = 192      // levels of the tree; a sum of k terms is k levels deep
	MaxList   = 2048     // members of one in-list
)

// Syntax is an expression that was parsed but not yet checked against a schema. It is immutable.
type Syntax struct {
	source string
	root   *term
}

// Parse reads the text of an expression. It refuses what no schema could make right: bad syntax, unknown functions and
// wrong numbers of arguments, what lies outside of the language, and what is over a limit. An error is an *Error.
func Parse(src string) (*Syntax, error) {
	s, err := parse(src, celParser(true))
	if err != nil {
		return nil, err // a nil *Error must not become a non-nil error
	}
	return s, nil
}

// Source is the text as it was given.
func (s *Syntax) Source() string { return s.source }

// Canonical is the one form that all spellings of an expression share: it does not depend on whitespace, redundant
// parentheses, the order of commutative operands (of +, *, ==, !=, min and max, of whole chains of && and of ||), the
// direction of a comparison, the order and repetition of in-list members, the spelling of numbers, strings and times.
// Two expressions with one canonical form evaluate alike, bit for bit, for the checked tree is made from it; the
// converse is not claimed. It parses to itself, unless its parentheses carry it over MaxSource.
func (s *Syntax) Canonical() string { return s.root.form }

// Column is the expression that is the column of this name, canonical.
func Column(name string) string { return printColumn(name) }

// Column is the name of the column, where the expression is nothing but a column.
func (s *Syntax) Column() (name string, ok bool) { return s.root.name, s.root.kind == columnTerm }

// Columns are the names of the columns that the expression reads, sorted and without repetition.
func (s *Syntax) Columns() []string {
	seen := map[string]bool{}
	s.root.walk(func(t *term) {
		if t.kind == columnTerm {
			seen[t.name] = true
		}
	})
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Check types the expression against a schema and makes it total. An error is an *Error.
func (s *Syntax) Check(schema dataset.Schema) (*rowfn.Node, error) {
	n, err := s.check(schema)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// CheckCondition is Check for a place where a condition is wanted.
func (s *Syntax) CheckCondition(schema dataset.Schema) (*rowfn.Node, error) {
	return s.checkAs(schema, rowfn.Condition)
}

// CheckNumber is Check for a place where a number is wanted.
func (s *Syntax) CheckNumber(schema dataset.Schema) (*rowfn.Node, error) {
	return s.checkAs(schema, rowfn.Number)
}

func (s *Syntax) checkAs(schema dataset.Schema, want rowfn.Type) (*rowfn.Node, error) {
	n, err := s.check(schema)
	if err == nil && n.Type != want {
		err = s.mismatch(s.root, n, want)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func parse(src string, cel *parser.Parser) (*Syntax, *Error) {
	s := &Syntax{source: src}
	switch {
	case len(src) > MaxSource:
		return nil, &Error{Line: 1, Column: 1, Detail: fmt.Sprintf("the expression has %d bytes, more than %d", len(src), MaxSource)}
	case !utf8.ValidString(src):
		return nil, &Error{Source: strings.ToValidUTF8(src, "\uFFFD"), Line: 1, Column: 1, Detail: "the expression is not valid UTF-8"}
	case strings.TrimSpace(src) == "":
		return nil, s.fail(0, "the expression is empty", "a column, a number, or an operation on them")
	}
	source := common.NewTextSource(src)
	tree, errs := cel.Parse(source)
	if list := errs.GetErrors(); len(list) > 0 {
		problem := s.syntaxError(list[0])
		if whole := translated(src, cel); whole != "" {
			problem.Suggestion = whole
		}
		return nil, problem
	}
	r := reader{syntax: s, info: tree.SourceInfo()}
	root, err := r.term(tree.Expr(), 1)
	if err != nil {
		return nil, err
	}
	root.forget()
	s.root = root
	return s, nil
}

// celParser is a parser without macros. cel-go has two: the hand-written one, which we use since the other needs up to
// a hundred times longer (160 ms for 16 KiB of negative numbers), and the one that is generated from CEL's grammar, which
// the tests compare it with.
func celParser(handWritten bool) *parser.Parser {
	p, err := parser.NewParser(
		parser.EnablePrattParser(handWritten),
		parser.MaxRecursionDepth(4*MaxDepth), // grammar rules, several a level; MaxDepth itself is counted on our tree
		parser.ErrorReportingLimit(1),
		parser.ErrorRecoveryLimit(1),
		parser.ExpressionSizeCodePointLimit(MaxSource),
		parser.EnableIdentEscapeSyntax(false),
	)
	if err != nil {
		panic("expr: the options of cel-go's parser: " + err.Error()) // constants above; a test would see it
	}
	return p
}

// fail is an error at an offset in code points.
func (s *Syntax) fail(offset int, detail, expected string) *Error {
	e := &Error{Source: s.source, Line: 1, Column: 1, Detail: detail, Expected: expected}
	for i, r := range s.source {
		if offset == 0 {
			e.Offset = i
			return e
		}
		offset--
		e.Column++
		if r == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	e.Offset = len(s.source)
	return e
}

// words are what people of other languages write, with what this one has.
var words = map[string]string{
	"and": "&&", "AND": "&&", "&": "&&", "or": "||", "OR": "||", "|": "||", "not": "!", "NOT": "!", "=": "==", "<>": "!=", "~": "!",
	"if": "condition ? a : b", "is": "== null", "IS": "== null", "IN": "in", "===": "==", "^": "exp(b * log(a))", "**": "exp(b * log(a))",
	"none": "null", "NULL": "null", "None": "null",
}

// syntaxError says what cel-go's parser found, in the words of this language.
func (s *Syntax) syntaxError(found *common.Error) *Error {
	offset := 0
	for line := 1; line < found.Location.Line(); line++ {
		rest := string([]rune(s.source)[offset:])
		i := strings.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		offset += utf8.RuneCountInString(rest[:i+1])
	}
	e := s.fail(offset+max(found.Location.Column(), 0), "", "")
	message := strings.TrimPrefix(found.Message, "Syntax error: ")
	rest := s.source[e.Offset:]
	switch {
	case strings.Contains(message, "recursion"):
		e.Detail = fmt.Sprintf("the expression is nested deeper than %d levels", MaxDepth)
		return e
	case strings.TrimSpace(rest) == "":
		e.Detail, e.Expected = "the expression ends too early", "a value or a closing bracket"
		return e
	}
	token := firstToken(rest)
	e.Detail = "unexpected " + quoteShort(token)
	switch {
	case strings.HasPrefix(message, "missing"):
		e.Expected = strings.Trim(strings.Split(strings.TrimPrefix(message, "missing "), " at ")[0], "'")
	case strings.Contains(message, "expecting <EOF>"):
		e.Expected = "an operator or the end of the expression"
	case strings.Contains(message, "reserved"):
		e.Detail = quoteShort(token) + " is a reserved word"
		e.Suggestion = "col(" + quote(token) + ")"
	case strings.Contains(message, "invalid int") || strings.Contains(message, "invalid double") || strings.Contains(message, "invalid uint"):
		e.Detail = "the number is out of range"
		return e
	case strings.HasPrefix(token, `"`) || strings.HasPrefix(token, `'`):
		e.Detail = "the text is not closed or holds an unknown escape"
		return e
	case strings.HasPrefix(token, "`"):
		e.Detail = "unexpected `: a column is named without them"
		if name, _, closed := strings.Cut(rest[1:], "`"); closed && name != "" {
			e.Suggestion = printColumn(name)
		}
		return e
	}
	if word, ok := words[token]; ok {
		e.Suggestion = word
	} else if name := spaced(s.source, e.Offset); name != "" && e.Suggestion == "" {
		e.Suggestion = "col(" + quote(name) + ")"
	}
	if token[0] >= utf8.RuneSelf {
		e.Expected = `col("NAME") for a column whose name is not made of the letters a to z, digits and _`
	}
	return e
}

// spaced is the name with spaces that a word is part of which stands where no word can, as tickets in "support tickets > 2"; "" if there is none.
// at is where that word begins.
func spaced(source string, at int) string {
	word := func(b byte) bool { return isLetter(b) || isDigit(b) }
	rest := source[at:]
	if at == 0 || rest == "" || source[at-1] != ' ' || !word(rest[0]) {
		return ""
	}
	before := strings.TrimRight(source[:at], " ")
	from := len(before)
	for from > 0 && word(before[from-1]) {
		from--
	}
	if from == len(before) || !isLetter(before[from]) || languageWord(before[from:]) {
		return ""
	}
	to := at
	for next := at; next < len(source) && word(source[next]); {
		end := next
		for end < len(source) && word(source[end]) {
			end++
		}
		if languageWord(source[next:end]) {
			break
		}
		for to, next = end, end; next < len(source) && source[next] == ' '; next++ {
		}
	}
	if to == at {
		return ""
	}
	return source[from:to]
}

// languageWord reports whether a word means something in this language or in those that people come from.
func languageWord(s string) bool {
	_, foreign := words[s]
	return foreign || s == "in" || s == "true" || s == "false" || s == "null"
}

// firstToken is the word, or the run of operator signs, or the sign that a text starts with.
func firstToken(s string) string {
	s = strings.TrimLeft(s, " \t\r\n\f")
	end := 0
	for end < len(s) && (isLetter(s[end]) || isDigit(s[end])) {
		end++
	}
	if end == 0 {
		for end < len(s) && strings.IndexByte("=<>&|^*~!", s[end]) >= 0 {
			end++
		}
	}
	if end == 0 {
		_, end = utf8.DecodeRuneInString(s)
	}
	return s[:end]
}

// maxEcho is how much of a name an error repeats.
const maxEcho = 64

func quoteShort(s string) string {
	if r := []rune(s); len(r) > maxEcho {
		s = string(r[:maxEcho]) + "…"
	}
	return quote(s)
}
