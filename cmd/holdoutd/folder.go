package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// joinFolders makes one file of each folder of part files. remove deletes them.
func joinFolders(ctx context.Context, cmd *cobra.Command, files map[string]string) (joined map[string]string, remove func(), err error) {
	joined, work := maps.Clone(files), ""
	remove = func() {
		if work != "" {
			_ = os.RemoveAll(work) // in the folder of temporary files
		}
	}
	for _, part := range slices.Sorted(maps.Keys(files)) {
		if info, err := os.Stat(files[part]); err != nil || !info.IsDir() {
			continue // what is no file is said where it is opened
		}
		if work == "" {
			if work, err = os.MkdirTemp("", "holdoutd-upload-"); err != nil {
				return nil, remove, err
			}
		}
		joined[part] = filepath.Join(work, "table-"+part+".parquet")
		if err := joinFolder(ctx, cmd, files[part], joined[part]); err != nil {
			remove()
			return nil, func() {}, fmt.Errorf("cannot read the table: %w", err)
		}
	}
	return joined, remove, nil
}

// joinFolder writes the part files of a folder as one Parquet file, and says what is not in it.
func joinFolder(ctx context.Context, cmd *cobra.Command, folder, file string) (err error) {
	out := cmd.ErrOrStderr()
	parts, err := ingest.PartFiles(folder)
	if err != nil {
		return err
	}
	drawn := terminalWidth(out) > 0
	decoded := file + ".columns"
	result, err := ingest.Join(ctx, parts, decoded, ingest.Limits{}, func(done int) {
		if drawn {
			fmt.Fprintf(out, "\r\x1b[Kreading %d of %d part files", done, len(parts))
		}
	})
	clearLine(out)
	switch e := (*ingest.Error)(nil); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &e) && e.Kind == ingest.DiskFull:
		return fmt.Errorf("the folder of temporary files has no room for the part files; TMPDIR names another one: %w", err)
	case e != nil:
		return errors.New(e.Says())
	case err != nil:
		return err
	}
	fmt.Fprintf(out, "%s: %s part files, %s rows\n", folder, thousands(int64(len(parts))), thousands(result.Rows))
	for _, s := range result.Skipped {
		fmt.Fprintf(out, "left out   %s: %s\n", printable(s.Name), printable(s.Reason))
	}
	for _, w := range result.Warnings {
		fmt.Fprintf(out, "warning    %s\n", printable(w.Detail))
	}
	for _, f := range result.Schema.Fields {
		if f.Note != "" {
			fmt.Fprintf(out, "note       %s: %s\n", printable(f.Name), printable(f.Note))
		}
	}
	return exportTo(file, decoded, result.Orders)
}

// exportTo writes a decoded table as Parquet, and removes what was decoded.
func exportTo(file, decoded string, orders map[string][]string) (err error) {
	t, err := dataset.Open(decoded)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(), os.RemoveAll(decoded)) }()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(ingest.ExportOrdered(f, t, orders), f.Close())
}
