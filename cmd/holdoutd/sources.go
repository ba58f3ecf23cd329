package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/clickhouse"
	"github.com/holdoutd/holdoutd/sources/files"
	"github.com/holdoutd/holdoutd/sources/trino"
)

// sourceFlags name the places whose tables can become holdouts where they are.
type sourceFlags struct {
	given    []string
	readOnly bool // nothing is made where parts are kept
}

const (
	// sourceVariable and the name of a source in capitals is where its URL is looked for when no other place is named: as of --ledger, a password does not belong on a
	// command line, which every process of the machine can read.
	sourceVariable = "HOLDOUTD_SOURCE_"
	// sourceReady is how long the start waits to hear whether a source answers.
	sourceReady = 3 * time.Second
	// maxSourceFile is more than a URL has.
	maxSourceFile = 64 << 10
)

// sourceName is what a source can be called: it stands in URLs, on cards and in variables of the environment.
var sourceName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// sourceKinds are the kinds of places that there are, by the scheme of their URLs, and what opens one: own is a directory of the server's for what it keeps of it, in which nothing is made where it is only read.
var sourceKinds = map[string]func(ctx context.Context, where, own string, readOnly bool) (sources.Source, error){
	"file": func(_ context.Context, where, own string, readOnly bool) (sources.Source, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("this program's own file cannot be found, which is needed to decode Parquet: %w", err)
		}
		o, err := files.Parse(where, files.Options{Parts: own, ReadOnly: readOnly, Argv: []string{self, decodeCommand}})
		if err != nil {
			return nil, err
		}
		return files.New(o)
	},
	"clickhouse": openClickHouse, "clickhouses": openClickHouse,
	"trino": func(_ context.Context, where, _ string, _ bool) (sources.Source, error) { return trino.Open(where) },
}

func openClickHouse(ctx context.Context, where, _ string, _ bool) (sources.Source, error) {
	timed, cancel := context.WithTimeout(ctx, sourceReady)
	defer cancel()
	return clickhouse.Open(timed, where)
}

// sourcesDir is where in the data directory sources of files keep the parts of holdouts, each in a directory of its name.
const sourcesDir = "sources"

func (f *sourceFlags) add(flags *pflag.FlagSet, usage string) {
	flags.StringArrayVar(&f.given, "source", nil, usage)
}

// serveSource is the usage of serve's flag.
const serveSource = "a place whose tables can become holdouts without being uploaded, as often as there are places: NAME=URL, such as lake=file:///srv/lake; NAME=@FILE reads the URL from a file that only you can read, and NAME alone from " + sourceVariable + "NAME in the environment: a URL with a password belongs there"

// open makes the sources by their names. What does not answer is warned of: it may come back, and the holdouts of other places do not need it.
func (f *sourceFlags) open(ctx context.Context, data string, log *slog.Logger) (opened map[string]sources.Source, err error) {
	opened = map[string]sources.Source{}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeSources(opened))
		}
	}()
	for _, given := range f.given {
		name, u, where, err := sourceURL(given)
		if err != nil {
			return opened, err
		}
		if opened[name] != nil {
			return opened, misuse("two sources are called %s: give each a name of its own", name)
		}
		open, known := sourceKinds[u.Scheme]
		if !known {
			kinds := slices.Sorted(maps.Keys(sourceKinds))
			return opened, misuse("the source %s is of no known kind%s", name, hint(nearest.Name(u.Scheme, kinds), "its URL must begin with "+strings.Join(kinds, "://, ")+"://"))
		}
		s, err := open(ctx, where, filepath.Join(data, sourcesDir, name), f.readOnly)
		if err != nil {
			return opened, fmt.Errorf("the source %s cannot be used: %w", name, plainSource(err))
		}
		opened[name] = s
	}
	for name, s := range opened {
		timed, cancel := context.WithTimeout(ctx, sourceReady)
		if err := s.Ready(timed); err != nil {
			log.Warn("a source does not answer; what needs it is refused until it does", "source", name, "kind", s.Kind(), "error", err)
		} else {
			log.Info("source", "source", name, "kind", s.Kind())
		}
		cancel()
	}
	return opened, nil
}

// plainSource is an error of a source without the words of the package, with what the place itself has said: it is told to who starts the server.
func plainSource(err error) error {
	var ours *sources.Error
	switch {
	case !errors.As(err, &ours):
		return err
	case ours.Err != nil:
		return fmt.Errorf("%s: %w", ours.Detail, ours.Err)
	}
	return errors.New(ours.Detail)
}

func closeSources(opened map[string]sources.Source) error {
	var all []error
	for _, s := range opened {
		all = append(all, s.Close())
	}
	return errors.Join(all...)
}

// sourceURL reads one --source. No part of a URL that may be secret is in an error.
func sourceURL(given string) (name string, u *url.URL, where string, err error) {
	name, where, inline := strings.Cut(given, "=")
	if !sourceName.MatchString(name) {
		return "", nil, "", misuse("--source must be NAME=URL, NAME=@FILE or NAME, with a name of small letters, digits, - and _ that begins with a letter, at most 40")
	}
	variable := sourceVariable + strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	file, named := strings.CutPrefix(where, "@")
	switch {
	case !inline:
		if where = strings.TrimSpace(os.Getenv(variable)); where == "" {
			return "", nil, "", misuse("--source %s has no URL: write %s=URL or %[1]s=@FILE, or set %[3]s in the environment", name, name, variable)
		}
	case named:
		if where, err = privateText(file); err != nil {
			return "", nil, "", fmt.Errorf("the file of --source %s cannot be used: %w", name, err)
		}
	}
	u, err = url.Parse(where)
	if err != nil || u.Scheme == "" {
		return "", nil, "", misuse("what --source %s names is not a URL such as file:///srv/lake or clickhouse://USER@HOST/DATABASE", name)
	}
	if inline && !named && hasSecret(u) {
		return "", nil, "", misuse("the URL of --source %s has a password in it, which every process of this machine can read on the command line: write the URL to a file that only you can read and give %s=@FILE, or set %s in the environment and give %s alone", name, name, variable, name)
	}
	return name, u, where, nil
}

// hasSecret reports whether a URL says what lets somebody in.
func hasSecret(u *url.URL) bool {
	if password, set := u.User.Password(); set && password != "" {
		return true
	}
	for key := range u.Query() {
		if key = strings.ToLower(key); !strings.HasSuffix(key, "_file") && (strings.Contains(key, "password") || strings.Contains(key, "token") || strings.Contains(key, "secret")) {
			return true
		}
	}
	return false
}

// privateText is the contents of a file that others cannot read.
func privateText(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("everybody can read %s: chmod 600 %[1]s", file)
	case info.Size() > maxSourceFile:
		return "", fmt.Errorf("%s has more than one URL", file)
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}
