package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Inline is the models argument of [Marshal] for models that are sent whole: those whose scorer knows its canonical JSON, as package
// queries/model's does.
func Inline(s rowfn.Scorer) json.RawMessage {
	if c, ok := s.(interface{ Canonical() []byte }); ok {
		return c.Canonical()
	}
	return nil
}

// Marshal writes a batch. models gives the JSON of a model that is to be sent with it, or nil for one that is named by its digest; so does
// a nil models for all. Nodes that functions share are written once. Errors are *[Error]: what breaks the contract of package rowfn is
// not written.
func Marshal(b rowfn.Batch, models func(rowfn.Scorer) json.RawMessage) ([]byte, error) {
	w := &writer{at: map[*rowfn.Node]int{}, models: models, modelAt: map[string]int{}}
	out, err := w.batch(b)
	if err != nil {
		return nil, err
	}
	text, err := encode(out)
	if err == nil && len(text) > MaxBytes {
		return nil, &Error{"", fmt.Sprintf("%d bytes, at most %d can be written", len(text), MaxBytes)}
	}
	return text, err
}

// Check says what is wrong with a batch that [Marshal] would not write for what its functions and nodes are: it breaks the contract of package rowfn. It knows no
// limit of bytes.
func Check(b rowfn.Batch) error {
	w := &writer{at: map[*rowfn.Node]int{}, modelAt: map[string]int{}}
	_, err := w.batch(b)
	return err
}

func encode(b batch) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(b); err != nil {
		return nil, &Error{"", err.Error()}
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// writer numbers nodes and models in the order in which the functions need them, arguments first.
type writer struct {
	nodes   []node
	depth   []int
	at      map[*rowfn.Node]int
	models  func(rowfn.Scorer) json.RawMessage
	list    []modelForm
	modelAt map[string]int
}

func (w *writer) batch(b rowfn.Batch) (out batch, err error) {
	if len(b.Functions) > MaxFunctions || len(b.Products) > MaxProducts {
		return out, &Error{"", fmt.Sprintf("%d functions and %d products, at most %d and %d can be written", len(b.Functions), len(b.Products), MaxFunctions, MaxProducts)}
	}
	out = batch{Version: Version, Functions: make([]function, len(b.Functions))}
	for i := range b.Functions {
		f, err := w.function(&b.Functions[i])
		if err != nil {
			return out, fmt.Errorf("function %d: %w", i, err)
		}
		out.Functions[i] = f
	}
	for i, p := range b.Products {
		if p.A < 0 || p.B < 0 || p.A >= len(b.Functions) || p.B >= len(b.Functions) {
			return out, &Error{fmt.Sprintf("/products/%d", i), "is of a function that is not there"}
		}
		out.Products = append(out.Products, [2]int{p.A, p.B})
	}
	out.Nodes, out.Models = w.nodes, w.list
	return out, nil
}

func (w *writer) function(f *rowfn.Function) (out function, err error) {
	if problem := checkFunction(f); problem != "" {
		return out, &Error{"", problem}
	}
	out = function{Low: bitsOf(f.Lo), High: bitsOf(f.Hi), Null: bitsOf(f.Null), Unit: units[f.PerUnit]}
	for _, part := range []struct {
		tree *rowfn.Node
		into **int
	}{{f.Value, &out.Value}, {f.Where, &out.Where}} {
		if part.tree == nil {
			continue
		}
		at, err := w.node(part.tree, 1)
		if err != nil {
			return out, err
		}
		*part.into = &at
	}
	return out, nil
}

// node writes a tree and returns the place of its root. above is how many levels stand over it, itself included.
func (w *writer) node(n *rowfn.Node, above int) (int, error) {
	if at, ok := w.at[n]; ok {
		return at, nil
	}
	if above > MaxDepth {
		return 0, &Error{"", fmt.Sprintf("a tree has more than %d levels", MaxDepth)}
	}
	out, depth := node{Op: names[n.Op], Type: types[n.Type]}, 0
	for i, a := range n.Args {
		if a == nil {
			return 0, &Error{"", fmt.Sprintf("%s: argument %d is missing", out.Op, i)}
		}
		at, err := w.node(a, above+1)
		if err != nil {
			return 0, err
		}
		out.Args = append(out.Args, at)
		depth = max(depth, w.depth[at])
	}
	if problem := checkNode(n); problem != "" {
		return 0, &Error{"", out.Op + ": " + problem}
	}
	if depth++; depth > MaxDepth {
		return 0, &Error{"", fmt.Sprintf("a tree has more than %d levels", MaxDepth)}
	}
	if len(w.nodes) == MaxNodes {
		return 0, &Error{"", fmt.Sprintf("more than %d nodes", MaxNodes)}
	}
	if err := w.fill(&out, n); err != nil {
		return 0, err
	}
	at := len(w.nodes)
	w.nodes, w.depth, w.at[n] = append(w.nodes, out), append(w.depth, depth), at
	return at, nil
}

// fill writes what is a node's own.
func (w *writer) fill(out *node, n *rowfn.Node) error {
	number := bitsOf(n.Number)
	switch n.Op {
	case rowfn.OpColumn:
		out.Name = &n.Text
	case rowfn.OpNumber:
		out.Number = &number
	case rowfn.OpText:
		out.Text = &n.Text
	case rowfn.OpRow:
		out.Values = make([]byte, 0, 8*len(n.Values))
		for _, x := range n.Values {
			word := math.Float64bits(x)
			if x != x {
				word = nullBits
			}
			out.Values = binary.LittleEndian.AppendUint64(out.Values, word)
		}
	case rowfn.OpLookup:
		for _, text := range slices.Sorted(maps.Keys(n.Texts)) {
			out.Texts = append(out.Texts, entry{text, bitsOf(n.Texts[text])})
		}
		if n.Number == n.Number {
			out.Null = &number
		}
	case rowfn.OpScore:
		at, err := w.model(n.Model)
		out.Model, out.Output = &at, &n.Output
		return err
	}
	return nil
}

func (w *writer) model(s rowfn.Scorer) (int, error) {
	if at, ok := w.modelAt[s.ID()]; ok {
		return at, nil
	}
	if len(w.list) == MaxModels {
		return 0, &Error{"", fmt.Sprintf("more than %d models", MaxModels)}
	}
	m := modelForm{SHA256: s.ID(), Features: s.Features(), Outputs: s.Outputs()}
	if w.models != nil {
		m.Model = w.models(s)
	}
	at := len(w.list)
	w.list, w.modelAt[m.SHA256] = append(w.list, m), at
	return at, nil
}
