package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

// downloads are the parts of a holdout that can be downloaded.
var downloads = []string{"training", "features"}

func downloadCommand() *cobra.Command {
	var f serverFlags
	var out string
	cmd := &cobra.Command{
		Use:   "download training|features [HOLDOUT]",
		Short: "Download the part of a holdout that is yours to look at, as Parquet",
		Long: `Downloads the training part, or, of a holdout that was created with --features public, the features of its rows, for which a
model is asked about by its predictions (ask --predictions, gate). It costs nothing; the first look fixes the split.

The file appears when it is whole. On standard output only where that is no terminal. A large training part of a table of a source
is several files: --out is then a folder, and the same command again goes on where an earlier one was cut off.

` + findingHelp,
		Example: `  holdoutd download training flights --out training.parquet
  holdoutd download features flights --out features.parquet
  holdoutd download training visits --out training/
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
			open := map[string]func(context.Context, *client.Client, string) (io.ReadCloser, int, error){"training": openTraining, "features": openFeatures}[args[0]]
			switch {
			case open == nil:
				return misuse("there is no part %q to download%s", args[0], hint(nearest.Name(args[0], downloads), "there are training and features"))
			case out == "" && terminalWidth(cmd.OutOrStdout()) > 0:
				return misuse("name a file for it: --out %s.parquet", args[0])
			}
			c, card, err := f.open(ctx, first(args[1:]))
			if err != nil {
				return err
			}
			body, pieces, err := open(ctx, c, card.ID)
			if err != nil {
				return err
			}
			defer body.Close()
			switch {
			case pieces > 1 && out == "":
				return misuse("the training part is %d files: name a folder for them: --out training", pieces)
			case pieces > 1:
				body.Close()
				return downloadPieces(ctx, c, card.ID, pieces, out, cmd.ErrOrStderr())
			case out == "":
				_, err := io.Copy(cmd.OutOrStdout(), body)
				return err
			}
			return writeWhole(out, body)
		}),
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVarP(&out, "out", "o", "", "the file to write, or the folder where there are several (default: standard output)")
	return cmd
}

func openTraining(ctx context.Context, c *client.Client, id string) (io.ReadCloser, int, error) {
	piece, err := c.TrainingPiece(ctx, id, 0, 0)
	return piece, piece.Pieces, err
}

func openFeatures(ctx context.Context, c *client.Client, id string) (io.ReadCloser, int, error) {
	body, err := c.Features(ctx, id)
	return body, 1, err
}

// downloadPieces writes each piece of a training part to a file of a folder. A file that is there is whole, and what was cut off goes on where it ended.
func downloadPieces(ctx context.Context, c *client.Client, id string, pieces int, dir string, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write to %s, which must be a folder for %d files: %w", dir, pieces, err)
	}
	for i := range pieces {
		file := filepath.Join(dir, pieceName(id, i, pieces))
		if _, err := os.Stat(file); err == nil {
			continue
		}
		if terminalWidth(out) > 0 {
			fmt.Fprintf(out, "\r\x1b[Kdownloading %d of %d", i+1, pieces)
		}
		if err := downloadPiece(ctx, c, id, i, file); err != nil {
			clearLine(out)
			return fmt.Errorf("%w; %d of %d files are there, and the same command goes on with the others", plain(err), i, pieces)
		}
	}
	clearLine(out)
	return nil
}

// pieceName has the holdout's id, so that a folder which another one was downloaded to is not taken for a part of this.
func pieceName(id string, piece, pieces int) string {
	return fmt.Sprintf("training-%s-%05d-of-%05d.parquet", id, piece, pieces)
}

// downloadPiece writes one piece, beginning with what an earlier attempt has left of it. Its file has its name when it is as long as the server says and begins and ends as Parquet does.
func downloadPiece(ctx context.Context, c *client.Client, id string, piece int, file string) error {
	partial := file + ".part"
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	p, err := c.TrainingPiece(ctx, id, piece, have)
	if refused := new(client.Problem); have > 0 && errors.As(err, &refused) && refused.Code == "range-not-satisfiable" { // what is there may be all of it, or of something else
		have = 0
		p, err = c.TrainingPiece(ctx, id, piece, 0)
	}
	if err != nil {
		return err
	}
	defer p.Close()
	if err := f.Truncate(p.From); err != nil {
		return err
	}
	if _, err := f.Seek(p.From, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(f, p); err != nil {
		return fmt.Errorf("piece %d was cut off: %w", piece, err)
	}
	if err := wholeParquet(f, p.Bytes); err != nil {
		return errors.Join(fmt.Errorf("piece %d: %w", piece, err), os.Remove(partial))
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(partial, file)
}

// parquetMagic is how a Parquet file begins and ends.
const parquetMagic = "PAR1"

// wholeParquet looks whether a file has so many bytes, where that is known, and whether its ends are those of a Parquet file.
func wholeParquet(f *os.File, bytes int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	begin, end := make([]byte, len(parquetMagic)), make([]byte, len(parquetMagic))
	if bytes >= 0 && info.Size() != bytes || info.Size() < int64(2*len(parquetMagic)) {
		return fmt.Errorf("%d bytes arrived, of %d", info.Size(), bytes)
	}
	if _, err := f.ReadAt(begin, 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil {
		return err
	}
	if string(begin) != parquetMagic || string(end) != parquetMagic {
		return errors.New("what arrived is no Parquet file")
	}
	return nil
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
