package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// soakFlags are what bench soak can be told.
type soakFlags struct {
	time, kill time.Duration
	clients    int
	servers    int
	ledger     string
	seed       uint64
	json       bool
}

const (
	// soakSmall is the budget of the holdout that is asked until it is spent, and then for more.
	soakSmall = 100
	// soakGrowth and soakSlack are how much more memory the servers may have in the last third of a soak than they had by the end of the second: what grows with time shows beyond the collector's own ups and downs.
	soakGrowth = 1.25
	soakSlack  = 32 << 20 // bytes
	// soakSample is how often memory is looked at.
	soakSample = 200 * time.Millisecond
	// soakRest is how long a client waits after a request that a killed server broke off.
	soakRest = 20 * time.Millisecond
)

func soakCommand() *cobra.Command {
	var f soakFlags
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Load real servers for as long as you like, kill them, and check every answer, the books and the memory",
		Long: `Starts servers in processes of their own with a temporary data directory, and keeps clients busy: each asks new questions, old ones, batches
and explanations, and reads budgets, one request after another, of holdouts of several mechanisms. One of them has a small budget, which is
asked for more. Every so often a server is killed (SIGKILL) and started again.

The exit code is 0 if every answer was the same bytes whenever it was asked; if each holdout's chain, read line by line without the
code of the server, has all answers that clients received, each paid once, and adds up to the budget that the server says; if nothing
was spent beyond a budget; and if the servers' memory did not grow in the last third of the time.

With --servers 2 and more they share a ledger in PostgreSQL, which --ledger names: one that holdoutd ledger prepare has made, and that nothing is in.`,
		Example: `  holdoutd bench soak --time 8h --kill 5m
  holdoutd bench soak --time 1h --servers 2 --ledger postgres://holdoutd@db.example/bench`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.time <= 0 || f.clients < 1 || f.servers < 1 || f.kill < 0 {
				return misuse("--time, --clients and --servers must be more than 0, and --kill not less")
			}
			if f.servers > 1 && f.ledger == "" {
				return misuse("%d servers share a ledger in PostgreSQL: name it with --ledger", f.servers)
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return f.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().DurationVar(&f.time, "time", 10*time.Minute, "how long clients ask")
	cmd.Flags().DurationVar(&f.kill, "kill", time.Minute, "how often a server is killed; 0: never")
	cmd.Flags().IntVar(&f.clients, "clients", 8, "clients that ask at the same time")
	cmd.Flags().IntVar(&f.servers, "servers", 1, "servers")
	cmd.Flags().StringVar(&f.ledger, "ledger", "", "address of an empty ledger in PostgreSQL that the servers share, or @FILE with it")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "what clients do begins from it")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// soakResult is what a soak has found.
type soakResult struct {
	Seconds  float64 `json:"seconds"`
	Requests int64   `json:"requests"`
	Answers  int64   `json:"answers"` // distinct ones that clients received
	Replays  int64   `json:"replays"` // that were compared with what was received before
	Refused  int64   `json:"refused"` // by a budget that was spent
	Lost     int64   `json:"lost"`    // requests that a killed server broke off
	Kills    int     `json:"kills"`   // of servers
	Memory   []int64 `json:"memory"`  // most bytes that the servers had together, in each third of the time
	Entries  int64   `json:"entries"` // of all chains
	P50      float64 `json:"request_p50_ms"`
	P99      float64 `json:"request_p99_ms"`
}

// soak is a run.
type soak struct {
	flags  soakFlags
	dir    string
	report func(part string, done, total int)
	wrong  chan error // the first few things that are wrong

	mu      sync.RWMutex
	servers []*soakServer

	holdouts                         []*soaked
	result                           soakResult
	requests, replays, refused, lost atomic.Int64

	latencyMutex sync.Mutex
	latencies    []float64 // of a sample of requests, in ms
}

// soaked is a holdout, and what clients have received of it.
type soaked struct {
	name     string
	id       string
	question func(i int64) map[string]any
	budget   int64
	next     atomic.Int64

	mu    sync.Mutex
	known map[int64]told // by the number of the question
}

// told is an answer that a client received: enough to notice another one.
type told struct {
	sum   [sha256.Size]byte // of its bytes
	seq   int64
	query [sha256.Size]byte // of its id: a soak of a night keeps millions
}

type soakServer struct {
	cmd    *exec.Cmd
	client *client.Client
	ended  chan struct{}
}

func (f *soakFlags) run(ctx context.Context, out, errs io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "holdoutd-soak-")
	if err != nil {
		return err
	}
	report, finish := progress(errs, "bench soak")
	s := &soak{flags: *f, dir: dir, report: report, wrong: make(chan error, 16)}
	defer func() {
		finish()
		s.end()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	for range f.servers {
		server, err := s.start(ctx)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, server)
	}
	if err := s.create(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if err := s.load(ctx); err != nil {
		return err
	}
	s.result.Seconds = time.Since(begin).Seconds()
	if err := s.check(ctx); err != nil {
		return err
	}
	return s.print(out)
}

// start starts a server, and waits until it listens.
func (s *soak) start(ctx context.Context) (*soakServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", s.dir, "--rate", "-1", "--log", "json"}
	if s.flags.ledger != "" {
		args = append(args, "--ledger", s.flags.ledger)
	}
	server := &soakServer{cmd: exec.Command(self, args...), ended: make(chan struct{})}
	stderr, err := server.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := server.cmd.Start(); err != nil {
		return nil, err
	}
	listening, last := make(chan string, 1), "" // last is read when the channel is closed
	go func() {
		defer close(server.ended)
		defer close(listening)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg, Addr, Level string }
			_ = json.Unmarshal(lines.Bytes(), &line)
			last = lines.Text()
			switch {
			case line.Msg == "listening":
				listening <- line.Addr
			case line.Msg == "panic", line.Level == "ERROR" && s.flags.kill == 0:
				s.trouble(fmt.Errorf("the server logs: %s", last))
			}
		}
		if server.cmd.Wait(); server.cmd.ProcessState.ExitCode() > 0 {
			s.trouble(fmt.Errorf("the server ended: %s", last))
		}
	}()
	select {
	case addr, ok := <-listening:
		if !ok {
			return nil, fmt.Errorf("the server did not start: %s", last)
		}
		key, err := os.ReadFile(filepath.Join(s.dir, "admin.key"))
		if err == nil {
			server.client, err = client.New("http://"+addr, strings.TrimSpace(string(key)), client.WithRetries(0))
		}
		return server, err
	case <-ctx.Done():
		server.cmd.Process.Kill()
		return nil, ctx.Err()
	}
}

