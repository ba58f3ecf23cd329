package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/holdoutd/holdoutd/experiments"
	"github.com/holdoutd/holdoutd/internal/figure"
)

func experimentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Measure the mechanisms under attack, on simulated data",
		Long: `Analysts who attack a holdout play against the real mechanisms on data whose truth is known. The same seed gives the
same numbers. Interrupted, an experiment writes what it has.`,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "Name the experiments",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, e := range experiments.All {
				fmt.Fprintf(w, "%s\t%s\n", e.Name, e.Short)
			}
			return w.Flush()
		},
	})
	for _, e := range experiments.All {
		cmd.AddCommand(oneExperiment(e))
	}
	return cmd
}

func oneExperiment(e experiments.Experiment) *cobra.Command {
	var o experiments.Options
	var dir string
	cmd := &cobra.Command{
		Use:   e.Name,
		Short: "Measure " + e.Short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Repetitions < 0 {
				return errors.New("--repetitions is a positive number")
			}
			if dir != "" { // before the work, not after it
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			var finish func()
			o.Progress, finish = progress(cmd.ErrOrStderr(), e.Name)
			result, err := e.Run(ctx, o)
			finish()
			if dir != "" {
				if writing := writeResult(dir, result); writing != nil {
					return errors.Join(err, writing)
				}
			}
			if printing := printTable(cmd.OutOrStdout(), result.Summary); printing != nil {
				return errors.Join(err, printing)
			}
			if errors.Is(err, context.Canceled) {
				return errors.New("interrupted: what was finished is in the results")
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "out", "", "directory for results.json, results.csv, figure.svg and figure.png")
	f.Uint64Var(&o.Seed, "seed", 1, "the same seed gives the same numbers")
	f.IntVar(&o.Repetitions, "repetitions", 0, "runs of each condition (default: about a minute's work)")
	f.BoolVar(&o.Quick, "quick", false, "a smaller grid")
	return cmd
}

// progress is a bar on a terminal, and a line every tenth elsewhere.
func progress(out io.Writer, name string) (report func(done, total int), finish func()) {
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			bars := mpb.New(mpb.WithOutput(file))
			bar := bars.AddBar(0, mpb.PrependDecorators(decor.Name(name+" ")),
				mpb.AppendDecorators(decor.CountersNoUnit("%d / %d "), decor.Elapsed(decor.ET_STYLE_GO)))
			return func(done, total int) {
					bar.SetTotal(int64(total), false)
					bar.SetCurrent(int64(done))
				}, func() {
					bar.EnableTriggerComplete()
					bar.Abort(false) // no more after an interruption; nothing for a bar that is full
					bars.Wait()
				}
		}
	}
	tenth := 0
	return func(done, total int) {
		if now := 10 * done / total; now > tenth {
			tenth = now
			fmt.Fprintf(out, "%s: %d of %d\n", name, done, total)
		}
	}, func() {}
}

func writeResult(dir string, r experiments.Result) error {
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(encoded, '\n'), 0o644); err != nil {
		return err
	}
	var table strings.Builder
	w := csv.NewWriter(&table)
	w.Write([]string{"condition", "method", "n", "k", "confidence", "set", "mean", "sd", "low", "high", "repetitions"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, row := range r.Rows {
		w.Write([]string{row.Condition, row.Method, fmt.Sprint(row.N), fmt.Sprint(row.K), number(row.Confidence), row.Set, number(row.Mean),
			number(row.SD), number(row.Low), number(row.High), fmt.Sprint(row.Repetitions)})
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.csv"), []byte(table.String()), 0o644); err != nil {
		return err
	}
	if r.Figure == nil {
		return nil
	}
	p, err := r.Figure()
	if err != nil {
		return err
	}
	return figure.Save(p, experiments.FigureWidth, experiments.FigureHeight, filepath.Join(dir, "figure.svg"), filepath.Join(dir, "figure.png"))
}

func printTable(out io.Writer, table [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}
