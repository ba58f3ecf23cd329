package expr

import (
	"slices"
	"strings"
)

// Null is the condition that a row has no value of the expression, or that a condition in it reads a null as something else: where a number is null, or what a condition
// compares. What is tested for null in the expression itself is not among these. It is nil where there is nothing of that kind.
//
// Of a column x it is `x == null`, of a condition x > y && z == "a" it is `x == null || y == null || z == null`.
func (s *Syntax) Null() (*Syntax, error) { return s.tests(" == null", " || ") }

// NotNull is the condition that [Syntax.Null] does not hold; nil where there is nothing of that kind.
func (s *Syntax) NotNull() (*Syntax, error) { return s.tests(" != null", " && ") }

// NullColumns are the columns of which the expression can be null; plain says that it can be by nothing else, such as a number that is computed.
func (s *Syntax) NullColumns() (columns []string, plain bool) {
	found, plain := unknowns{}, true
	found.add(s.root)
	for i, t := range found.terms {
		switch {
		case slices.Contains(found.tested, found.list[i]):
		case t.kind == columnTerm:
			columns = append(columns, t.name)
		default:
			plain = false
		}
	}
	return columns, plain
}

func (s *Syntax) tests(test, join string) (*Syntax, error) {
	found := unknowns{}
	found.add(s.root)
	var tests []string
	for _, text := range found.list {
		if !slices.Contains(found.tested, text) {
			tests = append(tests, "("+text+")"+test)
		}
	}
	if len(tests) == 0 {
		return nil, nil
	}
	return Parse(strings.Join(tests, join))
}

// And is the condition that all of these hold, each of which a chain has once; nil for none. Nil ones are left out.
func And(conditions ...*Syntax) (*Syntax, error) {
	var texts []string
	for _, s := range conditions {
		if s == nil {
			continue
		}
		parts := []*term{s.root}
		if s.root.kind == callTerm && s.root.name == "&&" {
			parts = s.root.args
		}
		for _, t := range parts {
			if text := "(" + t.text() + ")"; !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return nil, nil
	}
	return Parse(strings.Join(texts, " && "))
}

// unknowns are the parts of an expression that may be null, in the order in which they stand: the canonical texts.
type unknowns struct {
	list   []string
	terms  []*term // of list
	tested []string
}

// add takes a part that is asked for its value: a number, a text, a time or a condition.
func (u *unknowns) add(t *term) {
	switch {
	case t.constant():
	case t.kind == listTerm:
		u.all(t.args)
	case t.kind == columnTerm:
		u.put(t)
	case nullTest(t) != nil:
		u.tested = append(u.tested, nullTest(t).text())
	case isCondition(t):
		u.all(t.args)
	default: // a number or a time that is computed
		if nullable(t) {
			u.put(t)
		}
		u.conditions(t)
	}
}

func (u *unknowns) all(terms []*term) {
	for _, t := range terms {
		u.add(t)
	}
}

func (u *unknowns) put(t *term) {
	if text := t.text(); !slices.Contains(u.list, text) {
		u.list, u.terms = append(u.list, text), append(u.terms, t)
	}
}

// conditions adds what the conditions within a computed number read.
func (u *unknowns) conditions(t *term) {
	for i, a := range t.args {
		if t.kind == callTerm && t.name == "?:" && i == 0 {
			u.add(a)
		} else {
			u.conditions(a)
		}
	}
}

// nullTest is what x == null and x != null test; nil for any other term.
func nullTest(t *term) *term {
	if t.kind != callTerm || t.name != "==" && t.name != "!=" {
		return nil
	}
	for i, a := range t.args {
		if a.kind == nullTerm {
			return t.args[1-i]
		}
	}
	return nil
}

// isCondition reports whether a term is a condition by its form. A column is none: what it holds is not known here.
func isCondition(t *term) bool {
	switch {
	case t.kind == truthTerm:
		return true
	case t.kind != callTerm:
		return false
	case t.name == "?:":
		return isCondition(t.args[1]) || isCondition(t.args[2])
	}
	return flipped[t.name] != "" || slices.Contains([]string{"&&", "||", "!", "in", "startsWith", "endsWith", "contains"}, t.name)
}

// nullable reports whether a term can be null.
func nullable(t *term) bool {
	switch {
	case t.kind == nullTerm || t.kind == columnTerm:
		return true
	case t.constant():
		return false
	case t.kind == callTerm && t.name == "?:":
		return nullable(t.args[1]) || nullable(t.args[2])
	}
	return true
}
