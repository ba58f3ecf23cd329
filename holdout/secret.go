package holdout

import (
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
	return parseServerSecret(path, string(text))
}

// parseServerSecret reads a key as it is written. What it is not is not said: it may be a secret all the same.
func parseServerSecret(where, text string) (s serverSecret, err error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != len(s) {
		return s, fmt.Errorf("holdout: %s is not a key of 64 hexadecimal digits; restore it from a backup", where)
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
