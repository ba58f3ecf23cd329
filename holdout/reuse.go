package holdout

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/prints"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/sources"
)

// A budget follows the rows: an upload is compared with keyed prints of the rows of every holdout that there was, and where it would hold out rows again, or hand out rows that are held
// out, the server's policy decides (docs/decisions/0007-rows.md).

// ReusedRows is what becomes of an upload with rows of an earlier holdout.
type ReusedRows string

const (
	ReusedRefuse  ReusedRows = "refuse"  // it is refused
	ReusedInherit ReusedRows = "inherit" // it begins with what was spent on them, where that is proved to be sound; else it is refused
	ReusedWarn    ReusedRows = "warn"    // its card says so
)

// Check refuses what is no policy.
func (r ReusedRows) Check() error {
	if r != ReusedRefuse && r != ReusedInherit && r != ReusedWarn {
		return invalid("reused-rows", "reused-rows is %q, and must be %s, %s or %s", string(r), ReusedRefuse, ReusedInherit, ReusedWarn)
	}
	return nil
}

// printsFile is in a holdout's directory, also when its tables are deleted.
const printsFile = "prints"

// printedParts are the parts in the order in which prints number them.
var printedParts = []string{holdoutDir, checkDir, trainingDir}

const (
	printedHoldout = iota
	printedCheck
	printedTraining
)

// printedNames are those of printedParts, for people.
var printedNames = []string{"holdout", "check", "training"}

// Reuse is rows of a part of an earlier holdout that are in a part of an upload, and matter.
type Reuse struct {
	Holdout string  `json:"holdout" doc:"the earlier holdout"`
	From    string  `json:"from" enum:"holdout,check,training" doc:"the part that they are in there"`
	To      string  `json:"to" enum:"holdout,check,training" doc:"the part that they are in here"`
	Share   float64 `json:"share" doc:"about which share of that part it is: 0.01, 0.02, 0.05, 0.1, 0.2, 0.5 or 1"`
	Why     string  `json:"why" enum:"draft,asked,handed-out,shown" doc:"what is wrong with it. draft: the other is a draft, and would be asked about them, too; asked: they were held out before, so answers have told of them; handed-out: they are held out by a holdout that still answers, and would be training rows; shown: they were shown, and would be held out"`
}

// Why reuse matters.
const (
	reuseDraft     = "draft"
	reuseAsked     = "asked"
	reuseHandedOut = "handed-out"
	reuseShown     = "shown"
)

// roundShare says a share in few numbers.
func roundShare(share float64) float64 {
	said := 0.01
	for _, s := range []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1} {
		if share >= s*0.75 {
			said = s
		}
	}
	return said
}

// older is a holdout whose rows an upload may have.
type older struct {
	id     string
	record ledger.Holdout
	lost   bool // the ledger does not know it
}

// asked reports whether something was asked of it; of one that is lost nobody knows.
func (e *older) asked() bool {
	if e.lost {
		return true
	}
	for _, amount := range e.record.Spent {
		if amount > 0 {
			return true
		}
	}
	return false
}

// answers reports whether new questions can be asked of it.
func (e *older) answers() bool { return !e.lost && !e.record.Deleted && e.record.End == "" }

// why says what is wrong with rows of one part of it in a part of an upload; "" is nothing.
func (e *older) why(way prints.Way) string {
	switch {
	case e.record.Draft && (way.From == printedHoldout || way.To == printedHoldout):
		return reuseDraft
	case e.record.Draft:
		return ""
	case way.To == printedHoldout && (way.From != printedHoldout || e.record.End == ledger.Retired):
		return reuseShown
	case way.To == printedHoldout && (e.asked() || e.answers()):
		return reuseAsked
	case way.To != printedHoldout && way.From == printedHoldout && e.answers():
		return reuseHandedOut
	}
	return ""
}

