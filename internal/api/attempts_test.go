package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// attempts are first calls that were written from the list of tools and the columns alone, before any of them was made: what a model writes that has read no page. mend is the part of the
// sentence that says what to write instead, of those that are not accepted.
var attempts = []struct{ tool, arguments, mend string }{
	{"ask", `"query":{"type":"mean","of":"delay","range":[-60,180]}`, ""},
	{"ask", `"query":{"type":"fraction","of":"delay > 15","where":"origin == 'SFO' && distance > 500"}`, ""},
	{"explain", `"query":{"type":"groups","of":"delay > 15","by":"origin"}`, ""},
	{"ask", `"query":{"type":"groups","of":"delay","range":[-60,180],"by":"origin","values":["SFO","LAX","ORD"]},"max_questions":20`, ""},
	{"ask", `"query":{"type":"groups","of":"delay","range":[-60,180],"by":"distance","edges":[0,500,1000,3000]},"max_questions":20`, ""},
	{"ask", `"query":{"type":"median","of":"delay","range":[-60,180]}`, ""},
	{"ask", `"query":{"type":"quantile","of":"delay","range":[-60,180],"p":0.95,"resolution":1}`, ""},
	{"ask", `"query":{"type":"histogram","of":"distance","edges":[0,250,500,1000,2000,5000]},"max_questions":50`, ""},
	{"ask", `"query":{"type":"frequencies","of":"origin","values":["SFO","LAX"]},"max_questions":10`, ""},
	{"ask", `"query":{"type":"correlation","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000]}`, ""},
	{"explain", `"query":{"type":"covariance","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000],"form":"exact"}`, ""},
	{"ask", `"query":{"type":"difference","of":"delay","range":[-60,180],"between":["origin == 'SFO'","origin == 'LAX'"]}`, ""},
	{"ask", `"query":{"type":"test","test":"two-proportions","of":"delay > 15","between":["distance > 1000","distance <= 1000"]}`, ""},
	{"ask", `"query":{"type":"test","test":"mean","of":"delay","range":[-60,180],"equals":5,"alternative":"greater"}`, ""},
	{"ask", `"query":{"type":"passes","of":{"type":"fraction","of":"delay > 15"},"below":0.25}`, ""},
	{"ask", `"query":{"type":"argmax","of":[{"type":"fraction","of":"delay > 15","where":"origin == 'SFO'"},{"type":"fraction","of":"delay > 15","where":"origin == 'LAX'"}],"names":["SFO","LAX"]},"max_questions":10`, "a loss (squared in place of rmse), of every unit with one vote and without where"},
	{"ask", `"query":{"type":"accuracy","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003},"link":"logit"}}}`, ""},
	{"ask", `"query":{"type":"accuracy","label":"delay > 15","model":{"trees":{"trees":[{"feature":"distance","threshold":700,"left":0.1,"right":0.3}]}}}`, `must be a list of nodes in preorder, such as [["distance", 700], 0.1, 0.3]`},
	{"ask", `"query":{"type":"auc","label":"delay > 15","prediction":"distance / 3000"}`, ""},
	{"ask", `"query":{"type":"recall","label":"delay > 15","prediction":"distance > 1000"}`, ""},
	{"explain", `"query":{"type":"loss","loss":"log","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003,"origin":{"SFO":0.2}},"link":"logit"}}}`, ""},
	{"ask", `"query":{"type":"rmse","label":"delay","prediction":"distance * 0.01","max_error":120}`, ""},
	{"explain", `"query":{"type":"calibration","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003},"link":"logit"}},"edges":[0,0.2,0.3,1]}`, ""},
	{"ask", `"query":{"type":"screen","label":"delay > 15","features":["distance"],"range":[0,3000]}`, ""},
	{"ask", `"query":{"type":"count","where":"date.getMonth() == 0"}`, ""},
	{"ask", `"query":{"type":"groups","of":"delay > 15","by":"date.getDayOfWeek()","values":[0,1,2,3,4,5,6]},"max_questions":20`, ""},
	{"compare", `"a":{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},"b":{"type":"accuracy","label":"delay > 15","prediction":"distance > 2000"}`, ""},
	{"compare", `"a":{"type":"rmse","label":"delay","prediction":"5","max_error":120},"b":{"type":"rmse","label":"delay","prediction":"distance * 0.01","max_error":120},"least":true`, "a loss (squared in place of rmse)"},
	{"batch", `"queries":[{"type":"mean","of":"distance","range":[0,3000]},{"type":"stddev","of":"distance","range":[0,3000]},{"type":"fraction","of":"delay == null"}],"max_questions":6`, ""},
	{"explain", `"query":{"type":"mean","of":"log(distance)","range":[3,9],"null":"skip","weight":"row","note":"is it skewed?"}`, ""},
}

// TestFirstAttempts: of the questions that a model writes from the list alone nearly all are accepted, and the others are answered with what to write instead. What is left out of the list, or misread in it,
// turns it red.
func TestFirstAttempts(t *testing.T) {
	s := start(t, Options{})
	_, card := s.upload("name=flights&questions=1000")
	a := s.agent(s.key)
	accepted, mended := 0, 0
	for i, c := range attempts {
		arguments := `{"holdout":"` + card.Name + `",` + c.arguments + `}`
		if !json.Valid([]byte(arguments)) {
			t.Fatalf("attempt %d is no JSON: %s", i+1, arguments)
		}
		sentence, _, refused := a.call(c.tool, arguments)
		switch {
		case !refused && c.mend == "":
			accepted++
		case refused && c.mend != "" && strings.Contains(sentence, c.mend):
			mended++
		default:
			t.Errorf("attempt %d: %s %s:\n%s", i+1, c.tool, c.arguments, sentence)
		}
	}
	t.Logf("%d of %d first attempts are accepted, %d are told what to write", accepted, len(attempts), mended)
	if accepted < leastAccepted {
		t.Errorf("%d of %d are accepted, at least %d were", accepted, len(attempts), leastAccepted)
	}
}

// leastAccepted is how many attempts were accepted when they were first made.
const leastAccepted = 27

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
