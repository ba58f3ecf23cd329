package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/await"
)

// rawAnswer cuts the recorded answer out of a reply, byte for byte.
func rawAnswer(t *testing.T, body []byte) string {
	t.Helper()
	rest, ok := bytes.CutPrefix(body, []byte(`{"answer":`))
	end := bytes.LastIndex(rest, []byte(`,"budget":{"questions":`))
	if !ok || end < 0 {
		t.Fatalf("not a reply to a question: %s", body)
	}
	return string(rest[:end])
}

// TestQuestions goes the way of a question: upload, ask, replay, batch, history, ledger.
func TestQuestions(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.4&mechanism=gaussian&questions=100&confidence=0.9&label=delay")
	if card.Rows != (holdout.Counts{Training: 2000, Check: 1000, Holdout: 2000}) || card.Name != "flights" || card.Guarantee.Questions != 100 || card.Settings.Label != "delay" {
		t.Errorf("card: %+v", card)
	}

	first := s.post(path+"/queries", late)
	recorded := rawAnswer(t, first.body)
	var reply struct {
		Answer struct {
			ID, Holdout, Query, Mechanism string
			Value                         float64
			Interval                      *struct{ Low, High, Confidence float64 }
			Cost                          holdout.Cost
			Ledger                        struct{ Seq int64 }
		}
		Budget   holdout.Budget
		Replayed bool
	}
	first.decode(t, &reply)
	a := reply.Answer
	if a.Holdout != card.ID || a.Interval == nil || a.Interval.Low > a.Value || a.Interval.High < a.Value || a.Interval.Confidence != 0.9 || a.Cost.Questions != 1 || a.Ledger.Seq != 1 {
		t.Errorf("answer: %s", first.body)
	}
	if reply.Replayed || reply.Budget.Questions.Left != 99 || first.Header.Get("Content-Type") != "application/json" {
		t.Errorf("reply: %s", first.body)
	}

	for _, spelling := range []string{late, `{"of":"delay>15.0","type":"fraction"}`, ` {"type":"fraction","of":"(delay > 15)","note":"mine"} `} {
		again := s.post(path+"/queries", spelling, "Content-Type: application/x-www-form-urlencoded") // as curl -d says
		if rawAnswer(t, again.body) != recorded || !strings.HasSuffix(string(again.body), `"replayed":true}`) || !strings.Contains(string(again.body), `"left":99`) {
			t.Errorf("a replay is not what was recorded:\n%s\n%s", again.body, recorded)
		}
	}

	batch := s.post(path+"/queries/batch", `{"queries":[{"type":"mean","of":"delay","range":[-60,180]},`+late+`,{"type":"mean","of":"distance","range":[0,3000],"where":"origin == 'ORD' && delay < 5"}]}`)
	var replies struct {
		Answers []struct {
			Answer   json.RawMessage
			Replayed bool
		}
		Budget holdout.Budget
	}
	batch.decode(t, &replies)
	if len(replies.Answers) != 3 || string(replies.Answers[1].Answer) != recorded || !replies.Answers[1].Replayed || replies.Answers[0].Replayed || replies.Budget.Questions.Left != 96 {
		t.Errorf("batch: %d %s", batch.StatusCode, batch.body)
	}

	var e holdout.Explanation
	explained := s.post(path+"/queries/explain", `{"type":"fraction","of":"delay < 0"}`)
	explained.decode(t, &e)
	if e.Cost.Questions != 1 || e.Training == nil || e.HalfWidth == nil || e.Answered || *e.Training < 0.3 || *e.Training > 0.8 {
		t.Errorf("explain: %s", explained.body)
	}

	var budget holdout.Budget
	s.get(path+"/budget").decode(t, &budget)
	if budget.Questions != (holdout.Meter{Left: 96, Of: 100}) || *budget.Tokens != (holdout.Meter{Left: 2, Of: 2}) {
		t.Errorf("budget: %+v", budget)
	}

	var page struct {
		Answers []struct{ Answer json.RawMessage }
		Next    int64
	}
	s.get(path+"/answers?limit=2").decode(t, &page)
	if len(page.Answers) != 2 || string(page.Answers[0].Answer) != recorded || page.Next == 0 {
		t.Fatalf("first page: %+v", page)
	}
	all := page.Answers
	after := page.Next
	page.Answers, page.Next = nil, 0
	s.get(fmt.Sprintf("%s/answers?limit=2&after=%d", path, after)).decode(t, &page)
	if all = append(all, page.Answers...); len(all) != 3 || page.Next != 0 || string(all[2].Answer) != string(replies.Answers[2].Answer) {
		t.Errorf("last page: %+v", page)
	}

	export := s.get(path + "/ledger")
	report, err := ledger.VerifyExport(bytes.NewReader(export.body))
	if err != nil || report.Answers != 3 || report.Spent["questions"] != 4 || report.Holdout != card.ID {
		t.Errorf("ledger: %+v %v", report, err)
	}
	if !bytes.Contains(export.body, []byte(recorded)) && !bytes.Contains(export.body, []byte(strings.ReplaceAll(recorded, `"`, `\"`))) {
		t.Errorf("the export does not have the answer as it was sent: %s", export.body)
	}
}

