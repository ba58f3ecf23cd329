package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
)

type ginContext = gin.Context

const late = `{"type":"fraction","of":"delay > 15"}`

// TestProblems sends what is wrong and checks the status, the code and the form of each reply. Every class that a
// request alone can provoke is here; TestEveryClassIsProvoked knows where the others are.
func TestProblems(t *testing.T) {
	s := start(t, Options{Limits: Limits{BatchBytes: 20_000}}, holdout.Limits{QueryBytes: 2000, UploadBytes: 1 << 20, BatchQueries: 3})
	path, _ := s.upload("name=flights&holdout=0.5&questions=3")
	_, analyst := s.newKey("analyst")
	s.post(path+"/queries", late, "Idempotency-Key: used")
	as := "Authorization: Bearer " + analyst
	long := strings.Repeat("x", 3000)
	batch := func(items ...string) string { return `{"queries":[` + strings.Join(items, ",") + `]}` }

	const bins = `{"type":"histogram","of":"delay","edges":[0,10,20,30]}` // three questions

	cases := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
		at                       string // pointer or parameter of the first violation; "-": none
	}{
		{"no such path", "GET", "/nothing", "", nil, 404, "not-found", "-"},
		{"no such path below v1, no key", "GET", "/v1/nothing", "", []string{"Authorization: "}, 404, "not-found", "-"},
		{"trailing slash", "GET", "/v1/holdouts/", "", nil, 404, "not-found", "-"},
		{"wrong method", "PUT", "/v1/holdouts", "", nil, 405, "method-not-allowed", "-"},
		{"unknown method", "BREW", "/v1/keys", "", nil, 405, "method-not-allowed", "-"},
		{"no key", "GET", "/v1/holdouts", "", []string{"Authorization: "}, 401, "unauthorized", "-"},
		{"not a bearer", "GET", "/v1/holdouts", "", []string{"Authorization: Basic aGs6aGs="}, 401, "unauthorized", "-"},
		{"bearer without key", "GET", "/v1/holdouts", "", []string{"Authorization: Bearer"}, 401, "unauthorized", "-"},
		{"unknown key", "GET", "/v1/holdouts", "", []string{"Authorization: Bearer hk_0000000000000000000000000000000000000000000"}, 401, "unauthorized", "-"},
		{"analyst lists keys", "GET", "/v1/keys", "", []string{as}, 403, "forbidden", "-"},
		{"analyst deletes", "DELETE", path, "", []string{as}, 403, "forbidden", "-"},
		{"analyst uploads", "POST", "/v1/holdouts?name=x", "PAR1", []string{as}, 403, "forbidden", "-"},
		{"analyst exports", "GET", path + "/ledger", "", []string{as}, 403, "forbidden", "-"},

		{"unknown holdout", "GET", "/v1/holdouts/ho_nothing", "", nil, 404, "not-found", "-"},
		{"ask unknown holdout", "POST", "/v1/holdouts/ho_nothing/queries", late, nil, 404, "not-found", "-"},
		{"training of unknown holdout", "GET", "/v1/holdouts/ho_nothing/training", "", nil, 404, "not-found", "-"},
		{"range beyond the training part", "GET", path + "/training", "", []string{"Range: bytes=99999999-"}, 416, "range-not-satisfiable", "-"},
		{"ledger of unknown holdout", "GET", "/v1/holdouts/ho_nothing/ledger", "", nil, 404, "not-found", "-"},
		{"revoke unknown key", "DELETE", "/v1/keys/key_nothing", "", nil, 404, "not-found", "-"},
		{"path tricks", "GET", "/v1/holdouts/..%2F..%2Fadmin.key/training", "", nil, 404, "not-found", "-"},

		{"empty query", "POST", path + "/queries", "", nil, 400, "malformed", "-"},
		{"not JSON", "POST", path + "/queries", `{"type":`, nil, 400, "malformed", ""},
		{"duplicate key", "POST", path + "/queries", `{"type":"fraction","of":"delay > 15","of":"delay > 16"}`, nil, 400, "malformed", ""},
		{"duplicate key deep in a batch", "POST", path + "/queries/batch", batch(`{"type":"fraction","of":"delay > 15","of":"delay > 16"}`), nil, 400, "malformed", "?"},
		{"half a surrogate pair", "POST", path + "/queries", `{"type":"fraction","of":"origin == '\ud800'"}`, nil, 400, "malformed", ""},
		{"half a surrogate pair in a key's name", "POST", "/v1/keys", `{"name":"\ud800","scope":"analyst"}`, nil, 400, "malformed", "-"},
		{"half a surrogate pair in a batch", "POST", path + "/queries/batch", batch(`{"type":"fraction","of":"origin == '\udead'"}`), nil, 400, "malformed", "-"},
		{"not UTF-8", "POST", path + "/queries", "{\"type\":\"fraction\",\"of\":\"origin == '\xff'\"}", nil, 400, "malformed", ""},
		{"unknown member", "POST", path + "/queries", `{"type":"fraction","of":"delay > 15","wher":"true"}`, nil, 422, "invalid", "/wher"},
		{"unknown column", "POST", path + "/queries", `{"type":"fraction","of":"dellay > 15"}`, nil, 422, "invalid", "/of"},
		{"unknown type", "POST", path + "/queries", `{"type":"mode","of":"delay"}`, nil, 422, "invalid", "/type"},
		{"unknown column in explain", "POST", path + "/queries/explain", `{"type":"fraction","of":"dellay > 15"}`, nil, 422, "invalid", "/of"},
		{"unknown column in a batch", "POST", path + "/queries/batch", batch(late, `{"type":"fraction","of":"dellay > 15"}`), nil, 422, "invalid", "/queries/1/of"},
		{"query too large", "POST", path + "/queries", `{"type":"fraction","of":"delay > 15","note":"` + long + `"}`, nil, 413, "too-large", "-"},
		{"query is XML", "POST", path + "/queries", `<q/>`, []string{"Content-Type: application/xml"}, 415, "unsupported-media-type", "-"},
		{"query is encoded otherwise", "POST", path + "/queries", "\x1f\x8b", []string{"Content-Encoding: br"}, 415, "unsupported-media-type", "-"},
		{"query is cut off in its encoding", "POST", path + "/queries", "\x1f\x8b", []string{"Content-Encoding: gzip"}, 400, "malformed", "-"},
		{"query is not what its encoding says", "POST", path + "/queries", late, []string{"Content-Encoding: zstd"}, 400, "malformed", "-"},
		{"unknown query parameter", "GET", path + "/answers?befor=3", "", nil, 422, "invalid", "befor"},
		{"empty cursor", "GET", path + "/answers?after=", "", nil, 422, "invalid", "after"},
		{"empty page", "GET", path + "/answers?limit=", "", nil, 422, "invalid", "limit"},
		{"cursor twice", "GET", path + "/answers?after=1&after=2", "", nil, 422, "invalid", "after"},
		{"parameter of another operation", "GET", path + "/training?limit=5", "", nil, 422, "invalid", "limit"},
		{"parameter badly escaped in a list", "GET", path + "/answers?limit=%zz", "", nil, 400, "malformed", "-"},
		{"plan of a misspelt workload", "POST", "/v1/plans", `{"n":1000,"workload":"60 acuracy"}`, nil, 422, "invalid", "/workload"},
		{"plan of a workload that is no text", "POST", "/v1/plans", `{"n":1000,"workload":60}`, nil, 422, "invalid", "/workload"},
		{"plan for no questions", "POST", "/v1/plans", `{"n":1000,"questions":0,"half_width":0.1}`, nil, 422, "invalid", "/questions"},
		{"key with an empty name", "POST", "/v1/keys", `{"name":"","scope":"admin"}`, nil, 422, "invalid", "name"},
		{"bad cursor", "GET", path + "/answers?after=x", "", nil, 422, "invalid", "after"},
		{"negative cursor", "GET", path + "/answers?after=-1", "", nil, 422, "invalid", "after"},
		{"page too large", "GET", path + "/answers?limit=100000", "", nil, 422, "invalid", "limit"},

		{"batch without queries", "POST", path + "/queries/batch", `{}`, nil, 422, "invalid", ""},
		{"batch is a list", "POST", path + "/queries/batch", `[]`, nil, 422, "invalid", ""},
		{"batch is empty", "POST", path + "/queries/batch", `{"queries":[]}`, nil, 422, "invalid", "/queries"},
		{"queries is null", "POST", path + "/queries/batch", `{"queries":null}`, nil, 422, "invalid", "/queries"},
		{"partial is a text", "POST", path + "/queries/batch", `{"queries":[{}],"partial":"yes"}`, nil, 422, "invalid", "/partial"},
		{"batch with more members", "POST", path + "/queries/batch", `{"queries":[{}],"partail":true}`, nil, 422, "invalid", "/partail"},
		{"keys differ in case", "POST", path + "/queries/batch", `{"Queries":[{}]}`, nil, 422, "invalid", "/Queries"},
		{"duplicate key of a batch", "POST", path + "/queries/batch", `{"queries":[{}],"queries":[{}]}`, nil, 400, "malformed", "-"},
		{"two batches", "POST", path + "/queries/batch", `{"queries":[{}]}{}`, nil, 400, "malformed", "-"},
		{"too many queries", "POST", path + "/queries/batch", batch(late, late, late, late), nil, 413, "too-large", "-"},
		{"batch too large", "POST", path + "/queries/batch", strings.Repeat(" ", 30_000), nil, 413, "too-large", "-"},

		{"idempotency key with spaces", "POST", path + "/queries", late, []string{"Idempotency-Key: a b"}, 422, "invalid", "Idempotency-Key"},
		{"idempotency key for another question", "POST", path + "/queries", `{"type":"fraction","of":"delay > 16"}`, []string{"Idempotency-Key: used"}, 422, "idempotency-mismatch", "-"},
		{"idempotency key for an API key", "POST", "/v1/keys", `{"name":"a","scope":"analyst"}`, []string{"Idempotency-Key: k"}, 422, "invalid", "Idempotency-Key"},

		{"key without scope", "POST", "/v1/keys", `{"name":"a"}`, nil, 422, "invalid", ""},
		{"key with another scope", "POST", "/v1/keys", `{"name":"a","scope":"root"}`, nil, 422, "invalid", "/scope"},
		{"key with a number for a name", "POST", "/v1/keys", `{"name":7,"scope":"admin"}`, nil, 422, "invalid", "/name"},
		{"key request too large", "POST", "/v1/keys", `{"name":"` + strings.Repeat("a", 5000) + `","scope":"admin"}`, nil, 413, "too-large", "-"},

		{"unknown parameter", "POST", "/v1/holdouts?quetsions=3", "PAR1", nil, 422, "invalid", "quetsions"},
		{"parameter twice", "POST", "/v1/holdouts?questions=3&questions=4", "PAR1", nil, 422, "invalid", "questions"},
		{"parameter is no number", "POST", "/v1/holdouts?questions=3.5", "PAR1", nil, 422, "invalid", "questions"},
		{"parameter is NaN", "POST", "/v1/holdouts?holdout=NaN", "PAR1", nil, 422, "invalid", "holdout"},
		{"parameter badly escaped", "POST", "/v1/holdouts?name=%zz", "PAR1", nil, 400, "malformed", "-"},
		{"holdout out of range", "POST", "/v1/holdouts?holdout=-0.5", "PAR1", nil, 422, "invalid", "holdout"},
		{"no such mechanism", "POST", "/v1/holdouts?mechanism=magic", "PAR1", nil, 422, "invalid", "mechanism"},
		{"naive is not allowed", "POST", "/v1/holdouts?mechanism=naive", "PAR1", nil, 422, "invalid", "mechanism"},
		{"upload is text", "POST", "/v1/holdouts?name=x", "a,b\n1,2\n", []string{"Content-Type: text/csv"}, 415, "unsupported-media-type", "-"},
		{"upload is not Parquet", "POST", "/v1/holdouts?name=x", "a,b\n1,2\n", nil, 422, "bad-upload", "?"},
		{"upload is empty", "POST", "/v1/holdouts?name=x", "", nil, 422, "bad-upload", "?"},
		{"upload too large", "POST", "/v1/holdouts?name=x", strings.Repeat("x", 2<<20), nil, 413, "too-large", "-"},
		{"same table again", "POST", "/v1/holdouts?name=x", string(fixture(t, "flights-5k.parquet")), nil, 409, "holdout-exists", "-"},
		{"unknown part", "POST", "/v1/holdouts?name=x", "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--\r\n", []string{"Content-Type: multipart/form-data; boundary=b"}, 422, "invalid", "file"},
		{"multipart without boundary", "POST", "/v1/holdouts?name=x", "x", []string{"Content-Type: multipart/form-data"}, 415, "unsupported-media-type", "-"},
		{"multipart cut off", "POST", "/v1/holdouts?name=x", "--b\r\nContent-Disposition: form-data; name=\"table\"\r\n\r\nx", []string{"Content-Type: multipart/form-data; boundary=b"}, 400, "malformed", "?"},

		{"more than the budget", "POST", path + "/queries/batch", batch(`{"type":"fraction","of":"delay > 1"}`, `{"type":"fraction","of":"delay > 2"}`, `{"type":"fraction","of":"delay > 3"}`), nil, 403, "budget-exhausted", "-"},
		{"more than a tenth of the budget", "POST", path + "/queries", bins, nil, 422, "max-questions", "-"},
		{"more than is named", "POST", path + "/queries?max_questions=2", bins, nil, 422, "max-questions", "-"},
		{"more than is named, in a batch", "POST", path + "/queries/batch?max_questions=2", batch(bins), nil, 422, "max-questions", "-"},
		{"no questions are named", "POST", path + "/queries?max_questions=0", bins, nil, 422, "invalid", "max_questions"},
		{"panic", "GET", "/test/panic", "", nil, 500, "internal", "-"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			headers := c.headers
			if c.method == "POST" && !strings.HasPrefix(c.path, "/v1/holdouts?") && !strings.Contains(strings.Join(headers, ","), "Content-Type") {
				headers = append(headers, "Content-Type: application/json")
			}
			r := s.send(c.method, c.path, strings.NewReader(c.body), headers...)
			p := r.problem(t)
			if r.StatusCode != c.status || p.Code != c.code {
				t.Fatalf("got %d %s, want %d %s: %s", r.StatusCode, p.Code, c.status, c.code, r.body)
			}
			if p.Status != c.status || p.Type != "/problems/"+c.code || p.Title == "" || p.Detail == "" {
				t.Errorf("incomplete: %s", r.body)
			}
			at := "-"
			if len(p.Errors) > 0 {
				at = p.Errors[0].Pointer + p.Errors[0].Parameter
			}
			if c.at != "?" && at != c.at {
				t.Errorf("the first violation is at %q, want %q: %s", at, c.at, r.body)
			}
			if r.Header.Get("X-Request-Id") == "" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers are missing: %v", r.Header)
			}
			if c.status == 401 && !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer") {
				t.Error("401 without WWW-Authenticate")
			}
			if strings.Contains(string(r.body), panicValue) || strings.Contains(string(r.body), long) {
				t.Errorf("the reply repeats what it must not: %.200s", r.body)
			}
		})
	}

	if b := s.get(path + "/budget"); !strings.Contains(string(b.body), `"left":2,"of":3`) {
		t.Errorf("refused requests cost something: %s", b.body)
	}
	if strings.Contains(s.log.String(), panicValue) {
		t.Error("the log has the value of a panic")
	}
	if again := s.get("/healthz"); again.StatusCode != 200 {
		t.Error("the server did not survive")
	}
}

