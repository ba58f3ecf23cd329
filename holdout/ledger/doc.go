// Package ledger is the durable memory of what holdouts have answered and what it cost: no answer leaves the server
// before its debit is here, and what is here is never taken back.
//
// It is a bookkeeper, not a mechanism: it knows budgets, bytes and their order, and nothing of rows, queries or noise.
// Its promises are
//
//   - when [Ledger.Update] returns nil, everything that it appended is on the disk (SQLite in WAL mode with
//     synchronous=FULL, both read back when the ledger is opened), the mechanism's next state with it;
//   - spent questions and tokens never exceed the holdout's limits and never fall, whatever crashes in between;
//   - a query of a holdout is answered once: asking again replays the recorded bytes;
//   - entries are chained by SHA-256, so that a change to any of them is found by [VerifyExport] and [VerifyDatabase],
//     which need no key; the format is documented in docs/format/ledger.md, well enough to write another verifier;
//   - secrets and mechanism states are sealed with the server key, and leave the ledger in no export.
//
// One goroutine writes. It takes what callers have queued, at most [maxGroup] updates at a time, runs each of them on
// the books in memory, and commits them together: many callers share one fsync. Reads go through a second pool of
// connections and never wait for the writer. A lock file keeps a second process out.
//
// # When a commit fails
//
// The outcome of a failed commit is unknown: the disk may have it or not. The writer then answers [ErrUnavailable] to
// all who waited, forgets the books in memory, closes its connection, and reads the books from the disk again before
// it takes the next update; [Ledger.Ready] fails until a commit has succeeded. For the caller it is safe to ask again:
// if the commit did become durable, the recorded answer is found and replayed at no cost; if it did not, the mechanism
// computes the answer again, and since its noise is a function of a key, the question and the state, it is the same
// answer. Either way nobody has seen the first one, for it was never released.
package ledger
