package ingest

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dataset"
)

// statistics are what a footer says of the values of a chunk: the struct Statistics of parquet.thrift without the ends that older writers compared by other rules.
type statistics struct {
	nulls     int64 // -1: it does not say
	low, high []byte
}

// statisticsOf are those of a chunk; the footer was read over them before.
func (m *metadata) statisticsOf(c *chunk) statistics {
	s := statistics{nulls: -1}
	if c.statistics == 0 {
		return s
	}
	r := &thriftReader{data: m.data, at: int(c.statistics)}
	r.structure(4, func(id int16, kind byte) bool {
		switch {
		case id == 3 && kind == thriftI64:
			s.nulls = r.int()
		case id == 5 && kind == thriftBinary:
			s.high = r.bytes()
		case id == 6 && kind == thriftBinary:
			s.low = r.bytes()
		default:
			return false
		}
		return true
	})
	return s
}

// measured is what the pages of a chunk hold: nulls, and the ends of numbers and times.
type measured struct {
	nulls     int64
	low, high float64
	kind      dataset.Kind // as they were read
}

// add counts n rows that were read.
func (m *measured) add(b *batch, n int) {
	m.kind = b.kind
	switch b.kind {
	case dataset.Bool:
		for _, v := range b.bools[:n] {
			if v == dataset.NullBool {
				m.nulls++
			}
		}
	case dataset.Text:
		for _, code := range b.codes[:n] {
			if code == 0 {
				m.nulls++
			}
		}
	default:
		for _, v := range b.numbers[:n] {
			switch {
			case v < m.low:
				m.low = v
			case math.IsNaN(v): // a NaN of the file, too
				m.nulls++
			}
			if v > m.high {
				m.high = v
			}
		}
	}
}

// contradicts reports statistics that the values of a chunk refute. The pages are what is read; a footer that says something else was not written with them.
func (d *decoder) contradicts(c *column, s statistics, read measured) bool {
	number := c.kind == dataset.Number || c.kind == dataset.Time
	floats := c.physical == float || c.physical == double || c.physical == fixedLenByteArray // whose NaN are values
	if s.nulls >= 0 && (s.nulls > read.nulls || s.nulls < read.nulls && !(number && (floats || c.kind == dataset.Time))) {
		return true
	}
	if !number || read.kind == dataset.Text || c.form.width == 0 {
		return false
	}
	low, high := d.end(c, s.low), d.end(c, s.high)
	return low > read.low || high < read.high
}

// end is an end that the footer gives, as the column's values are read; NaN where it gives none.
func (d *decoder) end(c *column, plainValue []byte) float64 {
	if int64(len(plainValue)) != c.form.width {
		return math.NaN()
	}
	n, err := c.read(&d.batch, &page{form: c.form, rows: 1, present: 1, encoding: plain, data: plainValue})
	if n != 1 || err != nil || d.batch.kind == dataset.Text {
		return math.NaN()
	}
	return d.batch.numbers[0]
}

// doubt warns of a column's footer.
func (d *decoder) doubt(name string) {
	if d.doubted == nil {
		d.doubted = map[string]bool{}
	}
	d.doubted[name] = true
	d.warn("footer-statistics", name, fmt.Sprintf("the footer of the file says other nulls, or other ends, of %q than its pages hold. The pages were read. Programs that believe the footer see another table: write the file again", name))
}

// maxWarnings bounds the warnings about one file; one cause makes many.
const maxWarnings = 20

func (d *decoder) warn(code, column, detail string) {
	if len(d.result.Warnings) < maxWarnings {
		d.result.Warnings = append(d.result.Warnings, Warning{Code: code, Column: column, Detail: detail})
	}
}
