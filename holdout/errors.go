package holdout

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what is wrong; internal/api maps each kind to one HTTP status and problem type.
type Kind uint8

const (
	// Internal is a fault of the server: nothing that the caller sent explains it.
	Internal Kind = iota
	// Malformed is input that cannot be read at all.
	Malformed
	// Invalid is input that can be read but is wrong; Pointer says where.
	Invalid
	// BadUpload is an uploaded file that cannot become a holdout.
	BadUpload
	// TooLarge is input beyond a limit.
	TooLarge
	// Unauthorized is a missing, unknown or revoked key.
	Unauthorized
	// Forbidden is a key without the scope.
	Forbidden
	// NotFound is a holdout, key or training part that is not there, or is not there for the caller.
	NotFound
	// UnitUndecided is a table of which nobody said what one observation is, with a column that names something of which each has several rows.
	// Members: choices, a list of UnitChoice.
	UnitUndecided
	// Exists is a table that was uploaded before; Members["holdout"] is the id of its holdout, even a deleted one.
	Exists
	// Conflict is a request that collides with the present state, such as two uploads of one table at the same time.
	Conflict
	// IdempotencyMismatch is an Idempotency-Key that was used for another request.
	IdempotencyMismatch
	// BudgetExhausted is a question that the budget cannot pay. Members: requested, remaining, affordable (questions).
	BudgetExhausted
	// Unconfirmed is a request that costs more questions than it says that it may. Members: requested (questions), max_questions.
	Unconfirmed
	// Busy is a request whose turn did not come in time: the same request may succeed later.
	Busy
	// Unavailable is a ledger that cannot write, or a server that is closing: the same request may succeed later.
	Unavailable
	// Damaged is a holdout whose files or whose place in the ledger are not what was written. Members["holdout"] is its id.
	Damaged
	// RolledBack is a holdout whose ledger is older than the answers that it has given. Members["holdout"] is its id.
	RolledBack
	// DiskFull is a data directory without room for what was sent.
	DiskFull
	// RowsKnown is a table with rows of other holdouts, of which something is known or would be. Members: overlaps, a list of Overlap, and holdout, the id of the first one.
	RowsKnown
	// GrantExhausted is a question that the holdout could pay and the key's grant cannot. Members: grant (the one that lacks), meter, requested, remaining.
	GrantExhausted
	// GrantEnded is a grant that is revoked or expired, or one of those that it is a slice of is. Members: grant (the one that ended), reason.
	GrantEnded
	// NotShown is something that the key's grant does not show.
	NotShown
	// EpsilonExhausted is a release that would spend more than is left for all releases of the holdout. Members: requested, remaining, release_epsilon.
	EpsilonExhausted
	// ReleasedBefore is a release of rows of which others are known, or may have been forgotten. Members: earlier_releases, a list of EarlierRelease, and holdout, the id of the first one; neither where the releases are forgotten.
	ReleasedBefore
)

// Error is every error that Service returns on purpose.
type Error struct {
	Kind    Kind
	Detail  string         // a sentence for a person; holds nothing that depends on holdout rows
	Pointer string         // JSON pointer or parameter name of what is wrong, where there is one
	Meant   string         // what was probably meant there; may be empty
	Members map[string]any // machine-readable members of the problem

	RetryAfter time.Duration // when to try again, where that is known

	Err error // the cause, for the log and errors.Is; not for the reply
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("holdout: %s: %v", e.Detail, e.Err)
	}
	return "holdout: " + e.Detail
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err: Internal if no *Error is in its chain.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

func fail(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

func invalid(pointer, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}
