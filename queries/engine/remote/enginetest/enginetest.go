// Package enginetest runs real SQL engines for tests: ClickHouse 18.16 as a cluster of two shards, the current ClickHouse as a library behind HTTP, and
// Trino with a worker. scripts/engines.sh has put them into the folder that HOLDOUTD_ENGINES names. They listen on this machine alone, and end with the test's process.
package enginetest

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long an engine may take to start on a machine that does much else: Trino takes half a minute.
const patience = 5 * time.Minute

// folder is where an engine is.
func folder(t testing.TB, engine string) string {
	t.Helper()
	dir := os.Getenv("HOLDOUTD_ENGINES")
	if dir == "" {
		t.Fatal("HOLDOUTD_ENGINES is not set: set it to the output of scripts/engines.sh")
	}
	dir = filepath.Join(dir, engine)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("%v: run scripts/engines.sh", err)
	}
	return dir
}

// process is a program that was started, and what it has said.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	mu    sync.Mutex
	words bytes.Buffer
}

// Write keeps the end of what a program says.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.words.Len() > 1<<20 {
		p.words.Reset()
	}
	return p.words.Write(text)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.words.String()
}

// start starts a program, which ends with the test.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p
	}
	cmd.Stderr, cmd.SysProcAttr = p, child()
	started := make(chan error)
	go func() {
		defer close(p.ended)
		locked(func() {
			err := cmd.Start()
			started <- err
			if err == nil {
				_ = cmd.Wait() // how it ends is not the test's matter
			}
		})
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

// stop ends a program and all that it has started.
func (p *process) stop() {
	end(p.cmd)
	<-p.ended
}

// await waits until an address answers with a text.
func (p *process) await(t testing.TB, address, text string) {
	t.Helper()
	p.awaits(t, func() bool { return strings.Contains(said(http.Get(address)), text) })
}

// said is the body of a reply; nothing where there is none.
func said(response *http.Response, err error) string {
	if err != nil {
		return ""
	}
	body, err := io.ReadAll(response.Body)
	if _ = response.Body.Close(); err != nil {
		return ""
	}
	return string(body)
}

// awaits waits until something is so, and fails where the process ends before, or too much time has passed.
func (p *process) awaits(t testing.TB, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if so() {
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended: %s", p.cmd.Path, p.said())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %s", p.cmd.Path, p.said())
		}
	}
}

// ports are free ones.
func ports(t testing.TB, n int) []int {
	t.Helper()
	var all []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().(*net.TCPAddr).Port)
	}
	return all
}

// Cluster is ClickHouse 18.16 in two shards, which its configuration calls "shards". Users have the password of the same name: loader may do all,
// reader has the profile of a holdout, and lenient one that leaves out shards.
type Cluster struct {
	nodes [2]*process
	http  []int
}

// Address is that of a shard, 0 or 1, for a user.
func (c *Cluster) Address(shard int, user string) string {
	return fmt.Sprintf("http://%s:%[1]s@127.0.0.1:%d/default", user, c.http[shard])
}

// Crash ends a shard.
func (c *Cluster) Crash(shard int) { c.nodes[shard].stop() }

const clusterConfig = `<yandex><logger><level>warning</level><log>%[1]s/log</log><errorlog>%[1]s/errors</errorlog></logger>
<http_port>%[2]d</http_port><tcp_port>%[3]d</tcp_port><interserver_http_port>%[4]d</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host><path>%[1]s/data/</path><tmp_path>%[1]s/tmp/</tmp_path><users_config>%[1]s/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>
<remote_servers><shards>
<shard><replica><host>127.0.0.1</host><port>%[5]d</port><user>reader</user><password>reader</password></replica></shard>
<shard><replica><host>127.0.0.1</host><port>%[6]d</port><user>reader</user><password>reader</password></replica></shard>
</shards></remote_servers></yandex>`

const clusterUsers = `<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default>
<holdout><readonly>1</readonly><max_memory_usage>800000000</max_memory_usage><max_execution_time>300</max_execution_time><max_threads>2</max_threads>
</holdout>
<lenient><readonly>1</readonly><max_memory_usage>800000000</max_memory_usage><max_execution_time>300</max_execution_time>

<skip_unavailable_shards>1</skip_unavailable_shards></lenient></profiles>
<quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
<users>%s</users></yandex>`

const clusterUser = `<%s><password>%[1]s</password><networks><ip>127.0.0.1</ip></networks><profile>%s</profile><quota>default</quota></%[1]s>`

// ClickHouse18 starts a cluster, which ends with the test.
func ClickHouse18(t testing.TB) *Cluster {
	t.Helper()
	root := filepath.Join(folder(t, "clickhouse-18"), "root")
	p := ports(t, 6)
	c := &Cluster{http: p[:2]}
	users := ""
	for user, profile := range map[string]string{"default": "default", "loader": "default", "reader": "holdout", "lenient": "lenient"} {
		users += fmt.Sprintf(clusterUser, user, profile)
	}
	for i := range c.nodes {
		dir := t.TempDir()
		config := fmt.Sprintf(clusterConfig, dir, p[i], p[2+i], p[4+i], p[2], p[3])
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o700), os.Mkdir(filepath.Join(dir, "tmp"), 0o700),
			os.WriteFile(filepath.Join(dir, "config.xml"), []byte(config), 0o600), os.WriteFile(filepath.Join(dir, "users.xml"), fmt.Appendf(nil, clusterUsers, users), 0o600)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(root, "usr/sbin/clickhouse-server"), "--config-file="+filepath.Join(dir, "config.xml"))
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LD_LIBRARY_PATH=" + filepath.Join(root, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(root, "lib/x86_64-linux-gnu")}
		c.nodes[i] = start(t, cmd)
	}
	for i, node := range c.nodes {
		node.await(t, fmt.Sprintf("http://127.0.0.1:%d/ping", c.http[i]), "Ok.")
	}
	return c
}

