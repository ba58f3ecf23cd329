package moments

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// reference is one numeric check of testdata: values of a second program. Inputs may be numbers or truth values.
type reference struct {
	Name, Kind string
	Inputs     map[string]any
	Expected   map[string]float64
	Tolerance  float64 // absolute for numbers up to 1, relative above
}

func (r reference) in(name string) float64 { x, _ := r.Inputs[name].(float64); return x }

func references(t *testing.T) (rows []reference) {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference_two_moments.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []reference }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Rows
}

// want compares with a reference number; outward is +1 for a high end, -1 for a low one and 0 for what is neither. An end may be beyond the
// reference by its tolerance, and short of it by far less: narrower than proven would be a wrong promise.
func (r reference) want(t *testing.T, name string, got float64, outward float64) {
	t.Helper()
	want, ok := r.Expected[name]
	if !ok {
		t.Fatalf("%s expects no %s", r.Name, name)
	}
	tolerance := r.Tolerance * max(1, math.Abs(want))
	short := tolerance
	if outward != 0 {
		short = min(short, 2e-12)
		if r.Kind == "pass_general" || r.Kind == "difference_low" {
			short = 2e-10 // the second program's own precision
		}
	}
	d := got - want
	if outward != 0 {
		d *= outward
	}
	if !(d <= tolerance && d >= -short) {
		t.Errorf("%s: %s is %.15g, the reference is %.15g (off by %.3g, allowed -%.3g to %.3g): %v", r.Name, name, got, want, d, short, tolerance, r.Inputs)
	}
}

// TestAgainstReference: regions, margins, levels, stakes and differences against a second program.
func TestAgainstReference(t *testing.T) {
	seen := map[string]int{}
	for _, r := range references(t) {
		seen[r.Kind]++
		switch in := r.in; r.Kind {
		case "pass_mean", "pass_condition":
			n := in("n") + in("units") // one of them is named
			r.want(t, "low", Low(in("g")-in("d"), in("v"), n, in("E")), -1)
			r.want(t, "high", High(in("g")+in("d"), in("v"), n, in("E")), 1)
		case "pass_general":
			w := Weighted{N: in("n"), Guess: in("g"), Away: in("d"), Spread: in("q"), Size: in("b0"), MixedLow: in("k0"), MixedHigh: in("k1"), SizeSquare: in("B2")}
			r.want(t, "low", w.Low(in("E")), -1)
			r.want(t, "high", w.High(in("E")), 1)
		case "lambda_low_side":
			stake := Stake(in("u"), in("v"), in("r"))
			r.want(t, "lam", stake, 0)
			r.want(t, "log_capital", in("N")*Capital(in("u"), in("v"), in("r"), stake), 0)
		case "margins":
			m1, m2, m3, m4 := in("m1"), in("m2"), in("m3"), in("m4")
			training := Training{All: int64(in("n_training")), Units: int64(in("units_training")), Mean: m1, Second: m2 - m1*m1,
				Fourth: m4 - 4*m1*m3 + 6*m1*m1*m2 - 3*m1*m1*m1*m1, Partial: true}
			z := Deviations(int64(in("questions"))) // of rank 1
			z *= math.Exp2(in("rank"))
			d, v, units := training.margins(int64(in("n")), z)
			r.want(t, "z", z, 0)
			r.want(t, "d", d, 0)
			r.want(t, "v", v, 0)
			r.want(t, "units", units, 0)
		case "failure":
			v, n, level := in("v0")*math.Pow(4, in("rank")), in("units"), in("E")+failedLevel+math.Log(in("T"))
			condition, _ := r.Inputs["condition"].(bool)
			if condition {
				n /= math.Pow(4, in("rank"))
			}
			if in("rank") == in("T")-1 {
				v = 1
				if condition {
					n = 0
				}
			}
			r.want(t, "low", Low(in("cell")/in("cells"), v, n, level), -1)
			r.want(t, "high", High((in("cell")+1)/in("cells"), v, n, level), 1)
		case "level":
			want := r.Expected["mixture"]
			paid := nats(math.Log(in("cells")*in("T"))) * Nats(in("failed"))
			got := Urn{Questions: int64(in("questions")), Beta: in("beta")}.level(int64(in("asked")), int64(in("failed")), int64(in("wide")), paid, [3]float64{in("a1"), in("aw"), in("af")})
			if !(got >= want-1e-12*want && got <= want+1e-9*want+in("failed")*2e-6) {
				t.Errorf("%s: level %.12g, the reference is %.12g", r.Name, got, want)
			}
		case "difference_low":
			low := DifferenceLow(Group{in("u1"), 1, in("v1"), in("units1"), BestTilts}, Group{0, in("u2"), in("v2"), in("units2"), BestTilts}, in("E"))
			r.want(t, "low", low, -1)
		default:
			t.Errorf("no check of %s", r.Kind)
		}
	}
	if len(seen) != 8 {
		t.Errorf("kinds seen: %v", seen)
	}
}
