package holdout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// A data directory that was restored from a backup may have forgotten answers, with what they spent. It says so in a file, and gives no new
// answers before its owner has said what became of them.

const (
	// restoredFile lists in a data directory the backups that it was restored from.
	restoredFile = "restored"
	// restoringFile is in a directory that is being restored: nothing is started on it.
	restoringFile = "restoring"
	// restoredVersion is of restoredFile where keys have ended with a restore; of others it is 1.
	restoredVersion = 2
	// maxRestoredBytes bounds restoredFile: more than a thousand restores.
	maxRestoredBytes = 1 << 20
)

// Restored is the code of the card's warning of answers that may have been lost with a restore.
const Restored = "restored"

// What an owner says of a restored data directory.
const (
	lossAccepted = "accepted" // answers may be lost
	nothingLost  = "none"     // nothing was answered after the backup
)

// What becomes of the keys and grants from before a restore, unless their owner says that they stay.
const (
	keysEnded = "ended"  // the next start ends them
	keysOver  = "before" // it has: what is made since is no concern of the restore's, whatever the clock said then
)

// restores are the contents of restoredFile, oldest first.
type restores struct {
	Version  int       `json:"version"`
	Restores []restore `json:"restores"`
}

// restore is one of them.
type restore struct {
	Backup   time.Time `json:"backup"`           // when the backup was made
	Restored time.Time `json:"restored"`         // when it was put back
	Loss     string    `json:"loss,omitempty"`   // lossAccepted or nothingLost; empty until the owner has said it
	Keys     string    `json:"keys,omitempty"`   // keysEnded or keysOver; empty where keys from before it stay. Version 2 has it
	Shared   bool      `json:"shared,omitempty"` // the ledger was in a database, which was not restored with it
}

// readRestores reads the file. A directory that was never restored has none.
func readRestores(dir string) (r restores, err error) {
	f, err := dataset.OpenRegular(filepath.Join(dir, restoredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRestoredBytes))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.Version != 1 || slices.ContainsFunc(r.Restores, restore.keysEnd)) {
		err = known("the record of restores "+filepath.Join(dir, restoredFile), r.Version, restoredVersion)
	}
	if err == nil && len(r.Restores) == 0 {
		err = errors.New("it names no restore")
	}
	return r, err
}

