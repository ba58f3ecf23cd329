package holdout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// Training opens the training part as Parquet; the caller closes the file. It is written when it is first asked for, and
// kept. Rows come in the order of the upload, with a unit column the rows of a unit together.
func (s *Service) Training(ctx context.Context, p Principal, id string) (*os.File, error) {
	h, release, err := s.tables.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release() // an open file outlives its name, should the holdout be deleted meanwhile
	if h.training == nil {
		return nil, fail(NotFound, "this holdout has no training part: it was created with holdout=1.0")
	}
	path := s.path(holdoutsDir, id, trainingParquet)
	f, err := os.Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	h.exporting.Lock()
	defer h.exporting.Unlock()
	if f, err := os.Open(path); !errors.Is(err, fs.ErrNotExist) { // somebody else has just written it
		return f, err
	}
	if err := s.exportTraining(h.tables[0], path); err != nil {
		return nil, fmt.Errorf("holdout: export of the training part: %w", err)
	}
	return os.Open(path)
}

// exportTraining writes a table as Parquet under its final name, whole or not at all.
func (s *Service) exportTraining(t *dataset.Table, path string) error {
	work, err := os.MkdirTemp(s.path(temporaryDir), "export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) // what stays is removed at the next start
	draft := filepath.Join(work, trainingParquet)
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return err
	}
	if err = ingest.Export(f, t); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	return dataset.SyncDir(filepath.Dir(path))
}
