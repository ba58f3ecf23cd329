package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
)

var demoSettings = holdout.Settings{Name: "flights (demo)", Holdout: 0.5}

func demoCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Serve with a ready data set, and print how to ask",
		Long: `Serves 100,000 real flights as a holdout, and prints the URL, a key and a curl line that works when pasted.
Without --data everything is in a temporary directory that is removed at the end. On a terminal it opens the dashboard where
there is a browser; --browser=false leaves that out.`,
		Example: `  holdoutd demo
  holdoutd demo --data kept --browser=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.demo(cmd) },
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.data, "data", "", "data directory to keep (default: a temporary one)")
	cmd.Flags().BoolVar(&f.browser, "browser", true, "on a terminal, open the dashboard where there is a browser")
	return cmd
}

func (f *serveFlags) demo(cmd *cobra.Command) (err error) {
	if err := checkLimits(cmd.Flags()); err != nil {
		return err
	}
	temporary := f.data == ""
	if temporary {
		if f.data, err = os.MkdirTemp("", "holdoutd-demo-"); err != nil {
			return fmt.Errorf("cannot make a temporary directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(f.data)) }()
		f.anyFileSystem = true // nothing here is to last
	}
	if !cmd.Flags().Changed("addr") && taken(f.addr) {
		f.addr = "127.0.0.1:0" // a demo is to start; which port it has is printed
	}
	logger, err := f.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	forget := func() {}
	defer func() { forget() }()
	return f.serve(cmd.Context(), logger, func(ctx context.Context, s *holdout.Service, addr net.Addr) error {
		key, id, err := prepareDemo(ctx, s, f.data)
		if err != nil {
			return err
		}
		url := urlOf(addr, f.tls.enabled())
		absolute, err := filepath.Abs(filepath.Join(f.data, "admin.key"))
		if err != nil {
			return err
		}
		// A demo without a home, as in a container, is found by what it prints.
		forget, err = tellUser(connection{URL: url, KeyFile: absolute})
		found := err == nil
		printDemo(cmd.OutOrStdout(), url, key, id, found, temporary)
		if f.browser && terminalWidth(cmd.OutOrStdout()) > 0 {
			openBrowser(url + "/")
		}
		return nil
	})
}

func taken(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return true
	}
	l.Close()
	return false
}

// prepareDemo makes the holdout, or finds the one that an earlier demo made in the same directory.
func prepareDemo(ctx context.Context, s *holdout.Service, dir string) (key, id string, err error) {
	contents, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		return "", "", fmt.Errorf("cannot read the admin key: %w", err)
	}
	key = strings.TrimSpace(string(contents))
	admin, err := s.Authenticate(ctx, key)
	if err != nil {
		return "", "", err
	}
	card, _, err := s.Create(ctx, admin, demoSettings, holdout.SingleUpload(strings.NewReader(data.Flights)), "")
	var known *holdout.Error
	if errors.As(err, &known) && known.Kind == holdout.Exists {
		id, _ := known.Members["holdout"].(string)
		return key, id, nil
	}
	return key, card.ID, err
}

func printDemo(w io.Writer, url, key, id string, found, temporary bool) {
	end := "Ctrl-C ends the demo; what it holds stays."
	if temporary {
		end = "Ctrl-C ends the demo and removes all that it holds, your own\nuploads and their answers too; --data DIR keeps them."
	}
	connect := "holdoutd.connect()"
	if !found {
		connect = fmt.Sprintf("holdoutd.connect(%q, key=%q)", url, key)
	}
	shell := "holdoutd ask fraction 'delay > 15'"
	if !found {
		shell += fmt.Sprintf(" --url %s --key %s", url, key)
	}
	ask := func(path, body string) string {
		line := fmt.Sprintf("curl -s %s/v1/holdouts/%s%s -H 'Authorization: Bearer %s'", url, id, path, key)
		if body != "" {
			line += " -d '" + body + "'"
		}
		return line
	}
	fmt.Fprintf(w, `
holdoutd demo: 100,000 US domestic flights of 2001, half of them held out
  URL        %s
  key        %s
  holdout    %s
  dashboard  %s/ (sign in with the key)

Ask for the fraction of flights that came late, with an interval that holds for all questions together, 1,000 for so many rows:

  %s

The same in Python, after pip install ./python from a clone of the project:

  import holdoutd
  ds = %s.holdout(%q)
  ds.fraction("delay > 15")

The same from a shell:

  %s

Then try
  the same again: the same bytes, at no cost
  a mean in a part:  -d '{"type":"mean","of":"delay","range":[-60,180],"where":"origin == \"SFO\""}'
  what a query would cost and mean, at no cost:
  %s
  what is left of the budget:
  %s
  %s/docs for all there is

This data set is public: whoever has the whole file needs no holdout, and is outside the guarantee. Flights of one day
are alike; the holdout's card warns of it. %s

`, url, key, id, url,
		ask("/queries", `{"type":"fraction","of":"delay > 15"}`), connect, demoSettings.Name, shell,
		ask("/queries/explain", `{"type":"mean","of":"delay","range":[-60,180]}`),
		ask("/budget", ""), url, end)
}
