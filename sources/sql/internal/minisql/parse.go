// Package minisql runs the statements of package sql over rows in memory, as ClickHouse or Trino would: just as much of SQL as they use, and what engines do with nulls, literals, rounding and casts where the
// two differ. Tests without an engine compare its sums with the kernels'.
package minisql

import (
	"fmt"
	"strings"
)

// expr is an expression: a name, a literal, or an operation.
type expr struct {
	op   string // "name", "int", "text", "bytes", "case", "cast", "is null", an operator, or a function's name with "()"
	text string
	args []expr
}

// query is a SELECT.
type query struct {
	items []item
	table string // or
	from  *query
	where *expr
	group *expr
}

type item struct {
	e  expr
	as string
}

type parser struct {
	tokens []string
	at     int
}

func tokenize(text string) (tokens []string) {
	word := func(c byte) bool {
		return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ':
			i++
		case c == '\'' || c == 'x' && i+1 < len(text) && text[i+1] == '\'':
			end := i + 1 + strings.IndexByte(text[i+1:], '\'')
			if c == 'x' {
				end = i + 2 + strings.IndexByte(text[i+2:], '\'')
			}
			tokens = append(tokens, text[i:end+1])
			i = end + 1
		case word(c):
			j := i
			for j < len(text) && word(text[j]) {
				j++
			}
			tokens = append(tokens, text[i:j])
			i = j
		case i+1 < len(text) && (text[i:i+2] == "<>" || text[i:i+2] == "<=" || text[i:i+2] == ">="):
			tokens = append(tokens, text[i:i+2])
			i += 2
		default:
			tokens = append(tokens, string(c))
			i++
		}
	}
	return tokens
}

func (p *parser) peek() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return ""
}

func (p *parser) take() string {
	t := p.peek()
	p.at++
	return t
}

func (p *parser) accept(t string) bool {
	if p.peek() == t {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(t string) {
	if got := p.take(); got != t {
		panic(fmt.Sprintf("minisql: %q where %q is wanted, before %q", got, t, strings.Join(p.tokens[min(p.at, len(p.tokens)):min(p.at+8, len(p.tokens))], " ")))
	}
}

func (p *parser) query() *query {
	p.want("SELECT")
	q := &query{}
	for {
		i := item{e: p.or()}
		if p.accept("AS") {
			i.as = p.take()
		} else {
			i.as = i.e.text
		}
		q.items = append(q.items, i)
		if !p.accept(",") {
			break
		}
	}
	p.want("FROM")
	if p.accept("(") {
		q.from = p.query()
		p.want(")")
	} else {
		q.table = p.take()
	}
	if p.accept("WHERE") {
		e := p.or()
		q.where = &e
	}
	if p.accept("GROUP") {
		p.want("BY")
		e := p.or()
		q.group = &e
	}
	return q
}

func (p *parser) or() expr {
	e := p.and()
	for p.accept("OR") {
		e = expr{op: "or", args: []expr{e, p.and()}}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.accept("AND") {
		e = expr{op: "and", args: []expr{e, p.not()}}
	}
	return e
}

func (p *parser) not() expr {
	if p.accept("NOT") {
		return expr{op: "not", args: []expr{p.not()}}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	e := p.sum()
	switch p.peek() {
	case "=", "<", ">", "<=", ">=", "<>":
		return expr{op: p.take(), args: []expr{e, p.sum()}}
	case "IS":
		p.take()
		p.want("NULL")
		return expr{op: "is null", args: []expr{e}}
	case "IN":
		p.take()
		p.want("(")
		return expr{op: "in", args: append([]expr{e}, p.list()...)}
	}
	return e
}

func (p *parser) sum() expr {
	e := p.product()
	for p.peek() == "+" || p.peek() == "-" {
		e = expr{op: p.take(), args: []expr{e, p.product()}}
	}
	return e
}

func (p *parser) product() expr {
	e := p.primary()
	for p.peek() == "*" || p.peek() == "/" || p.peek() == "%" {
		e = expr{op: p.take(), args: []expr{e, p.primary()}}
	}
	return e
}

// list is the rest of a list, to its bracket.
func (p *parser) list() (list []expr) {
	for !p.accept(")") {
		list = append(list, p.or())
		p.accept(",")
	}
	return list
}

func (p *parser) primary() expr {
	switch t := p.take(); {
	case t == "(":
		e := p.or()
		p.want(")")
		return e
	case t == "-":
		return expr{op: "negative", args: []expr{p.primary()}}
	case t == "CASE":
		e := expr{op: "case"}
		for p.accept("WHEN") {
			test := p.or()
			p.want("THEN")
			e.args = append(e.args, test, p.or())
		}
		p.want("ELSE")
		e.args = append(e.args, p.or())
		p.want("END")
		return e
	case t == "CAST":
		p.want("(")
		e := p.or()
		p.want("AS")
		e = expr{op: "cast", text: p.take(), args: []expr{e}}
		p.want(")")
		return e
	case t == "BIGINT":
		return expr{op: "int", text: strings.Trim(p.take(), "'")}
	case t == "NULL", t == "true", t == "false":
		return expr{op: t}
	case strings.HasPrefix(t, "x'"):
		return expr{op: "bytes", text: t[2 : len(t)-1]}
	case t[0] == '\'':
		return expr{op: "text", text: t[1 : len(t)-1]}
	case t[0] >= '0' && t[0] <= '9':
		return expr{op: "int", text: t}
	case p.accept("("):
		if t == "count" {
			p.want("*")
			p.want(")")
			return expr{op: "count()"}
		}
		return expr{op: t + "()", args: p.list()}
	default:
		return expr{op: "name", text: t}
	}
}
