//go:build engines

package remote

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
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
