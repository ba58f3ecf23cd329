//go:build engines

package remote

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// TestConformanceNotices: what is planted into an engine's dialect or tables is noticed by the conformance test's own cases or by the source itself. It
// tests the test: a fault that goes through would go through there, too.
func TestConformanceNotices(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) { open(t).notices(t) })
	}
}

// spoken is an engine that is spoken to in another dialect.
type spoken struct {
	Engine
	dialect sql.Dialect
}

func (s *spoken) Dialect() *sql.Dialect { return &s.dialect }

// dialectFaults change a dialect of ClickHouse or Trino; those that leave one as it is are the other's.
var dialectFaults = []struct {
	name  string
	plant func(d *sql.Dialect, clickhouse bool)
}{
	{"least and greatest", func(d *sql.Dialect, _ bool) { d.Min, d.Max = "least($1,$2)", "greatest($1,$2)" }},
	{"infinities stay", func(d *sql.Dialect, _ bool) { d.Clean = "$1" }},
	{"not equal to null", func(d *sql.Dialect, clickhouse bool) {
		if d.NotEqual = "(CASE WHEN $1 <> $2 THEN BIGINT '1' ELSE BIGINT '0' END)"; clickhouse {
			d.NotEqual = "notEquals($1,$2)"
		}
	}},
	{"float average", func(d *sql.Dialect, clickhouse bool) {
		if clickhouse {
			d.Grid, d.Sum = strings.TrimSuffix(strings.TrimPrefix(strings.Replace(d.Grid, ",0.5)", ",0.0)", 1), "toInt64(floor("), "))"), "toInt64(avg($1)*count())"
			return
		}
		d.Grid = strings.Replace(strings.Replace(strings.Replace(d.Grid, "CAST(floor(", "((", 1), " + 0.5e0)", ")", 1), " AS bigint)", ")", 1)
		d.Sum = "CAST(floor(avg($1) * count(*) + 0.5e0) AS bigint)"
	}},
	{"plain numbers", func(d *sql.Dialect, _ bool) {
		exact := d.Number
		d.Number = func(x float64) string {
			if x != x {
				return exact(x)
			}
			return strconv.FormatFloat(x, 'f', -1, 64)
		}
	}},
	{"plain texts", func(d *sql.Dialect, clickhouse bool) {
		if clickhouse { // where a backslash escapes; elsewhere a text in quotes is what it says
			d.Text = func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
		}
	}},
	{"integer halves down", func(d *sql.Dialect, clickhouse bool) {
		d.Grid = strings.Replace(strings.Replace(d.Grid, ",0.5)", ",0.4999)", 1), "0.5e0", "0.4999e0", 1)
	}},
	{"days cut towards 0", func(d *sql.Dialect, clickhouse bool) {
		if d.IntLess = "(CASE WHEN $1 = $2 + BIGINT '1' THEN BIGINT '1' ELSE BIGINT '0' END)"; clickhouse {
			d.IntLess = "equals($1,plus($2,1))"
		}
	}},
	{"high half lost", func(d *sql.Dialect, _ bool) { d.High = "$1" }},
}

// tableFaults are tables made of the edge rows: %[1]s is the true one, columns are selected by a function.
var tableFaults = []struct {
	name  string
	make  func(r *real, columns []sql.Column, from string) string
	found error // what the source says by itself, or nil where only the sums differ
}{
	{"natural NULL", func(r *real, columns []sql.Column, from string) string {
		return selecting(columns, from, "", func(c sql.Column) string {
			switch {
			case c.Type == rowfn.Text && r.clickhouse():
				return fmt.Sprintf("if(%s = 1, NULL, %s)", c.Null, c.Name)
			case c.Type == rowfn.Text:
				return fmt.Sprintf("CASE WHEN %s = 1 THEN NULL ELSE %s END", c.Null, c.Name)
			case c.Type == rowfn.Condition:
				return fmt.Sprintf("nullIf(%s, 2)", c.Name)
			case r.clickhouse():
				return fmt.Sprintf("if(isFinite(%s), %[1]s, NULL)", c.Name)
			}
			return fmt.Sprintf("CASE WHEN is_finite(%s) THEN %[1]s ELSE NULL END", c.Name)
		})
	}, nil},
	{"a row missing", func(_ *real, columns []sql.Column, from string) string {
		return selecting(columns, from, "row_number <> 17", nil)
	}, &Error{Kind: Changed}},
	{"a load that was tried again", func(_ *real, columns []sql.Column, from string) string {
		return selecting(columns, from, "", nil) + " UNION ALL " + selecting(columns, from, "row_number < 40", nil)
	}, &Error{Kind: Changed}},
	{"a row changed", func(r *real, columns []sql.Column, from string) string {
		return selecting(columns, from, "", func(c sql.Column) string {
			if c.Type != rowfn.Condition {
				return c.Name
			}
			if r.clickhouse() {
				return fmt.Sprintf("if(row_number = 17, toUInt8(1 - %s %% 2), %[1]s)", c.Name)
			}
			return fmt.Sprintf("CASE WHEN row_number = 17 THEN CAST(1 - %s %% 2 AS tinyint) ELSE %[1]s END", c.Name)
		})
	}, nil},
}

