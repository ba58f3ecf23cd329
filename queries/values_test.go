package queries

import (
	"context"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// valueBodies are queries of every type but those that choose on the way, argmax and quantile.
var valueBodies = []string{
	`{"type":"mean","of":"v","range":[-60,180],"where":"w"}`,
	`{"type":"sum","of":"v","range":[-60,180]}`,
	`{"type":"count","of":"w"}`,
	`{"type":"fraction","of":"w","where":"v > 0"}`,
	`{"type":"variance","of":"v","range":[-60,180],"where":"w"}`,
	`{"type":"stddev","of":"v","range":[-60,180]}`,
	`{"type":"covariance","x":"v","y":"u","range_x":[-60,180],"range_y":[-10,40],"form":"exact"}`,
	`{"type":"correlation","x":"v","y":"u","range_x":[-60,180],"range_y":[-10,40],"form":"exact"}`,
	`{"type":"histogram","of":"v","edges":[-60,0,5,180]}`,
	`{"type":"frequencies","of":"s","values":["a","b"],"where":"w"}`,
	`{"type":"groups","by":"s","values":["a","b"],"of":"u","range":[-10,40]}`,
	`{"type":"accuracy","label":"u > 20",` + logisticModel + `}`,
	`{"type":"loss","loss":"log","label":"u > 20",` + logisticModel + `}`,
	`{"type":"rmse","label":"u","max_error":60,` + linearModel + `}`,
	`{"type":"r2","label":"u","range":[-50,100],` + linearModel + `}`,
	`{"type":"auc","label":"u > 20","edges":[0.2,0.4,0.6,0.8],` + logisticModel + `}`,
	`{"type":"auc","label":"u > 20","edges":[0.5],"where":"w",` + logisticModel + `}`,
	`{"type":"calibration","label":"u > 20","edges":[0,0.2,0.7,1],` + logisticModel + `}`,
	`{"type":"confusion","label":"s",` + softmaxModel + `}`,
	`{"type":"compare","a":{"type":"mean","of":"v","range":[-60,180]},"b":{"type":"fraction","of":"w"},"where":"u > 0"}`,
	`{"type":"difference","of":"v","range":[-60,180],"between":["w","v > 0"]}`,
	`{"type":"balanced_accuracy","label":"u > 20","threshold":0.4,` + logisticModel + `}`,
	`{"type":"passes","of":{"type":"variance","of":"v","range":[-60,180]},"above":3}`,
	`{"type":"test","test":"mean","of":"v","range":[-60,180],"equals":5}`,
	`{"type":"test","test":"correlation","x":"v","y":"u","range_x":[-60,180],"range_y":[-100,100]}`,
	`{"type":"test","test":"slope","x":"v","y":"u","range_x":[-60,180],"range_y":[-100,100]}`,
	`{"type":"test","test":"goodness-of-fit","cells":["v > 5","v > 0"],"expected":[0.5,0.25]}`,
	`{"type":"test","test":"independence","rows":["w"],"columns":["v > 5","v > 0"]}`,
	`{"type":"screen","label":"u","features":["v"],"statistic":"product","range":[-4,4],"range_label":[-3,7]}`,
}

// TestValuesStandByThemselves: an answer's value is made of the released values alone. With point intervals a value is carried into
// its own interval, so that a wrong formula can hide; here the same values have intervals that say nothing, or none at all. That the
// values with point intervals are the right ones, other tests compute from the rows.
func TestValuesStandByThemselves(t *testing.T) {
	for _, body := range valueBodies {
		q := mustParse(t, body)
		rapid.Check(t, func(t *rapid.T) {
			units := drawPeople(t, "units", false)
			p, err := q.Compile(context.Background(), people)
			if err != nil {
				t.Fatal(err)
			}
			exact := exactParts(p, units)
			wide, bare := make([]Part, len(exact)), make([]Part, len(exact))
			for i, part := range exact {
				wide[i], bare[i] = Part{Value: part.Value, Low: 0, High: 1, Bounded: true}, Part{Value: part.Value}
			}
			n := int64(len(units))
			want := p.Combine(Outcome{N: n, Parts: exact})
			size := max(math.Abs(p.Range.High), math.Abs(p.Range.Low), 1)
			same := func(what string, got, want *float64) {
				// Where the point interval decides that a value is defined, there is none to compare with.
				if got != nil && want != nil && math.Abs(*got-*want) > 1e-6*min(size, 1e3) {
					t.Fatalf("%s %s: %v, with point intervals %v", body, what, *got, *want)
				}
				if (got == nil) != (want == nil) {
					t.Fatalf("%s %s: %v, with point intervals %v", body, what, show(got), show(want))
				}
			}
			for what, parts := range map[string][]Part{"with wide intervals": wide, "without intervals": bare} {
				got := p.Combine(Outcome{N: n, Parts: parts})
				same(what, got.Value, want.Value)
				for i := range want.Items {
					same(what+", "+want.Items[i].Of, got.Items[i].Value, want.Items[i].Value)
					if (got.Items[i].Low == nil) != (what == "without intervals") && want.Items[i].Low != nil {
						t.Fatalf("%s %s: %s has the low end %v", body, what, got.Items[i].Of, show(got.Items[i].Low))
					}
				}
				if (got.Low == nil) != (what == "without intervals") && want.Low != nil {
					t.Fatalf("%s %s: the low end %v", body, what, show(got.Low))
				}
			}
		})
	}
}

// TestProductsHull: the range of a feature times a label is the hull of the products at the corners, for ranges that hold zero, end
// there, or lie on one side. A narrower one would cut the products off in silence.
func TestProductsHull(t *testing.T) {
	label := mustParse(t, `{"type":"screen","label":"u","features":["v"],"statistic":"product","range":[0,1],"range_label":[0,1]}`).body.(*screen).Label
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Range {
			low := rapid.SampledFrom([]float64{-9, -3, -0.5, 0, 0.25, 2}).Draw(t, name+" low")
			return Range{Low: low, High: low + rapid.SampledFrom([]float64{0.5, 3, 10}).Draw(t, name+" width")}
		}
		f, l := draw("feature"), draw("label")
		p := &Plan{}
		(&screen{Range: f, Label: label}).products(p, rowfn.Column("u", rowfn.Number), l, []string{"v"})
		low, high := math.Inf(1), math.Inf(-1)
		for _, x := range []float64{f.Low, f.High} {
			for _, y := range []float64{l.Low, l.High} {
				low, high = min(low, x*y), max(high, x*y)
			}
		}
		if got := p.Functions[0]; got.Lo != low || got.Hi != high || p.Range != (Range{Low: low, High: high}) || got.Null != min(max(0, low), high) {
			t.Fatalf("features in %v, label in %v: products in [%v, %v] and a null counts as %v, want [%v, %v]", f, l, got.Lo, got.Hi, got.Null, low, high)
		}
	})
}

