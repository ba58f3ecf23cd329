package holdout

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// part is one side of a holdout, as questions need it. One of an upload is in column files at the server (tablePart); one of a table of a source is where the source keeps it (sourcedPart).
type part interface {
	engine.MomentSource
	// schema are its columns.
	schema() dataset.Schema
	// shape is what is public of it.
	shape() dataset.Shape
	// work is what it takes to sum a batch, from public facts alone. Its refusal says that the source does not do it.
	work(batch rowfn.Batch) Work
	// time is about how many nanoseconds that takes, from public facts alone, where a step of engine.Work takes step.
	time(batch rowfn.Batch, step float64) float64
	// texts are the values of a text column, sorted; nil where it is none. Of more than queries.MaxValues it may say only that.
	texts(column string) []string
	// numbers are the different values of a column of numbers, rising; nil where it is none, or where there are more than most.
	numbers(column string, most int) []float64
	// pieces is in how many pieces it is given out.
	pieces() int
	// export writes a piece as Parquet; whole units, in the stored order.
	export(ctx context.Context, out io.Writer, piece int) error
	close() error
}

// tablePart is a part in column files.
type tablePart struct {
	watched
	table  *dataset.Table
	public dataset.Shape
}

func newTablePart(t *dataset.Table, source *engine.Table, found func(error) *Error) *tablePart {
	return &tablePart{watched: watched{source, found}, table: t, public: shapeOf(t, source)}
}

func (p *tablePart) schema() dataset.Schema { return p.table.Schema() }
func (p *tablePart) shape() dataset.Shape   { return p.public }
func (p *tablePart) pieces() int            { return 1 }
func (p *tablePart) close() error           { return p.table.Close() }

func (p *tablePart) work(batch rowfn.Batch) Work {
	e := engine.EstimateBatch(batch, p.public)
	return Work{Steps: e.Total(p.public.Rows), Pass: e.Memory}
}

func (p *tablePart) time(batch rowfn.Batch, step float64) float64 {
	return step * float64(p.work(batch).Steps)
}

func (p *tablePart) export(_ context.Context, out io.Writer, _ int) error {
	return ingest.Export(out, p.table)
}

func (p *tablePart) texts(column string) []string {
	c, ok := p.table.Lookup(column)
	if !ok || c.Kind != dataset.Text {
		return nil
	}
	var texts []string
	if err := dataset.Guarded(func() { texts = c.Dictionary.Sorted() }); err != nil {
		return nil // the scan that follows meets the same damage, and says so
	}
	return texts
}

func (p *tablePart) numbers(column string, most int) []float64 {
	c, ok := p.table.Lookup(column)
	if !ok || c.Kind != dataset.Number {
		return nil
	}
	seen := map[float64]bool{}
	if err := dataset.Guarded(func() {
		for _, x := range c.Numbers {
			if x == x && !seen[x] {
				if seen[x] = true; len(seen) > most {
					return
				}
			}
		}
	}); err != nil || len(seen) > most { // the scan that follows meets the same damage, and says so
		return nil
	}
	return slices.Sorted(maps.Keys(seen))
}

// columnFiles is the table of a part of an upload; nil where there is no such part.
func columnFiles(p part) *dataset.Table {
	if t, ok := p.(*tablePart); ok {
		return t.table
	}
	return nil
}