// TestProblemMembers checks what programs read from problems.
func TestProblemMembers(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.5&questions=2")
	s.post(path+"/queries", late)
	var exists struct{ Holdout, Reason string }
	s.send("POST", "/v1/holdouts?name=again", strings.NewReader(string(fixture(t, "flights-5k.parquet")))).decode(t, &exists)
	if exists.Holdout != card.ID || exists.Reason != "asked" {
		t.Errorf("holdout-exists names %q for the reason %q, want %q", exists.Holdout, exists.Reason, card.ID)
	}
	var known struct {
		Code, Holdout string
		Overlaps      []holdout.Overlap
	}
	training := s.get(path + "/training").body
	r := s.send("POST", "/v1/holdouts?name=training", bytes.NewReader(training))
	r.decode(t, &known)
	if r.StatusCode != 409 || known.Code != "rows-known" || known.Holdout != card.ID || len(known.Overlaps) != 1 || known.Overlaps[0].Matter != "shown-before" || known.Overlaps[0].Share < 0.9 {
		t.Errorf("the training part as a table: %d %s", r.StatusCode, r.body)
	}

	r = s.post(path+"/queries", `{"type":"mean","of":"delay","range":[-60,180],"where":"origin == 'ORD'"}`)
	var spent map[string]json.RawMessage
	r.decode(t, &spent)
	if r.StatusCode != 403 || string(spent["requested"]) != "2" || string(spent["remaining"]) != "1" || spent["affordable"] == nil {
		t.Errorf("budget-exhausted: %d %s", r.StatusCode, r.body)
	}

	r = s.send("POST", "/v1/holdouts?quetsions=3", nil)
	if p := r.problem(t); len(p.Errors) != 1 || p.Errors[0].Suggestion != "questions" {
		t.Errorf("no suggestion: %s", r.body)
	}
	r = s.send("POST", "/v1/holdouts?a=1&b=2&questions=x", nil)
	if p := r.problem(t); len(p.Errors) != 3 {
		t.Errorf("want all three violations: %s", r.body)
	}
	r = s.send("PUT", "/v1/holdouts", nil)
	if allow := r.Header.Get("Allow"); allow != "GET, HEAD, OPTIONS, POST" {
		t.Errorf("Allow: %q", allow)
	}
}

