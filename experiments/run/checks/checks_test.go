package checks

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// drawn are so many normal values.
func drawn(r *rand.Rand, runs int, mean, sd float64) []float64 {
	values := make([]float64, runs)
	for i := range values {
		values[i] = mean + sd*r.NormFloat64()
	}
	return values
}

func events(r *rand.Rand, runs int, rate float64) Count {
	c := Count{Runs: runs}
	for range runs {
		if r.Float64() < rate {
			c.Events++
		}
	}
	return c
}

// histogram counts normal values between the octiles of the standard normal law, with a share of them moved from the first bin to the last.
func histogram(r *rand.Rand, runs int, moved float64) []int {
	counts := make([]int, 8)
	for range runs {
		bin := r.IntN(8)
		if bin == 0 && r.Float64() < 8*moved {
			bin = 7
		}
		counts[bin]++
	}
	return counts
}

// kinds are all tests: a comparison of data with a fault of a size, where 0 is none.
var kinds = map[string]func(r *rand.Rand, fault float64) Comparison{
	"equal":    func(r *rand.Rand, fault float64) Comparison { return Equal("", 3, 0, Of(drawn(r, 30, 3+fault, 2))) },
	"at most":  func(r *rand.Rand, fault float64) Comparison { return AtMost("", 3, Of(drawn(r, 30, 3+fault, 2))) },
	"at least": func(r *rand.Rand, fault float64) Comparison { return AtLeast("", 3, Of(drawn(r, 30, 3-fault, 2))) },
	"same": func(r *rand.Rand, fault float64) Comparison {
		return Same("", Of(drawn(r, 50, 3, 1)), Of(drawn(r, 30, 3+fault, 2)))
	},
	"rate at most": func(r *rand.Rand, fault float64) Comparison {
		return RateAtMost("", 0.05, events(r, 400, orElse(fault, 0.05)))
	},
	"rate is": func(r *rand.Rand, fault float64) Comparison {
		return RateIs("", 0.3, events(r, 400, orElse(fault, 0.3)))
	},
	"rate at least": func(r *rand.Rand, fault float64) Comparison {
		return RateAtLeast("", 0.9, events(r, 400, orElse(fault, 0.9)))
	},
	"spread": func(r *rand.Rand, fault float64) Comparison {
		return Spread("", Of(drawn(r, 100, 0, 1)), Of(drawn(r, 60, 1, orElse(fault, 1))))
	},
	"spread is": func(r *rand.Rand, fault float64) Comparison {
		return SpreadIs("", 1, Of(drawn(r, 60, 1, orElse(fault, 1))))
	},
	"shape": func(r *rand.Rand, fault float64) Comparison {
		return Shape("", histogram(r, 2000, 0), histogram(r, 1000, fault))
	},
	"law": func(r *rand.Rand, fault float64) Comparison {
		// A share of the values is at the far left: the distribution functions are that far from each other.
		values := drawn(r, 400, 0, 1)
		for i := range values {
			if r.Float64() < fault {
				values[i] = -20 + r.Float64()
			}
		}
		return Law("", values, distuv.UnitNormal.CDF)
	},
}

