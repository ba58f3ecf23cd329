package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/blocks"
)

// Part is a part as it is read. It implements [sources.Part].
type Part struct {
	dir      string
	info     sources.PartInfo
	cap      int64
	segments []opened
}

// opened is a segment; its columns are mapped while they are read.
type opened struct {
	segment
	files   *dataset.Files
	offsets string // the file
	first   int64  // the number of the first unit
}

var (
	_ sources.Part    = (*Part)(nil)
	_ blocks.Numbered = (*Part)(nil)
)

// Open implements [sources.Source].
func (s *Source) Open(ctx context.Context, of sources.PartInfo, rowsCap int64) (sources.Part, error) {
	return OpenPart(ctx, s.o.Parts, of, rowsCap)
}

// OpenPart opens a part in a directory of parts, as the Open of a source does. It compares the manifests and sizes of all files with what was written; a column is compared whenever it is read.
func OpenPart(ctx context.Context, parts string, of sources.PartInfo, rowsCap int64) (sources.Part, error) {
	dir, err := partDir(parts, of.Name)
	if err != nil {
		return nil, err
	}
	var kept partFiles
	if err := json.Unmarshal(of.Private, &kept); err != nil {
		return nil, fmt.Errorf("files: what is kept of the part %s cannot be read: %w", of.Name, err)
	}
	if kept.Version != partVersion {
		return nil, fmt.Errorf("files: the part %s has version %d, and this program reads version %d: %w", of.Name, kept.Version, partVersion, dataset.ErrVersion)
	}
	if rowsCap < 1 {
		return nil, fmt.Errorf("files: units of at most %d rows, want 1 or more", rowsCap)
	}
	p := &Part{dir: dir, info: of, cap: rowsCap}
	var rows, units int64
	for i, kept := range kept.Segments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		path := segmentDir(dir, i)
		files, err := dataset.OpenFiles(path)
		if err != nil {
			return nil, damaged(err)
		}
		switch fingerprint := files.Fingerprint(); {
		case hex.EncodeToString(fingerprint[:]) != kept.Manifest:
			return nil, damaged(&dataset.CorruptError{Path: path, Detail: "its manifest is not what was written"})
		case int64(files.Rows()) != kept.Rows || !slices.Equal(files.Schema().Fields, of.Schema.Fields):
			return nil, damaged(&dataset.CorruptError{Path: path, Detail: "it is another table"})
		}
		p.segments = append(p.segments, opened{segment: kept, files: files, offsets: offsetsFile(dir, i), first: units})
		rows, units = rows+kept.Rows, units+kept.Units
	}
	if !maps.Equal(p.checksums(), of.Checksums) {
		return nil, damaged(&dataset.CorruptError{Path: dir, Detail: "its columns have other checksums than were registered"})
	}
	if rows != of.Rows || units != of.Units {
		return nil, damaged(&dataset.CorruptError{Path: dir, Detail: fmt.Sprintf("segments of %d rows and %d units, registered were %d and %d", rows, units, of.Rows, of.Units)})
	}
	return p, nil
}

// checksums are those of the columns, by the manifests.
func (p *Part) checksums() map[string]string {
	sums := make(map[string]string, len(p.info.Schema.Fields))
	for i, f := range p.info.Schema.Fields {
		h := sha256.New()
		for _, s := range p.segments {
			fmt.Fprintln(h, s.Rows, s.files.Checksum(i))
		}
		sums[f.Name] = hex.EncodeToString(h.Sum(nil))
	}
	return sums
}

// damaged says what kept a part's files from being read: they are not there any more, or not what was written.
func damaged(err error) error {
	if e := (*sources.Error)(nil); errors.As(err, &e) {
		return err
	}
	if errors.Is(err, dataset.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		return changed("the files of this holdout are damaged or missing; restore them from a backup", err)
	}
	return unavailable(err)
}

// Units implements [engine.Source].
func (p *Part) Units() int64 { return p.info.Units }

// Shape implements [sources.Part].
func (p *Part) Shape() dataset.Shape {
	s := dataset.Shape{Rows: p.info.Rows, Texts: p.info.Texts}
	if p.info.Grouped {
		s.Units = p.info.Units
	}
	return s
}

