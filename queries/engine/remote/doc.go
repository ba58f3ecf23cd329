// Package remote sums row functions where the rows are: in ClickHouse or Trino, over plain HTTP. What an engine computes bit by bit is sent to it as SQL
// (package rowfn/sql); the rest is computed here by the kernels of package queries/kernel, over rows that are read in blocks.
//
// A [Source] has the very sums of an engine.Table with the same rows, or fails. It fails where the engine's answer is not of all registered units and rows,
// whatever the reason: a machine that is away, a row that came late, a limit that cuts an answer short. An answer that broke off is asked again; it is
// taken as a whole or not at all.
//
// An engine's own words about a failure can have values of rows in them. They go to [Options.Tell], which is for the owner's log, and into no error.
package remote

import "time"

// Limits of what is asked and read.
const (
	// Attempts is how often a statement is sent whose answer broke off, or that the engine had no room for.
	Attempts = 3
	// AnswerBytes bounds an answer of sums: 100 of 20 digits take 2 KB.
	AnswerBytes = 1 << 20
	// BlockRows is about how many rows are read at a time, and BlockBytes the most that they may take.
	BlockRows  = 1 << 16
	BlockBytes = 256 << 20
	// KillWait is how long a server may take to hear that a statement is not wanted any more.
	KillWait = 5 * time.Second
	// StatementWait is how long a statement may take. The engine's own limit should be below it.
	StatementWait = 10 * time.Minute
)