func orElse(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

// TestFalseAlarmsAndPower: every kind of comparison disagrees without a fault no more often than it says, and notices the fault that it says
// it notices about as often as it says. A level that is not shared, a tail that is forgotten, or a power that is only claimed shows. Seeds are fixed;
// without a fault in the code a check of this test fails with probability below 1e-6 (five standard deviations of a count).
func TestFalseAlarmsAndPower(t *testing.T) {
	const runs, alarm = 1500, 0.02
	far := func(rate float64) float64 { return 5 * math.Sqrt(rate*(1-rate)/runs) }
	for name, kind := range kinds {
		r := rand.New(rand.NewPCG(1, 2))
		refused, level := 0, 0.0
		var fault float64
		for range runs {
			c := Judge([]Comparison{kind(r, 0)}, alarm)[0]
			if level = c.Level; !c.Agrees {
				refused++
			}
			if c.Fault == nil {
				t.Fatalf("%s: notices %s", name, c.Notices)
			}
			fault += *c.Fault / runs
		}
		if level != alarm {
			t.Errorf("%s: a single comparison has the level %v", name, level)
		}
		if rate := float64(refused) / runs; rate > alarm+far(alarm) {
			t.Errorf("%s: disagrees in %.3f of the runs without a fault", name, rate)
		} else if rate < alarm/5 && name != "law" { // whose bound is not tight for a share at one end
			t.Errorf("%s: disagrees in %.4f of the runs without a fault: the level is not used", name, rate)
		}
		noticed := 0
		for range runs {
			if !Judge([]Comparison{kind(r, fault)}, alarm)[0].Agrees {
				noticed++
			}
		}
		// Normal approximations and averages of faults leave a little; the law's bound is for any shape.
		if rate := float64(noticed) / runs; rate < Detection-0.03 || rate > 0.96 && name != "law" {
			t.Errorf("%s: a fault of %.4g is noticed in %.3f of the runs, said is %v", name, fault, rate, Detection)
		}
	}
}

// TestFamily: all comparisons of a run together disagree by chance no more often than the run says.
func TestFamily(t *testing.T) {
	const runs, alarm, size = 2000, 0.05, 40
	r, any, sum := rand.New(rand.NewPCG(3, 4)), 0, 0.0
	for range runs {
		var all []Comparison
		for range size {
			all = append(all, Equal("", 0, 0, Of(drawn(r, 25, 0, 1))))
		}
		all = append(all, Exactly("", 1, 0, 1), NotBelow("", 1, 1).Also(func(float64) string { return "half" }), Never("", 0, 0.01, 2, "twice as much"))
		judged := Judge(all, alarm)
		if ok, _ := Agree(judged); !ok {
			any++
		}
		sum = FalseAlarm(judged)
	}
	if math.Abs(sum-alarm) > 1e-12 {
		t.Errorf("levels add up to %v, said is %v", sum, alarm)
	}
	// 5% of 2000 is 100, five standard deviations are 49: less the hundredth that no count takes, which is a fifth.
	if any > 149 || any < 40 {
		t.Errorf("any of %d comparisons disagrees in %d of %d runs", size, any, runs)
	}
}

// TestLongTails: values far from normal do not make spreads disagree more often than a few times the level.
func TestLongTails(t *testing.T) {
	const runs, alarm = 3000, 0.02
	r, refused := rand.New(rand.NewPCG(5, 6)), 0
	values := func(size int) []float64 {
		v := make([]float64, size)
		for i := range v {
			v[i] = r.ExpFloat64() * float64(2*r.IntN(2)-1) // Laplace: a kurtosis of 6
		}
		return v
	}
	for range runs {
		if !Judge([]Comparison{Spread("", Of(values(1500)), Of(values(100)))}, alarm)[0].Agrees {
			refused++
		}
	}
	if rate := float64(refused) / runs; rate > 2*alarm {
		t.Errorf("spreads of Laplace values disagree in %.3f of the runs", rate)
	}
}

// TestShown: an effect that has to be seen agrees where it is seen, and not where there is none or nothing was measured.
func TestShown(t *testing.T) {
	for _, c := range []struct {
		c    Comparison
		want bool
	}{
		{RateAbove("", 0.05, Count{30, 30}), true},
		{RateAbove("", 0.05, Count{2, 30}), false},
		{RateAbove("", 0.05, Count{1, 1}), false},
		{Above("", 0, Sample{Mean: 1, SD: 1, Runs: 100}), true},
		{Above("", 0, Sample{Mean: 0.1, SD: 1, Runs: 100}), false},
		{Above("", 0, Sample{}), false},
		{RateAbove("", 0.05, Count{}), false},
	} {
		if got := Judge([]Comparison{c.c}, RunFalseAlarm)[0]; got.Agrees != c.want {
			t.Errorf("%+v: want %v", got, c.want)
		}
	}
}

// TestNothingMeasured: a comparison without runs disagrees, and one run notices nothing and says so. Every check can be written as JSON.
func TestNothingMeasured(t *testing.T) {
	none := Judge([]Comparison{Equal("", 1, 0, Sample{}), RateAtMost("", 0.1, Count{}), AtMost("", 1, Sample{})}, RunFalseAlarm)
	for _, c := range none {
		if c.Agrees {
			t.Errorf("without runs: %+v", c)
		}
	}
	for _, c := range Judge([]Comparison{Equal("", 1, 0, Sample{Mean: 5, Runs: 1}), RateAtMost("", 0.1, Count{1, 1})}, RunFalseAlarm) {
		if c.Fault != nil || !strings.HasPrefix(c.Notices, "nothing") {
			t.Errorf("of one run: %+v", c)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
	}
}

// TestArithmetic: numbers that chance does not move take no share of the false-alarm probability and are held to their tolerance.
func TestArithmetic(t *testing.T) {
	judged := Judge([]Comparison{Exactly("", 1, 1e-6, 1+2e-6), Exactly("", 1, 1e-6, 1+5e-7), NotBelow("", 2, 1.9), NotBelow("", 2, 2), NotAbove("", 2, 2.1),
		Never("", 1, 1e-4, 1, ""), Never("", 0, 1e-4, 1, "")}, RunFalseAlarm)
	for i, want := range []bool{false, true, false, true, false, false, true} {
		if judged[i].Agrees != want {
			t.Errorf("%d: %+v", i, judged[i])
		}
	}
	// A coin that falls on one side in all of 20 throws: 2^-19 on either side.
	if p := RateIs("", 0.5, Count{20, 20}).p(); math.Abs(p-math.Pow(2, -19)) > 1e-12 {
		t.Errorf("all of 20 coins: %v", p)
	}
	// Student's t of 4 values: mean 3, variance 14/3, so t = 3/sqrt(14/12) = 2.7775 with 3 degrees of freedom, P = 0.06914 (tables: 2.353 is 10%, 3.182 is 5%).
	if p := Equal("", 0, 0, Of([]float64{1, 2, 3, 6})).p(); p < 0.05 || p > 0.10 {
		t.Errorf("t of 1, 2, 3, 6: P %v", p)
	}
}

// TestWorst: the farthest of several shares the level with the others, says which it is, and notices what the weakest does.
func TestWorst(t *testing.T) {
	near, far := Equal("near", 0, 0, Sample{Mean: 0.1, SD: 1, Runs: 100}), Equal("far", 0, 0, Sample{Mean: 0.5, SD: 1, Runs: 100})
	w := Judge([]Comparison{Worst("both", []Comparison{near, far})}, 0.01)[0]
	alone := Judge([]Comparison{far}, 0.01)[0]
	if w.Got != 0.5 || !strings.Contains(w.What, "(far)") || math.Abs(w.P-2*alone.P) > 1e-15 || w.Agrees {
		t.Errorf("%+v, alone %+v", w, alone)
	}
	weak := Equal("weak", 0, 0, Sample{Mean: 0, SD: 9, Runs: 100})
	both := Judge([]Comparison{Worst("both", []Comparison{near, weak})}, 0.01)[0]
	single := Judge([]Comparison{weak}, 0.005)[0]
	if math.Abs(*both.Fault-*single.Fault) > 1e-12 {
		t.Errorf("notices %v, the weakest of both %v", *both.Fault, *single.Fault)
	}
	if none := Judge([]Comparison{Worst("none", nil)}, 0.01)[0]; none.Agrees {
		t.Errorf("nothing agrees: %+v", none)
	}
	r := Judge([]Comparison{RateAtMost("", 0.05, Count{1, 100}).Also(func(level float64) string { return "an elephant" })}, 0.01)[0]
	if !strings.HasSuffix(r.Notices, "; an elephant") || !r.Agrees {
		t.Errorf("%+v", r)
	}
}
