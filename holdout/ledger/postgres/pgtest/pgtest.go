// Package pgtest starts PostgreSQL for tests: the real programs, on a private cluster in a temporary folder, which ends with the process.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestX(t *testing.T) {
//		db := pgtest.NewDatabase(t) // an empty database of the package's cluster
//		l, err := postgres.Open(ctx, db.Owner, …)
//	}
//
// Tests that need it carry the build tag postgres. scripts/postgres.sh installs the programs and prints their folder, for HOLDOUTD_POSTGRES.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// super is the superuser of a private cluster, who has no password: it listens on loopback alone.
const super = "holdoutd"

// Main runs a package's tests and stops its shared cluster after them.
func Main(m *testing.M) {
	code := m.Run()
	if c := shared.cluster; c != nil {
		c.Stop()
		os.RemoveAll(c.home)
	}
	os.Exit(code)
}

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

var databases atomic.Int64

// Database is an empty database, and who may connect to it. The roles are the cluster's.
type Database struct {
	Cluster *Cluster
	Name    string
	Super   string // URL of the superuser
	Owner   string // URL of the role that owns the database, and migrates it
	Service string // URL of a role that may do nothing until it is admitted
}

// NewDatabase makes a database in the cluster that the package's tests share.
func NewDatabase(t testing.TB) *Database {
	t.Helper()
	shared.once.Do(func() {
		shared.cluster, shared.err = start(nil)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster.NewDatabase(t)
}

// Cluster is a running PostgreSQL, or one that was stopped.
type Cluster struct {
	Port int
	Dir  string // the data directory

	home string // holds Dir and the log
	bin  string
	cmd  *exec.Cmd
	life io.Closer // the server ends when this is closed, or with the process
}

// NewCluster starts a cluster of the test's own, which the test may stop, kill and start again. settings are lines of postgresql.conf.
func NewCluster(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c, err := start(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stop()
		os.RemoveAll(c.home)
	})
	return c
}

// Bin is the folder of PostgreSQL's programs, or an error that says what to do.
func Bin() (string, error) {
	if dir := os.Getenv("HOLDOUTD_POSTGRES"); dir != "" {
		return dir, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errors.New("pgtest: no PostgreSQL on this machine: set HOLDOUTD_POSTGRES to what scripts/postgres.sh prints, which installs it")
}

// newHome makes a folder that the server's user can use, and no other.
func newHome() (string, error) {
	id := serverUser()
	parent := os.TempDir()
	if id != nil && !open(parent) { // a folder of root's own: another one will do
		parent = "/tmp"
	}
	home, err := os.MkdirTemp(parent, "pgtest-")
	if err != nil {
		return "", err
	}
	if id != nil {
		err = os.Chown(home, int(id.Uid), int(id.Gid))
	}
	return home, err
}

// open reports whether everybody can go into a folder.
func open(dir string) bool {
	for {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// serverUser is who runs the server: PostgreSQL refuses to run as root. Nil: whoever we are.
func serverUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if errors.Join(errU, errG) == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
}

// command prepares one of PostgreSQL's programs, as the server's user.
func command(bin, home, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "LC_ALL=C", "PGCLIENTENCODING=UTF8")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser()}
	return cmd
}

func start(settings []string) (*Cluster, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	home, err := newHome()
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	c := &Cluster{home: home, bin: bin, Dir: filepath.Join(home, "data")}
	out, err := command(bin, home, "initdb", "--pgdata="+c.Dir, "--username="+super, "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("pgtest: initdb: %w: %s", err, out)
	}
	if err := c.Configure(append([]string{"max_connections = 200", "shared_buffers = 32MB", "max_wal_size = 256MB", "wal_keep_size = 256MB"}, settings...)...); err != nil {
		return nil, err
	}
	if c.Port, err = freePort(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return c, c.Exec("CREATE ROLE owner LOGIN CREATEROLE", "CREATE ROLE service LOGIN")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Configure appends lines to postgresql.conf; they are read at the next start, or by Reload.
func (c *Cluster) Configure(lines ...string) error {
	f, err := os.OpenFile(filepath.Join(c.Dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	_, err = fmt.Fprintln(f, strings.Join(lines, "\n"))
	return errors.Join(err, f.Close())
}

// Reload lets a running server read its configuration again.
func (c *Cluster) Reload() error { return c.Exec("SELECT pg_reload_conf()") }

// startTimeout is for a machine that runs other things; a start takes well under a second, with recovery too.
const startTimeout = 5 * time.Minute

// Start starts the server, and waits until it accepts connections. The shell that it runs under kills it when this process ends, however it ends.
func (c *Cluster) Start() error {
	const keeper = `"$@" & server=$!; cat >/dev/null; kill -QUIT $server 2>/dev/null; wait $server`
	cmd := exec.Command("/bin/sh", "-c", keeper, "pgtest", filepath.Join(c.bin, "postgres"), "-D", c.Dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(c.Port), "-c", "unix_socket_directories=")
	cmd.Dir, cmd.Env = c.home, append(os.Environ(), "HOME="+c.home, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser(), Setpgid: true} // an interrupt of the terminal is ours to handle
	log, err := os.OpenFile(filepath.Join(c.home, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	life, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("pgtest: start: %w", err)
	}
	c.cmd, c.life = cmd, life
	deadline := time.Now().Add(startTimeout)
	for {
		err := c.Exec("SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			c.Stop()
			text, _ := os.ReadFile(filepath.Join(c.home, "log"))
			return fmt.Errorf("pgtest: the server does not come up: %w\n%s", err, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Stop ends the server at once, without a checkpoint (pg_ctl stop -m immediate): the next start recovers from its log.
func (c *Cluster) Stop() {
	if c.cmd == nil {
		return
	}
	c.life.Close()
	c.cmd.Wait() // it says how the server ended, which was by our signal
	c.cmd = nil
}

// Kill kills the server and all its processes with SIGKILL.
func (c *Cluster) Kill() error {
	text, err := os.ReadFile(filepath.Join(c.Dir, "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	syscall.Kill(postmaster, syscall.SIGSTOP) // so that it starts no other
	pids := append(children(postmaster), postmaster)
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	c.Stop()
	for _, pid := range pids { // the next start finds their shared memory in use until they are gone
		for deadline := time.Now().Add(startTimeout); syscall.Kill(pid, 0) == nil && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// children are the processes whose parent is this one.
func children(parent int) (pids []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || runtime.GOOS != "linux" {
		return nil
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, errPid := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) && errPid == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Standby makes a hot standby of the cluster by pg_basebackup and starts it. It follows under the given name, for synchronous_standby_names.
func (c *Cluster) Standby(t testing.TB, name string) *Cluster {
	t.Helper()
	home, err := newHome()
	if err != nil {
		t.Fatal(err)
	}
	s := &Cluster{home: home, bin: c.bin, Dir: filepath.Join(home, "data")}
	t.Cleanup(func() {
		s.Stop()
		os.RemoveAll(home)
	})
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=%s application_name=%s", c.Port, super, name)
	out, err := command(c.bin, home, "pg_basebackup", "--pgdata="+s.Dir, "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--dbname="+from).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	if s.Port, err = freePort(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Promote ends a standby's being one.
func (c *Cluster) Promote() error { return c.Exec("SELECT pg_promote()") }

// URL names a database of the cluster and who connects to it.
func (c *Cluster) URL(role, database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", role, c.Port, database)
}

// NewDatabase makes an empty database that the role owner owns.
func (c *Cluster) NewDatabase(t testing.TB) *Database {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := c.Exec("CREATE DATABASE " + name + " OWNER owner"); err != nil {
		t.Fatal(err)
	}
	return c.Database(name)
}

// Database is one that is there.
func (c *Cluster) Database(name string) *Database {
	return &Database{Cluster: c, Name: name, Super: c.URL(super, name), Owner: c.URL("owner", name), Service: c.URL("service", name)}
}

// Exec runs statements one by one as the superuser in the database postgres, each in a transaction of its own.
func (c *Cluster) Exec(statements ...string) error {
	return exec1(c.URL(super, "postgres"), statements)
}

// Exec runs statements one by one as the superuser, each in a transaction of its own.
func (d *Database) Exec(statements ...string) error { return exec1(d.Super, statements) }

func exec1(url string, statements []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.PgConn().Exec(ctx, s).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
