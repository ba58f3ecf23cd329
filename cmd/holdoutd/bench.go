package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// benchFlags are what bench can be told.
type benchFlags struct {
	file    string
	holdout float64
	clients []int
	batches []int
	time    time.Duration
	ledger  string
	json    bool
}

// benchQuestions is the budget of the holdout that bench makes: more than it can ask.
const benchQuestions = 10_000_000

func benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure answers a second of a real server over loopback",
		Long: `Starts a server in a process of its own with a temporary data directory, uploads a file, and asks new questions over
HTTP as fast as they are answered. Every answer is durable before it counts. Without --file it takes the demo's table.
With --ledger a second server has its ledger in PostgreSQL, in a schema that holdoutd ledger prepare has made and that
nothing is in yet; each measurement is taken of both, one after the other. bench/ledgers.sh makes a database for it.`,
		Example: `  holdoutd bench
  holdoutd bench --file flights.parquet --clients 1,8 --batch 100 --time 10s --json
  holdoutd bench --clients 1,32,256 --batch 1 --ledger postgres://holdoutd@db.example/bench`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.file, "file", "", "Parquet file to ask about; its first column of numbers is used, else of times, truth values or texts")
	cmd.Flags().Float64Var(&f.holdout, "holdout", 0.3, "fraction of the units held out")
	cmd.Flags().IntSliceVar(&f.clients, "clients", []int{1, 32}, "numbers of clients that ask at the same time")
	cmd.Flags().IntSliceVar(&f.batches, "batch", []int{1, 100}, "numbers of questions in a request")
	cmd.Flags().DurationVar(&f.time, "time", 5*time.Second, "time of each measurement")
	cmd.Flags().StringVar(&f.ledger, "ledger", "", "address of an empty ledger in PostgreSQL to measure beside the file, or @FILE with it")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.AddCommand(soakCommand())
	return cmd
}

// benchResult is one measurement.
type benchResult struct {
	Ledger  string  `json:"ledger"` // file or postgres
	Clients int     `json:"clients"`
	Batch   int     `json:"batch"`
	Answers float64 `json:"answers_per_second"`
	P50     float64 `json:"request_p50_ms"`
	P99     float64 `json:"request_p99_ms"`
}

func (f *benchFlags) run(ctx context.Context, out, progress io.Writer) (err error) {
	table := []byte(data.Flights)
	if f.file != "" {
		if table, err = os.ReadFile(f.file); err != nil {
			return err
		}
	}
	var all []*benchServer
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.stop())
		}
	}()
	ledgers := map[string][]string{"file": nil}
	if f.ledger != "" {
		ledgers["postgres"] = []string{"--ledger", f.ledger}
	}
	for _, ledger := range slices.Sorted(maps.Keys(ledgers)) {
		server, err := startBenchServer(ctx, ledgers[ledger]...)
		if err != nil {
			return err
		}
		server.ledger, all = ledger, append(all, server)
		fmt.Fprintf(progress, "uploading %.1f MB\n", float64(len(table))/1e6)
		if err := server.upload(ctx, table, f.holdout); err != nil {
			return err
		}
	}
	var results []benchResult
	for _, clients := range f.clients {
		for _, batch := range f.batches {
			for _, server := range all {
				fmt.Fprintf(progress, "%d clients, %d questions a request, ledger %s, for %v\n", clients, batch, server.ledger, f.time)
				r, err := server.asker.measure(ctx, clients, batch, f.time)
				if err != nil {
					return err
				}
				r.Ledger = server.ledger
				results = append(results, r)
			}
		}
	}
	rows, took := all[0].rows, all[0].took
	if f.json {
		return json.NewEncoder(out).Encode(map[string]any{"rows": rows, "upload_seconds": took.Seconds(), "measurements": results})
	}
	fmt.Fprintf(out, "%d rows of training and %d of holdout, uploaded in %.2f s\n\n", rows.Training, rows.Holdout, took.Seconds())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ledger\tclients\tquestions a request\tanswers/s\trequest p50 ms\tp99 ms\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%.2f\t%.2f\t\n", r.Ledger, r.Clients, r.Batch, r.Answers, r.P50, r.P99)
	}
	return w.Flush()
}

// look is the first look at a holdout: from then on its card says the ranges of its columns.
func look(ctx context.Context, c *client.Client, id string) (client.Card, error) {
	training, err := c.Training(ctx, id)
	if err != nil {
		return client.Card{}, err
	}
	if _, err := io.Copy(io.Discard, training); err != nil {
		return client.Card{}, errors.Join(err, training.Close())
	}
	if err := training.Close(); err != nil {
		return client.Card{}, err
	}
	return c.Holdout(ctx, id)
}

// asker asks questions that nobody has asked before.
type asker struct {
	client   *client.Client
	holdout  string
	question func(i int64) map[string]any // another one for each i from 1 to benchQuestions
	next     atomic.Int64
}

