package holdout

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// divide splits the decoded upload, writes the parts to dir and fills in the card. What it refuses may depend on all
// rows, for nothing of them is a holdout's yet.
func (c *creation) divide(dir string) (err error) {
	unit, err := parseUnit(c.settings.Unit, c.schema())
	if err != nil {
		return err
	}
	if c.settings.Label != "" && fieldOf(c.schema(), c.settings.Label) == nil {
		return noColumn("label", c.settings.Label, c.schema())
	}
	if err := c.checkLabel(unit); err != nil {
		return err
	}
	if err := c.settings.checkCells(c.schema()); err != nil {
		return err
	}
	if c.order, err = newPlacing(); err != nil {
		return err
	}
	if c.groups == nil {
		if c.room, err = newRoom(c.work, c.roomNeeded(unit)); err != nil {
			return err
		}
	}
	c.card = c.newCard(unit)
	if err := c.decideUnit(unit); err != nil {
		return err
	}
	if c.settings.Split == splitGiven {
		err = c.keepParts(dir, unit)
	} else {
		err = c.splitTable(dir, unit)
	}
	if err != nil {
		return err
	}
	if c.card.Units.Holdout < bounds.MinUnits {
		return fail(BadUpload, "the holdout part would have 1 unit; it needs at least %d: upload a table of more rows, or a larger share as the holdout", bounds.MinUnits)
	}
	if c.card.Guarantee, err = c.settings.guarantee(c.card.Units); err != nil {
		return err
	}
	c.settings.Mechanism = string(c.card.Guarantee.Mechanism) // auto has chosen
	c.settings.Check = c.settings.chosenCheck(c.card.Units)
	c.card.Settings, c.card.Assumes = c.settings, c.settings.kind().Assumes
	wide := c.settings.usefulness(c.card.Units, c.card.Guarantee)
	c.card.Warnings, c.early = append(c.card.Warnings, wide...), append(wide, c.early...)
	if err := c.describe(dir, unit); err != nil {
		return err
	}
	c.card.Target = c.settings.target(unit, c.card.LargestUnit)
	return c.succeeds()
}

// roomNeeded is how many bytes the arrays of the split take at most.
func (c *creation) roomNeeded(unit unitRule) int64 {
	const (
		plain   = 2*8 + 1 + 2*4               // tags of two parts or of rows and of units, sides, an order of tags, and the units of each side
		ordered = 8 + 4                       // times or strata, and an order
		grouped = 4 + 4 + 3*(4+4) + 4 + 4 + 4 // units and first rows; for each of three parts sizes and starts; offsets and rows; units of the training part
		hashed  = 8 + 6*4                     // a hash table of numbers: its keys, and all its slots while it doubles, of which the last are fewer than 8/3 a row
	)
	each := int64(plain)
	if c.settings.Stratify != "" || strings.HasPrefix(c.settings.Split, splitByTimeOf) {
		each += ordered
	}
	if unit.Column != "" {
		each += grouped
		if f := fieldOf(c.schema(), unit.Column); !unit.Day && (f.Kind == dataset.Number || f.Kind == dataset.Time) {
			each += hashed
		}
	}
	rows := int64(1 << 12)
	for _, t := range c.tables {
		rows += int64(t.Rows()) + 64
	}
	return each * rows
}

// checkLabel refuses settings by which the layout of the files would tell labels.
func (c *creation) checkLabel(unit unitRule) error {
	set := c.settings
	public := set.Features == featuresPublic
	switch {
	case public && fieldOf(c.schema(), RowID) != nil:
		return invalid("features", "the table has a column %q, which with features=public numbers the rows; rename it", RowID)
	case set.Label != "" && unit.Column == set.Label:
		return invalid("unit", "the label %q cannot be the unit: a unit is an observation that has a label, such as a patient or a day", set.Label)
	case public && set.Stratify == set.Label:
		return invalid("stratify", "the label's counts would be public, and with them and the features more of the labels than is counted; stratify by a feature")
	case public && set.Split == splitByTimeOf+set.Label:
		return invalid("split", "with features=public a split by the label would tell of every held-out row that its label is late; split by a feature")
	}
	return nil
}

func (c *creation) schema() dataset.Schema {
	t := c.tables[partTable]
	if t == nil {
		t = c.tables[partTraining]
	}
	s := t.Schema()
	s.Skipped = skipReasons(c.skipped)
	return s
}

// group groups the rows of a table by the unit rule; the column is nil where units are rows.
func group(r *room, t *dataset.Table, unit unitRule) (grouping, *dataset.Column, error) {
	if unit.Column == "" {
		g := groupByRow(t.Rows())
		g.room = r
		return g, nil, nil
	}
	place := slices.IndexFunc(t.Schema().Fields, func(f dataset.Field) bool { return f.Name == unit.Column })
	if place < 0 {
		return grouping{}, nil, fmt.Errorf("holdout: no column %q", unit.Column)
	}
	column := t.Column(place)
	return groupIn(r, *column, unit.Day, t.Pieces(place)), column, nil
}

