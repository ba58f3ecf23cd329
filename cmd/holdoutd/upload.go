package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/api"
)

// partNames are the pieces of a table that was split before, in the order in which they are sent.
var partNames = []string{"training", "check", "holdout"}

const dryRunParameter = "dry_run"

// uploadFlags are the parameters of an upload, a flag each, and how it is sent.
type uploadFlags struct {
	serverFlags
	json bool
	once string // Idempotency-Key
	dry  bool
}

func uploadCommand() *cobra.Command {
	var f uploadFlags
	cmd := &cobra.Command{
		Use:   "upload FILE|FOLDER | upload training=FILE [check=FILE] holdout=FILE | upload --path NAME/TABLE",
		Short: "Upload a Parquet file and make a holdout of it",
		Long: `Uploads a Parquet file to a running server, which splits it and keeps the holdout part secret, and prints the card of the new
holdout with its warnings. Three settings matter: --unit (what is independent of the others), --label (what you predict) and
--questions (how many answers you will ever want; fewer are narrower). --dry-run says what would be made, and makes nothing.
Where a column names something of which each has several rows, such as customers, --unit must be said; on a terminal you are asked.
FILE - is standard input. A table that you have split yourself is uploaded as its parts. It needs an admin key.

Of a FOLDER all files *.parquet are one table, as Spark, Dask and Polars write it. Directories such as region=a are columns, and a
column that a file has not is null there. They are joined in a temporary file first (TMPDIR says where). Delta, Iceberg and
Hudi tables must be exported: their folders have rows of older versions, too.

A table that is there already, in a source of the server's operator (holdoutd serve --source), is named by --path, and not sent:
a Parquet file or a folder of them, or a table of ClickHouse or Trino.

Until something of a new holdout is shown the same file may be uploaded again with other settings. Each flag is a parameter
of the interface (docs/API.md); one that the mechanism does not take is refused.

` + findingHelp,
		Example: `  holdoutd upload flights.parquet --name flights --questions 300
  holdoutd upload visits.parquet --name visits --unit customer_id --label churned --holdout 0.3
  holdoutd upload visits.parquet --unit customer_id --dry-run
  holdoutd upload orders/ --name orders --unit customer_id
  holdoutd upload --path lake/orders/2026 --name orders --unit customer_id
  holdoutd upload training=a.parquet holdout=b.parquet --name given --json`,
		Args: cobra.MaximumNArgs(len(partNames)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"parquet"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: asClient(f.run),
	}
	for _, p := range api.UploadParameters() {
		name := strings.ReplaceAll(p.Name, "_", "-")
		if p.Kind == "boolean" {
			cmd.Flags().BoolVar(&f.dry, name, false, p.Says)
			continue
		}
		cmd.Flags().Var(&setting{parameter: p}, name, p.Says)
	}
	f.serverFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.once, "idempotency-key", "", "of your own: the same upload with the same key makes one holdout, and prints its card again (default: a new one)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the card as JSON")
	return cmd
}

// A setting is the flag of a parameter.
type setting struct {
	parameter api.Parameter
	value     json.RawMessage
}

func (s *setting) String() string { return strings.Trim(string(s.value), `"`) }

// Type is what the help calls the value.
func (s *setting) Type() string {
	return map[string]string{"integer": "int", "number": "number", "string": "text"}[s.parameter.Kind]
}

// Set reads a value. A zero that would mean "not given" is refused here as the server refuses it: it could not be sent.
func (s *setting) Set(text string) error {
	switch s.parameter.Kind {
	case "string":
		if text == "" {
			return errors.New("is empty; leave it out for the default")
		}
		s.value, _ = json.Marshal(text)
		return nil
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("must be a whole number")
		}
		s.value = json.RawMessage(strconv.FormatInt(n, 10))
	default:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || x-x != 0 || strings.ContainsAny(text, "xXpP_") {
			return errors.New("must be a number")
		}
		s.value = json.RawMessage(strconv.FormatFloat(x, 'g', -1, 64))
	}
	if string(s.value) == "0" && !s.parameter.Zero {
		return errors.New("must not be zero; leave it out for the default")
	}
	return nil
}

