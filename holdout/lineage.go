package holdout

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/lineage"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// A budget belongs to rows. The very same table is known by its digest; rows that come again in another table are known by sketches of the parts of
// every holdout, which stay when it is deleted (docs/decisions/0011-lineage.md). An upload that holds out rows of which something is known, or would hand out
// what another holdout keeps, is refused, unless an admin says overlap=accepted: then its card says so for good.

// What becomes of a table with rows that are known: the setting overlap.
const (
	overlapRefused  = "refuse"
	overlapAccepted = "accepted"
)

// rowsKnown is the code of the card's warning that rows of the table are known.
const rowsKnown = "rows-known"

// Matters of an Overlap.
const (
	heldOutAgain     = "held-out-again"
	shownBefore      = "shown-before"
	heldOutElsewhere = "held-out-elsewhere"
	notCompared      = "not-compared"
)

// Overlap is what an upload has in common with an earlier holdout.
type Overlap struct {
	Holdout string  `json:"holdout" doc:"the id of the earlier holdout, which may be deleted"`
	Matter  string  `json:"matter" enum:"held-out-again,shown-before,held-out-elsewhere,not-compared" doc:"not-compared: nothing is known of the earlier one's rows, for its files are damaged, or not in this server's directory; held-out-again: held-out rows are held-out rows of the earlier one; shown-before: held-out rows are of its training or check part, or it is retired; held-out-elsewhere: rows of the training or check part are held out there, and can be asked about still"`
	Share   float64 `json:"share" doc:"0 where they are not compared; else how many at least, rounded up to tenths: of the held-out rows, or of held-out-elsewhere of the earlier one's"`
}

// sentence says it for people.
func (o Overlap) sentence() string {
	if o.Matter == notCompared {
		return fmt.Sprintf("whether rows are those of %s nobody can tell: its files are damaged, or not in this server's directory", o.Holdout)
	}
	share := fmt.Sprintf("about %.0f%% or more", 100*o.Share)
	switch {
	case o.Share <= 0.1:
		share = "a few"
	case o.Share >= 1:
		share = "nearly all"
	}
	switch o.Matter {
	case heldOutAgain:
		return fmt.Sprintf("%s of the held-out rows are held out by %s, too, whose budget is about them", share, o.Holdout)
	case shownBefore:
		return fmt.Sprintf("%s of the held-out rows are in the training or check part of %s, or it is retired and has released them", share, o.Holdout)
	default:
		return fmt.Sprintf("%s of the held-out rows of %s are in the training or check part of this table, and would be handed out", share, o.Holdout)
	}
}

// sketchedParts are the parts of which sketches are kept, in the order of the file.
var sketchedParts = []string{holdoutDir, trainingDir, checkDir}

// sketches are those of a holdout's parts; a part that it has not is nil.
type sketches map[string]*lineage.Sketch

// lineageDir has the sealed sketches of all holdouts, by their ids.
const lineageDir = "lineage"

// uncommittedSuffix is of the sketches of an upload that the ledger does not know yet. Those alone are removed for being unknown: others are of holdouts that a lost ledger has forgotten.
const uncommittedSuffix = ".uncommitted"

// maxSketchBytes bounds a file of sketches: three parts of tokens and rows with their cells.
const maxSketchBytes = 16 << 20

// lineageKeys are what sketches are made and sealed with.
type lineageKeys struct {
	rows        lineage.Key
	seal, nonce [32]byte
}

func newLineageKeys(secret serverSecret) lineageKeys {
	return lineageKeys{rows: secret.derive("lineage rows"), seal: secret.derive("lineage seal"), nonce: secret.derive("lineage nonce")}
}

// sealNonce is how many bytes of the HMAC of what is sealed stand before it as the nonce. So the same sketches are the same bytes, no random number is needed, and two
// texts have one nonce with a probability of 2^-96.
const sealNonce = 12

// aead is AES-256-GCM under the key of sketches.
func (k *lineageKeys) aead() cipher.AEAD {
	block, err := aes.NewCipher(k.seal[:])
	if err != nil {
		panic(err) // a key of 32 bytes
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // a block of 16 bytes
	}
	return gcm
}

