package postgres_test

import (
	"context"
	"flag"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/ledgertest"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestContract holds ledgers in a database to the contract, three servers of each where callers are many.
func TestContract(t *testing.T) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given { // random histories: each opens a ledger some ten times, of six connections, and makes tables for its crashes
		if err := flag.Set("rapid.checks", "5"); err != nil {
			t.Fatal(err)
		}
	}
	ledgertest.Run(t, func(t testing.TB) ledgertest.Store { return store{pgtest.Shared(t).New(t)} })
}

// store is a ledger's schema.
type store struct{ pgtest.Ledger }

var _ ledgertest.Shared = store{}

func (s store) Open(ctx context.Context, o ledger.Options) (ledger.Ledger, error) {
	l, err := postgres.Open(ctx, s.Address(), o)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (s store) Verify(ctx context.Context) ([]ledger.Report, error) {
	return postgres.Verify(ctx, s.Address())
}

// Crash copies what is committed: what the next server finds when those that are open have been killed.
func (s store) Crash(t testing.TB) ledgertest.Store { return store{s.Copy(t)} }

func (s store) Servers() int { return 3 }
