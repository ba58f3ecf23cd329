package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/gate"
	"github.com/holdoutd/holdoutd/internal/members"
)

// summaryVariable names the file that GitHub shows on the page of a job.
const summaryVariable = "GITHUB_STEP_SUMMARY"

// A verdict is the end of a gate that the candidate did not pass.
type verdict struct {
	gate.Verdict
	sentence string
}

// Error is the verdict in words.
func (v verdict) Error() string { return string(v.Verdict) + ": " + v.sentence }

type gateFlags struct {
	askFlags
	baseline, candidate string
	metric              string
	by                  float64
	summary             string
}

func gateCommand() *cobra.Command {
	var f gateFlags
	types := members.Types()
	of, own := gateMembers(types)
	cmd := &cobra.Command{
		Use:   "gate --baseline FILE --candidate FILE",
		Short: "Let a pipeline go on only if a model is shown to be better than another",
		Long: `Asks one compare question about two models and ends with a code that says what the answer shows, so that a pipeline goes on
only with a better model, however often it asks: the interval holds for all questions of the holdout together.

  0  passed     the whole interval says that the candidate is better by more than --by
  3  not shown  it does not say so; that is not a finding of no difference
  4  worse      the whole interval says that the candidate is worse than the baseline

Every other code means that there is no verdict (holdoutd --help lists them); a pipeline must not go on then either, nor
after --explain, which ends with 1. FILE is a
model as docs/MODELS.md has it and holdoutd.models.export writes it; or predictions, a JSON list with a number for each row of
the download of features, where the holdout was created with features=public; or an object of the members model, features,
prediction and predictions. Of losses less is better, and --by is how much less.

It prints a summary in Markdown: verdict, interval, price and what is left. --summary writes it to a file, too, and where
GITHUB_STEP_SUMMARY is set it is added to that page. The same two files again are the same question: the recorded answer
comes back at no cost, so that a pipeline may be run again.

Metrics: ` + strings.Join(gate.Metrics(types), ", ") + `

` + findingHelp,
		Example: `  holdoutd gate --baseline a.json --candidate b.json --metric accuracy --by 0.01
  holdoutd gate --baseline a.json --candidate b.json --metric log_loss --label 'delay > 15' --holdout flights
  holdoutd gate --baseline a.json --candidate b.json --where "origin == 'SFO'" --explain
  holdoutd gate --baseline a.json --candidate b.json --summary gate.md || [ $? -eq 3 ]    # not shown is well enough here`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.baseline, "baseline", "", "the model that is to be beaten, a JSON file (required)")
	flags.StringVar(&f.candidate, "candidate", "", "the model that may be better, a JSON file (required)")
	flags.StringVar(&f.metric, "metric", "accuracy", "what is compared")
	flags.Float64Var(&f.by, "by", 0, "how much better the candidate must be")
	flags.StringVar(&f.summary, "summary", "", "write the summary to this file, too")
	f.add(flags)
	given := addMembers(cmd, slices.Concat(of, own))
	completeFlag(cmd, "metric", func(*cobra.Command, string) []string { return gate.Metrics(types) })
	completeFlag(cmd, "holdout", func(c *cobra.Command, _ string) []string { return f.serverFlags.holdouts(c) })
	for _, m := range slices.Concat(of, own) {
		if m.Expression() {
			completeFlag(cmd, m.Flag(), func(c *cobra.Command, begun string) []string { return f.serverFlags.columns(c, f.holdout, begun) })
		}
	}
	cmd.RunE = asClient(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		texts := map[string][]string{}
		for name, g := range given {
			texts[name] = g.texts
		}
		asked, err := f.question(types, of, own, texts)
		if err != nil {
			return err
		}
		return f.run(ctx, cmd, asked)
	})
	return cmd
}

// gateMembers are the members of questions about both models, and of the compare, for which a gate has flags. The models come from files,
// and by and least from --by and --metric.
func gateMembers(types []members.Type) (of, own []members.Member) {
	compare, _ := members.Of(types, "compare")
	for _, m := range compare.Members {
		if !slices.Contains([]string{"a", "b", "by", "least"}, m.Name) {
			own = append(own, m)
		}
	}
	known := func(name string) bool {
		return slices.ContainsFunc(slices.Concat(of, own), func(m members.Member) bool { return m.Name == name }) ||
			slices.Contains([]string{"model", "prediction", "predictions", "loss"}, name)
	}
	for _, name := range []string{"accuracy", "balanced_accuracy", "auc", "loss"} {
		t, _ := members.Of(types, name)
		for _, m := range t.Members {
			if !known(m.Name) {
				of = append(of, m)
			}
		}
	}
	return of, own
}

