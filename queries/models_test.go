package queries

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/reference"
)

// Models over the table people, and the same in Go.
const (
	logisticModel = `"model":{"linear":{"intercept":-0.5,"weights":{"v":0.02,"w":0.3,"s":{"a":1,"b":-1}},"link":"logit","impute":{"v":10}}}`
	linearModel   = `"model":{"linear":{"intercept":5,"weights":{"v":0.5}}}`
	softmaxModel  = `"model":{"softmax":{"classes":["a","b","c"],"intercepts":[0,0.5,0.25],"weights":{"v":[0,0.02,-0.03]}}}`
	treeModel     = `"model":{"trees":{"trees":[[["v",50,"right"],0.2,["s",["a","b"]],0.7,0.9],[0.05]]}}`
)

func logisticOf(r reference.Row) float64 {
	z := -0.5 + map[any]float64{"a": 1, "b": -1}[r["s"]]
	v, ok := r["v"].(float64)
	if !ok {
		v = 10
	}
	z = math.FMA(0.02, v, z) // as docs/MODELS.md says, or a score of 0 would be on the other side of 0
	if r["w"] == true {
		z += 0.3
	}
	return z
}

func probabilityOf(r reference.Row) float64 { return 1 / (1 + math.Exp(-logisticOf(r))) }

// decidesAt is a model with a threshold of its own.
func decidesAt(threshold, model string) string {
	return strings.TrimSuffix(model, "}") + `,"threshold":` + threshold + "}"
}

// linked is a linear model with a link, and linkedOf its score.
func linked(link string) string {
	return `"model":{"linear":{"intercept":-0.75,"weights":{"v":0.0625},"link":"` + link + `"}}`
}

func linkedOf(r reference.Row) float64 {
	v, _ := r["v"].(float64)
	return -0.75 + 0.0625*v
}

func linearOf(r reference.Row) float64 {
	v, _ := r["v"].(float64)
	return 5 + 0.5*v
}

func treeOf(r reference.Row) float64 {
	v, ok := r["v"].(float64)
	switch {
	case ok && v <= 50:
		return 0.2 + 0.05
	case r["s"] == "a" || r["s"] == "b" || r["s"] == nil:
		return 0.7 + 0.05
	}
	return 0.9 + 0.05
}

