package model

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
)

// space is where vectors lie that came with a model: a row's place in it is a linear function of the columns.
type space struct {
	axes    linearOutputs // a row's coordinates
	vectors []float64     // vector after vector, a number for each axis
}

// spaceMembers are the members of a model's object that space reads.
var spaceMembers = []string{"weights", "intercepts", "impute", "vectors"}

// space reads where rows lie, and the vectors.
func (r *reader) space(pointer string, o, form map[string]any, m *Model) *space {
	s := &space{axes: r.firstLayer(pointer, o, form, m)}
	if !r.ok() {
		return nil
	}
	s.vectors = r.array(pointer+"/vectors", o["vectors"])
	if r.ok() && (len(s.vectors) == 0 || len(s.vectors)%len(s.axes) != 0) {
		r.add(pointer+"/vectors", "has %d numbers, which are no vectors of %d, as many as there are intercepts", len(s.vectors), len(s.axes))
	}
	form["vectors"] = numberArray(s.vectors)
	return s
}

// bound refuses a model of vectors each of which takes a row more steps than a model may.
func (r *reader) bound(pointer string, s *space, each int64) {
	if r.steps += s.vectorSteps(each); r.ok() && r.steps > MaxRowSteps {
		r.add(pointer+"/vectors", "a row would take %d steps and may take %d: one for each of %d numbers, and %d for each of %d vectors", r.steps, MaxRowSteps, len(s.vectors), each, s.count())
	}
}

// count is the number of vectors.
func (s *space) count() int { return len(s.vectors) / len(s.axes) }

// scratch is what coordinates need.
func (s *space) scratch() int { return len(s.axes) * MaxBlock }

// arrayBytes is what an array of numbers takes beside them, as memory is given out in pages.
const arrayBytes = 8 << 10

// bytes are those of the vectors, and of one more array.
func (s *space) bytes(other []float64) int64 {
	return 8*int64(len(s.vectors)+len(other)) + 2*arrayBytes
}

// vectorSteps are one for each number of the vectors, and some for each vector.
func (s *space) vectorSteps(each int64) int64 { return int64(len(s.vectors)) + each*int64(s.count()) }

// steps are those of a row's coordinates, and of what is computed of each vector.
func (s *space) steps(each int64) int64 { return s.axes.steps() + s.vectorSteps(each) }

// place writes the rows' coordinates.
func (s *space) place(features [][]float64, rows int, scratch []float64, heads *[MaxUnits][]float64) [][]float64 {
	at := heads[:len(s.axes)]
	for k := range s.axes {
		at[k] = scratch[k*MaxBlock:][:rows]
		s.axes[k].block(at[k], features)
	}
	return at
}

// Products and sums are rounded one by one, as NumPy does: what a client compares before it sends a model is then the same to the last bit.

// squares writes the squared distances of the rows from a vector.
func squares(dst []float64, at [][]float64, vector []float64) {
	clear(dst)
	for ; len(vector) >= 4; vector, at = vector[4:], at[4:] {
		a, b, c, d := at[0][:len(dst)], at[1][:len(dst)], at[2][:len(dst)], at[3][:len(dst)]
		v, w, x, y := vector[0], vector[1], vector[2], vector[3]
		for i, sum := range dst {
			e, f, g, h := a[i]-v, b[i]-w, c[i]-x, d[i]-y
			dst[i] = sum + float64(e*e) + float64(f*f) + float64(g*g) + float64(h*h)
		}
	}
	for k, v := range vector {
		a := at[k][:len(dst)]
		for i, sum := range dst {
			e := a[i] - v
			dst[i] = sum + float64(e*e)
		}
	}
}

// absolutes writes the distances of the rows from a vector, by the sum of their coordinates' distances.
func absolutes(dst []float64, at [][]float64, vector []float64) {
	clear(dst)
	for k, v := range vector {
		a := at[k][:len(dst)]
		for i, sum := range dst {
			dst[i] = sum + math.Abs(a[i]-v)
		}
	}
}

// products writes the scalar products of the rows with a vector.
func products(dst []float64, at [][]float64, vector []float64) {
	clear(dst)
	for ; len(vector) >= 4; vector, at = vector[4:], at[4:] {
		a, b, c, d := at[0][:len(dst)], at[1][:len(dst)], at[2][:len(dst)], at[3][:len(dst)]
		v, w, x, y := vector[0], vector[1], vector[2], vector[3]
		for i, sum := range dst {
			dst[i] = sum + float64(a[i]*v) + float64(b[i]*w) + float64(c[i]*x) + float64(d[i]*y)
		}
	}
	for k, v := range vector {
		a := at[k][:len(dst)]
		for i, sum := range dst {
			dst[i] = sum + float64(a[i]*v)
		}
	}
}

// addTimes adds a number times what is in a.
func addTimes(dst, a []float64, by float64) {
	a = a[:len(dst)]
	for i, sum := range dst {
		dst[i] = sum + float64(by*a[i])
	}
}

// array reads the numbers of {"f32": "<base64>"} or {"f64": …}, all within MaxMagnitude. They count as vectors.
func (r *reader) array(pointer string, in any) []float64 {
	if in == nil {
		r.add(pointer, "is missing")
		return nil
	}
	w := r.words(pointer, in, "f32", "f64")
	if r.vectors += w.count(); r.vectors > MaxVectors {
		r.add(pointer, "there are more than %d numbers of vectors and their coefficients", MaxVectors)
		return nil
	}
	list := make([]float64, w.count())
	for i := range list {
		list[i] = r.finite(pointer, i, w.float(i))
	}
	return list
}

// numberArray is the canonical form of an array: {"f64": "<base64>"}.
type numberArray []float64

// MarshalJSON writes the form.
func (a numberArray) MarshalJSON() ([]byte, error) {
	bytes := make([]byte, 0, 8*len(a))
	for _, x := range a {
		bytes = binary.LittleEndian.AppendUint64(bytes, math.Float64bits(x))
	}
	return json.Marshal(map[string]string{"f64": base64.StdEncoding.EncodeToString(bytes)})
}