// grouped is what group returns.
type grouped struct {
	units  grouping
	column *dataset.Column
	err    error
}

func (g *grouped) of(r *room, t *dataset.Table, unit unitRule) {
	g.units, g.column, g.err = group(r, t, unit)
}

// beginGrouping groups the rows of a table by a column while the table is recognised, and returns what waits for it: to group takes one processor, and memory that is far away. What is wrong
// with the settings, or with the disk, is said by divide, after all that comes before it.
func (c *creation) beginGrouping() (wait func()) {
	t := c.tables[partTable]
	if t == nil {
		return func() {}
	}
	unit, err := parseUnit(c.settings.Unit, c.schema())
	if err != nil || unit.Column == "" {
		return func() {}
	}
	if c.room, err = newRoom(c.work, c.roomNeeded(unit)); err != nil {
		return func() {}
	}
	c.groups = new(grouped)
	var done sync.WaitGroup
	done.Go(func() {
		if faulted := dataset.Guarded(func() { c.groups.of(c.room, t, unit) }); faulted != nil {
			c.groups.err = diskFails(faulted)
		}
	})
	return done.Wait
}

// splitTable divides one table by the settings.
func (c *creation) splitTable(dir string, unit unitRule) error {
	t, set := c.tables[partTable], c.settings
	if c.groups == nil {
		c.groups = new(grouped)
		c.groups.of(c.room, t, unit)
	}
	g, column, err := c.groups.units, c.groups.column, c.groups.err
	if err != nil {
		return err
	}
	t.ReleaseAll()
	c.room.rest()
	size, err := holdoutSize(set.Holdout, g.n)
	if err != nil {
		return err
	}
	check, err := checkSize(set.Check, set.defaultCheck(), g.n, size)
	if err != nil {
		return err
	}
	alike, err := c.forewarn(t, unit)
	if err != nil {
		return err
	}
	c.early = append(c.early, alike...)
	if t.Stride() > 0 {
		debug.FreeOSMemory() // what forewarn has copied is as much as all that is to come
	}
	key := splitter{key: c.service.split[:]}
	var p parts
	byTime, isTime := strings.CutPrefix(set.Split, splitByTimeOf)
	switch {
	case isTime:
		times, ok := t.Lookup(byTime)
		if !ok {
			return noColumn("split", byTime, c.schema())
		}
		if times.Kind != dataset.Time {
			return invalid("split", "split=time names the column %q, which is not a column of dates or times", byTime)
		}
		p = splitByTime(key.tags(g, column, unit.Day), g, times.Numbers, sizes{size, check})
	case set.Stratify != "":
		by, ok := t.Lookup(set.Stratify)
		if !ok {
			return noColumn("stratify", set.Stratify, c.schema())
		}
		s, err := stratify(*by, g)
		if err != nil {
			return err
		}
		p, c.card.Strata = splitByStrata(c.room, key.tags(g, column, unit.Day), s, sizes{size, check})
	default:
		p = splitByTag(c.room, g.n, key.tagger(g, column, unit.Day), sizes{size, check})
	}
	t.ReleaseAll()
	c.room.rest()
	all := []part{{holdoutDir, t, g, p.holdout}, {checkDir, t, g, p.check}, {trainingDir, t, g, p.training}}
	written := slices.DeleteFunc(slices.Clone(all), func(p part) bool { return len(p.list) == 0 })
	if t.Stride() > 0 { // of a small one there is nothing to gain
		t.Spend(filepath.Join(c.work, partTable), len(written))
	}
	return c.writeParts(dir, all)
}

// keepParts takes the parts as they were given.
func (c *creation) keepParts(dir string, unit unitRule) error {
	type given struct {
		upload, dir string
		table       *dataset.Table
		units       grouping
		column      *dataset.Column
	}
	var all []given
	for _, part := range []given{{upload: partHoldout, dir: holdoutDir}, {upload: partCheck, dir: checkDir}, {upload: partTraining, dir: trainingDir}} {
		if part.table = c.tables[part.upload]; part.table == nil {
			continue
		}
		if part.table.Rows() == 0 {
			return fail(BadUpload, "the part %s has no rows; every part needs some", part.upload)
		}
		var err error
		if part.units, part.column, err = group(c.room, part.table, unit); err != nil {
			return err
		}
		for _, other := range all {
			if part.column == nil {
				break
			}
			if shared := c.sharedUnits(part.units, part.column, other.units, other.column, unit.Day); shared > 0 {
				return fail(BadUpload, "%d values of the unit %s are in both parts, %s and %s; a unit must be on one side", shared, unit, part.upload, other.upload)
			}
		}
		all = append(all, part)
	}
	parts := make([]part, len(all))
	for i, g := range all {
		parts[i] = part{g.dir, g.table, g.units, allUnits(c.room, g.units.n)}
	}
	return c.writeParts(dir, parts)
}

