package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
)

// Join decodes the files of one table, as [Decode] does each, and writes their rows one behind another as one table to dir, which must not exist. Memory does not grow
// with the rows; beside dir it needs room for them once more, in a directory that it removes. report is called after each file.
//
//   - A file without rows counts for nothing. A column that a file has not, or has no values of, is null there.
//   - A column that is skipped in one file is skipped, with that file's reason; one that is of two kinds, or counts in two units, is an error.
//   - The keys of the paths are columns behind the others: numbers, where all are whole numbers that a float64 holds, else texts. Where all files have the column
//     themselves, as Polars writes them, it is theirs.
//
// An error is an [*Error], whose Detail begins with the path of the file that it is about.
func Join(ctx context.Context, files []PartFile, dir string, lim Limits, report func(done int)) (res Result, err error) {
	return joinIn(ctx, nil, files, dir, lim, report)
}

// joinIn is Join of files in a directory, where root is not nil.
func joinIn(ctx context.Context, root *os.Root, files []PartFile, dir string, lim Limits, report func(done int)) (res Result, err error) {
	j := joined{root: root, lim: lim.withDefaults(), work: dir + partsSuffix}
	defer func() {
		for _, t := range j.tables {
			if t != nil { // its file could not be decoded
				err = errorsJoin(err, t.Close())
			}
		}
		if err != nil {
			res, err = Result{}, classify(err, j.bytes)
		}
		err = errorsJoin(err, os.RemoveAll(j.work))
	}()
	if err := os.Mkdir(j.work, 0o700); err != nil {
		return Result{}, err
	}
	for i, f := range files {
		if err := j.decode(ctx, f); err != nil {
			return Result{}, err
		}
		report(i + 1)
	}
	if len(j.files) == 0 {
		return Result{}, refuse(NoRows, "the part files have no rows")
	}
	for i, as := range Reconciled(j.results) {
		if as != nil {
			if err := j.decodeAs(ctx, i, as); err != nil {
				return Result{}, err
			}
		}
	}
	if err := j.plan(); err != nil {
		return Result{}, err
	}
	return j.write(dir)
}

// partsSuffix names the directory beside a joined table in which its files are decoded.
const partsSuffix = ".parts"

// joined is a table that comes in files, those with rows.
type joined struct {
	root    *os.Root
	lim     Limits
	work    string
	files   []PartFile
	results []Result
	tables  []*dataset.Table
	columns []dataset.Field
	keys    []string // the columns among them that only the paths have
	result  Result
	bytes   int64 // of its values, once it is known
}

func (j *joined) decode(ctx context.Context, f PartFile) error {
	j.files, j.results, j.tables = append(j.files, f), append(j.results, Result{}), append(j.tables, nil)
	last := len(j.files) - 1
	err := j.decodeAs(ctx, last, nil)
	if e := (*Error)(nil); errors.As(err, &e) && e.Kind == NoRows { // Spark writes one for a task that has none
		j.files, j.results, j.tables, err = j.files[:last], j.results[:last], j.tables[:last], nil
	}
	return err
}

// decodeAs decodes a file, or decodes it again.
func (j *joined) decodeAs(ctx context.Context, i int, as map[string]dataset.Kind) (err error) {
	dir := j.part(i)
	if j.tables[i] != nil {
		if err := errors.Join(j.tables[i].Close(), os.RemoveAll(dir)); err != nil {
			return err
		}
		j.tables[i] = nil
	}
	if j.root != nil {
		j.results[i], err = j.files[i].decode(ctx, j.root, dir, j.lim, as)
	} else {
		j.results[i], err = DecodeAs(ctx, j.files[i].Path, dir, j.lim, as)
	}
	if err != nil {
		return j.files[i].blamed(err)
	}
	t, err := dataset.Open(dir)
	if err != nil {
		return err
	}
	j.tables[i] = t
	return nil
}

// part is the directory in which a file is decoded.
func (j *joined) part(i int) string { return filepath.Join(j.work, strconv.Itoa(i)) }

