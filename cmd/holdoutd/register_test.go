package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// TestRegister goes from a folder of Parquet files to an answer about it, as docs/SOURCES.md does, and meets what is refused: a table that is not there, paths out of the folder, a setting of uploads, and a
// registration that there is not. It would notice a flag that is not sent, a path that is opened, and a failure that ends with 0.
func TestRegister(t *testing.T) {
	lake := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(lake, "flights"), 0o700), os.WriteFile(filepath.Join(lake, "flights", "a.parquet"), []byte(data.Flights), 0o600), os.Symlink("/etc", filepath.Join(lake, "out"))); err != nil {
		t.Fatal(err)
	}
	s := startStation(t, client.Settings{}, "--source", "lake=file://"+lake)
	for _, c := range []struct {
		args string
		code int
		out  string
		errs string
	}{
		{"sources", 0, `^name +kind +state\nlake +file +ready\n$`, ``},
		{"registrations", 0, `^no table was registered`, ``},
		{"register lake", 2, `^$`, `accepts 2 arg`},
		{"register laek flights", 2, `^$`, `did you mean lake\?`},
		{"register lake nosuch", 1, `^$`, `has no table "nosuch"`},
		{"register lake ../../etc", 1, `^$`, `below the source's directory`},
		{"register lake /etc/passwd", 1, `^$`, `below the source's directory`},
		{"register lake out", 1, `^$`, `below the source's directory`},
		{"register lake flights --features public --label delay", 2, `^$`, `is for uploads`},
		{"register lake flights --dry-run", 2, `^$`, `unknown flag`},
		{"register lake flights --name flights --questions 20 --holdout 0.5", 0, `(?s)^holdout    flights \(ho_.*\)\nunits      50,000 held out, 50,000 to train on; a unit is row\nguarantee  20 questions`, `^looking at the table\n`},
		{"registrations", 0, `(?s)^id .*re_\S+ +lake +done +flights\n.*failed`, ``},
		{"registrations re_nosuch", 1, `^$`, `knows no such registration`},
		{"registrations --cancel", 2, `^$`, `--cancel needs the id`},
		{"download training flights --out t.parquet", 0, `^$`, ``},
		{"ask fraction 'delay > 15' --holdout flights", 0, `^0\.[12]\d* \[`, ``},
	} {
		stdout, stderr, code := s.call(t, nil, shellWords(c.args)...)
		if code != c.code || !regexp.MustCompile(c.out).MatchString(stdout) || !regexp.MustCompile(c.errs).MatchString(stderr) || c.errs == "" && stderr != "" {
			t.Errorf("holdoutd %s: exit code %d, want %d\nstdout: %s\nstderr: %s", c.args, code, c.code, stdout, stderr)
		}
	}
	part, err := os.ReadFile(filepath.Join(s.dir, "t.parquet"))
	if err != nil || !strings.HasPrefix(string(part), parquetMagic) || !strings.HasSuffix(string(part), parquetMagic) {
		t.Errorf("the training part: %d bytes, %v", len(part), err)
	}
}
