package api

import (
	"encoding/json"
	"strings"
	"testing"
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
	{"ask", `"query":{"type":"argmax","of":[{"type":"fraction","of":"delay > 15","where":"origin == 'SFO'"},{"type":"fraction","of":"delay > 15","where":"origin == 'LAX'"}],"names":["SFO","LAX"]},"max_questions":10`, ""},
	{"ask", `"query":{"type":"accuracy","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003},"link":"logit"}}}`, ""},
	{"ask", `"query":{"type":"accuracy","label":"delay > 15","model":{"trees":{"trees":[{"feature":"distance","threshold":700,"left":0.1,"right":0.3}]}}}`, ""},
	{"ask", `"query":{"type":"auc","label":"delay > 15","prediction":"distance / 3000"}`, ""},
	{"ask", `"query":{"type":"recall","label":"delay > 15","prediction":"distance > 1000"}`, ""},
	{"explain", `"query":{"type":"loss","loss":"log","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003,"origin":{"SFO":0.2}},"link":"logit"}}}`, ""},
	{"ask", `"query":{"type":"rmse","label":"delay","prediction":"distance * 0.01","max_error":120}`, ""},
	{"explain", `"query":{"type":"calibration","label":"delay > 15","model":{"linear":{"intercept":-1.2,"weights":{"distance":0.0003},"link":"logit"}},"edges":[0,0.2,0.3,1]}`, ""},
	{"ask", `"query":{"type":"screen","label":"delay > 15","features":["distance"],"range":[0,3000]}`, ""},
	{"ask", `"query":{"type":"count","where":"date.getMonth() == 0"}`, ""},
	{"ask", `"query":{"type":"groups","of":"delay > 15","by":"date.getDayOfWeek()","values":[0,1,2,3,4,5,6]},"max_questions":20`, ""},
	{"compare", `"a":{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},"b":{"type":"accuracy","label":"delay > 15","prediction":"distance > 2000"}`, ""},
	{"compare", `"a":{"type":"rmse","label":"delay","prediction":"5","max_error":120},"b":{"type":"rmse","label":"delay","prediction":"distance * 0.01","max_error":120},"least":true`, ""},
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
	if const28 := 28; accepted < const28-1 || accepted+mended < const28 {
		t.Errorf("%d accepted and %d told what to write, of %d", accepted, mended, len(attempts))
	}
}
