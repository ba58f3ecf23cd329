package api

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestCellsOverHTTP: a holdout of declared cells from its plan to its last answer, as a client goes: planned, refused while its cells are wrong, created, asked one by one and in a batch, refused what is not about cells with what to write, replayed, and its
// history has a debit for each answer.
func TestCellsOverHTTP(t *testing.T) {
	s := start(t, Options{}, holdout.Limits{})
	var plan PlanReport
	s.post("/v1/plans", `{"n":1500,"questions":1000000,"cells":12}`).decode(t, &plan)
	row := plan.Methods[len(plan.Methods)-1]
	width := math.Sqrt((12*math.Ln2 + math.Log(20)) / (2 * 1500))
	if plan.Recommended != "cells" || plan.Cells != 12 || row.Method != "cells" || row.Mechanism != "cells" || row.HalfWidth == nil || math.Abs(*row.HalfWidth-width) > 1e-12 {
		t.Errorf("planned %+v, %+v", plan.Recommended, row)
	}
	if p := s.post("/v1/plans", `{"n":1500,"questions":10,"cells":1}`).problem(t); p.Status != 422 || p.Errors[0].Pointer != "/cells" {
		t.Errorf("%+v", p)
	}
	file := fixture(t, "flights-5k.parquet")
	for _, c := range []struct{ cells, want string }{{"", "cells is missing"}, {"delay:15", "must be a JSON object"}, {`{"delays":[15]}`, "did you mean delay"}, {`{"delay":["late"]}`, "has numbers"}} {
		given := url.Values{"name": {"f"}, "mechanism": {"cells"}}
		if c.cells != "" {
			given.Set("cells", c.cells)
		}
		r := s.send(http.MethodPost, "/v1/holdouts?"+given.Encode(), bytes.NewReader(file))
		if p := r.problem(t); p.Status != 422 || !strings.Contains(p.Detail, c.want) || len(p.Errors) != 1 || p.Errors[0].Parameter != "cells" {
			t.Errorf("%s: %d %s", c.cells, r.StatusCode, r.body)
		}
	}
	path, card := s.upload(url.Values{"name": {"flights"}, "mechanism": {"cells"}, "cells": {`{"delay":[0,15,null],"distance":[500,1000]}`}}.Encode())
	if card.Settings.Cells != `{"delay":[0,15,null],"distance":[500,1000]}` || card.Units.Holdout != 1500 || math.Abs(card.Guarantee.HalfWidth-width) > 1e-12 {
		t.Fatalf("%+v", card)
	}
	one := s.post(path+"/queries", `{"type":"fraction","of":"delay >= 15"}`)
	var reply AskReply
	if one.StatusCode != 200 {
		t.Fatalf("%d %s", one.StatusCode, one.body)
	}
	one.decode(t, &reply)
	if a := reply.Answer; a.Cost.Questions != 1 || a.Value == nil || *a.Interval.High-*a.Interval.Low > 2*width+1e-8 {
		t.Errorf("%s", one.body)
	}
	asked := []string{`{"type":"fraction","of":"delay >= 15"}`}
	for i := range 40 {
		asked = append(asked, fmt.Sprintf(`{"type":"mean","of":"delay >= 15 ? %d.0 : distance >= 1000 ? 1.0 : 0.0","range":[0,50]}`, i+2))
	}
	batch := s.post(path+"/queries/batch", `{"queries":[`+strings.Join(asked, ",")+`]}`)
	if batch.StatusCode != 200 {
		t.Fatalf("%d %s", batch.StatusCode, batch.body)
	}
	for query, mend := range map[string]string{`{"type":"fraction","of":"delay > 15"}`: "write delay >= 15", `{"type":"mean","of":"delay","range":[0,100]}`: "delay >= 0", `{"type":"fraction","of":"delay >= 15 && distance >= 700"}`: "The edges are 500, 1000"} {
		r := s.post(path+"/queries", query)
		if p := r.problem(t); p.Status != 422 || !strings.Contains(p.Detail, mend) {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.body)
		}
	}
	var budget struct{ Questions struct{ Left, Of int64 } }
	s.get(path+"/budget").decode(t, &budget)
	if spent := budget.Questions.Of - budget.Questions.Left; spent != 41 {
		t.Errorf("%d questions are spent of 41", spent)
	}
	if all := s.history(t, path, 100); len(all) != 41 {
		t.Errorf("%d answers in the history, of 41", len(all))
	}
}
