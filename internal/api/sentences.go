package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/printed"
	"github.com/holdoutd/holdoutd/session"
)

// What an agent is told is JSON and a sentence. The sentence is made of the same members, for models that read the text of a result and for the
// people who read over their shoulder. It adds no fact.

// sentenceDigits are those of a number in a sentence.
const sentenceDigits = 6

// short is a number for people: six digits, or the whole number that it is.
func short(x float64) string {
	return strconv.FormatFloat(printed.NearOf(x, sentenceDigits), 'g', sentenceDigits, 64)
}

// atLeast and atMost are the ends of an interval as a sentence says them, and bounds: rounded down, and up, so that what is said holds.
func atLeast(x float64) string { return short(printed.LowOf(x, sentenceDigits)) }
func atMost(x float64) string  { return short(printed.HighOf(x, sentenceDigits)) }

// numbered is a count with its noun.
func numbered(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf(one, n)
	}
	return fmt.Sprintf(many, n)
}

func questions(n int64) string { return numbered(int(n), "%d question", "%d questions") }

func tokens(n int64) string { return numbered(int(n), "%d token", "%d tokens") }

func named(name string) string {
	if name == "" {
		return "a holdout without a name"
	}
	return name
}

// budgetWords are what is left, without a verb: 999 of 1000 questions and 20 of 20 tokens left.
func budgetWords(b holdout.Budget) string {
	s := fmt.Sprintf("%d of %s", b.Questions.Left, questions(b.Questions.Of))
	if b.Tokens != nil {
		s += fmt.Sprintf(" and %d of %s", b.Tokens.Left, tokens(b.Tokens.Of))
	}
	if b.Rounds != nil {
		s += fmt.Sprintf(" in %d of %s", b.Rounds.Left, numbered(int(b.Rounds.Of), "%d round", "%d rounds"))
	}
	s += " left"
	if b.Rounds != nil && b.NextRound > 0 {
		s += fmt.Sprintf(" (one call of batch asks all %d of the next round)", b.NextRound)
	}
	return s
}

func budgetSentence(b holdout.Budget) string {
	s := "There are " + budgetWords(b) + ". "
	switch {
	case b.Questions.Left == 0:
		s += "Nothing new can be asked; recorded answers can still be asked for again, at no cost."
	case b.Rounds != nil:
		s += fmt.Sprintf("The next call that asks something new closes a round of %s: put them into one call of batch. A call that would lose some is refused unless max_questions is %d.", questions(b.NextRound), b.NextRound)
	default:
		s += fmt.Sprintf("Without max_questions one query may cost %d at most.", holdout.MostUnasked(b.Questions.Of))
	}
	return s
}

// valueSources say which rows a value is of.
var valueSources = map[session.ValueFrom]string{
	session.ValueFromCheck:    "The value is that of the check part, which the holdout did not contradict.",
	session.ValueFromTraining: "The value is that of the training part, which the holdout did not contradict.",
	session.ValueFromBoth:     "The value is that of the training and check parts, which the holdout did not contradict.",
	session.ValueFromGuess:    "The value is your guess, which the holdout did not contradict.",
	session.ValueFromHoldout:  "The value is the holdout's own.",
	session.ValueFromMixed:    "The value is made of several, some of them the holdout's own.",
}

// answerSentence says an answer: value, interval, verdict, which rows they are of, what it cost, what is left, and what to be careful of.
func answerSentence(answer holdout.Answer) (string, error) {
	var recorded holdout.Narrowed
	if err := json.Unmarshal(answer.Body, &recorded); err != nil {
		return "", fmt.Errorf("api: a recorded answer: %w", err)
	}
	s := shownWords(recorded) + perWords(answer.Per)
	if from := valueSources[recorded.ValueFrom]; from != "" && recorded.Value != nil {
		s += " " + from
	}
	switch {
	case answer.Replayed:
		s += " It was answered before and cost nothing now;"
	case recorded.Cost.Tokens > 0:
		s += fmt.Sprintf(" It cost %s and %s;", questions(recorded.Cost.Questions), tokens(recorded.Cost.Tokens))
	default:
		s += fmt.Sprintf(" It cost %s;", questions(recorded.Cost.Questions))
	}
	s += " there are " + budgetWords(answer.Budget) + "."
	return s + warningWords(recorded.Warnings) + warningWords(answer.Warnings), nil
}

// mostAnswers are said in a sentence; the JSON has all.
const mostAnswers = 20

