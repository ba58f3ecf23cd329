package holdout

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// uncommitted marks the directory of a holdout that the ledger does not know yet. A directory that has the mark and is
// not in the ledger is what a crash left; one without the mark is never removed for being unknown.
const uncommitted = "uncommitted"

// uploadTurn is how long an upload waits, without a word, for those before it. Clients and proxies give up on silence after a minute
// or two; a refusal says why, and the same request with its Idempotency-Key may come again.
var uploadTurn = time.Minute

// uploadsTurn waits until nobody else decodes and splits a table here, or compares what is held out: that takes all cores and the disk, and two of one table meet here. end lets the next one begin.
func (s *Service) uploadsTurn(ctx context.Context) (end func(), err error) {
	select {
	case s.creating <- struct{}{}:
		return func() { <-s.creating }, nil
	case <-ctx.Done():
		return nil, &Error{Kind: Unavailable, Detail: "the request was given up before its turn", Err: ctx.Err()}
	case <-time.After(uploadTurn):
		return nil, &Error{Kind: Unavailable, Detail: fmt.Sprintf("other uploads are being decoded, and this request's turn did not come within %v; send it again later", uploadTurn)}
	}
}

// Create makes a holdout of an upload: the body is spooled to disk, decoded in a child process, split, and written as
// column files; the ledger's commit makes it exist. Whatever fails before leaves nothing behind. Only admins may.
//
// The same table, in whatever order of rows, is refused with Exists once something was asked of its holdout, also after that was deleted. Before, it is created again with
// other settings, and the new holdout replaces the old one: see existsError for what must stay. With an
// Idempotency-Key the same request again returns the card of the first time, and another request is refused.
func (s *Service) Create(ctx context.Context, p Principal, set Settings, up Upload, idempotencyKey string) (card Card, replayed bool, err error) {
	return s.create(ctx, p, set, up, idempotencyKey, false)
}

func (s *Service) create(ctx context.Context, p Principal, set Settings, up Upload, idempotencyKey string, dry bool) (card Card, replayed bool, err error) {
	if err := admins(p); err != nil {
		return card, false, err
	}
	if s.lost {
		return card, false, s.ledgerError(ledger.ErrReplayOnly)
	}
	if err := s.takesNothingNew(); err != nil {
		return card, false, err
	}
	defer func() { err = storageError(err) }()
	if err := errors.Join(s.checkServerKey(), s.checkDecodeMemory()); err != nil {
		return card, false, err
	}
	asked := set
	set, err = set.withDefaults(s.naive)
	if err == nil {
		err = s.checkSource(ctx, set)
	}
	if err != nil {
		return card, false, err
	}
	still, release, err := s.addFiles(ctx)
	if err != nil {
		return card, false, err
	}
	defer release()
	work, err := os.MkdirTemp(s.path(temporaryDir), "upload-")
	if err != nil {
		return card, false, fmt.Errorf("holdout: upload: %w", err)
	}
	defer func() {
		s.remove(work)
	}()
	c := creation{service: s, ctx: ctx, principal: p, settings: set, work: work, id: IDPrefix + uuid.NewString(), dry: dry, rowsMeant: asked.Unit == rowUnit, still: still}
	var digest map[string][sha256.Size]byte
	if set.Path != "" {
		digest, err = c.find(up)
	} else {
		digest, err = c.spool(up, idempotencyKey != "")
	}
	if err != nil {
		return card, false, err
	}
	if idempotencyKey != "" {
		c.idem = &ledger.Idempotency{Principal: p.KeyID, Key: idempotencyKey, Request: createDigest(asked, digest), Resource: c.id}
		if card, replayed, err := s.repeated(ctx, c.idem); replayed || err != nil {
			return card, replayed, err
		}
	}
	if c.sourceTable != nil {
		if err := c.take(); err != nil {
			return card, false, err
		}
	}
	end, err := s.uploadsTurn(ctx)
	if err != nil {
		return card, false, err
	}
	defer end()
	// Decoded tables are mapped too; a fault in one is the disk's, for nobody else knows its name.
	if faulted := dataset.Guarded(func() { err = c.run() }); faulted != nil {
		err = diskFails(faulted)
	}
	if c.idem != nil && KindOf(err) == Exists {
		if card, replayed, err := s.repeated(ctx, c.idem); replayed || err != nil {
			return card, replayed, err // the same request, sent twice at the same time
		}
	}
	if err != nil {
		return card, false, err
	}
	if dry {
		c.card.ID, c.card.Created = "", time.Time{}
		c.card.sayMore()
		return c.card.sketch(c.early), false, nil
	}
	s.log.Info("holdout created", "holdout", c.id, "by", p.KeyID, "training_units", c.card.Units.Training, "holdout_units", c.card.Units.Holdout)
	card, err = s.Card(ctx, p, c.id)
	return card, false, err
}

