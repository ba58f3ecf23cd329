package holdout

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/holdoutd/holdoutd/rowfn"
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
	means     trainingMeans
	holdout   session.Source

	faulted func(error) *Error // takes a holdout whose rows could not be read out of service

	training part // nil without a training part
	check    part // nil without a check part
	held     part

	from *place // where the source keeps the parts; nil of an upload, and where no source is asked
	most int64  // Limits.Work

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
	if record.Restored {
		return nil, restored(id)
	}
	if err := s.settle(ctx, record); err != nil {
		return nil, err
	}
	h := &opened{id: id, card: card, guarantee: card.Guarantee, digest: record.Digest, faulted: s.faulted(id), most: s.limits.Work / sourcedShare}
	if h.secret, err = readSecrets(id, record.Secret); err != nil {
		return nil, s.damaged(id, true, fmt.Errorf("holdout: keys of %s: %w", id, err))
	}
	h.begin()
	if card.Source != nil {
		if h.from = s.sources[card.Source.Name]; h.from == nil {
			return nil, absentSource(id, card.Source)
		}
	}
	if known, _ := s.quarantine.of(id); known != nil && (isChanged(known) || card.segmented()) {
		if err := s.checkAgain(ctx, h, known); err != nil {
			return nil, err
		}
	}
	if err := h.open(ctx, s.holdoutPath(id)); err != nil {
		return nil, s.loadError(id, errors.Join(fmt.Errorf("holdout: files of %s: %w", id, err), h.close()))
	}
	s.quarantine.clear(id)
	return h, nil
}

// begin makes the session of the guarantee and the keys.
func (h *opened) begin() {
	h.session = &session.Session{Holdout: h.id, Guarantee: h.guarantee, Noise: session.Keyed(h.secret.Noise, h.digest),
		Unlike: h.card.Settings.unlikeUnits() != nil, RandomSplit: h.card.Settings.Split == splitByHash}
}

func (h *opened) open(ctx context.Context, dir string) (err error) {
	if h.card.Units.Training > 0 {
		if h.training, err = h.openSide(ctx, dir, trainingDir, h.card.Units.Training); err != nil {
			return err
		}
		h.reference.Training = h.training
	}
	if h.card.Units.Check > 0 {
		if h.check, err = h.openSide(ctx, dir, checkDir, h.card.Units.Check); err != nil {
			return err
		}
		h.reference.Check = h.check
	}
	if h.held, err = h.openSide(ctx, dir, holdoutDir, h.card.Units.Holdout); err != nil {
		return err
	}
	if h.card.Units.Holdout != h.guarantee.N {
		return fmt.Errorf("%d holdout units, the guarantee says %d", h.card.Units.Holdout, h.guarantee.N)
	}
	h.holdout, h.schema = h.held, h.held.schema()
	if h.publicFeatures() && h.check != nil {
		// Numbers that come for each row are those of the holdout's rows, then those of the check part's.
		n := int(h.held.shape().Rows)
		all := n + int(h.check.shape().Rows)
		h.holdout = numbered{h.holdout, 0, n}
		h.reference.Check = numbered{h.reference.Check, n, all}
	}
	return nil
}

// openSide opens one part, which must have the units that the card says.
func (h *opened) openSide(ctx context.Context, dir, name string, units int64) (part, error) {
	open := h.openTable
	if h.card.Source != nil || h.card.segmented() {
		open = func(dir, name string) (part, error) { return h.openPart(ctx, dir, name) }
	}
	p, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	if p.Units() != units {
		return nil, errors.Join(fmt.Errorf("%d units of the part %s, the card says %d", p.Units(), name, units), p.close())
	}
	return p, nil
}

// openTable opens one part in column files, with its units.
func (h *opened) openTable(dir, name string) (part, error) {
	table, err := dataset.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	source, err := h.unitsOf(table, dir, name)
	if err != nil {
		return nil, errors.Join(err, table.Close())
	}
	return newTablePart(table, source, h.faulted), nil
}

func (h *opened) unitsOf(table *dataset.Table, dir, name string) (*engine.Table, error) {
	if err := h.card.checkFingerprint(name, table); err != nil {
		return nil, err
	}
	var offsets []uint32
	if h.card.Unit != rowUnit {
		var err error
		if offsets, err = readUnits(dir, name+unitsSuffix, &h.card); err != nil {
			return nil, err
		}
	}
	return engine.NewTable(table, offsets, h.card.LargestUnit)
}

// ready refuses what would read rows of a source that does not answer now, before anything is debited.
func (h *opened) ready(ctx context.Context) error {
	if h.from == nil {
		return nil
	}
	if err := h.from.ready(ctx); err != nil {
		return sourceAway(h.id, err)
	}
	return nil
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

// close unmaps the tables, or lets go of the source's.
func (h *opened) close() error {
	var errs []error
	for _, p := range []part{h.training, h.check, h.held} {
		if p != nil {
			errs = append(errs, p.close())
		}
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
var partNames = []string{trainingDir, trainingDir + unitsSuffix, checkDir, checkDir + unitsSuffix, holdoutDir, holdoutDir + unitsSuffix}

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
	for _, file := range partFiles {
		_, fingerprint, err := readPart(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		parts[file] = fingerprint
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
	if h.training != nil {
		options = append(options, queries.Training(trainingPart{h}))
	}
	options = append(options, h.publicRows())
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
	case h.guarantee.UsesTraining() && h.check == nil:
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
	// Of what is remembered, too: whether a request is refused as too much work must not say what others have asked.
	if err := need(ctx, t.holdout.trainingWork(rowfn.Batch{Functions: functions})); err != nil {
		return nil, err
	}
	sums, err := t.holdout.means.of(ctx, functions, func(ctx context.Context, missing []queries.RowFunction) ([]int64, error) {
		sums, err := t.holdout.reference.Training.Sums(ctx, missing, 0, n)
		if err != nil {
			return nil, scanError(err)
		}
		return sums, nil
	})
	if err != nil {
		return nil, err
	}
	means := make([]float64, len(sums))
	for i, sum := range sums {
		means[i] = float64(sum) / (float64(n) * float64(queries.One))
	}
	return means, nil
}

// Texts implements queries.TrainingPart.
func (t trainingPart) Texts(column string) []string { return t.holdout.training.texts(column) }

// Column implements queries.TrainingPart: what the card says of the column.
func (t trainingPart) Column(name string) (queries.ColumnFacts, bool) {
	for _, c := range t.holdout.card.Columns {
		if c.Name != name {
			continue
		}
		facts := queries.ColumnFacts{Low: math.Inf(1), High: math.Inf(-1)}
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

// Numbers implements queries.TrainingPart.
func (t trainingPart) Numbers(column string, most int) []float64 {
	return t.holdout.training.numbers(column, most)
}
