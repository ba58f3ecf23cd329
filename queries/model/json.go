package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxLevel is the levels of JSON in the deepest model: an ensemble's tree's node's list of texts, within mixtures that have four levels each.
const maxLevel = 16 + 4*maxMixed

// json reads one JSON value, numbers as they are spelled. No key may occur twice.
func (r *reader) json(body []byte) (any, bool) {
	if !utf8.Valid(body) {
		r.add("", "is not valid UTF-8")
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := value(d, 0)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("goes on after its end")
		}
	}
	if err != nil {
		r.add("", "is not JSON: %v", err)
		return nil, false
	}
	return v, true
}

func value(d *json.Decoder, level int) (any, error) {
	if level > maxLevel {
		return nil, fmt.Errorf("nested deeper than %d levels", maxLevel)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := value(d, level+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string) // the decoder lets nothing else stand there
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("%q occurs twice in one object", name)
			}
			if object[name], err = value(d, level+1); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return object, err
	}
	return token, nil
}

// object is the members of an object, of which there may be those that are known.
func (r *reader) object(pointer string, in any, known ...string) map[string]any {
	o, ok := in.(map[string]any)
	if !ok {
		r.add(pointer, "must be an object")
		return nil
	}
	for _, name := range sortedKeys(o) {
		if !slices.Contains(known, name) {
			r.unknown(pointer, name, known)
		}
	}
	return o
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// number is a finite number within MaxMagnitude; nil is the number otherwise.
func (r *reader) number(pointer string, in any, otherwise float64) float64 {
	if in == nil {
		return otherwise
	}
	n, ok := in.(json.Number)
	if !ok {
		r.add(pointer, "must be a number")
		return 0
	}
	x, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.Abs(x) > MaxMagnitude {
		r.add(pointer, "must lie within ±%g", float64(MaxMagnitude))
		return 0
	}
	return x + 0 // -0 is 0
}

// numbers is a list of count numbers, or all zero if it is absent.
func (r *reader) numbers(pointer string, in any, count int) []float64 {
	out := make([]float64, count)
	if in == nil {
		return out
	}
	list, ok := in.([]any)
	if !ok || len(list) != count {
		r.add(pointer, "must be a list of %d numbers", count)
		return out
	}
	for i, item := range list {
		if item == nil {
			r.add(fmt.Sprintf("%s/%d", pointer, i), "must be a number")
			continue
		}
		out[i] = r.number(fmt.Sprintf("%s/%d", pointer, i), item, 0)
	}
	return out
}

// oneOutput are the links of a model with one output.
var oneOutput = []Link{Identity, Logit, Log, Sqrt}

// choice is one of the known words, or the first if it is absent.
func choice[T ~string](r *reader, pointer string, in any, known ...T) T {
	if in == nil {
		return known[0]
	}
	text, _ := in.(string)
	if !slices.Contains(known, T(text)) {
		r.add(pointer, "must be one of %v", known)
	}
	return T(text)
}

// whole is a whole number of a range.
func (r *reader) whole(pointer string, in any, otherwise, least, most int) int {
	x := r.number(pointer, in, float64(otherwise))
	if x != math.Trunc(x) || x < float64(least) || x > float64(most) {
		r.add(pointer, "must be a whole number from %d to %d", least, most)
		return least
	}
	return int(x)
}

// base reads what is added to each output, or to each of so many functions, and writes it into the form.
func (r *reader) base(pointer string, in any, form map[string]any, count int) []float64 {
	var base []float64
	if count == 1 {
		base = []float64{r.number(pointer, in, 0)}
	} else {
		base = r.numbers(pointer, in, count)
	}
	if slices.ContainsFunc(base, func(x float64) bool { return x != 0 }) {
		if form["base"] = base; count == 1 {
			form["base"] = base[0]
		}
	}
	return base
}

// classes are the classes of a model: texts, or numbers.
func (r *reader) classes(pointer string, in any) []Class {
	list, ok := in.([]any)
	if !ok || len(list) < 2 || len(list) > MaxClasses {
		r.add(pointer, "must be a list of 2 to %d classes", MaxClasses)
		return nil
	}
	var classes []Class
	for i, item := range list {
		at := fmt.Sprintf("%s/%d", pointer, i)
		c := Class{}
		switch v := item.(type) {
		case string:
			c.Text = v
		case json.Number:
			c.Number, c.Numeric = r.number(at, v, 0), true
			c.Text = strconv.FormatFloat(c.Number, 'g', -1, 64)
		default:
			r.add(at, "must be a text or a number")
		}
		for _, other := range classes {
			if other == c {
				r.add(at, "occurs twice")
			}
			if other.Numeric != c.Numeric {
				r.add(at, "classes must be all texts or all numbers")
			}
		}
		classes = append(classes, c)
	}
	return classes
}

// ClassForms are classes as they stand in JSON.
func ClassForms(classes []Class) []any {
	out := make([]any, len(classes))
	for i, c := range classes {
		if out[i] = c.Text; c.Numeric {
			out[i] = c.Number
		}
	}
	return out
}
