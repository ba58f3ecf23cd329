package queries

import (
	"fmt"
	"slices"
)

// Promise is what a question promises of the holdout, in the query's own units: one of the members is set.
type Promise struct {
	AtMost       *float64 // the answer about the holdout itself, without noise
	AtLeast      *float64 // the same
	Disagreement *float64 // the mean distance of the values from 0; of a compare of answers that are 0 or 1, the share of rows in which these differ
	Variance     *float64 // of the values over the units
}

const promiseDoc = "under gaussian: a bound that the holdout keeps, as you know; it is checked exactly. If it is true, the interval is narrower: the tighter the bound, the narrower. If it is false, it costs a token, " +
	"and the interval is the usual one. One of at_most, at_least (the answer itself), disagreement (of a compare of 0 or 1: the share of rows that differ; else the mean distance from 0 of values whose range is symmetric), " +
	"variance (of the values over the units); default: what explain says"

func (p *Promise) members() []member {
	return []member{
		optional("at_most", number{into: &p.AtMost}, "the answer about the holdout is at most so much: in the lower half of its range"),
		optional("at_least", number{into: &p.AtLeast}, "the answer about the holdout is at least so much: in the upper half of its range"),
		optional("disagreement", number{into: &p.Disagreement, above: &zero}, "the mean distance of the values from 0 is at most so much"),
		optional("variance", number{into: &p.Variance, above: &zero}, "the variance of the values is at most so much"),
	}
}

// promiseForm is the member "promise": an object of one member.
type promiseForm struct{ into **Promise }

func (f promiseForm) read(v *violations, pointer string, in *value) {
	if in.kind != objectValue {
		v.wrongType(pointer, `an object, such as {"at_most": …}`, in)
		return
	}
	p, before := new(Promise), len(v.list)
	members := p.members()
	for _, m := range members {
		if given := in.member(m.name); given != nil {
			m.form.read(v, pointer+"/"+m.name, given)
		}
	}
	for _, given := range in.members {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == given.name }) {
			v.put(Violation{Pointer: pointer + "/" + escape(given.name), Detail: "unknown member; a promise has one of at_most, at_least, disagreement and variance", Suggestion: suggest(given.name, members)})
		}
	}
	if len(v.list) == before && len(in.members) != 1 {
		v.add(pointer, fmt.Sprintf("has %d members; a promise has one of at_most, at_least, disagreement and variance", len(in.members)))
	}
	if len(v.list) == before {
		*f.into = p
	}
}

func (f promiseForm) canonical() any {
	if *f.into == nil {
		return nil
	}
	o := map[string]any{}
	for _, m := range (*f.into).members() {
		if c := m.form.canonical(); c != nil {
			o[m.name] = c
		}
	}
	return o
}

func (f promiseForm) schema() map[string]any {
	properties := map[string]any{}
	for _, m := range new(Promise).members() {
		s := m.form.schema()
		s["description"] = m.doc
		properties[m.name] = s
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
}

// bearing is the member "promise" of a body that is the mean of one row function.
type bearing struct{ Promise *Promise }

func (b *bearing) member() member {
	return optional("promise", promiseForm{&b.Promise}, promiseDoc)
}

func (b *bearing) promise() *Promise { return b.Promise }

// bears is a body that can carry a promise.
type bears interface{ promise() *Promise }

// Promise is what the question promises of the holdout; nil if nothing.
func (q *Query) Promise() *Promise {
	if b, ok := q.body.(bears); ok {
		return b.promise()
	}
	return nil
}