// write puts the file into a data directory: whole or not at all, and durably.
func (r restores) write(dir string) error {
	r.Version = 1
	if slices.ContainsFunc(r.Restores, restore.keysEnd) {
		r.Version = restoredVersion
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return errors.Join(replaceFile(dir, restoredFile, text), dataset.SyncDir(dir))
}

func (r restore) keysEnd() bool { return r.Keys != "" }

// ends reports whether a key has ended with a restore: it may have been revoked after the backup, which the restored ledger has forgotten.
func (r restores) ends(k ledger.Key) bool {
	return slices.ContainsFunc(r.Restores, func(one restore) bool { return one.Keys == keysEnded && !k.Created.After(one.Restored) })
}

// endsBefore reports whether keys ended with a restore that came after a moment: what was revoked between the backup and it is forgotten.
func (r restores) endsBefore(at time.Time) bool {
	return slices.ContainsFunc(r.Restores, func(one restore) bool { return one.keysEnd() && at.Before(one.Restored.Truncate(time.Second)) })
}

// pending is the restore of which nobody has said what was lost, or nil.
func (r restores) pending() *restore {
	for i := range r.Restores {
		if r.Restores[i].Loss == "" {
			return &r.Restores[i]
		}
	}
	return nil
}

// warning is what a card says of answers that may be lost, or nil. A holdout that was there when the directory was restored has forgotten answers itself: that is said before what its rows may have been part of.
func (r restores) warning(created time.Time) *Warning {
	var own, before []string
	for _, one := range r.Restores {
		if one.Loss != lossAccepted {
			continue
		}
		said := one.Restored.UTC().Format(time.RFC3339) + " from a backup of " + one.Backup.UTC().Format(time.RFC3339)
		if created.After(one.Restored) {
			before = append(before, said)
		} else {
			own = append(own, said)
		}
	}
	switch {
	case len(own) > 0:
		return &Warning{Code: Restored, Detail: "this holdout was restored at " + strings.Join(own, ", and at ") +
			"; what it gave in between is forgotten: answers, and what they spent, and its rows if it was retired. An interval given since holds for those who know none of it"}
	case len(before) > 0:
		return &Warning{Code: Restored, Detail: "this server was restored at " + strings.Join(before, ", and at ") +
			"; if this table was uploaded in between, answers about its rows are forgotten, and what they spent. An interval holds for those who know none of them"}
	}
	return nil
}

// RestoreState says of a data directory that was restored from a backup what its owner has said of answers that may be lost. It is empty where it was
// never restored.
func RestoreState(dir string) string {
	r, err := readRestores(dir)
	switch {
	case err != nil:
		return fmt.Sprintf("restored from a backup, and the record of it cannot be read (%v): no new answers are given", err)
	case len(r.Restores) == 0:
		return ""
	}
	last := r.Restores[len(r.Restores)-1]
	said := "restored from a backup of " + last.Backup.UTC().Format(time.RFC3339)
	keys := "; keys and grants from before stay valid"
	if last.keysEnd() {
		keys = "; keys and grants from before have ended"
	}
	switch {
	case r.pending() != nil:
		return said + ": no new answers are given until its owner has said what was lost"
	case last.Loss == lossAccepted:
		return said + "; answers may be lost, and cards say so" + keys
	}
	return said + "; its owner said that nothing was lost" + keys
}

// Accepted is what an owner says of a restored data directory.
type Accepted struct {
	Lost bool   // answers may be lost: cards say that for good. Default: nothing was answered after the backup
	Keys string // KeysStay or KeysEnd. Default: they end; where the ledger is in a database it has to be said
}

// What becomes of the keys and grants from before a restore.
const (
	KeysStay = "stay" // none was revoked after the backup, or the ledger that has them was not set back
	KeysEnd  = "end"
)

// AcceptRestored records of a restored data directory what its owner says. The next start gives new answers, and ends the keys and grants from before the restore, unless they stay: it puts a new key of an
// admin into DIR/admin.key. It fails where there is nothing to accept.
func AcceptRestored(dir string, said Accepted) error {
	r, err := readRestores(dir)
	if err != nil {
		return fmt.Errorf("the record of the restore in %s cannot be read: %w; restore the backup again", dir, err)
	}
	if r.pending() == nil {
		return fmt.Errorf("%s has no restore to accept", dir)
	}
	if said.Keys == "" && slices.ContainsFunc(r.Restores, func(one restore) bool { return one.Loss == "" && one.Shared }) {
		return fmt.Errorf("the keys and grants of %s are in a database, for all its servers, and the restore has not touched it. Say --keep-keys if nobody set the database back, or if no key was revoked since; else --end-keys: all keys and grants from before the restore then end, on all servers", dir)
	}
	if _, err := os.Lstat(filepath.Join(dir, serverKeyFile)); err != nil && said.Keys != KeysStay && !keptElsewhere(dir) {
		return fmt.Errorf("%s has no %s, without which no new key of an admin can be made when the others end: put it back first, or say with --keep-keys that they stay", dir, serverKeyFile)
	}
	loss := nothingLost
	if said.Lost {
		loss = lossAccepted
	}
	keys := keysEnded
	if said.Keys == KeysStay {
		keys = ""
	}
	for i := range r.Restores {
		if r.Restores[i].Loss == "" {
			r.Restores[i].Loss, r.Restores[i].Keys = loss, keys
		}
	}
	return r.write(dir)
}

// checkRestoring refuses a directory whose restore was interrupted.
func (s *Service) checkRestoring() error {
	if _, err := os.Lstat(s.path(restoringFile)); err != nil {
		return nil
	}
	return &Error{Kind: Unavailable, Detail: fmt.Sprintf("the restore of %s was interrupted: remove it and restore the backup again", s.dir)}
}

// readRestored reads whether the directory was restored. A record that cannot be read is one that was not accepted.
func (s *Service) readRestored() {
	s.restores, s.restoresErr = readRestores(s.dir)
	if s.restoresErr != nil {
		s.log.Error("the record of the directory's restore cannot be read: nothing new is given", "file", s.path(restoredFile), "error", s.restoresErr)
	}
}

// howToAccept ends what is said of a restored directory.
const howToAccept = "An admin says what became of answers given after it: holdoutd restore --data DIR with --nothing-lost or --accept-lost, and starts the server again"

// unaccepted is the refusal of whatever is new in a directory of whose restore nobody has said what was lost; nil elsewhere.
func (s *Service) unaccepted() *Error {
	if s.restoresErr != nil {
		return &Error{Kind: RolledBack, Detail: "this server was restored from a backup, and the record of that cannot be read. Restore the backup again. Recorded answers still replay", Err: s.restoresErr}
	}
	one := s.restores.pending()
	if one == nil {
		return nil
	}
	return &Error{Kind: RolledBack, Detail: "this server was restored from a backup of " + one.Backup.UTC().Format(time.RFC3339) + ", which may have forgotten answers and what they spent. " + howToAccept + ". Recorded answers still replay"}
}

// holdRestored keeps all holdouts of a restored directory from giving new answers.
func (s *Service) holdRestored(holdouts []ledger.Holdout) {
	for _, h := range holdouts {
		if why := s.unaccepted(); why != nil && !h.Deleted {
			why.Members = map[string]any{"holdout": h.ID}
			s.quarantine.put(h.ID, why, true)
		}
	}
}

// takesNothingNew is unaccepted for an upload, which can be of a table whose holdout was forgotten, and for new keys and grants: who asks for them may have a key that was revoked after the backup.
func (s *Service) takesNothingNew() error {
	if why := s.unaccepted(); why != nil {
		return &Error{Kind: Unavailable, Detail: why.Detail, Err: why.Err}
	}
	return nil
}
