package sql

import (
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

// form is the value of a row function in a row: (on-off)·[mask] + off·[where], where mask implies where; or a number's fixed point where where holds, else 0.
type form struct {
	perUnit  rowfn.PerUnit
	mask     id // or none
	where    id // opTrue for everywhere
	number   id // or none: an integer, 0 outside where
	everyRow bool
	on, off  int64
}

// function lowers a row function.
func (l *lowering) function(f *rowfn.Function) (form, error) {
	g, err := gridOf(f)
	if err != nil {
		return form{}, err
	}
	s := form{perUnit: f.PerUnit, mask: none, number: none, where: l.truth(true)}
	if f.PerUnit > rowfn.UnitShare {
		return form{}, fmt.Errorf("sql: unknown per-unit rule %d", f.PerUnit)
	}
	if f.Where != nil {
		if f.Where.Type != rowfn.Condition {
			return form{}, errors.New("sql: where is no condition")
		}
		if s.where, err = l.node(f.Where); err != nil {
			return form{}, err
		}
	}
	s.everyRow = l.at(s.where).op == opTrue
	switch {
	case f.PerUnit == rowfn.UnitAny:
		s.mask, s.on = s.where, rowfn.One
		return s, nil
	case f.Value == nil:
		s.mask, s.on = s.where, g.fixed(1)
		return s, nil
	case f.Value.Type == rowfn.Text:
		return form{}, errors.New("sql: the value is text")
	}
	v, err := l.node(f.Value)
	if err != nil {
		return form{}, err
	}
	x := l.at(v)
	switch {
	case f.Value.Type == rowfn.Condition:
		s.mask, s.on, s.off = l.logic(opAnd, v, s.where), g.fixed(1), g.fixed(0)
	case x.op == opNumber:
		s.mask, s.on = s.where, g.fixed(x.constant())
	case x.op == opSelect && l.isConst(x.args[1]) && l.isConst(x.args[2]):
		s.on, s.off = g.fixed(l.constant(x.args[1])), g.fixed(l.constant(x.args[2]))
		s.mask = l.logic(opAnd, x.args[0], s.where)
	default:
		s.number = l.fixed(v, g)
		if !s.everyRow {
			s.number = l.masked(s.number, s.where)
		}
	}
	return s, nil
}

// masked is an integer where a bit is 1, else 0. It is a product, for an engine that cuts choices short would compute the integer in some rows only.
func (g *graph) masked(a, bit id) id {
	b := g.bit(bit)
	return g.whole(opTimes, min(a, b), max(a, b))
}

// row is the value of a function in a row, as an integer.
func (l *lowering) row(s form) id {
	switch {
	case s.number != none:
		return s.number
	case s.off == 0 && s.on == 1:
		return l.bit(s.mask)
	case s.off == 0:
		return l.times(l.bit(s.mask), s.on)
	}
	return l.sum(l.times(l.bit(s.mask), s.on-s.off), l.times(l.bit(s.where), s.off))
}

// Pushable says why an engine does not sum a row function by itself, in a phrase, or "". An error says that the function does not fit the schema, as
// [engine.Table] would.
func Pushable(d *Dialect, schema dataset.Schema, f rowfn.Function) (why string, err error) {
	var reason notPushed
	if err := d.pushable(schema, &f); errors.As(err, &reason) {
		return string(reason), nil
	} else if err != nil {
		return "", err
	}
	return "", nil
}

// pushable is a notPushed error, or another one where the function is malformed.
func (d *Dialect) pushable(schema dataset.Schema, f *rowfn.Function) error {
	l := newLowering(newGraph(), schema)
	s, err := l.function(f)
	if err != nil {
		return err
	}
	if len(l.values) > maxValues {
		return tooLarge
	}
	if root := l.row(s); len(d.print(l.graph, []id{root, root}).from("t", []id{root}, nil, "")) > maxText/2 {
		return tooLarge
	}
	return nil
}
