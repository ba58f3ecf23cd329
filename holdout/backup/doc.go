// Package backup copies a data directory into one encrypted file while a server goes on serving it, and makes a data directory of such a file again.
//
// A backup is an age file (https://age-encryption.org/v1) of a zstd stream of a tar archive, so that it can be opened with ordinary tools. The archive begins with what it is
// (backup.json), goes on with the tables of each holdout as they lie in the directory and with the ledger as rows (ledger.jsonl), and ends with manifest.json: every file with its
// length and SHA-256, and where each chain stood. docs/format/backup.md describes it.
//
// What is encrypted to a public key can be made by everyone who has that key. So nothing of a backup is believed: Restore makes a directory with a name of its own, recomputes all chains,
// books and checksums in it, and only then gives it the name that was asked for. What a backup cannot know is what was asked after it was made; the restored
// holdouts give no new answers until somebody says (ledger.Holdout.Restored).
package backup
