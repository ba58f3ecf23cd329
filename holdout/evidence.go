package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Evidence is an answer that somebody kept: a place in a holdout's chain that a ledger must have, or it is older than it was.
type Evidence struct {
	Holdout string          // its id; "" where it is not known
	Seq     int64           // of the answer's entry
	Head    string          // that the chain had with it
	Body    json.RawMessage // the answer as it was kept, perhaps spelled otherwise; nil where only the place was kept
}

// maxKept bounds what is read of a file of kept answers.
const maxKept = 1 << 30

// ReadEvidence finds the answers in JSON texts one after the other: answers as they were received, batches, histories, lines of a log. An answer is an object with the member "ledger", which has seq and head. It fails where the text is no
// JSON, and where there is none.
func ReadEvidence(r io.Reader) (all []Evidence, err error) {
	d := json.NewDecoder(io.LimitReader(r, maxKept))
	for {
		var value json.RawMessage
		err := d.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("holdout: kept answers: %w", err)
		}
		all = append(all, evidenceIn(value)...)
	}
	if len(all) == 0 {
		return nil, errors.New(`holdout: kept answers: there is none: an answer is a JSON object with "ledger":{"seq":…,"head":"sha256:…"}`)
	}
	return all, nil
}

// evidenceIn finds the answers in a value and in what is in it.
func evidenceIn(value json.RawMessage) (all []Evidence) {
	switch value = bytes.TrimSpace(value); {
	case len(value) == 0:
	case value[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(value, &items) == nil {
			for _, item := range items {
				all = append(all, evidenceIn(item)...)
			}
		}
	case value[0] == '{':
		var answer struct {
			Holdout string `json:"holdout"`
			Ledger  struct {
				Seq  *int64 `json:"seq"`
				Head string `json:"head"`
			} `json:"ledger"`
		}
		if json.Unmarshal(value, &answer) == nil && answer.Ledger.Seq != nil && answer.Ledger.Head != "" {
			return []Evidence{{answer.Holdout, *answer.Ledger.Seq, answer.Ledger.Head, value}}
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) == nil {
			for _, member := range members {
				all = append(all, evidenceIn(member)...)
			}
		}
	}
	return all
}

// Places are what a ledger says of its chains: what evidence is compared with.
type Places interface {
	// Place returns the head of an entry and its body, nil where it is not known; ok is false if the chain does not go so far, or if there is no such holdout.
	Place(ctx context.Context, holdout string, seq int64) (head string, body []byte, ok bool, err error)
}

// Compare holds what was kept against a ledger. It fails with a *LostError where the ledger does not have it.
func (e *Evidence) Compare(ctx context.Context, places Places) error {
	if e.Holdout == "" {
		return fmt.Errorf("a kept answer at seq %d does not say of which holdout it is", e.Seq)
	}
	head, body, ok, err := places.Place(ctx, e.Holdout, e.Seq)
	switch {
	case err != nil:
		return err
	case !ok:
		return &LostError{Evidence: *e}
	case head != e.Head:
		return &LostError{Evidence: *e, Head: head}
	case body != nil && e.Body != nil && !sameJSON(body, e.Body):
		return fmt.Errorf("holdout %s: the answer at seq %d is another one than the one that was kept: its bytes are those that the chain binds, so the kept one was changed", e.Holdout, e.Seq)
	}
	return nil
}

// CompareAll compares all of it, and says all that is wrong.
func CompareAll(ctx context.Context, kept []Evidence, places Places) error {
	var wrong []error
	for i := range kept {
		wrong = append(wrong, kept[i].Compare(ctx, places))
	}
	return errors.Join(wrong...)
}

// LostError says that a ledger is older than an answer, or has another one in its place.
type LostError struct {
	Evidence
	Head string // that the ledger has at this place; "" where its chain ends before
}

func (e *LostError) Error() string {
	if e.Head == "" {
		return fmt.Sprintf("holdout %s: the ledger is older than the kept answer at seq %d: its chain ends before. What was answered since was lost", e.Holdout, e.Seq)
	}
	return fmt.Sprintf("holdout %s: the ledger is not the one that gave the kept answer: at seq %d it has the head %s, and the answer has %s. An old copy was put back, and has given other answers since",
		e.Holdout, e.Seq, e.Head, e.Evidence.Head)
}

// Unwrap returns ledger.ErrCorrupt: a ledger that lost answers is not in order.
func (e *LostError) Unwrap() error { return ledger.ErrCorrupt }

// sameJSON compares two texts by what they say, with numbers as they are spelled.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	read := func(text []byte) (v any, err error) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&v)
		return v, err
	}
	first, err := read(a)
	second, err2 := read(b)
	return err == nil && err2 == nil && reflect.DeepEqual(first, second)
}