// allUnits lists n units by their first rows.
func allUnits(r *room, n int) []uint32 {
	all := makeIn[uint32](r, n)
	for u := range all {
		all[u] = uint32(u)
	}
	return all
}

// sharedUnits counts the units, other than nulls, that two parts share. Their tags, which are short and almost never alike by chance,
// lead to them.
func (c *creation) sharedUnits(g grouping, a *dataset.Column, h grouping, b *dataset.Column, day bool) (n int) {
	s := splitter{key: c.service.split[:]}
	mine, theirs := s.tags(g, a, day), s.tags(h, b, day)
	sorted := order(c.room, mine)
	var x, y []byte
	for u, tag := range theirs {
		if b.Null(int(h.first[u])) {
			continue
		}
		y = appendUnitValue(y[:0], b, day, h.first[u])
		at := sort.Search(len(sorted), func(i int) bool { return mine[sorted[i]] >= tag })
		for ; at < len(sorted) && mine[sorted[at]] == tag; at++ {
			row := g.first[sorted[at]]
			if x = appendUnitValue(x[:0], a, day, row); !a.Null(int(row)) && bytes.Equal(x, y) {
				n++
				break
			}
		}
	}
	return n
}

// part is the units of a table that are stored together, in the order of a list.
type part struct {
	name  string // of its directory
	table *dataset.Table
	units grouping
	list  []uint32
}

// writeParts writes parts, each while the order of the next is drawn: orders are drawn one after the other, and parts are written at the same time.
func (c *creation) writeParts(dir string, parts []part) error {
	shapes, failures := make([]dataset.Shape, len(parts)), make([]error, len(parts))
	var wait sync.WaitGroup
	for i, p := range parts {
		write, err := c.arrangePart(dir, p)
		if err != nil {
			wait.Wait()
			return err
		}
		c.room.rest()
		wait.Go(func() {
			if faulted := dataset.Guarded(func() { shapes[i], failures[i] = write() }); faulted != nil {
				failures[i] = diskFails(faulted)
			}
		})
	}
	wait.Wait()
	c.room.rest()
	for _, shape := range shapes {
		if shape.Texts != nil {
			c.texts = shape.Texts // of each part that is not handed out they are the same
		}
	}
	for _, err := range failures { // the first says what is wrong; a full disk stops all of them
		if err != nil {
			return err
		}
	}
	for _, part := range slices.Sorted(maps.Keys(c.tables)) {
		if err := dataset.Passed(filepath.Join(c.work, part)); err != nil {
			return diskFails(err)
		}
	}
	return nil
}

// arrangePart puts the rows of a part in order, counts them on the card, and returns what writes them with where the units begin. The units of
// the holdout and of the check part are put in secret orders of this holdout; those of the training part stay as listed. A part without units is
// not written.
func (c *creation) arrangePart(dir string, p part) (write func() (dataset.Shape, error), err error) {
	if p.name != trainingDir {
		c.order.shuffle(p.list)
	}
	rows, offsets, err := p.units.groupInOrder(p.list, c.order)
	if err != nil {
		return nil, err
	}
	if err := c.settings.checkUnits(offsets); err != nil {
		return nil, err
	}
	switch n, m := int64(len(rows)), int64(len(p.list)); p.name {
	case trainingDir:
		c.card.Rows.Training, c.card.Units.Training = n, m
		c.offsets = offsets
	case checkDir:
		c.card.Rows.Check, c.card.Units.Check = n, m
	default:
		c.card.Rows.Holdout, c.card.Units.Holdout = n, m
	}
	return func() (shape dataset.Shape, err error) {
		if len(p.list) == 0 {
			return shape, nil
		}
		if err := c.ctx.Err(); err != nil {
			return shape, &Error{Kind: Unavailable, Detail: "the upload was given up", Err: err}
		}
		if offsets != nil {
			err = writeUnits(filepath.Join(dir, p.name+unitsSuffix), offsets)
		}
		switch path := filepath.Join(dir, p.name); {
		case err != nil:
		case p.name == trainingDir:
			err = dataset.Select(path, p.table, rows, c.room.restOf)
		default:
			shape, err = dataset.SelectJoint(path, p.table, rows, c.room.restOf, c.otherThan(p.table)...)
		}
		if err != nil {
			return shape, fmt.Errorf("holdout: write %s: %w", p.name, err)
		}
		return shape, nil
	}, nil
}

