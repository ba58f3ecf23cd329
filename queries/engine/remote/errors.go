package remote

import "fmt"

// Kind is what kind of failure an [Error] is.
type Kind uint8

const (
	// Unreachable: the engine did not answer, or its answer broke off each time.
	Unreachable Kind = iota + 1
	// Denied: the engine does not know the user, or does not let it read the table.
	Denied
	// Limit: the statement took more time or memory than the user's profile allows.
	Limit
	// Failed: the engine refused the statement.
	Failed
	// Changed: the answer is not of the units and rows that are registered.
	Changed
	// Profile: the user's settings would allow answers that are wrong or partial, or that take longer for some rows.
	Profile
)

var says = map[Kind]string{
	Unreachable: "%s did not answer. Ask again later, and look at the server's log",
	Denied:      "%s does not let this server read the table. Check the source's user and password",
	Limit:       "%s stopped the statement at a limit of the user's profile. Ask for less at once, or raise the limit",
	Failed:      "%s refused the statement. The server's log has its words",
	Changed:     "the table in %s is not the one that was registered: other rows, or not all of them. Nothing is answered from it",
	Profile:     "the user's settings in %s are not those that a holdout needs",
}

// Error is a failure. Its text is one of a closed list, apart from Detail: no word of it is the engine's.
type Error struct {
	Kind   Kind
	Engine string // "ClickHouse"
	Detail string // this package's own, or ""
}

// Error says what is wrong and what to do.
func (e *Error) Error() string {
	text := "remote: " + fmt.Sprintf(says[e.Kind], e.Engine)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is reports whether an error is of the same kind, so that errors.Is(err, &Error{Kind: Changed}) holds whatever the engine.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Engine == "" || t.Engine == e.Engine)
}
