//go:build nopostgres

package holdout

import (
	"context"
	"errors"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// errNoShared is what a program says that was built with the tag nopostgres, as make demo builds it: a client of PostgreSQL takes one in fourteen seconds of a first
// build, and a server without --ledger needs none.
var errNoShared = errors.New("this program was built by make demo, which leaves out ledgers in PostgreSQL: make build, then ./holdoutd has them")

func openShared(context.Context, string, ledger.Options) (ledger.Shared, error) {
	return nil, errNoShared
}

// PrepareShared fails: this program has no ledgers that several servers share.
func PrepareShared(context.Context, string, string) error { return errNoShared }

// VerifyShared fails, as PrepareShared does.
func VerifyShared(context.Context, string, string, bool) ([]Verification, error) {
	return nil, errNoShared
}

// inDatabase fails, as VerifyShared does.
var inDatabase = ledgerKind{
	chains: func(context.Context, string, ...ledger.Each) ([]ledger.Report, error) { return nil, errNoShared },
	values: func(context.Context, string, [32]byte) error { return errNoShared },
}
