package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// What was revoked stays so where the ledger that recorded it is lost, or is set back: an empty file beside the tables says so of each key and of each grant, durably, before whoever revoked it is told. The
// files and the ledger are brought together at every start. A key is named by its hash: where its id is lost the bearer is the same.

// revokedDir has those files.
const revokedDir = "revoked"

// revocation is the name of the file of a key. Its hash is hashed again: what can be read beside the tables is not what the ledger looks keys up by.
func revocation(key [sha256.Size]byte) string {
	sum := sha256.Sum256(append([]byte("holdoutd revoked key\n"), key[:]...))
	return hex.EncodeToString(sum[:])
}

// revokedSubject is the name of the file of a subject of which a key was revoked.
func revokedSubject(of ledger.Subject) string {
	sum := sha256.Sum256([]byte("holdoutd revoked subject\n" + of.Issuer + "\x00" + of.Claim + "\x00" + of.Value))
	return hex.EncodeToString(sum[:])
}

// markKeyRevoked makes the files of a key durable.
func (s *Service) markKeyRevoked(k ledger.Key) error {
	if k.Subject != (ledger.Subject{}) {
		if err := s.markRevoked(revokedSubject(k.Subject)); err != nil {
			return err
		}
	}
	return s.markRevoked(revocation(k.Hash))
}

// markRevoked makes the file of a key or a grant durable.
func (s *Service) markRevoked(name string) error {
	dir := s.path(revokedDir)
	err := os.WriteFile(s.path(revokedDir, name), nil, secretMode)
	if err == nil {
		err = dataset.SyncDir(dir)
	}
	if err != nil {
		return storageError(fmt.Errorf("holdout: the mark of what was revoked: %w", err))
	}
	return nil
}

// isRevoked reports whether the files say so.
func (s *Service) isRevoked(name string) (bool, error) {
	_, err := os.Lstat(s.path(revokedDir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// keepRevocations brings the ledger and the files together when the service opens: what one of them says is revoked, the other says, too. Keys from before a restore end here, unless its owner has said that they stay.
func (s *Service) keepRevocations(ctx context.Context) error {
	if err := s.keepRevokedKeys(ctx); err != nil {
		return fmt.Errorf("holdout: revoked keys: %w", err)
	}
	all, err := s.ledger.Grants(ctx, "")
	if err != nil {
		return fmt.Errorf("holdout: revoked grants: %w", err)
	}
	s.keysAreOver()
	for _, g := range all { // of one whose key is revoked the ledger says that it is
		if err := s.bothRevoked(g.ID, g.Revoked, func() error {
			s.log.Warn("the ledger has forgotten that a grant was revoked: it is revoked again", "grant", g.ID)
			return s.ledger.RevokeGrant(ctx, g.ID)
		}); err != nil {
			return fmt.Errorf("holdout: revoked grants: %w", err)
		}
	}
	return nil
}

// keysAreOver records that the keys from before a restore have ended.
func (s *Service) keysAreOver() {
	ended := false
	for i := range s.restores.Restores {
		if one := &s.restores.Restores[i]; one.Keys == keysEnded {
			one.Keys, ended = keysOver, true
		}
	}
	if !ended {
		return
	}
	if err := s.restores.write(s.dir); err != nil { // they end once more then
		s.log.Error("that the keys from before the restore have ended could not be written; the next start tries again", "error", err)
	}
}

func (s *Service) keepRevokedKeys(ctx context.Context) error {
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Revoked && k.Subject != (ledger.Subject{}) {
			if marked, err := s.isRevoked(revokedSubject(k.Subject)); err != nil {
				return err
			} else if !marked {
				s.markLater(revokedSubject(k.Subject))
			}
		}
		revoke := func() error { return s.ledger.RevokeKey(ctx, k.ID) }
		if !k.Revoked && s.restores.ends(k) {
			s.log.Warn("a key from before the restore of this directory has ended", "key", k.ID, "name", k.Name)
			if err := revoke(); err != nil {
				return err
			}
			k.Revoked = true
		}
		if err := s.bothRevoked(revocation(k.Hash), k.Revoked, func() error {
			s.log.Warn("the ledger has forgotten that a key was revoked: it is revoked again", "key", k.ID, "name", k.Name)
			return revoke()
		}); err != nil {
			return err
		}
	}
	return nil
}

// bothRevoked makes the ledger and the file of one key or grant say the same.
func (s *Service) bothRevoked(name string, inLedger bool, revoke func() error) error {
	marked, err := s.isRevoked(name)
	switch {
	case err != nil || marked == inLedger:
		return err
	case marked:
		return revoke()
	}
	s.markLater(name)
	return nil
}

// markLater is markRevoked at a start, where it may fail: as on a full disk, on which a server starts all the same.
func (s *Service) markLater(name string) {
	if err := s.markRevoked(name); err != nil {
		s.log.Error("the mark of what was revoked could not be written; the next start tries again", "error", err)
	}
}

// keyEnded reports whether a key is revoked. A server without its key cannot tell a ledger what that has forgotten, and looks at the files itself.
func (s *Service) keyEnded(k ledger.Key) (bool, error) {
	if k.Revoked || !s.lost {
		return k.Revoked, nil
	}
	marked, err := s.isRevoked(revocation(k.Hash))
	if err != nil {
		return false, storageError(err)
	}
	return marked || s.restores.ends(k), nil
}

// grantsIn are the grants of a holdout, or of all where it is "", each as revoked as it is: see keyEnded.
func (s *Service) grantsIn(ctx context.Context, holdout string) ([]ledger.Grant, error) {
	list, err := s.ledger.Grants(ctx, holdout)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	if !s.lost {
		return list, nil
	}
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	ended := map[string]bool{}
	for _, k := range keys {
		if ended[k.ID], err = s.keyEnded(k); err != nil {
			return nil, err
		}
	}
	for i := range list {
		g := &list[i]
		marked, err := s.isRevoked(g.ID)
		if err != nil {
			return nil, storageError(err)
		}
		g.Revoked = g.Revoked || marked || ended[g.Key]
	}
	return list, nil
}

// keyOf is a key, by its id.
func (s *Service) keyOf(ctx context.Context, id string) (ledger.Key, error) {
	keys, err := s.ledger.Keys(ctx)
	if err != nil {
		return ledger.Key{}, err
	}
	for _, k := range keys {
		if k.ID == id {
			return k, nil
		}
	}
	return ledger.Key{}, ledger.ErrNotFound
}
