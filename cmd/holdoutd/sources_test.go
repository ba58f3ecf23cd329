package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourcesAreChecked: what cannot be a source ends the start with one sentence, in which there is no password. It would notice a URL that is quoted whole, a password that is taken from the
// command line, and a file of one that everybody can read.
func TestSourcesAreChecked(t *testing.T) {
	dir := t.TempDir()
	const secret = "hunter2hunter2"
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("HOLDOUTD_SOURCE_BAD_ONE", "clickhouse//loader:"+secret+"@127.0.0.1")
	for name, c := range map[string]struct {
		given []string
		want  string
	}{
		"no name":                     {[]string{"file://" + dir}, "must be NAME=URL"},
		"a name with a slash":         {[]string{"../x=file://" + dir}, "must be NAME=URL"},
		"capitals":                    {[]string{"Lake=file://" + dir}, "must be NAME=URL"},
		"no URL anywhere":             {[]string{"lake"}, "set HOLDOUTD_SOURCE_LAKE in the environment"},
		"no URL":                      {[]string{"lake=somewhere"}, "is not a URL such as"},
		"no URL in the environment":   {[]string{"bad-one"}, "is not a URL such as"},
		"no known kind":               {[]string{"wh=clickhous://127.0.0.1/db"}, "did you mean clickhouse?"},
		"the cloud's metadata":        {[]string{"wh=http://169.254.169.254/"}, "of no known kind"},
		"a password":                  {[]string{"wh=clickhouse://loader:" + secret + "@127.0.0.1/db?reader=r"}, "give wh=@FILE, or set HOLDOUTD_SOURCE_WH"},
		"a password in an option":     {[]string{"wh=trino://l@127.0.0.1/c/s?reader=r&reader_password=" + secret}, "has a password in it"},
		"a file that is not there":    {[]string{"wh=@" + dir + "/none"}, "cannot be used"},
		"a file that all can read":    {[]string{"wh=@" + write("open", "trino://l:"+secret+"@127.0.0.1/c/s?reader=r", 0o644)}, "chmod 600"},
		"a directory for a file":      {[]string{"wh=@" + dir}, "cannot be used"},
		"a file of another thing":     {[]string{"wh=@" + write("noise", secret, 0o600)}, "is not a URL such as"},
		"a bad ClickHouse":            {[]string{"wh=@" + write("ch", "clickhouse://loader:"+secret+"@127.0.0.1/db?raeder=r", 0o600)}, "the source wh cannot be used"},
		"a bad Trino":                 {[]string{"wh=@" + write("tr", "trino://loader:"+secret+"@127.0.0.1/c", 0o600)}, "the source wh cannot be used"},
		"a folder that is not there":  {[]string{"lake=file://" + dir + "/none"}, "none"},
		"two with one name":           {[]string{"lake=file://" + dir, "lake=file://" + dir}, "two sources are called lake"},
		"a folder on another machine": {[]string{"lake=file://server/share"}, "three slashes"},
	} {
		f := sourceFlags{given: c.given}
		_, err := f.open(t.Context(), filepath.Join(dir, "data"), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestSourcesThatAreAway: what does not answer is opened, and the log says so; what is named by a file or by the environment is found, with its password.
func TestSourcesThatAreAway(t *testing.T) {
	dir := t.TempDir()
	url := filepath.Join(dir, "url")
	if err := os.WriteFile(url, []byte("clickhouse://loader:hunter2@127.0.0.1:1/db?reader=r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDOUTD_SOURCE_BIG_LAKE", "trino://loader@127.0.0.1:1/c/s?reader=r")
	var log strings.Builder
	f := sourceFlags{given: []string{"wh=@" + url, "big-lake", "here=file://" + dir}}
	opened, err := f.open(t.Context(), filepath.Join(dir, "data"), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer closeSources(opened)
	for name, kind := range map[string]string{"wh": "clickhouse", "big-lake": "trino", "here": "file"} {
		s := opened[name]
		if s == nil || s.Kind() != kind {
			t.Errorf("%s is %v", name, s)
			continue
		}
		away := strings.Contains(log.String(), `level=WARN msg="a source does not answer; what needs it is refused until it does" source=`+name+" ")
		if away != (kind != "file") {
			t.Errorf("%s: the log says %s", name, log.String())
		}
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log has a password: %s", log.String())
	}
}
