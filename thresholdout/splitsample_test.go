package thresholdout

import (
	"encoding/json"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// rootOf are the sums of units whose values are whole steps of 1/4; a negative one is a unit outside of the condition.
func rootOf(partial bool, quarters ...int64) RootSums {
	r := RootSums{All: int64(len(quarters)), Partial: partial}
	for _, q := range quarters {
		if q >= 0 {
			r.Units++
			r.Sum += q * grid / 4
			r.Squares.AddSums(q*grid/4, q*grid/4)
		}
	}
	return r
}

// spread is a sample of so many units with about this mean and variance: values 0, 1/4, …, 1.
func spread(r *rand.Rand, units int, partial bool, weights ...float64) RootSums {
	var quarters []int64
	for range units {
		at := r.Float64()
		q := int64(-1)
		for i, w := range weights {
			if at -= w; at < 0 {
				q = int64(i)
				break
			}
		}
		if !partial {
			q = max(q, 0)
		}
		quarters = append(quarters, q)
	}
	return rootOf(partial, quarters...)
}

// TestSlicesAreReadByTheirSamples: a question of split is read over its slice's units at the level of all questions together, ln(2k/β), as a last answer is at that level: at other levels as a guarantee of
// that confidence reads it; Chernoff's interval where the training part plans bets no narrower, and, without a training part, what both say at their shares. It would notice a level of one question, the units of the
// holdout in the place of the slice's, a choice that the slice makes, and a share that is not paid for.
func TestSlicesAreReadByTheirSamples(t *testing.T) {
	const n, k, slice = 12_000, 40, 300
	plan := func(training int64, confidence float64) (Guarantee, *splitSample) {
		g := must(t, Spec{Mechanism: Split, N: n, Training: training, Questions: k, Confidence: confidence})
		return g, g.own.(*splitSample)
	}
	r := rand.New(rand.NewPCG(4, 11))
	quiet, rare := []float64{0.1, 0.8, 0.1}, []float64{0.997, 0, 0, 0, 0.003}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
	for _, c := range []struct {
		name     string
		planned  []float64
		partial  bool
		training bool
		bound    string
	}{
		{"quiet", quiet, false, true, MethodSample},
		{"rare", rare, false, true, boundSlice},
		{"a condition", []float64{0.05, 0.2, 0.05}, true, true, MethodSample},
		{"untold", quiet, false, false, boundSlice + "+" + MethodSample},
		{"a condition, untold", []float64{0.05, 0.2, 0.05}, true, false, MethodSample},
	} {
		holdout := spread(r, slice, c.partial, quiet...) // whatever was planned
		in, units := StatisticInput{Holdout: holdout}, int64(0)
		if c.training {
			in.Training, units = spread(r, 900, c.partial, c.planned...), 900
		}
		g, m := plan(units, 0.95)
		out, next, err := StepStatistic(g, State{}, in)
		if err != nil {
			t.Fatal(err)
		}
		if out.Interval.Bound != c.bound || next.Questions != 1 || next.Tokens != 0 {
			t.Errorf("%s: bound %s, after it %+v", c.name, out.Interval.Bound, next)
		}
		for _, confidence := range []float64{0.5, 0.9, 0.95, 0.999} {
			level := math.Log(2 * k / (1 - confidence))
			training, _ := in.Training.(LastStatistic)
			want, err := holdout.ReadLast(training, LastPlanning{N: slice, Questions: k, Level: m.level(), Chernoff: true})
			if err != nil {
				t.Fatal(err)
			}
			low, high := want.Interval(level)
			got, to, ok := g.IntervalAt(State{}, out, 1-confidence)
			if !ok || !near(got, low) || !near(to, high) {
				t.Errorf("%s at %v: [%v, %v], at its level the slice says [%v, %v]", c.name, confidence, got, to, low, high)
			}
			chernoff, above := chernoffOf(slice, out.Value, level)
			batch, _ := moments.PlanBatch(0.5, 0, slice, m.level(), moments.BestTilts)
			from, upTo := batch.Interval(holdout.Sample(), level+math.Log(10))
			switch c.name {
			case "rare": // as planned, though the slice varies little
				if !near(low, chernoff) || !near(high, above) {
					t.Errorf("%s: [%v, %v], Chernoff says [%v, %v]", c.name, low, high, chernoff, above)
				}
			case "untold":
				chernoff, above = chernoffOf(slice, out.Value, level+math.Log(10.0/9))
				if !near(low, max(chernoff, from)) || !near(high, min(above, upTo)) {
					t.Errorf("%s: [%v, %v], at their shares [%v, %v] and [%v, %v]", c.name, low, high, chernoff, above, from, upTo)
				}
			case "quiet":
				if confidence == 0.95 && high-low > 0.6*(above-chernoff) {
					t.Errorf("%s: [%v, %v], Chernoff says [%v, %v]", c.name, low, high, chernoff, above)
				}
			}
		}
		if !c.training {
			continue
		}
		expected, interval, err := g.ExpectedStatistic(State{}, StatisticInput{Training: in.Training})
		if v, _ := in.Training.Value(); err != nil || math.Abs(expected-v) > 1e-8 || interval.Bound != c.bound {
			t.Errorf("%s: foreseen %v with %+v, %v; the training part has %v", c.name, expected, interval, err, v)
		}
	}
	g, _ := plan(0, 0.95)
	if _, _, err := StepStatistic(g, State{}, StatisticInput{Holdout: spread(r, n, false, quiet...)}); err == nil {
		t.Error("the sums of all units were taken for those of a slice")
	}
}

// TestSplitOfOldVersions: with published bounds, and as it was stored before, split releases means one by one. It would notice an older holdout whose prices or bounds change.
func TestSplitOfOldVersions(t *testing.T) {
	published := must(t, Spec{Mechanism: Split, N: 5000, Questions: 10, Published: true})
	if published.ChecksStatistics() || published.Version != splitMeansVersion {
		t.Errorf("with published bounds: %+v", published)
	}
	for version, statistics := range map[int]bool{GuaranteeVersion: false, splitMeansVersion: false, splitSampleVersion: true, splitVersion: true} {
		head := published.Head
		head.Version = version
		text, err := json.Marshal(&split{head})
		if err != nil {
			t.Fatal(err)
		}
		var g Guarantee
		if err := json.Unmarshal(text, &g); err != nil || g.ChecksStatistics() != statistics || !g.Sliced() {
			t.Errorf("version %d: statistics %v, %v", version, g.ChecksStatistics(), err)
		}
	}
}

// TestSlicesOfUnlikeUnits: units of other laws each, drawn without replacement, in or out of a condition: over all draws and all values the slice's interval misses the ratio of the units' expectations, on either side,
// no more often than its level says; of each sample of one slice and of every choice of stakes. It finds violations where the draw is from half of the units.
func TestSlicesOfUnlikeUnits(t *testing.T) {
	const all, slice, kinds, each = 6, 4, 4, 0.1 // outside, 0, 1/2, 1
	level := -math.Log(each)
	values := [kinds]int64{-1, 0, 2, 4}
	r := rand.New(rand.NewPCG(21, 2))
	reading := map[[kinds]int][2]float64{}
	populations, worst, planted := 0, 0.0, 0
	rapid.Check(t, func(t *rapid.T) {
		// A stake for each run: the readings of all multisets of values are made once.
		training := spread(r, 60, true, r.Float64()/2, 0, r.Float64()/2, 0, r.Float64()/2)
		clear(reading)
		read := func(counts [kinds]int) [2]float64 {
			if ends, ok := reading[counts]; ok {
				return ends
			}
			var quarters []int64
			for i, c := range counts {
				for range c {
					quarters = append(quarters, values[i])
				}
			}
			said, err := rootOf(true, quarters...).ReadLast(training, LastPlanning{N: slice, Questions: 1, Level: level, Chernoff: true})
			if err != nil {
				t.Fatal(err)
			}
			low, high := said.Interval(level)
			reading[counts] = [2]float64{low, high}
			return reading[counts]
		}
		for range 20 {
			laws := make([][kinds]float64, all)
			for i := range laws {
				total := 0.0
				for j := range laws[i] {
					laws[i][j] = math.Pow(r.Float64(), 3) * float64(r.IntN(2))
					total += laws[i][j]
				}
				if total == 0 {
					laws[i][r.IntN(kinds)], total = 1, 1
				}
				for j := range laws[i] {
					laws[i][j] /= total
				}
			}
			ratio := func(units [][kinds]float64) float64 {
				a, b := 0.0, 0.0
				for _, l := range units {
					a, b = a+l[2]/2+l[3], b+l[1]+l[2]+l[3]
				}
				return a / b
			}
			theta, half := ratio(laws), ratio(laws[:all/2])
			below, above, off, draws := 0.0, 0.0, 0.0, 0.0
			for set := range 1 << all {
				if bits.OnesCount(uint(set)) != slice {
					continue
				}
				draws++
				var walk func(unit int, counts [kinds]int, probability float64)
				walk = func(unit int, counts [kinds]int, probability float64) {
					switch {
					case probability == 0:
					case unit == all:
						ends := read(counts)
						if theta < ends[0] {
							below += probability
						}
						if theta > ends[1] {
							above += probability
						}
						if half < ends[0] || half > ends[1] {
							off += probability
						}
					case set>>unit&1 == 0:
						walk(unit+1, counts, probability)
					default:
						for j, p := range laws[unit] {
							with := counts
							with[j]++
							walk(unit+1, with, probability*p)
						}
					}
				}
				walk(0, [kinds]int{}, 1)
			}
			if math.IsNaN(theta) {
				continue // no unit is ever in the condition
			}
			below, above, off = below/draws, above/draws, off/draws
			if below > each || above > each {
				t.Fatalf("%v: misses %v below and %v above, %v may", laws, below, above, each)
			}
			populations++
			worst = max(worst, below, above)
			if off > 2*each {
				planted++
			}
		}
	})
	t.Logf("largest probability of a side, of what is promised: %.4f", worst/each)
	if worst < each/10 || planted == 0 {
		t.Errorf("of %d populations the worst misses %v, and %d notice another target", populations, worst, planted)
	}
}
