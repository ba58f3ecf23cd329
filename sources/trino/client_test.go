package trino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/sources"
)

// script is a coordinator that replies as it is told, one reply after the other: what a real one does not do when it is asked to.
type script struct {
	t       testing.TB
	replies []string // bodies; a number of three digits is a status without one, "hang" waits
	host    string   // that nextUri names; "" the server's own

	mu   sync.Mutex
	seen []string
	n    int
	url  string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	body, _ := io.ReadAll(r.Body)
	s.seen = append(s.seen, r.Method+" "+r.URL.Path+" "+string(body))
	reply := "404"
	if r.Method == http.MethodDelete {
		reply = "204"
	} else if s.n < len(s.replies) {
		reply = s.replies[s.n]
		s.n++
	}
	s.mu.Unlock()
	if reply == "hang" {
		<-r.Context().Done()
		return
	}
	var status int
	if _, err := fmt.Sscanf(reply, "%3d", &status); err == nil {
		w.WriteHeader(status)
		return
	}
	host := s.host
	if host == "" {
		host = s.url
	}
	_, _ = io.WriteString(w, strings.ReplaceAll(reply, "NEXT", host+"/v1/statement/executing/1"))
}

func (s *script) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, "\n")
}

func scripted(t testing.TB, s *script) *client {
	t.Helper()
	s.t = t
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	source, err := Open(strings.Replace(server.URL, "http://", "trino://loader@", 1) + "/c/s?reader=reader")
	if err != nil {
		t.Fatal(err)
	}
	return source.reader
}

const (
	pageOfOne  = `{"id":"q","nextUri":"NEXT","columns":[{"name":"x","type":"bigint"}],"data":[[1]],"stats":{"state":"RUNNING"}}`
	pageOfTwo  = `{"id":"q","nextUri":"NEXT","columns":[{"name":"x","type":"bigint"}],"data":[[2]],"stats":{"state":"RUNNING"}}`
	lastPage   = `{"id":"q","columns":[{"name":"x","type":"bigint"}],"stats":{"state":"FINISHED"}}`
	brokenPage = `{"id":"q","error":{"message":"row 'Zürich' is no number","errorName":"REMOTE_HOST_GONE","errorType":"INTERNAL_ERROR"},"stats":{"state":"FAILED"}}`
	wrongPage  = `{"id":"q","error":{"message":"line 1:1","errorName":"SYNTAX_ERROR","errorType":"USER_ERROR"},"stats":{"state":"FAILED"}}`
)

// TestProtocol: rows are those of a statement that has finished, each once, or there is an error. It would notice an answer of the pages that came before a failure, rows that come twice after
// a retry, a retry of what cannot succeed, and a statement that is left running.
func TestProtocol(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies []string
		want    string // the rows
		fails   bool
		posts   int
		deletes bool
	}{
		"pages":                           {[]string{pageOfOne, pageOfTwo, lastPage}, "[[1] [2]]", false, 1, false},
		"no rows":                         {[]string{lastPage}, "[]", false, 1, false},
		"a worker dies behind a page":     {[]string{pageOfOne, brokenPage, pageOfOne, pageOfTwo, lastPage}, "[[1] [2]]", false, 2, false},
		"workers die again and again":     {[]string{pageOfOne, brokenPage, pageOfOne, brokenPage, pageOfOne, brokenPage}, "", true, 3, false},
		"a wrong statement":               {[]string{wrongPage, lastPage}, "", true, 1, false},
		"a page fails and comes again":    {[]string{pageOfOne, "503", "502", pageOfTwo, lastPage}, "[[1] [2]]", false, 1, false},
		"the coordinator is started anew": {[]string{pageOfOne, "404", "404", "404", "404", "404", "404", pageOfOne, lastPage}, "[[1]]", false, 2, true},
		"a page of something else":        {[]string{pageOfOne, `[]`, pageOfTwo, lastPage}, "[[1] [2]]", false, 1, false},
		"it ends without having finished": {[]string{pageOfOne, `{"id":"q","stats":{"state":"CANCELED"}}`}, "", true, 1, false},
		"a row of two values":             {[]string{`{"id":"q","nextUri":"NEXT","columns":[{"name":"x","type":"bigint"}],"data":[[1,2]],"stats":{"state":"RUNNING"}}`}, "", true, 1, true},
		"another address":                 {[]string{`{"id":"q","nextUri":"http://127.0.0.1:1/elsewhere","stats":{"state":"RUNNING"}}`}, "", true, 1, false},
		"not authorized":                  {[]string{"401"}, "", true, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{replies: c.replies}
			rows, err := scripted(t, s).rows(t.Context(), "SELECT x FROM t")
			if (err != nil) != c.fails || err == nil && fmt.Sprint(rows) != c.want {
				t.Errorf("rows %v, %v", rows, err)
			}
			if err != nil && rows != nil && len(rows) > 0 && fmt.Sprint(rows) == c.want {
				t.Errorf("rows %v beside the error %v", rows, err)
			}
			if posts := strings.Count(s.said(), "POST "); posts != c.posts || strings.Contains(s.said(), "DELETE") != c.deletes {
				t.Errorf("it said\n%s", s.said())
			}
		})
	}
}

