package wire

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/rowfn"
)

var update = flag.Bool("update", false, "write the golden file anew")

const golden = "testdata/batch.json"

// every is a batch that has a node of each operation, shared nodes, models of both kinds, numbers of rows, and products.
func every(t testing.TB) rowfn.Batch {
	x, y := rowfn.Column("x", rowfn.Number), rowfn.Column("col \"y\" <&>\u2028", rowfn.Number)
	s, p, d := rowfn.Column("s", rowfn.Text), rowfn.Column("p", rowfn.Condition), rowfn.Column("d", rowfn.Time)
	e := &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: 981072000e6}
	text := rowfn.TextConst("日本 'a\\b\"")
	sum := rowfn.Add(x, rowfn.Mul(y, rowfn.Const(0.1)))
	linear, err := model.Parse([]byte(`{"linear":{"weights":{"x":2,"s":{"a":1}},"link":"logit"}}`))
	if err != nil {
		t.Fatal(err)
	}
	trees, err := model.Parse([]byte(`{"trees":{"trees":[[["x",0.5],1,2]]}}`))
	if err != nil {
		t.Fatal(err)
	}
	lookup := &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{s}, Texts: map[string]float64{"a": 1, "": -0.5}, Number: math.NaN()}
	score := func(m *model.Model, args ...*rowfn.Node) *rowfn.Node {
		return &rowfn.Node{Op: rowfn.OpScore, Type: rowfn.Number, Model: m.Scorer(), Args: args}
	}
	all := []*rowfn.Node{
		sum, rowfn.Neg(sum), rowfn.Abs(x), rowfn.Log(x), rowfn.Exp(x), rowfn.Sqrt(x), {Op: rowfn.OpFloor, Type: rowfn.Number, Args: []*rowfn.Node{x}},
		{Op: rowfn.OpCeil, Type: rowfn.Number, Args: []*rowfn.Node{x}}, rowfn.Sub(d, e), rowfn.Div(x, y), rowfn.Max(x, y),
		{Op: rowfn.OpMin, Type: rowfn.Number, Args: []*rowfn.Node{x, y}}, rowfn.Clamp(x, math.Copysign(0, -1), math.MaxFloat64),
		rowfn.If(p, rowfn.Null(), rowfn.Const(math.SmallestNonzeroFloat64)), lookup, score(linear, lookup, x), score(trees, x),
		{Op: rowfn.OpRow, Type: rowfn.Number, Values: []float64{1, math.NaN(), -2.5}},
		{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{s}, Texts: map[string]float64{"a": 1}, Number: 7},
	}
	for op := rowfn.OpFullYear; op <= rowfn.OpMilliseconds; op++ {
		all = append(all, &rowfn.Node{Op: op, Type: rowfn.Number, Args: []*rowfn.Node{d}})
	}
	var holds []*rowfn.Node
	for op := rowfn.OpLess; op <= rowfn.OpNe; op++ {
		holds = append(holds, rowfn.Compare(op, x, y))
	}
	holds = append(holds, rowfn.Compare(rowfn.OpEq, s, text), rowfn.Compare(rowfn.OpLess, d, e), rowfn.In(x, rowfn.Const(1), y), rowfn.In(s, text, rowfn.TextConst("")), rowfn.In(d, e),
		rowfn.Compare(rowfn.OpHasPrefix, s, text), rowfn.Compare(rowfn.OpHasSuffix, s, text), rowfn.Compare(rowfn.OpContains, s, text),
		rowfn.IsNull(s), rowfn.IsNull(p), rowfn.IsNull(sum), rowfn.Not(p), rowfn.True(), &rowfn.Node{Op: rowfn.OpFalse, Type: rowfn.Condition},
		rowfn.If(p, rowfn.Not(p), p), rowfn.Or(p, rowfn.IsNull(d)))
	where := rowfn.And(holds...)
	b := rowfn.Batch{Functions: []rowfn.Function{{Lo: 0, Hi: 1}, {Value: p, Lo: 0, Hi: 1, PerUnit: rowfn.UnitShare}, {Lo: 0, Hi: 1, Where: where, PerUnit: rowfn.UnitAny}}}
	for _, n := range all {
		b.Functions = append(b.Functions, rowfn.Function{Value: n, Lo: -60, Hi: 180, Null: 0.1, Where: where})
	}
	b.Products = []rowfn.Product{{A: 0, B: 0}, {A: 3, B: 1}}
	return b
}

