package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func retireCommand() *cobra.Command {
	var f lookFlags
	cmd := &cobra.Command{
		Use:   "retire HOLDOUT",
		Short: "Retire a holdout for good, and release its rows to training",
		Long: `Ends the questions of a holdout for good. Recorded answers, the history and the final report stay, and its intervals stay
true. Then its rows and those of its check part can be downloaded (download retired), and be in the training part of later
uploads. What is left of the budget is gone. Retiring again does nothing. It needs an admin's key. It is refused while
another holdout, of which questions are left, holds out the same rows.

The holdout that comes after it is uploaded of later rows with --succeeds, so that both cards name each other.

` + findingHelp,
		Example: `  holdoutd retire flights-q1
  holdoutd download retired flights-q1 --out more.parquet
  holdoutd upload q2.parquet --name flights-q2 --succeeds ho_...`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeHoldout,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			c, card, err := f.open(ctx, args[0])
			if err != nil {
				return err
			}
			card, err = c.Retire(ctx, card.ID)
			switch {
			case err != nil:
				return err
			case f.json:
				return printJSON(cmd.OutOrStdout(), card)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "retired: %s (%s) answers nothing more. Its rows: holdoutd download retired %s --out FILE. The next one: holdoutd upload FILE --succeeds %s\n", card.Name, card.ID, card.ID, card.ID)
			return err
		}),
	}
	f.add(cmd)
	return cmd
}
