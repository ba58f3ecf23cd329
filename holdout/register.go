package holdout

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/sources"
)

// registering is a table of a source on its way: what a creation has beside.
type registering struct {
	*creation
	registration *registration
	from         *place
	table        sources.Snapshot
	given        *givenSides // nil where the table is split
	by           sources.Keys
	unit         unitRule
	sides        []sourcedSide // in the order of the parts that the source makes
	places       *assigned     // of the units
}

// sourcedSide is a part that the source makes.
type sourcedSide struct {
	name  string // training, check or holdout
	units []uint32
	info  sources.PartInfo
}

// register makes a holdout of a table of a source, and says how it ended. What it has made until then it drops, unless the ledger has the holdout.
func (s *Service) register(c *creation, r *registration, from *place) {
	err := s.working(c, (&registering{creation: c, registration: r, from: from}).run)
	id := c.id
	if err != nil && c.idem != nil && KindOf(err) == Exists { // the same request at another server was faster
		if now, ok, known := s.registered(context.WithoutCancel(c.ctx), c.idem); ok && known == nil {
			id, err = now.Holdout, nil
		}
	}
	var theirs *sources.Error
	if !errors.As(err, &theirs) { // what a source says may be of a file that is not there, and is no fault of the data directory
		err = storageError(err)
	}
	err = sourceError(err)
	var problem *Error
	switch {
	case err == nil:
		s.log.Info("a table of a source is a holdout", "holdout", id, "by", c.principal.KeyID, "source", from.name, "table", c.from.Table, "training_units", c.card.Units.Training, "holdout_units", c.card.Units.Holdout)
	case errors.As(err, &problem):
		s.log.Warn("a table of a source was not registered", "source", from.name, "table", c.from.Table, "by", c.principal.KeyID, "error", err)
	default:
		problem = &Error{Kind: Internal, Detail: "the table could not be registered; the server's log says why", Err: err}
		s.log.Error("a table of a source was not registered", "source", from.name, "table", c.from.Table, "by", c.principal.KeyID, "error", err)
	}
	r.end(id, problem)
}

// working does the work of a registration when it is its turn: one is worked on at a time.
func (s *Service) working(c *creation, run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("holdout: registering panicked: %v\n%s", p, debug.Stack())
		}
	}()
	select {
	case s.registering <- struct{}{}:
		defer func() { <-s.registering }()
	case <-c.ctx.Done():
		return &Error{Kind: Unavailable, Detail: "the registration was ended before its turn", Err: c.ctx.Err()}
	}
	if faulted := dataset.Guarded(func() { err = run() }); faulted != nil {
		err = &Error{Kind: Unavailable, Detail: "the disk of the data directory fails; send the request again", Err: faulted}
	}
	return err
}

func (g *registering) run() (err error) {
	c, s := g.creation, g.service
	if c.work, err = os.MkdirTemp(s.path(temporaryDir), "register-"); err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	defer func() { s.remove(c.work) }()
	if err := c.checkFollows(); err != nil {
		return err
	}
	if err := g.look(c.from.Table); err != nil {
		return err
	}
	c.table = s.sourceDigest(c.from.Kind, g.table)
	if err := c.find(); err != nil { // early; it is looked again when the parts are made
		return err
	}
	if g.places, err = g.readUnits(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.room.close()) }()
	if err := c.plan(); err != nil {
		return err
	}
	out, remove, err := c.finished()
	if err != nil {
		return err
	}
	defer remove()
	if err := s.noteParts(c.id, g.from.name, g.partNames()); err != nil {
		return err
	}
	defer func() { // what no holdout has is dropped; of one that the ledger may still record nobody knows yet
		if !g.registration.unsure() {
			s.dropNoted(context.WithoutCancel(c.ctx), c.id, true)
		}
	}()
	if err := g.makeParts(g.places); err != nil {
		return err
	}
	g.registration.enter(RegistrationChecking, g.table.Rows)
	if err := g.describe(out); err != nil {
		return err
	}
	c.card.Target = c.settings.target(g.unit, c.card.LargestUnit)
	// Uploads of which rows may be the same, and others that retire or delete holdouts, wait for the end.
	select {
	case s.creating <- struct{}{}:
		defer func() { <-s.creating }()
	case <-c.ctx.Done():
		return &Error{Kind: Unavailable, Detail: "the registration was ended before it was recorded", Err: c.ctx.Err()}
	}
	if err := c.find(); err != nil {
		return err
	}
	if err := g.replaces(out); err != nil {
		return err
	}
	if err := g.compare(out); err != nil {
		return err
	}
	if err := g.checkCancelled(); err != nil {
		return err
	}
	err = c.commit(out)
	if errors.Is(err, ledger.ErrUnavailable) {
		g.registration.doubt()
	}
	return err
}

