package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/gate"
)

// lookFlags are those of commands that only look.
type lookFlags struct {
	serverFlags
	json bool
}

func (f *lookFlags) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON as the server has it")
}

func holdoutsCommand() *cobra.Command {
	var f lookFlags
	cmd := &cobra.Command{
		Use:   "holdouts [HOLDOUT]",
		Short: "List the holdouts of a running server, or show the card of one",
		Long: `Lists the holdouts that the key may see. With the name or the id of one it shows its card: parts, columns, guarantee,
what is left, and warnings.

` + findingHelp,
		Example: `  holdoutd holdouts
  holdoutd holdouts flights
  holdoutd holdouts flights --json | jq .guarantee`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeHoldout,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			c, err := f.connect()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if len(args) == 1 {
				card, err := holdoutOf(ctx, c, args[0])
				switch {
				case err != nil:
					return err
				case f.json:
					return printJSON(out, card)
				}
				printCard(out, card)
				return nil
			}
			cards, err := c.Holdouts(ctx)
			switch {
			case err != nil:
				return err
			case f.json:
				return printJSON(out, nonNil(cards))
			}
			return printHoldouts(ctx, cmd, c, cards)
		}),
	}
	f.add(cmd)
	return cmd
}

func printHoldouts(ctx context.Context, cmd *cobra.Command, c *client.Client, cards []client.Card) error {
	t := table{header: []string{"NAME", "UNITS", "MECHANISM", "QUESTIONS LEFT", "TOKENS LEFT", "ID"}}
	for _, card := range cards {
		questions, tokens := "", ""
		if card.Budget == nil {
			if b, err := c.Budget(ctx, card.ID); err == nil {
				card.Budget = &b
			}
		}
		if b := card.Budget; b != nil {
			questions = thousands(b.Questions.Left) + " of " + thousands(b.Questions.Of)
			if b.Tokens != nil {
				tokens = thousands(b.Tokens.Left) + " of " + thousands(b.Tokens.Of)
			}
		}
		if card.Retired {
			questions, tokens = "retired", ""
		}
		t.add(card.Name, thousands(card.Units.Holdout), card.Guarantee.Mechanism, questions, tokens, card.ID)
	}
	if len(cards) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "there is no holdout yet; holdoutd upload makes one")
	}
	return t.write(cmd.OutOrStdout(), terminalWidth(cmd.OutOrStdout()))
}

func budgetCommand() *cobra.Command {
	var f lookFlags
	cmd := &cobra.Command{
		Use:   "budget [HOLDOUT]",
		Short: "Say what is left of a holdout's budget",
		Long: `Says how many questions, tokens and rounds are left of a holdout, which is named by its name or its id; without a name it
is that of HOLDOUTD_HOLDOUT, or the only one that there is. It costs nothing.

` + findingHelp,
		Example: `  holdoutd budget
  holdoutd budget flights --json | jq .questions.left`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeHoldout,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			c, card, err := f.open(ctx, first(args))
			if err != nil {
				return err
			}
			b, err := c.Budget(ctx, card.ID)
			switch {
			case err != nil:
				return err
			case f.json:
				return printJSON(cmd.OutOrStdout(), b)
			}
			return printBudget(cmd.OutOrStdout(), b)
		}),
	}
	f.add(cmd)
	return cmd
}

func printBudget(out io.Writer, b client.Budget) error {
	t := table{header: []string{"METER", "LEFT", "OF"}}
	add := func(name string, m *client.Meter) {
		if m != nil {
			t.add(name, thousands(m.Left), thousands(m.Of))
		}
	}
	add("questions", &b.Questions)
	add("tokens", b.Tokens)
	add("rounds", b.Rounds)
	if err := t.write(out, terminalWidth(out)); err != nil {
		return err
	}
	if b.NextRound > 0 {
		fmt.Fprintf(out, "the next round has %s questions; what of them a request does not ask is lost\n", thousands(b.NextRound))
	}
	if h := b.Held; h != nil {
		fmt.Fprintf(out, "%s questions and %s tokens of these are held for queries that were sent to the source and not answered: ask those again\n", thousands(h.Questions), thousands(h.Tokens))
	}
	if b.Lost > 0 {
		fmt.Fprintf(out, "%s questions of earlier rounds are lost\n", thousands(b.Lost))
	}
	return nil
}

