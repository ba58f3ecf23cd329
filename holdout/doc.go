// Package holdout is the heart of the service: it makes holdouts from uploads, keeps them secret, and answers
// questions about them.
//
// A [Service] owns a data directory. [Service.Create] takes a Parquet file in a child process, splits its units by a
// secret key (docs/decisions/0002-split.md), and stores the two parts as column files. [Service.Ask] and
// [Service.AskBatch] turn a query into row functions, sum them exactly over the rows, release the means through the
// holdout's mechanism and record the answer, its price and the mechanism's next state in one durable commit; then, and
// only then, the answer leaves. A query that was answered before is replayed, byte for byte, at no cost.
//
// What it promises is in docs/GUARANTEES.md. The parts of it that this package keeps:
//
//   - Nothing that leaves depends on holdout rows but counted answers: the card's statistics, [Service.Explain] and
//     every error come from the training part, from declarations, or from what is spent. (While a table is being
//     uploaded, before any of its rows is held out, errors may be about all of it.)
//   - What is spent is spent: a question is refused by the budget before a row is read, and never refunded after.
//   - The same table is never split twice: its keyed digest stays in the ledger, also when the holdout is deleted.
//
// It does no statistics of its own (see package thresholdout), and knows nothing of HTTP (see internal/api).
package holdout