// look looks at the table.
func (g *registering) look(table string) (err error) {
	g.registration.enter(RegistrationLooking, 0)
	if g.table, err = g.from.Look(g.ctx, table); err != nil {
		return err
	}
	return g.fit()
}

// fit refuses settings that do not fit the table.
func (g *registering) fit() (err error) {
	c, set := g.creation, g.settings
	if g.table.Rows == 0 {
		return fail(BadUpload, "the table has no rows")
	}
	c.columns = &g.table.Schema
	if g.unit, err = parseUnit(set.Unit, g.table.Schema); err != nil {
		return err
	}
	if set.Label != "" && fieldOf(g.table.Schema, set.Label) == nil {
		return noColumn("label", set.Label, g.table.Schema)
	}
	if err := c.checkLabel(g.unit); err != nil {
		return err
	}
	for _, column := range set.Key {
		if fieldOf(g.table.Schema, column) == nil {
			return noColumn("key", column, g.table.Schema)
		}
	}
	g.by = sources.Keys{Columns: set.Key, Rows: len(set.Key) > 0}
	if g.unit.Column != "" {
		g.by = sources.Keys{Columns: []string{g.unit.Column}, Day: g.unit.Day}
	}
	if column, isTime := strings.CutPrefix(set.Split, splitByTimeOf); isTime {
		switch f := fieldOf(g.table.Schema, column); {
		case f == nil:
			return noColumn("split", column, g.table.Schema)
		case f.Kind != dataset.Time:
			return invalid("split", "split=time names the column %q, which is not a column of dates or times", column)
		}
		g.by.Latest = column
	}
	if set.Stratify != "" {
		if fieldOf(g.table.Schema, set.Stratify) == nil {
			return noColumn("stratify", set.Stratify, g.table.Schema)
		}
		g.by.Stratum = set.Stratify
	}
	c.card = c.newCard(g.unit)
	c.card.Source = c.from
	for _, skipped := range g.table.Skipped {
		c.card.Skipped = append(c.card.Skipped, Skipped(skipped))
	}
	return nil
}

// sourceDigest is what a table of a source is known by: its rows, whatever their order and whatever the table is called, as sources of this kind sum them up. An upload of the same rows has
// another.
func (s *Service) sourceDigest(kind string, t sources.Snapshot) [32]byte {
	mac := hmac.New(sha256.New, s.digest[:])
	fmt.Fprintf(mac, "holdoutd table of a source 1\n%s\n%d\n%s\n", kind, t.Rows, t.Checksum)
	return [32]byte(mac.Sum(nil))
}

// readUnits reads the units, and decides where each of them goes.
func (g *registering) readUnits() (*assigned, error) {
	c, set := g.creation, g.settings
	g.registration.enter(RegistrationReading, g.table.Rows)
	room, err := newRoom(c.work, assignedBytes*g.table.Rows+1<<12)
	if err != nil {
		return nil, err
	}
	c.room = room
	a := &assigning{key: c.service.split[:], day: g.by.Day, cut: c.service.tagCut, room: room, most: g.table.Rows, largest: set.LargestUnit, latest: g.by.Latest != "", stratum: g.by.Stratum, columns: g.by.Columns, places: g.by.Places, given: g.given}
	a.begin()
	if err := g.from.Units(c.ctx, g.table, g.by, func(u sources.Units) error {
		err := a.add(u)
		g.registration.progress(a.rows)
		return err
	}); err != nil {
		return nil, errors.Join(err, room.close())
	}
	if a.rows != g.table.Rows {
		return nil, errors.Join(changedMeanwhile(), room.close())
	}
	if err := a.checkShared(g.unit); err != nil {
		return nil, errors.Join(err, room.close())
	}
	placing, err := newRoom(c.work, placedBytes*int64(len(a.tags))+1<<12)
	if err != nil {
		return nil, errors.Join(err, room.close())
	}
	c.room = placing
	places, err := g.place(a)
	err = errors.Join(err, room.close()) // places are all in the other
	if err != nil {
		return nil, errors.Join(err, placing.close())
	}
	return places, nil
}

