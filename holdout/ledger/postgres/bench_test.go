//go:build postgres

package postgres_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// BenchmarkAnswers records answers of about 600 bytes, each in an Update of its own as the service makes it (a look-up, a state, a debit), on both kinds of
// ledger: with 1, 32 and 256 clients, all on one holdout or each on one of 64. PostgreSQL has one server of the ledger in the process, or two, between
// which the clients are divided.
//
//	HOLDOUTD_POSTGRES=$(scripts/postgres.sh) go test -tags postgres -run '^$' -bench Answers -benchtime 2s ./holdout/ledger/postgres
func BenchmarkAnswers(b *testing.B) {
	for _, kind := range []string{"sqlite", "postgres", "postgres-two-servers"} {
		for _, holdouts := range []int{1, 64} {
			for _, clients := range []int{1, 32, 256} {
				b.Run(fmt.Sprintf("%s/holdouts=%d/clients=%d", kind, holdouts, clients), func(b *testing.B) {
					benchAnswers(b, openBench(b, kind), holdouts, clients)
				})
			}
		}
	}
}

func openBench(b *testing.B, kind string) []ledger.Ledger {
	b.Helper()
	o := ledger.Options{Key: testKey}
	if kind == "sqlite" {
		l, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"), o)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		return []ledger.Ledger{l}
	}
	db := pgtest.NewDatabase(b)
	if err := postgres.Migrate(b.Context(), db.Owner, "service"); err != nil {
		b.Fatal(err)
	}
	all := []ledger.Ledger{open(b, db.Service)}
	if kind != "postgres" {
		all = append(all, open(b, db.Service))
	}
	return all
}

func benchAnswers(b *testing.B, servers []ledger.Ledger, holdouts, clients int) {
	for i := range holdouts {
		if err := servers[0].CreateHoldout(b.Context(), testHoldout(fmt.Sprint("ho_", i), 1<<40), nil); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for c := range clients {
		all.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				d := named(fmt.Sprint(i), 1)
				d.Core = fmt.Appendf(nil, `{"id":"ans_%d","holdout":"ho_1","query":%q,"value":0.3121,"interval":{"low":0.2810,"high":0.3432,"confidence":0.95,"scope":"all 1000 questions",`+
					`"target":"population of rows","bound":"adaptive-hoeffding","parts":{"sampling_and_noise":0.0235,"adaptivity":0.0076}},"mechanism":"gaussian","source":"holdout","cost":{"questions":1}}`, i, d.Query)
				if _, _, err := ask(b.Context(), servers[c%len(servers)], fmt.Sprint("ho_", c%holdouts), d); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}
