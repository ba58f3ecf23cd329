// Package chtest starts ClickHouse for tests: two shards of the server that Debian has, and the current engine, which comes without a server, behind HTTP. They listen on
// loopback alone, keep all in temporary folders, and end with the process, however it ends.
//
//	func TestMain(m *testing.M) { chtest.Main(m) }
//
//	func TestX(t *testing.T) {
//		for _, e := range chtest.Engines(t) {
//			e.Exec(t, "CREATE TABLE shop.orders …")
//			s, err := clickhouse.Open(ctx, e.URL(), …)
//		}
//	}
//
// Tests that need it carry the build tag engines. scripts/clickhouse.sh installs the programs and prints their folder, for HOLDOUTD_CLICKHOUSE.
package chtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The users of every engine, and what they may do there. Passwords are not secret: the servers listen on loopback alone.
const (
	Owner  = "owner"  // all: whose tables they are
	Loader = "loader" // reads the owner's tables, writes the database Private
	Reader = "reader" // reads the database Private, within limits
	// Password is that of each of them.
	Password = "of-tests"
	// Data is the database of the owner's tables, Private that of the parts.
	Data, Private = "shop", "holdoutd_private"
	// ClusterName is the name of the two shards in their configuration.
	ClusterName = "two"
)

// Engine is ClickHouse, of one or more servers.
type Engine struct {
	Name    string // "18.16 in two shards", "current"
	Cluster string // its name in the configuration; "": one server
	Servers []*Server
}

// Server is a running server, or one that was stopped.
type Server struct {
	Port int
	Dir  string // all it has

	command []string
	env     []string
	cmd     *exec.Cmd
	life    io.Closer     // the server ends when this is closed, or with the process
	ended   chan struct{} // closed when it has
}

// Profile is a user beside the three, who may do what the reader may, with settings of its own.
type Profile struct {
	User     string
	Settings map[string]string
	Alone    bool // without the reader's settings under them
}

// shared are the engines of a package's tests.
var shared struct {
	sync.Mutex
	cluster, current *Engine
}

// Main runs a package's tests and stops the shared engines after them.
func Main(m *testing.M) {
	code := m.Run()
	for _, e := range []*Engine{shared.cluster, shared.current} {
		if e != nil {
			e.Close()
		}
	}
	os.Exit(code)
}

// Engines are both that the package's tests share: two shards of 18.16, and the current one.
func Engines(t testing.TB) []*Engine {
	t.Helper()
	return []*Engine{Cluster(t), Current(t)}
}

// Cluster is the two shards of 18.16 that the package's tests share. A test that stops one starts a cluster of its own: [NewCluster].
func Cluster(t testing.TB) *Engine {
	t.Helper()
	return share(t, &shared.cluster, func() (*Engine, error) { return startCluster(nil) })
}

// Current is the current engine that the package's tests share.
func Current(t testing.TB) *Engine {
	t.Helper()
	return share(t, &shared.current, func() (*Engine, error) { return startCurrent(nil) })
}

func share(t testing.TB, e **Engine, start func() (*Engine, error)) *Engine {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if *e == nil {
		started, err := start()
		if err != nil {
			t.Fatal(err)
		}
		*e = started
	}
	return *e
}

// NewCluster starts two shards of the test's own.
func NewCluster(t testing.TB, more ...Profile) *Engine {
	t.Helper()
	return own(t, startCluster, more)
}

// NewCurrent starts a current engine of the test's own.
func NewCurrent(t testing.TB, more ...Profile) *Engine {
	t.Helper()
	return own(t, startCurrent, more)
}