// Sums implements [engine.Source].
func (p *Part) Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error) {
	sums, err := p.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments implements [engine.MomentSource]: one pass over the segments, whose columns are compared with their checksums before they are used.
func (p *Part) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	if from < 0 || to < from || to > p.info.Units {
		return rowfn.Sums{}, fmt.Errorf("files: units %d to %d of %d", from, to, p.info.Units)
	}
	sums, err := blocks.Sum(ctx, p, p.info.Schema, batch, p.cap, from, to)
	if errors.Is(err, dataset.ErrDamaged) {
		err = damaged(err)
	}
	return sums, err
}

// readRate is about how many bytes a second are read from disk and compared with their checksum.
const readRate = 500 << 20

// Price implements [sources.Part].
func (p *Part) Price(batch rowfn.Batch) (sources.Price, error) {
	names, err := blocks.NumberedColumns(p.info.Schema, batch)
	if err != nil {
		return sources.Price{}, err
	}
	var read dataset.Schema
	for _, f := range p.info.Schema.Fields {
		if slices.Contains(names, f.Name) {
			read.Fields = append(read.Fields, f)
		}
	}
	bytes := width(read) * p.info.Rows
	work := engine.EstimateBatch(batch, p.Shape())
	seconds := float64(bytes)/readRate + float64(work.Total(p.info.Rows))/1e9
	return sources.Price{Read: len(batch.Functions), Bytes: bytes, Scans: 1, Seconds: seconds}, nil
}

// Read implements [sources.Part]. A block is what of the units lies in one segment; it is gone when yield returns.
func (p *Part) Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	if from < 0 || to < from || to > p.info.Units {
		return fmt.Errorf("files: units %d to %d of %d", from, to, p.info.Units)
	}
	for i := p.at(from); from < to; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := &p.segments[i]
		end := min(to, s.first+s.Units)
		if err := p.readSegment(ctx, s, columns, from, end, yield); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// Rows implements [blocks.Numbered]: rows have numbers in the order in which they are kept.
func (p *Part) Rows() int64 { return p.info.Rows }

// FirstRow implements [blocks.Numbered].
func (p *Part) FirstRow(_ context.Context, unit int64) (row int64, err error) {
	for i := range p.segments {
		s := &p.segments[i]
		switch {
		case unit >= s.first+s.Units:
			row += s.segment.Rows
			continue
		case !p.info.Grouped:
			return row + unit - s.first, nil
		case unit == s.first:
			return row, nil
		}
		offsets, err := readOffsets(s.offsets, s.Offsets, s.Units, s.segment.Rows)
		if err != nil {
			return 0, damaged(err)
		}
		return row + int64(offsets[unit-s.first]), nil
	}
	return row, nil
}

// at is the segment in which a unit lies.
func (p *Part) at(unit int64) int {
	return sort.Search(len(p.segments), func(i int) bool { return p.segments[i].first+p.segments[i].Units > unit })
}

func (p *Part) readSegment(ctx context.Context, s *opened, columns []string, from, to int64, yield func(sources.Block) error) (err error) {
	processor, err := engine.Enter(ctx) // comparing checksums is work as summing is
	if err != nil {
		return err
	}
	t, err := s.files.Map(columns)
	processor.Leave()
	if err != nil {
		return damaged(err)
	}
	defer func() {
		if closing := t.Close(); err == nil && closing != nil {
			err = unavailable(closing)
		}
	}()
	b := sources.Block{Rows: t, First: from}
	first, last := from-s.first, to-s.first
	if p.info.Grouped {
		if b.Offsets, err = readOffsets(s.offsets, s.Offsets, s.Units, s.Rows); err != nil {
			return damaged(err)
		}
		rows := b.Offsets[first]
		end := b.Offsets[last]
		b.Offsets = b.Offsets[first : last+1]
		for i := range b.Offsets {
			b.Offsets[i] -= rows
		}
		first, last = int64(rows), int64(end)
	}
	if first > 0 || last < int64(t.Rows()) {
		b.Rows = t.Slice(int(first), int(last))
	}
	if fault := dataset.Guarded(func() { err = yield(b) }); fault != nil {
		return damaged(fault)
	}
	return err
}

