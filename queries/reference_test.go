package queries

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
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

One query is one JSON object with a "type". This page is made from the code that reads them (make generate). Expressions are CEL over a row's columns: [EXPRESSIONS.md](EXPRESSIONS.md). What an interval promises is in
[GUARANTEES.md](GUARANTEES.md).

Every query may have a "note", a remark of your own that does not change the query. An unknown member is an error. The same
query in another spelling (white space, redundant parentheses, the order of commutative operands, the spelling of numbers, the
order of members) is the same query: it replays the recorded answer at no cost.

A query costs *questions*, which the budget counts. Each mean that is released for the query costs one: a mean one, a variance two. Under
gaussian several means can be released together as a vector (a histogram, a confusion matrix, a gradient). A vector costs a few
questions for any number of categories, and its intervals are somewhat wider. A choice among candidates costs one question. Under
other mechanisms each mean costs one question. Words are in [GLOSSARY.md](GLOSSARY.md).
` + "`POST …/queries/explain`" + ` says what a query means and, without touching a holdout row, every way in which its answer can come out (` + "`outcomes`" + `: close, rough, differs, …), each with its price, its planned half-width
and the widest that it can have. Of a query that was answered it says what was recorded. A query that costs more than a tenth of the holdout's questions is asked with ` + "`?max_questions=`" + `.

`

func queriesPage() []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	for _, k := range kinds {
		fmt.Fprintf(&b, "- [`%s`](#%s) %s\n", k.name, k.name, firstSentence(k.doc))
	}
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", k.name, k.doc)
		for _, e := range k.examples {
			fmt.Fprintf(&b, "```json\n%s\n```\n\n", e)
		}
		b.WriteString("| member | | what |\n|---|---|---|\n")
		for _, m := range k.make().members() {
			need := ""
			if m.required && !m.labels {
				need = "required"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, need, strings.ReplaceAll(m.doc, "|", `\|`))
		}
	}
	return b.Bytes()
}

func firstSentence(doc string) string {
	if i := strings.IndexAny(doc, ".:;"); i > 0 {
		return doc[:i]
	}
	return doc
}