func own(t testing.TB, start func([]Profile) (*Engine, error), more []Profile) *Engine {
	t.Helper()
	e, err := start(more)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// Bin is the folder of the programs, or an error that says what to do.
func Bin() (string, error) {
	dir := os.Getenv("HOLDOUTD_CLICKHOUSE")
	if dir == "" {
		dir = "/var/tmp/holdoutd-engines/clickhouse"
	}
	if _, err := os.Stat(filepath.Join(dir, "server/usr/sbin/clickhouse-server")); err != nil {
		return "", fmt.Errorf("chtest: no ClickHouse in %s: set HOLDOUTD_CLICKHOUSE to what scripts/clickhouse.sh prints, which installs it", dir)
	}
	return dir, nil
}

// Close stops all servers and removes what they had.
func (e *Engine) Close() {
	for _, s := range e.Servers {
		s.Stop()
		os.RemoveAll(s.Dir)
	}
}

// Address is host:port of the first server.
func (e *Engine) Address() string { return e.Servers[0].Address() }

// Address is host:port.
func (s *Server) Address() string { return "127.0.0.1:" + strconv.Itoa(s.Port) }

// URL is a source's, of the users Loader and Reader.
func (e *Engine) URL() string { return e.URLOf(Loader, Reader) }

// URLOf is a source's, of other users.
func (e *Engine) URLOf(loader, reader string) string {
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(loader, Password), Host: e.Address(), Path: "/" + Private}
	q := url.Values{"reader": {reader}, "reader_password": {Password}}
	if e.Cluster != "" {
		q.Set("cluster", e.Cluster)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Exec runs statements one by one as the owner, on every server.
func (e *Engine) Exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range e.Servers {
		for _, text := range statements {
			if _, err := s.Do(Owner, text, nil); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
}

// Query runs a statement as the owner on the first server and returns the reply.
func (e *Engine) Query(t testing.TB, statement string) string {
	t.Helper()
	reply, err := e.Servers[0].Do(Owner, statement, nil)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return string(reply)
}

// Insert writes rows in the format RowBinary into a table of the first server.
func (e *Engine) Insert(t testing.TB, table string, rows []byte) {
	t.Helper()
	if _, err := e.Servers[0].Do(Owner, "INSERT INTO "+table+" FORMAT RowBinary", rows); err != nil {
		t.Fatal(err)
	}
}

// Do runs a statement as a user. Rows, where there are any, go into an INSERT.
func (s *Server) Do(user, statement string, rows []byte) ([]byte, error) {
	at := url.URL{Scheme: "http", Host: s.Address(), Path: "/"}
	body := []byte(statement)
	if rows != nil {
		at.RawQuery = url.Values{"query": {statement}}.Encode()
		body = rows
	}
	r, err := http.NewRequest(http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-ClickHouse-User", user)
	r.Header.Set("X-ClickHouse-Key", Password)
	reply, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", reply.Status, text)
	}
	return text, err
}

// client knows no proxies: servers are on loopback.
var client = &http.Client{Transport: &http.Transport{Proxy: nil}}

// serverUser is who runs the servers: nobody, where we are root. Nil: whoever we are.
func serverUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	if errors.Join(errU, errG) != nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// newDir makes a folder that the server's user can use, and no other.
func newDir() (string, error) {
	dir, err := os.MkdirTemp("/tmp", "chtest-")
	if err != nil {
		return "", err
	}
	return dir, give(dir)
}

// give makes a file or folder the server's user's.
func give(path string) error {
	if id := serverUser(); id != nil {
		return os.Chown(path, int(id.Uid), int(id.Gid))
	}
	return nil
}

// write writes a file of the server.
func (s *Server) write(name, text string) error {
	path := filepath.Join(s.Dir, name)
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), give(path))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// startTimeout is for a machine that runs other things; a start takes a second or two, and half a gigabyte is read from the disk for it.
const startTimeout = 3 * time.Minute

// Start starts the server, and waits until it answers. The shell that it runs under kills it when this process ends, however it ends.
func (s *Server) Start() error {
	const keeper = `exec 3<&0; "$@" </dev/null & server=$!; (cat <&3 >/dev/null; kill -KILL $server 2>/dev/null) & exec 3<&-; wait $server`
	cmd := exec.Command("/bin/sh", append([]string{"-c", keeper, "chtest"}, s.command...)...)
	cmd.Dir, cmd.Env = s.Dir, append(append(os.Environ(), "HOME="+s.Dir), s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser(), Setpgid: true} // an interrupt of the terminal is ours to handle
	log, err := os.OpenFile(filepath.Join(s.Dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("chtest: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	life, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("chtest: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("chtest: start: %w", err)
	}
	s.cmd, s.life = cmd, life
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		cmd.Wait() // it says how the server ended, which was by our signal
		close(ended)
	}()
	deadline := time.After(startTimeout)
	for {
		_, err := s.Do(Owner, "SELECT 1", nil)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			s.Stop()
			return fmt.Errorf("chtest: the server has ended: %s", s.log())
		case <-deadline:
			s.Stop()
			return fmt.Errorf("chtest: the server does not come up: %w\n%s", err, s.log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) log() string {
	var all strings.Builder
	for _, name := range []string{"out", "err.log"} {
		text, _ := os.ReadFile(filepath.Join(s.Dir, name))
		all.Write(text)
	}
	return all.String()
}

// Stop kills the server at once: what it had not written is lost.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	s.life.Close()
	<-s.ended
	s.cmd = nil
}
