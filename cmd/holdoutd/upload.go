package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/api"
)

// partNames are the pieces of a table that was split before, in the order in which they are sent.
var partNames = []string{"training", "check", "holdout"}

// uploadFlags are the parameters of an upload, a flag each, and how it is sent.
type uploadFlags struct {
	settingFlags
	dry bool
}

func uploadCommand() *cobra.Command {
	var f uploadFlags
	cmd := &cobra.Command{
		Use:   "upload FILE | upload training=FILE [check=FILE] holdout=FILE",
		Short: "Upload a Parquet file and make a holdout of it",
		Long: `Uploads a Parquet file to a running server, which splits it and keeps the holdout part secret, and prints the card of the new
holdout with its warnings. Three settings matter: --unit (what is independent of the others), --label (what you predict) and
--questions (how many answers you will ever want; fewer are narrower). --dry-run says what would be made, and makes nothing.
FILE - is standard input. A table that is too large to be divided at once is divided in the background, and the
command shows how far that is; Ctrl-C cancels it. A table that you have split yourself is uploaded as its parts. It needs an admin key.

Until something of a new holdout is shown the same file may be uploaded again with other settings. Each flag is a parameter
of the interface (docs/API.md); one that the mechanism does not take is refused.

` + findingHelp,
		Example: `  holdoutd upload flights.parquet --name flights --questions 300
  holdoutd upload visits.parquet --name visits --unit customer_id --label churned --holdout 0.3
  holdoutd upload visits.parquet --unit customer_id --dry-run
  holdoutd upload training=a.parquet holdout=b.parquet --name given --json`,
		Args: cobra.RangeArgs(1, len(partNames)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"parquet"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: asClient(f.run),
	}
	for _, p := range api.UploadParameters() {
		if p.Kind == "boolean" {
			cmd.Flags().BoolVar(&f.dry, flagName(p), false, p.Says)
		}
	}
	f.settingFlags.add(cmd, api.UploadParameters())
	return cmd
}

func (f *uploadFlags) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	settings, err := f.settings(cmd)
	if err != nil {
		return misused{err}
	}
	files, err := filesOf(args)
	if err != nil {
		return err
	}
	if split := cmd.Flags().Lookup("split"); len(files) > 1 && split.Changed && settings.Split != "given" {
		return misuse("--split is given where the parts are uploaded, not %s", settings.Split)
	}
	if len(files) > 1 && f.dry {
		return misuse("--dry-run takes one file, not the parts of a table")
	}
	opened := map[string]io.Reader{}
	for name, file := range files {
		r, size, err := openTable(file)
		if err != nil {
			return err
		}
		defer r.Close()
		opened[name] = r
		if size > 0 {
			opened[name] = watched(r, size, cmd.ErrOrStderr())
		}
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	if f.once != "" {
		ctx = client.WithIdempotencyKey(ctx, f.once)
	}
	show := registering{out: cmd.ErrOrStderr()}
	card, err := f.send(client.WithProgress(ctx, show.say), c, opened, settings)
	clearLine(cmd.ErrOrStderr())
	if err != nil {
		return notMade(err)
	}
	return sayCard(cmd.OutOrStdout(), card, f.json)
}

// notMade is why no holdout was made; where another one stands in its way, with how to see that.
func notMade(err error) error {
	if id, exists := client.ExistingHoldout(err); exists {
		return fmt.Errorf("%w; holdoutd holdouts %s shows it", plain(err), id)
	}
	return err
}

// sayCard shows the card of a holdout that was made.
func sayCard(out io.Writer, card client.Card, asJSON bool) error {
	if asJSON {
		return printJSON(out, card)
	}
	printCard(out, card)
	return nil
}

func (f *uploadFlags) send(ctx context.Context, c *client.Client, opened map[string]io.Reader, s client.Settings) (client.Card, error) {
	switch {
	case opened[""] == nil && opened["check"] != nil:
		return c.CreateGivenWithCheck(ctx, opened["training"], opened["check"], opened["holdout"], s)
	case opened[""] == nil:
		return c.CreateGiven(ctx, opened["training"], opened["holdout"], s)
	case f.dry:
		return c.DryRun(ctx, opened[""], s)
	}
	return c.CreateHoldout(ctx, opened[""], s)
}

// filesOf are the files by the names of their parts; one whole table has no name.
func filesOf(args []string) (map[string]string, error) {
	files := map[string]string{}
	for _, arg := range args {
		part, file, ok := strings.Cut(arg, "=")
		if !ok || !slices.Contains(partNames, part) {
			part, file = "", arg
		}
		if files[part] != "" {
			return nil, misuse("upload takes one file, or the parts training=FILE, holdout=FILE and perhaps check=FILE, each once")
		}
		if file == "" {
			return nil, misuse("%q names no file", arg)
		}
		files[part] = file
	}
	if files[""] != "" && len(files) > 1 || files[""] == "" && (files["training"] == "" || files["holdout"] == "") {
		return nil, misuse("upload takes one file, or the parts training=FILE, holdout=FILE and perhaps check=FILE")
	}
	return files, nil
}

// openTable opens a file; the size of what is no file, such as a pipe, is 0.
func openTable(file string) (r *os.File, size int64, err error) {
	if file == "-" {
		return os.Stdin, 0, nil
	}
	if r, err = os.Open(file); err != nil {
		return nil, 0, fmt.Errorf("cannot read the table: %w", err)
	}
	info, err := r.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", file)
	}
	if err != nil {
		r.Close()
		return nil, 0, fmt.Errorf("cannot read the table: %w", err)
	}
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	return r, size, nil
}