// newAsker asks about the column of the table about which this can be done best: numbers, then times, truth values and texts.
func newAsker(c *client.Client, card client.Card) (*asker, error) {
	for _, kind := range []string{"number", "time", "bool", "text"} {
		for _, column := range card.Columns {
			if column.Kind == kind {
				return &asker{client: c, holdout: card.ID, question: questionsAbout(column)}, nil
			}
		}
	}
	return nil, errors.New("the table has no column to ask about")
}

// questionsAbout are conditions on one column, a different one for each number. Those on numbers and times go through its range.
func questionsAbout(column client.Column) func(i int64) map[string]any {
	x := fmt.Sprintf("col(%q)", column.Name)
	var condition func(i int64) string
	switch column.Kind {
	case "number":
		low, high := 0.0, 0.0 // of a column that is empty in the training part
		if column.Min != nil && column.Max != nil {
			low, high = *column.Min, *column.Max
		}
		most := max(math.Abs(low), math.Abs(high))
		step := max(high/benchQuestions-low/benchQuestions, math.Nextafter(most, math.Inf(1))-most)
		condition = func(i int64) string { return fmt.Sprintf("%s > %v", x, low+step*float64(i)) }
	case "time":
		low, high := time.UnixMicro(0), time.UnixMicro(0)
		if column.Earliest != nil && column.Latest != nil {
			low, high = *column.Earliest, *column.Latest
		}
		step := max((high.UnixMicro()-low.UnixMicro())/benchQuestions, 1) // microseconds
		condition = func(i int64) string {
			return fmt.Sprintf("%s > timestamp(%q)", x, time.UnixMicro(low.UnixMicro()+step*i).UTC().Format(time.RFC3339Nano))
		}
	case "bool":
		condition = func(i int64) string { return fmt.Sprintf("(%s ? 1 : 0) > %v", x, float64(i)/benchQuestions) }
	default:
		condition = func(i int64) string { return fmt.Sprintf("%s == \"%d\"", x, i) }
	}
	return func(i int64) map[string]any { return map[string]any{"type": "fraction", "of": condition(i)} }
}

// measure keeps this many clients busy for a while; latencies are of whole requests.
func (a *asker) measure(ctx context.Context, clients, batch int, span time.Duration) (benchResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	latencies := make([][]time.Duration, clients)
	failures := make([]error, clients)
	begin := time.Now()
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			for time.Since(begin) < span {
				at := time.Now()
				if failures[i] = a.request(ctx, batch); failures[i] != nil {
					cancel()
					return
				}
				latencies[i] = append(latencies[i], time.Since(at))
			}
		})
	}
	wait.Wait()
	elapsed := time.Since(begin)
	if err := errors.Join(failures...); err != nil {
		return benchResult{}, err
	}
	all := slices.Sorted(slices.Values(slices.Concat(latencies...)))
	ms := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))]) / float64(time.Millisecond) }
	return benchResult{Clients: clients, Batch: batch, Answers: float64(len(all)*batch) / elapsed.Seconds(), P50: ms(0.5), P99: ms(0.99)}, nil
}

func (a *asker) request(ctx context.Context, batch int) error {
	if batch == 1 {
		_, err := a.client.Ask(ctx, a.holdout, a.question(a.next.Add(1)))
		return err
	}
	questions := make([]any, batch)
	for i := range questions {
		questions[i] = a.question(a.next.Add(1))
	}
	_, err := a.client.AskBatch(ctx, a.holdout, questions, false)
	return err
}

// benchServer is a holdoutd serve that this program started, with a data directory of its own.
type benchServer struct {
	cmd    *exec.Cmd
	dir    string
	client *client.Client
	ledger string

	asker *asker
	rows  *client.Counts
	took  time.Duration // by the upload
}

func startBenchServer(ctx context.Context, flags ...string) (*benchServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdoutd-bench-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir, "--rate", "-1", "--log", "json"}, flags...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	server := &benchServer{cmd: cmd, dir: dir}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	var last string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		var line struct{ Msg, Addr string }
		last = lines.Text()
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Msg != "listening" {
			continue
		}
		go io.Copy(io.Discard, stderr)
		key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
		if err == nil {
			server.client, err = client.New("http://"+line.Addr, strings.TrimSpace(string(key)))
		}
		if err != nil {
			return nil, errors.Join(err, server.stop())
		}
		return server, nil
	}
	return nil, errors.Join(fmt.Errorf("the server did not start: %s", last), server.stop())
}

// upload makes the holdout that is asked about.
func (s *benchServer) upload(ctx context.Context, table []byte, fraction float64) error {
	begin := time.Now()
	card, err := s.client.CreateHoldout(ctx, bytes.NewReader(table), client.Settings{Name: "bench", Unit: "row", Holdout: fraction, Mechanism: "gaussian", Questions: benchQuestions})
	if err != nil {
		return err
	}
	s.took = time.Since(begin)
	if card, err = look(ctx, s.client, card.ID); err != nil {
		return err
	}
	s.rows = card.Rows
	s.asker, err = newAsker(s.client, card)
	return err
}

func (s *benchServer) stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	return errors.Join(s.cmd.Wait(), os.RemoveAll(s.dir))
}