func (s *soak) end() {
	for _, server := range s.servers {
		server.cmd.Process.Signal(syscall.SIGTERM)
		<-server.ended
	}
}

// trouble keeps what is wrong; the first few say enough.
func (s *soak) trouble(err error) {
	select {
	case s.wrong <- err:
	default:
	}
}

// create makes the holdouts, of a table each.
func (s *soak) create(ctx context.Context) error {
	for _, made := range []struct {
		table string
		set   client.Settings
	}{
		{data.Flights, client.Settings{Name: "gaussian", Mechanism: "gaussian", Questions: benchQuestions}},
		{data.Digits, client.Settings{Name: "guesses", Mechanism: "guess_and_check", Questions: 1_000_000}},
		{data.BreastCancer, client.Settings{Name: "small", Mechanism: "gaussian", Questions: soakSmall}},
	} {
		set := made.set
		set.Unit, set.Holdout = "row", 0.3
		card, err := s.servers[0].client.CreateHoldout(ctx, strings.NewReader(made.table), set)
		if err != nil {
			return err
		}
		if card, err = look(ctx, s.servers[0].client, card.ID); err != nil {
			return err
		}
		asker, err := newAsker(s.servers[0].client, card, false)
		if err != nil {
			return err
		}
		s.holdouts = append(s.holdouts, &soaked{name: set.Name, id: card.ID, question: asker.question, budget: int64(set.Questions), known: map[int64]told{}})
	}
	return nil
}

