package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// Recipients are those who can open a backup: public keys (age1…), or a passphrase from a file, and not both.
func Recipients(publicKeys []string, passphraseFile string) ([]age.Recipient, error) {
	switch {
	case passphraseFile != "" && len(publicKeys) > 0:
		return nil, errors.New("a backup is for a passphrase or for public keys, not for both")
	case passphraseFile != "":
		passphrase, err := readPassphrase(passphraseFile)
		if err != nil {
			return nil, err
		}
		r, err := age.NewScryptRecipient(passphrase)
		return []age.Recipient{r}, err
	case len(publicKeys) == 0:
		return nil, errors.New("a backup has rows of holdouts and is never written in clear: name who can open it, by public keys of age or by a passphrase")
	}
	var all []age.Recipient
	for _, key := range publicKeys {
		r, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil || len(r) != 1 {
			return nil, fmt.Errorf("%q is not a public key of age (age1…); age-keygen makes one", key)
		}
		all = append(all, r...)
	}
	return all, nil
}

// Identities are what opens a backup: a file of secret keys as age-keygen writes it, or a passphrase from a file.
func Identities(identityFile, passphraseFile string) ([]age.Identity, error) {
	switch {
	case (identityFile == "") == (passphraseFile == ""):
		return nil, errors.New("a backup is opened by a file of secret keys or by a passphrase: name one of the two")
	case passphraseFile != "":
		passphrase, err := readPassphrase(passphraseFile)
		if err != nil {
			return nil, err
		}
		i, err := age.NewScryptIdentity(passphrase)
		if err != nil {
			return nil, err
		}
		i.SetMaxWorkFactor(maxScrypt)
		return []age.Identity{i}, nil
	}
	f, err := os.Open(identityFile)
	if err != nil {
		return nil, fmt.Errorf("the file of secret keys: %w", err)
	}
	defer f.Close()
	all, err := age.ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("%s is not a file of secret keys of age: %w", identityFile, err)
	}
	return all, nil
}

// readPassphrase is the first line of a file.
func readPassphrase(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the passphrase: %w", err)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxKeyFile)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("the passphrase: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", fmt.Errorf("the passphrase file %s has an empty first line", path)
	}
	return line, nil
}
