package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/holdoutd/holdoutd/holdout"
)

// encoded compresses a body.
func encoded(t testing.TB, encoding string, body io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if encoding == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&b, zstd.WithWindowSize(1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := io.Copy(w, body)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCompressedQueries: a body that is compressed is the same request as one that is not: predictions row by row of several models in one batch.
func TestCompressedQueries(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.4&mechanism=gaussian&questions=100&label=delay&features=public")
	var queries []string
	for m := range 3 {
		predictions := make([]float64, card.Rows.Holdout+card.Rows.Check)
		for i := range predictions {
			predictions[i] = float64((i*7+m*13)%1000) / 1000
		}
		text, err := json.Marshal(predictions)
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, fmt.Sprintf(`{"type":"loss","loss":"brier","label":"delay > 15","predictions":%s}`, text))
	}
	batch := `{"queries":[` + strings.Join(queries, ",") + `]}`
	plain := s.post(path+"/queries/batch", batch)
	if plain.StatusCode != 200 {
		t.Fatalf("%d %s %s", plain.StatusCode, plain.body, s.log)
	}
	for _, encoding := range encodings {
		body := encoded(t, encoding, strings.NewReader(batch))
		if len(body) > len(batch)/2 {
			t.Errorf("%s makes %d bytes of %d", encoding, len(body), len(batch))
		}
		r := s.post(path+"/queries/batch", string(body), "Content-Encoding: "+strings.ToUpper(encoding))
		if want := bytes.ReplaceAll(plain.body, []byte(`"replayed":false`), []byte(`"replayed":true`)); !bytes.Equal(r.body, want) {
			t.Errorf("%s: %d %s, want %s", encoding, r.StatusCode, r.body, want)
		}
		explained := s.post(path+"/queries/explain", string(encoded(t, encoding, strings.NewReader(late))), "Content-Encoding: "+encoding)
		if explained.StatusCode != 200 {
			t.Errorf("%s: explain: %d %s", encoding, explained.StatusCode, explained.body)
		}
		cut := s.post(path+"/queries/batch", string(body[:len(body)-5]), "Content-Encoding: "+encoding)
		if cut.StatusCode != 400 || cut.problem(t).Code != "malformed" {
			t.Errorf("%s, cut off: %d %s", encoding, cut.StatusCode, cut.body)
		}
	}
}

// spaces is an endless JSON text of nothing.
type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestBombs: a small body that would become a large one is refused at the limit that every body has, without the memory of what it would become. A decoder without a
// limit takes 40 times as much as this test allows.
func TestBombs(t *testing.T) {
	const limit, becomes, allowed = 1 << 20, 256 << 20, 24 << 20
	s := start(t, Options{Limits: Limits{BatchBytes: limit}}, holdout.Limits{QueryBytes: limit})
	path, _ := s.upload("name=flights&holdout=0.4&mechanism=gaussian&questions=100")
	for _, encoding := range encodings {
		bomb := encoded(t, encoding, io.LimitReader(spaces{}, becomes))
		if len(bomb) > limit {
			t.Fatalf("%s: a bomb of %d bytes is none", encoding, len(bomb))
		}
		for _, to := range []string{"/queries", "/queries/batch", "/queries/explain"} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := s.post(path+to, string(bomb), "Content-Encoding: "+encoding)
			runtime.ReadMemStats(&after)
			if r.StatusCode != http.StatusRequestEntityTooLarge || r.problem(t).Code != "too-large" || !bytes.Contains(r.body, fmt.Appendf(nil, `"limit":%d`, limit)) {
				t.Errorf("%s to %s: %d %s", encoding, to, r.StatusCode, r.body)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > allowed {
				t.Errorf("%s to %s takes %d MiB", encoding, to, took>>20)
			}
		}
	}
	if r := s.post(path+"/queries", late); r.StatusCode != 200 {
		t.Errorf("after the bombs: %d %s", r.StatusCode, r.body)
	}
}

// TestDecodedLimit: what fits is read to its last byte, one byte more is too large, whatever the encoding; and a zstd window beyond RFC 8878's is refused.
func TestDecodedLimit(t *testing.T) {
	for _, encoding := range append([]string{""}, encodings...) {
		for _, size := range []int64{0, 1, 999, 1000, 1001, 5000} {
			text := bytes.Repeat([]byte("x"), int(size))
			sent := text
			if encoding != "" {
				sent = encoded(t, encoding, bytes.NewReader(text))
			}
			got, err := readDecoded(encoding, http.MaxBytesReader(nil, io.NopCloser(bytes.NewReader(sent)), 1000), 1000)
			var large *http.MaxBytesError
			if tooLarge := size > 1000; errors.As(err, &large) != tooLarge || !tooLarge && (err != nil || !bytes.Equal(got, text)) {
				t.Errorf("%q: %d bytes of %d: %v", encoding, len(got), size, err)
			}
		}
	}
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(2*zstdWindow))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, io.LimitReader(spaces{}, 3*zstdWindow)); errors.Join(err, w.Close()) != nil {
		t.Fatal(err)
	}
	var wrong *encodingError
	if _, err := readDecoded("zstd", &b, 4*zstdWindow); !errors.As(err, &wrong) {
		t.Errorf("a window of %d bytes: %v", 2*zstdWindow, err)
	}
}
