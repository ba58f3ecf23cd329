package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// maxWords is what all pages have together, code and tables counted. A reader has finite time: who adds a page shortens another.
	maxWords = 86_100
	// maxPageWords is what a page has that longPages does not name.
	maxPageWords = 1_300
	// maxRow is the longest row of prose, so that two versions can be read side by side. Rows of tables and of code may be longer.
	maxRow = 120
	// maxSentence is the longest sentence, in words, of plainPages.
	maxSentence = 35
)

// longPages are those that have more words than others may, with how many.
var longPages = map[string]int{
	"docs/AGENTS.md":                    1450,
	"docs/API.md":                       2400,
	"docs/ARCHITECTURE.md":              1800,
	"docs/BOUNDS.md":                    1650,
	"docs/CHOOSING.md":                  1700,
	"docs/COMMANDS.md":                  1650,
	"docs/DP.md":                        2800,
	"docs/EXPERIMENTS.md":               2700,
	"docs/GUARANTEES.md":                2300,
	"docs/MODELS.md":                    2600,
	"docs/OPERATIONS.md":                4500,
	"docs/QUERIES.md":                   8050,
	"docs/SECURITY.md":                  2350,
	"docs/format/ledger.md":             1450,
	"docs/proofs/account.md":            2500,
	"docs/proofs/adaptive-hoeffding.md": 1500,
	"docs/proofs/groups-and-weights.md": 1600,
	"docs/proofs/overshoot.md":          1550,
	"docs/proofs/pairs.md":              2950,
	"docs/proofs/promises.md":           2500,
	"docs/proofs/split.md":              1450,
	"docs/proofs/two-moments.md":        3250,
}

// plainPages are those that a data scientist reads whose first language is not English.
var plainPages = []string{"README.md", "docs/TUTORIAL.md", "docs/CHOOSING.md", "docs/GUARANTEES.md", "docs/SELECTING-MODELS.md", "docs/AGENTS.md", "docs/SECURITY.md", "docs/OPERATIONS.md", "python/README.md"}

// generatedPages have rows as long as what they are made of.
var generatedPages = []string{"docs/BOUNDS.md", "docs/COMMANDS.md", "docs/MECHANISMS.md"}

// pages are all pages by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || len(entry.Name()) > 2 && entry.Name()[0] == '.'):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestWords: the pages stay as short as they were made. Where it fails, say it shorter, or leave out what only its author needs.
func TestWords(t *testing.T) {
	total := 0
	for path, text := range pages(t) {
		words := len(strings.Fields(text))
		total += words
		most := maxPageWords
		if longPages[path] > 0 {
			most = longPages[path]
		}
		if words > most {
			t.Errorf("%s has %d words, %d at most", path, words, most)
		}
	}
	if t.Logf("%d words", total); total > maxWords {
		t.Errorf("the pages have %d words, %d at most", total, maxWords)
	}
}

var (
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	listItem = regexp.MustCompile(`^\s*([-*]|[0-9]+\.) `)
	// sentenceEnd is a stop behind a word with what closes there, before what can begin a sentence.
	sentenceEnd = regexp.MustCompile(`[^\s.][.!?]["')*_\x60]*(?:(\s+)["'(*_\x60\[A-Z0-9]|\s*$)`)
)

// paragraphs are the paragraphs and list items of a page, and rows the rows of its prose, without code, tables and headings.
func paragraphs(text string) (all, rows []string) {
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			all = append(all, b.String())
		}
		b.Reset()
	}
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		switch bare := strings.TrimSpace(line); {
		case strings.HasPrefix(bare, "```"):
			code = !code
			end()
		case code:
		case bare == "", strings.HasPrefix(bare, "|"), strings.HasPrefix(bare, "#"), strings.HasPrefix(bare, "!["), strings.HasPrefix(bare, "<"):
			end()
		default:
			if listItem.MatchString(line) {
				end()
			}
			rows = append(rows, line)
			b.WriteString(listItem.ReplaceAllString(line, "") + " ")
		}
	}
	end()
	return all, rows
}

// sentences are those of a paragraph.
func sentences(paragraph string) (all []string) {
	text := link.ReplaceAllString(paragraph, "$1")
	for {
		at := sentenceEnd.FindStringSubmatchIndex(text)
		if at == nil || at[2] < 0 {
			return append(all, strings.TrimSpace(text))
		}
		all, text = append(all, text[:at[2]]), text[at[3]:]
	}
}

// TestSentences: what users read is made of sentences that can be read once, and rows of prose fit beside each other.
func TestSentences(t *testing.T) {
	for path, text := range pages(t) {
		all, rows := paragraphs(text)
		if slices.Contains(generatedPages, path) {
			rows = nil
		}
		for _, row := range rows {
			if n := utf8.RuneCountInString(row); n > maxRow && strings.Contains(strings.TrimSpace(row), " ") {
				t.Errorf("%s: a row of %d: %s", path, n, row)
			}
		}
		if !slices.Contains(plainPages, path) {
			continue
		}
		for _, paragraph := range all {
			for _, sentence := range sentences(paragraph) {
				if words := len(strings.Fields(sentence)); words > maxSentence {
					t.Errorf("%s: %d words in one sentence: %s", path, words, sentence)
				}
			}
		}
	}
}

// TestSentenceEnds: what the two tests above take for a sentence.
func TestSentenceEnds(t *testing.T) {
	all, rows := paragraphs("# Head\n\nOne `a.b` is v1.2. Two (see [that](x.y.md)).\nThree, e.g. this:\n\n- four!\n- five\n  and on\n\n```\ncode. code.\n```\n| a. b. | c |\n")
	var found []string
	for _, p := range all {
		for _, s := range sentences(p) {
			found = append(found, strings.Join(strings.Fields(s), " "))
		}
	}
	want := []string{"One `a.b` is v1.2.", "Two (see that).", "Three, e.g. this:", "four!", "five and on"}
	if strings.Join(found, "/") != strings.Join(want, "/") || len(rows) != 5 {
		t.Errorf("%q of %q", found, rows)
	}
}