// diskFails is about a decoded table that cannot be read.
func diskFails(fault error) *Error {
	return &Error{Kind: Unavailable, Detail: "the disk of the data directory fails; send the request again", Err: fault}
}

// remove removes a directory of an upload or an export. What cannot be removed now is tried again later, and at the next start.
func (s *Service) remove(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		s.log.Error("removing temporary files; it is tried again", "dir", dir, "error", err)
		s.leftMutex.Lock()
		defer s.leftMutex.Unlock()
		s.leftovers = append(s.leftovers, dir)
	}
}

// clearLeftovers tries again to remove what could not be removed.
func (s *Service) clearLeftovers() {
	s.leftMutex.Lock()
	left := s.leftovers
	s.leftovers = nil
	s.leftMutex.Unlock()
	for _, dir := range left {
		s.remove(dir)
	}
}

// repeated finds what an upload with this Idempotency-Key has made before.
func (s *Service) repeated(ctx context.Context, i *ledger.Idempotency) (card Card, replayed bool, err error) {
	known, ok, err := s.used(ctx, i)
	if err != nil || !ok {
		return card, false, err
	}
	card, err = s.Card(ctx, Principal{}, known.Resource)
	var gone *Error
	if errors.As(err, &gone) && gone.Members["reason"] == reasonReplaced { // the card of the first time is on record still
		h, err := s.ledger.Holdout(ctx, known.Resource)
		if err != nil {
			return card, false, s.ledgerError(err)
		}
		return s.show(h), true, nil
	}
	return card, err == nil, err
}

// finishedDir is where the parts of an upload are made, in its own directory.
const finishedDir = "finished"

// creation is one upload on its way to a holdout.
type creation struct {
	service   *Service
	ctx       context.Context
	principal Principal
	settings  Settings
	idem      *ledger.Idempotency
	work      string // a directory of its own, removed at the end
	id        string
	dry       bool         // nothing is to be made
	still     func() error // what was put into the data directory is certainly there
	rowsMeant bool         // one observation is a row because the owner says so

	uploads     map[string]string // part -> the spooled file
	files       []ingest.PartFile // of a table that is there already, in the place of an upload
	sourceTable *sourceTable      // a table that is there already in an engine
	tables      map[string]*dataset.Table
	skipped     []Skipped
	said        []Warning                    // about the file: what was skipped, and what its writer may not have meant
	room        *room                        // of the split
	groups      *grouped                     // of the table, where they were begun early
	texts       map[string]dataset.TextShape // of the upload, by column
	orders      map[string][]string          // of categories, by column: with texts that no training row has
	named       []string                     // columns of categories without an order
	card        Card
	early       []Warning    // what a draft says
	old         *predecessor // nil where the table is new
	table       [32]byte     // its digest
	digest      [32]byte     // that the holdout is known by: the table's, or the successor's of an older one
	order       placing      // of the rows that are stored
	offsets     []uint32     // where the units of the training part begin, and the last ends; nil where units are rows

	sketched   time.Time     // when its sketches were stored, or a little before
	registered *registration // of its table in a source, from before that is made

	unsure bool // it may become a holdout though its making has failed
}

func (c *creation) run() (err error) {
	defer func() {
		for _, t := range c.tables {
			err = errors.Join(err, t.Close())
		}
		err = errors.Join(err, c.room.close())
		if err != nil {
			c.unsketch()
		}
	}()
	if err := c.decode(); err != nil {
		return err
	}
	grouped := c.beginGrouping()
	err = c.recognise()
	grouped()
	if err != nil {
		return err
	}
	out := filepath.Join(c.work, finishedDir)
	if err := os.Mkdir(out, privateMode); err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	if err := c.divide(out); err != nil {
		return err
	}
	if err := c.replaces(out); err != nil || c.dry {
		return err
	}
	if err := c.recogniseRows(out); err != nil {
		return err
	}
	return c.commit(out)
}

