package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// What a network, and whoever sits on it, can do to an answer. Engines themselves are in the tests with the tag "engines".

const secret = "s3cr3t"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// frail is a server whose answers a test decides, by the number of the statement from 1. It keeps what it was asked.
type frail struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
	ids   []string
	kills []string
}

func newFrail(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *frail {
	f := &frail{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		f.mu.Lock()
		if strings.HasPrefix(string(body), "KILL") || r.Method == http.MethodDelete {
			f.kills = append(f.kills, string(body)+r.URL.Path)
			f.mu.Unlock()
			return
		}
		f.asked, f.ids = append(f.asked, string(body)), append(f.ids, r.URL.Query().Get("query_id"))
		n := len(f.asked)
		f.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *frail) address() string {
	return strings.Replace(f.URL, "//", "//reader:"+secret+"@", 1) + "/holdouts"
}

// breakOff ends a connection in the middle of an answer.
func breakOff(w http.ResponseWriter, part string) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, part)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func overClickHouse(t *testing.T, f *frail, told *[]string) *Source {
	t.Helper()
	c, err := NewClickHouse(f.address(), Options{Tell: func(text string) { *told = append(*told, text) }})
	if err != nil {
		t.Fatal(err)
	}
	return over(t, c, Registered{Table: Layout("rows", schema, 0), Units: 10, Rows: 10})
}

func over(t *testing.T, e Engine, of Registered) *Source {
	t.Helper()
	s, err := New(e, of)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var schema = dataset.Schema{Fields: []dataset.Field{{Name: "s", Kind: dataset.Text}, {Name: "x", Kind: dataset.Number}}}

var ofX = []rowfn.Function{{Value: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 1}}

// TestRetryCountsOnce: an answer that broke off is asked again as another statement, and the first one is ended; the sum is the whole answer's alone. After
// the last attempt it fails, and says nothing of the password, which no statement and no URL has either.
func TestRetryCountsOnce(t *testing.T) {
	for _, broken := range []int{0, 1, Attempts - 1, Attempts} {
		var told []string
		f := newFrail(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if user, password, ok := r.BasicAuth(); !ok || user != "reader" || password != secret || strings.Contains(r.URL.String(), secret) {
				t.Errorf("%s as %s", r.URL, user)
			}
			switch {
			case n <= broken && n%2 == 1:
				breakOff(w, "10\t10\t4")
			case n <= broken:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				_, _ = io.WriteString(w, "10\t10\t42\n")
			}
		})
		sums, err := overClickHouse(t, f, &told).Sums(t.Context(), ofX, 0, 10)
		if broken == Attempts {
			if !errors.Is(err, &Error{Kind: Unreachable}) {
				t.Errorf("%d broken answers: %v", broken, err)
			}
		} else if err != nil || !slices.Equal(sums, []int64{42}) || len(f.asked) != broken+1 {
			t.Errorf("%d broken answers: %v, %v after %d statements", broken, sums, err, len(f.asked))
		}
		if slices.Sort(f.ids); len(slices.Compact(slices.Clone(f.ids))) != len(f.ids) {
			t.Errorf("statements share a name: %v", f.ids)
		}
		for i, id := range f.ids {
			if len(id) < 32 {
				t.Errorf("statement %d is named %q", i, id)
			}
		}
		if want := (broken + 1) / 2; len(f.kills) != want {
			t.Errorf("%d broken answers: %d statements were ended, want %d", broken, len(f.kills), want)
		}
		if all := fmt.Sprint(err, told, f.asked, f.kills); strings.Contains(all, secret) {
			t.Errorf("the password is in %s", all)
		}
	}
}

// TestWordsOfAnEngine: what an engine says of a failure can have values of rows in it. It goes to the owner alone, and the error is one of a closed list.
func TestWordsOfAnEngine(t *testing.T) {
	const words = "Cannot parse string 'Zürich' as Float64"
	for _, c := range []struct {
		answer string
		status int
		kind   Kind
		times  int
	}{
		{"Code: 6. DB::Exception: " + words, 500, Failed, 1},
		{"Code: 159, e.displayText() = DB::Exception: " + words, 500, Limit, 1},
		{"Code: 241. " + words, 500, Limit, 1},
		{"Code: 516. " + words, 403, Denied, 1},
		{words, 401, Denied, 1},
		{"Code: 202. " + words, 500, Unreachable, Attempts},
		{"10\t10\t4" + "Code: 6. " + words, 200, Failed, 1}, // after it has begun to answer
		{"10\t10\t" + words + "\n", 200, Failed, 1},
		{"10\t10\t4\n10\t10\t4\n", 200, Failed, 1},
		{"10\t10\n", 200, Failed, 1},
		{"10\t10\t-4\n", 200, Failed, 1},
		{"10\t10\t4.5\n", 200, Failed, 1},
		{"", 200, Failed, 1},
		{"9\t9\t4\n", 200, Changed, 1},   // a shard is missing
		{"10\t11\t4\n", 200, Changed, 1}, // a row came late
		{"20\t20\t8\n", 200, Changed, 1}, // a load that doubled
		{strings.Repeat("1", AnswerBytes+1), 200, Failed, 1},
		{words, 302, Failed, 1},
	} {
		var told []string
		f := newFrail(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			if c.status == 302 {
				w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.answer)
		})
		_, err := overClickHouse(t, f, &told).Sums(t.Context(), ofX, 0, 10)
		if !errors.Is(err, &Error{Kind: c.kind, Engine: "ClickHouse"}) || len(f.asked) != c.times {
			t.Errorf("%.60q, %d: %v after %d statements", c.answer, c.status, err, len(f.asked))
		}
		if strings.Contains(fmt.Sprint(err), "rich") || strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("an error says %v", err)
		}
		if strings.Contains(c.answer, words) && c.status != 200 && !strings.Contains(strings.Join(told, ""), "Zürich") {
			t.Errorf("the owner was told %q", told)
		}
	}
}

