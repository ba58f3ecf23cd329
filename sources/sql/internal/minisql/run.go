package minisql

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Row is a row by column: a float64, an int64, a string, a bool or, for NULL, nil.
type Row map[string]any

// Run runs a statement over the rows of its table and returns its rows, as text.
func Run(text string, rows []Row) (reply [][]string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	p := &parser{tokens: tokenize(text)}
	q := p.query()
	if p.at != len(p.tokens) {
		return nil, fmt.Errorf("minisql: the statement goes on with %q", p.peek())
	}
	for _, row := range q.run(rows) {
		list := make([]string, len(q.items))
		for i, item := range q.items {
			list[i] = fmt.Sprint(row[item.as])
			if item.as == "" {
				list[i] = fmt.Sprint(row[strconv.Itoa(i)])
			}
		}
		reply = append(reply, list)
	}
	return reply, nil
}

func (e *expr) aggregates() bool {
	if e.op == "sum()" || e.op == "count()" || e.op == "checksum()" {
		return true
	}
	for i := range e.args {
		if e.args[i].aggregates() {
			return true
		}
	}
	return false
}

func (q *query) run(rows []Row) (out []Row) {
	if q.from != nil {
		rows = q.from.run(rows)
	}
	var kept []Row
	for _, row := range rows {
		if q.where == nil || truth(q.where.eval(row, nil)) {
			kept = append(kept, row)
		}
	}
	grouped := q.group != nil
	for _, item := range q.items {
		grouped = grouped || item.e.aggregates()
	}
	if !grouped {
		for _, row := range kept {
			out = append(out, q.row(row, nil))
		}
		return out
	}
	var order []any
	groups := map[any][]Row{}
	for _, row := range kept {
		var k any
		if q.group != nil {
			k = q.group.eval(row, nil)
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], row)
	}
	if q.group == nil && len(order) == 0 {
		return []Row{q.row(Row{}, []Row{})}
	}
	for _, k := range order {
		out = append(out, q.row(groups[k][0], groups[k]))
	}
	return out
}

func (q *query) row(row Row, group []Row) Row {
	out := make(Row, len(q.items))
	for i, item := range q.items {
		name := item.as
		if name == "" {
			name = strconv.Itoa(i)
		}
		out[name] = item.e.eval(row, group)
	}
	return out
}

// truth is whether a condition holds: NULL does not.
func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	return false
}

func bit(b bool) any {
	if b {
		return int64(1)
	}
	return int64(0)
}

func (e *expr) eval(row Row, group []Row) any {
	switch e.op {
	case "name":
		v, ok := row[e.text]
		if !ok {
			panic("minisql: no column " + e.text)
		}
		return v
	case "int":
		k, err := strconv.ParseInt(e.text, 10, 64)
		if err != nil {
			panic(err)
		}
		return k
	case "text":
		return e.text
	case "bytes":
		b, err := hex.DecodeString(e.text)
		if err != nil {
			panic(err)
		}
		return string(b)
	case "NULL":
		return nil
	case "true", "false":
		return e.op == "true"
	case "count()":
		return int64(len(group))
	case "sum()":
		return e.sum(group)
	case "checksum()":
		return e.checksum(group)
	case "case":
		for i := 0; i+1 < len(e.args); i += 2 {
			if truth(e.args[i].eval(row, group)) {
				return e.args[i+1].eval(row, group)
			}
		}
		return e.args[len(e.args)-1].eval(row, group)
	}
	args := make([]any, len(e.args))
	null := false
	for i := range args {
		args[i] = e.args[i].eval(row, group)
		null = null || args[i] == nil
	}
	switch e.op {
	case "is null":
		return args[0] == nil
	case "coalesce()":
		if args[0] == nil {
			return args[1]
		}
		return args[0]
	case "and", "or": // of Trino, where neither is NULL
		if null {
			panic("minisql: NULL in " + e.op)
		}
		if e.op == "and" {
			return args[0].(bool) && args[1].(bool)
		}
		return args[0].(bool) || args[1].(bool)
	case "cast":
		return cast(args[0], e.text)
	case "in":
		if args[0] == nil {
			return nil
		}
		for _, a := range args[1:] {
			if a == args[0] {
				return true
			}
		}
		return false
	}
	if null {
		return nil
	}
	return call(e.op, args)
}

