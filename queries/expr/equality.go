package expr

import "github.com/holdoutd/holdoutd/rowfn"

// truth is the node of true or false.
func truth(yes bool) *rowfn.Node {
	if yes {
		return &rowfn.Node{Op: rowfn.OpTrue, Type: rowfn.Condition}
	}
	return &rowfn.Node{Op: rowfn.OpFalse, Type: rowfn.Condition}
}

func not(n *rowfn.Node) *rowfn.Node {
	return &rowfn.Node{Op: rowfn.OpNot, Type: rowfn.Condition, Args: []*rowfn.Node{n}}
}

func isNull(n *rowfn.Node) *rowfn.Node {
	return &rowfn.Node{Op: rowfn.OpIsNull, Type: rowfn.Condition, Args: []*rowfn.Node{n}}
}

// equality is == and !=: a null test, or a comparison of two numbers, times, texts or conditions.
func (b *builder) equality(t *term, op rowfn.Op) (*rowfn.Node, *Error) {
	left, right := t.args[0], t.args[1] // null is constant, so before put it last
	if right.kind == nullTerm {
		return b.nullTest(left, op)
	}
	l, err := b.node(left)
	if err != nil {
		return nil, err
	}
	r, err := b.node(right)
	if err != nil {
		return nil, err
	}
	switch {
	case l.Type == rowfn.Time || r.Type == rowfn.Time:
		return b.uniform(t, op, rowfn.Time, rowfn.Condition)
	case l.Type == rowfn.Condition && r.Type == rowfn.Condition:
		return b.sameCondition(t, l, r, op)
	case l.Type == rowfn.Text && r.Type == rowfn.Text && l.Op == rowfn.OpText && r.Op == rowfn.OpText:
		return nil, b.syntax.fail(t.offset, "both sides are literal texts", "a text column on one side")
	case l.Type != r.Type:
		return nil, b.syntax.mismatch(right, r, l.Type)
	}
	return &rowfn.Node{Op: op, Type: rowfn.Condition, Args: []*rowfn.Node{l, r}}, nil
}

func (b *builder) nullTest(t *term, op rowfn.Op) (*rowfn.Node, *Error) {
	if t.kind == nullTerm {
		return nil, b.syntax.fail(t.offset, "null is compared with null", "a column or a number on one side")
	}
	n, err := b.node(t)
	switch {
	case err != nil:
		return nil, err
	case n.Op == rowfn.OpText:
		return nil, b.syntax.fail(t.offset, "a literal text is never null", "a column")
	case n.Type == rowfn.Condition && t.kind != columnTerm:
		return nil, b.syntax.fail(t.offset, "a condition is never null", "a column or a number")
	case op == rowfn.OpEq:
		return isNull(n), nil
	}
	return not(isNull(n)), nil
}

// sameCondition is == or != of two conditions. One side must be a leaf, so that writing it twice cannot make the tree
// grow beyond its source. As with numbers, a null cell makes both == and != false.
func (b *builder) sameCondition(t *term, l, r *rowfn.Node, op rowfn.Op) (*rowfn.Node, *Error) {
	leaf, other := l, r
	if len(leaf.Args) > 0 {
		leaf, other = r, l
	}
	if len(leaf.Args) > 0 {
		return nil, b.syntax.fail(t.offset, "two computed conditions are compared", "a column, true or false on one side; else && and ||")
	}
	same := &rowfn.Node{Op: rowfn.OpIf, Type: rowfn.Condition, Args: []*rowfn.Node{other, leaf, not(leaf)}}
	if op == rowfn.OpNe {
		same.Args[1], same.Args[2] = same.Args[2], same.Args[1]
	}
	if r.Op == rowfn.OpTrue || r.Op == rowfn.OpFalse { // literals are last
		if same = l; (r.Op == rowfn.OpTrue) != (op == rowfn.OpEq) {
			same = not(l)
		}
	}
	guards := []*rowfn.Node{same}
	for i, side := range []*rowfn.Node{l, r} {
		if t.args[i].kind == columnTerm && side != same { // a condition that holds is not null
			guards = append(guards, not(isNull(side)))
		}
	}
	if len(guards) == 1 {
		return same, nil
	}
	return &rowfn.Node{Op: rowfn.OpAnd, Type: rowfn.Condition, Args: guards}, nil
}

// membership is x in [...]. Members are literal texts for a text column, numbers for a number; for a time it is the
// same as comparing with each.
func (b *builder) membership(t *term) (*rowfn.Node, *Error) {
	x, err := b.node(t.args[0])
	if err != nil {
		return nil, err
	}
	switch {
	case x.Type == rowfn.Condition:
		return nil, b.syntax.fail(t.args[0].offset, "this is a condition", "a number, a time or a text column")
	case x.Op == rowfn.OpText:
		return nil, b.syntax.fail(t.args[0].offset, "this is a literal text", "a text column")
	case x.Type == rowfn.Time && x.Op != rowfn.OpColumn: // it is written once for each member below
		return nil, b.syntax.fail(t.args[0].offset, "this is a computed time", "a time column")
	}
	n := &rowfn.Node{Op: rowfn.OpIn, Type: rowfn.Condition, Args: []*rowfn.Node{x}}
	for _, member := range t.args[1].args {
		m, err := b.want(member, x.Type)
		if err != nil {
			return nil, err
		}
		if m.Type == rowfn.Text && m.Op != rowfn.OpText {
			return nil, b.syntax.fail(member.offset, "this is a column", "a literal text in quotes")
		}
		n.Args = append(n.Args, m)
	}
	if x.Type == rowfn.Time {
		return anyEqual(x, n.Args[1:]), nil
	}
	return n, nil
}

func anyEqual(x *rowfn.Node, members []*rowfn.Node) *rowfn.Node {
	n := &rowfn.Node{Op: rowfn.OpOr, Type: rowfn.Condition}
	for _, m := range members {
		n.Args = append(n.Args, &rowfn.Node{Op: rowfn.OpEq, Type: rowfn.Condition, Args: []*rowfn.Node{x, m}})
	}
	if len(n.Args) == 1 {
		return n.Args[0]
	}
	return n
}
