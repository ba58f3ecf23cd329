//go:build engines

package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/clickhouse"
	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
)

// wants checks the kind of an error, that it has a text for whoever asks, and that the text quotes nothing of the engine's.
func wants(t testing.TB, what string, err error, kinds ...sources.Kind) {
	t.Helper()
	var e *sources.Error
	if !errors.As(err, &e) || !slices.Contains(kinds, e.Kind) || e.Detail == "" || strings.Contains(e.Detail, "Code:") || strings.Contains(e.Detail, "DB::") {
		t.Errorf("%s: %v; want one of %v with a text of ours", what, err, kinds)
	}
}

// orders makes a table of n rows with the columns id, x and word, in units of three rows by the column buyer, and registers two parts of it: the second has the units that are no
// multiple of 4.
func orders(t testing.TB, e *chtest.Engine, s *clickhouse.Source, n int) []sources.PartInfo {
	t.Helper()
	table := makeOrders(t, e, n)
	of, err := s.Look(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := divideOrders(t.Context(), s, of, n)
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

func makeOrders(t testing.TB, e *chtest.Engine, n int) string {
	t.Helper()
	table := fmt.Sprintf("%s.orders_%d", chtest.Data, number())
	local, columns := table, "(id UInt32, buyer String, x Float64, word String, day Date)"
	if e.Cluster != "" {
		local += "_local"
	}
	e.Exec(t, "CREATE TABLE "+local+" "+columns+" ENGINE = MergeTree ORDER BY id")
	if e.Cluster != "" {
		e.Exec(t, fmt.Sprintf("CREATE TABLE %s %s ENGINE = Distributed(%s, %s, %s, id)", table, columns, e.Cluster, chtest.Data, strings.TrimPrefix(local, chtest.Data+".")))
	}
	e.Query(t, fmt.Sprintf("INSERT INTO %s SELECT toUInt32(number), concat('buyer ', toString(intDiv(number, 3))), modulo(number * 2654435761, 1000) / 1000, if(modulo(number, 2) = 0, 'even', 'odd'), toDate('2020-01-01') + modulo(number, 700) FROM system.numbers LIMIT %d", table, n))
	return table
}

var orderKeys = sources.Keys{Columns: []string{"buyer"}}

func divideOrders(ctx context.Context, s sources.Source, of sources.Snapshot, n int) ([]sources.PartInfo, error) {
	units := int64((n + 2) / 3)
	zeros := (units + 3) / 4
	parts := []sources.PartSpec{{Name: fmt.Sprintf("orders_%d_a", number()), Units: zeros}, {Name: fmt.Sprintf("orders_%d_b", number()), Units: units - zeros}}
	return s.Divide(ctx, of, orderKeys, parts, func(u sources.Units, places []sources.Place) error {
		c := u.Keys.Column(0)
		for i := range places {
			buyer, err := strconv.ParseInt(strings.TrimPrefix(c.Dictionary.Text(int(c.Codes[i])-1), "buyer "), 10, 64)
			if err != nil {
				return err
			}
			if places[i] = (sources.Place{Part: 1, Number: buyer - buyer/4 - 1}); buyer%4 == 0 {
				places[i] = sources.Place{Part: 0, Number: buyer / 4}
			}
		}
		return nil
	}, func(int64) {})
}

// ofX are row functions that ClickHouse sums, and one that is read for: what an order's x is, whether its word is even, and its exponential.
func ofX() []rowfn.Function {
	x := rowfn.Column("x", rowfn.Number)
	return []rowfn.Function{{Value: x, Lo: 0, Hi: 1}, {Where: rowfn.Compare(rowfn.OpEq, rowfn.Column("word", rowfn.Text), rowfn.TextConst("even")), Lo: 0, Hi: 1}, {Value: rowfn.Exp(x), Lo: 0, Hi: 3}}
}

func openPart(t testing.TB, s sources.Source, info sources.PartInfo) sources.Part {
	t.Helper()
	p, err := s.Open(t.Context(), info, 3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sum(t testing.TB, p sources.Part) []int64 {
	t.Helper()
	sums, err := p.Sums(t.Context(), ofX(), 0, p.Units())
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// TestShardThatIsDown: while a shard is down nothing is summed, whatever the reader's profile says; when it is back the sums are the same. It would notice sums of the rows that are
// left, which skip_unavailable_shards makes of it without an error.
func TestShardThatIsDown(t *testing.T) {
	e := chtest.NewCluster(t, chtest.Profile{User: "skipping", Settings: map[string]string{"skip_unavailable_shards": "1"}})
	s := open(t, e)
	info := orders(t, e, s, 3000)[1]
	p := openPart(t, s, info)
	want := sum(t, p)
	url := strings.Replace(sourceURL(e), "reader="+chtest.Reader, "reader=skipping", 1)
	if _, err := clickhouse.Open(t.Context(), url); err == nil {
		t.Error("a reader for whom shards are skipped is taken")
	} else {
		wants(t, "a reader for whom shards are skipped", err, sources.Refused)
		if !strings.Contains(err.Error(), "skip_unavailable_shards = 0") {
			t.Errorf("the error does not say what to set: %v", err)
		}
	}
	unchecked, err := clickhouse.OpenUnchecked(url, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer unchecked.Close()
	skipping := openPart(t, unchecked, info)
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("all is up: %v", err)
	}
	e.Servers[1].Stop()
	wants(t, "ready with a shard down", s.Ready(t.Context()), sources.Unavailable)
	_, err = p.Sums(t.Context(), ofX()[:2], 0, p.Units())
	wants(t, "sums with a shard down", err, sources.Unavailable)
	_, err = skipping.Sums(t.Context(), ofX()[:2], 0, p.Units())
	wants(t, "sums with a shard skipped", err, sources.Changed)
	_, err = skipping.Sums(t.Context(), ofX()[2:], 0, p.Units())
	wants(t, "rows with a shard skipped", err, sources.Changed)
	if err := e.Servers[1].Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for s.Ready(t.Context()) != nil && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	if got := sum(t, p); !slices.Equal(got, want) {
		t.Errorf("the sums are %v after the shard was down, before %v", got, want)
	}
}

// TestUsersThatAreRefused: a reader who can write, who has no limits or such as break off without an error, and users that the engine does not know.
func TestUsersThatAreRefused(t *testing.T) {
	profiles := []chtest.Profile{
		{User: "writer", Settings: map[string]string{"readonly": "0"}},
		{User: "endless", Settings: map[string]string{"max_execution_time": "0"}},
		{User: "greedy", Settings: map[string]string{"max_memory_usage": "0"}},
		{User: "breaking", Settings: map[string]string{"max_rows_to_read": "10", "read_overflow_mode": "break"}},
		{User: "late", Settings: map[string]string{"timeout_overflow_mode": "break"}},
		{User: "anygroup", Settings: map[string]string{"max_rows_to_group_by": "10", "group_by_overflow_mode": "any"}},
	}
	for _, e := range []*chtest.Engine{chtest.NewCluster(t, profiles...), chtest.NewCurrent(t, profiles...)} {
		t.Run(e.Name, func(t *testing.T) {
			open(t, e)
			for _, p := range profiles {
				_, err := clickhouse.Open(t.Context(), strings.Replace(sourceURL(e), "reader="+chtest.Reader, "reader="+p.User, 1))
				wants(t, p.User, err, sources.Refused)
			}
			for what, url := range map[string]string{
				"a wrong password":  strings.Replace(sourceURL(e), "reader_password="+chtest.Password, "reader_password=wrong", 1),
				"an unknown loader": strings.Replace(sourceURL(e), chtest.Loader+":", "somebody:", 1),
			} {
				s, err := clickhouse.Open(t.Context(), url)
				if err != nil {
					t.Fatalf("%s: %v; it is said when the source is used", what, err)
				}
				defer s.Close()
				wants(t, what, s.Ready(t.Context()), sources.Unavailable)
				_, err = s.Look(t.Context(), "shop.orders")
				wants(t, what, err, sources.Unavailable)
			}
		})
	}
}

// TestRowsThatAreChanged: what somebody does to a part at the engine is noticed by the next sums of the column, by Check and by who opens it.
func TestRowsThatAreChanged(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			s := open(t, e)
			for what, statement := range map[string]string{
				"a cell":                        "ALTER TABLE %s UPDATE c2 = c2 + 0.001 WHERE _unit = 5",
				"a text":                        "ALTER TABLE %s UPDATE c3 = 'odder' WHERE _unit = 5 AND c3 = 'odd'",
				"rows are deleted":              "ALTER TABLE %s DELETE WHERE _unit = 6 OR _unit = 7",
				"a column of another type":      "ALTER TABLE %s MODIFY COLUMN c2 Float32",
				"a column that is gone":         "ALTER TABLE %s DROP COLUMN c2",
				"a unit that has another's row": "INSERT INTO %s SELECT toUInt32(_unit + 2) AS _unit, c0, c1, c2, c3, c4 FROM %[1]s WHERE _unit = 8",
			} {
				info := orders(t, e, s, 600)[1]
				p := openPart(t, s, info)
				sum(t, p)
				table := "`" + chtest.Private + "`.`" + info.Name
				if e.Cluster != "" {
					table += "~local"
				}
				e.Exec(t, fmt.Sprintf(statement, table+"`"))
				// A mutation runs in the background.
				deadline := time.Now().Add(20 * time.Second)
				for p.Check(t.Context()) == nil && time.Now().Before(deadline) {
					time.Sleep(20 * time.Millisecond)
				}
				kinds := []sources.Kind{sources.Changed}
				if strings.HasPrefix(what, "a column") && e.Cluster != "" {
					kinds = append(kinds, sources.Unavailable) // the Distributed table has the column still
				}
				wants(t, what+", checked", p.Check(t.Context()), kinds...)
				_, err := p.Sums(t.Context(), ofX()[:2], 0, p.Units())
				wants(t, what+", summed", err, kinds...)
				_, err = p.Sums(t.Context(), ofX()[2:], 0, p.Units())
				if what != "a text" { // which the exponential of x does not read
					wants(t, what+", read", err, kinds...)
				}
				_, err = s.Open(t.Context(), info, 3)
				wants(t, what+", opened", err, kinds...)
			}
		})
	}
}

// slow is a batch that takes a second, and of which each block takes a moment: engines stop between blocks.
func slow() rowfn.Batch {
	var b rowfn.Batch
	x := rowfn.Column("x", rowfn.Number)
	for i := range 20 {
		v := x
		for j := range 5 {
			v = rowfn.Add(rowfn.Sqrt(rowfn.Abs(v)), rowfn.Const(float64(i*j)/100))
		}
		b.Functions = append(b.Functions, rowfn.Function{Value: v, Lo: 0, Hi: 10})
	}
	return b
}

// processes counts the reader's statements that run on any server.
func processes(t testing.TB, e *chtest.Engine) (n int) {
	for _, s := range e.Servers {
		reply, err := s.Do(chtest.Owner, "SELECT count() FROM system.processes WHERE query LIKE '%_orders_%' OR query LIKE '%sqrt(%'", nil)
		if err != nil {
			t.Fatal(err)
		}
		one, err := strconv.Atoi(strings.TrimSpace(string(reply)))
		if err != nil {
			t.Fatal(err)
		}
		n += one
	}
	return n
}

// TestStatementsThatAreStopped: a statement ends at the engine when whoever asked goes away, and at the deadline.
func TestStatementsThatAreStopped(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			s := open(t, e)
			info := orders(t, e, s, 1_500_000)[1]
			p := openPart(t, s, info)
			idle := processes(t, e)
			var begun time.Time
			var err error
			for range 20 { // it may have ended before it is seen to run
				ctx, cancel := context.WithCancel(t.Context())
				seen := make(chan bool, 1)
				go func() {
					running := false
					for ctx.Err() == nil && !running {
						running = processes(t, e) > idle
					}
					cancel()
					seen <- running
				}()
				begun = time.Now()
				_, err = p.Moments(ctx, slow(), 0, p.Units())
				cancel()
				if <-seen && err != nil {
					break
				}
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			stopped(t, e, idle, begun)

			late, err := clickhouse.Open(t.Context(), sourceURL(e)+"&deadline=30ms")
			if err != nil {
				t.Fatal(err)
			}
			defer late.Close()
			if q, errOpen := late.Open(t.Context(), info, 3); errOpen != nil { // which reads all rows too
				err = errOpen
			} else {
				_, err = q.Moments(t.Context(), slow(), 0, p.Units())
			}
			wants(t, "after the deadline", err, sources.Unavailable)
			stopped(t, e, idle, time.Now())
		})
	}
}

