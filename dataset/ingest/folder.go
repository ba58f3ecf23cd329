package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdoutd/holdoutd/dataset"
)

// PartFile is one of the files that a table was written in.
type PartFile struct {
	Path string
	Keys []PartitionKey // what its directories say of all its rows, from the outermost one
	// Size and Modified are what [RunFiles] must find still: bytes, and nanoseconds since 1970.
	Size, Modified int64
}

// decode decodes a file in a directory.
func (p PartFile) decode(ctx context.Context, root *os.Root, dir string, lim Limits, as map[string]dataset.Kind) (Result, error) {
	res, err := decodeFile(ctx, func() (*os.File, error) {
		f, err := root.OpenFile(p.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // what is no file must not be waited for
		if err != nil {
			return nil, notThere(err)
		}
		info, err := f.Stat()
		if err == nil {
			err = p.unchanged(info)
		}
		if err != nil {
			return nil, errorsJoin(err, f.Close())
		}
		return f, nil
	}, dir, lim, as)
	if err != nil {
		return res, err
	}
	info, err := root.Stat(p.Path) // once more, after all was read
	if err != nil {
		err = notThere(err)
	} else {
		err = p.unchanged(info)
	}
	if err != nil {
		return Result{}, errorsJoin(err, os.RemoveAll(dir))
	}
	return res, nil
}

// blamed is an error that says which file it is about.
func (p PartFile) blamed(err error) error {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return err
	}
	said := *e
	said.Detail = p.Path + ": " + e.Detail
	return &said
}

// unchanged refuses a file that is not the one that was looked at.
func (p PartFile) unchanged(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return refuse(Unsupported, "it is no file")
	case info.Size() != p.Size || info.ModTime().UnixNano() != p.Modified:
		return refuse(Unsupported, "it was changed while the table was read; name the table again when it is written")
	}
	return nil
}

// notThere is about a file of a directory that cannot be opened.
func notThere(err error) error {
	if machineFault(err) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return &Error{Kind: Unavailable, Detail: "the server's disk or system failed while the file was opened; name the table again", Err: err}
	}
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		return &Error{Kind: Unsupported, Detail: "it cannot be read: " + cause.Err.Error(), Err: err}
	}
	return err
}

// PartitionKey is a column that a directory names, such as region=a.
type PartitionKey struct {
	Name, Value string
	Null        bool
}

const (
	partFileSuffix = ".parquet"
	// nullPartition is what the directory of a missing value is called, by Hive and by all after it.
	nullPartition = "__HIVE_DEFAULT_PARTITION__"
)

// PartFiles returns the files *.parquet below a folder in the order of their paths. What begins with _ or a point is no part of a table: markers, checksums, what a writer
// has not finished. Folders of Delta, Iceberg and Hudi are refused with a line that exports them: they keep files of rows that were changed or deleted since.
func PartFiles(folder string) ([]PartFile, error) {
	if err := refuseVersions(folder); err != nil {
		return nil, err
	}
	var files []PartFile
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != folder && strings.ContainsAny(entry.Name()[:1], "_.")
		if err == nil && !hidden && path != folder && entry.Type()&fs.ModeSymlink != 0 {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				return fmt.Errorf("%s is a link to a directory, whose rows would be left out; put the directory in its place", path)
			}
		}
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || filepath.Ext(path) != partFileSuffix:
			return nil
		}
		if info, err := os.Stat(path); err != nil { // of a link, what it leads to
			return err
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no file", path)
		}
		below, err := filepath.Rel(folder, filepath.Dir(path))
		files = append(files, PartFile{Path: path, Keys: partitionKeys(below)})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no file *%s in %s", partFileSuffix, folder)
	}
	first := files[0]
	for _, f := range files {
		if names := keyNames(f); !slices.Equal(names, keyNames(first)) {
			return nil, fmt.Errorf("%s and %s are not of one table: their paths name the columns %q and %q", first.Path, f.Path, keyNames(first), names)
		}
	}
	for i, name := range keyNames(first) {
		if slices.Contains(keyNames(first)[:i], name) {
			return nil, fmt.Errorf("the path of %s names the column %q twice; rename one of the directories", first.Path, name)
		}
	}
	return files, nil
}

// refuseVersions refuses folders whose files are not the rows of one table: which of them are is in a log beside them.
func refuseVersions(folder string) error {
	is := func(name string) bool {
		info, err := os.Stat(filepath.Join(folder, name))
		return err == nil && info.IsDir()
	}
	const older = "whose folder has rows of older versions too; export one, in "
	switch {
	case is("_delta_log"):
		return fmt.Errorf("%s is a Delta table, %sPython: deltalake.DeltaTable(%s).to_pandas().to_parquet(\"table.parquet\")", folder, older, quotedPath(folder))
	case is(".hoodie"):
		return fmt.Errorf("%s is a Hudi table, %sSpark: spark.read.format(\"hudi\").load(%s).toPandas().to_parquet(\"table.parquet\")", folder, older, quotedPath(folder))
	}
	if versions, _ := filepath.Glob(filepath.Join(folder, "metadata", "*.metadata.json")); len(versions) > 0 {
		newest := slices.MaxFunc(versions, func(a, b string) int { // v9 and v10 in the one convention, 00009-… and 00010-… in the other
			return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
		})
		return fmt.Errorf("%s is an Iceberg table, %sPython: polars.scan_iceberg(%s).collect().write_parquet(\"table.parquet\")", folder, older, quotedPath(newest))
	}
	return nil
}

// quotedPath is a path in a line of Python.
func quotedPath(path string) string {
	b, err := json.Marshal(path)
	if err != nil {
		return `"…"`
	}
	return string(b)
}

// partitionKeys are the columns that directories between the folder and a file name.
func partitionKeys(directories string) (keys []PartitionKey) {
	plain := func(escaped string) string {
		if text, err := url.PathUnescape(escaped); err == nil {
			return text
		}
		return escaped
	}
	for d := range strings.SplitSeq(directories, string(filepath.Separator)) {
		if name, value, ok := strings.Cut(d, "="); ok {
			keys = append(keys, PartitionKey{Name: plain(name), Value: plain(value), Null: value == nullPartition})
		}
	}
	return keys
}

func keyNames(f PartFile) (names []string) {
	for _, k := range f.Keys {
		names = append(names, k.Name)
	}
	return names
}
