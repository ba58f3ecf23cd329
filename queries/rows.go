package queries

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	bytesof "encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/rowfn"
)

// rowNumbers is a number for each row of the holdout and of the check part, as predictions are given where the features are public. Its canonical
// form is its digest: a question that was answered before can be asked again by that.
type rowNumbers struct {
	values []float64 // NaN is null; nil where only the digest is given
	digest string    // of the values; "" where the member is absent
	count  int64
}

// rowPredictions are predictions for each row: a number, or of classes a number for each of them.
type rowPredictions struct {
	rowNumbers
	classes []model.Class
	of      []rowNumbers // of each class
}

// given says that there are any.
func (r *rowPredictions) given() bool { return r.digest != "" || len(r.of) > 0 }

// id is a digest of all of them.
func (r *rowPredictions) id() string {
	if len(r.of) == 0 {
		return r.digest
	}
	h := sha256.New()
	for _, one := range r.of {
		h.Write([]byte(one.digest))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// rowPredictions is the prediction of numbers that come with the question; false with a violation. Numbers of classes are taken as they are: as probabilities, or as scores, of which the first of the largest is predicted.
func (c *compiler) rowPredictions(r rowPredictions) (p predictor, ok bool) {
	p.link, p.classes = model.Identity, r.classes
	if r.classes == nil {
		n := c.rowNumbers("predictions", r.rowNumbers)
		p.scores = []*rowfn.Node{n}
		return p, n != nil
	}
	for k, one := range r.of {
		n := c.rowNumbers(fmt.Sprintf("predictions/of/%d", k), one)
		if n == nil {
			return p, false
		}
		p.scores = append(p.scores, n)
	}
	return p, true
}

// rowPredictionsForm reads rowPredictions.
type rowPredictionsForm struct{ into *rowPredictions }

func (f rowPredictionsForm) read(v *violations, pointer string, in *value) {
	if in.kind != objectValue || in.member("classes") == nil && in.member("of") == nil {
		rowNumbersForm{&f.into.rowNumbers}.read(v, pointer, in)
		return
	}
	classes, of := in.member("classes"), in.member("of")
	if len(in.members) != 2 || classes == nil || of == nil {
		v.add(pointer, `of several classes must be {"classes": […], "of": […]}: the classes, and for each of them its numbers for all rows`)
		return
	}
	var b bytes.Buffer
	classes.write(&b)
	known, err := model.ParseClasses(b.Bytes())
	if e := new(model.Error); errors.As(err, &e) {
		for _, one := range e.Violations {
			v.put(Violation{Pointer: pointer + "/classes" + one.Pointer, Detail: one.Detail})
		}
		return
	}
	if of.kind != listValue || len(of.items) != len(known) {
		v.add(pointer+"/of", fmt.Sprintf("must be a list with the numbers of each of the %d classes, in their order", len(known)))
		return
	}
	f.into.classes, f.into.of = known, make([]rowNumbers, len(known))
	for k, item := range of.items {
		rowNumbersForm{&f.into.of[k]}.read(v, fmt.Sprintf("%s/of/%d", pointer, k), item)
	}
}

func (f rowPredictionsForm) canonical() any {
	if f.into.classes == nil {
		return rowNumbersForm{&f.into.rowNumbers}.canonical()
	}
	of := make([]any, len(f.into.of))
	for k := range of {
		of[k] = rowNumbersForm{&f.into.of[k]}.canonical()
	}
	return map[string]any{"classes": model.ClassForms(f.into.classes), "of": of}
}

func (f rowPredictionsForm) schema() map[string]any {
	one := rowNumbersForm{&f.into.rowNumbers}.schema()["oneOf"].([]any)
	each := rowNumbersForm{&f.into.rowNumbers}.schema()
	classes := map[string]any{"type": "array", "items": map[string]any{"type": []string{"string", "number"}}, "minItems": 2, "maxItems": model.MaxClasses}
	return map[string]any{"oneOf": append(one, map[string]any{"type": "object", "required": []string{"classes", "of"}, "additionalProperties": false, "properties": map[string]any{
		"classes": classes,
		"of":      map[string]any{"type": "array", "items": each, "minItems": 2, "maxItems": model.MaxClasses},
	}})}
}

// PublicRows says that the features of the holdout's rows are public and that it has so many rows, so that a question can bring a number
// for each; and then one for each of so many rows of the check part, if there is one. why says why it cannot, else it is empty. Without this option it cannot.
func PublicRows(rows, check int64, why string) Option {
	return func(c *compiler) { c.rows, c.checkRows, c.noRows = rows, check, why }
}

// rowNumbers is the node of numbers that come with the question; nil with a violation.
func (c *compiler) rowNumbers(name string, r rowNumbers) *rowfn.Node {
	at := c.pointer + "/" + name
	switch {
	case c.noRows != "":
		c.add(at, c.noRows)
	case c.rows == 0:
		c.add(at, "numbers for each row are for holdouts that were created with features=public")
	case r.values == nil:
		c.add(at, "the numbers of this digest are not kept (any more), and no question with them was answered; send the numbers")
	case r.count != c.rows+c.checkRows && c.checkRows > 0:
		c.add(at, fmt.Sprintf("has %d numbers; it wants one for each of the %d rows that the download of features has, in the order of row_id: %d rows of the holdout, then %d of the check part",
			r.count, c.rows+c.checkRows, c.rows, c.checkRows))
	case r.count != c.rows+c.checkRows:
		c.add(at, fmt.Sprintf("has %d numbers; the holdout has %d rows, and wants one for each in the order of row_id", r.count, c.rows))
	default:
		c.holdoutOnly = true
		return &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: r.values}
	}
	return nil
}

// Numbers keeps numbers for each row that came with a query, so that later ones can name them by their digest. Nothing that Kept returns is changed.
type Numbers interface {
	Keep(digest string, values []float64)
	Kept(digest string) []float64 // nil if they are not kept
}

// KeptNumbers is a place for the numbers that come with queries. Without this option a query that names numbers by their digest can be recognised, and not compiled.
func KeptNumbers(n Numbers) ParseOption { return func(v *violations) { v.numbers = n } }

// rowNumbersForm reads rowNumbers.
type rowNumbersForm struct{ into *rowNumbers }

func (f rowNumbersForm) read(v *violations, pointer string, in *value) {
	switch {
	case in.kind == objectValue && in.member("sha256") != nil:
		f.readDigest(v, pointer, in)
		return
	case in.kind == objectValue:
		if values, ok := readPacked(v, pointer, in); ok {
			f.take(v, values)
		}
		return
	case in.kind != listValue || len(in.items) == 0:
		v.add(pointer, "must be a list of numbers, one for each row of the download of features in the order of row_id; null where there is none")
		return
	}
	values := make([]float64, len(in.items))
	for i, item := range in.items {
		x, ok := item.float()
		switch {
		case item.kind == nullValue:
			x = math.NaN()
		case !ok || math.Abs(x) > MaxMagnitude:
			v.add(fmt.Sprintf("%s/%d", pointer, i), fmt.Sprintf("must be a number within ±%g or null", MaxMagnitude))
			return
		}
		values[i] = x
	}
	f.take(v, values)
}

// take digests numbers, however they were spelled, and keeps them for queries that name them by that.
func (f rowNumbersForm) take(v *violations, values []float64) {
	h := sha256.New()
	var word [8]byte
	for _, x := range values {
		if x != x {
			x = math.NaN() // one null
		}
		bytesof.LittleEndian.PutUint64(word[:], math.Float64bits(x))
		h.Write(word[:])
	}
	*f.into = rowNumbers{values: values, digest: hex.EncodeToString(h.Sum(nil)), count: int64(len(values))}
	if v.numbers != nil {
		v.numbers.Keep(f.into.digest, values)
	}
}

// readPacked reads numbers as the bytes of an array, in base64: {"f32": …} or {"f64": …} of floats, little end first, where NaN is null; {"bits": …, "count": n} of zeros and
// ones, eight in a byte, the first in its lowest bit.
func readPacked(v *violations, pointer string, in *value) (values []float64, ok bool) {
	const says = `must be a list of numbers, {"f32": …} or {"f64": …} with the bytes of an array in base64, {"bits": …, "count": n}, or {"sha256": …, "count": n} of numbers that were sent before`
	var name, text string
	for _, m := range in.members {
		if m.name == "f32" || m.name == "f64" || m.name == "bits" {
			name = m.name
			if m.value.kind == textValue {
				text = m.value.text
			}
		}
	}
	count := in.member("count")
	if name == "" || (name == "bits") != (count != nil) || len(in.members) > 1 && count == nil || len(in.members) > 2 {
		v.add(pointer, says)
		return nil, false
	}
	at := pointer + "/" + name
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		v.add(at, "must be base64, with its padding")
		return nil, false
	}
	if name == "bits" {
		n, whole := count.float()
		if !whole || n != math.Floor(n) || n > float64(8*len(raw)) || n <= float64(8*(len(raw)-1)) {
			v.add(pointer+"/count", fmt.Sprintf("must be how many bits there are: from %d to %d in %d bytes", 8*len(raw)-7, 8*len(raw), len(raw)))
			return nil, false
		}
		values = make([]float64, int(n))
		for i := range values {
			values[i] = float64(raw[i/8] >> (i % 8) & 1)
		}
		return values, true
	}
	size := map[string]int{"f32": 4, "f64": 8}[name]
	if len(raw)%size != 0 {
		v.add(at, fmt.Sprintf("has %d bytes, which are no whole number of %s", len(raw), name))
		return nil, false
	}
	values = make([]float64, len(raw)/size)
	for i := range values {
		if size == 4 {
			values[i] = float64(math.Float32frombits(bytesof.LittleEndian.Uint32(raw[4*i:])))
		} else {
			values[i] = math.Float64frombits(bytesof.LittleEndian.Uint64(raw[8*i:]))
		}
		if math.Abs(values[i]) > MaxMagnitude {
			v.add(at, fmt.Sprintf("number %d must lie within ±%g, or be NaN for null", i, MaxMagnitude))
			return nil, false
		}
		values[i] += 0 // -0 is 0
	}
	return values, true
}