// recognise finds the holdout that the table has already, refuses where it cannot be replaced, and where the server is full.
func (c *creation) recognise() error {
	s := c.service
	d, sums := dataset.NewDigest(), map[string][32]byte{}
	for _, part := range allParts {
		if t := c.tables[part]; t != nil {
			one := dataset.NewDigest()
			if err := errors.Join(one.Add(t), d.Join(one)); err != nil {
				return &Error{Kind: BadUpload, Detail: "the parts need the same columns of the same kinds", Err: err}
			}
			sums[part] = one.Sum(s.digest[:])
		}
	}
	c.table = d.Sum(s.digest[:])
	if err := apart(sums); err != nil {
		return err
	}
	id, digest, known, err := s.known(c.ctx, c.table)
	if err != nil {
		return err
	}
	c.digest = digest
	if known {
		if c.old, err = s.precede(c.ctx, id, c.settings); err != nil || !c.old.gone {
			return err
		}
	}
	all, err := s.ledger.Holdouts(c.ctx)
	if err != nil {
		return s.ledgerError(err)
	}
	living := 0
	for _, h := range all {
		if !h.Deleted {
			living++
		}
	}
	if living >= s.limits.Holdouts {
		return fail(TooLarge, "this server keeps at most %d holdouts; delete one", s.limits.Holdouts)
	}
	return nil
}

// apart refuses parts that are the same rows, by their digests: what is handed out is not held out.
func apart(sums map[string][32]byte) error {
	known := map[[32]byte]string{}
	for _, part := range allParts {
		sum, sent := sums[part]
		if !sent {
			continue
		}
		if other, same := known[sum]; same {
			return &Error{Kind: BadUpload, Detail: fmt.Sprintf("the parts %s and %s have the same rows: one of them was sent twice. A holdout is for rows that nobody has", other, part)}
		}
		known[sum] = part
	}
	return nil
}

// commit moves the finished directory to its place and makes it a holdout by the ledger's commit.
func (c *creation) commit(out string) (err error) {
	defer func() {
		if err == nil || c.registered == nil || c.unsure {
			return
		}
		if failed := c.service.drop(c.ctx, c.registered); failed != nil {
			c.service.log.Error("an upload has failed, and left a table in its source; drop it there", "table", c.registered.Table, "error", failed)
		}
	}()
	s, final := c.service, c.service.path(holdoutsDir, c.id)
	keys := secrets{Version: secretsVersion}
	if _, err := rand.Read(keys.Noise[:]); err != nil {
		return fmt.Errorf("holdout: noise key: %w", err)
	}
	secret, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	state, err := json.Marshal(thresholdout.State{})
	if err != nil {
		return err
	}
	if c.card.Parts, err = fingerprints(out); err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	if c.settings.Source != "" {
		if err := c.load(out); err != nil {
			return err
		}
		if c.card.Parts, err = fingerprints(out); err != nil {
			return fmt.Errorf("holdout: %w", err)
		}
	}
	place := mark{Digest: hex.EncodeToString(c.digest[:])}
	if c.old != nil {
		place.Table = hex.EncodeToString(c.table[:])
	}
	if err := place.write(out, markFile); err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	draft := c.old == nil || c.old.draft
	if c.old != nil {
		c.card.Replaces = c.old.id
	}
	public, err := writeCard(c.card, c.early...)
	if err != nil {
		return err
	}
	if err := c.inTime(); err != nil {
		return err
	}
	if err := s.StillValid(c.ctx, c.principal); err != nil { // an upload takes up to hours
		return err
	}
	if err := publish(out, final); err != nil {
		return errors.Join(fmt.Errorf("holdout: %w", err), os.RemoveAll(final))
	}
	if err := c.still(); err != nil {
		return err // the mark stays, and the next start knows
	}
	err = c.record(ledger.Holdout{ID: c.id, Created: c.card.Created, Digest: c.digest, Public: public,
		Secret: secret, Limits: limits(c.card.Guarantee), State: state, Draft: draft})
	switch {
	case errors.Is(err, ledger.ErrUnavailable):
		// It may yet become durable. The mark stays, and the next start knows.
		c.unsure = true
		return s.ledgerError(err)
	case err != nil:
		return errors.Join(s.ledgerError(err), os.RemoveAll(final))
	}
	if err := os.Remove(filepath.Join(final, uncommitted)); err != nil {
		s.log.Error("removing the mark of a committed holdout", "holdout", c.id, "error", err) // the next start tries again
	}
	if err := s.commitSketches(c.id); err != nil {
		s.log.Error("naming the sketches of a committed holdout", "holdout", c.id, "error", err) // they are read all the same, and the next start tries again
	}
	return nil
}

// publish gives a directory its final name, with the mark in it, durably.
func publish(from, to string) error {
	if err := os.WriteFile(filepath.Join(from, uncommitted), nil, secretMode); err != nil {
		return err
	}
	if err := dataset.SyncDir(from); err != nil {
		return err
	}
	return dataset.Publish(from, to)
}

