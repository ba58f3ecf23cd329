package api

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
)

// TestUploadEdges: the headers, parts and sizes of an upload at their limits. Of what is refused nothing stays.
func TestUploadEdges(t *testing.T) {
	file := fixture(t, "flights-5k.parquet")
	s := start(t, Options{}, holdout.Limits{UploadBytes: int64(len(file))})
	send := func(body []byte, headers ...string) result {
		t.Helper()
		return s.send(http.MethodPost, "/v1/holdouts?name=edge&holdout=0.5&questions=5", bytes.NewReader(body), headers...)
	}
	for name, key := range map[string]string{"256 characters": strings.Repeat("k", 256), "a space": "a b", "a letter that is not ASCII": "é"} {
		r := send(file, "Idempotency-Key: "+key)
		if p := r.problem(t); r.StatusCode != 422 || !strings.Contains(string(r.body), "Idempotency-Key") || p.Status != 422 {
			t.Errorf("a key of %s: %d %s", name, r.StatusCode, r.body)
		}
	}
	var twice bytes.Buffer
	w := multipart.NewWriter(&twice)
	for range 2 {
		part, err := w.CreateFormFile("training", "f.parquet")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, "PAR1")
	}
	w.Close()
	r := send(twice.Bytes(), "Content-Type: "+w.FormDataContentType())
	if p := r.problem(t); r.StatusCode != 422 || len(p.Errors) != 1 || p.Errors[0].Parameter != "training" || !strings.Contains(p.Detail, "training comes twice") {
		t.Errorf("a part that comes twice: %d %s", r.StatusCode, r.body)
	}
	if r := send(append(bytes.Clone(file), 0)); r.StatusCode != 413 {
		t.Errorf("one byte more than the limit: %d %s", r.StatusCode, r.body)
	}
	var list struct{ Holdouts []holdout.Card }
	if s.get("/v1/holdouts").decode(t, &list); len(list.Holdouts) != 0 {
		t.Errorf("refused uploads are listed: %+v", list)
	}
	if r := send(file, "Idempotency-Key: "+strings.Repeat("k", 255)); r.StatusCode != 201 {
		t.Errorf("a file of exactly the limit, with the longest key: %d %s", r.StatusCode, r.body)
	}
	// What is misspelt in a body is told with what was meant.
	s.get("/v1/holdouts").decode(t, &list)
	r = s.post("/v1/holdouts/"+list.Holdouts[0].ID+"/queries/batch", `{"querys":[]}`)
	if p := r.problem(t); r.StatusCode != 422 || len(p.Errors) != 1 || p.Errors[0].Suggestion != "queries" || p.Errors[0].Pointer != "/querys" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// ending fails differently each time it is read.
type ending struct{ errs []error }

func (e *ending) Read([]byte) (int, error) {
	err := e.errs[0]
	e.errs = e.errs[1:]
	return 0, err
}

// TestFirstFailureCounts: why an upload could not be read is what went wrong first; what reads after it say is its consequence.
func TestFirstFailureCounts(t *testing.T) {
	u := &uploadBody{body: &ending{[]error{&http.MaxBytesError{Limit: 7}, errors.New("closed")}}, control: http.NewResponseController(httptest.NewRecorder())}
	for range 2 {
		if _, err := u.Read(make([]byte, 10)); err == nil {
			t.Fatal("no error")
		}
	}
	if u.failure == nil || u.failure.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v", u.failure)
	}
}

// TestMisspeltColumns: each parameter that names a column says which was meant, and no other thing is blamed.
func TestMisspeltColumns(t *testing.T) {
	s := start(t, Options{})
	for _, c := range []struct{ parameters, at, meant, says string }{
		{"unit=orgin", "unit", "origin", `unit names the column "orgin", which the table does not have; did you mean origin?`},
		{"unit=day(dat)", "unit", "date", "did you mean date?"},
		{"unit=ori", "unit", "origin", "did you mean origin?"},
		{"unit=customer", "unit", "", "the table does not have; it has date, "},
		{"label=dealy", "label", "delay", "did you mean delay?"},
		{"stratify=orgin", "stratify", "origin", "did you mean origin?"},
		{"split=time:dates", "split", "date", `split names the column "dates", which the table does not have; did you mean date?`},
		{"split=time:origin", "split", "", "which is not a column of dates or times"},
	} {
		r := s.send("POST", "/v1/holdouts?questions=10&"+c.parameters, bytes.NewReader(fixture(t, "flights-5k.parquet")))
		var p Problem
		r.decode(t, &p)
		if r.StatusCode != 422 || len(p.Errors) != 1 || p.Errors[0].Parameter != c.at || p.Errors[0].Suggestion != c.meant || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %d %s", c.parameters, r.StatusCode, r.body)
		}
	}
	path, _ := s.upload("name=flights&holdout=0.5&questions=3")
	for _, c := range []struct{ query, at, meant string }{
		{`{"type":"accuracy","label":"delay > 15","model":{"linear":{"wieghts":{"distance":1}}}}`, "/model/linear/wieghts", "weights"},
		{`{"type":"fraction","of":"date.hour > 8"}`, "/of", "date.getHours()"},
		{`{"type":"fraction","of":"arrival delay > 8"}`, "/of", `col("arrival delay")`},
	} {
		r := s.post(path+"/queries/explain", c.query)
		var p Problem
		r.decode(t, &p)
		if r.StatusCode != 422 || p.Errors[0].Pointer != c.at || p.Errors[0].Suggestion != c.meant {
			t.Errorf("%s: %d %s", c.query, r.StatusCode, r.body)
		}
	}
}
