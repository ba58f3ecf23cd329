package kernel

import (
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
)

func exprOp(aux uint32) rowfn.Op { return rowfn.Op(aux) }

// Values are the results of one expression, a value a row. One of the slices is set, by the expression's type.
type Values struct {
	Numbers    []float64 // Number and Time; NaN is null
	Conditions []uint8   // 0 or 1
}

// Evaluate computes one Number, Time or Condition in every row, by the same program that sums run. Errors are those of
// [Compile].
func Evaluate(t *dataset.Table, n *rowfn.Node) (Values, error) {
	if n.Type == rowfn.Text {
		return Values{}, fmt.Errorf("kernel: texts are not computed")
	}
	l := newLowering(t, 1)
	root, err := l.node(n)
	if err != nil {
		return Values{}, err
	}
	l.rank()
	a := newAssembler(l, 1)
	a.emit(root)
	// A sink keeps the result's register; it is read here and not summed.
	a.steps = append(a.steps, step{sink: &sink{values: noValues}, dst: unplaced, value: value{a: root, b: none, c: none}})
	p := a.finish(0)
	at := p.steps[len(p.steps)-1].a
	p.steps = p.steps[:len(p.steps)-1]

	if err := p.Fill(); err != nil {
		return Values{}, err
	}
	s := NewState(p, Units{}, MaxBlock)
	defer s.Release()
	var out Values
	if l.values[root].class() == numberClass {
		out.Numbers = make([]float64, 0, t.Rows())
	} else {
		out.Conditions = make([]uint8, 0, t.Rows())
	}
	for base := 0; base < t.Rows(); base += MaxBlock {
		rows := min(MaxBlock, t.Rows()-base)
		s.run(base, rows)
		if out.Numbers != nil {
			out.Numbers = append(out.Numbers, s.numbers[at][:rows]...)
		} else {
			out.Conditions = append(out.Conditions, s.bytes[at][:rows]...)
		}
	}
	return out, nil
}
