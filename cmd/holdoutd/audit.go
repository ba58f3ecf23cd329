package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/internal/attack"
	"github.com/holdoutd/holdoutd/internal/figure"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// errRefuted ends an audit that refuted a promise, or that could refute none: the report has said it.
var errRefuted = errors.New("a promise is refuted")

var errPowerless = errors.New("nothing is shown: too few games; see --time")

// auditing is what audit was told.
type auditing struct {
	lookFlags
	spec      thresholdout.Spec
	mechanism string
	form      string
	file      string
	plots     []string
	settings  attack.Settings
}

func auditCommand() *cobra.Command {
	var a auditing
	cmd := &cobra.Command{
		Use:   "audit [HOLDOUT]",
		Short: "Attack a holdout's settings on simulated rows, and hold what is measured against what they promise",
		Long: `Plays the strongest attacks that are known against the settings of a holdout, on simulated rows of the same number, whose truth is known. No row of a
holdout is read, and nothing is spent: a server is asked for the card of HOLDOUT alone. Without a server, --guarantee reads a card or its guarantee from
a file, and --n with other flags plans one.

It measures three things, each beside what is promised: in how many runs any interval misses under analysts who follow the answers; how many more
of the holdout's units than strangers an analyst can name who scores units by the answers; and, where answers bear noise, how well a few rows are told by somebody who knows all
others. Bounds are exact (Clopper and Pearson; of the second Student's t). An audit can refute a promise, and prove none. See docs/AUDIT.md.

It ends with 1 if a promise is refuted, or if too few games were played to refute any. The time is not exact: a game that has begun is finished, and each
attack plays once. With --games the same --seed gives the same report.`,
		Example: `  holdoutd audit flights --plot audit.svg
  holdoutd audit --n 10000 --mechanism gaussian --questions 1000
  holdoutd audit --n 10000 --training 20000 --questions 1000 --tokens 20 --games 200 --seed 7 --json
  holdoutd holdouts flights --json | holdoutd audit --guarantee -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeHoldout,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			for _, file := range a.plots {
				if figure.CheckFile(file) != nil {
					return misuse("--plot: %s is neither an .svg nor a .png file", file)
				}
			}
			var err error
			if a.settings.Guarantee, err = a.guarantee(ctx, cmd, args); err != nil {
				return err
			}
			return a.run(ctx, cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	f.StringVar(&a.file, "guarantee", "", "a file with the card of a holdout or its guarantee, as JSON; - is standard input")
	f.Int64Var(&a.spec.N, "n", 0, "independent units in the holdout")
	f.Int64Var(&a.spec.Training, "training", 0, "units in the training part, for mechanisms that compare with it")
	f.StringVar(&a.mechanism, "mechanism", string(thresholdout.Auto), "the mechanism")
	f.Int64Var(&a.spec.Questions, "questions", 0, "questions (default: as many as a holdout of this size gets)")
	f.Int64Var(&a.spec.Tokens, "tokens", 0, "how many guesses may be wrong")
	f.Int64Var(&a.spec.Rounds, "rounds", 0, "batches that the questions come in")
	f.Float64Var(&a.spec.Confidence, "confidence", thresholdout.DefaultConfidence, "that all intervals hold together")
	f.Float64Var(&a.spec.HalfWidth, "half-width", 0, "that every answer should have")
	f.Float64Var(&a.spec.Sigma, "sigma", 0, "constant noise")
	f.Float64Var(&a.spec.Threshold, "threshold", 0, "of thresholdout, or the step of a ladder")
	f.Float64Var(&a.spec.Capped, "capped", 0, "of gaussian: the share of the probability of error for vectors and selections")
	f.StringVar(&a.form, "form", "", "of thresholdout: gaussian or laplace")
	f.StringVar(&a.spec.Preset, "preset", "", "of thresholdout: parameters of a paper")
	f.BoolVar(&a.spec.Published, "published", false, "only bounds of the literature")
	f.DurationVar(&a.settings.Time, "time", attack.DefaultTime, "for all games together")
	f.IntVar(&a.settings.Games, "games", 0, "of each attack, instead of as many as fit the time")
	f.Uint64Var(&a.settings.Seed, "seed", 1, "of all that is drawn")
	f.Float64Var(&a.settings.Confidence, "audit-confidence", attack.DefaultConfidence, "that a sound holdout is not refuted")
	f.StringArrayVar(&a.plots, "plot", nil, "draw into this .svg or .png file")
	a.add(cmd)
	return cmd
}

// planFlags are those that say what is planned.
var planFlags = []string{"n", "training", "mechanism", "questions", "tokens", "rounds", "confidence", "half-width", "sigma", "threshold", "capped", "form", "preset", "published"}

// guarantee is the one that is attacked: of a running server, of a file, or planned.
func (a *auditing) guarantee(ctx context.Context, cmd *cobra.Command, args []string) (g thresholdout.Guarantee, err error) {
	planned := ""
	for _, name := range planFlags {
		if cmd.Flags().Changed(name) {
			planned = name
		}
	}
	switch {
	case planned != "" && (len(args) > 0 || a.file != ""):
		return g, misuse("--%s is for settings that are planned; a holdout has its own", planned)
	case len(args) > 0 && a.file != "":
		return g, misuse("name a holdout or --guarantee, not both")
	case planned != "" && a.spec.N == 0:
		return g, misuse("name the number of units in the holdout: --n 10000")
	case planned != "":
		a.spec.Mechanism, a.spec.Form = thresholdout.Name(a.mechanism), thresholdout.Form(a.form)
		g, err = thresholdout.Plan(a.spec.WithBudget())
		var wrong *thresholdout.ParamError
		if errors.As(err, &wrong) {
			return g, misuse("%s: %s", wrong.Field, wrong.Detail)
		}
		return g, err
	case a.file != "":
		return readGuarantee(cmd.InOrStdin(), a.file)
	}
	c, err := a.connect()
	if err != nil {
		return g, err
	}
	card, err := holdoutOf(ctx, c, first(args))
	if err != nil {
		return g, err
	}
	text, err := json.Marshal(card.Guarantee)
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(text, &g)
}

// mostGuarantee is far more than a card with its guarantee takes.
const mostGuarantee = 16 << 20

// readGuarantee reads a card, or its guarantee.
func readGuarantee(stdin io.Reader, file string) (g thresholdout.Guarantee, err error) {
	from := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return g, err
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, mostGuarantee))
	if err != nil {
		return g, err
	}
	var card struct {
		Guarantee json.RawMessage `json:"guarantee"`
	}
	if err := json.Unmarshal(text, &card); err != nil {
		return g, misuse("--guarantee: %s is neither a card nor a guarantee: %v", file, err)
	}
	if card.Guarantee != nil {
		text = card.Guarantee
	}
	if err := json.Unmarshal(text, &g); err != nil {
		return g, misuse("--guarantee: %s: %s", file, strings.TrimPrefix(err.Error(), "thresholdout: "))
	}
	return g, nil
}

// run attacks, and says what was found.
func (a *auditing) run(ctx context.Context, out io.Writer) error {
	begun := time.Now()
	r, err := attack.Run(ctx, a.settings)
	if errors.Is(err, attack.ErrSettings) {
		return misuse("%s", strings.TrimPrefix(err.Error(), attack.ErrSettings.Error()+": "))
	}
	if err != nil {
		return err
	}
	for _, file := range a.plots {
		if err := r.Draw(file); err != nil {
			return err
		}
	}
	if a.json {
		err = printJSON(out, r)
	} else {
		err = r.Write(out)
		if err == nil {
			_, err = fmt.Fprintf(out, "It took %.0f s.\n", time.Since(begun).Seconds())
		}
	}
	switch {
	case err != nil:
		return err
	case r.Refuted:
		return errRefuted
	case r.Powerless:
		return errPowerless
	}
	return nil
}
