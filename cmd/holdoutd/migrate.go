package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
)

func migrateCommand() *cobra.Command {
	var where, role string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make or bring up to date a ledger in PostgreSQL as its owner, and admit a role that can change nothing in it",
		Long: `Connects as the role of the URL, which owns the ledger's schema or may make it, and brings the schema up to date. With --role
that role may serve the ledger from then on: it can read it, and add entries by the ledger's own functions; it can change
and delete nothing. Servers then connect as that role. Without this command a server does it by itself, if its role owns
the database.

One process migrates at a time; others wait. It can be run again at any time, also while servers run. The password comes
from the URL, PGPASSWORD or PGPASSFILE, and the URL may be in a file: @FILE.`,
		Example: `  holdoutd migrate --ledger postgres://owner@db.example/holdoutd --role holdoutd
  holdoutd migrate --ledger @owner-url`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, u, err := ledgerURL(cmp.Or(where, os.Getenv(ledgerVariable)))
			if err != nil {
				return err
			}
			if err := postgres.Migrate(cmd.Context(), text, role); err != nil {
				return fmt.Errorf("the ledger at %s cannot be migrated: %w", u.Redacted(), err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the ledger is up to date")
			return nil
		},
	}
	cmd.Flags().StringVar(&where, "ledger", "", "the ledger, as its owner connects: postgres://OWNER@HOST/DATABASE, or @FILE, a file with that URL (default: "+ledgerVariable+")")
	cmd.Flags().StringVar(&role, "role", "", "a role of the database that servers connect as; it must be there")
	return cmd
}
