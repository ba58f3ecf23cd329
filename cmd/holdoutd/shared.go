package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
)

// sharedFlags say what several servers share: the ledger, the tables and the server's key.
type sharedFlags struct {
	ledger     string
	tables     string
	keyFile    string
	keyCommand string
}

const (
	// ledgerVariable names the ledger where no flag does: a URL with a password does not belong on a command line, which every process of the machine can read.
	ledgerVariable = "HOLDOUTD_LEDGER"
	// keyCommandTime is how long the command may take that prints the server's key.
	keyCommandTime = 30 * time.Second
	// maxKeyOutput is more than such a command has to say.
	maxKeyOutput = 4 << 10
)

func (f *sharedFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.ledger, "ledger", "", "a ledger that several servers share: postgres://USER@HOST/DATABASE, or @FILE, a file with that URL (default: "+ledgerVariable+", else ledger.db in the data directory)")
	flags.StringVar(&f.tables, "tables", "", "directory of the holdouts' tables, on storage that all servers of a shared ledger see (default: holdouts in the data directory)")
	flags.StringVar(&f.keyFile, "server-key", "", "file with the server's key, 64 hexadecimal digits (default: server.key in the data directory)")
	flags.StringVar(&f.keyCommand, "server-key-command", "", "command that prints the server's key, such as one that asks a key management service; run once, by sh -c, at the start")
}

// options are the service's. Nothing of a password or a key is in an error.
func (f *sharedFlags) options(ctx context.Context, o *holdout.Options) error {
	o.Tables = f.tables
	switch {
	case f.keyFile != "" && f.keyCommand != "":
		return misuse("the server's key comes from --server-key or from --server-key-command, not from both")
	case f.keyFile != "":
		o.ServerKey = func() (string, error) {
			text, err := os.ReadFile(f.keyFile)
			return string(text), err
		}
	case f.keyCommand != "":
		key, err := runKeyCommand(ctx, f.keyCommand, keyCommandTime)
		if err != nil {
			return err
		}
		o.ServerKey = func() (string, error) { return key, nil }
	}
	if f.ledger == "" {
		return nil
	}
	where, u, err := ledgerURL(f.ledger)
	if err != nil {
		return err
	}
	o.OpenLedger = func(ctx context.Context, o ledger.Options) (ledger.Ledger, error) {
		opened, err := postgres.Open(ctx, where, o)
		if err != nil {
			return nil, fmt.Errorf("the ledger at %s cannot be opened: %w", u.Redacted(), err)
		}
		return opened, nil
	}
	return nil
}

// ledgerURL is the URL of a shared ledger, or what @FILE has. The second one is to be shown.
func ledgerURL(where string) (string, *url.URL, error) {
	if file, named := strings.CutPrefix(where, "@"); named {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", nil, fmt.Errorf("the file of --ledger cannot be read: %w", err)
		}
		where = strings.TrimSpace(string(text))
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", nil, misuse("--ledger, or %s, must be a URL such as postgres://USER@HOST/DATABASE, or @FILE with one", ledgerVariable)
	}
	return where, u, nil
}

// runKeyCommand is what a command prints. Its own words of what went wrong are passed on; what it prints is not, for that may be the key.
func runKeyCommand(ctx context.Context, command string, limit time.Duration) (string, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, said limited
	cmd := exec.CommandContext(timed, "sh", "-c", command)
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = time.Second // for what it has started and left behind
	err := cmd.Run()
	words := ""
	if text := strings.TrimSpace(said.String()); text != "" {
		words = ": " + printable(strings.Join(strings.Fields(text), " "))
	}
	switch {
	case timed.Err() != nil && ctx.Err() == nil:
		return "", fmt.Errorf("--server-key-command did not end within %v%s", limit, words)
	case err != nil:
		return "", fmt.Errorf("--server-key-command failed (%w)%s", err, words)
	case strings.TrimSpace(out.String()) == "":
		return "", errors.New("--server-key-command printed nothing; it must print the key, 64 hexadecimal digits, to its standard output")
	}
	return out.String(), nil
}

// limited keeps the beginning of what is written.
type limited struct{ bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, maxKeyOutput-l.Len()))])
	return len(p), nil
}