// plan decides which columns there are.
func (j *joined) plan() error {
	skipped := map[string]bool{}
	for _, r := range j.results {
		for _, s := range r.Skipped {
			if !skipped[s.Name] {
				skipped[s.Name] = true
				j.result.Skipped = append(j.result.Skipped, s)
			}
		}
		for _, w := range r.Warnings {
			if !slices.ContainsFunc(j.result.Warnings, func(known Warning) bool { return known.Code == w.Code && known.Column == w.Column }) {
				j.result.Warnings = append(j.result.Warnings, w)
			}
		}
	}
	first := map[string]int{} // the file that has a column with values first
	place := map[string]int{}
	for i, r := range j.results {
		for _, f := range r.Schema.Fields {
			at, known := place[f.Name]
			switch {
			case skipped[f.Name]:
			case !known:
				first[f.Name], place[f.Name] = i, len(j.columns)
				j.columns = append(j.columns, f)
			case !Alike(j.columns[at], f):
				return refuse(Unsupported, "%s and %s differ: the column %q is %s in the one and %s in the other; write it with one type in all files", j.files[first[f.Name]].Path, j.files[i].Path,
					f.Name, Described(j.columns[at]), Described(f))
			case j.columns[at].Source == emptySource:
				first[f.Name], j.columns[at] = i, f
			}
		}
	}
	for _, f := range j.columns {
		j.keepOrder(f)
		j.keepCategory(f)
	}
	return j.planKeys(skipped)
}

// keepOrder keeps the order of a column's categories where all files that have the column say the same.
func (j *joined) keepOrder(f dataset.Field) {
	var order []string
	for _, r := range j.results {
		has := slices.ContainsFunc(r.Schema.Fields, func(g dataset.Field) bool { return g.Name == f.Name && g.Source != emptySource })
		if !has {
			continue
		}
		if o := r.Orders[f.Name]; o == nil || order != nil && !slices.Equal(o, order) {
			return
		}
		order = r.Orders[f.Name]
	}
	if order != nil {
		if j.result.Orders == nil {
			j.result.Orders = map[string][]string{}
		}
		j.result.Orders[f.Name] = order
	}
}

// keepCategory keeps that a column has categories where all files that have the column say so.
func (j *joined) keepCategory(f dataset.Field) {
	said := false
	for _, r := range j.results {
		if slices.ContainsFunc(r.Schema.Fields, func(g dataset.Field) bool { return g.Name == f.Name && g.Source != emptySource }) {
			if said = slices.Contains(r.Categories, f.Name); !said {
				return
			}
		}
	}
	if said {
		j.result.Categories = append(j.result.Categories, f.Name)
	}
}

// planKeys adds the columns that the paths name.
func (j *joined) planKeys(skipped map[string]bool) error {
	for k, key := range j.files[0].Keys {
		has := func(r Result) bool {
			return slices.ContainsFunc(r.Schema.Fields, func(f dataset.Field) bool { return f.Name == key.Name })
		}
		switch {
		case skipped[key.Name] || !slices.ContainsFunc(j.results, func(r Result) bool { return !has(r) }):
			continue
		case slices.ContainsFunc(j.results, has):
			return refuse(Unsupported, "some of the files have a column %q, and all of their paths have it; write it into all files, or into none", key.Name)
		}
		field, values := dataset.Field{Name: key.Name, Kind: dataset.Number, Source: "INT64"}, 0
		for _, f := range j.files {
			if f.Keys[k].Null {
				continue
			}
			values++
			if n, err := strconv.ParseInt(f.Keys[k].Value, 10, 64); err != nil || n > maxExact || n < -maxExact || strings.HasPrefix(f.Keys[k].Value, "+") {
				field.Kind, field.Source = dataset.Text, "STRING"
			}
		}
		if values == 0 {
			field.Kind, field.Source = dataset.Text, "STRING"
		}
		j.columns, j.keys = append(j.columns, field), append(j.keys, key.Name)
	}
	return nil
}

// write writes the columns, each with the rows of all files.
func (j *joined) write(dir string) (res Result, err error) {
	for _, t := range j.tables {
		j.result.Rows += int64(t.Rows())
	}
	if j.result.Rows > dataset.MaxRows {
		return Result{}, refuse(TooLarge, "the part files have %d rows together; a table can have %d", j.result.Rows, int64(dataset.MaxRows))
	}
	for i, t := range j.tables {
		t.Spend(j.part(i), 1)
	}
	for _, f := range j.columns {
		j.bytes += f.Kind.Width() * j.result.Rows
	}
	w, err := dataset.NewPassing(dir)
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if err != nil {
			err = errorsJoin(err, w.Abort())
		}
	}()
	b := batch{textsLeft: j.lim.MaxTextBytes}
	for _, f := range j.columns {
		if err := w.Begin(f); err != nil {
			return Result{}, err
		}
		b.begin(j.lim)
		err := j.writeColumn(w, &b, f)
		if skip := (*skipError)(nil); errors.As(err, &skip) {
			j.result.Skipped = append(j.result.Skipped, Skipped{Name: f.Name, Reason: skip.of(f.Source).reason(f.Name, otherWriter)})
			if err := w.Drop(); err != nil {
				return Result{}, err
			}
			j.spent(f)
			continue
		}
		if err != nil {
			return Result{}, err
		}
		var dictionary []string
		if f.Kind == dataset.Text {
			dictionary, b.textsLeft = b.dictionary, b.textsLeft-b.textBytes
		}
		if err := w.End(dictionary); err != nil {
			return Result{}, err
		}
		j.result.Schema.Fields = append(j.result.Schema.Fields, f)
		j.spent(f)
	}
	if len(j.result.Schema.Fields) == 0 {
		return Result{}, refuse(NoUsableColumns, "no column is taken of all part files")
	}
	return j.result, w.Close()
}