func (f rowNumbersForm) readDigest(v *violations, pointer string, in *value) {
	digest, count := in.member("sha256"), in.member("count")
	if len(in.members) != 2 || digest == nil || count == nil || digest.kind != textValue {
		v.add(pointer, `must be a list of numbers, or {"sha256":…,"count":…} of one whose question was answered before`)
		return
	}
	if !isDigest(digest.text) {
		v.add(pointer+"/sha256", "must be 64 small hexadecimal digits")
		return
	}
	n, ok := count.float()
	if !ok || n < 1 || n != math.Floor(n) || n > 1<<53 {
		v.add(pointer+"/count", "must be a whole number above 0")
		return
	}
	*f.into = rowNumbers{digest: digest.text, count: int64(n)}
	if v.numbers == nil {
		return
	}
	if kept := v.numbers.Kept(digest.text); int64(len(kept)) == f.into.count {
		f.into.values = kept
	}
}

// isDigest is whether a text is a SHA-256, as it is written.
func isDigest(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == sha256.Size && text == hex.EncodeToString(raw)
}

// digestSchema is new each time: who makes a document of schemas may write to them.
func digestSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[0-9a-f]{64}$"}
}

func (f rowNumbersForm) canonical() any {
	if f.into.digest == "" {
		return nil
	}
	return map[string]any{"sha256": f.into.digest, "count": f.into.count}
}

func (f rowNumbersForm) schema() map[string]any {
	return map[string]any{"oneOf": []any{
		map[string]any{"type": "array", "items": map[string]any{"type": []string{"number", "null"}}, "minItems": 1},
		map[string]any{"type": "object", "required": []string{"sha256", "count"}, "additionalProperties": false, "properties": map[string]any{
			"sha256": digestSchema(),
			"count":  map[string]any{"type": "integer", "minimum": 1},
		}},
		packed("f32", false), packed("f64", false), packed("bits", true),
	}}
}

// packed is the schema of numbers as bytes.
func packed(name string, counted bool) map[string]any {
	properties, needed := map[string]any{name: map[string]any{"type": "string", "contentEncoding": "base64", "minLength": 4}}, []string{name}
	if counted {
		properties["count"], needed = map[string]any{"type": "integer", "minimum": 1}, append(needed, "count")
	}
	return map[string]any{"type": "object", "required": needed, "additionalProperties": false, "properties": properties}
}
