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
// kept. Rows come in the order of the upload; with a unit column the units do, and the rows of a unit are together in a random order.
func (s *Service) Training(ctx context.Context, p Principal, id string) (*os.File, error) {
	return s.exported(ctx, id, trainingParquet, func(h *opened) (*dataset.Table, error) {
		if h.training == nil {
			return nil, fail(NotFound, "this holdout has no training part: it was created with holdout=1.0")
		}
		return h.trainingTable, nil
	})
}

// Features opens the features of the holdout's rows as Parquet, for holdouts that were created with features=public: all columns but the
// label, and RowID, by which predictions of the rows are given. The caller closes the file.
func (s *Service) Features(ctx context.Context, p Principal, id string) (*os.File, error) {
	return s.exported(ctx, id, featuresParquet, func(h *opened) (*dataset.Table, error) {
		if h.card.Settings.Features != featuresPublic {
			return nil, fail(NotFound, "the features of this holdout are secret: it was not created with features=public")
		}
		return h.features()
	})
}

// RowID is the column of Features that numbers the holdout's rows from 0.
const RowID = "row_id"

// features is the holdout's table without the label, in the stored order: one that was drawn at random for this holdout
// (placing). That it is public is the reason why split, whose slices are stretches of it, is refused with features=public.
func (h *opened) features() (*dataset.Table, error) {
	ids := make([]float64, h.holdoutTable.Rows())
	for i := range ids {
		ids[i] = float64(i)
	}
	columns := []dataset.Column{{Field: dataset.Field{Name: RowID, Kind: dataset.Number, Source: "INT64"}, Numbers: ids}}
	for i := range h.holdoutTable.Columns() {
		if c := h.holdoutTable.Column(i); c.Name != h.card.Settings.Label {
			columns = append(columns, *c)
		}
	}
	return dataset.FromColumns(columns...)
}

// exported opens a table of a holdout as Parquet under this name, which is written when it is first asked for.
func (s *Service) exported(ctx context.Context, id, name string, table func(h *opened) (*dataset.Table, error)) (*os.File, error) {
	h, release, err := s.tables.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release() // an open file outlives its name, should the holdout be deleted meanwhile
	path := s.path(holdoutsDir, id, name)
	f, err := os.Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	h.exporting.Lock()
	defer h.exporting.Unlock()
	if f, err := os.Open(path); !errors.Is(err, fs.ErrNotExist) { // somebody else has just written it
		return f, err
	}
	t, err := table(h)
	if err != nil {
		return nil, err
	}
	if err := s.export(t, path); errors.Is(err, dataset.ErrDamaged) {
		return nil, h.faulted(err)
	} else if err != nil {
		return nil, fmt.Errorf("holdout: export to %s: %w", name, err)
	}
	return os.Open(path)
}

// export writes a table as Parquet under its final name, whole or not at all.
func (s *Service) export(t *dataset.Table, path string) error {
	work, err := os.MkdirTemp(s.path(temporaryDir), "export-")
	if err != nil {
		return err
	}
	defer s.remove(work)
	draft := filepath.Join(work, filepath.Base(path))
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return err
	}
	faulted := dataset.Guarded(func() { err = ingest.Export(f, t) })
	if err = errors.Join(faulted, err); err == nil {
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