func softmaxOf(r reference.Row) (p [3]float64) {
	v, _ := r["v"].(float64)
	sum, z := 0.0, [3]float64{0, 0.5 + 0.02*v, 0.25 - 0.03*v}
	for k := range z {
		p[k] = math.Exp(z[k] - slices.Max(z[:]))
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// labelU is u > 20, classS the place of s among the classes, or -1.
func labelU(r reference.Row) bool {
	u, ok := r["u"].(float64)
	return ok && u > 20
}

func classS(r reference.Row) int {
	s, _ := r["s"].(string)
	return slices.Index([]string{"a", "b", "c"}, s)
}

func best(p [3]float64) int { return slices.Index(p[:], slices.Max(p[:])) }

func clamp(x, low, high float64) float64 { return min(max(x, low), high) }

// TestLossesMeanWhatTheySay: from exact means of its row functions the answer is the metric by its definition, computed from the
// rows directly.
func TestLossesMeanWhatTheySay(t *testing.T) {
	logOf := func(p float64, yes bool, clip float64) float64 {
		if !yes {
			p = 1 - p
		}
		return -math.Log(clamp(p, clip, 1-clip))
	}
	errorOf := func(r reference.Row) (float64, bool) {
		u, ok := r["u"].(float64)
		return u - linearOf(r), ok
	}
	numeric := func(of func(e float64) float64, high float64) func(reference.Row) float64 {
		return func(r reference.Row) float64 {
			if e, ok := errorOf(r); ok {
				return clamp(of(e), 0, high)
			}
			return high
		}
	}
	for _, c := range []struct {
		body string
		row  func(reference.Row) float64
	}{
		{`"type":"accuracy","label":"u > 20",` + logisticModel, func(r reference.Row) float64 { return indicator(labelU(r) == (logisticOf(r) > 0)) }},
		{`"type":"accuracy","label":"u > 20","threshold":0.25,` + logisticModel, func(r reference.Row) float64 { return indicator(labelU(r) == (probabilityOf(r) > 0.25)) }},
		{`"type":"accuracy","label":"u > 20","threshold":0,` + logisticModel, func(r reference.Row) float64 { return indicator(labelU(r)) }},
		{`"type":"accuracy","label":"u > 20","threshold":1,` + logisticModel, func(r reference.Row) float64 { return indicator(!labelU(r)) }},
		{`"type":"accuracy","label":"u > 20",` + decidesAt("0.25", logisticModel), func(r reference.Row) float64 { return indicator(labelU(r) == (probabilityOf(r) > 0.25)) }},
		{`"type":"accuracy","label":"u > 20","threshold":0.5,` + decidesAt("0.25", logisticModel), func(r reference.Row) float64 { return indicator(labelU(r) == (logisticOf(r) > 0)) }},
		{`"type":"loss","loss":"zero_one","label":"u > 20",` + decidesAt("0", linked("sqrt")), func(r reference.Row) float64 { return indicator(labelU(r) != (linkedOf(r) > 0)) }},
		{`"type":"accuracy","label":"u > 20","threshold":1.5,` + linked("log"), func(r reference.Row) float64 {
			p := math.Exp(linkedOf(r))
			return indicator(labelU(r) == (p > 1.5 && !math.IsInf(p, 0))) // what is infinite is null
		}},
		{`"type":"loss","loss":"absolute","range":[0,100],"label":"u",` + linked("log"), func(r reference.Row) float64 {
			if u, ok := r["u"].(float64); ok {
				return clamp(math.Abs(u-math.Exp(linkedOf(r))), 0, 100)
			}
			return 100
		}},
		{`"type":"loss","loss":"absolute","range":[0,100],"label":"u",` + linked("sqrt"), func(r reference.Row) float64 {
			if u, ok := r["u"].(float64); ok {
				return clamp(math.Abs(u-linkedOf(r)*math.Abs(linkedOf(r))), 0, 100)
			}
			return 100
		}},
		{`"type":"accuracy","label":"u > 20",` + treeModel, func(r reference.Row) float64 { return indicator(labelU(r) == (treeOf(r) > 0.5)) }},
		{`"type":"accuracy","label":"u > 20","threshold":0.8,` + treeModel, func(r reference.Row) float64 { return indicator(labelU(r) == (treeOf(r) > 0.8)) }},
		{`"type":"accuracy","label":"u > 20","features":{"z":"v / 2","above":"v > 10"},"model":{"linear":{"intercept":-1,"weights":{"z":0.01,"above":2},"impute":{"z":30}}}`, func(r reference.Row) float64 {
			z := -1.0 + 0.01*30
			if v, ok := r["v"].(float64); ok {
				z = -1 + 0.01*v/2 + 2*indicator(v > 10)
			}
			return indicator(labelU(r) == (z > 0.5))
		}},
		{`"type":"accuracy","label":"u > 20","prediction":"v > 10"`, func(r reference.Row) float64 {
			v, ok := r["v"].(float64)
			return indicator(labelU(r) == (ok && v > 10))
		}},
		{`"type":"accuracy","label":"s",` + softmaxModel, func(r reference.Row) float64 { return indicator(classS(r) == best(softmaxOf(r))) }},
		{`"type":"loss","loss":"zero_one","label":"s",` + softmaxModel, func(r reference.Row) float64 { return indicator(classS(r) != best(softmaxOf(r))) }},
		{`"type":"loss","loss":"log","label":"u > 20",` + logisticModel, func(r reference.Row) float64 { return logOf(probabilityOf(r), labelU(r), 0.001) }},
		{`"type":"loss","loss":"log","clip":0.1,"label":"u > 20",` + logisticModel, func(r reference.Row) float64 { return logOf(probabilityOf(r), labelU(r), 0.1) }},
		{`"type":"loss","loss":"log","clip":0.01,"null":0.5,"label":"s",` + softmaxModel, func(r reference.Row) float64 {
			if classS(r) < 0 {
				return 0.5
			}
			return -math.Log(clamp(softmaxOf(r)[classS(r)], 0.01, 0.99))
		}},
		{`"type":"loss","loss":"brier","label":"u > 20",` + logisticModel, func(r reference.Row) float64 { return math.Pow(indicator(labelU(r))-probabilityOf(r), 2) }},
		{`"type":"loss","loss":"brier","label":"s",` + softmaxModel, func(r reference.Row) float64 {
			if classS(r) < 0 {
				return 1
			}
			sum := 0.0
			for k, p := range softmaxOf(r) {
				sum += math.Pow(p-indicator(k == classS(r)), 2)
			}
			return sum / 2
		}},
		{`"type":"loss","loss":"hinge","range":[0,4],"label":"u > 20",` + logisticModel, func(r reference.Row) float64 {
			if labelU(r) {
				return clamp(1-logisticOf(r), 0, 4)
			}
			return clamp(1+logisticOf(r), 0, 4)
		}},
		{`"type":"loss","loss":"squared","range":[0,9000],"label":"u",` + linearModel, numeric(func(e float64) float64 { return e * e }, 9000)},
		{`"type":"loss","loss":"absolute","range":[0,90],"label":"u",` + linearModel, numeric(math.Abs, 90)},
		{`"type":"loss","loss":"pinball","quantile":0.8,"range":[0,90],"label":"u",` + linearModel,
			numeric(func(e float64) float64 { return max(0.8*e, (0.8-1)*e) }, 90)},
	} {
		for _, more := range []string{"", `,"where":"w"`, `,"weight":"row"`, `,"where":"w","weight":"row"`} {
			checkAverage(t, c.body+more, c.row)
		}
	}
}

// checkAverage holds that the answer is the mean of a function of the row.
func checkAverage(t *testing.T, body string, row func(reference.Row) float64) {
	t.Run(body, func(t *testing.T) {
		q := mustParse(t, "{"+body+"}")
		rapid.Check(t, func(t *rapid.T) {
			grouped := rapid.Bool().Draw(t, "grouped")
			units := drawPeople(t, "units", grouped)
			where := everyRow
			if strings.Contains(body, "where") {
				where = whereW
			}
			votes := votesOf(units, where, strings.Contains(body, "weight\"") && grouped)
			p, err := q.Compile(context.Background(), people, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
			checkResult(t, got, weighted(votes, row), len(votes) > 0)
		})
	})
}

// TestRegressionMeansWhatItSays is the same for rmse and r2, whatever the center is.
func TestRegressionMeansWhatItSays(t *testing.T) {
	u := column("u", -60)
	cases := map[string]func(votes []vote) (float64, bool){
		`"type":"rmse","max_error":70,"label":"u",` + linearModel: func(votes []vote) (float64, bool) {
			return math.Sqrt(weighted(votes, func(r reference.Row) float64 {
				x, ok := r["u"].(float64)
				if !ok {
					return 70 * 70
				}
				return math.Pow(clamp(x-linearOf(r), -70, 70), 2)
			})), true
		},
		`"type":"r2","range":[-60,180],"label":"u",` + linearModel: func(votes []vote) (float64, bool) {
			missed := weighted(votes, func(r reference.Row) float64 { return math.Pow(u(r)-clamp(linearOf(r), -60, 180), 2) })
			spread := spreadOf(votes, u)
			return max(1-missed/spread, -1), spread > 100
		},
	}
	for body, want := range cases {
		for _, more := range []string{"", `,"where":"w"`, `,"where":"w","weight":"row"`} {
			q := mustParse(t, "{"+body+more+"}")
			rapid.Check(t, func(t *rapid.T) {
				grouped := rapid.Bool().Draw(t, "grouped")
				units, training := drawPeople(t, "units", grouped), drawPeople(t, "training", grouped)
				where := everyRow
				if more != "" {
					where = whereW
				}
				votes := votesOf(units, where, strings.Contains(more, "row") && grouped)
				options := []Option{Grouped(grouped), Training(inMemory{training})}
				if rapid.Bool().Draw(t, "no training") {
					options = options[:1]
				}
				p, err := q.Compile(context.Background(), people, options...)
				if err != nil {
					t.Fatal(err)
				}
				got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
				if len(votes) == 0 {
					if got.Value != nil {
						t.Fatalf("no rows, and %v", *got.Value)
					}
					return
				}
				if value, ok := want(votes); ok {
					closeTo(t, got, value, 1e-7)
				}
			})
		}
	}
}

// rowVotes are all rows, a unit's sharing its vote, as the types have it whose answers are quotients of shares.
func rowVotes(units []unit, where func(reference.Row) bool) (votes []vote) {
	for _, u := range units {
		for _, r := range u {
			if where(r) {
				votes = append(votes, vote{r, 1 / float64(len(u)*len(units))})
			}
		}
	}
	return votes
}

// binnedAUC is the area by its definition: over all pairs of a row with the label and one without.
func binnedAUC(votes []vote, label func(reference.Row) bool, bin func(reference.Row) int) (float64, bool) {
	sum, pairs := 0.0, 0.0
	for _, a := range votes {
		for _, b := range votes {
			if !label(a.row) || label(b.row) {
				continue
			}
			part := a.part * b.part
			pairs += part
			switch x, y := bin(a.row), bin(b.row); {
			case x > y:
				sum += part
			case x == y:
				sum += part / 2
			}
		}
	}
	return sum / pairs, pairs > 0
}

func binOf(x float64, edges []float64) int {
	n := 0
	for _, e := range edges {
		if x > e {
			n++
		}
	}
	return n
}

// TestAUCMeansWhatItSays, with declared edges and with edges from the training part, which are read from the plan.
func TestAUCMeansWhatItSays(t *testing.T) {
	for _, c := range []struct {
		body  string
		score func(reference.Row) float64
		edges []float64
	}{
		{`"edges":[0.2,0.4,0.6,0.8],` + logisticModel, probabilityOf, []float64{0.2, 0.4, 0.6, 0.8}},
		{`"edges":[0.5],` + treeModel, treeOf, []float64{0.5}},
		{`"bins":5,` + logisticModel, logisticOf, nil},
		{`"prediction":"w"`, func(r reference.Row) float64 { return indicator(r["w"] == true) }, nil},
		{linearModel, linearOf, nil},
	} {
		for _, more := range []string{"", `,"where":"s == 'a' || s == 'b'"`} {
			q := mustParse(t, `{"type":"auc","label":"u > 20",`+c.body+more+`}`)
			rapid.Check(t, func(t *rapid.T) {
				grouped := rapid.Bool().Draw(t, "grouped")
				units, training := drawPeople(t, "units", grouped), drawPeople(t, "training", grouped)
				where := everyRow
				if more != "" {
					where = func(r reference.Row) bool { return r["s"] == "a" || r["s"] == "b" }
					training = append(training, unit{reference.Row{"s": "a"}})
				}
				p, err := q.Compile(context.Background(), people, Grouped(grouped), Training(inMemory{training}))
				if err != nil {
					t.Fatal(err)
				}
				checkVariance(t, p, units)
				edges := c.edges
				if edges == nil {
					edges = edgesOf(p)
				}
				want, defined := binnedAUC(rowVotes(units, where), labelU, func(r reference.Row) int { return binOf(c.score(r), edges) })
				got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
				checkResult(t, got, want, defined)
			})
		}
	}
}

// edgesOf reads the edges that a plan compares the score with.
func edgesOf(p *Plan) (edges []float64) {
	for _, f := range p.Functions[:len(p.Functions)/2] {
		edges = append(edges, f.Value.Args[1].Args[0].Args[1].Number)
	}
	return edges
}

// TestTrainingQuantiles: bins of a continuous score hold about equally many rows of the training part.
func TestTrainingQuantiles(t *testing.T) {
	var training []unit
	for i := range 1000 {
		training = append(training, unit{{"v": math.Pow(float64(i)/1000, 3) * 100, "u": 1.0, "w": true, "s": "a"}})
	}
	p := compiled(t, `{"type":"auc","label":"u > 20","prediction":"v"}`, people, Training(inMemory{training}))
	edges := edgesOf(p)
	if len(edges) != DefaultAUCBins-1 {
		t.Fatalf("edges %v", edges)
	}
	counts := make([]int, DefaultAUCBins)
	for _, u := range training {
		counts[binOf(u[0]["v"].(float64), edges)]++
	}
	for _, n := range counts {
		if n < 95 || n > 105 {
			t.Fatalf("bins of %v rows at %v", counts, edges)
		}
	}
	if _, err := mustParse(t, `{"type":"auc","label":"u > 20","prediction":"v"}`).Compile(context.Background(), people); err == nil || !strings.Contains(err.Error(), "/edges") {
		t.Errorf("without a training part: %v", err)
	}
	if _, err := mustParse(t, `{"type":"auc","label":"u > 20","prediction":"v","where":"v > 1000"}`).Compile(context.Background(), people, Training(inMemory{training})); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("where the training part has nothing: %v", err)
	}
}

// TestCellsMeanWhatTheySay: confusion and calibration.
func TestCellsMeanWhatTheySay(t *testing.T) {
	confusionOf := func(names []string, label, predicted func(reference.Row) int) func(votes []vote) map[string]float64 {
		return func(votes []vote) map[string]float64 {
			want := map[string]float64{}
			for i, a := range names {
				for j, b := range names {
					want[fmt.Sprintf("label %s, predicted %s", a, b)] = weighted(votes, func(r reference.Row) float64 { return indicator(label(r) == i && predicted(r) == j) })
				}
			}
			return want
		}
	}
	toInt := func(f func(reference.Row) bool) func(reference.Row) int {
		return func(r reference.Row) int { return int(indicator(f(r))) }
	}
	calibrationOf := func(votes []vote) map[string]float64 {
		want := map[string]float64{}
		edges := []float64{0.1, 0.3, 0.6, 0.7}
		for i, name := range []string{"[0.1, 0.3)", "[0.3, 0.6)", "[0.6, 0.7]"} {
			inside := func(r reference.Row) bool {
				p := probabilityOf(r)
				return p >= edges[i] && (p < edges[i+1] || i == 2 && p == edges[i+1])
			}
			share := weighted(votes, func(r reference.Row) float64 { return indicator(inside(r)) })
			want[name+" share"] = share
			if share > 0 {
				want[name+" label"] = weighted(votes, func(r reference.Row) float64 { return indicator(inside(r) && labelU(r)) }) / share
				want[name+" prediction"] = weighted(votes, func(r reference.Row) float64 { return indicator(inside(r)) * probabilityOf(r) }) / share
			} else {
				want[name+" label"], want[name+" prediction"] = math.NaN(), math.NaN()
			}
		}
		return want
	}
	for _, c := range []struct {
		body  string
		where func(reference.Row) bool
		want  func(votes []vote) map[string]float64
		own   bool // where is divided by: units that have no such row have no vote
	}{
		{`"type":"confusion","label":"s",` + softmaxModel, everyRow, confusionOf([]string{"a", "b", "c"}, classS, func(r reference.Row) int { return best(softmaxOf(r)) }), true},
		{`"type":"confusion","label":"u > 20","threshold":0.6,` + logisticModel, everyRow,
			confusionOf([]string{"false", "true"}, toInt(labelU), toInt(func(r reference.Row) bool { return probabilityOf(r) > 0.6 })), true},
		{`"type":"confusion","label":"u > 20","where":"w","prediction":"v > 10"`, whereW,
			confusionOf([]string{"false", "true"}, toInt(labelU), toInt(func(r reference.Row) bool { v, ok := r["v"].(float64); return ok && v > 10 })), true},
		{`"type":"calibration","label":"u > 20","edges":[0.1,0.3,0.6,0.7],` + logisticModel, everyRow, calibrationOf, false},
		{`"type":"calibration","label":"u > 20","edges":[0.1,0.3,0.6,0.7],"where":"w",` + logisticModel, whereW, calibrationOf, false},
	} {
		q := mustParse(t, "{"+c.body+"}")
		t.Run(c.body, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				grouped := rapid.Bool().Draw(t, "grouped")
				units := drawPeople(t, "units", grouped)
				p, err := q.Compile(context.Background(), people, Grouped(grouped))
				if err != nil {
					t.Fatal(err)
				}
				checkVariance(t, p, units)
				votes := rowVotes(units, c.where)
				if c.own {
					votes = votesOf(units, c.where, false)
				}
				got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
				want := c.want(votes)
				if len(want) != len(got.Items) {
					t.Fatalf("%d items, want %d", len(got.Items), len(want))
				}
				for _, item := range got.Items {
					x, ok := want[item.Of]
					switch {
					case !ok:
						t.Fatalf("an item %q", item.Of)
					case math.IsNaN(x) || len(votes) == 0:
						if item.Value != nil && *item.Value > 1e-9 {
							t.Fatalf("%s: %v, want null", item.Of, *item.Value)
						}
					case item.Value == nil || math.Abs(*item.Value-x) > 1e-8 || *item.Low > x+1e-8 || *item.High < x-1e-8 || *item.High-*item.Low > 1e-6:
						t.Fatalf("%s: got %v in [%v, %v], want %v", item.Of, show(item.Value), show(item.Low), show(item.High), x)
					}
				}
			})
		})
	}
}

