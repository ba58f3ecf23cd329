package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/sources"
)

// table is a snapshot as it is read.
type table struct {
	source   *Source
	snapshot sources.Snapshot
	files    []tableFile
	parts    []piece // in the order of places
	rows     int64   // of a segment
}

// piece is some row groups of a file, which are decoded together.
type piece struct {
	file     int
	from, to int   // row groups
	first    int64 // the place of the first row
	rows     int64
}

// table reads what a snapshot keeps.
func (s *Source) table(snapshot sources.Snapshot) (*table, error) {
	t := &table{source: s, snapshot: snapshot}
	var kept tableFiles
	if err := json.Unmarshal(snapshot.Private, &kept); err != nil {
		return nil, fmt.Errorf("files: the snapshot of %q cannot be read: %w", snapshot.Table, err)
	}
	t.files = kept.Files
	t.rows = min(s.o.SegmentRows, max(segmentBytes/max(width(snapshot.Schema), 1), minSegmentRows))
	first := int64(0)
	for i, f := range t.files {
		p := piece{file: i, first: first}
		for group, n := range f.Groups {
			if p.rows > 0 && p.rows+n > t.rows {
				t.parts = append(t.parts, p)
				p = piece{file: i, from: group, to: group, first: first}
			}
			p.to, p.rows = group+1, p.rows+n
			first += n
		}
		if p.rows > 0 {
			t.parts = append(t.parts, p)
		}
	}
	if first != snapshot.Rows {
		return nil, fmt.Errorf("files: the snapshot of %q has %d rows in files and says %d", snapshot.Table, first, snapshot.Rows)
	}
	return t, nil
}

// width is the bytes of a row.
func width(s dataset.Schema) (bytes int64) {
	for _, f := range s.Fields {
		bytes += int64(kindWidth(f.Kind))
	}
	return bytes
}

func kindWidth(k dataset.Kind) int {
	switch k {
	case dataset.Bool:
		return 1
	case dataset.Text:
		return 4
	}
	return 8
}

// wanted are columns by name, in this order; nil: all.
func (t *table) wanted(names []string) []ingest.Wanted {
	var wanted []ingest.Wanted
	if names == nil {
		for _, f := range t.snapshot.Schema.Fields {
			wanted = append(wanted, ingest.Wanted{Name: f.Name, Kind: f.Kind})
		}
	}
	for _, name := range names {
		for _, f := range t.snapshot.Schema.Fields {
			if f.Name == name {
				wanted = append(wanted, ingest.Wanted{Name: f.Name, Kind: f.Kind})
			}
		}
	}
	return wanted
}

// scanning is how many children decode at once while a table is looked at.
func scanning() int { return min(runtime.GOMAXPROCS(0), 4) }

// scan reads all columns of all pieces, several at once; add is called by one at a time.
func (t *table) scan(ctx context.Context, add func(ingest.Scan)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		next  atomic.Int64
		group sync.WaitGroup
		mutex sync.Mutex
		first error
	)
	for range min(scanning(), len(t.parts)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(t.parts)); i = next.Add(1) - 1 {
				found, err := t.scanPiece(ctx, t.parts[i])
				mutex.Lock()
				if err == nil {
					add(found)
				} else if first == nil {
					first = err
					stop()
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return first
}

func (t *table) scanPiece(ctx context.Context, p piece) (ingest.Scan, error) {
	if err := ctx.Err(); err != nil {
		return ingest.Scan{}, err
	}
	name := t.files[p.file].Name
	f, _, err := t.source.open(name)
	if err != nil {
		return ingest.Scan{}, err
	}
	defer f.Close() // read only
	found, err := t.source.pieces(f).Scan(ctx, p.from, p.to, t.wanted(nil))
	if err != nil {
		return found, ended(ctx, decoding(name, err))
	}
	return found, nil
}

// ended is the context's error where it has ended: a child that was killed for it has no fault.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	return err
}

