package holdout

import (
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/holdoutd/holdoutd/dataset/ingest/ingesttest"
	"github.com/holdoutd/holdoutd/internal/seed"
)

// openWith opens a service whose secrets are the same each time.
func openWith(t *testing.T, dir string, sources map[string]Source, change ...func(*Options)) *Service {
	t.Helper()
	before := rand.Reader
	seed.Secrets()
	t.Cleanup(func() { rand.Reader = before })
	o := Options{Dir: dir, AnyFileSystem: true, AllowNaive: true, Decoder: ingesttest.Decoder(t), Version: "test", Sources: sources}
	for _, f := range change {
		f(&o)
	}
	s, err := Open(t.Context(), o)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// said is what an answer says of the rows: all but who it is of, and its place in the chain.
func said(t *testing.T, body json.RawMessage) string {
	t.Helper()
	var members map[string]json.RawMessage
	must(t, json.Unmarshal(body, &members))
	for _, name := range []string{"id", "holdout", "ledger"} {
		delete(members, name)
	}
	text, err := json.Marshal(members)
	must(t, err)
	return string(text)
}

var sourcedQueries = []string{
	`{"type":"mean","of":"x","range":[0,1]}`,
	`{"type":"mean","of":"score","range":[0,100],"where":"late"}`,
	`{"type":"fraction","of":"clinic == 'clinic 3' && !late"}`,
	`{"type":"mean","of":"log(x + 1.0)","range":[0,1]}`, // its rows are read in blocks
	`{"type":"variance","of":"x","range":[0,1]}`,
	`{"type":"quantile","of":"score","p":0.5,"range":[0,100]}`,
	`{"type":"fraction","of":"seen.getFullYear() > 1970"}`,
}

// sameAnswers asks two holdouts the same, and compares what they say of rows; a refusal must be the same, too. It returns how many answers there were.
func sameAnswers(t *testing.T, here *Service, one string, there *Service, two string, asked []string) (answers int) {
	t.Helper()
	for _, query := range asked {
		want, wrong := here.Ask(t.Context(), analyst, one, []byte(query), "")
		got, err := there.Ask(t.Context(), analyst, two, []byte(query), "")
		if wrong != nil || err != nil {
			if KindOf(wrong) != KindOf(err) || wrong == nil || err == nil {
				t.Errorf("%s: %v here, %v there", query, wrong, err)
			}
			t.Logf("%s: %v", query, err)
			continue
		}
		answers++
		if a, b := said(t, want.Body), said(t, got.Body); a != b {
			t.Errorf("%s:\nhere  %s\nthere %s", query, a, b)
		}
	}
	return answers
}
