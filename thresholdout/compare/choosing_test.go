package compare

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout"
)

var update = flag.Bool("update", false, "write docs/BOUNDS.md and the numbers of docs/CHOOSING.md anew")

const choosing = "../../docs/CHOOSING.md"

// planRow is a row of a table of the page whose first cells are n, questions and tokens: the cells after them follow.
var planRow = regexp.MustCompile(`(?m)^\| ([0-9,]+) \| ([0-9,]+) \| ([0-9]+) \| .*\|$`)

// TestChoosing keeps the numbers of docs/CHOOSING.md: each row of its tables is what the planner says. `holdoutd plan --n N --training 2N --questions K
// --tokens T` prints them, `holdoutd plan --answers` those by the kind of answer.
func TestChoosing(t *testing.T) {
	page, err := os.ReadFile(choosing)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	made := planRow.ReplaceAllFunc(page, func(row []byte) []byte {
		rows++
		cells := planRow.FindStringSubmatch(string(row))
		line, err := choosingRow(whole(cells[1]), whole(cells[2]), whole(cells[3]))
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		return []byte(line)
	})
	const heading = "## By what kind of answer\n\n"
	before, after, ok := bytes.Cut(made, []byte(heading))
	next := bytes.Index(after, []byte("\n## "))
	if !ok || next < 0 {
		t.Fatalf("%s has no section %q before another one", choosing, heading)
	}
	var answers bytes.Buffer
	if err := WriteAnswers(&answers); err != nil {
		t.Fatal(err)
	}
	made = slices.Concat(before, []byte(heading), answers.Bytes(), after[next:])
	if rows < 10 {
		t.Errorf("%s has %d rows of numbers", choosing, rows)
	}
	if *update {
		if err := os.WriteFile(choosing, made, 0o644); err != nil {
			t.Fatal(err)
		}
		page = made
	}
	if !bytes.Equal(page, made) {
		t.Errorf("%s has other numbers than the planner: make generate", choosing)
	}
}

func whole(s string) int64 {
	n, _ := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64) // the pattern has digits only
	return n
}

// choosingRow is n, questions and tokens, and the half-widths: a textbook's of one question, of one batch, of guess_and_check with all tokens and with
// none left, of gaussian one by one.
func choosingRow(n, questions, tokens int64) (string, error) {
	r := Request{N: n, Training: 2 * n, Questions: questions, Tokens: tokens, Confidence: 0.95}
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: n, Training: 2 * n, Questions: questions, Tokens: tokens, Confidence: 0.95})
	if err != nil {
		return "", err
	}
	fresh, _ := g.Promised(0)
	spent, _ := g.Promised(tokens)
	noise, err := HalfWidthOf(MethodScheduled, r, questions)
	if err != nil {
		return "", err
	}
	r.Rounds = 1
	batch, err := HalfWidthOf(MethodRounds, r, questions)
	if err != nil {
		return "", err
	}
	const textbook = 1.959964 / 2 // half-widths of a share of one half, times the root of n
	return fmt.Sprintf("| %s | %s | %d | ±%.3g | ±%.3g | ±%.3g | ±%.3g | ±%.3g |", grouped(n), grouped(questions), tokens,
		textbook/math.Sqrt(float64(n)), batch, fresh.HalfWidth, spent.HalfWidth, noise), nil
}

func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
