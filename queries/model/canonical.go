package model

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// The canonical form is written from what a model is compiled to, so that no tree of JSON values is kept for millions of nodes.

// treesForm is the canonical form of an ensemble's trees: lists, or arrays.
type treesForm struct {
	*forest
	features []Feature
	outputs  int
	arrays   bool
}

// MarshalJSON writes the form.
func (f *treesForm) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	f.write(w)
	err := w.Flush()
	return b.Bytes(), err
}

// writeForm writes a canonical form: sorted keys, shortest numbers. w keeps the first error.
func writeForm(w *bufio.Writer, v any) {
	switch v := v.(type) {
	case map[string]any:
		for i, key := range sortedKeys(v) {
			_ = w.WriteByte("{,"[min(i, 1)])
			_, _ = w.Write(quote(key))
			_ = w.WriteByte(':')
			writeForm(w, v[key])
		}
		if len(v) == 0 {
			_ = w.WriteByte('{')
		}
		_ = w.WriteByte('}')
	case []any:
		_ = w.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			writeForm(w, item)
		}
		_ = w.WriteByte(']')
	case *treesForm:
		v.write(w)
	default:
		_, _ = w.Write(quote(v))
	}
}

// quote is the JSON of a value that holds no trees; < > & stay as they are.
func quote(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("model: a canonical form that JSON cannot hold: " + err.Error()) // finite numbers and valid text only
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (f *treesForm) write(w *bufio.Writer) {
	if f.arrays {
		f.writeArrays(w)
		return
	}
	var number []byte
	float := func(x float64) {
		number = appendFloat(number[:0], x)
		_, _ = w.Write(number)
	}
	heads := make([][]byte, len(f.inputs)) // of splits: up to the threshold
	for i := range f.inputs[1:] {
		column, texts, _ := f.reads(i + 1)
		heads[i+1] = append(append([]byte{'['}, quote(column)...), ',')
		if texts != nil {
			heads[i+1] = append(heads[i+1], quote(texts)...)
		}
	}
	for i := range f.trees {
		_ = w.WriteByte("[,"[min(i, 1)])
		_ = w.WriteByte('[')
		first := true
		f.each(&f.trees[i], func(value float64, input uint32) {
			if !first {
				_ = w.WriteByte(',')
			}
			first = false
			switch {
			case input != leafInput:
				k := int(input / columnStride)
				_, _ = w.Write(heads[k])
				_, texts, right := f.reads(k)
				if texts == nil {
					float(value)
				}
				if right {
					_, _ = w.WriteString(`,"right"`)
				}
				_ = w.WriteByte(']')
			case !f.trees[i].listed:
				float(value)
			default:
				for k, x := range f.list(value) {
					_ = w.WriteByte("[,"[min(k, 1)])
					float(x)
				}
				_ = w.WriteByte(']')
			}
		})
		_ = w.WriteByte(']')
	}
	_ = w.WriteByte(']')
}

// writeArrays writes the arrays, whose reads are in the order in which nodes read them first.
func (f *treesForm) writeArrays(w *bufio.Writer) {
	text := func(s string) { _, _ = w.WriteString(s) }
	all := func(visit func(t *tree, value float64, input uint32)) {
		for i := range f.trees {
			f.each(&f.trees[i], func(value float64, input uint32) { visit(&f.trees[i], value, input) })
		}
	}
	array := func(name, kind string, fill func(to *bufio.Writer)) {
		text(`"` + name + `":{"` + kind + `":"`)
		e := base64.NewEncoder(base64.StdEncoding, w)
		to := bufio.NewWriter(e)
		fill(to)
		_, _ = to.Flush(), e.Close()
		text(`"}`)
	}
	var word [8]byte
	put := func(to *bufio.Writer, x float64) {
		binary.LittleEndian.PutUint64(word[:], math.Float64bits(x))
		_, _ = to.Write(word[:])
	}
	text(`{`)
	array("leaves", "f64", func(to *bufio.Writer) {
		all(func(t *tree, value float64, input uint32) {
			switch {
			case input != leafInput:
			case !t.listed:
				put(to, value)
			default:
				for _, x := range f.list(value) {
					put(to, x)
				}
			}
		})
	})
	number, order := make([]uint16, len(f.inputs)), []int{}
	text(",")
	array("nodes", "u16", func(to *bufio.Writer) {
		all(func(_ *tree, _ float64, input uint32) {
			k := int(input / columnStride)
			if k != leafInput && number[k] == 0 {
				order = append(order, k)
				number[k] = uint16(len(order))
			}
			binary.LittleEndian.PutUint16(word[:], number[k])
			_, _ = to.Write(word[:2])
		})
	})
	text(`,"reads":[`)
	for i, k := range order {
		if i > 0 {
			text(",")
		}
		column, texts, right := f.reads(k)
		read := []any{column}
		if texts != nil {
			read = append(read, texts)
		}
		if right {
			read = append(read, "right")
		}
		_, _ = w.Write(quote(read))
	}
	text(`],`)
	array("thresholds", "f64", func(to *bufio.Writer) {
		all(func(_ *tree, value float64, input uint32) {
			if k := int(input / columnStride); k != leafInput && f.features[f.inputs[k].feature].Texts == nil {
				put(to, value)
			}
		})
	})
	text(`}`)
}

// reads is what splits by an input read; texts is nil where they compare a number.
func (f *treesForm) reads(input int) (column string, texts []string, right bool) {
	in := f.inputs[input]
	feature := f.features[in.feature]
	if feature.Texts != nil {
		texts = sortedKeys(feature.Texts)
	}
	return feature.Column, texts, in.null == infinite(true)
}

// list is the numbers of a leaf that is a list.
func (f *treesForm) list(value float64) []float64 { return f.leaves[int(value):][:f.outputs] }

// each visits the nodes of a tree in preorder. A leaf has leafInput.
func (f *forest) each(t *tree, visit func(value float64, input uint32)) {
	for at, open := int(t.root), 1; open > 0; at++ {
		n := &f.nodes[at]
		if visit(n.value, n.input); n.leaf() {
			open--
		} else {
			open++
		}
	}
}

// appendFloat appends a finite number as encoding/json writes it.
func appendFloat(b []byte, x float64) []byte {
	format := byte('f')
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, x, format, -1, 64)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 is e-9
		b = b[:n-1]
	}
	return b
}

// writeTo writes the canonical form.
func (m *Model) writeTo(to io.Writer) {
	w := bufio.NewWriterSize(to, 1<<16)
	writeForm(w, m.form)
	_ = w.Flush()
}
