package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

// Exit codes. Those of a gate's verdict, 3 and 4, are internal/gate's.
const (
	exitDone        = 0
	exitFailed      = 1   // what was asked for could not be done, or what was to be verified is not in order
	exitMisused     = 2   // the command line is wrong, or a question or setting in it; nothing was done
	exitExhausted   = 5   // the budget cannot pay; nothing was spent
	exitTooDear     = 6   // the price is above what a request may cost; nothing was spent
	exitUnavailable = 7   // the server cannot be reached, or cannot answer now; asking again is safe
	exitInterrupted = 130 // by a signal, as a shell has it
)

// exitCodes says them in the help.
const exitCodes = `The exit code is 0 when it is done, 1 when it could not be done or what is verified is not in order, and 2 when the command
line is wrong, or a question or a setting in it: nothing was done then. Of commands that ask a server it is 5 when the
budget cannot pay, 6 when the price is above --max-questions (nothing was spent in both cases), and 7 when the server
cannot be reached or cannot answer now: asking again is safe. It is 130 after Ctrl-C. A gate ends with 0 only if the
candidate passed, with 3 if it is not shown to be better, and with 4 if it is worse.`

// misused is an error of the command line.
type misused struct{ error }

func (m misused) Unwrap() error { return m.error }

func misuse(format string, args ...any) error { return misused{fmt.Errorf(format, args...)} }

// exitCode is what the program ends with.
func exitCode(err error) int {
	var found verdict
	var refused refusedError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &found):
		return found.ExitCode()
	case errors.As(err, &misused{}):
		return exitMisused
	case errors.As(err, &interrupted{}):
		return exitInterrupted
	case errors.As(err, &unreached{}):
		return exitUnavailable
	case errors.As(err, &refused):
		return refusedCode(refused.Problem)
	}
	return exitFailed
}

// refusedCode is the exit code of what a server refuses. What only a person can mend, such as a key that was revoked, is 1.
func refusedCode(p *client.Problem) int {
	switch p.Code {
	case "budget-exhausted", "grant-exhausted", "epsilon-exhausted":
		return exitExhausted
	case "max-questions":
		return exitTooDear
	case "invalid", "malformed":
		return exitMisused
	case "busy", "unavailable", "timeout", "rate-limited":
		return exitUnavailable
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
	if cmd.HasSubCommands() && cmd.RunE == nil {
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

// helpWidth is how many characters a line of flags has in a help, as the other lines have.
const helpWidth = 120

// wrapFlags breaks what flags mean into lines.
func wrapFlags(root *cobra.Command) {
	cobra.AddTemplateFunc("wrapped", func(flags *pflag.FlagSet) string { return flags.FlagUsagesWrapped(helpWidth) })
	root.SetUsageTemplate(strings.NewReplacer(".LocalFlags.FlagUsages", "wrapped .LocalFlags", ".InheritedFlags.FlagUsages", "wrapped .InheritedFlags").Replace(root.UsageTemplate()))
}
