package holdout

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// What the service keeps as JSON says its version, and a reader refuses one that it does not know: docs/format/README.md says how such a
// format changes. Guarantees and states have theirs in package thresholdout, answers in package session, tables in package dataset, the ledger's entries in package ledger.
const (
	cardVersion    = 2 // of the card with settings and guarantee, which the chain's genesis commits to; 1 knew no check part
	firstCard      = 1 // the oldest that is read, and of cards that say nothing of a check part
	secretsVersion = 1 // of a holdout's keys
	markVersion    = 2 // of the mark beside the tables of a holdout that replaced another one; 1 of the others
)

// storedCard is the public part of a holdout in the ledger.
type storedCard struct {
	Version int  `json:"version"`
	Card    Card `json:"card"`
	// Early are the warnings of the draft, which make no use of the parts. Old cards have none, and nothing of them is a draft.
	Early []Warning `json:"early,omitempty"`
}

// known refuses a version that this program does not know.
func known(what string, got, version int) error {
	if got != version {
		return &ledger.VersionError{What: what, Got: int64(got), Known: int64(version)}
	}
	return nil
}

// readVersion reads only the version of a stored text: what else it has is another version's to say.
func readVersion(what string, text []byte, version int) error {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return known(what, v.Version, version)
}

// writeCard writes a card. One of a holdout that was created before there were check parts is written as it was.
func writeCard(c Card, early ...Warning) ([]byte, error) {
	version := cardVersion
	if c.Settings.Check == nil && c.Units.Check == 0 {
		version = firstCard
	}
	return json.Marshal(storedCard{version, c, early})
}

// readCard reads a stored card. Its errors do not name the holdout.
func readCard(text []byte) (Card, error) {
	card, _, err := readCards(text)
	return card, err
}

// readCards is readCard, with the warnings of the draft that it was.
func readCards(text []byte) (c Card, early []Warning, err error) {
	stored := storedCard{}
	if readVersion("the card", text, firstCard) != nil {
		if err := readVersion("the card", text, cardVersion); err != nil {
			return c, nil, err
		}
	}
	err = json.Unmarshal(text, &stored)
	return stored.Card, stored.Early, unknownVersion(err)
}

// readState reads a stored state of the holdout's guarantee.
func (h *opened) readState(text []byte) (thresholdout.State, error) {
	state, _, err := h.readBooks(text)
	return state, err
}

// unknownVersion says of a version of package thresholdout what is said of others.
func unknownVersion(err error) error {
	var other *thresholdout.VersionError
	if errors.As(err, &other) {
		return &ledger.VersionError{What: other.What, Got: int64(other.Got), Known: int64(other.Known)}
	}
	return err
}

func readSecrets(id string, text []byte) (s secrets, err error) {
	if err = readVersion("the keys", text, secretsVersion); err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("holdout: keys of %s: %w", id, err)
	}
	return s, nil
}
