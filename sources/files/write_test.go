package files

import (
	"os"
	"testing"

	"github.com/xitongsys/parquet-go/writer"
)

// writeInt64 writes a file of one column, n, with one value.
func writeInt64(t *testing.T, path, value string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := writer.NewCSVWriterFromWriter([]string{"name=n, type=INT64"}, f, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteString([]*string{&value}); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteStop(); err != nil {
		t.Fatal(err)
	}
}
