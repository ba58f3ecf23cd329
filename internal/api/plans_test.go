package api

import (
	"math"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

func TestPlans(t *testing.T) {
	s := start(t, Options{})
	r := s.post("/v1/plans", `{"n":100000,"questions":1000}`)
	if r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	var report compare.Report
	r.decode(t, &report)
	if report.Confidence != 0.95 || report.Recommended == "" {
		t.Errorf("%s", r.body)
	}
	want, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 100_000, Questions: 1000})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range report.Methods {
		if m.Method == "adaptive-hoeffding-scheduled" {
			found = m.HalfWidth != nil && math.Abs(*m.HalfWidth-want.HalfWidth) < 1e-9
		}
	}
	if !found {
		t.Errorf("no half-width of %v for adaptive-hoeffding-scheduled: %s", want.HalfWidth, r.body)
	}
}

// TestPlanOfAWorkload asks as a client does. It notices a workload that the wire does not let through, and an empty one.
func TestPlanOfAWorkload(t *testing.T) {
	s := start(t, Options{})
	r := s.post("/v1/plans", `{"n":60000,"training":140000,"workload":"60 accuracy, 20 mean in 0..20 sd 3"}`)
	var report struct {
		Workload struct {
			Items []struct{ Count int64 }
			Plans []struct{ Questions int64 }
		}
	}
	r.decode(t, &report)
	w := report.Workload
	if r.StatusCode != 200 || len(w.Items) != 2 || w.Items[0].Count != 60 || w.Items[1].Count != 20 || len(w.Plans) == 0 || w.Plans[0].Questions < 80 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if p := s.post("/v1/plans", `{"n":60000,"workload":"60 acuracy"}`).problem(t); p.Status != 422 || p.Errors[0].Pointer != "/workload" {
		t.Errorf("%+v", p)
	}
}

func TestPlansRefuse(t *testing.T) {
	s := start(t, Options{})
	for _, c := range []struct {
		body   string
		status int
		at     string
	}{
		{``, 400, ""},
		{`{"n":10,"n":11}`, 400, ""},
		{`{}`, 422, ""},
		{`{"n":"many","questions":5}`, 422, "/n"},
		{`{"n":1000,"questions":1.5}`, 422, "/questions"},
		{`{"n":1000,"questions":-1}`, 422, "/questions"},
		{`{"n":1000,"questions":5,"confidence":1}`, 422, "/confidence"},
		{`{"n":1000,"questions":5,"confidence":1e-300}`, 422, "/confidence"},
		{`{"n":60000,"workload":"60 accuracy","confidence":1e-300}`, 422, "/confidence"},
		{`{"n":60000,"workload":"1 mean in -1e308..1e308"}`, 422, "/workload"},
		{`{"n":60000,"workload":"1 median in 0..1e308"}`, 422, "/workload"},
		{`{"n":1000,"questions":5,"published":"yes"}`, 422, "/published"},
		{`{"n":1000,"question":5}`, 422, "/question"},
		{`{"n":1000,"questions":5,"rounds":6}`, 422, "/rounds"},
	} {
		r := s.post("/v1/plans", c.body)
		p := r.problem(t)
		at := ""
		if len(p.Errors) > 0 {
			at = p.Errors[0].Pointer
		}
		if r.StatusCode != c.status || at != c.at {
			t.Errorf("%s: %d at %q, want %d at %q: %s", c.body, r.StatusCode, at, c.status, c.at, r.body)
		}
	}
	if r := s.send("POST", "/v1/plans", strings.NewReader(`{"n":10,"questions":1}`), "Authorization: "); r.StatusCode != 401 {
		t.Errorf("without a key: %d", r.StatusCode)
	}
}