// batchSentence says the answers of a batch in their order, and once what is left.
func batchSentence(batch holdout.BatchAnswer) (string, error) {
	var words []string
	asked, replayed := 0, 0
	for i, item := range batch.Answers {
		if item.Replayed {
			replayed++
		}
		if item.NotAsked == "" {
			asked++
		}
		if i >= mostAnswers {
			continue
		}
		if item.NotAsked != "" {
			words = append(words, fmt.Sprintf("%d: not asked (%s), at no cost.", i+1, item.NotAsked))
			continue
		}
		var recorded holdout.Narrowed
		if err := json.Unmarshal(item.Body, &recorded); err != nil {
			return "", fmt.Errorf("api: a recorded answer: %w", err)
		}
		words = append(words, fmt.Sprintf("%d: %s%s", i+1, shownWords(recorded)+perWords(item.Per), warningWords(recorded.Warnings)))
	}
	s := fmt.Sprintf("%d of %s answered, %d of them before and at no cost now. ", asked, numbered(len(batch.Answers), "%d query was", "%d queries were"), replayed)
	s += strings.Join(words, " ")
	if more := len(batch.Answers) - len(words); more > 0 {
		s += fmt.Sprintf(" And %d more.", more)
	}
	return s + " There are " + budgetWords(batch.Budget) + "." + warningWords(batch.Warnings), nil
}

// shownWords are what is shown of an answer.
func shownWords(a holdout.Narrowed) string {
	switch {
	case a.Shows == "":
		return resultWords(a.Answer)
	case a.Passed != nil && *a.Passed:
		return "It passes: the verdict is yes. The grant of this key shows no more."
	case a.Passed != nil:
		return "It does not pass: the verdict is not yes, which need not mean no. The grant of this key shows no more."
	}
	nothing := " There is no interval that holds."
	return strings.TrimSuffix(resultWords(a.Answer), nothing) + " Its interval is not shown to this key, so that nothing says how far the value can be from the truth."
}

// resultWords are what an answer says of the holdout's rows.
func resultWords(a session.Answer) string {
	var s string
	switch {
	case a.Selected != "":
		s = "The best is " + a.Selected + "."
		if a.Regret != nil {
			s = fmt.Sprintf("The best is %s, or at most %s worse than the best.", a.Selected, atMost(*a.Regret))
		}
	case len(a.Items) > 0:
		s = itemWords(a.Items)
	case a.Value == nil:
		s = "The question has no defined answer on these rows."
	default:
		s = fmt.Sprintf("The value is %s.", short(*a.Value))
	}
	if a.Verdict != "" {
		s = fmt.Sprintf("The verdict is %s. %s", a.Verdict, s)
	}
	if a.PValue != nil {
		s += fmt.Sprintf(" The p-value is %s, valid after all questions of this holdout.", atMost(*a.PValue))
	}
	switch i := a.Interval; {
	case i == nil:
		s += " There is no interval that holds."
	case i.Low != nil && i.High != nil:
		s += fmt.Sprintf(" The true value is in [%s, %s] with %s%% confidence for %s.", atLeast(*i.Low), atMost(*i.High), short(100*i.Confidence), i.Scope)
	case len(a.Items) > 0:
		s += fmt.Sprintf(" All these intervals hold with %s%% confidence for %s.", short(100*i.Confidence), i.Scope)
	}
	return s
}

// perWords say what has one vote each, where that is not the row by itself.
func perWords(per string) string {
	switch {
	case per == "":
		return ""
	case per == "row":
		return " Every row counts once."
	}
	return fmt.Sprintf(" Every %s counts once, however many rows it has.", per)
}

// mostItems are said in a sentence; the JSON has all.
const mostItems = 8

func itemWords(items []session.Item) string {
	var words []string
	for _, i := range items[:min(len(items), mostItems)] {
		switch {
		case i.Value == nil:
			words = append(words, i.Of+": no value")
		case i.Low == nil || i.High == nil:
			words = append(words, fmt.Sprintf("%s: %s", i.Of, short(*i.Value)))
		default:
			words = append(words, fmt.Sprintf("%s: %s in [%s, %s]", i.Of, short(*i.Value), atLeast(*i.Low), atMost(*i.High)))
		}
	}
	s := strings.Join(words, "; ")
	if more := len(items) - len(words); more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s + "."
}

func warningWords(warnings []holdout.Warning) string {
	var s string
	for _, w := range warnings {
		s += " Careful: " + strings.TrimSuffix(w.Detail, ".") + "."
	}
	return s
}

func explanationSentence(e holdout.Explanation) string {
	var s string
	switch {
	case e.Answered:
		s = "It was answered before: asking again costs nothing."
	case e.Cost.Tokens > 0:
		s = fmt.Sprintf("Asking costs %s, and at most %s if the guess is wrong.", questions(e.Cost.Questions), tokens(e.Cost.Tokens))
	default:
		s = fmt.Sprintf("Asking costs %s.", questions(e.Cost.Questions))
	}
	if e.Training != nil && e.ValueFrom != "" {
		s += fmt.Sprintf(" The %s says %s.", partWords(e.ValueFrom), short(*e.Training))
	}
	if e.HalfWidth != nil {
		s += fmt.Sprintf(" The interval will be about ±%s wide", short(*e.HalfWidth))
		if e.Widest != nil {
			s += fmt.Sprintf(", and at most ±%s", atMost(*e.Widest))
		}
		s += "."
	}
	return s + " It is about: " + strings.TrimSuffix(e.Target, ".") + "." + warningWords(e.Warnings)
}