func TestAnalystsSeeTheirOwnAnswers(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.4&questions=100")
	id, analyst := s.newKey("analyst")
	s.post(path+"/queries", late)
	mine := s.post(path+"/queries", `{"type":"fraction","of":"delay > 30"}`, "Authorization: Bearer "+analyst)
	history := s.get(path+"/answers", "Authorization: Bearer "+analyst)
	if want := `{"answers":[{"answer":` + rawAnswer(t, mine.body) + `,"canonical":{`; !strings.HasPrefix(string(history.body), want) || strings.Count(string(history.body), `"canonical"`) != 1 {
		t.Errorf("got  %s\nwant %s", history.body, want)
	}
	if r := s.send("DELETE", "/v1/keys/"+id, nil); r.StatusCode != 204 || len(r.body) > 0 {
		t.Errorf("revoke: %d %s", r.StatusCode, r.body)
	}
	if r := s.get(path, "Authorization: Bearer "+analyst); r.StatusCode != 401 {
		t.Errorf("a revoked key still works: %d", r.StatusCode)
	}
	keys := s.get("/v1/keys")
	if strings.Contains(string(keys.body), analyst) || !strings.Contains(string(keys.body), id) {
		t.Errorf("keys: %s", keys.body)
	}
}

func TestIdempotency(t *testing.T) {
	s := start(t, Options{})
	file := fixture(t, "flights-5k.parquet")
	create := func(parameters string) result {
		return s.send("POST", "/v1/holdouts?"+parameters, bytes.NewReader(file), "Idempotency-Key: up-1")
	}
	first, again := create("name=flights&questions=10"), create("name=flights&questions=10")
	if first.StatusCode != 201 || again.StatusCode != 201 || first.Header.Get("Location") != again.Header.Get("Location") || first.Header.Get("Location") == "" {
		t.Fatalf("%d %s\n%d %s", first.StatusCode, first.body, again.StatusCode, again.body)
	}
	if first.Header.Get("Idempotent-Replayed") != "" || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("Idempotent-Replayed: %q, then %q", first.Header.Get("Idempotent-Replayed"), again.Header.Get("Idempotent-Replayed"))
	}
	if r := create("name=flights&questions=11"); r.StatusCode != 422 || r.problem(t).Code != "idempotency-mismatch" {
		t.Errorf("another request with the same key: %d %s", r.StatusCode, r.body)
	}

	path := first.Header.Get("Location")
	one, two := s.post(path+"/queries", late, "Idempotency-Key: q-1"), s.post(path+"/queries", late, "Idempotency-Key: q-1")
	if one.Header.Get("Idempotent-Replayed") != "" || two.Header.Get("Idempotent-Replayed") != "true" || rawAnswer(t, one.body) != rawAnswer(t, two.body) {
		t.Errorf("%s\n%s", one.body, two.body)
	}
	if r := s.post(path+"/queries", late); r.Header.Get("Idempotent-Replayed") != "" {
		t.Error("a replay without Idempotency-Key says that it had one")
	}
	batch := `{"queries":[` + late + `,{"type":"fraction","of":"delay > 45"}]}`
	if r := s.post(path+"/queries/batch", batch, "Idempotency-Key: b-1"); r.StatusCode != 200 || r.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("batch: %d %s", r.StatusCode, r.body)
	}
	if r := s.post(path+"/queries/batch", batch, "Idempotency-Key: b-1"); r.StatusCode != 200 || r.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("batch again: %d %s", r.StatusCode, r.body)
	}
}

