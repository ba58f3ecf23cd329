package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/sources"
)

const (
	// readyTimeout is for Ready; a statement of nothing takes milliseconds.
	readyTimeout = time.Second
	// recheck is after how long the users' settings are looked at again: a profile may be changed while we run.
	recheck = time.Minute
	// dropTimeout is for removing what a division that failed has left.
	dropTimeout = time.Minute
	// groupBytes is from how many bytes on ClickHouse groups rows on its disk.
	groupBytes = 1 << 30
)

// Source is ClickHouse as a place with tables.
type Source struct {
	conn  *conn
	cells int64 // groupCells

	mutex   sync.Mutex
	checked time.Time // when the users' settings were last found good
	version [2]int
	shards  int // of the cluster; 1 without
}

var _ sources.Source = (*Source)(nil)

// Open opens the source of a URL; README of the options is at [parse]. A source that does not answer is opened too, and asked again when it is used; one whose users could make wrong
// answers is not.
func Open(ctx context.Context, url string) (*Source, error) {
	o, err := parse(url)
	if err != nil {
		return nil, err
	}
	s := &Source{conn: newConn(o), cells: groupCells}
	if err := s.ready(ctx); err != nil {
		if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Unavailable {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Kind implements [sources.Source].
func (s *Source) Kind() string { return "clickhouse" }

// Close implements [sources.Source]. It waits until statements that were stopped are being ended at the server.
func (s *Source) Close() error {
	s.conn.close()
	return nil
}

// ready checks the version, the users' settings and the cluster, now and then. Every method that says something of rows calls it first.
func (s *Source) ready(ctx context.Context) error {
	s.mutex.Lock()
	recent := time.Since(s.checked) < recheck
	s.mutex.Unlock()
	if recent {
		return nil
	}
	version, err := s.conn.text(ctx, statement{as: s.conn.o.reader, text: "SELECT version()"})
	if err != nil {
		return err
	}
	var v [2]int
	if _, err := fmt.Sscanf(string(version), "%d.%d", &v[0], &v[1]); err != nil || v[0] < 18 {
		return refused("", "the source's version is too old; ClickHouse 18.16 is the oldest that is known to give the same sums")
	}
	if err := checkSettings(ctx, s.conn); err != nil {
		return err
	}
	shards, err := s.countShards(ctx)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.version, s.shards, s.checked = v, shards, time.Now()
	return nil
}

// countShards counts the shards of the cluster, and makes the table by which [Source.Ready] asks each of them.
func (s *Source) countShards(ctx context.Context) (int, error) {
	if s.conn.o.cluster == "" {
		return 1, nil
	}
	rows, err := s.strings(ctx, s.conn.o.loader, 2, "SELECT toString(uniqExact(shard_num)), toString(count()) FROM system.clusters WHERE cluster = "+literal(s.conn.o.cluster))
	if err != nil {
		return 0, err
	}
	shards, errS := strconv.Atoi(rows[0][0])
	replicas, errR := strconv.Atoi(rows[0][1])
	switch {
	case errS != nil || errR != nil:
		return 0, fmt.Errorf("clickhouse: %w", errors.Join(errS, errR))
	case shards == 0:
		return 0, refused("", "the source knows no cluster of the name in its URL; system.clusters lists those that it knows")
	case len(s.conn.o.servers) > 1 && len(s.conn.o.servers) != replicas:
		return 0, refused("", "the cluster has %d servers, and the URL's servers are %d: name each once, or leave servers out where the cluster has a coordination service", replicas, len(s.conn.o.servers))
	}
	err = s.write(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (dummy UInt8) ENGINE = Distributed(%s, 'system', 'one')", name(s.conn.o.database, suffixReady), name(s.conn.o.cluster)), nil)
	return shards, err
}

// Ready implements [sources.Source]: the reader can ask, and every shard answers.
func (s *Source) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		return err
	}
	text := "SELECT toString(count()) FROM system.one"
	if s.conn.o.cluster != "" {
		text = "SELECT toString(count()) FROM " + name(s.conn.o.database, suffixReady)
	}
	rows, err := s.strings(ctx, s.conn.o.reader, 1, text)
	if err != nil {
		return err
	}
	if len(rows) != 1 || rows[0][0] != strconv.Itoa(s.shards) {
		return &sources.Error{Kind: sources.Unavailable, Detail: "not all servers of the source answer; ask again later", Err: fmt.Errorf("clickhouse: %v of %d shards", rows, s.shards)}
	}
	return nil
}

// The tables of a part beside the one of its name. No part's name has a tilde.
const (
	suffixLocal = "~local" // its rows on a shard
	suffixUnits = "~units" // while a table is divided: the secret numbers of its units
	suffixReady = "~ready" // of no part: see Ready
)

var partName = regexp.MustCompile(`^[A-Za-z0-9_]{1,60}$`)

// Parts implements [sources.Source].
func (s *Source) Parts(ctx context.Context) ([]string, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, server := range s.conn.o.servers {
		err := s.conn.retry(ctx, func() error {
			return s.conn.stream(ctx, statement{as: s.conn.o.loader, server: server, whole: true, text: "SELECT name FROM system.tables WHERE database = " + literal(s.conn.o.database)}, []string{"String"}, func(b *block) error {
				for row := range b.rows {
					stem, _, _ := strings.Cut(string(b.columns[0].text(row)), "~")
					if partName.MatchString(stem) {
						found[stem] = true
					}
				}
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Drop implements [sources.Source].
func (s *Source) Drop(ctx context.Context, part string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if !partName.MatchString(part) {
		return nil // there is none of such a name
	}
	for _, suffix := range []string{"", suffixUnits, suffixLocal} {
		if err := s.drop(ctx, part+suffix); err != nil {
			return err
		}
	}
	return nil
}

// drop removes a table of the private database on every server, and its files at once where the version would keep them for a while.
func (s *Source) drop(ctx context.Context, table string) error {
	sync := ""
	if s.version[0] >= 21 {
		sync = " SYNC"
	}
	return s.everywhere(ctx, func(on string) string {
		return "DROP TABLE IF EXISTS " + name(s.conn.o.database, table) + on + sync
	})
}

// everywhere runs a statement that makes or drops a table on every server of the cluster: on each that the URL names, or by ON CLUSTER.
func (s *Source) everywhere(ctx context.Context, text func(on string) string) error {
	if s.conn.o.cluster != "" && len(s.conn.o.servers) == 1 && s.shards > 1 {
		return s.write(ctx, text(" ON CLUSTER "+name(s.conn.o.cluster)), nil)
	}
	for _, server := range s.conn.o.servers {
		if _, err := s.conn.text(ctx, statement{as: s.conn.o.loader, server: server, text: text("")}); err != nil {
			return err
		}
	}
	return nil
}

// write runs a statement of the loader that returns nothing. It is not sent twice.
func (s *Source) write(ctx context.Context, text string, settings map[string]string) error {
	_, err := s.conn.text(ctx, statement{as: s.conn.o.loader, text: text, settings: settings})
	return err
}

// heavy are the settings of the loader's statements: large groups go to the disk, and rows for shards are on them when an INSERT returns.
func (s *Source) heavy() map[string]string {
	return map[string]string{"max_bytes_before_external_group_by": strconv.Itoa(groupBytes), "insert_distributed_sync": "1"}
}

// heavyOf are the settings for a user's statements: a readonly user may set none.
func (s *Source) heavyOf(as user) map[string]string {
	if as == s.conn.o.loader {
		return s.heavy()
	}
	return nil
}
