// Package ingest turns Parquet files into datasets and back.
//
// An uploaded file is hostile. [Run] decodes it in a child process with limits on memory, CPU time, output and
// wall-clock time, so that no file can take the server down; the server itself never parses it. [Decode] is what the
// child runs. The reader is our own: of a file it needs the flat columns alone, and of them every bit must be what the
// file says, or the file is refused. metadata.go and schema.go read the footer, pages.go the pages, form.go checks that
// a page's bytes can be what its header says, and values.go, runs.go and delta.go decode them. Codecs are libraries.
//
// What it keeps: columns of numbers, booleans, texts, dates and timestamps; see [Decode] for the rules. Nested and
// other columns are listed in [Result].Skipped with the reason.
//
// [Export] writes a table as Parquet with xitongsys/parquet-go.
package ingest