// TestPartialBatchAgain sends a batch in part again and again, by HTTP: it says that it is what was recorded, with the same items and warnings, byte for byte, whatever
// the repetition may cost; the first time it does not, also where nothing was asked. So does the tool of an agent, by its query alone.
func TestPartialBatchAgain(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.4&mechanism=gaussian&questions=40&rounds=4")
	queries := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"type":"fraction","of":"delay > %d"}`, i))
		}
		return `{"partial":true,"queries":[` + strings.Join(list, ",") + `]}`
	}
	cut := func(r result) (items, rest string) {
		t.Helper()
		items, rest, ok := strings.Cut(string(r.body), `],"budget":`)
		if r.StatusCode != 200 || !ok {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		return strings.ReplaceAll(items, `"replayed":false`, `"replayed":true`), rest
	}
	for n, c := range []struct {
		body, first string
		answered    int
		warned      bool
	}{
		{queries(25), "", 10, false},
		{`{"partial":true,"queries":[{"type":"fraction","of":"delay > 1","where":"delay > 0"}]}`, "?max_questions=1", 0, false}, // it costs two
		{queries(30), "?max_questions=5", 15, true}, // ten are replays
	} {
		key := fmt.Sprintf("Idempotency-Key: part-%d", n)
		first := s.post(path+"/queries/batch"+c.first, c.body, key)
		items, rest := cut(first)
		if got := strings.Count(items, `"answer":`); got != c.answered || first.Header.Get("Idempotent-Replayed") != "" || strings.Contains(rest, holdout.RoundNotFull) != c.warned {
			t.Errorf("%d answered, replayed %q, %s", got, first.Header.Get("Idempotent-Replayed"), rest)
		}
		for _, most := range []string{c.first, "", "?max_questions=40"} {
			again := s.post(path+"/queries/batch"+most, c.body, key)
			if got, remains := cut(again); got != items || remains != rest || again.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("again, %q: replayed %q\n%s %s\n%s %s", most, again.Header.Get("Idempotent-Replayed"), got, remains, items, rest)
			}
		}
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"holdout":"` + card.ID + `","query":{"type":"fraction","of":"delay > 77"},"max_questions":10}}}`
	var left [3]holdout.Budget
	for i := range left {
		if r := s.post("/mcp", call); r.StatusCode != 200 || strings.Contains(string(r.body), `"isError":true`) {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		s.get(path+"/budget").decode(t, &left[i])
	}
	if left[0].Rounds.Left != 1 || *left[2].Rounds != *left[0].Rounds {
		t.Errorf("the agent's question closes rounds: %+v", left)
	}
}

