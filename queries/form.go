package queries

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries/expr"
)

// A form is the type of a member: it reads the JSON into the field that it is bound to, writes it back in canonical
// spelling, and knows its JSON schema.
type form interface {
	read(v *violations, pointer string, in *value)
	canonical() any // nil where the member is absent
	schema() map[string]any
}

// member is one member of a query type.
type member struct {
	name     string
	doc      string
	required bool
	labels   bool // where it is absent, it is the holdout's label
	form     form
}

func required(name string, f form, doc string) member {
	return member{name: name, doc: doc, required: true, form: f}
}
func optional(name string, f form, doc string) member { return member{name: name, doc: doc, form: f} }

// labelled is a member that is required of holdouts whose owner named no label.
func labelled(f form, doc string) member {
	return member{name: "label", doc: doc + "; default: the holdout's label, which the canonical form then names", required: true, labels: true, form: f}
}

// violations collects what is wrong.
type violations struct {
	list  []Violation
	label func() string // the column that is the holdout's label; "" where there is none

	numbers Numbers // where numbers for each row are kept; nil for nowhere
	models  Models  // likewise of models
	named   int     // bytes of the canonical forms that stand where the text names models by their digests
}

// defaultLabel is the column that is the holdout's label; "" where there is none.
func (v *violations) defaultLabel() string {
	if v.label == nil {
		return ""
	}
	return v.label()
}

// maxViolations bounds the length of an error.
const maxViolations = 100

func (v *violations) add(pointer, detail string) { v.put(Violation{Pointer: pointer, Detail: detail}) }

func (v *violations) put(one Violation) {
	if len(v.list) < maxViolations {
		v.list = append(v.list, one)
	}
}

// expression adds an error of package expr, with its place.
func (v *violations) expression(pointer string, err error) {
	var e *expr.Error
	if !errors.As(err, &e) {
		v.add(pointer, err.Error())
		return
	}
	detail := e.Detail
	if e.Expected != "" {
		detail += "; expected " + e.Expected
	}
	v.put(Violation{Pointer: pointer, Detail: detail, Suggestion: e.Suggestion, Line: e.Line, Column: e.Column})
}

// err is what was collected, or nil.
func (v *violations) err() error {
	if len(v.list) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Violations: v.list}
}

func (v *violations) wrongType(pointer, want string, in *value) {
	v.add(pointer, fmt.Sprintf("must be %s, not %s", want, kindNames[in.kind]))
}

// expression is a row expression.
type expression struct{ into **expr.Syntax }

func (f expression) read(v *violations, pointer string, in *value) {
	if in.kind != textValue {
		v.wrongType(pointer, "a text: an expression", in)
		return
	}
	s, err := expr.Parse(in.text)
	if err != nil {
		v.expression(pointer, err)
		return
	}
	*f.into = s
}

func (f expression) canonical() any {
	if *f.into == nil {
		return nil
	}
	return (*f.into).Canonical()
}

func (f expression) schema() map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "maxLength": expr.MaxSource}
}

type rangeForm struct{ into *Range }

func (f rangeForm) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) != 2 {
		v.add(pointer, "must be a list of two numbers: [low, high]")
		return
	}
	var ends [2]float64
	for i, item := range in.items {
		var ok bool
		if ends[i], ok = item.float(); !ok {
			v.add(fmt.Sprintf("%s/%d", pointer, i), "must be a finite number")
			return
		}
	}
	r := Range{Low: ends[0], High: ends[1]}
	if problem := r.Problem(); problem != "" {
		v.add(pointer, problem)
		return
	}
	*f.into = r
}

func (f rangeForm) canonical() any { return []float64{f.into.Low, f.into.High} }

func (f rangeForm) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "number", "minimum": -MaxMagnitude, "maximum": MaxMagnitude}, "minItems": 2, "maxItems": 2}
}

// number is a finite number; above and most bound it where they are set.
type number struct {
	into  **float64
	above *float64 // exclusive
}

func (f number) read(v *violations, pointer string, in *value) {
	x, ok := in.float()
	switch {
	case in.kind != numberValue:
		v.wrongType(pointer, "a number", in)
	case !ok:
		v.add(pointer, "must be a finite number")
	case f.above != nil && x <= *f.above:
		v.add(pointer, fmt.Sprintf("must be more than %v", *f.above))
	default:
		*f.into = &x
	}
}

func (f number) canonical() any {
	if *f.into == nil {
		return nil
	}
	return **f.into
}

func (f number) schema() map[string]any {
	s := map[string]any{"type": "number"}
	if f.above != nil {
		s["exclusiveMinimum"] = *f.above
	}
	return s
}

// Weight says what has one vote in a mean.
type Weight string

// The weightings.
const (
	WeightUnit Weight = "unit" // every unit has one vote: the mean over units of each unit's own mean; the default
	WeightRow  Weight = "row"  // every row has one vote, but a unit no more than [LargestUnit]
)

type weightForm struct{ into *Weight }

func (f weightForm) read(v *violations, pointer string, in *value) {
	w := Weight(in.text)
	if in.kind != textValue || w != WeightUnit && w != WeightRow {
		v.add(pointer, `must be "unit" or "row"`)
		return
	}
	*f.into = w
}

