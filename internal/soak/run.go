// Package soak is a load of mixed clients that goes on for minutes or days and keeps its own books: at the end, what clients were told must
// agree with the exported chains, added up by code that shares nothing with the ledger's. It asks over HTTP, as everyone does, and may share
// nothing with the server but the interface. While it runs, servers may be killed, stopped and started again ([Servers]).
//
// What it shows: nothing that was acknowledged is lost, each query is charged once, replays are the same bytes, budgets never go up, and a
// process's memory, goroutines and files do not grow with what it has answered. What it cannot show is that intervals hold: that is the
// experiments' (holdoutd experiment).
package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/holdoutd/holdoutd/client"
)

// Servers are processes that a run may disturb.
type Servers interface {
	// Kill ends a server with SIGKILL and starts it again at the same address. It returns when the server listens.
	Kill(server int) error
	// Pause stops a server with SIGSTOP and lets it go on after a while.
	Pause(server int, while time.Duration) error
}

// Options say what a run does.
type Options struct {
	URLs     []string      // of the servers, which have one budget together
	Key      string        // of the scope admin
	Clients  int           // from 1
	Time     time.Duration // of the load
	Sample   time.Duration // between two looks at each process
	Seed     uint64        // of the tables and of what clients choose; the same server needs another one for each run
	Servers  Servers       // nil: nothing is disturbed
	Disturb  time.Duration // between two disturbances
	Progress io.Writer     // lines for who waits
}

// Limits of what a run waits for.
const (
	requestTime   = 2 * time.Minute        // a reply must have come by then
	longestPause  = 700 * time.Millisecond // of a server that is stopped
	settleTime    = time.Minute            // for what is in doubt at the end
	analystKeys   = 4                      // keys that clients share
	progressEvery = 10 * time.Second
)

// run is one run's state.
type run struct {
	options     Options
	seed        uint64
	http        *http.Client
	admins      []*client.Client // one for each server
	analysts    []*client.Client // one for each server and key
	analystKeys []string
	subjects    []*subject
	books       *Books
	counts      *counts
	begun       time.Time

	mu       sync.Mutex
	lives    []int // of each server: how often it was started before
	samples  []Sample
	balances []Balance
	wrong    []string
	events   map[string]int // disturbances
}

// Run loads the servers, balances the books and reports. An error is one of the run itself; what is wrong with the servers is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: o.Clients + 2, IdleConnTimeout: 30 * time.Second}
	defer transport.CloseIdleConnections()
	r := &run{options: o, seed: o.Seed, books: NewBooks(), counts: newCounts(), lives: make([]int, len(o.URLs)), events: map[string]int{},
		http: &http.Client{Transport: transport, Timeout: requestTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	idle, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	transport.CloseIdleConnections()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.report(ctx, idle)
}

// prepare makes keys and holdouts.
func (r *run) prepare(ctx context.Context) error {
	for _, url := range r.options.URLs {
		c, err := client.New(url, r.options.Key, client.WithRetries(0), client.WithHTTPClient(r.http))
		if err != nil {
			return err
		}
		r.admins = append(r.admins, c)
	}
	for i := range analystKeys {
		key, err := r.admins[i%len(r.admins)].CreateKey(ctx, fmt.Sprintf("soak %d", i+1), "analyst")
		if err != nil {
			return err
		}
		r.analystKeys = append(r.analystKeys, key.Secret)
		for _, url := range r.options.URLs {
			c, err := client.New(url, key.Secret, client.WithRetries(0), client.WithHTTPClient(r.http))
			if err != nil {
				return err
			}
			r.analysts = append(r.analysts, c)
		}
	}
	random := rand.New(rand.NewPCG(r.seed, 0))
	r.subjects = newSubjects()
	for _, h := range r.subjects {
		if err := h.create(ctx, r.admins[random.IntN(len(r.admins))], random, largeTable); err != nil {
			return fmt.Errorf("the holdout %q: %w", h.settings.Name, err)
		}
	}
	return nil
}

// load runs the clients, the disturbances and the samples until the time is over.
func (r *run) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.Time)
	defer cancel()
	r.begun = time.Now()
	var all sync.WaitGroup
	for i := range r.options.Clients {
		s := &soaker{run: r, random: rand.New(rand.NewPCG(r.seed, uint64(i)+1))}
		all.Go(func() { s.work(ctx) })
	}
	all.Go(func() { r.watch(ctx) })
	all.Go(func() { r.tell(ctx) })
	var failed error
	if r.options.Servers != nil {
		all.Go(func() {
			if failed = r.disturb(ctx); failed != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return failed
}

// disturb kills and stops servers. In the second half of the run it only stops them, so that there is a long life to look at.
func (r *run) disturb(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.seed, 1<<32))
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(r.options.Disturb/2 + time.Duration(random.Int64N(int64(r.options.Disturb)))):
		}
		server := random.IntN(len(r.options.URLs))
		name, err := "kill", error(nil)
		if n%2 == 0 && time.Since(r.begun) < r.options.Time/2 {
			err = r.options.Servers.Kill(server)
			r.mu.Lock()
			r.lives[server]++
			r.mu.Unlock()
		} else {
			name = "pause"
			err = r.options.Servers.Pause(server, time.Duration(random.Int64N(int64(longestPause))))
		}
		if err != nil {
			return fmt.Errorf("server %d: %s: %w", server, name, err)
		}
		r.events[name]++
	}
}

