package rowfn

// Rows is the batch for a part of the rows that numbers came for with the question ([OpRow]): those from up to to. Every other node is as it was, and what was shared
// still is.
func (b Batch) Rows(from, to int) Batch {
	c := cutting{from, to, map[*Node]*Node{}}
	cut := Batch{Functions: make([]Function, len(b.Functions)), Products: b.Products}
	for i, f := range b.Functions {
		f.Value, f.Where = c.node(f.Value), c.node(f.Where)
		cut.Functions[i] = f
	}
	return cut
}

type cutting struct {
	from, to int
	done     map[*Node]*Node
}

func (c *cutting) node(n *Node) *Node {
	if n == nil {
		return nil
	}
	if done, ok := c.done[n]; ok {
		return done
	}
	cut := n
	if n.Op == OpRow && len(n.Values) >= c.to {
		copied := *n
		copied.Values = n.Values[c.from:c.to]
		cut = &copied
	}
	for i, arg := range n.Args {
		if a := c.node(arg); a != arg {
			if cut == n {
				copied := *n
				copied.Args = append([]*Node(nil), n.Args...)
				cut = &copied
			}
			cut.Args[i] = a
		}
	}
	c.done[n] = cut
	return cut
}