func partWords(from session.ValueFrom) string {
	switch from {
	case session.ValueFromCheck:
		return "check part"
	case session.ValueFromBoth:
		return "training and check part together"
	}
	return "training part"
}

func planSentence(r PlanReport) string {
	s := fmt.Sprintf("For %d units and %s the narrowest is %s", r.N, questions(r.Questions), r.Recommended)
	for _, m := range r.Methods {
		if m.Method == r.Recommended && m.HalfWidth != nil {
			s += fmt.Sprintf(" (mechanism %s), with intervals of ±%s in units of [0,1]", m.Mechanism, short(*m.HalfWidth))
		}
	}
	if r.Workload != nil && r.Workload.Recommended != "" {
		s += ". For the workload it is " + r.Workload.Recommended
	}
	return s + "."
}

// refusalSentence says what happened, where, what was probably meant, and what can be done.
func refusalSentence(p *Problem) string {
	var words []string
	for _, v := range p.Errors {
		w := capital(strings.TrimSuffix(v.Detail, ".")) + "."
		if v.Pointer != "" {
			w = fmt.Sprintf("At %s: %s.", v.Pointer, strings.TrimSuffix(v.Detail, "."))
		}
		if v.Suggestion != "" {
			w += " Did you mean " + v.Suggestion + "?"
		}
		words = append(words, w)
	}
	if len(words) == 0 && p.Code != classes[holdout.Unconfirmed].code { // whose advice says it in an agent's words
		words = append(words, capital(strings.TrimSuffix(p.Detail, "."))+".")
	}
	return strings.Join(append(words, adviceFor(p)), " ")
}

// adviceFor is what an agent can do about a refusal: in the words of its tools where the class speaks of the HTTP interface.
func adviceFor(p *Problem) string {
	if p.members["void"] == true {
		return "It was debited and has no answer; asking again costs again. Tell the person who runs the server."
	}
	switch p.Code {
	case classes[holdout.BudgetExhausted].code:
		remaining, _ := p.members["remaining"].(int64)
		if p.members["meter"] == "tokens" {
			return tokenAdvice(remaining, p.members["questions_left"])
		}
		if meter, _ := p.members["meter"].(string); remaining > 0 && (meter == "" || meter == "questions") {
			return fmt.Sprintf("A query that costs at most %s can still be asked; explain says what a query costs. Do not repeat this one.", questions(remaining))
		}
		return "Do not try other wordings: nothing that needs it can be asked any more. Recorded answers can still be asked for again, at no cost. Report what you know, and that the budget is spent."
	case classes[holdout.Unconfirmed].code:
		if lost, ok := p.members["lost"]; ok {
			return fmt.Sprintf("The call would end a round of %v questions, and %v of them would be lost. Nothing was read and nothing was debited. Put all questions of the round into one call of batch, or, if the loss is meant, call again with max_questions=%[1]v.",
				p.members["requested"], lost)
		}
		return fmt.Sprintf("This costs %v questions, and the call may cost %v. Nothing was read and nothing was debited. Ask for fewer categories, bins or features, or, if the price is meant, call again with max_questions=%[1]v.",
			p.members["requested"], p.members["max_questions"])
	case classes[holdout.NotFound].code:
		return "The tool holdouts lists what there is."
	case classes[holdout.Invalid].code, classes[holdout.Malformed].code:
		return "Nothing was read and nothing was debited: correct the arguments and call again."
	}
	for _, c := range allClasses() {
		if c.code == p.Code {
			s := c.advice
			if p.retryAfter > 0 {
				s = strings.ReplaceAll(s, "the seconds of Retry-After", fmt.Sprintf("%d seconds", int((p.retryAfter+time.Second-1)/time.Second)))
			}
			return s
		}
	}
	return ""
}

// tokenAdvice is what can be done where tokens are lacking, and questions are not.
func tokenAdvice(tokensLeft int64, questionsLeft any) string {
	s := fmt.Sprintf("Tokens are lacking, not questions: %v questions are left. ", questionsLeft)
	if tokensLeft > 0 {
		return s + fmt.Sprintf("Ask a query that needs at most %s, such as one with fewer candidates or features; explain says what a query needs.", tokens(tokensLeft))
	}
	return s + "A query that needs no token can still be asked: leave a promise out; explain says what a query needs."
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
