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
	"github.com/holdoutd/holdoutd/sources"
)

// Training opens the training part as Parquet; the caller closes the file. It is written when it is first asked for, and
// kept. Rows come in the order of the upload; with a unit column the units do, and the rows of a unit are together in a random order. Of a part of many pieces it is the first.
func (s *Service) Training(ctx context.Context, p Principal, id string) (*os.File, error) {
	f, _, err := s.TrainingPiece(ctx, p, id, 0)
	return f, err
}

// TrainingPiece opens a piece of the training part as Parquet, and says how many there are; the caller closes the file. Pieces are numbered from 0 on, each with the rows of whole units and
// about a million rows. An upload has one, which is what Training opens; of a table of a source each is read from the source when it is asked for, in an order that was drawn at random.
func (s *Service) TrainingPiece(ctx context.Context, p Principal, id string, piece int) (f *os.File, pieces int, err error) {
	return s.piece(ctx, p, id, trainingParquet, (*opened).trainingPart, piece)
}

// piece opens a piece of a part. Pieces of an upload are kept under a name.
func (s *Service) piece(ctx context.Context, p Principal, id, name string, of func(*opened) (part, error), piece int) (f *os.File, pieces int, err error) {
	find := func(h *opened) (part, error) {
		found, err := of(h)
		if err != nil {
			return nil, err
		}
		if pieces = found.pieces(); piece < 0 || piece >= pieces {
			return nil, invalid("piece", "the part has %d pieces, from 0 to %d", pieces, pieces-1)
		}
		return found, nil
	}
	f, err = s.exported(ctx, p, id, name, func(h *opened) (write, error) {
		found, err := find(h)
		if err != nil {
			return nil, err
		}
		return func(out io.Writer, _ string) error { return found.export(ctx, out, piece) }, nil
	}, func(h *opened) error {
		_, err := find(h)
		return err
	})
	return f, pieces, err
}

// Features opens the features of the holdout's rows as Parquet, for holdouts that were created with features=public: all columns but the
// label, and RowID, by which predictions of the rows are given. The rows of the check part follow, for which predictions are wanted, too. The caller closes the file.
func (s *Service) Features(ctx context.Context, p Principal, id string) (*os.File, error) {
	return s.exported(ctx, p, id, featuresParquet, func(h *opened) (write, error) {
		if !h.publicFeatures() {
			return nil, fail(NotFound, "the features of this holdout are secret: it was not created with features=public")
		}
		return func(out io.Writer, work string) error { return h.writeFeatures(ctx, out, work) }, nil
	}, nil)
}

// write writes a table as Parquet; work is a directory for what it needs meanwhile.
type write func(out io.Writer, work string) error

// writeFeatures writes the features of the holdout's rows, then those of the check part's.
func (h *opened) writeFeatures(ctx context.Context, out io.Writer, work string) (err error) {
	if h.card.segmented() {
		return h.writeFeaturePieces(ctx, out)
	}
	rows := columnFiles(h.held)
	if h.check != nil {
		both := filepath.Join(work, "rows")
		if err := dataset.Stack(both, rows, columnFiles(h.check)); err != nil {
			return err
		}
		if rows, err = dataset.Open(both); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
	}
	features, err := h.features(rows, 0)
	if err != nil {
		return err
	}
	return ingest.Export(out, features)
}

// writeFeaturePieces is writeFeatures of parts in segments, of which one is mapped at a time.
func (h *opened) writeFeaturePieces(ctx context.Context, out io.Writer) error {
	schema := dataset.Schema{Fields: []dataset.Field{rowIDField}}
	var names []string
	for _, f := range h.schema.Fields {
		if f.Name != h.card.Settings.Label {
			schema.Fields, names = append(schema.Fields, f), append(names, f.Name)
		}
	}
	return ingest.ExportPieces(out, schema, func(yield func(*dataset.Table) error) error {
		first := 0
		for _, side := range []part{h.held, h.check} {
			if side == nil {
				continue
			}
			p := side.(*sourcedPart)
			columns := names
			if len(columns) == 0 {
				columns = []string{h.card.Settings.Label} // of which the rows are counted
			}
			if err := p.Read(ctx, columns, 0, p.Units(), func(b sources.Block) error {
				features, err := h.features(b.Rows, first)
				if err != nil {
					return err
				}
				first += b.Rows.Rows()
				return yield(features)
			}); err != nil {
				return p.failed(err)
			}
		}
		return nil
	})
}

