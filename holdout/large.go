package holdout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dataset/prints"
	"github.com/holdoutd/holdoutd/internal/machine"
	"github.com/holdoutd/holdoutd/sources"
	folders "github.com/holdoutd/holdoutd/sources/files"
)

// An upload that is larger than memory becomes a holdout as a table of a source does: it is decoded and divided piece by piece, and its parts are segments that are mapped while they are read
// (docs/format/segments.md). It takes minutes, so it is a registration that goes on in the background. But it is an upload all the same: the parts are in the holdout's own directory, made and
// removed with it; the table is known by the digest and by the prints that uploads have; and its card is theirs.

const (
	// mostAtOnce is the decoded size of a table up to which it is divided at once, on a machine of any memory: that takes a minute, which is what clients and proxies wait for a reply.
	mostAtOnce = 4 << 30
	// memoryShare is the part of a machine's memory that is: a quarter. While a table is divided at once, rows are picked from all of it at random, and the parts are written beside it: both
	// should stay in memory.
	memoryShare = 4
	// leastAtOnce keeps a small machine from dividing every table piece by piece.
	leastAtOnce = 64 << 20
	// dividing is how much room on the disk it takes to divide a table piece by piece, by its decoded size: rows on their way to their places, and the parts.
	dividing = 1.7
)

// atOnce is Limits.AtOnce by default.
func atOnce() int64 { return max(leastAtOnce, min(mostAtOnce, machine.Memory()/memoryShare)) }

// segmentsSuffix is that of the directories in a holdout's directory that have the segments of its parts. The file NAME.part beside one says what is in it.
const segmentsSuffix = "_segments"

// segmented reports whether the parts of a holdout are segments in its directory.
func (c *Card) segmented() bool {
	_, ok := c.Parts[holdoutDir+partSuffix]
	return ok && c.Source == nil
}

// isLarge reports whether the spooled upload is divided piece by piece: its parts together, where they are given.
func (c *creation) isLarge() (size folders.Size, large bool, err error) {
	files, most := int64(0), c.service.limits.AtOnce
	for _, path := range c.uploads {
		info, err := os.Stat(path)
		if err != nil {
			return size, false, fmt.Errorf("holdout: upload: %w", err)
		}
		files += ingest.DefaultFreeExpansionBytes + ingest.DefaultMaxExpansion*info.Size()
	}
	if files <= most {
		return size, false, nil // whatever is in them
	}
	for _, part := range allParts {
		path, ok := c.uploads[part]
		if !ok {
			continue
		}
		one, err := folders.SizeOf(c.ctx, c.service.decoder, path, ingest.Limits{MaxFileBytes: c.service.limits.UploadBytes})
		if err != nil {
			return size, false, c.partError(part, err)
		}
		if one.Rows == 0 && part != partTable { // as decoding says it
			return size, false, uploadError(part, &ingest.Error{Kind: ingest.NoRows, Detail: "the file has columns but no rows"})
		}
		size.Rows, size.Bytes, size.Columns = size.Rows+one.Rows, size.Bytes+one.Bytes, one.Columns
	}
	return size, size.Bytes > most, nil
}

// Begun is what became of an upload: a holdout, or the registration of one that is large.
type Begun struct {
	Card         Card
	Registration *Registration // nil: the holdout is there
	Replayed     bool          // the same request was here before
}

// beginLarge begins to make a holdout of a spooled upload that is large. done is told when nothing needs the work directory any more.
func (s *Service) beginLarge(c *creation, size folders.Size, done func()) (begun Begun, err error) {
	if err := s.roomFor(size); err != nil {
		done()
		return begun, err
	}
	r := newRegistration(Registration{ID: registrationPrefix + strings.TrimPrefix(c.id, holdoutPrefix), Name: c.settings.Name, Stage: RegistrationWaiting, Rows: size.Rows,
		Begun: time.Now().UTC().Truncate(time.Microsecond)})
	r.principal = c.principal.KeyID
	if c.idem != nil {
		r.key, r.request = c.idem.Key, c.idem.Request
	}
	running, cancel := context.WithCancel(s.ending)
	r.cancel = cancel // before anybody finds it
	if same, err := s.registrations.add(r); same != nil || err != nil {
		cancel()
		done()
		if err != nil {
			return begun, err
		}
		now := same.state()
		return Begun{Registration: &now, Replayed: true}, nil
	}
	c.ctx = running
	now := r.state()
	if s.shared {
		s.flights.Go(func() { s.follows(r) })
	}
	s.flights.Go(func() {
		defer cancel()
		defer done()
		s.divideLarge(c, r)
	})
	return Begun{Registration: &now}, nil
}

