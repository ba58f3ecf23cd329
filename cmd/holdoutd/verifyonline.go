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
	"strings"

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

// verify fetches the chain of each holdout that the server lists, recomputes it, and holds it against what the server
// says of the budget. Where heads are kept, each chain must pass through the one that was kept of it, and the new
// ones are kept. One holdout that is not in order does not keep the others from being looked at.
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
	unlooked := true // whether all that is wrong is that the server was not there
	for _, id := range ids {
		place, has := kept[id]
		var places []holdout.Place
		if has {
			places = append(places, place)
		}
		report, err := verifyServed(ctx, c, id, places...)
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case client.IsNotFound(err) && !has && len(words) == 0:
			// It was listed, and has been deleted or replaced as a draft since.
		case err != nil:
			err = plain(err)
			unlooked = unlooked && exitCode(err) == exitUnavailable
			wrong = append(wrong, fmt.Errorf("holdout %s: %w", id, err))
		default:
			found = append(found, report)
			kept[id] = holdout.Place{Seq: report.Entries - 1, Head: report.Head}
		}
	}
	if f.kept != "" { // also beside trouble: that of a holdout which is not in order stays as it was
		if err := writeHeads(f.kept, kept); err != nil {
			unlooked, wrong = false, append(wrong, err)
		}
	}
	if len(wrong) == 0 {
		return found, nil
	}
	if err = (notInOrder{errors.Join(wrong...)}); unlooked {
		err = unreached{err}
	}
	return found, err
}

// notInOrder is all that is wrong, a line for each holdout. What the lines came from is hidden: the words of one
// reply are not all that there is to say.
type notInOrder struct{ all error }

func (n notInOrder) Error() string { return n.all.Error() }

// holdouts are the ids of those that words name; without words of all that the server lists, and of all of which a
// head was kept: one that was deleted has its chain, and one that is gone is missed.
func (f *onlineFlags) holdouts(
	ctx context.Context, c *client.Client, words []string, kept map[string]holdout.Place,
) (ids []string, err error) {
	for _, word := range words {
		if strings.HasPrefix(word, "ho_") { // also one that was deleted
			ids = append(ids, word)
			continue
		}
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
		if !card.Draft { // nothing was asked of a draft, and to read its chain would end its being one
			ids = append(ids, card.ID)
		}
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

// verifyServed verifies one holdout of a server. Answers may be given meanwhile: what the chain has spent lies
// between what the server said before and what it says after.
func verifyServed(ctx context.Context, c *client.Client, id string, kept ...holdout.Place) (report holdout.Verification, err error) {
	before, err := c.Budget(ctx, id)
	gone := client.IsNotFound(err)
	if err != nil && !gone {
		return report, err
	}
	releasesBefore, err := releasesOf(ctx, c, id)
	if err != nil {
		return report, err
	}
	export, to := io.Pipe()
	go func() { to.CloseWithError(c.Ledger(ctx, id, to)) }()
	defer export.Close()
	if report, err = holdout.VerifyExport(export, kept...); err != nil {
		return report, err
	}
	if report.Holdout != id {
		return report, fmt.Errorf("the server gave the ledger of %s", report.Holdout)
	}
	if gone && !report.Deleted {
		return report, errors.New("the server says that there is no such holdout, and its chain has no deletion")
	}
	if gone {
		return report, nil
	}
	after, err := c.Budget(ctx, id)
	switch {
	case report.Deleted && err == nil:
		return report, errors.New("the server says what is left of it, and its chain ends with a deletion")
	case client.IsNotFound(err): // it was deleted meanwhile
		return report, nil
	case err != nil:
		return report, err
	}
	if err := agree(&report, &before, &after); err != nil {
		return report, err
	}
	releasesAfter, err := c.Releases(ctx, id)
	switch {
	case client.IsNotFound(err): // it was deleted meanwhile
		return report, nil
	case err != nil:
		return report, err
	}
	return report, released(&report, releasesBefore, releasesAfter)
}

// releasesOf is what a server says that releases have spent; nothing of a holdout that is gone.
func releasesOf(ctx context.Context, c *client.Client, id string) (client.PrivateReleases, error) {
	all, err := c.Releases(ctx, id)
	if client.IsNotFound(err) {
		err = nil
	}
	return all, err
}

// released holds what the releases of a chain have spent against what the server said before, and after.
func released(report *holdout.Verification, before, after client.PrivateReleases) error {
	const rounding = 1e-9 // sums of millionths
	if report.Releases < before.Made || report.Releases > after.Made || report.Epsilon < before.Spent-rounding || report.Epsilon > after.Spent+rounding {
		return fmt.Errorf("the chain has %d releases of epsilon %v together, and the server says %d to %d of %v to %v",
			report.Releases, report.Epsilon, before.Made, after.Made, before.Spent, after.Spent)
	}
	return nil
}

// agree holds what a chain has spent against what the server said is left before, and after.
func agree(report *holdout.Verification, before, after *client.Budget) error {
	for _, m := range []struct {
		name        string
		first, last *client.Meter
		lost        int64 // of those that are not left: nobody asked them
		lostAfter   int64
	}{
		{thresholdout.MeterQuestions, &before.Questions, &after.Questions, before.Lost, after.Lost},
		{thresholdout.MeterTokens, before.Tokens, after.Tokens, 0, 0},
		{thresholdout.MeterRounds, before.Rounds, after.Rounds, 0, 0},
	} {
		limit, has := report.Limits[m.name]
		if m.first == nil || m.last == nil {
			if has || m.first != m.last {
				return fmt.Errorf("the chain has %d %s, and the server does not say how many are left", limit, m.name)
			}
			continue
		}
		spent, least, most := report.Spent[m.name], m.first.Of-m.first.Left-m.lost, m.last.Of-m.last.Left-m.lostAfter
		if spent < least || spent > most || m.first.Of != limit || m.last.Of != limit {
			return fmt.Errorf("the chain has spent %d of %d %s, and the server says %d to %d of %d",
				spent, limit, m.name, least, most, m.last.Of)
		}
	}
	return nil
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
	if err == nil && heads == nil {
		err = errors.New("there are none: it is null")
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
