package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/api"
)

// cancelTime is how long Ctrl-C waits for the server to hear that a registration is not wanted any more.
const cancelTime = 10 * time.Second

// registerFlags are the settings of the new holdout, a flag each, and how long to wait for it.
type registerFlags struct {
	settingFlags
	wait bool
}

func registerCommand() *cobra.Command {
	var f registerFlags
	cmd := &cobra.Command{
		Use:   "register SOURCE TABLE",
		Short: "Make a holdout of a table that stays where it is",
		Long: `Makes a holdout of a table of a source: a database or a folder of Parquet files that the server was started with (serve
--source; holdoutd sources names them). Nothing is uploaded: the server reads the table's units there, splits them, and keeps
each part where the table is. It prints the card of the new holdout. TABLE is named as there: db.flights, catalog.schema.flights,
or a folder below that of the source. It needs an admin key.

Three settings matter: --unit (what is independent of the others), --label (what you predict) and --questions. A database knows
its rows by their values: where rows are the units, name the columns that identify one by --row-key.

A large table takes minutes. Ctrl-C asks the server to cancel it; with --wait=false the command ends at once, and holdoutd
registrations shows how far it is. docs/SOURCES.md has the rest.

` + findingHelp,
		Example: `  holdoutd register lake flights --name flights --questions 300
  holdoutd register wh shop.visits --unit customer_id --label churned
  holdoutd register wh shop.visits --row-key visit_id --wait=false`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return f.sourceNames(cmd), noFiles
			}
			return nil, noFiles
		},
		RunE: asClient(f.run),
	}
	f.settingFlags.add(cmd, api.RegisterParameters())
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait for the holdout and show how far it is; Ctrl-C then cancels")
	return cmd
}

func (f *registerFlags) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	settings, err := f.settings(cmd)
	if err != nil {
		return misused{err}
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	if f.once != "" {
		ctx = client.WithIdempotencyKey(ctx, f.once)
	}
	r, err := c.Register(ctx, args[0], args[1], settings)
	switch {
	case err != nil:
		return notMade(err)
	case !f.wait && f.json:
		return printJSON(cmd.OutOrStdout(), r)
	case !f.wait:
		fmt.Fprintf(cmd.OutOrStdout(), "%s  begun; holdoutd registrations %[1]s waits for it\n", r.ID)
		return nil
	}
	card, err := awaitRegistration(ctx, c, r.ID, cmd.ErrOrStderr())
	if ctx.Err() != nil {
		return cancelled(ctx, c, r.ID)
	}
	if err != nil {
		return notMade(err)
	}
	return sayCard(cmd.OutOrStdout(), card, f.json)
}

// awaitRegistration waits for the end of a registration and says on the way how far it is.
func awaitRegistration(ctx context.Context, c *client.Client, id string, out io.Writer) (client.Card, error) {
	show := registering{out: out}
	card, err := c.AwaitRegistration(ctx, id, show.say)
	clearLine(out)
	if errors.Is(err, client.ErrCancelled) {
		err = errors.New("the registration was cancelled; nothing of it is left")
	}
	return card, err
}

// cancelled asks the server to end what nobody waits for any more.
func cancelled(ctx context.Context, c *client.Client, id string) error {
	timed, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	r, err := c.CancelRegistration(timed, id)
	switch {
	case err != nil:
		return interrupted{fmt.Errorf("interrupted, and the server could not be told to cancel %s: %w; holdoutd registrations %[1]s --cancel tells it", id, plain(err))}
	case r.Stage == "done":
		return interrupted{fmt.Errorf("interrupted, but the holdout was made already: %s", r.Holdout)}
	}
	return interrupted{fmt.Errorf("interrupted; the server was told to cancel %s, and removes what it has made of it", id)}
}

// stageWords are what a registration is doing, for people.
var stageWords = map[string]string{
	"waiting": "waiting for the registrations before it", "looking": "looking at the table", "reading-units": "reading units", "dividing": "dividing rows", "checking": "checking the parts",
	"done": "done", "failed": "failed", "cancelled": "cancelled",
}

// A registering line says how far a registration is: on a terminal it moves, elsewhere there is a line for each stage and each tenth of it.
type registering struct {
	out  io.Writer
	last string
}

