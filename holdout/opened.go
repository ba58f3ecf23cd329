package holdout

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/cells"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Names in a holdout's directory. The units of a part are a table of one column: where each unit's rows begin, and the
// end of the last.
const (
	trainingDir     = "training"
	checkDir        = "check"
	holdoutDir      = "holdout"
	unitsSuffix     = ".units"
	unitsColumn     = "offset"
	trainingParquet = "training.parquet"
	featuresParquet = "features.parquet"
	retiredParquet  = "retired.parquet"
)

// opened is a holdout with its tables mapped.
type opened struct {
	id        string
	card      Card
	guarantee thresholdout.Guarantee
	session   *session.Session // of its guarantee
	secret    secrets
	digest    [32]byte // of the uploaded table
	schema    dataset.Schema

	reference session.Reference // the training part and the check part
	holdout   session.Source
	tables    []*dataset.Table

	sources map[string]*source // of the service; nil where nothing is asked of a source
	at      *source            // where the holdout's rows are; nil: here
	far     *remote.Source     // its table there; nil: here

	faulted func(error) *Error // takes a holdout whose files could not be read out of service

	trainingTable *dataset.Table // nil without a training part
	checkTable    *dataset.Table // nil without a check part
	holdoutTable  *dataset.Table // where its rows lie in a source, what is public of them, or nil
	trainingShape dataset.Shape
	checkShape    dataset.Shape
	holdoutShape  dataset.Shape

	keeping sync.Mutex
	few     map[string][]float64  // by column, the numbers of the training part where they are few; nil where they are not
	public  map[string]everywhere // by column, what public facts say of all rows

	exporting sync.Mutex             // held while a part is written as Parquet, or compared with its checksum
	exports   map[string]os.FileInfo // exported files that were compared with their checksums
}

// secrets are a holdout's keys, sealed in the ledger.
type secrets struct {
	Version int       `json:"version"`
	Noise   noise.Key `json:"noise"` // 256 random bits
}

// load maps a holdout's tables; the files are checked against their checksums and against the card, which the chain binds.
func (s *Service) load(ctx context.Context, id string) (*opened, error) {
	record, card, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.lost {
		return nil, s.ledgerError(ledger.ErrReplayOnly)
	}
	if known, forGood := s.quarantine.of(id); forGood {
		return nil, known
	}
	if err := s.settle(ctx, record); err != nil {
		return nil, err
	}
	h := &opened{id: id, card: card, guarantee: card.Guarantee, digest: record.Digest, faulted: s.faulted(id), sources: s.sources}
	if h.secret, err = readSecrets(id, record.Secret); err != nil {
		return nil, s.damaged(id, true, fmt.Errorf("holdout: keys of %s: %w", id, err))
	}
	h.begin()
	if err := h.open(ctx, s.path(holdoutsDir, id)); err != nil {
		return nil, s.loadError(id, errors.Join(fmt.Errorf("holdout: files of %s: %w", id, err), h.close()))
	}
	s.quarantine.clear(id)
	return h, nil
}

// begin makes the session of the guarantee and the keys.
func (h *opened) begin() {
	h.session = &session.Session{Holdout: h.id, Guarantee: h.guarantee, Noise: session.Keyed(h.secret.Noise, h.digest),
		Unlike: h.card.Settings.unlikeUnits() != nil, RandomSplit: h.card.Settings.Split == splitByHash, NoCheckPart: h.card.Units.Check == 0,
		SeveralRows: h.card.Unit != rowUnit}
	if domain, err := cells.Parse(h.card.Settings.Cells); err == nil { // without cells it is no declaration, and a guarantee that needs one answers nothing
		h.session.Cells = &domain
	}
}

