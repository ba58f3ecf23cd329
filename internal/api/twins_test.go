package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"mime/multipart"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// This is the model test of the second promise. Several servers have holdouts with one training part, of one public shape, and rows as
// different as can be. All get the same requests in the same order, most of them hostile. Whatever is not in a paid answer must be the
// same: status, headers, every byte of every refusal, explanation, card and budget, and what answers cost.

// rowsOf are the kinds of held-out rows.
var rowsOf = []string{"normal", "alike", "null", "extreme", "constant"}

const twinRows = 600

// twinTable is a table of a kind of rows; the training part is "normal". All texts are those of the training part, so that the upload's
// dictionary is the same.
func twinTable(t *testing.T, kind string, seed uint64) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	number := func(name string, f func(i int) float64) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, twinRows)}
		for i := range c.Numbers {
			switch v := f(i); kind {
			case "null":
				c.Numbers[i] = math.NaN()
			case "extreme":
				c.Numbers[i] = []float64{1e308, -1e308, 5e-324, math.Copysign(0, -1), math.NaN(), 1e-300, math.MaxFloat64}[i%7]
			case "constant":
				c.Numbers[i] = 1
			case "high":
				c.Numbers[i] = 0.5 + v/2
			default:
				c.Numbers[i] = v
			}
		}
		return c
	}
	x := number("x", func(int) float64 { return r.Float64() })
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}, Bools: make([]uint8, twinRows)}
	var places, ids []string
	for i := range twinRows {
		if late.Bools[i] = uint8(r.IntN(2)); kind == "high" {
			late.Bools[i] = uint8(min(1, r.IntN(10)))
		}
		places, ids = append(places, fmt.Sprintf("place %d", r.IntN(5))), append(ids, fmt.Sprintf("id %04d", i))
		switch kind {
		case "null", "constant":
			late.Bools[i], places[i], ids[i] = 1, "place 0", "id 0000"
		case "extreme":
			late.Bools[i], places[i], ids[i] = 0, "place 4", "id 0599"
		}
	}
	table, err := dataset.FromColumns(x, number("y", func(i int) float64 { return x.Numbers[i] + r.NormFloat64() }), late,
		dataset.NewText("place", places, func(int) bool { return false }), dataset.NewText("tag", ids, func(i int) bool { return kind == "null" && i > 0 }))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ingest.Export(&b, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// given uploads two parts.
func (s *server) given(parameters string, training, rows []byte) string {
	s.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, file := range map[string][]byte{"training": training, "holdout": rows} {
		w, err := form.CreateFormFile(name, name+".parquet")
		if err != nil {
			s.t.Fatal(err)
		}
		w.Write(file)
	}
	form.Close()
	r := s.send("POST", "/v1/holdouts?split=given&"+parameters, &b, "Content-Type: "+form.FormDataContentType())
	if r.StatusCode != 201 {
		s.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	return r.Header.Get("Location")
}

// move is one request to all twins, or two at once.
type move struct {
	method, path, body string
	headers            []string
	beside             *move
}

// hostile makes requests. It knows nothing of replies.
type hostile struct {
	*rand.Rand
	ladder bool
	checks bool     // most questions about predictions are to be checked: a measured answer tells twins apart, and ends the comparison
	said   []string // queries so far
}

// checked is what has a question about predictions checked.
func (h *hostile) checked() string {
	if h.checks && h.IntN(8) > 0 {
		return `,"measure":false`
	}
	return ""
}

func pick[T any](h *hostile, of ...T) T { return of[h.IntN(len(of))] }

func (h *hostile) where() string {
	return pick(h, "x > 0.5", "x < -1", "late", "!late", "x / 0.0 > 1.0", "place == 'place 1'", "place == 'nowhere'", "tag == 'id 0007'", "tag.contains('9')", "log(x) < -0.5",
		"x > y && late", "1.0 / x > 3.0", "place in ['place 0', 'place 4']", "x == x", "y * 1e300 * 1e300 > 1.0", fmt.Sprintf("x > %v", h.Float64()))
}

func (h *hostile) of() string {
	return pick(h, "x", "y", "x * y", "x / (x - x)", "late ? x : y", "log(x)", "x + 1e308", "exp(y * 100.0)", "y * y", "x < 0.5 ? 1.0 : 0.0", "sqrt(0.0 - x)")
}

func (h *hostile) scale() string {
	return pick(h, "[0,1]", "[-1,1]", "[0,2]", "[-1e300,1e300]", "[0,1e-300]", "[1,0]", "[0,5e-324]", "[-5,5]")
}

// query is a query of any type, right or wrong.
func (h *hostile) query() string {
	if h.ladder && h.IntN(4) > 0 {
		return fmt.Sprintf(`{"type":"loss","loss":"zero_one","label":"late","prediction":"x < %v"}`, h.Float64())
	}
	tail := ""
	if h.IntN(3) == 0 {
		tail += fmt.Sprintf(`,"where":%q`, h.where())
	}
	if h.IntN(6) == 0 {
		tail += pick(h, `,"guess":0.5`, `,"guess":1e9`, `,"half_width":0.2`, `,"half_width":1e-9`, `,"half_width":0.05`, `,"guess":0,"half_width":1e-300`, fmt.Sprintf(`,"guess":%v,"half_width":%v`, h.Float64(), math.Exp(-9*h.Float64())))
	}
	of, scale, where := h.of(), h.scale(), h.where()
	return fmt.Sprintf(pick(h,
		`{"type":"mean","of":%q,"range":%s%s}`, `{"type":"sum","of":%q,"range":%s%s}`, `{"type":"variance","of":%q,"range":%s%s}`, `{"type":"stddev","of":%q,"range":%s%s}`,
		`{"type":"median","of":%q,"range":%s%s}`, `{"type":"quantile","q":0.9,"of":%q,"range":%s%s}`, `{"type":"groups","of":%q,"range":%s,"by":"place"%s}`,
		`{"type":"groups","of":%q,"range":%s,"by":"place","values":["place 1","nowhere","id 0001"]%s}`,
		`{"type":"screen","label":%q,"range_label":%s,"features":["x","y"],"range":[0,1]%s}`,
		`{"type":"passes","above":0.5,"of":{"type":"mean","of":%q,"range":%s%s}}`, `{"type":"test","test":"mean","equals":0.5,"of":%q,"range":%s%s}`,
		`{"type":"difference","of":%q,"range":%s,"between":["late"]%s}`, `{"type":"covariance","x":"x","y":%q,"range_x":[0,1],"range_y":%s%s}`,
		`{"type":"argmax","of":[{"type":"mean","of":%q,"range":%s%s},{"type":"fraction","of":"late"}]}`,
		`{"type":"fraction","of":"`+where+`","unknown":%q,"range":%s%s}`,
		`{"type":"rmse","label":%q,"prediction":"x","range":%s,"max_error":1%s`+h.checked()+`}`,
	), of, scale, tail)
}

// one is a query that most holdouts can answer, or one that was said before.
func (h *hostile) one() (query string) {
	switch h.IntN(7) {
	case 0:
		if len(h.said) > 0 {
			return pick(h, h.said...)
		}
		fallthrough
	case 1, 2:
		query = fmt.Sprintf(`{"type":"fraction","of":%q,"where":%q}`, h.where(), h.where())
	case 3:
		query = fmt.Sprintf(pick(h, `{"type":"frequencies","of":"place"%s}`, `{"type":"histogram","of":"y","edges":[-1,0,1]%s}`, `{"type":"accuracy","label":"late","prediction":"x > 0.5"%s`+h.checked()+`}`,
			`{"type":"mean","of":"x","range":[0,1]%s}`, `{"type":"count","of":"late"%s}`, `{"type":"auc","label":"late","prediction":"x"%s}`), pick(h, "", fmt.Sprintf(`,"where":%q`, h.where())))
	case 4:
		return pick(h, `{"type":"mean"`, `[]`, `{"type":"mean","of":"nothing","range":[0,1]}`, `{"type":"nothing"}`, `{"type":"fraction","of":"x > "}`, `null`, `{"type":"fraction","of":"x"}`, "\x00",
			`{"type":"frequencies","of":"tag","values":["`+strings.Repeat("p", 70_000)+`","`+strings.Repeat("q", 70_000)+`"]}`, `{"type":"fraction","type":"mean","of":"late"}`)
	default:
		query = h.query()
	}
	h.said = append(h.said, query)
	return query
}

// next is the next request.
func (h *hostile) next() move {
	m := move{method: "POST", path: "/queries"}
	if h.IntN(4) == 0 {
		m.headers = []string{fmt.Sprintf("Idempotency-Key: k%d", h.IntN(12))}
	}
	switch h.IntN(16) {
	case 0:
		return move{method: "GET", path: pick(h, "/budget", "/answers?limit=3", "/answers?after=2", "/answers", "", "/training", "/nothing", "/answers?limit=0", "/features")}
	case 1, 2, 3:
		m.path, m.body = "/queries/explain", h.one()
	case 4, 5, 6, 7:
		var list []string
		for range 1 + h.IntN(6) {
			list = append(list, h.one())
			if h.IntN(3) == 0 {
				list = append(list, list[h.IntN(len(list))])
			}
		}
		m.path, m.body = "/queries/batch", fmt.Sprintf(`{"queries":[%s]%s}`, strings.Join(list, ","), pick(h, "", `,"partial":true`, `,"partial":true`, `,"partial":1`))
	default:
		m.body = h.one()
	}
	return m
}

// free is a request that nothing is paid for, under a mechanism with tokens.
func (h *hostile) free() move {
	narrow := func() string {
		return fmt.Sprintf(`{"type":"mean","of":%q,"range":[0,%d],"guess":%v,"half_width":1e-%d}`, h.of(), 1+h.IntN(9), h.Float64(), 4+h.IntN(300))
	}
	switch h.IntN(4) {
	case 0:
		return move{method: "POST", path: "/queries/explain", body: h.one()}
	case 1:
		return move{method: "POST", path: "/queries", body: narrow(), headers: []string{fmt.Sprintf("Idempotency-Key: n%d", h.IntN(3))}}
	case 2:
		return move{method: "POST", path: "/queries/batch", body: fmt.Sprintf(`{"partial":true,"queries":[%s,%s,%s]}`, narrow(), narrow(), narrow())}
	}
	return move{method: "POST", path: "/queries/batch", body: fmt.Sprintf(`{"queries":[%s,{"type":"fraction","of":"x / "}]}`, h.one())}
}

// said is what came back for a move.
type said struct {
	refused string   // all of it, but for names and times, where it is no paid answer
	paid    string   // of paid answers: what they cost and what else is not their content
	tokens  []string // that explain later differences
}

var names = regexp.MustCompile(`ho_[-A-Za-z0-9]+|ans_[-0-9a-f]+|"created":"[^"]*"|"(holdout|training)(\.units)?":"sha256:[0-9a-f]+"`)

// unpaid is an explanation without what it repeats of a paid answer, where the query was answered; any other body as it is.
func unpaid(body []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || string(members["answered"]) != "true" {
		return body
	}
	for _, name := range []string{"half_width", "widest_half_width", "outcomes", "bound"} {
		delete(members, name)
	}
	rest, _ := json.Marshal(members)
	return rest
}

// hear takes a reply apart.
func hear(t *testing.T, r result) (s said) {
	t.Helper()
	head := fmt.Sprint(r.StatusCode, " ", r.Header.Get("Content-Type"), r.Header.Get("Retry-After"), r.Header.Get("Idempotent-Replayed"), "\n")
	type answer struct {
		Cost     holdout.Cost
		Source   string
		Outcome  string
		Value    *float64
		Interval *struct{ Low, High *float64 }
		Ledger   struct{ Seq int64 }
		Row      []struct{ Source string } `json:"row_functions"`
	}
	type item struct {
		Answer   *answer
		Replayed bool
		NotAsked string `json:"not_asked"`
	}
	var reply struct {
		item
		Answers []json.RawMessage
		Budget  *holdout.Budget
		Next    int64
	}
	if r.Header.Get("Content-Type") != "application/json" || r.StatusCode != 200 || json.Unmarshal(r.body, &reply) != nil || reply.Answer == nil && reply.Answers == nil {
		body := r.body
		if r.Header.Get("Content-Type") == parquetType {
			body = nil
		}
		s.refused = head + names.ReplaceAllString(string(unpaid(body)), "NAME")
		return s
	}
	items := []item{reply.item}
	for _, raw := range reply.Answers {
		var i item
		if json.Unmarshal(raw, &i); i.Answer == nil && i.NotAsked == "" { // a page of /answers
			i.Answer = new(answer)
			json.Unmarshal(raw, i.Answer)
		}
		items = append(items, i)
	}
	s.paid = head + fmt.Sprintf("next %d ", reply.Next)
	for _, i := range items {
		s.paid += fmt.Sprintf("%v %q", i.Replayed, i.NotAsked)
		if a := i.Answer; a != nil {
			s.paid += fmt.Sprintf(" %d at %d", a.Cost, a.Ledger.Seq)
			s.tokens = append(s.tokens, a.Source, fmt.Sprint(a.Cost.Tokens, a.Row))
			if a.Outcome == string(thresholdout.Measured) && a.Value != nil { // it tells where the holdout is
				s.tokens = append(s.tokens, fmt.Sprint(*a.Value))
			}
		}
		s.paid += "; "
	}
	if reply.Budget != nil {
		s.paid += fmt.Sprint(reply.Budget.Questions, reply.Budget.Tokens != nil, reply.Budget.Rounds)
		if reply.Budget.Tokens != nil {
			s.tokens = append(s.tokens, fmt.Sprint(*reply.Budget.Tokens))
		}
		if reply.Budget.Rounds != nil {
			s.paid += fmt.Sprint(*reply.Budget.Rounds)
		}
	}
	return s
}

// byAgent reports whether the move is sent by the Model Context Protocol: a third of the single queries, the same in all twins.
func (m move) byAgent() bool {
	return (m.path == "/queries" || m.path == "/queries/explain") && len(m.headers) == 0 && len(m.body)%3 == 0
}

// asAgent sends a move as a call of a tool, and gives what comes back the form of the HTTP interface: the JSON beside the sentence, and of a
// refusal the sentence, too.
func (s *server) asAgent(path string, m move) result {
	s.t.Helper()
	tool := "ask"
	if strings.HasSuffix(m.path, "explain") {
		tool = "explain"
	}
	r := s.post("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"holdout":%q,"query":%s}}}`, tool, strings.TrimPrefix(path, "/v1/holdouts/"), m.body))
	var message struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if r.StatusCode != 200 {
		return r // the message was refused
	}
	if r.decode(s.t, &message); len(message.Result.Content) != 2 {
		s.t.Fatalf("%s: %s", m.body, r.body)
	}
	r.body = []byte(unsaid(message.Result.Content[1].Text))
	if message.Result.IsError {
		r.Header.Set("Content-Type", problemType)
		var refused struct{ Problem Problem }
		r.decode(s.t, &refused)
		r.Response.StatusCode = refused.Problem.Status
		r.body = append(r.body, message.Result.Content[0].Text...)
	}
	return r
}

// play sends all moves to one holdout.
func (s *server) play(path string, moves []move) (heard [][]said) {
	do := func(m move) said {
		if m.byAgent() {
			return hear(s.t, s.asAgent(path, m))
		}
		return hear(s.t, s.send(m.method, path+m.path, strings.NewReader(m.body), m.headers...))
	}
	for _, m := range moves {
		if m.beside == nil {
			heard = append(heard, []said{do(m)})
			continue
		}
		both := make([]said, 2)
		var group sync.WaitGroup
		group.Go(func() { both[0] = do(m) })
		group.Go(func() { both[1] = do(*m.beside) })
		group.Wait()
		heard = append(heard, both)
	}
	return heard
}

// TestTwins: holdouts of equal public shape answer every request alike, but for what is in paid answers. Where a mechanism has
// tokens, later replies may differ after the first paid answers that differ in what they took: up to there they are compared.
// It would notice a refusal, a price or a place in the ledger that depends on a held-out row.
func TestTwins(t *testing.T) {
	limits := holdout.Limits{AnswerBytes: 100_000}
	var servers []*server
	for range rowsOf {
		servers = append(servers, start(t, Options{}, limits))
	}
	for seed, parameters := range []string{"mechanism=gaussian&questions=150", "mechanism=gaussian&questions=60&rounds=12", "mechanism=split&questions=60", "mechanism=ladder&questions=40",
		"mechanism=guess_and_check&questions=150&tokens=20", "mechanism=thresholdout&questions=150&tokens=20&threshold=0.2&sigma=0.05", "mechanism=auto&questions=40&tokens=3"} {
		t.Run(parameters, func(t *testing.T) {
			tables := map[string][]byte{} // of each turn others: rows that are held out again are refused
			for i, kind := range rowsOf {
				tables[kind] = twinTable(t, kind, uint64(100+i+10*seed))
			}
			h := &hostile{Rand: rand.New(rand.NewPCG(uint64(seed), 77)), ladder: strings.Contains(parameters, "ladder"), checks: strings.Contains(parameters, "tokens") && !strings.Contains(parameters, "thresholdout")}
			var moves []move
			for i := range 110 {
				m := h.next()
				if i < 30 && strings.Contains(parameters, "tokens") { // before the first token can be told
					moves = append(moves, h.free())
					continue
				}
				if h.IntN(12) == 0 && !strings.Contains(parameters, "split") {
					other := m
					if h.IntN(2) == 0 {
						other = h.next()
					}
					m.beside = &other
				}
				moves = append(moves, m)
			}
			training := twinTable(t, "normal", uint64(seed))
			all := make([][][]said, len(servers))
			var group sync.WaitGroup
			for i, s := range servers {
				path := s.given("name=twin&"+parameters, training, tables[rowsOf[i]])
				group.Go(func() { all[i] = s.play(path, moves) })
			}
			group.Wait()
			statuses := map[string]int{}
			for _, heard := range all[0] {
				for _, one := range heard {
					statuses[(one.refused + one.paid)[:3]]++
				}
			}
			if statuses["200"] < 20 || statuses["422"] < 10 {
				t.Errorf("the requests do not reach far: %v", statuses)
			}
			for i := 1; i < len(servers); i++ {
				t.Logf("%s: %d of %d moves compared, %v", rowsOf[i], compareTwins(t, rowsOf[i], moves, all[0], all[i], parameters), len(moves), statuses)
			}
		})
	}
}

// compareTwins compares two twins up to the first paid difference of tokens, and returns how far that is.
func compareTwins(t *testing.T, kind string, moves []move, a, b [][]said, parameters string) (compared int) {
	t.Helper()
	hasTokens := strings.Contains(parameters, "tokens") || strings.Contains(parameters, "auto")
	for i := range moves {
		order := func(x, y said) int { return strings.Compare(x.refused+x.paid, y.refused+y.paid) }
		x, y := slices.SortedFunc(slices.Values(a[i]), order), slices.SortedFunc(slices.Values(b[i]), order)
		for j := range x {
			if hasTokens && !slices.Equal(x[j].tokens, y[j].tokens) {
				return i
			}
			if moves[i].beside != nil && slices.ContainsFunc(x, func(s said) bool { return s.paid != "" }) { // who was first is in the answers and explanations: places, what was left, what replays
				if status := func(s said) string { return (s.refused + s.paid)[:3] }; status(x[j]) != status(y[j]) {
					t.Errorf("%s, move %d: %s %s\n%s %s", kind, i, x[j].refused, x[j].paid, y[j].refused, y[j].paid)
				}
				continue
			}
			if x[j].refused != y[j].refused || x[j].paid != y[j].paid {
				t.Fatalf("%s, move %d: %s %s %.300s %v\n  normal: %.700s%s\n  %s: %.700s%s", kind, i, moves[i].method, moves[i].path, moves[i].body, moves[i].headers, x[j].refused, x[j].paid, kind, y[j].refused, y[j].paid)
			}
		}
	}
	return len(moves)
}