// sealed returns the sealed sketches of a holdout, which open for its id alone.
func (k *lineageKeys) sealed(id string, text []byte) []byte {
	mac := hmac.New(sha256.New, k.nonce[:])
	fmt.Fprintf(mac, "%s\n", id)
	mac.Write(text)
	nonce := mac.Sum(nil)[:sealNonce]
	return k.aead().Seal(nonce[:sealNonce:sealNonce], nonce, text, []byte(id))
}

// open is the reverse of sealed, or fails.
func (k *lineageKeys) open(id string, sealed []byte) ([]byte, error) {
	if len(sealed) < sealNonce {
		return nil, lineage.ErrDamaged
	}
	return k.aead().Open(nil, sealed[:sealNonce], sealed[sealNonce:], []byte(id))
}

// recogniseRows compares the parts in dir with those of all holdouts that this server had, and refuses where rows are known, unless that is accepted. It puts what it
// finds on the card. The sketches are stored before the ledger knows the holdout, and before they are compared with those of uploads to other servers: so of two uploads at the same
// time one at least sees the other.
func (c *creation) recogniseRows(dir string) error {
	s := c.service
	known, err := s.ledger.Holdouts(c.ctx)
	if err != nil {
		return s.ledgerError(err)
	}
	lost, err := s.forgotten(known)
	if err != nil {
		return err
	}
	mine, err := c.compareRows(dir, slices.Concat(known, lost))
	if err != nil {
		return err
	}
	c.sketched = time.Now()
	if err := s.storeSketches(c.id+uncommittedSuffix, c.id, mine); err != nil || s.shared == nil { // a server alone takes one upload at a time
		return err
	}
	others, coming, err := c.meanwhile(known)
	if err != nil || len(others) == 0 {
		return err
	}
	_, err = c.compareRows(dir, others, coming...)
	return err
}

// compareRows makes the sketches of the parts in dir and compares them with those of holdouts. Of those that are coming nobody knows yet what they come to.
func (c *creation) compareRows(dir string, all []ledger.Holdout, coming ...string) (sketches, error) {
	s := c.service
	all = slices.Clone(all)
	for i := range all {
		if all[i].Deleted {
			all[i] = s.remembered(all[i])
		}
	}
	all = slices.DeleteFunc(all, func(h ledger.Holdout) bool { return c.old != nil && h.ID == c.old.id || h.Deleted && h.Draft })
	read := func(h ledger.Holdout) (sketches, error) {
		if !slices.Contains(coming, h.ID) {
			return s.sketchesOf(c.ctx, h)
		}
		parts, err := s.readSketches(h.ID)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // it came to nothing
		}
		if err != nil {
			return nil, fmt.Errorf("holdout: sketches of another upload: %w", err)
		}
		return parts, nil
	}
	var found []Overlap
	for {
		watch := lineage.Watch{Most: s.watched}
		compared, rest := []ledger.Holdout(nil), []ledger.Holdout(nil)
		for i, h := range all {
			parts, err := read(h)
			if err != nil {
				return nil, err
			}
			if parts == nil {
				if !h.Deleted && !slices.Contains(coming, h.ID) {
					found = append(found, Overlap{Holdout: h.ID, Matter: notCompared})
				}
				continue
			}
			if !parts.watch(&watch) { // more than are watched for at a time
				if len(compared) == 0 {
					return nil, fmt.Errorf("holdout: the sketches of %s have more tokens than can be watched for", h.ID)
				}
				rest = all[i:]
				break
			}
			compared = append(compared, h)
		}
		mine, err := s.sketch(c.ctx, dir, dataset.Reopen, &watch) // the parts were written a moment ago
		if err != nil {
			return nil, err
		}
		for _, h := range compared {
			parts, err := read(h)
			if err != nil {
				return nil, err
			}
			in := overlaps(h, parts, mine)
			if len(in) > 0 && slices.Contains(coming, h.ID) {
				return nil, fail(Unavailable, "another server is taking an upload with rows of this one; send it again when that has ended")
			}
			found = append(found, in...)
		}
		if len(rest) == 0 {
			return mine, c.judgeOverlaps(found)
		}
		all = rest
	}
}

