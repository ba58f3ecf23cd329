// Package ledger keeps the durable budget and the answers of holdouts.
package ledger

import (
	"context"
	"io"
)

type Ledger struct{}
type Tx struct{}

func Open(ctx context.Context, o Options) (*Ledger, error) { return nil, ErrUnavailable }
func (l *Ledger) Close() error                             { return ErrUnavailable }
func (l *Ledger) Ready(ctx context.Context) error          { return ErrUnavailable }
func (l *Ledger) CreateHoldout(ctx context.Context, h Holdout, idem *Idempotency) error {
	return ErrUnavailable
}
func (l *Ledger) Holdout(ctx context.Context, id string) (Holdout, error) {
	return Holdout{}, ErrUnavailable
}
func (l *Ledger) Holdouts(ctx context.Context) ([]Holdout, error) { return nil, ErrUnavailable }
func (l *Ledger) HoldoutByDigest(ctx context.Context, digest [32]byte) (id string, ok bool, err error) {
	return "", false, ErrUnavailable
}
func (l *Ledger) DeleteHoldout(ctx context.Context, id, principal string) error {
	return ErrUnavailable
}
func (l *Ledger) Update(ctx context.Context, id string, fn func(tx *Tx) error) error {
	return ErrUnavailable
}
func (tx *Tx) State() []byte                              { return nil }
func (tx *Tx) SetState(state []byte)                      {}
func (tx *Tx) Spent() (questions, tokens int64)           { return 0, 0 }
func (tx *Tx) Limits() (questions, tokens int64)          { return 0, 0 }
func (tx *Tx) Answer(query string) (body []byte, ok bool) { return nil, false }
func (tx *Tx) Append(d Debit) (Receipt, error)            { return Receipt{}, ErrUnavailable }
func (tx *Tx) Idempotent(i Idempotency) error             { return ErrUnavailable }
func (l *Ledger) Idempotency(ctx context.Context, principal, key string) (Idempotency, bool, error) {
	return Idempotency{}, false, ErrUnavailable
}
func (l *Ledger) Answer(ctx context.Context, id, query string) (body []byte, ok bool, err error) {
	return nil, false, ErrUnavailable
}
func (l *Ledger) Answers(ctx context.Context, id, principal string, after int64, limit int) ([]Entry, error) {
	return nil, ErrUnavailable
}
func (l *Ledger) Balance(ctx context.Context, id string) (questions, tokens int64, err error) {
	return 0, 0, ErrUnavailable
}
func (l *Ledger) Export(ctx context.Context, id string, w io.Writer) error { return ErrUnavailable }
func (l *Ledger) CreateKey(ctx context.Context, k Key) error               { return ErrUnavailable }
func (l *Ledger) Keys(ctx context.Context) ([]Key, error)                  { return nil, ErrUnavailable }
func (l *Ledger) RevokeKey(ctx context.Context, id string) error           { return ErrUnavailable }
func (l *Ledger) KeyByHash(ctx context.Context, hash [32]byte) (Key, bool, error) {
	return Key{}, false, ErrUnavailable
}
func VerifyExport(r io.Reader) (Report, error) { return Report{}, ErrUnavailable }
func VerifyDatabase(ctx context.Context, path string) ([]Report, error) {
	return nil, ErrUnavailable
}
