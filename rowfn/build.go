package rowfn

// The constructors of nodes. Arguments have the types that the operation's comment names; nothing is checked here, for an engine
// checks what it is given.

// Const is a number, which must be finite.
func Const(x float64) *Node { return &Node{Op: OpNumber, Type: Number, Number: x} }

// TextConst is a text.
func TextConst(text string) *Node { return &Node{Op: OpText, Type: Text, Text: text} }

// True holds in every row.
func True() *Node { return &Node{Op: OpTrue, Type: Condition} }

// Null is the number that is null in every row.
func Null() *Node { return &Node{Op: OpNull, Type: Number} }

// Column is a column by name. A column of true and false is a Condition.
func Column(name string, t Type) *Node { return &Node{Op: OpColumn, Type: t, Text: name} }

func unary(op Op, x *Node) *Node     { return &Node{Op: op, Type: Number, Args: []*Node{x}} }
func binary(op Op, a, b *Node) *Node { return &Node{Op: op, Type: Number, Args: []*Node{a, b}} }

// Neg is -x.
func Neg(x *Node) *Node { return unary(OpNeg, x) }

// Abs is |x|.
func Abs(x *Node) *Node { return unary(OpAbs, x) }

// Log is the natural logarithm of x.
func Log(x *Node) *Node { return unary(OpLog, x) }

// Exp is e to the power x.
func Exp(x *Node) *Node { return unary(OpExp, x) }

// Sqrt is the square root of x.
func Sqrt(x *Node) *Node { return unary(OpSqrt, x) }

// Add is a + b.
func Add(a, b *Node) *Node { return binary(OpAdd, a, b) }

// Sub is a - b.
func Sub(a, b *Node) *Node { return binary(OpSub, a, b) }

// Mul is a · b.
func Mul(a, b *Node) *Node { return binary(OpMul, a, b) }

// Div is a / b.
func Div(a, b *Node) *Node { return binary(OpDiv, a, b) }

// Max is the larger of a and b.
func Max(a, b *Node) *Node { return binary(OpMax, a, b) }

// Clamp is x brought into [low, high]; null where x is.
func Clamp(x *Node, low, high float64) *Node {
	return &Node{Op: OpClamp, Type: Number, Args: []*Node{x, Const(low), Const(high)}}
}

// If is yes in the rows in which test holds, else no. Both have one type, which is its own.
func If(test, yes, no *Node) *Node {
	return &Node{Op: OpIf, Type: yes.Type, Args: []*Node{test, yes, no}}
}

// OrElse is x, or a number in the rows in which x is null.
func OrElse(x *Node, null float64) *Node { return If(IsNull(x), Const(null), x) }

func condition(op Op, args ...*Node) *Node { return &Node{Op: op, Type: Condition, Args: args} }

// Compare compares two numbers, times or texts: op is OpLess to OpNe.
func Compare(op Op, a, b *Node) *Node { return condition(op, a, b) }

// CompareTo compares a number with a constant.
func CompareTo(op Op, x *Node, with float64) *Node { return condition(op, x, Const(with)) }

// In holds where x is one of the others.
func In(x *Node, others ...*Node) *Node { return condition(OpIn, append([]*Node{x}, others...)...) }

// IsNull holds where x is null.
func IsNull(x *Node) *Node { return condition(OpIsNull, x) }

// Not holds where a condition does not.
func Not(c *Node) *Node { return condition(OpNot, c) }

// And holds where all of two or more conditions do.
func And(conditions ...*Node) *Node { return condition(OpAnd, conditions...) }

// Or holds where any of two or more conditions does.
func Or(conditions ...*Node) *Node { return condition(OpOr, conditions...) }