// otherThan are the other tables of the upload. What is public of a part's dictionaries is that of the whole upload, so that it says least of the part's own rows.
func (c *creation) otherThan(t *dataset.Table) (others []*dataset.Table) {
	for _, part := range allParts {
		if other := c.tables[part]; other != nil && other != t {
			others = append(others, other)
		}
	}
	return others
}

// checkUnits refuses units, which begin at these rows, of more rows than the owner has declared: then what is said of every row would
// not be about all of theirs.
func (set Settings) checkUnits(offsets []uint32) error {
	for i := 1; i < len(offsets) && set.LargestUnit > 0; i++ {
		if int64(offsets[i]-offsets[i-1]) > set.LargestUnit {
			return invalid("largest_unit", "a unit has more than the %d rows that largest_unit declares; declare the most that a unit can have, or leave it out: then larger units count as the training part's largest", set.LargestUnit)
		}
	}
	return nil
}

// describe fills the card with what the training part shows.
func (c *creation) describe(dir string, unit unitRule) (err error) {
	c.card.Skipped = append(c.card.Skipped, c.skipped...)
	c.card.Warnings = append(c.card.Warnings, c.said...)
	c.early = append(c.early, c.said...)
	c.card.LargestUnit = max(1, c.settings.LargestUnit)
	if c.card.Units.Training == 0 {
		c.card.Columns, err = columnCards(c.schema(), nil, c.texts)
		return err
	}
	training, err := dataset.Reopen(filepath.Join(dir, trainingDir)) // it was written a moment ago
	if err != nil {
		return fmt.Errorf("holdout: training part: %w", err)
	}
	defer training.Close() // read only
	g := groupByRow(training.Rows())
	if unit.Column != "" {
		g = groupTogether(c.room, c.offsets)
		if c.settings.LargestUnit == 0 {
			c.card.LargestUnit = int64(slices.Max(g.sizes()))
		}
	}
	if c.card.Columns, err = columnCards(training.Schema(), training, c.texts); err != nil {
		return diskFails(err)
	}
	orderCards(c.card.Columns, training, c.orders)
	for i := range c.card.Columns {
		column := &c.card.Columns[i]
		column.Category = column.Kind == dataset.Text && slices.Contains(c.named, column.Name)
	}
	columns := make([]dataset.Column, len(training.Schema().Fields))
	for i := range columns {
		columns[i] = *training.Column(i)
	}
	infinite, err := infiniteWarnings(training, c.card.Columns)
	if err != nil {
		return diskFails(err)
	}
	c.card.Warnings = append(c.card.Warnings, infinite...)
	alike, err := dependenceWarnings(columns, g, unit, c.settings.Label, training.ReleaseAll)
	if err != nil {
		return diskFails(err)
	}
	c.card.Warnings = append(c.card.Warnings, alike...)
	c.card.Warnings = append(c.card.Warnings, disguiseWarnings(columns, c.settings.Label, unit.Column)...)
	if c.settings.Split != splitByHash { // only of parts that were drawn at random does one say what the other repeats
		return nil
	}
	var equal []Warning
	if err := dataset.Guarded(func() { equal = equalWarnings(columns, unit.Column, g, training.ReleaseAll) }); err != nil {
		return diskFails(err)
	}
	c.card.Warnings = append(c.card.Warnings, equal...)
	return nil
}

// MaxInfiniteWarnings bounds the warnings about infinities; a table that has them in many columns has one cause.
const MaxInfiniteWarnings = 20

// infiniteWarnings says which columns of the training part, which these cards describe, hold infinities, and what becomes of them. Of the holdout's it says nothing.
func infiniteWarnings(training *dataset.Table, cards []ColumnCard) (found []Warning, err error) {
	counts := make([]int, training.Columns())
	if err := eachColumn(len(counts), func(i int) {
		if training.Column(i).Numbers == nil || *cards[i].Nulls == 0 {
			return
		}
		for from, to := range training.Pieces(i) {
			for _, v := range training.Column(i).Numbers[from:to] {
				if dataset.Infinite(v) {
					counts[i]++
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		if len(found) == MaxInfiniteWarnings {
			break
		}
		found = append(found, Warning{Code: "infinite-values", Column: training.Column(i).Name, Detail: fmt.Sprintf(
			"%d values of %q in the training part are infinite. An infinity is kept as a null: it counts as the low end of a question's range unless the query's \"null\" says otherwise, and a comparison with it does not hold. If it should count as the high end, replace it by a number or a time in the file",
			n, training.Column(i).Name)})
	}
	return found, nil
}

// eachColumn calls f for each of n columns, on all processors, and fails where a mapped one cannot be read.
func eachColumn(n int, f func(i int)) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	faults := make([]error, min(n, runtime.GOMAXPROCS(0)))
	for w := range faults {
		wait.Go(func() {
			faults[w] = dataset.Guarded(func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					f(i)
				}
			})
		})
	}
	wait.Wait()
	return errors.Join(faults...)
}
