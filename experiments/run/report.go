package run

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Files of a run, in its directory.
const (
	RowsFile       = "results.csv"
	ResultFile     = "results.json"
	ProvenanceFile = "run.json"
	ReportFile     = "report.html"
	FigureFile     = "figure" // .svg and .png; that of another figure than the first has its name behind a hyphen
	CheckpointFile = "checkpoint.jsonl"
	IndexFile      = "index.html" // of all experiments, one directory up
)

// Provenance says how a result was made. Equal options give equal results; what differs from run to run is in here alone.
type Provenance struct {
	Command  string    `json:"command"` // what to type for the same result
	Version  string    `json:"version"`
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
	Cores    int       `json:"cores"`
	Ended    time.Time `json:"ended"`

	WallSeconds float64 `json:"wall_seconds"` // of all sessions
	PeakBytes   int64   `json:"peak_bytes"`   // resident memory of the process at its largest, 0 where it cannot be told
	Taken       int     `json:"taken"`        // pieces of work known from earlier sessions
}

// Report is a result with how it was made.
type Report struct {
	Experiment Experiment
	Result     Result
	Provenance Provenance
	Written    bool // its files are
}

// Perform runs an experiment. With a directory, which it makes, what is finished is kept there and continued from, and results,
// figures and the report are written there, on an interruption too. version is that of the program.
func Perform(ctx context.Context, e Experiment, o Options, dir, version string) (Report, error) {
	r := Report{Experiment: e, Provenance: Provenance{Command: e.command(o), Version: version, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.GOMAXPROCS(0)}}
	debug.FreeOSMemory() // what an experiment before this one held is not this one's
	resetPeak()
	start := time.Now()
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return r, fmt.Errorf("experiments: %w", err)
		}
		c, err := OpenCheckpoint(filepath.Join(dir, CheckpointFile), e, o)
		if err != nil {
			return r, err
		}
		o.Checkpoint = c
	}
	result, err := e.Run(ctx, o)
	wall, peak := time.Since(start), peakBytes()
	r.Result, r.Provenance.Ended = result, time.Now().UTC().Truncate(time.Second)
	if c := o.Checkpoint; c != nil {
		r.Provenance.Taken = c.Taken()
		err = errors.Join(err, c.Close(wall, peak))
		wall, peak = wall+c.before, max(peak, c.peak)
	}
	r.Provenance.WallSeconds, r.Provenance.PeakBytes = wall.Seconds(), peak
	if dir != "" {
		writing := r.write(dir)
		r.Written = writing == nil
		err = errors.Join(err, writing)
	}
	return r, err
}

// command is what to type for the same result.
func (e Experiment) command(o Options) string {
	words := []string{"holdoutd experiment", e.Name, "--seed", strconv.FormatUint(o.Seed, 10)}
	if o.Repetitions > 0 {
		words = append(words, "--repetitions", strconv.Itoa(o.Repetitions))
	}
	if o.Quick {
		words = append(words, "--quick")
	}
	set := e.public(o)
	for _, f := range e.Flags {
		if v, ok := set[f.Name]; ok {
			words = append(words, "--"+f.Name+"="+v)
		}
	}
	return strings.Join(words, " ")
}

// write makes all files of a run but the checkpoint.
func (r Report) write(dir string) error {
	if err := writeJSON(filepath.Join(dir, ResultFile), r.Result); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, ProvenanceFile), r.Provenance); err != nil {
		return err
	}
	if err := writeRows(filepath.Join(dir, RowsFile), r.Result.Rows); err != nil {
		return err
	}
	for i := range r.Result.Figures {
		if err := r.Result.Figures[i].save(filepath.Join(dir, r.Result.FigureBase(i))); err != nil {
			return err
		}
	}
	return r.writePage(dir)
}

// FigureBase is the name of figure i's files, without the ending that says their kind.
func (r Result) FigureBase(i int) string {
	if i == 0 {
		return FigureFile
	}
	return FigureFile + "-" + r.Figures[i].Name
}

func writeJSON(path string, v any) error {
	encoded, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	if err := os.WriteFile(path, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	return nil
}

func writeRows(path string, rows []Row) error {
	var table strings.Builder
	w := csv.NewWriter(&table)
	w.Write([]string{"condition", "method", "n", "k", "confidence", "set", "mean", "sd", "low", "high", "repetitions"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, r := range rows {
		w.Write([]string{r.Condition, r.Method, fmt.Sprint(r.N), fmt.Sprint(r.K), number(r.Confidence), r.Set, number(r.Mean),
			number(r.SD), number(r.Low), number(r.High), fmt.Sprint(r.Repetitions)})
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	return nil
}
