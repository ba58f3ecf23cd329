package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/nearest"
)

// Where a server and a key are named, beside flags. The Python client reads the same, in the same order.
const (
	urlVariable     = "HOLDOUTD_URL"
	keyVariable     = "HOLDOUTD_KEY"
	connectVariable = "HOLDOUTD_CONNECT" // a file like connect.json
	holdoutVariable = "HOLDOUTD_HOLDOUT"

	defaultData = "holdoutd-data" // the data directory of serve unless it is told otherwise
)

// findingHelp says in the help of a client's command how it finds the server.
const findingHelp = `The server and the key are those of --url and --key, else of HOLDOUTD_URL and HOLDOUTD_KEY, else of the file that
HOLDOUTD_CONNECT names, of holdoutd-data/connect.json, which serve writes, or of your own connect.json, which demo
writes; with a key alone http://127.0.0.1:8080. The file of the working directory leads to this machine alone, and to a key
beside it. A key @FILE is read from that file, so that it stays out of the shell's history.`

// serverFlags say which server, and with which key.
type serverFlags struct{ url, key string }

func (f *serverFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "url", "", "the server, such as http://127.0.0.1:8080 (default: HOLDOUTD_URL, or the connect.json of serve or demo)")
	flags.StringVar(&f.key, "key", "", "the API key, or @FILE to read it from a file (default: HOLDOUTD_KEY, or what connect.json names)")
}

// connect makes a client of the server that is found. A key is sent to no other server than the one that it was named for or beside.
func (f serverFlags) connect(options ...client.Option) (*client.Client, error) {
	server, key, err := f.find()
	if err != nil {
		return nil, err
	}
	c, err := client.New(server, key, options...)
	if err != nil {
		return nil, misuse("%q is not the URL of a server, such as http://%s", server, defaultAddr)
	}
	return c, nil
}

func (f serverFlags) find() (server, key string, err error) {
	server = cmp.Or(f.url, os.Getenv(urlVariable))
	if key, err = readKey(cmp.Or(f.key, os.Getenv(keyVariable))); err != nil {
		return "", "", err
	}
	switch {
	case server != "" && key != "":
		return server, key, nil
	case server != "":
		return "", "", misuse("a key is needed for %s: --key, or %s in the environment; @FILE reads it from a file", server, keyVariable)
	}
	named := os.Getenv(connectVariable)
	nearby := filepath.Join(defaultData, connectFile)
	places := []string{named}
	if named == "" {
		places = []string{nearby}
		if dir, err := userDirectory(); err == nil {
			places = append(places, filepath.Join(dir, connectFile))
		}
	}
	for _, place := range places {
		contents, err := os.ReadFile(place)
		if errors.Is(err, os.ErrNotExist) && named == "" {
			continue
		}
		var c connection
		if err == nil {
			err = json.Unmarshal(contents, &c)
		}
		if err == nil && c.URL == "" {
			err = errors.New("it names no url")
		}
		if err != nil {
			return "", "", fmt.Errorf("%s does not say where a server is: %w", place, err)
		}
		if named == "" && place == nearby {
			if err := checkNearby(place, c); err != nil {
				return "", "", err
			}
		}
		if key != "" {
			return c.URL, key, nil
		}
		if c.KeyFile == "" {
			return "", "", misuse("%s names no key_file: give --key, or %s in the environment", place, keyVariable)
		}
		file := c.KeyFile
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(place), file)
		}
		key, err = readKey("@" + file)
		return c.URL, key, err
	}
	if key == "" {
		return "", "", misuse("a key is needed: --key, or %s in the environment; or start a server on this machine, which is found by itself: holdoutd serve, or holdoutd demo", keyVariable)
	}
	return "http://" + defaultAddr, key, nil
}

// checkNearby refuses what the file of the working directory says and serve would not have written. Nobody named that file: whoever filled the
// directory wrote it, such as the author of a repository or of a change that a pipeline tests. So it leads to this machine alone, and its key lies
// beside it: no key of the environment, and no file from elsewhere, goes to a server of that author.
func checkNearby(place string, c connection) error {
	u, err := url.Parse(c.URL)
	if err != nil || !ofThisMachine(u.Hostname()) {
		return misuse("%s is in the working directory and names a server that is not on this machine, %q: nothing is sent there unless it is named by --url, %s or %s=%s", place, c.URL, urlVariable, connectVariable, place)
	}
	if c.KeyFile == "" {
		return nil
	}
	key, err := os.OpenInRoot(filepath.Dir(place), c.KeyFile)
	if err != nil {
		return misuse("%s is in the working directory, and so its key_file must be a file beside it that can be read: %w; or name it by %s=%s", place, err, connectVariable, place)
	}
	return key.Close()
}

