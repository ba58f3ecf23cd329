package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
)

// grantFlags are those of every command about grants.
type grantFlags struct {
	serverFlags
	holdout string
	json    bool
}

func (f *grantFlags) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON as the server has it")
	cmd.Flags().StringVar(&f.holdout, "holdout", "", "the holdout, by its name or id (default: HOLDOUTD_HOLDOUT, or the only one that there is)")
	completeFlag(cmd, "holdout", func(c *cobra.Command, _ string) []string { return f.serverFlags.holdouts(c) })
}

func grantCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grant",
		Short: "Give keys slices of a holdout's budget, list them, and end them",
		Long: `A grant is a part of a holdout's budget for one key, or for the holder of a token: it spends no more than that, and nobody else
can spend it while it lives. What a grant has not spent when it ends or expires is there again. It also says what its holder
is shown of an answer. An admin grants of the holdout; who may (--may-grant) grants of a grant.

` + findingHelp,
		Example: `  holdoutd grant create ana --questions 200 --tokens 5
  holdoutd grant create agent-1 --questions 50 --shows bit --expires 7d
  holdoutd grant list
  holdoutd grant revoke ana`,
	}
	cmd.AddCommand(grantCreateCommand(), grantListCommand(), grantRevokeCommand())
	return cmd
}

func grantCreateCommand() *cobra.Command {
	var f grantFlags
	var g client.NewGrant
	var expires string
	var tokens, rounds int64
	cmd := &cobra.Command{
		Use:   "create KEY",
		Short: "Grant a part of a holdout's budget to a key, named by its id or its name, or to a token's holder, oidc:…",
		Example: `  holdoutd grant create ana --questions 200 --tokens 5 --holdout flights
  holdoutd grant create agent-1 --questions 50 --shows bit --expires 7d
  holdoutd grant create intern --questions 20 --of gr_9d2f6c1e-0d0c-4a3e-9b1d-6a4c2f1e7b90`,
		Args: cobra.ExactArgs(1),
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			c, card, err := f.open(ctx, f.holdout)
			if err != nil {
				return err
			}
			if g.Expires, err = expiry(expires, time.Now()); err != nil {
				return err
			}
			if cmd.Flags().Changed("tokens") {
				g.Tokens = &tokens
			}
			if cmd.Flags().Changed("rounds") {
				g.Rounds = &rounds
			}
			if g.Holder, err = holderNamed(ctx, c, args[0]); err != nil {
				return err
			}
			made, err := c.MakeGrant(ctx, card.ID, g)
			switch {
			case err != nil:
				return err
			case f.json:
				return printJSON(cmd.OutOrStdout(), made)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), made.ID)
			return err
		}),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&g.Questions, "questions", 0, "how many questions")
	flags.Int64Var(&tokens, "tokens", 0, "how many tokens (default: the same share of the tokens as of the questions)")
	flags.Int64Var(&rounds, "rounds", 0, "of a holdout with rounds: how many requests (default: 1)")
	flags.StringVar(&g.Shows, "shows", "", "what of an answer its holder is shown: full, value (no intervals), or bit (the verdict alone) (default: full, or what the grant shows that it is a part of)")
	flags.StringVar(&expires, "expires", "", "when it ends by itself: a time from now on (36h, 7d), a day (2026-12-31, to its end) or a time (2026-12-31T12:00:00Z) (default: never, or with the grant that it is a part of)")
	flags.StringVar(&g.Parent, "of", "", "the grant that it is a part of, by its id (default: the holdout's own budget)")
	flags.StringVar(&g.Name, "name", "", "what people call it")
	flags.BoolVar(&g.MayGrant, "may-grant", false, "its holder may grant parts of it to others")
	return cmd
}

// holderNamed is the principal that a word stands for: a token's holder, or a key by its id or its name. Without the right to list keys it is taken as it is.
func holderNamed(ctx context.Context, c *client.Client, word string) (string, error) {
	if strings.HasPrefix(word, "oidc:") || strings.HasPrefix(word, "key_") {
		return word, nil
	}
	keys, err := c.Keys(ctx)
	var p *client.Problem
	if errors.As(err, &p) && p.Code == "forbidden" {
		return "", misuse("only an admin can name a key by its name, %q: name it by its id, key_…, or the holder of a token by oidc:…", word)
	}
	if err != nil {
		return "", err
	}
	return keyNamed(keys, word)
}

// mostDays is a century: more is a typing error.
const mostDays = 36_525

// expiry reads when a grant ends: a time from now on, a day or a time.
func expiry(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		if at, err = time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
			at = at.AddDate(0, 0, 1).Add(-time.Second)
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok && err != nil {
		if n, dayErr := strconv.Atoi(days); dayErr == nil && n > 0 && n <= mostDays {
			at, err = now.AddDate(0, 0, n), nil
		}
	}
	if err != nil {
		if d, durationErr := time.ParseDuration(text); durationErr == nil && d > 0 {
			at, err = now.Add(d), nil
		}
	}
	if err != nil {
		return nil, misuse("--expires %q is no time from now on (36h, 7d), no day (2026-12-31) and no time (2026-12-31T12:00:00Z)", text)
	}
	at = at.UTC().Truncate(time.Second)
	return &at, nil
}

