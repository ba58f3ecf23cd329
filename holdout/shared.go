//go:build !nopostgres

package holdout

import (
	"context"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
)

// openShared opens the ledger at an address that several servers share.
func openShared(ctx context.Context, address string, o ledger.Options) (ledger.Shared, error) {
	l, err := postgres.Open(ctx, address, o)
	if err != nil {
		return nil, err // not l: a nil *postgres.Ledger is no nil ledger.Shared
	}
	return l, nil
}

// PrepareShared makes the tables of a ledger in the PostgreSQL database at an address (Options.Ledger, as the database's owner), or brings them up to date, and gives
// a role of the database, which must be there, what servers need: it may read the tables and call functions that append, and nothing else.
// It may be called again: it does what is left to do.
func PrepareShared(ctx context.Context, address, role string) error {
	return postgres.Prepare(ctx, address, role)
}

// VerifyShared is Verify of a data directory whose ledger is at an address (Options.Ledger). It needs no more than a server's role.
func VerifyShared(ctx context.Context, dir, address string, tables bool) ([]Verification, error) {
	return VerifyBy(ctx, VerifyOptions{Dir: dir, Ledger: address, Tables: tables})
}

// inDatabase is the kind of a ledger at an address.
var inDatabase = ledgerKind{postgres.Verify, postgres.VerifySealed}