// roomFor refuses a table for which the disk of the holdouts has no room, before the work begins: it would fail in the middle.
func (s *Service) roomFor(size folders.Size) error {
	free, err := freeBytes(s.making)
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	if need := int64(dividing * float64(size.Bytes)); free < need {
		return &Error{Kind: DiskFull, Detail: fmt.Sprintf("dividing this table needs about %d bytes of the disk of the data directory, and %d are free; make room and send the request again", need, free)}
	}
	return nil
}

// divideLarge makes a holdout of a large upload, and says how it ended.
func (s *Service) divideLarge(c *creation, r *registration) {
	err := s.working(c, (&registering{creation: c, registration: r}).runLarge)
	id := c.id
	if err != nil && c.idem != nil && KindOf(err) == Exists { // the same request, sent twice at the same time
		if card, replayed, known := s.repeated(context.WithoutCancel(c.ctx), c.idem); replayed && known == nil {
			id, err = card.ID, nil
		}
	}
	err = storageError(c.largeError(err))
	var problem *Error
	switch {
	case err == nil:
		s.log.Info("holdout created", "holdout", id, "by", c.principal.KeyID, "training_units", c.card.Units.Training, "holdout_units", c.card.Units.Holdout, "segments", true)
	case errors.As(err, &problem):
		s.log.Warn("a large upload became no holdout", "by", c.principal.KeyID, "error", err)
	default:
		problem = &Error{Kind: Internal, Detail: "the table could not be divided; the server's log says why", Err: err}
		s.log.Error("a large upload became no holdout", "by", c.principal.KeyID, "error", err)
	}
	r.end(id, problem)
}

// runLarge makes a holdout of an upload piece by piece; of a dry run its card alone.
func (g *registering) runLarge() (err error) {
	c, s := g.creation, g.service
	if err := c.checkFollows(); err != nil {
		return err
	}
	out, remove, err := c.finished()
	if err != nil {
		return err
	}
	defer remove()
	folder, err := folders.New(folders.Options{Dir: c.work, Parts: out, Scratch: c.work, Argv: s.decoder, Limits: ingest.Limits{MaxFileBytes: s.limits.UploadBytes}, SegmentRows: s.segmentRows})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	g.from = &place{Source: folder}
	if err := g.lookLarge(folder); err != nil {
		return err
	}
	g.by.Places = len(g.by.Columns) > 0 // a row without a unit is a unit of its own, as it is in a table that is divided at once
	if err := g.recogniseLarge(folder); err != nil {
		return err
	}
	if g.places, err = g.readUnits(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.room.close()) }()
	if err := c.plan(); err != nil {
		return err
	}
	if err := g.makeParts(g.places); err != nil {
		return err
	}
	for _, path := range c.uploads {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("holdout: upload: %w", err)
		}
	}
	g.registration.enter(RegistrationChecking, g.table.Rows)
	if err := g.describe(out); err != nil {
		return err
	}
	c.card.Target = c.settings.target(g.unit, c.card.LargestUnit)
	rows, err := c.print(out)
	if err != nil {
		return err
	}
	defer rows.close() // read only
	// What takes long is done before others have to wait: their holdouts that come meanwhile are compared below.
	if _, err := rows.recognise(); err != nil {
		return err
	}
	if _, _, err := rows.copies(); err != nil {
		return err
	}
	select {
	case s.creating <- struct{}{}:
		defer func() { <-s.creating }()
	case <-c.ctx.Done():
		return &Error{Kind: Unavailable, Detail: "the upload was given up before it was recorded", Err: c.ctx.Err()}
	}
	if err := c.find(); err != nil {
		return err
	}
	if err := c.replaces(out); err != nil {
		return err
	}
	if err := rows.judge(); err != nil || c.dry {
		return err
	}
	if err := g.checkCancelled(); err != nil {
		return err
	}
	return c.commit(out)
}

// lookLarge looks at the uploaded table: that of a file, or of several, which are the parts that were given.
func (g *registering) lookLarge(folder *folders.Source) error {
	c := g.creation
	if path, ok := c.uploads[partTable]; ok {
		return g.look(filepath.Base(path))
	}
	g.registration.enter(RegistrationLooking, 0)
	g.given = &givenSides{}
	var of []sources.Snapshot
	for _, part := range allParts {
		path, ok := c.uploads[part]
		if !ok {
			continue
		}
		found, err := folder.Look(c.ctx, filepath.Base(path))
		if err != nil {
			return c.partError(part, err)
		}
		if len(of) > 0 {
			if err := sameSchema(of[0].Schema, found.Schema, part); err != nil {
				return err
			}
		}
		g.given.names, of = append(g.given.names, part), append(of, found)
	}
	var err error
	if g.table, g.given.first, err = folder.Join("*"+partFileSuffix, of...); err != nil {
		return err
	}
	return g.fit()
}

