package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"

	"github.com/holdoutd/holdoutd/dataset"
)

// Pieces decodes a Parquet file a few row groups at a time, for files that are larger than memory or disk would bear at once. Each call starts a child process as [Run] does;
// the child reads the file that is open here, whatever its name is by then. It is safe for concurrent use.
type Pieces struct {
	Argv   []string
	File   *os.File
	Limits Limits
}

// Survey is what a footer says. No value was read.
type Survey struct {
	Fields  []dataset.Field `json:"fields"` // of the columns that can be read, with the kind that they have unless [Scan] says otherwise
	Skipped []Skipped       `json:"skipped,omitempty"`
	Groups  []int64         `json:"groups"` // rows of each row group; none: the file has no rows
}

// Wanted is a column that is to be read.
type Wanted struct {
	Name string       `json:"name"`
	Kind dataset.Kind `json:"kind"` // that of the survey, or Text for integers that a float64 cannot hold
}

// Scan is what reading some row groups has shown.
type Scan struct {
	Wide    []string  `json:"wide,omitempty"`    // columns of integers that must be read as Text
	Skipped []Skipped `json:"skipped,omitempty"` // columns that cannot be read after all
	// Checksum is of the rows, whatever their order and that of the columns; 0 where Wide or Skipped name any. Those of two pieces are added.
	Checksum Checksum `json:"checksum"`
}

// Checksum is a sum of 128-bit hashes of rows, modulo 2^64 by half.
type Checksum [2]uint64

// Plus is the checksum of the rows of both.
func (c Checksum) Plus(d Checksum) Checksum { return Checksum{c[0] + d[0], c[1] + d[1]} }

type task string

const (
	taskSurvey task = "survey"
	taskScan   task = "scan"
	taskPiece  task = "piece"
)

func (p Pieces) run(ctx context.Context, req request) (reply, error) {
	req.Limits, req.Path, req.file = p.Limits.withDefaults(), childFile, p.File
	return runChild(ctx, p.Argv, req)
}

// Survey reads the footer.
func (p Pieces) Survey(ctx context.Context) (Survey, error) {
	rep, err := p.run(ctx, request{Task: taskSurvey})
	if err == nil && rep.Survey == nil {
		err = errNoReply
	}
	if err != nil {
		return Survey{}, err
	}
	return *rep.Survey, nil
}

// Scan reads columns of the row groups from..to-1.
func (p Pieces) Scan(ctx context.Context, from, to int, wanted []Wanted) (Scan, error) {
	rep, err := p.run(ctx, request{Task: taskScan, Groups: [2]int{from, to}, Wanted: wanted})
	if err == nil && rep.Scan == nil {
		err = errNoReply
	}
	if err != nil {
		return Scan{}, err
	}
	return *rep.Scan, nil
}

// Table decodes columns of the row groups from..to-1 into dir, which must not exist, opens the dataset, and removes dir: the table lasts until it is closed. A column that is
// not of the kind wanted is an error.
func (p Pieces) Table(ctx context.Context, dir string, from, to int, wanted []Wanted) (*dataset.Table, error) {
	rep, err := p.run(ctx, request{Task: taskPiece, Dir: dir, Groups: [2]int{from, to}, Wanted: wanted})
	if err == nil && rep.Result == nil {
		err = errNoReply
	}
	if err != nil {
		return nil, errorsJoin(err, os.RemoveAll(dir))
	}
	t, err := dataset.Open(dir)
	if err != nil {
		return nil, errorsJoin(&Error{Kind: Internal, Detail: "the decoded dataset cannot be opened", Err: err}, os.RemoveAll(dir))
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, errors.Join(&Error{Kind: Internal, Detail: "the decoded dataset cannot be removed", Err: err}, t.Close())
	}
	fields := t.Schema().Fields
	same := len(fields) == len(wanted) && int64(t.Rows()) == rep.Result.Rows
	for i := 0; same && i < len(fields); i++ {
		same = fields[i].Name == wanted[i].Name && fields[i].Kind == wanted[i].Kind
	}
	if !same {
		return nil, errors.Join(&Error{Kind: Internal, Detail: "the decoded dataset is not the one that the decoding process described"}, t.Close())
	}
	return t, nil
}

// work is what the child does for a piece.
func work(req request, lim Limits) (rep reply, err error) {
	d := &decoder{ctx: context.Background(), lim: lim, pages: newPages(lim.MaxPageBytes)}
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Kind: Damaged, Detail: "the file cannot be decoded", Err: fmt.Errorf("panic: %v", r)}
		}
		if err != nil {
			rep, err = reply{}, d.classify(err)
			if d.writer != nil {
				err = errorsJoin(err, d.writer.Abort())
			}
		}
	}()
	if err := d.open(req.Path); err != nil {
		return rep, err
	}
	defer d.source.Close()
	if err := d.planRows(); err != nil {
		return rep, err
	}
	if err := d.checkExpansion(); err != nil {
		return rep, err
	}
	if req.Task == taskSurvey {
		return reply{Survey: d.survey()}, nil
	}
	if err := d.choose(req); err != nil {
		return rep, err
	}
	if req.Task == taskScan {
		scan, err := d.scan()
		return reply{Scan: scan}, err
	}
	if d.writer, err = dataset.NewScratch(req.Dir); err != nil {
		return rep, err
	}
	if err := d.write(); err != nil {
		return rep, err
	}
	return reply{Result: &d.result}, nil
}