func grantListCommand() *cobra.Command {
	var f grantFlags
	all := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the grants of a holdout as a tree, with what each has left",
		Example: `  holdoutd grant list
  holdoutd grant list --holdout flights --all --json`,
		Args: cobra.NoArgs,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			c, card, err := f.open(ctx, f.holdout)
			if err != nil {
				return err
			}
			grants, err := c.Grants(ctx, card.ID)
			if err != nil {
				return err
			}
			if !all {
				grants = slices.DeleteFunc(grants, func(g client.Grant) bool { return !g.Live })
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), nonNil(grants))
			}
			return printGrants(cmd.OutOrStdout(), grants)
		}),
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also those that have ended or expired")
	return cmd
}

func grantRevokeCommand() *cobra.Command {
	var f grantFlags
	cmd := &cobra.Command{
		Use:   "revoke ID|KEY",
		Short: "End a grant at once, and those that are parts of it; named by its id, or by its holder's name where one live grant is that holder's",
		Example: `  holdoutd grant revoke agent-1
  holdoutd grant revoke gr_9d2f6c1e-0d0c-4a3e-9b1d-6a4c2f1e7b90 --holdout flights`,
		Args: cobra.ExactArgs(1),
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if id := args[0]; strings.HasPrefix(id, "gr_") {
				c, err := f.connect()
				if err != nil {
					return err
				}
				return c.EndGrant(ctx, id)
			}
			c, card, err := f.open(ctx, f.holdout)
			if err != nil {
				return err
			}
			grants, err := c.Grants(ctx, card.ID)
			if err != nil {
				return err
			}
			id, err := grantNamed(grants, args[0])
			if err != nil {
				return err
			}
			return c.EndGrant(ctx, id)
		}),
	}
	f.add(cmd)
	return cmd
}

// grantNamed is the id of the one live grant whose holder, or which itself, has a name.
func grantNamed(grants []client.Grant, word string) (id string, err error) {
	var found []string
	for _, g := range grants {
		if g.Live && (g.Name == word || g.Holder.ID == word || g.Holder.Name != nil && *g.Holder.Name == word) {
			found = append(found, g.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no live grant of the holdout has the name %q, nor has its holder; holdoutd grant list lists them", word)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d live grants have the name %q, or their holder has; name one by its id: %s", len(found), word, strings.Join(found, ", "))
}

// shownWords say what of an answer is shown.
var shownWords = map[string]string{"full": "all", "value": "the numbers without intervals", "bit": "the verdict alone"}

func printGrants(out io.Writer, grants []client.Grant) error {
	t := table{header: []string{"HOLDER", "NAME", "QUESTIONS LEFT", "TOKENS LEFT", "SHOWS", "STATE", "ID"}}
	depth := map[string]int{}
	for _, g := range inTree(grants) {
		if g.Parent != nil {
			if d, ok := depth[*g.Parent]; ok {
				depth[g.ID] = d + 1
			}
		}
		if _, ok := depth[g.ID]; !ok {
			depth[g.ID] = 0
		}
		holder := g.Holder.ID
		if g.Holder.Name != nil {
			holder = *g.Holder.Name
		}
		questions, tokens, state := thousands(g.Questions.Left)+" of "+thousands(g.Questions.Of), "", "live"
		if g.Tokens != nil {
			tokens = thousands(g.Tokens.Left) + " of " + thousands(g.Tokens.Of)
		}
		switch {
		case g.Ended != nil:
			state = "ended " + g.Ended.UTC().Format("2006-01-02 15:04")
		case g.Expires != nil:
			state = "until " + g.Expires.UTC().Format("2006-01-02 15:04")
		}
		if g.MayGrant {
			state += ", may grant"
		}
		t.add(strings.Repeat("  ", depth[g.ID])+holder, g.Name, questions, tokens, g.Shows, state, g.ID)
	}
	return t.write(out, terminalWidth(out))
}

// inTree orders grants so that each is followed by its parts. The server lists a grant after the one that it is a part of.
func inTree(grants []client.Grant) (ordered []client.Grant) {
	parts, known := map[string][]client.Grant{}, map[string]bool{}
	for _, g := range grants {
		known[g.ID] = true
		of := ""
		if g.Parent != nil && known[*g.Parent] {
			of = *g.Parent
		}
		parts[of] = append(parts[of], g)
	}
	var walk func(of string)
	walk = func(of string) {
		for _, g := range parts[of] {
			ordered = append(ordered, g)
			walk(g.ID)
		}
	}
	walk("")
	return ordered
}
