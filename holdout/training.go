package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
)

// Training opens the training part as Parquet; the caller closes the file. It is written when it is first asked for, and
// kept. Rows come in the order of the upload; with a unit column the units do, and the rows of a unit are together in a random order.
func (s *Service) Training(ctx context.Context, p Principal, id string) (*os.File, error) {
	if _, err := s.rightTo(ctx, p, id); err != nil {
		return nil, err
	}
	return s.exported(ctx, id, trainingParquet, func(h *opened) (write, error) {
		if h.trainingTable == nil {
			return nil, fail(NotFound, "this holdout has no training part: it was created with holdout=1.0")
		}
		return func(out io.Writer, _ string) error {
			return ingest.ExportOrdered(out, h.trainingTable, h.card.orders())
		}, nil
	})
}

// Features opens the features of the holdout's rows as Parquet, for holdouts that were created with features=public: all columns but the
// label, and RowID, by which predictions of the rows are given. The rows of the check part follow, for which predictions are wanted, too. The caller closes the file.
func (s *Service) Features(ctx context.Context, p Principal, id string) (*os.File, error) {
	if _, err := s.rightTo(ctx, p, id); err != nil {
		return nil, err
	}
	return s.exported(ctx, id, featuresParquet, func(h *opened) (write, error) {
		if !h.publicFeatures() {
			return nil, fail(NotFound, "the features of this holdout are secret: it was not created with features=public")
		}
		return func(out io.Writer, work string) error { return h.writeFeatures(ctx, out, work) }, nil
	})
}

// write writes a table as Parquet; work is a directory for what it needs meanwhile.
type write func(out io.Writer, work string) error

// writeFeatures writes the features of the holdout's rows, then those of the check part's.
func (h *opened) writeFeatures(ctx context.Context, out io.Writer, work string) (err error) {
	use := func(rows *dataset.Table) error {
		features, err := h.features(rows)
		if err != nil {
			return err
		}
		return ingest.Export(out, features)
	}
	if h.far == nil {
		return h.withKept(ctx, work, use)
	}
	var check *dataset.Table
	if h.checkTable != nil {
		if check, err = dataset.FromColumns(withoutLabel(h.checkTable, h.card.Settings.Label)...); err != nil {
			return err
		}
	}
	return withBehind(filepath.Join(work, "rows"), h.holdoutTable, check, use)
}

// withBehind runs use with the rows of a table, and behind them those of another, which may be nil: in dir where there are two.
func withBehind(dir string, rows, behind *dataset.Table, use func(rows *dataset.Table) error) error {
	if behind == nil {
		return use(rows)
	}
	if err := dataset.Stack(dir, rows, behind); err != nil {
		return err
	}
	return withWritten(dir, use)
}

// withWritten runs use with a table that was written.
func withWritten(dir string, use func(rows *dataset.Table) error) (err error) {
	rows, err := dataset.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return use(rows)
}

// withoutLabel are the columns of a table but the label.
func withoutLabel(rows *dataset.Table, label string) (columns []dataset.Column) {
	for i := range rows.Columns() {
		if c := rows.Column(i); c.Name != label {
			columns = append(columns, *c)
		}
	}
	return columns
}

// withKept runs use with the rows that are not handed out: those of the holdout, then those of the check part.
func (h *opened) withKept(ctx context.Context, work string, use func(rows *dataset.Table) error) error {
	both := filepath.Join(work, "rows")
	if h.far == nil {
		return withBehind(both, h.holdoutTable, h.checkTable, use)
	}
	if err := h.fetch(ctx, both, h.checkTable); err != nil {
		return err
	}
	return withWritten(both, use)
}

// RowID is the column of Features that numbers its rows from 0: those of the holdout, then those of the check part.
const RowID = "row_id"

// features is a table of rows that are not handed out without the label, in the stored order: one that was drawn at random for this holdout
// (placing). That it is public is the reason why split, whose slices are stretches of it, is refused with features=public.
func (h *opened) features(rows *dataset.Table) (*dataset.Table, error) {
	ids := make([]float64, rows.Rows())
	for i := range ids {
		ids[i] = float64(i)
	}
	columns := []dataset.Column{{Field: dataset.Field{Name: RowID, Kind: dataset.Number, Source: "INT64"}, Numbers: ids}}
	return dataset.FromColumns(append(columns, withoutLabel(rows, h.card.Settings.Label)...)...)
}

// exported opens a table of a holdout as Parquet under this name, which is written when it is first asked for.
func (s *Service) exported(ctx context.Context, id, name string, of func(h *opened) (write, error)) (*os.File, error) {
	h, release, err := s.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release() // an open file outlives its name, should the holdout be deleted meanwhile
	path := s.path(holdoutsDir, id, name)
	h.exporting.Lock()
	defer h.exporting.Unlock()
	f, err := h.openChecked(path)
	if err == nil {
		return f, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("an exported file is damaged and is written again", "file", path, "error", err)
	}
	table, err := of(h)
	if err != nil {
		return nil, err
	}
	if err := s.export(table, path); errors.Is(err, dataset.ErrDamaged) || errors.Is(err, &remote.Error{Kind: remote.Changed}) {
		return nil, h.faulted(err)
	} else if err != nil {
		return nil, storageError(fmt.Errorf("holdout: export to %s: %w", name, err))
	}
	return h.openChecked(path)
}

// sumSuffix names the file that holds the SHA-256 of an exported file, in hexadecimal.
const sumSuffix = ".sha256"

// openChecked is openExport, which reads a file once as long as it stays the same one.
func (h *opened) openChecked(path string) (*os.File, error) {
	f, err := dataset.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if known := h.exports[path]; err == nil && known != nil && os.SameFile(known, info) && known.Size() == info.Size() && known.ModTime().Equal(info.ModTime()) {
		return f, nil
	}
	f.Close() // read only
	if f, err = openExport(path); err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		if h.exports == nil {
			h.exports = map[string]os.FileInfo{}
		}
		h.exports[path] = info
	}
	return f, nil
}

// openExport opens an exported file, if it is what was written.
func openExport(path string) (*os.File, error) {
	f, err := dataset.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	var want []byte
	wants, err := dataset.OpenRegular(path + sumSuffix)
	if err == nil {
		want, err = io.ReadAll(io.LimitReader(wants, 4*sha256.Size))
		wants.Close() // read only
	}
	sum := sha256.New()
	if err == nil {
		_, err = io.Copy(sum, f)
	}
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != strings.TrimSpace(string(want)) {
		err = errors.New("its checksum does not fit")
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		// Not fs.ErrNotExist, also where only the checksum is missing: the file is there, and not to be served.
		return nil, errors.Join(fmt.Errorf("holdout: %s is damaged: %v", path, err), f.Close())
	}
	return f, nil
}

// export writes a table as Parquet under its final name, whole or not at all.
func (s *Service) export(table write, path string) error {
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
	sum := sha256.New()
	faulted := dataset.Guarded(func() { err = table(io.MultiWriter(f, sum), work) })
	if err = errors.Join(faulted, err); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.WriteFile(draft+sumSuffix, []byte(hex.EncodeToString(sum.Sum(nil))+"\n"), secretMode); err != nil {
		return err
	}
	// A crash between the two, or before they are durable, leaves files that do not fit, which are written again.
	if err := errors.Join(os.Rename(draft+sumSuffix, path+sumSuffix), os.Rename(draft, path)); err != nil {
		return err
	}
	return dataset.SyncDir(filepath.Dir(path))
}
