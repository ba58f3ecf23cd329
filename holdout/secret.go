package holdout

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
)

// Names of the secret files in a data directory. Both are readable by their owner alone.
const (
	serverKeyFile = "server.key"
	adminKeyFile  = "admin.key"
)

// keyElsewhere is in a data directory whose server's key is kept elsewhere (Options.Key). As server.key does, it says that there must be a ledger.
const keyElsewhere = "server.key.elsewhere"

const keyElsewhereText = "The server's key is kept elsewhere: start with --key-command.\n"

// signed is the sign of a key: with a check value, by which another key is noticed also where the ledger is lost.
func (s serverSecret) signed() []byte {
	check := s.derive("sign")
	return []byte(keyElsewhereText + hex.EncodeToString(check[:]) + "\n")
}

// secretMode is the mode of secret files, privateMode that of the directories beside them.
const (
	secretMode  = 0o600
	privateMode = 0o700
)

// serverSecret is the server's key. It is never used itself; what needs a key derives its own from it, by purpose, so
// that no two uses can be played against each other.
type serverSecret [32]byte

// derive is HKDF-SHA256 (RFC 5869) of the server's key for a purpose.
func (s serverSecret) derive(purpose string) [32]byte {
	key, err := hkdf.Key(sha256.New, s[:], nil, "holdoutd v1 "+purpose, 32)
	if err != nil {
		panic(err) // only a length beyond 255 hashes can fail
	}
	return [32]byte(key)
}

// ServerKey is a server's key that is kept elsewhere than in the data directory. It shows itself in no print.
type ServerKey struct{ secret serverSecret }

// ParseServerKey reads a key as server.key has it: 64 hexadecimal digits. The error does not show the text.
func ParseServerKey(text []byte) (*ServerKey, error) {
	var k ServerKey
	digits := bytes.TrimSpace(text)
	if len(digits) != hex.EncodedLen(len(k.secret)) {
		return nil, fmt.Errorf("a server's key has 64 hex digits, and this has %d characters", len(digits))
	}
	if _, err := hex.Decode(k.secret[:], digits); err != nil {
		return nil, errors.New("a server's key has 64 hex digits, and this has other characters among them")
	}
	if k.secret == (serverSecret{}) {
		return nil, errors.New("it is all zeros, which everybody can guess")
	}
	return &k, nil
}

func (ServerKey) String() string   { return "a server's key" }
func (ServerKey) GoString() string { return "a server's key" }

// fits fails where a key is not the one of a data directory, by the sign and by the file there; beside tells whether the file has it, too. The zero key stands for none: then it is the file that must be that of the sign.
func (key serverSecret) fits(dir string) (beside bool, err error) {
	path, signPath := filepath.Join(dir, serverKeyFile), filepath.Join(dir, keyElsewhere)
	which := "the key from elsewhere"
	file, err := readServerSecret(path)
	switch beside = err == nil; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case key == serverSecret{}:
		key, which = file, path
	}
	sign, err := os.ReadFile(signPath)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("holdout: data directory: %w", err)
	case err == nil && key != serverSecret{} && !bytes.Equal(sign, key.signed()):
		return false, fmt.Errorf("holdout: %s is not the one of this data directory, of which %s has the check value", which, signPath)
	case beside && file != key:
		return false, fmt.Errorf("holdout: %s is another key than the one from elsewhere; put away the one that is not of this data directory", path)
	}
	return beside, nil
}

// loadSecret takes the server's key from where it is kept: elsewhere, or in the data directory.
func (s *Service) loadSecret(key *ServerKey, ledgerExists bool) (secret serverSecret, lost bool, err error) {
	if key != nil {
		secret = key.secret
	}
	beside, err := secret.fits(s.dir)
	switch {
	case err != nil:
		return serverSecret{}, false, err
	case key != nil && beside:
		s.log.Warn("server.key is in the data directory, too: remove it, or whoever reads the directory has the key", "file", s.path(serverKeyFile))
		return secret, false, nil
	case key != nil:
		return secret, false, nil
	case !beside && !ledgerExists && keptElsewhere(s.dir): // another key would not recognise what was uploaded before
		return secret, false, errors.New("holdout: the server's key is kept elsewhere: start with --key-command")
	}
	return loadServerSecret(s.dir, ledgerExists)
}

// signKey leaves a sign where the server's key is kept elsewhere. It stays where the key comes back into the directory: another server may still have it from elsewhere.
func (s *Service) signKey() error {
	if !s.elsewhere {
		return nil
	}
	if err := writeOnce(s.path(keyElsewhere), s.sign); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("holdout: data directory: %w", err)
	}
	return nil
}

// keptElsewhere reports whether a data directory says that its server's key is kept elsewhere.
func keptElsewhere(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, keyElsewhere))
	return err == nil
}

// loadServerSecret reads DIR/server.key, or makes it. With a ledger but no key it makes none: a new key would neither
// open what the old one sealed nor recognise a table that was uploaded before; it reports lost then.
func loadServerSecret(dir string, ledgerExists bool) (s serverSecret, lost bool, err error) {
	path := filepath.Join(dir, serverKeyFile)
	s, err = readServerSecret(path)
	switch {
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return s, false, err
	case ledgerExists:
		return s, true, nil
	}
	if _, err := rand.Read(s[:]); err != nil {
		return s, false, fmt.Errorf("holdout: server key: %w", err)
	}
	switch err := writeOnce(path, []byte(hex.EncodeToString(s[:])+"\n")); {
	case errors.Is(err, fs.ErrExist): // another process was faster; its key is the key
		return loadServerSecret(dir, ledgerExists)
	case err != nil:
		return s, false, fmt.Errorf("holdout: server key: %w", err)
	}
	return s, false, nil
}

// readServerSecret reads the server's key. Without one it fails with fs.ErrNotExist.
func readServerSecret(path string) (s serverSecret, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("holdout: server key: %w", err)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != len(s) {
		return s, fmt.Errorf("holdout: %s does not hold a key of 64 hex digits; restore it from a backup", path)
	}
	return serverSecret(raw), nil
}

// writeOnce makes a secret file with all its contents durable, or fails with fs.ErrExist and leaves what is there.
func writeOnce(path string, contents []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return dataset.SyncDir(filepath.Dir(path))
}
