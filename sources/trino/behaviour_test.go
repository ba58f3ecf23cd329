//go:build engines

package trino

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/trino/trinotest"
)

var parts atomic.Int64

// divided divides a table into two parts of about equal size, in the order in which units come, and returns them.
func divided(t testing.TB, s *Source, table string, by sources.Keys) ([]sources.PartInfo, error) {
	t.Helper()
	of, err := s.Look(t.Context(), table)
	if err != nil {
		return nil, err
	}
	units := int64(0)
	if err := s.Units(t.Context(), of, by, func(u sources.Units) error {
		units += int64(u.Len())
		return nil
	}); err != nil {
		return nil, err
	}
	n := parts.Add(1)
	specs := []sources.PartSpec{{Name: fmt.Sprintf("b%d_0", n), Units: units - units/2}, {Name: fmt.Sprintf("b%d_1", n), Units: units / 2}}
	t.Cleanup(func() {
		for _, p := range specs {
			if err := s.Drop(context.WithoutCancel(t.Context()), p.Name); err != nil {
				t.Error(err)
			}
		}
	})
	next := int64(0)
	return s.Divide(t.Context(), of, by, specs, func(u sources.Units, places []sources.Place) error {
		for i := range places {
			places[i] = sources.Place{Part: int(next % 2), Number: next / 2}
			next++
		}
		return nil
	}, func(int64) {})
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func isKind(err error, kinds ...sources.Kind) bool {
	e := sourcesError(err)
	return e != nil && slices.Contains(kinds, e.Kind)
}

// number is the mean of a column over [low, high].
func number(column string, low, high float64) rowfn.Function {
	return rowfn.Function{Value: rowfn.Column(column, rowfn.Number), Lo: low, Hi: high, Null: low}
}

// heavy is a row function that keeps an engine busy: sums of many square roots, which nothing makes simpler.
func heavy(column string, seed uint64) rowfn.Function {
	r := rand.New(rand.NewPCG(seed, 1))
	x := rowfn.Column(column, rowfn.Number)
	sum := x
	for range 60 {
		sum = rowfn.Add(sum, &rowfn.Node{Op: rowfn.OpSqrt, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Abs(rowfn.Sub(rowfn.Mul(x, rowfn.Const(r.Float64())), rowfn.Const(r.Float64()*1000)))}})
	}
	return rowfn.Function{Value: sum, Lo: 0, Hi: 1e9}
}

// TestStatementsSayNothing: no statement of a division has a unit's key, its number, or the secret by which they are blinded. It would notice keys or numbers that are sent as they are, or that
// whoever reads all statements can make readable.
func TestStatementsSayNothing(t *testing.T) {
	c := trinotest.Shared(t)
	s := open(t, c, "iceberg")
	c.Exec(t, "DROP TABLE IF EXISTS iceberg.owner.said", "CREATE TABLE iceberg.owner.said AS SELECT 'customer-' || CAST(orderkey * 7919 AS varchar) AS who, totalprice FROM tpch.tiny.orders WHERE orderkey < 400")
	secret := ""
	s.loader.http = &http.Client{Transport: spy{s.transport, func(statement string) {
		if strings.Contains(statement, "hmac_sha256") && secret == "" {
			_, name, _ := strings.Cut(statement, "SELECT k FROM ")
			name, _, _ = strings.Cut(name, ")")
			rows, err := c.Query("SELECT k FROM " + name)
			if err != nil || len(rows) != 1 {
				t.Errorf("%v, %v", rows, err)
				return
			}
			secret, _ = rows[0][0].(string)
		}
	}}}
	must[[]sources.PartInfo](t)(divided(t, s, "iceberg.owner.said", sources.Keys{Columns: []string{"who"}, Rows: true}))
	rows, err := c.Query("SELECT query FROM system.runtime.queries WHERE \"user\" = 'loader'")
	if err != nil || len(rows) < 15 || secret == "" {
		t.Fatalf("%d statements, %v; the secret: %t", len(rows), err, secret != "")
	}
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil || len(key) != 32 {
		t.Fatalf("a secret of %d bytes, %v", len(key), err)
	}
	places := 0
	for _, row := range rows {
		text := fmt.Sprint(row[0])
		lower := strings.ToLower(text)
		for _, no := range []string{"customer-7919", "customer-", hex.EncodeToString([]byte("customer-")), secret, hex.EncodeToString(key), base64.StdEncoding.EncodeToString([]byte("customer-"))} {
			if strings.Contains(text, no) || strings.Contains(lower, no) {
				t.Errorf("a statement has %q: %.200s", no, text)
			}
		}
		for rest := text; ; {
			_, after, found := strings.Cut(rest, "from_base64('")
			if !found {
				break
			}
			literal, tail, _ := strings.Cut(after, "'")
			rest = tail
			raw, err := base64.StdEncoding.DecodeString(literal)
			if err != nil || strings.Contains(string(raw), "customer-") || strings.Contains(string(raw), string(key)) {
				t.Errorf("a literal of %d bytes, %v", len(raw), err)
			}
			small := 0
			for at := 16; at+8 <= len(raw); at += placeBytes {
				if raw[at] == 0 && raw[at+1] == 0 && raw[at+2] == 0 { // as every number that is not hidden is; 1 in 16 million of those that are
					small++
				}
				places++
			}
			if small > 2 {
				t.Errorf("%d numbers of a literal are not hidden", small)
			}
		}
	}
	if places < 90 {
		t.Errorf("%d places were sent", places)
	}
	names := must[[]string](t)(s.tables(t.Context()))
	for _, name := range names {
		if strings.HasPrefix(name, secretTable) || strings.HasPrefix(name, placesTable) {
			t.Errorf("the table %s is left", name)
		}
	}
}