// TestZeroExpectedIsNoRejection: a cell that is expected to be empty, and may be, does not reject; nor do intervals that end at 0.
func TestZeroExpectedIsNoRejection(t *testing.T) {
	p := compiled(t, `{"type":"test","test":"goodness-of-fit","cells":["v > 5","v > 0"],"expected":[0,0.25]}`, small)
	got := p.Combine(hoeffding(1000, 5, 0.05, 0, 0.25, 0.75))
	if got.Verdict == Yes || got.PValue == nil || *got.PValue != 1 {
		t.Errorf("nothing speaks against the null: %s, p = %v", got.Verdict, show(got.PValue))
	}
	if got = p.Combine(hoeffding(1000, 5, 0.05, 0.2, 0.25, 0.55)); got.Verdict != Yes {
		t.Errorf("a fifth of the rows where none is expected: %s", got.Verdict)
	}
	wide := compiled(t, `{"type":"test","test":"independence","rows":["w"],"columns":["v > 5"]}`, small).Combine(hoeffding(4, 5, 0.05, 0.25, 0.25, 0.25, 0.25))
	for _, item := range wide.Items {
		if *item.Low < -0.25 || *item.High > 0.25 {
			t.Errorf("%s in [%v, %v]; no share is farther than a quarter from the product of its margins", item.Of, *item.Low, *item.High)
		}
	}
}

