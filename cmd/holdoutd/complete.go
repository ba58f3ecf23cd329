package main

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
)

// completionTime is how long a key press may wait for the server.
const completionTime = 2 * time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completeHoldout offers the names of holdouts, with their ids where they have none, as the first argument.
func (f *lookFlags) completeHoldout(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return f.serverFlags.holdouts(cmd), noFiles
}

func (f *serverFlags) holdouts(cmd *cobra.Command) (words []string) {
	f.quickly(cmd, func(ctx context.Context, c *client.Client) {
		cards, err := c.Holdouts(ctx)
		if err != nil {
			return
		}
		for _, card := range cards {
			name := printable(card.Name)
			if name == "" || name != card.Name {
				name = card.ID
			}
			words = append(words, name+"\t"+thousands(card.Units.Holdout)+" units held out")
		}
	})
	return words
}

// columns completes the last name of an expression to those of a holdout's columns.
func (f *serverFlags) columns(cmd *cobra.Command, holdout, expression string) (words []string) {
	f.quickly(cmd, func(ctx context.Context, c *client.Client) {
		card, err := holdoutOf(ctx, c, holdout)
		if err != nil {
			return
		}
		words = columnWords(card.Columns, expression)
	})
	return words
}

// columnWords are the expression with its last name completed in each way.
func columnWords(columns []client.Column, expression string) (words []string) {
	start := len(expression)
	for start > 0 {
		r, size := utf8.DecodeLastRuneInString(expression[:start])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		start -= size
	}
	before, begun := expression[:start], expression[start:]
	for _, column := range columns {
		if strings.HasPrefix(column.Name, begun) && printable(column.Name) == column.Name && !strings.ContainsAny(column.Name, " \t") {
			words = append(words, before+column.Name+"\t"+column.Kind)
		}
	}
	return words
}

// quickly asks the server once and not for long; who completes a word wants no error.
func (f *serverFlags) quickly(cmd *cobra.Command, do func(context.Context, *client.Client)) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completionTime)
	defer cancel()
	if c, err := f.connect(client.WithRetries(0)); err == nil {
		do(ctx, c)
	}
}

// completionCommand prints the script for a shell. The shell then calls this program's hidden command __complete for each word.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh",
		Short: "Print the script that completes commands, flags, holdouts and columns in a shell",
		Long: `Prints the script that makes bash or zsh complete commands, flags, values, and, from the server, the names of holdouts and of
their columns. What is completed inside of quotes is up to the shell.`,
		Example: `  source <(holdoutd completion bash)                                   # this shell
  holdoutd completion bash > /etc/bash_completion.d/holdoutd           # every one
  holdoutd completion zsh > "${fpath[1]}/_holdoutd"`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "zsh" {
				return cmd.Root().GenZshCompletion(cmd.OutOrStdout())
			}
			return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true)
		},
	}
}
