package gate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/members"
	"github.com/holdoutd/holdoutd/queries"
)

// answer is one with an interval and a verdict.
func answer(verdict string, value, low, high float64) client.Answer {
	return client.Answer{Verdict: verdict, Value: &value, Interval: &client.Interval{Low: &low, High: &high, Confidence: 0.95, Scope: "all 1000 questions"}}
}

// TestJudge has every side on which an interval can lie of 0 and of what was asked for, with the code that the pipeline ends with. It
// notices a gate that passes what is not shown, that calls worse what only may be, that takes losses for gains, and every wrong exit code.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		low, high, by float64
		verdict       string // the server's
		want          Verdict
		code          int
	}{
		{0.02, 0.04, 0.01, "yes", Passed, 0},
		{0.01, 0.04, 0.01, "undecided", NotShown, 3}, // not more than what was asked for
		{math.Nextafter(0.01, 1), 0.04, 0.01, "yes", Passed, 0},
		{0.005, 0.04, 0.01, "undecided", NotShown, 3},
		{-0.01, 0.04, 0.01, "undecided", NotShown, 3},
		{0.002, 0.01, 0.01, "no", NotShown, 3}, // better, by less
		{-0.01, 0.008, 0.01, "no", NotShown, 3},
		{-0.01, 0, 0.01, "no", NotShown, 3}, // no better, but not shown to be worse
		{-0.02, math.Nextafter(0, -1), 0.01, "no", Worse, 4},
		{-0.04, -0.02, 0.01, "no", Worse, 4},
		{0.02, 0.04, 0, "yes", Passed, 0},
		{0, 0.04, 0, "undecided", NotShown, 3},
		{-0.04, 0.04, 0, "undecided", NotShown, 3},
		{0, 0, 0, "no", NotShown, 3}, // the same model twice
		{-0.04, 0, 0, "no", NotShown, 3},
		{-0.04, -0.02, 0, "no", Worse, 4},
	} {
		for _, least := range []bool{false, true} {
			a := answer(c.verdict, (c.low+c.high)/2, c.low, c.high)
			if least {
				a = answer(c.verdict, -(c.low+c.high)/2, -c.high, -c.low)
			}
			got, err := Judge(a, c.by, least)
			if err != nil || got != c.want || got.ExitCode() != c.code {
				t.Errorf("%+v, least %t: %q, %d, %v", c, least, got, got.ExitCode(), err)
			}
			for _, other := range []string{"yes", "no", "undecided", "", "YES"} {
				if other == c.verdict {
					continue
				}
				a.Verdict = other
				if got, err := Judge(a, c.by, least); err == nil || got == Passed {
					t.Errorf("%+v, least %t, with the verdict %q: %q, %v", c, least, other, got, err)
				}
			}
		}
	}
}

// TestJudgeNothing: an answer that says too little never passes.
func TestJudgeNothing(t *testing.T) {
	whole := answer("yes", 0.03, 0.02, 0.04)
	for name, change := range map[string]func(*client.Answer){
		"no value":    func(a *client.Answer) { a.Value = nil },
		"no interval": func(a *client.Answer) { a.Interval = nil },
		"no low end":  func(a *client.Answer) { a.Interval = &client.Interval{High: a.Interval.High} },
		"no high end": func(a *client.Answer) { a.Interval = &client.Interval{Low: a.Interval.Low} },
	} {
		a := whole
		change(&a)
		if got, err := Judge(a, 0.01, false); err == nil || got == Passed {
			t.Errorf("%s, and yet a verdict: %q, %v", name, got, err)
		}
		a.Verdict = "undecided"
		if got, err := Judge(a, 0.01, false); err != nil || got != NotShown {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := Judge(client.Answer{}, 0, false); err == nil {
		t.Errorf("an empty answer: %q", got)
	}
	if Verdict("").ExitCode() == 0 || Verdict("anything").ExitCode() == 0 {
		t.Error("what is no verdict ends with 0")
	}
}

// TestPassedIsShown: whatever the answer, exit code 0 comes only with an interval above what was asked for, of which the server says yes.
func TestPassedIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.SampledFrom([]float64{-0.01, 0, 0.01, 0.02}), rapid.Float64Range(-1, 1))
		low, high := number.Draw(t, "low"), number.Draw(t, "high")
		low, high = min(low, high), max(low, high)
		by := math.Abs(number.Draw(t, "by"))
		least := rapid.Bool().Draw(t, "least")
		a := answer(rapid.SampledFrom([]string{"yes", "no", "undecided", ""}).Draw(t, "verdict"), (low+high)/2, low, high)
		v, err := Judge(a, by, least)
		gain := low
		if least {
			gain = -high
		}
		if passed := err == nil && v.ExitCode() == 0; passed != (a.Verdict == "yes" && gain > by) {
			t.Errorf("[%v, %v], by %v, least %t, %q: %q, %v", low, high, by, least, a.Verdict, v, err)
		}
	})
}

