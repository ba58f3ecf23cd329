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
	"net/http"
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
	sweep   bool
	beside  int
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
Questions are of several kinds in turn: shares under one and two conditions, a mean under a condition, arithmetic, texts and
hours, as far as the table has such columns. With --sweep all are thresholds of one column, which is the least work.
With --ledger a second server has its ledger in PostgreSQL, in a schema that holdoutd ledger prepare has made and that
nothing is in yet; each measurement is taken of both, one after the other. bench/ledgers.sh makes a database for it.`,
		Example: `  holdoutd bench
  holdoutd bench --file flights.parquet --clients 1,8 --batch 100 --time 10s --json
  holdoutd bench --clients 1 --batch 1 --beside 10000
  holdoutd bench --clients 1,32,256 --batch 1 --ledger postgres://holdoutd@db.example/bench`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.file, "file", "", "Parquet file to ask about")
	cmd.Flags().Float64Var(&f.holdout, "holdout", 0.3, "fraction of the units held out")
	cmd.Flags().IntSliceVar(&f.clients, "clients", []int{1, 32}, "numbers of clients that ask at the same time")
	cmd.Flags().IntSliceVar(&f.batches, "batch", []int{1, 100}, "numbers of questions in a request")
	cmd.Flags().DurationVar(&f.time, "time", 5*time.Second, "time of each measurement")
	cmd.Flags().StringVar(&f.ledger, "ledger", "", "address of an empty ledger in PostgreSQL to measure beside the file, or @FILE with it")
	cmd.Flags().BoolVar(&f.sweep, "sweep", false, "ask about thresholds of one column alone: of the first of numbers, else of times, truth values or texts")
	cmd.Flags().IntVar(&f.beside, "beside", 0, "measure one client of another holdout, of 540 digits, while a client sends requests of so many questions")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.AddCommand(soakCommand())
	return cmd
}