func (p *registering) say(r client.Registration) {
	if r.Ended != nil { // how is said by who waits
		return
	}
	text, tenth := cmp.Or(stageWords[r.Stage], r.Stage), ""
	if r.Rows > 0 && r.Done > 0 {
		share := min(float64(r.Done)/float64(r.Rows), 1)
		text += fmt.Sprintf(" %3.0f%% of %s rows", 100*share, thousands(r.Rows))
		tenth = fmt.Sprint(int(10 * share))
	}
	if terminalWidth(p.out) > 0 {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		return
	}
	if mark := r.Stage + tenth; mark != p.last {
		p.last = mark
		fmt.Fprintln(p.out, text)
	}
}

func sourcesCommand() *cobra.Command {
	var f serverFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "List the places whose tables can become holdouts without being uploaded",
		Long: `Lists the sources that the server was started with (serve --source), and whether each answers now. It needs an admin key.

` + findingHelp,
		Example: `  holdoutd sources
  holdoutd sources --json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			c, err := f.connect()
			if err != nil {
				return err
			}
			all, err := c.Sources(ctx)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd.OutOrStdout(), all)
			case len(all) == 0:
				fmt.Fprintln(cmd.OutOrStdout(), "the server has no sources; holdoutd serve --source NAME=URL names one")
				return nil
			}
			t := table{header: []string{"name", "kind", "state"}, wide: 2}
			for _, s := range all {
				state := "ready"
				if !s.Ready {
					state = cmp.Or(s.Problem, "does not answer")
				}
				t.add(s.Name, s.Kind, state)
			}
			return t.write(cmd.OutOrStdout(), terminalWidth(cmd.OutOrStdout()))
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

func registrationsCommand() *cobra.Command {
	var f serverFlags
	var asJSON, cancel bool
	cmd := &cobra.Command{
		Use:   "registrations [REGISTRATION]",
		Short: "Show how far registrations are, wait for one, or cancel it",
		Long: `Lists the tables of sources that are being made into holdouts, and those that were since the server started. With the id of
one it waits for it and prints the card of its holdout; Ctrl-C then ends the waiting alone. --cancel ends the registration. It
needs an admin key.

` + findingHelp,
		Example: `  holdoutd registrations
  holdoutd registrations re_3f6c1d1e-0d0c-4a3e-9b1d-6a4c2f1e7b90
  holdoutd registrations re_3f6c1d1e-0d0c-4a3e-9b1d-6a4c2f1e7b90 --cancel`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if cancel && len(args) == 0 {
				return misuse("--cancel needs the id of a registration; holdoutd registrations lists them")
			}
			c, err := f.connect()
			if err != nil {
				return err
			}
			switch {
			case len(args) == 0:
				return listRegistrations(ctx, c, cmd.OutOrStdout(), asJSON)
			case cancel:
				r, err := c.CancelRegistration(ctx, args[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(cmd.OutOrStdout(), r)
				case r.Stage == "done":
					return fmt.Errorf("it was done already, and made the holdout %s", r.Holdout)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", r.ID, cancelWords(r.Stage))
				return nil
			}
			card, err := awaitRegistration(ctx, c, args[0], cmd.ErrOrStderr())
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd.OutOrStdout(), card)
			}
			printCard(cmd.OutOrStdout(), card)
			return nil
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end the registration; what it has made is removed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list, or the card, as JSON")
	return cmd
}

func cancelWords(stage string) string {
	if stage == "failed" || stage == "cancelled" {
		return "has ended: " + stage
	}
	return "is being cancelled"
}

func listRegistrations(ctx context.Context, c *client.Client, out io.Writer, asJSON bool) error {
	all, err := c.Registrations(ctx)
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(out, all)
	case len(all) == 0:
		fmt.Fprintln(out, "no table was registered since the server started")
		return nil
	}
	t := table{header: []string{"id", "source", "stage", "table"}, wide: 3}
	for _, r := range all {
		stage := r.Stage
		if r.Rows > 0 && r.Done > 0 && r.Ended == nil {
			stage += fmt.Sprintf(" %.0f%%", 100*min(float64(r.Done)/float64(r.Rows), 1))
		}
		t.add(r.ID, cmp.Or(r.Source, "(upload)"), stage, cmp.Or(r.Table, r.Name))
	}
	return t.write(out, terminalWidth(out))
}

// sourceNames completes the name of a source.
func (f *registerFlags) sourceNames(cmd *cobra.Command) (names []string) {
	f.quickly(cmd, func(ctx context.Context, c *client.Client) {
		all, err := c.Sources(ctx)
		if err != nil {
			return
		}
		for _, s := range all {
			names = append(names, s.Name)
		}
	})
	return names
}
