package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
)

// shared is a ledger in a database, as backup.Ledger.
type shared struct {
	url    string
	shown  *url.URL
	loaded *postgres.Loading // by Load
}

// sharedLedger is the ledger that --ledger names.
func sharedLedger(where string) (*shared, error) {
	text, u, err := ledgerURL(where)
	if err != nil {
		return nil, err
	}
	return &shared{url: text, shown: u}, nil
}

// Dump implements backup.Ledger.
func (s *shared) Dump(ctx context.Context, out io.Writer) ([]ledger.Report, error) {
	reports, err := postgres.Dump(ctx, s.url, out)
	return reports, s.named(err)
}

// Load implements backup.Ledger.
func (s *shared) Load(ctx context.Context, d *dump.Reader) (err error) {
	s.loaded, err = postgres.Load(ctx, s.url, d)
	return s.named(err)
}

var errNotLoaded = errors.New("nothing was loaded")

// Verify implements backup.Ledger.
func (s *shared) Verify(ctx context.Context) ([]ledger.Report, error) {
	if s.loaded == nil {
		return nil, errNotLoaded
	}
	return s.loaded.Verify(ctx)
}

// VerifySealed implements backup.Ledger.
func (s *shared) VerifySealed(ctx context.Context, key [32]byte) error {
	if s.loaded == nil {
		return errNotLoaded
	}
	return s.loaded.VerifySealed(ctx, key)
}

// Keep implements backup.Ledger.
func (s *shared) Keep(ctx context.Context) error {
	if s.loaded == nil {
		return errNotLoaded
	}
	return s.named(s.loaded.Commit(ctx))
}

// discard undoes what was loaded and not kept.
func (s *shared) discard() {
	if s.loaded != nil {
		s.loaded.Discard()
	}
}

func (s *shared) named(err error) error {
	if err != nil {
		return fmt.Errorf("the ledger at %s: %w", s.shown.Redacted(), err)
	}
	return nil
}

// open opens the ledger for a command.
func (s *shared) open(ctx context.Context, o ledger.Options) (ledger.Ledger, error) {
	l, err := postgres.Open(ctx, s.url, o)
	if err != nil {
		return nil, s.named(err)
	}
	return l, nil
}

// confirming says how holdouts that wait are listed and accepted, in a data directory or in a shared ledger.
func confirming(dir, where, keyFile string) (list func(context.Context) ([]holdout.Waiter, error), accept func(context.Context, string, holdout.Acceptance) (holdout.Accepted, error), err error) {
	if where == "" {
		if keyFile != "" {
			return nil, nil, misuse("--server-key goes with --ledger; without it the key is in the data directory")
		}
		list = func(ctx context.Context) ([]holdout.Waiter, error) { return holdout.Waiting(ctx, dir) }
		accept = func(ctx context.Context, id string, a holdout.Acceptance) (holdout.Accepted, error) {
			return holdout.Accept(ctx, dir, id, a)
		}
		return list, accept, nil
	}
	s, err := sharedLedger(where)
	if err != nil {
		return nil, nil, err
	}
	list = func(ctx context.Context) (all []holdout.Waiter, err error) {
		l, err := s.open(ctx, ledger.Options{ReplayOnly: true})
		if err != nil {
			return nil, err
		}
		all, err = holdout.WaitingIn(ctx, l)
		return all, errors.Join(err, l.Close())
	}
	accept = func(ctx context.Context, id string, a holdout.Acceptance) (holdout.Accepted, error) {
		return holdout.AcceptWith(ctx, s.open, cmp.Or(keyFile, filepath.Join(dir, "server.key")), dir, id, a)
	}
	return list, accept, nil
}