// TestOnce: a statement that writes is sent once, whatever becomes of it.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := &script{replies: []string{pageOfOne, brokenPage, lastPage}}
	if err := scripted(t, s).exec(t.Context(), "INSERT INTO t SELECT 1"); err == nil {
		t.Error("a statement that failed succeeds")
	}
	if strings.Count(s.said(), "POST ") != 1 {
		t.Errorf("it said\n%s", s.said())
	}
}

// TestCancel: whoever waits no longer is let go at once, and the engine is told to stop.
func TestCancel(t *testing.T) {
	t.Parallel()
	s := &script{replies: []string{pageOfOne, "hang"}}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begun := time.Now()
	_, err := scripted(t, s).rows(ctx, "SELECT x FROM t")
	if !errors.Is(err, context.Canceled) || time.Since(begun) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if !strings.HasSuffix(strings.TrimSpace(s.said()), "DELETE /v1/statement/executing/1") {
		t.Errorf("it said\n%s", s.said())
	}
}

// TestFollow: pages are asked for where the statement was sent, whatever address the engine gives; a password goes nowhere else.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := &script{replies: []string{pageOfOne, lastPage}, host: "http://elsewhere.invalid"}
	rows, err := scripted(t, s).rows(t.Context(), "SELECT x FROM t")
	if err != nil || fmt.Sprint(rows) != "[[1]]" {
		t.Errorf("%v, %v", rows, err)
	}
}

// TestErrorsSayNothing: what the engine says of a row is not in the text for whoever asks.
func TestErrorsSayNothing(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{brokenPage, wrongPage, strings.ReplaceAll(brokenPage, "REMOTE_HOST_GONE", "TABLE_NOT_FOUND")} {
		var p page
		if err := json.Unmarshal([]byte(reply), &p); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{unavailable(p.Error), ofPart(p.Error), ofTable("c.s.t", p.Error)} {
			e := sourcesError(err)
			if e == nil || strings.Contains(e.Detail, "Zürich") || strings.Contains(e.Detail, "line 1") || !strings.Contains(err.Error(), p.Error.Message) {
				t.Errorf("%v", err)
			}
		}
	}
}

// TestGone: a table or a file that is not there is a change of a part, and what may pass is none.
func TestGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, message string
		gone          bool
	}{
		{"TABLE_NOT_FOUND", "line 1:22: Table 'a.b.c' does not exist", true},
		{"ICEBERG_CANNOT_OPEN_SPLIT", "Error opening Iceberg split local:///a/b.parquet (offset=4, length=876): local:///a/b.parquet", true},
		{"HIVE_CANNOT_OPEN_SPLIT", "Error opening Hive split s3://a/b (offset=0, length=8): File s3://a/b does not exist", true},
		{"HIVE_FILE_NOT_FOUND", "Partition location does not exist: s3://a", true},
		{"ICEBERG_BAD_DATA", "Malformed Parquet file", true},
		{"ICEBERG_CANNOT_OPEN_SPLIT", "Error opening Iceberg split s3://a/b (offset=4, length=8): connection reset by peer", false},
		{"EXCEEDED_TIME_LIMIT", "Query exceeded the maximum run time limit of 1.00s", false},
		{"REMOTE_HOST_GONE", "Remote task is gone", false},
	} {
		err := ofPart(&failure{Message: c.message, Name: c.name, Type: "EXTERNAL"})
		if kind := sourcesError(err).Kind; (kind == sources.Changed) != c.gone || !c.gone && kind != sources.Unavailable {
			t.Errorf("%s, %s: %s", c.name, c.message, kind)
		}
	}
}
