package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/holdout"
)

// ledgerHelp is that of --ledger.
const ledgerHelp = "address of a ledger in PostgreSQL that several servers with the same data directory share, as postgres://ROLE@HOST/DATABASE, or @FILE with it (default: the file ledger.db in the data directory, for one server)"

// ledgerAddress reads --ledger. An address with a password belongs into a file: everyone on the machine sees command lines.
func ledgerAddress(said string) (string, error) {
	name, inFile := strings.CutPrefix(said, "@")
	if !inFile {
		return said, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("cannot read the ledger's address from %s: %w", name, unwrapPath(err))
	}
	return strings.TrimSpace(string(text)), nil
}

func ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ledger",
		Short:   "Prepare a PostgreSQL database for a ledger that several servers share",
		Example: `  holdoutd ledger prepare postgres://owner@db.example/budgets --role holdoutd`,
		Args:    cobra.NoArgs,
	}
	cmd.AddCommand(ledgerPrepareCommand())
	return cmd
}

func ledgerPrepareCommand() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "prepare ADDRESS",
		Short: "Make or update the tables of a shared ledger, and give a role what servers need",
		Long: `Makes the tables of a ledger in a PostgreSQL database, or brings them up to date, and gives a role what servers need: it may
read the tables and call functions that append, and nothing else. Run it as the database's owner, before the first start and
before servers of a newer version start. Running it again does what is left to do.

The tables are in the schema holdoutd, or in the one that the address names (?search_path=NAME). @FILE reads the address from a file.`,
		Example: `  holdoutd ledger prepare postgres://owner@db.example/budgets --role holdoutd
  holdoutd serve --data /shared/holdoutd --ledger postgres://holdoutd@db.example/budgets`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := ledgerAddress(args[0])
			if err != nil {
				return err
			}
			if err := holdout.PrepareShared(cmd.Context(), address, role); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The ledger is prepared: servers start with --ledger and the address of the role %s\n", role)
			return nil
		},
	}
	cmd.Flags().StringVar(&role, "role", "holdoutd", "role of the servers, which must be there")
	return cmd
}
