package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// attempts are first calls that were written from the list of tools and the columns alone, before any of them was made: what a model writes that has read no page. They are about the
// flights; 30 more, of the flights and of customers that leave, are in testdata/first-attempts.json, as a host sends them.
var attempts = []struct{ tool, arguments string }{
	{"ask", `"query":{"type":"mean","of":"delay","range":[-60,180]}`},
	{"ask", `"query":{"type":"fraction","of":"delay > 15","where":"origin == 'SFO' && distance > 500"}`},
	{"explain", `"query":{"type":"groups","of":"delay > 15","by":"origin"}`},
	{"ask", `"query":{"type":"groups","of":"delay","range":[-60,180],"by":"origin","values":["SFO","LAX","ORD"]},"max_questions":20`},
	{"ask", `"query":{"type":"groups","of":"delay","range":[-60,180],"by":"distance","edges":[0,500,1000,3000]},"max_questions":20`},
	{"ask", `"query":{"type":"median","of":"delay","range":[-60,180]}`},
	{"ask", `"query":{"type":"quantile","of":"delay","range":[-60,180],"p":0.95,"resolution":1}`},
	{"ask", `"query":{"type":"histogram","of":"distance","edges":[0,250,500,1000,2000,5000]},"max_questions":50`},
	{"ask", `"query":{"type":"frequencies","of":"origin","values":["SFO","LAX"]},"max_questions":10`},
	{"ask", `"query":{"type":"correlation","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000]}`},
	{"explain", `"query":{"type":"covariance","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000],"form":"exact"}`},
	{"ask", `"query":{"type":"difference","of":"delay","range":[-60,180],"between":["origin == 'SFO'","origin == 'LAX'"]}`},
	{"ask", `"query":{"type":"test","test":"two-proportions","of":"delay > 15","between":["distance > 1000","distance <= 1000"]}`},
	{"ask", `"query":{"type":"test","test":"mean","of":"delay","range":[-60,180],"equals":5,"alternative":"greater"}`},
	{"ask", `"query":{"type":"passes","of":{"type":"fraction","of":"delay > 15"},"below":0.25}`},
	{"ask", `"query":{"type":"argmax","of":[{"type":"fraction","of":"delay > 15","where":"origin == 'SFO'"},{"type":"fraction","of":"delay > 15","where":"origin == 'LAX'"}],"names":["SFO","LAX"]},"max_questions":10`},
	{"ask", `"query":{"type":"accuracy","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003},"link":"logit"}}}`},
	{"ask", `"query":{"type":"accuracy","label":"delay > 15","model":{"trees":{"trees":[{"feature":"distance","threshold":700,"left":0.1,"right":0.3}]}}}`},
	{"ask", `"query":{"type":"auc","label":"delay > 15","prediction":"distance / 3000"}`},
	{"ask", `"query":{"type":"recall","label":"delay > 15","prediction":"distance > 1000"}`},
	{"explain", `"query":{"type":"loss","loss":"log","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003,"origin":{"SFO":0.2}},"link":"logit"}}}`},
	{"ask", `"query":{"type":"rmse","label":"delay","prediction":"distance * 0.01","max_error":120}`},
	{"explain", `"query":{"type":"calibration","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003},"link":"logit"}},"edges":[0,0.2,0.3,1]}`},
	{"ask", `"query":{"type":"screen","label":"delay > 15","features":["distance"],"range":[0,3000]}`},
	{"ask", `"query":{"type":"count","where":"date.getMonth() == 0"}`},
	{"ask", `"query":{"type":"groups","of":"delay > 15","by":"date.getDayOfWeek()","values":[0,1,2,3,4,5,6]},"max_questions":20`},
	{"compare", `"a":{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},"b":{"type":"accuracy","label":"delay > 15","prediction":"distance > 2000"}`},
	{"compare", `"a":{"type":"rmse","label":"delay","prediction":"5","max_error":120},"b":{"type":"rmse","label":"delay","prediction":"distance * 0.01","max_error":120},"least":true`},
	{"batch", `"queries":[{"type":"mean","of":"distance","range":[0,3000]},{"type":"stddev","of":"distance","range":[0,3000]},{"type":"fraction","of":"delay == null"}],"max_questions":6`},
	{"explain", `"query":{"type":"mean","of":"log(distance)","range":[3,9],"null":"skip","weight":"row","note":"is it skewed?"}`},
}

// mend is what becomes of an attempt that is refused.
type mend struct {
	says   string   // the part of the sentence that names the change
	change []string // the change: texts of the arguments, each with what to write instead; nil where the sentence leaves something to find
}