func (d *decoder) survey() *Survey {
	s := &Survey{Skipped: d.result.Skipped}
	for _, c := range d.columns {
		s.Fields = append(s.Fields, dataset.Field{Name: c.name, Kind: c.kind, Source: c.source})
	}
	for _, g := range d.meta.groups {
		s.Groups = append(s.Groups, g.rows)
	}
	return s
}

// choose leaves the columns that are wanted, in their order, and the row groups.
func (d *decoder) choose(req request) error {
	if d.from, d.to = req.Groups[0], req.Groups[1]; d.from < 0 || d.to < d.from || d.to > len(d.meta.groups) {
		return refuse(Damaged, "the file has %d row groups, and %d to %d were asked for", len(d.meta.groups), d.from, d.to)
	}
	d.rows = 0
	for _, g := range d.meta.groups[d.from:d.to] {
		d.rows += g.rows
	}
	byName := make(map[string]*column, len(d.columns))
	for _, c := range d.columns {
		byName[c.name] = c
	}
	d.columns = d.columns[:0:0]
	for _, w := range req.Wanted {
		c := byName[w.Name]
		switch {
		case c == nil:
			return &Error{Kind: Damaged, Column: w.Name, Detail: "the file has no such column any more"}
		case c.kind == w.Kind:
		case w.Kind == dataset.Text && c.readDigits != nil:
			c.kind, c.read = dataset.Text, c.readDigits
		default:
			return &Error{Kind: Damaged, Column: w.Name, Detail: fmt.Sprintf("the column is a %v and was to be a %v", c.kind, w.Kind)}
		}
		d.columns = append(d.columns, c)
	}
	return nil
}

// scan reads all values and keeps none.
func (d *decoder) scan() (*Scan, error) {
	s, rows := &Scan{}, make([]Checksum, d.rows)
	d.batch.textsLeft = d.lim.MaxTextBytes
	for _, c := range d.columns {
		d.batch.begin(d.lim)
		h := newCellHasher(c.name, c.kind)
		row := 0
		d.take = func(n int) error {
			h.add(rows[row:row+n], &d.batch)
			row += n
			return nil
		}
		err := d.readColumn(c)
		skip := (*skipError)(nil)
		switch {
		case errors.Is(err, errTooWide):
			s.Wide = append(s.Wide, c.name)
		case errors.As(err, &skip):
			s.Skipped = append(s.Skipped, Skipped{Name: c.name, Reason: skip.reason})
		case err != nil:
			return nil, err
		case c.kind == dataset.Text:
			if err := d.addTexts(); err != nil {
				return nil, err
			}
		}
	}
	if len(s.Wide)+len(s.Skipped) > 0 {
		return s, nil
	}
	for _, r := range rows {
		a := mix(r[0])
		s.Checksum = s.Checksum.Plus(Checksum{a, mix(r[1] ^ bits.RotateLeft64(a, 32))})
	}
	return s, nil
}

// cellHasher adds hashes of a column's cells to those of their rows.
type cellHasher struct {
	seed  Checksum
	texts []Checksum // by code-1
}

func newCellHasher(name string, kind dataset.Kind) *cellHasher {
	m := dataset.MarkOf(fmt.Sprintf("%d %s", kind, name))
	return &cellHasher{seed: Checksum{m.High, m.Low}}
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014): a bijection whose bits all depend on all.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// nullCell stands for a null: no number's bits, which would be those of a NaN.
const nullCell = 0x7FF8000000000001

func (h *cellHasher) cell(v uint64) Checksum {
	return Checksum{mix(v ^ h.seed[0]), mix(bits.RotateLeft64(v, 17)*0x9E3779B97F4A7C15 ^ h.seed[1])}
}

func (h *cellHasher) add(rows []Checksum, b *batch) {
	switch b.kind {
	case dataset.Text:
		for i := len(h.texts); i < len(b.dictionary); i++ {
			m := dataset.MarkOf(b.dictionary[i])
			h.texts = append(h.texts, Checksum{mix(m.High ^ h.seed[0]), mix(m.Low ^ h.seed[1])})
		}
		null := h.cell(nullCell)
		for i, code := range b.codes[:len(rows)] {
			if code == 0 {
				rows[i] = rows[i].Plus(null)
			} else {
				rows[i] = rows[i].Plus(h.texts[code-1])
			}
		}
	case dataset.Bool:
		cells := [3]Checksum{h.cell(0), h.cell(1), h.cell(nullCell)}
		for i, v := range b.bools[:len(rows)] {
			rows[i] = rows[i].Plus(cells[v])
		}
	default:
		for i, v := range b.numbers[:len(rows)] {
			cell := math.Float64bits(v + 0) // -0 is 0
			if v-v != 0 {
				cell = nullCell
			}
			rows[i] = rows[i].Plus(h.cell(cell))
		}
	}
}
