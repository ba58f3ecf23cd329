package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// ClosingPlaces are places that are closed when nobody looks at them any more.
type ClosingPlaces interface {
	Places
	io.Closer
}

// DirectoryPlaces are those of a data directory's ledger, also of one that a server uses. It reads only.
func DirectoryPlaces(ctx context.Context, dir string) (ClosingPlaces, error) {
	return sqlite.Places(ctx, filepath.Join(dir, ledgerFile))
}

// exportPlace finds an entry in an export that was verified.
func exportPlace(export []byte, seq int64) (head string, body []byte, ok bool, err error) {
	for _, line := range bytes.Split(export, []byte("\n")) {
		var e struct {
			Seq  *int64 `json:"seq"`
			Head string `json:"head"`
			Body string `json:"body"`
		}
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return "", nil, false, fmt.Errorf("holdout: export: %w", err)
		}
		if e.Seq != nil && *e.Seq == seq {
			return e.Head, []byte(e.Body), true, nil
		}
	}
	return "", nil, false, nil
}

// Exports are places by the text of a holdout's export, such as a server's: each is fetched once, and verified.
type Exports struct {
	Fetch func(ctx context.Context, holdout string) ([]byte, error)
	known map[string][]byte
}

// Place implements Places.
func (x *Exports) Place(ctx context.Context, holdout string, seq int64) (head string, body []byte, ok bool, err error) {
	text, fetched := x.known[holdout]
	if !fetched {
		if text, err = x.Fetch(ctx, holdout); errors.Is(err, ledger.ErrNotFound) {
			return "", nil, false, nil
		}
		if err == nil {
			_, err = ledger.VerifyExport(bytes.NewReader(text))
		}
		if err != nil {
			return "", nil, false, err
		}
		if x.known == nil {
			x.known = map[string][]byte{}
		}
		x.known[holdout] = text
	}
	return exportPlace(text, seq)
}
