package stored

import (
	"errors"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Damage is why nothing is appended to a holdout whose books were compared with their chain: err, or what it is the cause of.
func Damage(holdout string, err error) *ledger.CorruptError {
	var corrupt *ledger.CorruptError
	if errors.As(err, &corrupt) && corrupt.Holdout == holdout {
		return corrupt
	}
	return &ledger.CorruptError{Holdout: holdout, Seq: -1, Reason: "it cannot be read", Err: err}
}
