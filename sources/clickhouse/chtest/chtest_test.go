//go:build engines

package chtest

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// TestEngines: both engines start, know their users, take rows and give them back. What the tests of others stand on.
func TestEngines(t *testing.T) {
	for _, e := range Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			version := strings.TrimSpace(e.Query(t, "SELECT version()"))
			t.Log(version)
			e.Exec(t, "CREATE TABLE shop.engines (x UInt8, s String) ENGINE = MergeTree ORDER BY x")
			e.Insert(t, "shop.engines", []byte{7, 2, 'a', '\n', 8, 0})
			if got := e.Query(t, "SELECT x, hex(s) FROM shop.engines ORDER BY x"); got != "7\t610A\n8\t\n" {
				t.Errorf("rows came back as %q", got)
			}
			s := e.Servers[0]
			for _, text := range []string{"SELECT count() FROM shop.engines", "CREATE TABLE holdoutd_private.x (x UInt8) ENGINE = Memory", "INSERT INTO holdoutd_private.x SELECT 1"} {
				if reply, err := s.Do(Reader, text, nil); err == nil {
					t.Errorf("the reader may do %q: %s", text, reply)
				}
			}
			if _, err := s.Do(Loader, "CREATE TABLE holdoutd_private.x ENGINE = MergeTree ORDER BY x AS SELECT x FROM shop.engines", nil); err != nil {
				t.Error(err)
			}
			if got, err := s.Do(Reader, "SELECT sum(x) FROM holdoutd_private.x", nil); err != nil || string(got) != "15\n" {
				t.Errorf("the reader reads %q, %v", got, err)
			}
			if reply, err := s.Do("nobody", "SELECT 1", nil); err == nil {
				t.Errorf("somebody unknown may ask: %s", reply)
			}
		})
	}
}

// TestClusterKnowsItsShards: rows that are written through a Distributed table are on both.
func TestClusterKnowsItsShards(t *testing.T) {
	e := Cluster(t)
	e.Exec(t, "CREATE TABLE shop.many_local (x UInt64) ENGINE = MergeTree ORDER BY x",
		"CREATE TABLE shop.many (x UInt64) ENGINE = Distributed(two, shop, many_local, x)")
	var rows []byte
	for i := range 1000 {
		rows = binary.LittleEndian.AppendUint64(rows, uint64(i))
	}
	e.Insert(t, "shop.many", rows)
	if got := e.Query(t, "SELECT count() FROM shop.many"); got != "1000\n" {
		t.Errorf("%s rows of 1000", got)
	}
	if got := e.Query(t, "SELECT count() FROM shop.many_local"); got != "500\n" {
		t.Errorf("%s rows of 500 on the first shard", got)
	}
}
