package shape

import "github.com/holdoutd/holdoutd/rowfn"

// Root is the shape of an answer that is the root of an estimating equation, released as one number in [0,1].
type Root struct{ Equation *Equation }

func (r Root) items() []string { return nil }

func (r Root) combine(o Outcome) Result {
	e, part := r.Equation, o.Parts[0]
	value, bounds := e.Link.of(part.Value, part.interval())
	result := finish(value, bounds, part.Bounded, e.Range, 1)
	if e.B != nil && part.unknown() {
		result.Value = nil
	}
	return result
}

// Roots is the shape of items that are each the root of an equation, released as one number in [0,1].
type Roots struct {
	Names     []string
	Equations Equations
}

func (r Roots) items() []string { return r.Names }

func (r Roots) combine(o Outcome) Result {
	items := make([]Item, len(r.Names))
	for i, name := range r.Names {
		items[i].Of = name
		if part := o.Parts[i]; !part.Missing {
			items[i].is(Root{&r.Equations[i]}.combine(Outcome{N: o.N, Parts: []Part{part}}))
		}
	}
	return Result{Items: items}
}

// Difference is a [Statistic]: the root of one equation minus that of another, over units of which none satisfies both conditions. Its value is (1+first-second)/2.
type Difference struct{ First, Second *Equation }

// Batch implements [Statistic].
func (d *Difference) Batch() rowfn.Batch {
	b := d.First.Batch()
	b.Join(d.Second.Batch())
	return b
}

// Sampled implements [Statistic].
func (d *Difference) Sampled() rowfn.Batch {
	b := d.First.Sampled()
	b.Join(d.Second.Sampled())
	return b
}

// Between is the shape of the difference of two roots that are released each by itself.
type Between struct{ First, Second *Equation }

func (b Between) items() []string { return nil }

func (b Between) combine(o Outcome) Result {
	return b.First.Range.minus(b.Second.Range, Root{b.First}.combine(Outcome{N: o.N, Parts: o.Parts[:1]}), Root{b.Second}.combine(Outcome{N: o.N, Parts: o.Parts[1:]}))
}

// unknown says that an interval says nothing of a part: a condition may hold nowhere, as far as can be told.
func (p Part) unknown() bool { return p.Bounded && p.Low <= 0 && p.High >= 1 }

// Batch implements [Statistic]: what a pass has to sum for this equation alone.
func (e *Equation) Batch() rowfn.Batch { return Equations{*e}.Batch() }

// Sums are all five sums, of the sums of [Equation.Batch] over n units.
func (e *Equation) Sums(s rowfn.Sums, n int64) EquationSums { return Equations{*e}.Sums(s, n)[0] }

// Equation is the equation that says the whole answer; nil where that is not known, or where the answer is made of several.
func (p *Plan) Equation() *Equation {
	if len(p.Equations) != 1 || !p.Scalar() {
		return nil
	}
	return &p.Equations[0]
}

// Scale is how much the answer moves when the only number that is released moves by one, in a holdout of n units; false where that
// is not the same everywhere.
func (p *Plan) Scale(n int64) (float64, bool) {
	switch s := p.Shape.(type) {
	case Affine:
		return s.Scale(n), true
	case Root:
		return s.Equation.Range.High - s.Equation.Range.Low, s.Equation.Link == Identity
	case Moved:
		return s.Range.High - s.Range.Low, true
	}
	return 0, false
}

// OfRows says that units are single rows: what an equation's form then says of its values is known.
func (p *Plan) OfRows() {
	p.single = true
	p.Equations.ofRows()
	if p.Checks == nil {
		return
	}
	for _, s := range p.Checks.Statistics {
		if j, ok := s.(*Joint); ok {
			j.Means.ofRows()
		}
	}
}

func (e Equations) ofRows() {
	for i := range e {
		e[i].OfRows()
	}
}

// OfRows says that units are single rows. Then it is known by A's form whether it has no value but 0 and 1, and its square is a row function.
func (e *Equation) OfRows() {
	e.Binary = isBinary(e.A)
	if e.Binary {
		return
	}
	u := rowfn.Div(rowfn.Sub(InUnits(e.A), rowfn.Const(e.A.Lo)), rowfn.Const(e.A.Hi-e.A.Lo))
	e.Square = &rowfn.Function{Value: rowfn.Mul(u, u), Lo: 0, Hi: 1, Where: e.A.Where}
}

// Binary says that a row function has no value but 0 and 1 at any unit, by its form: of single rows alone that is known.
func (p *Plan) Binary(function int) bool {
	return p.single && function < len(p.Functions) && isBinary(p.Functions[function])
}

// isBinary says that a function of one row has no value but the ends of its range.
func isBinary(f rowfn.Function) bool {
	if f.Value == nil || f.Value.Type == rowfn.Condition {
		return true
	}
	var ends func(n *rowfn.Node) bool
	ends = func(n *rowfn.Node) bool {
		switch n.Op {
		case rowfn.OpNumber:
			return n.Number == f.Lo || n.Number == f.Hi
		case rowfn.OpIf:
			return ends(n.Args[1]) && ends(n.Args[2])
		case rowfn.OpClamp: // to the range, whose ends stay
			return n.Args[1].Number == f.Lo && n.Args[2].Number == f.Hi && ends(n.Args[0])
		}
		return false
	}
	return f.Value.Op == rowfn.OpIf && ends(f.Value)
}

// Sampled implements [Statistic]: what a pass over the training part has to sum is what [Equation.Batch] has, and, where A's square is known as a row function, the products of A and its
// square, and of the square by itself. Margins are planned by them.
func (e *Equation) Sampled() rowfn.Batch {
	b := e.Batch()
	if e.Square != nil && e.Whole {
		square := len(b.Functions)
		b.Functions = append(b.Functions, *e.Square)
		b.Products = append(b.Products, rowfn.Product{A: 0, B: square}, rowfn.Product{A: square, B: square})
	}
	return b
}

// Higher are the sums of A³ and A⁴ of the sums of [Equation.Sampled]; false where they are not known.
func (e *Equation) Higher(s rowfn.Sums) (third, fourth rowfn.Wide, ok bool) {
	if e.Square == nil || !e.Whole {
		return third, fourth, false
	}
	last := len(s.Products)
	return s.Products[last-2], s.Products[last-1], true
}
