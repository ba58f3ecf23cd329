package sql

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxInline is the longest text of an expression that has no name of its own, and maxNested how deep one may be: parsers and compilers of engines go down
	// expressions by recursion, and Trino's compiler takes methods of 64 KB.
	maxInline = 4000
	maxNested = 24
)

// printer writes values of a graph as SQL.
type printer struct {
	*graph
	d     *Dialect
	uses  []int      // by id: how often it is written
	layer []int      // by id: of the names that its text has; a name's own is one more
	named []bool     // by id
	text  []string   // by id: what it is where it stands, its name if it has one
	own   []string   // by id: its expression
	reads [][]string // by id: the names of columns and of values that its expression has
	depth []int
}

func (v *value) constant() float64 { return math.Float64frombits(v.k) }

// trivial values are written wherever they are wanted.
func (v *value) trivial() bool {
	switch v.op {
	case opNumber, opInteger, opColumn, opTrue, opFalse:
		return true
	}
	return false
}

// print writes what the roots need. A root that the caller writes several times is in the list so often.
func (d *Dialect) print(g *graph, roots []id) *printer {
	n := len(g.values)
	p := &printer{graph: g, d: d, uses: make([]int, n), layer: make([]int, n), named: make([]bool, n), text: make([]string, n), own: make([]string, n), reads: make([][]string, n), depth: make([]int, n)}
	wanted := make([]bool, n)
	for _, r := range roots {
		p.uses[r]++
		wanted[r] = true
	}
	// Arguments come before what they are arguments of.
	for i := n - 1; i >= 0; i-- {
		if !wanted[i] {
			continue
		}
		v := g.at(id(i))
		if v.op == opLookup {
			p.uses[v.args[0]] += len(v.list) + 1
			wanted[v.args[0]] = true
		}
		for _, piece := range d.operations[v.op] {
			if a := piece.argument(); a >= 0 {
				p.uses[v.args[a]]++
				if v.args[a] == none {
					panic(fmt.Sprintf("sql: operation %d has no argument %d", v.op, a))
				}
				wanted[v.args[a]] = true
			}
		}
	}
	for i := range n {
		if wanted[i] {
			p.write(id(i))
		}
	}
	return p
}

// write makes the text of a value whose arguments have theirs.
func (p *printer) write(i id) {
	v := p.at(i)
	for _, a := range v.args {
		if a == none {
			continue
		}
		p.layer[i] = max(p.layer[i], p.layer[a])
		p.depth[i] = max(p.depth[i], p.depth[a]+1)
		if p.named[a] || p.at(a).op == opColumn {
			p.reads[i] = append(p.reads[i], p.text[a])
		} else {
			p.reads[i] = append(p.reads[i], p.reads[a]...)
		}
	}
	p.text[i] = p.expression(v)
	if v.op == opColumn {
		return
	}
	if !v.trivial() && !(v.op == opBit && p.named[v.args[0]]) && (p.uses[i] > 1 || len(p.text[i]) > maxInline || p.depth[i] > maxNested) {
		p.own[i] = p.text[i]
		if v.class == bits {
			p.own[i] = p.asBit(i)
		}
		p.named[i] = true
		p.text[i] = "n" + strconv.Itoa(int(i))
		p.layer[i]++
		p.depth[i] = 0
	}
}

func (p *printer) expression(v *value) string {
	switch v.op {
	case opNumber:
		return p.d.number(v.constant())
	case opInteger:
		return p.d.integer(int64(v.k))
	case opColumn:
		return v.text
	case opLookup:
		return p.d.lookup(p.d, p.text[v.args[0]], v)
	case opBit:
		return p.asBit(v.args[0])
	}
	t, ok := p.d.operations[v.op]
	if !ok {
		panic(fmt.Sprintf("sql: operation %d has no template", v.op))
	}
	var b strings.Builder
	for _, piece := range t {
		switch piece.place {
		case "":
			b.WriteString(piece.text)
		case "a", "b", "c":
			if a := v.args[piece.argument()]; p.at(a).class == bits {
				b.WriteString(p.asBit(a))
			} else {
				b.WriteString(p.text[a])
			}
		case "a?":
			b.WriteString(p.asTruth(v.args[0]))
		case "t":
			b.WriteString(p.literals(v))
		case "n":
			b.WriteString(strconv.Itoa(p.d.length(v.text)))
		case "null":
			b.WriteString(p.d.null)
		}
	}
	return b.String()
}

func (p *printer) literals(v *value) string {
	if v.op != opTextIn {
		return p.d.text(v.text)
	}
	list := make([]string, len(v.list))
	for i, text := range v.list {
		list[i] = p.d.text(text)
	}
	return strings.Join(list, ", ")
}

// asBit is a bit as 0 or 1.
func (p *printer) asBit(i id) string {
	if p.d.truths[p.at(i).op] && !p.named[i] {
		return strings.ReplaceAll(p.d.bit, "{a}", p.text[i])
	}
	return p.text[i]
}

// asTruth is a bit as the engine's truth value.
func (p *printer) asTruth(i id) string {
	if p.d.truth == "" || p.d.truths[p.at(i).op] && !p.named[i] {
		return p.text[i]
	}
	return strings.ReplaceAll(p.d.truth, "{a}", p.text[i])
}

// from is what the roots are selected from: the names that their text has, in subselects of a table. keep are columns of the table that are
// wanted as well; where is a condition on the rows, or "".
func (p *printer) from(table string, roots []id, keep []string, where string) string {
	top := 0
	var wanted []string
	wanted = append(wanted, keep...)
	for _, r := range roots {
		top = max(top, p.layer[r])
		if p.named[r] || p.at(r).op == opColumn {
			wanted = append(wanted, p.text[r])
		} else {
			wanted = append(wanted, p.reads[r]...)
		}
	}
	return p.below(top, table, wanted, where)
}

// below is a subselect of the names of a layer and of those below that are wanted.
func (p *printer) below(layer int, table string, wanted []string, where string) string {
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	if layer == 0 {
		if where == "" {
			return table
		}
		return table + " WHERE " + where
	}
	var columns, next []string
	for _, name := range wanted {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
		if err == nil && name[0] == 'n' && p.layer[i] == layer {
			columns = append(columns, p.own[i]+" AS "+name)
			next = append(next, p.reads[i]...)
		} else {
			columns, next = append(columns, name), append(next, name)
		}
	}
	return "(SELECT " + strings.Join(columns, ", ") + " FROM " + p.below(layer-1, table, next, where) + ")"
}