// TestGolden: the form stays what it was. It would notice a member that is named otherwise and a number that is written otherwise; an
// engine that was written from the page could not read that.
func TestGolden(t *testing.T) {
	got, err := Marshal(every(t), Inline)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.TrimSuffix(string(want), "\n") {
		t.Errorf("%s is not what is written:\n%s", golden, got)
	}
	has := map[string]bool{}
	var b batch
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatal(err)
	}
	for _, n := range b.Nodes {
		has[n.Op] = true
	}
	for op := rowfn.OpColumn; op <= rowfn.OpRow; op++ {
		if names[op] == "" || !has[names[op]] {
			t.Errorf("operation %d (%q) has no name or is not in the golden file", op, names[op])
		}
	}
	if len(names) != int(rowfn.OpRow) {
		t.Errorf("%d names for %d operations", len(names), rowfn.OpRow)
	}
}

// TestReadsWhatIsWritten: the golden batch comes back as it was, nodes shared as they were, with models that are sent and with models that
// are known by their digest.
func TestReadsWhatIsWritten(t *testing.T) {
	b := every(t)
	known := map[string]rowfn.Scorer{}
	for _, f := range b.Functions {
		if f.Value != nil && f.Value.Op == rowfn.OpScore {
			known[f.Value.Model.ID()] = f.Value.Model
		}
	}
	for name, c := range map[string]struct {
		models func(rowfn.Scorer) json.RawMessage
		give   Models
	}{
		"inline": {Inline, model.Received},
		"digest": {nil, func(id string, text json.RawMessage) (rowfn.Scorer, error) {
			if text != nil {
				t.Error("a model was sent")
			}
			return known[id], nil
		}},
	} {
		text, err := Marshal(b, c.models)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(text, c.give)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !equalBatches(b, got) {
			t.Errorf("%s: another batch came back", name)
		}
		if got.Functions[4].Value.Args[0] != got.Functions[3].Value {
			t.Errorf("%s: a node that was shared is there twice", name)
		}
	}
}

// equalBatches compares trees by what they are, NaN being NaN.
func equalBatches(a, b rowfn.Batch) bool {
	if len(a.Functions) != len(b.Functions) || !reflect.DeepEqual(a.Products, b.Products) {
		return false
	}
	for i, f := range a.Functions {
		g := b.Functions[i]
		if !equalNodes(f.Value, g.Value) || !equalNodes(f.Where, g.Where) {
			return false
		}
		f.Value, f.Where, g.Value, g.Where = nil, nil, nil, nil
		if f != g {
			return false
		}
	}
	return true
}

func equalNodes(a, b *rowfn.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := a.Op == b.Op && a.Type == b.Type && a.Text == b.Text && a.Output == b.Output && len(a.Args) == len(b.Args) && len(a.Values) == len(b.Values) &&
		math.Float64bits(a.Number) == math.Float64bits(b.Number) && reflect.DeepEqual(a.Texts, b.Texts) && (a.Model == nil) == (b.Model == nil)
	if !same || a.Model != nil && a.Model.ID() != b.Model.ID() {
		return false
	}
	for i := range a.Values {
		if a.Values[i] != b.Values[i] && !(math.IsNaN(a.Values[i]) && math.IsNaN(b.Values[i])) {
			return false
		}
	}
	for i := range a.Args {
		if !equalNodes(a.Args[i], b.Args[i]) {
			return false
		}
	}
	return true
}