// TestUnitUndecided: a table whose customers come again is refused with what one observation may be, and the same upload with one word more is taken.
func TestUnitUndecided(t *testing.T) {
	s := start(t, Options{})
	upload := func(parameters string) result {
		return s.send("POST", "/v1/holdouts?holdout=0.5&questions=3"+parameters, bytes.NewReader(fixture(t, "customers.parquet")))
	}
	var p struct {
		Problem
		Choices []holdout.UnitChoice
	}
	for _, parameters := range []string{"", "&dry_run=true"} {
		r := upload(parameters)
		r.decode(t, &p)
		if r.StatusCode != 422 || p.Code != "unit-undecided" || len(p.Errors) != 1 || p.Errors[0].Parameter != "unit" || len(p.Choices) != 2 || p.Choices[0].Unit != "customer_id" || p.Choices[1].Unit != "row" {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
	for _, unit := range []string{"customer_id", "row"} {
		if r := upload("&dry_run=true&unit=" + unit); r.StatusCode != 200 {
			t.Errorf("unit=%s: %d %s", unit, r.StatusCode, r.body)
		}
	}
	if r := s.get("/v1/holdouts"); strings.Contains(string(r.body), "ho_") {
		t.Errorf("something was kept: %s", r.body)
	}
}

// TestEveryClassIsProvoked keeps the tables of classes and of tests together.
func TestEveryClassIsProvoked(t *testing.T) {
	provoked := map[string]string{
		"not-found": "TestProblems", "method-not-allowed": "TestProblems", "unauthorized": "TestProblems", "forbidden": "TestProblems",
		"malformed": "TestProblems", "invalid": "TestProblems", "too-large": "TestProblems", "unsupported-media-type": "TestProblems",
		"idempotency-mismatch": "TestProblems", "bad-upload": "TestProblems", "holdout-exists": "TestProblems", "rows-known": "TestProblemMembers", "budget-exhausted": "TestProblems", "max-questions": "TestProblems",
		"unit-undecided": "TestUnitUndecided", "internal": "TestProblems", "range-not-satisfiable": "TestProblems", "request-timeout": "TestSlowBody", "rate-limited": "TestRateLimit", "busy": "TestBusy", "foreign-origin": "TestAgentsNeedAKey",
		"unavailable": "TestServiceErrors", "conflict": "TestServiceErrors", "timeout": "TestServiceErrors",
		"holdout-damaged": "TestServiceErrors", "ledger-rolled-back": "TestServiceErrors", "disk-full": "TestServiceErrors",
		"grant-exhausted": "TestServiceErrors", "epsilon-exhausted": "TestServiceErrors", "released-before": "TestServiceErrors", "grant-ended": "TestServiceErrors", "not-shown": "TestServiceErrors",
	}
	for _, c := range allClasses() {
		if provoked[c.code] == "" {
			t.Errorf("no test provokes %s", c.code)
		}
		if c.title == "" || c.advice == "" || c.status < 400 {
			t.Errorf("%s is incomplete", c.code)
		}
	}
	for kind := holdout.Internal; kind <= holdout.NotShown; kind++ {
		if classes[kind] == nil {
			t.Errorf("kind %d has no class", kind)
		}
	}
}

// TestServiceErrors checks the errors that a test cannot bring about through a healthy service.
func TestServiceErrors(t *testing.T) {
	cause := errors.New("disk full at block 17")
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{&holdout.Error{Kind: holdout.Unavailable, Detail: "cannot commit", Err: cause}, 503, "unavailable"},
		{&holdout.Error{Kind: holdout.Conflict, Detail: "under way"}, 409, "conflict"},
		{&holdout.Error{Kind: holdout.Internal, Detail: "secret detail", Err: cause}, 500, "internal"},
		{&holdout.Error{Kind: holdout.Damaged, Detail: "restore it", Err: cause}, 503, "holdout-damaged"},
		{&holdout.Error{Kind: holdout.RolledBack, Detail: "restore it", Err: cause}, 503, "ledger-rolled-back"},
		{&holdout.Error{Kind: holdout.DiskFull, Detail: "make room", Err: cause}, 507, "disk-full"},
		{&holdout.Error{Kind: holdout.GrantExhausted, Detail: "none left"}, 403, "grant-exhausted"},
		{&holdout.Error{Kind: holdout.GrantEnded, Detail: "over"}, 403, "grant-ended"},
		{&holdout.Error{Kind: holdout.NotShown, Detail: "no"}, 403, "not-shown"},
		{&holdout.Error{Kind: holdout.EpsilonExhausted, Detail: "none left"}, 403, "epsilon-exhausted"},
		{&holdout.Error{Kind: holdout.ReleasedBefore, Detail: "of the same rows"}, 409, "released-before"},
		{cause, 500, "internal"},
		{http.ErrHandlerTimeout, 500, "internal"},
		{contextDeadline(t), 503, "timeout"},
	} {
		p := problemOf(c.err)
		if p.Status != c.status || p.Code != c.code {
			t.Errorf("%v: got %d %s", c.err, p.Status, p.Code)
		}
		body, err := marshal(p)
		if err != nil || strings.Contains(string(body), "block 17") || strings.Contains(string(body), "secret detail") {
			t.Errorf("%v: %s %v", c.err, body, err)
		}
		// Coming back soon helps where nobody has to restore anything first.
		if (p.Code == "unavailable" || p.Code == "timeout") != (p.GetHeaders().Get("Retry-After") != "") {
			t.Errorf("%v: Retry-After %q", c.err, p.GetHeaders().Get("Retry-After"))
		}
	}
}

func TestProblemMembersDoNotReplaceItsOwn(t *testing.T) {
	p := problem(classes[holdout.Exists], "seen before")
	p.members = map[string]any{"holdout": "ho_1", "n": 3}
	body, err := json.Marshal(p)
	if want := `{"type":"/problems/holdout-exists","title":"The same table was uploaded before","status":409,"code":"holdout-exists","detail":"seen before","holdout":"ho_1","n":3}`; err != nil || string(body) != want {
		t.Errorf("%s %v", body, err)
	}
	p.members = map[string]any{"bad": func() {}}
	if _, err := json.Marshal(p); err == nil {
		t.Error("a member that is no JSON was written")
	}
}

// TestVoidIsSaid: the asker of a question that was debited without an answer is told so, whatever the cause; the replies for a timeout
// or for too many open files would say that nothing was lost.
func TestVoidIsSaid(t *testing.T) {
	for _, cause := range []error{errors.New("a fault"), context.DeadlineExceeded, syscall.EMFILE} {
		p := problemOf(&holdout.Error{Kind: holdout.Internal, Detail: "it was debited", Members: map[string]any{"void": true}, Err: cause})
		body, err := p.MarshalJSON()
		if err != nil || p.Code != "internal" || p.Detail != "it was debited" || !strings.Contains(string(body), `"void":true`) || !errors.Is(p.cause, cause) {
			t.Errorf("%v: %s, %v", cause, body, err)
		}
	}
	if p := problemOf(&holdout.Error{Kind: holdout.Internal, Detail: "inner words"}); strings.Contains(p.Detail, "inner") {
		t.Errorf("a fault says %q", p.Detail)
	}
}