// rowsOf are the parts in a holdout's directory as tokens; done unmaps them.
func (s *Service) rowsOf(ctx context.Context, dir string) (rows []*prints.Rows, done func() error, err error) {
	own, err := keptOwn(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("holdout: a part: %w", err)
	}
	if len(own) > 0 {
		return s.rowsOfSegments(ctx, dir, own)
	}
	var tables []*dataset.Table
	done = func() error {
		var err error
		for _, t := range tables {
			if t != nil {
				err = errors.Join(err, t.Close())
			}
		}
		return err
	}
	inAll := 0
	for _, part := range printedParts {
		t, err := dataset.Open(filepath.Join(dir, part))
		if errors.Is(err, fs.ErrNotExist) && part != holdoutDir {
			t, err = nil, nil
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("holdout: a part: %w", err), done())
		}
		if tables = append(tables, t); t != nil {
			inAll += t.Rows()
		}
	}
	rows = make([]*prints.Rows, len(tables))
	for i, t := range tables {
		if t != nil {
			rows[i] = prints.Read(prints.Key(s.printing), t, inAll)
		}
	}
	return rows, done, nil
}

// rowsOfSegments is rowsOf of parts in segments.
func (s *Service) rowsOfSegments(ctx context.Context, dir string, own map[string]sources.PartInfo) (rows []*prints.Rows, done func() error, err error) {
	inAll := int64(0)
	for _, info := range own {
		inAll += info.Rows
	}
	rows = make([]*prints.Rows, len(printedParts))
	var opened []sources.Part
	done = func() (err error) {
		for _, p := range opened {
			err = errors.Join(err, p.Close())
		}
		return err
	}
	for i, name := range printedParts {
		info, ok := own[name]
		if !ok {
			continue
		}
		p, err := openOwn(ctx, dir, info, 1)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("holdout: a part: %w", err), done())
		}
		opened = append(opened, p)
		rows[i] = prints.ReadPieces(prints.Key(s.printing), partPieces{ctx, p, info}, int(inAll))
	}
	if err := readable(rows); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return rows, done, nil
}

// writePrints makes the prints of rows, and keeps them in the directory, sealed.
func (s *Service) writePrints(dir, id string, rows []*prints.Rows) (*prints.Prints, error) {
	seed := sha256.Sum256(fmt.Appendf(nil, "holdoutd prints: sample 1\n%x%s", s.printing, id))
	made := prints.Make(prints.Key(s.printing), seed, rows)
	if err := readable(rows); err != nil {
		return nil, err
	}
	sealed, err := s.printSealer.Seal(made.Bytes(), printsOf(id))
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "."+printsFile+"-*") // made with mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) // not there any more once it has its name
	_, err = f.Write(sealed)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return made, os.Rename(f.Name(), filepath.Join(dir, printsFile))
}

// printsOf is what a holdout's prints are sealed as.
func printsOf(id string) string { return "prints of " + id }