// place divides the units, and gives each a number.
func (g *registering) place(a *assigning) (*assigned, error) {
	c, set, n := g.creation, g.settings, len(a.tags)
	if int64(n) > dataset.MaxRows {
		return nil, &Error{Kind: TooLarge, Detail: fmt.Sprintf("the table has %d units, at most %d are divided", n, dataset.MaxRows)}
	}
	var size, check int
	var err error
	if g.given == nil {
		if size, err = holdoutSize(set.Holdout, n); err != nil {
			return nil, err
		}
		if check, err = checkSize(set.Check, set.defaultCheck(), n, size); err != nil {
			return nil, err
		}
	}
	sorted := order(c.room, a.tags)
	ties := a.ties(sorted)
	if len(ties) > 0 {
		if err := g.from.Units(c.ctx, g.table, g.by, func(u sources.Units) error { return a.untie(ties, u) }); err != nil {
			return nil, err
		}
		if err := a.settle(ties); err != nil {
			return nil, err
		}
	}
	var p parts
	switch {
	case g.given != nil:
		p = g.given.divide(c.room, a.of)
	case a.latest:
		p = splitByLatest(c.room, a.tags, a.times, sizes{size, check})
	case a.stratum != "":
		p, c.card.Strata = splitByStrata(c.room, a.tags, a.strata(), sizes{size, check})
	default:
		p = splitByTag(c.room, a.tags, sizes{size, check})
	}
	if c.order, err = newPlacing(); err != nil {
		return nil, err
	}
	c.card.Units = Counts{Training: int64(len(p.training)), Check: int64(len(p.check)), Holdout: int64(len(p.holdout))}
	var units [][]uint32
	for _, side := range []sourcedSide{{name: trainingDir, units: p.training}, {name: checkDir, units: p.check}, {name: holdoutDir, units: p.holdout}} {
		if len(side.units) == 0 {
			continue
		}
		c.order.shuffle(side.units)
		g.sides, units = append(g.sides, side), append(units, side.units)
	}
	return a.assign(c.room, sorted, ties, units...), nil
}

// partName is the name of a part where the source keeps it.
func partName(holdout, side string) string {
	return strings.NewReplacer("-", "").Replace(holdout) + "_" + side
}

func (g *registering) partNames() (names []string) {
	for _, side := range g.sides {
		if g.creation.from == nil { // in the holdout's own directory
			names = append(names, side.name+segmentsSuffix)
			continue
		}
		names = append(names, partName(g.id, side.name))
	}
	return names
}

// makeParts has the source make the parts, and checks that they are what was asked for.
func (g *registering) makeParts(places *assigned) error {
	g.registration.enter(RegistrationDividing, g.table.Rows)
	var specs []sources.PartSpec
	for i, name := range g.partNames() {
		specs = append(specs, sources.PartSpec{Name: name, Units: int64(len(g.sides[i].units))})
	}
	infos, err := g.from.Divide(g.ctx, g.table, g.by, specs, places.find, g.registration.progress)
	if err != nil {
		return err
	}
	if places.units != places.first[len(specs)] || len(infos) != len(specs) {
		return changedMeanwhile()
	}
	rows := int64(0)
	for i, info := range infos {
		if info.Name != specs[i].Name || info.Units != specs[i].Units || info.Rows < info.Units || !slices.Equal(info.Schema.Fields, g.table.Schema.Fields) {
			return fmt.Errorf("holdout: the source has made the part %+v, want %+v", info, specs[i])
		}
		g.sides[i].info = info
		rows += info.Rows
		switch g.sides[i].name {
		case trainingDir:
			g.card.Rows.Training = info.Rows
		case checkDir:
			g.card.Rows.Check = info.Rows
		default:
			g.card.Rows.Holdout = info.Rows
		}
		if g.settings.LargestUnit > 0 && info.LargestUnit > g.settings.LargestUnit {
			return tooLargeUnit(g.settings.LargestUnit)
		}
	}
	if rows != g.table.Rows {
		return changedMeanwhile()
	}
	return nil
}

