package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

// Divide implements [sources.Source]. The files are compared byte by byte with what they were, before and after. Rows go to buckets of the parts by their numbers, in one pass
// over the table; then each bucket is put in order in memory. When it fails, nothing of the parts is left.
func (s *Source) Divide(ctx context.Context, of sources.Snapshot, by sources.Keys, parts []sources.PartSpec, place func(sources.Units, []sources.Place) error, done func(rows int64)) (infos []sources.PartInfo, err error) {
	t, err := s.table(of)
	if err != nil {
		return nil, err
	}
	d := newDivision(t)
	if err := t.same(ctx); err != nil {
		return nil, err
	}
	scratch, remove, err := s.scratch()
	if err != nil {
		return nil, err
	}
	defer func() {
		left := remove()
		if err != nil {
			for _, m := range d.parts {
				left = errors.Join(left, os.RemoveAll(m.dir))
			}
		}
		if err == nil && left != nil {
			err = unavailable(left)
		}
	}()
	var units int64
	for _, p := range parts {
		units += p.Units
	}
	each := max(1, int64(float64(t.rows)*float64(units)/float64(max(of.Rows, 1))))
	for _, p := range parts {
		dir, err := s.partDir(p.Name)
		if err != nil {
			return nil, err
		}
		if err := d.add(p.Name, dir, p.Units, each); err != nil {
			return nil, unavailable(err)
		}
	}
	if err := d.route(ctx, scratch, by, place, done); err != nil {
		return nil, err
	}
	if err := t.same(ctx); err != nil {
		return nil, err
	}
	for i := range parts {
		info, err := d.finish(ctx, d.parts[i], len(by.Columns) > 0 && !by.Rows)
		if err != nil {
			return nil, unavailable(err)
		}
		infos = append(infos, info)
	}
	if err := dataset.SyncDir(s.o.Parts); err != nil {
		return nil, unavailable(err)
	}
	return infos, nil
}

func newDivision(t *table) *division {
	d := &division{table: t, columns: t.snapshot.Schema.Fields}
	texts := 0
	for _, f := range d.columns {
		if f.Kind == dataset.Text {
			texts++
		}
	}
	for _, f := range d.columns {
		if f.Kind == dataset.Text {
			d.words = append(d.words, newWords(texts))
		} else {
			d.words = append(d.words, nil)
		}
	}
	return d
}

// route writes all rows to their buckets.
func (d *division) route(ctx context.Context, scratch string, by sources.Keys, place func(sources.Units, []sources.Place) error, done func(rows int64)) error {
	k := keys{by: by, table: d.table}
	placed, err := d.placements(ctx, scratch, by, place)
	if err != nil {
		return err
	}
	if placed != nil {
		defer placed.close()
	}
	return d.table.each(ctx, scratch, nil, func(p piece, rows *dataset.Table) error {
		d.begin(rows.Rows())
		var err error
		if placed != nil {
			err = placed.goes(d, p)
		} else {
			err = d.byPlace(k, p, rows, place)
		}
		if err == nil {
			if err = d.write(rows); err != nil {
				err = unavailable(err)
			}
		}
		if err == nil && done != nil {
			done(p.first + p.rows)
		}
		return err
	})
}

// byPlace asks where the rows of a piece go, each of which is a unit.
func (d *division) byPlace(k keys, p piece, rows *dataset.Table, place func(sources.Units, []sources.Place) error) error {
	places := make([]sources.Place, min(unitBlock, rows.Rows()))
	return k.rows(p, rows, func(from int, u sources.Units) error {
		to := places[:u.Len()]
		if err := place(u, to); err != nil {
			return err
		}
		for i, at := range to {
			if err := d.goes(from+i, at.Part, at.Number); err != nil {
				return err
			}
		}
		return nil
	})
}

// placements asks where units of several rows go, and keeps it by row in a file that has no name: it is nil where each row is a unit.
func (d *division) placements(ctx context.Context, scratch string, by sources.Keys, place func(sources.Units, []sources.Place) error) (*placements, error) {
	if len(by.Columns) == 0 {
		return nil, nil
	}
	p, err := newPlacements(scratch, d.table.snapshot.Rows)
	if err != nil {
		return nil, unavailable(err)
	}
	places := make([]sources.Place, unitBlock)
	err = d.table.units(ctx, scratch, by, func(u sources.Units, rows [][]uint32) error {
		to := places[:u.Len()]
		if err := place(u, to); err != nil {
			return err
		}
		for i, at := range to {
			if at.Part < 0 || at.Part >= len(d.parts) || at.Number < 0 || at.Number >= d.parts[at.Part].units {
				return fmt.Errorf("files: number %d of part %d was given", at.Number, at.Part)
			}
			for _, row := range rows[i] {
				p.set(row, at)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// finish makes the segments of a part, several at once.
func (d *division) finish(ctx context.Context, m *making, grouped bool) (sources.PartInfo, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	made := partFiles{Version: partVersion, Segments: make([]segment, len(m.buckets))}
	var (
		next    atomic.Int64
		group   sync.WaitGroup
		mutex   sync.Mutex
		first   error
		largest int64
	)
	for range min(runtime.GOMAXPROCS(0), 4, len(m.buckets)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(m.buckets); i = int(next.Add(1)) - 1 {
				s, most, err := d.segment(ctx, m.dir, i, m.buckets[i], grouped)
				mutex.Lock()
				if made.Segments[i], largest = s, max(largest, most); err != nil && first == nil {
					first = err
					stop()
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if first == nil {
		first = dataset.SyncDir(m.dir)
	}
	if first != nil {
		return sources.PartInfo{}, first
	}
	info := sources.PartInfo{Name: m.name, Schema: d.table.snapshot.Schema, Rows: m.rows, Units: m.units, Grouped: grouped, LargestUnit: largest,
		Texts: map[string]dataset.TextShape{}}
	for i, w := range d.words {
		if w != nil {
			info.Texts[d.columns[i].Name] = w.shape()
		}
	}
	part := &Part{info: info}
	for i, s := range made.Segments {
		files, err := dataset.OpenFiles(segmentDir(m.dir, i))
		if err != nil {
			return info, err
		}
		part.segments = append(part.segments, opened{segment: s, files: files})
	}
	info.Checksums = part.checksums()
	var err error
	info.Private, err = json.Marshal(made)
	return info, err
}
