package api

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestRetireOverHTTP: rows are not there before a holdout is retired, and are downloads after it; new questions are refused, recorded ones replay.
func TestRetireOverHTTP(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&questions=20&mechanism=gaussian")
	const asked, other = `{"type":"fraction","of":"delay > 15"}`, `{"type":"fraction","of":"delay > 30"}`
	status := func(r result, want int) result {
		t.Helper()
		if r.StatusCode != want {
			t.Fatalf("%d %s, want %d", r.StatusCode, r.body, want)
		}
		return r
	}
	status(s.post(path+"/queries", asked), http.StatusOK)
	status(s.get(path+"/released/holdout"), http.StatusNotFound)
	var card holdout.Card
	status(s.post(path+"/retire", ""), http.StatusOK).decode(t, &card)
	if card.Ended != "retired" || card.Budget.Questions.Left != 0 {
		t.Errorf("%+v", card)
	}
	if r := status(s.get(path+"/released/holdout"), http.StatusOK); !bytes.HasPrefix(r.body, []byte("PAR1")) {
		t.Errorf("%.20q", r.body)
	}
	status(s.get(path+"/released/training"), http.StatusUnprocessableEntity)
	status(s.post(path+"/queries", asked), http.StatusOK)
	if r := s.post(path+"/queries", other); r.StatusCode < 400 || r.StatusCode >= 500 {
		t.Errorf("a new question: %d %s", r.StatusCode, r.body)
	}
}