const (
	// sketchTime is how long after its sketches were stored an upload can become a holdout. It takes seconds.
	sketchTime = 10 * time.Minute
	// sketchStale is the age from which on sketches that the ledger does not know are those of an upload that came to nothing: its server crashed. It leaves room for clocks, and
	// for a commit that waits.
	sketchStale = time.Hour
)

// meanwhile lists what has come since the holdouts that are known, now that the own sketches are stored: holdouts, and as if they were some, uploads of other servers that may yet become
// holdouts; coming are the ids of these. The directory is read before the ledger: so what has become a holdout in between is in one of them.
func (c *creation) meanwhile(known []ledger.Holdout) (others []ledger.Holdout, coming []string, err error) {
	s := c.service
	files, err := os.ReadDir(s.path(lineageDir))
	if err != nil {
		return nil, nil, fmt.Errorf("holdout: sketches: %w", err)
	}
	now, err := s.ledger.Holdouts(c.ctx)
	if err != nil {
		return nil, nil, s.ledgerError(err)
	}
	before, recorded := ids(known), ids(now)
	for _, h := range now {
		if !before[h.ID] {
			others = append(others, h)
		}
	}
	own, err := os.Stat(s.path(lineageDir, c.id+uncommittedSuffix)) // its time is by the clock that gave the others theirs
	if err != nil {
		return nil, nil, fmt.Errorf("holdout: sketches: %w", err)
	}
	for _, f := range files {
		id, uncommitted := strings.CutSuffix(f.Name(), uncommittedSuffix)
		if !uncommitted || id == c.id || recorded[id] {
			continue
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("holdout: sketches: %w", err)
		}
		if own.ModTime().Sub(info.ModTime()) < sketchStale {
			others, coming = append(others, ledger.Holdout{ID: id}), append(coming, id)
		}
	}
	return others, coming, nil
}

func ids(all []ledger.Holdout) map[string]bool {
	of := make(map[string]bool, len(all))
	for _, h := range all {
		of[h.ID] = true
	}
	return of
}

// inTime refuses to make a holdout of an upload that other servers may take for one that came to nothing.
func (c *creation) inTime() error {
	if time.Since(c.sketched) > sketchTime {
		return fail(Unavailable, "the upload was ready for more than %v and could not be recorded; send it again", sketchTime)
	}
	return nil
}

