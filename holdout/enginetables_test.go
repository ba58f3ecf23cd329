//go:build engines

package holdout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
)

// plainVisits is visits without truths, which ClickHouse 18.16 does not have.
func plainVisits(t *testing.T, n int) *dataset.Table {
	t.Helper()
	var columns []dataset.Column
	table := visits(t, n, 3)
	for i := range table.Columns() {
		if c := table.Column(i); c.Kind != dataset.Bool {
			columns = append(columns, *c)
		}
	}
	plain, err := dataset.FromColumns(columns...)
	must(t, err)
	return plain
}

var plainQueries = []string{
	`{"type":"mean","of":"x","range":[0,1]}`,
	`{"type":"mean","of":"score","range":[0,100],"where":"clinic == 'clinic 3'"}`,
	`{"type":"mean","of":"log(x + 1.0)","range":[0,1]}`,
	`{"type":"quantile","of":"score","p":0.5,"range":[0,100]}`,
	`{"type":"fraction","of":"seen.getFullYear() > 1970"}`,
}

// rowBinary are the rows of plainVisits for an INSERT.
func rowBinary(table *dataset.Table) (b []byte) {
	for row := range table.Rows() {
		for i := range table.Columns() {
			switch c := table.Column(i); {
			case c.Kind == dataset.Text:
				b = native(b, c.Dictionary.Text(int(c.Codes[row]-1)))
			case c.Kind == dataset.Time:
				b = binary.LittleEndian.AppendUint32(b, uint32(c.Numbers[row]/1e6))
			case c.Name == "score":
				if b = append(b, 0); c.Null(row) {
					b[len(b)-1] = 1
					continue
				}
				fallthrough
			default:
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Numbers[row]))
			}
		}
	}
	return b
}

// TestTableInClickHouse: a table that lies in a real ClickHouse becomes the holdout, byte for byte, that its upload becomes; with its held-out rows put into the same engine's other database, too. A statement that
// would write is refused to the user who reads, and a table of held-out rows is none that can be taken.
func TestTableInClickHouse(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	loader := cluster.Address(0, "loader")
	table := plainVisits(t, 2000)
	engineText(t, loader, "CREATE DATABASE held")
	engineText(t, loader, "CREATE TABLE visits (chart Float64, x Float64, clinic String, seen DateTime, score Nullable(Float64)) ENGINE = Memory")
	response, err := http.Post(loader+"?query="+url.QueryEscape("INSERT INTO default.visits FORMAT RowBinary"), "", bytes.NewReader(rowBinary(table)))
	must(t, err)
	if response.Body.Close(); response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	bare := func(database string) string {
		u, err := url.Parse(cluster.Address(0, "reader"))
		must(t, err)
		return fmt.Sprintf("http://%s/%s", u.Host, database)
	}
	sources := map[string]Source{
		"lake": {Address: bare("default"), Reader: Login{"reader", "reader"}},
		"held": {Address: bare("held"), Reader: Login{"reader", "reader"}, Loader: Login{"loader", "loader"}},
	}
	set := Settings{Holdout: 0.5, Mechanism: "gaussian", Questions: 100}
	for _, source := range []string{"", "held"} {
		here := openWith(t, t.TempDir(), nil)
		one := create(t, here, set, table)
		there := openWith(t, t.TempDir(), sources)
		of := set
		of.Path, of.Source = "lake/visits", source
		two, _, err := there.Create(t.Context(), admin, of, nothing, "")
		must(t, err)
		if answers := sameAnswers(t, here, one.ID, there, two.ID, plainQueries); answers < 4 || one.Rows != two.Rows {
			t.Errorf("%q: %d answers; rows %v and %v", source, answers, one.Rows, two.Rows)
		}
		if source == "" {
			continue
		}
		held := strings.Fields(engineText(t, loader, "SELECT name FROM system.tables WHERE database = 'held' FORMAT TabSeparated"))
		if len(held) < 2 {
			t.Fatalf("held are %v", held)
		}
		for _, name := range held {
			for _, path := range []string{"lake/" + name, "held/" + name} {
				of.Path = path
				if _, _, err := there.Create(t.Context(), admin, of, nothing, ""); KindOf(err) != Invalid {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
	sources["lake"] = Source{Address: bare("default"), Reader: Login{"loader", "loader"}}
	s := openWith(t, t.TempDir(), sources)
	set.Path = "lake/visits"
	if _, _, err := s.Create(t.Context(), admin, set, nothing, ""); KindOf(err) != Unavailable || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("a reader who may write: %v", err)
	}
}

// TestTableInTrino: a table that lies in Trino is the table of its upload: once something was asked of the one, the other is refused. Trino gives rows in an order of its own, so that the halves are others.
func TestTableInTrino(t *testing.T) {
	coordinator := enginetest.Trino(t)
	loader, err := remote.NewTrino(strings.Replace(coordinator, "//", "//loader@", 1)+"/memory/default", remote.Options{})
	must(t, err)
	count := func(statement string) string {
		row, err := loader.Integers(t.Context(), statement, 1)
		must(t, err)
		return row[0]
	}
	table := plainVisits(t, 1000)
	var rows []string
	for row := range table.Rows() {
		score := "NULL"
		if c, _ := table.Lookup("score"); !c.Null(row) {
			score = fmt.Sprintf("%v", c.Numbers[row])
		}
		at := func(name string) *dataset.Column {
			c, _ := table.Lookup(name)
			return c
		}
		clinic := at("clinic")
		rows = append(rows, fmt.Sprintf("(%ve0, from_ieee754_64(X'%016x'), '%s', from_unixtime(%v), CAST(%s AS double))", at("chart").Numbers[row], math.Float64bits(at("x").Numbers[row]),
			clinic.Dictionary.Text(int(clinic.Codes[row]-1)), at("seen").Numbers[row]/1e6, score))
	}
	into := "CREATE TABLE visits AS SELECT chart, x, CAST(clinic AS varchar) AS clinic, seen, score FROM (VALUES %s) AS v (chart, x, clinic, seen, score)"
	for from := 0; from < len(rows); from += 250 {
		count(fmt.Sprintf(into, strings.Join(rows[from:from+250], ", ")))
		into = "INSERT INTO visits VALUES %s"
	}
	s := openWith(t, t.TempDir(), map[string]Source{"lake": {Engine: EngineTrino, Address: coordinator + "/memory/default", Reader: Login{User: "reader"}}})
	set := Settings{Holdout: 0.5, Mechanism: "gaussian", Questions: 100, Path: "lake/Visits"}
	card, _, err := s.Create(t.Context(), admin, set, nothing, "")
	must(t, err)
	for _, query := range plainQueries {
		ask(t, s, card.ID, query)
	}
	set.Path = ""
	if _, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(parquet(t, table))), ""); KindOf(err) != Exists {
		t.Errorf("the same table as an upload: %v", err)
	}
}