// TestSummarySays: the summary has the verdict's word, never "no difference" as a finding, and shows the ends on the sides on which they lie.
func TestSummarySays(t *testing.T) {
	for _, c := range []struct {
		low, high, by float64
		verdict       Verdict
		least         bool
		want          []string
	}{
		{0.02, 0.04, 0.01, Passed, false, []string{"gate: passed", "better than the baseline by more than 0.01 in accuracy: its gain lies between +0.020 and +0.040", "| must be more than | 0.01 |"}},
		{0.0100004, 0.0400004, 0.01, Passed, false, []string{"between +0.0100004 and +0.0400004"}},
		{0.02091, 0.04211, 0.01, Passed, false, []string{"gain lies between +0.020 and +0.043", ", between +0.020 and +0.043 |"}},
		{-0.04211, -0.02091, 0.01, Passed, true, []string{"between +0.020 and +0.043"}},
		{0.0100000004, 0.0399, 0.01, Passed, false, []string{"between +0.0100000004 and +0.0399000000"}},
		{-0.02, 0.04, 0, NotShown, false, []string{"gate: not shown", "better than the baseline in accuracy: its gain lies between -0.020 and +0.040", "no finding of no difference"}},
		{0.002, 0.008, 0.01, NotShown, false, []string{"It is better, but by less"}},
		{-0.002, 0.008, 0.01, NotShown, false, []string{"its gain is not that large"}},
		{-0.04, -0.02, 0.01, Worse, false, []string{"gate: worse", "worse than the baseline in accuracy", "between -0.040 and -0.020"}},
		{-0.04, -0.02, 0.01, Passed, true, []string{"gate: passed", "between +0.020 and +0.040", "baseline minus candidate", "| +0.030, between"}},
	} {
		r := Report{Verdict: c.verdict, Metric: Metric{Name: "accuracy", Least: c.least}, By: c.by, Baseline: "a|b@c.json", Candidate: "b.json", BaselineID: ID([]byte("a")), CandidateID: ID([]byte("b")),
			Holdout: client.Card{Name: "flights", ID: "ho_1", Units: client.Counts{Holdout: 30000}},
			Reply: client.Reply{Answer: answer("", (c.low+c.high)/2, c.low, c.high), Budget: client.Budget{Questions: client.Meter{Left: 999, Of: 1000}, Tokens: &client.Meter{Left: 19, Of: 20}},
				Warnings: []client.Warning{{Detail: "a\x1b\n<b>"}}}}
		r.Reply.Answer.Cost = client.Cost{Questions: 1, Tokens: 1}
		page := r.Markdown()
		for _, want := range append(c.want, `a\|b&#64;c.json`, "| price | 1 question, 1 token |", "| left | 999 of 1,000 questions, 19 of 20 tokens |", `a  &#60;b\>`, "flights, 30,000 units, ho_1", "at 95% for all 1000 questions") {
			if !strings.Contains(page, want) {
				t.Errorf("%+v: no %q in\n%s", c, want, page)
			}
		}
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 3 {
				t.Errorf("a row of another number of cells: %s", line)
			}
		}
		r.Reply.Replayed = true
		if !strings.Contains(r.Markdown(), "| price | nothing: asked before, for 1 question, 1 token |") {
			t.Error(r.Markdown())
		}
	}
}

const (
	linear = `{"linear":{"weights":{"distance":0.001}}}`
	trees  = `{"trees":{"trees":[[1]]}}`
)

// TestSubjects: what a file may be.
func TestSubjects(t *testing.T) {
	types := members.Types()
	for file, want := range map[string]string{
		linear:                      "model",
		`[0.5,null,1]`:              "predictions",
		`{"f32":"AAAA"}`:            "predictions",
		`{"bits":"AA==","count":3}`: "predictions",
		`{"model":` + trees + `,"features":{"hour":"date.getHours()"}}`:                         "model features",
		`{"prediction":"distance > 500"}`:                                                       "prediction",
		`{"threshold":0,"features":{"hour":"date.getHours()"},"linear":{"weights":{"hour":1}}}`: "model",
	} {
		s, err := SubjectOf(types, json.RawMessage(file))
		if err != nil || len(s) != len(strings.Fields(want)) {
			t.Errorf("%s: %v %v", file, s, err)
		}
		for _, name := range strings.Fields(want) {
			if s[name] == nil {
				t.Errorf("%s: no %s in %v", file, name, s)
			}
		}
	}
	for _, file := range []string{`{}`, `null`, `3`, `"x"`, `{"linear":{},"x":1}`, `{"type":"accuracy"}`, `{"threshold":1}`} {
		if s, err := SubjectOf(types, json.RawMessage(file)); err == nil || !strings.Contains(err.Error(), "neither a model (kernel, linear, mixture, neighbors, network, softmax, trees") {
			t.Errorf("%s: %v %v", file, s, err)
		}
	}
}

