package trinotest

import (
	"fmt"
	"os"
	"path/filepath"
)

// jvm are the flags of each node.
var jvm = []string{"-server", "-Xmx1500m", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=8M", "-XX:ReservedCodeCacheSize=256M", "-XX:+ExitOnOutOfMemoryError", "-XX:+ExplicitGCInvokesConcurrent",
	"-XX:-OmitStackTraceInFastThrow", "-Djdk.attach.allowAttachSelf=true", "-XX:+EnableDynamicAgentLoading", "-Dfile.encoding=UTF-8", "-Duser.timezone=UTC",
	"--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"}

// rules are what docs/SOURCES.md tells operators to paste, with an owner beside.
const rules = `{
  "catalogs": [
    {"user": "owner", "allow": "all"},
    {"user": "loader", "allow": "all"},
    {"user": "reader", "catalog": "iceberg|hive|delta|memory|system", "allow": "read-only"}
  ],
  "queries": [
    {"user": "owner", "allow": ["execute", "kill", "view"]},
    {"allow": ["execute"]}
  ],
  "schemas": [
    {"user": "owner", "owner": true},
    {"owner": false}
  ],
  "tables": [
    {"user": "owner", "privileges": ["SELECT", "INSERT", "DELETE", "UPDATE", "OWNERSHIP", "GRANT_SELECT"]},
    {"user": "loader", "schema": "private", "privileges": ["SELECT", "INSERT", "DELETE", "OWNERSHIP"]},
    {"user": "loader", "schema": "owner|tiny|sf1", "privileges": ["SELECT"]},
    {"user": "reader", "schema": "private", "privileges": ["SELECT"]},
    {"catalog": "system", "privileges": ["SELECT"]},
    {"schema": "information_schema", "privileges": ["SELECT"]}
  ]
}
`

// fast lets a node be ready sooner: tests run for minutes on few cores, where the second compiler takes more time than it saves. HOLDOUTD_TRINO_MEASURE=1 leaves it on, for
// measurements.
func fast() []string {
	if os.Getenv("HOLDOUTD_TRINO_MEASURE") != "" {
		return nil
	}
	return []string{"-XX:TieredStopAtLevel=1"}
}

// configure writes the configuration of a node.
func (c *Cluster) configure(name string) error {
	home := filepath.Join(c.home, name)
	etc := filepath.Join(home, "etc")
	if err := os.MkdirAll(filepath.Join(etc, "catalog"), 0o755); err != nil {
		return err
	}
	port := c.Port
	if name == "worker" {
		port = c.workerPort
	}
	config := fmt.Sprintf(`coordinator=%t
http-server.http.port=%d
discovery.uri=http://127.0.0.1:%d
query.max-memory-per-node=700MB
memory.heap-headroom-per-node=300MB
`, name == "coordinator", port, c.Port)
	if name == "coordinator" {
		config += "node-scheduler.include-coordinator=true\nquery.min-expire-age=10m\n"
	}
	files := map[string]string{
		"config.properties":         config,
		"log.properties":            "io.trino=WARN\nio.airlift=WARN\n",
		"access-control.properties": "access-control.name=file\nsecurity.config-file=" + filepath.Join(etc, "rules.json") + "\n",
		"rules.json":                rules,
		"catalog/tpch.properties":   "connector.name=tpch\n",
		"catalog/memory.properties": "connector.name=memory\nmemory.max-data-per-node=300MB\n",
		"catalog/iceberg.properties": "connector.name=iceberg\niceberg.catalog.type=TESTING_FILE_METASTORE\nhive.metastore.catalog.dir=local:///iceberg\n" +
			"iceberg.metadata-cache.enabled=false\n" + c.local(), // the coordinator, which works too here, would go on reading files that are gone
		"catalog/hive.properties": "connector.name=hive\nhive.metastore=file\nhive.metastore.catalog.dir=local:///hive\nhive.storage-format=PARQUET\nhive.security=allow-all\n" +
			"hive.non-managed-table-writes-enabled=true\n" + c.local(),
		"catalog/delta.properties": "connector.name=delta_lake\nhive.metastore=file\nhive.metastore.catalog.dir=local:///delta\ndelta.enable-non-concurrent-writes=true\n" + c.local(),
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(etc, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// local lets a catalog keep its files in the folder that stands for the object store.
func (c *Cluster) local() string {
	return "fs.native-local.enabled=true\nlocal.location=" + c.Data + "\n"
}
