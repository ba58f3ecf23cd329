package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/members"
)

func reportCommand() *cobra.Command {
	var f lookFlags
	var title, holdout, page string
	var closes bool
	cmd := &cobra.Command{
		Use:   "report [QUESTIONS]",
		Short: "Close a holdout with its final report, or show it",
		Long: `A final report is one batch of questions, all chosen before any of its answers is seen. Its answers are exact, their intervals
are the narrowest that a holdout gives, and they hold together with all earlier ones. Then the holdout is closed: it answers
nothing more.

QUESTIONS is a JSON list of questions, or one; @FILE reads it from a file, and - from standard input. Without --close the command only says how wide
the intervals would be, which costs nothing. With --close it closes the holdout, which needs an admin key. Without QUESTIONS it shows
the report of a closed holdout.

` + findingHelp,
		Example: `  holdoutd report @report.json
  holdoutd report @report.json --title "Churn, spring" --close
  holdoutd report --html report.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (closes || title != "") {
				return misuse("report what? A JSON list of questions; %s --help has examples", cmd.CommandPath())
			}
			if len(args) == 1 && !closes && (title != "" || page != "") {
				return misuse("--title and --html are of a report, and without --close there is only a plan")
			}
			var questions []any
			if len(args) == 1 {
				var err error
				if questions, err = reportQuestions(args[0]); err != nil {
					return err
				}
			}
			c, card, err := f.open(ctx, holdout)
			if err != nil {
				return err
			}
			if len(args) == 1 && !closes {
				return f.planReport(ctx, cmd, c, card, questions)
			}
			var r client.FinalReport
			if closes {
				r, err = c.CloseWithReport(ctx, card.ID, questions, title)
			} else {
				r, err = c.Report(ctx, card.ID)
			}
			if err != nil {
				return err
			}
			if page != "" {
				if err := saveReport(ctx, c, card.ID, page); err != nil {
					return err
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "the report is in "+page)
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			for line := range strings.Lines(r.Text) {
				fmt.Fprintln(cmd.OutOrStdout(), printable(strings.TrimSuffix(line, "\n")))
			}
			return nil
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&holdout, "holdout", "", "the holdout, by its name or id (default: HOLDOUTD_HOLDOUT, or the only one that there is)")
	cmd.Flags().BoolVar(&closes, "close", false, "close the holdout: it answers nothing after the report")
	cmd.Flags().StringVar(&title, "title", "", "a title for the report")
	cmd.Flags().StringVar(&page, "html", "", "save the report as a page in this file, which must be new")
	completeFlag(cmd, "holdout", func(c *cobra.Command, _ string) []string { return f.serverFlags.holdouts(c) })
	return cmd
}

// reportQuestions are the questions of a report, written in JSON.
func reportQuestions(text string) ([]any, error) {
	raw, err := members.ReadArgument(text)
	if err != nil {
		return nil, misuse("the questions %w", err)
	}
	var list []any
	var one map[string]any
	switch {
	case json.Unmarshal(raw, &one) == nil:
		return []any{raw}, nil
	case json.Unmarshal(raw, &list) == nil && len(list) > 0:
		var texts []json.RawMessage
		if err := json.Unmarshal(raw, &texts); err != nil {
			return nil, err
		}
		for i, t := range texts {
			list[i] = t
		}
		return list, nil
	}
	return nil, misuse("the questions are no JSON list of questions, or an empty one")
}

// planReport says how wide the intervals of a report would be.
func (f *lookFlags) planReport(ctx context.Context, cmd *cobra.Command, c *client.Client, card client.Card, questions []any) error {
	plan, err := c.PlanReport(ctx, card.ID, questions)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.json {
		return printJSON(out, plan)
	}
	t := table{header: []string{"QUESTION", "VALUE NOW", "OF", "PLANNED"}, wide: 0}
	for i, a := range plan.Answers {
		text, _ := json.Marshal(questions[i])
		half := 0.0
		if a.HalfWidth != nil {
			half = *a.HalfWidth
		}
		t.add(queryText(text), figureText(a.Value, half), a.ValueFrom, widthText(a.HalfWidth))
	}
	if err := t.write(out, terminalWidth(out)); err != nil {
		return err
	}
	for _, a := range plan.Answers {
		warn(cmd.ErrOrStderr(), a.Warnings)
	}
	fmt.Fprintf(out, "Nothing was asked. With --close the report takes the %s questions that are left, and closes the holdout for good.\n", thousands(plan.Closes))
	return nil
}

// saveReport saves the page of a report in a new file.
func saveReport(ctx context.Context, c *client.Client, id, path string) error {
	page, err := c.ReportPage(ctx, id)
	if err != nil {
		return err
	}
	defer page.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("the report's page: %w", err)
	}
	if _, err := io.Copy(file, page); err != nil {
		file.Close()
		return fmt.Errorf("the report's page: %w", err)
	}
	return file.Close()
}
