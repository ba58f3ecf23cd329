// Package ingesttest lets a test's own binary be the process that decodes uploads.
package ingesttest

import (
	"os"
	"testing"

	"github.com/holdoutd/holdoutd/dataset/ingest"
)

const argument = "decode-parquet"

// Child ends the process as the decoder, where it was started as one. It is the first call of a TestMain.
func Child() {
	if len(os.Args) == 2 && os.Args[1] == argument {
		os.Exit(ingest.ChildMain())
	}
}

// Decoder is the command that starts the test's binary as the decoder: its TestMain calls [Child].
func Decoder(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, argument}
}
