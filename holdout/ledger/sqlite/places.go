package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Reading is a ledger file that is open for looking entries up. It needs no key, and may be that of a server that runs.
type Reading struct {
	db   *readers
	done func() error
}

// Places opens the ledger file at path for looking entries up.
func Places(ctx context.Context, path string) (*Reading, error) {
	db, done, err := openForVerify(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Reading{db, done}, nil
}

// Close closes it.
func (r *Reading) Close() error { return r.done() }

// Place returns the head and the body of an entry; ok is false if there is no such entry.
func (r *Reading) Place(ctx context.Context, id string, seq int64) (head string, body []byte, ok bool, err error) {
	var raw []byte
	err = r.db.QueryRowContext(ctx, "SELECT e.head, e.body FROM entries e JOIN holdouts h ON h.number = e.holdout WHERE h.id = ? AND e.seq = ?", id, seq).Scan(&raw, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil, false, nil
	case err != nil || len(raw) != 32:
		return "", nil, false, unreadable(err)
	}
	return ledger.HeadText([32]byte(raw)), body, true, nil
}