// stopped waits until nothing runs any more; statements stop between blocks.
func stopped(t testing.TB, e *chtest.Engine, idle int, begun time.Time) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for processes(t, e) > idle {
		if time.Now().After(deadline) {
			t.Fatalf("a statement runs on, %v after it began", time.Since(begun))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestLimitsOfTheReader: memory and time that the profile does not have are Unavailable, with a text that says which.
func TestLimitsOfTheReader(t *testing.T) {
	tight := chtest.Profile{User: "tight", Settings: map[string]string{"max_memory_usage": "3000000"}}
	for _, e := range []*chtest.Engine{chtest.NewCluster(t, tight), chtest.NewCurrent(t, tight)} {
		t.Run(e.Name, func(t *testing.T) {
			info := orders(t, e, open(t, e), 300_000)[1]
			s, err := clickhouse.Open(t.Context(), strings.Replace(sourceURL(e), "reader="+chtest.Reader, "reader=tight", 1))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Open(t.Context(), info, 3)
			wants(t, "memory", err, sources.Unavailable)
			if err == nil || !strings.Contains(err.Error(), "memory") {
				t.Errorf("memory: %v", err)
			}
		})
	}
}

// proxy stands between a source and a server, and can cut replies.
type proxy struct {
	net.Listener
	to    string
	cut   atomic.Int64 // replies end after so many bytes; negative: they do not
	left  atomic.Int64 // how many connections are cut
	posts atomic.Int64 // requests that it still lets through; negative: all
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, to: to}
	p.cut.Store(-1)
	p.posts.Store(math.MinInt64)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

// serve takes one request of a connection to the server.
func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	if p.posts.Load() >= 0 && p.posts.Add(-1) < 0 {
		p.posts.Store(0)
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := c.Read(buffer)
			if n > 0 {
				up.Write(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	limit := p.cut.Load()
	if limit >= 0 && p.left.Add(-1) < 0 {
		limit = -1
	}
	buffer := make([]byte, 1<<16)
	for limit != 0 {
		n, err := up.Read(buffer)
		if limit > 0 {
			n = int(min(int64(n), limit))
			limit -= int64(n)
		}
		if n > 0 {
			c.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// through is the source's URL by way of a proxy.
func (p *proxy) through(e *chtest.Engine) string {
	return strings.ReplaceAll(sourceURL(e), e.Address(), p.Addr().String())
}

// TestRepliesThatAreCut: a connection that ends within a reply, after any number of bytes, is an error or asked again; what is answered is right. It would notice a reply that
// ends early and is taken for a whole one, and a statement that is not sent again.
func TestRepliesThatAreCut(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			info := orders(t, e, open(t, e), 300)[1]
			way := newProxy(t, e.Address())
			s, err := clickhouse.Open(t.Context(), way.through(e))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p := openPart(t, s, info)
			for name, functions := range map[string][]rowfn.Function{"summed there": ofX()[:2], "read": ofX()[2:]} {
				want, err := p.Sums(t.Context(), functions, 0, p.Units())
				if err != nil {
					t.Fatal(err)
				}
				answered, failed := 0, 0
				for cut := int64(0); cut < 6000; cut += 1 + cut/2 {
					for _, times := range []int64{1, 100} { // once, and always
						s2, err := clickhouse.OpenUnchecked(way.through(e), 2)
						if err != nil {
							t.Fatal(err)
						}
						q, err := s2.Open(t.Context(), info, 3)
						if err != nil {
							t.Fatal(err)
						}
						s2.Idle()
						way.left.Store(times)
						way.cut.Store(cut)
						got, err := q.Sums(t.Context(), functions, 0, q.Units())
						way.cut.Store(-1)
						switch {
						case err == nil && !slices.Equal(got, want):
							t.Fatalf("%s, cut after %d bytes: %v, want %v", name, cut, got, want)
						case err == nil:
							answered++
						case times == 1:
							t.Errorf("%s, cut once after %d bytes: %v", name, cut, err)
						default:
							wants(t, fmt.Sprintf("%s, cut after %d bytes", name, cut), err, sources.Unavailable)
							failed++
						}
						s2.Close()
					}
				}
				if answered == 0 || failed == 0 {
					t.Errorf("%s: %d were answered and %d failed", name, answered, failed)
				}
			}
		})
	}
}

// TestDivideThatIsCutOff: after a crash between any two statements of a division Parts lists what is left, and Drop leaves nothing. It would notice a table of secret numbers that no
// one lists.
func TestDivideThatIsCutOff(t *testing.T) {
	for _, e := range []*chtest.Engine{chtest.NewCluster(t), chtest.NewCurrent(t)} {
		t.Run(e.Name, func(t *testing.T) {
			direct := open(t, e)
			of, err := direct.Look(t.Context(), makeOrders(t, e, 90))
			if err != nil {
				t.Fatal(err)
			}
			leftovers := 0
			for after := int64(1); ; after++ {
				if after > 60 {
					t.Fatal("a division takes more than 60 statements")
				}
				way := newProxy(t, e.Address())
				s, err := clickhouse.OpenUnchecked(way.through(e), len(e.Servers))
				if err != nil {
					t.Fatal(err)
				}
				s.OneRequestAConnection()
				way.posts.Store(after)
				infos, err := divideOrders(t.Context(), s, of, 90)
				s.Close()
				way.Close()
				listed, errParts := direct.Parts(t.Context())
				if errParts != nil {
					t.Fatal(errParts)
				}
				leftovers += len(listed)
				for _, p := range listed {
					if err := direct.Drop(t.Context(), p); err != nil {
						t.Fatal(err)
					}
					if err := direct.Drop(t.Context(), p); err != nil {
						t.Errorf("a part that is not there: %v", err)
					}
				}
				for _, server := range e.Servers {
					reply, errTables := server.Do(chtest.Owner, "SELECT name FROM system.tables WHERE database = '"+chtest.Private+"' AND name != '~ready'", nil)
					if errTables != nil || len(reply) > 0 {
						t.Fatalf("after %d statements there are left: %q, %v", after, reply, errTables)
					}
				}
				if err == nil {
					if len(infos) != 2 || after < 8 {
						t.Errorf("%d parts after %d statements", len(infos), after)
					}
					break
				}
			}
			if leftovers < 10 {
				t.Errorf("only %d parts were left in all", leftovers)
			}
		})
	}
}

// TestStatementsSayNoSecret: the texts of all statements of a division, as the engine logs them, are the same whatever the numbers and sides of units are.
func TestStatementsSayNoSecret(t *testing.T) {
	e := chtest.NewCluster(t)
	s := open(t, e)
	of, err := s.Look(t.Context(), makeOrders(t, e, 300))
	if err != nil {
		t.Fatal(err)
	}
	logged := func(turn int64) []string {
		name := fmt.Sprintf("secret_%d", turn)
		_, err := s.Divide(t.Context(), of, orderKeys, []sources.PartSpec{{Name: name + "_a", Units: 50}, {Name: name + "_b", Units: 50}}, func(u sources.Units, places []sources.Place) error {
			c := u.Keys.Column(0)
			for i := range places {
				buyer, err := strconv.ParseInt(strings.TrimPrefix(c.Dictionary.Text(int(c.Codes[i])-1), "buyer "), 10, 64)
				if err != nil {
					return err
				}
				at := (buyer*17 + turn*31) % 100 // another side and another number each turn
				places[i] = sources.Place{Part: int(at % 2), Number: at / 2}
			}
			return nil
		}, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		deadline := time.Now().Add(20 * time.Second)
		for last := -1; ; last = len(texts) { // the log is written every half second
			time.Sleep(700 * time.Millisecond)
			texts = nil
			for _, server := range e.Servers {
				reply, err := server.Do(chtest.Owner, "SELECT query FROM system.query_log WHERE type = 2 AND query LIKE '%"+name+"%' AND query NOT LIKE '%query_log%'", nil)
				if err != nil && !strings.Contains(err.Error(), "query_log doesn't exist") {
					t.Fatal(err)
				}
				for l := range strings.Lines(string(reply)) {
					texts = append(texts, strings.ReplaceAll(l, name, "NAME"))
				}
			}
			if len(texts) > 0 && len(texts) == last || time.Now().After(deadline) {
				break
			}
		}
		slices.Sort(texts)
		return slices.Compact(texts)
	}
	first, second := logged(1), logged(2)
	if len(first) < 8 {
		t.Errorf("only %d statements are in the log", len(first))
	}
	if !slices.Equal(first, second) {
		t.Errorf("what the engine logs depends on the secret numbers:\n%s\nthen\n%s", strings.Join(first, ""), strings.Join(second, ""))
	}
}

// TestTypes: each type of column is read as an upload of the same values is.
func TestTypes(t *testing.T) {
	type want struct {
		name, kind, value string // the type, SQL of the value
		as                dataset.Kind
		number            float64
		text              string
		skipped           string
		only              string // the engine that has the type
	}
	micros := float64(time.Date(2020, 5, 17, 12, 30, 15, 0, time.UTC).UnixMicro())
	list := []want{
		{kind: "UInt8", value: "200", as: dataset.Number, number: 200}, {kind: "Int16", value: "-300", as: dataset.Number, number: -300},
		{kind: "UInt64", value: "9007199254740992", as: dataset.Number, number: 1 << 53}, {kind: "UInt64", value: "9007199254740993", as: dataset.Text, text: "9007199254740993"},
		{kind: "Nullable(Int64)", value: "-9007199254740993", as: dataset.Text, text: "-9007199254740993"}, {kind: "Nullable(Int64)", value: "NULL", as: dataset.Number, number: math.NaN()},
		{kind: "Float32", value: "0.1", as: dataset.Number, number: float64(float32(0.1))}, {kind: "Float64", value: "-0.0", as: dataset.Number, number: 0},
		{kind: "Nullable(Float64)", value: "1 / 0", as: dataset.Number, number: math.NaN()},
		{kind: "Decimal(18, 3)", value: "toDecimal64('-1.001', 3)", as: dataset.Number, number: -1.001}, {kind: "Nullable(Decimal(9, 2))", value: "toDecimal32('0.07', 2)", as: dataset.Number, number: 0.07},
		{kind: "Decimal(38, 22)", value: "toDecimal128('0.0000000000000000000003', 22)", as: dataset.Number, number: 3e-22}, {kind: "Decimal(38, 23)", value: "0", skipped: "decimals of more"},
		{kind: "Date", value: "toDate('2020-05-17')", as: dataset.Time, number: float64(time.Date(2020, 5, 17, 0, 0, 0, 0, time.UTC).UnixMicro())},
		{kind: "DateTime", value: "toDateTime(1589718615)", as: dataset.Time, number: micros}, {kind: "Nullable(DateTime)", value: "toDateTime(1589718615)", as: dataset.Time, number: micros},
		{kind: "DateTime('Asia/Tokyo')", value: "toDateTime(1589718615)", as: dataset.Time, number: micros},
		{kind: "Date32", value: "toDate32('1950-01-01')", as: dataset.Time, number: -7305 * 86400e6, only: "current"},
		{kind: "DateTime64(3, 'Asia/Tokyo')", value: "toDateTime64('1950-01-01 00:00:00.123', 3, 'UTC')", as: dataset.Time, number: -7305*86400e6 + 123000, only: "current"},
		{kind: "Nullable(DateTime64(9))", value: "toDateTime64('1950-01-01 00:00:00.123456789', 9, 'UTC')", as: dataset.Time, number: -7305*86400e6 + 123456, only: "current"},
		{kind: "String", value: "'a\\'b'", as: dataset.Text, text: "a'b"}, {kind: "Nullable(String)", value: "''", as: dataset.Text, text: ""},
		{kind: "String", value: "unhex('80')", skipped: "not UTF-8"}, {kind: "FixedString(5)", value: "'abc'", as: dataset.Text, text: "abc"},
		{kind: "FixedString(5)", value: "unhex('6100620000')", skipped: "zero bytes"}, {kind: "Nullable(FixedString(2))", value: "'é'", as: dataset.Text, text: "é"},
		{kind: "Enum8('it\\'s' = -3, 'b' = 2)", value: "'it\\'s'", as: dataset.Text, text: "it's"}, {kind: "Nullable(Enum16('a' = 1))", value: "'a'", as: dataset.Text, text: "a"},
		{kind: "Enum8('false' = 0, 'true' = 1)", value: "'true'", as: dataset.Bool, number: 1}, {kind: "Bool", value: "true", as: dataset.Bool, number: 1, only: "current"}, {kind: "Nullable(Bool)", value: "NULL", as: dataset.Bool, number: 2, only: "current"},
		{kind: "UUID", value: "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", as: dataset.Text, text: "61f0c404-5cb3-11e7-907b-a6006ad3dba0"},
		{kind: "LowCardinality(String)", value: "'x'", as: dataset.Text, text: "x", only: "current"}, {kind: "LowCardinality(Nullable(String))", value: "NULL", as: dataset.Text, text: "null", only: "current"},
		{kind: "Array(UInt8)", value: "[1]", skipped: "nested"}, {kind: "IPv4", value: "toIPv4('1.2.3.4')", skipped: "its type", only: "current"}, {kind: "Int128", value: "5", skipped: "its type", only: "current"},
	}
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			var all []want
			var columns, values []string
			for i, w := range list {
				if w.only == "" || w.only == e.Name {
					w.name = fmt.Sprintf("c%d `'\\é表\"", i)
					all = append(all, w)
					columns, values = append(columns, quote(w.name)+" "+w.kind), append(values, w.value)
				}
			}
			plain := fmt.Sprintf("ty'p`e\\s é表 %d", number())
			table := quote(chtest.Data) + "." + quote(plain)
			if _, err := e.Servers[0].Do(chtest.Owner, "CREATE TABLE "+table+" (id UInt8, "+strings.Join(columns, ", ")+") ENGINE = MergeTree ORDER BY id", nil); err != nil {
				t.Fatal(err)
			}
			e.Query(t, "INSERT INTO "+table+" SELECT 1, "+strings.Join(values, ", "))
			s := open(t, e)
			of, err := s.Look(t.Context(), chtest.Data+"."+plain)
			if err != nil {
				t.Fatal(err)
			}
			infos, err := s.Divide(t.Context(), of, sources.Keys{Columns: []string{"id"}, Rows: true}, []sources.PartSpec{{Name: fmt.Sprintf("types_%d", number()), Units: 1}},
				func(_ sources.Units, places []sources.Place) error { return nil }, func(int64) {})
			if err != nil {
				t.Fatal(err)
			}
			var rows *dataset.Table
			if err := openPart(t, s, infos[0]).Read(t.Context(), nil, 0, 1, func(b sources.Block) error { rows = b.Rows; return nil }); err != nil {
				t.Fatal(err)
			}
			for _, w := range all {
				c, ok := rows.Lookup(w.name)
				at := slices.IndexFunc(of.Skipped, func(s sources.Skipped) bool { return s.Name == w.name })
				switch {
				case w.skipped != "":
					if ok || at < 0 || !strings.Contains(of.Skipped[at].Reason, w.skipped) {
						t.Errorf("%s: read: %v, skipped: %v", w.kind, ok, of.Skipped)
					}
				case !ok || c.Kind != w.as:
					t.Errorf("%s is missing, or %v, want %v", w.kind, c, w.as)
				case w.as == dataset.Text && w.text == "null":
					if !c.Null(0) {
						t.Errorf("%s is not null", w.kind)
					}
				case w.as == dataset.Text:
					if c.Null(0) || c.Dictionary.Text(0) != w.text {
						t.Errorf("%s is %v, want %q", w.kind, c, w.text)
					}
				case w.as == dataset.Bool:
					if c.Bools[0] != uint8(w.number) {
						t.Errorf("%s is %d, want %v", w.kind, c.Bools[0], w.number)
					}
				case c.Numbers[0] != w.number && !(math.IsNaN(c.Numbers[0]) && math.IsNaN(w.number)) || math.Signbit(c.Numbers[0]) != math.Signbit(w.number) && w.number == 0:
					t.Errorf("%s is %v, want %v", w.kind, c.Numbers[0], w.number)
				}
			}
		})
	}
}

func quote(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}

// TestLargeKeys: keys of tens of thousands of bytes, that differ in the last, are told apart.
func TestLargeKeys(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			table := fmt.Sprintf("%s.large_%d", chtest.Data, number())
			if _, err := e.Servers[0].Do(chtest.Owner, "CREATE TABLE "+table+" (k String, x Float64) ENGINE = MergeTree ORDER BY x", nil); err != nil {
				t.Fatal(err)
			}
			e.Query(t, "INSERT INTO "+table+" SELECT concat(replaceAll(toString(range(8000)), ',', '`\\''), toString(number)), number FROM system.numbers LIMIT 50")
			s := open(t, e)
			of, err := s.Look(t.Context(), table)
			if err != nil {
				t.Fatal(err)
			}
			infos, err := s.Divide(t.Context(), of, sources.Keys{Columns: []string{"k"}, Rows: true}, []sources.PartSpec{{Name: fmt.Sprintf("large_%d", number()), Units: 50}}, func(u sources.Units, places []sources.Place) error {
				c := u.Keys.Column(0)
				for i := range places {
					text := c.Dictionary.Text(int(c.Codes[i]) - 1)
					_, digits, _ := strings.Cut(text, "]")
					places[i].Number, _ = strconv.ParseInt(digits, 10, 64)
				}
				return nil
			}, func(int64) {})
			if err != nil {
				t.Fatal(err)
			}
			if err := openPart(t, s, infos[0]).Read(t.Context(), []string{"x"}, 0, 50, func(b sources.Block) error {
				for i, x := range b.Rows.Column(0).Numbers {
					if x != float64(i) {
						t.Errorf("unit %d has the row of key %v", i, x)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestHashes: the hashes of rows that are read are those that the engines register, of texts of every length and of numbers.
func TestHashes(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		for length := range 200 {
			text := strings.Repeat("a`é'\\x", 40)[:length]
			number := float64(length*length) / 7
			want := fmt.Sprintf("%d\t%d\n", clickhouse.HashText(text), clickhouse.HashNumber(number))
			if got := e.Query(t, fmt.Sprintf("SELECT cityHash64(unhex('%x')), cityHash64(toFloat64(%d) / 7)", text, length*length)); got != want {
				t.Fatalf("%s: the hashes of %d bytes and of %v are %q, ours %q", e.Name, length, number, got, want)
			}
		}
	}
}

// TestManyUnits: units that do not fit into one statement's memory are summed by several, and the sums are those of one. It would notice units at the borders that are left out or come
// twice.
func TestManyUnits(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			s := open(t, e)
			info := orders(t, e, s, 60_000)[1] // 15,000 units in four blocks
			few, err := clickhouse.OpenUnchecked(sourceURL(e), len(e.Servers))
			if err != nil {
				t.Fatal(err)
			}
			defer few.Close()
			whole, pieces := openPart(t, s, info), openPart(t, few, info)
			batch := rowfn.Batch{Functions: ofX(), Products: []rowfn.Product{{A: 0, B: 1}, {A: 2, B: 2}}}
			for _, r := range [][2]int64{{0, whole.Units()}, {5, 4096}, {4095, 8193}, {8192, 12288}, {10_000, 15_000}, {7, 7}} {
				want, err := whole.Moments(t.Context(), batch, r[0], r[1])
				if err != nil {
					t.Fatal(err)
				}
				got, err := pieces.Moments(t.Context(), batch, r[0], r[1])
				if err != nil || !slices.Equal(got.Values, want.Values) || !slices.Equal(got.Products, want.Products) {
					t.Errorf("units %d to %d: %v, %v, want %v", r[0], r[1], got, err, want)
				}
			}
		})
	}
}

// TestNarrowColumns: a column without nulls lies in the narrowest type that holds each value exactly, and every other one as wide as it was. That values come back as they were, and sums too, is
// sourcetest's sums_of_narrow_columns, which would say nothing if all columns stayed wide.
func TestNarrowColumns(t *testing.T) {
	for _, e := range chtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			table := fmt.Sprintf("%s.narrow_%d", chtest.Data, number())
			columns := []struct{ kind, value, want string }{
				{"UInt8", "number", "UInt8"}, {"Float64", "number", "UInt8"}, {"Int64", "number - 1", "Int8"}, {"Float64", "number * 65535 - 1", "Int32"}, {"UInt32", "number * 65535", "UInt32"}, {"Float64", "number * 65536", "UInt32"},
				{"Float64", "number / 2", "Float32"}, {"Float64", "number / 10", ""}, {"Float32", "number / 10", "Float32"}, {"Float64", "if(number = 3, nan, toFloat64(number))", ""}, {"Float32", "if(number = 3, -inf, toFloat64(number))", ""},
				{"Nullable(UInt8)", "number", "UInt8"}, {"Nullable(UInt8)", "if(number = 3, NULL, number)", ""}, {"Date", "toDate(number)", "UInt8"}, {"DateTime", "toDateTime(number * 60000000)", "UInt32"},
			}
			var list, values, want []string
			for i, c := range columns {
				list, values = append(list, fmt.Sprintf("a%02d %s", i, c.kind)), append(values, c.value)
				if c.want != "" {
					want = append(want, fmt.Sprintf("n%d %s", i+1, c.want))
				}
			}
			e.Exec(t, "CREATE TABLE "+table+" (id UInt64, "+strings.Join(list, ", ")+") ENGINE = MergeTree ORDER BY id")
			rows := 70
			e.Query(t, fmt.Sprintf("INSERT INTO %s SELECT number + 5000000000, %s FROM system.numbers LIMIT %d", table, strings.Join(values, ", "), rows))
			s := open(t, e)
			of, err := s.Look(t.Context(), table)
			if err != nil {
				t.Fatal(err)
			}
			part := fmt.Sprintf("narrow_%d", number())
			next := int64(0)
			_, err = s.Divide(t.Context(), of, sources.Keys{Columns: []string{"id"}, Rows: true}, []sources.PartSpec{{Name: part, Units: int64(rows)}}, func(_ sources.Units, places []sources.Place) error {
				for i := range places {
					places[i].Number = next
					next++
				}
				return nil
			}, func(int64) {})
			if err != nil {
				t.Fatal(err)
			}
			have := strings.Fields(strings.ReplaceAll(e.Query(t, "SELECT concat(name, ' ', type) FROM system.columns WHERE table = '"+part+"' AND database = '"+chtest.Private+"' AND startsWith(name, 'n') ORDER BY toUInt8(substring(name, 2))"), "\\'", "'"))
			if got, want := strings.Join(have, " "), strings.Join(want, " "); got != want {
				t.Errorf("narrow columns are %s\nwant %s", got, want)
			}
		})
	}
}
