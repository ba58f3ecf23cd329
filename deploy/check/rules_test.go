package check

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// TestRules reads the alerts as Prometheus does, and evaluates each on series where it must fire, and on those of a healthy pair of replicas, where none may.
func TestRules(t *testing.T) {
	text, err := os.ReadFile("../prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	p := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, p, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	const healthy = `
up{job="holdoutd",instance="a"} 1x60
up{job="holdoutd",instance="b"} 1x60
holdoutd_build_info{job="holdoutd",instance="a",version="v1"} 1x60
holdoutd_build_info{job="holdoutd",instance="b",version="v1"} 1x60
holdoutd_http_requests_total{job="holdoutd",instance="a",route="/v1/holdouts/:id/queries",status="200"} 0+600x60
holdoutd_http_requests_total{job="holdoutd",instance="a",route="/v1/holdouts/:id/queries",status="500"} 0x60
holdoutd_http_requests_total{job="holdoutd",instance="a",route="/v1/holdouts/:id/queries",status="503"} 0+3x60
holdoutd_ready{job="holdoutd",instance="a"} 1x60
holdoutd_ledger_failures_total{job="holdoutd",instance="a"} 4x60
holdoutd_voids_total{job="holdoutd",instance="a"} 1x60
holdoutd_holdouts{job="holdoutd",instance="a",state="rolled-back"} 0x60
holdoutd_holdouts{job="holdoutd",instance="a",state="damaged"} 0x60
holdoutd_holdouts{job="holdoutd",instance="a",state="changed"} 0x60
holdoutd_holdouts{job="holdoutd",instance="a",state="restored"} 0x60
holdoutd_problems_total{job="holdoutd",instance="a",code="busy"} 0+1x60
holdoutd_budget_limit{job="holdoutd",instance="a",holdout="ho_1",meter="questions"} 1000x60
holdoutd_budget_left{job="holdoutd",instance="a",holdout="ho_1",meter="questions"} 900-10x60
holdoutd_budget_left{job="holdoutd",instance="b",holdout="ho_1",meter="questions"} 900-10x60
process_open_fds{job="holdoutd",instance="a"} 100x60
process_max_fds{job="holdoutd",instance="a"} 1024x60
`
	sick := map[string]string{ // in place of the healthy series with the same name and labels
		"HoldoutdDown":             `up{job="holdoutd",instance="b"} 0x60`,
		"HoldoutdAllDown":          "up{job=\"holdoutd\",instance=\"a\"} 0x60\nup{job=\"holdoutd\",instance=\"b\"} 0x60",
		"HoldoutdFails":            `holdoutd_http_requests_total{job="holdoutd",instance="a",route="/v1/holdouts/:id/queries",status="500"} 0+1x60`,
		"HoldoutdUnavailable":      `holdoutd_http_requests_total{job="holdoutd",instance="a",route="/v1/holdouts/:id/queries",status="503"} 0+100x60`,
		"HoldoutdVersionsDiffer":   `holdoutd_build_info{job="holdoutd",instance="b",version="v2"} 1x60`,
		"HoldoutdNotReady":         `holdoutd_ready{job="holdoutd",instance="a"} 0x60`,
		"HoldoutdLedgerFails":      `holdoutd_ledger_failures_total{job="holdoutd",instance="a"} 0+1x60`,
		"HoldoutdRolledBack":       `holdoutd_holdouts{job="holdoutd",instance="a",state="rolled-back"} 1x60`,
		"HoldoutdDamaged":          `holdoutd_holdouts{job="holdoutd",instance="a",state="damaged"} 2x60`,
		"HoldoutdSourceChanged":    `holdoutd_holdouts{job="holdoutd",instance="a",state="changed"} 1x60`,
		"HoldoutdRestored":         `holdoutd_holdouts{job="holdoutd",instance="a",state="restored"} 1x60`,
		"HoldoutdVoid":             `holdoutd_voids_total{job="holdoutd",instance="a"} 0x50 3x10`,
		"HoldoutdBusy":             `holdoutd_problems_total{job="holdoutd",instance="a",code="busy"} 0+60x60`,
		"HoldoutdBudgetLow":        `holdoutd_budget_limit{job="holdoutd",instance="a",holdout="ho_1",meter="questions"} 100000x60`,
		"HoldoutdReplicasDisagree": `holdoutd_budget_left{job="holdoutd",instance="b",holdout="ho_1",meter="questions"} 900x60`,
		"HoldoutdOpenFiles":        `process_open_fds{job="holdoutd",instance="a"} 1000x60`,
	}
	alerts := map[string]bool{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			alerts[r.Alert] = true
			if r.Labels["severity"] != "page" && r.Labels["severity"] != "ticket" || r.Annotations["summary"] == "" {
				t.Errorf("%s has no severity or no summary", r.Alert)
			}
			if n := fires(t, r.Expr, healthy); n > 0 {
				t.Errorf("%s fires for healthy replicas", r.Alert)
			}
			series, ok := sick[r.Alert]
			if !ok {
				t.Errorf("there is no case in which %s fires", r.Alert)
				continue
			}
			lines := strings.Split(healthy, "\n")
			for line := range strings.SplitSeq(series, "\n") {
				name, _, _ := strings.Cut(line, " ")
				for i := range lines {
					if strings.HasPrefix(lines[i], name+" ") {
						lines[i] = ""
					}
				}
				lines = append(lines, line)
			}
			if fires(t, r.Expr, strings.Join(lines, "\n")) == 0 {
				t.Errorf("%s does not fire at %s", r.Alert, series)
			}
		}
	}
	for name := range sick {
		if !alerts[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// fires evaluates an expression after an hour of series, one sample a minute.
func fires(t *testing.T, expr, series string) int {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 1m\n")
	for line := range strings.SplitSeq(series, "\n") {
		if strings.TrimSpace(line) != "" {
			load.WriteString("  " + line + "\n")
		}
	}
	storage := promqltest.LoadedStorage(t, load.String())
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	q, err := engine.NewInstantQuery(t.Context(), storage, nil, expr, time.Unix(0, 0).Add(58*time.Minute))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	if result.Err != nil {
		t.Fatalf("%s: %v", expr, result.Err)
	}
	return len(result.Value.(promql.Vector))
}