// TestRefused: what is no batch is refused with its place and in words that say what is wrong.
func TestRefused(t *testing.T) {
	const f, one = `,"functions":[{"low":"0000000000000000","high":"3ff0000000000000","null":"0000000000000000","unit":"mean"}]`, `"3ff0000000000000"`
	with := func(nodes string) string {
		return `{"rowfn":1,"nodes":[` + nodes + `],"functions":[{"value":0,"low":"0000000000000000","high":"3ff0000000000000","null":"0000000000000000","unit":"mean"}]}`
	}
	x, s := `{"op":"column","type":"number","name":"x"}`, `{"op":"column","type":"text","name":"s"}`
	for text, want := range map[string]string{
		``:                                      "ends too early",
		`{`:                                     "ends too early",
		`[]`:                                    "cannot be array",
		`{"rowfn":1`:                            "ends too early",
		`{"rowfn":2` + f + `}`:                  "/rowfn: is version 2, want 1",
		`{"rowfn":"1"` + f + `}`:                "/rowfn: cannot be string",
		`{"rowfn":1}`:                           "from byte 10 on",
		`{"rowfn":1` + f + `,"more":1}`:         `unknown field "more"`,
		`{"rowfn":1` + f + `} `:                 "from byte",
		`{"rowfn":1, "functions":[]}`:           "from byte 1",
		`{"rowfn":1,"Functions":[]}`:            "from byte 12 on",
		`{"rowfn":1,"rowfn":1` + f + `}`:        "from byte 1",
		`{"rowfn":1,"nodes":{},"functions":[]}`: "/nodes: must be a list",
		`{"rowfn":1` + f + `,"products":[[0,1]]}`:                               "/products/0: is of a function that is not there",
		with(`{"op":"pow","type":"number"}`):                                    `/nodes/0: the operation "pow" is not known`,
		with(`{"op":"null","type":"integer"}`):                                  `/nodes/0: the type "integer" is not known`,
		with(`{"op":"null","type":"text"}`):                                     "null: cannot be text",
		with(`{"op":"number","type":"number"}`):                                 "number: wants a number",
		with(`{"op":"number","type":"number","number":"7ff0000000000000"}`):     "number: wants a finite number",
		with(`{"op":"number","type":"number","number":"3FF0000000000000"}`):     "from byte",
		with(`{"op":"number","type":"number","number":"1"}`):                    "16 hexadecimal digits",
		with(`{"op":"number","type":"number","number":1}`):                      "/nodes/0/number: cannot be number",
		with(`{"op":"number","type":"number","name":"x","number":` + one + `}`): "from byte",
		with(`{"op":"neg","type":"number","args":[0]}`):                         "/nodes/0: argument 0 is node 0, want one before this",
		with(`{"op":"neg","type":"number","args":[-1]}`):                        "argument 0 is node -1",
		with(x + `,{"op":"neg","type":"number","args":[0]}`):                    "from byte", // node 1 is used by nothing
		with(x + `,` + x): "from byte",
		with(s):           "/functions/0: the value is neither a number nor a condition",
		with(`{"op":"true","type":"condition"},{"op":"add","type":"number","args":[0,0]}`):                           "/nodes/1: add: argument 0 is a condition, want a number",
		with(x + `,{"op":"add","type":"number","args":[0]}`):                                                         "add: has 1 arguments, want 2",
		with(x + `,{"op":"add","type":"condition","args":[0,0]}`):                                                    "add: is a number, not a condition",
		with(x + `,` + s + `,{"op":"eq","type":"condition","args":[0,1]}`):                                           "eq: argument 1 is text, want a number",
		with(x + `,` + s + `,{"op":"has_prefix","type":"condition","args":[1,1]}`):                                   "wants a text column and literal texts",
		with(s + `,{"op":"lookup","type":"number","args":[0]}`):                                                      "lookup: wants a text column and numbers by text",
		with(`{"op":"row","type":"number","values":"AAAA"}`):                                                         "row: wants 8 bytes for each row",
		with(`{"op":"row","type":"number"}`):                                                                         "row: wants a number for each row",
		with(x + `,{"op":"score","type":"number","args":[0],"model":0,"output":0}`):                                  "score: wants a model of the list",
		strings.Replace(`{"rowfn":1`+f+`}`, `"low":"0000000000000000"`, `"low":"3ff0000000000000"`, 1):               "/functions/0: the range is none",
		strings.Replace(`{"rowfn":1`+f+`}`, `"null":"0000000000000000"`, `"null":"4000000000000000"`, 1):             "/functions/0: null does not count",
		strings.Replace(`{"rowfn":1`+f+`}`, `"mean"`, `"median"`, 1):                                                 `/functions/0/unit: "median" is not known`,
		strings.Replace(`{"rowfn":1`+f+`}`, `[{"low"`, `[{"where":3,"low"`, 1):                                       "/functions/0/where: there is no node 3",
		`{"rowfn":1,"models":[{"sha256":"00","features":0,"outputs":1}]` + f + `}`:                                   "was not sent",
		`{"rowfn":1,"models":[{"sha256":"00","features":0,"outputs":1,"model":{"linear":{"weights":{}}}}]` + f + `}`: "what was sent as 00 is",
	} {
		_, err := Parse([]byte(text), model.Received)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := Parse([]byte(`{"rowfn":1,"models":[{"sha256":"00","features":0,"outputs":1}]`+f+`}`), nil); err == nil || !strings.Contains(err.Error(), "models are not known here") {
		t.Error(err)
	}
	if _, err := Parse([]byte(with(x)), nil); err != nil {
		t.Error(err)
	}
}

// TestLimits: lists, trees and texts that are too long are refused by both sides, and what is as long as it may be is not.
func TestLimits(t *testing.T) {
	deep := func(levels int) rowfn.Batch {
		n := rowfn.Column("x", rowfn.Number)
		for range levels - 1 {
			n = rowfn.Neg(n)
		}
		return rowfn.Batch{Functions: []rowfn.Function{{Value: n, Lo: 0, Hi: 1}}}
	}
	text, err := Marshal(deep(MaxDepth), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Parse(text, nil); err != nil {
		t.Fatal(err)
	}
	var ours *Error
	if _, err = Marshal(deep(MaxDepth+1), nil); !errors.As(err, &ours) || !strings.Contains(err.Error(), "levels") {
		t.Error(err)
	}
	last := strings.LastIndex(string(text), `],"functions"`)
	deeper := string(text[:last]) + `,{"op":"neg","type":"number","args":[8191]}` + string(text[last:])
	if _, err = Parse([]byte(deeper), nil); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Error(err)
	}
	many := make([]rowfn.Function, MaxFunctions+1)
	for i := range many {
		many[i] = rowfn.Function{Lo: 0, Hi: 1}
	}
	if _, err = Marshal(rowfn.Batch{Functions: many}, nil); err == nil {
		t.Error("too many functions are written")
	}
	if all, err := list[int]([]byte("[1,2,3]"), "/nodes", 3); err != nil || len(all) != 3 {
		t.Error(all, err)
	}
	if _, err := list[int]([]byte("[1,2,3,4]"), "/nodes", 3); err == nil || err.Error() != "wire: /nodes: has more than 3" {
		t.Error(err)
	}
	if _, err = Parse(make([]byte, MaxBytes+1), nil); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Error(err)
	}
}

