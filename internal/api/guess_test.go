package api

import (
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestGuesses: auto takes guess_and_check for a random split; a guess with its own width is checked at it; one that cannot pass
// is refused with what could; tokens are on the meter.
func TestGuesses(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.4&questions=100&tokens=2")
	if card.Guarantee.Mechanism != "guess_and_check" || card.Settings.Mechanism != "guess_and_check" || card.Assumes == "" || !card.Guarantee.TakesGuesses() {
		t.Errorf("card: %+v", card)
	}
	var reply struct {
		Answer struct {
			Value    float64
			Source   string
			Interval struct{ Low, High float64 }
			Cost     holdout.Cost
		}
		Budget holdout.Budget
	}
	r := s.post(path+"/queries", `{"type":"mean","of":"delay","range":[-60,180],"guess":10,"half_width":30}`)
	r.decode(t, &reply)
	if a := reply.Answer; r.StatusCode != 200 || a.Source != "guess" || a.Interval.Low < -20.0001 || a.Interval.High > 40.0001 || a.Interval.Low > a.Value || a.Interval.High < a.Value {
		t.Errorf("a guess: %d %s", r.StatusCode, r.body)
	}
	r = s.post(path+"/queries", `{"type":"mean","of":"delay","range":[-60,180],"guess":10,"half_width":0.1}`)
	if p := r.problem(t); r.StatusCode != 422 || p.Code != "invalid" || !strings.Contains(string(r.body), `"least":`) || !strings.Contains(string(r.body), "half_width") {
		t.Errorf("a half-width that cannot pass: %d %s", r.StatusCode, r.body)
	}
	r = s.post(path+"/queries", `{"type":"mean","of":"delay","range":[-60,180],"weights":{"of":"distance","range":[0,3000]},"guess":10}`)
	r.decode(t, &reply)
	if a := reply.Answer; r.StatusCode != 200 || a.Source != "guess" || a.Cost != (holdout.Cost{Questions: 1}) {
		t.Errorf("a guess of a weighted mean: %d %s", r.StatusCode, r.body)
	}
	for i, guess := range []string{"170", "171"} {
		r = s.post(path+"/queries", `{"type":"mean","of":"delay","range":[-60,180],"guess":`+guess+`}`)
		r.decode(t, &reply)
		if reply.Answer.Source != "holdout" || reply.Answer.Cost.Tokens != 1 || *reply.Budget.Tokens != (holdout.Meter{Left: int64(1 - i), Of: 2}) {
			t.Errorf("a wrong guess: %d %s", r.StatusCode, r.body)
		}
	}
	r = s.post(path+"/queries", `{"type":"fraction","of":"delay > 15"}`)
	if p := r.problem(t); r.StatusCode != 403 || p.Code != "budget-exhausted" || !strings.Contains(string(r.body), `"meter":"tokens"`) {
		t.Errorf("without tokens: %d %s", r.StatusCode, r.body)
	}
}