// readPrints reads a holdout's prints. Of one that was created before there were any they are made of its tables, once. They are nil where it has neither.
func (s *Service) readPrints(id string) (*prints.Prints, error) {
	dir := s.holdoutPath(id)
	sealed, err := os.ReadFile(filepath.Join(dir, printsFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, parts, err := keptParts(dir); err == nil && len(parts) > 0 {
			return nil, nil // of a source: its rows are not here
		}
		rows, done, err := s.rowsOf(context.Background(), dir)
		if err != nil {
			s.log.Warn("the rows of a holdout cannot be compared with an upload's: it has no prints, and no tables to make them of", "holdout", id, "error", err)
			return nil, nil
		}
		defer done() // read only
		return s.writePrints(dir, id, rows)
	}
	if err != nil {
		return nil, fmt.Errorf("holdout: prints: %w", err)
	}
	plain, err := s.printSealer.Open(sealed, printsOf(id))
	if err != nil {
		return nil, fmt.Errorf("holdout: prints of %s: %w", id, err)
	}
	return prints.Parse(plain)
}

// earlierHoldouts are those that an upload is compared with: all that there are, and all that there were of which anything was shown; but not the one in whose place it comes.
func (c *creation) earlierHoldouts() ([]older, error) {
	all, err := c.service.ledger.Holdouts(c.ctx)
	if err != nil {
		return nil, c.service.ledgerError(err)
	}
	var found []older
	for _, h := range all {
		if !(h.Draft && h.Deleted) && (c.old == nil || h.ID != c.old.id) {
			found = append(found, older{id: h.ID, record: h})
		}
	}
	for _, id := range slices.Sorted(maps.Values(c.service.lostTables)) {
		found = append(found, older{id: id, lost: true})
	}
	return found, nil
}

// comparison is the finished parts of an upload, whose rows are looked for among those of earlier holdouts.
type comparison struct {
	creation *creation
	rows     []*prints.Rows // of printedParts
	made     *prints.Prints
	done     func() error
	ways     map[string][]prints.Way // that were found, by the holdouts that were looked at

	share           float64 // of copies
	telling, copied bool
}

// compare looks for the finished parts' rows among those of earlier holdouts, and does what the policy says. It keeps prints of the parts.
func (c *creation) compare(dir string) error {
	x, err := c.print(dir)
	if err != nil {
		return err
	}
	defer x.close() // read only
	return x.judge()
}

// print makes and keeps the prints of the finished parts.
func (c *creation) print(dir string) (*comparison, error) {
	s := c.service
	rows, done, err := s.rowsOf(c.ctx, dir)
	if err != nil {
		return nil, err
	}
	made, err := s.writePrints(dir, c.id, rows)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("holdout: prints: %w", err), done())
	}
	return &comparison{creation: c, rows: rows, made: made, done: done, ways: map[string][]prints.Way{}}, nil
}

func (x *comparison) close() error { return x.done() }

// recognise looks for the rows in the earlier holdouts at which it has not looked yet, and returns all of them.
func (x *comparison) recognise() ([]older, error) {
	c := x.creation
	before, err := c.earlierHoldouts()
	if err != nil {
		return nil, err
	}
	var looked []string
	found, err := prints.Recognise(len(before), func(i int) (*prints.Prints, error) {
		if err := c.ctx.Err(); err != nil {
			return nil, &Error{Kind: Unavailable, Detail: "the upload was given up", Err: err}
		}
		if _, known := x.ways[before[i].id]; known {
			return nil, nil
		}
		looked = append(looked, before[i].id)
		return c.service.readPrints(before[i].id)
	}, x.rows, x.made)
	if err = errors.Join(err, readable(x.rows)); err != nil {
		return nil, err
	}
	for _, id := range looked {
		x.ways[id] = nil
	}
	for _, r := range found {
		x.ways[before[r.Earlier].id] = r.Ways
	}
	return before, nil
}

// readable is what kept rows from being read.
func readable(rows []*prints.Rows) error {
	for _, r := range rows {
		if r != nil && r.Err() != nil {
			return fmt.Errorf("holdout: a part: %w", ownError(r.Err()))
		}
	}
	return nil
}

// copies is the share of training rows that have a copy.
func (x *comparison) copies() (share float64, telling bool, err error) {
	training := x.rows[printedTraining]
	if training == nil || x.creation.card.Unit != rowUnit {
		return 0, false, nil // copies of a unit's rows are on one side
	}
	if !x.copied {
		x.share, x.telling = prints.Copies(training)
		x.copied = true
	}
	return x.share, x.telling, readable(x.rows)
}

// judge does with rows of earlier holdouts what the policy says, and warns of copies.
func (x *comparison) judge() error {
	before, err := x.recognise()
	if err != nil {
		return err
	}
	var reused []Reuse
	var concerned []older
	for _, e := range before {
		matters := false
		for _, way := range x.ways[e.id] {
			if why := e.why(way); why != "" {
				reused = append(reused, Reuse{Holdout: e.id, From: printedNames[way.From], To: printedNames[way.To], Share: roundShare(way.Share), Why: why})
				matters = true
			}
		}
		if matters {
			concerned = append(concerned, e)
		}
	}
	if err := x.creation.decide(reused, concerned); err != nil {
		return err
	}
	return x.warnOfCopies()
}