// load keeps clients busy, kills servers, and watches the memory.
func (s *soak) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.flags.time)
	defer cancel()
	var all sync.WaitGroup
	begin := time.Now()
	all.Go(func() { s.watch(ctx, begin) })
	if s.flags.kill > 0 {
		all.Go(func() { s.killing(ctx) })
	}
	for i := range s.flags.clients {
		all.Go(func() { s.client(ctx, rand.New(rand.NewPCG(s.flags.seed, uint64(i)))) })
	}
	all.Wait()
	select {
	case err := <-s.wrong:
		return err
	default:
	}
	return nil
}

// killing kills a server and starts it again, one after another.
func (s *soak) killing(ctx context.Context) {
	for turn := 0; ; turn++ {
		select {
		case <-time.After(s.flags.kill):
		case <-ctx.Done():
			return
		}
		s.mu.RLock()
		old := s.servers[turn%len(s.servers)]
		s.mu.RUnlock()
		old.cmd.Process.Kill()
		<-old.ended
		started, err := s.start(context.WithoutCancel(ctx))
		if err != nil {
			s.trouble(fmt.Errorf("after a kill: %w", err))
			return
		}
		s.mu.Lock()
		s.servers[turn%len(s.servers)] = started
		s.mu.Unlock()
		s.result.Kills++
	}
}

// watch keeps the most memory that the servers had in each third of the time.
func (s *soak) watch(ctx context.Context, begin time.Time) {
	s.result.Memory = make([]int64, 3)
	for {
		select {
		case <-time.After(soakSample):
		case <-ctx.Done():
			return
		}
		sum := int64(0)
		s.mu.RLock()
		for _, server := range s.servers {
			sum += residentOf(server.cmd.Process.Pid)
		}
		s.mu.RUnlock()
		s.report("load", int(time.Since(begin).Milliseconds()), int(max(1, s.flags.time.Milliseconds())))
		third := min(int(3*time.Since(begin)/s.flags.time), 2)
		s.result.Memory[third] = max(s.result.Memory[third], sum)
	}
}

// residentOf is the memory of a process, where the system says it in /proc; else 0.
func residentOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// client asks one request after another.
func (s *soak) client(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		s.mu.RLock()
		c := s.servers[random.IntN(len(s.servers))].client
		s.mu.RUnlock()
		h := s.holdouts[random.IntN(len(s.holdouts))]
		at := time.Now()
		err := s.request(ctx, c, h, random)
		s.requests.Add(1)
		var problem *client.Problem
		switch {
		case err == nil:
			s.took(at, random)
		case ctx.Err() != nil:
			return
		case client.IsBudgetExhausted(err):
			s.refused.Add(1)
		case errors.As(err, &problem) && problem.Status != 503:
			s.trouble(fmt.Errorf("%s: %w", h.name, err))
			return
		default: // a server that was killed, or waits for its ledger
			s.lost.Add(1)
			time.Sleep(soakRest)
		}
	}
}

// took keeps the time of a sample of requests.
func (s *soak) took(at time.Time, random *rand.Rand) {
	const most = 100_000
	ms := float64(time.Since(at)) / float64(time.Millisecond)
	s.latencyMutex.Lock()
	defer s.latencyMutex.Unlock()
	if len(s.latencies) < most {
		s.latencies = append(s.latencies, ms)
	} else {
		s.latencies[random.IntN(most)] = ms
	}
}

