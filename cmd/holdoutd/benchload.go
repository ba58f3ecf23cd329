package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/internal/soak"
)

// loadFlags are what bench load can be told.
type loadFlags struct {
	urls     []string
	key      string
	clients  int
	time     time.Duration
	sample   time.Duration
	disturb  time.Duration
	seed     uint64
	json     bool
	replicas int
}

func loadCommand() *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load [flags] [-- SERVE-FLAGS…]",
		Short: "Soak test: mixed clients, faults, flat memory, books balanced by recomputation",
		Long: `Keeps servers busy with clients of all kinds: single questions, batches, replays, explanations, budgets, pages of the history,
bad requests, clients that hang up, keys that are made and revoked, uploads that are asked and deleted. Every answer that
a client receives is kept by its hash. At the end the ledgers are exported and added up by code of their own: everything
acknowledged must be in its chain, byte for byte, charged once, at the cost that it says; replays must be the same bytes;
no budget may ever go up. Memory, heap, goroutines and open files of the servers must be flat: a line through the means of
blocks of samples, after a warm-up, may not be shown to grow (Student's t, one in a thousand).

Without --url it starts a server of its own with a temporary data directory, or several with --replicas; what stands behind --
are flags for them, such as --ledger. It kills them with SIGKILL and stops them for a moment while they are asked
(in the first half of the run and until its end). With --url it disturbs nothing, and makes holdouts and keys on a server
that is running; the key must be an admin's. It ends with 1 if a promise is broken.`,
		Example: `  holdoutd bench load --time 10m
  holdoutd bench load --clients 64 --time 1h --disturb 30s --json > report.json
  holdoutd bench load --url http://10.0.0.1:8080 --url http://10.0.0.2:8080 --key @admin.key`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at > 0 || at < 0 && len(args) > 0 {
				return misuse("unexpected argument %q; flags of the servers stand behind --", args[0])
			}
			return f.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.urls, "url", nil, "a running server; several are replicas with one ledger (default: servers of its own)")
	flags.StringVar(&f.key, "key", "", "an admin's key of the running server, or @FILE")
	flags.IntVar(&f.replicas, "replicas", 1, "how many servers of its own; more than one need a ledger that they share: -- --ledger …")
	flags.IntVar(&f.clients, "clients", 16, "clients that ask at the same time")
	flags.DurationVar(&f.time, "time", time.Minute, "how long they ask")
	flags.DurationVar(&f.sample, "sample", 500*time.Millisecond, "how often each process is looked at")
	flags.DurationVar(&f.disturb, "disturb", 3*time.Second, "time between two disturbances of servers of its own, on average; 0: none")
	flags.Uint64Var(&f.seed, "seed", 0, "of the tables and of what clients choose; 0: a new one")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// errBroken says that the report has what is wrong.
var errBroken = errors.New("promises are broken; the report says which")

func (f *loadFlags) run(ctx context.Context, serve []string, out, progress io.Writer) (err error) {
	switch {
	case f.clients < 1 || f.time <= 0 || f.sample <= 0 || f.disturb < 0 || f.replicas < 1:
		return misuse("--clients, --time, --sample and --replicas must be more than 0, and --disturb not less")
	case len(f.urls) > 0 && (len(serve) > 0 || f.replicas > 1):
		return misuse("--url asks servers that are running: --replicas and flags behind -- are for servers of its own")
	case len(f.urls) > 0 && f.key == "":
		return misuse("--url needs an admin's --key; @FILE reads it from a file")
	}
	o := soak.Options{URLs: f.urls, Clients: f.clients, Time: f.time, Sample: f.sample, Disturb: f.disturb, Seed: f.seed, Progress: progress}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.Key, err = readKey(f.key); err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	if len(f.urls) == 0 {
		own, err := startLoadServers(ctx, f.replicas, serve)
		if own != nil {
			defer func() { err = errors.Join(err, own.stop()) }()
		}
		if err != nil {
			return err
		}
		o.URLs, o.Key = own.urls, own.key
		if f.disturb > 0 {
			o.Servers = own
		}
	}
	report, err := soak.Run(ctx, o)
	if err != nil {
		return err
	}
	if f.json {
		err = json.NewEncoder(out).Encode(report)
	} else {
		err = report.Print(out)
	}
	if err == nil && len(report.Wrong) > 0 {
		err = errBroken
	}
	return err
}

// loadServers are servers that a run started itself, and disturbs.
type loadServers struct {
	ctx   context.Context
	dir   string
	urls  []string
	key   string
	flags []string

	mu      sync.Mutex
	servers []*benchServer
}

func startLoadServers(ctx context.Context, n int, flags []string) (*loadServers, error) {
	dir, err := os.MkdirTemp("", "holdoutd-load-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	l := &loadServers{ctx: ctx, dir: dir, flags: flags, servers: make([]*benchServer, n), urls: make([]string, n)}
	for i := range n {
		if err := l.start(i, "127.0.0.1:0"); err != nil {
			return l, err
		}
	}
	return l, nil
}

// data is the data directory of a server.
func (l *loadServers) data(server int) string { return filepath.Join(l.dir, fmt.Sprint(server)) }

// start starts a server at an address. The first one's key is that of all.
func (l *loadServers) start(server int, addr string) error {
	s, url, err := startServe(l.ctx, l.data(server), append([]string{"--addr", addr}, l.flags...)...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers[server], l.urls[server] = s, url
	if l.key == "" {
		l.key, err = readKey("@" + filepath.Join(l.data(server), "admin.key"))
	}
	return err
}

// Kill implements [soak.Servers].
func (l *loadServers) Kill(server int) error {
	l.mu.Lock()
	s, addr := l.servers[server], strings.TrimPrefix(l.urls[server], "http://")
	l.mu.Unlock()
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	s.cmd.Wait() // ended by the signal, which Wait calls an error
	return l.start(server, addr)
}

// Pause implements [soak.Servers].
func (l *loadServers) Pause(server int, while time.Duration) error {
	l.mu.Lock()
	s := l.servers[server]
	l.mu.Unlock()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(while)
	return s.cmd.Process.Signal(syscall.SIGCONT)
}

func (l *loadServers) stop() (err error) {
	for _, s := range l.servers {
		if s != nil {
			err = errors.Join(err, s.stop())
		}
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}
