package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func voidCommand() *cobra.Command {
	var f lookFlags
	cmd := &cobra.Command{
		Use:   "void HOLDOUT",
		Short: "Debit what is held for questions that a source did not answer",
		Long: `Of a holdout whose held-out rows lie in a source: a question that was sent there and not answered is held, until it is asked
again. This debits all that is held as if it had been answered, and ends the holds; asked again, a question costs anew. Do it
when nobody will ask them again. Where nothing is held it does nothing. It needs an admin's key.

` + findingHelp,
		Example: `  holdoutd budget flights
  holdoutd void flights`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeHoldout,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			c, card, err := f.open(ctx, args[0])
			if err != nil {
				return err
			}
			b, err := c.VoidHeld(ctx, card.ID)
			switch {
			case err != nil:
				return err
			case f.json:
				return printJSON(cmd.OutOrStdout(), b)
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "nothing is held of %s (%s) any more\n", card.Name, card.ID); err != nil {
				return err
			}
			return printBudget(cmd.OutOrStdout(), b)
		}),
	}
	f.add(cmd)
	return cmd
}