// question is the compare with what the summary says of it, before a server is asked.
func (f *gateFlags) question(types []members.Type, of, own []members.Member, texts map[string][]string) (q gateQuestion, err error) {
	if f.baseline == "" || f.candidate == "" {
		return q, misuse("name both models: --baseline a.json --candidate b.json")
	}
	if f.baseline == "-" && f.candidate == "-" {
		return q, misuse("one of the models can come from standard input, not both")
	}
	if q.report.Metric, err = gate.MetricOf(types, f.metric); err != nil {
		return q, misuse("--metric: %w", err)
	}
	subject := func(flag, file string) (gate.Subject, string, error) {
		contents, err := members.ReadFile(file)
		if err != nil {
			return nil, "", misuse("--%s: %s %w", flag, file, err)
		}
		s, err := gate.SubjectOf(types, contents)
		if err != nil {
			return nil, "", misuse("--%s: %s %w", flag, file, err)
		}
		return s, gate.ID(contents), nil
	}
	baseline, baselineID, err := subject("baseline", f.baseline)
	if err != nil {
		return q, err
	}
	candidate, candidateID, err := subject("candidate", f.candidate)
	if err != nil {
		return q, err
	}
	inner, err := readMembers(of, texts)
	if err != nil {
		return q, err
	}
	outer, err := readMembers(own, texts)
	if err != nil {
		return q, err
	}
	if q.query, err = gate.Query(types, q.report.Metric, baseline, candidate, f.by, inner, outer); err != nil {
		return q, misused{err}
	}
	q.candidate, q.label = candidate, inner["label"]
	q.report.By, q.report.Baseline, q.report.Candidate = f.by, f.baseline, f.candidate
	q.report.BaselineID, q.report.CandidateID = baselineID, candidateID
	return q, nil
}

type gateQuestion struct {
	query     json.RawMessage
	report    gate.Report
	candidate gate.Subject
	label     json.RawMessage // of both models; nil for that of the holdout
}

func (q gateQuestion) readsTruth(card client.Card) []string {
	truth := card.Settings.Label
	json.Unmarshal(q.label, &truth) // an expression is a text; nil leaves the holdout's
	var columns []string
	for _, c := range card.Columns {
		columns = append(columns, c.Name)
	}
	return gate.ReadsTruth(truth, columns, q.candidate)
}

// run asks. Files of the summary are opened before, so that nothing is spent where the verdict could not be told.
func (f *gateFlags) run(ctx context.Context, cmd *cobra.Command, q gateQuestion) (err error) {
	ctx, err = f.limited(ctx, cmd)
	if err != nil {
		return err
	}
	c, card, err := f.open(ctx, f.holdout)
	if err != nil {
		return err
	}
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	short, err := c.Short(ctx, q.query)
	if err != nil {
		return err
	}
	if f.explain {
		e, err := c.Explain(ctx, card.ID, short)
		switch {
		case err != nil:
			return err
		case f.json:
			err = printJSON(out, e)
		default:
			err = printExplanation(out, errs, e)
		}
		return cmp.Or(err, error(errExplained))
	}
	pages, err := openPages(f.summary, os.Getenv(summaryVariable))
	if err != nil {
		return err
	}
	defer pages.close()
	if f.once == "" {
		ctx = client.WithIdempotencyKey(ctx, gate.Key(card.ID, q.query))
	}
	reply, err := c.Ask(ctx, card.ID, short)
	if err != nil {
		return err
	}
	if reply.Answer.Holdout != card.ID {
		return fmt.Errorf("the reply is an answer of the holdout %q, not of %s: nothing can be concluded from it", printable(reply.Answer.Holdout), card.ID)
	}
	r := q.report
	r.Holdout, r.Reply = card, reply
	if read := q.readsTruth(card); len(read) > 0 {
		r.Reply.Warnings = append(r.Reply.Warnings, client.Warning{Code: "reads-truth", Detail: fmt.Sprintf(
			"the candidate reads %s, which the truth is made of: what is known only with the truth is no feature", strings.Join(read, " and "))})
	}
	if r.Verdict, err = gate.Judge(reply.Answer, f.by, r.Metric.Least); err != nil {
		return err
	}
	if err := pages.write(r.Markdown()); err != nil {
		return fmt.Errorf("%s, but the summary cannot be written: %w", r.Verdict, err)
	}
	if f.json {
		err = printJSON(out, gateJSON{r.Verdict, r.Metric.Name, f.by, reply})
	} else {
		_, err = fmt.Fprint(out, r.Markdown())
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s, but the summary cannot be printed: %w", r.Verdict, err)
	case r.Verdict != gate.Passed:
		return verdict{r.Verdict, r.Sentence()}
	}
	return nil
}

// errExplained is the end of a gate that was not asked: its price is known, and no pipeline may go on.
var errExplained = errors.New("explained, not asked: there is no verdict")

// gateJSON is what a gate prints with --json.
type gateJSON struct {
	Verdict gate.Verdict `json:"verdict"`
	Metric  string       `json:"metric"`
	By      float64      `json:"by"`
	Reply   client.Reply `json:"reply"`
}

// pages are the files of a summary.
type pages struct{ whole, added *os.File }

func openPages(whole, added string) (p pages, err error) {
	if whole != "" {
		if p.whole, err = os.OpenFile(whole, os.O_CREATE|os.O_WRONLY, 0o644); err != nil { // emptied when there is something to write
			return p, fmt.Errorf("the summary cannot be written: %w", err)
		}
	}
	if added != "" {
		if p.added, err = os.OpenFile(added, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
			p.close()
			return p, fmt.Errorf("the page of %s cannot be written: %w", summaryVariable, err)
		}
	}
	return p, nil
}

func (p pages) write(text string) error {
	var failed error
	if p.whole != nil {
		if info, err := p.whole.Stat(); err == nil && info.Mode().IsRegular() {
			failed = p.whole.Truncate(0)
		}
	}
	for _, f := range []*os.File{p.whole, p.added} {
		if f != nil {
			_, err := f.WriteString(text + "\n")
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (p pages) close() {
	for _, f := range []*os.File{p.whole, p.added} {
		if f != nil {
			f.Close()
		}
	}
}