func (f weightForm) canonical() any {
	if *f.into != WeightRow { // the default has one spelling: absence
		return nil
	}
	return string(WeightRow)
}

func (f weightForm) schema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{string(WeightUnit), string(WeightRow)}, "default": string(WeightUnit)}
}

// optionalRange is a range that may be left out: canonical form leaves it out too.
type optionalRange struct{ into *Range }

func (f optionalRange) read(v *violations, pointer string, in *value) {
	rangeForm{f.into}.read(v, pointer, in)
}

func (f optionalRange) canonical() any {
	if !f.into.Valid() {
		return nil
	}
	return rangeForm{f.into}.canonical()
}

func (f optionalRange) schema() map[string]any { return rangeForm{f.into}.schema() }

// choice is one of a few words; the field's value before reading, the first word, is the default.
type choice struct {
	into  *string
	words []string
}

func (f choice) read(v *violations, pointer string, in *value) {
	if in.kind != textValue || !slices.Contains(f.words, in.text) {
		v.put(Violation{Pointer: pointer, Detail: `must be one of "` + strings.Join(f.words, `", "`) + `"`, Suggestion: nearest.Name(in.text, f.words)})
		return
	}
	*f.into = in.text
}

func (f choice) canonical() any {
	if *f.into == f.words[0] {
		return nil
	}
	return *f.into
}

func (f choice) schema() map[string]any {
	return map[string]any{"type": "string", "enum": f.words, "default": f.words[0]}
}

// DefaultClip is where the product of two z-scores is cut off. The interval is as wide as the clip, and few products lie beyond.
const DefaultClip = 3.0

// Limits on where products of z-scores are clipped. Beyond the largest lies a rarity that no interval of this width could tell;
// at the smallest all but the signs is clipped away, and a clip so small that numbers under it vanish would be no range.
const (
	minScoreClip = 1e-6
	maxScoreClip = 1e6
)

// clipForm is where products of z-scores are clipped; the field is DefaultClip before reading.
type clipForm struct{ into *float64 }

func (f clipForm) read(v *violations, pointer string, in *value) {
	var x *float64
	before := len(v.list)
	number{into: &x}.read(v, pointer, in)
	switch {
	case len(v.list) > before:
	case *x < minScoreClip || *x > maxScoreClip:
		v.add(pointer, fmt.Sprintf("must lie in [%g, %g]", minScoreClip, maxScoreClip))
	default:
		*f.into = *x
	}
}

func (f clipForm) canonical() any {
	if *f.into == DefaultClip {
		return nil
	}
	return *f.into
}

func (f clipForm) schema() map[string]any {
	return map[string]any{"type": "number", "minimum": minScoreClip, "maximum": maxScoreClip, "default": DefaultClip}
}

func orDefault(x *float64, otherwise float64) *float64 {
	if x == nil {
		return &otherwise
	}
	return x
}

// orElseForm is a number that is absent from the canonical form where it says its default.
type orElseForm struct {
	number
	otherwise float64
}

func (f orElseForm) canonical() any {
	if *f.into != nil && **f.into == f.otherwise {
		return nil
	}
	return f.number.canonical()
}

func (f orElseForm) schema() map[string]any {
	s := f.number.schema()
	s["default"] = f.otherwise
	return s
}

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// defaultZero is a number that is absent where it says 0.
type defaultZero struct{ number }

func (f defaultZero) canonical() any {
	if orZero(*f.into) == 0 {
		return nil
	}
	return f.number.canonical()
}

func (f defaultZero) schema() map[string]any {
	s := f.number.schema()
	s["default"] = 0
	return s
}

// truth is true or false; false is the default.
type truth struct{ into *bool }

func (f truth) read(v *violations, pointer string, in *value) {
	if in.kind != truthValue {
		v.wrongType(pointer, "true or false", in)
		return
	}
	*f.into = in.truth
}

func (f truth) canonical() any {
	if !*f.into {
		return nil
	}
	return true
}

func (f truth) schema() map[string]any { return map[string]any{"type": "boolean", "default": false} }

// eitherTruth is true or false, without a default.
type eitherTruth struct{ into **bool }

func (f eitherTruth) read(v *violations, pointer string, in *value) {
	*f.into = new(bool)
	truth{*f.into}.read(v, pointer, in)
}

func (f eitherTruth) canonical() any {
	if *f.into == nil {
		return nil
	}
	return **f.into
}

func (f eitherTruth) schema() map[string]any { return map[string]any{"type": "boolean"} }

// oneOf is one of some names, without a default.
type oneOf struct {
	into *string
	of   []string
}

func (f oneOf) read(v *violations, pointer string, in *value) {
	if in.kind != textValue || !slices.Contains(f.of, in.text) {
		v.put(Violation{Pointer: pointer, Detail: "must be one of " + strings.Join(f.of, ", "), Suggestion: nearest.Name(in.text, f.of)})
		return
	}
	*f.into = in.text
}

func (f oneOf) canonical() any {
	if *f.into == "" {
		return nil
	}
	return *f.into
}

func (f oneOf) schema() map[string]any {
	return map[string]any{"type": "string", "enum": f.of}
}
