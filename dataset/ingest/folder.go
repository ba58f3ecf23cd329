package ingest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PartFile is one of the files that a table was written in.
type PartFile struct {
	Path string
	Keys []PartitionKey // what its directories say of all its rows, from the outermost one
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
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || filepath.Ext(path) != partFileSuffix:
			return nil
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // a link to a file is one
			return err
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
