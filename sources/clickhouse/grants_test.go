//go:build engines

package clickhouse_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/clickhouse"
	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
)

// written are the statements of docs/SOURCES.md that set a ClickHouse up.
type written struct {
	grants  map[string][]string // by user: for a server, without the name of the user, of the databases of the tests
	cluster map[string][]string // those beside them, for a cluster
	profile map[string]string   // of the reader
}

func readSetUp(t testing.TB) written {
	t.Helper()
	page, err := os.ReadFile("../../docs/SOURCES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## ClickHouse\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of statements, want 2: for a server, and what a cluster needs beside them", len(blocks))
	}
	w := written{profile: map[string]string{}}
	names := strings.NewReplacer("sales.", chtest.Data+".", "holdoutd.", chtest.Private+".")
	grants := func(block string) map[string][]string {
		found := map[string][]string{}
		for _, g := range regexp.MustCompile(`(?m)^(GRANT .*) TO (\w+);$`).FindAllStringSubmatch(block, -1) {
			user := strings.TrimPrefix(g[2], "holdoutd_")
			found[user] = append(found[user], names.Replace(g[1]))
		}
		return found
	}
	w.grants, w.cluster = grants(blocks[0][1]), grants(blocks[1][1])
	_, profile, ok := strings.Cut(blocks[0][1], "SETTINGS PROFILE holdoutd_reader SETTINGS")
	profile, _, end := strings.Cut(profile, ";")
	if !ok || !end {
		t.Fatal("no profile of the reader")
	}
	for setting := range strings.SplitSeq(profile, ",") {
		name, value, _ := strings.Cut(setting, "=")
		w.profile[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), "'")
	}
	return w
}

// TestSetUpAsWritten: the grants that docs/SOURCES.md has are those under which all tests of the current engine run, with the engine's own access control; a reader with the profile there is taken, and answers; a table
// is registered, summed, read and dropped; and nothing beside that is granted. On a cluster, too, of which the page has the rest. It would notice a grant too few, which fails there, and one too many.
func TestSetUpAsWritten(t *testing.T) {
	page := readSetUp(t)
	for _, user := range []string{chtest.Loader, chtest.Reader} {
		if want := chtest.Grants(user, false); !slices.Equal(page.grants[user], want) {
			t.Errorf("the page grants the %s %q, the tests %q", user, page.grants[user], want)
		}
		if got, want := slices.Concat(page.grants[user], page.cluster[user]), chtest.Grants(user, true); !slices.Equal(got, want) {
			t.Errorf("on a cluster the page grants the %s %q, the tests %q", user, got, want)
		}
	}
	if len(page.grants) != 2 || len(page.profile) < 8 {
		t.Errorf("the page has grants of %v and the profile %v", slices.Sorted(maps.Keys(page.grants)), page.profile)
	}
	asWritten := chtest.Profile{User: "as_written", Settings: page.profile, Alone: true}
	for _, e := range []*chtest.Engine{chtest.NewCurrent(t, asWritten), chtest.NewCurrentCluster(t, asWritten)} {
		t.Run("cluster:"+e.Cluster, func(t *testing.T) {
			s, err := clickhouse.Open(t.Context(), e.URLOf(chtest.Loader, asWritten.User))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			info := orders(t, e, s, 3000)[1]
			p := openPart(t, s, info)
			sum(t, p)
			if err := p.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if c, few, err := p.Distinct(t.Context(), "word", 10); err != nil || !few || c.Len() != 2 {
				t.Errorf("%d words, %v", c.Len(), err)
			}
			part, table := "`"+chtest.Private+"`.`"+info.Name+"`", chtest.Data+"."+strings.Fields(e.Query(t, "SELECT name FROM system.tables WHERE database = '"+chtest.Data+"'"))[0]
			for user, statements := range map[string][]string{
				chtest.Loader: {"INSERT INTO " + table + " SELECT * FROM " + table, "DROP TABLE " + table, "TRUNCATE TABLE " + table, "ALTER TABLE " + table + " DELETE WHERE 1", "CREATE TABLE " + chtest.Data + ".x (a UInt8) ENGINE = Memory",
					"CREATE DATABASE more", "DROP DATABASE " + chtest.Private, "ALTER TABLE " + part + " DELETE WHERE 1", "GRANT SELECT ON *.* TO default", "CREATE USER x", "SELECT * FROM file('/etc/passwd', 'LineAsString')",
					"SELECT * FROM remote('127.0.0.1:9000', system.one)", "CREATE TABLE `" + chtest.Private + "`.u (a String) ENGINE = URL('http://127.0.0.1:1/', 'CSV')"},
				asWritten.User: {"SELECT count() FROM " + table, "INSERT INTO " + part + " SELECT * FROM " + part, "DROP TABLE " + part, "TRUNCATE TABLE " + part, "ALTER TABLE " + part + " DELETE WHERE 1",
					"CREATE TABLE `" + chtest.Private + "`.x (a UInt8) ENGINE = Memory", "SELECT * FROM file('/etc/passwd', 'LineAsString')", "SELECT * FROM remote('127.0.0.1:9000', system.one)"},
			} {
				for _, text := range statements {
					reply, err := e.Servers[0].Do(user, text, nil)
					if err == nil || !strings.Contains(err.Error(), "ACCESS_DENIED") && !strings.Contains(err.Error(), "READONLY") {
						t.Errorf("the %s may do %q: %q, %v", user, text, reply, err)
					}
				}
			}
			if err := s.Drop(t.Context(), info.Name); err != nil {
				t.Error(err)
			}
			if _, err := s.Open(t.Context(), info, 3); err == nil {
				t.Error("a part that was dropped can be opened")
			} else {
				wants(t, "a part that was dropped", err, sources.NotFound, sources.Changed)
			}
		})
	}
}
