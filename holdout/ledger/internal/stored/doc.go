// Package stored is what ledgers have in common that keep their rows in a database: how a caller waits for a writer that serves many, and how a
// history is read page by page. What is a rule of the books is in package ledger.
package stored
