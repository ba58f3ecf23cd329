package queries

import (
	"github.com/holdoutd/holdoutd/queries/expr"
)

// What nulls count as, and how a question leaves rows with nulls out.

// skipWord is the member "null" of a question about the rows that are not null. It is a way to write a condition: the canonical form has the condition in its where, so that both are one question.
const skipWord = "skip"

const (
	nullDoc  = `what a null value counts as; default: the low end of the range. "skip" leaves rows with a null out: it is the same question as with where: x != null, at its price`
	skipOnly = `"skip" leaves out rows in which a value is null that is compared; default: such a comparison does not hold. It is the same question as with where: x != null, at its price`
	skipPair = `"skip" leaves out rows in which x or y is null. It is the same question as with where: x != null && y != null, at its price`
	skipTrue = `"skip" leaves out rows in which the label is null, or a prediction that is an expression; it is the same question as with where: label != null, at its price`
)

// skipping is a number or the word skip.
type skipping struct {
	number
	skip *bool
}

func (f skipping) read(v *violations, pointer string, in *value) {
	switch {
	case in.kind == textValue && in.text == skipWord:
		*f.skip = true
	case in.kind == textValue:
		v.wrongType(pointer, `a number or "skip"`, in)
	default:
		f.number.read(v, pointer, in)
	}
}

func (f skipping) schema() map[string]any {
	return map[string]any{"oneOf": []any{f.number.schema(), skipForm{}.schema()}}
}

// nullForm is the member "null": absent where it says the default, the low end of the range.
type nullForm struct {
	skipping
	in *Range
}

func (f nullForm) canonical() any {
	if *f.into != nil && **f.into == f.in.Low {
		return nil
	}
	return f.number.canonical()
}

// skipForm is the word skip, or absent. It has no canonical form: see leaveOut.
type skipForm struct{ into *bool }

func (f skipForm) read(v *violations, pointer string, in *value) {
	if in.kind != textValue || in.text != skipWord {
		v.add(pointer, `must be "skip"`)
		return
	}
	*f.into = true
}

func (f skipForm) canonical() any { return nil }

func (f skipForm) schema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{skipWord}}
}

// leaveOut turns skip into the condition that nothing of the expressions is null, beside where.
func leaveOut(v *violations, pointer string, skip *bool, where **expr.Syntax, of ...*expr.Syntax) {
	if !*skip || len(v.list) > 0 {
		return
	}
	*skip = false
	all := []*expr.Syntax{*where}
	for _, s := range of {
		if s == nil {
			continue
		}
		known, err := s.NotNull()
		if err != nil {
			v.expression(pointer+"/null", err)
			return
		}
		all = append(all, known)
	}
	both, err := expr.And(all...)
	if err != nil {
		v.expression(pointer+"/null", err)
		return
	}
	*where = both
}

func nullRule(v *violations, pointer string, null *float64, r Range) {
	if null != nil && r.Valid() && !r.Contains(*null) {
		v.add(pointer+"/null", "must lie in the range")
	}
}

// orLow is what a null counts as.
func orLow(null *float64, r Range) float64 {
	if null != nil {
		return *null
	}
	return r.Low
}