// describe fills the card with what the training part shows, and writes what is known of the parts to dir.
func (g *registering) describe(dir string) (err error) {
	c := g.creation
	c.card.LargestUnit = max(1, c.settings.LargestUnit)
	var training *sources.PartInfo
	for i, side := range g.sides {
		if err := writePart(dir, side.name, c.from, side.info); err != nil {
			return fmt.Errorf("holdout: %w", err)
		}
		c.texts = side.info.Texts
		if side.name == trainingDir {
			training = &g.sides[i].info
		}
	}
	c.card.Columns = columnCards(g.table.Schema, nil, c.texts)
	if training == nil {
		return nil
	}
	if g.unit.Column != "" && c.settings.LargestUnit == 0 {
		c.card.LargestUnit = max(1, training.LargestUnit)
	}
	opened, err := g.from.Open(c.ctx, *training, c.card.LargestUnit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	facts, err := opened.Facts(c.ctx)
	if err != nil {
		return err
	}
	if len(facts) != len(c.card.Columns) {
		return fmt.Errorf("holdout: the source says facts of %d columns, want %d", len(facts), len(c.card.Columns))
	}
	for i, f := range facts {
		card := &c.card.Columns[i]
		card.say(f.Nulls, f.Low, f.High)
		if card.Kind == dataset.Text {
			if card.Distinct = f.Distinct; f.Distinct <= MaxCardValues {
				if err := g.values(opened, card); err != nil {
					return err
				}
			}
		}
		if f.Infinite > 0 && i < MaxInfiniteWarnings {
			c.card.Warnings = append(c.card.Warnings, infiniteWarning(card.Name, f.Infinite))
		}
	}
	return g.warnOfDependence(opened, *training)
}

// values are listed of a text column with few.
func (g *registering) values(opened sources.Part, card *ColumnCard) error {
	values, few, err := opened.Distinct(g.ctx, card.Name, MaxCardValues)
	if err != nil || !few {
		return err
	}
	size := 0
	var texts []string
	for _, code := range values.Codes {
		if code != 0 {
			text := values.Dictionary.Text(int(code) - 1)
			texts, size = append(texts, text), size+len(text)
		}
	}
	if size <= maxCardText {
		slices.Sort(texts)
		card.Values = texts
	}
	return nil
}

// warnOfDependence looks at the units of the first numbers of the training part: they were drawn at random. Of a draft nothing is said, for which units these are depends on the settings.
func (g *registering) warnOfDependence(opened sources.Part, training sources.PartInfo) error {
	most := max(1, earlyCells/int64(max(1, len(training.Schema.Fields))))
	units := min(training.Units, max(1, most*training.Units/training.Rows))
	t, offsets, err := (&sourcedPart{Part: opened, info: training, found: func(err error) *Error {
		return &Error{Kind: SourceChanged, Detail: "the parts were changed while the table was registered; register it again", Err: err}
	}}).read(g.ctx, 0, units)
	if err != nil {
		return err
	}
	columns := make([]dataset.Column, t.Columns())
	for i := range columns {
		columns[i] = *t.Column(i)
	}
	rows := groupByRow(t.Rows())
	if offsets != nil {
		rows = grouping{of: make([]uint32, t.Rows()), first: offsets[:len(offsets)-1], n: len(offsets) - 1}
		for u := range rows.first {
			for row := offsets[u]; row < offsets[u+1]; row++ {
				rows.of[row] = uint32(u)
			}
		}
	}
	g.card.Warnings = append(g.card.Warnings, dependenceWarnings(columns, rows, g.unit, g.settings.Label)...)
	return nil
}

// replaces refuses, now that the parts are made, a holdout that is there already, and one that would hold out rows that were shown: those of its training part and its check part must be the
// same as those of the holdout in whose place it comes, by the checksums that the source compares.
func (g *registering) replaces(dir string) error {
	old := g.old
	if old == nil {
		return nil
	}
	if !old.gone && sameSettings(g.card.Settings, old.card.Settings) {
		return existsError(old.id, reasonSame)
	}
	if old.draft {
		return nil
	}
	for _, side := range []string{trainingDir, checkDir} {
		now, _, err := readPart(dir, side+partSuffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		shown, _, err := readPart(g.service.holdoutPath(old.id), side+partSuffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if now.Part.Units != shown.Part.Units || now.Part.Rows != shown.Part.Rows || !sameChecksums(now.Part.Checksums, shown.Part.Checksums) {
			return existsError(old.id, reasonShown)
		}
	}
	return nil
}
