// Package ingest turns Parquet files into datasets and back.
//
// An uploaded file is hostile. [Run] decodes it in a child process with limits on memory, CPU time, output and
// wall-clock time, so that no file can take the server down; the server itself never parses it. [Decode] is what the
// child runs. It reads with arrow-go's typed column readers, which were the only ones among three Go libraries that
// neither hung, nor died, nor returned short columns without an error on thousands of damaged files that we tried,
// and counts rows itself all the same.
//
// What it keeps: columns of numbers, booleans, texts, dates and timestamps; see [Decode] for the rules. Nested and
// other columns are listed in [Result].Skipped with the reason.
//
// [Export] writes a table as Parquet with xitongsys/parquet-go.
package ingest
