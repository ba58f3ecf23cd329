package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

func keyCommand() *cobra.Command {
	var server serverFlags
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make, list and revoke API keys of a running server",
		Long: `Works on a running server, with an admin key. The first admin key is in DIR/admin.key; --key @DIR/admin.key reads it from
there.

` + findingHelp,
		Example: `  holdoutd key create ana > ana.key
  holdoutd key create bot --scope analyst --url https://holdout.example --key @admin.key
  holdoutd key list
  holdoutd key revoke ana`,
	}
	server.add(cmd.PersistentFlags())
	connect := func() (*client.Client, error) { return server.connect() }

	scope, subject := "", ""
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a key and print it; it cannot be shown again",
		Long: `Makes a key and prints its secret. With --oidc-subject the key has none: tokens of that subject stand for it, on a server that
was started with --oidc-issuer. Its id is printed then.`,
		Example: `  holdoutd key create ana > ana.key
  holdoutd key create root --scope admin --key @holdoutd-data/admin.key
  holdoutd key create ci --oidc-subject repo:acme/models:ref:refs/heads/main`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("oidc-subject") {
				k, err := c.BindKey(cmd.Context(), args[0], scope, subject)
				if err != nil {
					return plain(err)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "made a key for which tokens of %q stand; this is its id, by which it can be revoked:\n", subject)
				fmt.Fprintln(cmd.OutOrStdout(), k.ID)
				return nil
			}
			k, err := c.CreateKey(cmd.Context(), args[0], scope)
			if err != nil {
				return plain(err)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "made the key", k.ID+", by which it can be revoked; this is its secret:") // the secret alone is for scripts
			fmt.Fprintln(cmd.OutOrStdout(), k.Secret)
			return nil
		},
	}
	create.Flags().StringVar(&scope, "scope", "analyst", "what it may do: analyst, admin, or granted: what its grants say")
	create.Flags().StringVar(&subject, "oidc-subject", "", "whose tokens stand for the key, as the server's OpenID Connect issuer names them; the key then has no secret")
	list := &cobra.Command{
		Use:   "list",
		Short: "List the keys, without their secrets",
		Long:  "Lists all keys, those that were revoked too. BY is the id of the key that made it; the server itself makes the first one.",
		Example: `  holdoutd key list
  holdoutd key list --url https://holdout.example --key @admin.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connect()
			if err != nil {
				return err
			}
			keys, err := c.Keys(cmd.Context())
			if err != nil {
				return plain(err)
			}
			return printKeys(cmd, keys)
		},
	}
	revoke := &cobra.Command{
		Use:   "revoke ID|NAME",
		Short: "End a key at once, named by its id, or by its name where one valid key has it",
		Example: `  holdoutd key revoke ana
  holdoutd key revoke key_9d2f6c1e-0d0c-4a3e-9b1d-6a4c2f1e7b90`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect()
			if err != nil {
				return err
			}
			keys, err := c.Keys(cmd.Context())
			if err != nil {
				return plain(err)
			}
			id, err := keyNamed(keys, args[0])
			if err != nil {
				return err
			}
			return plain(c.RevokeKey(cmd.Context(), id))
		},
	}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

// keyNamed is the id of the key that an id or a name stands for.
func keyNamed(keys []client.Key, word string) (id string, err error) {
	var valid, known []string
	for _, k := range keys {
		known = append(known, k.ID)
		switch {
		case k.ID == word:
			return k.ID, nil
		case k.Revoked:
		case k.Name == word:
			valid = append(valid, k.ID)
		default:
			known = append(known, k.Name)
		}
	}
	switch len(valid) {
	case 0:
		return "", fmt.Errorf("no valid key has the id or the name %q%s", word, hint(nearest.Name(word, known), "holdoutd key list lists them"))
	case 1:
		return valid[0], nil
	}
	return "", fmt.Errorf("%d valid keys are called %q; name one by its id: %s", len(valid), word, strings.Join(valid, ", "))
}

func printKeys(cmd *cobra.Command, keys []client.Key) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSCOPE\tCREATED\tSTATE\tBY\tSUBJECT")
	for _, k := range keys {
		state := "valid"
		if k.Revoked {
			state = "revoked"
		}
		by, subject := k.By, "-"
		if by == "" {
			by = "-"
		}
		if k.OIDC != nil {
			subject = fmt.Sprintf("%s of %s (%s)", k.OIDC.Subject, k.OIDC.Issuer, k.OIDC.Claim)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Scope, k.Created.UTC().Format("2006-01-02 15:04"), state, by, subject)
	}
	return w.Flush()
}