// TestQuery: every metric makes a compare that the server can read, with the candidate as what may be better. It notices a and b exchanged, and a
// loss of which more is better.
func TestQuery(t *testing.T) {
	types := members.Types()
	if n := len(Metrics(types)); n < 15 {
		t.Errorf("%d metrics", n)
	}
	for _, name := range Metrics(types) {
		m, err := MetricOf(types, name)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]json.RawMessage{"label": json.RawMessage(`"delay > 15"`)}
		switch {
		case strings.HasSuffix(name, "pinball"):
			of["quantile"], of["range"] = json.RawMessage(`0.5`), json.RawMessage(`[0,100]`)
		case m.Type == "loss" && (string(m.Loss) == `"hinge"` || string(m.Loss) == `"squared"` || string(m.Loss) == `"absolute"`):
			of["range"] = json.RawMessage(`[0,100]`)
		}
		q, err := Query(types, m, Subject{"model": json.RawMessage(linear)}, Subject{"model": json.RawMessage(trees)}, 0.01, of, map[string]json.RawMessage{"where": json.RawMessage(`"distance < 500"`)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := queries.Parse(q); err != nil {
			t.Errorf("%s: %s: %v", name, q, err)
		}
		var is struct {
			A, B  struct{ Model map[string]any }
			By    float64
			Least bool
			Where string
		}
		if err := json.Unmarshal(q, &is); err != nil || is.A.Model["linear"] == nil || is.B.Model["trees"] == nil || is.By != 0.01 || is.Least != (m.Type == "loss") || is.Where == "" {
			t.Errorf("%s: %s %v", name, q, err)
		}
	}
	for name, want := range map[string]string{"acuracy": "did you mean accuracy?", "precision": "not the mean of something in each row", "zebra": "there are accuracy, balanced_accuracy, auc"} {
		if m, err := MetricOf(types, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v", name, m, err)
		}
	}
	accuracy, _ := MetricOf(types, "accuracy")
	for _, by := range []float64{-0.01, math.NaN(), math.Inf(1)} {
		if q, err := Query(types, accuracy, Subject{}, Subject{}, by, nil, nil); err == nil {
			t.Errorf("by %v: %s", by, q)
		}
	}
	if q, err := Query(types, accuracy, Subject{}, Subject{}, 0, map[string]json.RawMessage{"edges": nil}, nil); err == nil || !strings.Contains(err.Error(), "accuracy has no edges") {
		t.Errorf("%s %v", q, err)
	}
}

// TestKeys: the same question to the same holdout has the same key, and no other one has.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, holdout := range []string{"ho_1", "ho_2"} {
		for i := range 3 {
			k := Key(holdout, fmt.Appendf(nil, "query %d", i))
			if seen[k] || k != Key(holdout, fmt.Appendf(nil, "query %d", i)) || len(k) > 255 {
				t.Error(k)
			}
			seen[k] = true
		}
	}
}

// TestReadsTruth: a model that reads what it is to predict passes every gate, rightly by the numbers. It notices one of which nothing is said.
func TestReadsTruth(t *testing.T) {
	for _, c := range []struct{ truth, file, want string }{
		{"delay > 15", `{"model":{"linear":{"weights":{"delay":1,"distance":2}}}}`, "delay"},
		{"delay > 15", `{"model":{"linear":{"weights":{"distance":2}}}}`, ""},
		{"delay", `{"prediction":"delay > 15 || distance > 3"}`, "delay"},
		{"delay + distance", `{"prediction":"distance > delay"}`, "delay distance"},
		{"delay", `{"model":{"linear":{"weights":{"a":1}}},"features":{"a":"distance + delay"}}`, "delay"},
		{"delay", `{"model":{"linear":{"weights":{"delay":1}}},"features":{"delay":"distance + 1.0"}}`, ""}, // a name that is computed
		{"delay", `{"model":{"linear":{"weights":{"a":1}},"features":{"a":"distance + delay"}}}`, "delay"},
		{"delay", `{"model":{"linear":{"weights":{"delay":1}},"features":{"delay":"distance + 1.0"},"threshold":0}}`, ""},
		{"delay", `{"model":{"linear":{"weights":{"delay":1,"b":1}},"features":{"b":"distance + 1.0"},"threshold":0}}`, "delay"},
		{"my label", `{"model":{"linear":{"weights":{"my label":1}}}}`, "my label"},
		{"delay", `{"predictions":[1,2]}`, ""},
		{"delay >", `{"prediction":"delay >"}`, ""},
		{"", `{"prediction":"delay > 1"}`, ""},
		{"delay", `{"model":5,"prediction":6,"features":7}`, ""},
	} {
		var s Subject
		if err := json.Unmarshal([]byte(c.file), &s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(ReadsTruth(c.truth, []string{"delay", "distance", "my label"}, s), " "); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.file, c.truth, got, c.want)
		}
	}
}