// ofThisMachine reports whether a host, as a URL has it, is an address of this machine. Names other than localhost are not looked up: whoever
// wrote the name may say what it leads to.
func ofThisMachine(host string) bool {
	ip := net.ParseIP(host)
	if ip == nil || ip.IsLoopback() {
		return ip != nil || host == "localhost"
	}
	addresses, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// readKey is a key as it is written, or the contents of the file that @FILE names.
func readKey(key string) (string, error) {
	file, isFile := strings.CutPrefix(key, "@")
	if !isFile {
		return key, nil
	}
	contents, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the key: %w", err)
	}
	if key = strings.TrimSpace(string(contents)); key == "" {
		return "", fmt.Errorf("cannot read the key: %s is empty", file)
	}
	return key, nil
}

// interrupted is the end by a signal.
type interrupted struct{ error }

// asClient runs what a command asks of a server. A signal ends it: what was sent may have been answered, and is then recorded.
func asClient(do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := do(ctx, cmd, args)
		if err != nil && ctx.Err() != nil && cmd.Context().Err() == nil {
			return interrupted{errors.New("interrupted; what was answered meanwhile is recorded, and asking again brings it at no cost")}
		}
		return plain(err)
	}
}

// refusedError is what the server says, without the words of the package that carried it.
type refusedError struct{ *client.Problem }

func (r refusedError) Unwrap() error { return r.Problem }

// Error is the detail, and each place that is wrong of which the detail says too little.
func (r refusedError) Error() string {
	text := r.Detail
	if r.Code == "" {
		text = fmt.Sprintf("the reply is %d %s, and not from holdoutd; is that the right URL?", r.Status, r.Title)
	}
	switch r.Code {
	case "max-questions":
		text = inFlags(text)
	case "unit-undecided":
		text = strings.ReplaceAll(text, "unit=", "--unit ")
	}
	for _, v := range r.Errors {
		meant := ""
		if v.Suggestion != "" && !strings.Contains(r.Detail, v.Suggestion+"?") {
			meant = "; did you mean " + v.Suggestion + "?"
		}
		at := v.Parameter
		if v.Pointer != "" {
			at = v.Pointer
		}
		if v.Line > 0 {
			at += fmt.Sprintf(" (line %d, column %d)", v.Line, v.Column)
		}
		if !strings.Contains(r.Detail, v.Detail) || meant != "" {
			text += fmt.Sprintf("\n  %s: %s%s", at, v.Detail, meant)
		}
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// priceLimit is how the server names its parameter for the price.
var priceLimit = regexp.MustCompile(`(?:send the request|ask it)? ?with max_questions=(\d+)|max_questions`)

// inFlags says in flags what the server says in parameters.
func inFlags(text string) string {
	return priceLimit.ReplaceAllStringFunc(text, func(found string) string {
		if n := priceLimit.FindStringSubmatch(found)[1]; n != "" {
			return " say --max-questions " + n
		}
		return "--max-questions"
	})
}

// unreached is an error of the way to the server.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// plain is an error in the words of whoever knows best what happened.
func plain(err error) error {
	var p *client.Problem
	if errors.As(err, &p) {
		return refusedError{p}
	}
	var way *url.Error
	if errors.As(err, &way) {
		at := way.URL
		if u, err := url.Parse(way.URL); err == nil {
			at = u.Scheme + "://" + u.Host
		}
		return unreached{fmt.Errorf("no reply from %s: %w; is the server running there?", at, way.Err)}
	}
	return err
}

// open connects to the server and finds the holdout that a word names, as holdoutOf does.
func (f serverFlags) open(ctx context.Context, word string) (*client.Client, client.Card, error) {
	c, err := f.connect()
	if err != nil {
		return nil, client.Card{}, err
	}
	card, err := holdoutOf(ctx, c, word)
	return c, card, err
}

// holdoutOf is the card of the holdout with an id or a name; without either of the only one that there is.
func holdoutOf(ctx context.Context, c *client.Client, word string) (client.Card, error) {
	if word = cmp.Or(word, os.Getenv(holdoutVariable)); strings.HasPrefix(word, "ho_") {
		return c.Holdout(ctx, word)
	}
	cards, err := c.Holdouts(ctx)
	if err != nil {
		return client.Card{}, err
	}
	var names []string
	var called []client.Card
	for _, card := range cards {
		names = append(names, cmp.Or(card.Name, card.ID))
		if word == "" || card.Name == word {
			called = append(called, card)
		}
	}
	switch {
	case len(called) == 1:
		return c.Holdout(ctx, called[0].ID)
	case word != "" && len(called) == 0:
		return client.Card{}, fmt.Errorf("there is no holdout %q%s", word, hint(nearest.Name(word, names), "holdoutd holdouts lists them"))
	case len(cards) == 0:
		return client.Card{}, errors.New("there is no holdout yet; holdoutd upload makes one")
	case word == "":
		slices.Sort(names)
		return client.Card{}, misuse("there are %d holdouts; say which: --holdout, or %s in the environment: %s", len(cards), holdoutVariable, strings.Join(names, ", "))
	}
	var ids []string
	for _, card := range called {
		ids = append(ids, card.ID)
	}
	return client.Card{}, misuse("%d holdouts are called %q; name one by its id: %s", len(called), word, strings.Join(ids, ", "))
}