// unsketch removes the sketches of an upload that came to nothing.
func (c *creation) unsketch() {
	if c.sketched.IsZero() || c.unsure {
		return
	}
	if err := os.Remove(c.service.path(lineageDir, c.id+uncommittedSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.service.log.Error("removing the sketches of an upload that came to nothing; the next start tries again", "id", c.id, "error", err)
	}
}

// judgeOverlaps refuses what was found, or says it on the card.
func (c *creation) judgeOverlaps(found []Overlap) error {
	if len(found) == 0 {
		return nil
	}
	c.card.Overlaps = append(c.card.Overlaps, found...)
	said := make([]string, 0, maxOverlapsSaid)
	for _, o := range found[:min(len(found), maxOverlapsSaid)] {
		said = append(said, o.sentence())
	}
	if more := len(found) - maxOverlapsSaid; more > 0 {
		said = append(said, fmt.Sprintf("and so for %d more", more))
	}
	known, early := "rows of this table are known: ", "rows of this table are known from other holdouts, and an admin has accepted it; no interval covers what is known of them from there"
	if !slices.ContainsFunc(found, func(o Overlap) bool { return o.Matter != notCompared }) {
		known, early = "this table cannot be compared with all holdouts: ", "whether rows of this table are known from other holdouts nobody could tell, and an admin has accepted it; no interval covers what is known of them from there"
	}
	c.service.log.Warn("an upload has rows of other holdouts, or such that cannot be compared", "by", c.principal.KeyID, "accepted", c.settings.Overlap == overlapAccepted, "overlaps", found)
	if c.settings.Overlap != overlapAccepted {
		return &Error{Kind: RowsKnown, Members: map[string]any{"holdout": found[0].Holdout, "overlaps": found},
			Detail: known + strings.Join(said, "; ") + ". Go on with that holdout, or upload other rows. A holdout of which nothing was asked can be deleted first. " +
				"overlap=accepted takes the table as it is: no interval then covers both holdouts, and the card says so for good"}
	}
	c.card.Warnings = append(c.card.Warnings, Warning{Code: rowsKnown, Detail: strings.Join(said, "; ") + ". An admin has accepted it; no interval covers what is known of these rows from elsewhere"})
	c.early = append(c.early, Warning{Code: rowsKnown, Detail: early})
	return nil
}

// maxOverlapsSaid bounds the sentences of one message; the card has all of them.
const maxOverlapsSaid = 5

// overlaps are what a new holdout has in common with an old one and ought not to.
func overlaps(h ledger.Holdout, old, now sketches) (found []Overlap) {
	spent := int64(0)
	for _, amount := range h.Spent {
		spent = saturated(spent, amount)
	}
	add := func(matter string, share float64) {
		if share = math.Ceil(10*share-1e-9) / 10; share > 0 {
			found = append(found, Overlap{Holdout: h.ID, Matter: matter, Share: share})
		}
	}
	between := func(before, after string) (o lineage.Overlap) {
		if old[before] != nil && now[after] != nil {
			o = lineage.Compare(old[before], now[after])
		}
		return o
	}
	shown := between(trainingDir, holdoutDir).OfNew + between(checkDir, holdoutDir).OfNew
	switch {
	case h.Retired: // anybody may have its rows
		shown += between(holdoutDir, holdoutDir).OfNew
	case !h.Deleted || spent > 0 || h.Released.Made > 0: // of one that was deleted with nothing asked nothing is known of held-out rows; after a release its split is not made anew
		add(heldOutAgain, between(holdoutDir, holdoutDir).OfNew)
	}
	add(shownBefore, min(1, shown))
	if !h.Deleted && !h.Closed && !h.Retired {
		add(heldOutElsewhere, min(1, between(holdoutDir, trainingDir).OfOld+between(holdoutDir, checkDir).OfOld))
	}
	return found
}

// sketchesOf are the stored sketches of a holdout; of one that has none they are made now and stored. They are nil where nothing can be known: it is damaged, or was deleted before there were
// sketches.
func (s *Service) sketchesOf(ctx context.Context, h ledger.Holdout) (sketches, error) {
	all, err := s.readSketches(h.ID)
	if err == nil {
		return all, nil
	}
	switch {
	case h.Deleted:
		s.log.Warn("uploads cannot be compared with a deleted holdout", "holdout", h.ID, "error", err)
		return nil, nil
	case !errors.Is(err, fs.ErrNotExist):
		s.log.Error("sketches of a holdout's rows cannot be read; they are made anew", "holdout", h.ID, "error", err)
	}
	if all, err = s.sketch(ctx, s.path(holdoutsDir, h.ID), dataset.Open, nil); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		s.log.Error("uploads cannot be compared with a damaged holdout", "holdout", h.ID, "error", err)
		return nil, nil
	}
	return all, s.storeSketches(h.ID, h.ID, all)
}

// sketch makes the sketches of the parts in a directory, opened by dataset.Open or Reopen.
func (s *Service) sketch(ctx context.Context, dir string, open func(string) (*dataset.Table, error), watch *lineage.Watch) (sketches, error) {
	all := sketches{}
	for _, part := range sketchedParts {
		if err := ctx.Err(); err != nil {
			return nil, &Error{Kind: Unavailable, Detail: "the upload was given up", Err: err}
		}
		t, err := open(filepath.Join(dir, part))
		if errors.Is(err, fs.ErrNotExist) && part != holdoutDir {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("holdout: a part: %w", err)
		}
		all[part], err = lineage.New(s.lineage.rows, t, watch)
		if err := errors.Join(err, t.Close()); err != nil {
			return nil, fmt.Errorf("holdout: a part: %w", err)
		}
	}
	return all, nil
}

// watch has their tokens looked for, and reports false where there are too many.
func (all sketches) watch(w *lineage.Watch) bool {
	for _, part := range sketchedParts {
		if all[part] != nil && !w.Add(all[part]) {
			return false
		}
	}
	return true
}

