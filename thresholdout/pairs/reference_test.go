package pairs

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

type reference struct {
	Name, Kind string
	Inputs     map[string]any
	Expected   map[string]*float64
	Tolerance  float64
}

func (r reference) in(name string) float64 { x, _ := r.Inputs[name].(float64); return x }

func (r reference) table(name string) (rows [][]int64) {
	for _, row := range r.Inputs[name].([]any) {
		rows = append(rows, list(row))
	}
	return rows
}

func list(x any) (row []int64) {
	for _, y := range x.([]any) {
		row = append(row, int64(y.(float64)))
	}
	return row
}

func references(t *testing.T) []reference {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference_pairs.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []reference }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Rows
}

// want compares with a number of a second program; an end is never narrower than it by more than 1e-10.
func (r reference) want(t *testing.T, name string, got, outward float64) {
	t.Helper()
	want, ok := r.Expected[name]
	if !ok || want == nil {
		t.Fatalf("%s expects no %s", r.Name, name)
	}
	tolerance := r.Tolerance * max(1, math.Abs(*want))
	short := tolerance
	d := got - *want
	if outward != 0 {
		short = min(short, 1e-10)
		d *= outward
	}
	if !(d <= tolerance && d >= -short) {
		t.Errorf("%s: %s is %.15g, the reference is %.15g: %v", r.Name, name, got, *want, r.Inputs)
	}
}

// TestAgainstReference: thresholds, planned ends, matchings, projections and exact moments of pair kernels against a second program.
func TestAgainstReference(t *testing.T) {
	seen := map[string]int{}
	for _, r := range references(t) {
		seen[r.Kind]++
		switch in := r.in; r.Kind {
		case "quantile":
			n, training := int64(in("n")), int64(in("n_training"))
			most, least := Thresholds(n, in("p"), in("E"), false)
			r.want(t, "k", float64(most), 0)
			r.want(t, "k_upper", float64(least), 0)
			below, upto := PlannedShares(n, training, in("p"), in("E"), in("z"), false)
			for name, got := range map[string]float64{"training_share_below": below, "training_share_upto": upto} {
				if r.Expected[name] != nil && got != 0 && got != 1 {
					r.want(t, name, got, 0)
				} else if few := r.Expected[name]; few != nil && min(*few, 1-*few)*in("n_training") >= fewTraining {
					t.Errorf("%s: no %s, the reference is %v", r.Name, name, *few)
				}
			}
			rough, roughUpper := Thresholds(n, in("p"), in("E"), true)
			if c := r.Expected["c"]; c != nil && rough >= 0 && math.Abs(float64(rough)-math.Floor(*c*in("n"))) > 1 {
				t.Errorf("%s: Chernoff's threshold is %d, the reference %v", r.Name, rough, *c*in("n"))
			}
			if c := r.Expected["c_upper"]; c != nil && roughUpper <= n && math.Abs(float64(roughUpper)-math.Ceil(*c*in("n"))) > 1 {
				t.Errorf("%s: Chernoff's upper threshold is %d, the reference %v", r.Name, roughUpper, *c*in("n"))
			}
		case "auc_matchings":
			low, high := Matchings(in("g")-in("d"), in("g")+in("d"), in("m0"), in("E"))
			r.want(t, "low", low, -1)
			r.want(t, "high", high, 1)
		case "pair_pass":
			monotone, _ := r.Inputs["monotone"].(bool)
			s := Statement{N1: in("N1"), N0: in("N0"), V1: in("v1"), V0: in("s0") * in("s0"), Rest: in("q"), Monotone: monotone}
			r.want(t, "w", s.deviation(in("E")+deviationLevel), 1)
			if l, ok := s.low(in("g")-in("d"), in("E")+passLevel, in("E")+deviationLevel); ok {
				r.want(t, "projection_low", l, -1)
			}
			low, high := s.Interval(in("g")-in("d"), in("g")+in("d"), in("E"), false)
			r.want(t, "low", low, -1)
			r.want(t, "high", high, 1)
		case "auc_counts":
			s, err := AUC(list(r.Inputs["positives"]), list(r.Inputs["negatives"]))
			if err != nil {
				t.Fatal(err)
			}
			r.sums(t, s)
		case "auc_difference", "kendall":
			build := AUCDifference
			if r.Kind == "kendall" {
				build = Kendall
			}
			s, err := build(r.table("first"), r.table("second"))
			if err != nil {
				t.Fatal(err)
			}
			r.sums(t, s)
			h, v1, v0, v := s.Moments()
			statement := Statement{N1: float64(s.N1), N0: float64(s.N0), V1: v1, V0: v0, Rest: v - v1}
			r.want(t, "w", statement.deviation(in("E")+deviationLevel), 1)
			low, high := statement.Interval(h, h, in("E"), false)
			r.want(t, "low", low, -1)
			r.want(t, "high", high, 1)
		default:
			t.Errorf("no check of %s", r.Kind)
		}
	}
	if len(seen) != 6 {
		t.Errorf("kinds seen: %v", seen)
	}
}

func (r reference) sums(t *testing.T, s Sums) {
	t.Helper()
	h, v1, v0, v := s.Moments()
	r.want(t, "n1", float64(s.N1), 0)
	r.want(t, "n0", float64(s.N0), 0)
	r.want(t, "h", h, 0)
	r.want(t, "V1", v1, 0)
	r.want(t, "V0", v0, 0)
	r.want(t, "V", v, 0)
}
