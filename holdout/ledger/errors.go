package ledger

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound: no such holdout or key.
	ErrNotFound = errors.New("ledger: not found")
	// ErrUnavailable: the ledger cannot commit now, or could not say in time whether it did. Ask again with the same
	// question: whether the failed commit became durable or not, the answer will be the same bytes and cost once.
	ErrUnavailable = errors.New("ledger: cannot commit now; ask again")
	// ErrBudget: an Append would exceed the holdout's limits. Always a *BudgetError.
	ErrBudget = errors.New("ledger: budget exceeded")
	// ErrAnswered: an Append for a query that has its answer already; use Tx.Answer.
	ErrAnswered = errors.New("ledger: query is already answered")
	// ErrDeleted: the holdout is deleted; its recorded answers can still be read.
	ErrDeleted = errors.New("ledger: holdout is deleted")
	// ErrRetired: the holdout is retired already.
	ErrRetired = errors.New("ledger: holdout is retired")
	// ErrAsked: the holdout cannot be replaced, for something was asked of it.
	ErrAsked = errors.New("ledger: something was asked of the holdout")
	// ErrRevoked: the key by which another one is made has no rights any more.
	ErrRevoked = errors.New("ledger: key is revoked")
	// ErrSettled: the holdout is a draft no more.
	ErrSettled = errors.New("ledger: holdout is no draft")
	// ErrExists: what is to be created is there already. A *ExistsError where a holdout's digest is known.
	ErrExists = errors.New("ledger: exists already")
	// ErrIdempotencyMismatch: the idempotency key was used before, for another request.
	ErrIdempotencyMismatch = errors.New("ledger: idempotency key was used for another request")
	// ErrWrongKey: the server key is not the one that this ledger was sealed with.
	ErrWrongKey = errors.New("ledger: wrong server key")
	// ErrReplayOnly: the ledger is open without its key, and nothing can be written.
	ErrReplayOnly = errors.New("ledger: open for replay only")
	// ErrInUse: another process serves this ledger.
	ErrInUse = errors.New("ledger: in use by another process")
	// ErrLost: there is no ledger where one must be (Options.MustExist).
	ErrLost = errors.New("ledger: lost")
	// ErrTerm: another server has had the holdout since the update's server was told that it has it to itself.
	ErrTerm = errors.New("ledger: another server has taken the holdout over")
	// ErrClosed: the ledger is closed.
	ErrClosed = errors.New("ledger: closed")
	// ErrInvalid: an argument that cannot be recorded; the message says which.
	ErrInvalid = errors.New("ledger: invalid")
	// ErrCorrupt: recorded data contradicts itself. Always a *CorruptError.
	ErrCorrupt = errors.New("ledger: corrupt")
	// ErrVersion: recorded in a format that this program does not know. Always a *VersionError.
	ErrVersion = errors.New("ledger: unknown version")
)

// ExistsError says under which id the same table is known.
type ExistsError struct{ ID string }

func (e *ExistsError) Error() string { return "ledger: the same table is known as " + e.ID }

// Unwrap returns ErrExists.
func (e *ExistsError) Unwrap() error { return ErrExists }

// BudgetError says what was asked for and what is left.
type BudgetError struct{ Requested, Left Meters }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("ledger: budget exceeded: asked %v, left %v", e.Requested, e.Left)
}

// Unwrap returns ErrBudget.
func (e *BudgetError) Unwrap() error { return ErrBudget }

// VersionError says what has a version that this program does not know.
type VersionError struct {
	What  string // such as "the entry"
	Got   int64
	Known int64 // the one that this program reads
}

func (e *VersionError) Error() string {
	do := "use the holdoutd that wrote it, or a newer one"
	if e.Got < e.Known {
		do = "it is from before the format was fixed, and no program of today reads it"
	}
	return fmt.Sprintf("%s has version %d, and this program reads version %d: %s", e.What, e.Got, e.Known, do)
}

// Unwrap returns ErrVersion.
func (e *VersionError) Unwrap() error { return ErrVersion }

// CorruptError says where recorded data contradicts itself, and how.
type CorruptError struct {
	Holdout string // "" where it is not known
	Line    int64  // of an export, from 1; 0 in a database
	Seq     int64  // of the entry; -1 where it is not about an entry
	Reason  string
	Err     error // the cause, or nil
}

func (e *CorruptError) Error() string {
	s := "ledger: corrupt"
	if e.Line > 0 {
		s += fmt.Sprintf(": line %d", e.Line)
	}
	if e.Holdout != "" {
		s += fmt.Sprintf(": holdout %q", e.Holdout)
	}
	if e.Seq >= 0 {
		s += fmt.Sprintf(": seq %d", e.Seq)
	}
	s += ": " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns ErrCorrupt and the cause.
func (e *CorruptError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrCorrupt}
	}
	return []error{ErrCorrupt, e.Err}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
