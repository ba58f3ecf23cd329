package sql

import (
	"strconv"
	"strings"
)

// term is a piece of SQL whose arguments are other terms: text[0] args[0] text[1] … An argument may come several times. Equal terms are one.
type term struct {
	id   int
	text []string
	args []*term
	leaf bool // a column or a constant, which is never named
}

// terms are those of a statement.
type terms struct {
	known map[string]*term
}

// leaf is a column or a constant.
func (ts *terms) leaf(text string) *term {
	return ts.one([]string{text}, nil, true)
}

// of fills a template.
func (ts *terms) of(template string, args ...*term) *term {
	var text []string
	var order []*term
	for {
		before, after, more := strings.Cut(template, "$")
		text = append(text, before)
		if !more {
			return ts.one(text, order, false)
		}
		order, template = append(order, args[after[0]-'1']), after[1:]
	}
}

func (ts *terms) one(text []string, args []*term, leaf bool) *term {
	var key strings.Builder
	for i, part := range text {
		key.WriteString(part)
		if i < len(args) {
			key.WriteByte('$')
			key.WriteString(strconv.Itoa(args[i].id))
			key.WriteByte('$')
		}
	}
	if known, ok := ts.known[key.String()]; ok {
		return known
	}
	t := &term{len(ts.known), text, args, leaf}
	ts.known[key.String()] = t
	return t
}
