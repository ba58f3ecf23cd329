package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"mime/multipart"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout"
)

// The two loops of docs/AGENTS.md, by the SDK's client against the real server. The parts are uploaded as they are (split=given), so that the plain holdout beside it is of the
// same rows, and a run says the same numbers as the last.

// TestAgentsPage: the page's configurations are JSON for this endpoint with a key in the header, and its messages are answered. A tool that is called otherwise than the page says turns it red.
func TestAgentsPage(t *testing.T) {
	s := start(t, Options{})
	_, card := s.upload("name=flights&questions=30")
	configurations, messages := 0, 0
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(openPage(t).text, -1) {
		if !json.Valid([]byte(block[1])) {
			t.Errorf("not JSON: %s", block[1])
		}
		if !strings.Contains(block[1], `"jsonrpc"`) {
			configurations++
			if !strings.Contains(block[1], `:8080/mcp"`) || !strings.Contains(block[1], "Authorization") || !strings.Contains(block[1], "Bearer ") {
				t.Errorf("no configuration of this endpoint: %s", block[1])
			}
			continue
		}
		messages++
		if r := s.post("/mcp", strings.ReplaceAll(block[1], "ho_…", card.ID)); r.StatusCode != 200 || !strings.Contains(string(r.body), "questions and 20 of 20 tokens left") {
			t.Errorf("%s: %d %s", block[1], r.StatusCode, r.body)
		}
	}
	if configurations != 4 || messages != 2 {
		t.Errorf("%d configurations and %d messages were found", configurations, messages)
	}
	for _, tool := range tools {
		if !strings.Contains(openPage(t).text, "| `"+tool.name+"` |") {
			t.Errorf("the page has no tool %s", tool.name)
		}
	}
	r := s.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"holdouts"}}`)
	if r.StatusCode != 200 || !strings.Contains(string(r.body), card.ID) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// parts uploads a table's parts and returns the holdout's id.
func (s *server) parts(parameters string, tables map[string]*dataset.Table) string {
	s.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, table := range tables {
		w, err := form.CreateFormFile(name, name+".parquet")
		if err == nil {
			err = ingest.Export(w, table)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	form.Close()
	r := s.send("POST", "/v1/holdouts?split=given&"+parameters, &b, "Content-Type: "+form.FormDataContentType())
	var card struct{ ID string }
	if r.decode(s.t, &card); r.StatusCode != 201 {
		s.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	return card.ID
}

// told is what an agent reads of an answer.
type told struct {
	Answer struct {
		Value     *float64
		Interval  struct{ Low, High *float64 }
		Verdict   string
		ValueFrom string `json:"value_from"`
	}
	Budget struct{ Questions, Tokens struct{ Left int } }
}

// said calls a tool; a refusal ends the loop.
func (a *agent) said(tool string, arguments map[string]any) (t told, refused string) {
	a.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		a.t.Fatal(err)
	}
	sentence, body, isError := a.call(tool, string(text))
	if isError {
		return t, sentence
	}
	if err := json.Unmarshal([]byte(body), &t); err != nil {
		a.t.Fatal(err)
	}
	return t, ""
}

// A loopPage holds the numbers of docs/AGENTS.md: each row of its tables has a name and numbers, which a run repeats but for what an interval's formula may change.
type loopPage struct {
	t    *testing.T
	text string
}

func openPage(t *testing.T) loopPage {
	t.Helper()
	text, err := os.ReadFile("../../docs/AGENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	return loopPage{t, string(text)}
}

var threeDigits = regexp.MustCompile(`-?\d\.\d{3}`)

// row prints what was measured, and compares it with the row of that name.
func (p loopPage) row(name string, measured ...float64) {
	p.t.Helper()
	p.t.Logf("| %s | %.3f |", name, measured)
	for line := range strings.Lines(p.text) {
		if !strings.HasPrefix(line, "| "+name+" |") {
			continue
		}
		said := threeDigits.FindAllString(line, -1)
		for i, x := range measured {
			var on float64
			if i < len(said) {
				fmt.Sscan(said[i], &on)
			}
			if len(said) != len(measured) || math.Abs(on-x) > 0.03 {
				p.t.Errorf("the page says %v of %q, and %.3f was measured", said, name, measured)
				return
			}
		}
		return
	}
	p.t.Errorf("the page has no row %q", name)
}

// ends are an answer's value and interval.
func (t told) ends() []float64 {
	return []float64{*t.Answer.Value, *t.Answer.Interval.Low, *t.Answer.Interval.High}
}

// holds reports whether the interval holds the truth.
func (t told) holds(truth float64) bool {
	return *t.Answer.Interval.Low <= truth && truth <= *t.Answer.Interval.High
}

// churn is a law that is known: the label is true where a weighted sum of the first columns and normal noise are above 0; the other columns are noise.
type churn struct {
	rows  [][]float64
	label []bool
}

const (
	churnColumns = 100
	churnSignal  = 8
	churnNoise   = 1.2
)

func churnWeight(j int) float64 {
	if j >= churnSignal {
		return 0
	}
	return 0.6 / (1 + 0.15*float64(j))
}

func newChurn(r *rand.Rand, n int) *churn {
	c := &churn{}
	for range n {
		x, sum := make([]float64, churnColumns), churnNoise*r.NormFloat64()
		for j := range x {
			x[j] = r.NormFloat64()
			sum += churnWeight(j) * x[j]
		}
		c.rows, c.label = append(c.rows, x), append(c.label, sum > 0)
	}
	return c
}

func (c *churn) table(t *testing.T) *dataset.Table {
	label := dataset.Column{Field: dataset.Field{Name: "churned", Kind: dataset.Bool, Source: "BOOLEAN"}}
	for _, yes := range c.label {
		label.Bools = append(label.Bools, map[bool]uint8{true: 1}[yes])
	}
	columns := []dataset.Column{label}
	for j := range churnColumns {
		x := dataset.Column{Field: dataset.Field{Name: fmt.Sprint("x", j), Kind: dataset.Number, Source: "DOUBLE"}}
		for _, row := range c.rows {
			x.Numbers = append(x.Numbers, row[j])
		}
		columns = append(columns, x)
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// accuracy is what a plain holdout says: the exact share of its rows.
func (c *churn) accuracy(w []float64) float64 {
	right := 0
	for i, row := range c.rows {
		sum := 0.0
		for j, x := range row {
			sum += w[j] * x
		}
		if (sum > 0) == c.label[i] {
			right++
		}
	}
	return float64(right) / float64(len(c.rows))
}

// fit is a model from the rows alone: the difference of the two classes' means, of the columns where it is largest.
func (c *churn) fit(columns int) []float64 {
	w := make([]float64, churnColumns)
	for i, row := range c.rows {
		for j, x := range row {
			if c.label[i] {
				w[j] += x / float64(len(c.rows))
			} else {
				w[j] -= x / float64(len(c.rows))
			}
		}
	}
	sizes := make([]float64, churnColumns)
	for j, x := range w {
		sizes[j] = -math.Abs(x)
	}
	slices.Sort(sizes)
	for j, x := range w {
		if -math.Abs(x) > sizes[columns-1] {
			w[j] = 0
		}
	}
	return w
}

// fresh is the accuracy on fresh rows without end: normal scores with the correlation r agree in sign with the probability 1 - arccos(r)/π.
func fresh(w []float64) float64 {
	both, one, other := 0.0, 0.0, churnNoise*churnNoise
	for j, x := range w {
		both, one, other = both+x*churnWeight(j), one+x*x, other+churnWeight(j)*churnWeight(j)
	}
	return 1 - math.Acos(both/math.Sqrt(one*other))/math.Pi
}

func linear(w []float64) map[string]any {
	weights := map[string]float64{}
	for j, x := range w {
		if x != 0 {
			weights[fmt.Sprint("x", j)] = x
		}
	}
	return map[string]any{"type": "accuracy", "model": map[string]any{"linear": map[string]any{"intercept": 0, "weights": weights, "link": "logit"}}}
}

// climb changes a model at random, 400 times, and keeps what scores better: the loop that an agent falls into when it is told to improve a number. Its proposals depend on
// nothing else.
func climb(w []float64, score func(w []float64) float64) (best []float64, said float64) {
	r := rand.New(rand.NewPCG(1, 2))
	best, said = w, score(w)
	for range 400 {
		next := append([]float64{}, best...)
		for range churnColumns / 10 {
			next[r.IntN(churnColumns)] += 0.2 * r.NormFloat64()
		}
		if now := score(next); now > said {
			best, said = next, now
		}
	}
	return best, said
}

// TestAgentTunes is the first loop of docs/AGENTS.md. The data, the split and the proposals are fixed, so that a run repeats the page's numbers. It would notice an endpoint that tells an agent the holdout's exact
// score, and an interval that does not hold what fresh rows say.
func TestAgentTunes(t *testing.T) {
	s := start(t, Options{})
	r := rand.New(rand.NewPCG(7, 13))
	training, check, held := newChurn(r, 2000), newChurn(r, 2000), newChurn(r, 2000)
	tables := map[string]*dataset.Table{"training": training.table(t), "check": check.table(t), "holdout": held.table(t)}
	id := s.parts("name=churn&label=churned&questions=500", tables)
	_, key := s.newKey("analyst")
	a := s.agent(key)
	ask := func(tool string, arguments map[string]any) told {
		arguments["holdout"] = id
		said, refused := a.said(tool, arguments)
		if refused != "" {
			t.Fatal(refused)
		}
		return said
	}
	report := func(w []float64) told {
		query := linear(w)
		query["measure"] = true
		return ask("ask", map[string]any{"query": query})
	}
	begin := make([]float64, churnColumns)
	begin[0] = 1

	on := openPage(t)
	naive, naiveSaid := climb(begin, held.accuracy)
	on.row("plain holdout, 400 looks", naiveSaid, fresh(naive))
	if naiveSaid < fresh(naive)+0.025 {
		t.Error("the plain holdout was not overfitted; the loop shows nothing")
	}

	looked, lookedSaid := climb(begin, func(w []float64) float64 {
		return *ask("ask", map[string]any{"query": linear(w)}).Answer.Value
	})
	final := report(looked)
	on.row("`ask`, 400 looks", append(final.ends(), fresh(looked))...)
	if !final.holds(fresh(looked)) || final.Answer.ValueFrom != "holdout" || lookedSaid < *final.Answer.Value {
		t.Errorf("said %.3f while it climbed, and at the end %+v", lookedSaid, final.Answer)
	}

	s = start(t, Options{})
	id = s.parts("name=churn&label=churned&questions=20", tables)
	a = s.agent(s.key)
	honest := begin
	var verdicts []string
	for _, columns := range []int{churnColumns, 30, 8} { // fitted to the training part, in the order in which the agent thought of them
		next := training.fit(columns)
		said := ask("compare", map[string]any{"a": linear(honest), "b": linear(next)})
		on.row(fmt.Sprintf("fit with %d columns", columns), *said.Answer.Interval.Low, *said.Answer.Interval.High, fresh(next)-fresh(honest))
		if !said.holds(fresh(next) - fresh(honest)) {
			t.Errorf("%d columns: %+v, and the truth is %.3f", columns, said.Answer, fresh(next)-fresh(honest))
		}
		if verdicts = append(verdicts, said.Answer.Verdict); said.Answer.Verdict == "yes" {
			honest = next
		}
	}
	if verdicts[0] != "yes" {
		t.Errorf("the verdicts are %v: a gain of a tenth is not found", verdicts)
	}
	last := report(honest)
	on.row("`compare`, 3 looks", append(last.ends(), fresh(honest))...)
	if !last.holds(fresh(honest)) || last.Budget.Questions.Left != 16 {
		t.Errorf("%+v", last)
	}
}

// A claim is a prompt of the evaluation set: a + b = c, true or false.
type claim struct{ a, b, c int }

func (c claim) prompt() string { return fmt.Sprintf("Is it true that %d + %d = %d?", c.a, c.b, c.c) }

func (c claim) label() bool { return c.a+c.b == c.c }

// newClaims are different ones, half of them true; a false one is wrong in one of its last three digits.
func newClaims(r *rand.Rand, n int) (all []claim) {
	for seen := map[[2]int]bool{}; len(all) < n; {
		c := claim{a: 100 + r.IntN(800), b: 100 + r.IntN(800)}
		if seen[[2]int{c.a, c.b}] {
			continue
		}
		seen[[2]int{c.a, c.b}] = true
		if c.c = c.a + c.b; r.IntN(2) == 0 {
			c.c += []int{1, 10, 100}[r.IntN(3)]
		}
		all = append(all, c)
	}
	return all
}

func claimTable(t *testing.T, claims []claim) *dataset.Table {
	label := dataset.Column{Field: dataset.Field{Name: "answer", Kind: dataset.Bool, Source: "BOOLEAN"}}
	var prompts []string
	for _, c := range claims {
		label.Bools, prompts = append(label.Bools, map[bool]uint8{true: 1}[c.label()]), append(prompts, c.prompt())
	}
	table, err := dataset.FromColumns(label, dataset.NewText("prompt", prompts, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// prompts downloads the features and returns them in the order of row_id.
func (s *server) prompts(path string) []string {
	s.t.Helper()
	r := s.get(path)
	dir := s.t.TempDir()
	file := filepath.Join(dir, "features.parquet")
	if err := os.WriteFile(file, r.body, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if _, err := ingest.Decode(s.t.Context(), file, filepath.Join(dir, "table"), ingest.DefaultLimits()); err != nil {
		s.t.Fatalf("%d %v", r.StatusCode, err)
	}
	table, err := dataset.Open(filepath.Join(dir, "table"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer table.Close()
	ids, _ := table.Lookup(holdout.RowID)
	texts, _ := table.Lookup("prompt")
	if _, secret := table.Lookup("answer"); secret {
		s.t.Fatal("the labels can be downloaded")
	}
	all := make([]string, table.Rows())
	for i, id := range ids.Numbers {
		all[int(id)] = strings.Clone(texts.Dictionary.Text(int(texts.Codes[i]) - 1))
	}
	return all
}

// read is what a system makes of a prompt: it looks at as many of the last digits as it can hold.
func read(prompt string, digits int) bool {
	var c claim
	fmt.Sscanf(prompt, "Is it true that %d + %d = %d?", &c.a, &c.b, &c.c)
	modulus := int(math.Pow10(digits))
	return (c.a+c.b)%modulus == c.c%modulus
}

// TestAgentIsEvaluated is the second loop of docs/AGENTS.md: prompts public, labels secret. All answers are functions of their prompts, so that a run repeats the page's numbers, in whatever order the download has
// the prompts. It would notice labels that can be downloaded, and a score that answers without knowledge can climb.
func TestAgentIsEvaluated(t *testing.T) {
	s := start(t, Options{})
	r := rand.New(rand.NewPCG(3, 5))
	claims := newClaims(r, 3500)
	shown, check, held := claims[:500], claims[500:2000], claims[2000:]
	id := s.parts("name=sums&label=answer&features=public&questions=200", map[string]*dataset.Table{"training": claimTable(t, shown), "check": claimTable(t, check), "holdout": claimTable(t, held)})
	_, key := s.newKey("analyst")
	a := s.agent(key)
	prompts := s.prompts("/v1/holdouts/" + id + "/features")
	truth := map[string]bool{}
	for _, c := range held {
		truth[c.prompt()] = c.label()
	}
	submit := func(answers []int, more map[string]any) told {
		query := map[string]any{"type": "accuracy", "predictions": answers}
		for name, value := range more {
			query[name] = value
		}
		said, refused := a.said("ask", map[string]any{"holdout": id, "query": query})
		if refused != "" {
			t.Fatal(refused)
		}
		return said
	}
	answers := func(digits int) (rows []int) {
		for _, p := range prompts {
			rows = append(rows, map[bool]int{true: 1}[read(p, digits)])
		}
		return rows
	}
	on := openPage(t)
	for digits, want := range map[int]float64{1: 2. / 3, 2: 5. / 6} { // a system that reads one digit is taken in by two wrong digits of three
		said := submit(answers(digits), nil)
		on.row(map[int]string{1: "a system that reads one digit", 2: "a system that reads two digits"}[digits], append(said.ends(), want)...)
		if !said.holds(want) {
			t.Errorf("%d digits: %+v, and the truth is %.3f", digits, said.Answer, want)
		}
	}
	better, refused := a.said("compare", map[string]any{"holdout": id, "a": map[string]any{"type": "accuracy", "predictions": answers(1)}, "b": map[string]any{"type": "accuracy", "predictions": answers(2)}})
	if refused != "" || better.Answer.Verdict != "yes" || !better.holds(1./6) {
		t.Errorf("%s %+v", refused, better.Answer)
	}

	// The attack on leaderboards: answers at random, of which those that scored above one half are summed. They know nothing of the prompts.
	plain := func(rows []int) float64 {
		right := 0
		for i := range held {
			if truth[prompts[i]] == (rows[i] == 1) {
				right++
			}
		}
		return float64(right) / float64(len(held))
	}
	byPlain, byAsk := make([]int, len(prompts)), make([]int, len(prompts))
	for guess := range 150 {
		rows := make([]int, len(prompts))
		for i, p := range prompts {
			h := fnv.New64a()
			fmt.Fprint(h, guess, p)
			rows[i] = bits.OnesCount64(h.Sum64()) % 2
		}
		vote(byPlain, rows, plain(rows))
		vote(byAsk, rows, *submit(rows, nil).Answer.Value)
	}
	said := plain(winners(byPlain))
	on.row("plain leaderboard, 150 guesses", said, 0.5)
	if said < 0.55 {
		t.Error("the plain leaderboard was not climbed; the loop shows nothing")
	}
	final := submit(winners(byAsk), map[string]any{"measure": true})
	on.row("`ask`, 150 guesses", append(final.ends(), 0.5)...)
	if !final.holds(0.5) || final.Answer.ValueFrom != "holdout" {
		t.Errorf("%+v", final.Answer)
	}
}

// vote counts answers for or against, by their score.
func vote(votes, rows []int, score float64) {
	for i, x := range rows {
		if (score > 0.5) == (x == 1) {
			votes[i]++
		} else {
			votes[i]--
		}
	}
}

// winners are the answers with more votes for them than against.
func winners(votes []int) []int {
	rows := make([]int, len(votes))
	for i, v := range votes {
		rows[i] = map[bool]int{true: 1}[v > 0]
	}
	return rows
}
