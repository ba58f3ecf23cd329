package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

// downloads are the parts of a holdout that can be downloaded.
var downloads = []string{"training", "features", "retired"}

func downloadCommand() *cobra.Command {
	var f serverFlags
	var out string
	cmd := &cobra.Command{
		Use:   "download training|features|retired [HOLDOUT]",
		Short: "Download the part of a holdout that is yours to look at, as Parquet",
		Long: `Downloads the training part, or, of a holdout that was created with --features public, the features of its rows, for which a
model is asked about by its predictions (ask --predictions, gate), or, of a retired one, its rows and those of its check
part, as a further training part. It costs nothing; the first look fixes the split.

The file appears when it is whole. On standard output only where that is no terminal.

` + findingHelp,
		Example: `  holdoutd download training flights --out training.parquet
  holdoutd download features flights --out features.parquet
  holdoutd download retired flights-q1 --out more.parquet
  holdoutd download training > training.parquet`,
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return downloads, noFiles
			case 1:
				return f.holdouts(cmd), noFiles
			}
			return nil, noFiles
		},
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			open := map[string]func(*client.Client, string) (io.ReadCloser, error){
				"training": func(c *client.Client, id string) (io.ReadCloser, error) { return c.Training(ctx, id) },
				"features": func(c *client.Client, id string) (io.ReadCloser, error) { return c.Features(ctx, id) },
				"retired":  func(c *client.Client, id string) (io.ReadCloser, error) { return c.Retired(ctx, id) },
			}[args[0]]
			switch {
			case open == nil:
				return misuse("there is no part %q to download%s", args[0], hint(nearest.Name(args[0], downloads), "there are training, features and retired"))
			case out == "" && terminalWidth(cmd.OutOrStdout()) > 0:
				return misuse("name a file for it: --out %s.parquet", args[0])
			}
			c, card, err := f.open(ctx, first(args[1:]))
			if err != nil {
				return err
			}
			body, err := open(c, card.ID)
			if err != nil {
				return err
			}
			defer body.Close()
			if out == "" {
				_, err := io.Copy(cmd.OutOrStdout(), body)
				return err
			}
			return writeWhole(out, body)
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVarP(&out, "out", "o", "", "the file to write (default: standard output)")
	return cmd
}

// writeWhole writes a file that is not there before it is whole.
func writeWhole(file string, body io.Reader) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	defer os.Remove(temporary.Name())
	_, err = io.Copy(temporary, body)
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(temporary.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	return nil
}
