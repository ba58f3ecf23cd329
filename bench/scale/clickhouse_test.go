//go:build scale

package scale

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
	"github.com/holdoutd/holdoutd/sources/sql"
)

func TestMain(m *testing.M) { chtest.Main(m) }

// rows is how many rows are generated: HOLDOUTD_SCALE_ROWS, or so many.
func rows(t testing.TB, otherwise int64) int64 {
	if text := os.Getenv("HOLDOUTD_SCALE_ROWS"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return otherwise
}

const runs = 3

// mostInUnits is the most rows that are grouped into units in one statement here: the engine of a test has a gigabyte. A source asks a larger part in several.
const mostInUnits = 20_000_000

// reader asks as a source's reader does, with more time: a machine may be busy.
var reader = chtest.Profile{User: "measured", Settings: map[string]string{"max_execution_time": "3600"}}

// TestClickHouse generates orders inside the engine, as their owner has them and as a part has them, and asks both.
func TestClickHouse(t *testing.T) {
	for _, e := range []func(testing.TB, ...chtest.Profile) *chtest.Engine{chtest.NewCluster, chtest.NewCurrent} {
		c := clickhouse{Engine: e(t, reader)}
		t.Run(c.Name, func(t *testing.T) {
			all := rows(t, 10_000_000)
			c.generate(t, all)
			for _, n := range []int64{all / 10, all} {
				for _, questions := range []int{1, 10, 100} {
					c.measure(t, all, n, questions, false, 1)
				}
				c.measure(t, all, n, 10, true, 1)
				if n <= mostInUnits {
					c.measure(t, all, n, 10, false, 10)
				}
			}
		})
	}
}

type clickhouse struct{ *chtest.Engine }

const (
	// ofOwner is an order as its owner has it. 18.16 has neither LowCardinality nor Decimal in expressions of if.
	ofOwner = "id UInt64, amount Float64, distance Float32, age UInt8, hours Float64, rating Float64, weight Float64, at DateTime, city String, returned UInt8"
	// ofPart is the table that package clickhouse makes of it: narrow where all values are, with texts that are few in a dictionary where the version has them.
	ofPart  = "_unit UInt32, c0 Float64, n1 Float32, c1 Float64 ALIAS toFloat64(n1), n2 UInt8, c2 Float64 ALIAS toFloat64(n2), c3 Float64, c4 Float64, c5 Float64, n6 UInt32, c6 Float64 ALIAS multiply(toFloat64(n6), toFloat64(1000000)), c7 %s, c8 UInt8"
	cleaned = "amount, distance, age, hours, rating, weight, toUInt32(at), city, returned"
)

// generate makes the tables, a block at a time: a server of a test has a gigabyte.
func (c clickhouse) generate(t testing.TB, n int64) {
	list := "'" + strings.Join(cities, "', '") + "'"
	texts := "LowCardinality(String)"
	if c.Cluster != "" {
		texts = "String"
	}
	ofPart := fmt.Sprintf(ofPart, texts)
	c.Exec(t, "CREATE TABLE shop.orders ("+ofOwner+") ENGINE = MergeTree ORDER BY id",
		"CREATE TABLE holdoutd_private.part ("+ofPart+") ENGINE = MergeTree ORDER BY _unit",
		"CREATE TABLE holdoutd_private.grouped ("+ofPart+") ENGINE = MergeTree ORDER BY _unit")
	if c.Cluster != "" {
		c.Exec(t, "CREATE TABLE shop.all_orders ("+ofOwner+") ENGINE = Distributed(two, shop, orders)", "CREATE TABLE holdoutd_private.all_part ("+ofPart+") ENGINE = Distributed(two, holdoutd_private, part)",
			"CREATE TABLE holdoutd_private.all_grouped ("+ofPart+") ENGINE = Distributed(two, holdoutd_private, grouped)",
			"CREATE TABLE holdoutd_private.each (dummy UInt8) ENGINE = Distributed(two, 'system', 'one')")
	}
	const block = 1_000_000
	shards := int64(len(c.Servers))
	for from := int64(0); from < n; from += block {
		s := c.Servers[(from/block)%shards]
		for _, text := range []string{
			fmt.Sprintf(`INSERT INTO shop.orders SELECT toUInt64(number + %d) AS id, (intHash64(id) %% 100000) / 100, toFloat32((intHash64(id + 1) %% 4000) / 8), toUInt8(18 + intHash64(id + 2) %% 70),
				(intHash64(id + 3) %% 2400) / 16, (intHash64(id + 4) %% 501) / 100, 0.5 + (intHash64(id + 5) %% 1900) / 100, toDateTime(1600000000 + intHash64(id + 6) %% 94608000),
				arrayElement([%s], toUInt32(1 + intHash64(id + 7) %% %d)), toUInt8(intHash64(id + 8) %% 10 = 0) FROM (SELECT number FROM system.numbers LIMIT %d)`, from, list, len(cities), min(block, n-from)),
			fmt.Sprintf("INSERT INTO holdoutd_private.part SELECT toUInt32(id), %s FROM shop.orders WHERE id >= %d AND id < %d", cleaned, from, from+block),
			fmt.Sprintf("INSERT INTO holdoutd_private.grouped SELECT toUInt32(intDiv(id, 10)), %s FROM shop.orders WHERE id >= %d AND id < %d", cleaned, from, from+block),
		} {
			if _, err := s.Do(chtest.Owner, text, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// table is what is asked: of all shards where there are several.
func (c clickhouse) table(database, name string) string {
	if c.Cluster != "" {
		name = "all_" + name
	}
	return database + "." + name
}

// measure asks questions about the first n rows of all, in units of some rows, ours and by hand in turns.
func (c clickhouse) measure(t testing.TB, all, n int64, questions int, squares bool, unit int64) {
	part := sql.Part{Table: c.table("holdoutd_private", "part"), Schema: Schema, Units: all}
	if unit > 1 {
		part = sql.Part{Table: c.table("holdoutd_private", "grouped"), Schema: Schema, Units: all / unit, Grouped: true, Cap: unit}
	}
	if c.Cluster != "" { // as package clickhouse has it
		part.Each, part.Local = "holdoutd_private.each", strings.Replace(part.Table, "all_", "", 1)
	}
	var err error
	if part.Checks, err = c.checks(t, part); err != nil {
		t.Fatal(err)
	}
	if n < all { // whole blocks of what was registered, as the halves are that most questions are about
		n -= n % (part.Checks.Block * unit)
	}
	asked := Questions(questions)
	batch := Batch(asked, squares)
	plan, err := sql.Plan(sql.ClickHouse, part, batch, 0, n/unit)
	if err != nil || len(plan.Rest.Functions) > 0 {
		t.Fatal(err, plan.Why)
	}
	r := Result{Engine: "ClickHouse " + c.Name, Rows: n, Unit: unit, Questions: questions, Squares: squares, Sums: len(batch.Functions) + len(batch.Products), Scans: len(plan.Statements)}
	read := map[int]bool{}
	for _, s := range plan.Statements {
		r.Sent += len(s.Text)
		for _, column := range s.Columns {
			read[column] = true
		}
	}
	r.Columns = len(read)
	where := " FROM " + c.table("shop", "orders")
	if n < all {
		where += fmt.Sprintf(" WHERE id < %d", n)
	}
	var list []string
	for _, q := range asked {
		list = append(list, q.ByHand)
		if squares {
			list = append(list, strings.Replace(strings.Replace(q.ByHand, "avgIf(", "varPopIf(", 1), "avg(", "varPop(", 1))
		}
	}
	byHand := "SELECT " + strings.Join(list, ", ") + where
	if unit > 1 { // the mean of a unit's rows, then that of units
		var inner, outer []string
		for i, q := range asked {
			inner, outer = append(inner, fmt.Sprintf("%s AS m%d", q.ByHand, i)), append(outer, fmt.Sprintf("avg(m%d)", i))
		}
		byHand = "SELECT " + strings.Join(outer, ", ") + " FROM (SELECT " + strings.Join(inner, ", ") + where + " GROUP BY intDiv(id, 10))"
	}
	do := func(user, text string) (rows [][]string) {
		for line := range strings.Lines(c.query(t, user, text)) {
			rows = append(rows, strings.Split(strings.TrimSpace(line), "\t"))
		}
		return rows
	}
	var sums rowfn.Sums
	var theirs []string
	for run := range runs + 1 { // the first one reads from disk
		before := Processors()
		ours := timed(func() {
			sums = plan.Sums()
			r.Received = 0
			for _, s := range plan.Statements {
				rows := do(reader.User, s.Text)
				for _, row := range rows {
					r.Received += len(strings.Join(row, "\t")) + 1
				}
				if err := s.Read(part.Checks, &sums, rows...); err != nil {
					t.Fatal(err)
				}
			}
		})
		between := Processors()
		other := timed(func() { theirs = do(chtest.Owner, byHand)[0] })
		if run > 0 {
			r.Used, r.UsedBy = r.Used+between-before, r.UsedBy+Processors()-between
			r.Seconds, r.ByHand = append(r.Seconds, ours), append(r.ByHand, other)
		}
	}
	for i, mean := range Means(asked, sums.Values, n/unit) {
		at := i
		if squares {
			at = 2 * i
		}
		x, err := strconv.ParseFloat(theirs[at], 64)
		if err != nil {
			t.Fatal(err)
		}
		if unit == 1 || !asked[i].Where { // by hand, a unit in which nothing holds is left out
			r.Wrong = max(r.Wrong, math.Abs(mean-x)/(asked[i].Function.Hi-asked[i].Function.Lo))
		}
	}
	if r.Wrong > 1e-7 {
		t.Errorf("an answer differs from the one by hand by %v", r.Wrong)
	}
	Record(t, r)
}

// checks are what would have been registered of a part of the first units.
func (c clickhouse) checks(t testing.TB, part sql.Part) (*sql.Checks, error) {
	var rows [][]string
	for line := range strings.Lines(c.query(t, reader.User, sql.RegisterText(sql.ClickHouse, part))) {
		rows = append(rows, strings.Split(strings.TrimSpace(line), "\t"))
	}
	return sql.ReadRegister(part, rows)
}

// query asks as a user: ours as a reader of a source, whose settings are not those of the owner.
func (c clickhouse) query(t testing.TB, user, text string) string {
	reply, err := c.Servers[0].Do(user, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(reply)
}
