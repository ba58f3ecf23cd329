package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// onlineFlags say how a running server is verified.
type onlineFlags struct {
	server serverFlags
	online bool
	kept   string // a file of heads
}

// verify fetches the chain of each holdout that the server lists, recomputes it, and holds it against what the server says of the budget. Where heads are kept, each chain must pass through the one that was kept of it, and the
// new ones are kept. One holdout that is not in order does not keep the others from being looked at.
func (f *onlineFlags) verify(ctx context.Context, words []string) (found []holdout.Verification, err error) {
	c, err := f.server.connect()
	if err != nil {
		return nil, err
	}
	kept, err := readHeads(f.kept)
	if err != nil {
		return nil, err
	}
	ids, err := f.holdouts(ctx, c, words, kept)
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, id := range ids {
		report, err := verifyServed(ctx, c, id, kept[id])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("holdout %s: %w", id, plain(err)))
			continue
		}
		found = append(found, report)
		kept[id] = holdout.Place{Seq: report.Entries - 1, Head: report.Head}
	}
	if f.kept != "" { // also beside trouble: that of a holdout which is not in order stays as it was
		wrong = append(wrong, writeHeads(f.kept, kept))
	}
	return found, errors.Join(wrong...)
}

// holdouts are the ids of those that words name; without words of all that the server lists, and of all of which a head was kept: one that was deleted has its chain, and one that is gone is missed.
func (f *onlineFlags) holdouts(ctx context.Context, c *client.Client, words []string, kept map[string]holdout.Place) (ids []string, err error) {
	for _, word := range words {
		card, err := holdoutOf(ctx, c, word)
		if err != nil {
			return nil, err
		}
		ids = append(ids, card.ID)
	}
	if len(words) > 0 {
		return ids, nil
	}
	cards, err := c.Holdouts(ctx)
	if err != nil {
		return nil, err
	}
	for _, card := range cards {
		ids = append(ids, card.ID)
	}
	var gone []string
	for id := range kept {
		if !slices.Contains(ids, id) {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	return append(ids, gone...), nil
}

// verifyServed verifies one holdout of a server. Answers may be given meanwhile: what the chain has spent lies between what the server said before and what it says after.
func verifyServed(ctx context.Context, c *client.Client, id string, kept holdout.Place) (report holdout.Verification, err error) {
	before, err := c.Budget(ctx, id)
	deleted := client.IsNotFound(err)
	if err != nil && !deleted {
		return report, err
	}
	var places []holdout.Place
	if kept != (holdout.Place{}) {
		places = append(places, kept)
	}
	export, to := io.Pipe()
	go func() { to.CloseWithError(c.Ledger(ctx, id, to)) }()
	defer export.Close()
	if report, err = holdout.VerifyExport(export, places...); err != nil {
		return report, err
	}
	if report.Holdout != id {
		return report, fmt.Errorf("the server gave the ledger of %s", report.Holdout)
	}
	if deleted || report.Deleted {
		return report, nil
	}
	after, err := c.Budget(ctx, id)
	if err != nil {
		return report, err
	}
	for _, m := range []struct {
		name        string
		first, last *client.Meter
	}{{thresholdout.MeterQuestions, &before.Questions, &after.Questions}, {thresholdout.MeterTokens, before.Tokens, after.Tokens}} {
		first, last := m.first, m.last
		if first == nil || last == nil || before.Closed || after.Closed || before.Lost != after.Lost || after.Lost > 0 {
			continue // the mechanism has none, or what is left is no difference of what was debited
		}
		least, most, spent := first.Of-first.Left, last.Of-last.Left, report.Spent[m.name]
		if spent < least || spent > most || first.Of != report.Limits[m.name] {
			return report, fmt.Errorf("the chain has spent %d of %d %s, and the server says %d to %d of %d", spent, report.Limits[m.name], m.name, least, most, first.Of)
		}
	}
	return report, nil
}

// readHeads reads the heads that were kept; none where there is no file yet.
func readHeads(file string) (map[string]holdout.Place, error) {
	heads := map[string]holdout.Place{}
	if file == "" {
		return heads, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return heads, nil
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err = d.Decode(&heads)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the heads that were kept in %s: %w", file, unwrapPath(err))
	}
	return heads, nil
}

// writeHeads keeps heads: the file is whole at any time.
func writeHeads(file string, heads map[string]holdout.Place) error {
	text, err := json.MarshalIndent(heads, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return fmt.Errorf("cannot keep the heads: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the heads: %w", err)
	}
	return nil
}