func (h *opened) open(ctx context.Context, dir string) (err error) {
	grouped := h.card.Unit != rowUnit
	if h.card.Units.Training > 0 {
		training, table, err := h.part(dir, trainingDir, grouped)
		if err != nil {
			return err
		}
		h.trainingTable, h.trainingShape = table, shapeOf(table, training)
		if training.Units() != h.card.Units.Training {
			return fmt.Errorf("%d training units, the card says %d", training.Units(), h.card.Units.Training)
		}
		h.reference.Training = training
	}
	if h.card.Units.Check > 0 {
		check, table, err := h.part(dir, checkDir, grouped)
		if err != nil {
			return err
		}
		h.checkTable, h.checkShape = table, shapeOf(table, check)
		if check.Units() != h.card.Units.Check {
			return fmt.Errorf("%d units of the check part, the card says %d", check.Units(), h.card.Units.Check)
		}
		h.reference.Check = check
	}
	if h.card.Settings.Source != "" {
		err = h.openRemote(ctx, dir, grouped)
	} else {
		err = h.openHere(dir, grouped)
	}
	if err != nil {
		return err
	}
	if h.holdout.Units() != h.card.Units.Holdout || h.holdout.Units() != h.guarantee.N {
		return fmt.Errorf("%d holdout units, the card says %d and the guarantee %d", h.holdout.Units(), h.card.Units.Holdout, h.guarantee.N)
	}
	h.schema.Skipped = skipReasons(h.card.Skipped)
	if h.publicFeatures() && h.checkTable != nil {
		// Numbers that come for each row are those of the holdout's rows, then those of the check part's.
		n, all := h.holdoutTable.Rows(), h.holdoutTable.Rows()+h.checkTable.Rows()
		h.holdout = numbered{h.holdout, 0, n}
		h.reference.Check = numbered{h.reference.Check, n, all}
	}
	return nil
}

// openHere opens the held-out part in column files.
func (h *opened) openHere(dir string, grouped bool) error {
	holdout, table, err := h.part(dir, holdoutDir, grouped)
	if err != nil {
		return err
	}
	h.holdout, h.holdoutTable, h.schema, h.holdoutShape = holdout, table, table.Schema(), shapeOf(table, holdout)
	return nil
}

// part opens one part with its units.
func (h *opened) part(dir, part string, grouped bool) (engine.MomentSource, *dataset.Table, error) {
	table, err := dataset.Open(filepath.Join(dir, part))
	if err != nil {
		return nil, nil, err
	}
	h.tables = append(h.tables, table)
	if err := h.card.checkFingerprint(part, table); err != nil {
		return nil, nil, err
	}
	var offsets []uint32
	if grouped {
		if offsets, err = readUnits(dir, part+unitsSuffix, &h.card); err != nil {
			return nil, nil, err
		}
	}
	source, err := engine.NewTable(table, offsets, h.card.LargestUnit)
	if err != nil {
		return nil, nil, err
	}
	return watched{source, h.faulted}, table, nil
}

// numbered is a part of the rows that numbers come for with a question: those from up to to.
type numbered struct {
	session.Source
	from, to int
}

// Sums implements session.Source.
func (s numbered) Sums(ctx context.Context, functions []queries.RowFunction, from, to int64) ([]int64, error) {
	return s.Source.Sums(ctx, rowfn.Batch{Functions: functions}.Rows(s.from, s.to).Functions, from, to)
}

// Moments implements session.Source.
func (s numbered) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	return s.Source.Moments(ctx, batch.Rows(s.from, s.to), from, to)
}

// close unmaps the tables.
func (h *opened) close() error {
	var errs []error
	for _, t := range h.tables {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

// writeUnits stores where the units' rows begin.
func writeUnits(dir string, offsets []uint32) error {
	values := make([]float64, len(offsets))
	for i, o := range offsets {
		values[i] = float64(o)
	}
	t, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: unitsColumn, Kind: dataset.Number, Source: "row"}, Numbers: values})
	if err != nil {
		return err
	}
	return dataset.Write(dir, t)
}

// readUnits reads where the units of a part begin.
func readUnits(dir, name string, card *Card) (offsets []uint32, err error) {
	t, err := dataset.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer t.Close() // read only
	if err := card.checkFingerprint(name, t); err != nil {
		return nil, err
	}
	c, ok := t.Lookup(unitsColumn)
	if !ok || c.Kind != dataset.Number {
		return nil, fmt.Errorf("%s has no column of offsets", name)
	}
	faulted := dataset.Guarded(func() {
		offsets = make([]uint32, len(c.Numbers))
		for i, v := range c.Numbers {
			if offsets[i] = uint32(v); float64(offsets[i]) != v {
				err = fmt.Errorf("%s: offset %d is no row number", name, i)
			}
		}
	})
	if err := errors.Join(err, faulted); err != nil {
		return nil, err
	}
	return offsets, nil
}

// partNames are the directories that a holdout can have, one for each table.
var partNames = []string{trainingDir, trainingDir + unitsSuffix, checkDir, checkDir + unitsSuffix, holdoutDir, holdoutDir + unitsSuffix, holdoutDir + featuresSuffix}