// Rows yields the rows of a table in the order of their places, from first on, a piece at a time, with these columns, or all where columns is nil. A piece's table is closed when yield returns; an
// error that yield returns ends it and is returned.
func (s *Source) Rows(ctx context.Context, of sources.Snapshot, columns []string, yield func(first int64, rows *dataset.Table) error) (err error) {
	t, err := s.table(of)
	if err != nil {
		return err
	}
	scratch, remove, err := s.scratch()
	if err != nil {
		return err
	}
	defer func() {
		if left := remove(); err == nil && left != nil {
			err = unavailable(left)
		}
	}()
	return t.each(ctx, scratch, columns, func(p piece, rows *dataset.Table) error { return yield(p.first, rows) })
}

// each decodes columns of all pieces in the order of places, the next one while the last one is yielded. A piece's table is closed when yield returns.
func (t *table) each(ctx context.Context, scratch string, columns []string, yield func(p piece, rows *dataset.Table) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	type decoded struct {
		piece
		rows *dataset.Table
		err  error
	}
	ready := make(chan decoded)
	defer func() {
		stop()
		for d := range ready {
			if d.rows != nil {
				d.rows.Close() // read only
			}
		}
	}()
	wanted := t.wanted(columns)
	go func() {
		defer close(ready)
		for i, p := range t.parts {
			rows, err := t.decode(ctx, filepath.Join(scratch, "piece"+strconv.Itoa(i)), p, wanted)
			ready <- decoded{p, rows, err}
			if err != nil {
				return
			}
		}
	}()
	for range t.parts {
		d := <-ready
		if d.err != nil {
			return d.err
		}
		if fault := dataset.Guarded(func() { err = yield(d.piece, d.rows) }); fault != nil {
			err = unavailable(fault) // the disk could not give back what was decoded
		}
		if closing := d.rows.Close(); err == nil && closing != nil {
			err = unavailable(closing)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *table) decode(ctx context.Context, dir string, p piece, wanted []ingest.Wanted) (*dataset.Table, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name := t.files[p.file].Name
	f, size, err := t.source.open(name)
	if err != nil {
		return nil, changed("a file of the table is not there any more; register the table again", err)
	}
	defer f.Close() // read only
	if size != t.files[p.file].Bytes {
		return nil, tableChanged(fmt.Errorf("%s has %d bytes", name, size))
	}
	rows, err := t.source.pieces(f).Table(ctx, dir, p.from, p.to, wanted)
	if err != nil {
		return nil, ended(ctx, decoding(name, err))
	}
	if int64(rows.Rows()) != p.rows {
		rows.Close() // read only
		return nil, tableChanged(fmt.Errorf("%s: %d rows", name, rows.Rows()))
	}
	return rows, nil
}

func tableChanged(err error) error {
	return changed("the files of the table are not those that were looked at: they changed since; register the table again when nobody writes to it", err)
}

// same compares all files, byte by byte, with what they were when they were looked at.
func (t *table) same(ctx context.Context) error {
	names, err := t.source.names(t.snapshot.Table)
	if err != nil || len(names) != len(t.files) {
		return tableChanged(fmt.Errorf("%d files, there were %d: %v", len(names), len(t.files), err))
	}
	for i, want := range t.files {
		if names[i] != want.Name {
			return tableChanged(fmt.Errorf("%q where %q was", names[i], want.Name))
		}
		if err := t.sameFile(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) sameFile(ctx context.Context, want tableFile) error {
	f, size, err := t.source.open(want.Name)
	if err != nil {
		return tableChanged(err)
	}
	defer f.Close() // read only
	if size != want.Bytes {
		return tableChanged(fmt.Errorf("%s has %d bytes, it had %d", want.Name, size, want.Bytes))
	}
	sum, err := digest(ctx, f, size)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return unavailable(err)
	case sum != want.SHA256:
		return tableChanged(fmt.Errorf("%s has other bytes", want.Name))
	}
	return nil
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
