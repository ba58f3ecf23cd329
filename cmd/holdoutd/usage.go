package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/internal/nearest"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1 // what was asked for could not be done, or what was to be verified is not in order
	exitMisused = 2 // the command line is wrong, and nothing was done
)

// exitCodes says them in the help.
const exitCodes = `The exit code is 0 when it is done, 1 when it could not be done or what is verified is not in order, and 2 when the command
line is wrong.`

// misused is an error of the command line.
type misused struct{ error }

func (m misused) Unwrap() error { return m.error }

func misuse(format string, args ...any) error { return misused{fmt.Errorf(format, args...)} }

// exitCode is what the program ends with.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &misused{}):
		return exitMisused
	}
	return exitFailed
}

// strict makes every mistake in the command line an error of its own kind that names what was probably meant: in a command, in an argument
// and in a flag. Cobra prints the help of a command that has only commands below it, and exits with 0.
func strict(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		strict(c)
	}
	cmd.SetFlagErrorFunc(flagError)
	if cmd.HasSubCommands() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.DisableFlagParsing = cmd.HasParent() // else an unknown flag hides the unknown command before it
		cmd.RunE = runGroup
		return
	}
	if takes := cmd.Args; takes != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := takes(c, args); err != nil {
				return misuse("%w; usage: %s", err, c.UseLine())
			}
			return nil
		}
	}
}

// runGroup is what a command does that has commands below it, none of which was named.
func runGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "-h" || arg == "--help" {
			return cmd.Help()
		}
		if cmd.PersistentFlags().Lookup(strings.TrimPrefix(arg, "--")) != nil {
			i++ // its value
			continue
		}
		if !strings.HasPrefix(arg, "-") {
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			return misuse("unknown command %q for %q%s", arg, cmd.CommandPath(), hint(nearest.Name(arg, names), cmd.CommandPath()+" --help names them"))
		}
	}
	return misuse("name a command after %q; %s --help names them", cmd.CommandPath(), cmd.CommandPath())
}

// flagError says which flag was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return misused{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := nearest.Name(unknown.GetSpecifiedName(), names)
	if near != "" {
		near = "--" + near
	}
	return misuse("%w%s", err, hint(near, cmd.CommandPath()+" --help names them"))
}

// hint is the end of a message: what was probably meant, and what is known.
func hint(near, known string) string {
	if near == "" {
		return "; " + known
	}
	return "; did you mean " + near + "? " + known
}