func (s *soak) request(ctx context.Context, c *client.Client, h *soaked, random *rand.Rand) error {
	newest := h.next.Load()
	switch dice := random.IntN(20); {
	case dice < 9 || newest == 0:
		return s.ask(ctx, c, h, h.next.Add(1))
	case dice < 14:
		return s.ask(ctx, c, h, 1+random.Int64N(newest))
	case dice < 17:
		numbers := []int64{h.next.Add(1), h.next.Add(1), 1 + random.Int64N(newest), 1 + random.Int64N(newest)}
		questions := make([]any, len(numbers))
		for i, n := range numbers {
			questions[i] = h.question(n)
		}
		reply, err := c.AskBatch(ctx, h.id, questions, false)
		if err != nil {
			return err
		}
		for i, item := range reply.Answers {
			if item.Answer != nil {
				s.hear(h, numbers[i], *item.Answer)
			}
		}
		return nil
	case dice < 18:
		_, err := c.Explain(ctx, h.id, h.question(1+random.Int64N(newest)))
		return err
	default:
		b, err := c.Budget(ctx, h.id)
		if err == nil && (b.Questions.Left < 0 || b.Questions.Of != h.budget) {
			s.trouble(fmt.Errorf("%s: the budget is %+v", h.name, b.Questions))
		}
		return err
	}
}

func (s *soak) ask(ctx context.Context, c *client.Client, h *soaked, n int64) error {
	reply, err := c.Ask(ctx, h.id, h.question(n))
	if err == nil {
		s.hear(h, n, reply.Answer)
	}
	return err
}

// hear holds an answer against what was received of the same question before.
func (s *soak) hear(h *soaked, n int64, a client.Answer) {
	now := told{sha256.Sum256(a.Raw), a.Ledger.Seq, sha256.Sum256([]byte(a.Query))}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch before, ok := h.known[n]; {
	case !ok:
		h.known[n] = now
	case before != now:
		s.trouble(fmt.Errorf("%s: question %d was answered at seq %d, and now otherwise at seq %d: %s", h.name, n, before.seq, now.seq, a.Raw))
	default:
		s.replays.Add(1)
	}
}

// check asks every question that was asked once more, and reads the chains.
func (s *soak) check(ctx context.Context) error {
	c := s.servers[0].client
	for _, h := range s.holdouts {
		if err := s.again(ctx, c, h); err != nil {
			return err
		}
		if err := s.spend(ctx, c, h); err != nil {
			return err
		}
		if err := s.books(ctx, c, h); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		s.result.Answers += int64(len(h.known))
	}
	select {
	case err := <-s.wrong:
		return err
	default:
	}
	return grown(s.result.Memory)
}

// again asks every question of a holdout that was asked once more.
func (s *soak) again(ctx context.Context, c *client.Client, h *soaked) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var all sync.WaitGroup
	asked, total := make(chan error), h.next.Load()
	for range s.flags.clients {
		all.Go(func() {
			for n := next.Add(1); n <= total && ctx.Err() == nil; n = next.Add(1) {
				err := s.ask(ctx, c, h, n)
				if client.IsBudgetExhausted(err) { // it never was answered
					err = nil
				}
				if err != nil {
					err = fmt.Errorf("%s: question %d, asked once more: %w", h.name, n, err)
				}
				asked <- err
			}
		})
	}
	go func() {
		all.Wait()
		close(asked)
	}()
	done := 0
	for wrong := range asked {
		if done++; wrong != nil && err == nil {
			err = wrong
			cancel()
		}
		s.report(h.name+" once more", done, int(total))
	}
	if err == nil {
		err = ctx.Err() // interrupted
	}
	return err
}

// grown is the error of memory that grows, by what it was at most in each third of the time.
func grown(memory []int64) error {
	if before := max(memory[0], memory[1]); float64(memory[2]) > soakGrowth*float64(before)+soakSlack {
		return fmt.Errorf("the servers' memory grows: %d MB in the last third of the time, at most %d MB before", memory[2]>>20, before>>20)
	}
	return nil
}

