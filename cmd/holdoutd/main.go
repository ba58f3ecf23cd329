// Command holdoutd keeps holdout data secret and answers adaptive statistical queries about it over HTTP.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// decodeCommand is how the server starts itself to decode an uploaded file in a limited process.
const decodeCommand = "decode-parquet"

func main() {
	// Before all else: the decoding child needs no flags and no log, and its memory is counted.
	if len(os.Args) == 2 && os.Args[1] == decodeCommand {
		os.Exit(ingest.ChildMain())
	}
	os.Exit(run())
}

func run() int {
	err := rootCommand().Execute()
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdoutd:", strings.TrimSpace(err.Error()))
	}
	return exitCode(err)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdoutd",
		Short: "Keeps holdout data secret and answers questions about it that may depend on earlier answers",
		Long: `holdoutd takes a table, splits it, hands back the training part and keeps the holdout part secret.
Analysts ask statistical questions about the holdout, thousands of them, each chosen after seeing earlier answers.
Every answer carries an interval that holds for all of them together, and is debited from a durable budget first.

Start with: holdoutd demo

` + exitCodes,
		Example: `  holdoutd demo
  holdoutd serve --data holdoutd-data
  holdoutd upload flights.parquet --name flights
  holdoutd ask fraction 'delay > 15' --where "origin == 'SFO'"`,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // there is one of our own
	}
	root.SetVersionTemplate("holdoutd {{.Version}}\n")
	root.AddCommand(serveCommand(), demoCommand(), uploadCommand(), downloadCommand(), askCommand(), budgetCommand(), historyCommand(), reportCommand(), releaseCommand(), retireCommand(), voidCommand(), holdoutsCommand(), gateCommand(),
		verifyCommand(), backupCommand(), restoreCommand(), ledgerCommand(), keyCommand(), grantCommand(), benchCommand(), planCommand(), auditCommand(), experimentCommand(), certifyCommand(), completionCommand(), versionCommand())
	strict(root)
	wrapFlags(root)
	return root
}
