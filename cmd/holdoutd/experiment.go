//go:build !nofigures

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/experiments"
	lab "github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

func experimentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Reproduce the experiments of the literature, and attack the mechanisms",
		Long: `Experiments run the packages that the server uses, mostly on simulated data whose truth is known. The same seed gives the
same numbers. With --out, what is finished is kept: the same command continues after an interruption, and an
interrupted experiment writes what it has. A directory with results of other options, or of another build of the
program, is refused. The exit code is 1 where a comparison with what was expected does not agree.`,
		Example: `  holdoutd experiment list
  holdoutd experiment freedman --quick
  holdoutd experiment all --out results`,
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "Name the experiments and what each measures",

		Example: `  holdoutd experiment list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, e := range experiments.All {
				fmt.Fprintf(w, "%s\t%s\n", e.Name, e.Short)
			}
			return w.Flush()
		},
	}, allExperiments())
	for _, e := range experiments.All {
		cmd.AddCommand(oneExperiment(e))
	}
	return cmd
}

// commonFlags are those of every experiment.
func commonFlags(cmd *cobra.Command, o *lab.Options) {
	f := cmd.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "the same seed gives the same numbers")
	f.IntVar(&o.Repetitions, "repetitions", 0, "runs of each condition (default: the experiment's own number)")
	f.BoolVar(&o.Quick, "quick", false, "a smaller grid")
}

func oneExperiment(e lab.Experiment) *cobra.Command {
	var o lab.Options
	var dir string
	cmd := &cobra.Command{
		Use:   e.Name,
		Short: "Measure " + e.Short,
		Long:  "Measure " + e.Short + ".\n\n" + e.Paper,

		Example: fmt.Sprintf("  holdoutd experiment %s --quick\n  holdoutd experiment %s --seed 2 --out results", e.Name, e.Name),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Set = map[string]string{}
			for _, f := range e.Flags {
				o.Set[f.Name] = cmd.Flags().Lookup(f.Name).Value.String()
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			_, err := performExperiment(ctx, cmd, e, o, dir)
			return err
		},
	}
	commonFlags(cmd, &o)
	cmd.Flags().StringVar(&dir, "out", "", "directory for results, figures and the report; with it the same command continues after an interruption")
	for _, f := range e.Flags {
		if f.Default == "true" || f.Default == "false" {
			cmd.Flags().Bool(f.Name, f.Default == "true", f.Usage)
		} else {
			cmd.Flags().String(f.Name, f.Default, f.Usage)
		}
	}
	return cmd
}

func allExperiments() *cobra.Command {
	var o lab.Options
	var dir string
	var only []string
	cmd := &cobra.Command{
		Use:   "all",
		Short: "Run all experiments and build one page of them",

		Example: `  holdoutd experiment all --out results
  holdoutd experiment all --out results --only coverage,widths --quick`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return misuse("--out is the directory for the results")
			}
			chosen, err := named(only)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			var reports []lab.Report
			var failed []error
			for _, e := range chosen {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", e.Name, e.Short)
				r, err := performExperiment(ctx, cmd, e, o, filepath.Join(dir, e.Name))
				if err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", e.Name, err))
				}
				if r.Written {
					reports = append(reports, r)
				}
				if ctx.Err() != nil {
					break // what an earlier experiment found is worth its page
				}
			}
			page := lab.WriteIndex(dir, reports)
			if page == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "the page of all: %s\n", filepath.Join(dir, lab.IndexFile))
			}
			return errors.Join(append(failed, page)...)
		},
	}
	commonFlags(cmd, &o)
	cmd.Flags().StringVar(&dir, "out", "", "directory for a directory of each experiment and the page of all; the same command continues after an interruption")
	cmd.Flags().StringSliceVar(&only, "only", nil, "names of the experiments to run (default: all)")
	return cmd
}

// named are the experiments of these names, or all of them.
func named(names []string) ([]lab.Experiment, error) {
	if len(names) == 0 {
		return experiments.All, nil
	}
	var out []lab.Experiment
	var known []string
	for _, e := range experiments.All {
		known = append(known, e.Name)
	}
	for _, name := range names {
		at := slices.IndexFunc(experiments.All, func(e lab.Experiment) bool { return e.Name == name })
		if at < 0 {
			return nil, misuse("--only: there is no experiment %q%s", name, hint(nearest.Name(name, known), "holdoutd experiment list names them"))
		}
		out = append(out, experiments.All[at])
	}
	return out, nil
}

// performExperiment runs one with its progress shown, and prints what came out.
func performExperiment(ctx context.Context, cmd *cobra.Command, e lab.Experiment, o lab.Options, dir string) (lab.Report, error) {
	if o.Repetitions < 0 {
		return lab.Report{}, misuse("--repetitions is a positive number")
	}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return lab.Report{}, fmt.Errorf("--out: %w", err)
		}
	}
	var finish func()
	o.Progress, finish = progress(cmd.ErrOrStderr(), e.Name)
	r, err := lab.Perform(ctx, e, o, dir, version())
	finish()
	if printing := printResult(cmd.OutOrStdout(), r); printing != nil {
		return r, errors.Join(err, printing)
	}
	if errors.Is(err, context.Canceled) {
		if dir == "" {
			return r, interrupted{errors.New("interrupted")}
		}
		return r, interrupted{errors.New("interrupted: what was finished is in " + dir + ", and the same command continues")}
	}
	if off := len(r.Result.Disagreeing()); err == nil && off > 0 {
		err = fmt.Errorf("%d of %d comparisons do not agree", off, len(r.Result.Checks))
	}
	return r, err
}

// printResult prints the table of a result and whether it agrees with what was to be expected.
func printResult(out io.Writer, r lab.Report) error {
	if err := printTable(out, r.Result.Summary); err != nil {
		return err
	}
	if len(r.Result.Checks) == 0 {
		return nil
	}
	off := r.Result.Disagreeing()
	for _, c := range off {
		if _, err := fmt.Fprintf(out, "DISAGREES: %s: expected %.4g, came out %.4g (%.4g to %.4g); %s\n", c.What, c.Expected, c.Got, c.Low, c.High, c.Criterion); err != nil {
			return err
		}
	}
	if !r.Result.Complete {
		_, err := fmt.Fprintf(out, "interrupted: nothing is decided; %d comparisons of what is finished, %d of them off\n", len(r.Result.Checks), len(off))
		return err
	}
	_, err := fmt.Fprintf(out, "%d of %d comparisons agree (without a fault all do, but for once in %.0f runs); %.1f s\n", len(r.Result.Checks)-len(off),
		len(r.Result.Checks), 1/lab.FalseAlarm, r.Provenance.WallSeconds)
	return err
}

func printTable(out io.Writer, table [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}