// settings are those that were named.
func (f *uploadFlags) settings(cmd *cobra.Command) (client.Settings, error) {
	given := map[string]json.RawMessage{}
	for _, p := range api.UploadParameters() {
		flag := cmd.Flags().Lookup(strings.ReplaceAll(p.Name, "_", "-"))
		if s, ok := flag.Value.(*setting); ok && flag.Changed {
			given[p.Name] = s.value
		}
	}
	var s client.Settings
	text, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (f *uploadFlags) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	settings, err := f.settings(cmd)
	if err != nil {
		return misused{err}
	}
	var files map[string]string
	switch {
	case settings.Path == "":
		files, err = filesOf(args)
	case len(args) > 0:
		err = misuse("--path names the table; leave out the file")
	}
	if err != nil {
		return err
	}
	if split := cmd.Flags().Lookup("split"); len(files) > 1 && split.Changed && settings.Split != "given" {
		return misuse("--split is given where the parts are uploaded, not %s", settings.Split)
	}
	if len(files) > 1 && f.dry {
		return misuse("--dry-run takes one file, not the parts of a table")
	}
	c, err := f.connect()
	if err != nil {
		return err
	}
	files, remove, err := joinFolders(ctx, cmd, files)
	if err != nil {
		return err
	}
	defer remove()
	if f.once != "" {
		ctx = client.WithIdempotencyKey(ctx, f.once)
	}
	card, err := f.sendFiles(ctx, cmd, c, files, settings)
	if choices, undecided := client.UnitChoices(err); undecided && asks(cmd, files) {
		if settings.Unit, err = askUnit(ctx, cmd, choices); err != nil {
			return err
		}
		card, err = f.sendFiles(ctx, cmd, c, files, settings)
	}
	if id, exists := client.ExistingHoldout(err); exists {
		return fmt.Errorf("%w; holdoutd holdouts %s shows it", plain(err), id)
	}
	switch {
	case err != nil:
		return err
	case f.json:
		return printJSON(cmd.OutOrStdout(), card)
	}
	printCard(cmd.OutOrStdout(), card)
	return nil
}

// sendFiles opens the files and sends them.
func (f *uploadFlags) sendFiles(ctx context.Context, cmd *cobra.Command, c *client.Client, files map[string]string, s client.Settings) (client.Card, error) {
	if out := cmd.ErrOrStderr(); s.Path != "" && terminalWidth(out) > 0 {
		fmt.Fprintf(out, "the server reads %s", printable(s.Path))
	}
	opened := map[string]io.Reader{}
	for name, file := range files {
		r, size, err := openTable(file)
		if err != nil {
			return client.Card{}, err
		}
		defer r.Close()
		opened[name] = r
		if size > 0 {
			opened[name] = watched(r, size, cmd.ErrOrStderr())
		}
	}
	defer clearLine(cmd.ErrOrStderr())
	return f.send(ctx, c, opened, s)
}

// asks reports whether a person is there to ask, and whether the files can be sent a second time.
func asks(cmd *cobra.Command, files map[string]string) bool {
	in, ok := cmd.InOrStdin().(*os.File)
	return ok && terminalWidth(in) > 0 && terminalWidth(cmd.ErrOrStderr()) > 0 && !slices.Contains(slices.Collect(maps.Values(files)), "-")
}

// askUnit asks what one observation is.
func askUnit(ctx context.Context, cmd *cobra.Command, choices []client.UnitChoice) (unit string, err error) {
	out := cmd.ErrOrStderr()
	fmt.Fprintf(out, "What is one observation? Each %s has several rows. If rows of one %s are alike, a split by rows shows a model the rows that it is judged by.\n\n", printable(choices[0].Unit), printable(choices[0].Unit))
	t := table{header: []string{"", "--unit", "ROWS EACH", "UNITS", "A SHARE TO"}, wide: 1}
	for i, choice := range choices {
		width := ""
		if choice.HalfWidth != nil {
			width = "±" + significant(*choice.HalfWidth)
		}
		t.add(strconv.Itoa(i+1), choice.Unit, strconv.FormatFloat(choice.Rows, 'g', -1, 64), thousands(choice.Units), width)
	}
	if err := t.write(out, terminalWidth(out)); err != nil {
		return "", err
	}
	fmt.Fprintf(out, "\nWhich? 1 to %d: ", len(choices))
	said := make(chan string, 1)
	go func() { // it cannot be interrupted; the process ends then
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		said <- strings.TrimSpace(line)
	}()
	select {
	case line := <-said:
		if n, err := strconv.Atoi(line); err == nil && 1 <= n && n <= len(choices) {
			return choices[n-1].Unit, nil
		}
		if i := slices.IndexFunc(choices, func(c client.UnitChoice) bool { return c.Unit == line }); i >= 0 {
			return line, nil
		}
		return "", misuse("%q is none of them; nothing was made. --unit says it beforehand", line)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (f *uploadFlags) send(ctx context.Context, c *client.Client, opened map[string]io.Reader, s client.Settings) (client.Card, error) {
	switch {
	case s.Path != "" && f.dry:
		return c.DryRun(ctx, nil, s)
	case s.Path != "":
		return c.CreateHoldout(ctx, nil, s)
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
