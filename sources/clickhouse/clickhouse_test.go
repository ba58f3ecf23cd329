package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/sources"
)

func TestURLs(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("pä:ss@word\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parse("clickhouses://loader@ch.example.com/private?reader=r&reader_password=x%26y&password_file=" + secret + "&cluster=two&servers=a:1,b:2&deadline=90s")
	if err != nil || o.server != "ch.example.com:8443" || o.scheme != "https" || o.tls == nil || o.loader != (user{"loader", "pä:ss@word"}) || o.reader != (user{"r", "x&y"}) ||
		o.database != "private" || o.cluster != "two" || len(o.servers) != 2 || o.deadline.Seconds() != 90 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, url := range []string{"", "http://u@h/d?reader=r", "clickhouse://u@h/d", "clickhouse://h/d?reader=r", "clickhouse://u@h?reader=r", "clickhouse://u:hunter2@h/d?reader=u", "clickhouse://u:hunter2@h/d?reader=r&limit=5",
		"clickhouse://u:hunter2@h/d?reader=r&deadline=0", "clickhouse://u:hunter2@h/d?reader=r&servers=a:1,b:2", "clickhouse://u:hunter2@h/d?reader=r&tls=maybe", "clickhouse://u:hunter2@h\x7f/d", "clickhouse://u@h/d?reader=r&ca=/nothing"} {
		if _, err := parse(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// TestEverySettingIsJudged: each setting that could make an answer wrong without an error is refused by itself, and what versions do not know is not asked for.
func TestEverySettingIsJudged(t *testing.T) {
	good := map[string]string{"readonly": "1", "max_execution_time": "10", "max_memory_usage": "1000"}
	for _, m := range []map[string][]string{must, mustOfReader} {
		for name, allowed := range m {
			good[name] = allowed[0]
		}
	}
	if err := judge("r", true, good); err != nil {
		t.Error(err)
	}
	if err := judge("r", true, map[string]string{"readonly": "2", "max_execution_time": "1", "max_memory_usage": "1"}); err != nil {
		t.Errorf("an old version: %v", err)
	}
	for name := range good {
		bad := maps.Clone(good)
		if bad[name] = "other"; limited[name] != "" {
			bad[name] = "0"
		}
		var e *sources.Error
		if err := judge("r", true, bad); !errors.As(err, &e) || e.Kind != sources.Refused || !strings.Contains(e.Detail, name+" = ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := judge("l", false, map[string]string{"readonly": "1"}); err == nil {
		t.Error("a loader that cannot write is taken")
	}
}

// TestErrorsSayNothingOfRows: what is told of an engine's error depends on its number alone.
func TestErrorsSayNothingOfRows(t *testing.T) {
	for code, kind := range map[string]sources.Kind{"60": sources.NotFound, "47": sources.NotFound, "241": sources.Unavailable, "159": sources.Unavailable, "6": sources.Unavailable, "999": sources.Unavailable} {
		var e *sources.Error
		err := refusal(500, []byte("Code: "+code+", e.displayText() = DB::Exception: Cannot parse string 'Zürich'"))
		if !errors.As(err, &e) || e.Kind != kind || strings.Contains(e.Detail, "rich") || e.Detail == "" || !strings.Contains(e.Err.Error(), "Zürich") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// FuzzNative: no reply makes the reader of blocks fail but by an error, or say that rows are there that are not.
func FuzzNative(f *testing.F) {
	types := []string{"UInt8", "UInt32", "Float64", "String"}
	whole := "\x04\x02" + "\x01a\x05UInt8\x01\x02" + "\x01b\x06UInt32\x01\x00\x00\x00\x02\x00\x00\x00" + "\x01c\x07Float64" + strings.Repeat("\x00", 16) + "\x01d\x06String\x00\x02hi"
	f.Add([]byte(whole))
	f.Add([]byte(whole + whole))
	f.Add([]byte(whole + "Code: 241, e.displayText() = DB::Exception: Memory limit"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		in, b := newNative(bytes.NewReader(reply), types), &block{}
		for {
			err := in.next(b)
			if err != nil {
				if err != io.EOF {
					_ = broken(in.rest(), err)
				}
				return
			}
			if len(b.columns[0].bytes) != b.rows || len(b.columns[1].words) != b.rows || len(b.columns[2].numbers) != b.rows || len(b.columns[3].ends) != b.rows {
				t.Fatalf("a block of %d rows has other columns", b.rows)
			}
			for row := range b.rows {
				_ = b.columns[3].text(row)
			}
		}
	})
}

// TestRepliesThatAreNoBlocks: a reply that ends within a block, at any byte, or in an engine's error, is not taken for a whole one.
func TestRepliesThatAreNoBlocks(t *testing.T) {
	whole := []byte("\x01\x02\x01d\x06String\x03abc\x02hi")
	read := func(reply []byte) (rows int, err error) {
		in, b := newNative(bytes.NewReader(reply), []string{"String"}), &block{}
		for {
			if err := in.next(b); err == io.EOF {
				return rows, nil
			} else if err != nil {
				return rows, broken(in.rest(), err)
			}
			rows += b.rows
		}
	}
	if rows, err := read(append(whole[:len(whole):len(whole)], whole...)); rows != 4 || err != nil {
		t.Errorf("%d rows, %v", rows, err)
	}
	for cut := 1; cut < len(whole); cut++ {
		if rows, err := read(whole[:cut]); err == nil {
			t.Errorf("cut after %d bytes: %d rows", cut, rows)
		}
	}
	_, err := read(append(whole[:len(whole):len(whole)], "Code: 159, e.displayText() = DB::Exception: Timeout exceeded"...))
	if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Unavailable {
		t.Errorf("an error behind the rows: %v", err)
	}
}

// TestCloseDoesNotPause: a statement that was given up before it answered is looked for again and again, and Close does not wait for the pauses in between: it looks once more, and returns.
func TestCloseDoesNotPause(t *testing.T) {
	var kills atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, _ := io.ReadAll(r.Body); strings.HasPrefix(string(text), "KILL QUERY") {
			kills.Add(1)
			return // there is no such statement
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	o, err := parse("clickhouse://loader@" + server.Listener.Addr().String() + "/private?reader=r")
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(o)
	c.pause = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		time.Sleep(10 * time.Millisecond)
		cancel()
	}()
	if _, err := c.text(ctx, statement{as: o.reader, text: "SELECT 1"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.close()
	c.close()
	if n := kills.Load(); n < 1 || n > 2 {
		t.Errorf("the statement was looked for %d times", n)
	}
}