// TestWritesOnlyWhatIsSound: a tree that breaks the contract of package rowfn is not written.
func TestWritesOnlyWhatIsSound(t *testing.T) {
	x, s := rowfn.Column("x", rowfn.Number), rowfn.Column("s", rowfn.Text)
	for want, n := range map[string]*rowfn.Node{
		"finite":        rowfn.Const(math.NaN()),
		"name of":       rowfn.Column("", rowfn.Number),
		"UTF-8":         rowfn.Compare(rowfn.OpEq, s, rowfn.TextConst("\xff")),
		"is missing":    rowfn.Neg(nil),
		"a condition":   rowfn.If(x, x, x),
		"not known":     {Op: 200, Type: rowfn.Number},
		"infinite":      {Op: rowfn.OpRow, Type: rowfn.Number, Values: []float64{math.Inf(1)}},
		"wants a model": {Op: rowfn.OpScore, Type: rowfn.Number},
		"has no arg":    {Op: rowfn.OpTrue, Type: rowfn.Condition, Args: []*rowfn.Node{x}},
		"or a column":   rowfn.IsNull(rowfn.TextConst("a")),
	} {
		if _, err := Marshal(rowfn.Batch{Functions: []rowfn.Function{{Value: n, Lo: 0, Hi: 1}}}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := Marshal(rowfn.Batch{Products: []rowfn.Product{{}}}, nil); err == nil {
		t.Error("a product of no functions is written")
	}
}

const page = "../../docs/format/rowfn.md"

// TestPage: the page has a row for every operation, says the limits, and its example is a batch.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "| `"+name+"`") && !strings.Contains(string(text), ", `"+name+"`") {
			t.Errorf("%s has no row for %s", page, name)
		}
	}
	for _, limit := range []int{MaxBytes >> 20, MaxDepth} {
		if !strings.Contains(string(text), fmt.Sprint(limit)) {
			t.Errorf("%s does not say the limit %d", page, limit)
		}
	}
	_, after, _ := strings.Cut(string(text), "```json\n")
	example, _, found := strings.Cut(after, "\n```")
	if !found {
		t.Fatalf("%s has no example", page)
	}
	if _, err := Parse([]byte(strings.ReplaceAll(example, "\n", "")), model.Received); err != nil {
		t.Errorf("%s: the example: %v", page, err)
	}
}

// FuzzParse: whatever the bytes are, reading them ends; and what is read is written as it was.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(strings.TrimSuffix(string(text), "\n")))
	f.Add([]byte(`{"rowfn":1,"nodes":[{"op":"column","type":"number","name":"x"},{"op":"number","type":"number","number":"3ff0000000000000"},{"op":"in","type":"condition","args":[0,1,1]}],"functions":[{"value":2,"low":"0000000000000000","high":"3ff0000000000000","null":"0000000000000000","unit":"any"}],"products":[[0,0]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Parse(text, model.Received)
		if err != nil {
			return
		}
		again, err := Marshal(b, Inline)
		if err != nil || string(again) != string(text) {
			t.Fatalf("%v: read %q, written %q", err, text, again)
		}
	})
}
