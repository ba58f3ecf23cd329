package sql

import (
	"fmt"
	"slices"
	"strings"
)

// layers print terms: what is named stands in a subquery, the others where they are used.
type layers struct {
	order  []*term // arguments first
	uses   map[*term]int
	size   map[*term]int
	name   map[*term]string
	level  map[*term]int // of the subquery in which it is computed, from 1; of a column and of what is made of columns alone 0
	needs  map[*term]map[*term]bool
	shown  map[*term]string
	levels int
	total  int // bytes of the printed terms
}

const (
	nameSize = 5
	// longest is the most bytes of an expression that has no name, where names are given: engines compile each into a function of limited size.
	longest = 4 << 10
)

// newLayers plans the printing of some terms. Named are, if any, those that are used more than once, and long ones.
func newLayers(outputs []*term, named bool) *layers {
	l := &layers{uses: map[*term]int{}, size: map[*term]int{}, name: map[*term]string{}, level: map[*term]int{}, needs: map[*term]map[*term]bool{}, shown: map[*term]string{}}
	seen, output := map[*term]bool{}, map[*term]bool{}
	for _, t := range outputs {
		l.walk(t, seen)
		output[t] = true // it may be an aggregate, which no subquery computes
	}
	for _, t := range l.order {
		size, level, needs := 0, 0, map[*term]bool{}
		for _, part := range t.text {
			size += len(part)
		}
		for _, a := range t.args {
			size += l.length(a)
			if l.name[a] != "" || a.leaf {
				needs[a] = true
				level = max(level, l.level[a])
				continue
			}
			level = max(level, l.level[a])
			for b := range l.needs[a] {
				needs[b] = true
			}
		}
		l.size[t], l.level[t], l.needs[t] = min(size, 1<<40), level, needs
		if named && !t.leaf && !output[t] && (l.uses[t] > 1 || size > longest) {
			l.name[t] = fmt.Sprint("n", len(l.name))
			l.level[t] = level + 1
			l.levels = max(l.levels, level+1)
			l.total += size
		}
	}
	for _, t := range outputs {
		l.total = min(l.total+l.length(t), 1<<40)
	}
	return l
}

func (l *layers) walk(t *term, seen map[*term]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	for _, a := range t.args {
		l.walk(a, seen)
		l.uses[a]++
	}
	l.order = append(l.order, t)
}

func (l *layers) length(t *term) int {
	if l.name[t] != "" {
		return nameSize
	}
	return l.size[t]
}

// show prints a term as it is used.
func (l *layers) show(t *term) string {
	if name := l.name[t]; name != "" {
		return name
	}
	return l.full(t)
}

// full prints the term itself.
func (l *layers) full(t *term) string {
	if shown, ok := l.shown[t]; ok {
		return shown
	}
	var b strings.Builder
	for i, part := range t.text {
		b.WriteString(part)
		if i < len(t.args) {
			b.WriteString(l.show(t.args[i]))
		}
	}
	l.shown[t] = b.String()
	return b.String()
}

// from is what the terms are selected from: the table and what follows its name, in as many subqueries as names need. columns are the leaves that are columns.
func (l *layers) from(table string, outputs []*term, columns map[*term]bool) string {
	carried := make([]map[*term]bool, l.levels+2) // by level: what passes through its subquery
	for i := range carried {
		carried[i] = map[*term]bool{}
	}
	carry := func(t *term, by int) {
		for d := range l.needs[t] {
			if !columns[d] && l.name[d] == "" {
				continue // a constant
			}
			for level := l.level[d] + 1; level < by; level++ {
				carried[level][d] = true
			}
		}
	}
	for _, t := range l.order {
		if l.name[t] != "" {
			carry(t, l.level[t])
		}
	}
	for _, t := range outputs {
		if l.name[t] != "" || columns[t] {
			for level := l.level[t] + 1; level <= l.levels; level++ {
				carried[level][t] = true
			}
			continue
		}
		carry(t, l.levels+1)
	}
	for level := 1; level <= l.levels; level++ {
		var items []string
		for _, t := range l.order {
			switch {
			case carried[level][t]:
				items = append(items, l.show(t))
			case l.name[t] != "" && l.level[t] == level:
				items = append(items, l.full(t)+" AS "+l.name[t])
			}
		}
		slices.Sort(items) // by name, whatever the order of terms
		table = "(SELECT " + strings.Join(items, ",") + " FROM " + table + ")"
	}
	return table
}