// sum is of integers alone: a sum of floats depends on the order, and what differs from run to run is an error here. It wraps around, as ClickHouse's does.
func (e *expr) sum(group []Row) any {
	total, any := int64(0), false
	for _, row := range group {
		k, ok := e.args[0].eval(row, nil).(int64)
		if !ok {
			panic("minisql: a sum of what is no integer")
		}
		total, any = total+k, true
	}
	if !any {
		return nil
	}
	return total
}

// checksum is like Trino's: a sum of hashes, from the lowest byte on.
func (e *expr) checksum(group []Row) any {
	total := uint64(0)
	for _, row := range group {
		total += uint64(hash(fmt.Sprintf("%#v", e.args[0].eval(row, nil))))
	}
	if len(group) == 0 {
		return nil
	}
	return string(binary.LittleEndian.AppendUint64(nil, total))
}

func cast(v any, to string) any {
	switch v := v.(type) {
	case float64:
		switch to {
		case "bigint": // Trino rounds
			if r := math.Round(v); r == r && r >= -0x1p63 && r < 0x1p63 {
				return int64(r)
			}
			panic("minisql: a cast of what is no integer")
		case "double":
			return v
		}
	case int64:
		switch to {
		case "bigint":
			return v
		case "double":
			return float64(v)
		}
	case nil:
		return nil
	}
	panic(fmt.Sprintf("minisql: a cast of %T to %s", v, to))
}

// call is a function or operator of values that are not NULL.
func call(op string, args []any) any {
	if op == "tuple()" {
		return args
	}
	if len(args) == 2 {
		if x, ok := args[0].(float64); ok {
			y, ok := args[1].(float64)
			if !ok {
				if k, whole := args[1].(int64); whole {
					y, ok = float64(k), true
				}
			}
			if ok {
				return floats(op, x, y)
			}
		}
		if x, ok := args[0].(int64); ok {
			if y, ok := args[1].(int64); ok {
				return ints(op, x, y)
			}
		}
		if x, ok := args[0].(string); ok {
			if y, ok := args[1].(string); ok {
				return texts(op, x, y)
			}
		}
	}
	switch op {
	case "in()":
		for _, a := range args[1].([]any) {
			if a == args[0] {
				return bit(true)
			}
		}
		return bit(false)
	case "if()":
		if truth(args[0]) {
			return args[1]
		}
		return args[2]
	case "multiIf()":
		for i := 0; i+1 < len(args); i += 2 {
			if truth(args[i]) {
				return args[i+1]
			}
		}
		return args[len(args)-1]
	case "not":
		return !args[0].(bool)
	case "substr()": // of Trino: characters, from the end
		text, n := args[0].(string), -args[1].(int64)
		if count := int64(utf8.RuneCountInString(text)); n > count {
			return ""
		} else {
			return string([]rune(text)[count-n:])
		}
	}
	switch x := args[0].(type) {
	case float64:
		return float(op, x)
	case int64:
		return integer(op, x)
	case string:
		return text(op, x)
	}
	panic(fmt.Sprintf("minisql: %s of %T", op, args[0]))
}

func float(op string, x float64) any {
	switch op {
	case "negate()", "negative":
		return -x
	case "abs()":
		return math.Abs(x)
	case "sqrt()":
		return math.Sqrt(x)
	case "floor()":
		return math.Floor(x)
	case "ceil()":
		return math.Ceil(x)
	case "isNaN()":
		return bit(x != x)
	case "isFinite()":
		return bit(x-x == 0)
	case "to_ieee754_64()":
		return string(binary.BigEndian.AppendUint64(nil, math.Float64bits(x)))
	case "is_nan()":
		return x != x
	case "is_finite()":
		return x-x == 0
	case "toInt64()": // cuts off
		if x >= -0x1p63 && x < 0x1p63 {
			return int64(x)
		}
		panic("minisql: toInt64 of what is no integer")
	case "toFloat64()":
		return x
	case "cityHash64()":
		return hash(string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))))
	}
	panic("minisql: " + op + " of a float")
}

