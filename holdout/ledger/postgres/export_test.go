//go:build postgres

package postgres

import "time"

// Hurry makes a ledger give up a commit that takes longer, so that a test need not wait.
func Hurry(l *Ledger, patience time.Duration) { l.patience = patience }
