package remote

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// Shards is a loader for a cluster of ClickHouse. Of a table each shard has some units, whole, in a table of its own; a distributed one on the first server stands for all of them, and is what a reader of that
// server asks.
type Shards struct {
	nodes   []*ClickHouse
	cluster string
}

var _ Loader = (*Shards)(nil)

// clusterName is what a cluster may be called.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// NewShards is the cluster of that name in the configuration of its servers, with the addresses of a server of each shard ([NewClickHouse]). All have one database. Its users read the tables of the shards
// as the cluster's configuration says.
func NewShards(cluster string, addresses []string, o Options) (*Shards, error) {
	if !clusterName.MatchString(cluster) {
		return nil, fmt.Errorf("remote: a cluster of ClickHouse is named with a-z, A-Z, 0-9 and _, and not %q", cluster)
	}
	s := &Shards{cluster: cluster}
	for _, address := range addresses {
		node, err := NewClickHouse(address, o)
		if err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, node)
	}
	if len(s.nodes) < 2 {
		return nil, fmt.Errorf("remote: the cluster %s needs an address of each of its shards, two at least", cluster)
	}
	return s, nil
}

// local is the table of one shard.
func local(t *sql.Table) *sql.Table {
	of := *t
	of.From += "_local"
	return &of
}

// Make implements [Loader].
func (s *Shards) Make(ctx context.Context, t *sql.Table) error {
	for _, node := range s.nodes {
		if err := node.Make(ctx, local(t)); err != nil {
			return err
		}
	}
	first := s.nodes[0]
	return first.Create(ctx, t, "Distributed("+s.cluster+","+first.database+","+local(t).From+")")
}

// Insert implements [Loader]. The rows of a unit go to one shard, by the unit's number: a sum over units is a sum of the shards' sums.
func (s *Shards) Insert(ctx context.Context, t *sql.Table, rows *Rows) error {
	parts := make([]Rows, len(s.nodes))
	for i := range parts {
		parts[i] = *rows
		parts[i].rows = nil
	}
	for _, row := range rows.rows {
		unit := row
		if rows.units != nil {
			unit = int(rows.units[row])
		}
		to := &parts[unit%len(parts)]
		to.rows = append(to.rows, row)
	}
	for i, node := range s.nodes {
		if len(parts[i].rows) == 0 {
			continue
		}
		if err := node.Insert(ctx, local(t), &parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// Drop implements [Loader].
func (s *Shards) Drop(ctx context.Context, t *sql.Table) error {
	failed := s.nodes[0].Drop(ctx, t)
	for _, node := range s.nodes {
		failed = errors.Join(failed, node.Drop(ctx, local(t)))
	}
	return failed
}
