package chtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed shim.mjs
var shim string

// LocalName is the name of the cluster of one shard that every current engine knows: itself.
const LocalName = "one"

// Grants are what the loader and the reader may do at the current engine, with the databases Data and Private. docs/SOURCES.md has the same for databases of its own, which a test compares. The second half of the
// loader's is needed on a cluster alone.
func Grants(user string, cluster bool) []string {
	switch {
	case user == Loader && cluster:
		return append(Grants(Loader, false), "GRANT SELECT ON system.clusters", "GRANT TABLE ENGINE ON Distributed", "GRANT CLUSTER ON *.*")
	case user == Loader:
		return []string{"GRANT SELECT ON " + Data + ".*", "GRANT SELECT, INSERT, CREATE TABLE, DROP TABLE ON " + Private + ".*"}
	case user == Owner:
		return []string{"GRANT ALL ON *.*"}
	}
	return []string{"GRANT SELECT ON " + Private + ".*"}
}

// NewCurrentCluster starts a current engine of the test's own, as a cluster of one shard.
func NewCurrentCluster(t testing.TB, more ...Profile) *Engine {
	t.Helper()
	return own(t, func(more []Profile) (*Engine, error) { return startEngine(LocalName, more) }, more)
}

// startCurrent starts the current engine, which npm has as a library, behind HTTP.
func startCurrent(more []Profile) (*Engine, error) { return startEngine("", more) }

func startEngine(cluster string, more []Profile) (*Engine, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("chtest: the current engine needs node: %w", err)
	}
	s := &Server{}
	if s.Dir, err = newDir(); err != nil {
		return nil, fmt.Errorf("chtest: %w", err)
	}
	if s.Port, err = freePort(); err != nil {
		return nil, err
	}
	settings := profiles()
	for _, p := range more {
		if !p.Alone {
			settings[p.User] = p.merged()
		}
	}
	for _, profile := range settings {
		if profile["readonly"] == "1" { // 18.16 knows no such settings
			profile["cancel_http_readonly_queries_on_client_close"], profile["short_circuit_function_evaluation"] = "1", "disable"
		}
	}
	for _, p := range more {
		if p.Alone {
			settings[p.User] = p.merged()
		}
	}
	text, err := json.Marshal(map[string]any{"port": s.Port, "dir": s.Dir, "modules": filepath.Join(bin, "chdb"), "password": Password, "users": settings, "owner": Owner})
	if err != nil {
		return nil, err
	}
	if err := s.write("shim.mjs", shim); err != nil {
		return nil, err
	}
	if err := s.write("shim.json", string(text)); err != nil {
		return nil, err
	}
	if err := s.write("users.xml", roles(sortedKeys(settings), cluster != "")); err != nil {
		return nil, err
	}
	// A shard whose port is the engine's own is the engine itself: nothing listens there.
	if err := s.write("config.xml", fmt.Sprintf("<clickhouse><users_config>%s/users.xml</users_config><tcp_port>9000</tcp_port><remote_servers><%[2]s><shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard></%[2]s></remote_servers></clickhouse>\n", s.Dir, LocalName)); err != nil {
		return nil, err
	}
	s.command = []string{node, filepath.Join(s.Dir, "shim.mjs"), filepath.Join(s.Dir, "shim.json")}
	e := &Engine{Name: "current", Cluster: cluster, Servers: []*Server{s}}
	if err := s.Start(); err != nil {
		e.Close()
		return nil, err
	}
	for _, db := range []string{Data, Private} {
		if _, err := s.Do(Owner, "CREATE DATABASE IF NOT EXISTS "+db, nil); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

// roles is a configuration of one user without rights, who can take the role of each user of the tests.
func roles(users []string, cluster bool) string {
	var list strings.Builder
	for _, user := range users {
		fmt.Fprintf(&list, "<%s><grants>", user)
		for _, g := range Grants(user, cluster) {
			fmt.Fprintf(&list, "<query>%s</query>", g)
		}
		fmt.Fprintf(&list, "</grants></%s>", user)
	}
	return fmt.Sprintf("<clickhouse><profiles><default/></profiles><quotas><default/></quotas><roles>%s</roles><users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota><grants><query>GRANT %s</query></grants></default></users></clickhouse>\n",
		list.String(), strings.Join(users, ", "))
}