// watch samples every process.
func (r *run) watch(ctx context.Context) {
	tick := time.NewTicker(r.options.Sample)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for server := range r.options.URLs {
			values, err := r.metrics(ctx, server)
			if err != nil {
				continue // it is being started again
			}
			r.mu.Lock()
			r.samples = append(r.samples, Sample{Server: server, Life: r.lives[server], At: time.Since(r.begun), Values: values})
			r.mu.Unlock()
		}
	}
}

// look is one sample of each process while nobody asks.
func (r *run) look(ctx context.Context) (idle []map[string]float64, err error) {
	for server := range r.options.URLs {
		values, err := r.metrics(ctx, server)
		if err != nil {
			return nil, err
		}
		idle = append(idle, values)
	}
	return idle, nil
}

// metrics reads what a process says of itself to an admin.
func (r *run) metrics(ctx context.Context, server int) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.options.URLs[server]+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.options.Key)
	reply, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(reply.Body)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, m := range Measures {
		f := families[m.Metric]
		if f == nil || len(f.Metric) != 1 || f.Metric[0].Gauge == nil {
			return nil, fmt.Errorf("%s/metrics (status %d) has no %s: the run needs an admin's metrics", r.options.URLs[server], reply.StatusCode, m.Metric)
		}
		values[m.Metric] = f.Metric[0].Gauge.GetValue()
	}
	return values, nil
}

// tell writes a line now and then.
func (r *run) tell(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			took := time.Since(r.begun)
			fmt.Fprintf(r.options.Progress, "%4.0f s: %d answers, %d faults found\n", took.Seconds(), r.counts.answers.Load(), len(r.books.Faults()))
		}
	}
}

// settle asks all questions again of which nobody knows what became: then every debit must be that of an answer that was received.
func (r *run) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	s := &soaker{run: r, random: rand.New(rand.NewPCG(r.seed, 1<<33))}
	for _, h := range r.subjects {
		for {
			question, ok := r.books.Again(h.id)
			if !ok || ctx.Err() != nil {
				break
			}
			if err := s.ask(ctx, h, question); err != nil && !settled(err) {
				time.Sleep(afterError)
			}
		}
	}
	for _, h := range r.subjects {
		if err := r.balance(ctx, r.admins[0], h); err != nil {
			return fmt.Errorf("the books of %s: %w", h.id, err)
		}
	}
	return nil
}

// balance checks one holdout's books against its export.
func (r *run) balance(ctx context.Context, admin *client.Client, h *subject) error {
	b, err := admin.Budget(ctx, h.id)
	if err != nil {
		return err
	}
	var export bytes.Buffer
	if err := admin.Ledger(ctx, h.id, &export); err != nil {
		return err
	}
	var wrong []string
	var sum Balance
	chain, err := ReadChain(&export)
	if err != nil {
		wrong = []string{err.Error()}
	} else {
		sum, wrong = r.books.Check(chain, leftOf(b))
	}
	sum.Mechanism = h.mechanism
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, wrong...)
	if h.weight > 0 {
		r.balances = append(r.balances, sum)
	}
	return nil
}

// report sums up. It waits until the servers are idle.
func (r *run) report(ctx context.Context, before []map[string]float64) (*Report, error) {
	report := &Report{Seed: r.seed, Servers: len(r.options.URLs), Clients: r.options.Clients, Seconds: r.options.Time.Seconds(),
		Answers: r.counts.answers.Load(), Kinds: r.counts.kinds(), Disturbed: r.events, Books: r.balances}
	report.PerSecond = float64(report.Answers) / report.Seconds
	report.Wrong = append(r.books.Faults(), r.wrong...)
	for server := range r.options.URLs {
		for _, m := range Measures {
			t := trendOf(m, server, r.samples)
			report.Trends = append(report.Trends, t)
			if t.Verdict == Grows {
				report.Wrong = append(report.Wrong, fmt.Sprintf("server %d: %s grows: by %.3g in %.0f s, with a standard error of %.2g", server, m.Name, t.Growth, t.Seconds, t.Error))
			}
		}
	}
	left, err := r.leftBehind(ctx, before)
	report.Wrong = append(report.Wrong, left...)
	return report, err
}

// idleSlack is how many goroutines and files an idle process may have more than before the load: an open table has a few.
const idleSlack = 40

// leftBehind says what the load left behind in the processes: goroutines and files that are still there when nobody asks.
func (r *run) leftBehind(ctx context.Context, before []map[string]float64) (wrong []string, err error) {
	for deadline := time.Now().Add(20 * time.Second); ; {
		wrong = nil
		after, err := r.look(ctx)
		if err != nil {
			return nil, err
		}
		for server := range after {
			for _, m := range Measures[2:] {
				if more := after[server][m.Metric] - before[server][m.Metric]; more > idleSlack {
					wrong = append(wrong, fmt.Sprintf("server %d: %.0f more %s than before the load, while nobody asks", server, more, m.Name))
				}
			}
		}
		if len(wrong) == 0 || time.Now().After(deadline) {
			return wrong, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), errors.New("the run was ended"))
		}
	}
}