// mends are the attempts that are refused, by their number among all, from 1.
var mends = map[int]mend{
	16: {"a loss (squared in place of rmse), of every unit with one vote and without where", []string{`","where":"`, ` && `}},
	18: {`[["distance", 700], 0.1, 0.3]`, []string{`{"feature":"distance","threshold":700,"left":0.1,"right":0.3}`, `[["distance", 700], 0.1, 0.3]`}},
	28: {"a loss (squared in place of rmse)", []string{`"type":"rmse"`, `"type":"loss","loss":"squared"`, `"max_error":120`, `"range":[0,14400]`}},

	31: {`Did you mean timestamp("2023-01-01")?`, []string{`'2023-01-01'`, `timestamp(\"2023-01-01\")`}},
	35: {`a number needs "range": [low, high] to be clamped to`, []string{`"of": "churned"`, `"of": "churned", "range": [0, 1]`}},
	36: {`Did you mean plan == 'basic' && region != null?`, []string{`plan = 'basic' AND region IS NOT NULL`, `plan == 'basic' && region != null`}},
	39: {`write "features": {"x": "contract == 'monthly'"} beside "model", and "x" in the model`, []string{`"model"`, `"features": {"x": "contract == 'monthly'"}, "model"`, `"contract == 'monthly'": 0.9`, `"x": 0.9`}},
	41: {`[["tenure", 12], 0.6, ["support_calls", 2.5], 0.1, 0.4]`, []string{
		`{"feature": "tenure", "threshold": 12, "left": {"value": 0.6}, "right": {"feature": "support_calls", "threshold": 2.5, "left": {"value": 0.1}, "right": {"value": 0.4}}}`,
		`[["tenure", 12], 0.6, ["support_calls", 2.5], 0.1, 0.4]`}},
	43: {`the inputs are in "weights": {"distance": [0.1, -0.2], …}`, nil}, // whether a list of weights is a unit's or an input's is the model's to say
	44: {`each model has its own: "models": [{"model": {"linear": …}, "weight": 0.5}, …]`, []string{
		`{"linear": {"intercept": -1, "weights": {"tenure": -0.04}, "link": "logit"}}`, `{"model": {"linear": {"intercept": -1, "weights": {"tenure": -0.04}, "link": "logit"}}, "weight": 0.5}`,
		`{"linear": {"intercept": -2, "weights": {"support_calls": 0.5}, "link": "logit"}}`, `{"model": {"linear": {"intercept": -2, "weights": {"support_calls": 0.5}, "link": "logit"}}, "weight": 0.5}`,
		`, "weights": [0.5, 0.5]`, ``}},
	48: {`ask for fractions instead, such as {"of":"tenure <= 36","type":"fraction","where":"churned == 1"}`, nil}, // it is told next what the auc costs, which is more than the call may
	51: {`"range" is missing: [low, high]: features are clamped to it. At /query/columns: unknown member; a screen has type, label, features, statistic, range, range_label, clip, note. Did you mean features?`,
		[]string{`"columns"`, `"range": [0, 9000], "features"`}},
	53: {`At /query/max_questions: is an argument of the call: write it beside the query, not in it.`, []string{`, "max_questions": 3}`, `}, "max_questions": 3`}},
	54: {`must be an object with a type, not a text that holds one`, []string{`"{`, `{`, `}"`, `}`, `\"`, `"`}},
	56: {`all values are [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]`, []string{`"by"`, `"values": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "by"`}},
	57: {`Did you mean origin.startsWith('S') || destination in ['JFK', 'LGA']?`, []string{`destination in ('JFK', 'LGA')`, `destination in ['JFK', 'LGA']`}},
	58: {`write "features": {"x": "date.getHours()"} beside "model", and "x" in the model`, []string{`"model"`, `"features": {"x": "date.getHours()"}, "model"`, `"date.getHours()": 0.6`, `"x": 0.6`}},
	59: {`half_width, measure, note; leave it out`, []string{`, "promise": {"half_width": 0.05}`, ``}},
	60: {`Did you mean range_x?`, []string{`"range": [[0, 3000], [-60, 180]]`, `"range_x": [0, 3000], "range_y": [-60, 180]`}},
}

// leastAccepted is how many of the attempts were accepted when they were first made, and leastTold how many are that, or are once the change is made that their refusal names.
const (
	leastAccepted = 27
	leastTold     = 58
)