// spy sees statements before they are sent, or stops them.
type spy struct {
	next http.RoundTripper
	see  func(statement string)
}

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		text := new(strings.Builder)
		buffer := make([]byte, 1<<16)
		for {
			n, err := body.Read(buffer)
			text.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		s.see(text.String())
	}
	return s.next.RoundTrip(r)
}

// TestCutOff: a division that is cut off before any of its statements leaves nothing that Parts does not list, or that Drop does not remove.
func TestCutOff(t *testing.T) {
	c := trinotest.Shared(t)
	c.Exec(t, "DROP TABLE IF EXISTS memory.owner.cut", "CREATE TABLE memory.owner.cut AS SELECT orderkey, totalprice FROM tpch.tiny.orders WHERE orderkey < 100")
	s := open(t, c, "memory")
	of := must[sources.Snapshot](t)(s.Look(t.Context(), "memory.owner.cut"))
	for last := 1; ; last += 4 {
		sent := 0
		ctx, cancel := context.WithCancel(t.Context())
		dying := open(t, c, "memory")
		dying.loader.http = &http.Client{Transport: dead{dying.transport, func() bool { return sent > last }, func(string) { sent++ }}}
		next := int64(0)
		_, err := dying.Divide(ctx, of, sources.Keys{Columns: []string{"orderkey"}, Rows: true}, []sources.PartSpec{{Name: "cut_0", Units: of.Rows - 5}, {Name: "Cut_1", Units: 5}}, func(u sources.Units, places []sources.Place) error {
			for i := range places {
				if places[i] = (sources.Place{Number: next}); next >= of.Rows-5 {
					places[i] = sources.Place{Part: 1, Number: next - of.Rows + 5}
				}
				next++
			}
			return nil
		}, func(int64) {})
		cancel()
		for _, name := range must[[]string](t)(s.Parts(t.Context())) {
			if name == "cut_0" || name == "Cut_1" {
				if err := s.Drop(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		}
		for _, table := range must[[]string](t)(s.tables(t.Context())) {
			if strings.Contains(table, "cut") || strings.Contains(table, hex.EncodeToString([]byte("Cut"))) {
				t.Errorf("after %d statements the table %s is left", last, table)
			}
		}
		if err == nil {
			if last < 15 {
				t.Errorf("a division takes %d statements", last)
			}
			return
		}
	}
}

// dead is a connection that is gone from some moment on.
type dead struct {
	next http.RoundTripper
	gone func() bool
	see  func(string)
}

func (d dead) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := spy{d.next, d.see}.RoundTrip(r)
	if d.gone() {
		if err == nil {
			_ = reply.Body.Close()
		}
		return nil, errors.New("the server has died")
	}
	return reply, err
}

// TestSpoiled: what anybody can do to a part's table or to its files in the object store is noticed, by who opens it and by who has it open.
func TestSpoiled(t *testing.T) {
	c := trinotest.Shared(t)
	files := func(t *testing.T, catalog string, p sources.PartInfo) (found []string) {
		t.Helper()
		err := filepath.WalkDir(filepath.Join(c.Data, catalog), func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.Contains(path, "hp_"+p.Name) && !strings.Contains(path, "/metadata/") && !strings.Contains(path, "/.") { // hidden ones are the test's own catalog's
				found = append(found, path)
			}
			return err
		})
		if err != nil || len(found) == 0 {
			t.Fatalf("no files of part %s: %v", p.Name, err)
		}
		return found
	}
	spoils := map[string]map[string]func(t *testing.T, p sources.PartInfo){
		"iceberg": {
			"a row is missing": func(t *testing.T, p sources.PartInfo) {
				c.Exec(t, "DELETE FROM iceberg.private.hp_"+p.Name+" WHERE _unit = 3")
			},
			"a value is another": func(t *testing.T, p sources.PartInfo) {
				c.Exec(t, "UPDATE iceberg.private.hp_"+p.Name+" SET c1 = c1 + 1e0 WHERE _unit = 3")
			},
			"a file is gone": func(t *testing.T, p sources.PartInfo) {
				if err := os.Remove(files(t, "iceberg", p)[0]); err != nil {
					t.Error(err)
				}
			},
			"the table is gone": func(t *testing.T, p sources.PartInfo) { c.Exec(t, "DROP TABLE iceberg.private.hp_"+p.Name) },
		},
		"hive": {
			"rows come twice": func(t *testing.T, p sources.PartInfo) {
				c.Exec(t, "INSERT INTO hive.private.hp_"+p.Name+" SELECT * FROM hive.private.hp_"+p.Name)
			},
			"a file is gone": func(t *testing.T, p sources.PartInfo) {
				for _, file := range files(t, "hive", p) {
					if err := os.Remove(file); err != nil {
						t.Error(err)
					}
				}
			},
		},
	}
	for catalog, spoils := range spoils {
		s := open(t, c, catalog)
		table := catalog + ".owner.spoiled"
		c.Exec(t, "DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+" AS SELECT orderkey, totalprice, orderpriority FROM tpch.tiny.orders WHERE orderkey < 200")
		for name, spoil := range spoils {
			t.Run(catalog+", "+name, func(t *testing.T) {
				infos := must[[]sources.PartInfo](t)(divided(t, s, table, sources.Keys{Columns: []string{"orderkey"}, Rows: true}))
				p := must[sources.Part](t)(s.Open(t.Context(), infos[0], 1))
				batch := rowfn.Batch{Functions: []rowfn.Function{number("totalprice", 0, 1e6)}}
				must[rowfn.Sums](t)(p.Moments(t.Context(), batch, 0, p.Units()))
				spoil(t, infos[0])
				if sums, err := p.Moments(t.Context(), batch, 0, p.Units()); !isKind(err, sources.Changed) {
					t.Errorf("summed: %v, %v", sums, err)
				}
				if err := p.Check(t.Context()); !isKind(err, sources.Changed) {
					t.Errorf("checked: %v", err)
				}
				if err := p.Read(t.Context(), nil, 0, p.Units(), func(sources.Block) error { return nil }); !isKind(err, sources.Changed) {
					t.Errorf("read: %v", err)
				}
				again, err := s.Open(t.Context(), infos[0], 1)
				if err == nil {
					err = again.Check(t.Context())
				}
				if !isKind(err, sources.Changed) {
					t.Errorf("opened: %v", err)
				}
			})
		}
	}
}

// bigPart is a part of 300,000 rows in several files, and what it holds.
func bigPart(t *testing.T, c *trinotest.Cluster, s *Source) (sources.Part, *engine.Table) {
	t.Helper()
	c.Exec(t, "CREATE TABLE IF NOT EXISTS iceberg.owner.big AS SELECT row_number() OVER () AS id, totalprice, CAST(custkey AS double) AS custkey FROM tpch.sf1.orders WHERE orderkey < 1200000")
	infos := must[[]sources.PartInfo](t)(divided(t, s, "iceberg.owner.big", sources.Keys{Columns: []string{"id"}, Rows: true}))
	p := must[sources.Part](t)(s.Open(t.Context(), infos[0], 1))
	var all [2][]float64
	if err := p.Read(t.Context(), []string{"totalprice", "custkey"}, 0, p.Units(), func(b sources.Block) error {
		for i := range all {
			all[i] = append(all[i], b.Rows.Column(i).Numbers...)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	table := must[*dataset.Table](t)(dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "totalprice", Kind: dataset.Number}, Numbers: all[0]},
		dataset.Column{Field: dataset.Field{Name: "custkey", Kind: dataset.Number}, Numbers: all[1]}))
	return p, must[*engine.Table](t)(engine.NewTable(table, nil, 1))
}

// TestWorkerDies: a worker that is killed while it works makes no other sums. The statement is sent again, and the coordinator does the work alone, or there is an error.
func TestWorkerDies(t *testing.T) {
	c := trinotest.Shared(t)
	s := open(t, c, "iceberg")
	p, e := bigPart(t, c, s)
	t.Run("ranges", func(t *testing.T) { // of a part in several pieces
		n := p.Units()
		for _, r := range [][2]int64{{0, n / 2}, {n / 2, n}, {70000, 70001}, {65530, 131080}, {n - 1, n}} {
			batch := rowfn.Batch{Functions: []rowfn.Function{number("totalprice", 0, 1e6), heavy("custkey", 3)}, Products: []rowfn.Product{{A: 0, B: 1}}}
			got, err := p.Moments(t.Context(), batch, r[0], r[1])
			want := must[rowfn.Sums](t)(e.Moments(t.Context(), batch, r[0], r[1]))
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("units %v: %v, want %v; %v", r, got, want, err)
			}
		}
	})
	t.Run("deadline", func(t *testing.T) {
		short := open(t, c, "iceberg", "deadline=1s")
		q, ok := p.(*part)
		if !ok {
			t.Fatal("no part")
		}
		hurried := *q
		hurried.source = short
		var batch rowfn.Batch
		for i := range 40 {
			batch.Functions = append(batch.Functions, heavy("totalprice", uint64(i)))
		}
		begun := time.Now()
		if sums, err := hurried.Moments(t.Context(), batch, 0, p.Units()); !isKind(err, sources.Unavailable) || time.Since(begun) > time.Minute {
			t.Errorf("%v, %v after %v", sums.Values, err, time.Since(begun))
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		var batch rowfn.Batch
		for i := range 40 {
			batch.Functions = append(batch.Functions, heavy("totalprice", 100+uint64(i)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := p.Moments(ctx, batch, 0, p.Units()); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			running, err := c.Queries(trinotest.Reader)
			if err == nil && len(running) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the engine goes on: %.100q, %v", running, err)
			}
		}
	})
	t.Run("killed", func(t *testing.T) {
		batch := rowfn.Batch{Products: []rowfn.Product{{A: 0, B: 1}}}
		for i := range 30 {
			batch.Functions = append(batch.Functions, heavy("totalprice", 200+uint64(i)))
		}
		want := must[rowfn.Sums](t)(e.Moments(t.Context(), batch, 0, p.Units()))
		time.AfterFunc(1500*time.Millisecond, c.KillWorker)
		got, err := p.Moments(t.Context(), batch, 0, p.Units())
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
		if err != nil && !isKind(err, sources.Unavailable) {
			t.Error(err)
		}
		if err := c.StartWorker(); err != nil {
			t.Fatal(err)
		}
		got, err = p.Moments(t.Context(), batch, 0, p.Units())
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("with a new worker: %v, want %v; %v", got, want, err)
		}
	})
}

// TestWrongReader: a reader who can write is refused, and so is one who may not read.
func TestWrongReader(t *testing.T) {
	c := trinotest.Shared(t)
	c.Exec(t, "CREATE TABLE IF NOT EXISTS memory.owner.readers AS SELECT orderkey, totalprice FROM tpch.tiny.orders WHERE orderkey < 100")
	good := open(t, c, "memory")
	infos := must[[]sources.PartInfo](t)(divided(t, good, "memory.owner.readers", sources.Keys{Columns: []string{"orderkey"}, Rows: true}))
	for reader, kind := range map[string]sources.Kind{"owner": sources.Refused, "stranger": sources.Unavailable} {
		s, err := Open(fmt.Sprintf("trino://loader@127.0.0.1:%d/memory/private?reader=%s", c.Port, reader))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open(t.Context(), infos[0], 1); !isKind(err, kind) {
			t.Errorf("%s opens a part: %v", reader, err)
		}
		if _, err := divided(t, s, "memory.owner.readers", sources.Keys{Columns: []string{"orderkey"}, Rows: true}); reader == "owner" && !isKind(err, kind) {
			t.Errorf("a table is divided for %s: %v", reader, err)
		}
	}
	if _, err := good.Look(t.Context(), "memory.private.hp_"+infos[0].Name); !isKind(err, sources.Refused) {
		t.Errorf("a part is looked at: %v", err)
	}
}
