package main

import (
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
)

func grantCommand() *cobra.Command {
	var server serverFlags
	cmd := &cobra.Command{
		Use:   "grant",
		Short: "Give keys slices of a holdout's budget, list and revoke them, and see who spent what",
		Long: `Works on a running server, with an admin key. A grant is a slice of a holdout's questions and tokens for one key. The
key has the scope granted: it may do what its grants say, and nothing else. A grant can be a slice of another one; what
keys spend below it is spent of both. list works with every key, and then lists the key's own grants.

` + findingHelp,
		Example: `  holdoutd key create agent --scope granted > agent.key
  holdoutd grant create agent flights --questions 50 --tokens 4 --for 24h --shows bit
  holdoutd grant list
  holdoutd grant revoke gr_5b0c7a52-7c1e-4f0e-8f55-2f6f3c9d1a77
  holdoutd grant spending flights`,
	}
	server.add(cmd.PersistentFlags())

	var n client.NewGrant
	var tokens int64
	var life time.Duration
	create := &cobra.Command{
		Use:   "create KEY HOLDOUT",
		Short: "Make a grant of a holdout for a key, each named by its id or its name, and print the grant's id",
		Example: `  holdoutd grant create reviewer flights --questions 50
  holdoutd grant create run-7 flights --questions 5 --tokens 1 --parent gr_5b0c7a52-7c1e-4f0e-8f55-2f6f3c9d1a77 --for 1h --shows value`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n.Questions < 1 {
				return misuse("--questions must be given, and be at least 1")
			}
			c, card, err := server.open(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			keys, err := c.Keys(cmd.Context())
			if err != nil {
				return plain(err)
			}
			if n.Key, err = keyNamed(keys, args[0]); err != nil {
				return err
			}
			n.Holdout = card.ID
			if cmd.Flags().Changed("tokens") {
				n.Tokens = &tokens
			}
			if cmd.Flags().Changed("for") {
				n.Expires = new(time.Now().Add(life))
			}
			g, err := c.CreateGrant(cmd.Context(), n)
			if err != nil {
				return plain(err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), g.ID)
			return nil
		},
	}
	flags := create.Flags()
	flags.Int64Var(&n.Questions, "questions", 0, "how many questions it may spend")
	flags.Int64Var(&tokens, "tokens", 0, "how many tokens it may spend (default: no limit of its own)")
	flags.StringVar(&n.Parent, "parent", "", "the id of the grant that it is a slice of (default: of the holdout's own budget)")
	flags.DurationVar(&life, "for", 0, "how long it lasts, such as 24h (default: until it is revoked)")
	flags.StringVar(&n.Shows, "shows", "full", "what is shown of answers: full, value (no intervals) or bit (whether the verdict is yes)")

	list := &cobra.Command{
		Use:   "list",
		Short: "List the grants, with what is spent of each and what is left",
		Example: `  holdoutd grant list
  holdoutd grant list --key @agent.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := server.connect()
			if err != nil {
				return err
			}
			grants, err := c.Grants(cmd.Context())
			if err != nil {
				return plain(err)
			}
			return printGrants(cmd, grants)
		},
	}
	revoke := &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a grant at once, and those below it",
		Example: `  holdoutd grant revoke gr_5b0c7a52-7c1e-4f0e-8f55-2f6f3c9d1a77`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := server.connect()
			if err != nil {
				return err
			}
			return plain(c.RevokeGrant(cmd.Context(), args[0]))
		},
	}
	spending := &cobra.Command{
		Use:     "spending HOLDOUT",
		Short:   "Say what each key has spent of a holdout, with a grant or without",
		Example: `  holdoutd grant spending flights`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, card, err := server.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			spenders, err := c.Spending(cmd.Context(), card.ID)
			if err != nil {
				return plain(err)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "KEY\tNAME\tQUESTIONS\tTOKENS")
			for _, s := range spenders {
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", s.Key.ID, keyName(s.Key), s.Questions, s.Tokens)
			}
			return w.Flush()
		},
	}
	cmd.AddCommand(create, list, revoke, spending)
	return cmd
}

func keyName(key client.Asker) string {
	if key.Name == nil {
		return "-"
	}
	return *key.Name
}

func printGrants(cmd *cobra.Command, grants []client.Grant) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKEY\tHOLDOUT\tQUESTIONS\tTOKENS\tSHOWS\tENDS\tSTATE\tPARENT")
	for _, g := range grants {
		ends, parent := "-", g.Parent
		if g.Expires != nil {
			ends = g.Expires.UTC().Format("2006-01-02 15:04")
		}
		if parent == "" {
			parent = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, keyName(g.Key), g.Holdout, meterWords(&g.Questions), meterWords(g.Tokens), g.Shows, ends, g.State, parent)
	}
	return w.Flush()
}

// meterWords are what is spent of a grant's meter and what it has left.
func meterWords(m *client.GrantMeter) string {
	if m == nil {
		return "-"
	}
	of := "no limit"
	if m.Of != nil {
		of = strconv.FormatInt(*m.Of, 10)
	}
	return fmt.Sprintf("%d of %s, %d left", m.Spent, of, m.Left)
}
