package api

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdoutd/holdoutd/holdout"
)

// activity collects what the service has done and where its holdouts stand, at each scrape of an admin.
type activity struct{ service *holdout.Service }

// metric names one metric of the service.
func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdoutd_"+name, help, labels, nil)
}

var (
	queriesAsked   = metric("queries_total", "Queries by type and outcome: answered, replayed, or why it was not asked. Those of a request that was refused are in holdoutd_problems_total.", "type", "outcome")
	voids          = metric("voids_total", "Questions that failed after their rows were read: debited without an answer. There should be none.")
	commits        = metric("ledger_updates_total", "Updates of the ledger that are durable, or that its rules refused.")
	commitFailures = metric("ledger_failures_total", "Updates that the ledger could not make durable; they are tried again.")
	ready          = metric("ready", "1 where the ledger can commit and uploads can make files, as /readyz says.")
	working        = metric("questions_in_flight", "Requests that ask, explain or plan and have a place to work.")
	waiting        = metric("questions_waiting", "Requests that ask, explain or plan and wait for their turn.")
	budgetLimit    = metric("budget_limit", "What a holdout may spend, by meter.", "holdout", "meter")
	budgetLeft     = metric("budget_left", "What is left of it.", "holdout", "meter")
	states         = metric("holdouts", "Holdouts by state: active, damaged, rolled-back.", "state")
	unlisted       = metric("holdouts_without_budget_metrics", "Holdouts beyond the ones whose budgets are listed.")
)

const (
	listedBudgets = 500              // holdouts whose budgets are metrics; each is four series
	scrapeTime    = 10 * time.Second // for the ledger to answer a scrape
)

// Describe implements [prometheus.Collector].
func (activity) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queriesAsked, voids, commits, commitFailures, ready, working, waiting, budgetLimit, budgetLeft, states, unlisted} {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. What the ledger cannot say now is left out: an absent series is an alert's to notice.
func (a activity) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	now := a.service.Activity()
	for asked, n := range now.Asked {
		send(queriesAsked, prometheus.CounterValue, float64(n), asked.Type, asked.Outcome)
	}
	send(voids, prometheus.CounterValue, float64(now.Voids))
	send(commits, prometheus.CounterValue, float64(now.Commits))
	send(commitFailures, prometheus.CounterValue, float64(now.Failures))
	send(working, prometheus.GaugeValue, float64(a.service.Working()))
	send(waiting, prometheus.GaugeValue, float64(now.Waiting))
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	able := 0.0
	if a.service.Ready(ctx) == nil {
		able = 1
	}
	send(ready, prometheus.GaugeValue, able)
	admin := holdout.Principal{Scope: holdout.Admin}
	cards, err := a.service.List(ctx, admin)
	if err != nil {
		return
	}
	count := map[string]int{"active": 0}
	for _, state := range holdout.States() { // a series that appears with its first holdout has no rate before
		count[state] = 0
	}
	for i, card := range cards {
		count[cmp.Or(card.State, "active")]++
		if i >= listedBudgets {
			continue
		}
		b, err := a.service.Budget(ctx, admin, card.ID)
		if err != nil {
			continue
		}
		for name, m := range map[string]*holdout.Meter{"questions": &b.Questions, "tokens": b.Tokens, "rounds": b.Rounds} {
			if m != nil {
				send(budgetLimit, prometheus.GaugeValue, float64(m.Of), card.ID, name)
				send(budgetLeft, prometheus.GaugeValue, float64(m.Left), card.ID, name)
			}
		}
	}
	for state, n := range count {
		send(states, prometheus.GaugeValue, float64(n), state)
	}
	send(unlisted, prometheus.GaugeValue, float64(max(0, len(cards)-listedBudgets)))
}
