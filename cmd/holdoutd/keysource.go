package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/holdout"
)

const (
	// keyCommandTime is how long a command that says the server's key may take: key services answer within a second or two, and a start must end where one does not.
	keyCommandTime = 30 * time.Second
	// mostKeyOutput bounds what is kept of each of its outputs, in bytes: a key has 64 digits, and the reason of a failure a few lines.
	mostKeyOutput = 4096
)

// A keySource is a command line that says the server's key on its standard output.
type keySource string

func (k *keySource) add(flags *pflag.FlagSet) {
	flags.StringVar((*string)(k), "key-command", "", "command that writes the server's key (64 hex digits) to its standard output, as a client of a key service does; run once, without a shell: quotes keep words together (default: the file server.key in the data directory)")
}

// read runs the command and reads the key; nil without a command. No error shows what it wrote to its standard output.
func (k keySource) read(ctx context.Context) (*holdout.ServerKey, error) {
	if k == "" {
		return nil, nil
	}
	argv, err := words(string(k))
	if err != nil {
		return nil, misuse("--key-command: %w", err)
	}
	if len(argv) == 0 {
		return nil, misuse("--key-command names no program")
	}
	text, err := keyOutput(ctx, argv, keyCommandTime)
	if err != nil {
		return nil, fmt.Errorf("--key-command: %s %w", argv[0], err)
	}
	defer clear(text)
	key, err := holdout.ParseServerKey(text)
	if err != nil {
		return nil, fmt.Errorf("--key-command: what %s wrote is no key: %w", argv[0], err)
	}
	return key, nil
}

// keyOutput runs a program to its end, and returns what it wrote to its standard output. Its standard error is in the error, if it fails. When its time is over, it is ended with all that it started.
func keyOutput(ctx context.Context, argv []string, limit time.Duration) ([]byte, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs head
	cmd := exec.CommandContext(timed, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what it started and left behind, which may hold its outputs
	err := cmd.Run()
	var failed *exec.ExitError
	var reason string
	switch {
	case err == nil:
		return out.b.Bytes(), nil
	case ctx.Err() != nil:
		reason = "was interrupted"
	case timed.Err() != nil:
		reason = fmt.Sprintf("did not end within %v", limit)
	case errors.As(err, &failed):
		reason = "failed, " + failed.Error()
	case errors.Is(err, exec.ErrWaitDelay):
		reason = "ended, and something that it started keeps its output open"
	default: // it could not be started
		return nil, fmt.Errorf("cannot be run: %w", err)
	}
	clear(out.b.Bytes())
	if said := strings.TrimSpace(errs.b.String()); said != "" {
		reason += ": " + printable(likeKey.ReplaceAllString(said, "(hex digits left out)")) // a script that says what it does may say the key
	}
	return nil, errors.New(reason)
}

// likeKey are digits that may be of a key.
var likeKey = regexp.MustCompile(`[0-9a-fA-F]{32,}`)

// head keeps the beginning of what is written.
type head struct{ b bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	h.b.Write(p[:min(len(p), mostKeyOutput-h.b.Len())])
	return len(p), nil
}

// words divides a command line at spaces. Single and double quotes keep words together, and a backslash takes the next character as it is, but within single quotes. Nothing else has a meaning:
// no shell reads the line.
func words(line string) (all []string, err error) {
	var word strings.Builder
	inWord, quote, escaped := false, rune(0), false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inWord, escaped = true, true
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inWord, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				all = append(all, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	case escaped:
		return nil, errors.New("it ends with a backslash")
	case inWord:
		all = append(all, word.String())
	}
	return all, nil
}
