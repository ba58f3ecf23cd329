// Package dataset holds a table as checksummed, memory-mapped columns in a directory.
//
// A [Table] is a list of columns of one length. Each column is one flat slice of values that queries read without
// decoding: numbers and times as float64 with NaN for null, booleans as bytes, texts as codes into a sorted
// dictionary. A table comes from [FromColumns] (in memory) or from [Open] (mapped from the directory that a
// [Writer], [Write] or [Select] wrote). The files are described in docs/format/dataset.md.
//
// What Open promises: every checksum was compared, and every value obeys the rules of its [Kind], so that code that
// reads a table needs no checks of its own; a file that was damaged, cut or forged gives a [*CorruptError], never a
// panic. What it cannot promise: a file that another process cuts short while it is mapped, or that the disk cannot
// read any more, faults in whoever reads it. Read columns within [Guarded], which makes an error of the fault; elsewhere
// it ends the process.
//
// The package does not read Parquet; see dataset/ingest.
package dataset