// givenSides are the parts of an upload that brings them, which are read as one table.
type givenSides struct {
	names []string
	first []int64 // the place of each one's first row in the table; some part begins where another ends
}

// at is the part in which a place lies, by its number among the names.
func (p *givenSides) at(place int64) (part int) {
	part = -1
	for i, first := range p.first {
		if first <= place && (part < 0 || first > p.first[part]) {
			part = i
		}
	}
	return part
}

// divide lists the units of each part, as they were given.
func (p *givenSides) divide(r *room, of []uint32) parts {
	sides := makeIn[side](r, len(of))
	for u, part := range of {
		switch p.names[part] {
		case partHoldout:
			sides[u] = inHoldout
		case partCheck:
			sides[u] = inCheck
		}
	}
	return divide(r, sides)
}

// recogniseLarge reads all rows once: it makes the table's digest, finds the holdout that it has already, and looks for groups of rows that are alike, as it is done with a table that is divided at
// once. Parts that are given are compared with each other, and what rows are alike is not said: nothing is split.
func (g *registering) recogniseLarge(folder *folders.Source) error {
	c := g.creation
	var early []uint32
	var each []*dataset.Digest
	if g.given == nil {
		early = c.rowsAtFirst(nil, int(g.table.Rows), len(g.table.Schema.Fields))
	} else {
		for range g.given.names {
			each = append(each, dataset.NewDigest())
		}
	}
	digest, picked := dataset.NewDigest(), gathering{schema: g.table.Schema}
	err := folder.Rows(c.ctx, g.table, nil, func(first int64, rows *dataset.Table) error {
		g.registration.progress(first + int64(rows.Rows()))
		if err := digest.Add(rows); err != nil {
			return err
		}
		if g.given != nil {
			return each[g.given.at(first)].Add(rows)
		}
		var here []uint32
		for len(early) > 0 && int64(early[0]) < first+int64(rows.Rows()) {
			here, early = append(here, uint32(int64(early[0])-first)), early[1:]
		}
		return picked.pick(rows, here)
	})
	if err != nil {
		return err
	}
	c.table = digest.Sum(c.service.digest[:])
	if g.given != nil {
		sums := map[string][32]byte{}
		for i, part := range g.given.names {
			sums[part] = each[i].Sum(c.service.digest[:])
		}
		if err := differentParts(sums); err != nil {
			return err
		}
	}
	if err := c.find(); err != nil { // early; it is looked again when the parts are made
		return err
	}
	if picked.next == 0 {
		return nil
	}
	t, _, err := picked.table()
	if err != nil {
		return err
	}
	columns := make([]dataset.Column, t.Columns())
	for i := range columns {
		columns[i] = *t.Column(i)
	}
	c.early, err = forewarning(columns, g.unit, g.table.Rows, func(name string) (dataset.Column, error) {
		of := gathering{schema: dataset.Schema{Fields: []dataset.Field{*fieldOf(g.table.Schema, name)}}}
		if err := folder.Rows(c.ctx, g.table, []string{name}, func(_ int64, rows *dataset.Table) error {
			return of.add(sources.Block{Rows: rows, First: of.next})
		}); err != nil {
			return dataset.Column{}, err
		}
		t, _, err := of.table()
		if err != nil {
			return dataset.Column{}, err
		}
		return *t.Column(0), nil
	})
	return err
}

// pick gathers some rows of a table.
func (g *gathering) pick(t *dataset.Table, rows []uint32) error {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]dataset.Column, t.Columns())
	for i := range columns {
		columns[i] = pick(*t.Column(i), rows)
	}
	some, err := dataset.FromColumns(columns...)
	if err != nil {
		return err
	}
	return g.add(sources.Block{Rows: some, First: g.next})
}

// largeError says what is wrong with a large upload in the words that an upload has.
func (c *creation) largeError(err error) error { return c.partError(partTable, err) }

// partError is largeError of a part of the upload.
func (c *creation) partError(part string, err error) error {
	var ours *Error
	var theirs *sources.Error
	var decoding *ingest.Error
	switch {
	case err == nil || errors.As(err, &ours):
		return err
	case c.ctx.Err() != nil:
		return &Error{Kind: Unavailable, Detail: "the upload was given up", Err: err}
	case errors.As(err, &decoding):
		return uploadError(part, decoding)
	case !errors.As(err, &theirs):
		return err
	case theirs.Kind == sources.Refused:
		e := &Error{Kind: BadUpload, Detail: theirs.Detail, Err: err}
		if theirs.Column != "" {
			e.Members = map[string]any{"column": theirs.Column}
		}
		return e
	case theirs.Err != nil: // of the disk
		return theirs.Err
	}
	return &Error{Kind: Unavailable, Detail: "the disk of the data directory fails; send the request again", Err: err}
}

