package thresholdout

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/MECHANISMS.md anew")

const page = "../docs/MECHANISMS.md"

// TestPage keeps docs/MECHANISMS.md what the table of mechanisms says.
func TestPage(t *testing.T) {
	want := mechanismsPage()
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/MECHANISMS.md is not what the table of mechanisms says; if that is meant: make generate")
	}
}

// abilities in the order of the page, with what each is for a reader.
var abilities = []struct {
	name, says string
	has        func(Mechanism) bool
}{
	{"compares", "needs a training part, and compares it with the holdout", able[Compares]},
	{"guesses", "takes your guess, and a half-width to check it at", able[Guesses]},
	{"statistics", "checks more than one mean as one question, such as a mean under a condition", able[Statistics]},
	{"vectors", "releases several means as one, for the price of their variance", able[Vectors]},
	{"selections", "says which of many means is the largest, for one question", able[Selections]},
	{"slices", "gives each question its own units, which must be alike", able[Slices]},
	{"submissions", "takes submissions to a board", able[Submissions]},
	{"levels", "gives tests a p-value", able[Levels]},
	{"cells", "answers questions about declared cells alone", able[Celled]},
	{"fresh", "gives a test a plain p-value, if nothing was told of its units before", able[Fresh]},
	{"last answers", "in a final batch, intervals follow the holdout's own spread", able[Lasts]},
	{"measures", "says where the holdout is, whatever was guessed, for a price of its own", able[Measures]},
	{"closes", "can end in a final report", able[Closes]},
	{"memory", "remembers more than what is spent", able[Remembers]},
}

func able[Ability any](m Mechanism) bool { _, ok := m.(Ability); return ok }

func mechanismsPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Mechanisms

[CHOOSING.md](CHOOSING.md) says which to take, [GUARANTEES.md](GUARANTEES.md) what each promises, [BOUNDS.md](BOUNDS.md)
how narrow intervals are. Made from the table of mechanisms ([how to add one](ARCHITECTURE.md#adding-a-mechanism)).

| mechanism | what it does | parameters, beside questions and confidence | meters |
|---|---|---|---|
`)
	for _, k := range Kinds() {
		says := k.Says
		if k.Unprotected {
			says += ". Only if the server allows it"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, says, code(k.Takes), metersOf(k))
	}
	b.WriteString("\n`auto` takes one of the others. The rest depends on what was planned:\n\n| guarantee | abilities | members of its own |\n|---|---|---|\n")
	for _, k := range Kinds() {
		for _, v := range k.Variants {
			name := "`" + string(k.Name) + "`"
			if v.Says != "" {
				name += " " + v.Says
			}
			var does []string
			for _, a := range abilities {
				if a.has(v.Is) {
					does = append(does, a.name)
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, strings.Join(does, ", "), code(members(reflect.TypeOf(v.Is).Elem())))
		}
	}
	b.WriteString("\n| ability | means |\n|---|---|\n")
	for _, a := range abilities {
		fmt.Fprintf(&b, "| %s | %s |\n", a.name, a.says)
	}
	b.WriteString("\nEvery guarantee ([format/guarantee.md](format/guarantee.md)) has\n" + code(members(reflect.TypeFor[Head]())) + ".\n")
	return b.Bytes()
}

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func metersOf(k Kind) string {
	var names []string
	for _, name := range meterNames {
		if name == MeterQuestions || slices.Contains(k.Takes, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// members are the JSON names of a type's fields, but for those of Head inside another.
func members(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous && f.Type == reflect.TypeFor[Head]():
		case f.Anonymous:
			names = append(names, members(f.Type)...)
		default:
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// TestTable: every row of the table can be read, names each thing once, and takes only parameters that there are. It would notice a row that
// was copied and not finished.
func TestTable(t *testing.T) {
	known := map[string]bool{}
	for _, p := range params {
		known[p.name] = true
		if len(Takers(p.name)) == 0 {
			t.Errorf("nobody takes %s", p.name)
		}
	}
	seen, types := map[Name]bool{}, map[reflect.Type]bool{}
	for _, k := range Kinds() {
		if k.Says == "" || k.Plan == nil || (k.Read == nil) != (len(k.Variants) == 0) || seen[k.Name] {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
		for _, p := range k.Takes {
			if !known[p] {
				t.Errorf("%s takes %s, which there is not", k.Name, p)
			}
		}
		for _, v := range k.Variants {
			if types[reflect.TypeOf(v.Is)] {
				t.Errorf("%T stands twice", v.Is)
			}
			types[reflect.TypeOf(v.Is)] = true
			if compares := Does[Compares](k); compares != able[Compares](v.Is) {
				t.Errorf("%s: one variant compares with training and another does not", k.Name)
			}
		}
	}
	text := fmt.Sprint(listed([]string{"a"}, "or"), "; ", either([]string{"a", "b", "c"}), "; ", takers(ParamTokens), "; ", takers(ParamForm))
	if text != "a; a, b or c; auto, gaussian, guess_and_check and thresholdout do; thresholdout does" {
		t.Error(text)
	}
}
