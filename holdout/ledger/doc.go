// Package ledger is the durable memory of what holdouts have answered and what it cost: no answer leaves the server
// before its debit is here, and what is here is never taken back.
//
// It is a bookkeeper, not a mechanism: it knows meters by name, bytes and their order, and nothing of rows, queries or noise.
// This package is the contract ([Ledger]) with everything that does not depend on where a ledger is kept: the rules of a
// debit ([Tx]), the chain, its export and its verification. ledger/sqlite keeps a ledger in a file, ledger/postgres in a database for several servers ([Shared]), and ledger/ledgertest says
// whether an implementation keeps the contract. Its promises are
//
//   - when [Ledger.Update] returns nil, everything that it appended is durable, the mechanism's next state with it;
//   - what is spent of a meter never exceeds the holdout's limit and never falls, whatever crashes in between;
//   - a query of a holdout is answered once: asking again replays the recorded bytes;
//   - entries are chained by SHA-256, so that a change to any of them is found by [VerifyExport] and [Chain.Verify],
//     which need no key; the format is documented in docs/format/ledger.md, well enough to write another verifier;
//   - secrets and mechanism states are sealed with the server key, and leave the ledger in no export.
//
// # When a commit fails
//
// The outcome of a failed commit is unknown: it may be durable or not. All who waited for it get [ErrUnavailable]. For the
// caller it is safe to ask again: if the commit did become durable, the recorded answer is found and replayed at no cost; if
// it did not, the mechanism computes the answer again, and since its noise is a function of a key, the question and the state,
// it is the same answer. Either way nobody has seen the first one, for it was never released.
package ledger
