package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Models gives the scorer of a model by its digest; text is its JSON where that was sent, else nil. What it returns must have that digest
// as its ID.
type Models func(sha256 string, text json.RawMessage) (rowfn.Scorer, error)

// Parse reads a batch, with the models that models gives; a nil models refuses a batch with models. It accepts exactly what [Marshal]
// writes. Errors are *[Error], or those of models.
func Parse(text []byte, models Models) (rowfn.Batch, error) {
	if len(text) > MaxBytes {
		return rowfn.Batch{}, &Error{"", fmt.Sprintf("%d bytes, at most %d are read", len(text), MaxBytes)}
	}
	var in batch
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return rowfn.Batch{}, at("", err)
	}
	if in.Version != Version {
		return rowfn.Batch{}, &Error{"/rowfn", fmt.Sprintf("is version %d, want %d", in.Version, Version)}
	}
	r := &reader{in: in}
	if err := r.models(models); err != nil {
		return rowfn.Batch{}, err
	}
	for i := range in.Nodes {
		if err := r.node(i); err != nil {
			return rowfn.Batch{}, err
		}
	}
	b, err := r.batch()
	if err != nil {
		return rowfn.Batch{}, err
	}
	sent := map[string]json.RawMessage{}
	for _, m := range in.Models {
		sent[m.SHA256] = m.Model
	}
	again, err := Marshal(b, func(s rowfn.Scorer) json.RawMessage { return sent[s.ID()] })
	if err != nil {
		return rowfn.Batch{}, err
	}
	if at := differ(text, again); at >= 0 {
		return rowfn.Batch{}, &Error{"", fmt.Sprintf("not in the one form in which batches are written, from byte %d on", at)}
	}
	return b, nil
}

// differ is the first place at which two texts differ, or -1.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

// at is an error of encoding/json in our words; what already is one of ours has its place.
func at(pointer string, err error) error {
	var ours *Error
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &wrong):
		if wrong.Field != "" {
			pointer += "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		}
		return &Error{pointer, "cannot be " + wrong.Value}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{pointer, "the text ends too early"}
	}
	return &Error{pointer, strings.TrimPrefix(err.Error(), "json: ")}
}

type reader struct {
	in      batch
	scorers []rowfn.Scorer
	nodes   []*rowfn.Node
	depth   []int
}

func (r *reader) models(models Models) error {
	for i, m := range r.in.Models {
		at := fmt.Sprintf("/models/%d", i)
		if models == nil {
			return &Error{at, "models are not known here"}
		}
		s, err := models(m.SHA256, m.Model)
		if err != nil {
			return fmt.Errorf("wire: %s: %w", at, err)
		}
		if s == nil || s.ID() != m.SHA256 || s.Features() != m.Features || s.Outputs() != m.Outputs {
			return &Error{at, "is another model than the one that is known by this digest"}
		}
		r.scorers = append(r.scorers, s)
	}
	return nil
}

// node builds a node of those before it.
func (r *reader) node(i int) error {
	in := r.in.Nodes[i]
	wrong := func(format string, args ...any) error {
		return &Error{fmt.Sprintf("/nodes/%d", i), fmt.Sprintf(format, args...)}
	}
	op, known := opOf[in.Op]
	if !known {
		return wrong("the operation %q is not known", in.Op)
	}
	t, known := typeOf[in.Type]
	if !known {
		return wrong("the type %q is not known", in.Type)
	}
	n, depth := &rowfn.Node{Op: op, Type: t}, 0
	for k, at := range in.Args {
		if at < 0 || at >= i {
			return wrong("argument %d is node %d, want one before this", k, at)
		}
		n.Args = append(n.Args, r.nodes[at])
		depth = max(depth, r.depth[at])
	}
	if depth++; depth > MaxDepth {
		return wrong("is more than %d levels deep", MaxDepth)
	}
	if problem := r.fill(n, &in); problem != "" {
		return wrong("%s: %s", in.Op, problem)
	}
	if problem := checkNode(n); problem != "" {
		return wrong("%s: %s", in.Op, problem)
	}
	r.nodes, r.depth = append(r.nodes, n), append(r.depth, depth)
	return nil
}

// fill reads what is a node's own, and returns what is wrong with it. Members of other operations are noticed where the batch is written again.
func (r *reader) fill(n *rowfn.Node, in *node) string {
	switch n.Op {
	case rowfn.OpColumn:
		if in.Name == nil {
			return "wants a name"
		}
		n.Text = *in.Name
	case rowfn.OpNumber:
		if in.Number == nil {
			return "wants a number"
		}
		n.Number = in.Number.float()
	case rowfn.OpText:
		if in.Text == nil {
			return "wants a text"
		}
		n.Text = *in.Text
	case rowfn.OpRow:
		if len(in.Values)%8 != 0 {
			return "wants 8 bytes for each row"
		}
		n.Values = make([]float64, len(in.Values)/8)
		for i := range n.Values {
			word := binary.LittleEndian.Uint64(in.Values[8*i:])
			if n.Values[i] = math.Float64frombits(word); word == nullBits {
				n.Values[i] = math.NaN()
			}
		}
	case rowfn.OpLookup:
		n.Texts, n.Number = make(map[string]float64, len(in.Texts)), math.NaN()
		for _, e := range in.Texts {
			n.Texts[e.Text] = e.Number.float()
		}
		if in.Null != nil {
			n.Number = in.Null.float()
		}
	case rowfn.OpScore:
		if in.Model == nil || in.Output == nil || *in.Model < 0 || *in.Model >= len(r.scorers) {
			return "wants a model of the list and an output"
		}
		n.Model, n.Output = r.scorers[*in.Model], *in.Output
	}
	return ""
}

// batch builds the functions and products.
func (r *reader) batch() (b rowfn.Batch, err error) {
	for i, in := range r.in.Functions {
		at := fmt.Sprintf("/functions/%d", i)
		per, known := unitOf[in.Unit]
		if !known {
			return b, &Error{at + "/unit", fmt.Sprintf("%q is not known", in.Unit)}
		}
		f := rowfn.Function{Lo: in.Low.float(), Hi: in.High.float(), Null: in.Null.float(), PerUnit: per}
		for _, part := range []struct {
			name string
			of   *int
			into **rowfn.Node
		}{{"value", in.Value, &f.Value}, {"where", in.Where, &f.Where}} {
			if part.of == nil {
				continue
			}
			if *part.of < 0 || *part.of >= len(r.nodes) {
				return b, &Error{at + "/" + part.name, fmt.Sprintf("there is no node %d", *part.of)}
			}
			*part.into = r.nodes[*part.of]
		}
		if problem := checkFunction(&f); problem != "" {
			return b, &Error{at, problem}
		}
		b.Functions = append(b.Functions, f)
	}
	for i, p := range r.in.Products {
		if p[0] < 0 || p[1] < 0 || p[0] >= len(b.Functions) || p[1] >= len(b.Functions) {
			return b, &Error{fmt.Sprintf("/products/%d", i), "is of a function that is not there"}
		}
		b.Products = append(b.Products, rowfn.Product{A: p[0], B: p[1]})
	}
	return b, nil
}
