package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/holdout"
)

const sourceHelp = "where tables are taken from: a directory of Parquet files, as NAME=file:///DIRECTORY, or a database, as NAME=clickhouse://READER@HOST:8123/DATABASE or NAME=trino://READER@HOST:8443/CATALOG/SCHEMA. With loader=USER it is a database that held-out rows are put into: NAME=clickhouse://READER@HOST:8123/DATABASE?loader=USER; tls=true for https; of a cluster cluster=NAME and shard=HOST:8123 for each other shard; may be given several times. Passwords are in the variables HOLDOUTD_SOURCE_NAME_PASSWORD and HOLDOUTD_SOURCE_NAME_LOADER_PASSWORD, or in the files that these variables with _FILE name"

// readSources reads the sources of --source, with their passwords. No error has a password in it.
func readSources(flags []string) (map[string]holdout.Source, error) {
	all := map[string]holdout.Source{}
	for _, flag := range flags {
		name, address, ok := strings.Cut(flag, "=")
		if !ok {
			return nil, misuse("--source must be NAME=%s", allAddresses("NAME="))
		}
		if _, twice := all[name]; twice {
			return nil, misuse("--source names %s twice", name)
		}
		for other := range all {
			if passwordVariable(other, "") == passwordVariable(name, "") {
				return nil, misuse("--source names two sources whose passwords would be in the variable %s; call one of them otherwise", passwordVariable(name, ""))
			}
		}
		source, err := readSource(name, address)
		if err != nil {
			return nil, err
		}
		all[name] = source
	}
	return all, nil
}

func readSource(name, address string) (of holdout.Source, err error) {
	u, err := url.Parse(address)
	if err != nil || sourceAddresses[u.Scheme] == "" {
		return of, misuse("--source %s: the address must be %s", name, allAddresses(""))
	}
	if u.Scheme == holdout.EngineFiles {
		if u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !strings.HasPrefix(u.Path, "/") {
			return of, misuse("--source %s: the address must be %s", name, sourceAddresses[u.Scheme])
		}
		return holdout.Source{Engine: u.Scheme, Address: u.Path}, nil
	}
	if u.Host == "" || u.User.Username() == "" || u.Fragment != "" || u.Scheme == holdout.EngineTrino && strings.Count(strings.Trim(u.Path, "/"), "/") != 1 {
		return of, misuse("--source %s: the address must be %s", name, sourceAddresses[u.Scheme])
	}
	if _, given := u.User.Password(); given {
		return of, misuse("--source %s: a password in the address is seen by everyone on this machine; put it into %s or into a file that %s_FILE names", name, passwordVariable(name, ""), passwordVariable(name, ""))
	}
	scheme, loader, shards := "http", "", []string(nil)
	for member, values := range u.Query() {
		switch {
		case member == "loader" && len(values) == 1 && values[0] != "":
			loader = values[0]
		case member == "cluster" && len(values) == 1 && values[0] != "" && u.Scheme == holdout.EngineClickHouse:
			of.Cluster = values[0]
		case member == "shard" && !slices.Contains(values, "") && u.Scheme == holdout.EngineClickHouse:
			shards = values
		case member == "tls" && len(values) == 1 && values[0] == "true":
			scheme = "https"
		case member == "tls" && len(values) == 1 && values[0] == "false":
		default:
			return of, misuse("--source %s: the address takes loader=USER and tls=true, each once, and not %s; of ClickHouse also cluster=NAME, once, and shard=HOST:8123 for each other shard", name, member)
		}
	}
	if loader == "" && (of.Cluster != "" || shards != nil) {
		return of, misuse("--source %s: name the user that makes tables in the cluster, as loader=USER; a source without one is one server that tables are taken from", name)
	}
	if (of.Cluster == "") != (shards == nil) {
		return of, misuse("--source %s: a cluster needs cluster=NAME, and shard=HOST:8123 for each shard but the one of the address", name)
	}
	of.Engine, of.Address = u.Scheme, (&url.URL{Scheme: scheme, Host: u.Host, Path: u.Path}).String()
	for _, host := range shards {
		of.Shards = append(of.Shards, (&url.URL{Scheme: scheme, Host: host, Path: u.Path}).String())
	}
	of.Reader.User, of.Loader.User = u.User.Username(), loader
	if of.Reader.Password, err = password(passwordVariable(name, "")); err != nil {
		return of, err
	}
	if loader != "" {
		if of.Loader.Password, err = password(passwordVariable(name, "LOADER_")); err != nil {
			return of, err
		}
	}
	if of.Engine == holdout.EngineTrino && scheme != "https" && of.Reader.Password+of.Loader.Password != "" {
		return of, misuse("--source %s: Trino takes a password over https only; add tls=true", name)
	}
	return of, nil
}

// allAddresses lists how addresses are written.
func allAddresses(before string) string {
	return sourceAddresses[holdout.EngineFiles] + ", " + before + sourceAddresses[holdout.EngineClickHouse] + " or " + before + sourceAddresses[holdout.EngineTrino]
}

// sourceAddresses say how an address of each engine is written.
var sourceAddresses = map[string]string{
	holdout.EngineClickHouse: "clickhouse://READER@HOST:8123/DATABASE[?loader=USER]",
	holdout.EngineFiles:      "file:///DIRECTORY",
	holdout.EngineTrino:      "trino://READER@HOST:8443/CATALOG/SCHEMA[?loader=USER]",
}

func passwordVariable(name, whose string) string {
	return "HOLDOUTD_SOURCE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_" + whose + "PASSWORD"
}

// password is that of a variable, or of the file that the variable with _FILE names; none where neither is set.
func password(variable string) (string, error) {
	text, here := os.LookupEnv(variable)
	file, there := os.LookupEnv(variable + "_FILE")
	switch {
	case here && there:
		return "", misuse("%s and %s_FILE are both set; set one", variable, variable)
	case !there:
		return text, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", variable, err)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}