func historyCommand() *cobra.Command {
	var f lookFlags
	var follow bool
	var last int
	cmd := &cobra.Command{
		Use:   "history [HOLDOUT]",
		Short: "List the answers so far, each beside what the training or check part says",
		Long: `Lists the recorded answers of a holdout, oldest first: an analyst's own, an admin all. It costs nothing. REFERENCE is what the
check part says to a question about a model, and the training and check parts together to others; where it lies outside of
the interval, what was seen in training does not hold. On a terminal questions are cut to its width.

With --follow it goes on with each new answer until Ctrl-C, which ends it with 0; its --json is one object a line.

` + findingHelp,
		Example: `  holdoutd history flights
  holdoutd history flights --last 10
  holdoutd history flights --json | jq -r '.[].answer.value'
  holdoutd history flights --follow`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeHoldout,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if last < 0 {
				return misuse("--last must be more than 0, not %d; leave it out for all", last)
			}
			c, card, err := f.open(ctx, first(args))
			if err != nil {
				return err
			}
			if follow {
				return f.follow(ctx, cmd, c, card.ID)
			}
			past := []client.PastAnswer{}
			for a, err := range c.Answers(ctx, card.ID) {
				if err != nil {
					return err
				}
				past = append(past, a)
			}
			if last > 0 && len(past) > last {
				past = past[len(past)-last:]
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), past)
			}
			return printHistory(cmd.OutOrStdout(), past)
		}),
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each new answer until Ctrl-C")
	cmd.Flags().IntVar(&last, "last", 0, "only so many of the last answers (default: all)")
	return cmd
}

func printHistory(out io.Writer, past []client.PastAnswer) error {
	t := table{header: []string{"WHEN", "WHO", "QUESTION", "ANSWER", "REFERENCE", "COST"}, wide: 2}
	for _, a := range past {
		t.add(historyRow(a)...)
	}
	return t.write(out, terminalWidth(out))
}

func historyRow(p client.PastAnswer) []string {
	who := p.AskedBy.ID
	if p.AskedBy.Name != nil {
		who = *p.AskedBy.Name
	}
	reference := ""
	if r := p.Reference; r != nil {
		low, high := endsOf(p.Answer)
		switch {
		case r.Selected != "":
			reference = r.Selected
		case r.Value != nil:
			reference = figureText(r.Value, halfOf(low, high))
		}
	}
	question := queryText(p.Canonical)
	if p.Note != nil {
		question += "  # " + *p.Note
	}
	return []string{p.Time.UTC().Format("2006-01-02 15:04"), who, question, headline(p.Answer), reference, gate.CostText(p.Answer.Cost)}
}

// follow writes the answers so far and each new one. A stream that ends is taken up where it was; Ctrl-C is its usual end.
func (f *lookFlags) follow(ctx context.Context, cmd *cobra.Command, c *client.Client, id string) error {
	out, after := cmd.OutOrStdout(), int64(0)
	for ctx.Err() == nil {
		for p, err := range c.Follow(ctx, id, after) {
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, io.ErrUnexpectedEOF):
			case err != nil:
				return err
			default:
				after = p.Answer.Ledger.Seq
				if err := f.printPast(out, p); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

func (f *lookFlags) printPast(out io.Writer, p client.PastAnswer) error {
	if f.json {
		return encodeLine(out, p)
	}
	row := plainCells(historyRow(p))
	_, err := fmt.Fprintf(out, "%s  %s  %s  %s\n", row[0], row[1], cut(row[2], max(terminalWidth(out)-40, 0)), row[3])
	return err
}

// first is the first argument, where there is one.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func nonNil(cards []client.Card) []client.Card {
	if cards == nil {
		return []client.Card{}
	}
	return cards
}