// TestGradientMeansWhatItSays: the mean of clipped gradients, and where none is clipped the derivative of the mean loss.
func TestGradientMeansWhatItSays(t *testing.T) {
	number := func(r reference.Row, name string, null float64) float64 {
		if x, ok := r[name].(float64); ok {
			return x
		}
		return null
	}
	logistic := func(r reference.Row) (float64, []float64) {
		return probabilityOf(r) - indicator(labelU(r)), []float64{1, indicator(r["s"] == "a"), indicator(r["s"] == "b"), number(r, "v", 10), indicator(r["w"] == true)}
	}
	squared := func(r reference.Row) (float64, []float64) {
		if r["u"] == nil {
			return 0, []float64{1, 0}
		}
		return 2 * (linearOf(r) - r["u"].(float64)), []float64{1, number(r, "v", 0)}
	}
	for _, c := range []struct {
		body  string
		clip  float64
		names []string
		row   func(reference.Row) (residual float64, features []float64)
	}{
		{`"label":"u > 20","clip":3,` + logisticModel, 3, []string{"intercept", "s=a", "s=b", "v", "w"}, logistic},
		{`"label":"u > 20","clip":1e7,` + logisticModel, 1e7, []string{"intercept", "s=a", "s=b", "v", "w"}, logistic},
		{`"label":"u","clip":100,` + linearModel, 100, []string{"intercept", "v"}, squared},
	} {
		q := mustParse(t, `{"type":"gradient",`+c.body+`}`)
		rapid.Check(t, func(t *rapid.T) {
			grouped := rapid.Bool().Draw(t, "grouped")
			units := drawPeople(t, "units", grouped)
			p, err := q.Compile(context.Background(), people, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			checkVariance(t, p, units)
			want := make([]float64, len(c.names))
			for _, v := range rowVotes(units, everyRow) {
				residual, features := c.row(v.row)
				length := 0.0
				for _, x := range features {
					length += math.Pow(residual*x, 2)
				}
				scale := min(1, c.clip/math.Sqrt(length))
				if length == 0 {
					scale = 1
				}
				for i, x := range features {
					want[i] += v.part * residual * x * scale
				}
			}
			got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
			for i, item := range got.Items {
				if item.Of != c.names[i] || math.Abs(*item.Value-want[i]) > 1e-9*c.clip || *item.Low > want[i]+1e-9*c.clip || *item.High < want[i]-1e-9*c.clip {
					t.Fatalf("%s: got %v in [%v, %v], want %s %v", item.Of, *item.Value, *item.Low, *item.High, c.names[i], want[i])
				}
			}
		})
	}
}

// TestModelIntervalsHold: if every released interval holds the true mean, the answer's intervals hold what the exact means make.
func TestModelIntervalsHold(t *testing.T) {
	for _, body := range []string{
		`{"type":"accuracy","label":"u > 20","where":"w",` + logisticModel + `}`, `{"type":"loss","loss":"log","label":"u > 20",` + logisticModel + `}`,
		`{"type":"rmse","label":"u","max_error":200,` + linearModel + `}`, `{"type":"r2","label":"u","range":[-60,180],` + linearModel + `}`,
		`{"type":"r2","label":"u","range":[-60,180],"where":"w",` + linearModel + `}`,
		`{"type":"auc","label":"u > 20","edges":[0.3,0.5,0.7],` + logisticModel + `}`, `{"type":"auc","label":"u > 20","edges":[0.3,0.5,0.7],"where":"w",` + logisticModel + `}`,
		`{"type":"calibration","label":"u > 20","edges":[0,0.4,0.8,1],` + logisticModel + `}`, `{"type":"confusion","label":"s",` + softmaxModel + `}`,
		`{"type":"gradient","label":"u > 20","clip":5,` + logisticModel + `}`,
	} {
		t.Run(body, func(t *testing.T) {
			q := mustParse(t, body)
			rapid.Check(t, func(t *rapid.T) {
				grouped := rapid.Bool().Draw(t, "grouped")
				units := drawPeople(t, "units", grouped)
				p, err := q.Compile(context.Background(), people, Grouped(grouped))
				if err != nil {
					t.Fatal(err)
				}
				parts, width := exactParts(p, units), rapid.SampledFrom([]float64{0, 1e-6, 0.01, 0.1, 0.3}).Draw(t, "width")
				got, truth := released(t, p, &noisy{t: t, means: parts, width: width}), released(t, p, &noisy{t: t, means: parts})
				if len(got.Items) == 0 {
					truth.Items, got.Items = []Item{{Value: truth.Value}}, []Item{{Value: got.Value, Low: got.Low, High: got.High}}
				}
				for i, item := range got.Items {
					want := truth.Items[i].Value
					if item.Value != nil && (*item.Value < *item.Low || *item.Value > *item.High) {
						t.Fatalf("%s: %v is outside of its interval [%v, %v]", item.Of, *item.Value, *item.Low, *item.High)
					}
					const slack = 1e-6 // of the rounding in exact parts, whose own intervals are points
					if want != nil && (*item.Low > *want+slack || *item.High < *want-slack) {
						t.Fatalf("%s: [%v, %v] does not hold %v", item.Of, *item.Low, *item.High, *want)
					}
				}
			})
		})
	}
}

// TestAUCIntervalIsNarrow pins what the Abel summation is for: with bands of ±w the area is known to about ±w(1/s + 1/(1-s)), s being
// the share of the label, however many bins there are.
func TestAUCIntervalIsNarrow(t *testing.T) {
	const w = 0.001
	for _, bins := range []int{2, 10, 100} {
		var edges []string
		var parts []Part
		around := func(x float64) Part { return Part{Value: x, Low: x - w, High: x + w, Bounded: true} }
		for i := 1; i < bins; i++ {
			edges = append(edges, fmt.Sprint(i))
		}
		for _, power := range []float64{0.5, 1.5} { // the shares of either label that are not above the edges
			for i := 1; i < bins; i++ {
				parts = append(parts, around(0.5+0.5*(math.Pow(float64(i)/float64(bins), power)-0.5)))
			}
		}
		p := compiled(t, `{"type":"auc","label":"w","prediction":"v","edges":[`+strings.Join(edges, ",")+`]}`, people)
		got := p.Combine(Outcome{N: 1e6, Parts: append(parts, around(0.5))})
		if width := *got.High - *got.Low; width > 2*w*4*1.3 {
			t.Errorf("%d bins: [%v, %v] is %v wide", bins, *got.Low, *got.High, width)
		}
	}
}

// TestModelQuestions pins prices.
func TestModelQuestions(t *testing.T) {
	for body, want := range map[string][2]float64{ // row functions, and the variance of the vector; 0 without one
		`{"type":"accuracy","label":"late","prediction":"delay > 1"}`:                                 {1, 0},
		`{"type":"accuracy","label":"late","prediction":"delay > 1","where":"distance > 1"}`:          {2, 0},
		`{"type":"loss","loss":"log","label":"late","prediction":"distance / 1e4"}`:                   {1, 0},
		`{"type":"rmse","label":"delay","prediction":"distance","max_error":5}`:                       {1, 0},
		`{"type":"r2","label":"delay","prediction":"distance","range":[0,5]}`:                         {3, 0},
		`{"type":"auc","label":"late","prediction":"distance","edges":[1,2,3]}`:                       {7, 1},
		`{"type":"auc","label":"late","prediction":"distance","edges":[1,2,3],"where":"delay > 1"}`:   {8, 1.25},
		`{"type":"calibration","label":"late","prediction":"distance / 1e4"}`:                         {30, 1.2},
		`{"type":"confusion","label":"late","prediction":"delay > 1"}`:                                {4, 0.75},
		`{"type":"gradient","label":"delay","model":{"linear":{"weights":{"distance":1}}},"clip":10}`: {2, 0.25},
	} {
		p := compiled(t, body, flights)
		variance := 0.0
		if r := p.Releases()[0]; r.Kind == Vector {
			variance = r.Variance
		}
		if got := [2]float64{float64(p.Numbers()), variance}; got != want {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
}

func TestModelsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`"type":"accuracy","label":"late"`:                                                                                          `is missing: what predicts`,
		`"type":"accuracy","prediction":"late"`:                                                                                     `"label" is missing`,
		`"type":"accuracy","label":"late","prediction":"late","model":{"linear":{"weights":{}}}`:                                    "go without each other",
		`"type":"accuracy","label":"late","model":3`:                                                                                "/model: must be an object",
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"x":"y"}}}`:                                                 "/model/linear/weights/x: must be a number",
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"distanc":1}}}`:                                             `/model: unknown column "distanc"; did you mean distance?`,
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"origin_SFO":1}}}`:                                          `/model: unknown column "origin_SFO"; a weight of a text of a column is written {"origin": {"SFO": …}}`,
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"origin == 'SFO'":1}}}`:                                     `write "features": {"x": "origin == 'SFO'"} beside "model", and "x" in the model`,
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"delay / 60":1}}}`:                                          `write "features": {"x": "delay / 60"} beside "model", and "x" in the model`,
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"dealy / 60":1}}}`:                                          `/model: unknown column "dealy / 60"`,
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"origin":1}}}`:                                              `/model: reads the column "origin" as a number`,
		`"type":"accuracy","label":"late","model":{"linear":{"weights":{"delay":{"x":1}}}}`:                                         `/model: reads the column "delay" as text`,
		`"type":"accuracy","label":"delay","model":{"linear":{"weights":{}}}`:                                                       "/label",
		`"type":"accuracy","label":"late","threshold":1,"model":{"softmax":{"classes":["a","b"],"weights":{}}}`:                     "/threshold: is for a model with one output",
		`"type":"accuracy","label":"late","model":{"softmax":{"classes":["a","b"],"weights":{}}}`:                                   "/label: must be a text column",
		`"type":"accuracy","label":"origin","model":{"softmax":{"classes":[1,2],"weights":{}}}`:                                     "/label",
		`"type":"accuracy","label":"late","features":{"x":"delay"},"model":{"linear":{"weights":{}}}`:                               "/features/x: is no number that the model reads",
		`"type":"accuracy","label":"late","features":{"x":"delay"},"prediction":"late"`:                                             "/features/x: is no number that the model reads",
		`"type":"accuracy","label":"late","features":{"x":"delay +"},"model":{"linear":{"weights":{"x":1}}}`:                        "/features/x: 1:8: the expression ends too early",
		`"type":"accuracy","label":"late","features":{"x":"origin"},"model":{"linear":{"weights":{"x":1}}}`:                         "/features/x: 1:1: the expression is text",
		`"type":"accuracy","label":"late","features":{"x":"y"},"model":{"linear":{"weights":{"x":1}}}`:                              "/features/x: 1:1: unknown column",
		`"type":"accuracy","label":"late","features":{"delay":"distance"},"model":{"linear":{"weights":{"delay":1}}}`:               "/features/delay: is the name of a column",
		`"type":"accuracy","label":"late","features":{"x":"delay"},"model":{"features":{"x":"delay"},"linear":{"weights":{"x":1}}}`: "/features/x: is computed twice",
		`"type":"accuracy","label":"late","model":{"features":{"x":"delay +"},"linear":{"weights":{"x":1}}}`:                        "/model/features/x: 1:8: the expression ends too early",
		`"type":"accuracy","label":"late","model":{"features":3,"linear":{"weights":{"x":1}}}`:                                      "/model/features: must be an object of expressions",
		`"type":"accuracy","label":"late","features":3,"model":{"linear":{"weights":{}}}`:                                           "/features: must be an object of expressions by name",
		`"type":"gradient","label":"late","clip":1,"features":{"x":"delay"},"model":{"linear":{"weights":{}}}`:                      "/features/x: is no number",
		`"type":"loss","loss":"logg","label":"late","prediction":"delay"`:                                                           "/loss: must be one of zero_one, log, brier, hinge, squared, absolute, pinball; did you mean log?",
		`"type":"loss","loss":"squared","label":"delay","prediction":"distance"`:                                                    `"range" is missing`,
		`"type":"loss","loss":"log","clip":0.5,"label":"late","prediction":"distance"`:                                              "/clip: must be at least",
		`"type":"loss","loss":"brier","clip":0.1,"label":"late","prediction":"distance"`:                                            "/clip: is for log only",
		`"type":"loss","loss":"pinball","label":"delay","prediction":"distance","range":[0,1]`:                                      "/quantile: must be given",
		`"type":"loss","loss":"log","null":100,"label":"late","prediction":"distance"`:                                              "/null: must lie in the range",
		`"type":"loss","loss":"hinge","range":[0,3],"label":"origin","model":{"softmax":{"classes":["a","b"],"weights":{}}}`:        "/model: must have one output",
		`"type":"rmse","label":"delay","prediction":"distance","max_error":1e80`:                                                    "/max_error: must lie in",
		`"type":"rmse","label":"delay","prediction":"distance"`:                                                                     `"max_error" is missing`,
		`"type":"auc","label":"late","prediction":"distance","edges":[]`:                                                            "/edges: must be a list of 1 to",
		`"type":"auc","label":"late","prediction":"distance","edges":[1,1]`:                                                         "/edges/1: must be a finite number above",
		`"type":"auc","label":"late","prediction":"distance","bins":2.5`:                                                            "/bins: must be a whole number",
		`"type":"auc","label":"late","prediction":"distance","bins":5,"edges":[1]`:                                                  "/bins: goes without edges",
		`"type":"gradient","label":"late","clip":1,"model":{"trees":{"trees":[[1]]}}`:                                               "/model: must be linear",
		`"type":"gradient","label":"late","clip":0,"model":{"linear":{"weights":{}}}`:                                               "/clip: must be more than 0",
		`"type":"gradient","label":"late","clip":1,"model":{"linear":{"weights":{}}}`:                                               "/label",
	} {
		q, err := Parse([]byte("{" + body + "}"))
		if err == nil {
			_, err = q.Compile(context.Background(), flights)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

// TestModelIdentity: spellings of a model and of defaults do not change the ID.
func TestModelIdentity(t *testing.T) {
	for _, bodies := range [][2]string{
		{`{"type":"accuracy","label":"late","threshold":0.5,"model":{"linear":{"weights":{"delay":1.0,"distance":2e0},"intercept":0}}}`,
			`{"type":"accuracy","label":"(late)","model":{"linear":{"weights":{"distance":2,"delay":1}}}}`},
		{`{"type":"accuracy","label":"late","threshold":0,"model":{"linear":{"weights":{"delay":1}}}}`, `{"type":"accuracy","label":"late","model":{"linear":{"weights":{"delay":1}},"threshold":0}}`},
		{`{"type":"f1","label":"late","threshold":0.5,"model":{"linear":{"weights":{"delay":1}},"threshold":0}}`, `{"type":"f1","label":"late","model":{"linear":{"weights":{"delay":1}}}}`},
		{`{"type":"loss","loss":"brier","label":"late","model":{"linear":{"weights":{"delay":1}},"threshold":0}}`, `{"type":"loss","loss":"brier","label":"late","model":{"linear":{"weights":{"delay":1}}}}`},
		{`{"type":"accuracy","label":"late","features":{"y":"1 + delay"},"model":{"linear":{"weights":{"x":1,"y":2}},"features":{"x":"(delay)"},"threshold":0}}`,
			`{"type":"accuracy","label":"late","threshold":0,"features":{"y":"delay + 1.0","x":"delay"},"model":{"linear":{"weights":{"x":1,"y":2}}}}`},
		{`{"type":"accuracy","label":"late","features":{"x":"(delay)","y":"1 + delay"},"model":{"linear":{"weights":{"x":1,"y":2}}}}`,
			`{"type":"accuracy","label":"late","features":{"y":"delay + 1.0","x":"delay"},"model":{"linear":{"weights":{"x":1,"y":2}}}}`},
		{`{"type":"loss","loss":"log","clip":1e-3,"label":"late","prediction":"distance"}`, `{"type":"loss","loss":"log","label":"late","prediction":"distance"}`},
		{`{"type":"calibration","label":"late","prediction":"distance","edges":[0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1]}`, `{"type":"calibration","label":"late","prediction":"distance"}`},
		{`{"type":"auc","label":"late","prediction":"distance","bins":10}`, `{"type":"auc","label":"late","prediction":"distance"}`},
	} {
		a, b := mustParse(t, bodies[0]), mustParse(t, bodies[1])
		if a.ID() != b.ID() {
			t.Errorf("%s and %s differ", a.Canonical(), b.Canonical())
		}
		if again := mustParse(t, string(a.Canonical())); again.ID() != a.ID() {
			t.Errorf("%s is read as %s", a.Canonical(), again.Canonical())
		}
	}
	decided := map[string]string{}
	for _, rest := range []string{`}`, `,"threshold":0}`, `,"threshold":0.25}`} {
		for _, own := range []string{``, `,"threshold":0`, `,"threshold":0.75`} {
			body := `{"type":"confusion","label":"late","model":{"linear":{"weights":{"delay":1}}` + own + `}` + rest
			at := "0.5"
			if _, value, ok := strings.Cut(own, ":"); ok {
				at = value
			}
			if _, value, ok := strings.Cut(rest, ":"); ok {
				at = strings.TrimSuffix(value, "}")
			}
			id := mustParse(t, body).ID()
			if decided[at] != "" && decided[at] != id {
				t.Errorf("%s is another question than one that is decided at %s too", body, at)
			}
			decided[at] = id
		}
	}
	if ids := slices.Compact(slices.Sorted(maps.Values(decided))); len(ids) != 4 {
		t.Errorf("%d questions of the thresholds %v", len(ids), decided)
	}
}