// spent gives the place of a column back that was written: the table takes it.
func (j *joined) spent(f dataset.Field) {
	for _, t := range j.tables {
		t.Spent(f.Name)
	}
}

func (j *joined) writeColumn(w *dataset.Writer, b *batch, f dataset.Field) error {
	for i, t := range j.tables {
		column, has := t.Lookup(f.Name)
		if slices.Contains(j.keys, f.Name) {
			has = false
		}
		var codes []uint32 // of the file's texts in the whole table
		if has && f.Kind == dataset.Text {
			codes = make([]uint32, column.Dictionary.Len()+1)
			for k := 1; k < len(codes); k++ {
				var err error
				if codes[k], err = b.code([]byte(column.Dictionary.Text(k - 1))); err != nil {
					return err
				}
			}
		}
		if b.kind = f.Kind; !has {
			if err := j.fill(b, i, f, min(t.Rows(), batchRows)); err != nil {
				return err
			}
		}
		for from := 0; from < t.Rows(); from += batchRows {
			to := min(from+batchRows, t.Rows())
			if has {
				switch f.Kind {
				case dataset.Bool:
					copy(b.bools, column.Bools[from:to])
				case dataset.Text:
					for k, code := range column.Codes[from:to] {
						b.codes[k] = codes[code]
					}
				default:
					copy(b.numbers, column.Numbers[from:to])
				}
			}
			if err := b.writeTo(w, to-from); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill puts into the batch what rows of a file have of a column that the file has not: what its path says, or null.
func (j *joined) fill(b *batch, file int, f dataset.Field, rows int) (err error) {
	number, code := math.NaN(), uint32(0)
	for _, k := range j.files[file].Keys {
		if k.Name != f.Name || k.Null || !slices.Contains(j.keys, f.Name) {
			continue
		}
		if f.Kind == dataset.Number {
			number, err = strconv.ParseFloat(k.Value, 64)
		} else {
			code, err = b.code([]byte(k.Value))
		}
	}
	for i := range rows {
		b.numbers[i], b.bools[i], b.codes[i] = number, dataset.NullBool, code
	}
	return err
}

// Reconciled says how columns of files of one table are to be read again ([DecodeAs]), so that the files are alike: integers that one file has beyond 2^53 are texts in all of
// them, and a column that has no values in one file has nulls of the kind that it has in another. A file that is well has nil.
func Reconciled(files []Result) []map[string]dataset.Kind {
	kinds, again := map[string]dataset.Kind{}, make([]map[string]dataset.Kind, len(files))
	digits := map[string]bool{}
	for _, r := range files {
		for _, f := range r.Schema.Fields {
			if kinds[f.Name] == 0 {
				kinds[f.Name] = f.Kind
			}
			if f.Kind == dataset.Text && Whole(f.Source) {
				kinds[f.Name], digits[f.Name] = f.Kind, true
			}
		}
	}
	for i, r := range files {
		read := func(name string) {
			if again[i] == nil {
				again[i] = map[string]dataset.Kind{}
			}
			again[i][name] = kinds[name]
		}
		for _, f := range r.Schema.Fields {
			if f.Kind == dataset.Number && Whole(f.Source) && digits[f.Name] {
				read(f.Name)
			}
		}
		for _, s := range r.Skipped {
			if s.Empty && kinds[s.Name] != 0 {
				read(s.Name)
			}
		}
	}
	return again
}

// Alike reports whether columns of two files can be one: they are of one kind, and count in one unit. A column of the null type is like any of its kind.
func Alike(a, b dataset.Field) bool {
	if a.Kind != b.Kind {
		return false
	}
	return a.Source == emptySource || b.Source == emptySource || unit(a) == unit(b)
}

// unit is what the values count, where the writer said it.
func unit(f dataset.Field) string {
	if strings.HasPrefix(f.Source, "DECIMAL(") { // whose note is about digits
		return ""
	}
	return f.Note
}

// emptySource is that of columns that can have no values.
const emptySource = "NULL"

// Described is a column in a sentence: number (INT64).
func Described(f dataset.Field) string {
	if u := unit(f); u != "" {
		return fmt.Sprintf("%v (%s, %s)", f.Kind, f.Source, u)
	}
	return fmt.Sprintf("%v (%s)", f.Kind, f.Source)
}