// Check implements [sources.Part]: all columns are compared with their checksums, and all values are looked at.
func (p *Part) Check(ctx context.Context) error {
	return p.Read(ctx, nil, 0, p.info.Units, func(sources.Block) error { return ctx.Err() })
}

// Close implements [sources.Part].
func (p *Part) Close() error { return nil }

// Distinct implements [sources.Part]. It holds most values, and a flag for each text of a segment.
func (p *Part) Distinct(ctx context.Context, column string, most int) (dataset.Column, bool, error) {
	f, ok := field(p.info.Schema, column)
	if !ok {
		return dataset.Column{}, false, &sources.Error{Kind: sources.NotFound, Column: column, Detail: fmt.Sprintf("there is no column %q", column)}
	}
	numbers, texts := map[float64]bool{}, map[string]bool{}
	errMany := errors.New("more than most")
	err := p.Read(ctx, []string{column}, 0, p.info.Units, func(b sources.Block) error {
		c := b.Rows.Column(0)
		for _, v := range c.Numbers {
			if v == v && !numbers[v] {
				if numbers[v] = true; len(numbers) > most {
					return errMany
				}
			}
		}
		for _, v := range c.Bools {
			if v != dataset.NullBool {
				numbers[float64(v)] = true
			}
		}
		for code := range used(c) {
			if texts[c.Dictionary.Text(code-1)] = true; len(texts) > most {
				return errMany
			}
		}
		return ctx.Err()
	})
	if errors.Is(err, errMany) || err == nil && len(numbers) > most {
		return dataset.Column{}, false, nil
	}
	if err != nil {
		return dataset.Column{}, false, err
	}
	found := dataset.Column{Field: f}
	switch f.Kind {
	case dataset.Text:
		values := make([]string, 0, len(texts))
		for text := range texts {
			values = append(values, text)
		}
		slices.Sort(values)
		found = dataset.NewText(f.Name, values, nil)
		found.Source = f.Source
	case dataset.Bool:
		for _, v := range []uint8{0, 1} {
			if numbers[float64(v)] {
				found.Bools = append(found.Bools, v)
			}
		}
	default:
		for v := range numbers {
			found.Numbers = append(found.Numbers, v)
		}
		slices.Sort(found.Numbers)
	}
	return found, true, nil
}

// used yields the codes of a Text column that any row has; null is none.
func used(c *dataset.Column) func(func(int) bool) {
	return func(yield func(int) bool) {
		seen := make([]bool, c.Dictionary.Len()+1)
		for _, code := range c.Codes {
			seen[code] = true
		}
		for code := 1; code < len(seen); code++ {
			if seen[code] && !yield(code) {
				return
			}
		}
	}
}

// Facts implements [sources.Part]. Texts of a column are counted exactly up to maxSketch; of more, the count is an estimate within about 2%.
func (p *Part) Facts(ctx context.Context) ([]sources.Facts, error) {
	facts := make([]sources.Facts, len(p.info.Schema.Fields))
	for i, f := range p.info.Schema.Fields {
		fact := &facts[i]
		if f.Kind == dataset.Number || f.Kind == dataset.Time {
			fact.Low, fact.High = math.Inf(1), math.Inf(-1)
		}
		texts := &words{many: true, limit: maxSketch}
		err := p.Read(ctx, []string{f.Name}, 0, p.info.Units, func(b sources.Block) error {
			c := b.Rows.Column(0)
			for _, v := range c.Numbers {
				switch {
				case dataset.Infinite(v):
					fact.Infinite++
					fact.Nulls++
				case v != v:
					fact.Nulls++
				default:
					fact.Low, fact.High = min(fact.Low, v), max(fact.High, v)
				}
			}
			for _, v := range c.Bools {
				if v == dataset.NullBool {
					fact.Nulls++
				}
			}
			if c.Kind == dataset.Text {
				for _, code := range c.Codes {
					if code == 0 {
						fact.Nulls++
					}
				}
				marks := c.Dictionary.Marks()
				var piece []marked
				for code := range used(c) {
					if piece = append(piece, marked{mark: marks[code]}); len(piece) == texts.limit {
						break // marks ascend
					}
				}
				texts.merge(piece)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		fact.Distinct = texts.count()
	}
	return facts, nil
}
