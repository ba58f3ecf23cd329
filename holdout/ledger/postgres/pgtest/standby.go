package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Standby is a copy of the cluster that follows it, and ends with the test. The cluster waits for it from now on before it acknowledges a commit, if it is synchronous.
func (c *Cluster) Standby(t testing.TB, synchronous bool) *Cluster {
	t.Helper()
	const name = "second"
	dir, err := os.MkdirTemp(place(), "pgtest-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Cluster{dir: dir, bin: c.bin, set: []string{"wal_retrieve_retry_interval=20ms"}} // it finds a primary again that was away
	if err := errors.Join(os.Chmod(dir, 0o700), s.ours(dir)); err != nil {
		t.Fatal(err)
	}
	from := fmt.Sprintf("host=%s user=postgres application_name=%s", c.dir, name)
	if out, err := s.command("pg_basebackup", "-d", from, "-D", s.data(), "-X", "stream", "-c", "fast", "-R", "-N").CombinedOutput(); err != nil {
		t.Fatalf("pgtest: pg_basebackup: %v\n%s", err, out)
	}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	state := "async"
	if synchronous {
		c.exec(t, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
		c.exec(t, "SELECT pg_reload_conf()")
		state = "sync"
	}
	Ledger{Cluster: c}.Await(t, "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '"+state+"')")
	return s
}

// exec runs a statement as the superuser.
func (c *Cluster) exec(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.address("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Promote makes a standby a primary.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	c.exec(t, "SELECT pg_promote()")
}

// Kill ends all of the cluster's processes with SIGKILL, as the end of its machine does.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGSTOP) // none begins another one meanwhile
	c.signal(t, syscall.SIGKILL)
	<-c.ended
}

// Pause holds all of the cluster's processes until Resume, or the test's end.
func (c *Cluster) Pause(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { _ = c.signalAll(syscall.SIGCONT) }) // they may have ended
	c.signal(t, syscall.SIGSTOP)
}

// Resume lets a cluster go on that Pause has held.
func (c *Cluster) Resume(t testing.TB) {
	t.Helper()
	c.signal(t, syscall.SIGCONT)
}

func (c *Cluster) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := c.signalAll(signal); err != nil {
		t.Fatal(err)
	}
}

// signalAll signals the first process, and then those that it has started. Each is in a group of its own.
func (c *Cluster) signalAll(signal syscall.Signal) error {
	first := c.process.Process.Pid
	children, err := childrenOf(first)
	if err != nil {
		return err
	}
	if err := syscall.Kill(first, signal); err != nil {
		return err
	}
	if signal == syscall.SIGSTOP { // those that it has started before it stood still
		if children, err = childrenOf(first); err != nil {
			return err
		}
	}
	for _, pid := range children {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) { // it may have ended
			return err
		}
	}
	return nil
}

// childrenOf are the processes that a process has started and that have not ended.
func childrenOf(pid int) (children []int, err error) {
	out, err := exec.Command("ps", "-A", "-o", "ppid=,pid=").Output()
	if err != nil {
		return nil, fmt.Errorf("pgtest: ps: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(fields[1]); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}
