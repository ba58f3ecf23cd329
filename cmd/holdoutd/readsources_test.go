package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
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
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got["the-house"], want) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = readSources([]string{"the-house=trino://r@lake:8443/hive/held?loader=w&tls=true"})
	want.Engine, want.Address = "trino", "https://lake:8443/hive/held"
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got["the-house"], want) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = readSources([]string{"lake=file:///srv/tables%20old"})
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got["lake"], holdout.Source{Engine: "file", Address: "/srv/tables old"}) {
		t.Errorf("%+v, %v", got, err)
	}
	t.Setenv("HOLDOUTD_SOURCE_WAREHOUSE_PASSWORD", "p")
	got, err = readSources([]string{"warehouse=clickhouse://r@db:8123/sales"})
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got["warehouse"], holdout.Source{Engine: "clickhouse", Address: "http://db:8123/sales", Reader: holdout.Login{User: "r", Password: "p"}}) {
		t.Errorf("a source of tables: %+v, %v", got, err)
	}
	got, err = readSources([]string{"c=clickhouse://r@one:8123/held?loader=w&cluster=all&shard=two:8123&shard=three:8123"})
	want = holdout.Source{Engine: "clickhouse", Address: "http://one:8123/held", Reader: holdout.Login{User: "r"}, Loader: holdout.Login{User: "w"}, Cluster: "all", Shards: []string{"http://two:8123/held", "http://three:8123/held"}}
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got["c"], want) {
		t.Errorf("%+v, %v", got, err)
	}
	for flag, says := range map[string]string{
		"a=clickhouse://r@db/held?loader=w&cluster=all":    "a cluster needs cluster=NAME",
		"a=clickhouse://r@db/held?loader=w&shard=two:8123": "a cluster needs cluster=NAME",
		"a=trino://r@lake/hive/held?loader=w&cluster=all":  "of ClickHouse also cluster=NAME",
		"a=file://srv/tables":                              "must be file:///DIRECTORY",
		"a=file:///srv?loader=w":                           "must be file:///DIRECTORY",
		"a=trino://r@lake/hive?loader=w":                   "must be trino://READER@HOST:8443/CATALOG/SCHEMA",
		"the-house=trino://r@lake/hive/held?loader=w":      "over https only",
		"clickhouse":                                          "NAME=clickhouse://",
		"a=postgres://r@db/held?loader=w":                     "must be file:///DIRECTORY, clickhouse://",
		"a=clickhouse://db/held?loader=w":                     "must be clickhouse://",
		"a=clickhouse://r:hunter2@db/held?loader=w":           "HOLDOUTD_SOURCE_A_PASSWORD_FILE",
		"a=clickhouse://r:hunter2%zz@db/held?loader=w":        "must be file:///DIRECTORY, clickhouse://",
		"c=clickhouse://r@db/held?cluster=all&shard=two:8123": "name the user that makes tables in the cluster",
		"a=trino://r@lake/hive":                               "must be trino://READER@HOST:8443/CATALOG/SCHEMA",
		"a=clickhouse://r@db/held?loader=w&table=hunter":      "not table",
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
	if out, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--source", "a=clickhouse://r@db/held?loader=w", "--source", "b=clickhouse://s@db/held"); code == 0 || !strings.Contains(errs, "are one database") {
		t.Errorf("tables are taken from where held-out rows are: exit code %d\n%s%s", code, out, errs)
	}
	out, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--source", "a=clickhouse://r:hunter2@db/held?loader=w")
	if code != 2 || strings.Contains(out+errs, "hunter2") {
		t.Errorf("a password in an address: exit code %d\n%s%s", code, out, errs)
	}
}

// TestUploadPath: a table in a directory of the operator's is made a holdout by its name alone, by the command and by curl's request without a body; a file beside it is refused, and so is a body.
func TestUploadPath(t *testing.T) {
	dir, lake := t.TempDir(), t.TempDir()
	table := filepath.Join(lake, "flights", "part-0.parquet")
	if err := os.MkdirAll(filepath.Dir(table), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, []byte(data.Flights), 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "data") // which is not there yet
	p := startServer(t, dir, "--source", "lake=file://"+lake)
	access := []string{"--url", p.url, "--key", "@" + filepath.Join(dir, "admin.key")}
	upload := func(args ...string) (string, string, int) {
		return holdoutd(t, append(append([]string{"upload"}, args...), access...)...)
	}
	if out, errs, code := upload("--path", "lake/flights", "--name", "flights", "--unit", "row", "--dry-run"); code != 0 || !strings.Contains(out, "flights") {
		t.Errorf("a dry run: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code := upload("--path", "lake/flights", "--name", "flights", "--unit", "row"); code != 0 || !strings.Contains(out, "flights") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code := upload(table, "--path", "lake/flights"); code != 2 || !strings.Contains(errs, "leave out the file") {
		t.Errorf("a file beside it: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code := upload(); code != 2 || !strings.Contains(errs, "upload takes one file") {
		t.Errorf("nothing: exit code %d\n%s%s", code, out, errs)
	}
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, p.url+"/v1/holdouts?path=lake/flights", strings.NewReader("PAR1"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if said, err := io.ReadAll(reply.Body); err != nil || reply.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(said), "send no body") {
		t.Errorf("a body: %d %s %v", reply.StatusCode, said, err)
	}
}