// benchResult is one measurement.
type benchResult struct {
	Ledger  string `json:"ledger"` // file or postgres
	Clients int    `json:"clients"`
	Batch   int    `json:"batch"`
	answers int
	Answers float64 `json:"answers_per_second"`
	P50     float64 `json:"request_p50_ms"`
	P99     float64 `json:"request_p99_ms"`
	CPU     float64 `json:"server_cpu_us_per_answer,omitempty"` // absent where it is not known
	Beside  int     `json:"beside,omitempty"`                   // questions of each request that another client sends meanwhile
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
		if err := server.upload(ctx, table, f); err != nil {
			return err
		}
	}
	var results []benchResult
	for _, clients := range f.clients {
		for _, batch := range f.batches {
			for _, server := range all {
				fmt.Fprintf(progress, "%d clients, %d questions a request, ledger %s, for %v\n", clients, batch, server.ledger, f.time)
				r, err := server.measure(ctx, server.asker, clients, batch, f.time)
				if err != nil {
					return err
				}
				results = append(results, r)
			}
		}
	}
	if f.beside > 0 {
		for _, server := range all {
			fmt.Fprintf(progress, "1 client beside another with %d questions a request, ledger %s, for %v\n", f.beside, server.ledger, f.time)
			r, err := server.measureBeside(ctx, f)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
	}
	rows, took := all[0].rows, all[0].took
	if f.json {
		return json.NewEncoder(out).Encode(map[string]any{"rows": rows, "upload_seconds": took.Seconds(), "measurements": results})
	}
	fmt.Fprintf(out, "%d rows of training and %d of holdout, uploaded in %.2f s\n\n", rows.Training, rows.Holdout, took.Seconds())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ledger\tclients\tquestions a request\tanswers/s\trequest p50 ms\tp99 ms\tserver's CPU, µs an answer\t")
	for _, r := range results {
		clients := fmt.Sprint(r.Clients)
		if r.Beside > 0 {
			clients = fmt.Sprintf("%d beside requests of %d", r.Clients, r.Beside)
		}
		worked := "" // not known of two clients whose answers cost differently
		if r.CPU > 0 {
			worked = fmt.Sprintf("%.0f", r.CPU)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.2f\t%.2f\t%s\t\n", r.Ledger, clients, r.Batch, r.Answers, r.P50, r.P99, worked)
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

// newAsker asks questions of several kinds, or with sweep about one column alone: that about which this can be done best, numbers, then times, truth
// values and texts.
func newAsker(c *client.Client, card client.Card, sweep bool) (*asker, error) {
	if question := mixedQuestions(card); !sweep && question != nil {
		return &asker{client: c, holdout: card.ID, question: question}, nil
	}
	for _, kind := range []string{"number", "time", "bool", "text"} {
		for _, column := range card.Columns {
			if column.Kind == kind {
				return &asker{client: c, holdout: card.ID, question: questionsAbout(column)}, nil
			}
		}
	}
	return nil, errors.New("the table has no column to ask about")
}

// mixedQuestions are of the kinds that a table has columns for, one after the other, each another one for each number; nil without a column
// of numbers that are not all the same.
func mixedQuestions(card client.Card) func(i int64) map[string]any {
	first := map[string]*client.Column{}
	var numbers []client.Column
	for _, column := range card.Columns {
		if column.Kind == "number" && column.Min != nil && column.Max != nil && *column.Min < *column.Max {
			numbers = append(numbers, column)
		} else if first[column.Kind] == nil {
			first[column.Kind] = &column
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	x, y := numbers[0], numbers[len(numbers)-1]
	above := questionsAbout(x)
	condition := func(i int64) string { return above(i)["of"].(string) }
	share := func(also string) func(i int64) map[string]any {
		return func(i int64) map[string]any { return map[string]any{"type": "fraction", "of": condition(i) + also} }
	}
	middle := *y.Min/2 + *y.Max/2
	kinds := []func(i int64) map[string]any{
		above,
		share(fmt.Sprintf(" && col(%q) < %v", y.Name, middle)),
		func(i int64) map[string]any {
			return map[string]any{"type": "mean", "of": fmt.Sprintf("col(%q)", y.Name), "range": []float64{*y.Min, *y.Max}, "where": condition(i)}
		},
		share(fmt.Sprintf(" || col(%q) * 0.5 + 1.0 < %v", y.Name, middle/4)),
	}
	if c := first["text"]; c != nil {
		kinds = append(kinds, func(i int64) map[string]any {
			return map[string]any{"type": "fraction", "of": fmt.Sprintf("col(%q) != \"%d\" && %s", c.Name, i, condition(i))}
		})
	}
	if c := first["time"]; c != nil {
		kinds = append(kinds, share(fmt.Sprintf(" && col(%q).getHours() >= 18", c.Name)))
	}
	if c := first["bool"]; c != nil {
		kinds = append(kinds, share(fmt.Sprintf(" && col(%q)", c.Name)))
	}
	return func(i int64) map[string]any { return kinds[i%int64(len(kinds))](i) }
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
	return benchResult{Clients: clients, Batch: batch, answers: len(all) * batch, Answers: float64(len(all)*batch) / elapsed.Seconds(), P50: ms(0.5), P99: ms(0.99)}, nil
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
	cmd      *exec.Cmd
	dir      string
	url, key string
	client   *client.Client
	ledger   string

	asker *asker
	other *asker // of the second holdout
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
		server.url, server.key = "http://"+line.Addr, strings.TrimSpace(string(key))
		if err == nil {
			server.client, err = client.New(server.url, server.key)
		}
		if err != nil {
			return nil, errors.Join(err, server.stop())
		}
		return server, nil
	}
	return nil, errors.Join(fmt.Errorf("the server did not start: %s", last), server.stop())
}

// upload makes the holdout that is asked about, and a second one, of digits, where one is asked beside it.
func (s *benchServer) upload(ctx context.Context, table []byte, f *benchFlags) error {
	create := func(name string, table []byte) (*asker, client.Card, error) {
		settings := client.Settings{Name: name, Unit: "row", Holdout: f.holdout, Mechanism: "gaussian", Questions: benchQuestions}
		begin := time.Now()
		card, err := s.client.CreateHoldout(ctx, bytes.NewReader(table), settings)
		if err != nil {
			return nil, card, err
		}
		s.took = time.Since(begin)
		if card, err = look(ctx, s.client, card.ID); err != nil {
			return nil, card, err
		}
		a, err := newAsker(s.client, card, f.sweep)
		return a, card, err
	}
	var err error
	if f.beside > 0 {
		if s.other, _, err = create("beside", []byte(data.Digits)); err != nil {
			return err
		}
	}
	var card client.Card
	s.asker, card, err = create("bench", table)
	s.rows = card.Rows
	return err
}

// measure is asker.measure, with what the server's processors worked meanwhile.
func (s *benchServer) measure(ctx context.Context, a *asker, clients, batch int, span time.Duration) (benchResult, error) {
	before, err := s.worked(ctx)
	if err != nil {
		return benchResult{}, err
	}
	r, err := a.measure(ctx, clients, batch, span)
	if err != nil {
		return r, err
	}
	after, err := s.worked(ctx)
	r.Ledger, r.CPU = s.ledger, (after-before)*1e6/float64(max(1, r.answers))
	return r, err
}

// measureBeside asks one question after the other of one holdout, while a client sends large requests to the other.
func (s *benchServer) measureBeside(ctx context.Context, f *benchFlags) (benchResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := s.asker.request(ctx, f.beside); err != nil && ctx.Err() == nil {
				cancel()
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	r, err := s.other.measure(ctx, 1, 1, f.time)
	cancel()
	r.Ledger, r.Beside = s.ledger, f.beside
	return r, errors.Join(<-ended, err)
}

// worked is how many seconds the server's processors have worked for it; 0 where it does not say.
func (s *benchServer) worked(ctx context.Context) (seconds float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "process_cpu_seconds_total %g", &seconds); n == 1 {
			return seconds, nil
		}
	}
	return 0, nil
}

func (s *benchServer) stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	return errors.Join(s.cmd.Wait(), os.RemoveAll(s.dir))
}