// fingerprints are those of the tables in a finished directory, as the card says them.
func fingerprints(dir string) (map[string]string, error) {
	parts := map[string]string{}
	for _, name := range partNames {
		fingerprint, err := dataset.Fingerprint(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		parts[name] = fingerprintText(fingerprint)
	}
	switch _, digest, err := readRegistration(dir); {
	case err == nil:
		parts[sourceFile] = fingerprintText(digest)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return parts, nil
}

func fingerprintText(f [32]byte) string { return "sha256:" + hex.EncodeToString(f[:]) }

// compile turns a query into row functions of this holdout, or says what is wrong with it.
func (h *opened) compile(ctx context.Context, q *queries.Query) (*queries.Plan, error) {
	grouped := h.card.Unit != rowUnit
	options := []queries.Option{queries.Grouped(grouped), queries.Population(h.card.Settings.population(grouped)),
		queries.LargestUnit(h.card.LargestUnit, h.card.Settings.LargestUnit > 0), queries.HoldoutRows(h.card.Rows.Holdout),
		queries.AsOne(h.guarantee.ChecksStatistics())}
	if h.trainingTable != nil {
		options = append(options, queries.Training(trainingPart{h}))
	}
	options = append(options, h.publicRows(), queries.Disguises(h.card.Settings.Label, h.card.disguises()))
	plan, err := q.Compile(ctx, h.schema, options...)
	if err != nil {
		return nil, queryError(err)
	}
	return plan, nil
}

// queryError says an error of the query language in the service's words. What is wrong where stays in its *queries.Error.
func queryError(err error) error {
	var e *queries.Error
	if !errors.As(err, &e) {
		return err
	}
	ours := &Error{Kind: Invalid, Detail: e.Violations[0].String(), Err: e}
	if e.Kind == queries.Malformed {
		ours.Kind = Malformed
	}
	return ours
}

// below moves the pointers of an error below a part of the body.
func below(err error, pointer string) error {
	var ours *Error
	if !errors.As(err, &ours) {
		return err
	}
	moved := *ours
	var q *queries.Error
	if !errors.As(err, &q) {
		moved.Pointer = pointer + ours.Pointer
		return &moved
	}
	placed := &queries.Error{Kind: q.Kind, Violations: slices.Clone(q.Violations)}
	for i := range placed.Violations {
		placed.Violations[i].Pointer = pointer + placed.Violations[i].Pointer
	}
	moved.Detail, moved.Err = placed.Violations[0].String(), placed
	return &moved
}

// publicRows says whether a question can bring a number for each row of the holdout.
func (h *opened) publicRows() queries.Option {
	why := ""
	switch {
	case !h.publicFeatures():
		why = "the features of this holdout's rows are secret; numbers for each row are for holdouts that were created with features=public"
	case h.guarantee.UsesTraining() && h.checkTable == nil:
		why = fmt.Sprintf("the mechanism %s of this holdout compares with the training part, for whose rows there are no numbers; they are for gaussian, or for holdouts with a check part", h.guarantee.Mechanism)
	}
	return queries.PublicRows(h.card.Rows.Holdout, h.card.Rows.Check, why)
}

// publicFeatures reports whether everything but the label is public of the rows that are not handed out.
func (h *opened) publicFeatures() bool { return h.card.Settings.Features == featuresPublic }

// trainingPart is what queries may take constants from.
type trainingPart struct{ holdout *opened }

// Means implements queries.TrainingPart.
func (t trainingPart) Means(ctx context.Context, functions []queries.RowFunction) ([]float64, error) {
	n := t.holdout.reference.Training.Units()
	if err := need(ctx, t.holdout.trainingWork(rowfn.Batch{Functions: functions})); err != nil {
		return nil, err
	}
	sums, err := t.holdout.reference.Training.Sums(ctx, functions, 0, n)
	if err != nil {
		return nil, scanError(err)
	}
	means := make([]float64, len(sums))
	for i, sum := range sums {
		means[i] = float64(sum) / (float64(n) * float64(queries.One))
	}
	return means, nil
}

// Texts implements queries.TrainingPart.
func (t trainingPart) Texts(column string) []string {
	c, ok := t.holdout.trainingTable.Lookup(column)
	if !ok || c.Kind != dataset.Text {
		return nil
	}
	var texts []string
	if err := dataset.Guarded(func() { texts = c.Dictionary.Sorted() }); err != nil {
		return nil // the scan that follows meets the same damage, and says so
	}
	return texts
}

// Column implements queries.TrainingPart: what the card says of the column.
func (t trainingPart) Column(name string) (queries.ColumnFacts, bool) {
	for _, c := range t.holdout.card.Columns {
		if c.Name != name {
			continue
		}
		facts := queries.ColumnFacts{Rows: t.holdout.card.Rows.Training, Low: math.Inf(1), High: math.Inf(-1)}
		if c.Nulls != nil {
			facts.Nulls = *c.Nulls
		}
		if c.Min != nil && c.Max != nil {
			facts.Low, facts.High = *c.Min, *c.Max
		}
		return facts, true
	}
	return queries.ColumnFacts{}, false
}

// everywhere is what public facts say of a column's values in all rows: that training rows have all of them, and that none is null.
type everywhere struct{ known, full bool }

// Everywhere implements queries.PublicFacts. Of texts the card has how many different ones the whole upload has, rounded up: they are the training part's if that has as many. Where
// features are public, all values but the label's are.
func (t trainingPart) Everywhere(ctx context.Context, name string) (known, full bool) {
	h := t.holdout
	if h.publicFeatures() && name != h.card.Settings.Label {
		h.keeping.Lock()
		defer h.keeping.Unlock()
		is, ok := h.public[name]
		if !ok {
			if err := dataset.Guarded(func() { is = h.everywhere(ctx, name) }); err != nil || ctx.Err() != nil {
				return false, false // the scan that follows meets the same, and says so
			}
			if h.public == nil {
				h.public = map[string]everywhere{}
			}
			h.public[name] = is
		}
		return is.known, is.full
	}
	if h.card.Settings.Split == splitGiven { // whose parts have dictionaries of their own
		return false, false
	}
	at := slices.IndexFunc(h.card.Columns, func(c ColumnCard) bool { return c.Name == name })
	return at >= 0 && h.card.Columns[at].Dictionary != nil && h.card.Columns[at].Dictionary.Texts == h.card.Columns[at].Distinct, false
}

// everywhere looks at a column that is public in all parts.
func (h *opened) everywhere(ctx context.Context, name string) everywhere {
	training, ok := h.trainingTable.Lookup(name)
	if !ok {
		return everywhere{}
	}
	is := everywhere{true, true}
	texts, numbers := map[string]bool{}, map[float64]bool{}
	for _, table := range []*dataset.Table{h.trainingTable, h.checkTable, h.holdoutTable} {
		if table == nil {
			continue
		}
		c, ok := table.Lookup(name)
		if !ok {
			return everywhere{}
		}
		seen := map[uint32]bool{} // codes of this table's dictionary
		for row := range c.Len() {
			if row%rowsBetweenLooks == 0 && ctx.Err() != nil {
				return everywhere{}
			}
			switch {
			case c.Null(row):
				is.full = false
			case c.Kind == dataset.Text && !seen[c.Codes[row]]:
				seen[c.Codes[row]] = true
				text := c.Dictionary.Text(int(c.Codes[row] - 1))
				if c == training {
					texts[text] = true
				}
				is.known = is.known && texts[text]
			case c.Kind == dataset.Number || c.Kind == dataset.Time:
				if c == training && len(numbers) <= queries.MaxValues {
					numbers[c.Numbers[row]] = true
				}
				is.known = is.known && numbers[c.Numbers[row]]
			}
		}
	}
	return is
}

// rowsBetweenLooks is after how many rows it is looked whether the request was given up.
const rowsBetweenLooks = 1 << 16

// Numbers implements queries.TrainingPart. Those of a column with few are kept: a label of 0 and 1 is asked for by each question about a model.
func (t trainingPart) Numbers(column string, most int) (values []float64) {
	if most > mostKept {
		return t.numbers(column, most)
	}
	t.holdout.keeping.Lock()
	defer t.holdout.keeping.Unlock()
	few, known := t.holdout.few[column]
	if !known {
		few = t.numbers(column, mostKept)
		if t.holdout.few == nil {
			t.holdout.few = map[string][]float64{}
		}
		t.holdout.few[column] = few
	}
	if len(few) > most {
		return nil
	}
	return few
}

// mostKept is up to how many different numbers of a column are kept.
const mostKept = 64

func (t trainingPart) numbers(column string, most int) []float64 {
	c, ok := t.holdout.trainingTable.Lookup(column)
	if !ok || c.Kind != dataset.Number {
		return nil
	}
	seen := map[float64]bool{}
	if err := dataset.Guarded(func() {
		for _, x := range c.Numbers {
			if x == x && !seen[x] {
				if seen[x] = true; len(seen) > most {
					return
				}
			}
		}
	}); err != nil || len(seen) > most { // the scan that follows meets the same damage, and says so
		return nil
	}
	return slices.Sorted(maps.Keys(seen))
}
