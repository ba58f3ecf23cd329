package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
)

// TestReadSources: an address and two passwords make a source; a password in an address is refused, and no refusal repeats it.
func TestReadSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("of a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDOUTD_SOURCE_THE_HOUSE_PASSWORD", "of the environment")
	t.Setenv("HOLDOUTD_SOURCE_THE_HOUSE_LOADER_PASSWORD_FILE", file)
	got, err := readSources([]string{"the-house=clickhouse://r@db:8443/held?loader=w&tls=true"})
	want := holdout.Source{Engine: "clickhouse", Address: "https://db:8443/held", Reader: holdout.Login{User: "r", Password: "of the environment"}, Loader: holdout.Login{User: "w", Password: "of a file"}}
	if err != nil || len(got) != 1 || got["the-house"] != want {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = readSources([]string{"the-house=trino://r@lake:8443/hive/held?loader=w&tls=true"})
	want.Engine, want.Address = "trino", "https://lake:8443/hive/held"
	if err != nil || len(got) != 1 || got["the-house"] != want {
		t.Errorf("%+v, %v", got, err)
	}
	for flag, says := range map[string]string{
		"a=trino://r@lake/hive?loader=w":              "must be trino://READER@HOST:8443/CATALOG/SCHEMA",
		"the-house=trino://r@lake/hive/held?loader=w": "over https only",
		"clickhouse":                                     "NAME=clickhouse://",
		"a=postgres://r@db/held?loader=w":                "must be clickhouse://",
		"a=clickhouse://db/held?loader=w":                "must be clickhouse://",
		"a=clickhouse://r:hunter2@db/held?loader=w":      "HOLDOUTD_SOURCE_A_PASSWORD_FILE",
		"a=clickhouse://r:hunter2%zz@db/held?loader=w":   "must be clickhouse://",
		"a=clickhouse://r@db/held":                       "?loader=USER",
		"a=clickhouse://r@db/held?loader=w&table=hunter": "not table",
	} {
		if _, err := readSources([]string{flag}); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, err := readSources([]string{"a=clickhouse://r@db/held?loader=w", "a=clickhouse://r@db/held?loader=w"}); err == nil {
		t.Error("a name twice")
	}
	if _, err := readSources([]string{"a-b=clickhouse://r@db/held?loader=w", "a_b=clickhouse://r@db/held?loader=w"}); err == nil || !strings.Contains(err.Error(), "HOLDOUTD_SOURCE_A_B_PASSWORD") {
		t.Errorf("two names whose passwords are in one variable: %v", err)
	}
	t.Setenv("HOLDOUTD_SOURCE_B_PASSWORD", "x")
	t.Setenv("HOLDOUTD_SOURCE_B_PASSWORD_FILE", file)
	if _, err := readSources([]string{"b=clickhouse://r@db/held?loader=w"}); err == nil || !strings.Contains(err.Error(), "set one") {
		t.Errorf("two passwords: %v", err)
	}
}

// TestUploadToSource: an upload says which source its held-out rows go to; one that the server does not have is refused, and so is one that does not answer, by its name. A source that is not one keeps the server from starting.
func TestUploadToSource(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir, "--source", "warehouse=clickhouse://r@127.0.0.1:1/held?loader=w")
	table := filepath.Join(dir, "flights.csv")
	if err := os.WriteFile(table, []byte(data.Flights), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, says := range map[string]string{"elsewhere": "no source of that name", "warehouse": "the source warehouse: "} {
		out, errs, code := holdoutd(t, "upload", table, "--name", "flights", "--source", source, "--url", p.url, "--key", "@"+filepath.Join(dir, "admin.key"))
		if code == 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d\n%s%s", source, code, out, errs)
		}
	}
	if out, errs, code := holdoutd(t, "holdouts", "--url", p.url, "--key", "@"+filepath.Join(dir, "admin.key")); code != 0 || strings.Contains(out, "flights") {
		t.Errorf("after the refusals: exit code %d\n%s%s", code, out, errs)
	}
	out, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--source", "a=clickhouse://r:hunter2@db/held?loader=w")
	if code != 2 || strings.Contains(out+errs, "hunter2") {
		t.Errorf("a password in an address: exit code %d\n%s%s", code, out, errs)
	}
}
