package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// written makes a file with one int32 column for each name, required, of these rows.
func written(t testing.TB, names []string, rows int) []byte {
	t.Helper()
	nodes := make(schema.FieldList, len(names))
	for i, name := range names {
		nodes[i] = schema.NewInt32Node(name, parquet.Repetitions.Required, -1)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root)
	group := w.AppendRowGroup()
	values := make([]int32, rows)
	for range names {
		chunk, err := group.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := chunk.(*file.Int32ColumnChunkWriter).WriteBatch(values, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := chunk.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	return names
}

func TestSchemas(t *testing.T) {
	if e := refused(t, write(t, written(t, []string{"a", "b", "a"}, 1)), Limits{}, DuplicateColumn); e.Column != "a" {
		t.Errorf("the duplicate column is %q", e.Column)
	}
	refused(t, write(t, written(t, numbered(20000), 1)), Limits{}, TooManyColumns)
	refused(t, write(t, written(t, []string{"a"}, 0)), Limits{}, NoRows)
	refused(t, write(t, written(t, []string{"", "\xff", "a\x01b"}, 3)), Limits{}, NoUsableColumns)

	table, res := decode(t, write(t, written(t, []string{"a", "A", "", "a.b", "x y"}, 3)))
	names := make([]string, table.Columns())
	for i := range names {
		names[i] = table.Column(i).Name
	}
	if !slices.Equal(names, []string{"a", "A", "a.b", "x y"}) || len(res.Skipped) != 1 {
		t.Errorf("columns %q, skipped %v", names, res.Skipped)
	}
}

// A page that is larger than the limit is no damage; the sentence must say what to do about it.
func TestPageLimit(t *testing.T) {
	if e := refused(t, fixture("flights-20k.parquet"), Limits{MaxPageBytes: 1000}, TooLarge); e.Column != "date" {
		t.Errorf("column %q, want date", e.Column)
	}
}

// The widest table that is taken.
func TestMaxColumns(t *testing.T) {
	table, _ := decode(t, write(t, written(t, numbered(DefaultMaxColumns), 2)))
	if table.Columns() != DefaultMaxColumns || table.Rows() != 2 {
		t.Errorf("%d columns of %d rows", table.Columns(), table.Rows())
	}
}
