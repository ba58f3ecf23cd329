package promises

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// reference is one numeric check of testdata/reference_promises.json: values of a second program.
type reference struct {
	Name      string
	Inputs    map[string]float64
	Expected  float64
	Tolerance float64 // relative
}

func references(t *testing.T) (rows []reference) {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference_promises.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestAgainstReference: schedules, half-widths after broken promises, tails, rates and ends against a second program.
func TestAgainstReference(t *testing.T) {
	seen := map[string]int{}
	for _, r := range references(t) {
		in := r.Inputs
		seen[r.Name]++
		promise := func(kind Kind) Promise {
			p, err := New(kind, math.Nextafter(in["promise"], 1))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		var got, outward float64
		switch r.Name {
		case "promise_schedule_scale", "promise_half_width_f0":
			p, err := bounds.PromisedSchedule(int64(in["n"]), int64(in["k"]), in["beta"], 5, false)
			if err != nil {
				t.Fatal(err)
			}
			if got = p.Scale; r.Name == "promise_half_width_f0" {
				got, outward = p.Widths[0], 1
			}
		case "promise_half_width_f":
			w, err := bounds.PromisedWidth(int64(in["n"]), int64(in["k"]), in["scale"], in["share"], int64(in["f"]), false)
			if err != nil {
				t.Fatal(err)
			}
			got, outward = w, 1
		case "promise_pbar":
			got = bounds.PromisedMiss(in["n"], in["width"], in["sigma"], in["released"])
		case "rate_disagreement":
			side := math.Copysign(1, in["mean"]-in["mu"])
			got = disagreementRate(side*in["mean"], side*in["mu"], in["promise"])
		case "rate_disagreement_hat":
			d := in["mean"] - in["mu"]
			got = d * d / (2 * max(in["promise"], largestRatio(in["mu"], d, in["promise"])))
		case "rate_variance":
			got = varianceRate(in["t"], in["promise"], in["distance"])
		case "interval_disagreement_low":
			got, _ = promise(Disagreement).Interval(in["answer"], in["W"])
			outward = -1
		case "interval_disagreement_high":
			_, got = promise(Disagreement).Interval(in["answer"], in["W"])
			outward = 1
		case "interval_small_mean_low":
			got, _ = promise(SmallMean).Interval(in["answer"], in["W"])
			outward = -1
		case "interval_small_mean_high":
			_, got = promise(SmallMean).Interval(in["answer"], in["W"])
			outward = 1
		case "interval_variance_low":
			got, _ = promise(Variance).Interval(in["answer"], in["W"])
			outward = -1
		case "interval_variance_high":
			_, got = promise(Variance).Interval(in["answer"], in["W"])
			outward = 1
		case "gnc_compare_half_width", "enforced_shrink_factor":
			continue // of constructions that are not used
		default:
			t.Errorf("no check of %s", r.Name)
			continue
		}
		tolerance := r.Tolerance * max(math.Abs(r.Expected), 1e-3)
		short := tolerance // narrower than proven would be a wrong promise
		if outward != 0 {
			short = min(short, 2e-9)
		}
		if d := (got - r.Expected) * [2]float64{1, outward}[map[bool]int{true: 1}[outward != 0]]; !(d <= tolerance && d >= -short) {
			t.Errorf("%s %v: %.12g, the reference is %.12g", r.Name, in, got, r.Expected)
		}
	}
	if len(seen) != 15 {
		t.Errorf("names seen: %v", seen)
	}
}
