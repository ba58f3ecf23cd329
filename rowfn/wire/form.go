package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/holdoutd/holdoutd/rowfn"
)

// The form as encoding/json writes it: members in this order, without spaces, and without the escapes that only HTML needs.

type batch struct {
	Version   int       `json:"rowfn"`
	Models    models    `json:"models,omitempty"`
	Nodes     nodes     `json:"nodes,omitempty"`
	Functions functions `json:"functions"`
	Products  products  `json:"products,omitempty"`
}

// The lists are read element by element, so that what is too long is not held.
type (
	models    []modelForm
	nodes     []node
	functions []function
	products  [][2]int
)

// UnmarshalJSON implements [json.Unmarshaler], as do those of the other lists.
func (l *models) UnmarshalJSON(text []byte) (err error) {
	*l, err = list[modelForm](text, "/models", MaxModels)
	return err
}

func (l *nodes) UnmarshalJSON(text []byte) (err error) {
	*l, err = list[node](text, "/nodes", MaxNodes)
	return err
}

func (l *functions) UnmarshalJSON(text []byte) (err error) {
	*l, err = list[function](text, "/functions", MaxFunctions)
	return err
}

func (l *products) UnmarshalJSON(text []byte) (err error) {
	*l, err = list[[2]int](text, "/products", MaxProducts)
	return err
}

func list[T any](text []byte, pointer string, most int) (all []T, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return nil, &Error{pointer, "must be a list"}
	}
	for d.More() {
		if len(all) == most {
			return nil, &Error{pointer, fmt.Sprintf("has more than %d", most)}
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return nil, at(fmt.Sprintf("%s/%d", pointer, len(all)), err)
		}
		all = append(all, one)
	}
	return all, nil
}

type modelForm struct {
	SHA256   string          `json:"sha256"`
	Features int             `json:"features"`
	Outputs  int             `json:"outputs"`
	Model    json.RawMessage `json:"model,omitempty"`
}

type function struct {
	Value *int   `json:"value,omitempty"`
	Low   bits   `json:"low"`
	High  bits   `json:"high"`
	Null  bits   `json:"null"`
	Where *int   `json:"where,omitempty"`
	Unit  string `json:"unit"`
}

type node struct {
	Op     string  `json:"op"`
	Type   string  `json:"type"`
	Args   []int   `json:"args,omitempty"`
	Name   *string `json:"name,omitempty"`   // column
	Number *bits   `json:"number,omitempty"` // number
	Text   *string `json:"text,omitempty"`   // text
	Texts  []entry `json:"texts,omitempty"`  // lookup
	Null   *bits   `json:"null,omitempty"`   // lookup
	Model  *int    `json:"model,omitempty"`  // score
	Output *int    `json:"output,omitempty"` // score
	Values []byte  `json:"values,omitempty"` // row: the bits of each number, 8 bytes, the lowest first
}

type entry struct {
	Text   string `json:"text"`
	Number bits   `json:"number"`
}

// bits are those of a float64: 16 small hexadecimal digits, the sign's first.
type bits uint64

func bitsOf(x float64) bits { return bits(math.Float64bits(x)) }

func (b bits) float() float64 { return math.Float64frombits(uint64(b)) }

// MarshalText implements [encoding.TextMarshaler].
func (b bits) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(b)), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (b *bits) UnmarshalText(text []byte) error {
	x, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return fmt.Errorf("the bits of a number are 16 hexadecimal digits")
	}
	*b = bits(x)
	return nil
}

// nullBits are those of the one NaN that stands for null in a list.
var nullBits = uint64(0x7ff8000000000001)

var types = map[rowfn.Type]string{rowfn.Number: "number", rowfn.Condition: "condition", rowfn.Text: "text", rowfn.Time: "time"}

var units = map[rowfn.PerUnit]string{rowfn.UnitMean: "mean", rowfn.UnitAny: "any", rowfn.UnitShare: "share"}

// names are those of the operations.
var names = map[rowfn.Op]string{
	rowfn.OpColumn: "column", rowfn.OpNumber: "number", rowfn.OpText: "text", rowfn.OpTrue: "true", rowfn.OpFalse: "false", rowfn.OpNull: "null",
	rowfn.OpNeg: "neg", rowfn.OpAbs: "abs", rowfn.OpLog: "log", rowfn.OpExp: "exp", rowfn.OpSqrt: "sqrt", rowfn.OpFloor: "floor", rowfn.OpCeil: "ceil",
	rowfn.OpAdd: "add", rowfn.OpSub: "sub", rowfn.OpMul: "mul", rowfn.OpDiv: "div", rowfn.OpMin: "min", rowfn.OpMax: "max", rowfn.OpClamp: "clamp",
	rowfn.OpIf:   "if",
	rowfn.OpLess: "less", rowfn.OpLessEq: "less_eq", rowfn.OpGreater: "greater", rowfn.OpGreaterEq: "greater_eq", rowfn.OpEq: "eq", rowfn.OpNe: "ne",
	rowfn.OpIn: "in", rowfn.OpHasPrefix: "has_prefix", rowfn.OpHasSuffix: "has_suffix", rowfn.OpContains: "contains", rowfn.OpIsNull: "is_null",
	rowfn.OpNot: "not", rowfn.OpAnd: "and", rowfn.OpOr: "or",
	rowfn.OpFullYear: "full_year", rowfn.OpMonth: "month", rowfn.OpDayOfMonth: "day_of_month", rowfn.OpDate: "date", rowfn.OpDayOfWeek: "day_of_week",
	rowfn.OpDayOfYear: "day_of_year", rowfn.OpHours: "hours", rowfn.OpMinutes: "minutes", rowfn.OpSeconds: "seconds", rowfn.OpMilliseconds: "milliseconds",
	rowfn.OpLookup: "lookup", rowfn.OpScore: "score", rowfn.OpRow: "row",
}

var (
	typeOf = inverse(types)
	unitOf = inverse(units)
	opOf   = inverse(names)
)

func inverse[K comparable](of map[K]string) map[string]K {
	back := make(map[string]K, len(of))
	for k, name := range of {
		back[name] = k
	}
	return back
}
