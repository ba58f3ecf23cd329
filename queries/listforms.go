package queries

import (
	"fmt"

	"github.com/holdoutd/holdoutd/queries/expr"
)

// Forms of members that are lists.

// textsForm is a list of different texts.
type textsForm struct{ into *[]string }

func (f textsForm) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) == 0 || len(in.items) > MaxValues {
		v.add(pointer, fmt.Sprintf("must be a list of 1 to %d texts", MaxValues))
		return
	}
	seen := make(map[string]bool, len(in.items))
	texts := make([]string, len(in.items))
	for i, item := range in.items {
		at := fmt.Sprintf("%s/%d", pointer, i)
		switch {
		case item.kind != textValue:
			v.wrongType(at, "a text", item)
			return
		case seen[item.text]:
			v.add(at, "occurs twice")
			return
		}
		seen[item.text], texts[i] = true, item.text
	}
	*f.into = texts
}

func (f textsForm) canonical() any {
	if *f.into == nil {
		return nil
	}
	return *f.into
}

func (f textsForm) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "maxItems": MaxValues, "uniqueItems": true}
}

// MaxEdges bounds the bins of a histogram. Bins do not cost more by being many, but each is a row function.
const MaxEdges = 1001

// edgesForm is a list of rising numbers.
type edgesForm struct{ into *[]float64 }

func (f edgesForm) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) < 2 || len(in.items) > MaxEdges {
		v.add(pointer, fmt.Sprintf("must be a list of 2 to %d rising numbers", MaxEdges))
		return
	}
	edges := make([]float64, len(in.items))
	for i, item := range in.items {
		var ok bool
		at := fmt.Sprintf("%s/%d", pointer, i)
		if edges[i], ok = item.float(); !ok {
			v.add(at, "must be a finite number")
			return
		}
		if i > 0 && edges[i] <= edges[i-1] {
			v.add(at, "must be more than the number before it")
			return
		}
	}
	*f.into = edges
}

func (f edgesForm) canonical() any { return *f.into }

func (f edgesForm) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": 2, "maxItems": MaxEdges}
}

// conditions is a list of expressions.
type conditions struct {
	into  *[]*expr.Syntax
	least int
	most  int
}

func (f conditions) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) < f.least || len(in.items) > f.most {
		v.add(pointer, fmt.Sprintf("must be a list of %d to %d conditions", f.least, f.most))
		return
	}
	seen := map[string]bool{}
	for i, item := range in.items {
		var s *expr.Syntax
		at := fmt.Sprintf("%s/%d", pointer, i)
		expression{&s}.read(v, at, item)
		if s != nil && seen[s.Canonical()] {
			v.add(at, "occurs twice")
		} else if s != nil {
			seen[s.Canonical()] = true
		}
		*f.into = append(*f.into, s)
	}
}

func (f conditions) canonical() any {
	if *f.into == nil {
		return nil
	}
	all := make([]string, len(*f.into))
	for i, s := range *f.into {
		all[i] = s.Canonical()
	}
	return all
}

func (f conditions) schema() map[string]any {
	return map[string]any{"type": "array", "items": expression{}.schema(), "minItems": f.least, "maxItems": f.most, "uniqueItems": true}
}

// textsOrNumbers is a list of different texts, or of different numbers.
type textsOrNumbers struct {
	texts   []string
	numbers []float64
}

func (l textsOrNumbers) given() bool { return l.texts != nil || l.numbers != nil }

// textsOrNumbersForm reads textsOrNumbers; absent where neither is there.
type textsOrNumbersForm struct{ into *textsOrNumbers }

func (f textsOrNumbersForm) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) == 0 || len(in.items) > MaxValues {
		v.add(pointer, fmt.Sprintf("must be a list of 1 to %d texts or numbers", MaxValues))
		return
	}
	if in.items[0].kind == textValue {
		textsForm{&f.into.texts}.read(v, pointer, in)
		return
	}
	seen := make(map[float64]bool, len(in.items))
	numbers := make([]float64, len(in.items))
	for i, item := range in.items {
		x, ok := item.float()
		at := fmt.Sprintf("%s/%d", pointer, i)
		switch {
		case item.kind != numberValue:
			v.wrongType(at, "a number, as the first is", item)
			return
		case !ok:
			v.add(at, "must be a finite number")
			return
		case seen[x]:
			v.add(at, "occurs twice")
			return
		}
		seen[x], numbers[i] = true, x+0 // no negative zero
	}
	f.into.numbers = numbers
}

func (f textsOrNumbersForm) canonical() any {
	switch {
	case f.into.texts != nil:
		return f.into.texts
	case f.into.numbers != nil:
		return f.into.numbers
	}
	return nil
}

func (f textsOrNumbersForm) schema() map[string]any {
	return map[string]any{"oneOf": []any{textsForm{}.schema(),
		map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": 1, "maxItems": MaxValues, "uniqueItems": true}}}
}

// edgesOrNone are edges that may be absent.
type edgesOrNone struct{ edgesForm }

func (f edgesOrNone) canonical() any {
	if *f.into == nil {
		return nil
	}
	return f.edgesForm.canonical()
}