//go:embed testdata/chdb.mjs
var shim []byte

// CurrentClickHouse starts the current engine of ClickHouse behind HTTP, and returns its address. It has no users, no profiles and no cluster.
func CurrentClickHouse(t testing.TB) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "chdb.mjs")
	if err := os.WriteFile(program, shim, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, program, folder(t, "chdb"), dir)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd.Stdout = writer
	p := start(t, cmd)
	_ = writer.Close()
	line, err := bufio.NewReader(reader).ReadString('\n')
	port, atoi := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || atoi != nil {
		t.Fatalf("chdb said %q: %s", line, p.said())
	}
	return fmt.Sprintf("http://127.0.0.1:%d/default", port)
}

// java is a JDK that Trino 476 runs on: 24 or newer.
func java(t testing.TB) string {
	t.Helper()
	homes := []string{os.Getenv("HOLDOUTD_JAVA")}
	if homes[0] == "" {
		var err error
		if homes, err = filepath.Glob("/usr/lib/jvm/*"); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(homes)
	for _, home := range homes {
		release, err := os.ReadFile(filepath.Join(home, "release"))
		_, version, found := strings.Cut(string(release), `JAVA_VERSION="`)
		if major, _ := strconv.Atoi(version[:min(2, len(version))]); err == nil && found && major >= 24 {
			return home
		}
	}
	t.Fatal("Trino needs a JDK 24 or newer: install one, or name its folder in HOLDOUTD_JAVA")
	return ""
}

// Trino starts a coordinator and a worker, which both work, and returns the coordinator's address. Its catalog "memory" has tables, whose pages lie on both.
func Trino(t testing.TB) string {
	t.Helper()
	p := ports(t, 2)
	address := fmt.Sprintf("http://127.0.0.1:%d", p[0])
	coordinator := trinoNode(t, "one", p[0], address)
	trinoNode(t, "two", p[1], address)
	coordinator.await(t, address+"/v1/info", `"starting":false`)
	coordinator.awaits(t, func() bool { return works(address) }) // it has started before it knows the nodes that work
	return address
}

// trinoNode starts a node: the coordinator where its own port is that of the coordinator's address.
func trinoNode(t testing.TB, name string, port int, coordinator string) *process {
	t.Helper()
	home, dir := folder(t, "trino"), t.TempDir()
	etc, role := filepath.Join(dir, "etc"), "coordinator=false\n"
	if strings.HasSuffix(coordinator, fmt.Sprint(":", port)) {
		role = "coordinator=true\nnode-scheduler.include-coordinator=true\n"
	}
	files := map[string]string{
		"config.properties":         fmt.Sprintf("%shttp-server.http.port=%d\ndiscovery.uri=%s\nquery.max-memory-per-node=512MB\nmemory.heap-headroom-per-node=200MB\n", role, port, coordinator),
		"log.properties":            "io.trino=WARN\nio.airlift=WARN\n",
		"catalog/memory.properties": "connector.name=memory\nmemory.max-data-per-node=128MB\n",
	}
	if err := os.MkdirAll(filepath.Join(etc, "catalog"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// As its launcher does, which would leave a server behind where a test is killed.
	cmd := exec.Command(filepath.Join(java(t), "bin/java"), "-cp", filepath.Join(home, "lib/*"), "-Xmx1200M", "-XX:+ExitOnOutOfMemoryError", "-XX:ReservedCodeCacheSize=256M",
		"-Djdk.attach.allowAttachSelf=true", "-Dlog.levels-file="+filepath.Join(etc, "log.properties"), "-Dconfig="+filepath.Join(etc, "config.properties"),
		"-Dnode.environment=test", "-Dnode.id="+name, "-Dnode.data-dir="+filepath.Join(dir, "data"), "io.trino.server.TrinoServer")
	cmd.Dir = dir // where it looks for etc/catalog and plugin
	for _, plugins := range []string{"plugin", "secrets-plugin"} {
		if err := os.Symlink(filepath.Join(home, plugins), filepath.Join(dir, plugins)); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, cmd)
}

// works reports whether a Trino knows both of its nodes, and has them for a table: one of a schema is written and dropped.
func works(address string) bool {
	return done(address, "SELECT 1 / (CASE count(*) WHEN 2 THEN 1 ELSE 0 END) FROM system.runtime.nodes WHERE state = 'active'") &&
		done(address, "CREATE TABLE IF NOT EXISTS memory.default.ready AS SELECT 1 AS x") && done(address, "DROP TABLE memory.default.ready")
}

// done reports whether a statement came to its end.
func done(address, statement string) bool {
	request, err := http.NewRequest("POST", address+"/v1/statement", strings.NewReader(statement))
	if err != nil {
		return false
	}
	request.Header.Set("X-Trino-User", "test")
	for text := said(http.DefaultClient.Do(request)); ; {
		var page struct {
			NextURI string
			Error   any
		}
		if json.Unmarshal([]byte(text), &page) != nil || page.Error != nil {
			return false
		}
		if page.NextURI == "" {
			return true
		}
		text = said(http.Get(page.NextURI))
	}
}
