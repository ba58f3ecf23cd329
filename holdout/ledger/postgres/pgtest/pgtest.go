// Package pgtest runs a real PostgreSQL for tests: a cluster of its own in a temporary folder, which ends with the test's process. No port is taken unless a test asks for one.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
)

// Roles of a cluster's database "ledgers": owner owns it, and servers have the other.
const (
	owner   = "keeper"
	Servers = "holdoutd"
)

// Cluster is a running PostgreSQL.
type Cluster struct {
	dir     string // of its files and of its socket
	bin     string // of its programs
	process *exec.Cmd
	set     []string // what it is started with, besides what all are
	ended   chan struct{}
	schemas atomic.Int64
}

var (
	shared = sync.OnceValues(start)
	begun  atomic.Bool // a test has asked for it
)

// Shared is the one cluster of a test's process, started for the first who asks. Main ends it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	begun.Store(true)
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Main is the TestMain of a package with a cluster.
func Main(m *testing.M) {
	code := m.Run()
	Stop()
	os.Exit(code)
}

// Stop ends the shared cluster, if there is one.
func Stop() {
	if !begun.Load() {
		return
	}
	if c, err := shared(); err == nil {
		c.stop()
	}
}

// New is a cluster of a test's own, which may be crashed. It ends with the test.
func New(t testing.TB) *Cluster {
	t.Helper()
	c, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	return c
}

// start makes a cluster. It syncs as one that serves does: what its tests are about is what is durable.
func start() (*Cluster, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(place(), "pgtest-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin}
	if err := errors.Join(os.Chmod(dir, 0o700), c.ours(dir)); err != nil {
		return nil, err
	}
	// No sync of the empty cluster: what is lost with the machine now is of no use to anyone.
	if out, err := c.command("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C", "--wal-segsize=1").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	if err := c.run(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.address("postgres", "postgres"))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	for _, statement := range []string{"CREATE ROLE " + owner + " LOGIN", "CREATE ROLE " + Servers + " LOGIN", "CREATE DATABASE ledgers OWNER " + owner} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("pgtest: %s: %w", statement, err)
		}
	}
	return c, nil
}

// place is the folder for a cluster's: in memory, where there is room. A test can end processes and not the machine, and what a process has written is there for the next one on any file
// system; on a disk that others use each commit would wait for theirs.
func place() string {
	const memory, room = "/dev/shm", 1 << 30 // a cluster takes some 100 MB
	if free(memory) < room {
		return ""
	}
	return memory
}

// patience is how long a cluster may take to start: a second or two, and more on a machine that does much else.
const patience = time.Minute

// programs finds PostgreSQL, and installs it where this process may and Debian's packages are at hand.
func programs() (string, error) {
	if bin := installed(); bin != "" {
		return bin, nil
	}
	if apt, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		for _, args := range [][]string{{"update", "-q"}, {"install", "-qy", "--no-install-recommends", "postgresql"}} {
			cmd := exec.Command(apt, args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("pgtest: apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
			}
		}
		if bin := installed(); bin != "" {
			return bin, nil
		}
	}
	return "", errors.New("pgtest: the tests need PostgreSQL 15 or newer: install it (apt-get install postgresql), or name its folder bin in HOLDOUTD_POSTGRES")
}

// installed is the folder of PostgreSQL's programs, or "".
func installed() string {
	places, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the only error is of the pattern
	slices.SortFunc(places, func(a, b string) int { return version(b) - version(a) })
	if said := os.Getenv("HOLDOUTD_POSTGRES"); said != "" {
		places = []string{said}
	} else if path, err := exec.LookPath("postgres"); err == nil {
		places = append(places, filepath.Dir(path))
	}
	for _, bin := range places {
		if _, err := os.Stat(filepath.Join(bin, "postgres")); err == nil {
			return bin
		}
	}
	return ""
}

// version is the number in /usr/lib/postgresql/15/bin.
func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// user is whom a cluster's processes run as: PostgreSQL refuses root.
func (c *Cluster) user() (uid, gid int) {
	if os.Geteuid() != 0 {
		return -1, -1
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ = strconv.Atoi(u.Uid)
			gid, _ = strconv.Atoi(u.Gid)
			return uid, gid
		}
	}
	return 65534, 65534
}

// ours gives a file to the cluster's user.
func (c *Cluster) ours(name string) error {
	uid, gid := c.user()
	return os.Chown(name, uid, gid)
}

// command is one of PostgreSQL's programs, as the cluster's user. It ends with this process.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = childOf(c.user())
	return cmd
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// run starts the server and waits until it answers.
func (c *Cluster) run(settings ...string) error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "log_min_messages=warning", "-c", "min_wal_size=4MB", "-c", "max_wal_size=32MB"}
	for _, s := range slices.Concat(c.set, settings) {
		args = append(args, "-c", s)
	}
	cmd := c.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		locked(func() { // the child ends when the thread does that has started it
			err := cmd.Start()
			started <- err
			if err == nil {
				_ = cmd.Wait() // how it ends is the tests' to say
			}
		})
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("pgtest: postgres: %w", err)
	}
	c.process, c.ended = cmd, ended
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgx.Connect(ctx, c.address("postgres", "postgres"))
		cancel()
		if err == nil {
			return conn.Close(context.Background())
		}
		select {
		case <-ended:
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("pgtest: postgres ended: %s", said)
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pgtest: postgres does not answer: %w", err)
		}
	}
}

