package queries

import (
	"context"
	"testing"
)

// TestBinaryIsOfRows: a condition is 0 or 1 where units are rows. Where they hold several, a unit has a share of its rows.
func TestBinaryIsOfRows(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		q, err := Parse([]byte(`{"type":"fraction","of":"delay > 15"}`))
		if err != nil {
			t.Fatal(err)
		}
		p, err := q.Compile(context.Background(), flights, Grouped(grouped))
		if err != nil {
			t.Fatal(err)
		}
		if e := p.Equation(); e == nil || e.Binary == grouped || e.Square != nil {
			t.Errorf("grouped %v: %+v", grouped, e)
		}
	}
}
