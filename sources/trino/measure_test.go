//go:build engines

package trino

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/trino/trinotest"
)

// BenchmarkLineitem measures a table of 6 million rows in Iceberg, whose units are 1.5 million orders: the look, the division, and 10 and 100 means of a part beside means by hand, which
// compare no checksums and leave units alone. It runs once:
//
//	HOLDOUTD_TRINO=$(scripts/trino.sh) HOLDOUTD_TRINO_MEASURE=1 go test -tags engines -run '^$' -bench Lineitem -benchtime 1x ./sources/trino
func BenchmarkLineitem(b *testing.B) {
	c := trinotest.Shared(b)
	s := open(b, c, "iceberg")
	c.Exec(b, "CREATE TABLE IF NOT EXISTS iceberg.owner.lineitem AS SELECT orderkey, linenumber, quantity, extendedprice, discount, tax, returnflag, shipdate FROM tpch.sf1.lineitem")
	for range b.N {
		begun := time.Now()
		of := must[sources.Snapshot](b)(s.Look(b.Context(), "iceberg.owner.lineitem"))
		b.ReportMetric(time.Since(begun).Seconds(), "look-s")
		begun = time.Now()
		infos := must[[]sources.PartInfo](b)(divided(b, s, "iceberg.owner.lineitem", sources.Keys{Columns: []string{"orderkey"}}))
		b.ReportMetric(time.Since(begun).Seconds(), "look-units-divide-s")
		p := must[sources.Part](b)(s.Open(b.Context(), infos[0], 7))
		for _, n := range []int{10, 100} {
			var batch rowfn.Batch
			var hand []string
			for i := range n {
				high := 50000 + 500*float64(i)
				batch.Functions = append(batch.Functions, rowfn.Function{Value: rowfn.Mul(rowfn.Column("extendedprice", rowfn.Number), rowfn.Sub(rowfn.Const(1), rowfn.Column("discount", rowfn.Number))), Lo: 0, Hi: high, PerUnit: rowfn.UnitShare})
				hand = append(hand, fmt.Sprintf("avg(least(greatest(c3 * (1e0 - c4), 0e0), %ge0))", high))
			}
			ours, theirs := time.Duration(0), time.Duration(0)
			for range 3 { // in turns, for the machine is shared
				begun := time.Now()
				must[rowfn.Sums](b)(p.Moments(b.Context(), batch, 0, p.Units()))
				ours += time.Since(begun)
				begun = time.Now()
				if _, err := c.Query("SELECT " + strings.Join(hand, ", ") + " FROM iceberg.private." + tableOf(partTable, infos[0].Name)); err != nil {
					b.Fatal(err)
				}
				theirs += time.Since(begun)
			}
			b.ReportMetric(ours.Seconds()/3, fmt.Sprintf("means%d-s", n))
			b.ReportMetric(theirs.Seconds()/3, fmt.Sprintf("byhand%d-s", n))
		}
		b.ReportMetric(float64(of.Rows), "rows")
	}
}
