package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/experiments/attacks"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// maxGuaranteeBytes bounds what is read of a card: the longest has some kilobytes for each of its columns.
const maxGuaranteeBytes = 16 << 20

// auditFlags are what the command was told.
type auditFlags struct {
	spec                    thresholdout.Spec
	mechanism, form, bounds string
	guarantee               string
	seed                    uint64
	minutes                 float64
	asJSON                  bool
	plots                   []string
}

func auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Attack a holdout's settings before anybody else does",
		Long: `Plays the strongest analysts that are known against the settings of a holdout, on simulated data whose truth is known, and says
what they got beside what the guarantee allows. It takes about a minute of a processor, needs no server, and touches no
holdout.

INTERVALS: analysts who choose each question by earlier answers, so that the holdout tells them what is not so. An interval that
misses its target more often than 1 - confidence is a broken promise. MEMBERSHIP: somebody knows a row, and all others or
none, and says whether it is in the holdout. RECONSTRUCTION: somebody knows all columns of the held-out rows but a secret
one. The guarantee is about intervals; whom answers protect follows from their noise, and is said where that is proved.

The settings are those of a holdout that is planned, by the flags, or of one that there is: --guarantee reads its card. The exit
code is 1 when the attackers win: when a promise is broken, or when nothing is promised, as by the mechanism naive, and
intervals as in a textbook miss too often. An attack that fails proves nothing.`,
		Example: `  holdoutd audit --n 30000 --questions 1000
  holdoutd audit --n 30000 --training 70000 --mechanism guess_and_check --questions 1000 --tokens 20 --plot audit.svg
  holdoutd audit --n 5000 --questions 500 --mechanism naive
  holdoutd holdouts flights --json | holdoutd audit --guarantee -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.spec.N, "n", 0, "independent units in the holdout")
	flags.Int64Var(&f.spec.Training, "training", 0, "units of the parts that answers are compared with")
	flags.StringVar(&f.mechanism, "mechanism", string(thresholdout.Auto), "auto, "+strings.Join(attacked(), ", "))
	flags.Int64Var(&f.spec.Questions, "questions", 0, "how many (default: as many as a holdout of this size gets)")
	flags.Int64Var(&f.spec.Tokens, "tokens", 0, "how many guesses may be wrong")
	flags.Int64Var(&f.spec.Rounds, "rounds", 0, "of gaussian: in how many batches the questions are asked")
	flags.Float64Var(&f.spec.Confidence, "confidence", thresholdout.DefaultConfidence, "that all intervals hold together")
	flags.Float64Var(&f.spec.Sigma, "sigma", 0, "of gaussian and thresholdout: the standard deviation of the noise, in units of the range (default: planned)")
	flags.Float64Var(&f.spec.Threshold, "threshold", 0, "of thresholdout and ladder (default: planned)")
	flags.StringVar(&f.form, "form", "", "of thresholdout: gaussian or laplace")
	flags.StringVar(&f.bounds, "bounds", "any", "any, or published for bounds of the literature alone")
	flags.StringVar(&f.guarantee, "guarantee", "", "file with a card, or with the guarantee alone, in JSON, in place of the flags above; - is standard input")
	flags.Uint64Var(&f.seed, "seed", 1, "the same seed gives the same report")
	flags.Float64Var(&f.minutes, "minutes", attacks.DefaultMinutes, "of a processor, about: with more, more games are played, and more is proved of them")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	flags.StringArrayVar(&f.plots, "plot", nil, "draw what was found into this .svg or .png file; may be given twice")
	return cmd
}

// attacked are the names of the mechanisms, without the choice among them.
func attacked() (names []string) {
	for _, k := range thresholdout.Kinds() {
		if len(k.Variants) > 0 && !thresholdout.Does[thresholdout.Celled](k) { // whose questions no attacker of an audit asks
			names = append(names, string(k.Name))
		}
	}
	return names
}

func (f *auditFlags) run(cmd *cobra.Command) error {
	for _, file := range f.plots {
		if err := checkPlot(file); err != nil {
			return err
		}
	}
	g, err := f.planned(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	told, finish := progress(cmd.ErrOrStderr(), "audit")
	report, err := attacks.Audit(ctx, attacks.Request{Guarantee: g, Seed: f.seed, Minutes: f.minutes, Progress: told})
	finish()
	var wrong *attacks.RequestError
	switch {
	case errors.As(err, &wrong):
		return misuse("--%s: %s", wrong.Field, wrong.Detail)
	case errors.Is(err, context.Canceled):
		return interrupted{errors.New("interrupted; with --minutes 0.1 an audit is short, and says less")}
	case err != nil:
		return err
	}
	if err := writeAuditPlots(f.plots, report); err != nil {
		return err
	}
	if f.asJSON {
		err = printJSON(cmd.OutOrStdout(), report)
	} else {
		err = printAudit(cmd.OutOrStdout(), report)
	}
	if err == nil && (report.Verdict == attacks.Broken || report.Verdict == attacks.Unprotected) {
		return errors.New("the attackers win")
	}
	return err
}

// planned is the guarantee that is attacked.
func (f *auditFlags) planned(cmd *cobra.Command) (thresholdout.Guarantee, error) {
	if f.guarantee != "" {
		for _, name := range []string{"n", "training", "mechanism", "questions", "tokens", "rounds", "confidence", "sigma", "threshold", "form", "bounds"} {
			if cmd.Flags().Changed(name) {
				return thresholdout.Guarantee{}, misuse("--guarantee has its own %s; leave --%s out", name, name)
			}
		}
		return readGuarantee(cmd.InOrStdin(), f.guarantee)
	}
	if f.spec.N == 0 {
		return thresholdout.Guarantee{}, misuse("name the number of units in the holdout, --n 10000, or a card, --guarantee FILE")
	}
	spec := f.spec
	spec.Mechanism, spec.Form = thresholdout.Name(f.mechanism), thresholdout.Form(f.form)
	switch f.bounds {
	case "any":
	case "published":
		spec.Published = true
	default:
		return thresholdout.Guarantee{}, misuse("--bounds: %q is neither any nor published", f.bounds)
	}
	if kind, ok := thresholdout.KindOf(spec.Mechanism); ok && thresholdout.Does[thresholdout.Celled](kind) {
		return thresholdout.Guarantee{}, misuse("--mechanism: %s", attacks.NoCells)
	}
	g, err := thresholdout.Plan(spec.WithBudget())
	var wrong *thresholdout.ParamError
	if errors.As(err, &wrong) {
		field := strings.ReplaceAll(wrong.Field, "_", "-")
		if field == "holdout" {
			field = "n"
		}
		return g, misuse("--%s: %s", field, wrong.Detail)
	}
	return g, err
}

// readGuarantee reads one from a file, by itself or as a member of a card.
func readGuarantee(stdin io.Reader, file string) (thresholdout.Guarantee, error) {
	in := stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return thresholdout.Guarantee{}, misuse("--guarantee: %w", err)
		}
		defer opened.Close()
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, maxGuaranteeBytes))
	if err != nil {
		return thresholdout.Guarantee{}, fmt.Errorf("--guarantee: %w", err)
	}
	var card struct {
		Guarantee json.RawMessage `json:"guarantee"`
	}
	if err := json.Unmarshal(text, &card); err != nil {
		return thresholdout.Guarantee{}, misuse("--guarantee: %s has no card in JSON: %w", file, err)
	}
	if card.Guarantee != nil {
		text = card.Guarantee
	}
	var g thresholdout.Guarantee
	if err := json.Unmarshal(text, &g); err != nil {
		return g, misuse("--guarantee: %s has no guarantee that this program knows: %w", file, err)
	}
	if g.Own() == nil {
		return g, misuse("--guarantee: %s has no guarantee", file)
	}
	return g, nil
}

func printAudit(out io.Writer, r attacks.Report) error {
	what := thousands(r.Questions) + " questions"
	if r.Tokens > 0 {
		what += fmt.Sprintf(" and %s tokens", thousands(r.Tokens))
	}
	if r.Rounds > 0 {
		what += fmt.Sprintf(" in %s rounds", thousands(r.Rounds))
	}
	fmt.Fprintf(out, "Attacks on %s: %s about a holdout of %s units, %s confidence for all of them together\n\n", r.Mechanism, what, thousands(r.N), percent(r.Confidence))
	t := table{header: []string{"INTERVALS: WHO ASKS", "RUNS", "WITH A MISS", "PROBABILITY OF ONE", "ALLOWED", "LARGEST ERROR", "OF ITS HALF-WIDTH"}}
	for _, i := range r.Intervals {
		allowed := "nothing promised"
		if i.Allowed != nil {
			allowed = significant(*i.Allowed)
		}
		t.add(i.Analyst, thousands(int64(i.Runs)), thousands(int64(i.Missed)), fmt.Sprintf("%s to %s", significant(i.Low), significant(i.High)), allowed, significant(i.Error), significant(i.Reach))
	}
	if err := t.write(out, 0); err != nil {
		return err
	}
	if len(r.Membership) > 0 {
		fmt.Fprintln(out)
		t = table{header: []string{"MEMBERSHIP: WHO ASKS", "GAMES", "RIGHT", "PROBABILITY", "NOISE ALLOWS", "MU, PROVED", "OF"}}
		for _, m := range r.Membership {
			allowed, of := "all", "-"
			if m.Allowed != nil {
				allowed = significant(*m.Allowed)
			}
			switch {
			case m.Mu != nil:
				of = significant(*m.Mu)
			case m.Rho != nil:
				of = "rho " + significant(*m.Rho)
			}
			t.add(m.Attacker, thousands(int64(m.Games)), significant(m.Right), fmt.Sprintf("%s to %s", significant(m.RightLow), significant(m.RightHigh)), allowed, "≥ "+significant(m.MuAtLeast), of)
		}
		if err := t.write(out, 0); err != nil {
			return err
		}
	}
	if c := r.Reconstruction; c != nil {
		limit := "their noise is not proved to protect a row"
		if c.Allowed != nil {
			limit = fmt.Sprintf("their noise allows %s", percentOf(*c.Allowed))
		}
		fmt.Fprintf(out, "\nRECONSTRUCTION of a secret column from %s answers: %s of its values were found, where luck finds half; %s\n", thousands(c.Answers), percentOf(c.Right), limit)
	}
	fmt.Fprintf(out, "\n%s\n", r.Says)
	for _, note := range r.Notes {
		fmt.Fprintf(out, "Not tried: %s.\n", note)
	}
	fmt.Fprintf(out, "Intervals of probabilities are at 95%%; that a promise is broken would be said wrongly with probability %v at most. Seed %d.\n", r.FalseAlarm, r.Seed)
	return nil
}

// percentOf is a share in percent, to a tenth.
func percentOf(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