// Crash ends all of the cluster's processes at once, as a crash does, and Restart starts it again on what it had made durable.
func (c *Cluster) Crash(t testing.TB) {
	t.Helper()
	if err := c.process.Process.Signal(syscall.SIGQUIT); err != nil { // immediate shutdown: no checkpoint, no word to anyone
		t.Fatal(err)
	}
	<-c.ended
}

// Restart starts a cluster again that has crashed, with settings such as fsync=off.
func (c *Cluster) Restart(t testing.TB, settings ...string) {
	t.Helper()
	if err := c.run(settings...); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) stop() {
	_ = c.process.Process.Signal(syscall.SIGQUIT) // it may have ended
	<-c.ended
	_ = os.RemoveAll(c.dir)
}

// address of a database, for a role.
func (c *Cluster) address(role, database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s", role, database, c.dir)
}

// Address is that of a database of the cluster, for a role.
func (c *Cluster) Address(role, database string) string { return c.address(role, database) }

// Environment is that of a program which is to reach the cluster as its superuser by PostgreSQL's own programs, such as psql.
func (c *Cluster) Environment() []string {
	return append(os.Environ(), "PATH="+c.bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "PGHOST="+c.dir, "PGUSER=postgres")
}

// WithPasswords starts the cluster again so that every role but the superuser needs its password.
func (c *Cluster) WithPasswords(t testing.TB, settings ...string) {
	t.Helper()
	file := filepath.Join(c.dir, "passwords.conf")
	if err := errors.Join(os.WriteFile(file, []byte("local all postgres trust\nlocal all all scram-sha-256\n"), 0o600), c.ours(file)); err != nil {
		t.Fatal(err)
	}
	c.Crash(t)
	c.Restart(t, append([]string{"hba_file=" + file}, settings...)...)
}

// Ledger is a schema with the tables of a ledger.
type Ledger struct {
	Cluster *Cluster
	Schema  string
}

// New makes a schema with the tables of a ledger, and nothing in them.
func (c *Cluster) New(t testing.TB) Ledger {
	t.Helper()
	l := Ledger{c, fmt.Sprint("ledger_", c.schemas.Add(1))}
	if err := postgres.Prepare(context.Background(), l.Owner(), Servers); err != nil {
		t.Fatal(err)
	}
	return l
}

// Owner is the address by which the owner of the tables reaches them.
func (l Ledger) Owner() string { return l.As(owner) }

// Address is the one of servers.
func (l Ledger) Address() string { return l.As(Servers) }

// As is the address of a role.
func (l Ledger) As(role string) string {
	return l.Cluster.address(role, "ledgers") + "&search_path=" + l.Schema
}

// Followed is the address of servers that names a standby, too.
func (l Ledger) Followed(by *Cluster) string {
	return strings.Replace(l.Address(), l.Cluster.dir, l.Cluster.dir+","+by.dir, 1) + "&target_session_attrs=read-write"
}

// At is the same ledger in another cluster: a standby, or what was one.
func (l Ledger) At(c *Cluster) Ledger { return Ledger{c, l.Schema} }

// Through is the address of servers by way of a proxy.
func (l Ledger) Through(way *Proxy) string {
	return fmt.Sprintf("postgres://%s@%s/ledgers?search_path=%s&sslmode=disable", Servers, way.Addr(), l.Schema)
}

// Exec runs statements as the database's superuser, for whom no trigger is in the way where quiet is set.
func (l Ledger) Exec(t testing.TB, quiet bool, statements ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, l.As("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if quiet {
		statements = append([]string{"SET session_replication_role = replica"}, statements...)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Try runs a statement as a role, and says what the database says.
func (l Ledger) Try(role, statement string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, l.As(role))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// Await returns once a statement selects true.
func (l Ledger) Await(t testing.TB, statement string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !l.Holds(t, statement); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, statement)
		}
	}
}

// Holds reports whether a statement selects true.
func (l Ledger) Holds(t testing.TB, statement string) (holds bool) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, l.As("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, statement).Scan(&holds); err != nil {
		t.Fatal(err)
	}
	return holds
}

// Copy is a new schema with all that is committed now.
func (l Ledger) Copy(t testing.TB) Ledger {
	t.Helper()
	to := l.Cluster.New(t)
	var statements []string
	statements = append(statements, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	for _, table := range []string{"meta", "holdouts", "books", "meters", "entries", "notes", "idempotency", "keys"} {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s.%s OVERRIDING SYSTEM VALUE SELECT * FROM %s.%s", to.Schema, table, l.Schema, table))
	}
	statements = append(statements, fmt.Sprintf("SELECT setval(pg_get_serial_sequence('%s.holdouts', 'number'), (SELECT coalesce(max(number), 0) + 1 FROM %s.holdouts), false)", to.Schema, to.Schema), "COMMIT")
	l.Exec(t, true, statements...)
	return to
}

// Log is what the server has logged.
func (c *Cluster) Log(w io.Writer) {
	if text, err := os.ReadFile(filepath.Join(c.dir, "log")); err == nil {
		_, _ = w.Write(text)
	}
}