// spend asks the holdout with the small budget until that is spent, and once more.
func (s *soak) spend(ctx context.Context, c *client.Client, h *soaked) error {
	if h.budget != soakSmall {
		return nil
	}
	for {
		err := s.ask(ctx, c, h, h.next.Add(1))
		if client.IsBudgetExhausted(err) {
			s.refused.Add(1)
			return nil
		}
		if err != nil || len(h.known) > soakSmall {
			return fmt.Errorf("%s: %d questions of %d are answered, and the next one: %v", h.name, len(h.known), soakSmall, err)
		}
	}
}

// books reads a chain line by line, with nothing of the server's own code: debits are added up here, by their meters.
func (s *soak) books(ctx context.Context, c *client.Client, h *soaked) error {
	before, err := c.Budget(ctx, h.id)
	if err != nil {
		return err
	}
	export, to := io.Pipe()
	go func() { to.CloseWithError(c.Ledger(ctx, h.id, to)) }()
	defer export.Close()
	answers := map[[sha256.Size]byte]told{} // by query
	spent, next := map[string]int64{}, int64(0)
	for lines := json.NewDecoder(export); ; {
		var e struct {
			Format, Kind, Query, Body string
			Seq                       int64
			Debit, Spent              map[string]int64
		}
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if e.Format != "" { // the header
			continue
		}
		if e.Seq != next {
			return fmt.Errorf("seq %d follows seq %d", e.Seq, next-1)
		}
		next++
		for meter, debit := range e.Debit {
			if spent[meter] += debit; debit < 0 || spent[meter] != e.Spent[meter] {
				return fmt.Errorf("seq %d debits %d %s, and says that %d are spent of %d", e.Seq, debit, meter, e.Spent[meter], spent[meter])
			}
		}
		if e.Kind != "answer" {
			continue
		}
		query := sha256.Sum256([]byte(e.Query))
		if _, twice := answers[query]; twice {
			return fmt.Errorf("seq %d pays for %s again", e.Seq, e.Query)
		}
		answers[query] = told{sha256.Sum256([]byte(e.Body)), e.Seq, query}
	}
	s.result.Entries += next
	for n, a := range h.known {
		if answers[a.query] != a {
			return fmt.Errorf("the chain does not have the answer to question %d as it was received", n)
		}
	}
	if len(answers) != len(h.known) {
		return fmt.Errorf("the chain has %d answers, and all questions together were answered %d times", len(answers), len(h.known))
	}
	if spent["questions"] > h.budget || before.Questions.Of-before.Questions.Left != spent["questions"] {
		return fmt.Errorf("the debits add up to %d questions of %d, and the server says that %d are left", spent["questions"], h.budget, before.Questions.Left)
	}
	return nil
}

func (s *soak) print(out io.Writer) error {
	r := s.result
	r.Requests, r.Replays, r.Refused, r.Lost = s.requests.Load(), s.replays.Load(), s.refused.Load(), s.lost.Load()
	if slices.Sort(s.latencies); len(s.latencies) > 0 {
		at := func(q float64) float64 { return s.latencies[int(q*float64(len(s.latencies)-1))] }
		r.P50, r.P99 = at(0.5), at(0.99)
	}
	if s.flags.json {
		return json.NewEncoder(out).Encode(r)
	}
	fmt.Fprintf(out, "in order: %.0f s, %d requests (p50 %.1f ms, p99 %.1f ms), %d kills\n", r.Seconds, r.Requests, r.P50, r.P99, r.Kills)
	fmt.Fprintf(out, "%d answers, each in its chain of %d entries altogether and paid once; %d replays were the same bytes; %d refusals by a spent budget; %d requests broken off\n", r.Answers, r.Entries, r.Replays, r.Refused, r.Lost)
	_, err := fmt.Fprintf(out, "memory of the servers in thirds of the time: at most %d, %d and %d MB\n", r.Memory[0]>>20, r.Memory[1]>>20, r.Memory[2]>>20)
	return err
}
