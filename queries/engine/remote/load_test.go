//go:build engines

package remote

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// cutting loses the answer to some INSERTs, which the engine has done.
type cutting struct {
	lost int // of the next ones
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && c.lost > 0 && len(r.URL.Query().Get("query")) > 6 && r.URL.Query().Get("query")[:6] == "INSERT" {
		c.lost--
		response.Body.Close()
		return nil, errors.New("the connection was lost")
	}
	return response, err
}

// TestLoad: a table that the loader has written has all rows once, though an INSERT that was done seemed lost; one whose INSERT is lost each time is not there.
func TestLoad(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	reader := connect(t, cluster.Address(0, "reader"))
	cut := &cutting{lost: 1}
	loader, err := NewClickHouse(cluster.Address(0, "loader"), Options{Transport: cut})
	must(t, err)
	table, offsets := edges(), edgeUnits()
	layout := Layout("loaded", table.Schema(), largest)
	must(t, Load(t.Context(), loader, &layout, Blocks(table, &layout, offsets)))
	s, err := New(reader, Registered{Table: layout, Units: int64(len(offsets) - 1), Rows: int64(table.Rows()), Offsets: offsets})
	must(t, err)
	must(t, s.Verify(t.Context()))
	here, err := engine.NewTable(table, offsets, largest)
	must(t, err)
	batch := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Column("x", rowfn.Number), Lo: -1, Hi: 1}}}
	want, err := here.Moments(t.Context(), batch, 0, here.Units())
	must(t, err)
	if got, err := s.Moments(t.Context(), batch, 0, here.Units()); err != nil || !slices.Equal(got.Values, want.Values) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	cut.lost = LoadAttempts
	layout.From = "never_loaded"
	if err := Load(t.Context(), loader, &layout, Blocks(table, &layout, offsets)); !errors.Is(err, &Error{Kind: Unreachable}) {
		t.Errorf("each INSERT is lost: %v", err)
	}
	text, err := loader.ask(t.Context(), "EXISTS TABLE never_loaded FORMAT TabSeparated", AnswerBytes)
	if must(t, err); !bytes.Equal(bytes.TrimSpace(text), []byte("0")) {
		t.Errorf("what was not loaded is there: %s", text)
	}
}

// TestProbe: both engines sum the probe as it is summed here; one without a row of it is found.
func TestProbe(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	current := connect(t, enginetest.CurrentClickHouse(t))
	for name, c := range map[string][2]*ClickHouse{
		"18.16":   {connect(t, cluster.Address(0, "reader")), connect(t, cluster.Address(0, "loader"))},
		"current": {current, current},
	} {
		must(t, LoadProbe(t.Context(), c[1], "probe"))
		if err := CheckProbe(t.Context(), c[0], "probe"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := CheckProbe(t.Context(), negated{c[0]}, "probe"); !errors.Is(err, &Error{Kind: Changed}) {
			t.Errorf("%s that sums otherwise: %v", name, err)
		}
		if err := CheckProbe(t.Context(), c[0], "no_probe"); !errors.Is(err, &Error{Kind: Changed}) {
			t.Errorf("%s without a probe: %v", name, err)
		}
	}
}

// negated answers one sum with another number.
type negated struct{ *ClickHouse }

func (n negated) Integers(ctx context.Context, statement string, cells int) ([]string, error) {
	row, err := n.ClickHouse.Integers(ctx, statement, cells)
	if err == nil {
		row[len(row)-1] += "0"
	}
	return row, err
}

var _ interface {
	Dialect() *sql.Dialect
} = negated{}

// TestLoadShards: a table that the loader has written to a cluster has all rows once, each unit in one shard, though an INSERT that was done seemed lost; dropping it leaves nothing on any shard.
func TestLoadShards(t *testing.T) {
	cluster := enginetest.ClickHouse18(t)
	reader := connect(t, cluster.Address(0, "reader"))
	cut := &cutting{}
	addresses := []string{cluster.Address(0, "loader"), cluster.Address(1, "loader")}
	loader, err := NewShards("shards", addresses, Options{Transport: cut})
	must(t, err)
	table, offsets := edges(), edgeUnits()
	batch := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Column("x", rowfn.Number), Lo: -1, Hi: 1}}}
	for _, units := range [][]uint32{offsets, nil} {
		cut.lost = 1
		n, most := int64(table.Rows()), int64(0)
		if units != nil {
			n, most = int64(len(units)-1), largest
		}
		layout := Layout("spread", table.Schema(), most)
		must(t, Load(t.Context(), loader, &layout, Blocks(table, &layout, units)))
		s, err := New(reader, Registered{Table: layout, Units: n, Rows: int64(table.Rows()), Offsets: units})
		must(t, err)
		must(t, s.Verify(t.Context()))
		here, err := engine.NewTable(table, units, max(most, 1))
		must(t, err)
		for _, to := range []int64{n, n / 3} {
			want, err := here.Moments(t.Context(), batch, 0, to)
			must(t, err)
			if got, err := s.Moments(t.Context(), batch, 0, to); err != nil || !slices.Equal(got.Values, want.Values) {
				t.Errorf("%d units: %v, %v; want %v", to, got, err, want)
			}
		}
		rows := 0
		for shard, address := range addresses {
			text, err := connect(t, address).ask(t.Context(), "SELECT count() FROM spread_local FORMAT TabSeparated", AnswerBytes)
			must(t, err)
			held, err := strconv.Atoi(string(bytes.TrimSpace(text)))
			if must(t, err); held < table.Rows()/4 {
				t.Errorf("shard %d has %d of %d rows", shard, held, table.Rows())
			}
			rows += held
		}
		if rows != table.Rows() {
			t.Errorf("the shards have %d rows, there are %d", rows, table.Rows())
		}
		must(t, loader.Drop(t.Context(), &layout))
		for _, address := range addresses {
			text, err := connect(t, address).ask(t.Context(), "SELECT count() FROM system.tables WHERE name LIKE 'spread%' FORMAT TabSeparated", AnswerBytes)
			if must(t, err); string(text) != "0\n" {
				t.Errorf("tables are left: %s", text)
			}
		}
	}
	for name, c := range map[string][]string{"no;name": addresses, "shards": addresses[:1]} {
		if _, err := NewShards(name, c, Options{}); err == nil {
			t.Errorf("%s of %d", name, len(c))
		}
	}
}
