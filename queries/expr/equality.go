package expr

// truth is the node of true or false.
func truth(yes bool) *Node {
	if yes {
		return &Node{Op: OpTrue, Type: Condition}
	}
	return &Node{Op: OpFalse, Type: Condition}
}

func not(n *Node) *Node { return &Node{Op: OpNot, Type: Condition, Args: []*Node{n}} }

func isNull(n *Node) *Node { return &Node{Op: OpIsNull, Type: Condition, Args: []*Node{n}} }

// equality is == and !=: a null test, or a comparison of two numbers, times, texts or conditions.
func (b *builder) equality(t *term, op Op) (*Node, *Error) {
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
	case l.Type == Time || r.Type == Time:
		return b.uniform(t, op, Time, Condition)
	case l.Type == Condition && r.Type == Condition:
		return b.sameCondition(t, l, r, op)
	case l.Type == Text && r.Type == Text && l.Op == OpText && r.Op == OpText:
		return nil, b.syntax.fail(t.offset, "both sides are literal texts", "a text column on one side")
	case l.Type != r.Type:
		return nil, b.syntax.mismatch(right, r, l.Type)
	}
	return &Node{Op: op, Type: Condition, Args: []*Node{l, r}}, nil
}

func (b *builder) nullTest(t *term, op Op) (*Node, *Error) {
	if t.kind == nullTerm {
		return nil, b.syntax.fail(t.offset, "null is compared with null", "a column or a number on one side")
	}
	n, err := b.node(t)
	switch {
	case err != nil:
		return nil, err
	case n.Op == OpText:
		return nil, b.syntax.fail(t.offset, "a literal text is never null", "a column")
	case n.Type == Condition && t.kind != columnTerm:
		return nil, b.syntax.fail(t.offset, "a condition is never null", "a column or a number")
	case op == OpEq:
		return isNull(n), nil
	}
	return not(isNull(n)), nil
}

// sameCondition is == or != of two conditions. One side must be a leaf, so that writing it twice cannot make the tree
// grow beyond its source. As with numbers, a null cell makes both == and != false.
func (b *builder) sameCondition(t *term, l, r *Node, op Op) (*Node, *Error) {
	leaf, other := l, r
	if len(leaf.Args) > 0 {
		leaf, other = r, l
	}
	if len(leaf.Args) > 0 {
		return nil, b.syntax.fail(t.offset, "two computed conditions are compared", "a column, true or false on one side; else && and ||")
	}
	same := &Node{Op: OpIf, Type: Condition, Args: []*Node{other, leaf, not(leaf)}}
	if op == OpNe {
		same.Args[1], same.Args[2] = same.Args[2], same.Args[1]
	}
	if r.Op == OpTrue || r.Op == OpFalse { // literals are last
		if same = l; (r.Op == OpTrue) != (op == OpEq) {
			same = not(l)
		}
	}
	guards := []*Node{same}
	for i, side := range []*Node{l, r} {
		if t.args[i].kind == columnTerm && side != same { // a condition that holds is not null
			guards = append(guards, not(isNull(side)))
		}
	}
	if len(guards) == 1 {
		return same, nil
	}
	return &Node{Op: OpAnd, Type: Condition, Args: guards}, nil
}

// membership is x in [...]. Members are literal texts for a text column, numbers for a number; for a time it is the
// same as comparing with each.
func (b *builder) membership(t *term) (*Node, *Error) {
	x, err := b.node(t.args[0])
	if err != nil {
		return nil, err
	}
	switch {
	case x.Type == Condition:
		return nil, b.syntax.fail(t.args[0].offset, "this is a condition", "a number, a time or a text column")
	case x.Op == OpText:
		return nil, b.syntax.fail(t.args[0].offset, "this is a literal text", "a text column")
	case x.Type == Time && x.Op != OpColumn: // it is written once for each member below
		return nil, b.syntax.fail(t.args[0].offset, "this is a computed time", "a time column")
	}
	n := &Node{Op: OpIn, Type: Condition, Args: []*Node{x}}
	for _, member := range t.args[1].args {
		m, err := b.want(member, x.Type)
		if err != nil {
			return nil, err
		}
		if m.Type == Text && m.Op != OpText {
			return nil, b.syntax.fail(member.offset, "this is a column", "a literal text in quotes")
		}
		n.Args = append(n.Args, m)
	}
	if x.Type == Time {
		return anyEqual(x, n.Args[1:]), nil
	}
	return n, nil
}

func anyEqual(x *Node, members []*Node) *Node {
	n := &Node{Op: OpOr, Type: Condition}
	for _, m := range members {
		n.Args = append(n.Args, &Node{Op: OpEq, Type: Condition, Args: []*Node{x, m}})
	}
	if len(n.Args) == 1 {
		return n.Args[0]
	}
	return n
}
