package files

import (
	"context"
	"os"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// Size is what a Parquet file becomes when it is decoded, texts left out.
type Size struct {
	Rows    int64
	Columns int
	Bytes   int64
}

// SizeOf reads the size from a file's footer, in a decoding process; no value is read. Whoever sent the file knows it: it is public. Errors are those of package ingest.
func SizeOf(ctx context.Context, argv []string, path string, limits ingest.Limits) (Size, error) {
	f, err := os.Open(path)
	if err != nil {
		return Size{}, &ingest.Error{Kind: ingest.Internal, Detail: "the uploaded file cannot be opened", Err: err}
	}
	defer f.Close() // read only
	survey, err := ingest.Pieces{Argv: argv, File: f, Limits: limits}.Survey(ctx)
	if err != nil {
		return Size{}, err
	}
	s := Size{Columns: len(survey.Fields)}
	for _, rows := range survey.Groups {
		s.Rows += rows
	}
	s.Bytes = s.Rows * width(dataset.Schema{Fields: survey.Fields})
	return s, nil
}