// ownPart is a part in the holdout's own directory. What is wrong with its files is said as of column files.
type ownPart struct{ sources.Part }

// openOwn opens a part in a holdout's own directory.
func openOwn(ctx context.Context, dir string, info sources.PartInfo, rowsCap int64) (sources.Part, error) {
	p, err := folders.OpenPart(ctx, dir, info, rowsCap)
	if err != nil {
		return nil, ownError(err)
	}
	return ownPart{p}, nil
}

// ownError is an error of files that are the server's own.
func ownError(err error) error {
	var theirs *sources.Error
	switch {
	case !errors.As(err, &theirs) || theirs.Err == nil:
		return err
	case theirs.Kind == sources.Changed && errors.Is(theirs.Err, fs.ErrNotExist):
		return &dataset.CorruptError{Path: segmentsSuffix, Detail: "files are missing", Err: theirs.Err}
	case theirs.Kind == sources.Changed || theirs.Kind == sources.Unavailable:
		return theirs.Err
	}
	return err
}

// keptOwn are the parts in a holdout's own directory, by their names; none where there are none.
func keptOwn(dir string) (map[string]sources.PartInfo, error) {
	own := map[string]sources.PartInfo{}
	for _, file := range partFiles {
		k, _, err := readPart(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if k.Source == "" {
			own[strings.TrimSuffix(file, partSuffix)] = k.Part
		}
	}
	return own, nil
}

// CheckSegments compares all segments in a holdout's directory with what the files beside them say; of a holdout that has none it does nothing.
func CheckSegments(ctx context.Context, dir string) error {
	own, err := keptOwn(dir)
	if err != nil {
		return err
	}
	for name, info := range own {
		p, err := openOwn(ctx, dir, info, 1)
		if err == nil {
			err = ownError(errors.Join(p.Check(ctx), p.Close()))
		}
		if err != nil {
			return fmt.Errorf("the part %s: %w", name, err)
		}
	}
	return nil
}

// Segments reports whether a directory in a holdout's directory has the segments of a part.
func Segments(name string) bool { return strings.HasSuffix(name, segmentsSuffix) }

// partPieces is a part in segments as prints read it.
type partPieces struct {
	ctx  context.Context
	part sources.Part
	info sources.PartInfo
}

var _ prints.Pieces = partPieces{}

func (p partPieces) Rows() int    { return int(p.info.Rows) }
func (p partPieces) Columns() int { return len(p.info.Schema.Fields) }
func (p partPieces) Each(yield func(t *dataset.Table) error) error {
	return p.part.Read(p.ctx, nil, 0, p.info.Units, func(b sources.Block) error {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		return yield(b.Rows)
	})
}

// Upload is Create of an upload that may be large: its holdout is made in the background then, and what is returned is the registration.
func (s *Service) Upload(ctx context.Context, p Principal, set Settings, up Upload, idempotencyKey string) (Begun, error) {
	return s.create(ctx, p, set, up, idempotencyKey, false)
}

// await waits for the holdout of a registration. It ends the registration when nobody waits any more.
func (s *Service) await(ctx context.Context, p Principal, begun Begun) (card Card, replayed bool, err error) {
	if begun.Registration == nil {
		return begun.Card, begun.Replayed, nil
	}
	r := s.registrations.find(begun.Registration.ID)
	if r == nil {
		return card, false, &Error{Kind: Unavailable, Detail: "the upload was forgotten; send it again"}
	}
	select {
	case <-r.ended:
	case <-ctx.Done():
		if !begun.Replayed { // else somebody else has begun it
			r.stop()
			<-r.ended
		}
		return card, false, &Error{Kind: Unavailable, Detail: "the upload was given up", Err: ctx.Err()}
	}
	now := r.state()
	switch {
	case now.Problem != nil:
		return card, false, now.Problem
	case now.Holdout == "":
		return card, false, &Error{Kind: Unavailable, Detail: "the upload was cancelled"}
	}
	card, err = s.Card(ctx, p, now.Holdout)
	return card, begun.Replayed, err
}

// dryLarge is a dry run of a large upload.
func (s *Service) dryLarge(c *creation, size folders.Size) error {
	if err := s.roomFor(size); err != nil {
		return err
	}
	r := newRegistration(Registration{ID: registrationPrefix + uuid.NewString(), Stage: RegistrationWaiting})
	return storageError(c.largeError(s.working(c, (&registering{creation: c, registration: r}).runLarge)))
}