// decide refuses an upload with rows of earlier holdouts, lets it begin with what they have spent, or warns.
func (c *creation) decide(reused []Reuse, concerned []older) error {
	if len(reused) == 0 {
		return nil
	}
	switch c.service.reused {
	case ReusedWarn:
		c.card.Reused = reused
		c.card.Warnings, c.early = append(c.card.Warnings, reusedWarning), append(c.early, reusedWarning)
		return nil
	case ReusedInherit:
		cause := c.inherit(reused, concerned)
		if cause == nil {
			c.card.Reused = reused
			return nil
		}
		return reusedError(reused, fmt.Sprintf("The new holdout cannot begin with what was spent on them: %v. ", cause))
	}
	return reusedError(reused, "")
}

const reasonReused = "reused-rows"

// reusedWarning is what everybody reads on the card of a holdout that has rows of an earlier one. Which, and how many, is for admins: it depends on rows that are held out.
var reusedWarning = Warning{Code: reasonReused, Detail: "rows of this table are in an earlier holdout of this server. The intervals of either hold by themselves for who has seen nothing of the other; together they do not"}

// reusedError is the refusal of rows of an earlier holdout.
func reusedError(reused []Reuse, more string) *Error {
	said := map[string]string{
		reuseDraft:     "are here on another side, or held out twice; it is a draft of which nothing was shown: delete it first, or go on with it",
		reuseAsked:     "are held out again, with a new budget, though answers have told of them; go on with that holdout, or leave them away",
		reuseHandedOut: "would be handed out as training or check rows while they are held out there; retire that holdout first, or leave them away",
		reuseShown:     "would be held out though they were shown; give them as the training part (split=given), or leave them away",
	}
	var words []string
	for _, r := range reused {
		words = append(words, fmt.Sprintf("about %v%% of the %s rows of %s %s", 100*r.Share, r.From, r.Holdout, said[r.Why]))
	}
	return &Error{Kind: Exists, Members: map[string]any{"holdout": reused[0].Holdout, "reason": reasonReused, "reused": reused},
		Detail: "the upload has rows of an earlier holdout: " + strings.Join(words, "; ") + ". " + more +
			"Rows count as the same also where columns were renamed, cells changed or values stored in another way (docs/decisions/0007-rows.md)"}
}

// copiesWarning is the share of rows with a copy from which on the card warns.
const copiesWarning = 0.01

// warnOfCopies warns of rows that are in the table more than once. It looks at the training part alone: a copy of a held-out row in it is as likely as a copy of a training row.
func (x *comparison) warnOfCopies() error {
	share, telling, err := x.copies()
	if err != nil || !telling || share < copiesWarning {
		return err
	}
	c := x.creation
	c.card.Warnings = append(c.card.Warnings, Warning{Code: "copied-rows", Detail: fmt.Sprintf(
		"about %.0f%% of the training rows have a copy among the others, cell by cell. As the split was made by row, about as many of the held-out rows have a copy in the training part: whoever has that knows them, and "+
			"intervals that take rows as independent are too narrow. Remove the copies, or name a unit that they share", 100*share)})
	return nil
}

// earlyPrints makes a holdout's prints before its tables are gone, if it has none: the budget follows its rows still.
func (s *Service) earlyPrints(ctx context.Context, h ledger.Holdout) {
	if h.Draft || h.Deleted {
		return
	}
	if _, err := s.readPrints(h.ID); err != nil {
		s.log.Warn("the prints of a holdout that is being deleted", "holdout", h.ID, "error", err)
	}
}

// EraseTables removes the files of a deleted holdout but its prints, by which its rows are known still.
func EraseTables(dir string) error { return erase(dir, false) }

// erase removes a holdout's files. What is left of one that was shown is its prints.
func erase(dir string, draft bool) error {
	if draft {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !lasting(e) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if len(entries) == 0 || err == nil && !slices.ContainsFunc(entries, lasting) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// lasting reports whether a file stays when its holdout is deleted: by it the rows are known still.
func lasting(e fs.DirEntry) bool { return e.Name() == printsFile || e.Name() == sketchFile }