// TestFirstAttempts: of the questions that a model writes from the list alone nearly all are accepted, and the others are answered with what to write instead, which is accepted then. What
// is left out of the list, or misread in it, turns it red.
func TestFirstAttempts(t *testing.T) {
	agents, units := frozenHoldouts(t)
	type asked struct {
		Tool      string
		Arguments json.RawMessage
	}
	var all []asked
	for _, c := range attempts {
		all = append(all, asked{c.tool, json.RawMessage(`{"holdout":"flights",` + c.arguments + `}`)})
	}
	var more []asked
	if err := json.Unmarshal(fixture(t, "first-attempts.json"), &more); err != nil {
		t.Fatal(err)
	}
	all = append(all, more...)
	predictions, _ := json.Marshal(make([]float64, units))
	accepted, told := 0, 0
	for i, c := range all {
		var target struct{ Holdout string }
		if err := json.Unmarshal(c.Arguments, &target); err != nil {
			t.Fatalf("attempt %d: %v", i+1, err)
		}
		a := agents[target.Holdout]
		arguments := strings.ReplaceAll(string(c.Arguments), `"$predictions"`, string(predictions)) // of each row one, which a model has and a list of texts has not
		sentence, _, refused := a.call(c.Tool, arguments)
		m, listed := mends[i+1]
		switch {
		case refused != listed || !strings.Contains(sentence, m.says):
			t.Errorf("attempt %d: %s %s:\n%s", i+1, c.Tool, c.Arguments, sentence)
		case !refused:
			accepted++
		case m.change != nil:
			changed := strings.NewReplacer(m.change...).Replace(arguments)
			if sentence, _, refused := a.call(c.Tool, changed); refused {
				t.Errorf("attempt %d, with the change that it is told: %s:\n%s", i+1, changed, sentence)
				continue
			}
			told++
		}
	}
	t.Logf("%d of %d first attempts are accepted, %d are told the change with which they are", accepted, len(all), told)
	if accepted < leastAccepted || accepted+told < leastTold {
		t.Errorf("%d of %d are accepted and %d told what to change; at least %d were, and %d in all", accepted, len(all), told, leastAccepted, leastTold)
	}
}

// frozenHoldouts are the holdouts that the attempts name, each with an agent. A table is asked in one holdout of a server, so the same customers are on three. units are how many numbers
// "predictions" has.
func frozenHoldouts(t *testing.T) (agents map[string]*agent, units int64) {
	agents = map[string]*agent{}
	first := start(t, Options{})
	first.upload("name=flights&questions=1000")
	agents["flights"] = first.agent(first.key)
	for name, parameters := range map[string]string{"churn": "questions=1000", "churn in rounds": "questions=40&rounds=8", "churn with public features": "questions=1000&features=public"} {
		s := first
		if name != "churn" {
			s = start(t, Options{})
		}
		var card holdout.Card
		r := s.send("POST", "/v1/holdouts?label=churned&name="+url.QueryEscape(name)+"&"+parameters, bytes.NewReader(fixture(t, "churn.parquet")))
		if r.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, r.StatusCode, r.body)
		}
		r.decode(t, &card)
		agents[name] = s.agent(s.key)
		if card.Settings.Features == "public" {
			units = card.Units.Check + card.Units.Holdout
		}
	}
	return agents, units
}

// TestRoundsForAgents: one question does not end a round by accident, a batch asks it whole, and want of tokens is not called a spent budget.
func TestRoundsForAgents(t *testing.T) {
	s := start(t, Options{})
	_, card := s.upload("name=rounds&questions=4&rounds=2&label=delay")
	a := s.agent(s.key)
	target := `{"holdout":"` + card.ID + `",`
	share := `{"type":"fraction","of":"delay > 15"}`
	for _, more := range []string{"", `,"max_questions":1`} {
		sentence, _, refused := a.call("ask", target+`"query":`+share+more+`}`)
		if !refused || !strings.Contains(sentence, "would end a round of 2 questions, and 1 of them would be lost") || !strings.Contains(sentence, "max_questions=2") {
			t.Errorf("%s: %s", more, sentence)
		}
	}
	if sentence, _, refused := a.call("batch", target+`"queries":[`+share+`,{"type":"fraction","of":"delay > 30"}]}`); refused || !strings.Contains(sentence, "2 of 4 questions in 1 of 2 rounds left") {
		t.Errorf("a whole round: %s", sentence)
	}
	if sentence, _, refused := a.call("ask", target+`"query":{"type":"fraction","of":"delay > 45"},"max_questions":2}`); refused || !strings.Contains(sentence, "0 of 4 questions") {
		t.Errorf("a loss that is meant: %s", sentence)
	}
	p := problem(classes[holdout.BudgetExhausted], "the question needs 30 tokens and 20 are left")
	p.members = map[string]any{"meter": "tokens", "requested": int64(30), "remaining": int64(20), "questions_left": int64(989)}
	for _, left := range []int64{20, 0} {
		p.members["remaining"] = left
		if said := refusalSentence(p); strings.Contains(said, "budget is spent") || strings.Contains(said, "other wordings") || !strings.Contains(said, "989 questions are left") {
			t.Errorf("%s", said)
		}
	}
}