// TestCancelEndsTheStatement: a request that is given up ends its statement in the engine, by the statement's name.
func TestCancelEndsTheStatement(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFrail(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	var told []string
	if _, err := overClickHouse(t, f, &told).Sums(ctx, ofX, 0, 10); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kills) != 1 || !strings.Contains(f.kills[0], f.ids[0]) || len(f.asked) != 1 {
		t.Errorf("%q was asked, %q ended", f.ids, f.kills)
	}
}

// TestTrinoPages: an answer in pages is whole or none; pages of an attempt that broke off count for nothing; no page is asked of another host, and what is
// given up is ended there.
func TestTrinoPages(t *testing.T) {
	for _, broken := range []int{0, 1, Attempts} {
		f := newFrail(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Trino-User") != "reader" {
				t.Error("no user")
			}
			p := map[string]any{"id": "q", "nextUri": "http://127.0.0.1:1/v1/statement/executing/q/1"} // no host of ours
			if r.Method == http.MethodGet {
				if n <= 2*broken {
					breakOff(w, `{"data":[[10,10,42]]`)
				}
				p = map[string]any{"id": "q", "data": [][]int{{10, 10, 42}}}
			}
			_ = json.NewEncoder(w).Encode(p)
		})
		e, err := NewTrino(strings.Replace(f.URL, "//", "//reader@", 1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := over(t, e, Registered{Table: Layout("memory.default.rows", schema, 0), Units: 10, Rows: 10})
		sums, err := s.Sums(t.Context(), ofX, 0, 10)
		if broken == Attempts {
			if !errors.Is(err, &Error{Kind: Unreachable, Engine: "Trino"}) {
				t.Error(err)
			}
		} else if err != nil || !slices.Equal(sums, []int64{42}) {
			t.Errorf("%d broken: %v, %v", broken, sums, err)
		}
		if len(f.kills) != broken {
			t.Errorf("%d broken: %q were ended", broken, f.kills)
		}
	}
	for _, bad := range []string{"http://127.0.0.1", "http://reader:pw@127.0.0.1", "https://reader@host/path", "ftp://reader@host", "https://reader@host?x=1"} {
		if _, err := NewTrino(bad, Options{}); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestBlocksAreChecked: rows that are read in a block are those of its units, each once, or nothing is answered.
func TestBlocksAreChecked(t *testing.T) {
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		dataset.NewText("s", []string{"a", "", "\x00", "é", "a", "b", "c", "d", "e", "f"}, func(row int) bool { return row == 1 }))
	if err != nil {
		t.Fatal(err)
	}
	layout := Layout("rows", schema, 0)
	exp := []rowfn.Function{{Value: rowfn.Exp(rowfn.Column("x", rowfn.Number)), Lo: 0, Hi: 1e6, Where: rowfn.In(rowfn.Column("s", rowfn.Text), rowfn.TextConst("a"), rowfn.TextConst("é"), rowfn.TextConst(""))}}
	here, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	want, err := here.Sums(t.Context(), exp, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rows []int
		cut  int
		kind Kind
	}{
		"in another order": {[]int{9, 3, 4, 0, 1, 2, 5, 6, 8, 7}, 0, 0}, "one missing": {all10[:9], 0, Changed}, "one twice": {[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 8}, 0, Changed},
		"one too many": {append(slices.Clone(all10), 9), 0, Changed}, "cut short": {all10, 1, Failed}, "none": {nil, 0, Changed},
	} {
		rows, err := NewRows(table, &layout, nil, c.rows)
		if err != nil {
			t.Fatal(err)
		}
		body := rows.binary(&layout)
		var told []string
		f := newFrail(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body[:len(body)-c.cut]) })
		got, err := overClickHouse(t, f, &told).Sums(t.Context(), exp, 0, 10)
		if c.kind != 0 {
			if !errors.Is(err, &Error{Kind: c.kind}) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %d", name, got, err, want)
		}
	}
}

var all10 = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