// RowID is the column of Features that numbers its rows from 0: those of the holdout, then those of the check part.
const RowID = "row_id"

var rowIDField = dataset.Field{Name: RowID, Kind: dataset.Number, Source: "INT64"}

// features is a table of rows that are not handed out without the label, in the stored order: one that was drawn at random for this holdout
// (placing). That it is public is the reason why split, whose slices are stretches of it, is refused with features=public.
// The first of the rows gets the number first.
func (h *opened) features(rows *dataset.Table, first int) (*dataset.Table, error) {
	ids := make([]float64, rows.Rows())
	for i := range ids {
		ids[i] = float64(first + i)
	}
	columns := []dataset.Column{{Field: rowIDField, Numbers: ids}}
	for i := range rows.Columns() {
		if c := rows.Column(i); c.Name != h.card.Settings.Label {
			columns = append(columns, *c)
		}
	}
	return dataset.FromColumns(columns...)
}

// exported opens a table of a holdout as Parquet under this name, which is written when it is first asked for. check, where it is not nil, refuses before a kept file is opened. What a source
// keeps is read from it each time, and not kept here, too.
func (s *Service) exported(ctx context.Context, p Principal, id, name string, of func(h *opened) (write, error), check func(h *opened) error) (*os.File, error) {
	if _, err := s.access(ctx, p, id); err != nil {
		return nil, err
	}
	h, release, err := s.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release() // an open file outlives its name, should the holdout be deleted meanwhile
	if check != nil {
		if err := check(h); err != nil {
			return nil, err
		}
	}
	if h.from != nil || h.card.segmented() && name != featuresParquet { // features are one file, of which a download that was cut off goes on
		return s.exportOnce(ctx, h, of)
	}
	path := s.holdoutPath(id, name)
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
	if err := s.export(table, path); errors.Is(err, dataset.ErrDamaged) {
		return nil, h.faulted(err)
	} else if err != nil {
		return nil, fmt.Errorf("holdout: export to %s: %w", name, err)
	}
	return h.openChecked(path)
}

// exportOnce writes rows of a source to a file that goes with its last reader. One is put together at a time, for that takes memory.
func (s *Service) exportOnce(ctx context.Context, h *opened, of func(h *opened) (write, error)) (file *os.File, err error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	table, err := of(h)
	if err != nil {
		return nil, err
	}
	select {
	case s.exporting <- struct{}{}:
		defer func() { <-s.exporting }()
	case <-ctx.Done():
		return nil, &Error{Kind: Unavailable, Detail: "the request ended before its turn to be given rows", Err: ctx.Err()}
	}
	f, err := os.CreateTemp(s.path(temporaryDir), "piece-*") // made with mode 0600
	if err != nil {
		return nil, fmt.Errorf("holdout: export: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		err = table(f, "")
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sumSuffix names the file that holds the SHA-256 of an exported file, in hexadecimal.
const sumSuffix = ".sha256"

// openChecked is openExport, which reads a file once as long as it stays the same one.
func (h *opened) openChecked(path string) (*os.File, error) {
	f, err := os.Open(path)
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

// Derived reports whether a file of a holdout's directory is made of its tables again when it is asked for.
func Derived(name string) bool {
	name = strings.TrimSuffix(name, sumSuffix)
	return name == trainingParquet || name == featuresParquet || name == heldOutParquet || name == checkParquet
}

// openExport opens an exported file, if it is what was written.
func openExport(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	want, err := os.ReadFile(path + sumSuffix)
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
	work, err := os.MkdirTemp(s.making, "export-")
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
