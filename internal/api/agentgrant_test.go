package api

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// TestAgentOfBits is the loop of docs/AGENTS.md that needs least: an agent with a key that sees what it is granted alone, and a grant of four questions that shows verdicts
// alone. It chooses as well as the loop beside it does, and is told no number to climb on. It notices a number that comes through, by the tool, the history or the budget, a question
// beyond the grant, and an owner who is not shown the intervals of what the agent asked.
func TestAgentOfBits(t *testing.T) {
	s := start(t, Options{})
	r := rand.New(rand.NewPCG(7, 13))
	training, check, held := newChurn(r, 2000), newChurn(r, 2000), newChurn(r, 2000)
	id := s.parts("name=churn&label=churned&questions=20", map[string]*dataset.Table{"training": training.table(t), "check": check.table(t), "holdout": held.table(t)})
	var key struct{ ID, Secret string }
	if made := s.post("/v1/keys", `{"name":"agent-1","scope":"analyst","only_granted":true}`); made.StatusCode != 201 {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	} else {
		made.decode(t, &key)
	}
	a := s.agent(key.Secret)
	if sentence, body, _ := a.call("holdouts", ""); strings.Contains(body, id) {
		t.Fatalf("it sees a holdout without a grant: %s", sentence)
	}
	if made := s.post("/v1/holdouts/"+id+"/grants", `{"holder":"`+key.ID+`","questions":4,"tokens":2,"shows":"bit","name":"choosing"}`); made.StatusCode != 201 {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}

	honest := make([]float64, churnColumns)
	honest[0] = 1
	var verdicts, heard []string
	for _, columns := range []int{churnColumns, 30, 8} {
		next := training.fit(columns)
		text, err := json.Marshal(map[string]any{"holdout": id, "a": linear(honest), "b": linear(next)})
		if err != nil {
			t.Fatal(err)
		}
		sentence, body, refused := a.call("compare", string(text))
		if refused {
			t.Fatal(sentence)
		}
		var said told
		if err := json.Unmarshal([]byte(body), &said); err != nil {
			t.Fatal(err)
		}
		if said.Answer.Value != nil || said.Answer.Interval.Low != nil || said.Answer.Interval.High != nil {
			t.Errorf("it is told more than a verdict: %s", body)
		}
		heard = append(heard, sentence, body)
		if verdicts = append(verdicts, said.Answer.Verdict); said.Answer.Verdict == "yes" {
			honest = next
		}
	}
	if !slices.Equal(verdicts, []string{"yes", "undecided", "undecided"}) {
		t.Errorf("the verdicts are %v", verdicts)
	}
	page := openPage(t)
	for i := 0; i < len(heard); i += 2 {
		if said, _, _ := strings.Cut(heard[i], " It cost"); !strings.Contains(strings.Join(strings.Fields(page.text), " "), strings.TrimSpace(said)) {
			t.Errorf("the page does not have %q", said)
		}
	}
	for _, tool := range []string{"ask", "explain"} {
		query := linear(honest)
		text, err := json.Marshal(map[string]any{"holdout": id, "query": query})
		if err != nil {
			t.Fatal(err)
		}
		sentence, body, refused := a.call(tool, string(text))
		heard = append(heard, sentence, body)
		if tool == "ask" && (!refused || !strings.Contains(sentence, "verdict")) {
			t.Errorf("ask: %v %s", refused, sentence)
		}
	}
	history := s.get("/v1/holdouts/"+id+"/answers", "Authorization: Bearer "+key.Secret)
	budget := s.get("/v1/holdouts/"+id+"/budget", "Authorization: Bearer "+key.Secret)
	if !strings.Contains(string(budget.body), `"left":1,"of":4`) {
		t.Errorf("its budget: %s", budget.body)
	}

	// The owner reads what was recorded: the same answers, with their intervals. None of these numbers has been told.
	var whole struct {
		Answers []struct {
			Answer struct {
				Value    float64
				Interval struct{ Low, High float64 }
			} `json:"answer"`
		}
	}
	recorded := s.get("/v1/holdouts/" + id + "/answers")
	recorded.decode(t, &whole)
	if len(whole.Answers) != 3 || whole.Answers[0].Answer.Interval.High == 0 {
		t.Fatalf("the owner's history: %s", recorded.body)
	}
	all := strings.Join(heard, "\n") + string(history.body) + string(budget.body)
	numbers := regexp.MustCompile(`"(value|low|high)":(-?0\.\d{3,})`).FindAllStringSubmatch(string(recorded.body), -1)
	if len(numbers) < 9 {
		t.Errorf("%d numbers were looked for", len(numbers))
	}
	for _, number := range numbers {
		reference := strings.Contains(string(recorded.body), `"reference":{"part":"check","value":`+number[2])
		if !reference && strings.Contains(all, number[2]) {
			t.Errorf("%s of an answer was told: %s", number[1], number[2])
		}
	}
}
