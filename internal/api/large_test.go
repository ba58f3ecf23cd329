package api

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestLargeUpload: an upload that is too large to be divided at once is answered by the card (201) when it is made, and for who prefers that by a registration (202), which becomes a holdout of the same rows. The same Idempotency-Key is the same
// registration, and then the card; what is wrong with the table is the registration's problem, and a dry run has none. It would notice a preference that is not read, and a registration that waits for nobody.
func TestLargeUpload(t *testing.T) {
	file := fixture(t, "flights-5k.parquet")
	s := start(t, Options{}, holdout.Limits{AtOnce: 1})
	send := func(query string, body []byte, headers ...string) result {
		t.Helper()
		return s.send(http.MethodPost, "/v1/holdouts?name=large&questions=5&"+query, bytes.NewReader(body), headers...)
	}
	var dry, card holdout.Card
	if r := send("holdout=0.5&dry_run=true", file, "Prefer: respond-async"); r.StatusCode != 200 {
		t.Fatalf("a dry run: %d %s", r.StatusCode, r.body)
	} else {
		r.decode(t, &dry)
	}
	r := send("holdout=0.5", file)
	if r.decode(t, &card); r.StatusCode != 201 || r.Header.Get("Location") != "/v1/holdouts/"+card.ID || card.Units != dry.Units {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if entries, err := os.ReadDir(filepath.Join(s.dir, "holdouts", card.ID)); err != nil || len(entries) < 6 {
		t.Errorf("its files: %v %v", entries, err)
	}
	var begun, again Registration
	r = send("holdout=0.4", file, "Prefer: wait=10 , Respond-Async;x=1", "Idempotency-Key: large")
	if r.decode(t, &begun); r.StatusCode != 202 || r.Header.Get("Location") != "/v1/registrations/"+begun.ID || r.Header.Get("Preference-Applied") != "respond-async" || begun.Source != "" || begun.Name != "large" {
		t.Fatalf("%d %s %v", r.StatusCode, r.body, r.Header)
	}
	for now := begun; !now.Stage.Ended(); time.Sleep(5 * time.Millisecond) {
		if s.get("/v1/registrations/"+begun.ID).decode(t, &now); now.Stage.Ended() {
			begun = now
		}
	}
	if begun.Stage != holdout.RegistrationDone || begun.Problem != nil {
		t.Fatalf("%+v", begun)
	}
	var made, replayed holdout.Card
	s.get("/v1/holdouts/"+begun.Holdout).decode(t, &made)
	r = send("holdout=0.4", file, "Prefer: respond-async", "Idempotency-Key: large")
	if r.decode(t, &replayed); r.StatusCode != 201 || r.Header.Get("Idempotent-Replayed") != "true" || replayed.ID != made.ID || made.Replaces != card.ID {
		t.Errorf("again: %d %s", r.StatusCode, r.body)
	}
	if r := send("holdout=0.3", file[:len(file)-9], "Prefer: respond-async"); r.StatusCode != 422 && r.StatusCode != 400 {
		t.Errorf("no Parquet: %d %s", r.StatusCode, r.body)
	}
	r = send("unit=nobody", file, "Prefer: respond-async")
	if r.decode(t, &again); r.StatusCode != 202 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for !again.Stage.Ended() {
		s.get("/v1/registrations/"+again.ID).decode(t, &again)
	}
	if again.Stage != holdout.RegistrationFailed || again.Problem == nil || again.Problem.Status != 422 {
		t.Errorf("%+v", again)
	}
	if r := send("unit=nobody", file); r.StatusCode != 422 {
		t.Errorf("who waits is told: %d %s", r.StatusCode, r.body)
	}
	if r := s.post("/v1/holdouts/"+made.ID+"/queries", `{"type":"fraction","of":"delay > 15"}`); r.StatusCode != 200 || !bytes.Contains(r.body, []byte(`"value":0.`)) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
