package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// TestGuess goes through the real program with the mechanism that auto takes: training's guess, one's own, and a half-width that
// cannot pass.
func TestGuess(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "data")
	c := connect(t, startServer(t, dir), dir)
	card, err := c.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.3, Questions: 1000, Tokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	if card.Guarantee.Mechanism != "guess_and_check" || card.Assumes == "" || card.Guarantee.HalfWidth > 0.03 {
		t.Errorf("card: %+v", card.Guarantee)
	}
	ask := func(query string) (client.Reply, error) { return c.Ask(ctx, card.ID, json.RawMessage(query)) }
	for source, query := range map[string]string{
		"training": `{"type":"fraction","of":"delay > 15"}`,
		"guess":    `{"type":"fraction","of":"delay > 15","guess":0.2,"half_width":0.05}`,
		"holdout":  `{"type":"fraction","of":"delay > 15","guess":0.6}`,
	} {
		reply, err := ask(query)
		if err != nil {
			t.Fatal(err)
		}
		// .20031 of the whole table; the population is within .004 of that, the interval's half-width at least twice that.
		if i := reply.Answer.Interval; reply.Answer.Source != source || *i.Low > 0.20031 || *i.High < 0.20031 {
			t.Errorf("%s: %s", source, reply.Answer.Raw)
		}
	}
	_, err = ask(`{"type":"fraction","of":"delay > 15","half_width":0.002}`)
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != 422 {
		t.Errorf("a half-width that cannot pass: %v", err)
	}
	if b, err := c.Budget(ctx, card.ID); err != nil || b.Questions.Left != 997 || b.Tokens == nil || b.Tokens.Left != 4 {
		t.Errorf("%+v, %v", b, err)
	}
}
