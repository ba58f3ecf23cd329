package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestTokenLengths: headers are taken up to their longest and refused, or replaced, one character above.
func TestTokenLengths(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&questions=20")
	mean := path + "/queries"
	query := `{"type":"mean","of":"delay","range":[-60,180]}`
	for _, c := range []struct {
		length, status int
	}{{1, 200}, {254, 200}, {255, 200}, {256, 422}} {
		key := strings.Repeat("k", c.length)
		if r := s.post(mean, query, "Idempotency-Key: "+key); r.StatusCode != c.status {
			t.Errorf("an Idempotency-Key of %d characters: %d %s", c.length, r.StatusCode, r.body)
		}
	}
	for _, c := range []struct {
		id   string
		kept bool
	}{{strings.Repeat("r", 64), true}, {strings.Repeat("r", 65), false}, {"a b", false}, {"é", false}, {"~!", true}} {
		got := s.get("/v1/holdouts", "X-Request-Id: "+c.id).Header.Get("X-Request-Id")
		if (got == c.id) != c.kept || got == "" {
			t.Errorf("a request id of %d bytes comes back as %q", len(c.id), got)
		}
	}
	// Who sends a secret of the longest length is asked for another; one above is not looked up at all. Both are 401.
	for _, length := range []int{holdout.MaxBearerBytes, holdout.MaxBearerBytes + 1} {
		r := s.get("/v1/holdouts", "Authorization: Bearer "+strings.Repeat("x", length))
		if r.StatusCode != http.StatusUnauthorized || (length > holdout.MaxBearerBytes) != strings.Contains(string(r.body), "must be Bearer and a key") {
			t.Errorf("a secret of %d characters: %d %s", length, r.StatusCode, r.body)
		}
	}
}

// TestBodyAtItsLimit: a query of exactly the largest size is read, one byte more is refused, whether its length is said or not.
func TestBodyAtItsLimit(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&questions=20")
	limit := int(s.api.asked.QueryBytes)
	query := `{"type":"mean","of":"delay","range":[-60,180]}`
	for size, status := range map[int]int{limit: 200, limit + 1: 413} {
		body := query + strings.Repeat(" ", size-len(query))
		for _, said := range []bool{true, false} {
			reader := &chunked{strings.NewReader(body)}
			r := s.send(http.MethodPost, path+"/queries", reader, "Content-Type: application/json")
			if said {
				r = s.post(path+"/queries", body)
			}
			if r.StatusCode != status {
				t.Errorf("%d bytes of at most %d, length said: %v: %d %s", size, limit, said, r.StatusCode, r.body)
			}
		}
	}
}

// chunked hides the length of what it reads.
type chunked struct{ r *strings.Reader }

func (c *chunked) Read(b []byte) (int, error) { return c.r.Read(b) }

// TestEncodings: a body may say that it is not encoded, or encoded in a way that is known.
func TestEncodings(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&questions=20", "Content-Encoding: identity")
	query := `{"type":"fraction","of":"delay < 5 && distance > 100"}`
	if r := s.post(path+"/queries", query, "Content-Encoding: identity"); r.StatusCode != 200 || !strings.Contains(string(r.body), "(delay < 5) && (distance > 100)") {
		t.Errorf("identity: %d %s", r.StatusCode, r.body)
	}
	if b, err := marshal(map[string]string{"of": "a < b && c > d"}); err != nil || string(b) != `{"of":"a < b && c > d"}` {
		t.Errorf("%s, %v", b, err)
	}
	for _, encoding := range []string{"br", "deflate", "identity, gzip", "gzip, gzip", "gzip, zstd"} {
		if r := s.post(path+"/queries", query, "Content-Encoding: "+encoding); r.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d %s", encoding, r.StatusCode, r.body)
		}
	}
	for media, status := range map[string]int{"application/json": 415, "text/csv": 415, "multipart/mixed; boundary=b": 415, "application/octet-stream": 409, "no/media/type": 415} {
		r := s.send(http.MethodPost, "/v1/holdouts?name=again&holdout=0.5&questions=20", strings.NewReader(string(fixture(t, "flights-5k.parquet"))), "Content-Type: "+media)
		if r.StatusCode != status {
			t.Errorf("an upload as %s: %d %s", media, r.StatusCode, r.body)
		}
	}
}

// TestIntegersAreWhole: a setting that counts is written in digits; strconv reads signs and underscores too.
func TestIntegersAreWhole(t *testing.T) {
	for text, ok := range map[string]bool{"100": true, "0100": true, "+100": false, "1_00": false, "1e2": false, "100.0": false, "0x64": false, " 100": false, "99999999999999999999": false} {
		_, err := readSettings("name=a&questions=" + strings.NewReplacer("+", "%2B", " ", "%20").Replace(text))
		if (err == nil) != ok {
			t.Errorf("questions=%s: %v", text, err)
		}
	}
}

// TestBatchIsAList: what is no list of queries is refused by its place.
func TestBatchIsAList(t *testing.T) {
	for _, body := range []string{`{"queries":{"a":1}}`, `{"queries":"a"}`, `{"queries":1}`, `{"queries":null}`, `{"queries":[]}`, `{}`, `{"queries":[{}],"partial":1}`} {
		if _, _, err := splitBatch([]byte(body), 10); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
	if queries, partial, err := splitBatch([]byte(`{"queries":[{"a":1},{"b":2}],"partial":true}`), 2); err != nil || len(queries) != 2 || !partial {
		t.Errorf("%d queries, in part %v: %v", len(queries), partial, err)
	}
	if _, _, err := splitBatch([]byte(`{"queries":[{},{},{}]}`), 2); err == nil {
		t.Error("more queries than there may be")
	}
}

// TestRateWithoutRoom: a key that may never ask is told how long one request takes, and one with a burst how long to wait.
func TestRateWithoutRoom(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	never := &rates{limit: 0.25, burst: 0}
	if wait := never.take("k", now); wait != 4*time.Second {
		t.Errorf("without a burst: %v", wait)
	}
	slow := &rates{limit: 0.5, burst: 1}
	if wait := slow.take("k", now); wait != 0 {
		t.Errorf("the first: %v", wait)
	}
	for range 3 { // who is refused does not pay
		if wait := slow.take("k", now); wait != 2*time.Second {
			t.Errorf("the second: %v", wait)
		}
	}
	if wait := slow.take("k", now.Add(2*time.Second)); wait != 0 {
		t.Errorf("two seconds later: %v", wait)
	}
	if wait := slow.take("other", now); wait != 0 {
		t.Errorf("another key: %v", wait)
	}
}