func integer(op string, x int64) any {
	switch op {
	case "toInt64()", "toUInt64()", "toUInt8()":
		return x
	case "cityHash64()":
		return hash(strconv.FormatInt(x, 10))
	case "toFloat64()":
		return float64(x)
	case "negative":
		return -x
	}
	panic("minisql: " + op + " of an integer")
}

func text(op, x string) any {
	switch op {
	case "unhex()":
		b, err := hex.DecodeString(x)
		if err != nil {
			panic(err)
		}
		return string(b)
	case "from_utf8()":
		if !utf8.ValidString(x) {
			panic("minisql: no UTF-8")
		}
		return x
	case "reinterpretAsFloat64()":
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(x)))
	case "from_ieee754_64()":
		return math.Float64frombits(binary.BigEndian.Uint64([]byte(x)))
	case "from_big_endian_64()":
		return int64(binary.BigEndian.Uint64([]byte(x)))
	case "reverse()":
		b := []byte(x)
		for i := range len(b) / 2 {
			b[i], b[len(b)-1-i] = b[len(b)-1-i], b[i]
		}
		return string(b)
	case "cityHash64()":
		return hash(x)
	case "to_utf8()":
		return x
	case "xxhash64()":
		return string(binary.BigEndian.AppendUint64(nil, uint64(hash(x))))
	}
	panic("minisql: " + op + " of a text")
}

// hash stands for the engine's, and as theirs it mixes well: sums of FNV's are often the same for other values.
func hash(x string) int64 {
	sum := sha256.Sum256([]byte(x))
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

func floats(op string, x, y float64) any {
	switch op {
	case "plus()", "+":
		return x + y
	case "minus()", "-":
		return x - y
	case "multiply()", "*":
		return x * y
	case "divide()", "/":
		return x / y
	case "less()":
		return bit(x < y)
	case "lessOrEquals()":
		return bit(x <= y)
	case "equals()":
		return bit(x == y)
	case "notEquals()": // of ClickHouse: not equal to itself
		return bit(x != y)
	case "greatest()": // of ClickHouse: whatever the second comparison says
		if x > y {
			return x
		}
		return y
	case "least()":
		if x < y {
			return x
		}
		return y
	case "<":
		return x < y
	case "<=":
		return x <= y
	case "=":
		return x == y
	case "<>":
		return x != y
	}
	panic("minisql: " + op + " of floats")
}

func ints(op string, x, y int64) any {
	switch op {
	case "plus()", "+":
		return x + y
	case "minus()", "-":
		return x - y
	case "multiply()", "*":
		return x * y
	case "intDiv()", "/":
		return x / y
	case "modulo()", "%":
		return x % y
	case "bitAnd()", "bitwise_and()":
		return x & y
	case "bitOr()", "bitwise_or()":
		return x | y
	case "bitXor()", "bitwise_xor()":
		return x ^ y
	case "bitShiftRight()", "bitwise_right_shift()":
		return int64(uint64(x) >> uint64(y))
	case "less()":
		return bit(x < y)
	case "equals()":
		return bit(x == y)
	case "notEquals()":
		return bit(x != y)
	case "<":
		return x < y
	case ">":
		return x > y
	case ">=":
		return x >= y
	case "=":
		return x == y
	}
	panic("minisql: " + op + " of integers")
}

func texts(op, x, y string) any {
	switch op {
	case "equals()":
		return bit(x == y)
	case "notEquals()":
		return bit(x != y)
	case "startsWith()":
		return bit(strings.HasPrefix(x, y))
	case "endsWith()":
		return bit(strings.HasSuffix(x, y))
	case "position()":
		return int64(strings.Index(x, y) + 1)
	case "starts_with()":
		return strings.HasPrefix(x, y)
	case "strpos()":
		at := strings.Index(x, y)
		if at < 0 {
			return int64(0)
		}
		return int64(utf8.RuneCountInString(x[:at]) + 1)
	case "=":
		return x == y
	case "<>":
		return x != y
	}
	panic("minisql: " + op + " of texts")
}