// selecting is a SELECT of all columns that a loader writes, some as an expression.
func selecting(columns []sql.Column, from, where string, as func(c sql.Column) string) string {
	items := []string{"row_number"}
	for _, c := range columns {
		value := c.Name
		if as != nil {
			value = as(c)
		}
		if value != c.Name {
			value = "(" + value + ") AS " + c.Name
		}
		if items = append(items, value); c.Null != "" {
			items = append(items, c.Null)
		}
	}
	text := "SELECT " + strings.Join(items, ", ") + " FROM (SELECT * FROM " + from
	if where != "" {
		text += " WHERE " + where
	}
	return text + ") AS source"
}

func (r *real) clickhouse() bool { return r.engine.Dialect().Name == sql.ClickHouse.Name }

func (r *real) notices(t *testing.T) {
	t.Helper()
	s := r.sources[0]
	batches := drawn(t, false)
	batches = slices.Concat(batches[:3], batches[randomBatches:]) // random ones, and all that are directed
	if wrong, _ := sumsOf(t, s, batches, 1); wrong > 0 {
		t.Fatalf("%d batches are wrong without a fault", wrong)
	}
	for _, fault := range dialectFaults {
		planted := &spoken{r.engine, *r.engine.Dialect()}
		before := fmt.Sprintf("%+v", fields(planted.dialect))
		if fault.plant(&planted.dialect, r.clickhouse()); before == fmt.Sprintf("%+v", fields(planted.dialect)) {
			continue // not this engine's
		}
		other, err := New(planted, s.of)
		must(t, err)
		wrong, err := sumsOf(t, other, batches, 1)
		t.Logf("%s, %s: %d batches are wrong; the source says %v", r.name, fault.name, wrong, err)
		if wrong == 0 {
			t.Errorf("%s: %s goes unnoticed", r.name, fault.name)
		}
	}
	checksum, err := s.Checksum(t.Context())
	must(t, err)
	for i, fault := range tableFaults {
		of := s.of
		of.Checksum = checksum
		of.Table.From = strings.TrimSuffix(of.Table.From, "edge_rows") + fmt.Sprint("planted_", i)
		r.create(t, of.Table.From, fault.make(r, inPlace(&of.Table), s.of.Table.From))
		other, err := New(r.engine, of)
		must(t, err)
		wrong, err := sumsOf(t, other, batches, len(batches))
		verified := other.Verify(t.Context())
		t.Logf("%s, %s: %d of %d batches are wrong; the source says %v, and verification %v", r.name, fault.name, wrong, len(batches), err, verified)
		if wrong == 0 || fault.found != nil && (wrong != len(batches) || !errors.Is(err, fault.found)) {
			t.Errorf("%s: %s goes unnoticed", r.name, fault.name)
		}
		if !errors.Is(verified, &Error{Kind: Changed}) && fault.name != "natural NULL" {
			t.Errorf("%s: %s is not found by verification", r.name, fault.name)
		}
	}
	must(t, func() error {
		of := s.of
		of.Checksum = checksum
		same, err := New(r.engine, of)
		if err == nil {
			err = same.Verify(t.Context())
		}
		return err
	}())
}

// fields are the templates of a dialect, with what its functions write of some values.
func fields(d sql.Dialect) (text []any) {
	for _, x := range []float64{1, 0.1, 1e300} {
		text = append(text, d.Number(x))
	}
	text = append(text, d.Text("a"))
	d.Number, d.Text = nil, nil
	return append(text, d)
}

// sumsOf asks batches, until enough are wrong, and says of how many the sums are wrong, or none came; the error is the last one that the source found by itself.
func sumsOf(t *testing.T, s *Source, batches []expected, enough int) (wrong int, found error) {
	t.Helper()
	for _, e := range batches {
		if wrong == enough {
			break
		}
		got, err := s.Moments(t.Context(), e.batch, 0, s.Units())
		switch {
		case err != nil:
			if !errors.As(err, new(*Error)) {
				t.Fatal(err)
			}
			wrong, found = wrong+1, err
		case !slices.Equal(got.Values, e.sums.Values) || !slices.Equal(got.Products, e.sums.Products):
			wrong++
		}
	}
	return wrong, found
}