// TestTrainingQuantilesOfSome: with where, edges cut the rows in which it holds into equally full bins, whatever the others' scores are;
// edges of a logistic model are said as probabilities.
func TestTrainingQuantilesOfSome(t *testing.T) {
	var training []unit
	for i := range 250 {
		training = append(training, unit{{"v": float64(i) / 2.5, "u": 1.0, "w": true, "s": "a"}}, unit{{"v": -5000.0, "u": 1.0, "w": false, "s": "a"}})
	}
	some := compiled(t, `{"type":"auc","label":"u > 20","prediction":"v","where":"w","bins":4}`, people, Training(inMemory{training}))
	if len(some.Functions) != 2*3+2 {
		t.Fatalf("%d row functions of four bins", len(some.Functions))
	}
	edges := edgesOf(some)[:3]
	for i, e := range edges {
		if want := 25 * float64(i+1); math.Abs(e-want) > 3 {
			t.Errorf("edge %d at %v, want %v", i, e, want)
		}
	}
	p := compiled(t, `{"type":"auc","label":"u > 20","bins":4,`+logisticModel+`}`, people, Training(inMemory{training}))
	for i, e := range edgesOf(p) {
		if said := shape.Edge(1 / (1 + math.Exp(-e))); !strings.Contains(p.Words.Target, said) {
			t.Errorf("edge %d, a probability of %s, is not in %q", i, said, p.Words.Target)
		}
	}
}

// TestFewAndMany: limits of lists and numbers at both sides.
func TestFewAndMany(t *testing.T) {
	many := func(n int) string {
		cells := make([]string, n)
		for i := range cells {
			cells[i] = `"v > ` + strings.Repeat("1", i%15+1) + strings.Repeat("0", i/15) + `"`
		}
		return strings.Join(cells, ",")
	}
	for body, ok := range map[string]bool{
		`{"type":"auc","label":"w","prediction":"v","bins":1}`:                                         false,
		`{"type":"auc","label":"w","prediction":"v","bins":2}`:                                         true,
		`{"type":"auc","label":"w","prediction":"v","bins":2.5}`:                                       false,
		`{"type":"test","test":"goodness-of-fit","cells":[]}`:                                          false,
		`{"type":"test","test":"goodness-of-fit","cells":["w"],"expected":[]}`:                         false,
		`{"type":"test","test":"goodness-of-fit","cells":["w"],"expected":[0.5]}`:                      true,
		`{"type":"test","test":"goodness-of-fit","cells":["w"],"expected":[1.1]}`:                      false,
		`{"type":"test","test":"independence","rows":[` + many(31) + `],"columns":[` + many(31) + `]}`: false,
		`{"type":"test","test":"independence","rows":[` + many(30) + `],"columns":[` + many(30) + `]}`: true,
		`{"type":"mean","of":"v","range":[-60,180],"null":181}`:                                        false,
		`{"type":"screen","label":"w","features":"v","range":[0,1],"clip":1000000}`:                    true,
		`{"type":"screen","label":"w","features":"v","range":[0,1],"clip":1000001}`:                    false,
		`{"type":"test","test":"mean","of":"v","range":[-60,180],"alternative":1}`:                     false,
		`{"type":"test","test":"mean","of":"v","range":[-60,180],"alternative":"more"}`:                false,
		`{"type":"quantile","of":"v","p":0.5,"range":[0,100],"resolution":100}`:                        false,
		`{"type":"quantile","of":"v","p":0.5,"range":[0,100],"resolution":50}`:                         true,
		`{"type":"loss","loss":"log","label":"u > 20","clip":0.6,` + logisticModel + `}`:               false,
		`{"type":"groups","by":"s","values":[],"of":"u","range":[-10,40]}`:                             false,
		`{"type":"histogram","of":"v","edges":[0]}`:                                                    false,
		`{"type":"frequencies","of":"s","values":[]}`:                                                  false,
	} {
		if _, err := Parse([]byte(body)); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}
