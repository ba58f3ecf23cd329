package queries

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/internal/printed"
)

var update = flag.Bool("update", false, "write docs/QUERIES.md anew")

const referenceFile = "../docs/QUERIES.md"

// TestReference keeps docs/QUERIES.md what the parser reads.
func TestReference(t *testing.T) {
	want := queriesPage()
	if *update {
		if err := os.WriteFile(referenceFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/QUERIES.md is not what the code says; if that is meant: make generate")
	}
}

const referenceHead = `# Queries

A query is a JSON object with a "type". This page is made from the code that reads them (make generate). Expressions are CEL over a row's columns: [EXPRESSIONS.md](EXPRESSIONS.md). What an interval promises is in [GUARANTEES.md](GUARANTEES.md), and words are in [GLOSSARY.md](GLOSSARY.md).

Any query may have a "note", a remark of your own. An unknown member is an error. The same query in another spelling (white space, redundant parentheses, the order of operands and members, the spelling of numbers) replays the recorded answer at no cost.

A query costs *questions* of the budget, as below. ` + "`POST …/queries/explain`" + ` says the price and what the answer can be (` + "`outcomes`" + `: close, rough, differs, …), each with its half-width, and reads no held-out row. A query that costs more than a tenth of the holdout's questions is asked with ` + "`?max_questions=`" + `.

Prices are those of ` + "`guess_and_check`, `thresholdout` and `split`; the last column has those under `gaussian` where they are others" + `.

| type | what | price | gaussian |
|---|---|---|---|
`

// commonTypes is how many types have a member in the same words that stands once for all of them.
const commonTypes = 3

// commonWords is the least number of words of a member that stands once: what is shorter is read faster at its type.
const commonWords = 12

// commonMembers are members that many types have, in the order in which types have them: of each name the words of most types.
func commonMembers() (common []member) {
	count := map[[2]string]int{}
	var all []member
	for _, k := range kinds {
		for _, m := range k.make().members() {
			key := [2]string{m.name, m.doc}
			if count[key]++; count[key] == 1 {
				all = append(all, m)
			}
		}
	}
	of := func(m member) int { return count[[2]string{m.name, m.doc}] }
	for _, m := range all {
		same := func(other member) bool { return other.name == m.name }
		if at := slices.IndexFunc(common, same); of(m) < commonTypes || len(strings.Fields(m.doc)) < commonWords {
			continue
		} else if at < 0 {
			common = append(common, m)
		} else if of(m) > of(common[at]) {
			common[at] = m
		}
	}
	return common
}

func queriesPage() []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	for _, k := range kinds {
		gaussian := k.price.gaussian
		if gaussian == k.price.checked {
			gaussian = ""
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", k.name, k.name, firstSentence(k.doc), k.price.checked, gaussian)
	}
	row := func(m member) {
		need := ""
		if m.required && !m.labels {
			need = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, need, strings.ReplaceAll(m.doc, "|", `\|`))
	}
	const head = "| member | | what |\n|---|---|---|\n"
	common := commonMembers()
	b.WriteString("\n## Members of many types\n\nA type that has one of these names it, and says what is otherwise.\n\n| member | what |\n|---|---|\n")
	for _, m := range common {
		fmt.Fprintf(&b, "| `%s` | %s |\n", m.name, strings.ReplaceAll(m.doc, "|", `\|`))
	}
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", k.name, k.doc)
		for _, e := range k.examples {
			fmt.Fprintf(&b, "```json\n%s\n```\n\n", e)
		}
		var own []member
		var names []string
		for _, m := range k.make().members() {
			if slices.ContainsFunc(common, func(c member) bool { return c.name == m.name && c.doc == m.doc }) {
				name := "`" + m.name + "`"
				if m.required && !m.labels {
					name += " (required)"
				}
				names = append(names, name)
			} else {
				own = append(own, m)
			}
		}
		if len(own) > 0 {
			b.WriteString(head)
			for _, m := range own {
				row(m)
			}
		}
		if len(names) > 0 {
			if len(own) > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "[As many types](#members-of-many-types): %s.\n", strings.Join(names, ", "))
		}
	}
	return []byte(printed.InLines(b.String(), rowLength))
}

// rowLength is the longest row of prose of the page, as of pages that are written by hand.
const rowLength = 118

func firstSentence(doc string) string {
	if i := strings.IndexAny(doc, ".:;"); i > 0 {
		return doc[:i]
	}
	return doc
}