// sweep removes what crashed uploads and deletions left.
func (s *Service) sweep(ctx context.Context) error {
	if s.shared != nil {
		release, ok, err := s.shared.SweepFiles(ctx)
		if err != nil {
			return fmt.Errorf("holdout: leftovers: %w", err)
		}
		defer release()
		if !ok {
			s.log.Info("another server is taking an upload: what uploads have left is removed at a later start")
			return nil
		}
	}
	leftovers, err := os.ReadDir(s.path(temporaryDir))
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	for _, e := range leftovers {
		if err := s.unload(ctx, s.path(temporaryDir, e.Name(), finishedDir)); err != nil {
			s.log.Error("a table that an upload has left in its source could not be dropped; the next start tries again", "error", err)
			continue
		}
		if err := os.RemoveAll(s.path(temporaryDir, e.Name())); err != nil {
			return fmt.Errorf("holdout: leftovers: %w", err)
		}
	}
	holdouts, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	deleted := make(map[string]bool, len(holdouts))
	table, unkept := firstDigests(holdouts), map[string]bool{}
	for _, h := range holdouts {
		if deleted[h.ID] = h.Deleted; h.Deleted {
			h.Digest = table[h.ID]
			if err := s.keepUse(h); err != nil { // as on a full disk, on which a server starts all the same
				s.log.Error("what a deleted holdout was used for could not be kept: its files stay until a start that can", "holdout", h.ID, "error", err)
				unkept[h.ID] = true
			}
		}
	}
	var unknown []string
	kept, err := os.ReadDir(s.path(holdoutsDir))
	if err != nil {
		return fmt.Errorf("holdout: %w", err)
	}
	for _, e := range kept {
		dir := s.path(holdoutsDir, e.Name())
		gone, known := deleted[e.Name()]
		_, err := os.Lstat(filepath.Join(dir, uncommitted))
		marked := err == nil
		switch {
		case unkept[e.Name()]:
			err = nil
		case known && gone, !known && marked:
			if err := s.unload(ctx, dir); err != nil {
				s.log.Error("the table of a holdout that is no more could not be dropped in its source; the next start tries again", "dir", dir, "error", err)
				continue
			}
			err = os.RemoveAll(dir)
		case marked:
			err = os.Remove(filepath.Join(dir, uncommitted))
		case !known:
			// An old copy of the ledger beside newer files: nothing that we should remove, nor go on without.
			if err = s.acceptLost(dir); errors.Is(err, errNotAccepted) {
				unknown = append(unknown, e.Name())
				err = nil
			}
		default:
			err = nil
		}
		if err != nil {
			return fmt.Errorf("holdout: leftovers: %w", err)
		}
	}
	if err := errors.Join(s.sweepSketches(deleted), s.rememberLost(deleted)); err != nil {
		return err
	}
	if len(unknown) > 0 {
		return s.ledgerLost(fmt.Sprintf("does not know the holdouts whose tables are in %s: %s", s.path(holdoutsDir), strings.Join(unknown, ", ")), nil)
	}
	return nil
}

var errNotAccepted = errors.New("holdout: a holdout that the ledger does not know")

// acceptLost remembers the table of a holdout that the ledger does not know, so that it stays refused; for the first time
// only if the owner said so.
func (s *Service) acceptLost(dir string) error {
	sign := filepath.Join(dir, lostLedger)
	if _, err := os.Lstat(sign); err != nil {
		if !s.accept {
			return errNotAccepted
		}
		if err := os.WriteFile(sign, nil, secretMode); err != nil {
			return err
		}
		s.log.Warn("the ledger does not know this holdout: it cannot be asked any more", "dir", dir)
	}
	m, err := readMark(dir)
	table := m.Digest
	if m.Table != "" {
		table = m.Table
	}
	digest, decoded := hex.DecodeString(table)
	if err != nil || decoded != nil || len(digest) != len(s.digest) {
		s.log.Warn("a holdout that the ledger does not know has no mark: its table would be taken again", "dir", dir, "error", err)
		return nil
	}
	s.lostTables[[32]byte(digest)] = filepath.Base(dir)
	return nil
}

// newCard is what is known before the parts are written.
func (c *creation) newCard(unit unitRule) Card {
	return Card{ID: c.id, Name: c.settings.Name, Created: time.Now().UTC().Truncate(time.Microsecond), Settings: c.settings,
		Unit: unit.String(), LargestUnit: 1, Skipped: []Skipped{}, Warnings: []Warning{}, NullRule: nullRule}
}