// storeSketches writes the sealed sketches of a holdout into a file, whole or not at all.
func (s *Service) storeSketches(name, id string, all sketches) error {
	var text []byte
	for _, part := range sketchedParts {
		var one []byte
		if all[part] != nil {
			one, _ = all[part].MarshalBinary()
		}
		text = append(binary.LittleEndian.AppendUint32(text, uint32(len(one))), one...)
	}
	sealed := s.lineage.sealed(id, text)
	dir := s.path(lineageDir)
	f, err := os.CreateTemp(s.path(temporaryDir), "sketches-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("holdout: sketches: %w", err)
	}
	defer os.Remove(f.Name()) // not there any more once it has its name
	_, err = f.Write(sealed)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("holdout: sketches: %w", err)
	}
	if err := errors.Join(os.Rename(f.Name(), filepath.Join(dir, name)), dataset.SyncDir(dir)); err != nil {
		return fmt.Errorf("holdout: sketches: %w", err)
	}
	return nil
}

// commitSketches gives the sketches of an upload that the ledger knows now their name.
func (s *Service) commitSketches(id string) error {
	dir := s.path(lineageDir)
	err := os.Rename(filepath.Join(dir, id+uncommittedSuffix), filepath.Join(dir, id))
	if err == nil {
		err = dataset.SyncDir(dir)
	}
	return err
}

// readSketches reads what storeSketches wrote, under either name: they can be given theirs meanwhile. Without a file it fails with fs.ErrNotExist.
func (s *Service) readSketches(id string) (sketches, error) {
	f, err := dataset.OpenRegular(s.path(lineageDir, id))
	for _, name := range []string{id + uncommittedSuffix, id} {
		if errors.Is(err, fs.ErrNotExist) {
			f, err = dataset.OpenRegular(s.path(lineageDir, name))
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sealed, err := io.ReadAll(io.LimitReader(f, maxSketchBytes))
	if err != nil {
		return nil, err
	}
	text, err := s.lineage.open(id, sealed)
	if err != nil {
		return nil, err
	}
	all := sketches{}
	for _, part := range sketchedParts {
		if len(text) < 4 || uint64(len(text)-4) < uint64(binary.LittleEndian.Uint32(text)) {
			return nil, lineage.ErrDamaged
		}
		n := int(binary.LittleEndian.Uint32(text))
		one := text[4 : 4+n]
		if text = text[4+n:]; n == 0 {
			continue
		}
		all[part] = new(lineage.Sketch)
		if err := all[part].UnmarshalBinary(one); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// sweepSketches removes those of uploads that came to nothing, and gives those of others their names; known are the ids that the ledger has. All others stay: they are what is left of holdouts that it has forgotten.
func (s *Service) sweepSketches(known map[string]bool) error {
	files, err := os.ReadDir(s.path(lineageDir))
	if err != nil {
		return fmt.Errorf("holdout: leftovers: %w", err)
	}
	for _, f := range files {
		id, uncommitted := strings.CutSuffix(f.Name(), uncommittedSuffix)
		_, committed := known[id]
		switch {
		case strings.HasPrefix(f.Name(), "."): // was to be given another name
			err = os.Remove(s.path(lineageDir, f.Name()))
		case !uncommitted:
		case committed || isThere(s.path(holdoutsDir), id): // a directory that is not marked is of a holdout that was committed
			err = s.commitSketches(id)
		default:
			err = os.Remove(s.path(lineageDir, f.Name()))
		}
		if err != nil {
			return fmt.Errorf("holdout: leftovers: %w", err)
		}
	}
	return nil
}

// rememberLost refuses the very tables of holdouts that were deleted, and that the ledger has forgotten.
func (s *Service) rememberLost(known map[string]bool) error {
	files, err := os.ReadDir(s.path(lineageDir))
	if err != nil {
		return fmt.Errorf("holdout: leftovers: %w", err)
	}
	for _, f := range files {
		id, isUse := strings.CutSuffix(f.Name(), useSuffix)
		if _, recorded := known[id]; !isUse || recorded {
			continue
		}
		u, _ := s.readUse(id)
		if digest, err := hex.DecodeString(u.Table); err == nil && len(digest) == len(s.digest) {
			s.lostTables[[32]byte(digest)] = id
		}
	}
	return nil
}