// TestGivenParts uploads the two parts as a form does.
func TestGivenParts(t *testing.T) {
	s := start(t, Options{})
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, name := range []string{"training", "holdout"} {
		w, err := form.CreateFormFile(name, name+".parquet")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(fixture(t, "given-"+name+".parquet"))
	}
	form.Close()
	r := s.send("POST", "/v1/holdouts?name=given&split=given", &b, "Content-Type: "+form.FormDataContentType())
	var card holdout.Card
	r.decode(t, &card)
	if r.StatusCode != 201 || card.Rows != (holdout.Counts{Training: 3000, Holdout: 2000}) {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.post("/v1/holdouts/"+card.ID+"/queries", late); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestTrainingDownload(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.4")
	whole := s.get(path + "/training")
	if whole.StatusCode != 200 || whole.Header.Get("Content-Type") != parquetType || !bytes.HasPrefix(whole.body, []byte("PAR1")) || !bytes.HasSuffix(whole.body, []byte("PAR1")) {
		t.Fatalf("%d %v", whole.StatusCode, whole.Header)
	}
	part := s.get(path+"/training", "Range: bytes=4-99")
	if part.StatusCode != 206 || !bytes.Equal(part.body, whole.body[4:100]) {
		t.Errorf("range: %d, %d bytes", part.StatusCode, len(part.body))
	}
	if r := s.get(path+"/training", `If-None-Match: "training-`+card.ID+`"`); r.StatusCode != 304 {
		t.Errorf("the tag is not known again: %d", r.StatusCode)
	}
	head := s.send("HEAD", path+"/training", nil)
	if head.StatusCode != 200 || head.ContentLength != int64(len(whole.body)) || len(head.body) != 0 {
		t.Errorf("HEAD: %d, length %d, want %d", head.StatusCode, head.ContentLength, len(whole.body))
	}
}

// TestDryRunAndCreatedAgain: a dry run has no location and makes nothing; then the settings may change until something was shown.
func TestDryRunAndCreatedAgain(t *testing.T) {
	s := start(t, Options{})
	file := fixture(t, "flights-5k.parquet")
	send := func(parameters string) (r result, card holdout.Card) {
		t.Helper()
		r = s.send("POST", "/v1/holdouts?"+parameters, bytes.NewReader(file), "Idempotency-Key: "+parameters[:6])
		if r.StatusCode < 300 {
			r.decode(t, &card)
		}
		return r, card
	}
	r, dry := send("name=f&holdout=0.4&dry_run=true")
	if r.StatusCode != 200 || r.Header.Get("Location") != "" || dry.ID != "" || dry.Units.Holdout != 2000 || dry.Guarantee.Questions == 0 || len(dry.Columns) != 5 {
		t.Errorf("a dry run: %d %s", r.StatusCode, r.body)
	}
	if list := s.get("/v1/holdouts"); string(list.body) != "{\"holdouts\":[]}\n" {
		t.Errorf("made by a dry run: %s", list.body)
	}
	r, first := send("name=f&holdout=0.4&dry_run=false") // with the key of the dry run, which was not used
	if r.StatusCode != 201 || !first.Draft {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	r, second := send("holdout=0.5&name=f&unit=day(date)&questions=50")
	if r.StatusCode != 201 || second.Replaces != first.ID || second.Unit != "day(date)" {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	s.get("/v1/holdouts/" + second.ID + "/training")
	r, _ = send("unit=origin&name=f&dry_run=true")
	if p := r.problem(t); r.StatusCode != 409 || !strings.Contains(string(r.body), `"reason":"shown"`) || !strings.Contains(p.Detail, "in the same order") {
		t.Errorf("another unit after a look: %d %s", r.StatusCode, r.body)
	}
	for _, wrong := range []string{"dry_run=1&name=f", "dry_run=true&dry_run=true", "dry_rnu=true&name=f"} {
		r, _ := send(wrong)
		if p := r.problem(t); r.StatusCode != 422 || len(p.Errors) != 1 || strings.Contains(wrong, "rnu") && p.Errors[0].Suggestion != "dry_run" {
			t.Errorf("%s: %d %s", wrong, r.StatusCode, r.body)
		}
	}
}

func TestDelete(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&holdout=0.4")
	s.get(path + "/training")
	if r := s.send("DELETE", path, nil); r.StatusCode != 204 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.get(path); r.StatusCode != 404 {
		t.Errorf("still there: %d", r.StatusCode)
	}
	if r := s.get("/v1/holdouts"); string(r.body) != "{\"holdouts\":[]}\n" {
		t.Errorf("still listed: %s", r.body)
	}
	r := s.send("POST", "/v1/holdouts?name=again", bytes.NewReader(fixture(t, "flights-5k.parquet")))
	if r.StatusCode != 409 || !strings.Contains(string(r.body), card.ID) {
		t.Errorf("the table of a deleted holdout: %d %s", r.StatusCode, r.body)
	}
}

// TestListsAreNeverNull keeps what the document says of lists.
func TestListsAreNeverNull(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=1.0")
	for _, r := range []result{s.get("/v1/holdouts"), s.get(path), s.get(path + "/answers"), s.get("/v1/keys"), s.post(path+"/queries/explain", late)} {
		for _, list := range []string{"holdouts", "columns", "skipped", "warnings", "answers", "keys", "functions", "values"} {
			if strings.Contains(string(r.body), `"`+list+`":null`) {
				t.Errorf("%s is null: %s", list, r.body)
			}
		}
	}
}

// TestExpectContinue checks that nothing of a body is asked for before everything else is right.
func TestExpectContinue(t *testing.T) {
	s := start(t, Options{})
	file := fixture(t, "flights-5k.parquet")
	talk := func(target, key string) (first string, c net.Conn, in *bufio.Reader) {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(await.Patience))
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", target, key, len(file))
		in = bufio.NewReader(c)
		first, err = in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return first, c, in
	}
	if first, _, _ := talk("/v1/holdouts?name=x", "hk_wrong"); !strings.Contains(first, "401") {
		t.Errorf("a wrong key is told to go on: %s", first)
	}
	if first, _, _ := talk("/v1/holdouts?nmae=x", s.key); !strings.Contains(first, "422") {
		t.Errorf("a wrong parameter is told to go on: %s", first)
	}
	first, c, in := talk("/v1/holdouts?name=x", s.key)
	if !strings.Contains(first, "100 Continue") {
		t.Fatalf("got %s", first)
	}
	in.ReadString('\n')
	if _, err := c.Write(file); err != nil {
		t.Fatal(err)
	}
	reply, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(reply.Body)
	if reply.StatusCode != 201 {
		t.Errorf("%d %s", reply.StatusCode, body)
	}
}

// TestBatchOfVeryManyTinyItems ends at the limit, not in memory.
func TestBatchOfVeryManyTinyItems(t *testing.T) {
	body := []byte(`{"queries":[` + strings.Repeat("0,", 1<<20) + `0]}`)
	grown := testing.AllocsPerRun(1, func() {
		if _, _, err := splitBatch(body, 100); err == nil || !strings.Contains(err.Error(), "more than 100") {
			t.Errorf("%v", err)
		}
	})
	if grown > 10_000 {
		t.Errorf("%v allocations for a batch that is refused after 100 items", grown)
	}
}
