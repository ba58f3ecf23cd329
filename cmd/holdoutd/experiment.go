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
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/holdoutd/holdoutd/experiments"
	lab "github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/run/checks"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

func experimentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "Reproduce the experiments of the literature, and attack the mechanisms",
		Long: `Experiments run the packages that the server uses, mostly on simulated data whose truth is known. The same seed gives the
same numbers. With --out, what is finished is kept: the same command continues after an interruption, and an
interrupted experiment writes what it has.`,
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
			for i, e := range chosen {
				fmt.Fprintf(cmd.OutOrStdout(), "%s (%d of %d): %s\n", e.Name, i+1, len(chosen), e.Short)
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
	if o.Repetitions < 0 || o.Repetitions == 0 && cmd.Flags().Changed("repetitions") {
		return lab.Report{}, misuse("--repetitions is a whole number from 1 up")
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
			return r, errors.New("interrupted")
		}
		return r, errors.New("interrupted: what was finished is in " + dir + ", and the same command continues")
	}
	return r, err
}

// progress is a bar on a terminal, and a line every tenth elsewhere, for each part of an experiment, with the time that is left of the part.
func progress(out io.Writer, name string) (report func(part string, done, total int), finish func()) {
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return progressBars(file, name)
		}
	}
	last, tenth := "", 0
	var p pace
	return func(part string, done, total int) {
		if part != last {
			last, tenth, p = part, 0, startPace(done)
		}
		if now := 10 * done / total; now > tenth {
			tenth = now
			fmt.Fprintf(out, "%s, %s: %d of %d%s\n", name, part, done, total, p.left(time.Now(), done, total))
		}
	}, func() {}
}

// pace tells how long a part will take from what was done of it since it began.
type pace struct {
	begun time.Time
	from  int // pieces that an earlier session had finished
}

func startPace(done int) pace {
	return pace{begun: time.Now(), from: max(0, done-1)} // the first report is of the first piece, or of what is known
}

// left is the time that is left, in words, "" where nothing can be said yet or nothing is left.
func (p pace) left(now time.Time, done, total int) string {
	if done <= p.from+1 || done >= total {
		return ""
	}
	left := time.Duration(float64(now.Sub(p.begun)) / float64(done-p.from-1) * float64(total-done))
	if left < time.Second {
		return ", less than a second left"
	}
	return ", about " + left.Round(roundingOf(left)).String() + " left"
}

// roundingOf is how exact an estimate is worth saying.
func roundingOf(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return time.Second
	case d < 10*time.Minute:
		return 10 * time.Second
	}
	return time.Minute
}

func progressBars(out io.Writer, name string) (report func(part string, done, total int), finish func()) {
	bars := mpb.New(mpb.WithOutput(out))
	var bar *mpb.Bar
	var last string
	end := func() {
		if bar != nil {
			bar.EnableTriggerComplete()
			bar.Abort(false) // no more after an interruption; nothing for a bar that is full
		}
	}
	return func(part string, done, total int) {
			if bar == nil || part != last {
				end()
				last = part
				p := startPace(done)
				bar = bars.AddBar(0, mpb.PrependDecorators(decor.Name(name+", "+part+" ")),
					mpb.AppendDecorators(decor.CountersNoUnit("%d / %d "), decor.Elapsed(decor.ET_STYLE_GO), decor.Any(func(s decor.Statistics) string {
						return p.left(time.Now(), int(s.Current), int(s.Total))
					})))
			}
			bar.SetTotal(int64(total), false)
			bar.SetCurrent(int64(done))
		}, func() {
			end()
			bars.Wait()
		}
}

// printResult prints the table of a result and whether it agrees with what was to be expected.
func printResult(out io.Writer, r lab.Report) error {
	if err := printTable(out, r.Result.Summary); err != nil {
		return err
	}
	if !r.Result.Complete {
		return nil // nothing is compared before all is finished
	}
	if len(r.Result.Checks) == 0 {
		_, err := fmt.Fprintf(out, "there was nothing to compare with; %.1f s\n", r.Provenance.WallSeconds)
		return err
	}
	for _, c := range r.Result.Checks {
		if c.Agrees {
			continue
		}
		if _, err := fmt.Fprintf(out, "DISAGREES: %s: expected %.4g, came out %.4g (%.4g to %.4g); %s; P = %.2g, below %.2g\n", c.What, c.Expected, c.Got, c.Low, c.High,
			c.Criterion, c.P, c.Level); err != nil {
			return err
		}
	}
	if err := printTable(out, powers(r.Result.Checks)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d of %d comparisons agree (any false alarm: %.2g); %.1f s\n", r.Result.Agreeing(), len(r.Result.Checks), r.Result.FalseAlarm, r.Provenance.WallSeconds)
	return err
}

// powers is a table of what each comparison would have noticed.
func powers(all []checks.Check) [][]string {
	table := [][]string{{"", "COMPARISON", "EXPECTED", "CAME OUT", "STANDARD ERRORS", "WOULD NOTICE"}}
	for _, c := range all {
		mark, errors := "agrees", ""
		if !c.Agrees {
			mark = "DISAGREES"
		}
		if c.Errors != nil {
			errors = fmt.Sprintf("%+.1f", *c.Errors)
		}
		table = append(table, []string{mark, c.What, fmt.Sprintf("%.4g", c.Expected), fmt.Sprintf("%.4g", c.Got), errors, c.Notices})
	}
	return table
}

func printTable(out io.Writer, table [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}
